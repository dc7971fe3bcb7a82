"""What the columns of a table hold, whatever they are called."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import has_no_value, parse_judgement_numbers
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    COLUMN_NAMES,
    INTERMEDIATE_WORDS,
    has_name_of_error,
    normalise_label_word,
    normalise_vocabulary_words,
    parse_label_word,
)

#: More different values than this are no words of a scale.
_MAX_SCALE_WORDS = 12
#: The rows that are looked at for the kind of a column.
MAX_PROFILED_ROWS = 20_000
#: So many of a column's words are shown.
_MAX_SHOWN_WORDS = 6
#: Fewer rows than this count up by chance.
_MIN_COUNTED_ROWS = 4
#: Names of columns of texts and names, in which "NA" and "None" are what they say.
_NAMES_OF_TEXTS = {
    name
    for role in ("claim_id", "claim", "doc", "dataset", "system", "response_id", "doc_id", "topic", "entity")
    for name in COLUMN_NAMES[role]
}
_DATE_PATTERN = re.compile(
    r"(\d{4}-\d\d?-\d\d?|\d{4}/\d\d?/\d\d?|\d\d?[./-]\d\d?[./-](\d{4}|\d\d))([T ,].*)?"
    r"|\d\d?:\d\d(:\d\d(\.\d+)?)?( ?[AP]M)?"
)
#: Seconds and milliseconds since 1970, from 2001 to 2065.
_EPOCHS = ((1e9, 3e9), (1e12, 3e12))


@dataclass(frozen=True)
class ColumnProfile:
    """What one column holds.

    ``kind``: ``empty``, ``binary`` (words or 0 / 1), ``share`` (numbers in [0, 1]), ``grade`` (whole numbers on a
    scale), ``number``, ``list``, ``name`` (few different texts), ``text``, or ``id`` (all different).
    ``is_whole``: whole numbers. ``counts_up``: such as grow by the same step from row to row. ``has_questions``: most
    texts are. ``unreadable``: of a column of numbers, the few cells that are none ("timeout"). ``blanks``: the
    words that were taken for no value ("n/a").
    """

    name: str
    kind: str
    n_different: int
    n_missing: int
    words: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    mean_length: float = 0.0
    is_time: bool = False
    counts_up: bool = False
    has_questions: bool = False
    n_present: int = 0
    is_whole: bool = False
    unreadable: tuple[str, ...] = ()
    blanks: tuple[str, ...] = ()

    def __str__(self) -> str:
        held = ""
        if self.kind in ("binary", "name"):
            held = ", ".join(map(repr, self.words[:_MAX_SHOWN_WORDS])) or f"{self.n_different:,} different"
            held += f" and {len(self.words) - _MAX_SHOWN_WORDS} more" * (len(self.words) > _MAX_SHOWN_WORDS)
        elif self.low is not None:
            held = f"{self.low:g} to {self.high:g}"
        elif self.kind in ("text", "id"):
            held = f"about {self.mean_length:.0f} characters"
        kind = "words" if self.kind == "binary" and self.n_different > 2 else self.kind
        missing = f"{self.n_missing:,} without a value" if self.n_missing else ""
        missing += f" ({', '.join(map(repr, self.blanks))})" if self.blanks else ""
        return f"{self.name:<24} {kind:<7} {', '.join(filter(None, (held, missing)))}"

    @property
    def is_judgement(self) -> bool:
        """Whether it could hold what somebody or something said of claims, by its values."""
        return self.kind in ("binary", "share", "grade", "number") and not self.is_time and not self.counts_up

    @property
    def has_both_verdicts(self) -> bool:
        """Whether some words say supported, others not."""
        return self.kind == "binary" and {0, 1} <= {parse_label_word(word) for word in self.words}

    @property
    def has_opposite_verdicts(self) -> bool:
        """Whether words such as "grounded" and "hallucinated" say what is judged, whatever the column is called; no
        yes and no."""
        return self.has_both_verdicts and any(normalise_label_word(word) not in BARE_WORDS for word in self.words)

    @property
    def is_fine_score(self) -> bool:
        """Whether it holds numbers between the values that people, or the mean of some, give."""
        return self.kind in ("share", "number") and not self.words_are_coarse

    @property
    def words_are_coarse(self) -> bool:
        """Whether each number is a multiple of a half, a third, a quarter or a fifth."""
        if not self.words:
            return False
        numbers = parse_judgement_numbers(pd.Series(self.words, dtype="object")).to_numpy()
        parts = np.outer((2, 3, 4, 5), numbers)
        return bool((np.abs(parts - np.round(parts)) < 0.006 * np.array([[2], [3], [4], [5]])).any(axis=0).all())


def profile_column_for_mapping(column_name: str, values: pd.Series) -> ColumnProfile:
    """What a column holds, from at most 20,000 of its rows."""
    values = values.iloc[:MAX_PROFILED_ROWS]
    reverse = has_name_of_error(column_name)  # an error of the kind "none" is no error
    is_named = normalise_vocabulary_words(column_name) in _NAMES_OF_TEXTS
    said = [
        one for one in values.tolist() if not is_missing_value(one) and not (isinstance(one, str) and not one.strip())
    ]
    present = [
        one
        for one in said
        if is_named or not has_no_value(one) or (reverse and isinstance(one, str) and one.strip().lower() == "none")
    ]
    n_missing = len(values) - len(present)
    blanks = () if len(said) == len(present) else _list_blanks(said, present)
    if not present:
        return ColumnProfile(column_name, "empty", 0, n_missing, blanks=blanks)
    if any(isinstance(value, list | tuple | np.ndarray | dict) for value in present):
        return ColumnProfile(column_name, "list", len(present), n_missing)
    texts = [str(value).strip() for value in present]
    different = list(dict.fromkeys(texts))
    length = float(np.mean([len(text) for text in texts]))
    words = tuple(different) if len(different) <= _MAX_SCALE_WORDS else ()
    shared = {
        "n_different": len(different),
        "n_missing": n_missing,
        "words": words,
        "mean_length": length,
        "n_present": len(present),
        "blanks": blanks,
    }
    if _can_words_be_read_as_labels(words, reverse):
        return ColumnProfile(column_name, "binary", **shared)  # type: ignore[arg-type]
    numbers = parse_judgement_numbers(pd.Series(present, dtype="object")).to_numpy(dtype=np.float64)
    unreadable = tuple(text for text, number in zip(texts, numbers, strict=True) if not np.isfinite(number))
    if (
        0 < len(unreadable) <= MAX_UNREADABLE_SHARE * len(present)
        and not np.isin(numbers[np.isfinite(numbers)], (0, 1)).all()
    ):
        texts = [text for text, number in zip(texts, numbers, strict=True) if np.isfinite(number)]
        different, numbers = list(dict.fromkeys(texts)), numbers[np.isfinite(numbers)]
        words = tuple(different) if len(different) <= _MAX_SCALE_WORDS else ()
        shared |= {"n_different": len(different), "words": words, "unreadable": unreadable}
    if np.isfinite(numbers).all():
        low, high = float(numbers.min()), float(numbers.max())
        whole = bool((numbers == np.round(numbers)).all())
        steps = np.diff(numbers)
        counts_up = whole and len(steps) >= _MIN_COUNTED_ROWS - 1 and bool((steps == steps[0]).all()) and steps[0] != 0
        is_id = whole and len(different) == len(texts) and len(texts) > _MAX_SCALE_WORDS
        is_id = is_id and not (low >= 0 and high <= 100 and high - low + 1 > len(texts))  # scores in percent
        kind = "id" if is_id else "grade" if whole and len(different) <= _MAX_SCALE_WORDS else "number"
        kind = "share" if kind != "id" and low >= 0 and high <= 1 else kind
        is_time = any(a <= low and high < b for a, b in _EPOCHS)
        shared |= {"low": low, "high": high, "is_whole": whole}
        return ColumnProfile(column_name, kind, counts_up=counts_up, is_time=is_time, **shared)  # type: ignore[arg-type]
    asked = sum(text.endswith(("?", "？")) for text in texts) > 0.6 * len(texts)
    is_time = all(_DATE_PATTERN.fullmatch(text) for text in texts)
    if (
        len(different) == len(texts)
        and length < 40
        and not any(" " in text for text in texts[:50])
        and not _are_sentences(texts)
    ):
        return ColumnProfile(column_name, "id", is_time=is_time, **shared)  # type: ignore[arg-type]
    kind = "name" if len(different) <= max(2, len(texts) // 3) and length < 60 else "text"
    return ColumnProfile(column_name, kind, is_time=is_time, has_questions=asked, **shared)  # type: ignore[arg-type]


def _list_blanks(said: list[Any], present: list[Any]) -> tuple[str, ...]:
    """The first words among cells that are no values."""
    known = {str(one) for one in present if not isinstance(one, list | dict)}
    return tuple(dict.fromkeys(one for one in said if isinstance(one, str) and one not in known))[:3]


def _can_words_be_read_as_labels(words: tuple[str, ...], reverse: bool) -> bool:
    known = {normalise_label_word(word) for word in words} - ({"none"} if reverse else set())
    said = {word for word in known if parse_label_word(word) is not None}
    return bool(said) and known <= said | INTERMEDIATE_WORDS


def _are_sentences(texts: list[str]) -> bool:
    """Whether texts without blanks are sentences: those of Chinese and Japanese are."""
    return any(text.endswith(("。", "！", "？")) for text in texts)
