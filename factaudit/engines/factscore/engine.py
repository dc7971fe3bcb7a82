"""FActScore (Min et al. 2023): each response's facts against the page of its topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from factaudit.engines.factscore.rows import response_rows, summarise
from factaudit.engines.factscore.sections import facts_section, unsupported_section
from factaudit.engines.pipeline import Engine, Row, Scored
from factaudit.engines.records import Candidate, Decomposed, Found
from factaudit.engines.responses import Response, make_response
from factaudit.errors import UsageError
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.replies import understood
from factaudit.llm.together import run_sync, sessions
from factaudit.llm.types import Request


@dataclass
class FactScorer(Engine):
    """FActScore of responses.

    >>> scorer = FactScorer("wiki.db", Client("gpt-4o-mini"))  # doctest: +SKIP
    >>> scorer.score(["Ada Lovelace"], ["Ada Lovelace was a mathematician."])["score"]  # doctest: +SKIP
    """

    name: ClassVar[str] = "factscore"
    title: ClassVar[str] = "FActScore"
    needs_knowledge: ClassVar[bool] = True

    def score(self, topics: Sequence[str], outputs: Sequence[str], **options: Any) -> Row:
        """Score texts; topic and text at the same position belong together. ``options``: of `score_responses`.

        Returns a plain dictionary: the summary's figures (score, init_score, respond_ratio, num_facts_per_response,
        ...) and ``responses``, one per text in order, each with its sentences and facts.
        """
        if isinstance(topics, str) or isinstance(outputs, str) or len(topics) != len(outputs):
            raise UsageError("topics and outputs are two lists of the same length")
        seen: dict[tuple[str, str], int] = {}
        responses = []
        for topic, output in zip(topics, outputs, strict=True):
            seen[topic, output] = position = seen.get((topic, output), -1) + 1
            responses.append(make_response(topic, output, position=position))
        scored = self.score_responses(responses, **options)
        return {**scored.summary, "responses": scored.responses}

    def score_conversation(self, turns: Sequence[Mapping[str, str]], topic: str | None = None) -> Row:
        """Score the last assistant turn of a conversation of ``{role, content}`` turns.

        Without a ``topic``, the LLM is asked for the title of the page that the turn is about. Returns the response's
        row as a plain dictionary, with ``topic``.
        """
        said = [turn.get("content") or "" for turn in turns if turn.get("role") == "assistant"]
        if not said:
            raise UsageError("the conversation has no assistant turn")
        if not isinstance(said[-1], str):
            raise UsageError(f"the content of a turn is text, found {type(said[-1]).__name__}")
        if topic is None:
            topic = run_sync(self._ask_topic(turns))
        result: Row = self.score([topic], [said[-1]])["responses"][0]
        return result

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> Scored:
        """Score responses, many at once; see `factaudit.engines.pipeline.Engine.make`."""
        made = self.make(responses, journal=journal, progress=progress)
        rows = response_rows(made, self.names, self.gamma)
        summary = summarise(made, rows, self.names, self.gamma, self.intervals)
        return Scored(made.claims, made.verdicts, rows, summary, (made.claims, made.verdicts), made.records)

    def audits(self) -> dict[str, Row]:
        people = {"irrelevant": self.irrelevant, "gamma": self.gamma}
        own: dict[str, Row] = {"factscore": {"gamma": self.gamma}, "factscore_auc": {}}
        return own | {f"factscore_{one}": people for one in ("agreement", "thresholds", "calibration")}

    def sections(self, scored: Scored) -> list[Row]:
        told = facts_section(
            scored.responses,
            scored.summary,
            max_facts=self.max_facts,
            parser=self.parser,
            irrelevant=self.irrelevant,
        )
        first = unsupported_section(scored.responses, self.names[0])
        return [told, *([first] if first else [])]

    def tables(self, scored: Scored) -> dict[str, list[Row]]:
        """The audit's rows with what only an engine knows: calls, failed sentences, facts removed and cut."""
        rows = []
        for one in scored.summary.get("evaluators", [scored.summary]):
            if len(one["systems"]) != 1:
                rows.append({key: value for key, value in one.items() if key not in ("systems", "evaluators")})
            rows += one["systems"]
        return {"factscore": rows}

    def told(self, summary: Row) -> list[str]:
        score = "undefined" if summary["score"] is None else f"{summary['score']:.4f}"
        return [f"FActScore {score:>9} ({summary['evaluator']})"]

    # ------------------------------------------------------------------------------------------ the one page

    def prepare(self, responses: Sequence[Response]) -> None:
        """Under the policy ``error``, raise for topics without a page."""
        if isinstance(self.knowledge, Knowledge):
            self.knowledge.check(one.topic for one in responses if one.abstained is not True)

    def hopeless(self, response: Response) -> Candidate | None:
        """A topic without a page, where all verifiers read pages."""
        if not isinstance(self.knowledge, Knowledge) or not self._verifiers.all_need_passages:
            return None
        page, status, reason = self.knowledge.find(response.topic)
        return None if page is not None else Candidate(None, status, reason)

    def find(self, response: Response, decomposed: Decomposed) -> Found:
        """The page of the topic."""
        if not isinstance(self.knowledge, Knowledge) or decomposed.abstained:
            return Found((Candidate(None, "skipped", "no knowledge source"),), (None,))
        page, status, reason = self.knowledge.find(response.topic)
        if page is None:
            return Found((Candidate(None, status, reason),), (None,))
        return Found((Candidate(page.title, matched=page.matched),), (page,))

    async def _ask_topic(self, turns: Sequence[Mapping[str, str]]) -> str:
        if self.llm is None:
            raise UsageError("give the topic, or an LLM to ask for it")
        talk = "\n\n".join(f"{turn.get('role')}: {turn.get('content')}" for turn in turns)
        task = (
            "Which one person, place, work or thing is the last answer of this conversation about? "
            "Reply with the title of its encyclopedia article and nothing else."
        )
        asked = Request(
            ({"role": "user", "content": f"{task}\n\n{talk}\n\nTitle:"},), {"temperature": 0.0, "max_tokens": 30}
        )
        async with sessions(self.llm):
            reply = understood(await self.llm.ask(asked))
        lines = reply.text.strip().splitlines()
        title = lines[0].strip().strip("\"'*.").removeprefix("Title:").strip() if lines else ""
        if reply.status != "ok" or not title:
            raise UsageError(f"the LLM named no topic ({reply.error or reply.status}); give it")
        return title
