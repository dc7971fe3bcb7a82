"""Are two evaluators' rates equal? A permutation test that is studentised, so that it tests just that."""

from __future__ import annotations

from math import comb

import numpy as np

from factaudit.audit.core.kinds import distinct

#: So many signs at a time: they stay in the processor's cache.
_BLOCK = 1 << 18
#: Up to so many trials numpy draws a binomial number by inverting one uniform number.
_INVERTED = 60
#: Of the greatest that a sum of squares could be: less is a 0 on paper and rounding. A variance that is 0 on paper
#: (every cluster gains the same) is taken for this, so that all such replicates are equal.
_ROUNDING = 1e-9


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
    if abs(times @ scaled) <= 1e-12 * (times @ np.abs(scaled)):
        return 1.0  # no difference on paper: no replicate has less
    square = times @ scaled**2  # a sign leaves a cluster's square as it is
    products = (size * times[:, None]).T @ size

    stacked = np.column_stack([scaled, gain, scaled[:, None] * size])

    def statistic(signs: np.ndarray) -> np.ndarray:
        """(b, kinds) sums of the signs of each kind's clusters -> (b,)."""
        difference, gained, sized = np.split(signs @ stacked, [1, 1 + len(total)], axis=1)
        fitted = gained / total * per_claim  # what each claim of a class would add
        variance = square - 2 * (sized * fitted).sum(1) + np.einsum("bj,jk,bk->b", fitted, products, fitted)
        with np.errstate(divide="ignore"):
            return np.abs(difference[:, 0]) / np.sqrt(np.maximum(variance, _ROUNDING * square))

    observed = statistic(times[None, :].astype(np.float64))[0]
    extreme = 0
    block = max(1, _BLOCK // len(times))
    for start in range(0, replicates, block):
        kept = _halves(times, min(block, replicates - start), random)
        # Sums in another order differ in the last bits: what is equal on paper must count as equal.
        extreme += int((statistic(2 * kept - times) >= observed * (1 - 1e-9)).sum())
    return float((1 + extreme) / (1 + replicates))


def _halves(times: np.ndarray, rows: int, random: np.random.Generator) -> np.ndarray:
    """What ``random.binomial(times, 0.5, (rows, K))`` gives, as float64, in half the time where times are small."""
    if times.max() > _INVERTED:
        return random.binomial(times, 0.5, size=(rows, len(times))).astype(np.float64)
    uniform = random.random((rows, len(times)))
    kept = (uniform > 0.5).astype(np.float64)  # of one trial, which is most clusters
    for trials in np.unique(times[times > 1]).tolist():
        below = np.cumsum([comb(trials, hits) for hits in range(trials)]) / 2.0**trials
        at = np.flatnonzero(times == trials)
        kept[:, at] = np.searchsorted(below, uniform[:, at])
    return kept
