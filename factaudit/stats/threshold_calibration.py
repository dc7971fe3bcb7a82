"""Calibration on one system's labels: adjusted counts and tuned thresholds, for the error rates of the other systems.

Methods of Verify with Caution (§5, A.7) after Forman 2006, in many weightings of the units at once (bootstrap
replicates).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.stats.adjusted_counts import adjust_counts
from factaudit.stats.undefined_values import divide_or_undefined

#: The best thresholds are looked for between every so many of them first.
_THRESHOLD_STEP = 16


@dataclass(frozen=True)
class CandidateThresholds:
    """The R thresholds worth trying on S systems.

    scores: the distinct scores (t,) of each system, ascending. edges: all of them, where they are few enough to be
    looked up, else None.

    >>> CandidateThresholds([np.array([0.2, 0.6])]).candidates.tolist()
    [0.0, 0.4, 1.0]
    """

    scores: Sequence[np.ndarray]
    edges: np.ndarray | None = None

    @cached_property
    def candidates(self) -> np.ndarray:
        """float64 (R,): the thresholds of each system, t + 1, after those of the one before it; ascending in each."""
        return np.concatenate([np.zeros(0), *map(list_candidate_thresholds, self.scores)])

    @cached_property
    def starts(self) -> np.ndarray:
        """int (S + 1,): where the thresholds of each system begin."""
        return np.cumsum([0, *(len(scores) + 1 for scores in self.scores)])

    def locate_cuts(self, chosen_thresholds: np.ndarray) -> np.ndarray:
        """int (S, ...): the place of each system's own threshold that cuts its scores as a chosen one does.

        chosen_thresholds: int (...), places among `candidates`.
        """
        if self._cuts is not None:
            edge, cut = self._cuts
            return np.take(cut, edge[chosen_thresholds], axis=1)
        values = self.candidates[chosen_thresholds]
        found = [np.searchsorted(scores, values, side="right") for scores in self.scores]
        return np.stack(found) + self.starts[:-1].reshape(-1, *[1] * chosen_thresholds.ndim)

    @cached_property
    def _cuts(self) -> tuple[np.ndarray, np.ndarray] | None:
        """How many edges are not above each threshold, (R,); and each system's `cuts` below so many, (S, edges + 1)."""
        if self.edges is None:
            return None
        cut = np.zeros((len(self.scores), len(self.edges) + 1), dtype=np.int64)
        for at, scores in enumerate(self.scores):
            cut[at, np.searchsorted(self.edges, scores) + 1] = 1
        return np.searchsorted(self.edges, self.candidates, side="right"), cut.cumsum(1) + self.starts[:-1, None]


def tune_calibration_threshold(method: str, candidates: np.ndarray, weight_below: np.ndarray) -> np.ndarray:
    """The place of the best threshold in each of b weightings of one system's units: int (b,), -1: none.

    method: ``zero_bias_threshold`` or ``bacc_threshold``. candidates: (t + 1,), ascending. weight_below: int (2, t + 1,
    b), the weight of each label's units (0: errors, then 1) whose scores are not above the candidate. Ties go to the
    candidate nearest 0.5.

    >>> below = np.array([[0, 2, 2], [0, 0, 2]])[:, :, None]  # errors all score low, the others all high
    >>> tune_calibration_threshold("bacc_threshold", np.array([0.0, 0.4, 1.0]), below).tolist()
    [1]
    """
    errors, others = weight_below[:, -1]
    if method == "zero_bias_threshold":
        defined = errors + others > 0

        def loss(errors_below: np.ndarray, others_below: np.ndarray) -> np.ndarray:
            bias = errors_below + others_below
            bias -= errors
            return bias
    else:
        defined = (errors > 0) & (others > 0)
        whole = narrowest_integer_type(int(errors.max(initial=0)) * int(others.max(initial=0)))

        def loss(errors_below: np.ndarray, others_below: np.ndarray) -> np.ndarray:
            wrong = np.multiply(others_below, errors, dtype=whole)
            wrong -= np.multiply(errors_below, others, dtype=whole)
            return wrong

    first, last = 0, len(candidates)
    if (
        last > 4 * _THRESHOLD_STEP
    ):  # Only where some weighting's best may be: what is below rises from threshold to threshold.
        places = np.append(np.arange(0, last - 1, _THRESHOLD_STEP), last - 1)
        some = weight_below[:, places]
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
    losses = loss(*weight_below[:, first:last])
    if method == "zero_bias_threshold":
        np.abs(losses, out=losses)
    order = np.argsort(np.abs(candidates[first:last] - 0.5), kind="stable")
    short = np.min_scalar_type(len(order))
    points = np.empty(len(order), dtype=short)  # the most for the nearest
    points[order] = np.arange(len(order), 0, -1)
    best = (losses == losses.min(0)).astype(short)
    best *= points[:, None]
    return np.where(defined, first + order[len(order) - best.max(0).astype(np.int64)], -1)


def narrowest_integer_type(largest: int) -> type[np.signedinteger]:
    """The narrowest type that holds whole numbers up to ``largest``: the fewer bytes, the more at a time.

    >>> narrowest_integer_type(40_000).__name__
    'int32'
    """
    return np.int16 if largest < 1 << 15 else np.int32 if largest < 1 << 31 else np.int64


def cumulate_threshold_weights_in_place(weights: np.ndarray) -> None:
    """Replace each row of weights (labels, rows, b) by the sum of itself and the rows before it.

    As `numpy.cumsum` along the middle axis, without a copy, and faster where there are many rows.

    >>> weights = np.array([[[1], [2], [3]]])
    >>> cumulate_threshold_weights_in_place(weights)
    >>> weights.ravel().tolist()
    [1, 3, 6]
    """
    labels, rows, b = weights.shape
    whole = rows // _THRESHOLD_STEP
    if whole > 1:  # in parts, many at a time: there are as many additions, and far fewer calls
        parts = weights[:, : whole * _THRESHOLD_STEP].reshape(labels, whole, _THRESHOLD_STEP, b)
        for at in range(1, _THRESHOLD_STEP):
            parts[:, :, at] += parts[:, :, at - 1]
        for at in range(1, whole):
            parts[:, at] += parts[:, at - 1, -1:]
    for at in range(whole * _THRESHOLD_STEP if whole > 1 else 1, rows):
        weights[:, at] += weights[:, at - 1]


def list_candidate_thresholds(scores: np.ndarray) -> np.ndarray:
    """The thresholds worth trying on k distinct ascending scores in [0, 1]: (k + 1,); the i-th has i scores at or below
    it.

    Midpoints between neighbouring scores, and both ends: 1 (nothing is above it), and 0, or -1 where a score is 0,
    since a prediction is 1 only where the score is *above* the threshold.

    >>> list_candidate_thresholds(np.array([0.0, 0.5, 1.0])).tolist()
    [-1.0, 0.25, 0.75, 1.0]
    """
    middle = (scores[:-1] + scores[1:]) / 2
    # Of two neighbouring floats the midpoint may be the upper one.
    middle = np.where(middle < scores[1:], middle, scores[:-1])
    lowest = -1.0 if len(scores) and scores[0] == 0 else 0.0
    return np.concatenate([[lowest], middle, [1.0]])[: len(scores) + 1]


@dataclass(frozen=True)
class ThresholdCalibratedErrorRates:
    """What S calibrations make of the error rates of S systems, in b weightings of the units.

    labelled_rates: (S, b), the share of errors among all labels. corrected_rates: per method (calibration, system, b).
    thresholds: per method (calibration, b), NaN where it has none.
    """

    labelled_rates: np.ndarray
    corrected_rates: Mapping[str, np.ndarray]
    thresholds: Mapping[str, np.ndarray]


def calibrate_error_rates_at_thresholds(
    confusions: np.ndarray, thresholds: CandidateThresholds, weight_below: np.ndarray, methods: Sequence[str]
) -> ThresholdCalibratedErrorRates:
    """Calibrate on each of S systems and correct the others, in b weightings of the units.

    confusions: (S, 3, 3, b), the units' weights by label and prediction (0, 1, missing). weight_below: int (2 or 3, R,
    b), the weight of each label (0, 1, missing) among the units of a system whose scores are not above a threshold of
    its own. NaN in the weightings in which a calibration is unidentifiable (`adjust_counts`).

    >>> confusions = np.zeros((2, 3, 3, 1), dtype=int)
    >>> confusions[:, :2, :2, 0] = [[[8, 2], [1, 9]], [[4, 1], [1, 9]]]
    >>> no_scores = CandidateThresholds([np.zeros(0), np.zeros(0)])
    >>> found = calibrate_error_rates_at_thresholds(confusions, no_scores, np.zeros((2, 2, 1), dtype=int),
    ...     ["adjusted_counts"])
    >>> found.corrected_rates["adjusted_counts"][0, 1].round(3).tolist(), found.labelled_rates[1].round(3).tolist()
    ([0.333], [0.333])
    """
    size, b = len(confusions), confusions.shape[-1]
    confusions = confusions.astype(np.float64)
    labels, told = confusions[:, :2].sum(2), confusions[:, :, :2].sum(1)
    predicted = divide_or_undefined(told[:, 0], told.sum(1))
    # Uncorrected, every calibration system gives the others the same estimates.
    plain = np.broadcast_to(predicted, (size, size, b))
    rates: dict[str, np.ndarray] = {}
    found: dict[str, np.ndarray] = {}
    for method in methods:
        rates[method], found[method] = plain, np.full((size, b), np.nan)
        if method == "adjusted_counts":
            rates[method] = adjust_counts(plain, np.moveaxis(confusions[:, None, :2, :2], -1, -3))
    tuned = [method for method in methods if method in CORRECTION_METHODS[2:]]
    if tuned and size:
        chosen = np.empty((len(tuned), size, b), dtype=np.int64)
        for system, (start, end) in enumerate(itertools.pairwise(thresholds.starts.tolist())):
            for at, method in enumerate(tuned):
                place = tune_calibration_threshold(
                    method, thresholds.candidates[start:end], weight_below[:2, start:end]
                )
                chosen[at, system] = np.where(place < 0, -1, place + start)
        every = weight_below.sum(0, dtype=weight_below.dtype)
        total = every[thresholds.starts[1:] - 1].astype(np.float64)
        total[total == 0] = np.nan
        cuts = thresholds.locate_cuts(chosen)
        cuts *= b
        cuts += np.arange(b)
        shares = every.ravel().take(cuts) / total[:, None, None]
        lost = chosen < 0
        if lost.any():
            shares[:, lost] = np.nan
        for at, method in enumerate(tuned):
            rates[method] = shares[:, at].swapaxes(0, 1)
            found[method] = np.where(lost[at], np.nan, thresholds.candidates[chosen[at]])
    return ThresholdCalibratedErrorRates(divide_or_undefined(labels[:, 0], labels.sum(1)), rates, found)


def mean_over_threshold_calibrations(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is (`numpy.nanmean` without its warning).

    >>> mean_over_threshold_calibrations(np.array([[0.2, np.nan], [0.4, np.nan]])).round(3).tolist()
    [0.3, nan]
    """
    lost = np.isnan(values)
    if not lost.any():
        return divide_or_undefined(values.sum(axis=0), len(values))
    return divide_or_undefined(np.where(lost, 0, values).sum(axis=0), (~lost).sum(axis=0))


def bias_after_calibration_on_one_system(
    corrected_rates: np.ndarray, labelled_rates: np.ndarray, has_claims: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and greatest |corrected - labelled| over the systems other than the calibration system: (C,) each.

    corrected_rates: (C, S), by calibration system and system; labelled_rates: (S,); has_claims: bool (S,), systems that
    count.

    >>> rates, labelled = np.array([[0.2, 0.5], [0.3, 0.4]]), np.array([0.2, 0.4])
    >>> mean, worst = bias_after_calibration_on_one_system(rates, labelled, np.array([True, True]))
    >>> mean.round(3).tolist(), worst.round(3).tolist()
    ([0.1, 0.1], [0.1, 0.1])
    """
    error = np.abs(corrected_rates - labelled_rates)
    others = ~np.eye(len(has_claims), dtype=bool) & has_claims
    mean = divide_or_undefined(np.where(others, error, 0).sum(-1), others.sum(-1))
    worst = np.where(others, error, -1).max(-1, initial=-1)
    return mean, np.where(others.any(-1), worst, np.nan)


#: Predictions counted, plainly or corrected; then thresholds on the score.
CORRECTION_METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")
