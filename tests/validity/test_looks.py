"""Intervals hold at every look, and a judge or system that never moved is rarely called moved: the scripts in short."""

from __future__ import annotations

import drift
import looks
import numpy as np
import pytest

REGIMES = [one for one in looks.REGIMES if one.name in ("four systems", "2 % errors", "an evaluator that is wrong")]


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES, ids=lambda regime: regime.name)
def test_sequences_hold_at_every_look(regime: looks.LookRegime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 96 rates and 144 differences at most 6 % are missed at any of eight looks, three standard errors allowed."""
    monkeypatch.setattr(looks, "N_WITH_WIDTHS", 1)
    found = looks.follow_sequences(lambda seed: looks.simulated_corpus(regime.world, seed), regime.per_look, 24)
    assert np.mean(found.rate_missed) <= 0.06 + 3 * np.sqrt(0.06 * 0.94 / 96)
    assert np.mean(found.difference_missed) <= 0.06 + 3 * np.sqrt(0.06 * 0.94 / 144)
    # Not by being wide: a rate is known better than nothing after the first look, and well after the last.
    width = np.mean(found.width, axis=0)
    assert width[-1] < 0.35 * width[0]
    assert width[-1] < 2.2 * np.nanmean(found.width_one_look)


@pytest.mark.slow
@pytest.mark.parametrize("what", [drift.SAME[0], drift.SAME[4], drift.SAME[5]], ids=lambda what: what.name)
def test_what_never_moved_is_rarely_called_moved(what: drift.DriftingJudge | drift.DriftingSystem) -> None:
    assert np.mean(drift.follow(what, 40) > 0) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 40)


@pytest.mark.slow
@pytest.mark.parametrize("what", [drift.MOVED[2], drift.MOVED[7]], ids=lambda what: what.name)
def test_a_move_is_found_soon(what: drift.DriftingJudge | drift.DriftingSystem) -> None:
    date = drift.follow(what, 15)
    assert np.mean((date >= what.moves_at) & (date < what.moves_at + 5)) > 0.7
