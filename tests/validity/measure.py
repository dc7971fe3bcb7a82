"""How often do 95 % intervals hold the truth? One runner for all simulations; prints a table of one of them.

    python tests/validity/measure.py covering [replicates, default 1000]

Simulations: the keys of `SIMULATIONS`. A row is a figure, a column a simulated setting; each cell is the share of
replicates (and of systems, where a figure is of one system) whose interval holds the true figure. What lies outside of
93 to 98 % is in bold. A least rate has a simultaneous interval, and tau one of all orders that are left open: both are
conservative, so that more than 98 % is in order there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import covering
import estimation
import influence
import numpy as np
import regimes
import repeats


@dataclass(frozen=True)
class Simulation:
    """settings: each with a name, or itself one; measure: of a setting and a number of replicates by figure which
    intervals held. Tests draw ``replicates`` of every ``step``-th setting; as_one: how many intervals of a replicate
    count as one (systems that share a fit)."""

    settings: Sequence[Any]
    measure: Callable[[Any, int], Mapping[str, np.ndarray]]
    replicates: int = 150
    step: int = 1
    as_one: int = 1

    def find_low_figures(self) -> dict[tuple[str, str], float]:
        """The figures that cover less than 93 % by more than three standard errors, in the short form of tests."""
        low, shares = {}, []
        for setting in self.settings[:: self.step]:
            for figure, held in self.measure(setting, self.replicates).items():
                if len(held) < FEWEST_INTERVALS:
                    continue
                shares.append(held.mean())
                n = len(held) / self.as_one
                if held.mean() < 0.93 - 3.3 * (0.93 * 0.07 / n) ** 0.5:
                    low[getattr(setting, "name", str(setting)), figure] = float(held.mean())
        assert shares
        # An interval that always holds the truth says nothing.
        assert np.mean(shares) < 0.98
        return low


#: A figure that fewer intervals than this are of is not looked at.
FEWEST_INTERVALS = 40
SIMULATIONS = {
    "covering": Simulation(regimes.REGIMES, covering.coverage, 120, step=3),
    "estimation": Simulation(estimation.REGIMES, estimation.coverage, 12, step=2, as_one=2),
    "grades": Simulation(influence.GRADES, influence.cover_grades, 100, step=2),
    "labels": Simulation(influence.LABELS, influence.cover_labels),
    "means": Simulation(influence.MEANS, influence.cover_means),
    "pearson": Simulation(tuple(influence.PAIRS), influence.cover_pearson),
    "repeats": Simulation(repeats.REGIMES, repeats.coverage, 300),
    "responses": Simulation(influence.N_RESPONSES, influence.cover_responses, 150, step=2),
}


def render_table(name: str, replicates: int) -> Iterator[str]:
    """A table in Markdown: a row per figure, a column per setting, empty where a setting has no interval of it."""
    simulation = SIMULATIONS[name]
    columns = {getattr(each, "name", each): simulation.measure(each, replicates) for each in simulation.settings}
    yield "| figure | " + " | ".join(map(str, columns)) + " |"
    yield "|---" + "|--:" * len(columns) + "|"
    for figure in dict.fromkeys(figure for found in columns.values() for figure in found):
        held = [np.asarray(found.get(figure, [])) for found in columns.values()]
        shares = [100 * one.mean() if len(one) >= FEWEST_INTERVALS else None for one in held]
        cells = ["" if s is None else f"{s:.1f}" if 93 <= round(s, 1) <= 98 else f"**{s:.1f}**" for s in shares]
        yield f"| {figure} | " + " | ".join(cells) + " |"
    yield f"\n{replicates} replicates each."


if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in SIMULATIONS:
        sys.exit(f"{__doc__}\nSimulations: {', '.join(SIMULATIONS)}")
    for line in render_table(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000):
        print(line)
