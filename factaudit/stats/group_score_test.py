"""Rao's score test of group effects in a logistic regression that has none: are groups alike, given the scores?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy


@dataclass(frozen=True)
class GroupScoreTest:
    """p: the p-value; power: to find one group shifted, the mean over groups; NaN below two groups with labels."""

    p: float
    power: float
    n_groups: int


def group_score_test(
    error: np.ndarray,
    probability: np.ndarray,
    group: np.ndarray,
    label_weight: float = 1.0,
    shift: float = 0.1,
    alpha: float = 0.05,
) -> GroupScoreTest:
    """Σ over groups of (errors − expected)² / variance against χ²; its power where one group's rate is ``shift`` off.

    error: float64 (n,), 1 or 0; probability: float64 (n,), P(error) by a model that was fitted to these errors, with an
    intercept and without group effects; group: int (n,), codes from 0; label_weight: how many independent labels one
    label is worth; alpha: of the test that has the power.

    >>> group_score_test(np.tile([1.0, 0.0], 50), np.full(100, 0.5), np.repeat([0, 1], 50)).p
    1.0
    """
    n = np.bincount(group)
    present = np.flatnonzero(n)
    if len(present) < 2:
        return GroupScoreTest(np.nan, np.nan, len(present))
    excess = np.bincount(group, error - probability)[present]
    variance = np.bincount(group, probability * (1 - probability))[present] / label_weight
    degrees = len(present) - 1
    critical = float(scipy.special.chdtri(degrees, alpha))
    # `scipy.special.chndtr`: it imports no `scipy.stats`.
    power = np.mean(1 - scipy.special.chndtr(critical, degrees, (shift * n[present]) ** 2 / variance))
    return GroupScoreTest(
        float(scipy.special.chdtrc(degrees, float((excess**2 / variance).sum()))), float(power), len(present)
    )
