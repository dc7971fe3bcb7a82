"""Reads cells of labels and predictions as 1, 0 or null, by the words and thresholds of a
mapping."""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.cell_values import (
    find_verdict_in_reply,
    has_no_value,
    parse_judgement_numbers,
)
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.meanings import is_column_reversed, map_label_words
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    is_blank_cell,
    normalise_words,
    parse_label_word,
)


def parse_label_cells(
    table_name: str, mapping: ColumnMapping, values: pd.Series, column: str
) -> pd.Series:
    """Labels as 1, 0 or null: grades by the mapping's threshold, words by their meaning. Raises
    `InputError`.

    A grade above the threshold means supported, or below it if a high grade means an error.
    """
    limit = mapping.threshold.get(column)
    if limit is None:
        return parse_label_words(table_name, mapping, values, column)
    numbers = parse_judgement_numbers(values)
    check_cells(
        table_name, column, values, numbers.isna() & ~values.map(has_no_value), "expected a number"
    )
    is_supported = numbers < limit if is_column_reversed(column, mapping) else numbers > limit
    return is_supported.astype("Int8").mask(numbers.isna(), pd.NA)


def parse_label_words(
    table_name: str, mapping: ColumnMapping, values: pd.Series, column: str
) -> pd.Series:
    """Words as 1, 0 or null, by the mapping or else by the vocabulary. Raises `InputError`.

    The verdict in a judge's reply stands at its beginning or end. A few replies without a verdict
    are null.
    """
    said = {normalise_words(word): value for word, value in mapping.labels.items()}
    is_reversed = is_column_reversed(column, mapping)
    texts = values.map(lambda value: "" if is_missing_value(value) else str(value))
    known = map_label_words(texts.unique(), is_reversed)
    found: dict[str, int | None] = {}
    unknown, replies = list[str](), list[str]()
    for text in texts.unique():
        word = normalise_words(text)
        verdict = find_verdict_in_reply(text)
        value = None if verdict is None else parse_label_word(verdict)
        if word in said or is_blank_cell(text):
            found[text] = said.get(word, said.get(""))
        elif text in known:
            found[text] = known[text]
        elif value is not None:
            is_turned = is_reversed and normalise_words(verdict) in BARE_WORDS
            found[text] = 1 - value if is_turned else value
            replies.append(text)
        else:
            found[text] = None
            unknown.append(text)
    is_unknown = texts.isin(unknown)
    if not replies or is_unknown.sum() > MAX_UNREADABLE_SHARE * (texts != "").sum():
        shown = ", ".join(map(repr, sorted(unknown)[:5])) + (" ..." if len(unknown) > 5 else "")
        message = (
            f"expected 1, 0 or a word that the mapping knows, found {shown} in"
            f" {int(is_unknown.sum()):,} rows"
        )
        _raise_at_first(table_name, column, is_unknown, f"{message}; say --labels WORD=1,WORD=0")
    return pd.Series([found[text] for text in texts], index=values.index, dtype="Int8")


def check_cells(
    table_name: str, column: str, values: pd.Series, is_wrong: pd.Series, expected: str
) -> None:
    """Raise `InputError` if some cells of a column are wrong. It names the first of them and their
    number."""
    n_wrong = int(is_wrong.sum())
    if n_wrong:
        found = values[is_wrong].iloc[0]
        more = f" ({n_wrong:,} rows)" if n_wrong > 1 else ""
        _raise_at_first(table_name, column, is_wrong, f"{expected}, found {found!r}{more}")


def _raise_at_first(table_name: str, column: str, is_wrong: pd.Series, message: str) -> None:
    rows = np.flatnonzero(is_wrong)
    if len(rows):
        raise InputError(table_name, [Problem(message, int(is_wrong.index[rows[0]]) + 1, column)])
