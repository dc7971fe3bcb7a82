"""How far two evaluators find the same claims (IoU, Cohen's kappa), and how far annotators agree (alpha)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from factaudit.audit.core.rows import ratio
from factaudit.audit.core.shares import Clusters, Limits, shares, wilson


def iou_limits(clusters: Clusters, table: np.ndarray, cls: int, confidence: float) -> Limits:
    """IoU is a share of the union: (G,) each. table: (k, 2, 2), claims by a's and b's prediction in each cluster."""
    both = table[:, cls, cls]
    union = both + table[:, cls, 1 - cls] + table[:, 1 - cls, cls]
    low, high = shares(clusters, both[:, None], union[:, None]).limits(confidence)
    return low[:, 0], high[:, 0]


def kappa_limits(clusters: Clusters, table: np.ndarray, confidence: float) -> Limits:
    """Kappa = 1 - disagreement / (disagreement expected by chance): (G,) each.

    NaN where no disagreement is expected, and where a or b says the same of every claim: kappa then cannot vary.

    Wilson's interval of the disagreement, on the number of claims that kappa's own linearised variance is worth (the
    expected disagreement is estimated, too).
    """
    n = table.sum((1, 2))
    apart = table[:, 0, 1] + table[:, 1, 0]
    share = shares(clusters, apart[:, None], n[:, None])
    total = clusters.total(n)
    rate = ratio(clusters.total(table), total[:, None, None])
    a, b = rate.sum(2), rate.sum(1)  # (G, 2): how often each says 0, 1
    chance = 1 - (a * b).sum(1)  # the disagreement that chance would make
    disagreement = share.point[:, 0]
    # d kappa = -(dD E - D dE) / E^2, and E = 1 - sum of a_k b_k
    group = clusters.group
    expected = 2 * (1 - chance)[group] * n - (table.sum(2) * b[group] + table.sum(1) * a[group]).sum(1)
    with np.errstate(invalid="ignore"):
        influence = (apart - disagreement[group] * n) * chance[group] - disagreement[group] * expected
        alone = (apart - disagreement[group] * n) * chance[group]
    worth = ratio(clusters.total(alone * alone), clusters.total(influence * influence))
    worth[np.isnan(worth)] = 1
    worth[is_constant(rate)] = np.nan
    effective = share.effective_n[:, 0] * worth
    low, high = wilson(disagreement, effective, share.n_clusters[:, 0] - 1, confidence)
    return 1 - ratio(high, chance), 1 - ratio(low, chance)


def is_constant(table: np.ndarray) -> np.ndarray:
    """Whether a or b says the same of every claim: bool (...) of claims (..., 2, 2) by a's and b's prediction."""
    return ((table.sum(-1) == 0) | (table.sum(-2) == 0)).any(-1)


def krippendorff_alpha(units: Iterable[Sequence[Hashable]]) -> float | None:
    """Krippendorff's α for nominal data (Krippendorff 2011): 1 - observed / expected disagreement.

    units: of each unit the values that it was given, missing ones left out; a unit with one value does not count.
    None where there are no pairs, or only one value in all.

    >>> krippendorff_alpha([["a", "a"], ["b", "b"]])
    1.0
    """
    totals: Counter[Hashable] = Counter()
    agreed = 0.0
    for values in units:
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
