"""Cells of labels as 1, 0 or null, by what a mapping says of words and grades."""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.cell_values import has_no_value, parse_judgement_numbers
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import is_blank_cell, normalise_vocabulary_words


def parse_label_cells(table_name: str, mapping: ColumnMapping, values: pd.Series, column: str) -> pd.Series:
    """Labels as 1, 0 or null: grades by the mapping's threshold, words by its words. Raises `InputError`."""
    limit = mapping.label_threshold
    if limit is None:
        return parse_label_words(table_name, mapping, values, column)
    numbers = parse_judgement_numbers(values)
    check_cells(table_name, values.rename(column), numbers.isna() & ~values.map(has_no_value), "expected a number")
    return (numbers > limit).astype("Int8").mask(numbers.isna(), pd.NA)


def parse_label_words(table_name: str, mapping: ColumnMapping, values: pd.Series, column: str) -> pd.Series:
    """Words as 1, 0 or null: the mapping's, however they are written; 1, 0, true and false are themselves. Raises
    `InputError`."""
    table: dict[str, int | None] = {"1": 1, "0": 0, "true": 1, "false": 0}
    own = mapping.labels | mapping.words.get(column, {})
    table |= {normalise_vocabulary_words(word): value for word, value in own.items()}
    words = values.map(lambda value: None if is_missing_value(value) else normalise_vocabulary_words(value))
    words = words.mask(values.map(is_blank_cell) & ~words.isin(list(table)), None)
    words = words.where(words.notna(), "") if "" in table else words
    bad = words.notna() & ~words.isin(list(table))
    if bad.any():
        unknown = sorted({str(value) for value in values[bad]})
        shown = ", ".join(map(repr, unknown[:5])) + (" ..." if len(unknown) > 5 else "")
        message = f"expected 1, 0 or a word that the mapping knows, found {shown} in {int(bad.sum()):,} rows"
        problem = Problem(f"{message}; say --labels WORD=1,WORD=0", int(np.flatnonzero(bad)[0]) + 1, column)
        raise InputError(table_name, [problem])
    said = words.map(lambda word: pd.NA if is_missing_value(word) or table[word] is None else table[word])
    return said.astype("Int8")


def check_cells(table_name: str, values: pd.Series, is_wrong: pd.Series, message: str) -> None:
    """Raise `InputError` where some cells of a column are wrong: the first of them, and how many there are."""
    rows = np.flatnonzero(is_wrong)
    if len(rows):
        more = f" ({len(rows):,} rows)" if len(rows) > 1 else ""
        found = f"{message}, found {values.iloc[rows[0]]!r}{more}"
        raise InputError(table_name, [Problem(found, int(rows[0]) + 1, str(values.name))])
