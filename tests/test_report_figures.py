"""The report's figures: what they draw is in the rows, and nothing is clipped, overlapping, too small or random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator
from report_results import make_results

from factaudit.audit import list_computable_audits
from factaudit.errors import UsageError
from factaudit.report.figures import MAX_EVALUATORS, ReportFigure, make_report_figure
from factaudit.report.plots import figure_files, figure_style
from factaudit.report.plots.drawing import DrawnAuditFigure, draw_audit_plot
from factaudit.report.plots.figure_style import use_report_style
from factaudit.results import Results

Rows = list[dict[str, Any]]


def _claim(rows: Rows) -> Rows:
    return [row for row in rows if row.get("level", "claim") == "claim"]


def draw(audit: str, rows: Rows, evaluators: Sequence[str] = (), **changes: Any) -> Figure:
    """The first figure that an audit declares."""
    return draw_with_points(audit, rows, evaluators, **changes).figure


def draw_with_points(
    audit: str, rows: Rows, evaluators: Sequence[str] = (), floors: frozenset[str] = frozenset(), **changes: Any
) -> DrawnAuditFigure:
    declared = list_computable_audits()[audit]
    with use_report_style():
        return draw_audit_plot(replace(declared.plot, **changes), rows, declared.columns, evaluators, floors)


#: By name: the audit, and what is changed of its declaration.
FIGURES: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, {}) for name, audit in list_computable_audits().items() if audit.plot
}
#: Those that show what can go wrong, before all others.
QUICK = ("rates", "quantification", "ranking", "surface_bias", "factscore")
NAMES = ("x" * 90, "two words " * 9, "$a_b$ & <script>alert(1)</script>", "_hidden", "数据集", "e" * 30, "f", "g")


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
        for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim())))
        for tick in axis.get_major_ticks()
        for label in (tick.label1, tick.label2)
        if not low <= tick.get_loc() <= high
    }
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text not in outside:
            yield text


def _draw(figure: Figure) -> FigureCanvasAgg:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        pytest.param(kind, size, marks=[] if kind in QUICK and size != "greatest" else [pytest.mark.slow])
        for kind in FIGURES
        for size in ("least", "greatest", "awkward names")
        # One evaluator, and one system, make no pairs.
        if size != "least" or kind not in ("consistency", "ranking_pairs", "chunking", "chunking_rates")
    ],
)
def test_text_is_whole_apart_and_large_enough(kind: str, size: str) -> None:
    audit, changes = FIGURES[kind]
    results = _results(size)
    rows = _claim(results["audits"][audit])
    assert rows
    figure = draw(audit, rows, [each["name"] for each in results["about"]["evaluators"]], **changes)
    renderer = _draw(figure).get_renderer()

    assert figure.get_figwidth() <= figure_style.PAGE_WIDTH + 1e-9
    boxes = []
    for text in _texts(figure):
        box = text.get_window_extent(renderer)
        assert text.get_fontsize() >= 7, text.get_text()
        assert min(box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1) >= -0.5, (
            f"{text.get_text()!r} is clipped"
        )
        if not text.get_rotation():
            boxes.append((text.get_text(), box))
    ends = np.array([box.extents for _, box in boxes]).reshape(-1, 4)
    wide, high = (
        np.minimum.outer(ends[:, at + 2], ends[:, at + 2]) - np.maximum.outer(ends[:, at], ends[:, at]) for at in (0, 1)
    )
    overlapping = np.argwhere(np.triu((wide > 1) & (high > 1), 1))
    assert [(boxes[one][0], boxes[other][0]) for one, other in overlapping] == []


def _named(figure: Figure) -> dict[str, str]:
    """The names in the legend with the colours of their markers."""
    (legend,) = figure.legends
    handles = [(h.get_marker(), to_hex(h.get_color())) for h in legend.legend_handles]
    return {
        text.get_text(): colour if marker else ""
        for text, (marker, colour) in zip(legend.get_texts(), handles, strict=True)
    }


def _marks(figure: Figure) -> list[tuple[float, float]]:
    """What all markers stand for."""
    return [place for ax in figure.axes for place in _marks_of(ax)]


def _marks_of(ax: Axes) -> list[tuple[float, float]]:
    lines = [line for line in ax.lines if line.get_marker() not in ("", "None")]
    return [(round(float(x), 6), round(float(y), 6)) for line in lines for x, y in line.get_xydata()]


def test_an_evaluator_looks_the_same_wherever_it_is_drawn() -> None:
    rows = make_results(2, 3)["audits"]["rates"]
    names = ["first", *dict.fromkeys(row["evaluator"] for row in rows)]

    def colours(part: Rows) -> dict[str, str]:
        return _named(draw("rates", part, names))

    everything = colours(rows)
    assert len(set(everything.values())) == 3
    last = colours([row for row in rows if row["evaluator"] == names[-1]])
    assert last == {key: everything[key] for key in last}


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = make_results(3, 3)["audits"]["rates"]
    for folder in ("one", "two"):
        figure_files.write_report_figure_files(
            draw_with_points("rates", rows), tmp_path / folder / "rates", "Rates", ("svg", "png", "pdf")
        )
    for kind in ("svg", "png", "pdf"):
        first, second = ((tmp_path / folder / f"rates.{kind}").read_bytes() for folder in ("one", "two"))
        assert first == second
    svg = (tmp_path / "one" / "rates.svg").read_text(encoding="utf-8")
    assert "<text" not in svg, "text must be drawn as paths"
    assert "dc:date" not in svg


@pytest.mark.filterwarnings("error")
def test_letters_that_the_fonts_lack_are_left_to_the_readers_own(tmp_path: Path) -> None:
    rows = [{"dataset": "d", "evaluator": "判定", "n": 9, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7}]
    paths = figure_files.write_report_figure_files(
        draw_with_points("rates", rows), tmp_path / "rates", "Rates", ("svg", "png")
    )
    assert "判定</text>" in paths[0].read_text(encoding="utf-8")


def test_a_figure_leaves_the_users_settings_alone() -> None:
    before = dict(matplotlib.rcParams)
    draw("rates", make_results(2, 2)["audits"]["rates"])
    assert dict(matplotlib.rcParams) == before


def _segments(ax: Axes) -> list[list[tuple[float, float]]]:
    """Where the lines of intervals, bounds and floors run."""
    lines = [one for one in ax.collections if isinstance(one, LineCollection)]
    return [[tuple(map(float, end)) for end in ends] for one in lines for ends in one.get_segments()]


def test_points_that_share_a_place_have_no_intervals() -> None:
    row = {"dataset": "d", "evaluator": "e", "n": 9} | {
        f"{key}{end}": 0.5 for key in ("tpr", "tnr", "bacc") for end in ("", "_low", "_high")
    }
    drawn = draw("rates", [row, row | {"tpr": 0.7}])
    assert [x for x, _ in _marks_of(drawn.axes[0])] == [50, 70]
    assert _segments(drawn.axes[0]) == []


def test_points_lead_to_their_claims(tmp_path: Path) -> None:
    rows = [
        {"dataset": 'a"&<', "evaluator": "e&<>", "n": 9, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7},
        {"dataset": "__macro__", "evaluator": "e&<>", "n": 9, "tpr": 0.7, "tnr": None, "bacc": None},
    ]
    (path,) = figure_files.write_report_figure_files(draw_with_points("rates", rows), tmp_path / "rates", "Rates")
    svg = ElementTree.parse(path).getroot()
    found = {
        one.attrib["href"].removeprefix("../report.html#claims?"): one
        for one in svg.iter("{http://www.w3.org/2000/svg}a")
    }
    assert [parse_qs(query) for query in found] == [
        {"evaluator": ["e&<>"], "dataset": ['a"&<'], "kind": ["rejected"]},
        {"evaluator": ["e&<>"], "kind": ["rejected"]},
        {"evaluator": ["e&<>"], "dataset": ['a"&<'], "kind": ["passed"]},
        {"evaluator": ["e&<>"], "dataset": ['a"&<'], "kind": ["wrong"]},
    ]
    first = next(iter(found.values()))
    assert first[0].text == 'e&<>, a"&<: TPR (%) 80.0'
    # The disc lies on the marker: both are placed in points from the upper left corner.
    place = float(first[1].attrib["cx"]), float(first[1].attrib["cy"])
    uses = [u.attrib for u in svg.iter("{http://www.w3.org/2000/svg}use") if "x" in u.attrib]
    assert any(abs(float(u["x"]) - place[0]) < 0.2 and abs(float(u["y"]) - place[1]) < 0.2 for u in uses)


@pytest.fixture(scope="module")
def results() -> Results:
    found = make_results(2, 3, 3)
    about = found["about"] | {"evaluators": [row | {"floor": False} for row in found["about"]["evaluators"]]}
    return Results(found["signature"], about, found["audits"])


def test_a_figure_can_be_restyled_as_any_other(results: Results) -> None:
    figure = results.figure("rates")
    assert [ax.get_title() for ax in figure.axes] == ["TPR (%)", "TNR (%)", "BAcc (%)"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == results.evaluators
    figure.axes[0].set_xlim(60, 100)
    figure.axes[0].set_title("Hits")
    _draw(figure)
    shown = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert {"60", "70", "80"} <= set(shown), "ticks follow the limits"
    assert isinstance(figure.axes[0].xaxis.get_major_locator(), MaxNLocator)
    assert {text.get_fontsize() for text in figure.axes[0].get_xticklabels()} == {7.0}


def test_users_bring_axes_and_styles(results: Results) -> None:
    from matplotlib import pyplot, style

    two = results.evaluators[:2]
    theirs, ax = pyplot.subplots()
    try:
        assert results.figure("rates", evaluator=two, axes={"bacc": ax}) is theirs
        assert len(_marks(theirs)) == sum(row["bacc"] is not None for row in results.rows("rates", evaluator=two))
        assert ax.get_legend() is not None
        assert [text.get_text() for text in ax.get_legend().get_texts()] == two
        assert ax.get_xticklabels()[0].get_fontsize() == 10, "their fonts stay"
        alone = results.figure("headroom", group="__all__", ax=pyplot.figure().add_subplot())
        assert alone.axes[0].get_title()
    finally:
        pyplot.close("all")
    for wrong, message in (
        ({"ax": ax}, "this figure has the panels tpr, tnr, bacc"),
        ({"axes": {"bac": ax}}, r"no panel 'bac' \(did you mean 'bacc'\?\)"),
        ({"axes": {}}, "found no panel"),
        ({"ax": ax, "axes": {"bacc": ax}}, "found both"),
    ):
        with pytest.raises(UsageError, match=message):
            results.figure("rates", **wrong)
    assert results.figure("rates", style="dark_background").get_facecolor() == (0, 0, 0, 1)
    with style.context({"axes.titlesize": 12, "axes.prop_cycle": matplotlib.cycler(color=["red", "blue", "green"])}):
        figure = results.figure("rates")
    assert figure.axes[0].title.get_fontsize() == 12
    assert list(_named(figure).values()) == ["#ff0000", "#0000ff", "#008000"]
    assert next(iter(_named(results.figure("rates")).values())) == "#0072b2", "the style has ended"


# Many evaluators and systems ----------------------------------------------------------------------------------------

JUDGES = [f"judge{i}" for i in range(20)]


def rate_row(dataset: str, evaluator: str) -> dict[str, Any]:
    figures = dict.fromkeys(("tpr", "tnr", "bacc"), 0.5)
    return {"dataset": dataset, "evaluator": evaluator, "n": 20, "n_unscored": 0, **figures, "reason": None}


def error_rate_row(dataset: str, system: int, evaluator: str, bias: float = 0.1) -> dict[str, Any]:
    labelled = system / 100
    counts = {"n": 20, "n_unscored": 0, "n_labelled": 20}
    rates = {"labelled_error_rate": labelled, "predicted_error_rate": labelled + bias, "bias": bias}
    ends = {f"{key}_{end}": value for key, value in rates.items() for end in ("low", "high")}
    keys = {"dataset": dataset, "level": "claim", "system": f"model-{system}", "evaluator": evaluator}
    return {**keys, **counts, **rates, **ends, "reason": None}


def figure_of(audit: str, rows: list[dict[str, Any]], ranked: list[str] = JUDGES) -> ReportFigure:
    found = make_report_figure(list_computable_audits()[audit], rows, JUDGES, set(), ranked)
    assert found is not None
    return found


def legend_of(figure: ReportFigure) -> list[str]:
    assert figure.draw is not None
    drawn = figure.draw().figure
    return [text.get_text() for legend in drawn.legends for text in legend.get_texts()]


def test_of_twenty_evaluators_the_best_and_the_worst_are_drawn():
    ranked = JUDGES[::-1]
    figure = figure_of("rates", [rate_row(f"d{i}", name) for i in range(3) for name in JUDGES], ranked)
    assert legend_of(figure) == [*ranked[:5], *ranked[-3:]]
    assert "Shown are the best 5 and the worst 3 of 20 evaluators." in figure.caption
    drawn = figure.draw().figure  # type: ignore[misc]
    colours = [line.get_color() for line in drawn.legends[0].get_lines()]
    assert len(set(colours)) == MAX_EVALUATORS


def test_eight_evaluators_are_all_drawn():
    figure = figure_of("rates", [rate_row("d", name) for name in JUDGES[:8]])
    assert legend_of(figure) == JUDGES[:8]
    assert "Shown" not in figure.caption


def test_an_audit_of_evaluators_at_neither_end_draws_these():
    figure = figure_of("rates", [rate_row("d", name) for name in JUDGES[6:10]])
    assert legend_of(figure) == JUDGES[6:10]
    assert "Shown" not in figure.caption


def test_a_line_per_system_is_drawn_of_those_with_the_lowest_and_the_highest_error_rates():
    rows = [error_rate_row("d", system, "judge0") for system in range(40)]
    lines = figure_of("quantification", rows)
    drawn = lines.draw().figure  # type: ignore[misc]
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names == [f"model-{i}" for i in (*range(14), *range(26, 40))]
    assert "Shown are the 14 with the lowest and the 14 with the highest labelled error rate of 40." in lines.caption
