"""How does a report become a single HTML file? Styles, script and figures are embedded in it."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from factaudit.audit.screen import Screen
from factaudit.report.claim_browser import (
    MAX_REPORT_CHARACTERS,
    MAX_REPORT_CLAIMS,
    ClaimBrowser,
    make_claim_browser_link,
)
from factaudit.report.document import ReportDocument

#: How many bytes of figures the file may hold.
MAX_EMBEDDED_FIGURE_BYTES = 1_000_000
#: The largest number of claims on the page of `factaudit view`. A browser needs some gigabytes for
#: a million.
MAX_PAGE_CLAIMS = 200_000


def render_html_report(
    document: ReportDocument, figure_folder: Path, claim_browser: ClaimBrowser | None = None
) -> str:
    """The whole report as HTML. ``figure_folder`` holds its figures, ``claim_browser`` the claims
    to look at.

    Claims without text are not shown. The template escapes all text.
    """
    if claim_browser is not None and not claim_browser.has_text:
        claim_browser = None
    about: dict[str, Any] = {"evaluators": [], "datasets": [], "systems": []}
    held: dict[str, Any] | None = None
    if claim_browser is not None:
        about = claim_browser.list_filter_choices()
        command = f"factaudit view {shlex.quote(str(figure_folder.parent))}"
        held = {
            "packed": claim_browser.pack_claims(MAX_REPORT_CLAIMS, MAX_REPORT_CHARACTERS),
            "command": command,
        }
        held["explanation"] = claim_browser.row_explanation
    made = make_html_template_environment()
    made.filters["link"] = lambda finding: make_claim_browser_link(finding, about)
    script = read_page_script()
    figures = [section.figure for section in document.sections if section.figure is not None]
    return made.get_template("report.html.j2").render(
        document=document,
        images=_read_figures([picture.stem for picture in figures], figure_folder),
        claims=held,
        style=read_style_sheet(),
        script=script,
        # Only this script may run, whatever text a name or a statement contains.
        script_hash=hash_page_script(script),
    )


def render_claim_page(claims: ClaimBrowser, name: str) -> str:
    """A page with all claims of a run; for very large runs, with those that tell the reader
    most."""
    script = read_page_script()
    held = {
        "packed": claims.pack_claims(MAX_PAGE_CLAIMS),
        "command": None,
        "explanation": claims.row_explanation,
    }
    return (
        make_html_template_environment()
        .get_template("view.html.j2")
        .render(
            claims=held,
            name=name,
            total=len(claims.table),
            script=script,
            script_hash=hash_page_script(script),
            style=read_style_sheet(),
        )
    )


def render_html_screen(screen: Screen) -> str:
    """The first screen alone, for a notebook."""
    blocks: Any = make_html_template_environment().get_template("screen.html.j2").module
    return str(blocks.screen_block(screen))


def make_html_template_environment() -> jinja2.Environment:
    """The Jinja environment for the templates in this folder."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_page_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Keep a number and its unit on one line, and the two hyphens of an option.
    made.filters["units"] = lambda text: (
        str(text)
        .replace(" %", "\u00a0%")
        .replace("% CI", "%\u00a0CI")
        .replace("--", "-\u2060-\u2060")
    )
    return made


def read_style_sheet() -> str:
    """The style sheet of all pages."""
    return _read_page_asset("report.css")


def read_page_script() -> str:
    """The script of all pages."""
    return _read_page_asset("report.js") + _read_page_asset("claims.js")


def hash_page_script(script: str) -> str:
    """The hash of a script, as a Content-Security-Policy lists it after ``sha256-``."""
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _read_page_asset(name: str) -> str:
    return files("factaudit.report").joinpath(name).read_text(encoding="utf-8")


def _read_figures(stems: list[str], figure_folder: Path) -> dict[str, Markup]:
    """The drawings by stem, embedded so that they are visible without a script and in print. If
    there is no room for all of them, the largest are left out."""
    found = {
        stem: _make_inline_svg(figure_folder / f"{stem}.svg", f"f{at}-")
        for at, stem in enumerate(stems)
    }
    while sum(map(len, found.values())) > MAX_EMBEDDED_FIGURE_BYTES:
        del found[max(found, key=lambda stem: len(found[stem]))]
    return found


def _make_inline_svg(path: Path, prefix: str) -> Markup:
    """A drawing as an inline SVG element. Its ids get a prefix of their own, and it is as wide as
    is comfortable to read.

    A figure is shown a third larger than on paper, so that 7 pt text can be read. Its points link
    to claims on this page.
    """
    svg = re.sub(r"^.*?(?=<svg)", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(?<=\bid=")|(?<=url\(#)|(?<=href="#)', prefix, svg)
    svg = re.sub(
        r'<a href="\.\./report\.html#claims\?([^"]*)"', r'<a href="#summary" data-asked="\1"', svg
    )
    width = re.search(r'<svg [^>]*?\bwidth="([\d.]+)pt"', svg)
    shown = f' width="{round(float(width[1]) * 16 / 9)}"' if width else ""
    svg = re.sub(r' height="[\d.]+pt"', "", svg, count=1)
    return Markup(re.sub(r' width="[\d.]+pt"', shown, svg, count=1))
