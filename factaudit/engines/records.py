"""What is passed from stage to stage, and written into the journal? One response as plain frozen data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from factaudit.engines.responses import AtomicFact, Response
from factaudit.knowledge.docdb import KnowledgePage

#: Talk to the user, and lines that only lay a text out.
LEFT_OUT_SENTENCES = ("boilerplate", "markup")


@dataclass(frozen=True, slots=True)
class SentenceDecomposition:
    """A sentence and what became of it: ``given``, ``boilerplate`` or ``markup`` (left out: nothing was asked),
    else the reply's status.

    truncated: the reply broke off at the limit of tokens.
    """

    text: str
    status: str = "given"
    reply: str | None = None
    error: str | None = None
    truncated: bool = False

    @property
    def is_failed(self) -> bool:
        """Whether its facts could not be had."""
        return self.status not in ("ok", "given", *LEFT_OUT_SENTENCES)

    @property
    def is_left_out(self) -> bool:
        """Whether it states nothing, so that nobody was asked about it."""
        return self.status in LEFT_OUT_SENTENCES


@dataclass(frozen=True, slots=True)
class DecompositionRecord:
    """A response's sentences and facts in order.

    n_duplicates: repeated facts that were removed. n_cut: facts beyond the limit.
    """

    abstained: bool = False
    sentences: tuple[SentenceDecomposition, ...] = ()
    facts: tuple[AtomicFact, ...] = ()
    n_duplicates: int = 0
    n_cut: int = 0


@dataclass(frozen=True, slots=True)
class FactGroupingRecord:
    """The group of each fact, numbered 0..g-1 by first appearance, and what a reply did to the facts.

    groups: None where there is no usable reply; ``status`` (as in the verdicts table) and ``raw`` then say why.
    n_changed: facts that the reply has in other words. n_dropped: facts that it lacks. n_invented: lines that are no
    fact. n_repeated: facts that it has more than once.
    """

    groups: tuple[int, ...] | None
    n_changed: int = 0
    n_dropped: int = 0
    n_invented: int = 0
    n_repeated: int = 0
    status: str = "ok"
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class CandidatePageRecord:
    """A page that a response may be about.

    title: None where nothing was found, or looked for. status: that of a fact's verdict where there is no page, with
    the reason. title_match: how the title was found (`KnowledgePage`). other_titles: those that lead to the page.
    """

    title: str | None
    status: str = "ok"
    reason: str | None = None
    title_match: str | None = None
    other_titles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidatePageSearchRecord:
    """The pages that a response may be about, None where a candidate has none, and where they are from (``given``,
    ``titles``, ``none``).

    n_left_out: pages that were found as well, and left out because there were too many.
    """

    candidates: tuple[CandidatePageRecord, ...]
    pages: tuple[KnowledgePage | None, ...]
    source: str | None = None
    n_left_out: int = 0


@dataclass(frozen=True, slots=True)
class FactVerificationRecord:
    """A verifier's verdict on one fact and one candidate; ``status`` as in the verdicts table.

    A reply that was guessed at has a prediction *and* the status ``unparsed``: it is scored as published, and counted.
    """

    prediction: int | None
    score: float | None
    status: str
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseRecord:
    """Everything about one response that cost calls or a search; the journal keeps it.

    source, n_left_out: as in `CandidatePageSearchRecord`. passages: each text once, in the order of first use.
    passage_numbers: of each fact and each candidate, best first; None without a page. supports: of each built-in
    verifier a verdict per fact and candidate, the candidates of a fact together. needs_retry: some of its calls should
    be made again when the run is resumed.
    """

    decomposed: DecompositionRecord
    groupings: dict[str, FactGroupingRecord] = field(default_factory=dict)
    candidates: tuple[CandidatePageRecord, ...] = ()
    source: str | None = None
    n_left_out: int = 0
    passages: tuple[str, ...] = ()
    passage_numbers: tuple[tuple[tuple[int, ...] | None, ...], ...] = ()
    supports: dict[str, tuple[FactVerificationRecord, ...]] = field(default_factory=dict)
    calls: int = 0
    needs_retry: bool = False

    @property
    def fact_candidate_pairs(self) -> Iterator[tuple[int, int]]:
        """The numbers of each fact and candidate, in the order of the claims table."""
        return ((fact, one) for fact in range(len(self.decomposed.facts)) for one in range(len(self.candidates)))

    def make_missing_support(self, fact: int, candidate: int) -> FactVerificationRecord:
        """The verdict of a fact and a candidate that nobody is asked about, with its reason."""
        one = self.decomposed.facts[fact]
        if one.failure_status is not None:
            sentence = self.decomposed.sentences[one.sentence or 0]
            why = f"the sentence was not decomposed: {sentence.error or sentence.reply or one.failure_status}"
            return FactVerificationRecord(None, None, one.failure_status, why)
        if self.candidates[candidate].status == "ok":
            return FactVerificationRecord(
                None, None, "skipped", "not asked: other candidates' passages are nearer to the fact"
            )
        return FactVerificationRecord(None, None, self.candidates[candidate].status, self.candidates[candidate].reason)

    def list_passages(self, fact: int, candidate: int) -> list[str] | None:
        """The passages of a fact and a candidate."""
        numbers = self.passage_numbers[fact][candidate]
        return None if numbers is None else [self.passages[number] for number in numbers]


@dataclass(frozen=True)
class VerifiedResponseRecords:
    """What an engine makes: the two tables, and the record of each response, in order."""

    responses: tuple[Response, ...]
    records: tuple[ResponseRecord, ...]
    claims: pd.DataFrame
    verdicts: pd.DataFrame


@dataclass(frozen=True)
class ScoredResponseRecords:
    """The scores of responses: the two tables, a row per response (with its sentences and facts), and the summary.

    audit_tables: the claims and verdicts that audits of evaluators read.
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    responses: list[dict[str, Any]]
    summary: dict[str, Any]
    audit_tables: tuple[pd.DataFrame, pd.DataFrame]
    records: tuple[ResponseRecord, ...] = ()
