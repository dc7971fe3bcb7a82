"""The report of a run: tables, figures, one HTML file and Markdown, made from ``results.json`` alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.collector import seldom_collected
from factaudit.errors import InputError, Problem
from factaudit.files import write_text
from factaudit.report.tables import write_csv
from factaudit.signature import digest

if TYPE_CHECKING:
    from factaudit.report.claims import Claims

SCHEMA = "factaudit.results/1"
#: What is in ``results.json``, and of what type.
_KEYS: dict[str, Any] = {"signature": "", "about": {}, "audits": {}, "findings": [], "calls": [], "sections": []}
_REQUIRED = ("signature", "audits")
_FINDINGS = ("id", "severity", "evaluator", "dataset", "statement", "evidence")
_CALLS = (
    *("evaluator", "calls", "cached_calls", "prompt_tokens", "completion_tokens", "cost"),
    *("possible_calls", "possible_cost", "served"),
)


@seldom_collected()
def render(
    run_dir: Path, *, png: bool = False, drawn: dict[str, str] | None = None, claims: Claims | None = None
) -> list[Path]:
    """Render the ``results.json`` of a run folder; returns the files that stand for it.

    Writes ``tables/*.csv`` (one per audit, ``findings.csv`` and ``calls.csv``), ``figures/*.svg`` (with ``png`` also
    ``*.png``), ``report.html`` and ``report.md``; other files are left alone. Each file is whole or absent, and the
    same results give the same bytes. Raises `InputError` where there is no ``results.json`` of this schema.

    drawn: by figure file (``figures/rates.svg``) what an earlier rendering drew on it: where that is what would be
    drawn, the file stays. It is brought up to date. claims: those of the run, where they are at hand.
    """
    # matplotlib and jinja2 are slow to import, and `factaudit --help` reaches this module.
    from factaudit.report.content import build
    from factaudit.report.html import to_html
    from factaudit.report.markdown import to_markdown
    from factaudit.report.pictures import version_of_figures

    run_dir = Path(run_dir)
    results = read_results(run_dir)
    written = [write_csv(rows, run_dir / "tables" / f"{name}.csv") for name, rows in results["audits"].items()]
    written.append(write_csv(results.get("findings") or [], run_dir / "tables" / "findings.csv", _FINDINGS))
    written.append(write_csv(results.get("calls") or [], run_dir / "tables" / "calls.csv", _CALLS))
    document = build(results, run_dir)
    figures = run_dir / "figures"
    drawn = {} if drawn is None else drawn
    for picture in (picture for section in document.sections for picture in section.pictures):
        if picture.draw is None:
            continue
        kinds = ("svg", "png") if png else ("svg",)
        key = digest(version_of_figures(), picture.of)
        missing = [kind for kind in kinds if drawn.get(f"figures/{picture.stem}.{kind}") != key]
        if missing:
            from factaudit.report.plots.saving import save_figure

            save_figure(picture.draw(None), figures / picture.stem, picture.caption.split(".")[0], missing)
        drawn |= {f"figures/{picture.stem}.{kind}": key for kind in kinds}
        written += [figures / f"{picture.stem}.{kind}" for kind in kinds]
    for path, text in (
        (run_dir / "report.html", to_html(document, figures, claims or _claims(run_dir))),
        (run_dir / "report.md", to_markdown(document)),
    ):
        write_text(path, text)
        written.append(path)
    return written


def _claims(run_dir: Path) -> Claims | None:
    """The claims of the run, where its folder holds them (those of an engine's rows or of a table of counts do not)."""
    from factaudit.report.claims import Claims

    try:
        return Claims.of(run_dir)
    except InputError:
        return None


def read_results(run_dir: Path) -> Mapping[str, Any]:
    """The ``results.json`` of a run folder, with every key; raises `InputError` where it is none of ours."""
    path = run_dir / "results.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(str(run_dir), [Problem("not a run folder: it has no results.json")]) from None
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), [Problem(f"not JSON: {error}")]) from None
    schema = results.get("schema") if isinstance(results, dict) else None
    if schema != SCHEMA:
        raise InputError(str(path), [Problem(f"expected the schema {SCHEMA!r}, found {schema!r}")])
    whole = {key: results.get(key, type(empty)()) for key, empty in _KEYS.items()}
    wrong = [Problem("the key is missing", column=key) for key in _REQUIRED if key not in results]
    wrong += [
        Problem(f"expected {type(empty).__name__}, found {type(whole[key]).__name__}", column=key)
        for key, empty in _KEYS.items()
        if type(whole[key]) is not type(empty)
    ]
    if not wrong:
        tables = [*whole["audits"].items(), *((key, whole[key]) for key in ("findings", "calls", "sections"))]
        for key, rows in tables:
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                wrong.append(Problem("expected a list of objects", column=key))
    if wrong:
        raise InputError(str(path), wrong)
    for name in whole["audits"]:
        # The name becomes a file's.
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise InputError(str(path), [Problem(f"expected audit names of letters, digits and _, found {name!r}")])
    return results | whole


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no figure: an undefined one is null")
