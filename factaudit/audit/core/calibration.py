"""What one system's labels say of an evaluator: adjusted counts and tuned thresholds (VC §5, A.7; Forman 2006)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

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


#: The best thresholds are looked for between every so many of them first.
_STEP = 16


@dataclass(frozen=True)
class Thresholds:
    """The R thresholds worth trying on S systems.

    scores: of each system its distinct scores (t,), ascending; edges: all of them, where they are few enough to be
    looked up, else None.
    """

    scores: Sequence[np.ndarray]
    edges: np.ndarray | None = None

    @cached_property
    def tried(self) -> np.ndarray:
        """(R,): those of each system, t + 1, after those of the one before it; ascending in each."""
        return np.concatenate([np.zeros(0), *map(candidates, self.scores)])

    @cached_property
    def starts(self) -> np.ndarray:
        """int (S + 1,): where those of each system begin."""
        return np.cumsum([0, *(len(scores) + 1 for scores in self.scores)])

    def cuts(self, chosen: np.ndarray) -> np.ndarray:
        """int (S, ...): the place of each system's own threshold that cuts its scores as a chosen one does.

        chosen: int (...), places of thresholds.
        """
        if self._cuts is not None:
            edge, cut = self._cuts
            return np.take(cut, edge[chosen], axis=1)
        values = self.tried[chosen]
        found = [np.searchsorted(scores, values, side="right") for scores in self.scores]
        return np.stack(found) + self.starts[:-1].reshape(-1, *[1] * chosen.ndim)

    @cached_property
    def _cuts(self) -> tuple[np.ndarray, np.ndarray] | None:
        """How many edges are not above each threshold, (R,); and each system's `cuts` below so many, (S, edges + 1)."""
        if self.edges is None:
            return None
        cut = np.zeros((len(self.scores), len(self.edges) + 1), dtype=np.int64)
        for at, scores in enumerate(self.scores):
            cut[at, np.searchsorted(self.edges, scores) + 1] = 1
        return np.searchsorted(self.edges, self.tried, side="right"), cut.cumsum(1) + self.starts[:-1, None]


def tune(method: str, tried: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The place of the best threshold by zero bias or BAcc in b weightings of one system's claims: int (b,), -1: none.

    tried: (t + 1,), ascending; below: int (2, t + 1, b), the weight of each label's claims whose scores are not above
    it. Ties go to the threshold nearest 0.5.
    """
    errors, others = below[:, -1]
    if method == "zero_bias_threshold":
        defined = errors + others > 0

        def loss(errors_below: np.ndarray, others_below: np.ndarray) -> np.ndarray:
            bias = errors_below + others_below
            bias -= errors
            return bias
    else:
        defined = (errors > 0) & (others > 0)
        whole = narrowest(int(errors.max(initial=0)) * int(others.max(initial=0)))

        def loss(errors_below: np.ndarray, others_below: np.ndarray) -> np.ndarray:
            wrong = np.multiply(others_below, errors, dtype=whole)
            wrong -= np.multiply(errors_below, others, dtype=whole)
            return wrong

    first, last = 0, len(tried)
    if last > 4 * _STEP:  # Only where some weighting's best may be: what is below rises from threshold to threshold.
        places = np.append(np.arange(0, last - 1, _STEP), last - 1)
        some = below[:, places]
        if method == "zero_bias_threshold":
            bias = loss(*some)
            least, bound = np.abs(bias).min(0), np.maximum(bias[:-1], -bias[1:])
        else:
            least, bound = loss(*some).min(0), loss(some[0, 1:], some[1, :-1])
        worth = np.flatnonzero(((bound <= least) & defined).any(1))
        if not len(worth):
            return np.full(len(defined), -1)
        first, last = int(places[worth[0]]), int(places[worth[-1] + 1]) + 1
    # Weights are whole numbers, so losses are exact, and a tie is one.
    losses = loss(*below[:, first:last])
    if method == "zero_bias_threshold":
        np.abs(losses, out=losses)
    order = np.argsort(np.abs(tried[first:last] - 0.5), kind="stable")
    short = np.min_scalar_type(len(order))
    points = np.empty(len(order), dtype=short)  # the most for the nearest
    points[order] = np.arange(len(order), 0, -1)
    best = (losses == losses.min(0)).astype(short)
    best *= points[:, None]
    return np.where(defined, first + order[len(order) - best.max(0).astype(np.int64)], -1)


def narrowest(largest: int) -> type[np.signedinteger]:
    """The narrowest type that holds whole numbers up to ``largest``: the fewer bytes, the more at a time."""
    return np.int16 if largest < 1 << 15 else np.int32 if largest < 1 << 31 else np.int64


def cumulate(weights: np.ndarray) -> None:
    """Make (labels, rows, b) of weights the sums of each row and those before it, in place."""
    labels, rows, b = weights.shape
    whole = rows // _STEP
    if whole > 1:  # in parts, many at a time: there are as many additions, and far fewer calls
        parts = weights[:, : whole * _STEP].reshape(labels, whole, _STEP, b)
        for at in range(1, _STEP):
            parts[:, :, at] += parts[:, :, at - 1]
        for at in range(1, whole):
            parts[:, at] += parts[:, at - 1, -1:]
    for at in range(whole * _STEP if whole > 1 else 1, rows):
        weights[:, at] += weights[:, at - 1]


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


def estimates_of(tables: np.ndarray, thresholds: Thresholds, below: np.ndarray, methods: Sequence[str]) -> Estimates:
    """Calibrate on each of S systems and correct the others, in b weightings of the claims.

    tables: (S, 3, 3, b), the claims' weights by label and prediction; below: int (2 or 3, R, b), the weight of each
    label (0, 1, none) among the claims of a system whose scores are not above a threshold of its own. Where
    `unidentifiable` says so, a calibration's are NaN in all weightings.
    """
    size, b = len(tables), tables.shape[-1]
    tables = tables.astype(np.float64)
    labels, told = tables[:, :2].sum(2), tables[:, :, :2].sum(1)
    predicted = ratio(told[:, 0], told.sum(1))
    # Uncorrected, every calibration system gives the others the same estimates.
    plain = np.broadcast_to(predicted, (size, size, b))
    rates: dict[str, np.ndarray] = {}
    found: dict[str, np.ndarray] = {}
    for method in methods:
        rates[method], found[method] = plain, np.full((size, b), np.nan)
        if method == "adjusted_counts":
            rates[method] = adjusted_counts(plain, np.moveaxis(tables[:, None, :2, :2], -1, -3))
    tuned = [method for method in methods if method in METHODS[2:]]
    if tuned and size:
        chosen = np.empty((len(tuned), size, b), dtype=np.int64)
        for system, (start, end) in enumerate(itertools.pairwise(thresholds.starts.tolist())):
            for at, method in enumerate(tuned):
                place = tune(method, thresholds.tried[start:end], below[:2, start:end])
                chosen[at, system] = np.where(place < 0, -1, place + start)
        every = below.sum(0, dtype=below.dtype)
        total = every[thresholds.starts[1:] - 1].astype(np.float64)
        total[total == 0] = np.nan
        cuts = thresholds.cuts(chosen)
        cuts *= b
        cuts += np.arange(b)
        shares = every.ravel().take(cuts) / total[:, None, None]
        lost = chosen < 0
        if lost.any():
            shares[:, lost] = np.nan
        for at, method in enumerate(tuned):
            rates[method] = shares[:, at].swapaxes(0, 1)
            found[method] = np.where(lost[at], np.nan, thresholds.tried[chosen[at]])
    return Estimates(ratio(labels[:, 0], labels.sum(1)), rates, found)


def observed(case: Case, methods: Sequence[str]) -> Estimates:
    """`estimates_of` the claims as they are: b = 1."""
    histograms, largest = case.kinds.histograms(), int(case.kinds.times.sum())
    thresholds = Thresholds([scores for scores, _ in histograms])
    below = np.zeros((3, len(thresholds.tried), 1), dtype=narrowest(largest))
    for start, (_, counts) in zip(thresholds.starts.tolist(), histograms, strict=False):
        np.cumsum(counts, axis=1, out=below[:, start + 1 : start + 1 + counts.shape[1], 0])
    return estimates_of(case.kinds.tables[..., None], thresholds, below, methods)


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
