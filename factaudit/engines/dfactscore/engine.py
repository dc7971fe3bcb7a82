"""D-FActScore (MF: Chiang & Lee 2024): each fact of a biography against the page of everybody whom it may be about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from factaudit.audit.core.judged import Judged
from factaudit.audit.core.matrix import NARROW, RULES
from factaudit.audit.core.rows import ALL
from factaudit.audit.entities import entities as dfactscore
from factaudit.audit.entities import linking
from factaudit.engines.decompose import sentences
from factaudit.engines.dfactscore.candidates import CAP, WAYS, Finder, keep_nearest
from factaudit.engines.dfactscore.group import (
    GROUPERS,
    Demonstrations,
    ask_for_groups,
    number_groups,
    one_group,
)
from factaudit.engines.dfactscore.heuristic import heuristic_groups
from factaudit.engines.dfactscore.rows import (
    biographies,
    evaluators_of,
    fact_tables,
    grouping_rows,
    response_rows,
    share,
)
from factaudit.engines.dfactscore.sections import facts_section, merged_paragraphs, percent
from factaudit.engines.pipeline import Engine, Row
from factaudit.engines.progress import Calls
from factaudit.engines.records import Decomposed, Found, Grouping, Made, Record, Scored
from factaudit.engines.responses import Response, given_groups, remove_citations
from factaudit.errors import UsageError, hint
from factaudit.knowledge.topics import Knowledge
from factaudit.signature import signature

#: What is added up over responses.
TOTALS = ("n_failed_sentences", "n_truncated_sentences", "n_duplicates", "n_cut", "n_filtered")
#: The figures where no response holds a fact.
NOTHING: Row = {"system": ALL, "n_answered": 0, "respond_ratio": 0.0, "factscore": None, "dfactscore": None}
NOTHING |= dict.fromkeys(("n_facts", "n_unscored", "n_unscored_linked", "n_narrow", "n_unparsed", *TOTALS), 0)
NOTHING |= {"category_accuracy": None, "reason": "no response with a fact"}


@dataclass
class DFactScorer(Engine):
    """D-FActScore of biographies (MF §3); a response's topic is the name, its facts are grouped by person.

    Args (besides those of `factaudit.engines.pipeline.Engine`; without a knowledge source, each biography brings its
    documents):
        groupers: one or several of `factaudit.engines.dfactscore.group.GROUPERS`. The first one's groups are scored;
            the others are compared with it, at no further call but their own.
        group_demos: a file of demonstrations for grouping, in place of our own.
        candidates: how the candidates of biographies that bring none are found
            (`factaudit.engines.dfactscore.candidates.Finder`).
        max_candidates: how many of those that are found are put to the verifiers, at a call a fact each.
        prefilter: put each fact to so many candidates only, found or given (`keep_nearest`); None: to all.
        rule: how groups are linked to entities (`factaudit.audit.core.matrix.link`); the other rules stand beside it.
        narrow: a link whose margin is at most this is flagged.
    """

    dataset: str = "biographies"
    groupers: Sequence[str] = ("llm",)
    group_demos: str | Path | None = None
    candidates: str | None = None
    max_candidates: int = CAP
    prefilter: int | None = None
    rule: str = "argmax"
    narrow: float = NARROW
    name: ClassVar[str] = "dfactscore"
    title: ClassVar[str] = "D-FActScore"
    needs_knowledge: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.groupers, str):
            self.groupers = (self.groupers,)
        for name, values, known in (
            ("grouper", self.groupers, tuple(GROUPERS)),
            ("linking rule", [self.rule], RULES),
            ("way to find candidates", [self.candidates] if self.candidates is not None else [], WAYS),
        ):
            for value in values:
                if value not in known:
                    raise UsageError(f"unknown {name} {value!r}{hint(value, known)}")
        if self.prefilter is not None and self.prefilter < 1:
            raise UsageError(f"prefilter is at least 1, found {self.prefilter}")
        if not self.groupers:
            raise UsageError("D-FActScore needs a grouper")
        super().__post_init__()
        if "llm" in self.groupers and self.llm is None:
            raise UsageError("the grouper 'llm' needs an LLM; without one take, say, heuristic")
        self._group_demonstrations = Demonstrations.load(self.group_demos)
        knowledge = self.knowledge if isinstance(self.knowledge, Knowledge) else None
        self._finder = Finder(knowledge, self.candidates, self.max_candidates)

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {**super().settings, "narrow": self.narrow, "link": self.rule}

    @property
    def signatures(self) -> dict[str, str]:
        """Also of what the tables of facts call FActScore and D-FActScore."""
        found = super().signatures
        for name, told in list(found.items()):
            factscore, dfactscore = evaluators_of(name, len(self.names))
            found[factscore] = signature("factscore", {"candidates": "any", "verifier": told})
            found[dfactscore] = signature("dfactscore", {"link": self.rule, "verifier": told})
        return found

    def work_settings(self) -> Row:
        demos = self._group_demonstrations.signature if "llm" in self.groupers else None
        groupers = signature("groupers", {"names": list(self.groupers), "demos": demos, "llm": self._grouping_model()})
        return {
            "groupers": groupers,
            "candidates": {"by": self.candidates, "cap": self.max_candidates, "nearest": self.prefilter},
        }

    def score(self, biographies: Sequence[Response], **options: Any) -> Scored:
        """`score_responses`, by the name of the engine's own."""
        return self.score_responses(biographies, **options)

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> Scored:
        """Score biographies; see `factaudit.engines.pipeline.Engine.make`. The summary: rows of the audits."""
        made = self.make(responses, journal=journal, progress=progress)
        judged = Judged.join(made.claims, made.verdicts)
        linked = {name: biographies(made, judged, name, self.rule, self.gamma, self.narrow) for name in self.names}
        rows = response_rows(made, linked[self.names[0]], self.narrow, self.irrelevant)
        verified = fact_tables(made, linked, self.dataset, self.irrelevant)
        return Scored(made.claims, made.verdicts, rows, self._summary(made, judged, rows), verified, made.records)

    def audits(self) -> dict[str, Row]:
        link, figures = {"link": self.rule}, {"gamma": self.gamma, "narrow": self.narrow}
        return {
            "dfactscore": link | figures,
            "dfactscore_gap": link,
            "dfactscore_linking": figures,
            "dfactscore_elsewhere": link,
            "dfactscore_candidates": link | figures,
        }

    def sections(self, scored: Scored) -> list[Row]:
        told = facts_section(scored.responses, scored.summary, self.max_facts, self.prefilter)
        merged = merged_paragraphs(scored.responses)
        return [told, *([merged] if merged else [])]

    def tables(self, scored: Scored) -> dict[str, list[Row]]:
        own = {key: scored.summary[key] for key in ("linking", "grouping")}
        return {"dfactscore": scored.summary["rows"], **{f"dfactscore_{key}": rows for key, rows in own.items()}}

    def told(self, summary: Row) -> list[str]:
        return [
            f"{row['system'] or 'all'}: FActScore {percent(row['factscore'])}, D-FActScore {percent(row['dfactscore'])}"
            for row in summary["systems"]
        ]

    def _summary(self, made: Made, judged: Judged, rows: Sequence[Row]) -> Row:
        """The figures of all by the first verifier; ``systems``, ``linking``, ``grouping``, and all ``rows``."""
        options: Row = {"gamma": self.gamma, "narrow": self.narrow, "intervals": self.intervals}
        told = [
            row | _totals(made, rows, row["evaluator"], row["system"])
            for row in dfactscore(judged, link=self.rule, **options)  # type: ignore[arg-type]
        ]
        first = [row for row in told if row["evaluator"] == self.names[0]] or [NOTHING]
        columns = {name: "group" if name == self.groupers[0] else f"group_{name}" for name in self.groupers}
        return {
            **first[0],
            "evaluator": self.names[0],
            "grouper": self.groupers[0],
            "link": self.rule,
            "n_responses": len(rows),
            "systems": [row for row in first if row["system"] != ALL],
            "linking": [
                row | {"grouper": name}
                for name, column in columns.items()
                if column in made.claims
                for row in linking(judged, group=column, **options)
            ],
            "grouping": grouping_rows(made, self.groupers),
            "rows": told,
        }

    # --------------------------------------------------------------------------------------- what differs

    def text(self, response: Response) -> str:
        """The output without citations."""
        return remove_citations(response.output)

    def given_sentences(self, response: Response) -> tuple[str, ...]:
        return tuple(sentences(self.text(response)))

    def prepare(self, responses: Sequence[Response], journal: str | Path | None = None) -> None:
        """Find the pages of the names, and say what cannot be linked, before any call."""
        if "given" in self.groupers and not all(one.facts for one in responses):
            raise UsageError("the grouper 'given' needs biographies with facts and their groups")
        self._finder.prepare(responses, journal)
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

    def _retrieve(self, topic: str, decomposed: Decomposed, found: Found) -> Record:
        record = super()._retrieve(topic, decomposed, found)
        return record if self.prefilter is None else keep_nearest(record, topic, self.prefilter)

    def _grouping_model(self) -> str | None:
        return self.llm.signature if self.llm is not None and "llm" in self.groupers else None


def _totals(made: Made, rows: Sequence[Row], evaluator: str, system: str | None) -> Row:
    """What only an engine knows of the responses of a system."""
    members = [row for row in rows if system in (ALL, row["system"])]
    known = [row["category"] == row["given_category"] for row in members if row["given_category"] and row["category"]]
    ids = set(made.claims.loc[made.claims["response_id"].isin([row["response_id"] for row in members]), "claim_id"])
    mine = made.verdicts[(made.verdicts["evaluator"] == evaluator) & (made.verdicts["status"] == "unparsed")]
    return {
        **{key: sum(row[key] for row in members) for key in TOTALS},
        "n_unparsed": int(mine["claim_id"].isin(ids).sum()),
        "category_accuracy": share(known),
    }
