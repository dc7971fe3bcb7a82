"""TPR and TNR over something that is known of each claim: in groups of claims, and as a slope over a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.arrays.claim_groups import encode_claim_group_column
from factaudit.arrays.judgements import Judgements
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS, interval, slope, slope_bounds

#: Each rate with the label of its class.
RATE_LABELS = {"tpr": 1, "tnr": 0}
RATE_CLASS_NAMES = {"tpr": "attributable", "tnr": "unattributable"}


def encode_task_groups(judgements: Judgements) -> tuple[np.ndarray, list[str]]:
    """The task of each claim, its dataset where it has none: int64 (n,) codes into the sorted names."""
    task, dataset = (judgements.claims[column].astype(object) for column in ("task", "dataset"))
    named = task.where(task.notna(), dataset)
    return encode_claim_group_column(named.to_frame("task"), "task")


#: A line through fewer claims says nothing: two of them gave a slope of -866 points.
MIN_SLOPE_CLAIMS = 10


@dataclass(frozen=True)
class CovariateRateSlopes:
    """The slopes of one rate over a number x: of E evaluators in G groups.

    n, n_unscored: int64 (E, G), scored and unscored claims of the rate's class; figures: ``slope`` with ``_min``,
    ``_max`` and, with intervals, ``_low`` and ``_high``, float64 (E, G), NaN where undefined; n_clusters: int64 (E, G),
    those that have a verdict of the rarer kind (right or wrong), which say how the others vary; None without intervals.
    """

    n: np.ndarray
    n_unscored: np.ndarray
    figures: dict[str, np.ndarray]
    n_clusters: np.ndarray | None = None


def compute_covariate_rate_slopes(
    judgements: Judgements,
    x: np.ndarray,
    codes: np.ndarray,
    n_groups: int,
    label: int,
    intervals: ClusterBootstrap | None,
) -> CovariateRateSlopes:
    """How much TPR (label 1) or TNR (label 0) changes with x: ordinary least squares of "the prediction is right".

    x: float (n,); codes: int (n,), the group of each claim of the class, -1 for none (and for a claim without x).
    """
    shape = len(judgements.evaluators), n_groups
    names = ("slope", "slope_min", "slope_max", "slope_low", "slope_high")
    figures = {name: np.full(shape, np.nan) for name in names[: 5 if intervals is not None else 3]}
    n, n_unscored, n_clusters = np.zeros((3, *shape), dtype=np.int64)
    for group in range(n_groups):
        rows = np.flatnonzero(codes == group)
        # In an order of their own, so that sums do not depend on that of the table.
        rows = rows[np.lexsort([judgements.cluster_codes[rows], x[rows]])]
        for at, (said, stated) in enumerate(zip(judgements.prediction, judgements.stated_prediction, strict=True)):
            place, known = (at, group), rows[said[rows] >= 0]
            n[place], n_unscored[place] = len(known), len(rows) - len(known)
            if len(known) < MIN_SLOPE_CLAIMS:
                continue
            is_right, cluster = said[known] == label, judgements.cluster_codes[known]
            line = slope(x[known], is_right.astype(np.float64))
            low = high = line.point
            if (stated[rows] < 0).any() and not np.isnan(line.point):
                low, high = slope_bounds(x[rows], np.where(stated[rows] < 0, np.nan, stated[rows] == label))
            # The line through what is scored may lead beyond 0 or 1 where a claim is unscored: no completion would.
            found = [line.point, np.fmin(low, line.point), np.fmax(high, line.point)]
            if intervals is not None:
                found += interval(line, cluster, confidence=intervals.confidence, min_clusters=MIN_CLUSTERS)
                n_clusters[place] = min(len(np.unique(cluster[which])) for which in (is_right, ~is_right))
            for name, value in zip(figures, found, strict=True):
                figures[name][place] = value
    return CovariateRateSlopes(n, n_unscored, figures, None if intervals is None else n_clusters)
