"""Are two classifiers' rates equal? A permutation test that is studentised, so that it tests just that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb

import numpy as np

from factaudit.stats.distinct_rows import count_distinct_rows
from factaudit.stats.random_number_cache import cache_random_numbers, can_cache_random_numbers

#: So many signs at a time: they stay in the processor's cache.
_BLOCK = 1 << 18
#: Up to so many trials a binomial number is made of the first 16 bits of one uniform number, as numpy makes it.
_MOST_TABULATED_COINS = 16
#: So many kinds, and each cluster gets a coin of its own: binomial numbers of many trials take longer.
_MANY_KINDS = 1 << 12
#: Unless so many times as many bytes of coins would be tossed.
_COINS_PAY = 16
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
    """Fair coins, one for each cluster of K kinds, times what each adds (K, J): (rows, J).

    The coins are what ``np.random.default_rng(seed).binomial(times, 0.5, (rows, K))`` gives, but of many kinds those of
    `_sum_coin_flips_by_bits`. Where times are small, all who have the same seed share one stream of uniform numbers,
    which is drawn once where it is not too large.
    """
    size, found = len(times), np.empty((replicates, values_by_kind.shape[1]))
    random, shared = np.random.default_rng(seed), None
    if times.max() <= _MOST_TABULATED_COINS and can_cache_random_numbers(2 * replicates * size):
        shared = _draw_16_bit_uniform_numbers(seed, replicates * size)
    elif size > _MANY_KINDS and (-(-times // 8)).sum() < _COINS_PAY * size:
        return _sum_coin_flips_by_bits(times, replicates, random, values_by_kind)
    once, several = np.where(times[:, None] == 1, values_by_kind, 0), np.flatnonzero(times > 1)
    heads, starts = _tabulate_fair_coin_heads()
    at = starts[np.minimum(times[several], _MOST_TABULATED_COINS)]
    block = max(1, _BLOCK // size)
    for start in range(0, replicates, block):
        part = slice(start, min(start + block, replicates))
        if shared is None:
            found[part] = (
                random.binomial(times, 0.5, size=(part.stop - start, size)).astype(values_by_kind.dtype)
                @ values_by_kind
            )
            continue
        uniform = shared[start * size : part.stop * size].reshape(-1, size)
        found[part] = (uniform >> 15).astype(values_by_kind.dtype) @ once
        if len(several):
            found[part] += heads[at + uniform[:, several]].astype(values_by_kind.dtype) @ values_by_kind[several]
    return found


def _sum_coin_flips_by_bits(
    times: np.ndarray, replicates: int, random: np.random.Generator, values_by_kind: np.ndarray
) -> np.ndarray:
    """`_sum_randomly_signed_clusters` by a bit for each cluster: those of a kind are in bytes of their own."""
    n_bytes = -(-times // 8)
    kind = np.repeat(np.arange(len(times)), n_bytes)
    left = times[kind] - 8 * (np.arange(len(kind)) - (np.cumsum(n_bytes) - n_bytes)[kind])  # from this byte on
    used = ((1 << np.minimum(left, 8)) - 1).astype(np.uint8)
    each, found = values_by_kind[kind], np.empty((replicates, values_by_kind.shape[1]))
    block = max(1, _BLOCK // len(kind))
    for start in range(0, replicates, block):
        some = found[start : start + block]
        coins = np.frombuffer(random.bytes(len(some) * len(kind)), dtype=np.uint8).reshape(len(some), -1)
        some[:] = np.bitwise_count(coins & used).astype(values_by_kind.dtype) @ each
    return found


@cache
def _tabulate_fair_coin_heads() -> tuple[np.ndarray, np.ndarray]:
    """How many of so many fair coins show heads, by the first 16 bits of a uniform number: int8, a table of them for
    each number of coins up to `_MOST_TABULATED_COINS`; and where each begins."""
    tables = [
        np.repeat(np.arange(coins + 1, dtype=np.int8), [comb(coins, hits) << (16 - coins) for hits in range(coins + 1)])
        for coins in range(_MOST_TABULATED_COINS + 1)
    ]
    return np.concatenate(tables), np.arange(_MOST_TABULATED_COINS + 1) << 16


def _draw_16_bit_uniform_numbers(seed: Sequence[int], n: int) -> np.ndarray:
    """uint16 (n,): the first 16 bits of each of n uniform numbers."""

    def make() -> np.ndarray:
        # Some more than asked for: other pairs of evaluators have about as many kinds, and would draw all again.
        more = n + n // 8
        random, found = (
            np.random.default_rng(seed),
            np.empty(more if can_cache_random_numbers(2 * more) else n, dtype=np.uint16),
        )
        for start in range(0, len(found), _BLOCK):
            part = found[start : start + _BLOCK]
            part[:] = random.random(len(part)) * (1 << 16)
        return found

    return cache_random_numbers(tuple(seed), make, n)[:n]
