"""The report's figures: what they draw is in the rows, and nothing is clipped, overlapping, too small or random."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from report_results import make_results

from factaudit.audit import computable, declaration
from factaudit.report import plots
from factaudit.report.plots import saving, style
from factaudit.report.plots.canvas import Canvas, Panel

Rows = list[dict[str, Any]]


def _claim(rows: Rows) -> Rows:
    return [row for row in rows if row.get("level", "claim") == "claim"]


def draw(audit: str, rows: Rows, evaluators: Sequence[str] = (), **changes: Any) -> Canvas:
    """The first figure that an audit declares."""
    declared = computable()[audit]
    return plots.draw(replace(declared.plots[0], **changes), rows, declared.columns, evaluators)


#: By name: the audit, and what is changed of its declaration.
FIGURES: dict[str, tuple[str, dict[str, Any]]] = {
    name: (name, {}) for name, audit in computable().items() if audit.plots
} | {"quantification_by_evaluator": ("quantification", {"panels": "evaluator"})}
NAMES = ("x" * 90, "two words " * 9, "$a_b$ & <script>alert(1)</script>", "_hidden", "数据集", "e" * 30, "f", "g")


def _results(size: str) -> dict[str, Any]:
    if size == "awkward names":
        return make_results(3, 4, 3, datasets=NAMES[:3], evaluators=NAMES[1:5], systems=NAMES[5:])
    return make_results(*{"least": (1, 1, 1), "small": (4, 4, 6), "greatest": (14, 8, 10)}[size])


def _texts(figure: Canvas) -> Iterator[Text]:
    """All text that is drawn."""
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip():
            yield text


def _draw(figure: Canvas) -> FigureCanvasAgg:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        pytest.param(kind, size, marks=[pytest.mark.slow] if size == "greatest" else [])
        for kind in FIGURES
        for size in ("least", "small", "greatest", "awkward names")
        # One evaluator, and one system, make no pairs.
        if size != "least" or kind not in ("consistency", "ranking_pairs", "chunking", "chunking_rates")
    ],
)
def test_text_is_whole_apart_and_large_enough(kind: str, size: str) -> None:
    audit, changes = FIGURES[kind]
    results = _results(size)
    rows = _claim(results["audits"][audit])
    assert rows
    if kind == "consistency" and size == "greatest":
        first = {row["dataset"]: None for row in rows}
        rows = [row for row in rows if row["dataset"] in list(first)[:5]]
    figure = draw(audit, rows, [each["name"] for each in results["about"]["evaluators"]], **changes)
    renderer = _draw(figure).get_renderer()

    assert figure.get_figwidth() <= style.PAGE + 1e-9
    boxes = []
    for text in _texts(figure):
        box = text.get_window_extent(renderer)
        assert text.get_fontsize() >= 7, text.get_text()
        assert min(box.x0, box.y0, figure.bbox.x1 - box.x1, figure.bbox.y1 - box.y1) >= -0.5, (
            f"{text.get_text()!r} is clipped"
        )
        if not text.get_rotation():
            boxes.append((text.get_text(), box))
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= 1 or high <= 1, f"{one!r} and {other!r} overlap"


def _named(figure: Canvas) -> dict[str, str]:
    """The names in the legend with the colours of their markers."""
    marks = [(x, y, line.get_color()) for line in figure.findobj(Line2D) for x, y in zip(*line.get_data(), strict=True)]
    found = {}
    for text in figure.texts:
        if text.get_label() == "legend":
            left, height = text.get_position()
            beside = [to_hex(colour) for x, y, colour in marks if abs(y - height) < 0.01 and 0 < left - x < 0.2]
            found[text.get_text()] = beside[0] if beside else ""
    return found


def _within(panel: Panel, x: float, y: float) -> tuple[float, float] | None:
    """What a place in inches stands for in a panel; None where it is elsewhere."""
    across, up = (x - panel.left) / panel.width, (panel.bottom - y) / panel.height
    if not (-1e-9 <= across <= 1 + 1e-9 and -1e-9 <= up <= 1 + 1e-9):
        return None
    ends = zip((across, up), (panel.x, panel.y), strict=True)
    at, height = (low + share * (high - low) for share, (low, high) in ends)
    return round(float(at), 6), round(float(height), 6)


def _marks(figure: Canvas) -> list[tuple[float, float]]:
    """What all markers in panels stand for."""
    places = [place for line in figure.findobj(Line2D) for place in zip(*line.get_data(), strict=True)]
    return [found for panel in figure.panels for x, y in places if (found := _within(panel, x, y)) is not None]


def test_rates_are_drawn_where_they_are_and_undefined_ones_are_not() -> None:
    rows = make_results(3, 4)["audits"]["rates"]
    drawn = sorted(x for x, _ in _marks(draw("rates", rows)))
    wanted = sorted(round(100 * row[key], 6) for row in rows for key in ("tpr", "tnr", "bacc") if row[key] is not None)
    assert len(wanted) == 3 * len(rows) - 2
    assert drawn == wanted


def test_predicted_error_rates_stand_over_labelled_ones() -> None:
    rows = [row for row in _claim(make_results(2, 2, 3)["audits"]["quantification"]) if row["system"] != "__all__"]
    wanted = {(round(100 * row["labelled_error_rate"], 6), round(100 * row["predicted_error_rate"], 6)) for row in rows}
    assert set(_marks(draw("quantification", rows))) == wanted
    assert set(_marks(draw("quantification", rows, panels="evaluator"))) == wanted
    # The pooled row is not a system.
    pooled = [*rows, {**rows[0], "system": "__all__", "labelled_error_rate": 0.99, "predicted_error_rate": 0.99}]
    assert set(_marks(draw("quantification", pooled))) == wanted


def test_iou_is_found_whichever_evaluator_comes_first() -> None:
    def row(a: str, b: str, iou: float | None) -> dict[str, Any]:
        return {"dataset": "d", "evaluator_a": a, "evaluator_b": b, "class": "attributable", "iou": iou}

    rows = [row("a", "b", 0.12), row("c", "a", 0.34), row("b", "c", None)]
    figure = draw("consistency", rows, ["c", "b", "a"])
    (panel,) = figure.panels
    cells = {_within(panel, *text.get_position()): text.get_text() for text in figure.texts}
    cells.pop(None)
    # Down the side: b, a; along: c, b.
    assert cells == {(0.5, 0.5): "–", (0.5, 1.5): "0.34", (1.5, 1.5): "0.12"}
    assert panel.names == (["c", "b"], ["b", "a"])


def test_orders_are_counted() -> None:
    pairs = [("<", "<"), ("<", ">"), ("=", "="), ("=", "=")]
    rows = [
        {"dataset": "d", "level": "claim", "evaluator": "e", "labelled_order": a, "predicted_order": b}
        for a, b in pairs
    ]
    figure = draw("ranking_pairs", rows)
    (panel,) = figure.panels
    cells = [text.get_text() for text in figure.texts if _within(panel, *text.get_position())]
    assert cells == ["1", "0", "1", "0", "2", "0", "0", "0", "0"]


def test_an_evaluator_looks_the_same_wherever_it_is_drawn() -> None:
    rows = make_results(2, 3, unscored=False)["audits"]["rates"]
    names = ["first", *dict.fromkeys(row["evaluator"] for row in rows)]

    def colours(part: Rows) -> dict[str, str]:
        return _named(draw("rates", part, names))

    everything = colours(rows)
    assert len(set(everything.values())) == 3
    last = colours([row for row in rows if row["evaluator"] == names[-1]])
    assert last == {key: everything[key] for key in last}


def test_every_name_is_in_the_legend_as_it_is() -> None:
    rows = [
        {"dataset": "d", "evaluator": name, "n": 9, "tpr": 0.5, "tnr": 0.5, "bacc": 0.5}
        for name in ("_x", "$y$", "a & <b>")
    ]
    figure = draw("rates", rows)
    assert list(_named(figure)) == ["_x", "$y$", "a & <b>"]
    assert not any(text.get_parse_math() for text in figure.texts)


def test_groups_by_other_columns_are_told_apart() -> None:
    base = {"evaluator": "e", "n": 9, "tpr": 0.5, "tnr": 0.5, "bacc": 0.5}
    rows = [{"dataset": "d", "error_type": kind, **base} for kind in ("number", "entity")]
    assert draw("rates", rows).panels[0].names[1] == ["d · number", "d · entity"]
    rows = [{"dataset": "__all__", "task": kind, **base} for kind in ("QA", "summaries")]
    assert draw("rates", rows).panels[0].names[1] == ["QA", "summaries"]


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = make_results(3, 3)["audits"]["rates"]
    for folder in ("one", "two"):
        saving.save_figure(draw("rates", rows), tmp_path / folder / "rates", "Rates", ("svg", "png", "pdf"))
    for kind in ("svg", "png", "pdf"):
        first, second = ((tmp_path / folder / f"rates.{kind}").read_bytes() for folder in ("one", "two"))
        assert first == second
    svg = (tmp_path / "one" / "rates.svg").read_text(encoding="utf-8")
    assert "<text" not in svg, "text must be drawn as paths"
    assert "dc:date" not in svg


def test_a_figure_leaves_the_users_settings_alone() -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw("rates", make_results(2, 2)["audits"]["rates"])
    assert dict(matplotlib.rcParams) == before


def test_columns_of_a_heat_map_can_be_told_apart() -> None:
    names = [f"one-long-name-{letter * 4} (of the same long ending)" for letter in "abcd"]
    rows = [
        {"dataset": "d", "evaluator_a": a, "evaluator_b": b, "class": "attributable", "iou": 0.5, "n": 9}
        for a, b in itertools.combinations(names, 2)
    ]
    figure = draw("consistency", rows, names)
    labels = [name for panel in figure.panels for name in panel.names[0]]
    assert len(set(labels)) == len(labels) == 3


def _with_floors(rates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    one = {"dataset": "D", "n": 9, "tpr": 1.0, "tnr": 0.0, "bacc": 0.5}
    return [*rates, {**one, "evaluator": "always-yes"}]


def test_floors_are_lines_to_measure_others_by_and_no_evaluators() -> None:
    row = {"dataset": "D", "evaluator": "e", "n": 9, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7}
    audit = declaration("rates", [row])
    drawn = plots.draw(audit.plots[0], _with_floors([row]), audit.columns, ["always-yes", "e"], {"always-yes"})
    assert [x for x, _ in _marks(drawn)] == [80.0, 60.0, 70.0], "the evaluator's markers, no others"
    lines = [
        [_within(drawn.panels[0], *place) for place in patch.get_path().vertices[at : at + 2]]
        for patch in drawn.findobj(PathPatch)
        for at in range(len(patch.get_path().vertices) - 1)
    ]
    assert [(100.0, -0.4), (100.0, 0.4)] in lines, "across the whole group"
    assert _named(drawn) == {"e": style.COLOURS[0].lower(), "always-yes (a floor)": ""}
    # Where a floor is all there is, it is what the figure is of.
    alone = plots.draw(audit.plots[0], _with_floors([]), audit.columns, ["always-yes"], {"always-yes"})
    assert _marks(alone)


def test_plots_without_a_line_for_floors_leave_them_out() -> None:
    base = {"dataset": "D", "level": "claim", "n": 9, "labelled_error_rate": 0.2}
    rows = [
        {**base, "system": system, "evaluator": name, "predicted_error_rate": rate}
        for system in "ab"
        for name, rate in (("e", 0.3), ("always-no", 1.0))
    ]
    audit = declaration("quantification", rows)
    drawn = plots.draw(audit.plots[0], rows, audit.columns, ["e", "always-no"], {"always-no"})
    assert {y for _, y in _marks(drawn)} == {30.0}


def test_points_lead_to_their_claims(tmp_path: Path) -> None:
    rows = [
        {"dataset": 'a"&<', "evaluator": "e&<>", "n": 9, "tpr": 0.8, "tnr": 0.6, "bacc": 0.7},
        {"dataset": "__macro__", "evaluator": "e&<>", "n": 9, "tpr": 0.7, "tnr": None, "bacc": None},
    ]
    audit = declaration("rates", rows)
    (path,) = saving.save_figure(plots.draw(audit.plots[0], rows, audit.columns), tmp_path / "rates", "Rates")
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


@pytest.mark.parametrize(("low", "high"), [(-2, 102), (0.0, 0.4), (-3_000, 2_500), (0, 4e9)])
def test_an_axis_of_any_width_has_round_ticks(low: float, high: float) -> None:
    ticks = style.ticks_of(low, high)
    step = ticks[1] - ticks[0]
    assert 2 <= len(ticks) <= 6
    assert low <= ticks[0] < ticks[-1] <= high
    assert float(f"{step:.2g}") == pytest.approx(step)
