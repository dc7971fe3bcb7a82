"""Columns that a known format does not read, though by their names and values people or evaluators judged in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import parse_judgement_numbers
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.judgement_columns import (
    SUPPORT_WORDS,
    classify_judgement_column_by_name,
    extract_evaluator_name,
    read_column_as_binary_judgements,
)
from factaudit.tables.standard_columns import OWN_COLUMNS
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
)

#: A column that is called a judgement would go so well with what is known of the claims by chance less often than this.
_LEVEL = 0.05
#: Words that may say whether a person looked, and not what they said.
_DEEDS = {"reviewed", "annotated"}


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
        is_named_label = kind == "people" and any(
            has_vocabulary_word_in_column_name(one, name) for one in ("labels", "doubtful_labels")
        )
        is_worded = is_named_label and profile.kind == "name" and profile.n_different == 2  # C and I
        if not (profile.is_judgement or is_worded) or profile.n_different < 2:
            continue
        if names_judge and not ("label" in kinds and profile.has_both_verdicts):
            continue  # who judged, as a number; 1 and 0 where nothing else is a label may be what they said
        if kind in kinds or (kind == "unknown" and profile.has_opposite_verdicts):
            found[name] = profile
    return found


def is_certain_human_label_column(column: ColumnProfile) -> bool:
    """Whether a column of judgements is people's label, 1 or a word such as "supported" for what is supported: its name
    says what they judged, or nothing else than who they are (``gold``, ``annotator_1``)."""
    is_named_label = has_vocabulary_word_in_column_name("labels", column.name)
    is_named_label = is_named_label or extract_evaluator_name(column.name) != column.name
    name = normalise_vocabulary_words(column.name.rpartition(".")[2])
    words = {word for word in name.split() if not word.isdigit()}
    known = (find_vocabulary_words_in_column_name("people", name) - _DEEDS) | SUPPORT_WORDS
    is_named_label = is_named_label or (words <= known and name not in COLUMN_NAMES["annotator"])
    said_by = classify_judgement_column_by_name(column)
    return said_by == "people" and column.kind == "binary" and is_named_label and not has_name_of_error(column.name)


def is_certain_evaluator_verdict_column(column: ColumnProfile) -> bool:
    """Whether a column holds an evaluator's words for what is supported and what is not."""
    said_by = classify_judgement_column_by_name(column)
    is_worded = column.kind == "binary" and not {*column.words} <= {"0", "1", "0.0", "1.0"}
    return said_by == "judge" and is_worded and not has_name_of_error(column.name)


def parse_column_as_numbers(rows: pd.DataFrame, column: ColumnProfile) -> np.ndarray:
    """A column of judgements as numbers: words for a label as 1, 0 or NaN."""
    if column.kind == "binary":
        return read_column_as_binary_judgements(rows, column)
    return parse_judgement_numbers(rows[column.name]).to_numpy()


def goes_with_judgements(rows: pd.DataFrame, column: ColumnProfile, said: np.ndarray, level: float) -> bool:
    """Whether a column's judgements rise or fall with what is said of the rows (numbers), by more than chance."""
    from scipy.stats import spearmanr

    numbers = parse_column_as_numbers(rows, column)
    known = np.isfinite(numbers) & np.isfinite(said)
    varies = known.sum() > 2 and min(len(np.unique(x[known])) for x in (numbers, said)) > 1
    return bool(varies and spearmanr(numbers[known], said[known]).pvalue < level)


def list_further_judgements(
    claims: pd.DataFrame, verdicts: pd.DataFrame, verdict_files: Sequence[pd.DataFrame]
) -> list[str]:
    """Further columns of claims and verdicts of ours that are called judgements of people or evaluators and go with the
    labels (without labels: with the predictions), and the option that reads them. They are columns like any other.

    verdict_files: the verdicts as they lie, with all their columns.
    """
    labels = claims.set_index("claim_id")["label"].astype("float64")
    by_claim = labels if labels.notna().any() else verdicts.groupby("claim_id")["prediction"].mean().astype("float64")
    found: dict[str, list[str]] = {}
    for rows in (claims, *(one for one in verdict_files if "claim_id" in one)):
        said = rows["claim_id"].astype("str").map(by_claim).to_numpy(dtype="float64")
        further = rows.columns.difference([*OWN_COLUMNS["claims"], *OWN_COLUMNS["verdicts"]], sort=False)
        judged = find_columns_of_judgements({str(name): rows[name].tolist() for name in further})
        way = "--wide NAME" if rows is claims else "give each evaluator rows of its own"
        for name, column in judged.items():
            if goes_with_judgements(rows, column, said, _LEVEL):
                is_of_people = classify_judgement_column_by_name(column) == "people"
                text = "perhaps people's labels: --people NAME" if is_of_people else f"perhaps an evaluator: {way}"
                found.setdefault(text, []).append(name)
    return [f"{', '.join(names)} ({text})" for text, names in found.items()]
