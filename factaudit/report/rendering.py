"""Which files does a report consist of? Tables, figures and one HTML file, made from
``results.json`` alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from factaudit.errors import InputError
from factaudit.files import write_text
from factaudit.report.results_json import read_results_json
from factaudit.report.tables import write_report_csv_table

if TYPE_CHECKING:
    from factaudit.report.claim_browser import ClaimBrowser
    from factaudit.report.figures import ReportFigure

_FINDING_COLUMNS = ("id", "severity", "evaluator", "dataset", "statement", "evidence")


def render_report(
    run_dir: Path, *, png: bool = False, claim_browser: ClaimBrowser | None = None
) -> list[Path]:
    """Render the ``results.json`` of a run folder and return the files that represent it.

    Writes ``tables/*.csv`` (one for each audit with rows, ``findings.csv`` and ``calls.csv``),
    ``figures/*.svg`` for the figures in the report (with ``png`` also ``*.png``) and
    ``report.html``; other files are left alone. Each file is either complete or absent, and the
    same results give the same bytes. Raises `InputError` if there is no ``results.json`` with a
    known schema. claim_browser: the claims of the run, if they are available.
    """
    # matplotlib and jinja2 are slow to import, and `factaudit --help` imports this module.
    from factaudit.report.document import build_report_document
    from factaudit.report.html import render_html_report

    run_dir = Path(run_dir)
    results = read_results_json(run_dir)
    tables = run_dir / "tables"
    written = [
        write_report_csv_table(rows, tables / f"{name}.csv")
        for name, rows in results["audits"].items()
        if rows
    ]
    for name, rows, columns in (
        ("findings", results["findings"], _FINDING_COLUMNS),
        ("calls", results["calls"], ()),
    ):
        if rows:
            written.append(write_report_csv_table(rows, tables / f"{name}.csv", columns))
    document = build_report_document(results, run_dir)
    figures = run_dir / "figures"
    for section in document.sections:
        if section.figure is not None and section.figure.draw is not None:
            written += draw_report_figure_files(
                section.figure, figures, ("svg", "png") if png else ("svg",)
            )
    page = run_dir / "report.html"
    write_text(
        page, render_html_report(document, figures, claim_browser or _read_claim_browser(run_dir))
    )
    return [*written, page]


def draw_report_figure_files(
    picture: ReportFigure, folder: Path, kinds: Sequence[str]
) -> list[Path]:
    """Draw a figure into files in the folder and return their paths."""
    from factaudit.report.plots.files import write_figure_files

    assert picture.draw is not None
    return write_figure_files(
        picture.draw(), folder / picture.stem, picture.caption.split(".")[0], kinds
    )


def _read_claim_browser(run_dir: Path) -> ClaimBrowser | None:
    """The claims of the run if its folder holds them. Runs on a table of counts and runs of engines
    do not keep theirs."""
    from factaudit.report.claim_browser import ClaimBrowser

    try:
        return ClaimBrowser.read_run_folder(run_dir)
    except InputError:
        return None
