"""The report's figures: what they draw is in the rows, and nothing is clipped, overlapping, too
small or random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from audit_worlds import audit_world, make_world
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.text import Text
from report_results import make_results

from factaudit import Results, UsageError
from factaudit.audit import list_computable_audits, load_all_audits
from factaudit.audit.core.audit_declaration import LinePlot, PlotSpec, ScatterPlot
from factaudit.audit.core.result_rows import is_redundant_macro_row, is_total_key
from factaudit.report.figures import MAX_EVALUATORS, ReportFigure, make_report_figure
from factaudit.report.plots.drawing import DrawnFigure, draw_audit_plot
from factaudit.report.plots.files import write_figure_files
from factaudit.report.plots.style import PAGE_WIDTH, use_report_style

Rows = list[dict[str, Any]]
DRAWN_AUDITS = {name: audit for name, audit in list_computable_audits().items() if audit.plot}
#: One of each kind, and those that show what can go wrong.
QUICK = ("rates", "quantification", "ranking", "surface_bias", "factscore")
NAMES = (
    "x" * 90,
    "two words " * 9,
    "$a_b$ & <script>alert(1)</script>",
    "_hidden",
    "数据集",
    "e" * 30,
    "f",
    "g",
)


def draw(audit: str, rows: Rows, evaluators: Sequence[str] = ()) -> DrawnFigure:
    declared = DRAWN_AUDITS[audit]
    assert declared.plot is not None
    with use_report_style():
        return draw_audit_plot(declared.plot, rows, declared.columns, evaluators)


@cache
def _results(size: str) -> dict[str, Any]:
    """Made once for all figures; drawing changes no row."""
    if size == "awkward names":
        return make_results(2, 3, 2, datasets=NAMES[:2], evaluators=NAMES[2:5], systems=NAMES[5:])
    return make_results(*{"least": (1, 1, 1), "greatest": (10, 4, 5)}[size])


def _texts(figure: Figure) -> Iterator[Text]:
    """All text that is drawn: labels of ticks that lie outside of their axes are not."""
    outside = {
        label
        for ax in figure.axes
        for axis, (low, high) in (
            (ax.xaxis, sorted(ax.get_xlim())),
            (ax.yaxis, sorted(ax.get_ylim())),
        )
        for tick in axis.get_major_ticks()
        for label in (tick.label1, tick.label2)
        if not low <= tick.get_loc() <= high
    }
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in outside:
            yield text


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(
            name, size, marks=[] if name in QUICK and size != "greatest" else [pytest.mark.slow]
        )
        for name in DRAWN_AUDITS
        for size in ("least", "greatest", "awkward names")
        # One evaluator, and one system, make no pairs.
        if size != "least"
        or name not in ("consistency", "ranking_pairs", "chunking", "chunking_rates")
    ],
)
def test_text_is_whole_apart_and_large_enough(name: str, size: str) -> None:
    results = _results(size)
    rows = [row for row in results["audits"][name] if row.get("level", "claim") == "claim"]
    evaluators = [each["name"] for each in results["about"]["evaluators"]]
    picture = make_report_figure(DRAWN_AUDITS[name], rows, evaluators, set())
    assert picture is not None
    assert picture.draw is not None
    figure = picture.draw().figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert figure.get_figwidth() <= PAGE_WIDTH + 1e-9
    boxes = []
    for text in _texts(figure):
        box = text.get_window_extent(canvas.get_renderer())
        assert text.get_fontsize() >= 7, text.get_text()
        edges = min(box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1)
        assert edges >= -0.5, f"{text.get_text()!r} is clipped"
        if not text.get_rotation():
            boxes.append((text.get_text(), box))
    for at, (one, box) in enumerate(boxes):
        for other, there in boxes[at + 1 :]:
            wide = min(box.x1, there.x1) - max(box.x0, there.x0)
            high = min(box.y1, there.y1) - max(box.y0, there.y0)
            assert min(wide, high) <= 1, (one, other)


# What is drawn
# ------------------------------------------------------------


def _markers(axes: Sequence[Axes]) -> list[tuple[float, float]]:
    """What all markers stand for."""
    found = [one for ax in axes for one in ax.collections if isinstance(one, PathCollection)]
    return [
        (float(x), float(y))
        for one in found
        for x, y in np.asarray(one.get_offsets()).reshape(-1, 2)
    ]


@pytest.mark.parametrize(
    "world",
    [
        "whole",
        "unscored",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("a constant", "one system")),
    ],
)
def test_every_row_of_a_plot_is_drawn(world: str) -> None:
    results = audit_world(make_world(world)).to_dict()
    names = [row["name"] for row in results["about"]["evaluators"]]
    floors = {row["name"] for row in results["about"]["evaluators"] if row["floor"]}
    looked_at: Counter[type] = Counter()
    for audit in load_all_audits().values():
        rows = [
            row for row in results["audits"].get(audit.name, []) if not is_redundant_macro_row(row)
        ]
        rows = rows if audit.readable is None or not rows else list(audit.readable(rows)[0])
        rows = [row for row in rows if row.get("level", "claim") == "claim"]
        picture = make_report_figure(audit, rows, names, floors) if rows else None
        if picture is None or picture.draw is None or "Shown are" in picture.caption:
            continue
        plot = audit.plot
        assert plot is not None
        keys = ("evaluator", "evaluator_a", "evaluator_b")
        rows = [row for row in rows if not {row.get(key) for key in keys} & floors] or rows
        scale = {
            key: 100 if audit.columns[key].unit in ("percent", "points") else 1 for key in plot.keys
        }
        drawn = _markers(picture.draw().figure.axes)
        if isinstance(plot, ScatterPlot):
            # A total is no system.
            single = [row for row in rows if not is_total_key(row.get("system"))] or rows
            whole = [row for row in single if None not in (row[plot.x], row[plot.y])]
            expected = [(scale[plot.x] * row[plot.x], scale[plot.y] * row[plot.y]) for row in whole]
            assert sorted(drawn) == pytest.approx(np.array(sorted(expected))), audit.name
        else:
            values = [
                scale[key] * row[key]
                for row in rows
                for key in plot.keys
                if row.get(key) is not None
            ]
            axis = 1 if isinstance(plot, LinePlot) else 0
            assert sorted(point[axis] for point in drawn) == pytest.approx(sorted(values)), (
                audit.name
            )
        looked_at[type(plot)] += len(drawn)
    assert looked_at[PlotSpec] > 20
    assert looked_at[ScatterPlot] > 4


# Files
# ------------------------------------------------------------


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = make_results(3, 3)["audits"]["rates"]
    for folder in ("one", "two"):
        write_figure_files(
            draw("rates", rows), tmp_path / folder / "rates", "Rates", ("svg", "png", "pdf")
        )
    for kind in ("svg", "png", "pdf"):
        first, second = (
            (tmp_path / folder / f"rates.{kind}").read_bytes() for folder in ("one", "two")
        )
        assert first == second
    svg = (tmp_path / "one" / "rates.svg").read_text(encoding="utf-8")
    assert "<text" not in svg, "text must be drawn as paths"
    assert "dc:date" not in svg


@pytest.mark.filterwarnings("error")
def test_letters_that_the_fonts_lack_are_left_to_the_readers_own(tmp_path: Path) -> None:
    rows = [{"dataset": "d", "evaluator": "判定", "n": 9, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7}]
    paths = write_figure_files(draw("rates", rows), tmp_path / "rates", "Rates", ("svg", "png"))
    assert "判定</text>" in paths[0].read_text(encoding="utf-8")


def test_points_lead_to_their_claims(tmp_path: Path) -> None:
    rows = [
        {"dataset": 'a"&<', "evaluator": "e&<>", "n": 9, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7},
        {"dataset": "__macro__", "evaluator": "e&<>", "n": 9, "tpr": 0.7, "tnr": 0.5, "bacc": None},
    ]
    (path,) = write_figure_files(draw("rates", rows), tmp_path / "rates", "Rates")
    links = list(ElementTree.parse(path).getroot().iter("{http://www.w3.org/2000/svg}a"))
    asked = [parse_qs(one.attrib["href"].removeprefix("../report.html#claims?")) for one in links]
    of_set = {"evaluator": ["e&<>"], "dataset": ['a"&<'], "kind": ["rejected"]}
    assert asked == [of_set, {"evaluator": ["e&<>"], "kind": ["rejected"]}]
    assert links[0][0].text == 'e&<>, a"&<: TPR (%) 80.0, TNR (%) 60.0'


# A user's own
# ------------------------------------------------------------


@pytest.fixture(scope="module")
def results() -> Results:
    found = make_results(2, 3, 3)
    about = found["about"] | {
        "evaluators": [row | {"floor": False} for row in found["about"]["evaluators"]]
    }
    return Results(found["signature"], about, found["audits"])


def test_users_bring_axes_and_styles(results: Results) -> None:
    from matplotlib import pyplot

    two = results.evaluators[:2]
    theirs, ax = pyplot.subplots()
    before = dict(matplotlib.rcParams)
    try:
        assert results.figure("rates", evaluator=two, ax=ax) is theirs
        assert len(_markers([ax])) == sum(
            row["tnr"] is not None for row in results.rows("rates", evaluator=two)
        )
        assert [text.get_text() for text in ax.get_legend().get_texts()] == two
        assert ax.get_xticklabels()[0].get_fontsize() == 10, "their fonts stay"
        assert results.figure("headroom", ax=pyplot.figure().add_subplot()).axes[0].get_title()
        assert (
            len(
                results.figure(
                    "ranking", panel="kendall_tau", ax=pyplot.figure().add_subplot()
                ).axes
            )
            == 1
        )
        for name, wrong, message in (
            ("ranking", {"ax": ax}, "this figure has 4 panels; name one of error_rate"),
            (
                "ranking",
                {"panel": "kendal_tau"},
                r"no 'kendal_tau' \(did you mean 'kendall_tau'\?\)",
            ),
        ):
            with pytest.raises(UsageError, match=message):
                results.figure(name, **wrong)
    finally:
        pyplot.close("all")
    assert dict(matplotlib.rcParams) == before, "the style has ended"


# Many evaluators and systems
# ------------------------------------------------------------

JUDGES = [f"judge{i}" for i in range(20)]


def rate_row(dataset: str, evaluator: str) -> dict[str, Any]:
    figures = dict.fromkeys(("tpr", "tnr", "bacc"), 0.5)
    return {
        "dataset": dataset,
        "evaluator": evaluator,
        "n": 20,
        "n_unscored": 0,
        **figures,
        "reason": None,
    }


def figure_of(audit: str, rows: Rows, ranked: list[str] = JUDGES) -> ReportFigure:
    found = make_report_figure(DRAWN_AUDITS[audit], rows, JUDGES, set(), ranked)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("names", "ranked", "shown"),
    [
        (JUDGES, JUDGES[::-1], [*JUDGES[:14:-1], *JUDGES[2::-1]]),
        (JUDGES[:8], JUDGES, JUDGES[:8]),
        (JUDGES[6:10], JUDGES, JUDGES[6:10]),
    ],
    ids=["the best and the worst of twenty", "all of eight", "those that an audit has"],
)
def test_a_figure_has_so_many_evaluators(
    names: list[str], ranked: list[str], shown: list[str]
) -> None:
    figure = figure_of(
        "rates", [rate_row(f"d{i}", name) for i in range(3) for name in names], ranked
    )
    assert figure.draw is not None
    legend = figure.draw().figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == shown
    assert len({line.get_color() for line in legend.get_lines()}) == len(shown) <= MAX_EVALUATORS
    assert ("Shown are the best 5 and the worst 3 of 20 evaluators." in figure.caption) == (
        len(names) > 8
    )


def test_of_many_groups_those_with_the_lowest_and_the_highest_figures_are_drawn() -> None:
    rows = [
        {"dataset": f"d{i:02}", "evaluator": "judge0", "n": 20, "auc": i / 100, "tuned_bacc": 0.5}
        for i in range(40)
    ]
    figure = figure_of("discrimination", rows)
    assert figure.draw is not None
    labels = figure.draw().figure.axes[0].get_yticklabels()
    assert [text.get_text() for text in labels] == [f"d{i:02}" for i in (*range(7), *range(33, 40))]
    assert "Shown are the 7 with the lowest and the 7 with the highest AUC of 40." in figure.caption
