"""How are figures saved? Small SVG files whose points lead to their claims, PDF and PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from xml.sax.saxutils import escape, quoteattr

from matplotlib import rc_context

from factaudit.files import replace_file_atomically, write_text
from factaudit.report.plots.drawing import DrawnAuditFigure
from factaudit.report.plots.figure_style import MISSING_GLYPH_WARNING, use_report_style
from factaudit.text.display_text import escape_control_characters


def write_report_figure_files(
    drawn: DrawnAuditFigure, stem: Path, title: str, kinds: Sequence[str] = ("svg",)
) -> list[Path]:
    """Write ``stem.KIND`` for each of ``kinds`` atomically, the same bytes for the same figure; returns the paths.

    kinds: svg (text as shapes), pdf (fonts inside) and png (200 dpi).
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with use_report_style():
        for kind, path in zip(kinds, paths, strict=True):
            if kind == "svg":
                whole, end, _ = _compact_figure_svg(_save_figure_as_svg(drawn, title)).rpartition("</svg>")
                write_text(path, f"{whole}{_render_figure_claim_links(drawn)}{end}\n")
                continue
            about: Any = {"Title": title, "Software": "factaudit"}
            if kind == "pdf":
                about = {"Title": title, "Creator": "factaudit", "CreationDate": None}
            with replace_file_atomically(path) as temporary, warnings.catch_warnings():
                warnings.filterwarnings("ignore", MISSING_GLYPH_WARNING)
                drawn.figure.savefig(temporary, dpi=200, metadata=about, facecolor="white")
    return paths


def _save_figure_as_svg(drawn: DrawnAuditFigure, title: str) -> str:
    """A figure as SVG: text as shapes, but as text, for the reader's own fonts, where matplotlib's lack a letter."""
    about: Any = {"Title": title, "Creator": "factaudit", "Date": None}
    for text_kind in ("path", "none"):
        text = io.StringIO()
        with rc_context(cast("Any", {"svg.fonttype": text_kind})), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            drawn.figure.savefig(text, format="svg", metadata=about, facecolor="white")
        if not any(re.match(MISSING_GLYPH_WARNING, str(one.message)) for one in caught):
            break
    return text.getvalue()


def _compact_figure_svg(svg: str) -> str:
    """A drawing with coordinates to a hundredth of a point (a scale is kept as it is), and without indentation.

    Markers and clips, which matplotlib names by a digest of all digits of their coordinates, are numbered.
    """
    names: dict[str, str] = {}

    def short(number: re.Match[str]) -> str:
        text = number[0]
        return text if text.startswith("scale") else f"{float(text):.2f}".rstrip("0").rstrip(".")

    def numbered(name: re.Match[str]) -> str:
        return names.setdefault(name[0], f"{name[0][0]}{len(names)}")

    svg = re.sub(r"scale\([^)]*\)|-?\d+\.\d{3,}", short, svg)
    return re.sub(r"\n\s+", "\n", re.sub(r'(?<=["#])[mp][0-9a-f]{10}(?=[")])', numbered, svg))


def _render_figure_claim_links(drawn: DrawnAuditFigure) -> str:
    """The links of a figure's points, as SVG: transparent discs that lead into the report beside the folder."""
    found = []
    for point in drawn.points:
        x, y = 72 / drawn.figure.dpi * point.ax.transData.transform((point.x, point.y))
        address = quoteattr(f"../report.html#claims?{point.claim_query}")
        found.append(
            f"<a href={address}><title>{escape(escape_control_characters(point.title))}</title>"
            f'<circle cx="{x:.1f}" cy="{72 * drawn.figure.get_figheight() - y:.1f}" r="4" fill-opacity="0"/></a>\n'
        )
    return "".join(found)
