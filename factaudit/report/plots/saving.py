"""Figures as files: SVG of few bytes whose points lead to their claims, PDF and PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import matplotlib

from factaudit.files import atomic, write_text
from factaudit.report.plots.canvas import Canvas
from factaudit.report.plots.style import STYLE
from factaudit.text.printable import printable


def save_figure(figure: Canvas, stem: Path, title: str, kinds: Sequence[str] = ("svg",)) -> list[Path]:
    """Write ``stem.KIND`` for each of ``kinds`` atomically, the same bytes for the same figure; returns the paths.

    kinds: svg (text as shapes), pdf (fonts inside) and png (200 dpi).
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with matplotlib.rc_context(STYLE):
        for kind, path in zip(kinds, paths, strict=True):
            if kind == "svg":
                drawn = io.StringIO()
                about: Any = {"Title": title, "Creator": "factaudit", "Date": None}
                figure.savefig(drawn, format="svg", metadata=about, facecolor="white")
                whole, end, _ = _compact(drawn.getvalue()).rpartition("</svg>")
                write_text(path, f"{whole}{_anchors(figure)}{end}\n")
                continue
            about = {"Title": title, "Software": "factaudit"}
            if kind == "pdf":
                about = {"Title": title, "Creator": "factaudit", "CreationDate": None}
            with atomic(path) as temporary:
                figure.savefig(temporary, dpi=200, metadata=about, facecolor="white")
    return paths


def _compact(svg: str) -> str:
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


def _anchors(figure: Canvas) -> str:
    """The links of a figure's points, as SVG: transparent discs that lead into the report beside the folder."""
    found = []
    for x, y, asked, title in figure.links:
        place = f'cx="{72 * x:.1f}" cy="{72 * y:.1f}" r="4"'
        found.append(
            f"<a href={quoteattr(f'../report.html#claims?{asked}')}><title>{escape(printable(title))}</title>"
            f'<circle {place} fill-opacity="0"/></a>\n'
        )
    return "".join(found)
