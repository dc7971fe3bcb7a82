"""The nine counts that rates are made of: labelled 0 / 1 / not, times predicted 0 / 1 / not.

An array of counts has shape (..., 3, 3), indexed ``[..., label, prediction]`` with 0, 1 and -1 as in `Judged`: the last
row is what isn't labelled, the last column what is unscored.

Figures are over what is labelled and scored. Where nothing of a group is, those that need no label (the predicted
error rate) are over all that is scored. Bounds say what the figures could have been, had every claim been scored: the
labelled ones, or all where none is labelled.
"""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import ratio

Figures = dict[str, np.ndarray]
Bounds = dict[str, tuple[np.ndarray, np.ndarray]]

#: The number of cells: 3 labels x 3 predictions.
CELLS = 9
#: Claims counted at a time.
_BLOCK = 1 << 15


def cells(label: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """The cell of each claim, 0..8, in the order of an array of shape (3, 3): int64 (n,)."""
    # As unsigned numbers -1 is the greatest of all: two minima cost less than two divisions.
    row, column = np.minimum(label.astype(np.uint8), 2), np.minimum(prediction.astype(np.uint8), 2)
    return (row * np.uint8(3) + column).astype(np.int64)


def count(codes: np.ndarray, n_groups: int, label: np.ndarray, prediction: np.ndarray) -> np.ndarray:
    """int64 (n_groups, 3, 3): how many claims of each group fall in each cell.

    codes: int (n,), the claims' groups; -1 where a claim is in none.
    """
    counts = np.zeros(n_groups * CELLS, dtype=np.int64)
    # In blocks that stay in the processor's cache: a million claims cost no more each than ten thousand.
    for start in range(0, len(codes), _BLOCK):
        part = slice(start, start + _BLOCK)
        inside = codes[part] >= 0
        places = (codes[part] * CELLS + cells(label[part], prediction[part]))[inside]
        counts += np.bincount(places, minlength=len(counts))
    return counts.reshape(-1, 3, 3)


def unlabelled(counts: np.ndarray) -> np.ndarray:
    """bool (...): no claim of the group is both labelled and scored, so its shares are over all that is scored."""
    return counts[..., :2, :2].sum((-1, -2)) == 0


def replicates(
    units: Judged, evaluator: int, codes: np.ndarray, over_all: np.ndarray, intervals: Intervals
) -> np.ndarray:
    """float64 (replicates, groups, 3, 3): the counts of what the groups' figures are over, resampled by cluster."""
    prediction = units.prediction[evaluator]
    used = codes
    if len(over_all):
        used = np.where((prediction >= 0) & ((units.label >= 0) | over_all[codes]), codes, -1)
    drawn = intervals.counts(units, used, len(over_all), cells(units.label, prediction), CELLS)
    return drawn.reshape(*drawn.shape[:2], 3, 3)


def sizes(counts: np.ndarray) -> dict[str, np.ndarray]:
    """``n`` that the figures are over, ``n_unscored`` that they lack, and ``n_unlabelled`` of all claims."""
    return {
        "n": _scored(counts, unlabelled(counts)).sum(-1),
        "n_unscored": _population(counts)[..., -1],
        "n_unlabelled": counts[..., -1, :].sum(-1),
    }


def rates(counts: np.ndarray, over_all: np.ndarray) -> Figures:
    """tpr, tnr, fpr, fnr, bacc, ppr and gap (= tpr - tnr), NaN where undefined.

    over_all: bool, where ppr is over all that is scored (`unlabelled` of the observed counts; a resampled group is
    treated as the observed one).
    """
    tpr = ratio(counts[..., 1, 1], counts[..., 1, :2].sum(-1))
    tnr = ratio(counts[..., 0, 0], counts[..., 0, :2].sum(-1))
    scored = _scored(counts, over_all)
    return {
        "tpr": tpr,
        "tnr": tnr,
        "fpr": ratio(counts[..., 0, 1], counts[..., 0, :2].sum(-1)),
        "fnr": ratio(counts[..., 1, 0], counts[..., 1, :2].sum(-1)),
        "bacc": (tpr + tnr) / 2,
        "ppr": ratio(scored[..., 1], scored.sum(-1)),
        "gap": tpr - tnr,
    }


def rate_bounds(counts: np.ndarray) -> Bounds:
    """The least and greatest value of each of `rates` over all ways to score what is unscored."""
    tpr = _share(counts[..., 1, :], 1)
    tnr = _share(counts[..., 0, :], 0)
    return {
        "tpr": tpr,
        "tnr": tnr,
        "fpr": _share(counts[..., 0, :], 1),
        "fnr": _share(counts[..., 1, :], 0),
        "bacc": ((tpr[0] + tnr[0]) / 2, (tpr[1] + tnr[1]) / 2),
        "ppr": _share(_population(counts), 1),
        "gap": (tpr[0] - tnr[1], tpr[1] - tnr[0]),
    }


def error_rates(counts: np.ndarray, over_all: np.ndarray) -> Figures:
    """labelled_error_rate, predicted_error_rate and bias (= predicted - labelled), NaN where undefined.

    over_all: as in `rates`, for the predicted error rate.
    """
    both = counts[..., :2, :2]
    labelled = ratio(both[..., 0, :].sum(-1), both.sum((-1, -2)))
    scored = _scored(counts, over_all)
    predicted = ratio(scored[..., 0], scored.sum(-1))
    return {"labelled_error_rate": labelled, "predicted_error_rate": predicted, "bias": predicted - labelled}


def error_rate_bounds(counts: np.ndarray) -> Bounds:
    """The least and greatest value of each of `error_rates` over all ways to score what is unscored.

    The labelled error rate is then over all labelled claims: its two bounds are equal.
    """
    labelled = ratio(counts[..., 0, :].sum(-1), counts[..., :2, :].sum((-1, -2)))
    low, high = _share(_population(counts), 0)
    return {
        "labelled_error_rate": (labelled, labelled),
        "predicted_error_rate": (low, high),
        "bias": (low - labelled, high - labelled),
    }


def _scored(counts: np.ndarray, over_all: np.ndarray) -> np.ndarray:
    """(..., 2): predicted 0 and predicted 1, of the labelled or (where ``over_all``) of all."""
    return np.where(over_all[..., None], counts.sum(-2), counts[..., :2, :].sum(-2))[..., :2]


def _population(counts: np.ndarray) -> np.ndarray:
    """(..., 3): predicted 0, predicted 1, unscored, of the labelled or (where there is none) of all."""
    labelled = counts[..., :2, :].sum(-2)
    return np.where(labelled.sum(-1, keepdims=True) > 0, labelled, counts.sum(-2))


def _share(row: np.ndarray, prediction: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the share of ``prediction`` in (..., 3) counts of predicted 0, predicted 1, unscored."""
    total = row.sum(-1)
    return ratio(row[..., prediction], total), ratio(row[..., prediction] + row[..., -1], total)
