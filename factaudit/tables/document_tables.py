"""Documents in a table of their own, joined to the claims that name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import COLUMN_NAMES, normalise_vocabulary_words

NamedTable = tuple[str, pd.DataFrame]
#: Shorter cells are no documents.
_DOCUMENT_LENGTH = 20


def join_document_tables(
    tables: Sequence[NamedTable], own_kinds: Sequence[str | None]
) -> tuple[list[NamedTable], list[str | None], list[str]]:
    """Tables in which each claim has its document, of what kind each is, and a line for each table
    of documents.

    A table of documents has an id of each and their texts, and no claims, labels or judgements;
    another table has that id and no document. Raises `InputError` where an id has no document.
    """
    left: list[list[Any]] = [
        [name, rows, kind] for (name, rows), kind in zip(tables, own_kinds, strict=True)
    ]
    lines: list[str] = []
    for source in list(left):
        name, documents, kind = source
        key, text = _find_document_columns(documents) if kind is None else ("", "")
        is_id = normalise_vocabulary_words(key) in COLUMN_NAMES["doc_id"]
        owners = [
            one
            for one in left
            if one is not source and key in one[1] and not _list_columns("doc", one[1])
        ]
        owners = [one for one in owners if is_id or _list_columns("claim", one[1])]
        for owner in owners:
            ids = owner[1][key]
            doc = ids.map(str).map(
                pd.Series(documents[text].to_numpy(), index=documents[key].map(str))
            )
            missing = doc.isna() & ~ids.map(is_missing_value)
            if missing.any():
                row = int(missing.to_numpy().argmax())
                message = (
                    f"no document of {name} has the id {ids.iloc[row]!r} ({int(missing.sum()):,}"
                    " rows)"
                )
                raise InputError(owner[0], [Problem(message, row + 1, key)])
            owner[1] = owner[1].assign(doc=doc)
        if owners:
            left.remove(source)
            lines.append(f"documents  {name}: {text}, by {key}")
    return [(name, rows) for name, rows, _ in left], [kind for _, _, kind in left], lines


def _find_document_columns(rows: pd.DataFrame) -> tuple[str, str]:
    """The columns of ids and of texts of a table that holds only documents; blank for any other
    table."""
    claims = _list_columns("claim", rows)  # a mere "text" or "content" may be the document's
    ids = _list_columns("doc_id", rows) or ([] if claims else _list_columns("claim_id", rows))
    judged = [
        one
        for role in ("label", "score", "prediction", "evaluator")
        for one in _list_columns(role, rows)
    ]
    is_of_claims = judged or any("claim" in normalise_vocabulary_words(one) for one in claims)
    if (
        is_of_claims
        or not ids
        or rows[ids[0]].map(is_missing_value).any()
        or rows[ids[0]].duplicated().any()
    ):
        return "", ""
    texts = [
        name
        for name in map(str, rows.columns)
        if name != ids[0] and rows[name].map(_is_long_text).all()
    ]
    found = (
        texts if len(texts) == 1 else [one for one in _list_columns("doc", rows) if one in texts]
    )
    return (ids[0], found[0]) if found else ("", "")


def _is_long_text(cell: object) -> bool:
    return isinstance(cell, str) and len(cell) > _DOCUMENT_LENGTH


def _list_columns(role: str, rows: pd.DataFrame) -> list[str]:
    """The columns that have a name of a role, the likelier first."""
    names = {normalise_vocabulary_words(str(name)): str(name) for name in reversed(rows.columns)}
    return [names[one] for one in COLUMN_NAMES[role] if one in names]
