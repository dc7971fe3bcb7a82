"""What one system's labels say of an evaluator: adjusted counts and tuned thresholds (VC §5, A.7; Forman 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.mover import combine_shares
from factaudit.audit.core.rows import Row, ratio
from factaudit.audit.core.scores import METHODS, Case, Kinds, adding
from factaudit.audit.core.shares import shares

#: A replicate tunes thresholds between so many bins of scores; distinct scores up to this number have a bin each.
SCORE_BINS = 256


def adjusted_counts(predicted: np.ndarray, table: np.ndarray, *, refuse: bool = True) -> np.ndarray:
    """Forman's adjusted counts with the error as the positive class: clip((p - FNR) / (TNR - FNR), 0, 1).

    predicted: (...) predicted error rates; table: (..., 2, 2) counts [label, prediction] of the calibration system.
    NaN where that is unidentifiable: no error or nothing else is labelled, or TNR <= FNR (Forman 2006; VC A.7). With
    ``refuse=False`` only where TNR = FNR: so are the paper's own tables.
    """
    errors, others = table[..., 0, :].sum(-1), table[..., 1, :].sum(-1)
    tnr, fnr = ratio(table[..., 0, 0], errors), ratio(table[..., 1, 0], others)
    # Compared as products of counts, which are exact: equal rates must not differ in the last bit.
    better = table[..., 0, 0] * others - table[..., 1, 0] * errors
    identified = better > 0 if refuse else better != 0
    return np.clip(ratio(predicted - fnr, np.where(identified, tnr - fnr, 0)), 0, 1)


@dataclass(frozen=True)
class Ranked:
    """The scored claims of one system in the order of their scores.

    scores: (k,), distinct and ascending; below: int (3, k + 1, b), [label, i] the weight of that label (0, 1, none)
    among the claims with the i lowest scores; all_below: int (k + 1, b), of all labels.
    """

    scores: np.ndarray
    below: np.ndarray
    all_below: np.ndarray

    @classmethod
    def of(cls, kinds: Kinds, system: int, weights: np.ndarray, largest: int) -> Ranked:
        """weights: int (K, b), of which no b have a sum above ``largest``."""
        start, end = np.searchsorted(kinds.system, [system, system + 1])
        rows = slice(start, end - int(np.isnan(kinds.score[start:end]).sum()))
        scores, place = np.unique(kinds.score[rows], return_inverse=True)
        label = kinds.label[rows]
        # Products of two sums of weights must not overflow.
        whole = np.int32 if largest < 1 << 16 else np.int64
        cells = label % 3 * (len(scores) + 1) + place + 1
        below = (adding(cells, 3 * (len(scores) + 1), whole) @ weights[rows]).reshape(3, len(scores) + 1, -1)
        for each in below[: 3 if (label < 0).any() else 2]:
            if each.shape[1] < 32:
                np.cumsum(each, axis=0, out=each)
                continue
            for i in range(1, len(each)):  # row by row, which is how they lie in memory
                np.add(each[i - 1], each[i], out=each[i])
        return cls(scores, below, below[0] + below[1] + below[2] if (label < 0).any() else below[0] + below[1])

    def tune(self, method: str) -> tuple[np.ndarray, np.ndarray]:
        """The thresholds worth trying (T,), and the place of the best by zero bias or BAcc: int (b,), -1 for none.

        Ties go to the one nearest 0.5.
        """
        thresholds = candidates(self.scores)
        errors_below, others_below = self.below[:2]
        errors, others = self.below[:2, -1]
        # Weights are whole numbers, so both losses are exact, and a tie is one.
        if method == "zero_bias_threshold":
            loss, defined = errors_below + others_below, errors + others > 0
            loss -= errors
            np.abs(loss, out=loss)
        else:
            loss, defined = others_below * errors, (errors > 0) & (others > 0)
            loss -= errors_below * others
        order = np.argsort(np.abs(thresholds - 0.5), kind="stable")
        rank = np.empty(len(order), dtype=np.int16 if len(order) < 1 << 15 else np.int32)
        rank[order] = np.arange(len(order))
        nearest = np.where(loss == loss.min(0), rank[:, None], rank.dtype.type(len(order) - 1)).min(0)
        return thresholds, np.where(defined, order[nearest], -1)

    def error_rates(self, tuned: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """The share of scores that are not above the thresholds that C calibrations have chosen (`tune`): (C, b)."""
        cuts = [np.searchsorted(self.scores, tried, side="right")[chosen] for tried, chosen in tuned]
        rates = ratio(np.take_along_axis(self.all_below, np.stack(cuts), axis=0), self.all_below[-1])
        rates[np.stack([chosen for _, chosen in tuned]) < 0] = np.nan
        return rates


def candidates(scores: np.ndarray) -> np.ndarray:
    """The thresholds worth trying on k distinct ascending scores in [0, 1]: the i-th leaves i of them below or at it.

    Midpoints between neighbouring scores, and both ends: 1 (nothing is above it), and 0, or -1 where a score is 0,
    since a prediction is 1 only where the score is *above* the threshold.
    """
    middle = (scores[:-1] + scores[1:]) / 2
    # Of two neighbouring floats the midpoint may be the upper one.
    middle = np.where(middle < scores[1:], middle, scores[:-1])
    lowest = -1.0 if len(scores) and scores[0] == 0 else 0.0
    return np.concatenate([[lowest], middle, [1.0]])[: len(scores) + 1]


@dataclass(frozen=True)
class Estimates:
    """What S calibrations make of the error rates of S systems, in b weightings of the claims.

    labelled: (S, b), the share of errors among all labels; rates: per method (calibration, system, b); thresholds: per
    method (calibration, b), NaN where it has none.
    """

    labelled: np.ndarray
    rates: Mapping[str, np.ndarray]
    thresholds: Mapping[str, np.ndarray]


def estimates_of(kinds: Kinds, weights: np.ndarray, methods: Sequence[str]) -> Estimates:
    """Calibrate on each system and correct the others; weights: int (K, b), how many claims there are of each kind.

    Where `unidentifiable` says so, a calibration's are NaN in all weightings.
    """
    size, b = kinds.n_systems, weights.shape[1]
    tables = kinds.tables(weights).astype(np.float64)
    labels, told = tables[:, :2].sum(2), tables[:, :, :2].sum(1)
    predicted = ratio(told[:, 0], told.sum(1))
    # Uncorrected, every calibration system gives the others the same estimates.
    plain = np.broadcast_to(predicted, (size, size, b))
    tuned = set(methods) & set(METHODS[2:])
    largest = tables.sum((1, 2)).max(-1, initial=0).astype(np.int64).tolist()
    ranked = [Ranked.of(kinds, at, weights, largest[at]) for at in range(size)] if tuned else []
    rates: dict[str, np.ndarray] = {}
    thresholds: dict[str, np.ndarray] = {}
    for method in methods:
        rates[method], thresholds[method] = plain, np.full((size, b), np.nan)
        if method == "adjusted_counts":
            rates[method] = adjusted_counts(plain, np.moveaxis(tables[:, None, :2, :2], -1, -3))
        elif method in METHODS[2:] and size:
            found = [system.tune(method) for system in ranked]
            for at, (tried, chosen) in enumerate(found):
                thresholds[method][at] = np.where(chosen < 0, np.nan, tried[chosen])
            rates[method] = np.stack([system.error_rates(found) for system in ranked], axis=1)
    return Estimates(ratio(labels[:, 0], labels.sum(1)), rates, thresholds)


def observed(case: Case, methods: Sequence[str]) -> Estimates:
    """`estimates_of` the claims as they are: b = 1."""
    return estimates_of(case.kinds, case.kinds.times[:, None], methods)


def unidentifiable(case: Case, method: str) -> list[str | None]:
    """Why each system cannot calibrate; None where it can."""
    errors, others = case.sizes(method)[:, :2, 1].T
    why: list[str | None] = [None] * case.n_systems
    if method == "none":
        return why
    apart, low = _better_than_chance(case) if method == "adjusted_counts" else (np.full(len(why), np.nan),) * 2
    for at in range(len(why)):
        if not errors[at] + others[at]:
            why[at] = "no labelled claim that the method can use"
        elif method != "zero_bias_threshold" and not (errors[at] and others[at]):
            why[at] = "no labelled error" if others[at] else "labelled errors only"
        elif method != "adjusted_counts":
            continue
        elif apart[at] == 0:
            why[at] = "TNR = FNR"
        elif apart[at] < 0:
            why[at] = "TNR < FNR: the evaluator does worse than chance on it"
        elif not low[at] > 0:
            why[at] = "TNR − FNR is not clear of 0: the evaluator may do no better than chance on it"
    return why


def _better_than_chance(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """TNR - FNR of each system, and the low end of its interval: (S,) each."""
    clusters = case.right()
    counts = clusters.counts
    hits = np.stack([counts[:, 0], counts[:, 2]], 1)  # of errors TNR, of others FNR
    rates = shares(clusters, hits, np.stack([counts[:, :2].sum(1), counts[:, 2:].sum(1)], 1))
    # The test is that of a correction's denominator, at 95 % whatever the confidence of a run's intervals.
    apart, (low, _) = combine_shares(rates, np.array([1.0, -1.0]), 0.95)
    return apart, low


def no_threshold(method: str) -> str:
    return "" if method in METHODS[2:] else "the method has no threshold"


@dataclass(frozen=True)
class Resampled:
    """`Estimates` of B bootstrap replicates, from so many clusters."""

    estimates: Estimates
    n_clusters: int


def resampled(case: Case, methods: Sequence[str], dataset: str, intervals: Intervals | None) -> Resampled | None:
    """Resample whole clusters, calibrate and correct again; None where there is nothing to resample."""
    if intervals is None:
        return None
    kinds = case.kinds.binned(SCORE_BINS)
    size = len(kinds.system)
    # How many claims of each kind a cluster has: what a draw of clusters makes of the kinds is a product of whole
    # numbers, in the narrowest type that holds them.
    members = case.members(kinds)
    n_clusters = members.shape[1]
    if n_clusters < 2:
        return None
    most = int(members.sum(1).max())
    blocks = []
    # Blocks that stay in the processor's cache take half the time.
    for drawn in intervals.draws(n_clusters, dataset, width=2 * size):
        narrow = np.int16 if most * int(drawn.max()) < 1 << 15 else np.int64
        weights = members.astype(narrow) @ np.ascontiguousarray(drawn.T).astype(narrow)
        blocks.append(estimates_of(kinds, weights, methods))
    return Resampled(
        Estimates(
            np.concatenate([block.labelled for block in blocks], axis=-1),
            {method: np.concatenate([block.rates[method] for block in blocks], axis=-1) for method in methods},
            {},
        ),
        n_clusters,
    )


def mean_of(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


Ends = dict[str, np.ndarray]


def ends_of(intervals: Intervals, drawn: Resampled, method: str, sets: Sequence[Sequence[int]], system: int) -> Ends:
    """The intervals of a system's adjusted rate and of its bias, by the mean over each set of calibrations.

    Gives ``adjusted_error_rate`` and ``bias``: (2, sets) low and high ends; NaN where nothing varied when it was
    resampled: something might in the next claims.
    """
    # As the observed mean is over the calibrations that could be made, so is each replicate's.
    of = drawn.estimates.rates[method][:, system]
    rates = np.stack([of[only[0]] if len(only) == 1 else mean_of(of[list(only)]) for only in sets])
    values = np.concatenate([rates, rates - drawn.estimates.labelled[system]])
    low, high = intervals.ends(values.T, drawn.n_clusters)
    found = np.where(low < high, [low, high], np.nan)
    return {"adjusted_error_rate": found[:, : len(sets)], "bias": found[:, len(sets) :]}


def with_ends(row: Row, ends: Ends | None, at: int) -> Row:
    """``_low`` and ``_high`` of a row's adjusted rate and bias, from `ends_of` of its set of calibrations."""
    found: Row = {f"{key}_{end}": None for key in ("adjusted_error_rate", "bias") for end in ("low", "high")}
    for key, (low, high) in (ends or {}).items():
        if row["adjusted_error_rate"] is not None and row[key] is not None and not np.isnan(low[at]):
            found |= {f"{key}_low": min(float(low[at]), row[key]), f"{key}_high": max(float(high[at]), row[key])}
    return found


def over_others(estimates: np.ndarray, labelled: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and greatest |estimate - labelled| over the systems other than the calibration system: (C,) each.

    estimates: (C, S), by calibration system and system; labelled: (S,); usable: bool (S,), systems with claims.
    """
    error = np.abs(estimates - labelled)
    others = ~np.eye(len(usable), dtype=bool) & usable
    mean = ratio(np.where(others, error, 0).sum(-1), others.sum(-1))
    worst = np.where(others, error, -1).max(-1, initial=-1)
    return mean, np.where(others.any(-1), worst, np.nan)
