"""Are two classifiers' rates equal? A permutation test that is studentised, so that it tests just that."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.stats.distinct_rows import count_distinct_rows

#: So many signs at a time: they stay in the processor's cache.
_BLOCK = 1 << 18
#: Of the greatest that a sum of squares could be: less is a 0 on paper and rounding. A variance that is 0 on paper
#: (every cluster gains the same) is taken for this, so that all such replicates are equal.
_ROUNDING = 1e-9


def studentised_permutation_p(
    gains_by_cluster: np.ndarray,
    sizes_by_cluster: np.ndarray,
    weights: np.ndarray,
    seed: Sequence[int],
    replicates: int,
    times: np.ndarray | None = None,
) -> float | None:
    """Two-sided p-value of "the sum over j of weights_j * (sum of gains_j / sum of sizes_j) is 0".

    gains_by_cluster: whole (C, J), in each cluster by how many units a is right more often than b, in each class;
    sizes_by_cluster: whole (C, J), its units of each class; weights: (J,); times: (C,), how many clusters each row
    stands for (None: one). None where a class is empty, or there are fewer than two clusters.

    To swap the two classifiers' predictions in a cluster turns the sign of its gains. That the *difference* exceeds
    those of random swaps is a test of "the two say the same", and rejects because of TPR and TNR apart, even where
    balanced accuracy is equal. Divided by its linearised standard error in each permutation the difference tests equal
    rates (Chung & Romano 2013; for pairs Konietschke & Pauly 2014).

    >>> gains = np.array([[1, 0], [0, 1], [2, 0], [0, -1], [1, 1], [1, 0], [0, 1], [1, 0]])
    >>> studentised_permutation_p(gains, np.full((8, 2), 5), np.array([0.5, 0.5]), seed=[1], replicates=999)
    0.052
    """
    kinds, times = count_distinct_rows(
        np.concatenate([gains_by_cluster, sizes_by_cluster], axis=1).astype(np.int64), times
    )
    width = gains_by_cluster.shape[1]
    gain, size = kinds[:, :width], kinds[:, width:]
    total = times @ size
    if times.sum() < 2 or (total == 0).any():
        return None
    if not gain.any():
        return 1.0
    per_claim = weights / total
    scaled = gain @ per_claim  # what a cluster adds to the difference
    if abs(times @ scaled) <= 1e-12 * (times @ np.abs(scaled)):
        return 1.0  # no difference on paper: no replicate has less
    square = times @ scaled**2  # a sign leaves a cluster's square as it is
    products = (size * times[:, None]).T @ size
    # What signs are summed with: gains, and each class's gains times each class's claims, all whole numbers.
    stacked = np.concatenate([gain, (gain[:, :, None] * size[:, None, :]).reshape(len(gain), -1)], axis=1)
    whole = stacked.T @ times
    # In the narrower type sums of whole numbers are exact, too, where they are small enough.
    exact = np.float32 if (np.abs(stacked).T @ times).max() < 1 << 24 else np.float64

    def statistic(sums: np.ndarray) -> np.ndarray:
        """(b, J + J * J) sums of the signed clusters -> (b,)."""
        gained, sized = sums[:, :width], per_claim @ sums[:, width:].reshape(-1, width, width)
        fitted = gained / total * per_claim  # what each claim of a class would add
        variance = square - 2 * (sized * fitted).sum(1) + np.einsum("bj,jk,bk->b", fitted, products, fitted)
        with np.errstate(divide="ignore"):
            return np.abs(gained @ per_claim) / np.sqrt(np.maximum(variance, _ROUNDING * square))

    observed = statistic(whole[None, :].astype(np.float64))[0]
    # Of each kind's clusters those with a plus; the others have a minus.
    plus = _sum_randomly_signed_clusters(times, replicates, seed, stacked.astype(exact))
    # Sums in another order differ in the last bits: what is equal on paper must count as equal.
    extreme = int((statistic(2 * plus - whole) >= observed * (1 - 1e-9)).sum())
    return float((1 + extreme) / (1 + replicates))


def _sum_randomly_signed_clusters(
    times: np.ndarray, replicates: int, seed: Sequence[int], values_by_kind: np.ndarray
) -> np.ndarray:
    """Fair coins, one for each cluster of K kinds, times what each adds (K, J): (replicates, J)."""
    random, found = np.random.default_rng(seed), np.empty((replicates, values_by_kind.shape[1]))
    block = max(1, _BLOCK // len(times))
    for start in range(0, replicates, block):
        part = found[start : start + block]
        part[:] = random.binomial(times, 0.5, (len(part), len(times))).astype(values_by_kind.dtype) @ values_by_kind
    return found
