"""Possible readings tried before they are offered: none that fails, or by which there are no claims or one label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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

    One that leaves a question open is given with each answer to that. One that gives labels which are all the same is
    kept where fewer than two others are, one that gives no claims where nothing else is. Raises `InputError` or
    `UsageError` where none works.

    read_tables: reads the tables by a mapping's data.
    """
    if n_rows > _MAX_TRIED_ROWS:
        return list(readings)
    ways = list[tuple[int, PossibleColumnReading]]()  # how little each says: nothing amiss, one label, no claims
    errors: list[InputError | UsageError] = []
    for one in readings:
        try:
            claims = read_tables(one.mapping).claims
        except AmbiguousReadingError as error:
            more = [PossibleColumnReading(f"{one.description}; {a.description}", a.mapping) for a in error.readings]
            ways += [(2 * _lacks_claims(a, read_tables), a) for a in more]
        except (InputError, UsageError) as error:
            errors.append(error)
        else:
            is_of_labels = bool({"columns", "labels"} & {*one.mapping})
            ways.append((2 if claims is None else int(is_of_labels and _has_one_label(claims)), one))
    if not ways and errors:
        raise errors[0]
    is_enough = sum(flaw == 0 for flaw, _ in ways) > 1
    limit = 0 if is_enough else max(1, min((flaw for flaw, _ in ways), default=0))
    return [one for flaw, one in ways if flaw <= limit]


def _lacks_claims(reading: PossibleColumnReading, read_tables: Callable[[Mapping[str, Any]], _HasClaims]) -> bool:
    with suppress(InputError, UsageError):
        return read_tables(reading.mapping).claims is None
    return False


def _has_one_label(claims: pd.DataFrame) -> bool:
    labels = claims["label"].dropna()
    return len(labels) >= _MIN_LABELS and labels.nunique() == 1
