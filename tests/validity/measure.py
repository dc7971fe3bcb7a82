"""How often do 95 % intervals hold the truth, and how often does a gate fail? Prints a table of one simulation.

    python tests/validity/measure.py covering [replicates, default 1000]

Simulations: the keys of `SIMULATIONS`. A row is a figure, a column a simulated setting; each cell is the share of
replicates (and of systems, where a figure is of one system) whose interval holds the true figure. What lies outside of
93 to 98 % is in bold. A least rate has a simultaneous interval, and tau one of all orders that are left open: both are
conservative, so that more than 98 % is in order there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import covering
import estimation
import few_labels
import gates
import grade_intervals
import group_differences
import means
import numpy as np
import public_rates
import random_groups
import regimes
import repeats

#: By name: the settings, and what measures one of them: figures with whether each interval held, or with shares.
SIMULATIONS: dict[str, tuple[Iterable[Any], Callable[[Any, int], Mapping[str, Any]]]] = {
    "covering": (regimes.REGIMES, covering.coverage),
    "estimation": (estimation.REGIMES, estimation.coverage),
    "few_labels": (few_labels.DESIGNS, few_labels.coverage),
    "gates": (gates.SAME + gates.WORSE, gates.share_of_failures),
    "grade_intervals": (grade_intervals.REGIMES, grade_intervals.coverage),
    "group_differences": (regimes.REGIMES, group_differences.coverage),
    "means": (means.REGIMES, means.coverage),
    "public_rates": (public_rates.WORLDS, public_rates.system_figures),
    "random_groups": (random_groups.REGIMES, random_groups.coverage),
    "repeats": (repeats.REGIMES, repeats.coverage),
    "responses": (means.N_RESPONSES, means.cover_responses),
}
#: A figure that fewer replicates have an interval of has no cell.
FEWEST_INTERVALS = 100


def render_table(name: str, replicates: int) -> Iterator[str]:
    """A table in Markdown: a row per figure, a column per setting, empty where a setting has no interval of it."""
    settings, measure = SIMULATIONS[name]
    columns = {getattr(each, "name", each): measure(each, replicates) for each in settings}
    yield "| figure | " + " | ".join(map(str, columns)) + " |"
    yield "|---" + "|--:" * len(columns) + "|"
    for figure in dict.fromkeys(figure for found in columns.values() for figure in found):
        held = [np.asarray(found.get(figure, [])) for found in columns.values()]
        shares = [100 * one.mean() if one.ndim == 0 or len(one) >= FEWEST_INTERVALS else None for one in held]
        cells = ["" if s is None else f"{s:.1f}" if 93 <= round(s, 1) <= 98 else f"**{s:.1f}**" for s in shares]
        yield f"| {figure} | " + " | ".join(cells) + " |"
    yield f"\n{replicates} replicates each."


if __name__ == "__main__":
    if sys.argv[1:2] == [] or sys.argv[1] not in SIMULATIONS:
        sys.exit(f"{__doc__}\nSimulations: {', '.join(SIMULATIONS)}")
    for line in render_table(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000):
        print(line)
