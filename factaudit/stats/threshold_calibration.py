"""Calibration on one system's labels: what tunes a threshold, and what is left of the other systems' biases.

Methods of Verify with Caution (§5, A.7) after Forman 2006, in many weightings of the units at once (bootstrap
replicates).
"""

from __future__ import annotations

import numpy as np

from factaudit.stats.undefined_values import divide_or_undefined


def tune_calibration_threshold(method: str, candidates: np.ndarray, weight_below: np.ndarray) -> np.ndarray:
    """The place of the best threshold in each of b weightings of one system's units: int (b,), -1: none.

    method: ``zero_bias_threshold`` or ``bacc_threshold``. candidates: (t + 1,), ascending. weight_below: int (2, t + 1,
    b), the weight of each label's units (0: errors, then 1) whose scores are not above the candidate. Ties go to the
    candidate nearest 0.5.

    >>> below = np.array([[0, 2, 2], [0, 0, 2]])[:, :, None]  # errors all score low, the others all high
    >>> tune_calibration_threshold("bacc_threshold", np.array([0.0, 0.4, 1.0]), below).tolist()
    [1]
    """
    nearest = np.argsort(np.abs(candidates - 0.5), kind="stable")
    errors, others = weight_below[:, -1]
    errors_below, others_below = weight_below[:, nearest]
    # Weights are whole numbers, so losses are exact, and a tie is one.
    if method == "zero_bias_threshold":
        is_defined, losses = errors + others > 0, np.abs(errors_below + others_below - errors)
    else:
        is_defined = (errors > 0) & (others > 0)
        losses = others_below * errors.astype(np.int64) - errors_below * others.astype(np.int64)
    return np.where(is_defined, nearest[losses.argmin(0)], -1)


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
