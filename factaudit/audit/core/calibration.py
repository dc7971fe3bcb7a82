"""What one system's labels say of an evaluator: adjusted counts and tuned thresholds (VC §5, A.7; Forman 2006)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core.mover import combine_shares
from factaudit.audit.core.rows import ratio
from factaudit.audit.core.scores import METHODS, Case
from factaudit.audit.core.shares import shares


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
    """The scored claims of one system in the order of their scores, in b weightings.

    scores: (t,), distinct and ascending; below: int (2 or 3, t + 1, b), [label, i] the weight of that label (0, 1,
    none) among the claims with the i lowest scores; all_below: int (t + 1, b), of all labels. tried: (t + 1,), the
    thresholds worth trying.
    """

    scores: np.ndarray
    below: np.ndarray
    all_below: np.ndarray
    tried: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, below: np.ndarray) -> Ranked:
        return cls(scores, below, below.sum(0, dtype=below.dtype), candidates(scores))

    def tune(self, method: str) -> np.ndarray:
        """The place of the best threshold by zero bias or BAcc among those ``tried``: int (b,), -1 for none.

        Ties go to the one nearest 0.5.
        """
        errors_below, others_below = self.below[:2]
        errors, others = self.below[:2, -1]
        # Weights are whole numbers, so both losses are exact, and a tie is one.
        if method == "zero_bias_threshold":
            loss, defined = errors_below + others_below, errors + others > 0
            loss -= errors
            np.abs(loss, out=loss)
        else:
            whole = narrowest(int(errors.max(initial=0)) * int(others.max(initial=0)))
            loss, defined = np.multiply(others_below, errors, dtype=whole), (errors > 0) & (others > 0)
            loss -= np.multiply(errors_below, others, dtype=whole)
        order = np.argsort(np.abs(self.tried - 0.5), kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        # The least rank of the least loss, by additions in place: choosing elements takes ten times as long.
        loss -= loss.min(0)
        np.sign(loss, out=loss)
        if 2 * len(order) > np.iinfo(loss.dtype).max:
            loss = loss.astype(np.int64)
        loss *= len(order)
        loss += rank.astype(loss.dtype)[:, None]
        nearest = loss.min(0)
        return np.where(defined, order[nearest], -1)

    def error_rates(self, tried: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The share of scores not above the thresholds that calibrations have chosen (places among ``tried``, -1 for
        none, of any shape (..., b)): (..., b)."""
        if chosen.size < len(tried):
            cuts = np.searchsorted(self.scores, tried[chosen], side="right")
        else:
            cuts = np.searchsorted(self.scores, tried, side="right")[chosen]
        taken = np.take_along_axis(self.all_below, cuts.reshape(-1, cuts.shape[-1]), axis=0).reshape(cuts.shape)
        total = np.where((chosen >= 0) & (self.all_below[-1] > 0), self.all_below[-1], np.nan)
        rates: np.ndarray = taken / total
        return rates


def narrowest(largest: int) -> type[np.signedinteger]:
    """The narrowest type that holds whole numbers up to ``largest``: the fewer bytes, the more at a time."""
    return np.int16 if largest < 1 << 15 else np.int32 if largest < 1 << 31 else np.int64


def cumulated(weights: np.ndarray, largest: int) -> np.ndarray:
    """Of each label the weights (labels, t, b) of the scores, summed below each threshold: int (labels, t + 1, b).

    largest: no such sum is above it.
    """
    labels, t, b = weights.shape
    below = np.zeros((labels, t + 1, b), dtype=narrowest(largest))
    if b < 256:
        np.cumsum(weights, axis=1, out=below[:, 1:])
    else:
        for i in range(t):  # row by row, which is how they lie in memory
            np.add(below[:, i], weights[:, i], out=below[:, i + 1], casting="unsafe")
    return below


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


def estimates_of(tables: np.ndarray, ranked: Sequence[Ranked], methods: Sequence[str]) -> Estimates:
    """Calibrate on each of S systems and correct the others, in b weightings of the claims.

    tables: (S, 3, 3, b), the claims' weights by label and prediction; ranked: of each system. Where `unidentifiable`
    says so, a calibration's are NaN in all weightings.
    """
    size, b = len(tables), tables.shape[-1]
    tables = tables.astype(np.float64)
    labels, told = tables[:, :2].sum(2), tables[:, :, :2].sum(1)
    predicted = ratio(told[:, 0], told.sum(1))
    # Uncorrected, every calibration system gives the others the same estimates.
    plain = np.broadcast_to(predicted, (size, size, b))
    rates: dict[str, np.ndarray] = {}
    thresholds: dict[str, np.ndarray] = {}
    for method in methods:
        rates[method], thresholds[method] = plain, np.full((size, b), np.nan)
        if method == "adjusted_counts":
            rates[method] = adjusted_counts(plain, np.moveaxis(tables[:, None, :2, :2], -1, -3))
    tuned = [method for method in methods if method in METHODS[2:]]
    if tuned and size:
        chosen = np.array([[system.tune(method) for system in ranked] for method in tuned])
        tried, starts = (
            np.concatenate([system.tried for system in ranked]),
            np.cumsum([0, *(len(r.tried) for r in ranked)]),
        )
        chosen = np.where(chosen < 0, -1, chosen + starts[:-1, None])
        found = np.stack([system.error_rates(tried, chosen) for system in ranked], axis=2)
        for method, mine, places in zip(tuned, found, chosen, strict=True):
            rates[method], thresholds[method] = mine, np.where(places < 0, np.nan, tried[places])
    return Estimates(ratio(labels[:, 0], labels.sum(1)), rates, thresholds)


def observed(case: Case, methods: Sequence[str]) -> Estimates:
    """`estimates_of` the claims as they are: b = 1."""
    histograms, largest = case.kinds.histograms(), int(case.kinds.times.sum())
    ranked = [Ranked.of(scores, cumulated(counts[..., None], largest)) for scores, counts in histograms]
    return estimates_of(case.kinds.tables[..., None], ranked, methods)


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


def mean_of(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is."""
    lost = np.isnan(values)
    if not lost.any():
        return ratio(values.sum(axis=0), len(values))
    return ratio(np.where(lost, 0, values).sum(axis=0), (~lost).sum(axis=0))


def over_others(estimates: np.ndarray, labelled: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and greatest |estimate - labelled| over the systems other than the calibration system: (C,) each.

    estimates: (C, S), by calibration system and system; labelled: (S,); usable: bool (S,), systems with claims.
    """
    error = np.abs(estimates - labelled)
    others = ~np.eye(len(usable), dtype=bool) & usable
    mean = ratio(np.where(others, error, 0).sum(-1), others.sum(-1))
    worst = np.where(others, error, -1).max(-1, initial=-1)
    return mean, np.where(others.any(-1), worst, np.nan)
