"""The figures of a run for papers: at the width of a column (3.3 inches) and of a page (6.8), as PDF and SVG."""

from __future__ import annotations

from pathlib import Path

from factaudit.report import read_results
from factaudit.report.content import build


def export(run_dir: Path, out: Path) -> list[Path]:
    """Write ``column/NAME.pdf``, ``column/NAME.svg`` and the same in ``page``, for every figure of the report.

    At a column's width panels stand below each other. Figures that an engine wrote have one width, and stay where they
    are.
    """
    from factaudit.report.plots.saving import save_figure
    from factaudit.report.plots.style import COLUMN, PAGE

    paths = []
    for section in build(read_results(run_dir), run_dir).sections:
        for picture in section.pictures:
            if picture.draw is None:
                continue
            for name, width in (("column", COLUMN), ("page", PAGE)):
                title = picture.caption.split(".")[0]
                paths += save_figure(picture.draw(width), out / name / picture.stem, title, ("pdf", "svg"))
    return paths
