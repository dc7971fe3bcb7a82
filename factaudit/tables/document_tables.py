"""Documents in a table of their own, put beside the claims that name them by an id; claims that several tables hold."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.claim_keys import join_claim_key_cells, name_table_stem
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import COLUMN_NAMES, has_vocabulary_word_in_column_name, normalise_vocabulary_words

NamedTable = tuple[str, pd.DataFrame]
#: Columns that no table of documents has.
_CLAIM_COLUMNS = {"claim", "claim id", "claim text"}


def join_document_tables(
    tables: Sequence[NamedTable], own_kinds: Sequence[str | None] = ()
) -> tuple[list[NamedTable], list[str]]:
    """Tables in which each claim has its document, and a line for each table of documents that was put beside them.

    own_kinds: of each table what `classify_standard_tables` says; one of our kinds is no table of documents.
    A table of documents has an id of documents (`doc_id`), each once, and one column of texts that is called a document
    or is the only text; another table has that id and no document. So is a table of questions with their documents, by
    any id, where the claims stand in the other. Raises `InputError` where an id has no document.
    """
    own = {name for (name, _), kind in zip(tables, own_kinds, strict=False) if kind is not None}
    documents = [
        (name, rows, found)
        for name, rows in tables
        if name not in own and (found := _find_document_table_columns(rows)) is not None
    ]
    others = [(name, rows) for name, rows in tables if all(name != one for one, _, _ in documents)]
    lines: list[str] = []
    for name, rows, (id_column, text_column) in documents:
        wanting = [
            place
            for place, (_, other) in enumerate(others)
            if id_column in other and not _has_column_of("doc", other)
            if normalise_vocabulary_words(id_column) in COLUMN_NAMES["doc_id"] or _has_column_of("claim", other)
        ]
        if not wanting:
            others.append((name, rows))
            continue
        texts = pd.Series(rows[text_column].to_numpy(), index=rows[id_column].map(str))
        for place in wanting:
            owner, other = others[place]
            doc = other[id_column].map(str).map(texts)
            missing = doc.isna() & ~other[id_column].map(is_missing_value)
            if missing.any():
                row = int(missing.to_numpy().argmax())
                message = f"no document of {name} has the id {other[id_column].iloc[row]!r}"
                raise InputError(owner, [Problem(f"{message} ({int(missing.sum()):,} rows)", row + 1, id_column)])
            others[place] = (owner, other.assign(doc=doc))
        lines.append(f"documents  {name}: {text_column}, by {id_column}")
    return others, lines


def split_tables_of_same_claims(tables: Sequence[NamedTable]) -> tuple[list[NamedTable], list[str]]:
    """Tables of the same claims (by id or text), each with what one person or one judge said of them, as a table of the
    claims and one of the ids and what differs for each, or as one wide table; others as they are. And a line."""
    names = [*map(str, tables[0][1].columns)]
    ids = [one for one in names if normalise_vocabulary_words(one) in COLUMN_NAMES["claim_id"]]
    listed = ", ".join(name for name, _ in tables)
    line = f"claims  the same in {listed}: read once"
    if any([*map(str, rows.columns)] != names for _, rows in tables):
        joined = _join_tables_by_claim_text(tables)
        return (list(tables), []) if joined is None else ([joined], [line])
    if not ids and (keyed_tables := _number_same_claims(tables)) is not None:
        tables, ids, names = keyed_tables, ["claim_id"], ["claim_id", *names]
    if not ids:
        return list(tables), []
    keyed = [rows.astype("str").set_index(ids[0], drop=False).sort_index() for _, rows in tables]
    if any(one.index.has_duplicates or not one.index.equals(keyed[0].index) for one in keyed):
        return list(tables), []
    differing = [name for name in names if any(not one[name].equals(keyed[0][name]) for one in keyed)]
    shared = [name for name in names if name not in differing]
    if not differing or not any(normalise_vocabulary_words(one) in COLUMN_NAMES["claim"] for one in shared):
        return list(tables), []
    has_judge = any(has_vocabulary_word_in_column_name("judges", name_table_stem(name)) for name, _ in tables)
    if has_judge and any(normalise_vocabulary_words(one) in COLUMN_NAMES["label"] for one in differing):
        said = [  # in each file what its author did, who may be a person or a judge
            rows.set_index(rows[ids[0]].astype("str"))[differing].add_prefix(f"{name_table_stem(name)}_")
            for name, rows in tables
        ]
        claims = tables[0][1].set_index(tables[0][1][ids[0]].astype("str").to_numpy())[shared]
        return [(tables[0][0], pd.concat([claims, *said], axis=1).reset_index(drop=True))], [line]
    parts = [(name, rows[[ids[0], *differing]]) for name, rows in tables]
    return [(f"{tables[0][0]} (claims)", tables[0][1][shared]), *parts], [line]


def _list_claim_texts(tables: Sequence[NamedTable]) -> list[pd.Series] | None:
    """Of each table the text that tells its claims apart: by the columns for claim, document and system that all have;
    None where no column for the claim is common, or a table has a claim twice."""
    common = [str(one) for one in tables[0][1].columns if all(one in rows for _, rows in tables)]
    keys = [
        next(one for one in common if normalise_vocabulary_words(one) in COLUMN_NAMES[role])
        for role in ("claim", "doc", "system")
        if any(normalise_vocabulary_words(one) in COLUMN_NAMES[role] for one in common)
    ]
    if not keys or normalise_vocabulary_words(keys[0]) not in COLUMN_NAMES["claim"]:
        return None
    texts = [join_claim_key_cells(rows, keys) for _, rows in tables]
    return None if any(one.duplicated().any() for one in texts) else texts


def _number_same_claims(tables: Sequence[NamedTable]) -> list[NamedTable] | None:
    """Tables without ids that hold the same claims, with the number of each claim as its id; None where they do not."""
    texts = _list_claim_texts(tables)
    if texts is None or any({*one} != {*texts[0]} for one in texts):
        return None
    numbers = {text: str(number) for number, text in enumerate(texts[0], start=1)}
    return [
        (name, rows.assign(claim_id=[numbers[text] for text in own])[["claim_id", *rows.columns]])
        for (name, rows), own in zip(tables, texts, strict=True)
    ]


def _join_tables_by_claim_text(tables: Sequence[NamedTable]) -> NamedTable | None:
    """Tables with other columns each on the claims of the longest as one wide table; None where one has other claims.

    A column that two have and that says another thing in them is called by the second's file, too.
    """
    texts = _list_claim_texts(tables)
    if texts is None or any(
        normalise_vocabulary_words(str(one)) in COLUMN_NAMES["claim_id"] for _, rows in tables for one in rows.columns
    ):
        return None
    order = sorted(range(len(tables)), key=lambda at: -len(texts[at]))
    name, base = tables[order[0]]
    known = {*texts[order[0]]}
    if any(not {*one} <= known for one in texts):
        return None
    joined = base.set_axis(pd.Index(texts[order[0]]), axis=0)
    for at in order[1:]:
        rows = tables[at][1].set_axis(pd.Index(texts[at]), axis=0)
        for column in rows.columns:
            if column not in joined:
                joined = joined.assign(**{column: rows[column].reindex(joined.index)})
            elif not rows[column].astype("str").equals(joined.loc[rows.index, column].astype("str")):
                own = f"{name_table_stem(tables[at][0])}_{column}"
                joined = joined.assign(**{own: rows[column].reindex(joined.index)})
    return name, joined.reset_index(drop=True)


def _find_document_table_columns(rows: pd.DataFrame) -> tuple[str, str] | None:
    """The columns of ids and of texts of a table that holds documents and nothing that is said of them."""
    names = {normalise_vocabulary_words(name): str(name) for name in reversed(rows.columns)}
    ids = [names[one] for one in COLUMN_NAMES["doc_id"] if one in names]
    if not ids and not _has_column_of("claim", rows):
        ids = [names[one] for one in COLUMN_NAMES["claim_id"] if one in names]
    if len(rows) == 0 or not ids or rows[ids[0]].map(is_missing_value).any() or rows[ids[0]].duplicated().any():
        return None
    others = [str(name) for name in rows.columns if name != ids[0]]
    texts = [name for name in others if rows[name].map(lambda cell: isinstance(cell, str) and len(cell) > 20).all()]
    called = [names[one] for one in COLUMN_NAMES["doc"] if one in names and names[one] in texts]
    if _CLAIM_COLUMNS & names.keys():
        return None  # claims, each of a document of its own
    judged = {one for role in ("label", "score", "prediction", "evaluator") for one in COLUMN_NAMES[role]}
    if judged & names.keys():
        return (ids[0], called[0]) if called and len(others) == 1 else None
    found = texts if len(texts) == 1 else called
    return (ids[0], found[0]) if found else None


def _has_column_of(role: str, rows: pd.DataFrame) -> bool:
    return any(normalise_vocabulary_words(str(name)) in COLUMN_NAMES[role] for name in rows.columns)
