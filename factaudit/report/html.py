"""The report as one HTML file that needs nothing else: styles, script and figures are inside."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from factaudit.report.content import Document, Picture
from factaudit.report.summary import evidence

#: Bytes of figures that the file may hold; those beyond it are named by their path.
MAX_FIGURES = 2_200_000
#: An SVG beyond this is embedded as its PNG where that is smaller.
_MAX_SVG = 150_000


def to_html(document: Document, figures: Path) -> str:
    """The whole document; ``figures`` is the folder of its drawn figures. All text is escaped by the template."""
    assets = files("factaudit.report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["evidence"] = evidence
    template = environment.from_string(assets.joinpath("report.html.j2").read_text(encoding="utf-8"))
    script = assets.joinpath("report.js").read_text(encoding="utf-8")
    pictures = [picture for section in document.sections for picture in section.pictures]
    return template.render(
        document=document,
        images=_images(pictures, figures),
        style=assets.joinpath("report.css").read_text(encoding="utf-8"),
        script=script,
        # Only this script may run, whatever a name or a statement holds.
        script_hash=base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii"),
    )


def _images(pictures: list[Picture], figures: Path) -> dict[str, dict[str, Any]]:
    """Attributes of ``<img>`` by stem, within `MAX_FIGURES` bytes; a figure that does not fit has none."""
    images: dict[str, dict[str, Any]] = {}
    room = MAX_FIGURES
    for picture in pictures:
        vector, raster = (figures / f"{picture.stem}.{kind}" for kind in ("svg", "png"))
        chosen = vector if vector.is_file() else raster
        if raster.is_file() and chosen.stat().st_size > max(_MAX_SVG, raster.stat().st_size):
            chosen = raster
        data = base64.b64encode(chosen.read_bytes()).decode("ascii")
        if len(data) <= room:
            room -= len(data)
            kind = "svg+xml" if chosen == vector else "png"
            images[picture.stem] = {"src": f"data:image/{kind};base64,{data}", "width": _screen_width(raster)}
    return images


def _screen_width(raster: Path) -> int:
    """The width to show a figure at, in CSS pixels: a third larger than on paper, so that 7 pt can be read."""
    if not raster.is_file():
        return 640
    # A PNG's width stands at byte 16; it is drawn at 200 dpi.
    width = int.from_bytes(raster.read_bytes()[16:20], "big")
    return round(width / 200 * 96 * 4 / 3)
