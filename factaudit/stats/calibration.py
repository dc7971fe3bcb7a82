"""Calibration on labels: adjusted counts, and thresholds tuned for zero bias or for the best
balanced accuracy.

Adjusted counts and zero-bias thresholds correct error rates of other systems (Verify with Caution,
§5 and A.7, after Forman 2006), in many weightings of the units at once (bootstrap replicates).
"""

from __future__ import annotations

import numpy as np

from factaudit.stats import divide_or_undefined
from factaudit.stats.clustered_proportions import rank_distinct_integers

#: Predictions counted, plainly or corrected; then thresholds on the score.
CORRECTION_METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")


def adjust_counts(predicted_error_rate: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Forman's adjusted counts with the error as the positive class: clip((p - FNR) / (TNR - FNR),
    0, 1).

    predicted_error_rate: (...), p. confusion: (..., 2, 2), counts by [label, prediction] on the
    labelled sample that TNR and FNR come from. NaN where the correction is unidentifiable: no error
    or nothing else is labelled, or TNR <= FNR.

    >>> adjust_counts(np.array(0.3), np.array([[8, 2], [1, 9]])).round(4).item()  # TNR 0.8, FNR 0.1
    0.2857
    """
    errors, others = confusion[..., 0, :].sum(-1), confusion[..., 1, :].sum(-1)
    tnr, fnr = (
        divide_or_undefined(confusion[..., 0, 0], errors),
        divide_or_undefined(confusion[..., 1, 0], others),
    )
    # Compared as products of counts, which are exact: equal rates must not differ in the last bit.
    better = confusion[..., 0, 0] * others - confusion[..., 1, 0] * errors
    return np.clip(
        divide_or_undefined(predicted_error_rate - fnr, np.where(better > 0, tnr - fnr, 0)), 0, 1
    )


# ---- the threshold of best balanced accuracy


def best_bacc_threshold(label: np.ndarray, score: np.ndarray) -> float | None:
    """The threshold of best balanced accuracy: a midpoint between neighbouring scores
    (`list_candidate_thresholds`); of equally good the middle one.

    label: 0 or 1, score: float in [0, 1], both (n,). A unit is predicted 1 where its score is above
    it. None of one class.

    >>> best_bacc_threshold(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.6, 0.9]))
    0.5
    """
    values, place = np.unique(score, return_inverse=True)
    counts = np.bincount(
        label.astype(np.int64) * len(values) + place, minlength=2 * len(values)
    ).reshape(2, -1)
    found, missed = np.cumsum(counts, axis=1)
    if not len(values) or not found[-1] or not missed[-1]:
        return None
    # 2 BAcc - 1 of cutting below all scores, then after each: what is up to the cut is predicted 0.
    gain = np.append(0.0, found / found[-1] - missed / missed[-1])
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    thresholds = list_candidate_thresholds(values)
    # Where all are predicted alike, the threshold nearest to the scores.
    thresholds[0], thresholds[-1] = np.nextafter(values[0], -np.inf), values[-1]
    return float(thresholds[best[len(best) // 2]])


def cross_validate_threshold(
    label: np.ndarray, score: np.ndarray, cluster: np.ndarray, *, folds: int = 5, seed: int = 0
) -> np.ndarray:
    """Each unit's prediction by the threshold of best balanced accuracy of the *other* folds: int8
    (n,).

    label: 0 or 1, score: float without NaN, cluster: int, all (n,); whole clusters are left out at
    a time. -1 where the other folds are of one class.

    >>> label, score = np.array([0, 0, 0, 1, 1, 1]), np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    >>> cross_validate_threshold(label, score, np.arange(6), folds=3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    names, member = rank_distinct_integers(cluster)
    fold = np.random.default_rng(seed).permutation(
        np.arange(len(names)) % max(1, min(folds, len(names)))
    )[member]
    prediction = np.full(len(label), -1, dtype=np.int8)
    for at in range(int(fold.max(initial=-1)) + 1):
        inside = fold == at
        threshold = best_bacc_threshold(label[~inside], score[~inside])
        if threshold is not None:
            prediction[inside] = score[inside] > threshold
    return prediction


# ---- thresholds tuned on one system's labels


def tune_calibration_threshold(
    method: str, weight_below: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """The place of the best of k thresholds in each of b weightings of one system's units: int
    (b,), -1: none.

    method: ``zero_bias_threshold`` or ``bacc_threshold``. weight_below: int (2, k, b), the weight
    of each label's units (0: errors, then 1) whose scores are not above the threshold; weight: int
    (2, b), of all. Ties go to the first.

    >>> # Errors all score low, the others all high.
    >>> below = np.array([[0, 2, 2], [0, 0, 2]])[:, :, None]
    >>> tune_calibration_threshold("bacc_threshold", below, below[:, -1]).tolist()
    [1]
    """
    (errors_below, others_below), (errors, others) = weight_below, weight
    # Weights are whole numbers, so losses are exact, and a tie is one.
    if method == "zero_bias_threshold":
        is_defined, losses = errors + others > 0, np.abs(errors_below + others_below - errors)
    else:
        is_defined = (errors > 0) & (others > 0)
        largest = int(errors.max(initial=0)) * int(others.max(initial=0))
        whole = np.int64 if largest >= 1 << 31 else np.int32  # the narrower takes half the time
        losses = np.multiply(others_below, errors, dtype=whole)
        losses -= np.multiply(errors_below, others, dtype=whole)
    return np.where(is_defined, losses.argmin(0), -1)


def list_candidate_thresholds(scores: np.ndarray) -> np.ndarray:
    """The thresholds worth trying on k distinct ascending scores in [0, 1]: (k + 1,); the i-th has
    i scores at or below it.

    Midpoints between neighbouring scores, and both ends: 1 (nothing is above it), and 0, or -1
    where a score is 0, since a prediction is 1 only where the score is *above* the threshold.

    >>> list_candidate_thresholds(np.array([0.0, 0.5, 1.0])).tolist()
    [-1.0, 0.25, 0.75, 1.0]
    """
    middle = (scores[:-1] + scores[1:]) / 2
    # Of two neighbouring floats the midpoint may be the upper one.
    middle = np.where(middle < scores[1:], middle, scores[:-1])
    lowest = -1.0 if len(scores) and scores[0] == 0 else 0.0
    return np.concatenate([[lowest], middle, [1.0]])[: len(scores) + 1]


def mean_of_calibrations(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is (`numpy.nanmean`
    without its warning).

    >>> mean_of_calibrations(np.array([[0.2, np.nan], [0.4, np.nan]])).round(3).tolist()
    [0.3, nan]
    """
    lost = np.isnan(values)
    if not lost.any():
        return divide_or_undefined(values.sum(axis=0), len(values))
    return divide_or_undefined(np.where(lost, 0, values).sum(axis=0), (~lost).sum(axis=0))


def remaining_bias(
    corrected_rates: np.ndarray, labelled_rates: np.ndarray, has_claims: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and greatest |corrected - labelled| over the systems other than the calibration system:
    (C,) each.

    corrected_rates: (C, S), by calibration system and system; labelled_rates: (S,); has_claims:
    bool (S,), systems that count.

    >>> rates, labelled = np.array([[0.2, 0.5], [0.3, 0.4]]), np.array([0.2, 0.4])
    >>> mean, worst = remaining_bias(rates, labelled, np.array([True, True]))
    >>> mean.round(3).tolist(), worst.round(3).tolist()
    ([0.1, 0.1], [0.1, 0.1])
    """
    error = np.abs(corrected_rates - labelled_rates)
    others = ~np.eye(len(has_claims), dtype=bool) & has_claims
    mean = divide_or_undefined(np.where(others, error, 0).sum(-1), others.sum(-1))
    worst = np.where(others, error, -1).max(-1, initial=-1)
    return mean, np.where(others.any(-1), worst, np.nan)
