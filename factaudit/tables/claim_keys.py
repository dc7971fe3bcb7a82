"""Finds the rows of two tables that are about the same claim: by ids, or else by the texts of
claims and documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.plain_values import is_missing_value

#: The columns that tell claims without ids apart.
_KEY_COLUMNS = ("dataset", "system", "response_id", "doc", "claim")


@dataclass(frozen=True)
class CommonKeys:
    """The key of each row in two tables.

    names: the columns (factaudit's names) of which the keys consist. note: says that ids were
    matched by their numbers.
    """

    names: Sequence[str]
    first: pd.Series
    second: pd.Series
    note: str | None = None


def list_key_columns(columns: Mapping[str, str]) -> list[str]:
    return [key for key in _KEY_COLUMNS if key in columns]


def find_common_keys(
    rows: pd.DataFrame,
    columns: Mapping[str, str],
    others: pd.DataFrame,
    other_columns: Mapping[str, str],
) -> CommonKeys | None:
    """The keys of the rows of two tables: ids if both have some in common, else texts; None if
    there are neither.

    columns, other_columns: factaudit's name of a column to its name in the table. The keys of the
    first table may repeat.
    """
    common = columns.keys() & other_columns.keys()
    has_texts = "claim" in common
    if "claim_id" in common:
        first, second = (
            rows[columns["claim_id"]].astype("str"),
            others[other_columns["claim_id"]].astype("str"),
        )
        if second.isin(first).any():
            return CommonKeys(["claim_id"], first, second)
        # "7.0" (pandas, of a column in which a number is missing) and "007" may be the claims' "7".
        known, wanted = (
            ids.str.replace(r"^0*(\d+)(\.0+)?$", r"\1", regex=True) for ids in (first, second)
        )
        if known.is_unique and wanted.isin(known).all():
            found = wanted.map(pd.Series(first.to_numpy(), index=known))
            note = (
                f"ids  {second.name}: {second.iloc[0]} is the claim {found.iloc[0]!r}, by its"
                " number"
            )
            return CommonKeys(["claim_id"], first, found, note)
        if not has_texts:
            return CommonKeys(["claim_id"], first, second)
    if not has_texts:
        return None
    names = [key for key in list_key_columns(columns) if key in common]
    first = join_key_cells(rows, [columns[one] for one in names])
    return CommonKeys(names, first, join_key_cells(others, [other_columns[one] for one in names]))


def join_key_cells(table: pd.DataFrame, key_columns: Sequence[str]) -> pd.Series:
    """Several columns as one text for each row."""
    parts = [table[column].map(join_passages_into_document) for column in key_columns]
    joined = (
        "\x1f".join("" if is_missing_value(value) else str(value) for value in row)
        for row in zip(*parts, strict=True)
    )
    return pd.Series(list(joined), dtype="object")


def join_passages_into_document(passages: Any) -> Any:
    """Several passages as one document."""
    if isinstance(passages, list | tuple | np.ndarray):
        return (
            "\n\n".join(
                str(item.get("text", item) if isinstance(item, dict) else item) for item in passages
            )
            or None
        )
    return passages


def name_table_stem(table_name: str) -> str:
    """The name of a table's data set, or of its evaluator, if no column says it."""
    return Path(table_name).name.split(".")[0]
