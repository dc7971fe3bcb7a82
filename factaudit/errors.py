"""Which errors do users see? Each message says what is wrong, where, and what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: How many problems of one file are kept; further ones are only counted.
MAX_PROBLEMS = 20
#: How many problems with the same cause are printed.
_PRINTED_PER_CAUSE = 3


class FactauditError(Exception):
    """An error that the user can mend. The command line prints its message without a traceback
    (exit code 1)."""


class UsageError(FactauditError):
    """A wrong call, for example an unknown name or an option out of range (exit code 2)."""


def format_error_first_line(error: BaseException) -> str:
    """The first line of an exception's message, or the name of its class if it has no message.

    >>> format_error_first_line(ValueError("no such column\\nHint: ..."))
    'no such column'
    >>> format_error_first_line(ValueError())
    'ValueError'
    """
    return (str(error).strip() or type(error).__name__).splitlines()[0]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in an input.

    ``row`` counts data rows from 1 for Parquet and CSV (the header is not counted) and lines from 1
    for JSONL and YAML. It is None if the problem concerns the whole file.
    """

    message: str
    row: int | None = None
    column: str | None = None
    unit: str = "row"

    @property
    def cause(self) -> tuple[str | None, str]:
        """The column and what was expected there, without what was found."""
        return self.column, self.message.partition(", found ")[0].partition(", but ")[0]

    def __str__(self) -> str:
        place = [f"{self.unit} {self.row}"] if self.row is not None else []
        if self.column is not None:
            place.append(f"column {self.column!r}")
        return f"{', '.join(place)}: {self.message}" if place else self.message


class InputError(FactauditError):
    """Everything that is wrong with one input, reported together: the first problems of each cause,
    and how many there are.

    ``problems`` holds at least those that are shown; ``total`` may be larger than their number.
    """

    def __init__(self, source: str, problems: Sequence[Problem], total: int | None = None) -> None:
        self.source = source
        self.problems = list(problems)
        self.total = len(self.problems) if total is None else total
        super().__init__(str(self))

    def __str__(self) -> str:
        if self.total == 1:
            return f"{self.source}: {self.problems[0]}"
        lines = [f"{self.source}: {self.total} problems"]
        causes: dict[tuple[str | None, str], list[Problem]] = {}
        for problem in self.problems[:MAX_PROBLEMS]:
            causes.setdefault(problem.cause, []).append(problem)
        # If there are two causes, it is not known how many of the uncounted problems belong to
        # each.
        left = self.total - sum(map(len, causes.values()))
        for alike in causes.values():
            lines += [f"  {problem}" for problem in alike[:_PRINTED_PER_CAUSE]]
            rest = len(alike) - _PRINTED_PER_CAUSE + (left if len(causes) == 1 else 0)
            if rest > 0:
                lines.append(f"  ... and {rest} more like that")
        if left and len(causes) > 1:
            lines.append(f"  ... and {left} more")
        return "\n".join(lines)


def suggest_known_name(name: str, known_names: Sequence[str]) -> str:
    """`` (did you mean 'rouge2'?)`` if a known name is similar, else a list of the known names."""
    return (
        suggest_near_name_in_error(name, known_names)
        or f" (known: {', '.join(sorted(known_names))})"
    )


def suggest_near_name_in_error(name: str, known_names: Sequence[str]) -> str:
    """`` (did you mean 'rouge2'?)`` if a known name is similar, else nothing."""
    from difflib import get_close_matches

    near = get_close_matches(name, known_names, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else ""
