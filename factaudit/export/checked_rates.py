"""The audit `rates` of a run folder, as exports read it: checked, for a file between may have been changed by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from factaudit.errors import InputError, Problem
from factaudit.results import Results, Row

_COUNT_COLUMNS = ("n", "n_unscored")
_RATE_COLUMNS = ("bacc", "tpr", "tnr")


def read_checked_rates_for_export(run_dir: Path, is_required: bool = True) -> Results:
    """The results of a run folder; raises `InputError` where the rows of `rates` lack what is exported of them.

    is_required: whether a run without the audit is an error, too.
    """
    results = Results.load(run_dir)
    rows = results.audits.get("rates", [])
    if is_required and not rows:
        raise InputError(str(run_dir), [Problem("the run has no audit 'rates': there is nothing to export")])
    if wrong := [
        problem for number, row in enumerate(rows, start=1) for problem in _find_exported_rate_problems(number, row)
    ]:
        raise InputError(str(run_dir / "results.json"), wrong)
    known = [each.get("name") for each in results.about.get("evaluators", [])]
    if unknown := [row["evaluator"] for row in rows if row["evaluator"] not in known]:
        told = Problem(f"expected the evaluators of rates, found none called {unknown[0]!r}", column="about.evaluators")
        raise InputError(str(run_dir / "results.json"), [told])
    return results


def _find_exported_rate_problems(row_number: int, row: Row) -> Iterator[Problem]:
    for key in ("dataset", "evaluator"):
        if not isinstance(row.get(key), str):
            yield Problem(f"expected text, found {row.get(key)!r}", row_number, f"rates.{key}")
    for key in (*_COUNT_COLUMNS, *_RATE_COLUMNS):
        value = row.get(key)
        if key not in row or not (value is None or isinstance(value, int | float)):
            found = repr(value) if key in row else "nothing"
            yield Problem(f"expected a number or null, found {found}", row_number, f"rates.{key}")
