"""Which evaluators or systems does a figure show if there are many? Those at both ends of the ranking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row, is_total_key

#: A figure has at most so many evaluators: the best and the worst of more.
MAX_DRAWN_EVALUATORS = 8
N_WORST_EVALUATORS = 3
#: A plot with a line for each system has at most so many: half of them with the lowest figures, half with the highest.
MAX_DRAWN_SYSTEMS = 12
EVALUATOR_KEYS = ("evaluator", "evaluator_a", "evaluator_b", "chunked_evaluator")


def order_evaluators_for_report_figures(
    evaluators: Sequence[str], ranked: Sequence[str], floors: Collection[str]
) -> list[str]:
    """The evaluators as they were given; where they are many those first that figures draw: the best, then the worst.

    ranked: from the best on, as far as they can be ranked.
    """
    judges = [name for name in evaluators if name not in floors]
    if len(judges) <= MAX_DRAWN_EVALUATORS:
        return list(evaluators)
    order = [name for name in ranked if name in judges]
    ends = _pick_both_ends(order, MAX_DRAWN_EVALUATORS - N_WORST_EVALUATORS, N_WORST_EVALUATORS)
    return list(dict.fromkeys([*ends, *order, *evaluators]))


def select_evaluators_for_report_figure(
    rows: Sequence[Row], evaluators: Sequence[str], ranked: Sequence[str], floors: Collection[str]
) -> tuple[list[Row], str]:
    """The rows of the evaluators that figures draw, and what captions say of it.

    evaluators: as `order_evaluators_for_report_figures` orders them.
    """
    present = {row.get(key) for row in rows for key in EVALUATOR_KEYS}
    judges = [name for name in evaluators if name in present and name not in floors]
    if len(judges) <= MAX_DRAWN_EVALUATORS:
        return list(rows), ""
    left_out = set(judges[MAX_DRAWN_EVALUATORS:])
    which = f"{MAX_DRAWN_EVALUATORS} of {len(judges)} evaluators"
    if len(judges) == len(evaluators) - len(floors) and set(judges) <= set(ranked):
        n_best = MAX_DRAWN_EVALUATORS - N_WORST_EVALUATORS
        which = f"the best {n_best} and the worst {N_WORST_EVALUATORS} of {len(judges)} evaluators"
    note = f"The figure shows {which}; the file of the table has all."
    return [row for row in rows if not any(row.get(key) in left_out for key in EVALUATOR_KEYS)], note


def select_systems_for_report_figure(
    plot: PlotSpec, rows: list[Row], columns: Mapping[str, Column]
) -> tuple[list[Row], str]:
    """The rows of the systems that a plot with a line for each draws, from the lowest figure to the highest; and what
    its caption says of it."""
    if "system" not in plot.groups:
        return rows, ""
    key = plot.reference or plot.keys[0]
    figures: dict[Any, list[float]] = {}
    for row in rows:
        if not is_total_key(row["system"]):
            figures.setdefault(row["system"], []).extend([] if row.get(key) is None else [row[key]])
    if len(figures) <= MAX_DRAWN_SYSTEMS:
        return rows, ""
    means = {system: sum(values) / len(values) for system, values in figures.items() if values}
    half = MAX_DRAWN_SYSTEMS // 2
    drawn = _pick_both_ends(sorted(means, key=lambda system: means[system]), half, half)
    place = {system: at for at, system in enumerate(drawn)}
    chosen = [row for row in rows if row["system"] in place or is_total_key(row["system"])]
    chosen.sort(key=lambda row: place.get(row["system"], len(place)))
    note = f"The figure shows the {half} of {len(figures)} systems with the lowest {columns[key].heading} and the "
    note += f"{half} with "
    return chosen, f"{note}the highest; the file of the table has all."


def _pick_both_ends(names: Sequence[str], n_first: int, n_last: int) -> list[str]:
    return list(names) if len(names) <= n_first + n_last else [*names[:n_first], *names[-n_last:]]
