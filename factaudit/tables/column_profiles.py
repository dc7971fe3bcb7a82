"""Describes the values of a column, whatever its name. The profile validates the role that a name
gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import has_no_value, parse_judgement_numbers
from factaudit.tables.column_kinds import classify_column_name
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    INTERMEDIATE_WORDS,
    has_name_of_error,
    has_no_blanks,
    normalise_label_word,
    normalise_words,
    parse_label_word,
)

#: A column with more distinct values than this holds no words of a scale.
MAX_WORDS = 12
#: The number of rows by which a column is described.
MAX_PROFILED_ROWS = 20_000
#: The number of a column's words that are shown.
_MAX_SHOWN_WORDS = 6
#: In fewer rows than this, numbers may count up by chance.
_MIN_COUNTED_ROWS = 4
#: Roles of columns with texts and names, in which "NA" and "None" are values.
_TEXT_ROLES = (
    "claim_id",
    "claim",
    "doc",
    "dataset",
    "system",
    "response_id",
    "doc_id",
    "topic",
    "entity",
)
_NAMES_OF_TEXTS = {name for role in _TEXT_ROLES for name in COLUMN_NAMES[role]}
_DATE_PATTERN = re.compile(
    r"(\d{4}-\d\d?-\d\d?|\d{4}/\d\d?/\d\d?|\d\d?[./-]\d\d?[./-](\d{4}|\d\d))([T ,].*)?"
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[AP]M)?"
)
#: Seconds and milliseconds since 1970, from 2001 to 2065.
_EPOCHS = ((1e9, 3e9), (1e12, 3e12))


@dataclass(frozen=True)
class ColumnProfile:
    """The values of one column.

    kind: ``empty``; ``binary`` (words of labels, or 0 and 1); ``share`` (numbers from 0 to 1);
    ``grade`` (few whole numbers); ``number``; ``id`` (whole numbers, all different); ``list``; or
    ``text``. words: the distinct values if they are few. counts_up: numbers that grow by the same
    step from row to row.
    """

    name: str
    kind: str
    n_different: int = 0
    n_present: int = 0
    n_missing: int = 0
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    mean_length: float = 0.0
    is_time: bool = False
    counts_up: bool = False
    is_whole: bool = False
    has_questions: bool = False
    has_sentences: bool = False

    @cached_property
    def calls(self) -> str:
        """What the name of the column says (`classify_column_name`); or ``time`` or ``counter``, by
        its values."""
        if self.is_time or self.counts_up:
            return "time" if self.is_time else "counter"
        return classify_column_name(self.name, self.kind == "binary")

    def describe_values(self) -> str:
        """The values in words: the words, the range of the numbers, or the length of the texts."""
        missing = f", {self.n_missing:,} blank" if self.n_missing and self.kind != "empty" else ""
        if self.has_few_words and (self.low is None or len(self.words) <= 3):
            more = f" and {len(self.words) - _MAX_SHOWN_WORDS} more" * (
                len(self.words) > _MAX_SHOWN_WORDS
            )
            return ", ".join(self.words[:_MAX_SHOWN_WORDS]) + more + missing
        if self.low is not None and self.kind != "id":
            return f"{self.low:g} to {self.high:g}{missing}"
        if self.kind in ("empty", "list"):
            return {"empty": "nothing", "list": f"lists{missing}"}[self.kind]
        return f"{self.n_different:,} texts of about {self.mean_length:.0f} characters{missing}"

    @property
    def is_unique(self) -> bool:
        return self.n_different == self.n_present > 1

    @property
    def has_few_words(self) -> bool:
        """Whether its values are few and short enough to be words of labels."""
        return len(self.words) > 0 and self.mean_length <= 40

    @cached_property
    def meanings(self) -> set[int | None]:
        """What its words mean as labels: 1, 0, or None for words that are no labels."""
        return {parse_label_word(word) for word in self.words}

    @property
    def has_both_verdicts(self) -> bool:
        """Whether some words mean supported and others not."""
        return self.kind == "binary" and {0, 1} <= self.meanings

    @property
    def can_hold_labels(self) -> bool:
        """Whether a column that is named like labels may hold labels."""
        is_judged = self.kind in ("binary", "share", "grade", "number") or (
            self.kind == "text" and self.has_few_words
        )
        return is_judged and not self.is_time and not self.counts_up

    @property
    def looks_judged(self) -> bool:
        """Whether its values could be judgements of claims: words of labels, or varying numbers."""
        is_grade = self.kind == "grade" and (self.low or 0) >= -1 and (self.high or 0) <= 10
        has_words_of_labels = self.kind == "text" and bool(self.meanings - {None})
        is_judged = self.kind in ("binary", "share") or is_grade or has_words_of_labels
        return is_judged and self.n_different > 1 and self.can_hold_labels


def profile_column(column_name: str, values: pd.Series) -> ColumnProfile:
    """Describe a column by its first 20,000 rows."""
    cells = values.iloc[:MAX_PROFILED_ROWS].tolist()
    is_error = has_name_of_error(column_name)  # in a column of errors, "none" is a value
    is_blank = has_no_value
    if normalise_words(column_name) in _NAMES_OF_TEXTS:
        is_blank = _is_empty
    present = [
        one
        for one in cells
        if not is_blank(one)
        or (is_error and isinstance(one, str) and one.strip().lower() == "none")
    ]
    held: dict[str, Any] = {"n_present": len(present), "n_missing": len(cells) - len(present)}
    if not present:
        return ColumnProfile(column_name, "empty", **held)
    if any(isinstance(value, list | tuple | np.ndarray | dict) for value in present):
        return ColumnProfile(column_name, "list", len(present), **held)
    texts = [str(value).strip() for value in present]
    numbers = parse_judgement_numbers(pd.Series(present, dtype="object")).to_numpy(dtype=np.float64)
    is_number = np.isfinite(numbers)
    n_words = int((~is_number).sum())
    if (
        0 < n_words <= MAX_UNREADABLE_SHARE * len(texts)
        and not np.isin(numbers[is_number], (0, 1)).all()
    ):
        # A few cells in a column of numbers may hold words such as "timeout".
        texts = [text for text, known in zip(texts, is_number, strict=True) if known]
        numbers, n_words = numbers[is_number], 0
    different = list(dict.fromkeys(texts))
    words = tuple(different) if len(different) <= MAX_WORDS else ()
    held |= {
        "n_different": len(different),
        "words": words,
        "mean_length": float(np.mean([*map(len, texts)])),
    }
    if _are_words_of_labels(words, is_error):
        return ColumnProfile(column_name, "binary", **held)
    if n_words:
        held["is_time"] = all(_DATE_PATTERN.fullmatch(text) for text in texts)
        held["has_questions"] = sum(text.endswith(("?", "？")) for text in texts) > 0.6 * len(texts)
        held["has_sentences"] = held["mean_length"] >= 15 or any(
            " " in one or has_no_blanks(one) for one in different
        )
        return ColumnProfile(column_name, "text", **held)
    low, high = float(numbers.min()), float(numbers.max())
    is_whole = bool((numbers == np.round(numbers)).all())
    steps = np.diff(numbers)
    held["counts_up"] = (
        is_whole
        and len(numbers) >= _MIN_COUNTED_ROWS
        and bool((steps == steps[0]).all() and steps[0])
    )
    held["is_time"] = any(start <= low and high < end for start, end in _EPOCHS)
    may_be_percent = low >= 0 and high <= 100 and high - low + 1 > len(texts)
    kind = "grade" if is_whole and words else "number"
    if is_whole and not words and len(different) == len(texts) and not may_be_percent:
        kind = "id"
    elif low >= 0 and high <= 1:
        kind = "share"
    return ColumnProfile(column_name, kind, low=low, high=high, is_whole=is_whole, **held)


def _is_empty(cell: Any) -> bool:
    return is_missing_value(cell) or (isinstance(cell, str) and not cell.strip())


def _are_words_of_labels(words: tuple[str, ...], is_error: bool) -> bool:
    known = {normalise_label_word(word) for word in words} - ({"none"} if is_error else set())
    said = {word for word in known if parse_label_word(word) is not None}
    return bool(said) and known <= said | INTERMEDIATE_WORDS


def find_judged_columns(
    columns: Mapping[str, Sequence[object]], kinds: Sequence[str] = ("people", "judge", "both")
) -> dict[str, ColumnProfile]:
    """The columns, by name, whose names say that they hold judgements (single values or lists).

    A column whose name says nothing is among them if its words are opposite verdicts.
    """
    found = {}
    for name, values in columns.items():
        cells = [one for cell in values for one in (cell if isinstance(cell, list) else [cell])]
        column = profile_column(name, pd.Series(cells, dtype="object"))
        called = normalise_words(name)
        is_name = (
            called in (*COLUMN_NAMES["annotator"], *COLUMN_NAMES["evaluator"])
            and not column.has_both_verdicts
        )
        # People may write letters, such as C and I.
        is_lettered = column.calls == "people" and column.has_few_words and column.n_different == 2
        is_judgement = column.kind in ("binary", "share", "grade", "number") or is_lettered
        if called == "status" or is_name or not is_judgement or column.n_different < 2:
            continue  # says whether a call succeeded, or who judged
        if column.calls in kinds or (
            column.calls == "unknown" and column.has_both_verdicts and column.low is None
        ):
            found[name] = column
    return found
