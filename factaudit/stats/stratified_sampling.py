"""Stratified sampling in phases: draws, the mean they estimate, label weights, design effects (Cochran 1977).

A draw has *phases*. Each phase draws within strata from the claims that were not drawn before, and may look at the
labels so far. So each phase gives an unbiased estimate by itself: the claims drawn before are known, and the mean of
the others is the weighted mean over the strata. The errors of the phases are uncorrelated; the estimates are averaged
in proportion to their labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Labels' worth of the model's variance that a stratum's own is shrunk by.
VARIANCE_PRIOR_LABELS = 2.0


@dataclass(frozen=True)
class StratifiedDraw:
    """n drawn claims of N.

    rows: int (n,), positions among the N; phase: int (n,), from 0; stratum: int (n,), codes unique over phases and
    systems (a stratum lies in one system); frame_size: (n,), how many claims the stratum held when the phase began.

    >>> draw = StratifiedDraw(np.array([3, 5, 8]), np.zeros(3, int), np.array([0, 0, 1]), np.array([10, 10, 4]))
    >>> draw.inclusion_probability.tolist()
    [0.2, 0.2, 0.25]
    """

    rows: np.ndarray
    phase: np.ndarray
    stratum: np.ndarray
    frame_size: np.ndarray

    @property
    def inclusion_probability(self) -> np.ndarray:
        """float64 (n,): the share of each claim's stratum that its phase drew."""
        _, code, times = np.unique(self.stratum, return_inverse=True, return_counts=True)
        probability: np.ndarray = times[code] / self.frame_size
        return probability

    def select(self, mask: np.ndarray) -> StratifiedDraw:
        """The drawn claims where ``mask``, bool (n,), is true."""
        return StratifiedDraw(self.rows[mask], self.phase[mask], self.stratum[mask], self.frame_size[mask])

    def append(self, later_draw: StratifiedDraw) -> StratifiedDraw:
        """This draw and a later one together; the later one's strata get new codes."""
        shift = self.stratum.max(initial=-1) + 1
        return StratifiedDraw(
            np.concatenate([self.rows, later_draw.rows]),
            np.concatenate([self.phase, later_draw.phase]),
            np.concatenate([self.stratum, later_draw.stratum + shift]),
            np.concatenate([self.frame_size, later_draw.frame_size]),
        )


def assume_simple_random_draw(is_labelled: np.ndarray, system: np.ndarray) -> StratifiedDraw:
    """Take labels of unknown origin as a simple random draw within each system: one phase, one stratum per system.

    is_labelled: bool (N,); system: int (N,), codes from 0.

    >>> draw = assume_simple_random_draw(np.array([True, False, True, True]), np.array([0, 0, 0, 1]))
    >>> draw.rows.tolist(), draw.frame_size.tolist()
    ([0, 2, 3], [3, 3, 1])
    """
    rows = np.flatnonzero(is_labelled)
    return StratifiedDraw(rows, np.zeros(len(rows), dtype=np.int64), system[rows], np.bincount(system)[system[rows]])


@dataclass(frozen=True)
class StratifiedMean:
    """An estimated mean over one system's claims, its sampling variance, and the number of labels it rests on."""

    value: float
    variance: float
    n_labels: int


def estimate_stratified_mean(
    draw: StratifiedDraw,
    values: np.ndarray,
    model_variance: np.ndarray,
    n_claims: int,
    prior_labels: float = VARIANCE_PRIOR_LABELS,
) -> StratifiedMean:
    """Estimate the mean over one system's ``n_claims`` claims from the values of its drawn claims.

    draw: of that system alone; values: float64 (n,), NaN where a drawn claim got no label (it counts as the others of
    its stratum); model_variance: float64 (n,), the variance within each claim's stratum that is assumed beforehand,
    worth ``prior_labels`` labels (infinity: the assumed variance is used as it is). NaN where nothing is known.

    Three of 30 claims and two of 10, with one error among the three and two among the two:

    >>> draw = StratifiedDraw(np.arange(5), np.zeros(5, int), np.array([0, 0, 0, 1, 1]), np.repeat([30, 10], [3, 2]))
    >>> estimate_stratified_mean(draw, np.array([0, 0, 1.0, 1, 1]), np.full(5, 0.2), 40).value
    0.5
    """
    known = ~np.isnan(values)
    estimates, variances, sizes = [], [], []
    for phase in np.unique(draw.phase):
        before = draw.phase < phase
        n_before = int(before.sum())
        here = draw.phase == phase
        if not (here & known).any() or (n_before and not (before & known).any()):
            continue
        total = n_before * float(values[before & known].mean()) if n_before else 0.0
        variance = 0.0
        # A stratum without any label counts as the mean of the others, as does one of which nothing was drawn.
        covered = value = 0.0
        for stratum in np.unique(draw.stratum[here]):
            inside = here & (draw.stratum == stratum)
            n_frame = float(draw.frame_size[inside][0])
            got = values[inside & known]
            if not len(got):
                continue
            covered += n_frame
            value += n_frame * got.mean()
            spread = float(model_variance[inside & known].mean())
            if np.isfinite(prior_labels):
                spread = (float(((got - got.mean()) ** 2).sum()) + prior_labels * spread) / (
                    prior_labels + len(got) - 1
                )
            variance += n_frame**2 * (1 - len(got) / n_frame) * spread / len(got)
        rest = n_claims - n_before
        total += value / covered * rest
        variance *= (rest / covered) ** 2
        estimates.append(total / n_claims)
        variances.append(variance / n_claims**2)
        sizes.append(int((here & known).sum()))
    if not sizes:
        return StratifiedMean(np.nan, np.nan, 0)
    share = np.array(sizes) / sum(sizes)
    return StratifiedMean(float(share @ estimates), float(share**2 @ variances), sum(sizes))


def stratified_label_weights(draw: StratifiedDraw, system: np.ndarray, is_labelled: np.ndarray) -> np.ndarray:
    """How many claims of its system each label stands for: float64 (n,), 0 where a drawn claim got no label.

    system: int (n,), of the drawn claims; is_labelled: bool (n,). These are the weights of `estimate_stratified_mean`:
    where each stratum has a label, the weights of a system sum up to its number of claims.

    >>> draw = StratifiedDraw(np.arange(3), np.zeros(3, int), np.array([0, 0, 1]), np.array([30, 30, 10]))
    >>> stratified_label_weights(draw, np.zeros(3, int), np.ones(3, bool)).tolist()
    [15.0, 15.0, 10.0]
    """
    weights = np.zeros(len(draw.rows))
    for name in np.unique(system):
        mine = system == name
        total = (mine & is_labelled).sum()
        for phase in np.unique(draw.phase[mine]):
            here = mine & (draw.phase == phase) & is_labelled
            before = mine & (draw.phase < phase)
            share = here.sum() / max(total, 1)
            if (before & is_labelled).any():
                weights[before & is_labelled] += share * before.sum() / (before & is_labelled).sum()
            for stratum in np.unique(draw.stratum[here]):
                inside = here & (draw.stratum == stratum)
                weights[inside] += share * draw.frame_size[inside] / inside.sum()
    return weights


def cluster_design_effect(residual: np.ndarray, cluster: np.ndarray) -> float:
    """How many times as variable a sum of residuals is as if those of a cluster were independent; at least 1.

    residual: float64 (n,), with mean 0; cluster: (n,), equal where two residuals are of one cluster. Kish 1965.

    >>> cluster_design_effect(np.array([0.5, 0.5, -0.5, -0.5]), np.array([0, 0, 1, 1]))
    4.0
    """
    code = np.unique(cluster, return_inverse=True)[1]
    clusters = int(code.max(initial=-1)) + 1
    if clusters in (0, 1, len(residual)):
        return 1.0
    alone = float((residual**2).sum())
    together = float((np.bincount(code, residual) ** 2).sum())
    return max(1.0, together / alone * clusters / (clusters - 1)) if alone > 0 else 1.0
