"""Cells of labels as 1, 0 or null, by what a mapping says of words and grades."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.cell_values import find_verdict_in_reply, has_no_value, parse_judgement_numbers
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.meanings import is_column_reversed
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.vocabulary import BARE_WORDS, is_blank_cell, normalise_vocabulary_words, parse_label_word


def parse_label_cells(table_name: str, mapping: ColumnMapping, values: pd.Series, column: str) -> pd.Series:
    """Labels as 1, 0 or null: grades by the mapping's threshold, words by its words. Raises `InputError`.

    Grades above the threshold are supported; those below it where a high grade means an error.
    """
    limit = mapping.threshold.get(column)
    if limit is None:
        return parse_label_words(table_name, mapping, values, column)
    numbers = parse_judgement_numbers(values)
    check_cells(table_name, values.rename(column), numbers.isna() & ~values.map(has_no_value), "expected a number")
    is_supported = numbers < limit if is_column_reversed(column, mapping) else numbers > limit
    return is_supported.astype("Int8").mask(numbers.isna(), pd.NA)


def parse_label_words(table_name: str, mapping: ColumnMapping, values: pd.Series, column: str) -> pd.Series:
    """Words as 1, 0 or null: the mapping's, however they are written; 1, 0, true and false are themselves. Raises
    `InputError`."""
    table: dict[str, int | None] = {"1": 1, "0": 0, "true": 1, "false": 0}
    own = mapping.labels | mapping.words.get(column, {})
    table |= {normalise_vocabulary_words(word): value for word, value in own.items()}
    words = values.map(lambda value: None if is_missing_value(value) else normalise_vocabulary_words(value))
    words = words.mask(values.map(is_blank_cell) & ~words.isin(list(table)), None)
    words = words.where(words.notna(), "") if "" in table else words
    if (unknown := words.notna() & ~words.isin(list(table))).any():
        reverse = is_column_reversed(column, mapping)
        replies = values[unknown].map(lambda value: _parse_reply(value, reverse))
        words = words.mask(unknown, replies.reindex(words.index).fillna(words))
        left = replies.isna()
        if 0 < left.sum() <= MAX_UNREADABLE_SHARE * words.notna().sum() and replies.notna().any():
            words = words.mask(unknown & ~words.isin(list(table)), None)  # a few replies without a verdict
    bad = words.notna() & ~words.isin(list(table))
    if bad.any():
        found = sorted({str(value) for value in values[bad]})
        shown = ", ".join(map(repr, found[:5])) + (" ..." if len(found) > 5 else "")
        message = f"expected 1, 0 or a word that the mapping knows, found {shown} in {int(bad.sum()):,} rows"
        problem = Problem(f"{message}; say --labels WORD=1,WORD=0", int(np.flatnonzero(bad)[0]) + 1, column)
        raise InputError(table_name, [problem])
    said = words.map(lambda word: pd.NA if is_missing_value(word) or table[word] is None else table[word])
    return said.astype("Int8")


def _parse_reply(value: Any, is_reversed: bool) -> str | None:
    """1 or 0, as a word, where a judge's reply begins or ends with its verdict."""
    verdict = find_verdict_in_reply(value)
    said = None if verdict is None else parse_label_word(verdict)
    if said is None:
        return None
    return str(1 - said if is_reversed and normalise_vocabulary_words(verdict) in BARE_WORDS else said)


def check_cells(table_name: str, values: pd.Series, is_wrong: pd.Series, message: str) -> None:
    """Raise `InputError` where some cells of a column are wrong: the first of them, and how many there are."""
    rows = np.flatnonzero(is_wrong)
    if len(rows):
        more = f" ({len(rows):,} rows)" if len(rows) > 1 else ""
        found = f"{message}, found {values.iloc[rows[0]]!r}{more}"
        raise InputError(table_name, [Problem(found, int(rows[0]) + 1, str(values.name))])
