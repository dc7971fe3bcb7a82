"""Heat maps of pairs of evaluators, and tables of counts, in many small panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from factaudit.audit.core.plot import CrossTable, Grid, HeatMap
from factaudit.report.plots.marks import Frame, ordered, unique
from factaudit.report.plots.style import BASE, COLUMN, INK, SMALL, shorten, text_width, wrap


def draw_heat_maps(plot: HeatMap, frame: Frame) -> Figure:
    """A `HeatMap`: a map for each group and value of ``plot.by``."""
    a, b = plot.pair
    names = ordered(unique([row[a] for row in frame.rows] + [row[b] for row in frame.rows]), frame.evaluators)
    kinds = unique(row[plot.by] for row in frame.rows)
    at = {name: position for position, name in enumerate(names)}
    grids: dict[tuple[str, str], list[list[float | None]]] = {
        (group, kind): [[None] * (len(names) - 1) for _ in names[1:]] for group in frame.groups() for kind in kinds
    }
    drawn = set()
    for row in frame.rows:
        low, high = sorted((at[row[a]], at[row[b]]))
        if low != high:
            grids[frame.group(row), row[plot.by]][high - 1][low] = row[plot.value]
            drawn.add((high - 1, low))
    maps = [
        HeatCells(
            group,
            f"{plot.prefix}{kind}",
            values=grid,
            texts=[
                [("–" if v is None else f"{v:.2f}") if (i, j) in drawn else "" for j, v in enumerate(line)]
                for i, line in enumerate(grid)
            ],
        )
        for (group, kind), grid in grids.items()
    ]
    return _heat_maps(frame.width, maps, names[1:], names[:-1], step=len(kinds))


def draw_cross_tables(plot: CrossTable, frame: Frame) -> Figure:
    """A `CrossTable`: a table for each evaluator."""
    values = list(plot.values)
    maps = []
    for evaluator in frame.named("evaluator"):
        counts = [[0] * len(values) for _ in values]
        for row in frame.rows:
            if row["evaluator"] == evaluator and None not in (row[plot.rows], row[plot.columns]):
                counts[values.index(row[plot.rows])][values.index(row[plot.columns])] += 1
        total = sum(map(sum, counts))
        shares: list[list[float | None]] = [[n / total if total else None for n in line] for line in counts]
        maps.append(HeatCells(evaluator, f"{total} {plot.noun}", shares, [[str(n) for n in line] for line in counts]))
    axes = (frame.columns[plot.rows].heading, frame.columns[plot.columns].heading)
    return _heat_maps(frame.width, maps, values, values, axes=axes, rotate=False, cell=0.36, minimum=1.5)


def draw_grid(plot: Grid, frame: Frame) -> Figure:
    """A `Grid`: one map, whatever the groups."""
    lines, names = frame.named(plot.rows), frame.named(plot.columns)
    values: list[list[float | None]] = [[None] * len(names) for _ in lines]
    texts = [[""] * len(names) for _ in lines]
    for row in frame.rows:
        at = lines.index(str(row[plot.rows])), names.index(str(row[plot.columns]))
        values[at[0]][at[1]], texts[at[0]][at[1]] = row[plot.value], str(row[plot.text])
    heading = frame.columns[plot.rows].heading
    return _heat_maps(
        frame.width,
        [HeatCells("", "", values, texts)],
        [f"{heading} {line}" for line in lines],
        names,
        cell=0.26,
        wide=0.45,
    )


@dataclass(frozen=True)
class HeatCells:
    title: str
    subtitle: str
    values: list[list[float | None]]
    #: What each cell says; an empty text means that there is no such cell.
    texts: list[list[str]]


def _heat_maps(
    page: float,
    maps: Sequence[HeatCells],
    rows: Sequence[str],
    columns: Sequence[str],
    step: int = 1,
    axes: tuple[str, str] | None = None,
    rotate: bool = True,
    cell: float = 0.3,
    wide: float | None = None,
    minimum: float = 1.3,
) -> Figure:
    """Annotated heat maps of shares in [0, 1], in lines that hold a multiple of ``step``; laid out in inches."""
    wide = cell if wide is None else wide
    row_labels = [wrap(label, 100) for label in rows]
    column_labels = [wrap(label, 80) for label in columns]
    left = max(text_width(line) for lines in row_labels for line in lines) / 72 + 0.12 + (0.2 if axes else 0)
    below = 0.22
    if rotate:
        # No longer than it takes to tell them apart.
        for longest in (80, 120, 160):
            column_labels = [[shorten(label, longest)] for label in columns]
            if len({lines[0] for lines in column_labels}) == len(columns):
                break
        reach = max(text_width(lines[0]) for lines in column_labels) / 72 * 0.72
        # A rotated label ends under its cell and reaches to the left.
        left, below = max(left, reach - wide / 2 + 0.05), reach + 0.25
    inner = (wide * len(columns), cell * len(rows))
    pitch = max(inner[0] + 0.15, minimum)
    fit = max(1, int((page - left) // pitch))
    per_line = max(step, fit // step * step) if fit >= step else fit
    per_line = min(per_line, len(maps))
    titles = [wrap(heat.title, (pitch - 0.1) * 72, bold=True) for heat in maps]
    subtitles = [wrap(heat.subtitle, (pitch - 0.1) * 72) for heat in maps]
    under = 0.13 * max(map(len, subtitles))
    head = 0.135 * max(map(len, titles)) + under + 0.1
    count = math.ceil(len(maps) / per_line)
    # Only more evaluators than a page can hold make it wider than a page.
    width = max(COLUMN, left + per_line * pitch + 0.05)
    height = count * (head + inner[1]) + (count - 1) * 0.12 + below + (0.18 if axes else 0) + 0.05
    figure = Figure(figsize=(width, height))
    cmap = matplotlib.colormaps["Blues"]
    for position, heat in enumerate(maps):
        line, column = divmod(position, per_line)
        top = height - 0.02 - line * (head + inner[1] + 0.12) - head
        x = left + column * pitch
        axis = figure.add_axes((x / width, (top - inner[1]) / height, inner[0] / width, inner[1] / height))
        for i, (values, texts) in enumerate(zip(heat.values, heat.texts, strict=True)):
            for j, (value, text) in enumerate(zip(values, texts, strict=True)):
                if not text:
                    continue
                # The palest colour is not white, and the darkest leaves the text readable.
                colour = "#ffffff" if value is None else cmap(0.05 + 0.85 * value)
                axis.add_patch(
                    Rectangle(
                        (j, i),
                        1,
                        1,
                        facecolor=colour,
                        edgecolor="white",
                        lw=0.8,
                        hatch="////" if value is None else None,
                    )
                )
                red, green, blue = to_rgb(colour)
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                axis.text(
                    j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=SMALL, color="white" if dark else INK
                )
        axis.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
        axis.tick_params(length=0, pad=2)
        axis.spines[:].set_visible(False)
        axis.set_yticks([])
        axis.set_xticks([])
        if column == 0:
            axis.set_yticks([i + 0.5 for i in range(len(rows))], ["\n".join(lines) for lines in row_labels])
            if axes:
                axis.set_ylabel(axes[0])
        if line == count - 1:
            axis.set_xticks([j + 0.5 for j in range(len(columns))], ["\n".join(lines) for lines in column_labels])
            if rotate:
                for tick in axis.get_xticklabels():
                    tick.set(rotation=45, ha="right", rotation_mode="anchor")
            if axes:
                axis.set_xlabel(axes[1])
        titled: list[tuple[list[str], float, dict[str, Any]]] = [
            (titles[position], top + 0.06 + under, {"fontsize": BASE, "fontweight": "bold"}),
            (subtitles[position], top + 0.05 + under, {"fontsize": SMALL, "va": "top"}),
        ]
        for lines, y, look in titled:
            figure.text(x / width, y / height, "\n".join(lines), **{"va": "bottom", **look})
    return figure
