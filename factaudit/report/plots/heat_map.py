"""Heat maps of pairs of evaluators, and tables of counts, in many small panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes

from factaudit.audit.core.plot_specs import CrossTablePlotSpec, HeatMapPlotSpec
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    PAGE_WIDTH,
    line_height,
    measure_text_width,
    shorten_figure_label,
    wrap_figure_label,
)
from factaudit.report.plots.panel_layout import FigureLayout, PlotPanel, lay_out_figure_legend, set_title
from factaudit.report.plots.plot_data import PlotFigureData, list_unique, order_names
from factaudit.text.display_text import format_count


@dataclass(frozen=True)
class HeatMapCells:
    """A map: its title in two parts, and of each cell a share in [0, 1] (nan: undefined) and what it says.

    An empty text means that there is no such cell.
    """

    title: str
    subtitle: str
    shares: np.ndarray
    texts: list[list[str]]


def lay_out_heat_maps(plot: HeatMapPlotSpec, frame: PlotFigureData) -> FigureLayout:
    """A map for each group and value of ``plot.by``: pairs of evaluators, below the diagonal."""
    a, b = plot.pair
    names = order_names(list_unique([row[a] for row in frame.rows] + [row[b] for row in frame.rows]), frame.evaluators)
    kinds = list_unique(row[plot.by] for row in frame.rows)
    position = {name: number for number, name in enumerate(names)}
    size = len(names) - 1
    grids = {(group, kind): np.full((size, size), np.nan) for group in frame.list_groups() for kind in kinds}
    drawn = set()
    for row in frame.rows:
        low, high = sorted((position[row[a]], position[row[b]]))
        if low != high:
            share = row[plot.value]
            grids[frame.label_group(row), row[plot.by]][high - 1, low] = np.nan if share is None else share
            drawn.add((high - 1, low))

    def say(place: tuple[int, int], share: float) -> str:
        return "" if place not in drawn else "–" if math.isnan(share) else f"{share:.2f}"

    maps = [
        HeatMapCells(
            group,
            f"{plot.prefix}{kind}",
            shares,
            [[say((i, j), share) for j, share in enumerate(line)] for i, line in enumerate(shares)],
        )
        for (group, kind), shares in grids.items()
    ]
    cell = 0.3 if len(names) <= 6 else 0.26
    return _lay_out_heat_map_grid(PAGE_WIDTH, maps, names[1:], names[:-1], maps_per_group=len(kinds), cell_height=cell)


def lay_out_count_heat_maps(plot: CrossTablePlotSpec, frame: PlotFigureData) -> FigureLayout:
    """A table of counts for each evaluator."""
    values = list(plot.values)
    maps = []
    for evaluator in frame.list_values("evaluator"):
        counts = np.zeros((len(values), len(values)), dtype=int)
        for row in frame.rows:
            if row["evaluator"] == evaluator and None not in (row[plot.rows], row[plot.columns]):
                counts[values.index(row[plot.rows]), values.index(row[plot.columns])] += 1
        total = int(counts.sum())
        shares = counts / total if total else np.full(counts.shape, np.nan)
        maps.append(
            HeatMapCells(evaluator, format_count(total, plot.noun), shares, [list(map(str, line)) for line in counts])
        )
    titles = (frame.columns[plot.rows].heading, frame.columns[plot.columns].heading)
    return _lay_out_heat_map_grid(
        PAGE_WIDTH, maps, values, values, axis_titles=titles, slants_names=False, cell_height=0.36, min_pitch=1.5
    )


def _lay_out_heat_map_grid(
    page_width: float,
    maps: Sequence[HeatMapCells],
    row_names: Sequence[str],
    column_names: Sequence[str],
    *,
    maps_per_group: int = 1,
    axis_titles: tuple[str, str] | None = None,
    slants_names: bool = True,
    cell_height: float = 0.3,
    min_pitch: float = 1.3,
) -> FigureLayout:
    """Maps in lines that hold whole groups of maps, where these fit on the page."""
    row_labels = [wrap_figure_label(name, 100) for name in row_names]
    column_labels = ["\n".join(wrap_figure_label(name, 80)) for name in column_names]
    left = max(measure_text_width(line) for lines in row_labels for line in lines) / 72 + 0.12
    left += 0.2 if axis_titles else 0
    below = 0.22
    if slants_names:
        # No longer than it takes to tell them apart.
        for longest in (80, 120, 160):
            column_labels = [shorten_figure_label(name, longest) for name in column_names]
            if len(set(column_labels)) == len(column_names):
                break
        reach = max(map(measure_text_width, column_labels)) / 72 * 0.72
        # A slanted name ends under its cell and reaches to the left.
        left, below = max(left, reach - cell_height / 2 + 0.05), reach + 0.25
    width, height = cell_height * len(column_names), cell_height * len(row_names)
    pitch = max(width + 0.15, min_pitch)
    fit = max(1, int((page_width - left) // pitch))
    per_line = min(fit // maps_per_group * maps_per_group or fit, len(maps))
    titles = [wrap_figure_label(one.title, (pitch - 0.1) * 72, bold=True) for one in maps]
    subtitles = [wrap_figure_label(one.subtitle, (pitch - 0.1) * 72) for one in maps]
    under = 0.95 * line_height(max(map(len, subtitles)))
    head = line_height(max(map(len, titles))) + under + 0.1
    n_lines = math.ceil(len(maps) / per_line)

    def place_panel(number: int, cells: HeatMapCells) -> PlotPanel:
        line, column = divmod(number, per_line)

        def draw(ax: Axes) -> None:
            _draw_heat_map_cells(ax, cells)
            slant: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor", "va": "top"} if slants_names else {}
            ax.set_xticks([j + 0.5 for j in range(len(column_labels))], column_labels, **slant)
            ax.set_yticks([i + 0.5 for i in range(len(row_labels))], ["\n".join(lines) for lines in row_labels])
            set_title(ax, "\n".join(titles[number]), pad=3 + 72 * under if cells.subtitle else None)
            ax.annotate(
                "\n".join(subtitles[number]),
                *((0, 1), (0, 4)),
                xycoords="axes fraction",
                textcoords="offset points",
                fontsize=rcParams["ytick.labelsize"],
            )
            if axis_titles:
                ax.set(ylabel=axis_titles[0], xlabel=axis_titles[1])

        top = 0.02 + line * (head + height + 0.12) + head
        is_last = line == n_lines - 1
        name = " · ".join(filter(None, (cells.title, cells.subtitle if maps_per_group > 1 else "")))
        return PlotPanel(name, left + column * pitch, top, width, height, draw, (), column == 0, is_last)

    # Only more evaluators than a page can hold make it wider than a page.
    figure_width = max(COLUMN_WIDTH, left + per_line * pitch + 0.05)
    figure_height = n_lines * (head + height) + (n_lines - 1) * 0.12 + below + (0.18 if axis_titles else 0) + 0.05
    panels = [place_panel(number, cells) for number, cells in enumerate(maps)]
    return FigureLayout(figure_width, figure_height, panels, lay_out_figure_legend([], page_width))


def _draw_heat_map_cells(ax: Axes, cells: HeatMapCells) -> None:
    n_rows, n_columns = cells.shares.shape
    no_cell = np.array([[not text for text in line] for line in cells.texts])
    undefined = np.isnan(cells.shares)
    shown = np.ma.masked_array(cells.shares, mask=no_cell | undefined)
    # The palest colour is not white, and the darkest leaves the text readable.
    mesh = ax.pcolormesh(shown, vmin=-0.05 / 0.85, vmax=0.95 / 0.85, edgecolors=rcParams["axes.facecolor"], lw=0.8)
    ax.set(xlim=(0, n_columns), ylim=(n_rows, 0))
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for i, texts in enumerate(cells.texts):
        for j, text in enumerate(texts):
            if not text:
                continue
            colour = rcParams["text.color"]
            if undefined[i, j]:
                look = {"fc": "none", "ec": rcParams["grid.color"], "hatch": "////", "lw": 0.8}
                ax.bar(j, 1, 1, i, align="edge", **look)
            else:
                red, green, blue, _ = mesh.to_rgba(cells.shares[i, j])
                colour = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.55 else "#222222"
            size = rcParams["ytick.labelsize"]
            ax.text(j + 0.5, i + 0.5, text, ha="center", va="center", color=colour, fontsize=size)
