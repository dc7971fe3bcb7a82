"""How does a report become one HTML file? Styles, script and figures are inside it."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from factaudit.audit.screen import Screen
from factaudit.report.claim_browser import ClaimBrowser, make_claim_browser_link
from factaudit.report.report_document import ReportDocument
from factaudit.report.report_figures import ReportFigure
from factaudit.report.summary import format_report_summary_finding_evidence

#: Bytes of figures that the file may hold.
MAX_EMBEDDED_FIGURE_BYTES = 2_400_000


def render_html_report(document: ReportDocument, figure_folder: Path, claim_browser: ClaimBrowser | None = None) -> str:
    """The whole document; ``figure_folder`` is the folder of its drawn figures, ``claim_browser`` those to look at.

    Claims without text are not shown. All text is escaped by the template.
    """
    next_steps = _list_html_next_steps(document, claim_browser, figure_folder.parent)
    if claim_browser is not None and not claim_browser.has_text:
        claim_browser = None
    made = make_html_template_environment()
    about: dict[str, Any] = {"evaluators": [], "datasets": [], "systems": [], "kinds": {}}
    held: dict[str, Any] | None = None
    if claim_browser is not None:
        about = claim_browser.list_filter_choices()
        held = {"served": False, "kinds": about["kinds"], "orders": about["orders"]}
        held |= {"packed": claim_browser.pack_telling_claims(), "explanation": claim_browser.row_explanation}
        held["command"] = f"factaudit view {shlex.quote(str(figure_folder.parent))}"
    made.filters["link"] = lambda finding: make_claim_browser_link(finding, about)
    script = read_page_script()
    return made.get_template("report.html.j2").render(
        document=document,
        images=_embed_figures_in_html([one for section in document.sections for one in section.figures], figure_folder),
        next_steps=next_steps,
        claims=held,
        style=read_style_sheet(),
        script=script,
        # Only this script may run, whatever a name or a statement holds.
        script_hash=hash_page_script(script),
    )


def render_html_screen(screen: Screen) -> str:
    """The first screen alone, for a notebook."""
    return str(make_html_template_environment().get_template("screen.html.j2").module.screen_block(screen))  # type: ignore[attr-defined]


def _list_html_next_steps(
    document: ReportDocument, claim_browser: ClaimBrowser | None, run_folder: Path
) -> list[tuple[str, str]]:
    """What follows from the run, with the command: each needs claims and verdicts, to look and to label their texts."""
    if claim_browser is None:
        return []
    steps = []
    run = shlex.quote(str(run_folder))
    sections = {section.id for section in document.sections}
    # With D-FActScore the claims table has a row for each fact and person, and the verdicts are a verifier's.
    is_of_facts = "dfactscore" in sections
    if claim_browser.has_text:
        is_judged = claim_browser.n_labelled and not is_of_facts
        what = "that evaluators get wrong" if is_judged else "and what was said of them"
        steps.append((f"Look at the claims {what}:", f"factaudit view {run}"))
    can_label = (
        claim_browser.has_text
        and len(claim_browser.list_filter_choices()["systems"]) > 1
        and claim_browser.n_labelled < len(claim_browser.table)
    )
    if can_label and not is_of_facts and "estimates" not in sections:
        tables = " ".join(shlex.quote(str(run_folder / name)) for name in ("claims.parquet", "verdicts.parquet"))
        command = f"factaudit sample {tables} --budget 200 --out sample.parquet --page labels.html"
        steps.append(("Get each system's error rate with an interval from few labels:", command))
    if sections & {"rates", "quantification", "ranking"} and not is_of_facts:
        steps.append(
            ("After you change an evaluator, audit it into runs/after and compare:", f"factaudit diff {run} runs/after")
        )
    return steps


def make_html_template_environment() -> jinja2.Environment:
    """What renders the templates beside this file."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_page_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["evidence"] = format_report_summary_finding_evidence
    # A number and its unit stay on one line.
    made.filters["units"] = lambda text: str(text).replace(" %", "\u00a0%")
    return made


def read_style_sheet() -> str:
    """The pages' style sheet."""
    return _read_page_asset("report.css")


def read_page_script() -> str:
    """The pages' script."""
    return _read_page_asset("report.js") + _read_page_asset("claims.js")


def hash_page_script(script: str) -> str:
    """A script's hash, as a Content-Security-Policy names it after ``sha256-``."""
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _read_page_asset(name: str) -> str:
    return files("factaudit.report").joinpath(name).read_text(encoding="utf-8")


def _embed_figures_in_html(report_figures: Sequence[ReportFigure], figure_folder: Path) -> dict[str, dict[str, Any]]:
    """Attributes of ``<img>`` by stem, with the picture itself, so that it is seen without a script and in print.

    While there is room; the largest become links.
    """
    found: dict[str, dict[str, Any]] = {}
    for picture in report_figures:
        vector, raster = (figure_folder / f"{picture.stem}.{kind}" for kind in ("svg", "png"))
        path, kind = (vector, "svg+xml") if vector.is_file() else (raster, "png")
        source = f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
        found[picture.stem] = {"src": source, "width": _find_html_figure_width(vector, raster)}
    sizes = {stem: len(one["src"]) for stem, one in found.items()}
    room = MAX_EMBEDDED_FIGURE_BYTES - sum(sizes.values())
    for stem in sorted(sizes, key=lambda stem: -sizes[stem]):
        if room < 0:
            room += sizes[stem]
            del found[stem]
    return found


def _find_html_figure_width(svg_path: Path, png_path: Path) -> int:
    """The width to show a figure at, in CSS pixels: a third larger than on paper, so that 7 pt can be read."""
    if svg_path.is_file():
        found = re.search(rb'<svg [^>]*\bwidth="([\d.]+)pt"', svg_path.read_bytes()[:4096])
        inches = float(found[1]) / 72 if found else 5.0
    else:
        # A PNG's width stands at byte 16; it is drawn at 200 dpi.
        inches = int.from_bytes(png_path.read_bytes()[16:20], "big") / 200
    return round(inches * 96 * 4 / 3)
