"""Rates that are made public hold: ``public_rates.py`` in short, with fixed seeds."""

from __future__ import annotations

import pytest
from public_rates import WORLDS, SystemsWorld, least_reach_of_low_ends, system_figures
from test_estimation import least


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
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
