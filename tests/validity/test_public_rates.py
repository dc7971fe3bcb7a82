"""Rates that are made public hold: ``public_rates.py`` in short, with fixed seeds."""

from __future__ import annotations

import pytest
from public_rates import (
    SystemsWorld,
    annotator_coverage,
    least_reach_of_low_ends,
    system_figures,
    undecided_coverage,
)
from test_estimation import least


@pytest.mark.slow
@pytest.mark.parametrize("mostly_errors", [False, True])
def test_rates_hold_where_a_tenth_is_undecided(mostly_errors: bool) -> None:
    found = undecided_coverage(0.1, mostly_errors, 25)
    assert found["default"] > least(0.95, 100)
    assert found["holds bounds"] == 1  # docs/estimates.md, "Labels that are unsure"
    # Where they are mostly errors, leaving them out misses the rate of all claims.
    assert found["left out"] < found["default"] or not mostly_errors


@pytest.mark.slow
@pytest.mark.parametrize(
    "world",
    [
        SystemsWorld("alike", 11, 100, 0.0),
        SystemsWorld("apart", 11, 100, 0.8),
        SystemsWorld("one far", 20, 400, 0.0, 0.5, 0.05),
    ],
    ids=lambda world: world.name,
)
def test_the_best_system_and_few_wrong_pairs(world: SystemsWorld) -> None:
    found = system_figures(world, 30)
    assert found["no wider"] == 1
    for key in ("headroom", "highest", "best_rate"):
        assert found[key] > least(0.95, 30), key
    assert found["wrong share"] <= 0.05


def test_few_labels_do_not_tell_alike_systems_from_one_that_is_far_off() -> None:
    """Why intervals of the lowest rate are wide, and never miss below, where systems are alike."""
    assert least_reach_of_low_ends(20, 5, 0.27, 0.05, draws=5_000) > 0.8
    assert least_reach_of_low_ends(5, 40, 0.27, 0.05, draws=5_000) < 0.1


@pytest.mark.slow
def test_annotators_errors_are_in_the_interval() -> None:
    found = annotator_coverage((0.9, 0.85), 1.0, 8)
    assert found["model"] > least(0.95, 32)
    assert abs(found["bias model"]) < abs(found["bias majority"])
