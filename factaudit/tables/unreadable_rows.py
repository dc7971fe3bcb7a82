"""Leaves out rows that cannot be read, if the caller collects them, and counts them with their
reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from factaudit.errors import InputError, Problem
from factaudit.tables.problems import TableProblemCollector
from factaudit.text.display_text import format_count

#: A file is refused if more than this share of its rows cannot be read.
MAX_UNREADABLE_SHARE = 0.2
#: The number of reasons in the notes of a conversion.
MAX_SHOWN_REASONS = 5


@dataclass
class UnreadableRows:
    """The rows that a conversion left out, with file and reason.

    n_rows: all rows by file.
    """

    rows: list[tuple[Path, Problem]] = field(default_factory=list)
    n_rows: Counter[Path] = field(default_factory=Counter)

    def check_shares(self) -> None:
        """Raise `InputError` for a file of which more than a fifth cannot be read."""
        for path, number in self._count_rows().items():
            if number > MAX_UNREADABLE_SHARE * self.n_rows[path]:
                raise InputError(
                    str(path), [problem for where, problem in self.rows if where == path]
                )

    def _count_rows(self) -> Counter[Path]:
        return Counter(path for path, _ in {(path, problem.row) for path, problem in self.rows})

    def list_notes(self) -> list[str]:
        """How many rows of which file were left out, and the first reasons."""
        notes = [
            f"{path.name}: {number:,} of {format_count(self.n_rows[path], 'row')} left out, which"
            " cannot be read"
            for path, number in self._count_rows().items()
        ]
        notes += [f"  {path.name}, {problem}" for path, problem in self.rows[:MAX_SHOWN_REASONS]]
        if len(self.rows) > MAX_SHOWN_REASONS:
            notes.append(f"  ... and {len(self.rows) - MAX_SHOWN_REASONS:,} more")
        return notes


_COLLECTED: ContextVar[UnreadableRows | None] = ContextVar("unreadable_rows", default=None)


@contextmanager
def collect_unreadable_rows() -> Iterator[UnreadableRows]:
    """Inside this context, readers and converters leave out what they cannot read; outside, they
    raise. Raises `InputError` at its end if a file has too many such rows."""
    collected = UnreadableRows()
    token = _COLLECTED.set(collected)
    try:
        yield collected
    except InputError:
        # Too many unreadable rows are the likelier cause.
        collected.check_shares()
        raise
    else:
        collected.check_shares()
    finally:
        _COLLECTED.reset(token)


def leave_out_unreadable_row(path: Path, problem: Problem) -> None:
    """Note that a row is left out, and why. Raises `InputError` if nobody collects such rows."""
    collected = _COLLECTED.get()
    if collected is None:
        raise InputError(str(path), [problem])
    collected.rows.append((path, problem))


def leave_out_unreadable_rows(path: Path, problems: list[Problem], n_rows: int) -> None:
    """Note the rows of a file that are left out, of ``n_rows`` in all. Raises `InputError` if they
    are too many."""
    collected = _COLLECTED.get()
    if problems and collected is None:
        raise InputError(str(path), problems)
    if collected is not None:
        collected.n_rows[path] = max(collected.n_rows[path], n_rows)
        collected.rows += [
            (path, problem) for problem in problems if (path, problem) not in collected.rows
        ]
        collected.check_shares()


def leave_out_broken_table_rows(
    path: Path, problems: TableProblemCollector, n_rows: int, is_counted: bool = False
) -> None:
    """Note the broken rows of a table (a broken line of JSON, a row of CSV with too many cells).
    Raises `InputError` if nobody collects such rows, if other files count the rows, or if they are
    too many."""
    if _COLLECTED.get() is None or is_counted or problems.total > MAX_UNREADABLE_SHARE * n_rows:
        problems.raise_if_any()
    elif problems.total:
        leave_out_unreadable_rows(path, problems.problems, n_rows)
