"""Are two evaluators' rates equal? A permutation test that is studentised, so that it tests just that."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.kinds import distinct

#: Keeps a variance that is 0 on paper (every cluster gains the same) from being smaller still.
_ROUNDING = 1e-12


def studentised_p(
    gains: np.ndarray,
    sizes: np.ndarray,
    weights: np.ndarray,
    random: np.random.Generator,
    replicates: int,
    times: np.ndarray | None = None,
) -> float | None:
    """Two-sided p-value of "the sum over j of weights_j * (sum of gains_j / sum of sizes_j) is 0".

    gains: (C, J), of each cluster what a is right more often than b, per class; sizes: (C, J), its claims per class;
    times: (C,), how many clusters each stands for (None: one). None where a class is empty, or there are fewer than two
    clusters.

    To swap the two evaluators' predictions in a cluster turns the sign of its gains. That the *difference* of BAcc
    exceeds those of random swaps is a test of "the two say the same", and rejects or not because of TPR and TNR apart,
    even where BAcc is equal. Divided by its linearised standard error in each permutation the difference tests equal
    rates (Chung & Romano 2013; for pairs Konietschke & Pauly 2014).
    """
    kinds, times = distinct(np.concatenate([gains, sizes], axis=1), times)
    gain, size = kinds[:, : gains.shape[1]], kinds[:, gains.shape[1] :]
    total = times @ size
    if times.sum() < 2 or (total == 0).any():
        return None
    if not gain.any():
        return 1.0
    per_claim = weights / total
    scaled = gain @ per_claim  # what a cluster adds to the difference
    square = times @ scaled**2  # a sign leaves a cluster's square as it is
    products = (size * times[:, None]).T @ size

    def statistic(signs: np.ndarray) -> np.ndarray:
        """(b, kinds) sums of the signs of each kind's clusters -> (b,)."""
        fitted = signs @ gain / total * per_claim  # what each claim of a class would add
        cross = ((signs @ (scaled[:, None] * size)) * fitted).sum(1)
        variance = square - 2 * cross + np.einsum("bj,jk,bk->b", fitted, products, fitted)
        difference = signs @ scaled
        with np.errstate(divide="ignore"):
            return np.abs(difference) / np.sqrt(np.maximum(variance, 0) + _ROUNDING * square)

    observed = statistic(times[None, :].astype(np.float64))[0]
    kept = random.binomial(times, 0.5, size=(replicates, len(times)))
    # Sums in another order differ in the last bits: what is equal on paper must count as equal.
    extreme = (statistic(2.0 * kept - times) >= observed * (1 - 1e-9)).sum()
    return float((1 + extreme) / (1 + replicates))
