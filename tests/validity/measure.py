"""How often do 95 % intervals hold the truth? One runner for all simulations; prints a table of one
of them.

    python tests/validity/measure.py covering [replicates, default 1000]

Simulations: the keys of `SIMULATIONS`. A row is a figure, a column a simulated setting; each cell
is the share of intervals (of replicates, systems and evaluators) that hold the true figure. What
lies outside of 93 to 98 % is in bold. A least rate has a simultaneous interval, and tau one of all
orders that are left open: both are conservative, so that more than 98 % is in order there.
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

#: A figure of which there are fewer intervals is not looked at.
FEWEST_INTERVALS = 40


@dataclass(frozen=True)
class Simulation:
    """measure: of a setting and a number of replicates by figure which intervals held. Tests draw
    ``replicates`` of every ``step``-th setting."""

    settings: Sequence[Any]
    measure: Callable[[Any, int], Mapping[str, np.ndarray]]
    replicates: int = 150
    step: int = 1

    def find_low_figures(self) -> dict[tuple[str, str], float]:
        """The figures that cover less than 93 % by more than three standard errors: intervals of
        one replicate count as one, as they share their documents."""
        least = 0.93 - 3.3 * (0.93 * 0.07 / self.replicates) ** 0.5
        shares = {
            (getattr(setting, "name", str(setting)), figure): float(held.mean())
            for setting in self.settings[:: self.step]
            for figure, held in self.measure(setting, self.replicates).items()
            if len(held) >= FEWEST_INTERVALS
        }
        assert shares
        assert np.mean(list(shares.values())) < 0.98, (
            "an interval that always holds the truth says nothing"
        )
        return {about: share for about, share in shares.items() if share < least}


SIMULATIONS = {
    "covering": Simulation(covering.SETTINGS, covering.measure_coverage, 80, step=3),
    "estimation": Simulation(estimation.REGIMES, estimation.coverage, 24, step=3),
    "labels": Simulation(influence.LABELS, influence.cover_labels),
    "correlations": Simulation(tuple(influence.PAIRS), influence.cover_correlations),
    "responses": Simulation(influence.N_RESPONSES, influence.cover_responses, 150, step=2),
}


def render_table(name: str, replicates: int) -> Iterator[str]:
    """A table in Markdown: a row per figure, a column per setting, empty where a setting has no
    interval of it."""
    simulation = SIMULATIONS[name]
    columns = {
        getattr(each, "name", each): simulation.measure(each, replicates)
        for each in simulation.settings
    }
    yield "| figure | " + " | ".join(map(str, columns)) + " |"
    yield "|---" + "|--:" * len(columns) + "|"
    for figure in dict.fromkeys(figure for found in columns.values() for figure in found):
        cells = []
        for found in columns.values():
            held = found.get(figure, ())
            share = round(100 * float(np.mean(held)), 1) if len(held) >= FEWEST_INTERVALS else None
            cells.append(
                "" if share is None else f"{share}" if 93 <= share <= 98 else f"**{share}**"
            )
        yield f"| {figure} | " + " | ".join(cells) + " |"
    yield f"\n{replicates} replicates each."


if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in SIMULATIONS:
        sys.exit(f"{__doc__}\nSimulations: {', '.join(SIMULATIONS)}")
    for line in render_table(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000):
        print(line)
