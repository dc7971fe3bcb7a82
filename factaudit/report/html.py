"""The report as one HTML file that needs nothing else: styles, script and figures are inside."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from factaudit.report.claims import KINDS, MAX_CLAIMS, Claims, link
from factaudit.report.content import Document
from factaudit.report.pictures import Picture
from factaudit.report.summary import evidence

#: Bytes of figures that the file may hold.
MAX_FIGURES = 2_400_000
#: What stands for a figure until it is unpacked: an empty one.
_NOTHING = "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4="


def to_html(document: Document, figures: Path, claims: Claims | None = None) -> str:
    """The whole document; ``figures`` is the folder of its drawn figures, ``claims`` those to look at.

    All text is escaped by the template.
    """
    made = environment()
    about = claims.about() if claims is not None else {"evaluators": [], "datasets": [], "systems": []}
    made.filters["link"] = lambda finding: link(finding, about)
    script = script_of()
    held = {"served": False, "packed": claims.packed(), "kinds": KINDS, "most": MAX_CLAIMS} if claims else None
    return made.get_template("report.html.j2").render(
        document=document,
        images=_images([one for section in document.sections for one in section.pictures], figures),
        next_steps=_next_steps(document, claims is not None, len(about["systems"])),
        claims=held,
        style=style_of(),
        script=script,
        # Only this script may run, whatever a name or a statement holds.
        script_hash=hash_of(script),
    )


def _next_steps(document: Document, has_claims: bool, n_systems: int) -> list[tuple[str, str]]:
    """What follows from the run, with the command."""
    steps = []
    if has_claims:
        steps.append(("Look at the claims that evaluators get wrong:", "factaudit view RUN"))
    if n_systems > 1 and not any(section.id == "estimates" for section in document.sections):
        command = "factaudit sample RUN/claims.parquet RUN/verdicts.parquet --budget 200 --out sample.parquet"
        steps.append(("Get each system's error rate with an interval from few labels:", command))
    if document.glance is not None:
        steps.append(("See what changes when an evaluator does:", "factaudit diff RUN NEW_RUN"))
    return steps


def environment() -> jinja2.Environment:
    """What renders the templates beside this file."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["evidence"] = evidence
    # A number and its unit stay on one line.
    made.filters["units"] = lambda text: str(text).replace(" %", "\u00a0%")
    return made


def style_of() -> str:
    """The pages' style sheet."""
    return _asset("report.css")


def script_of() -> str:
    """The pages' script."""
    return _asset("report.js") + _asset("claims.js")


def hash_of(script: str) -> str:
    """A script's hash, as a Content-Security-Policy names it after ``sha256-``."""
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _asset(name: str) -> str:
    return files("factaudit.report").joinpath(name).read_text(encoding="utf-8")


def _images(pictures: Sequence[Picture], figures: Path) -> dict[str, dict[str, Any]]:
    """Attributes of ``<img>`` by stem: vectors are packed, which the script undoes where they come to be seen.

    While there is room; the largest become links.
    """
    found: dict[str, dict[str, Any]] = {}
    for picture in pictures:
        vector, raster = (figures / f"{picture.stem}.{kind}" for kind in ("svg", "png"))
        if vector.is_file():
            image = {"src": _NOTHING, "packed": _base64(gzip.compress(vector.read_bytes(), 9, mtime=0))}
        else:
            image = {"src": f"data:image/png;base64,{_base64(raster.read_bytes())}", "packed": ""}
        found[picture.stem] = {**image, "width": _screen_width(vector, raster)}
    sizes = {stem: len(one["src"]) + len(one["packed"]) for stem, one in found.items()}
    room = MAX_FIGURES - sum(sizes.values())
    for stem in sorted(sizes, key=lambda stem: -sizes[stem]):
        if room < 0:
            room += sizes[stem]
            del found[stem]
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _screen_width(vector: Path, raster: Path) -> int:
    """The width to show a figure at, in CSS pixels: a third larger than on paper, so that 7 pt can be read."""
    if vector.is_file():
        found = re.search(rb'<svg [^>]*\bwidth="([\d.]+)pt"', vector.read_bytes()[:4096])
        inches = float(found[1]) / 72 if found else 5.0
    else:
        # A PNG's width stands at byte 16; it is drawn at 200 dpi.
        inches = int.from_bytes(raster.read_bytes()[16:20], "big") / 200
    return round(inches * 96 * 4 / 3)
