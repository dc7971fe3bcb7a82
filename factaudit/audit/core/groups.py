"""Splitting the rows of a table by columns that the user names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from factaudit.audit.core.kinds import dense
from factaudit.audit.core.rows import ALL
from factaudit.errors import UsageError, hint


@dataclass(frozen=True)
class Groups:
    """``codes``: int64 (n,), the group of each row (-1: none); ``keys``: per group its value of each column, sorted.

    The rows are claims or responses, as ``level`` says; ``outside``: per group, its claims that are in no response.
    """

    codes: np.ndarray
    keys: list[dict[str, Any]]
    level: str = "claim"
    outside: tuple[int, ...] = ()

    def rows(self, place: int) -> np.ndarray:
        """int64: the rows of one group, ascending."""
        order, starts = self._sorted
        return order[starts[place] : starts[place + 1]]

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.codes, kind="stable")
        return order, np.searchsorted(self.codes[order], np.arange(len(self.keys) + 1))


def group_by(claims: pd.DataFrame, by: Sequence[str]) -> Groups:
    """Groups of equal values of the columns ``by``; a missing value is a group of its own (key None), sorted last.

    Each key has ``dataset`` first: ``__all__`` where it isn't among ``by``. Raises `UsageError` for an unknown column.
    """
    columns = list(dict.fromkeys(by))
    codes = np.zeros(len(claims), dtype=np.int64)
    keys: list[tuple[Any, ...]] = [()]
    for column in columns:
        values, names = column_codes(claims, column)
        pairs, codes = pair_codes(codes, values, len(names))
        keys = [(*keys[pair // len(names)], names[pair % len(names)]) for pair in pairs.tolist()]
    named = [dict(zip(columns, key, strict=True)) for key in keys] if len(claims) else []
    return Groups(codes, [{"dataset": key.get("dataset", ALL), **key} for key in named])


def split(groups: Groups, claims: pd.DataFrame, column: str) -> Groups:
    """Each group split by one more column; rows without a value get code -1."""
    values, names = column_codes(claims, column)
    size = len(names) + 1
    inside = claims[column].notna().to_numpy()
    pairs, codes = pair_codes(groups.codes[inside], values[inside], size)
    found = np.full(len(claims), -1, dtype=np.int64)
    found[inside] = codes
    keys = [{**groups.keys[pair // size], column: names[pair % size]} for pair in pairs.tolist()]
    return replace(groups, codes=found, keys=keys)


def column_codes(claims: pd.DataFrame, column: str) -> tuple[np.ndarray, list[Any]]:
    """A column as int64 codes (n,) into its distinct values, sorted, None last where some value is missing."""
    if column not in claims:
        raise UsageError(f"the claims have no column {column!r}{hint(column, [str(c) for c in claims.columns])}")
    try:
        codes, found = pd.factorize(claims[column], use_na_sentinel=True)
    except TypeError as error:
        raise UsageError(f"column {column!r} holds lists or objects: claims cannot be grouped by it") from error
    names = found.to_numpy(dtype=object).tolist() if isinstance(found.dtype, pd.StringDtype) else list(found)
    names = [name.item() if isinstance(name, np.generic) else name for name in names]
    if all(isinstance(name, str) for name in names):
        order = sorted(range(len(names)), key=names.__getitem__)
    else:
        order = sorted(range(len(names)), key=lambda i: (str(type(names[i])), names[i]))
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order] = np.arange(len(names))
    rank[-1] = len(names)  # where pandas' code is -1: missing
    missing = [None] if (codes == -1).any() else []
    return rank[codes], [names[i] for i in order] + missing


def pair_codes(first: np.ndarray, second: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of codes that occur, as ``first * size + second`` in ascending order, and each row's place among them.

    So there are never more groups than rows. ``size``: the number of codes of ``second``.
    """
    return dense(first * size + second)
