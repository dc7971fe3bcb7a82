"""Which figures does an audit have, what is on each, and what does its caption say? Nothing is drawn here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from factaudit.audit.core.audit_declaration import Audit, list_declared_columns
from factaudit.audit.core.interval_methods import describe_interval_methods
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.report.figure_selection import (
    EVALUATOR_KEYS,
    order_evaluators_for_report_figures,
    select_evaluators_for_report_figure,
    select_systems_for_report_figure,
)
from factaudit.report.plots.plot_groups import (
    count_overlapping_dot_plot_points,
    drop_floor_evaluator_plot_rows,
    format_group_label,
    has_drawn_bounds,
    list_plot_group_columns,
)
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    from factaudit.report.plots.panel_layout import DrawnAuditFigure

#: Inches of a page for a dot plot, and of these for what stands over and under a panel: none is longer than a page.
_PAGE_HEIGHT, _PANEL_HEAD_HEIGHT = 9.0, 0.6


@dataclass(frozen=True)
class ReportFigure:
    """A figure of the report: ``figures/<stem>.svg``; ``draw`` is None where it is there already, else it draws
    at a width in inches (None: a page's)."""

    stem: str
    caption: str
    alt: str
    draw: Callable[[], DrawnAuditFigure] | None = None


def list_report_figures(
    audit: Audit, rows: Sequence[Row], evaluators: Sequence[str], about: Mapping[str, Any], ranked: Sequence[str] = ()
) -> list[ReportFigure]:
    """The figures that an audit declares, of its rows; one for each level, and further ones where groups are many.

    ranked: the evaluators from the best on, of which the best and the worst are drawn where they are many.
    """
    floors = {row["name"] for row in about.get("evaluators") or [] if row.get("floor")}
    order = order_evaluators_for_report_figures(evaluators, ranked, floors)
    rows, note = select_evaluators_for_report_figure(rows, order, ranked, floors)
    return [] if audit.plot is None else _list_report_plot_figures(audit, audit.plot, rows, order, about, note)


def list_report_figure_keys(plot: PlotSpec) -> tuple[str, ...]:
    """The keys whose figures are drawn."""
    return (*plot.keys, *filter(None, (plot.reference,)))


def has_report_figure_rows(rows: Sequence[Row], plot: PlotSpec) -> bool:
    """Whether there is something to draw."""
    keys = list_report_figure_keys(plot)
    return any(row.get(key) is not None for key in keys for row in rows)


def _list_report_plot_figures(
    audit: Audit, plot: PlotSpec, rows: list[Row], evaluators: Sequence[str], about: Mapping[str, Any], note: str
) -> list[ReportFigure]:
    found = []
    floors = {row["name"] for row in about.get("evaluators") or [] if row.get("floor")}
    rows = drop_floor_evaluator_plot_rows(plot, rows, floors)
    levels = list(dict.fromkeys(row.get("level") for row in rows)) if "level" in audit.columns else [None]
    for level in levels:
        mine = [row for row in rows if level is None or row.get("level") == level]
        if not has_report_figure_rows(mine, plot):
            continue
        present = list_declared_columns(audit.columns, mine)
        by = list_plot_group_columns(plot, audit.columns, present, mine)
        labels = {id(row): format_group_label(row, by, present) for row in mine}
        part, chosen = select_systems_for_report_figure(plot, mine, audit.columns)
        part, left = _select_groups_that_fit_a_page(plot, part, labels)
        # A level is data, and must not lead out of the folder.
        stem = re.sub(r"[^A-Za-z0-9_-]", "-", "_".join(filter(None, [audit.name, str(level or "")])))
        what = plot.what + (f", {level} level" if level else "")
        caption = _compose_report_figure_caption(what, audit, plot, part, by, about)
        caption = " ".join(filter(None, [caption, note, chosen, left]))
        n_evaluators = len(_collect_evaluators(part))
        noun = audit.columns["evaluator"].heading if "evaluator" in audit.columns else "evaluator"
        among = f"; {format_count(n_evaluators, noun)}" if n_evaluators else ""
        alt = f"Dot plot: {what}{among}. The table of this section has the figures."
        draw = _make_report_figure_drawing(audit, plot, part, evaluators, floors)
        found.append(ReportFigure(stem, caption, alt, draw))
    return found


def _select_groups_that_fit_a_page(
    plot: PlotSpec, rows: list[Row], group_labels: Mapping[int, str]
) -> tuple[list[Row], str]:
    """The rows of the groups that are drawn, and what the caption says of those that are not.

    ``group_labels``: of each row's ``id`` the group.
    """
    groups = list(dict.fromkeys(group_labels[id(row)] for row in rows))
    height = 0.08 + 0.066 * len({row.get(plot.series) for row in rows})
    size = max(1, min(plot.per_page, int((_PAGE_HEIGHT - _PANEL_HEAD_HEIGHT) / height)))
    if len(groups) <= size:
        return rows, ""
    drawn = set(groups[:size])
    note = f"The figure shows the first {size} of {len(groups)} groups; the file of the table has all."
    return [row for row in rows if group_labels[id(row)] in drawn], note


def _collect_evaluators(rows: Sequence[Row]) -> set[str]:
    return {row[key] for row in rows for key in EVALUATOR_KEYS[:3] if row.get(key)}


def _make_report_figure_drawing(
    audit: Audit, plot: PlotSpec, rows: list[Row], evaluators: Sequence[str], floors: Set[str]
) -> Callable[[], DrawnAuditFigure]:
    def draw() -> DrawnAuditFigure:
        from factaudit.report.plots.drawing import draw_audit_plot
        from factaudit.report.plots.figure_style import use_report_style

        with use_report_style():
            return draw_audit_plot(plot, rows, audit.columns, evaluators, floors)

    return draw


def _compose_report_figure_caption(
    figure_title: str,
    audit: Audit,
    plot: PlotSpec,
    rows: Sequence[Row],
    group_columns: Sequence[str],
    about: Mapping[str, Any],
) -> str:
    """What stands under a figure: how to read it, and what its lines and bars are where they are drawn."""
    keys = list_report_figure_keys(plot)
    text = [f"{figure_title}.", plot.reading]
    if count_overlapping_dot_plot_points(plot, rows, group_columns) > 1:
        text.append("A point for each row of the table; intervals are there.")
    else:
        # A reference is a line across its group, without an interval.
        lined = [key for key in keys if key != plot.reference]
        if intervals := describe_interval_methods(audit, lined, rows, about):
            text.append(f"Thin lines: {intervals}.")
        barred = [
            audit.columns[key].bounds
            for key in lined
            if any(has_drawn_bounds(row, key, audit.columns[key]) for row in rows)
        ]
        if barred:
            what = " and ".join(dict.fromkeys(bounds for bounds in barred if isinstance(bounds, str)))
            what = what or "where a figure could lie whatever the unscored claims' predictions had been"
            text.append(f"Pale bars: {what}.")
    text.append(_describe_report_figure_reference_lines(audit, plot))
    if any(key in row and row[key] is None for key in keys for row in rows):
        text.append("Undefined figures are not drawn; the table gives the reasons.")
    return " ".join(part for part in text if part)


def _describe_report_figure_reference_lines(audit: Audit, plot: PlotSpec) -> str:
    """``Dashed line: 50.0 % (BAcc).``: where the lines stand that are drawn across a panel."""
    headings: dict[str, list[str]] = {}
    for key, guide in plot.guides.items():
        column = audit.columns[key]
        share = column.unit in ("percent", "points")
        text = f"{100 * guide if share else guide:g}" + " %" * (column.unit == "percent" and guide != 0)
        headings.setdefault(text, []).append(column.heading)
    parts = [f"{text} ({', '.join(named)})" for text, named in headings.items()]
    return f"Dashed line: {'; '.join(parts)}." if parts else ""
