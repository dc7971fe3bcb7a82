"""Documents in a table of their own, joined to the claims that name them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import COLUMN_NAMES, normalise_vocabulary_words

NamedTable = tuple[str, pd.DataFrame]


def join_document_tables(
    tables: Sequence[NamedTable], own_kinds: Sequence[str | None]
) -> tuple[list[NamedTable], list[str | None], list[str]]:
    """Tables in which each claim has its document, of what kind each is, and a line for each table of documents.

    A table of documents has an id of each and their texts, and no claims, labels or judgements; another table has that
    id and no document. Raises `InputError` where an id has no document.
    """
    left = [(name, rows, kind) for (name, rows), kind in zip(tables, own_kinds, strict=True)]
    lines: list[str] = []
    for name, rows, kind in list(left):
        names = _find_document_columns(rows) if kind is None else None
        if names is None:
            continue
        key, text = names
        texts = pd.Series(rows[text].to_numpy(), index=rows[key].map(str))
        for at, (owner, other, own) in enumerate(left):
            is_named = normalise_vocabulary_words(key) in COLUMN_NAMES["doc_id"] or bool(_list_columns("claim", other))
            if key not in other or _list_columns("doc", other) or owner == name or not is_named:
                continue
            doc = other[key].map(str).map(texts)
            missing = doc.isna() & ~other[key].map(is_missing_value)
            if missing.any():
                row = int(missing.to_numpy().argmax())
                message = f"no document of {name} has the id {other[key].iloc[row]!r}"
                raise InputError(owner, [Problem(f"{message} ({int(missing.sum()):,} rows)", row + 1, key)])
            left[at] = (owner, other.assign(doc=doc), own)
            lines += [] if any(name in line for line in lines) else [f"documents  {name}: {text}, by {key}"]
        if any(line.startswith(f"documents  {name}:") for line in lines):
            left = [one for one in left if one[0] != name]
    return [(name, rows) for name, rows, _ in left], [kind for _, _, kind in left], lines


def _find_document_columns(rows: pd.DataFrame) -> tuple[str, str] | None:
    """The columns of ids and of texts of a table that holds documents and nothing that is said of them."""
    claims = [one for one in _list_columns("claim", rows) if "claim" in normalise_vocabulary_words(one)]
    ids = _list_columns("doc_id", rows) or ([] if _list_columns("claim", rows) else _list_columns("claim_id", rows))
    if claims or not ids or rows[ids[0]].map(is_missing_value).any() or rows[ids[0]].duplicated().any():
        return None
    others = [str(name) for name in rows.columns if name != ids[0]]
    texts = [name for name in others if rows[name].map(lambda cell: isinstance(cell, str) and len(cell) > 20).all()]
    called = [one for one in _list_columns("doc", rows) if one in texts]
    if any(_list_columns(role, rows) for role in ("label", "score", "prediction", "evaluator")):
        return (ids[0], called[0]) if called and len(others) == 1 else None
    found = texts if len(texts) == 1 else called
    return (ids[0], found[0]) if found else None


def _list_columns(role: str, rows: pd.DataFrame) -> list[str]:
    """The columns that have a name of a role, the likelier first."""
    known = COLUMN_NAMES[role]
    names = {normalise_vocabulary_words(str(name)): str(name) for name in reversed(rows.columns)}
    return [names[one] for one in known if one in names]
