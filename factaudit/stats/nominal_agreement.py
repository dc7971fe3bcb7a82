"""Agreement of annotators on labels 1 and 0: percent, Cohen's κ, Krippendorff's α, with bootstrap intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

COEFFICIENTS = ("percent", "kappa", "alpha")


@dataclass(frozen=True)
class AgreementCoefficient:
    """A coefficient and its interval; NaN: the value where all labels are the same, the ends where nothing varies."""

    value: float
    low: float
    high: float


def nominal_agreement(
    labels: np.ndarray,
    clusters: np.ndarray,
    random: np.random.Generator,
    n_replicates: int = 2000,
    confidence: float = 0.95,
) -> tuple[int, dict[str, AgreementCoefficient]]:
    """The number of claims with two labels or more, and on them each coefficient; none where there is no such claim.

    labels: float64 (claims, annotators), 1, 0 or NaN where missing; clusters: (claims,), the document of each.
    percent: the share of pairs of labels that agree; kappa: Cohen 1960, of two annotators only; alpha: Krippendorff
    2011, nominal. Intervals are percentiles over resampled documents.

    >>> labels = np.array([[1.0, 1], [1, 0], [0, 0], [0, 0], [1, np.nan]])
    >>> n, found = nominal_agreement(labels, np.arange(5), np.random.default_rng(0))
    >>> n, found["percent"].value, found["kappa"].value, round(found["alpha"].value, 3)
    (4, 0.75, 0.5, 0.533)
    """
    ones, total = np.nansum(labels, axis=1), (~np.isnan(labels)).sum(1)
    twice = total > 1
    ones, total, labels, clusters = ones[twice], total[twice], labels[twice], clusters[twice]
    if not len(ones):
        return 0, {}
    is_pair = labels.shape[1] == 2
    # Only how many of how many labels are 1 matters (and, for κ, whose): a document is its number of claims of each
    # such pattern, and documents with the same numbers are drawn together.
    patterns, pattern = np.unique(np.column_stack([ones, total, labels[:, 0]]), axis=0, return_inverse=True)
    _, cluster = np.unique(clusters, return_inverse=True)
    n_clusters = int(cluster.max()) + 1
    by_cluster = np.zeros((n_clusters, len(patterns)), dtype=np.int64)
    np.add.at(by_cluster, (cluster, pattern.ravel()), 1)
    kinds, times = np.unique(by_cluster, axis=0, return_counts=True)
    counts = by_cluster.sum(0)
    drawn = random.multinomial(n_clusters, times / n_clusters, size=n_replicates) @ kinds
    observed = _nominal_agreement_coefficients(patterns, counts[None], is_pair)
    replicates = _nominal_agreement_coefficients(patterns, drawn, is_pair)
    tail = (1 - confidence) / 2
    found = {}
    for name, (value,) in observed.items():
        defined = replicates[name][~np.isnan(replicates[name])]
        low = high = np.nan
        if not np.isnan(value) and len(kinds) > 1 and len(defined) >= n_replicates / 2:
            low, high = np.quantile(defined, [tail, 1 - tail])
        found[name] = AgreementCoefficient(float(value), float(np.minimum(low, value)), float(np.maximum(high, value)))
    return len(ones), found


def _nominal_agreement_coefficients(patterns: np.ndarray, counts: np.ndarray, is_pair: bool) -> dict[str, np.ndarray]:
    """Coefficients (R,) from (R, patterns) numbers of claims; columns of a pattern: ones, labels, first label."""
    ones, total, first = patterns.T
    # Pairs of labels within a claim, each weighing 1 / (labels − 1), as in Krippendorff's coincidence matrix.
    differ = counts @ (2 * ones * (total - ones) / (total - 1))
    n, n_ones = counts @ total, counts @ ones
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = 2 * n_ones * (n - n_ones) / (n - 1)
        percent = 1 - counts @ (2 * ones * (total - ones) / (total * (total - 1))) / counts.sum(1)
        alpha = np.where(expected > 0, 1 - differ / expected, np.nan)
        if not is_pair:
            return {"percent": percent, "alpha": alpha}
        claims = counts.sum(1)
        a, b = counts @ first / claims, counts @ (ones - first) / claims
        chance = a * b + (1 - a) * (1 - b)
        kappa = np.where(chance < 1, (percent - chance) / (1 - chance), np.nan)
    return {"percent": percent, "kappa": kappa, "alpha": alpha}
