"""What is said of a table in which nothing is a claim, a label or a judgement."""

from __future__ import annotations

import pandas as pd

from factaudit.tables.column_profiles import profile_column_for_mapping
from factaudit.tables.vocabulary import COLUMN_NAMES, normalise_vocabulary_words

#: Fewer columns of judgements are no claims that people judged in rows of theirs.
_MIN_CLAIM_COLUMNS = 4


def describe_unmapped_table(table: pd.DataFrame) -> str:
    """What the table lacks, and what to do: to say which column is which, or to turn the table round."""
    names = [str(name) for name in table.columns]
    if table.columns.empty:
        return "nothing in it is mapped: it has no column"
    first = {normalise_vocabulary_words(cell) for cell in table.iloc[:, 0]}
    if first & {*COLUMN_NAMES["claim"]} and first & {*COLUMN_NAMES["doc"], *COLUMN_NAMES["label"]}:
        said = f"the names of columns stand below each other in {names[0]!r}: turn the table round"
        return f"{said} (pandas: pd.read_csv(FILE, index_col=0).T)"
    profiles = [profile_column_for_mapping(name, table.iloc[:, at]) for at, name in enumerate(names)]
    judged = [one.name for one in profiles if one.kind in ("binary", "grade") and not one.counts_up]
    if len(judged) >= _MIN_CLAIM_COLUMNS and 2 * len(judged) >= len(names):
        listed = ", ".join(map(repr, judged[:3]))
        return (
            f"claims seem to stand as columns ({listed} ...), and a person in each row: write a row for each claim and"
            " person, with the columns claim, annotator and label (pandas: frame.melt(id_vars=[PERSON],"
            " var_name='claim', value_name='label')), and each claim's text in place of its column's name"
        )
    expected = "a column for 'claim', for 'score' or 'prediction', or evaluators"
    return f"nothing in it is mapped: expected {expected}; it has {', '.join(names[:8])}: say --claim COLUMN"
