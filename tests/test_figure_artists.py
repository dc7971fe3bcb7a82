"""What figures show, read from matplotlib's artists, against the rows and the captions: every row is drawn or named."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from audit_worlds import audit_world, make_world
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from factaudit.audit import load_all_audits
from factaudit.audit.core.audit_declaration import Audit
from factaudit.audit.core.result_rows import is_redundant_macro_row
from factaudit.report.figures import ReportFigure, make_report_figure

Row = dict[str, Any]
Results = dict[str, Any]
#: Widths of lines, as `drawing` draws them: of intervals, of bounds, of references and floors.
INTERVAL_WIDTH, BOUNDS_WIDTH, REFERENCE_WIDTH = 0.8, 3.0, 1.2


@dataclass(frozen=True)
class DrawnFigures:
    """The figures of one plot, of rows of one level."""

    audit: Audit
    plot: Any
    rows: list[Row]
    floors: set[str]
    figure: ReportFigure
    axes: list[Axes]

    def read_markers(self) -> list[tuple[float, float]]:
        """The places of all markers."""
        lines = [line for ax in self.axes for line in ax.lines if line.get_marker() not in (None, "None", "")]
        return [(float(x), float(y)) for line in lines for x, y in line.get_xydata()]

    def read_segments(self, width: float) -> list[np.ndarray]:
        found = []
        for ax in self.axes:
            for artist in ax.collections:
                if isinstance(artist, LineCollection) and math.isclose(artist.get_linewidths()[0], width):
                    found += list(artist.get_segments())
        return found

    def scale(self, key: str) -> float:
        return 100 if self.audit.columns[key].unit in ("percent", "points") else 1

    def is_floor(self, row: Row) -> bool:
        """Whether a row is of an evaluator that reads nothing: such are lines, where a plot has any others."""
        return bool({row.get(key) for key in ("evaluator", "evaluator_a", "evaluator_b")} & self.floors)


SLOW_WORLDS = ("a constant", "one system", "nothing labelled", "floors")


@pytest.fixture(
    scope="module", params=["whole", "unscored", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW_WORLDS)]
)
def results(request: pytest.FixtureRequest) -> Results:
    claims, verdicts = make_world("whole" if request.param == "floors" else request.param)
    if request.param == "floors":
        verdicts["evaluator"] = verdicts["evaluator"].replace({"swift": "always-no"})
    return audit_world((claims, verdicts)).to_dict()


def list_drawn_figures(results: Results) -> Iterator[DrawnFigures]:
    about, cache = results["about"], results.setdefault("drawn here", {})
    names = [row["name"] for row in about["evaluators"]]
    floors = {row["name"] for row in about["evaluators"] if row["floor"]}
    for audit in load_all_audits().values():
        every = [row for row in results["audits"].get(audit.name, []) if not is_redundant_macro_row(row)]
        every = every if audit.readable is None or not every else list(audit.readable(every)[0])
        for plot in [audit.plot] if audit.plot else []:
            for level in dict.fromkeys(row.get("level") for row in every):
                # Each is drawn once, for all tests.
                key = audit.name, level
                if key not in cache:
                    rows = [row for row in every if row.get("level") == level]
                    figure = make_report_figure(audit, rows, names, floors)
                    is_whole = figure is not None and "Shown are" not in figure.caption
                    axes = figure.draw().figure.axes if is_whole else []
                    cache[key] = DrawnFigures(audit, plot, rows, floors, figure, axes) if is_whole else None
                if cache[key] is not None:
                    yield cache[key]


def count_rounded(values: Sequence[float]) -> Counter[float]:
    return Counter(round(float(value), 4) for value in values)


def test_every_row_of_a_plot_is_drawn_or_named_as_undefined(results: Results) -> None:
    looked_at = 0
    for drawn in list_drawn_figures(results):
        rows, keys = drawn.rows, drawn.plot.keys
        floors = [row for row in rows if drawn.is_floor(row)]
        marked = [row for row in rows if row not in floors] or rows
        expected = [row[key] * drawn.scale(key) for row in marked for key in keys if row.get(key) is not None]
        found = count_rounded([x for x, _ in drawn.read_markers()])
        assert found == count_rounded(expected), (drawn.audit.name, drawn.figure.stem)
        looked_at += len(expected)
        if drawn.plot.reference:
            lines = count_rounded([x for one in drawn.read_segments(REFERENCE_WIDTH) for x in one[:, 0]])
            key = drawn.plot.reference
            assert {round(row[key] * drawn.scale(key), 4) for row in marked if row.get(key) is not None} <= set(lines)
    assert looked_at > 40


def test_lines_are_drawn_where_rows_have_intervals(results: Results) -> None:
    for drawn in list_drawn_figures(results):
        segments = drawn.read_segments(INTERVAL_WIDTH)
        place = (drawn.audit.name,)
        if not segments:
            continue
        lined = [row for row in drawn.rows if not drawn.is_floor(row)]
        keys = drawn.plot.keys
        ends = [
            [row[f"{key}_low"] * drawn.scale(key), row[f"{key}_high"] * drawn.scale(key)]
            for row in lined
            for key in keys
            if row.get(f"{key}_low") is not None and row.get(key) is not None
        ]
        assert count_rounded([x for one in segments for x in one[:, 0]]) == count_rounded(
            [end for pair in ends for end in pair]
        ), place


def test_no_axis_of_a_share_goes_far_beyond_what_shares_can_be(results: Results) -> None:
    """An AUC's axis began at −0.2: figures from 0 to 1 had the air of percentages."""
    drawn_keys = set()
    for drawn in list_drawn_figures(results):
        keys = drawn.plot.keys
        for at, ax in enumerate(drawn.axes):
            key = keys[at % len(keys)]
            if drawn.audit.columns[key].unit == "percent" or key == "auc":
                low, high = (end / drawn.scale(key) for end in ax.get_xlim())
                assert -0.05 <= low < high <= 1.05, (drawn.audit.name, key)
                drawn_keys.add(key)
    assert "auc" in drawn_keys or all(row["auc"] is None for row in results["audits"]["discrimination"])


def test_names_of_groups_and_series_stand_in_the_figure(results: Results) -> None:
    for drawn in list_drawn_figures(results):
        plot = drawn.plot
        figures = list(dict.fromkeys(ax.figure for ax in drawn.axes))
        legend = {text.get_text() for one in figures for part in one.legends for text in part.get_texts()}
        for row in drawn.rows:
            if any(row.get(key) is not None for key in plot.keys):
                name = str(row[plot.series])
                assert any(text.startswith(drawn.audit.columns[plot.series].values.get(name, name)) for text in legend)
        ticks = " ".join(text.get_text() for ax in drawn.axes for text in ax.get_yticklabels())
        groups = plot.groups or ("dataset",)
        rows = [row for row in drawn.rows if plot.series == "evaluator" or not drawn.is_floor(row)]
        several = [key for key in groups if len({row.get(key) for row in rows}) > 1]
        for key in several or groups[:1]:
            for row in rows:
                value = row.get(key)
                shown = (
                    drawn.audit.columns[key].values.get(str(value), str(value)) if key in drawn.audit.columns else ""
                )
                assert re.sub(r"\s", "", shown) in re.sub(r"\s", "", ticks), (drawn.audit.name, key, value)
