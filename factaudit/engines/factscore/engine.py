"""FActScore (Min et al. 2023): each response's facts against the page of its topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from factaudit.engines.factscore import score as scoring
from factaudit.engines.factscore.rows import response_rows
from factaudit.engines.pipeline import Engine
from factaudit.engines.records import Candidate, Decomposed, Found
from factaudit.engines.responses import Response, make_response
from factaudit.errors import UsageError
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.replies import understood
from factaudit.llm.together import run_sync, sessions
from factaudit.llm.types import Request

Row = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """What came of it: the two tables, a row per response (with its sentences and facts), and the summary."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    responses: list[Row]
    summary: Row


@dataclass
class FactScorer(Engine):
    """FActScore of responses.

    >>> scorer = FactScorer("wiki.db", Client("gpt-4o-mini"))  # doctest: +SKIP
    >>> scorer.score(["Ada Lovelace"], ["Ada Lovelace was a mathematician."])["score"]  # doctest: +SKIP

    Args (besides those of `factaudit.engines.pipeline.Engine`):
        gamma: the length penalty's; 0 turns it off.
        replicates, seed, confidence: of the bootstrap intervals over responses.
    """

    gamma: float = scoring.GAMMA
    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95
    name: ClassVar[str] = "factscore"
    needs_knowledge: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        scoring.penalty(1, self.gamma)

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {"gamma": self.gamma, "irrelevant": self.irrelevant}

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

    def score_responses(self, responses: Sequence[Response], **options: Any) -> Scored:
        """Score responses, many at once; ``options``: of `factaudit.engines.pipeline.Engine.make`."""
        made = self.make(responses, **options)
        rows = response_rows(made, self.names, self.gamma)
        return Scored(made.claims, made.verdicts, rows, self.summarise(rows))

    def summarise(self, rows: Sequence[Row]) -> Row:
        """The first verifier's figures over response rows, the same per system and, if several, per verifier."""

        def told(name: str) -> Row:
            own = [row | row["evaluators"][name] for row in rows]
            options: Row = {"replicates": self.replicates, "seed": self.seed, "confidence": self.confidence}
            whole = scoring.summarise(own, **options)
            parts = scoring.by_system(own, **options)
            for row, members in ((whole, own), *((part, _of(own, part["system"])) for part in parts)):
                row["n_unparsed"] = sum(one["n_unparsed"] for one in members)
                for key in ("n_failed_sentences", "n_truncated_sentences", "n_duplicates", "n_cut", "calls"):
                    row[key] = sum(one[key] for one in members)
            return {"evaluator": name, **whole, "systems": parts}

        every = [told(name) for name in self.names]
        return every[0] | ({"evaluators": every} if len(every) > 1 else {})

    # ------------------------------------------------------------------------------------------ the one page

    def prepare(self, responses: Sequence[Response]) -> None:
        """Under the policy ``error``, raise for topics without a page."""
        if isinstance(self.knowledge, Knowledge):
            self.knowledge.check(one.topic for one in responses if one.abstained is not True)

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


def _of(rows: Sequence[Row], system: str | None) -> list[Row]:
    return [row for row in rows if row["system"] == system]
