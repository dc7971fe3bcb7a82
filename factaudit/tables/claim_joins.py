"""Tables joined by their claims: whose verdicts are whose, and what a table of verdicts alone says of the claims."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables import CLAIM_COLUMNS
from factaudit.tables.claim_keys import join_claim_key_cells, list_claim_key_columns, match_ids_by_number
from factaudit.tables.label_cells import check_cells
from factaudit.tables.schema import GRADE_COLUMN


def find_claim_ids(
    name: str, rows: pd.DataFrame, source_columns: Mapping[str, str], claims: pd.DataFrame | None
) -> tuple[pd.Series, str | None]:
    """For each row of a table the id of the claim, in another table, that it is about; and a note on it.

    By ids where one of them is a claim's; else by the claim's text, where the table has one. Raises `InputError`.
    """
    has_texts = claims is not None and "claim" in source_columns
    if "claim_id" in source_columns:
        ids = rows[source_columns["claim_id"]]
        found = None if claims is None else match_ids_by_number(ids, claims["claim_id"])
        if found is not None:
            return found, f"ids  {ids.name}: {ids.iloc[0]} is the claim {found.iloc[0]!r}, by its number"
        if claims is None or not has_texts or ids.astype("str").isin(claims["claim_id"]).any():
            return ids, None
    if claims is None or not has_texts:
        expected = "expected a column for 'claim_id', or for 'claim' with the claim's text"
        message = f"cannot tell which claims the verdicts are of: {expected} (--id COLUMN)"
        raise InputError(name, [Problem(message)])
    keys = [key for key in list_claim_key_columns(source_columns) if claims[key].notna().any()]
    known = join_claim_key_cells(claims, keys)
    if known.duplicated().any():
        message = f"several claims have the same {', '.join(keys)}: expected a column for 'claim_id'"
        raise InputError(name, [Problem(message)])
    wanted = join_claim_key_cells(rows, [source_columns[key] for key in keys])
    ids = wanted.map(pd.Series(claims["claim_id"].to_numpy(), index=known))
    check_cells(name, rows[source_columns["claim"]], ids.isna(), "expected the text of a claim")
    return ids, None


def join_claim_columns(
    rows: pd.DataFrame,
    columns: Mapping[str, str],
    other_name: str,
    others: pd.DataFrame,
    other_columns: Mapping[str, str],
    keys: tuple[pd.Series, pd.Series],
) -> tuple[pd.DataFrame, dict[str, str]]:
    """A table of claims with what a table of their verdicts alone says of them (label, system, data set).

    columns: column of ours -> the table's, of either table. keys: what `list_common_claim_keys` found. Raises
    `InputError` where the rows of one claim differ.
    """
    joined = dict(columns)
    for ours in (*CLAIM_COLUMNS, GRADE_COLUMN):
        theirs = other_columns.get(ours)
        if theirs is None or ours in columns or theirs in rows:
            continue
        said = pd.Series(others[theirs].to_numpy(), index=keys[1]).dropna()
        said = said[~pd.MultiIndex.from_arrays([said.index, said.astype("str")]).duplicated()]
        if said.index.has_duplicates:
            claim = said.index[said.index.duplicated()][0]
            message = f"expected one {ours} for a claim in all of its rows, found several for {claim!r}"
            raise InputError(other_name, [Problem(message, column=theirs)])
        if len(said):
            rows = rows.assign(**{theirs: keys[0].map(said).to_numpy()})
            joined[ours] = theirs
    return rows, joined


def check_labels_agree(labels: pd.Series, others: pd.Series, name: str, other_name: str) -> None:
    """Raise `InputError` where two tables label a claim differently, or the second alone labels it.

    Both hold 1, 0 or null, by what tells claims apart.
    """
    said = others.dropna()
    own = labels[~labels.index.duplicated()].reindex(said.index)
    differ = (own != said).fillna(True)
    if differ.any():
        message = f"labels {int(differ.sum()):,} of {len(said):,} rows differently from {labels.name!r} of {name}"
        ways = f"expected one column of labels (--ignore {labels.name}, or --ignore {others.name})"
        raise InputError(other_name, [Problem(f"{message}: {ways}", column=str(others.name))])


def list_common_claim_keys(
    rows: pd.DataFrame, columns: Mapping[str, str], others: pd.DataFrame, other_columns: Mapping[str, str]
) -> tuple[pd.Series, pd.Series] | None:
    """For the rows of two tables what tells their claims apart: ids, else texts; None where nothing does in both."""
    common = columns.keys() & other_columns.keys()
    if "claim_id" in common:
        own, theirs = (table[of["claim_id"]].astype("str") for table, of in ((rows, columns), (others, other_columns)))
        found = match_ids_by_number(theirs, own)
        if found is not None or theirs.isin(own).any():
            return own, theirs if found is None else found
    names = [key for key in list_claim_key_columns(columns) if key in common]
    if "claim" not in names:
        return None
    own = join_claim_key_cells(rows, [columns[key] for key in names])
    return (
        None if own.duplicated().any() else (own, join_claim_key_cells(others, [other_columns[key] for key in names]))
    )
