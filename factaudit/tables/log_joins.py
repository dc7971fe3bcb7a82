"""Tables beside a tool's log: what they say of the log's claims belongs to these, by id or by text, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.annotations import label_claims_by_annotations, list_annotator_judgements
from factaudit.tables.claim_keys import match_ids_by_number
from factaudit.tables.opened_tables import OpenedTable
from factaudit.tables.schema import is_text_placeholder
from factaudit.tables.table_loading import LoadedTables
from factaudit.tables.vocabulary import COLUMN_NAMES, normalise_vocabulary_words


def map_ids_of_log(tables: Sequence[OpenedTable], log_claims: pd.DataFrame) -> dict[str, Any] | None:
    """The mapping of a table that has a log's ids under a name of the log's own (DeepEval's ``name``); None where all
    have them under a name of ids."""
    ids = {*log_claims["response_id"].dropna().astype("str")}
    for rows in (one.rows for one in tables if ids):
        names = {normalise_vocabulary_words(name): str(name) for name in rows.columns}
        if not names.keys() & {*COLUMN_NAMES["claim_id"], *COLUMN_NAMES["claim"]}:
            found = [name for name in names.values() if {*rows[name].astype("str")} <= ids and rows[name].is_unique]
            if len(found) == 1:
                return {"columns": {"claim_id": found[0]}}
    return None


def join_tables_to_log_claims(
    log_claims: pd.DataFrame, loaded: LoadedTables, source: str, report_line: Callable[[str], None]
) -> tuple[pd.DataFrame, LoadedTables]:
    """The claims of logs with the labels that tables say of them, and what else the tables hold, of these claims.

    Ids may be the log's own (``response_id``). Claims of tables whose texts are all the log's are these claims, unless
    both have labels. Raises `InputError` for ids that no claim has, and where texts do not tell which claim is meant.
    """
    others, known = loaded.claims, log_claims["claim_id"]
    by_id = None if others is None else _match_claims_of_log(others, log_claims, source)
    if others is not None and by_id is None:
        known = pd.concat([known, others["claim_id"]])
    elif others is not None and by_id is not None:
        labels = pd.Series(others["label"].to_numpy(), index=by_id.to_numpy()).astype("Int8")
        log_claims = log_claims.assign(label=log_claims["label"].fillna(known.map(labels)))
        report_line(f"joined  {source}: {others['claim_id'].iloc[0]} is the claim {by_id.iloc[0]!r}")
    said = {name: table for name in ("verdicts", "annotations") if (table := getattr(loaded, name)) is not None}
    for name, table in said.items():
        ids = table["claim_id"] if by_id is None else table["claim_id"].map(by_id)
        if not ids.isin(known).all():
            found = _match_ids_of_log(ids, log_claims)
            if found is None:
                strange = next(iter(ids[~ids.isin(known)]))
                expected = f"expected the ids of the log's claims ({known.iloc[0]}, ...), one claim each"
                raise InputError(source, [Problem(f"{expected}, found {strange!r}", column="claim_id")])
            report_line(f"joined  {source}: {ids.iloc[0]} is the claim {found.iloc[0]!r}")
            ids = found
        said[name] = table.assign(claim_id=ids.to_numpy())
    if "annotations" in said:
        rule = label_claims_by_annotations("majority", list_annotator_judgements(said["annotations"]))
        majority = log_claims["claim_id"].map(rule).astype("Int8")
        log_claims = log_claims.assign(label=log_claims["label"].fillna(majority))
    return log_claims, replace(loaded, claims=others if by_id is None else None, **said)


def _match_claims_of_log(others: pd.DataFrame, log_claims: pd.DataFrame, source: str) -> pd.Series | None:
    """By the ids of other claims those of the log's that they are: by their texts, without texts by their ids. None
    where they are others, or both have labels. Raises `InputError` where texts are those of several claims."""
    has_labels = bool(log_claims["label"].notna().any() and others["label"].notna().any())
    ids = others["claim_id"]
    if has_labels:
        return None
    if others["claim"].map(is_text_placeholder).all():
        found = _match_ids_of_log(ids, log_claims)
        return None if found is None else pd.Series(found.to_numpy(), index=ids)
    if not others["claim"].isin(log_claims["claim"]).all():
        return None
    by_text = pd.Series(log_claims["claim_id"].to_numpy(), index=log_claims["claim"])
    if not by_text.index.is_unique or not others["claim"].is_unique:
        message = "the texts are those of the log, where several claims have the same: name the log's ids"
        raise InputError(source, [Problem(f"{message} in a column claim_id ({by_text.iloc[0]}, ...)")])
    return pd.Series(others["claim"].map(by_text).to_numpy(), index=ids)


def _match_ids_of_log(ids: pd.Series, log_claims: pd.DataFrame) -> pd.Series | None:
    """The claims that ids are of: the log's own ids, each of one claim; None where some are of none."""
    own = log_claims.dropna(subset="response_id")
    if own["response_id"].is_unique:
        found = ids.astype("str").map(pd.Series(own["claim_id"].to_numpy(), index=own["response_id"].astype("str")))
        if found.notna().all():
            return found
    return match_ids_by_number(ids, log_claims["claim_id"])
