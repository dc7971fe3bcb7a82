"""Are two evaluators' rates equal? A permutation test that is studentised, so that it tests just that."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.rows import ratio


def studentised_p(
    gains: np.ndarray, sizes: np.ndarray, weights: np.ndarray, random: np.random.Generator, replicates: int
) -> float | None:
    """Two-sided p-value of "sum over j of weights_j * (sum of gains_j / sum of sizes_j) is 0"; None where undefined.

    gains: (C, J), of each cluster what a is right more often than b, per class; sizes: (C, J), its claims per class.

    To swap the two evaluators' predictions in a cluster turns the sign of its gains. That the *difference* of BAcc
    exceeds those of random swaps is a test of "the two say the same", and rejects or not because of TPR and TNR apart,
    even where BAcc is equal. Divided by its linearised standard error in each permutation the difference tests equal
    rates (Chung & Romano 2013; for pairs Konietschke & Pauly 2014).
    """
    total = sizes.sum(0)
    if len(gains) < 2 or (total[weights != 0] == 0).any():
        return None

    def statistic(signs: np.ndarray) -> np.ndarray:
        """Of (b, C) signs: (b,)."""
        mean = ratio(signs @ gains, total)  # (b, J)
        scaled = ratio(gains, total) * weights
        square = (scaled.sum(1) ** 2).sum()  # a sign leaves a cluster's square as it is
        fitted = mean * weights / total  # what each claim of a class would add
        cross = np.einsum("bc,cj,bj->b", signs * scaled.sum(1), sizes, fitted)
        model = np.einsum("bj,jk,bk->b", fitted, sizes.T @ sizes, fitted)
        variance = np.maximum(square - 2 * cross + model, 0)
        return ratio(mean @ weights, np.sqrt(variance))

    observed = abs(statistic(np.ones((1, len(gains))))[0])
    if np.isnan(observed):  # no cluster gains anything, or all of them the same
        return 1.0 if not gains.any() else None
    extreme = 0
    block = max(1, (1 << 22) // len(gains))
    for start in range(0, replicates, block):
        signs = random.integers(0, 2, (min(block, replicates - start), len(gains))) * 2.0 - 1
        # Sums in another order differ in the last bits: what is equal on paper must count as equal.
        extreme += int((np.nan_to_num(np.abs(statistic(signs)), nan=np.inf) >= observed * (1 - 1e-9)).sum())
    return (1 + extreme) / (1 + replicates)
