"""How is D-FActScore computed? Each fact against the page of everybody whom it may be about (MF)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.entity_linking import LINKING_RULES, NARROW_MARGIN
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.figure_formatting import format_percent
from factaudit.audit.dfactscore import compute_dfactscore_audit, compute_dfactscore_audit_by_link_rule
from factaudit.engines.dfactscore.candidate_finder import (
    MAX_CANDIDATES,
    CandidateFinder,
    keep_candidate_pages_nearest_facts,
)
from factaudit.engines.dfactscore.fact_grouping import (
    GROUPERS,
    FactGroupingDemonstrations,
    ask_for_fact_groups,
    make_single_group,
    number_fact_groups,
)
from factaudit.engines.dfactscore.linked_biographies import (
    build_grouper_comparison_rows,
    build_linked_biography_fact_tables,
    build_linked_biography_rows,
    link_biography_groups_to_pages,
    mean_or_none,
    name_score_evaluators,
)
from factaudit.engines.dfactscore.report_sections import build_dfactscore_paragraphs_section, count_candidate_sources
from factaudit.engines.fact_decomposition import split_sentences_for_decomposition
from factaudit.engines.facts_section import build_facts_section
from factaudit.engines.progress import ResponseCallCounter
from factaudit.engines.records import (
    CandidatePageSearchRecord,
    DecompositionRecord,
    FactGroupingRecord,
    ResponseRecord,
    ScoredResponseRecords,
    VerifiedResponseRecords,
)
from factaudit.engines.responses import Response, find_given_fact_groups, remove_response_citation_marks
from factaudit.engines.scoring_engine import Row, ScoringEngine
from factaudit.errors import UsageError, suggest_known_name
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.signature import make_signature
from factaudit.text.display_text import join_reasons

#: What is added up over responses.
SUMMED_COUNTS = (
    "n_failed_sentences",
    "n_left_out_sentences",
    "n_truncated_sentences",
    "n_duplicates",
    "n_cut",
)
#: The figures where no response holds a fact.
EMPTY_SUMMARY: Row = {"system": ALL_TOGETHER, "n_answered": 0, "respond_ratio": 0.0}
EMPTY_SUMMARY |= dict.fromkeys(("factscore", "dfactscore"))
EMPTY_SUMMARY |= dict.fromkeys(("n_facts", "n_unscored", "n_unscored_linked", "n_narrow", "n_unparsed"), 0)
EMPTY_SUMMARY |= dict.fromkeys(SUMMED_COUNTS, 0)
EMPTY_SUMMARY |= {"category_accuracy": None, "reason": "no response with a fact"}


@dataclass
class DFactScorer(ScoringEngine):
    """D-FActScore of biographies (MF §4.1); a response's topic is the name, its facts are grouped by person.

    Args (besides those of `factaudit.engines.scoring_engine.ScoringEngine`; without a knowledge source, each biography
    brings its documents):
        groupers: one or several of `factaudit.engines.dfactscore.fact_grouping.GROUPERS`. The first one's groups are
            scored; the others are compared with it, at no further call but their own.
        group_demos: a file of demonstrations for grouping, in place of our own.
        max_candidates: how many pages of the name, of biographies that bring no candidates, are put to the verifiers,
            at a call a fact each (`factaudit.engines.dfactscore.candidate_finder.CandidateFinder`).
        prefilter: put each fact to so many candidates only, found or given (`keep_candidate_pages_nearest_facts`);
            None: to all.
        rule: how groups are linked to entities (`factaudit.arrays.entity_linking.link_groups_to_entities`); the
            other rules stand beside it.
        narrow: a link whose margin is at most this is flagged.
    """

    dataset: str = "biographies"
    groupers: Sequence[str] = ("llm",)
    group_demos: str | Path | None = None
    max_candidates: int = MAX_CANDIDATES
    prefilter: int | None = None
    rule: str = "argmax"
    narrow: float = NARROW_MARGIN
    name: ClassVar[str] = "dfactscore"
    title: ClassVar[str] = "D-FActScore"
    needs_knowledge: ClassVar[bool] = False
    groups_facts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.groupers, str):
            self.groupers = (self.groupers,)
        for name, values, known in (
            ("grouper", self.groupers, tuple(GROUPERS)),
            ("linking rule", [self.rule], LINKING_RULES),
        ):
            for value in values:
                if value not in known:
                    raise UsageError(f"unknown {name} {value!r}{suggest_known_name(value, known)}")
        if self.prefilter is not None and self.prefilter < 1:
            raise UsageError(f"prefilter is at least 1, found {self.prefilter}")
        if not self.groupers:
            raise UsageError("D-FActScore needs a grouper")
        super().__post_init__()
        if "llm" in self.groupers and self.llm is None:
            raise UsageError("the grouper 'llm' needs an LLM; without one, give the groups with the facts ('given')")
        self._group_demonstrations = FactGroupingDemonstrations.load(self.group_demos)
        knowledge = self.knowledge if isinstance(self.knowledge, TopicLookup) else None
        self._finder = CandidateFinder(knowledge, self.max_candidates)

    @property
    def _group_columns(self) -> dict[str, str]:
        """The columns of the claims that have groups, the first grouper's first, with whose they are."""
        return {"group" if name == self.groupers[0] else f"group_{name}": name for name in self.groupers}

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {**super().settings, "narrow": self.narrow, "link": self.rule}

    @property
    def signatures(self) -> dict[str, str]:
        """Also of what the tables of facts call FActScore and D-FActScore."""
        found = super().signatures
        for name, told in list(found.items()):
            factscore, dfactscore = name_score_evaluators(name, len(self.names))
            found[factscore] = make_signature("factscore", {"candidates": "any", "verifier": told})
            found[dfactscore] = make_signature("dfactscore", {"link": self.rule, "verifier": told})
        return found

    def record_settings(self) -> Row:
        asked = self.llm if "llm" in self.groupers else None
        demos = None if asked is None else self._group_demonstrations.signature
        llm = None if asked is None else asked.signature
        return {
            "groupers": make_signature("groupers", {"names": list(self.groupers), "demos": demos, "llm": llm}),
            "repeated": "removed in groups",
            "candidates": {"cap": self.max_candidates, "nearest": self.prefilter},
        }

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> ScoredResponseRecords:
        """Score biographies, many at once; see `ScoringEngine.verify_responses`. The summary: rows of the audits."""
        made = self.verify_responses(responses, journal=journal, progress=progress)
        judged = Judgements.join(made.claims, made.verdicts)
        linked = {
            name: link_biography_groups_to_pages(made, judged, name, self.rule, self.gamma, self.narrow)
            for name in self.names
        }
        rows = build_linked_biography_rows(made, linked[self.names[0]], self.narrow, self.irrelevant)
        verified = build_linked_biography_fact_tables(made, linked, self.dataset, self.irrelevant)
        summary = self._summarise_dfactscore(made, judged, rows)
        return ScoredResponseRecords(made.claims, made.verdicts, rows, summary, verified, made.records)

    def audits(self) -> dict[str, Row]:
        link, figures = {"link": self.rule}, {"gamma": self.gamma, "narrow": self.narrow}
        return {
            "dfactscore": link | figures,
            "dfactscore_gap": link,
            "dfactscore_linking": figures | {"group": list(self._group_columns)},
            "dfactscore_elsewhere": link,
            **super().audits(),
        }

    def sections(self, scored: ScoredResponseRecords) -> list[Row]:
        text = f"Verified by {self.names[0]}; groups by {self.groupers[0]!r}; linked by {self.rule!r}."
        if self.prefilter is not None:
            text += f" Each fact was put to the {self.prefilter:,} candidates with the nearest passages only; on the "
            text += "others it has no verdict, and the bounds say what they could change."
        told = build_facts_section(scored.summary, text, count_candidate_sources(scored.responses))
        merged = build_dfactscore_paragraphs_section(scored.responses)
        return [told, *([merged] if merged else [])]

    def tables(self, scored: ScoredResponseRecords) -> dict[str, list[Row]]:
        own = {key: scored.summary[key] for key in ("linking", "grouping")}
        return {"dfactscore": scored.summary["rows"], **{f"dfactscore_{key}": rows for key, rows in own.items()}}

    def format_summary_lines(self, scored: ScoredResponseRecords) -> list[str]:
        lines = []
        for row in scored.summary["systems"]:
            # Unscored facts count as not supported: where all are, that is no score of 0.
            known = {
                "factscore": row["n_facts"] > row["n_unscored"],
                "dfactscore": row["n_facts"] > row["n_unscored_linked"],
            }
            plain, penalised = (
                [row[f"{start}{key}"] if is_scored else None for key, is_scored in known.items()]
                for start in ("init_", "")
            )
            shown = ["no score" if value is None else format_percent(value) for value in plain]
            line = f"{row['system'] or 'all'}: FActScore {shown[0]}, D-FActScore {shown[1]}"
            if None not in penalised and plain != penalised:
                told = [format_percent(value) for value in penalised if value is not None]
                line += f" (with the length penalty {' and '.join(told)})"
            lines.append(line)
        return lines

    def _summarise_dfactscore(self, made: VerifiedResponseRecords, judged: Judgements, rows: Sequence[Row]) -> Row:
        """The figures of all by the first verifier; ``systems``, ``linking``, ``grouping``, and all ``rows``."""
        options: Row = {"gamma": self.gamma, "narrow": self.narrow, "intervals": self.intervals}
        told = [
            _sum_dfactscore_responses(row, made, rows)
            for row in compute_dfactscore_audit(judged, link=self.rule, **options)  # type: ignore[arg-type]
        ]
        first = [row for row in told if row["evaluator"] == self.names[0]] or [EMPTY_SUMMARY]
        return {
            **first[0],
            "evaluator": self.names[0],
            "grouper": self.groupers[0],
            "link": self.rule,
            "n_responses": len(rows),
            "systems": [row for row in first if row["system"] != ALL_TOGETHER],
            "linking": [
                row | {"grouper": name}
                for column, name in self._group_columns.items()
                if column in made.claims
                for row in compute_dfactscore_audit_by_link_rule(judged, group=column, **options)
            ],
            "grouping": build_grouper_comparison_rows(made, self.groupers),
            "rows": told,
        }

    # --------------------------------------------------------------------------------------- what differs

    def get_scored_text(self, response: Response) -> str:
        """The output without citations."""
        return remove_response_citation_marks(response.output)

    def split_given_sentences(self, response: Response) -> tuple[str, ...]:
        return tuple(split_sentences_for_decomposition(self.get_scored_text(response)))

    def prepare_responses(self, responses: Sequence[Response]) -> None:
        """Find the pages of the names, and say what cannot be linked, before any call."""
        if "given" in self.groupers and not all(one.facts for one in responses):
            raise UsageError("the grouper 'given' needs biographies with facts and their groups")
        self._finder.prepare_responses(responses)
        if self.rule == "given":
            for response in responses:
                known = self._finder.find_candidates(response).candidates
                names = {name for one in known for name in (one.title, *one.other_titles)}
                for fact in response.facts or ():
                    if fact.entity is not None and fact.entity not in names:
                        raise UsageError(
                            f"response {response.response_id!r}: the given entity {fact.entity!r} is not among its "
                            f"candidates ({', '.join(one.title for one in known if one.title) or 'none'})"
                        )

    async def group_facts(
        self, response: Response, decomposed: DecompositionRecord, calls: ResponseCallCounter
    ) -> dict[str, FactGroupingRecord]:
        """The groups by each grouper, the first one's first."""
        facts = decomposed.facts
        texts = [fact.text for fact in facts]
        found: dict[str, FactGroupingRecord] = {}
        for name in self.groupers:
            if name == "llm" and texts:
                assert self.llm is not None
                ask = partial(calls.ask, self.llm)
                paragraph = self.get_scored_text(response)
                found[name] = await ask_for_fact_groups(ask, self._group_demonstrations, paragraph, texts)
            elif name == "given":
                found[name] = FactGroupingRecord(number_fact_groups(find_given_fact_groups(facts)[0]))
            else:
                found[name] = make_single_group(len(texts))
        return found

    def find_candidates(self, response: Response, decomposed: DecompositionRecord) -> CandidatePageSearchRecord:
        """Everybody whom it may be about."""
        return self._finder.find_candidates(response)

    def _retrieve_passages(
        self, topic: str, decomposed: DecompositionRecord, found: CandidatePageSearchRecord
    ) -> ResponseRecord:
        record = super()._retrieve_passages(topic, decomposed, found)
        return record if self.prefilter is None else keep_candidate_pages_nearest_facts(record, topic, self.prefilter)


def _sum_dfactscore_responses(row: Row, verified: VerifiedResponseRecords, response_rows: Sequence[Row]) -> Row:
    """The audit's row of a system, with what only an engine knows of its responses."""
    evaluator, system = row["evaluator"], row["system"]
    members = [one for one in response_rows if system in (ALL_TOGETHER, one["system"])]
    known = [one["category"] == one["given_category"] for one in members if one["given_category"] and one["category"]]
    claims, verdicts = verified.claims, verified.verdicts
    ids = claims.loc[claims["response_id"].isin([one["response_id"] for one in members]), "claim_id"]
    unparsed = verdicts[(verdicts["evaluator"] == evaluator) & (verdicts["status"] == "unparsed")]
    without = "" if known else "no response has a given category and one found: category_accuracy"
    return {
        **row,
        **{key: sum(one[key] for one in members) for key in SUMMED_COUNTS},
        "n_unparsed": int(unparsed["claim_id"].isin(set(ids)).sum()),
        "category_accuracy": mean_or_none(known),
        "reason": join_reasons([row["reason"] or "", without]),
    }
