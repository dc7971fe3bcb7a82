"""What a file says of its codes beside its rows: in comments, a footer, another sheet, or a map of a JSON document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from factaudit.tables.cell_values import is_number_text, parse_judgement_numbers
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.judgement_columns import TableReading, classify_judgement_column_by_name
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import find_direction_of_label_codes, normalise_vocabulary_words, parse_stated_codes

#: In the ``attrs`` of a table: what its file says of codes (``label: 1 = hallucinated, 0 = faithful``).
CODE_BOOK = "code_book"
#: Names under which JSON documents hold what their codes mean.
_MAP_NAMES = {
    "label map",
    "labels map",
    "label mapping",
    "label names",
    "label classes",
    "id2label",
    "label2id",
    "classes",
    "class names",
    "codebook",
    "code book",
    "legend",
}
#: A sheet with more codes is no code book.
_MAX_CODES = 12
#: A sheet that explains columns has so many rows, with its header.
_MIN_EXPLAINED = 3
#: What stands for nothing among codes.
_MISSING_CODES = (-9.0, -99.0, 9.0, 99.0, 999.0)


def is_code_book_text(text: str) -> bool:
    """Whether a line says what codes mean, and some of it is understood."""
    return any(value is not None for value in parse_stated_codes(text).values())


def find_code_book_of_document(document: Any) -> str | None:
    """What a JSON document says of codes beside its rows, as a line; None where it says nothing."""
    if not isinstance(document, Mapping):
        return None
    for part in [document, *(one for one in document.values() if isinstance(one, Mapping))]:
        for name, value in part.items():
            if normalise_vocabulary_words(name) in _MAP_NAMES:
                pairs = list(enumerate(value)) if isinstance(value, list) else [*value.items()] if value else []
                pairs = [(a, b) if is_number_text(str(a)) else (b, a) for a, b in pairs]
                line = ", ".join(f"{code} = {word}" for code, word in pairs)
                return line if is_code_book_text(line) else None
    return None


def find_code_book_of_sheet(rows: Sequence[Sequence[Any]]) -> str | None:
    """What a sheet says of codes, as a line; None where it is no list of codes and words."""
    pairs = [[cell for cell in row if cell is not None] for row in rows]
    if all(len(row) < 2 for row in pairs):  # a text, not a table
        return next((text for row in pairs for text in map(str, row) if is_code_book_text(text)), None)
    found = [
        next(((code, word) for code, word in pairwise(row) if is_number_text(str(code))), None) for row in pairs
    ]  # beside them, the name of a column
    codes = dict(one for one in found if one is not None)
    is_clear = len(codes) == len({one for one in found if one is not None})
    if not codes or not is_clear or found.count(None) > 2 or len(codes) > _MAX_CODES:
        return None
    line = ", ".join(f"{normalise_vocabulary_words(code)} = {word}" for code, word in codes.items())
    return line if is_code_book_text(line) else None


def find_code_book_of_dictionary(rows: Sequence[Sequence[Any]], column_names: Collection[str]) -> str | None:
    """What a sheet that explains columns of others says of codes, as a line, empty where it says nothing; None where it
    explains no columns, or says the opposite of two.

    >>> rows = [["variable", "meaning"], ["human", "1 = hallucinated, 0 = faithful"], ["doc", "the article"]]
    >>> find_code_book_of_dictionary(rows, ["doc", "claim", "human"])
    'human: 1 = hallucinated, 0 = faithful'
    """
    cells = [[str(cell).strip() for cell in row if cell is not None] for row in rows]
    cells = [row for row in cells if row]
    if len(cells) < _MIN_EXPLAINED or not all(row[0] in column_names for row in cells[1:]):
        return None
    said = {row[0]: text for row in cells for text in row[1:] if is_code_book_text(text)}
    directions = {find_direction_of_label_codes(parse_stated_codes(text)) for text in said.values()}
    if len(directions) != 1:
        return None if directions else ""
    name, text = next(iter(said.items()))
    return f"{name}: {text}" if len(said) == 1 else text


def spell_out_codes(table: pd.DataFrame, chosen: ColumnMapping) -> pd.DataFrame:
    """The table with words for codes other than 0 and 1, where a column's name, or the file of a column of judgements,
    says what they mean: ``Support (1 = supported, 2 = not supported, 9 = missing)``. What says more is a scale; what
    the user says of numbers counts."""
    table = _spell_out_choices(table, chosen)
    book, found = parse_stated_codes(table.attrs.get(CODE_BOOK, "")), dict[str, pd.Series]()
    if chosen.label_threshold is not None or any(map(is_number_text, chosen.labels)):
        return table
    for name in table.columns[~table.columns.duplicated(keep=False)]:
        own = parse_stated_codes(str(name))
        codes = own or book
        meanings = [value for value in codes.values() if value is not None]
        if sorted(meanings) != [0, 1] or {*codes} <= {0.0, 1.0} or name in chosen.scales:
            continue
        column = profile_column_for_mapping(str(name), table[name])
        numbers = parse_judgement_numbers(table[name])
        known = {code for code, value in codes.items() if value is not None} | {*_MISSING_CODES}
        is_of_codes = column.low is not None and not column.unreadable and {*numbers.dropna()} <= known
        if is_of_codes and (own or classify_judgement_column_by_name(column) in ("people", "judge", "label", "plain")):
            words = {1: "supported", 0: "not supported", None: None}
            cells = [None if pd.isna(code) else words[codes.get(code)] for code in numbers]
            found[name] = pd.Series(cells, index=table.index, dtype="object")
    return table.assign(**found)


def _spell_out_choices(table: pd.DataFrame, chosen: ColumnMapping) -> pd.DataFrame:
    """The table with the text of the option that a person chose as ``accept.label``, in place of Prodigy's ``accept``,
    which has its id; none where the task was skipped. Another table as it is."""
    named = [*chosen.columns.values(), *chosen.wide, *chosen.unread]
    if not {"options", "accept"} <= {*table.columns} or "options" in named or "accept" in named:
        return table
    labels = []
    for options, accepted, answer in zip(
        table["options"], table["accept"], table.get("answer", ["accept"] * len(table)), strict=True
    ):
        texts = {str(one.get("id")): one.get("text") for one in options or () if isinstance(one, Mapping)}
        ids = accepted if isinstance(accepted, list) else [] if is_missing_value(accepted) else [accepted]
        if len(ids) > 1 or any(texts.get(str(one)) is None for one in ids):
            return table
        labels.append(texts[str(ids[0])] if ids and answer == "accept" else None)
    return table.drop(columns=["options", "accept"]).assign(
        **{"accept.label": pd.Series(labels, index=table.index, dtype="object")}
    )


def apply_code_book_directions(
    readings: Sequence[TableReading], chosen: ColumnMapping
) -> tuple[ColumnMapping, list[OpenQuestion]]:
    """What the user chose, with the directions of the columns of codes that files say; and questions where a file does
    not say of which columns, or in words that are not known."""
    scales, questions = dict(chosen.scales), []
    for one in readings:
        text = one.rows.attrs.get(CODE_BOOK)
        if text is None:
            continue
        codes = parse_stated_codes(text)
        direction = find_direction_of_label_codes(codes)
        labels = [*([one.roles["label"]] if "label" in one.roles else []), *(one.profiles[name] for name in one.people)]
        judges = [one.profiles[name] for pair in one.evaluators.values() for name in pair.values()]
        judges += [one.roles[kind] for kind in ("score", "prediction") if kind in one.roles]
        labels, judges = ([c for c in ones if _has_codes(c, codes)] for ones in (labels, judges))
        heading = f" {normalise_vocabulary_words(text)} "
        named = [c for c in (*labels, *judges) if f" {normalise_vocabulary_words(c.name)}" in heading.split("=")[0]]
        ways = [named] if named else [labels, [*labels, *judges]] if judges and labels else [labels or judges]
        if not ways[0] or any(column.name in chosen.scales for column in ways[-1]):
            continue
        ends = [(1.0, 0.0)] if direction == -1 else [(0.0, 1.0)] if direction == 1 else [(1.0, 0.0), (0.0, 1.0)]
        found = [
            {column.name: end for column in way} for way in (ways if direction != 1 else ways[-1:]) for end in ends
        ]
        if len(found) == 1:
            scales |= found[0]
            continue
        questions.append(
            OpenQuestion(
                f"the file says {text!r}: of which columns, or of what, is not clear",
                [
                    PossibleColumnReading(
                        f"{', '.join(way)}: the higher code is {'' if low < high else 'not '}attributable",
                        {"scales": {name: list(end) for name, end in way.items()}},
                    )
                    for way in found
                    for low, high in [next(iter(way.values()))]
                ],
            )
        )
    return chosen.model_copy(update={"scales": scales}), questions


def _has_codes(column: ColumnProfile, codes: Mapping[float, int | None]) -> bool:
    words = [normalise_vocabulary_words(word) for word in column.words]
    known = {0.0, 1.0, *codes}
    return column.kind == "binary" and bool(words) and all(is_number_text(w) and float(w) in known for w in words)
