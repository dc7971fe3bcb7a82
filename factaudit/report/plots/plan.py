"""How wide intervals will be by the number of labels, with the range that a pilot leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factaudit.audit.core.rows import Row
from factaudit.report.plots.style import COLUMN, INK, figure_with_legend, look_of, marker_of, styled
from factaudit.report.plots.style import Series as Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_plan(rows: Sequence[Row], width: float) -> Figure:
    """The rows of `factaudit.estimate.plan`: mean width over systems against labels, a panel per dataset."""
    return styled(_draw)(rows, width)


def _draw(rows: Sequence[Row], width: float) -> Figure:
    mean = [row for row in rows if row["system"] == "__mean__" and row["width"] is not None]
    datasets = list(dict.fromkeys(row["dataset"] for row in mean))
    methods = list(dict.fromkeys(row["method"] for row in mean))
    looks = [Look(name, name, *look_of(at)) for at, name in enumerate(methods)]
    figure, legend = figure_with_legend(COLUMN, 2.2 * len(datasets), looks)
    axes = figure.subplots(len(datasets), 1, squeeze=False, sharex=True).ravel()
    for axis, dataset in zip(axes, datasets, strict=True):
        for look in looks:
            mine = [row for row in mean if row["dataset"] == dataset and row["method"] == look.key]
            x = [row["n_labels"] for row in mine]
            low, high = ([100 * row[f"width_{end}"] for row in mine] for end in ("low", "high"))
            axis.fill_between(x, low, high, color=look.colour, alpha=0.15, lw=0)
            axis.plot(x, [100 * row["width"] for row in mine], **marker_of(look, 3.6) | {"ls": "-", "lw": 0.9})
        axis.axhline(100 * width, color=INK, lw=0.7, ls=(0, (4, 2)))
        ticks = sorted({row["n_labels"] for row in mean})
        axis.set_xscale("log")
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.minorticks_off()
        axis.set_ylim(bottom=0)
        axis.set_ylabel("width (points)")
        axis.set_title(dataset, loc="left")
        axis.grid(True, axis="y")
    axes[-1].set_xlabel("labels in all")
    legend()
    return figure
