"""How often is a judge or a system that never moved called moved over 50 dates, and how soon is a move found?

    python tests/validity/drift.py [replicates, default 200]

A judge has its own probability to say 1 of each anchor: near 0 or 1 for most, so that two askings differ on ``flips``
of them. At some date (``moves_at``) it may turn wrong on a share ``fall`` of them, and stay so. A system writes new
claims at each date, of which ``labels`` are labelled; its error rate may rise.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from factaudit.stats.date_exchangeability import (
    change_capital,
    fresh_units_p_value,
    repeated_units_p_value,
)

N_DATES = 50


@dataclass(frozen=True)
class DriftingJudge:
    anchors: int
    flips: float
    fall: float = 0.0
    moves_at: int = 10
    together: int = 1

    @property
    def name(self) -> str:
        moved = f"falls by {100 * self.fall:g} points at date {self.moves_at}" if self.fall else "same"
        alike = f" in documents of {self.together}" if self.together > 1 else ""
        return f"judge, {self.anchors} anchors{alike}, {100 * self.flips:g} % flips, {moved}"


@dataclass(frozen=True)
class DriftingSystem:
    labels: int
    rate: float
    rise: float = 0.0
    moves_at: int = 10
    alike: float = 0.0

    @property
    def name(self) -> str:
        moved = f"rises by {100 * self.rise:g} points at date {self.moves_at}" if self.rise else "same"
        alike = ", documents alike" if self.alike else ""
        return f"system, {self.labels} labels a date, {100 * self.rate:g} % errors{alike}, {moved}"


SAME = (
    DriftingJudge(300, 0.05),
    DriftingJudge(300, 0.0),
    DriftingJudge(300, 0.2),
    DriftingJudge(100, 0.05),
    DriftingJudge(300, 0.1, together=10),
    DriftingSystem(50, 0.2),
    DriftingSystem(50, 0.02),
    DriftingSystem(60, 0.2, alike=1.5),
)
MOVED = (
    DriftingJudge(300, 0.05, 0.02),
    DriftingJudge(300, 0.05, 0.05),
    DriftingJudge(300, 0.05, 0.1),
    DriftingJudge(100, 0.05, 0.1),
    DriftingJudge(300, 0.05, 0.05, moves_at=2),
    DriftingJudge(300, 0.05, 0.05, moves_at=40),
    DriftingSystem(50, 0.2, 0.1),
    DriftingSystem(50, 0.2, 0.2),
    DriftingSystem(200, 0.2, 0.1),
)


def follow_judge(judge: DriftingJudge, random: np.random.Generator) -> np.ndarray:
    """The evidence after each date: float64 (T,)."""
    n = judge.anchors
    label = (np.arange(n) % 10 >= 3).astype(int)
    settled = np.where(random.random(n) < 0.8, 1.0, 0.0)  # whether it is mostly right
    differs = (1 - np.sqrt(1 - 2 * judge.flips)) / 2
    right = np.abs(settled - differs)
    worse = right.copy()
    turned = random.choice(np.flatnonzero(settled == 1), round(judge.fall * n), replace=False)
    worse[turned] = differs
    if judge.together > 1:  # one call judges a whole document: its claims flip together
        luck = np.repeat(random.random((n // judge.together, N_DATES)), judge.together, axis=0)
    else:
        luck = random.random((n, N_DATES))
    is_right = np.where(np.arange(N_DATES) < judge.moves_at - 1, luck < right[:, None], luck < worse[:, None])
    said = np.where(is_right, label[:, None], 1 - label[:, None])
    bets = []
    for kind in (0, 1):
        hit = (said == kind)[label == kind].astype(int)
        unit = np.flatnonzero(label == kind) // judge.together
        scores = np.stack([np.bincount(unit, one) for one in hit.T], axis=1).astype(int)
        p_values = [repeated_units_p_value(scores[:, : at + 1], random) for at in range(1, N_DATES)]
        bets += [change_capital([p.lower for p in p_values]), change_capital([p.higher for p in p_values])]
    return np.append(1.0, np.mean(bets, axis=0))


def follow_system(system: DriftingSystem, random: np.random.Generator) -> np.ndarray:
    rate = np.where(np.arange(N_DATES) < system.moves_at - 1, system.rate, system.rate + system.rise)
    if system.alike:  # documents of three labels each
        effect = system.alike * random.standard_normal((N_DATES, system.labels // 3))
        odds = np.log(rate / (1 - rate))[:, None] + effect
        errors = random.binomial(3, 1 / (1 + np.exp(-odds))).ravel()
        sizes = np.full(len(errors), 3)
    else:
        errors = (random.random((N_DATES, system.labels)) < rate[:, None]).astype(int).ravel()
        sizes = np.ones(len(errors), dtype=int)
    date = np.repeat(np.arange(N_DATES), len(errors) // N_DATES)
    p_values = [
        fresh_units_p_value(errors[date <= at], sizes[date <= at], date[date <= at] == at, random)
        for at in range(1, N_DATES)
    ]
    bets = [change_capital([p.lower for p in p_values]), change_capital([p.higher for p in p_values])]
    return np.append(1.0, np.mean(bets, axis=0))


def follow(what: DriftingJudge | DriftingSystem, replicates: int, seed: int = 0) -> np.ndarray:
    """The first date, from 1, at which the evidence is 20: (replicates,), 0 where there is none."""
    found = []
    for replicate in range(replicates):
        random = np.random.default_rng([seed, replicate])
        evidence = follow_judge(what, random) if isinstance(what, DriftingJudge) else follow_system(what, random)
        sure = np.flatnonzero(evidence >= 20)
        found.append(int(sure[0]) + 1 if len(sure) else 0)
    return np.array(found)


def show(replicates: int) -> None:
    print(f"{N_DATES} dates, {replicates} runs: called moved, in percent")
    for what in SAME:
        print(f"{what.name:<75}{100 * np.mean(follow(what, replicates) > 0):>8.1f}", flush=True)
    print(f"{'':<75}{'before':>8}{'at once':>9}{'within 5':>10}{'by 50':>7}")
    for what in MOVED:
        date = follow(what, replicates)
        late = date - what.moves_at
        shares = (date > 0) & (late < 0), late == 0, (late >= 0) & (late < 5), late >= 0
        told = "".join(f"{100 * np.mean(one):>{width}.1f}" for one, width in zip(shares, (8, 9, 10, 7), strict=True))
        print(f"{what.name:<75}{told}", flush=True)


if __name__ == "__main__":
    show(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
