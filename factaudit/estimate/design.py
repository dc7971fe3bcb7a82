"""Which claims were drawn for labels, and what a draw says of a mean: estimators that trust the draw alone.

A draw has *phases*. Each draws within strata from what was not drawn before, and may look at the labels so far. So each
phase gives an unbiased estimate by itself: what was drawn before is known, the rest is the weighted mean over its
strata. Their errors are uncorrelated, and they are put together in proportion to their labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Labels' worth of the model's variance that a stratum's own is shrunk by.
VARIANCE_PRIOR = 2.0


@dataclass(frozen=True)
class Draw:
    """n drawn claims: row (n,) in the corpus, phase (n,) from 0, stratum (n,) codes unique over phases and systems.

    frame: int (n,), how many claims the stratum held when the phase began. A stratum lies in one system.
    """

    row: np.ndarray
    phase: np.ndarray
    stratum: np.ndarray
    frame: np.ndarray

    @property
    def probability(self) -> np.ndarray:
        """The share of its stratum that was drawn with each claim, in its phase."""
        _, code, times = np.unique(self.stratum, return_inverse=True, return_counts=True)
        return times[code] / self.frame

    def only(self, chosen: np.ndarray) -> Draw:
        """The claims where bool (n,) ``chosen`` is true."""
        return Draw(self.row[chosen], self.phase[chosen], self.stratum[chosen], self.frame[chosen])

    def then(self, other: Draw) -> Draw:
        """Both, one after the other."""
        shift = self.stratum.max(initial=-1) + 1
        return Draw(
            np.concatenate([self.row, other.row]),
            np.concatenate([self.phase, other.phase]),
            np.concatenate([self.stratum, other.stratum + shift]),
            np.concatenate([self.frame, other.frame]),
        )


def random_draw(labelled: np.ndarray, system: np.ndarray) -> Draw:
    """Labels of unknown origin, taken as a simple random draw within each system: one phase, a stratum per system."""
    rows = np.flatnonzero(labelled)
    return Draw(rows, np.zeros(len(rows), dtype=np.int64), system[rows], np.bincount(system)[system[rows]])


@dataclass(frozen=True)
class Mean:
    """A mean over one system's claims as the draw tells it, its sampling variance, and the number of labels."""

    value: float
    variance: float
    n: int


def mean_of(
    draw: Draw, values: np.ndarray, model_variance: np.ndarray, size: int, prior: float = VARIANCE_PRIOR
) -> Mean:
    """Estimate the mean over the ``size`` claims of one system from values of its drawn ones.

    draw: of that system alone; values: (n,), NaN where a drawn claim got no label: within its stratum as the others;
    model_variance: (n,), what the variance within a claim's stratum is taken to be before looking, worth ``prior``
    labels (infinity: it is taken as it is).
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
        # A stratum whose drawn claims all lack a label is told by the others' mean.
        frame = covered = value = 0.0
        for stratum in np.unique(draw.stratum[here]):
            inside = here & (draw.stratum == stratum)
            n_frame = float(draw.frame[inside][0])
            frame += n_frame
            got = values[inside & known]
            if not len(got):
                continue
            covered += n_frame
            value += n_frame * got.mean()
            spread = float(model_variance[inside & known].mean())
            if np.isfinite(prior):
                spread = (float(((got - got.mean()) ** 2).sum()) + prior * spread) / (prior + len(got) - 1)
            variance += n_frame**2 * (1 - len(got) / n_frame) * spread / len(got)
        # Strata of which nothing was drawn at all (a phase with fewer labels than strata) count as the rest.
        rest = size - n_before
        total += value / covered * rest
        variance *= (rest / covered) ** 2
        estimates.append(total / size)
        variances.append(variance / size**2)
        sizes.append(int((here & known).sum()))
    if not sizes:
        return Mean(np.nan, np.nan, 0)
    share = np.array(sizes) / sum(sizes)
    return Mean(float(share @ estimates), float(share**2 @ variances), sum(sizes))


def label_weights(draw: Draw, system: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """How many claims of its system each label stands for: float64 (n,), 0 where a drawn claim got no label.

    system: int (n,), of the drawn claims; labelled: bool (n,). The weights of `mean_of`: those of a system sum up to
    its number of claims, where each stratum has a label.
    """
    weights = np.zeros(len(draw.row))
    for name in np.unique(system):
        mine = system == name
        total = (mine & labelled).sum()
        for phase in np.unique(draw.phase[mine]):
            here = mine & (draw.phase == phase) & labelled
            before = mine & (draw.phase < phase)
            share = here.sum() / max(total, 1)
            if (before & labelled).any():
                weights[before & labelled] += share * before.sum() / (before & labelled).sum()
            for stratum in np.unique(draw.stratum[here]):
                inside = here & (draw.stratum == stratum)
                weights[inside] += share * draw.frame[inside] / inside.sum()
    return weights


def design_effect(residual: np.ndarray, cluster: np.ndarray) -> float:
    """How many times as variable a sum of (n,) residuals is as if those of one cluster were independent; at least 1."""
    code = np.unique(cluster, return_inverse=True)[1]
    clusters = int(code.max(initial=-1)) + 1
    if clusters in (0, 1, len(residual)):
        return 1.0
    alone = float((residual**2).sum())
    together = float((np.bincount(code, residual) ** 2).sum())
    return max(1.0, together / alone * clusters / (clusters - 1)) if alone > 0 else 1.0
