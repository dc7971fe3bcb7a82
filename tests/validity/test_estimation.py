"""Rates from few labels are as near and as sure as `estimation.py` measures: the same in short, with fixed draws."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from estimation import (
    REGIMES,
    Regime,
    compare,
    coverage,
    real_sets,
)

DRAWS = 12
#: Of each set the greatest mean |bias| and width at 100 and 400 labels, and the coverage over many draws.
BOUNDS = {
    "RAGTruth QA": ({100: (0.040, 0.20), 400: (0.019, 0.085)}, 0.93),
    "RAGTruth Summary": ({100: (0.063, 0.27), 400: (0.031, 0.12)}, 0.91),
    "AggreFact, 11 sets": ({100: (0.082, 0.36), 400: (0.046, 0.20)}, 0.90),
}


def least(coverage: float, trials: int) -> float:
    """Below this comes fewer than one of 500 shares of so many trials of that coverage."""
    return coverage - 3 * float(np.sqrt(coverage * (1 - coverage) / trials))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("budget", [100, 400])
def test_on_real_sets(name: str, budget: int, shared: Path) -> None:
    outcome = compare(real_sets(shared)[name], budget, DRAWS)
    bias, width, covered = outcome.row("hierarchical")
    bounds, coverage_of_many = BOUNDS[name]
    greatest, widest = bounds[budget]
    assert bias <= greatest
    assert width <= widest
    assert covered >= least(coverage_of_many, len(outcome.methods["hierarchical"].covered))
    assert outcome.wrong <= max(2, 0.02 * outcome.resolved)
    assert bias < outcome.row("labels")[0]


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.name)
def test_intervals_cover(regime: Regime) -> None:
    systems = len(regime.world.rates)
    replicates = min(40, max(8, 48 // systems))
    for target, share in coverage(regime, replicates).items():
        # Systems of one replicate share the fit: more than four count as four.
        assert share > least(0.95, replicates * min(4, systems)), target
