"""Agreement: intersection over union and Cohen's kappa of two raters by clusters, Krippendorff's alpha of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    IntervalEnds,
    estimate_clustered_proportions,
    wilson_interval,
)
from factaudit.stats.undefined_values import divide_or_undefined


def intersection_over_union_interval(
    clusters: ClusterCounts, table: np.ndarray, class_index: int, confidence: float
) -> IntervalEnds:
    """The interval of the intersection over union of two raters' sets: (G,) each, Wilson's on the share of the union.

    table: (k, 2, 2), a row for each of ``clusters``: its units by a's and b's answer (0 or 1). class_index: whose set.

    >>> from factaudit.stats.clustered_proportions import ClusterCounts
    >>> table = np.array([[[4, 1], [0, 5]], [[2, 2], [1, 5]]])
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([20, 20]), table.reshape(2, 4), n_groups=1)
    >>> low, high = intersection_over_union_interval(counts, table, class_index=0, confidence=0.95)  # IoU is 6 / 10
    >>> round(low.item(), 3), round(high.item(), 3)
    (0.529, 0.667)
    """
    both = table[:, class_index, class_index]
    union = both + table[:, class_index, 1 - class_index] + table[:, 1 - class_index, class_index]
    low, high = estimate_clustered_proportions(clusters, both[:, None], union[:, None]).wilson_intervals(confidence)
    return low[:, 0], high[:, 0]


def kappa_interval(clusters: ClusterCounts, table: np.ndarray, confidence: float) -> IntervalEnds:
    """The interval of Cohen's kappa = 1 - disagreement / (disagreement expected by chance): (G,) each.

    table: (k, 2, 2), as in `intersection_over_union_interval`. Wilson's interval of the disagreement, on the number of
    units that kappa's own linearised variance is worth (the expected disagreement is estimated, too). NaN where no
    disagreement is expected, and where a or b answers the same everywhere: kappa then cannot vary.

    >>> from factaudit.stats.clustered_proportions import ClusterCounts
    >>> table = np.array([[[4, 1], [0, 5]], [[2, 2], [1, 5]]])
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([20, 20]), table.reshape(2, 4), n_groups=1)
    >>> low, high = kappa_interval(counts, table, confidence=0.95)
    >>> round(low.item(), 3), round(high.item(), 3)
    (0.49, 0.67)
    """
    n = table.sum((1, 2))
    apart = table[:, 0, 1] + table[:, 1, 0]
    share = estimate_clustered_proportions(clusters, apart[:, None], n[:, None])
    total = clusters.sum_by_group(n)
    rate = divide_or_undefined(clusters.sum_by_group(table), total[:, None, None])
    a, b = rate.sum(2), rate.sum(1)  # (G, 2): how often each says 0, 1
    chance = 1 - (a * b).sum(1)  # the disagreement that chance would make
    disagreement = share.point[:, 0]
    # d kappa = -(dD E - D dE) / E^2, and E = 1 - sum of a_k b_k
    group = clusters.group
    expected = 2 * (1 - chance)[group] * n - (table.sum(2) * b[group] + table.sum(1) * a[group]).sum(1)
    with np.errstate(invalid="ignore"):
        influence = (apart - disagreement[group] * n) * chance[group] - disagreement[group] * expected
        alone = (apart - disagreement[group] * n) * chance[group]
    worth = divide_or_undefined(clusters.sum_by_group(alone * alone), clusters.sum_by_group(influence * influence))
    worth[np.isnan(worth)] = 1
    worth[has_constant_rater(rate)] = np.nan
    effective = share.effective_n[:, 0] * worth
    low, high = wilson_interval(disagreement, effective, share.n_clusters[:, 0] - 1, confidence)
    return 1 - divide_or_undefined(high, chance), 1 - divide_or_undefined(low, chance)


def has_constant_rater(table: np.ndarray) -> np.ndarray:
    """Whether a or b answers the same everywhere: bool (...), from units (..., 2, 2) by a's and b's answer.

    >>> has_constant_rater(np.array([[5, 0], [3, 0]])).item()
    True
    """
    return ((table.sum(-1) == 0) | (table.sum(-2) == 0)).any(-1)


def krippendorff_alpha(values_by_unit: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's α for nominal data (Krippendorff 2011): 1 - observed / expected disagreement.

    values_by_unit: of each unit the values that it was given, missing ones left out; a unit with one value does not
    count. None where there are no pairs, or only one value in all.

    >>> krippendorff_alpha([["a", "a"], ["b", "b"]])
    1.0
    """
    totals: Counter[Hashable] = Counter()
    agreed = 0.0
    for values in values_by_unit:
        if len(values) < 2:
            continue
        counts = Counter(values)
        totals.update(counts)
        agreed += sum(n * (n - 1) for n in counts.values()) / (len(values) - 1)
    n = totals.total()
    expected = n * (n - 1) - sum(count * (count - 1) for count in totals.values())
    if n < 2 or expected == 0:
        return None
    return 1 - (n - agreed) * (n - 1) / expected
