"""How is each kind of plot drawn that an audit can declare? Matplotlib figures; no audit is known here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from matplotlib.axes import Axes

from factaudit.audit.core import plot_specs
from factaudit.audit.core.audit_declaration import Column, list_declared_columns
from factaudit.audit.core.result_rows import Row
from factaudit.report.plots.dot_plot import lay_out_dot_plot
from factaudit.report.plots.forest_plot import lay_out_forest_plot
from factaudit.report.plots.panel_layout import DrawnAuditFigure, FigureLayout
from factaudit.report.plots.plot_data import PlotFigureData
from factaudit.report.plots.plot_groups import drop_floor_evaluator_plot_rows, list_plot_group_columns

_LAYOUTS: dict[type[plot_specs.PlotSpec], Callable[[Any, PlotFigureData], FigureLayout]] = {
    plot_specs.DotPlotSpec: lay_out_dot_plot,
    plot_specs.ForestPlotSpec: lay_out_forest_plot,
}


def draw_audit_plot(
    plot: plot_specs.PlotSpec,
    rows: Sequence[Row],
    columns: Mapping[str, Column],
    evaluators: Sequence[str] = (),
    floors: Set[str] = frozenset(),
    axes: Axes | Mapping[str, Axes] | None = None,
) -> DrawnAuditFigure:
    """The figure of rows of one audit (of one level, where they have levels), in the style that is set.

    ``columns`` as the audit declares them; ``evaluators`` fixes the order, so that one looks the same in every figure.
    ``floors``: evaluators that others are measured by, drawn as lines; `drop_floor_evaluator_plot_rows` leaves them out
    where a kind of plot has no such line. ``axes``: to draw into, in
    place of a new figure; those of the one panel, or of panels by name. Raises `UsageError` where there is no such
    panel.
    """
    rows = drop_floor_evaluator_plot_rows(plot, rows, floors)
    present = list_declared_columns(columns, rows)
    groups = list_plot_group_columns(plot, columns, present, rows)
    line_keys = plot.labels if isinstance(plot, plot_specs.ForestPlotSpec) else ()
    frame = PlotFigureData(rows, {**columns, **present}, groups, list(evaluators), floors, line_keys)
    return _LAYOUTS[type(plot)](plot, frame).draw(axes)
