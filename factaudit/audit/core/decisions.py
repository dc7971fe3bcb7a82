"""May an evaluator be used for a task? yes, with a correction, with review, no, or cannot tell; and what says so.

A decision asks whether figures are on the right side of a limit by their intervals, whatever the unscored claims are.
All are: yes. One is significantly not: no. Else these labels cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from factaudit.audit.core.audit_declaration import AuditedRun

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


def decide(figure: str, required: str, *, is_met: bool, is_missed: bool, has_intervals: bool = True) -> Answer:
    """The answer by what is ``required``: whether that is significantly so, or significantly not so."""
    if is_met:
        return Answer("yes", figure, f"Required: {required}. This is significantly so.")
    if is_missed:
        return Answer("no", figure, f"Required: {required}. This is significantly not so.")
    why = "Neither is significant, whatever the unscored claims are." if has_intervals else "No interval was computed."
    return Answer("cannot tell", figure, f"Required: {required}. {why}")
