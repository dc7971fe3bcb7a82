"""D-FActScore (MF: Chiang & Lee 2024): each fact of a biography against the page of everybody whom it may be about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from factaudit.engines.decompose import sentences
from factaudit.engines.dfactscore.candidates import WAYS, Finder
from factaudit.engines.dfactscore.group import (
    GROUPERS,
    Demonstrations,
    ask_for_groups,
    given_groups,
    number_groups,
    one_group,
)
from factaudit.engines.dfactscore.heuristic import heuristic_groups
from factaudit.engines.dfactscore.link import NARROW, RULES
from factaudit.engines.dfactscore.rows import fact_tables, response_rows, summarise
from factaudit.engines.factscore.score import GAMMA
from factaudit.engines.pipeline import Engine
from factaudit.engines.progress import Calls
from factaudit.engines.records import Decomposed, Found, Grouping
from factaudit.engines.responses import Response, remove_citations
from factaudit.errors import UsageError, hint
from factaudit.knowledge.topics import Knowledge
from factaudit.signature import signature

Row = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """What came of it.

    claims: a row per fact and candidate entity, with the ``group`` that the fact is in. verdicts: one per claim and
    verifier. responses: a row per biography, with its groups and facts. summary: figures over all responses, per
    system, and of every linking rule and grouper. facts: claims and verdicts of a row per fact, what FActScore and
    D-FActScore say of it.
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    responses: list[Row]
    summary: Row
    facts: tuple[pd.DataFrame, pd.DataFrame]


@dataclass
class DFactScorer(Engine):
    """D-FActScore of biographies (MF §3); a response's topic is the name, its facts are grouped by person.

    Args (besides those of `factaudit.engines.pipeline.Engine`; without a knowledge source, each biography brings its
    documents):
        groupers: one or several of `factaudit.engines.dfactscore.group.GROUPERS`. The first one's groups are scored;
            the others are compared with it, at no further call but their own.
        group_demos: a file of demonstrations for grouping, in place of our own.
        candidates: how the candidates of biographies that bring none are found
            (`factaudit.engines.dfactscore.candidates.look_for`).
        rule: how groups are linked to entities (`factaudit.engines.dfactscore.link.link`); the other rules stand
            beside it.
        gamma: of the length penalty, which is of the number of facts; 0 turns it off.
        narrow: a link whose margin is at most this is flagged.
        replicates, seed, confidence: of the bootstrap intervals over responses.
    """

    dataset: str = "biographies"
    window: int = 64
    groupers: Sequence[str] = ("llm",)
    group_demos: str | Path | None = None
    candidates: str | None = None
    rule: str = "argmax"
    gamma: float = GAMMA
    narrow: float = NARROW
    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95
    name: ClassVar[str] = "dfactscore"
    needs_knowledge: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.groupers, str):
            self.groupers = (self.groupers,)
        for name, values, known in (
            ("grouper", self.groupers, GROUPERS),
            ("linking rule", [self.rule], RULES),
            ("way to find candidates", [self.candidates] if self.candidates is not None else [], WAYS),
        ):
            for value in values:
                if value not in known:
                    raise UsageError(f"unknown {name} {value!r}{hint(value, known)}")
        if not self.groupers:
            raise UsageError("D-FActScore needs a grouper")
        super().__post_init__()
        if "llm" in self.groupers and self.llm is None:
            raise UsageError("the grouper 'llm' needs an LLM; without one take, say, heuristic")
        self._group_demonstrations = Demonstrations.load(self.group_demos)
        knowledge = self.knowledge if isinstance(self.knowledge, Knowledge) else None
        self._finder = Finder(knowledge, self.candidates, self.retriever.k)

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {"gamma": self.gamma, "narrow": self.narrow, "link": self.rule}

    def work_settings(self) -> Row:
        demos = self._group_demonstrations.signature if "llm" in self.groupers else None
        groupers = signature("groupers", {"names": list(self.groupers), "demos": demos, "llm": self._grouping_model()})
        return {"groupers": groupers, "candidates": {"by": self.candidates, "k": self.retriever.k}}

    def score(self, biographies: Sequence[Response], **options: Any) -> Scored:
        """Score biographies; ``options``: of `factaudit.engines.pipeline.Engine.make`."""
        made = self.make(biographies, **options)
        rows = response_rows(made, self)
        return Scored(made.claims, made.verdicts, rows, summarise(made, rows, self), fact_tables(made, self))

    # --------------------------------------------------------------------------------------- what differs

    def text(self, response: Response) -> str:
        """The output without citations."""
        return remove_citations(response.output)

    def given_sentences(self, response: Response) -> tuple[str, ...]:
        return tuple(sentences(self.text(response)))

    def prepare(self, responses: Sequence[Response]) -> None:
        """Find the pages of the names, and say what cannot be linked, before any call."""
        if "given" in self.groupers and not all(one.facts for one in responses):
            raise UsageError("the grouper 'given' needs biographies with facts and their groups")
        self._finder.prepare(responses)
        if self.rule == "given":
            for response in responses:
                known = self._finder.find(response, ()).candidates
                names = {name for one in known for name in (one.title, *one.named)}
                for fact in response.facts or ():
                    if fact.entity is not None and fact.entity not in names:
                        raise UsageError(
                            f"response {response.response_id!r}: the given entity {fact.entity!r} is not among its "
                            f"candidates ({', '.join(one.title for one in known if one.title) or 'none'})"
                        )

    async def group(self, response: Response, decomposed: Decomposed, calls: Calls) -> dict[str, Grouping]:
        """The groups by each grouper, the first one's first."""
        facts = decomposed.facts
        texts = [fact.text for fact in facts]
        found: dict[str, Grouping] = {}
        for name in self.groupers:
            if name == "llm" and texts:
                assert self.llm is not None
                ask = partial(calls.ask, self.llm)
                paragraph = self.text(response)
                found[name] = await ask_for_groups(ask, self._group_demonstrations, paragraph, texts, response.topic)
            elif name == "heuristic":
                told = [one.text for one in decomposed.sentences]
                found[name] = heuristic_groups(response.topic, told, texts, [fact.sentence for fact in facts])
            elif name == "given":
                found[name] = Grouping(number_groups(given_groups(facts)[0]))
            else:
                found[name] = one_group(len(texts))
        return found

    def find(self, response: Response, decomposed: Decomposed) -> Found:
        """Everybody whom it may be about."""
        return self._finder.find(response, decomposed.facts)

    def _grouping_model(self) -> str | None:
        return self.llm.signature if self.llm is not None and "llm" in self.groupers else None
