"""What is estimated: the claims or responses of one dataset by system, what evaluators said, and the labels so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.audit.core.groups import column_codes
from factaudit.audit.core.judged import MISSING, Judged
from factaudit.audit.core.rows import ALL
from factaudit.audit.core.tallies import check_evaluators
from factaudit.audit.core.units import Held, Units


@dataclass(frozen=True)
class Corpus:
    """N claims or responses of one dataset, sorted by their ids, and S systems that wrote them.

    Errors are the positive class: ``error`` (N,) is 1 for unattributable, 0 for attributable, NaN for not labelled.

    system: int (N,); score (E, N), support (the prediction where an evaluator gives no score), NaN where missing;
    prediction (E, N), -1 where missing (the first evaluator is the main one); document (N,) and response (N,): codes
    from 0; stratum (N,): codes of the user's columns, or None; unit_of: int (n,), of every claim of the `Judged` its
    place among the N, -1 where it has none (empty where there is no `Judged`). n_left_out: claims without a system or
    (among responses) without a response_id. n_partial: responses with labels for only some of their claims, which
    count as not labelled.
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
    unit_of: np.ndarray
    stratum: np.ndarray | None
    n_left_out: int
    n_partial: int

    @classmethod
    def of(
        cls, units: Units, dataset: str, level: str, evaluators: Sequence[str], unit_of: np.ndarray | None = None
    ) -> Corpus:
        score, prediction = units.score, units.prediction
        return cls(
            dataset=dataset,
            level=level,
            systems=tuple(ALL if name is None else str(name) for name in units.systems),
            evaluators=tuple(evaluators),
            system=units.system,
            score=np.where(np.isnan(score) & (prediction >= 0), prediction, score),
            prediction=prediction,
            error=np.where(units.label >= 0, 1.0 - units.label, np.nan),
            document=pd.factorize(units.cluster)[0],
            response=_responses(units.response, units.system),
            unit_of=np.empty(0, dtype=np.int64) if unit_of is None else unit_of,
            stratum=None if units.stratum is None else pd.factorize(units.stratum, sort=True)[0],
            n_left_out=units.n_left_out,
            n_partial=units.n_partial,
        )

    @property
    def labelled(self) -> np.ndarray:
        """bool (N,)"""
        return ~np.isnan(self.error)

    @property
    def sizes(self) -> np.ndarray:
        """int (S,): the claims or responses of each system."""
        return np.bincount(self.system, minlength=len(self.systems))


def corpora(judged: Judged, level: str, evaluators: Sequence[str], strata: Sequence[str] = ()) -> Iterator[Corpus]:
    """The corpus of every dataset. ``evaluators``: the main one first, then covariates; none other is read.

    Claims without a system are left out where others have one; where none has, all are one system, ``__all__``.
    """
    check_evaluators(evaluators, judged.evaluators)
    units = judged.at(level)
    chosen = [judged.evaluators.index(name) for name in evaluators]
    codes, datasets = units.datasets
    label = units.label.copy()
    stratum = _strata(judged, strata)
    partial = np.zeros(len(label), dtype=bool)
    if level == "response":
        least, most = judged.response_ends(judged.label >= 0)
        partial = least != most
        label[partial] = MISSING
        if stratum is not None:  # a response whose claims differ is a stratum of its own kind
            least, most = judged.response_ends(stratum)
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
        rows = rows[_order(units.claims.iloc[rows], keys)]
        claims = units.claims.iloc[rows].reset_index(drop=True)
        system, systems = column_codes(claims, "system")
        if level == "response":
            inside = judged.claims["dataset"] == dataset
            left_out = int((inside & judged.claims["response_id"].isna()).sum())
        unit_of = np.full(len(label) + 1, -1, dtype=np.int64)
        unit_of[rows] = np.arange(len(rows))
        found = Units(
            systems=tuple(systems),
            system=system,
            score=units.score[np.ix_(chosen, rows)],
            prediction=units.prediction[np.ix_(chosen, rows)],
            label=label[rows],
            cluster=units.clusters[rows],
            response=pd.factorize(claims["response_id"])[0],
            stratum=None if stratum is None else stratum[rows],
            n_left_out=left_out,
            n_partial=int(partial[rows].sum()),
        )
        of_claims = unit_of[:-1] if level == "claim" else unit_of[judged.response_of]
        yield Corpus.of(found, str(dataset), level, evaluators, of_claims)


def held_corpora(held: Held, level: str, evaluators: Sequence[str], strata: Sequence[str] = ()) -> Iterator[Corpus]:
    """`corpora` of claims that are not in memory: one dataset at a time is."""
    check_evaluators(evaluators, held.evaluators)
    chosen = [held.evaluators.index(name) for name in evaluators]
    for dataset in held.dataset_names:
        yield Corpus.of(held.units(dataset, level, chosen, strata), dataset, level, evaluators)


def _order(claims: pd.DataFrame, keys: Sequence[str]) -> np.ndarray:
    return np.lexsort([pd.factorize(claims[key], sort=True)[0] for key in reversed(keys)])


def _responses(response: np.ndarray, system: np.ndarray) -> np.ndarray:
    """A claim without a response is a response of its own."""
    response = response.copy()
    lone = response < 0
    response[lone] = response.max(initial=-1) + 1 + np.arange(lone.sum())
    return pd.factorize(system * (response.max(initial=0) + 1) + response)[0]


def _strata(judged: Judged, columns: Sequence[str]) -> np.ndarray | None:
    """int (n,): one code per claim of its values of all the columns."""
    if not columns:
        return None
    codes = np.zeros(len(judged.claims), dtype=np.int64)
    for column in columns:
        values, names = column_codes(judged.claims, column)
        codes = pd.factorize(codes * len(names) + values, sort=True)[0]
    return codes
