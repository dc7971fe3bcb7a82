"""Heat maps of pairs of evaluators, and tables of counts, in many small panels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.colors import to_rgb

from factaudit.audit.core.plot import CrossTable, Grid, HeatMap
from factaudit.report.plots.canvas import Canvas
from factaudit.report.plots.marks import Frame, ordered, unique
from factaudit.report.plots.style import BASE, COLUMN, INK, shorten, text_width, wrap


def draw_heat_maps(plot: HeatMap, frame: Frame) -> Canvas:
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


def draw_cross_tables(plot: CrossTable, frame: Frame) -> Canvas:
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


def draw_grid(plot: Grid, frame: Frame) -> Canvas:
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
) -> Canvas:
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
    figure = Canvas(width, height)
    cmap = matplotlib.colormaps["Blues"]
    for position, heat in enumerate(maps):
        line, column = divmod(position, per_line)
        top = 0.02 + line * (head + inner[1] + 0.12) + head
        panel = figure.panel(left + column * pitch, top, *inner, (0, len(columns)), (len(rows), 0))
        shades: dict[bool, list[tuple[float, float, Any]]] = {True: [], False: []}
        for i, (values, texts) in enumerate(zip(heat.values, heat.texts, strict=True)):
            for j, (value, text) in enumerate(zip(values, texts, strict=True)):
                if not text:
                    continue
                # The palest colour is not white, and the darkest leaves the text readable.
                colour = "#ffffff" if value is None else cmap(0.05 + 0.85 * value)
                shades[value is None].append((j, i, colour))
                red, green, blue = to_rgb(colour)
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                middle = panel.at(j + 0.5, i + 0.5)
                figure.write(middle, text, ha="center", va="center", color="white" if dark else INK)
        for undefined, cells in shades.items():
            panel.cells(cells, hatch="////" if undefined else None)
        if column == 0:
            panel.name([i + 0.5 for i in range(len(rows))], ["\n".join(lines) for lines in row_labels])
            if axes:
                place = 0.1, top + inner[1] / 2
                figure.write(place, axes[0], ha="center", va="center", rotation=90, fontsize=BASE)
        if line == count - 1:
            panel.names[0][:] = ["\n".join(lines) for lines in column_labels]
            for j, label in enumerate(panel.names[0]):
                x, y = panel.at(j + 0.5, len(rows))
                # Which ends under its cell.
                slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if rotate else {"ha": "center"}
                figure.write((x, y + 2 / 72), label, va="top", **slanted)
            if axes:
                under_names = height - 0.05
                figure.write((panel.left + inner[0] / 2, under_names), axes[1], ha="center", va="bottom", fontsize=BASE)
        panel.title = heat.title
        y = top - 0.06 - under
        figure.write((panel.left, y), "\n".join(titles[position]), bold=True, fontsize=BASE, va="bottom")
        figure.write((panel.left, y + 0.01), "\n".join(subtitles[position]), va="top")
    return figure.finish()
