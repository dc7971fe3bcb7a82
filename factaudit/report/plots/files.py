"""How are figures saved? Small SVG files whose markers lead to their claims, PDF and PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast
from xml.sax.saxutils import escape, unescape

from matplotlib import rc_context

from factaudit.files import replace_file_atomically, write_text
from factaudit.report.plots.drawing import DrawnFigure
from factaudit.report.plots.style import use_report_style
from factaudit.text.display_text import escape_control_characters

#: What matplotlib says of letters that its fonts lack: figures then leave them to the reader's own fonts.
_MISSING_GLYPH_WARNING = r"Glyph .* missing from"


def write_figure_files(drawn: DrawnFigure, stem: Path, title: str, kinds: Sequence[str] = ("svg",)) -> list[Path]:
    """Write ``stem.KIND`` for each of ``kinds`` atomically, the same bytes for the same figure; returns the paths.

    kinds: svg (text as shapes), pdf (fonts inside) and png (200 dpi).
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with use_report_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _MISSING_GLYPH_WARNING)
        if (layout := drawn.figure.get_layout_engine()) is not None:  # once, as saving would draw twice for it
            layout.execute(drawn.figure)
            drawn.figure.set_layout_engine(None)
        for kind, path in zip(kinds, paths, strict=True):
            if kind == "svg":
                write_text(path, _add_titles(_compact_svg(_save_as_svg(drawn, title)), drawn.titles))
                continue
            about: Any = {"Title": title, "Software": "factaudit"}
            if kind == "pdf":
                about = {"Title": title, "Creator": "factaudit", "CreationDate": None}
            with replace_file_atomically(path) as temporary:
                drawn.figure.savefig(temporary, dpi=200, metadata=about, facecolor="white")
    return paths


def _save_as_svg(drawn: DrawnFigure, title: str) -> str:
    """A figure as SVG: text as shapes, but as text, for the reader's own fonts, where matplotlib's lack a letter."""
    about: Any = {"Title": title, "Creator": "factaudit", "Date": None}
    text = io.StringIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        drawn.figure.savefig(text, format="svg", metadata=about, facecolor="white")
    if any(re.match(_MISSING_GLYPH_WARNING, str(one.message)) for one in caught):
        text = io.StringIO()
        with rc_context(cast("Any", {"svg.fonttype": "none"})):
            drawn.figure.savefig(text, format="svg", metadata=about, facecolor="white")
    return text.getvalue()


def _compact_svg(svg: str) -> str:
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
    names_pattern = r'(?<=["#])(?:[mp][0-9a-f]{10}|C[0-9a-f]+_[0-9a-f]+_[0-9a-f]{10})(?=[")])'
    return re.sub(r"\n\s+", "\n", re.sub(names_pattern, numbered, svg))


def _add_titles(svg: str, titles: dict[str, str]) -> str:
    """Each link of a marker with its title, which a browser shows beside the pointer."""

    def with_title(link: re.Match[str]) -> str:
        title = titles.get(unescape(link[1], {"&quot;": '"'}), "")
        return f'<a href="{link[1]}"><title>{escape(escape_control_characters(title))}</title>'

    return re.sub(r'<a xlink:href="([^"]*)"[^>]*>', with_title, svg)
