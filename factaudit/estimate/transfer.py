"""May labels of some systems tell of another? A test of whether the labelled ones are alike, and what it could see."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri

from factaudit.audit.core.transfer import shifted_chi2
from factaudit.estimate.case import Case
from factaudit.estimate.hierarchical import point_fit, probabilities

#: The difference in one system's error rate that the power is told for, and the level of the test.
SHIFT = 0.1
LEVEL = 0.05
#: System effects so small that they are none.
_NONE = 0.01


@dataclass(frozen=True)
class Transfer:
    """p-value of the test that scores mean the same in all labelled systems, and its power; NaN below two systems."""

    p: float
    power: float
    n_systems: int

    @property
    def sentence(self) -> str:
        if np.isnan(self.p):
            return "borrowed from one other system's labels: whether systems are alike cannot be tested"
        shown = "differ" if self.p < LEVEL else "are not shown to differ"
        return (
            f"borrowed from other systems' labels; by their scores the {self.n_systems} labelled systems {shown} "
            f"(p = {self.p:.2g}; a difference of {100 * SHIFT:.0f} points in one would be seen with a probability of "
            f"{100 * self.power:.0f} %)"
        )


def transfer_test(case: Case) -> Transfer:
    """A score test of system effects in the model without any: Σ over systems of (errors − expected)² / variance."""
    corpus, rows = case.corpus, case.rows
    system, error = corpus.system[rows], corpus.error[rows]
    present = np.flatnonzero(case.n_labels)
    if len(present) < 2:
        return Transfer(np.nan, np.nan, len(present))
    mode = point_fit(case.columns, rows, system, error, len(corpus.systems), _NONE, case.labels_worth)
    p = probabilities(mode, case.columns, corpus.system, rows)
    excess = np.bincount(system, error - p, minlength=len(corpus.systems))[present]
    variance = np.bincount(system, p * (1 - p), minlength=len(corpus.systems))[present] / case.labels_worth
    degrees = len(present) - 1
    statistic = float((excess**2 / variance).sum())
    shifted = (SHIFT * case.n_labels[present]) ** 2 / variance
    power = np.mean([shifted_chi2(float(chdtri(degrees, LEVEL)), degrees, one) for one in shifted])
    return Transfer(float(chdtrc(degrees, statistic)), float(power), len(present))
