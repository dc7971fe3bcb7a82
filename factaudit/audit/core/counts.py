"""The nine counts that rates are made of: labelled 0 / 1 / not, times predicted 0 / 1 / not.

An array of counts has shape (..., 3, 3), indexed ``[..., label, prediction]`` with 0, 1 and -1 as in `Judged`: the last
row is what isn't labelled, the last column what is unscored.

Figures of the labels alone are over all labels, whatever an evaluator scored. Figures that need a prediction are over
what is labelled and scored; of a group without any label, those that need none (the predicted error rate) are over all
that is scored. Bounds say what the figures could have been, had every claim been scored by a reply that states a
verdict: they are of counts without guessed predictions (`Judged.certain`).
"""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.mover import combine_shares, paired
from factaudit.audit.core.rows import ratio
from factaudit.audit.core.shares import Clusters, Limits, Shares, shares

Figures = dict[str, np.ndarray]
#: Of each figure the two ends of its bounds, or of its interval.
Ends = dict[str, Limits]

#: The number of cells: 3 labels x 3 predictions.
CELLS = 9
#: Claims counted at a time.
_BLOCK = 1 << 15


def cells(*values: np.ndarray) -> np.ndarray:
    """The cell of each claim by its k values, each 0, 1 or -1: int64 (n,), in the order of an array of k axes of 3."""
    # As unsigned numbers -1 is the greatest of all: minima cost less than divisions.
    found = np.minimum(values[0].astype(np.uint8), 2)
    for one in values[1:]:
        found = found * np.uint8(3) + np.minimum(one.astype(np.uint8), 2)
    return found.astype(np.int64)


def count(codes: np.ndarray, n_groups: int, *values: np.ndarray) -> np.ndarray:
    """int64 (n_groups, 3, ..., 3): how many claims of each group fall in each of the `cells` of k values.

    codes: int (n,), the claims' groups; -1 where a claim is in none.
    """
    n_cells = 3 ** len(values)
    counts = np.zeros(n_groups * n_cells, dtype=np.int64)
    # In blocks that stay in the processor's cache: a million claims cost no more each than ten thousand.
    for start in range(0, len(codes), _BLOCK):
        part = slice(start, start + _BLOCK)
        inside = codes[part] >= 0
        places = (codes[part] * n_cells + cells(*(one[part] for one in values)))[inside]
        counts += np.bincount(places, minlength=len(counts))
    return counts.reshape(n_groups, *[3] * len(values))


def unlabelled(counts: np.ndarray) -> np.ndarray:
    """bool (...): no claim of the group is labelled, so its shares are over all that is scored."""
    return counts[..., :2, :].sum((-1, -2)) == 0


def sizes(counts: np.ndarray, certain: np.ndarray) -> dict[str, np.ndarray]:
    """``n`` predictions, ``n_unscored`` that are missing, ``n_guessed`` of n, and ``n_unlabelled`` of all claims.

    certain: the counts without guessed predictions.
    """
    unscored = _population(counts)[..., -1]
    return {
        "n": _scored(counts, unlabelled(counts)).sum(-1),
        "n_unscored": unscored,
        "n_guessed": _population(certain)[..., -1] - unscored,
        "n_unlabelled": counts[..., -1, :].sum(-1),
    }


def rates(counts: np.ndarray, over_all: np.ndarray) -> Figures:
    """tpr, tnr, fpr, fnr, bacc, ppr and gap (= tpr - tnr), NaN where undefined.

    over_all: bool, where ppr is over all that is scored (`unlabelled`).
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


def rate_bounds(counts: np.ndarray) -> Ends:
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


def rate_limits(clusters: Clusters, over_all: np.ndarray, confidence: float) -> Ends:
    """The interval of each of `rates`."""
    counts = clusters.counts.reshape(-1, 3, 3)
    of = counts[:, :2, :2].sum(-1)
    found = shares(clusters, np.stack([counts[:, 1, 1], counts[:, 0, 0]], 1), np.stack([of[:, 1], of[:, 0]], 1))
    low, high = found.limits(confidence)
    scored = _scored(counts, over_all[clusters.group])
    ppr = shares(clusters, scored[:, 1:], scored.sum(-1, keepdims=True)).limits(confidence)
    return {
        "tpr": (low[:, 0], high[:, 0]),
        "tnr": (low[:, 1], high[:, 1]),
        "fpr": (1 - high[:, 1], 1 - low[:, 1]),
        "fnr": (1 - high[:, 0], 1 - low[:, 0]),
        "bacc": combine_shares(found, np.array([0.5, 0.5]), confidence)[1],
        "ppr": (ppr[0][:, 0], ppr[1][:, 0]),
        "gap": combine_shares(found, np.array([1.0, -1.0]), confidence)[1],
    }


def error_rates(counts: np.ndarray, over_all: np.ndarray) -> Figures:
    """labelled_error_rate (over all labels), predicted_error_rate and bias (= predicted - labelled).

    NaN where undefined. over_all: as in `rates`, for the predicted error rate.
    """
    labelled = ratio(counts[..., 0, :].sum(-1), counts[..., :2, :].sum((-1, -2)))
    scored = _scored(counts, over_all)
    predicted = ratio(scored[..., 0], scored.sum(-1))
    return {"labelled_error_rate": labelled, "predicted_error_rate": predicted, "bias": predicted - labelled}


def error_rate_bounds(counts: np.ndarray) -> Ends:
    """The least and greatest value of each of `error_rates` over all ways to score what is unscored."""
    labelled = ratio(counts[..., 0, :].sum(-1), counts[..., :2, :].sum((-1, -2)))
    low, high = _share(_population(counts), 0)
    return {
        "labelled_error_rate": (labelled, labelled),
        "predicted_error_rate": (low, high),
        "bias": (low - labelled, high - labelled),
    }


def error_rate_shares(clusters: Clusters, over_all: np.ndarray) -> Shares:
    """The labelled and the predicted error rate of each group, as shares: (G, 2)."""
    counts = clusters.counts.reshape(-1, 3, 3)
    scored = _scored(counts, over_all[clusters.group])
    return shares(
        clusters,
        np.stack([counts[:, 0].sum(-1), scored[:, 0]], 1),
        np.stack([counts[:, :2].sum((-1, -2)), scored.sum(-1)], 1),
    )


def error_rate_limits(clusters: Clusters, over_all: np.ndarray, confidence: float) -> Ends:
    """The interval of each of `error_rates`.

    Bias is the difference of two shares of discordant claims, of what is labelled and scored; where labelled claims
    are unscored, its interval is moved to the bias over all labels.
    """
    rates = error_rate_shares(clusters, over_all)
    both = clusters.counts.reshape(-1, 3, 3)[:, :2, :2]
    n = both.sum((-1, -2))
    low, high = rates.limits(confidence)
    apart = shares(clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), np.stack([n, n], 1))
    difference, (below, above) = paired(apart, np.array([1.0, -1.0]), confidence)
    moved = rates.point[:, 1] - rates.point[:, 0] - difference
    return {
        "labelled_error_rate": (low[:, 0], high[:, 0]),
        "predicted_error_rate": (low[:, 1], high[:, 1]),
        "bias": (np.maximum(below + moved, -1), np.minimum(above + moved, 1)),
    }


def with_ends(figures: Figures, bounds: Ends, limits: Ends | None) -> Figures:
    """Figures with ``_min`` and ``_max`` beside them and, where there are intervals, ``_low`` and ``_high``."""
    found: Figures = {}
    for key, values in figures.items():
        found |= {key: values, f"{key}_min": bounds[key][0], f"{key}_max": bounds[key][1]}
    for key, (low, high) in (limits or {}).items():
        found |= {f"{key}_low": low, f"{key}_high": high}
    return found


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
