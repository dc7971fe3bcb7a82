"""What is estimated? The claims or responses of one data set by system, their scores, and the labels so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER, encode_claim_group_column
from factaudit.arrays.judgements import Judgements, check_evaluators
from factaudit.tables.annotations import (
    find_undecided_claims,
    label_claims_by_annotations,
    list_annotator_judgements,
)


@dataclass(frozen=True)
class ScoredCorpus:
    """N claims or responses of one dataset, sorted by their ids, and S systems that wrote them.

    Errors are the positive class: ``error`` (N,) is 1 for unattributable, 0 for attributable, NaN for not labelled.

    system: int (N,); score (E, N), support (the prediction where an evaluator gives no score), NaN where missing;
    prediction (E, N), -1 where missing (the first evaluator is the main one); document (N,) and response (N,): codes
    from 0; stratum (N,): codes of the user's columns, or None; unit_of_claim: int (n,), of every claim of the
    `Judgements` its place among the N, -1 where it has none (empty where there is no `Judgements`). n_left_out: claims
    without a system or (among responses) without a response_id. n_partial: responses with labels for only some of their
    claims, which count as not labelled. undecided (N,): bool, which of those without a label people looked at and could
    not decide.
    """

    dataset: str
    level: str
    systems: tuple[str, ...]
    evaluators: tuple[str, ...]
    system: np.ndarray
    score: np.ndarray
    prediction: np.ndarray
    error: np.ndarray
    document: np.ndarray
    response: np.ndarray
    unit_of_claim: np.ndarray
    stratum: np.ndarray | None
    n_left_out: int
    n_partial: int
    undecided: np.ndarray

    @property
    def is_labelled(self) -> np.ndarray:
        """bool (N,)"""
        return ~np.isnan(self.error)

    @property
    def system_sizes(self) -> np.ndarray:
        """int (S,): the claims or responses of each system."""
        return np.bincount(self.system, minlength=len(self.systems))


@dataclass(frozen=True)
class CorpusAnnotatorLabels:
    """What annotators said of the n claims of `Judgements`, beyond the labels that a rule made of it.

    reason: (n,) object, why people could not decide on a claim, None where they could or did not look; dataset:
    (n,) object.
    """

    reason: np.ndarray
    dataset: np.ndarray

    @classmethod
    def join(
        cls, judgements: Judgements, annotations: pd.DataFrame, rule: str, grades: Mapping[str, int | None] | None
    ) -> CorpusAnnotatorLabels:
        by_annotator = list_annotator_judgements(annotations, grades)
        reasons = find_undecided_claims(rule, annotations, label_claims_by_annotations(rule, by_annotator))
        ids = judgements.claims["claim_id"]
        reason = ids.map(reasons).astype(object)
        return cls(
            reason.where(reason.notna(), None).to_numpy(),
            judgements.claims["dataset"].to_numpy(dtype=object),
        )

    @property
    def undecided(self) -> np.ndarray:
        """bool (n,)"""
        return np.array([reason is not None for reason in self.reason], dtype=bool)

    def count_undecided_reasons(self, dataset: str) -> Counter[str]:
        """How many claims of a dataset are undecided, by reason."""
        return Counter(self.reason[self.undecided & (self.dataset == dataset)])


def build_scored_corpora(
    judgements: Judgements,
    level: str,
    evaluators: Sequence[str],
    strata: Sequence[str] = (),
    people: CorpusAnnotatorLabels | None = None,
) -> Iterator[ScoredCorpus]:
    """The corpus of every dataset. ``evaluators``: the main one first, then covariates; none other is read.

    Claims without a system are left out where others have one; where none has, all are one system, ``__all__``.
    people: what annotators said, for the claims that they could not decide. A response with an
    undecided claim is unattributable where another of its claims is, else undecided.
    """
    check_evaluators(evaluators, judgements.evaluators)
    units = judgements.at_level(level)
    chosen = [judgements.evaluators.index(name) for name in evaluators]
    codes, datasets = units.dataset_codes, units.dataset_names
    label = units.label
    stratum = _number_corpus_strata(judgements, strata)
    partial = np.zeros(len(label), dtype=bool)
    open_claims = np.zeros(len(judgements.label), dtype=bool) if people is None else people.undecided
    is_undecided = open_claims
    if level == "response":
        least, most = judgements.response_extremes((judgements.label >= 0) | open_claims)
        partial = least != most
        has_error = judgements.response_extremes(judgements.label == 0)[1]
        label = np.where(has_error & ~partial, 0, label).astype(np.int8)
        is_undecided = judgements.response_extremes(open_claims)[1] & (label < 0) & ~partial
        if stratum is not None:  # a response whose claims differ is a stratum of its own kind
            least, most = judgements.response_extremes(stratum)
            stratum = np.where(least == most, least, -1)
    for number, dataset in enumerate(datasets):
        rows = np.flatnonzero(codes == number)
        names = units.claims["system"].iloc[rows]
        left_out = 0
        if names.notna().any():
            left_out = int(names.isna().sum())
            rows = rows[names.notna().to_numpy()]
        # Whatever the order of the input's rows, a seed draws the same claims.
        keys = ["system", "response_id"] if level == "response" else ["claim_id"]
        own = units.claims.iloc[rows]
        rows = rows[np.lexsort([pd.factorize(own[key], sort=True)[0] for key in reversed(keys)])]
        claims = units.claims.iloc[rows].reset_index(drop=True)
        system, systems = encode_claim_group_column(claims, "system")
        if level == "response":
            inside = judgements.claims["dataset"] == dataset
            left_out = int((inside & judgements.claims["response_id"].isna()).sum())
        unit_of = np.full(len(label) + 1, -1, dtype=np.int64)
        unit_of[rows] = np.arange(len(rows))
        at = np.ix_(np.array(chosen), rows)
        score, prediction = units.score[at], units.prediction[at]
        yield ScoredCorpus(
            dataset=str(dataset),
            level=level,
            systems=tuple(ALL_TOGETHER if name is None else str(name) for name in systems),
            evaluators=tuple(evaluators),
            system=system,
            score=np.where(np.isnan(score) & (prediction >= 0), prediction, score),
            prediction=prediction,
            error=np.where(label[rows] >= 0, 1.0 - label[rows], np.nan),
            document=pd.factorize(units.cluster_codes[rows])[0],
            response=_assign_corpus_response_numbers(pd.factorize(claims["response_id"])[0], system),
            unit_of_claim=unit_of[:-1] if level == "claim" else unit_of[judgements.response_index],
            stratum=None if stratum is None else pd.factorize(stratum[rows], sort=True)[0],
            n_left_out=left_out,
            n_partial=int(partial[rows].sum()),
            undecided=is_undecided[rows],
        )


def _assign_corpus_response_numbers(response: np.ndarray, system: np.ndarray) -> np.ndarray:
    """A claim without a response is a response of its own."""
    response = response.copy()
    lone = response < 0
    response[lone] = response.max(initial=-1) + 1 + np.arange(lone.sum())
    return pd.factorize(system * (response.max(initial=0) + 1) + response)[0]


def _number_corpus_strata(judgements: Judgements, columns: Sequence[str]) -> np.ndarray | None:
    """int (n,): one code per claim of its values of all the columns."""
    if not columns:
        return None
    codes = np.zeros(len(judgements.claims), dtype=np.int64)
    for column in columns:
        values, names = encode_claim_group_column(judgements.claims, column)
        codes = pd.factorize(codes * len(names) + values, sort=True)[0]
    return codes
