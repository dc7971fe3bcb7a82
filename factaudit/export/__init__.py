"""In which other forms can a run be written? As LaTeX tables for papers, and as one JSON line per
claim."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from factaudit.errors import UsageError, suggest_known_name

#: For each form: its module in this folder and what it writes. Each module has ``export(run_dir,
#: out) -> list[Path]``.
EXPORT_FORMS = {
    "latex": (
        "latex",
        "booktabs tables with intervals, and a methods paragraph with the signature",
    ),
    "jsonl": ("jsonl", "a line per claim with its label and all verdicts"),
}


def export_run(run_dir: Path, form: str, out: Path | None = None) -> list[Path]:
    """Write a run folder in another form into ``out`` (by default ``export/FORM`` inside it) and
    return the files.

    Raises `UsageError` for an unknown form, and `InputError` for a folder that lacks what the form
    needs.
    """
    if form not in EXPORT_FORMS:
        raise UsageError(f"unknown form {form!r}{suggest_known_name(form, list(EXPORT_FORMS))}")
    module = EXPORT_FORMS[form][0]
    function: Callable[[Path, Path], list[Path]] = getattr(
        import_module(f"factaudit.export.{module}"), f"export_{module}"
    )
    return function(run_dir, out or run_dir / "export" / form)
