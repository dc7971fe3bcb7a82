"""How are figures saved? As small SVG files whose markers link to their claims, as PDF and as
PNG."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from xml.sax.saxutils import escape, unescape

from matplotlib import rc_context
from matplotlib.figure import Figure

from factaudit.files import replace_file_atomically, write_text
from factaudit.report.plots.drawing import DrawnFigure
from factaudit.report.plots.style import use_report_style
from factaudit.text.display_text import escape_control_characters

#: matplotlib's warning about letters that its fonts lack. Such letters are left to the fonts of the
#: reader.
_MISSING_GLYPH_WARNING = r"Glyph .* missing from"
#: The metadata of a file besides its title. There is no date, so that the same figure always gives
#: the same bytes.
_METADATA: dict[str, dict[str, Any]] = {
    "svg": {"Creator": "factaudit", "Date": None},
    "pdf": {"Creator": "factaudit", "CreationDate": None},
    "png": {"Software": "factaudit"},
}


def write_figure_files(
    drawn: DrawnFigure, stem: Path, title: str, kinds: Sequence[str] = ("svg",)
) -> list[Path]:
    """Write ``stem.KIND`` for each of ``kinds`` atomically and return the paths. The same figure
    always gives the same bytes.

    kinds: svg (text as shapes), pdf (with embedded fonts) and png (200 dpi).
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with use_report_style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _MISSING_GLYPH_WARNING)
        for kind, path in zip(kinds, paths, strict=True):
            about = {"Title": title, **_METADATA[kind]}
            if kind == "svg":
                write_text(
                    path, _add_titles(_compact_svg(_save_as_svg(drawn.figure, about)), drawn.titles)
                )
                continue
            with replace_file_atomically(path) as temporary:
                drawn.figure.savefig(temporary, dpi=200, metadata=about, facecolor="white")
    return paths


def _save_as_svg(figure: Figure, about: Any) -> str:
    """A figure as SVG. Text becomes shapes; if matplotlib's fonts lack a letter, it stays text for
    the reader's own fonts."""
    for fonttype in ("path", "none"):
        text = io.StringIO()
        with (
            warnings.catch_warnings(record=True) as caught,
            rc_context(cast("Any", {"svg.fonttype": fonttype})),
        ):
            warnings.simplefilter("always")
            figure.savefig(text, format="svg", metadata=about, facecolor="white")
        if not any(re.match(_MISSING_GLYPH_WARNING, str(one.message)) for one in caught):
            break
    return text.getvalue()


def _compact_svg(svg: str) -> str:
    """An SVG drawing without indentation and with coordinates rounded to a hundredth of a point.
    Scales are kept as they are."""

    def shorten(number: re.Match[str]) -> str:
        text = number[0]
        return text if text.startswith("scale") else f"{float(text):.2f}".rstrip("0").rstrip(".")

    return re.sub(r"\n\s+", "\n", re.sub(r"scale\([^)]*\)|-?\d+\.\d{3,}", shorten, svg))


def _add_titles(svg: str, titles: Mapping[str, str]) -> str:
    """Add a title to the link of each marker, which a browser shows beside the pointer."""

    def add_title(link: re.Match[str]) -> str:
        title = titles.get(unescape(link[1], {"&quot;": '"'}), "")
        return f'<a href="{link[1]}"><title>{escape(escape_control_characters(title))}</title>'

    return re.sub(r'<a xlink:href="([^"]*)"[^>]*>', add_title, svg)
