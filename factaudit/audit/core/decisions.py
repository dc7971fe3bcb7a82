"""May an evaluator be used for a task? yes, with a correction, with review, no, or cannot tell; and what says so.

A decision asks whether figures are on the right side of a limit by their intervals, whatever the unscored claims are.
All are: yes. One is significantly not: no. Else these labels cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.result_rows import Row

Permission = Literal["yes", "with a correction", "with review", "no", "cannot tell"]


@dataclass(frozen=True)
class Answer:
    """``figure`` is what it rests on, ``why`` what is required and whether that is met."""

    may: Permission
    figure: str
    why: str


@dataclass(frozen=True)
class Decision:
    """A task ("rank systems"), and the answer for an evaluator of a run (None: there is nothing to answer it by)."""

    task: str
    answer: Callable[[AuditedRun, str], Answer | None]


def answer(may: Permission, figure: str, required: str, rows: Iterable[Row] = (), keys: Sequence[str] = ()) -> Answer:
    """An answer by what is ``required``; rows, keys: the figures that leave it open, where it cannot tell."""
    met = {"yes": "This is significantly so.", "no": "This is significantly not so."}
    return Answer(may, figure, f"Required: {required}. {met.get(may) or explain_open(rows, keys)}")


def explain_open(rows: Iterable[Row], keys: Sequence[str]) -> str:
    """Why it is open on which side of a limit some figures are."""
    figures = [(row, key) for row in rows for key in keys]
    if any(not has_interval(row, key) for row, key in figures):
        return "No interval was computed."
    if any(row.get(f"{key}_min") != row.get(f"{key}_max") for row, key in figures):
        return "This is not significant either way, or it depends on the unscored claims."
    return "This is not significant either way."
