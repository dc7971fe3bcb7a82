"""Possible readings tried before they are offered: none that fails, or by which there are no claims or one label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pandas as pd

from factaudit.errors import InputError, UsageError
from factaudit.tables.open_questions import AmbiguousReadingError, PossibleColumnReading

#: Readings of more rows are not tried before they are offered.
_MAX_TRIED_ROWS = 20_000
#: Fewer labels may well all be the same.
_MIN_LABELS = 4


class _HasClaims(Protocol):
    @property
    def claims(self) -> pd.DataFrame | None: ...


def list_readings_that_work(
    readings: Sequence[PossibleColumnReading], read_tables: Callable[[Mapping[str, Any]], _HasClaims], n_rows: int
) -> list[PossibleColumnReading]:
    """The readings by which claims can be read; large tables are not tried.

    A reading that leaves a question open stands last, with each answer to that. One that gives no claims, or labels
    that are all the same, is kept where no other reading is. Raises `InputError` or `UsageError` where none works.

    read_tables: reads the tables by a mapping's data.
    """
    if n_rows > _MAX_TRIED_ROWS:
        return list(readings)
    found, open_still, doubtful = ([] for _ in range(3))
    errors: list[InputError | UsageError] = []
    for one in readings:
        try:
            read = read_tables(one.mapping)
        except AmbiguousReadingError as error:
            answers = error.readings  # the likelier ones first
            open_still += [PossibleColumnReading(f"{one.description}; {a.description}", a.mapping) for a in answers]
            continue
        except (InputError, UsageError) as error:
            errors.append(error)
            continue
        is_telling = read.claims is not None and not (
            {"columns", "labels"} & {*one.mapping} and _has_one_label(read.claims)
        )
        (found if is_telling else doubtful).append(one)
    found += open_still
    if not found and not doubtful and errors:
        raise errors[0]
    return found or doubtful


def _has_one_label(claims: pd.DataFrame) -> bool:
    labels = claims["label"].dropna()
    return len(labels) >= _MIN_LABELS and labels.nunique() == 1
