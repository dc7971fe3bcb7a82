"""The threshold of best balanced accuracy, and its cross-validation over clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.distinct_rows import rank_distinct_integers


@dataclass(frozen=True)
class CrossValidatedThreshold:
    """A threshold of best balanced accuracy.

    threshold: from all units. prediction: int8 (n,), each unit by the threshold of the *other* folds (-1 where those
    are of one class). thresholds: that of each fold.
    """

    threshold: float
    prediction: np.ndarray
    thresholds: np.ndarray


def cross_validate_threshold(
    label: np.ndarray, score: np.ndarray, cluster: np.ndarray, *, folds: int = 5, seed: int = 0
) -> CrossValidatedThreshold | None:
    """Cross-validate the threshold of best balanced accuracy, whole clusters left out at a time.

    label: 0 or 1, score: float without NaN, cluster: int, all (n,). A unit is predicted 1 where its score is above the
    threshold. None where only one class is there.

    >>> label, score = np.array([0, 0, 0, 1, 1, 1]), np.array([0.1, 0.2, 0.3, 0.7, 0.8, 0.9])
    >>> found = cross_validate_threshold(label, score, np.arange(6), folds=3)
    >>> found.threshold, found.prediction.tolist()
    (0.5, [0, 0, 0, 1, 1, 1])
    """
    names, member = rank_distinct_integers(cluster)
    fold = np.random.default_rng(seed).permutation(np.arange(len(names)) % max(1, min(folds, len(names))))[member]
    values, place = np.unique(score, return_inverse=True)
    n_folds, size = int(fold.max(initial=-1)) + 1, 2 * len(values)
    codes = fold * size + label.astype(np.int64) * len(values) + place
    counts = np.bincount(codes, minlength=n_folds * size).reshape(n_folds, 2, -1)
    total = counts.sum(0)
    whole = _best_bacc_threshold_of_counts(values, total)
    if whole is None:
        return None
    prediction = np.full(len(label), -1, dtype=np.int8)
    thresholds = []
    for at in np.unique(fold):
        inside = fold == at
        threshold = _best_bacc_threshold_of_counts(values, total - counts[at])
        if threshold is not None:
            prediction[inside] = score[inside] > threshold
            thresholds.append(threshold)
    return CrossValidatedThreshold(whole, prediction, np.array(thresholds))


def find_best_bacc_threshold(label: np.ndarray, score: np.ndarray) -> float | None:
    """The threshold of best balanced accuracy: a midpoint between neighbouring scores; of equally good ones the middle
    one.

    label: 0 or 1, score: float, both (n,). None where a class is missing.

    >>> find_best_bacc_threshold(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.6, 0.9]))
    0.5
    """
    values, place = np.unique(score, return_inverse=True)
    codes = label.astype(np.int64) * len(values) + place
    return _best_bacc_threshold_of_counts(values, np.bincount(codes, minlength=2 * len(values)).reshape(2, -1))


def _best_bacc_threshold_of_counts(scores: np.ndarray, counts: np.ndarray) -> float | None:
    """`find_best_bacc_threshold` of claims by label (2, V) at each of the ascending values; some may have none."""
    found, missed = np.cumsum(counts, axis=1)
    if not len(scores) or not found[-1] or not missed[-1]:
        return None
    # After the i-th value everything up to it is predicted 0.
    gain = np.append(0.0, found / found[-1] - missed / missed[-1])  # 2 BAcc - 1 of cutting below all, then after each
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    some = counts[0] + counts[1] > 0
    best = best[(best == 0) | some[best - 1]]
    at = int(best[len(best) // 2])
    last = scores[at - 1]
    after = at + int(some[at:].argmax()) if some[at:].any() else None
    if at == 0:
        return float(np.nextafter(scores[after], -np.inf))
    if after is None:
        return float(last)
    middle = (last + scores[after]) / 2
    return float(middle if middle < scores[after] else last)
