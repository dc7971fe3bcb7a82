"""FActScore's own figures, from the rows of a run; they go into the report as an engine's sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from factaudit.engines.factscore.labeled import human_score
from factaudit.report.plots.style import COLUMN, PAGE, styled

Row = dict[str, Any]

_POINT, _MEAN, _LINE = "#56B4E9", "#D55E00", "#888888"
#: Panels side by side; further verifiers are in the tables.
_PANELS = 3


@styled
def scores_figure(responses: Sequence[Row], summary: Row) -> Figure:
    """Each response's FActScore (a point) by system, with the mean and its interval; a panel per verifier."""
    every = summary.get("evaluators") or [summary]
    shown = every[:_PANELS]
    systems = [part["system"] for part in summary["systems"]]
    width = COLUMN if len(shown) == 1 else PAGE
    figure = Figure(figsize=(width, 0.75 + 0.42 * len(systems)), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    noise = np.random.default_rng(0)
    for axis, one in zip(axes, shown, strict=True):
        for place, part in enumerate(one["systems"]):
            values = [
                row["evaluators"][one["evaluator"]]["score"] for row in responses if row["system"] == part["system"]
            ]
            values = [value for value in values if value is not None]
            jitter = noise.uniform(-0.22, 0.22, len(values))
            axis.plot(values, place + jitter, ls="", marker="o", ms=2, color=_POINT, alpha=0.5, mew=0)
            if part["score_low"] is not None:
                axis.plot([part["score_low"], part["score_high"]], [place, place], color=_MEAN, lw=1.6)
            if part["score"] is not None:
                axis.plot([part["score"]], [place], ls="", marker="D", ms=4.5, color=_MEAN)
        _unit(axis, "FActScore", one["evaluator"])
        axis.set_yticks(range(len(systems)), [_short(system) for system in systems])
        axis.set_ylim(len(systems) - 0.5, -0.5)
        axis.tick_params(axis="y", length=0)
    return figure


@styled
def calibration_figure(responses: Sequence[Row], calibration: Sequence[Row], irrelevant: str) -> Figure:
    """Predicted score (without the penalty) against people's: a point per response, a diamond per bin."""
    evaluators = list(dict.fromkeys(row["evaluator"] for row in calibration))[:_PANELS]
    width = COLUMN if len(evaluators) == 1 else PAGE
    side = min(2.6, (width - 0.6) / len(evaluators))
    figure = Figure(figsize=(width, side + 0.55), layout="constrained")
    axes = figure.subplots(1, len(evaluators), squeeze=False, sharey=True)[0]
    for axis, evaluator in zip(axes, evaluators, strict=True):
        pairs = [
            (row["evaluators"][evaluator]["init_score"], human_score(row.get("human"), irrelevant)) for row in responses
        ]
        both = [(x, y) for x, y in pairs if x is not None and y is not None]
        axis.plot([0, 1], [0, 1], color=_LINE, lw=0.7, ls=(0, (4, 2)))
        axis.plot(*zip(*both, strict=True), ls="", marker="o", ms=2.2, color=_POINT, alpha=0.6, mew=0)
        mine = [row for row in calibration if row["evaluator"] == evaluator]
        # All systems together where there are several: the first group of the rows.
        mine = [row for row in mine if row["system"] == mine[0]["system"]]
        axis.plot(
            [row["predicted"] for row in mine], [row["human"] for row in mine], color=_MEAN, lw=1, marker="D", ms=4
        )
        _unit(axis, "predicted", evaluator)
        axis.set_ylim(-0.03, 1.03)
        axis.set_aspect("equal")
    axes[0].set_ylabel("people's")
    return figure


def _unit(axis: Axes, label: str, title: str) -> None:
    axis.set_xlim(-0.03, 1.03)
    axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_xlabel(label)
    axis.set_title(_short(title, 28), loc="left")
    axis.grid(True)
    axis.set_axisbelow(True)


def _short(name: str | None, size: int = 18) -> str:
    text = "–" if name is None else name
    return text if len(text) <= size else text[: size - 1] + "…"
