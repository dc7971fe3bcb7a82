"""D-FActScore's own figures, from the rows of a run; they go into the report as an engine's sections."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from factaudit.report.plots.style import COLUMN, styled

Row = dict[str, Any]

_FACTSCORE, _DFACTSCORE, _LINE = "#0072B2", "#D55E00", "#888888"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (5, 1, 1, 1)))
#: Systems in one figure; all are in the tables.
_SYSTEMS = 8


@styled
def scores_figure(rows: Sequence[Row]) -> Figure:
    """FActScore (circle) and D-FActScore (diamond) of each system, without the length penalty, with intervals."""
    figure = Figure(figsize=(COLUMN, 0.9 + 0.4 * len(rows)), layout="constrained")
    axis = figure.subplots()
    for place, row in enumerate(rows):
        ends = [row[key] for key in ("init_factscore", "init_dfactscore")]
        if None not in ends:
            axis.plot(ends, [place, place], color=_LINE, lw=0.8, zorder=1)
        for key, colour, marker, offset, label in (
            ("init_factscore", _FACTSCORE, "o", -0.12, "FActScore"),
            ("init_dfactscore", _DFACTSCORE, "D", 0.12, "D-FActScore"),
        ):
            if row[f"{key}_low"] is not None:
                interval = [row[f"{key}_low"], row[f"{key}_high"]]
                axis.plot(interval, [place + offset] * 2, color=colour, lw=1.2, solid_capstyle="butt")
            if row[key] is not None:
                named = label if place == 0 else "_"
                axis.plot([row[key]], [place], ls="", marker=marker, ms=4.5, color=colour, label=named, zorder=3)
    axis.set_yticks(range(len(rows)), [textwrap.fill(_short(row["system"], 60), 24) for row in rows])
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel("share of facts supported")
    axis.grid(True, axis="x")
    axis.set_axisbelow(True)
    figure.legend(loc="outside upper left", ncols=2)
    return figure


@styled
def gap_figure(responses: Sequence[Row]) -> Figure:
    """How FActScore - D-FActScore is distributed over the responses of each system: at the least so large a gap."""
    systems = list(dict.fromkeys(row["system"] for row in responses))[:_SYSTEMS]
    figure = Figure(figsize=(COLUMN, 2.2 + 0.14 * len(systems)), layout="constrained")
    axis = figure.subplots()
    for number, system in enumerate(systems):
        gaps = np.sort([row["gap"] for row in responses if row["system"] == system and row.get("gap") is not None])
        if not len(gaps):
            continue
        share = 1 - np.arange(len(gaps)) / len(gaps)
        axis.step(
            gaps,
            share,
            where="pre",
            color=_COLOURS[number % len(_COLOURS)],
            ls=_DASHES[number % len(_DASHES)],
            lw=1.2,
            label=_short(system, 40),
        )
    axis.set_xlabel("FActScore − D-FActScore is at least")
    axis.set_ylabel("share of responses")
    axis.set_ylim(0, 1.02)
    axis.grid(True)
    axis.set_axisbelow(True)
    figure.legend(loc="outside upper left", ncols=1)
    return figure


def _short(name: str | None, size: int) -> str:
    text = "–" if name is None else name
    return text if len(text) <= size else text[: size - 1] + "…"
