"""TPR and TNR over something that is known of each claim: in groups of claims, and as a slope over a number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.arrays.claim_groups import encode_claim_group_column
from factaudit.arrays.judgements import Judgements
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.cluster_jackknife import jackknife_slope_interval
from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.slope_moments import (
    bound_slopes_over_missing,
    compute_slope_moments,
    least_squares_slope,
    slope_moments_by_cluster,
)

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
    each = range(len(judgements.evaluators))
    is_right = [np.where(said < 0, -1, said == label) for said in judgements.prediction]
    sums = np.array([compute_slope_moments(x, is_right[at], codes, n_groups) for at in each]).reshape(-1, n_groups, 5)
    slopes = np.where(sums[..., 0] < MIN_SLOPE_CLAIMS, np.nan, least_squares_slope(sums))
    n_unscored, n_unstated = (
        np.array([np.bincount(codes[(codes >= 0) & (one < 0)], minlength=n_groups) for one in said]).reshape(
            -1, n_groups
        )
        for said in (judgements.prediction, judgements.stated_prediction)
    )
    is_stated_right = [np.where(said < 0, -1, said == label) for said in judgements.stated_prediction]
    bounds = [bound_slopes_over_missing(x, is_stated_right[at], codes, n_groups) for at in each]
    low, high = np.array(bounds).reshape(-1, 2, n_groups).swapaxes(0, 1)
    # Where nothing is missing there is one completion, whatever sums round off.
    low, high = (np.where((n_unstated == 0) | np.isnan(slopes), slopes, end) for end in (low, high))
    # The line through what is scored may lead beyond 0 or 1 where a claim is unscored: no completion would.
    figures = {"slope": slopes, "slope_min": np.fmin(low, slopes), "slope_max": np.fmax(high, slopes)}
    n_clusters = None
    if intervals is not None:

        def limit_slopes(at: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            # The sums by cluster of one evaluator at a time: of many claims they are large.
            moments = slope_moments_by_cluster(x, is_right[at], codes, judgements.cluster_codes, n_groups)
            return *jackknife_slope_interval(moments, intervals.confidence), _count_clusters_of_rarer_kind(moments)

        lows, highs, numbers = np.array([limit_slopes(at) for at in each]).reshape(-1, 3, n_groups).swapaxes(0, 1)
        figures |= {"slope_low": lows, "slope_high": highs}
        n_clusters = numbers.astype(np.int64)
    return CovariateRateSlopes(sums[..., 0].astype(np.int64), n_unscored, figures, n_clusters)


def _count_clusters_of_rarer_kind(moments: ClusterCounts) -> np.ndarray:
    n, right = moments.counts[:, 0], moments.counts[:, 2]
    counts = [np.bincount(moments.group, some > 0, moments.n_groups) for some in (right, n - right)]
    return np.minimum(*counts).astype(np.int64)
