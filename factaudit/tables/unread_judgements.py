"""Columns that a known format does not read, though by their names and values people or evaluators judged in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.judgement_columns import classify_judgement_column_by_name, extract_evaluator_name
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_vocabulary_word_in_column_name,
    is_reversed_column_name,
    normalise_vocabulary_words,
)


def find_columns_of_judgements(
    columns: Mapping[str, Sequence[Any]], kinds: Sequence[str] = ("people", "judge", "both")
) -> dict[str, ColumnProfile]:
    """The columns, by name, of what people or evaluators said: words for a label, two words under a name of people's
    labels, or numbers, that vary; single or in lists. kinds: what `classify_judgement_column_by_name` calls them; of a
    name that tells nothing those that hold opposite verdicts, too."""
    found = {}
    for name, values in columns.items():
        names_judge = normalise_vocabulary_words(name) in (*COLUMN_NAMES["annotator"], *COLUMN_NAMES["evaluator"])
        if normalise_vocabulary_words(name) == "status":
            continue  # whether a call went well
        cells = [one for cell in values for one in (cell if isinstance(cell, list) else [cell])]
        profile = profile_column_for_mapping(name, pd.Series(cells, dtype="object"))
        kind = classify_judgement_column_by_name(profile)
        is_named_label = kind == "people" and has_vocabulary_word_in_column_name("labels", name)
        is_worded = is_named_label and profile.kind == "name" and profile.n_different == 2  # C and I
        if not (profile.is_judgement or is_worded) or profile.n_different < 2:
            continue
        if names_judge and not ("label" in kinds and profile.has_both_verdicts):
            continue  # who judged, as a number; 1 and 0 where nothing else is a label may be what they said
        if kind in kinds or (kind == "unknown" and profile.has_opposite_verdicts):
            found[name] = profile
    return found


def is_certain_human_label_column(column: ColumnProfile) -> bool:
    """Whether a column of judgements is people's label, 1 or a word such as "supported" for what is supported."""
    is_named_label = has_vocabulary_word_in_column_name("labels", column.name)
    is_named_label = is_named_label or extract_evaluator_name(column.name) != column.name
    said_by = classify_judgement_column_by_name(column)
    return (
        said_by == "people" and column.kind == "binary" and is_named_label and not is_reversed_column_name(column.name)
    )


def is_certain_evaluator_verdict_column(column: ColumnProfile) -> bool:
    """Whether a column holds an evaluator's words for what is supported and what is not."""
    said_by = classify_judgement_column_by_name(column)
    is_worded = column.kind == "binary" and not {*column.words} <= {"0", "1", "0.0", "1.0"}
    return said_by == "judge" and is_worded and not is_reversed_column_name(column.name)
