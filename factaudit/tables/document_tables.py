"""Tables of one call put beside each other: documents in a table of their own, and claims that several tables hold."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.claim_keys import join_key_cells, name_table_stem
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import COLUMN_NAMES, has_vocabulary_word_in_column_name, normalise_vocabulary_words

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


def split_tables_of_same_claims(tables: Sequence[NamedTable]) -> tuple[list[NamedTable], list[str]]:
    """Tables that hold the same claims (by id or text), or some of them, each with what one person or one judge said,
    as a table of the claims, and one for each with their ids and what it alone says; others as they are. And a line.
    """
    largest = max(range(len(tables)), key=lambda at: len(tables[at][1]))
    keys = _list_claim_keys(tables)
    if keys is None or any(one.duplicated().any() or not one.isin(keys[largest]).all() for one in keys):
        return list(tables), []
    base = tables[largest][1].set_axis(pd.Index(keys[largest]), axis=0)
    keyed = [rows.set_axis(pd.Index(key), axis=0) for (_, rows), key in zip(tables, keys, strict=True)]
    differing = {
        str(name)
        for rows in keyed
        for name in rows
        if name in base and not base.loc[rows.index, str(name)].astype("str").equals(rows[name].astype("str"))
    }
    own = [[str(name) for name in rows if name in differing or name not in base] for rows in keyed]
    if not any(own[:largest] + own[largest + 1 :]) or not _list_columns("claim", base.drop(columns=[*differing])):
        return list(tables), []
    # A label in a file that is called after a model is what the model said.
    has_judge = any(has_vocabulary_word_in_column_name("judges", name_table_stem(name)) for name, _ in tables)
    is_judged = has_judge and bool(_list_columns("label", base[[*differing]]))
    ids = _list_columns("claim_id", base)
    id_name = ids[0] if ids else "claim_id"
    base = base.assign(**{id_name: base[id_name] if ids else range(1, len(base) + 1)})
    parts = []
    for (name, _), rows, names in zip(tables, keyed, own, strict=True):
        if names:
            stem = f"{name_table_stem(name)}_" if is_judged else ""
            part = rows[names].rename(columns={one: f"{stem}{one}" for one in names if one in differing})
            part.insert(0, id_name, base.loc[rows.index, id_name])
            parts.append((name, part.reset_index(drop=True)))
    claims = base.drop(columns=[*differing]).reset_index(drop=True)
    listed = ", ".join(name for name, _ in tables)
    return [(f"{tables[0][0]} (claims)", claims), *parts], [f"claims  the same in {listed}: read once"]


def _list_claim_keys(tables: Sequence[NamedTable]) -> list[pd.Series] | None:
    """Of each table what tells its claims apart: the ids, or the columns for claim, document and system that all have;
    None where the claims do not stand in all."""
    common = [str(one) for one in tables[0][1].columns if all(one in rows for _, rows in tables)]
    named = {normalise_vocabulary_words(one): one for one in reversed(common)}
    claims, ids = ([named[one] for one in COLUMN_NAMES[role] if one in named] for role in ("claim", "claim_id"))
    has_ids = any(_list_columns("claim_id", rows) for _, rows in tables)
    if not claims or (has_ids and not ids):
        return None
    if ids:
        return [rows[ids[0]].astype("str") for _, rows in tables]
    others = [named[one] for role in ("doc", "system") for one in COLUMN_NAMES[role] if one in named]
    return [join_key_cells(rows, [claims[0], *others]) for _, rows in tables]
