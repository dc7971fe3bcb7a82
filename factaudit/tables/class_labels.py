"""Codes of classes that a data set of Hugging Face names: 0 may be "faithful" as well as "hallucinated"."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.tables.plain_values import is_missing_value


def list_class_names_of_parquet(path: str | Path) -> dict[str, list[str]]:
    """The names of the classes of each column of a Parquet file that has some, in the order of their codes."""
    try:
        return list_class_names_of_huggingface_schema(pq.read_schema(path))
    except (OSError, pa.ArrowException):
        return {}  # whoever reads the file says what is wrong with it


def list_class_names_of_huggingface_schema(schema: pa.Schema) -> dict[str, list[str]]:
    """The names of the classes of each column, from the metadata that `datasets` writes."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return {}
    return list_class_names_of_features(features)


def list_class_names_of_features(features: Any) -> dict[str, list[str]]:
    """The names of the classes of each column, from features (plain data, or those of a `datasets.Dataset`)."""
    if not isinstance(features, Mapping):
        return {}
    found = {
        str(column): feature.get("names") if isinstance(feature, Mapping) else getattr(feature, "names", None)
        for column, feature in features.items()
    }
    return {column: [*map(str, names)] for column, names in found.items() if isinstance(names, list) and names}


def replace_class_codes_by_names(table: pd.DataFrame, class_names: Mapping[str, list[str]]) -> pd.DataFrame:
    """The table with the names of classes where its columns hold their codes; -1 is no class, as `datasets` has it."""
    found = {}
    for column, names in class_names.items():
        if column not in table:
            continue
        codes = pd.to_numeric(table[column], errors="coerce")
        if not codes[~table[column].map(is_missing_value)].isin(range(-1, len(names))).all():
            continue  # names already, or codes of something else
        words = [None if pd.isna(code) or code < 0 else names[int(code)] for code in codes]
        found[column] = pd.Series(words, index=table.index, dtype="object")
    return table.assign(**found)


def read_huggingface_viewer_rows(document: Any) -> pd.DataFrame | None:
    """The table of a page of rows of Hugging Face's viewer (``features``, ``rows``); None where it is none."""
    features, rows = (document.get(key) for key in ("features", "rows")) if isinstance(document, dict) else (None, None)
    if not isinstance(features, list) or not isinstance(rows, list) or not rows:
        return None
    if not all(isinstance(one, dict) and isinstance(one.get("row"), dict) for one in rows):
        return None
    types = {str(one.get("name")): one.get("type") for one in features if isinstance(one, dict)}
    table = pd.DataFrame([one["row"] for one in rows], dtype="object")
    return replace_class_codes_by_names(table, list_class_names_of_features(types))
