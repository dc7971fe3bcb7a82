"""The figures of a run for papers: at the width of a column (3.3 inches) and of a page (6.8), as PDF and SVG."""

from __future__ import annotations

from pathlib import Path

from factaudit.report.report_document import build_report_document
from factaudit.report.results_json import read_results_json


def export_figures(run_dir: Path, out: Path) -> list[Path]:
    """Write ``column/NAME.pdf``, ``column/NAME.svg`` and the same in ``page``, for every figure of the audits.

    At a column's width panels stand below each other. Figures that an engine wrote have one width, and stay where they
    are.
    """
    from factaudit.report.plots.figure_files import write_report_figure_files
    from factaudit.report.plots.figure_style import COLUMN_WIDTH, PAGE_WIDTH

    paths = []
    for section in build_report_document(read_results_json(run_dir), run_dir, has_all_figures=True).sections:
        for picture in section.figures:
            if picture.draw is None:
                continue
            for name, width in (("column", COLUMN_WIDTH), ("page", PAGE_WIDTH)):
                title = picture.caption.split(".")[0]
                paths += write_report_figure_files(
                    picture.draw(width), out / name / picture.stem, title, ("pdf", "svg")
                )
    return paths
