"""The columns that tell one claim from another, as keys by which tables are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.plain_values import is_missing_value


def list_claim_key_columns(source_columns: Mapping[str, str]) -> list[str]:
    return [key for key in ("dataset", "system", "response_id", "doc", "claim") if key in source_columns]


def join_claim_key_cells(table: pd.DataFrame, key_columns: Sequence[str]) -> pd.Series:
    """Several columns as one text a row. (Not with "\\0" between: pandas 2 reads a text up to the first.)"""
    parts = [table[column].map(join_passages_into_document) for column in key_columns]
    joined = (
        "\x1f".join("" if is_missing_value(value) else str(value) for value in row) for row in zip(*parts, strict=True)
    )
    return pd.Series(list(joined), dtype="object")


def join_passages_into_document(passages: Any) -> Any:
    """Several passages as one document."""
    if isinstance(passages, list | tuple | np.ndarray):
        return "\n\n".join(str(item.get("text", item) if isinstance(item, dict) else item) for item in passages) or None
    return passages


def match_ids_by_number(ids: pd.Series, claim_ids: pd.Series) -> pd.Series | None:
    """Ids of claims for ids of which none is a claim's as it is written: "7.0" and "007" may be the claims' "7".

    None where some are, where a number is none of a claim, or where two claims have the same.
    """
    if ids.astype("str").isin(claim_ids).any():
        return None
    known = pd.Series(claim_ids.to_numpy(), index=_format_whole_numbers(claim_ids))
    found = _format_whole_numbers(ids).map(known) if known.index.is_unique else None
    return None if found is None or found.isna().any() else found


def _format_whole_numbers(ids: pd.Series) -> pd.Series:
    return ids.astype("str").str.replace(r"^0*(\d+)(\.0+)?$", r"\1", regex=True)


def name_table_stem(table_name: str) -> str:
    """What a table's data set, or its evaluator, is called where no column says it."""
    return Path(table_name).name.split(".")[0]
