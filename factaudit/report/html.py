"""The report as one HTML file that needs nothing else: styles, script and figures are inside."""

from __future__ import annotations

import base64
import hashlib
import io
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from factaudit.report.content import Document
from factaudit.report.pictures import Picture
from factaudit.report.summary import evidence

#: Bytes of figures that the file may hold.
MAX_FIGURES = 2_400_000


def to_html(document: Document, figures: Path) -> str:
    """The whole document; ``figures`` is the folder of its drawn figures. All text is escaped by the template."""
    assets = files("factaudit.report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: assets.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["evidence"] = evidence
    template = environment.get_template("report.html.j2")
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
    """Attributes of ``<img>`` by stem. Vectors while there is room; then the largest become pixels, then links."""
    images: dict[str, tuple[str, str]] = {}
    for picture in pictures:
        vector, raster = (figures / f"{picture.stem}.{kind}" for kind in ("svg", "png"))
        if vector.is_file():
            images[picture.stem] = ("svg+xml", _base64(vector.read_bytes()))
        else:
            images[picture.stem] = ("png", _base64(raster.read_bytes()))
    room = MAX_FIGURES - sum(len(data) for _, data in images.values())
    for stem in sorted(images, key=lambda stem: -len(images[stem][1])):
        kind, data = images[stem]
        if room < 0 and kind == "svg+xml" and (figures / f"{stem}.png").is_file():
            small = _base64(_few_colours(figures / f"{stem}.png"))
            if len(small) < len(data):
                images[stem] = ("png", small)
                room += len(data) - len(small)
    for stem in reversed(list(images)):
        if room < 0:
            room += len(images.pop(stem)[1])
    return {
        stem: {"src": f"data:image/{kind};base64,{data}", "width": _screen_width(figures / f"{stem}.png")}
        for stem, (kind, data) in images.items()
    }


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _few_colours(raster: Path) -> bytes:
    """A PNG in 128 colours: a third of the size, and no difference to see in a line drawing."""
    from PIL import Image

    packed = io.BytesIO()
    with Image.open(raster) as image:
        few = image.convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(packed, "PNG", optimize=True)
    return packed.getvalue()


def _screen_width(raster: Path) -> int:
    """The width to show a figure at, in CSS pixels: a third larger than on paper, so that 7 pt can be read."""
    if not raster.is_file():
        return 640
    # A PNG's width stands at byte 16; it is drawn at 200 dpi.
    width = int.from_bytes(raster.read_bytes()[16:20], "big")
    return round(width / 200 * 96 * 4 / 3)
