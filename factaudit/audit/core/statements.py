"""How are sentences made? A template, the values that stand in it, and the rows that each value rests on.

A statement is a string, so that whoever lays out text need not know of it; a test reads its values again from their
rows. The condition under which it may be said is the ``if`` around it. A field of a template names a row (or several),
a key, and how the value reads: ``{worst.bias:points}``. A field without a reading is a name, or words and other
statements, which stand as they are.

>>> row = {"system": "a", "bias": -0.05, "rate": 0.123, "rate_low": 0.1, "rate_high": 0.15, "n": 1200}
>>> make_statement("{row.system} is off by {row.bias:points} points in {rows:count rate}.", row=row, rows=[row, row])
'a is off by 5.0 points in 2 rates.'
>>> make_statement("{row.rate:percent}; {row.rate:interval}; {row.bias:signed} of {row.n:number claim}", row=row)
'12.3 %; 12.3 % (10.0–15.0); −5.0 of 1,200 claims'
>>> make_statement("within {limit:limit} points: {row.rate:rest}", row=row, limit=0.05)
'within 5 points: 88 of 100'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any

from factaudit.audit.core.audit_declaration import SHARED_COLUMNS, Column
from factaudit.audit.core.figure_formatting import (
    format_audit_figure,
    format_limit_in_points,
    format_percent,
    format_percent_with_interval,
    format_percentage_points,
    format_whole_percent,
)
from factaudit.audit.core.result_rows import Row
from factaudit.text.display_text import format_count

#: What a field is read from: a row, several rows (or names, to count them), or a limit.
Source = Row | Sequence[Any] | float


@dataclass(frozen=True)
class StatementValue:
    """What stands for a field of a template: its text, and the rows (or names), the key and the reading it comes from.

    number: of a limit, which is in no row.
    """

    field: str
    text: str
    rows: tuple[Any, ...]
    key: str
    reading: str
    number: float | None = None


class Statement(str):
    """A sentence, a part of one or a paragraph, with its template, the values cited and the words that are in it.

    ``parts``: the statements that a paragraph joins; of one statement itself.
    """

    template: str
    cited: tuple[StatementValue, ...]
    words: tuple[str, ...]
    parts: tuple[Statement, ...]

    def __deepcopy__(self, memo: object) -> Statement:
        return self


def make_statement(template: str, /, **sources: Source | str) -> Statement:
    """The template with its values in their places."""
    text, whole = "", ""
    cited: list[StatementValue] = []
    words: list[str] = []
    for literal, field, spec, _ in Formatter().parse(template):
        text, whole = text + literal, whole + literal
        if field is None:
            continue
        name, _, key = field.partition(".")
        source = sources[name]
        if isinstance(source, Statement):
            text, whole = text + source, whole + source.template
            cited += source.cited
            words += source.words
        elif isinstance(source, str):
            text, whole = text + source, f"{whole}{{{field}}}"
            words.append(source)
        else:
            value = _cite_row_value_in_statement(field, source, key, spec or "name")
            text, whole = text + value.text, f"{whole}{{{field}:{spec}}}"
            cited.append(value)
    return _build_checked_statement(text, whole, cited, words)


def join_statements(statements: Iterable[Statement], separator: str = " ", end: str = "") -> Statement:
    """A paragraph of statements, or a sentence of clauses."""
    some = tuple(statements)
    text, whole = (separator.join(each) + end * bool(some) for each in (some, [one.template for one in some]))
    return _build_checked_statement(
        text,
        whole,
        [value for one in some for value in one.cited],
        [word for one in some for word in one.words],
        [part for one in some for part in one.parts],
    )


def _build_checked_statement(
    text: str, template: str, cited: Sequence[StatementValue], words: Sequence[str], parts: Sequence[Statement] = ()
) -> Statement:
    made = Statement(text)
    made.template, made.cited, made.words = template, tuple(cited), tuple(words)
    made.parts = tuple(parts) or (made,)
    return made


def _cite_row_value_in_statement(field: str, source: Source, key: str, spec: str) -> StatementValue:
    reading, _, noun = spec.partition(" ")
    if isinstance(source, int | float):
        return StatementValue(field, _READINGS[reading]([source]), (), key, reading, source)
    rows = (source,) if isinstance(source, dict) else tuple(source)
    one, _, many = noun.partition("|")
    if reading == "count":
        number: Any = len(rows)
    elif reading == "number":
        number = sum(row[key] for row in rows)
    elif reading == "interval":
        (row,) = rows
        return StatementValue(field, format_percent_with_interval(row, key), rows, key, reading)
    elif reading == "name":
        (row,) = rows
        return StatementValue(
            field, format_audit_figure(SHARED_COLUMNS.get(key, _PLAIN_COLUMN), row[key]), rows, key, reading
        )
    else:
        return StatementValue(field, _READINGS[reading]([row[key] for row in rows]), rows, key, reading)
    text = format_count(number, one, many or None) if noun else f"{number:,}"
    return StatementValue(field, text, rows, key, reading)


_PLAIN_COLUMN = Column("")


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


#: How values read; those of several rows as their mean.
_READINGS: dict[str, Callable[[Sequence[float]], str]] = {
    "percent": lambda values: format_percent(_average(values)),
    "points": lambda values: format_percentage_points(_average([abs(value) for value in values])),
    "signed": lambda values: format_percentage_points(_average(values), with_sign=True),
    "limit": lambda values: format_limit_in_points(_average(values)),
    "rest": lambda values: f"{format_whole_percent(1 - _average(values))} of 100",
    "errors": lambda values: f"{sum(values):,}",
    "threshold": lambda values: f"{_average(values):.6g}",
    "decimal": lambda values: f"{_average(values):.1f}",
    "hundredths": lambda values: f"{_average(values):.2f}".replace("-", "−"),
}
