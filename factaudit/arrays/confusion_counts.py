"""Confusion counts: claims labelled 0 / 1 / not, times predicted 0 / 1 / not, and the rates that are made of them.

An array of counts has shape (..., 3, 3), indexed ``[..., label, prediction]`` with 0, 1 and -1 as in `Judgements`: the
last row is what isn't labelled, the last column what is unscored.

Figures of the labels alone are over all labels, whatever an evaluator scored. Figures that need a prediction are over
what is labelled and scored; of a group without any label, those that need none (the predicted error rate) are over all
that is scored. Bounds say what the figures could have been, had every claim been scored by a reply that states a
verdict: they are of counts without guessed predictions (`Judgements.stated_prediction`).
"""

from __future__ import annotations

import numpy as np

from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    ClusteredProportions,
    IntervalEnds,
    estimate_clustered_proportions,
)
from factaudit.stats.mover import error_balance_interval, mover_proportion_sum
from factaudit.stats.multiplicity import p_value_of_interval, sign_test_p
from factaudit.stats.undefined_values import divide_or_undefined

FiguresByName = dict[str, np.ndarray]
#: Of each figure the two ends of its bounds, or of its interval.
EndsByName = dict[str, IntervalEnds]

#: The number of cells: 3 labels x 3 predictions.
N_CONFUSION_CELLS = 9
#: Claims counted at a time.
_CLAIMS_AT_A_TIME = 1 << 15


def encode_label_prediction_cells(*values: np.ndarray) -> np.ndarray:
    """The cell of each claim by its k values, each 0, 1 or -1: int64 (n,), in the order of an array of k axes of 3."""
    # As unsigned numbers -1 is the greatest of all: minima cost less than divisions.
    found = np.minimum(values[0].astype(np.uint8), 2)
    for one in values[1:]:
        found = found * np.uint8(3) + np.minimum(one.astype(np.uint8), 2)
    return found.astype(np.int64)


def count_confusion_cells(group_codes: np.ndarray, n_groups: int, *values: np.ndarray) -> np.ndarray:
    """Count the claims of each group in each cell of k values: int64 (n_groups, 3, ..., 3).

    group_codes: int (n,), -1 where a claim is in no group. values: int (n,) each, 0, 1 or -1
    (`encode_label_prediction_cells`).
    """
    n_cells = 3 ** len(values)
    counts = np.zeros(n_groups * n_cells, dtype=np.int64)
    # In blocks that stay in the processor's cache: a million claims cost no more each than ten thousand.
    for start in range(0, len(group_codes), _CLAIMS_AT_A_TIME):
        part = slice(start, start + _CLAIMS_AT_A_TIME)
        inside = group_codes[part] >= 0
        places = (group_codes[part] * n_cells + encode_label_prediction_cells(*(one[part] for one in values)))[inside]
        counts += np.bincount(places, minlength=len(counts))
    return counts.reshape(n_groups, *[3] * len(values))


def is_group_unlabelled(counts: np.ndarray) -> np.ndarray:
    """bool (...): no claim of the group is labelled, so its shares are over all that is scored."""
    return counts[..., :2, :].sum((-1, -2)) == 0


def count_scored_confusion_cells(confusion_counts: np.ndarray, certain_counts: np.ndarray) -> dict[str, np.ndarray]:
    """``n`` predictions, ``n_unscored`` that are missing, ``n_guessed`` of n, and ``n_unlabelled`` of all claims.

    certain_counts: the counts without guessed predictions.
    """
    unscored = _counts_with_unscored(confusion_counts)[..., -1]
    return {
        "n": _predicted_counts(confusion_counts, is_group_unlabelled(confusion_counts)).sum(-1),
        "n_unscored": unscored,
        "n_guessed": _counts_with_unscored(certain_counts)[..., -1] - unscored,
        "n_unlabelled": confusion_counts[..., -1, :].sum(-1),
    }


def confusion_rates(confusion_counts: np.ndarray, over_all: np.ndarray) -> FiguresByName:
    """tpr, tnr, fpr, fnr, bacc, ppr and gap (= tpr - tnr), NaN where undefined.

    over_all: bool, where ppr is over all that is scored (`is_group_unlabelled`).
    """
    tpr = divide_or_undefined(confusion_counts[..., 1, 1], confusion_counts[..., 1, :2].sum(-1))
    tnr = divide_or_undefined(confusion_counts[..., 0, 0], confusion_counts[..., 0, :2].sum(-1))
    scored = _predicted_counts(confusion_counts, over_all)
    return {
        "tpr": tpr,
        "tnr": tnr,
        "fpr": divide_or_undefined(confusion_counts[..., 0, 1], confusion_counts[..., 0, :2].sum(-1)),
        "fnr": divide_or_undefined(confusion_counts[..., 1, 0], confusion_counts[..., 1, :2].sum(-1)),
        "bacc": (tpr + tnr) / 2,
        "ppr": divide_or_undefined(scored[..., 1], scored.sum(-1)),
        "gap": tpr - tnr,
    }


def confusion_rate_bounds(confusion_counts: np.ndarray) -> EndsByName:
    """The least and greatest value of each of `confusion_rates` over all ways to score what is unscored."""
    tpr = _bound_share_of_predicted_class(confusion_counts[..., 1, :], 1)
    tnr = _bound_share_of_predicted_class(confusion_counts[..., 0, :], 0)
    return {
        "tpr": tpr,
        "tnr": tnr,
        "fpr": _bound_share_of_predicted_class(confusion_counts[..., 0, :], 1),
        "fnr": _bound_share_of_predicted_class(confusion_counts[..., 1, :], 0),
        "bacc": ((tpr[0] + tnr[0]) / 2, (tpr[1] + tnr[1]) / 2),
        "ppr": _bound_share_of_predicted_class(_counts_with_unscored(confusion_counts), 1),
        "gap": (tpr[0] - tnr[1], tpr[1] - tnr[0]),
    }


def confusion_rate_intervals(clusters: ClusterCounts, over_all: np.ndarray, confidence: float) -> EndsByName:
    """The interval of each of `confusion_rates`."""
    counts = clusters.counts.reshape(-1, 3, 3)
    of = counts[:, :2, :2].sum(-1)
    found = estimate_clustered_proportions(
        clusters, np.stack([counts[:, 1, 1], counts[:, 0, 0]], 1), np.stack([of[:, 1], of[:, 0]], 1)
    )
    low, high = found.wilson_intervals(confidence)
    scored = _predicted_counts(counts, over_all[clusters.group])
    ppr = estimate_clustered_proportions(clusters, scored[:, 1:], scored.sum(-1, keepdims=True)).wilson_intervals(
        confidence
    )
    return {
        "tpr": (low[:, 0], high[:, 0]),
        "tnr": (low[:, 1], high[:, 1]),
        "fpr": (1 - high[:, 1], 1 - low[:, 1]),
        "fnr": (1 - high[:, 0], 1 - low[:, 0]),
        "bacc": mover_proportion_sum(found, np.array([0.5, 0.5]), confidence)[1],
        "ppr": (ppr[0][:, 0], ppr[1][:, 0]),
        "gap": mover_proportion_sum(found, np.array([1.0, -1.0]), confidence)[1],
    }


def confusion_error_rates(confusion_counts: np.ndarray, over_all: np.ndarray) -> FiguresByName:
    """labelled_error_rate (over all labels), predicted_error_rate and bias (= predicted - labelled).

    NaN where undefined. over_all: as in `confusion_rates`, for the predicted error rate.
    """
    labelled = divide_or_undefined(confusion_counts[..., 0, :].sum(-1), confusion_counts[..., :2, :].sum((-1, -2)))
    scored = _predicted_counts(confusion_counts, over_all)
    predicted = divide_or_undefined(scored[..., 0], scored.sum(-1))
    return {"labelled_error_rate": labelled, "predicted_error_rate": predicted, "bias": predicted - labelled}


def bound_error_rates_over_unscored_claims(confusion_counts: np.ndarray) -> EndsByName:
    """The least and greatest value of each of `confusion_error_rates` over all ways to score what is unscored."""
    labelled = divide_or_undefined(confusion_counts[..., 0, :].sum(-1), confusion_counts[..., :2, :].sum((-1, -2)))
    low, high = _bound_share_of_predicted_class(_counts_with_unscored(confusion_counts), 0)
    return {
        "labelled_error_rate": (labelled, labelled),
        "predicted_error_rate": (low, high),
        "bias": (low - labelled, high - labelled),
    }


def estimate_labelled_and_predicted_error_rates(clusters: ClusterCounts, over_all: np.ndarray) -> ClusteredProportions:
    """The labelled and the predicted error rate of each group, as shares: (G, 2)."""
    counts = clusters.counts.reshape(-1, 3, 3)
    scored = _predicted_counts(counts, over_all[clusters.group])
    return estimate_clustered_proportions(
        clusters,
        np.stack([counts[:, 0].sum(-1), scored[:, 0]], 1),
        np.stack([counts[:, :2].sum((-1, -2)), scored.sum(-1)], 1),
    )


def confusion_error_rate_intervals(clusters: ClusterCounts, over_all: np.ndarray, confidence: float) -> EndsByName:
    """The interval of each of `confusion_error_rates`.

    Bias is the difference of two shares of discordant claims, of what is labelled and scored; where labelled claims
    are unscored, its interval is moved to the bias over all labels.
    """
    rates = estimate_labelled_and_predicted_error_rates(clusters, over_all)
    both = clusters.counts.reshape(-1, 3, 3)[:, :2, :2]
    n = both.sum((-1, -2))
    low, high = rates.wilson_intervals(confidence)
    apart = estimate_clustered_proportions(clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), np.stack([n, n], 1))
    difference, (below, above) = error_balance_interval(apart, confidence)
    moved = rates.point[:, 1] - rates.point[:, 0] - difference
    # No farther than both rates could be, each at the end of its own interval: MOVER for rates that move oppositely.
    below, above = np.maximum(below + moved, low[:, 1] - high[:, 0]), np.minimum(above + moved, high[:, 1] - low[:, 0])
    return {
        "labelled_error_rate": (low[:, 0], high[:, 0]),
        "predicted_error_rate": (low[:, 1], high[:, 1]),
        "bias": (np.maximum(below, -1), np.minimum(above, 1)),
    }


#: With fewer clusters that are judged wrongly on balance, the t test of a bias is checked by an exact one.
FEWEST_CLUSTERS_FOR_T_TEST = 20


def confusion_error_bias_p_values(clusters: ClusterCounts, bias: np.ndarray, confidence: float) -> FiguresByName:
    """``p_bias`` of each group, two-sided, of no bias; and the ``n_clusters`` that it rests on.

    The test that the interval of `confusion_error_rate_intervals` inverts. Where fewer than
    `FEWEST_CLUSTERS_FOR_T_TEST` clusters have more errors predicted than labelled, or fewer, also the exact sign test
    of these clusters; the greater p-value then.
    """
    both = clusters.counts.reshape(-1, 3, 3)[:, :2, :2]
    n = both.sum((-1, -2))
    apart = estimate_clustered_proportions(clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), np.stack([n, n], 1))
    difference, (low, high) = error_balance_interval(apart, confidence)
    n_clusters = apart.n_clusters[:, 0]
    half_width = np.where(bias > 0, difference - low, high - difference)  # on the side of no bias
    p = p_value_of_interval(np.abs(bias), half_width, n_clusters - 1, confidence)
    net = both[:, 1, 0] - both[:, 0, 1]
    more, fewer = (np.bincount(clusters.group, (net * side > 0) * clusters.times, len(p)) for side in (1, -1))
    few = more + fewer < FEWEST_CLUSTERS_FOR_T_TEST
    return {"p_bias": np.where(few, np.maximum(p, sign_test_p(more, fewer)), p), "n_clusters": n_clusters}


def add_confusion_bounds_and_intervals(
    figures: FiguresByName, bounds: EndsByName, intervals: EndsByName | None
) -> FiguresByName:
    """Figures with ``_min`` and ``_max`` beside them and, where there are intervals, ``_low`` and ``_high``."""
    found: FiguresByName = {}
    for key, values in figures.items():
        found |= {key: values, f"{key}_min": bounds[key][0], f"{key}_max": bounds[key][1]}
    if intervals is not None:
        for key in figures:
            found |= {f"{key}_low": intervals[key][0], f"{key}_high": intervals[key][1]}
    return found


def _predicted_counts(counts: np.ndarray, over_all: np.ndarray) -> np.ndarray:
    """(..., 2): predicted 0 and predicted 1, of the labelled or (where ``over_all``) of all."""
    return np.where(over_all[..., None], counts.sum(-2), counts[..., :2, :].sum(-2))[..., :2]


def _counts_with_unscored(counts: np.ndarray) -> np.ndarray:
    """(..., 3): predicted 0, predicted 1, unscored, of the labelled or (where there is none) of all."""
    labelled = counts[..., :2, :].sum(-2)
    return np.where(labelled.sum(-1, keepdims=True) > 0, labelled, counts.sum(-2))


def _bound_share_of_predicted_class(row: np.ndarray, prediction: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the share of ``prediction`` in (..., 3) counts of predicted 0, predicted 1, unscored."""
    total = row.sum(-1)
    return divide_or_undefined(row[..., prediction], total), divide_or_undefined(
        row[..., prediction] + row[..., -1], total
    )
