"""What is estimated? The claims or responses of one data set by system, their scores, and the
labels so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import (
    ALL_TOGETHER,
    Judgements,
    check_evaluators,
    encode_claim_group_column,
    group_claims_by_columns,
)


@dataclass(frozen=True)
class Corpus:
    """N claims or responses of one dataset, sorted by their ids, and S systems that wrote them.

    Errors are the positive class: ``error`` (N,) is 1 for unattributable, 0 for attributable, NaN
    for not labelled.

    system: int (N,); score (E, N), support (the prediction where an evaluator gives no score), NaN
    where missing; prediction (E, N), -1 where missing (the first evaluator is the main one);
    response (N,): codes from 0; stratum (N,): codes of the user's columns, or
    None; unit_of_claim: int (n,), of every claim of the `Judgements` its place among the N, -1
    where it has none (empty where there is no `Judgements`). n_left_out: claims without a system or
    (among responses) without a response_id. n_partial: responses with labels for only some of their
    claims, which count as not labelled. undecided (N,): bool, which of those without a label people
    looked at and could not decide.
    """

    dataset: str
    level: str
    systems: tuple[str, ...]
    evaluators: tuple[str, ...]
    system: np.ndarray
    score: np.ndarray
    prediction: np.ndarray
    error: np.ndarray
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

    def count_by_system(self, which: np.ndarray) -> np.ndarray:
        """int (S,): how many of each system are so; which: bool (N,)."""
        return np.bincount(self.system[which], minlength=len(self.systems))

    @property
    def system_sizes(self) -> np.ndarray:
        """int (S,): the claims or responses of each system."""
        return np.bincount(self.system, minlength=len(self.systems))


def build_corpora(
    judgements: Judgements,
    level: str,
    evaluators: Sequence[str],
    strata: Sequence[str] = (),
    undecided: np.ndarray | None = None,
) -> Iterator[Corpus]:
    """The corpus of every dataset. ``evaluators``: the main one first, then covariates; none other
    is read.

    Claims without a system are left out where others have one; where none has, all are one system,
    ``__all__``.
    undecided: bool (n,), the claims that people looked at and could not decide. A response with an
    undecided claim is unattributable where another of its claims is, else undecided.
    """
    check_evaluators(evaluators, judgements.evaluators)
    units = judgements.at_level(level)
    chosen = [judgements.evaluators.index(name) for name in evaluators]
    label = units.label
    stratum = group_claims_by_columns(judgements.claims, strata).codes if strata else None
    is_undecided = np.zeros(len(judgements.label), dtype=bool) if undecided is None else undecided
    is_partial = np.zeros(len(label), dtype=bool)
    if level == "response":
        any_of = partial(judgements.reduce_responses, np.maximum)
        least_of = partial(judgements.reduce_responses, np.minimum)
        is_seen = (judgements.label >= 0) | is_undecided
        is_partial = least_of(is_seen) != any_of(is_seen)
        has_error = any_of(judgements.label == 0)
        label = np.where(has_error & ~is_partial, 0, label).astype(np.int8)
        is_undecided = any_of(is_undecided) & (label < 0) & ~is_partial
        if stratum is not None:  # a response whose claims differ is a stratum of its own kind
            least = least_of(stratum)
            stratum = np.where(least == any_of(stratum), least, -1)
    for number, dataset in enumerate(units.dataset_names):
        of_dataset = rows = np.flatnonzero(units.dataset_codes == number)
        has_system = units.claims["system"].iloc[rows].notna().to_numpy()
        if has_system.any():
            rows = rows[has_system]
        n_left_out = len(of_dataset) - len(rows)
        # Whatever the order of the input's rows, a seed draws the same claims.
        keys = ["system", "response_id"] if level == "response" else ["claim_id"]
        own = units.claims.iloc[rows]
        rows = rows[np.lexsort([pd.factorize(own[key], sort=True)[0] for key in reversed(keys)])]
        claims = units.claims.iloc[rows].reset_index(drop=True)
        system, systems = encode_claim_group_column(claims, "system")
        if level == "response":
            inside = judgements.claims["dataset"] == dataset
            n_left_out = int((inside & judgements.claims["response_id"].isna()).sum())
        unit_of = np.full(len(label) + 1, -1, dtype=np.int64)
        unit_of[rows] = np.arange(len(rows))
        at = np.ix_(np.array(chosen), rows)
        score, prediction = units.score[at], units.prediction[at]
        yield Corpus(
            dataset=str(dataset),
            level=level,
            systems=tuple(ALL_TOGETHER if name is None else str(name) for name in systems),
            evaluators=tuple(evaluators),
            system=system,
            score=np.where(np.isnan(score) & (prediction >= 0), prediction, score),
            prediction=prediction,
            error=np.where(label[rows] >= 0, 1.0 - label[rows], np.nan),
            response=_number_responses(pd.factorize(claims["response_id"])[0], system),
            unit_of_claim=unit_of[:-1] if level == "claim" else unit_of[judgements.response_index],
            stratum=None if stratum is None else pd.factorize(stratum[rows], sort=True)[0],
            n_left_out=n_left_out,
            n_partial=int(is_partial[rows].sum()),
            undecided=is_undecided[rows],
        )


def _number_responses(response: np.ndarray, system: np.ndarray) -> np.ndarray:
    """A claim without a response (-1) is a response of its own."""
    lone = response < 0
    numbers = np.where(lone, response.max(initial=-1) + np.cumsum(lone), response)
    return pd.factorize(system * (numbers.max(initial=0) + 1) + numbers)[0]
