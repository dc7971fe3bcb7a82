"""Which figure does an audit have in the report, what does it show, and what does its caption
say?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factaudit.audit.core.audit_declaration import (
    Audit,
    Column,
    LinePlot,
    PlotSpec,
    list_declared_columns,
)
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.report.plots.groups import (
    EVALUATOR_KEYS,
    drop_floor_rows,
    format_group_label,
    list_group_columns,
)

if TYPE_CHECKING:
    from factaudit.report.plots.drawing import DrawnFigure

#: The largest number of evaluators in a figure. If there are more, it shows the best and the worst.
MAX_EVALUATORS, N_WORST_EVALUATORS = 8, 3
#: The largest number of rows of panels.
_MAX_PANEL_ROWS = 4
#: The height of a figure in inches, and the part of it above and below a panel. No figure is longer
#: than a page.
_PAGE_HEIGHT, _PANEL_HEAD_HEIGHT = 9.0, 0.6


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report, ``figures/<stem>.svg``. ``draw`` is None if the file already
    exists."""

    stem: str
    caption: str
    alt: str
    draw: Callable[[], DrawnFigure] | None = None


def make_report_figure(
    audit: Audit,
    rows: Sequence[Row],
    evaluators: Sequence[str],
    floors: Set[str],
    ranked: Sequence[str] = (),
) -> ReportFigure | None:
    """The figure that an audit declares: one for claims and one for responses, if it has rows for
    them. Empty if there is nothing to draw. ranked: the evaluators from best to worst; if there are
    many, only the best and the worst are drawn."""
    plot = audit.plot
    if plot is None:
        return None
    keys = (*plot.keys, *filter(None, (plot.reference,)))
    rows = [row for row in rows if any(row.get(key) is not None for key in keys)]
    if not rows:
        return None
    level = rows[0].get("level") if "level" in audit.columns else None
    rows = drop_floor_rows(
        plot, [row for row in rows if row.get("level") == level or not level], floors
    )
    order, rows, chosen = _select_evaluators(rows, evaluators, ranked, floors)
    left = ""
    if isinstance(plot, PlotSpec):
        rows, left = _select_groups(plot, rows, audit.columns)
    elif isinstance(plot, LinePlot):
        rows, left = _select_panel_rows(plot, rows)
    what = plot.what + (f", {level} level" if level else "")
    # The level comes from data, so it must not lead out of the folder.
    stem = re.sub(r"[^A-Za-z0-9_-]", "-", "_".join(filter(None, [audit.name, str(level or "")])))
    caption = " ".join(filter(None, [f"{what}.", plot.reading, chosen, left]))

    def draw() -> DrawnFigure:
        from factaudit.report.plots.drawing import draw_audit_plot
        from factaudit.report.plots.style import use_report_style

        with use_report_style():
            return draw_audit_plot(plot, rows, audit.columns, order, floors)

    return ReportFigure(
        stem, caption, f"Figure: {what}. The CSV of this section has the figures.", draw
    )


def _select_evaluators(
    rows: Sequence[Row], evaluators: Sequence[str], ranked: Sequence[str], floors: Set[str]
) -> tuple[list[str], list[Row], str]:
    """The evaluators in the order in which they are drawn, their rows, and what the caption says
    about this choice."""
    present = {row.get(key) for row in rows for key in EVALUATOR_KEYS}
    judges = [
        name
        for name in dict.fromkeys([*ranked, *evaluators])
        if name in present and name not in floors
    ]
    if len(judges) <= MAX_EVALUATORS:
        return list(evaluators), list(rows), ""
    n_best = MAX_EVALUATORS - N_WORST_EVALUATORS
    drawn = [*judges[:n_best], *judges[-N_WORST_EVALUATORS:]]
    left_out = set(judges) - set(drawn)
    kept = [row for row in rows if not any(row.get(key) in left_out for key in EVALUATOR_KEYS)]
    note = (
        f"Shown are the best {n_best} and the worst {N_WORST_EVALUATORS} of {len(judges)}"
        " evaluators."
    )
    return [*drawn, *(name for name in evaluators if name not in drawn)], kept, note


def _select_groups(
    plot: PlotSpec, rows: list[Row], columns: Mapping[str, Column]
) -> tuple[list[Row], str]:
    """The rows of as many groups as fit on a page, and what the caption says about this choice. If
    there are more groups, those with the highest and the lowest figures are taken."""
    present = list_declared_columns(columns, rows)
    by = list_group_columns(plot, columns, present, rows)
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(format_group_label(row, by, present), []).append(row)
    height = 0.08 + 0.066 * len({row.get(plot.series) for row in rows})
    size = max(2, min(plot.per_page, int((_PAGE_HEIGHT - _PANEL_HEAD_HEIGHT) / height)))
    if len(groups) <= size:
        return rows, ""
    key = plot.reference or plot.keys[0]

    def mean(group: str) -> float:
        values = [row[key] for row in groups[group] if row.get(key) is not None]
        return sum(values) / len(values) if values else float("inf")

    totals = [
        group for group, mine in groups.items() if any(is_total_key(mine[0].get(one)) for one in by)
    ]
    order = sorted((group for group in groups if group not in totals), key=mean)
    half = max(1, (size - len(totals)) // 2)
    drawn = [*order[:half], *order[-half:], *totals][:size] if order else totals[:size]
    note = (
        f"Shown are the {half} with the lowest and the {half} with the highest"
        f" {columns[key].heading} of {len(order)}."
    )
    return [row for group in drawn for row in groups[group]], note


def _select_panel_rows(plot: LinePlot, rows: list[Row]) -> tuple[list[Row], str]:
    """The rows for the values with the most claims, as many values as there are rows of panels."""
    sizes: dict[object, int] = {}
    for row in rows:
        sizes[row[plot.rows]] = max(sizes.get(row[plot.rows], 0), row.get("n") or 0)
    if len(sizes) <= _MAX_PANEL_ROWS:
        return rows, ""
    largest = sorted(sizes, key=lambda value: -sizes[value])[:_MAX_PANEL_ROWS]
    kept = [row for row in rows if row[plot.rows] in largest]
    return kept, f"Shown are the {_MAX_PANEL_ROWS} largest of {len(sizes)}."
