"""Rendering a run folder: what is written, that it is right, that it is whole, and that no input
text can act."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from audit_tables import tables
from report_results import make_results

from factaudit import compare
from factaudit.audit import list_computable_audits
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.wording import format_audit_figure, format_figure_range
from factaudit.report import document as report_document
from factaudit.report.document import MAX_REPORT_FIGURES, build_report_document
from factaudit.report.rendering import render_report

EVIL = "<script>alert('x')</script>"


class Page(HTMLParser):
    """What a browser would make of the report: tags with attributes, and the text of each table
    cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self.headings: list[int] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "td":
            self.cells.append("")
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag not in ("meta", "img", "br"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        data = data.replace("\u00a0", " ")  # between a number and its unit
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)
        if self._open and "td" in self._open:
            self.cells[-1] += data + " "

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def run(folder: Path, results: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    render_report(folder)
    return folder


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return make_results(3, 3, 4)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, example: dict[str, Any]) -> list[Path]:
    """What rendering returned, in a folder that holds a table that is not the report's."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "results.json").write_text(json.dumps(example), encoding="utf-8")
    (folder / "tables").mkdir()
    (folder / "tables" / "mine.csv").write_text("kept\n")
    return render_report(folder)


@pytest.fixture(scope="module")
def folder(written: list[Path]) -> Path:
    return next(path.parent for path in written if path.name == "report.html")


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def test_render_returns_what_it_wrote(written, folder, example):
    there = {path for path in folder.rglob("*") if path.is_file()}
    assert there - set(written) == {folder / "results.json", folder / "tables" / "mine.csv"}
    assert (folder / "tables" / "mine.csv").read_text() == "kept\n"
    assert len(written) == len(set(written))
    names = {path.name for path in written}
    assert {f"{audit}.csv" for audit, rows in example["audits"].items() if rows} <= names
    assert {"findings.csv", "calls.csv", "report.html"} <= names
    assert all(path.stat().st_size > 0 for path in written)


def test_csv_holds_every_row_and_column(folder, example):
    for audit, rows in filter(itemgetter(1), example["audits"].items()):
        with (folder / "tables" / f"{audit}.csv").open(encoding="utf-8", newline="") as file:
            read = list(csv.DictReader(file))
        assert len(read) == len(rows)
        for got, row in zip(read, rows, strict=True):
            for key, value in row.items():
                assert got[key] == ("" if value is None else str(value))
    with (folder / "tables" / "findings.csv").open(encoding="utf-8", newline="") as file:
        assert (
            json.loads(next(csv.DictReader(file))["evidence"]) == example["findings"][0]["evidence"]
        )


def test_html_needs_nothing_else(folder, page):
    html = (folder / "report.html").read_text(encoding="utf-8")
    addresses = [
        v
        for _, attributes in page.tags
        for k, v in attributes.items()
        if k in ("src", "href", "action", "data")
    ]
    assert addresses
    for address in addresses:
        assert address is not None
        assert re.match(r"#[a-z0-9-]+$|#claims\?|(tables|figures)/[a-z0-9_]+\.(csv|svg)$", address)
    assert not page.of("link")
    assert not page.of("img")
    assert not re.search(r"url\((?!#)|@import|https?:(?!//www\.w3\.org/)", html)
    targets = {attributes.get("id") for _, attributes in page.tags}
    used = {address[1:] for address in addresses if address and re.match("#[^?]+$", address)}
    used |= set(re.findall(r"url\(#([^)]*)\)", html))
    assert used <= targets
    for address in addresses:
        assert (
            address is None
            or not address.startswith(("tables/", "figures/"))
            or (folder / address).is_file()
        )


def test_html_can_be_read_by_everybody(page, example):
    assert {example["about"]["title"], example["signature"]} <= {text.strip() for text in page.text}
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(
        after - before <= 1 for before, after in zip(page.headings, page.headings[1:], strict=False)
    )
    assert page.of("html") == [{"lang": "en"}]
    pictures = [one for one in page.of("div") if one.get("class") == "scroll picture"]
    assert 2 <= len(pictures) == len(page.of("svg")) <= MAX_REPORT_FIGURES
    assert all(len(str(one["aria-label"])) > 20 for one in pictures)
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert page.of("table")
    assert not any(re.search(r"\b(nan|none|null|inf)\b", cell, re.I) for cell in page.cells)
    assert len(
        [attributes for attributes in page.of("th") if attributes.get("scope") == "col"]
    ) == len(page.of("th"))


@pytest.mark.slow
def test_no_text_of_the_input_can_act(tmp_path, monkeypatch):
    monkeypatch.setattr(report_document, "MAX_REPORT_FIGURES", 99)
    monkeypatch.setattr(report_document, "_FEW_AUDITS", 99)
    results = make_results(
        2,
        2,
        2,
        datasets=(EVIL, '"><img src=x onerror=alert(1)>'),
        evaluators=(f"e{EVIL}", "a|b `c` *d*"),
        systems=(EVIL, "s"),
    )
    results["about"]["title"] = EVIL
    results["signature"] = f"factaudit|{EVIL}"
    results["about"]["inputs"][0]["path"] = f"data/{EVIL}.csv"
    results["findings"][0]["evidence"] = {EVIL: EVIL}
    results["findings"][0]["severity"] = "fail' onclick='x"
    results["sections"] = [
        {
            "title": EVIL,
            "text": EVIL,
            "table": {"columns": [EVIL], "rows": [[EVIL]]},
            "figure": None,
        }
    ]
    for row in results["audits"]["ranking"]:
        row["level"] = "../../up"
    results["audits"]["retrieval"] = [
        {"dataset": EVIL, "evaluator": EVIL, "variant": EVIL, EVIL: EVIL, "reason": EVIL}
    ]
    folder = run(tmp_path / "run", results)

    (drawn, *_) = [path.stem for path in (folder / "figures").glob("ranking*")]
    assert drawn == "ranking_------up", "a level is data, and must not lead out of the folder"
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    assert len(page.of("script")) == 1
    assert not any(key.startswith("on") for _, attributes in page.tags for key in attributes)
    assert not page.of("img")
    assert EVIL in " ".join(page.text), "the text is shown as it is"
    policy = next(str(meta["content"]) for meta in page.of("meta") if meta.get("http-equiv"))
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy
    for svg in (folder / "figures").glob("*.svg"):
        assert "<script" not in svg.read_text(encoding="utf-8")


def test_claims_without_labels_make_a_report(tmp_path):
    results = make_results(2, 2, 2)
    results["findings"], results["calls"] = [], []
    for each in results["about"]["claims"]:
        each |= {"n_labelled": 0, "n_attributable": 0}
    for rows in results["audits"].values():
        for row in rows:
            for key, value in row.items():
                if isinstance(value, float):
                    row[key] = None
                elif key == "n_ordered":
                    row[key] = 0
            row["reason"] = "no labelled claim"
    results["audits"]["ranking_pairs"] = []
    folder = run(tmp_path, results)
    text = " ".join(Page((folder / "report.html").read_text(encoding="utf-8")).text)
    assert "none labelled" in text
    assert "These figures do not exist for these claims: no labelled claim." in text
    assert not (folder / "figures" / "rates.svg").exists()


@pytest.mark.parametrize(
    ("audit", "key", "value", "shown"),
    [
        ("rates", "tpr", 0.8349, "83.5"),
        ("quantification", "bias", -0.0312, "−3.1"),
        ("quantification", "bias", 0.0312, "+3.1"),
        ("quantification", "bias", -0.0001, "−0.01"),
        ("quantification", "bias", 1e-9, "0.0"),
        ("rates", "tpr", 0.0004, "0.04"),
        ("rates", "tpr", 0.9996, "99.96"),
        ("rates", "tpr", 1, "100.0"),
        ("adjustment", "mean_abs_bias", 0.0312, "3.1"),
        ("rates", "n", 12345, "12,345"),
        ("ranking", "kendall_tau", -0.333, "−0.33"),
        ("ranking_pairs", "p_labelled", 0.0002, "<0.001"),
        ("ranking_pairs", "p_labelled", 0.04, "0.040"),
        ("ranking", "error_rate", 0, "0.0"),
        ("rates", "tpr", None, "–"),
        ("rates", "dataset", "__macro__", "mean over data sets"),
    ],
)
def test_figures_are_printed_with_their_unit(audit, key, value, shown):
    assert format_audit_figure(list_computable_audits()[audit].columns[key], value) == shown


def test_ranges_do_not_hide_a_sign():
    assert format_figure_range(Column("TPR", "percent"), 0.1, 0.25) == "10.0–25.0"
    assert format_figure_range(Column("TPR", "percent"), 0.0004, 0.031) == "0.04–3.1", (
        "an end that is not 0"
    )
    assert format_figure_range(Column("bias", "points"), -0.1, 0.25) == "−10.0 to +25.0"


def test_a_cell_of_a_table_holds_the_figure_and_its_interval(tmp_path):
    rows = [{"label": at % 2, "e": at % 2, "f": at // 2 % 2} for at in range(80)]
    found = compare(*tables(rows, ["e", "f"]), audits=["differences"], replicates=20)
    found.save(tmp_path)
    cells = Page((tmp_path / "report.html").read_text(encoding="utf-8")).cells
    assert any(re.fullmatch(r"\+50\.0 \(\+\d\d\.\d to \+\d\d\.\d\) ", cell) for cell in cells)


def test_a_section_shows_its_gravest_findings_first_one_of_each_check(tmp_path):
    def finding(check, severity, evaluator, gap=0.0):
        told = {
            "id": check,
            "severity": severity,
            "evaluator": evaluator,
            "dataset": "d",
            "evidence": {"gap": gap},
        }
        return told | {"statement": f"{check} {severity} {evaluator}"}

    results = make_results(1, 2, 2)
    results["findings"] = [
        *(
            finding("gap", "warn", "good"),
            finding("gap", "fail", "poor", 0.3),
            finding("gap", "ok", "other"),
        ),
        *(finding("gap", "fail", "good", 0.5), finding("iou", "fail", "good / poor")),
    ]
    sections = {one.id: one for one in build_report_document(results, tmp_path).sections}
    assert [one["statement"] for one in sections["rates"].findings] == ["gap fail good"]
    assert sections["rates"].n_more_findings == 3
    assert [one["statement"] for one in sections["consistency"].findings] == [
        "iou fail good / poor"
    ]
    assert "ranking" not in sections, "no check of it found anything"
    others = dict(build_report_document(results, tmp_path).others)
    assert others["Whether systems come out in the right order"] == "tables/ranking.csv"
