"""Figures that a paper could print: each kind of plot that an audit may declare, drawn. No audit is known here.

`draw` returns a matplotlib ``Figure`` without axes (`factaudit.report.plots.canvas`); matplotlib is imported only then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from factaudit.audit.core.declare import Column, columns_of
from factaudit.audit.core.plot import CrossTable, DotPlot, Flips, Forest, Grid, HeatMap, Lines, Plot, Scatter
from factaudit.audit.core.rows import Row
from factaudit.report.plots.groups import group_columns, without_all, without_floors

if TYPE_CHECKING:
    from factaudit.report.plots.canvas import Canvas


def draw(
    plot: Plot,
    rows: Sequence[Row],
    columns: Mapping[str, Column],
    evaluators: Sequence[str] = (),
    floors: Set[str] = frozenset(),
    width: float | None = None,
) -> Canvas:
    """The figure of rows of one audit (of one level, where they have levels).

    ``columns`` as the audit declares them; ``evaluators`` fixes the order, so that one looks the same in every figure.
    ``floors``: those that are lines for the others to be measured by; `without_floors` leaves them out where a kind of
    plot has no such line. ``width``: in inches, of a page by default.
    """
    from factaudit.report.plots.dots import draw_dots, draw_flips
    from factaudit.report.plots.forest import draw_forest
    from factaudit.report.plots.heat import draw_cross_tables, draw_grid, draw_heat_maps
    from factaudit.report.plots.lines import draw_lines
    from factaudit.report.plots.marks import Frame
    from factaudit.report.plots.scatter import draw_scatter
    from factaudit.report.plots.style import PAGE, styled

    kinds: dict[type[Plot], Callable[[Any, Frame], Canvas]] = {
        DotPlot: draw_dots,
        Flips: draw_flips,
        Scatter: draw_scatter,
        HeatMap: draw_heat_maps,
        CrossTable: draw_cross_tables,
        Grid: draw_grid,
        Lines: draw_lines,
        Forest: draw_forest,
    }
    rows = without_floors(plot, without_all(plot, rows), floors)
    present = columns_of(columns, rows)
    frame = Frame(
        rows,
        {**columns, **present},
        group_columns(plot, columns, present, rows),
        list(evaluators),
        floors,
        width or PAGE,
    )
    return styled(kinds[type(plot)])(plot, frame)
