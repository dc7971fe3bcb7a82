"""Recognises tables with factaudit's own columns. Only the required columns decide, whatever
further columns a table has."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

import pandas as pd

from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.annotations import ANNOTATION_COLUMNS
from factaudit.tables.schema import GRADE_COLUMN
from factaudit.tables.vocabulary import COLUMN_NAMES, normalise_words

#: The columns of each kind of table.
OWN_COLUMNS = {
    "claims": (*CLAIM_COLUMNS, GRADE_COLUMN),
    "verdicts": (*VERDICT_COLUMNS, GRADE_COLUMN),
    "annotations": ANNOTATION_COLUMNS,
}
#: Columns that whole audits need. If one is missing, a column with another of its names is used.
WANTED_CLAIM_COLUMNS = ("label", "doc", "system")


def classify_standard_tables(column_lists: Sequence[Collection[str]]) -> list[str | None]:
    """What each table of one call is: ``claims``, ``verdicts`` or ``annotations``; None for a table
    without factaudit's columns.

    A table with all columns of claims and of verdicts is whatever the other tables are not. Alone
    it is neither, but a table in the long form, whose claims repeat.

    >>> tables = [["dataset", "claim", "label", "batch"], ["claim_id", "evaluator", "score"]]
    >>> classify_standard_tables(tables)
    ['claims', 'verdicts']
    >>> both = ["claim_id", "dataset", "claim", "evaluator", "score"]
    >>> classify_standard_tables([both]), classify_standard_tables([both, tables[0]])
    ([None], ['verdicts', 'claims'])
    >>> classify_standard_tables([both, tables[1]]), classify_standard_tables([both[:-1]])
    (['claims', 'verdicts'], ['claims'])
    """
    possible = [_list_possible_standard_kinds(columns) for columns in column_lists]
    sure = {kinds[0] for kinds in possible if len(kinds) == 1}
    found: list[str | None] = []
    for kinds in possible:
        if len(kinds) > 1 and "claims" in kinds:
            others = [kind for kind in kinds if kind != "claims"]
            if "claims" in sure:
                kinds = others[:1]
            elif "verdicts" in others and "verdicts" not in sure:
                kinds = []
            else:
                kinds = ["claims"]
        found.append(kinds[0] if kinds else None)
    return found


def _list_possible_standard_kinds(columns: Collection[str]) -> list[str]:
    names = {*columns}
    has_verdicts = bool({"score", "prediction"} & names) and "evaluator" in names
    kinds = ["claims"] if {"dataset", "claim"} <= names else []
    if has_verdicts and ("claim_id" in names or kinds):
        kinds.append("verdicts")
    if {"claim_id", "annotator"} <= names and {"label", "grade"} & names:
        kinds.append("annotations")
    return kinds


def find_other_names(kind: str, columns: Collection[str], has_other_tables: bool) -> dict[str, str]:
    """factaudit's name of each wanted column that a table lacks, to the column that has one of its
    other names."""
    if kind != "claims":
        return {}
    wanted = [ours for ours in WANTED_CLAIM_COLUMNS if ours not in columns]
    wanted += ["claim_id"] if has_other_tables and "claim_id" not in columns else []
    names = {normalise_words(column): column for column in columns if column not in CLAIM_COLUMNS}
    found = {ours: [names[one] for one in COLUMN_NAMES[ours] if one in names] for ours in wanted}
    return {ours: theirs[0] for ours, theirs in found.items() if theirs}


def has_repeated_claims(table: pd.DataFrame) -> bool:
    """Whether rows in a table of claims repeat an id, or the text of a claim of the same response
    and document. Each row is then a judgement of a claim."""
    if "claim_id" in table:
        return bool(table["claim_id"].duplicated().any())
    keys = [name for name in ("dataset", "system", "response_id", "doc", "claim") if name in table]
    return bool(table[keys].astype("str").duplicated().any())


def find_misspelt_columns(columns: Collection[str]) -> dict[str, str]:
    """Columns whose names look like misspelt names of wanted columns that the table lacks."""
    wanted = [ours for ours in WANTED_CLAIM_COLUMNS if ours not in columns]
    found = {
        name: get_close_matches(normalise_words(name), wanted, n=1, cutoff=0.75) for name in columns
    }
    return {name: near[0] for name, near in found.items() if near and name not in CLAIM_COLUMNS}
