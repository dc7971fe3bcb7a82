"""Confidence sequences of a rate or a difference of rates: intervals that hold at every look at growing labels.

A gambler who starts with 1 bets against a supposed value of the figure. Were it the true one, no bet could gain on
average, so the capital would ever reach 20 in at most 5 % of all runs (Ville 1939), however often one looks and
whenever one stops. A confidence sequence holds the values against which the capital has never reached that
(Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables by betting, JRSS B 86).

Labels come in *blocks*. A block is drawn without replacement within strata, n_h labels of the N_h claims of stratum h;
which strata, and how many labels of each, may depend on all earlier labels. Label i of a block is worth
z_i = R + n·u_i·(y_i − f_i)/π_i, where u_i is what a claim adds to the figure, f_i a prediction made without the block,
π_i = n_h/N_h, and R the sum of u·f over the claims not labelled yet. The z_i average to the part of the figure that is
not known yet, m, so that for one λ per block the product of 1 + λ(z_i − m) has a mean of at most 1: in a stratum by
Maclaurin's inequality, since draws without replacement have a product of no greater mean than draws with it (Hoeffding
1963), and over strata by that of the arithmetic and the geometric mean. So it needs neither independent labels nor the
strata's own rates. Several λ, and predictions with and without the model, are bet on with equal parts of the capital.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: The bets are made for a boundary that is reached after so many labels.
BET_HORIZONS = (10.0, 40.0, 160.0)
#: The greatest bet, as a share of the one that could lose everything.
LARGEST_BET = 0.9
#: Supposed values lie so far apart. An interval ends at the nearest one outside it.
NULL_STEP = 0.001
_LABELS_PER_PRODUCT = 32


@dataclass(frozen=True)
class LabelLookBlock:
    """n labels of claims that no earlier block labelled.

    label: float64 (n,), in [0, 1]; predictions: float64 (V, n), V ways to predict the labels without them, each bet on;
    prediction_low, prediction_high: float64 (V, n), the least and the greatest prediction of the claims that might have
    been drawn in its place; coefficient: float64 (n,), what a claim with label 1 adds to the figure; probability:
    float64 (n,), the share of its stratum that was drawn; predicted_rest: float64 (V,), the sum of coefficient ×
    prediction over all claims that no earlier block labelled; known: the sum of coefficient × label over those that one
    did; variance: p(1 − p) of a label, as it is guessed without this block.
    """

    label: np.ndarray
    predictions: np.ndarray
    prediction_low: np.ndarray
    prediction_high: np.ndarray
    coefficient: np.ndarray
    probability: np.ndarray
    predicted_rest: np.ndarray
    known: float
    variance: float

    @property
    def estimate(self) -> float:
        """The figure as this block alone has it, by the last way to predict."""
        worth = self.coefficient * (self.label - self.predictions[-1]) / self.probability
        return float(self.known + self.predicted_rest[-1] + worth.sum())


@dataclass(frozen=True)
class ConfidenceSequence:
    """After each of J blocks: estimate, low, high, float64 (J,); the intervals never grow."""

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray


def confidence_sequence(
    blocks: Sequence[LabelLookBlock], least: float, greatest: float, confidence: float = 0.95
) -> ConfidenceSequence:
    """Intervals of a figure between ``least`` and ``greatest`` that all hold at once with probability ``confidence``.

    Ten blocks of 20 labels of 1,000 claims, 30 % of them errors, and no prediction:

    >>> random = np.random.default_rng(0)
    >>> label = random.permutation(np.repeat([1.0, 0.0], [300, 700]))
    >>> nothing = np.zeros((1, 20))
    >>> blocks = [
    ...     LabelLookBlock(
    ...         label[at : at + 20], nothing, nothing, nothing, np.full(20, 0.001), np.full(20, 20 / (1000 - at)),
    ...         np.zeros(1), 0.001 * label[:at].sum(), 0.2,
    ...     )
    ...     for at in range(0, 200, 20)
    ... ]
    >>> found = confidence_sequence(blocks, 0, 1)
    >>> [f"{low:.2f} to {high:.2f}" for low, high in zip(found.low[[0, 4, 9]], found.high[[0, 4, 9]])]
    ['0.06 to 0.64', '0.23 to 0.51', '0.23 to 0.38']
    """
    null = np.linspace(least, greatest, round((greatest - least) / NULL_STEP) + 1)
    limit = -np.log1p(-confidence)
    most = np.maximum.accumulate(log_betting_capital(blocks, null), axis=0)
    estimates = np.array([block.estimate for block in blocks])
    sizes = np.array([len(block.label) for block in blocks])
    estimate = np.cumsum(estimates * sizes) / np.cumsum(sizes)
    low, high = np.full(len(blocks), least, dtype=np.float64), np.full(len(blocks), greatest, dtype=np.float64)
    for at, capital in enumerate(most):
        kept = np.flatnonzero(capital < limit)
        if not len(kept):  # every value is refuted: an event of probability 1 − confidence at most
            low[at:], high[at:] = low[max(at - 1, 0)], high[max(at - 1, 0)]
            break
        low[at], high[at] = null[max(kept[0] - 1, 0)], null[min(kept[-1] + 1, len(null) - 1)]
    return ConfidenceSequence(np.clip(estimate, low, high), low, high)


def log_betting_capital(blocks: Sequence[LabelLookBlock], null: np.ndarray) -> np.ndarray:
    """The logarithm of the capital after each of J blocks against each of M supposed values: float64 (J, M).

    Half of it bets on more than the value, half on less. 18 of 20 labels of 1,000 claims are 1: against a rate of 0.3
    the capital is 60,000, against one of 0.9 it has shrunk.

    >>> half = np.full((1, 20), 0.5)
    >>> label = np.repeat([1.0, 0.0], [18, 2])
    >>> block = LabelLookBlock(
    ...     label, half, half, half, np.full(20, 0.001), np.full(20, 0.02), np.array([0.5]), 0.0, 0.25
    ... )
    >>> log_betting_capital([block], np.array([0.3, 0.9])).round(1).tolist()
    [[11.0, -0.8]]
    """
    total = np.zeros(())
    found = np.empty((len(blocks), len(null)))
    for at, block in enumerate(blocks):
        total = total + _log_betting_gains_of_block(block, null)
        top = total.max(axis=(0, 1, 2))
        finite = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(invalid="ignore"):
            mean = np.exp(total - finite).mean(axis=(0, 1, 2))
        found[at] = np.where(np.isfinite(top), finite + np.log(mean), top)
    return found


def log_directional_capital(blocks: Sequence[LabelLookBlock], null: float, is_above: bool) -> np.ndarray:
    """The logarithm of the greatest capital so far, after each block, of bets that the figure is above (else below)
    ``null``: float64 (J,), at least 0.

    The figure is not above it in at most 1/capital of all runs. 18 of 20 labels of 1,000 claims are 1:

    >>> half = np.full((1, 20), 0.5)
    >>> label = np.repeat([1.0, 0.0], [18, 2])
    >>> block = LabelLookBlock(
    ...     label, half, half, half, np.full(20, 0.001), np.full(20, 0.02), np.array([0.5]), 0.0, 0.25
    ... )
    >>> log_directional_capital([block], 0.3, is_above=True).round(1).tolist()
    [11.7]
    >>> log_directional_capital([block], 0.3, is_above=False).round(1).tolist()
    [0.0]
    """
    total, found = np.zeros(()), []
    for block in blocks:
        total = total + _log_betting_gains_of_block(block, np.array([null]))[0 if is_above else 1, ..., 0]
        found.append(np.logaddexp.reduce(total, axis=None) - np.log(total.size))
    return np.maximum.accumulate(np.maximum(found, 0.0))


def _log_betting_gains_of_block(block: LabelLookBlock, null: np.ndarray) -> np.ndarray:
    """float64 (2, V, L, M): the log of each bet's gain in this block; infinite where a value is impossible."""
    n = len(block.label)
    scale = n * block.coefficient / block.probability
    rest = null - block.known
    spread = float(np.mean(scale**2)) * block.variance
    wanted = np.sqrt(2 * np.log(40) / (np.array(BET_HORIZONS) * max(spread, 1e-12)))[:, None]
    found = np.empty((2, len(block.predictions), len(wanted), len(null)))
    for way, guess in enumerate(block.predictions):
        worth = block.predicted_rest[way] + scale * (block.label - guess)
        ends = [
            block.predicted_rest[way] + scale * (label - end)
            for label in (0, 1)
            for end in (block.prediction_low[way], block.prediction_high[way])
        ]
        room = rest - np.min(ends), np.max(ends) - rest
        for side, sign in enumerate((1, -1)):
            with np.errstate(divide="ignore"):
                bet = np.minimum(wanted, LARGEST_BET / np.maximum(room[side], 0))
            gains = np.zeros(bet.shape)
            for some in np.array_split(worth, -(-n // _LABELS_PER_PRODUCT)):  # a product of more could overflow
                gains += np.log((1 + sign * bet * (some[:, None, None] - rest)).prod(0))
            found[side, way] = np.where(room[side] >= -1e-12, gains, np.inf)
    return found
