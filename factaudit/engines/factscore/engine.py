"""FActScore (Min et al. 2023): each response's facts against the page of its topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from factaudit.engines.conversations import MIN_WORDS, Conversation, turns_of
from factaudit.engines.factscore.rows import response_rows, summarise
from factaudit.engines.factscore.sections import facts_section, unsupported_section
from factaudit.engines.pipeline import Engine, Row
from factaudit.engines.records import Candidate, Decomposed, Found, Scored
from factaudit.engines.responses import Response, make_response
from factaudit.errors import UsageError
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.replies import understood
from factaudit.llm.together import gather, run_sync, sessions
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

    def score_conversation(self, turns: Sequence[Mapping[str, Any]], topic: str | None = None, **options: Any) -> Row:
        """Score every turn of the assistant's (or therapist's) in a conversation of ``{role, content, [topic]}`` turns.

        A turn's topic is its own, else ``topic``, else the LLM is asked for the title of the page that it is about.
        Returns what `score` does, and ``left_out``: the numbers (from 1) of the turns too short to say anything. A turn
        in which no fact is found has no score (null).
        """
        try:
            talk = Conversation.model_validate({"turns": list(turns)})
        except ValidationError as error:
            raise UsageError(f"not a conversation of {{role, content}} turns: {error.errors()[0]['msg']}") from None
        responses, left_out = turns_of(talk, "turn", topic)
        if not responses:
            raise UsageError(f"the conversation has no assistant turn of at least {MIN_WORDS} words")
        scored = self.score_responses(responses, **options)
        return {**scored.summary, "responses": scored.responses, "left_out": left_out}

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> Scored:
        """Score responses, many at once; see `factaudit.engines.pipeline.Engine.make`."""
        if any(one.talk for one in responses):
            responses = run_sync(self._with_topics(responses))
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

    def prepare(self, responses: Sequence[Response], journal: str | Path | None = None) -> None:
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

    async def _with_topics(self, responses: Sequence[Response]) -> list[Response]:
        """The responses with the topics that the LLM names; one of which it names none has no page, and says so."""
        if self.llm is None:
            raise UsageError("give the topic, or an LLM to ask for it")
        async with sessions(self.llm):
            found = await gather(self._ask_topic(one) for one in responses)
        reasons = [why for _, why in found if why]
        if reasons and len(reasons) == sum(one.talk is not None for one in responses):
            raise UsageError(f"the LLM named no topic ({reasons[0]}); give it")
        return [replace(one, topic=title, talk=None) for one, (title, _) in zip(responses, found, strict=True)]

    async def _ask_topic(self, response: Response) -> tuple[str, str | None]:
        """The topic, or "" and why there is none."""
        if response.talk is None:
            return response.topic, None
        task = (
            "Which one person, place, work or thing is the last answer of this conversation about? "
            "Reply with the title of its encyclopedia article and nothing else."
        )
        content = f"{task}\n\n{response.talk}\n\nTitle:"
        asked = Request(({"role": "user", "content": content},), {"temperature": 0.0, "max_tokens": 30})
        assert self.llm is not None
        reply = understood(await self.llm.ask(asked))
        lines = reply.text.strip().splitlines()
        title = lines[0].strip().strip("\"'*.").removeprefix("Title:").strip() if lines else ""
        return (title, None) if reply.status == "ok" and title else ("", reply.error or reply.status)
