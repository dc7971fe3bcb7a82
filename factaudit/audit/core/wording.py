"""How do sentences cite figures? ``{bias:points}`` in a template becomes the row's bias as every
table writes it.

>>> row = {"system": "a", "bias": -0.05, "rate": 0.123, "n": 1200}
>>> off = "{system} is off by {bias:points} points ({bias:signed}): "
>>> fill(off + "{rate:percent} of {n:number claim}.", row)
'a is off by 5.0 points (−5.0): 12.3 % of 1,200 claims.'

Where so much is unscored that a figure says little, its bounds stand in its place.

>>> fill("It misses {rate:percent}.", row | {"rate_min": 0.1, "rate_max": 0.3}, True)
'It misses 10.0 to 30.0 %.'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

from factaudit.audit.core.figure_formatting import (
    format_percent,
    format_percentage_points,
    format_whole_percent,
)
from factaudit.text.display_text import format_count

#: Of fewer things (errors, responses) a count stands beside a share.
ENOUGH_FOR_SHARES = 30


def _write_rough_points(difference: float) -> str:
    """In whole points, where that does not hide what is there."""
    if 0 < difference < 0.015:
        return format_percentage_points(difference)
    return format_whole_percent(difference)


#: How values read; what follows the number, and stands once behind a range, is apart.
_READINGS: dict[str, tuple[Callable[[Any], str], str]] = {
    "percent": (lambda share: format_percent(share).removesuffix(" %"), " %"),
    "whole": (format_whole_percent, " %"),
    "points": (lambda difference: format_percentage_points(abs(difference)), ""),
    "signed": (lambda difference: format_percentage_points(difference, with_sign=True), ""),
    "limit": (lambda limit: f"{100 * limit:.1f}".removesuffix(".0"), ""),
    "rough": (_write_rough_points, " points"),
    "hundredths": (lambda number: f"{number:.2f}".replace("-", "−"), ""),
    "threshold": (lambda number: f"{number:.6g}", ""),
    "": (lambda value: f"{value:,}" if isinstance(value, int) else str(value), ""),
}


def fill(template: str, fields: Mapping[str, Any], is_open: bool = False) -> str:
    """The template with the values of its fields; is_open: a figure with bounds is told as their
    range.

    A field reads ``percent`` (12.3 %), ``whole`` (12 %), ``points`` (without its sign), ``signed``,
    ``rough`` (23 points), ``limit`` (in points or percent, without needless decimals),
    ``hundredths``, ``threshold``, ``number NOUN`` (3 claims; an irregular plural stands behind a
    bar), or as it is.
    """
    text = ""
    for literal, name, reading, _ in Formatter().parse(template):
        text += literal
        if name is not None:
            text += _read(fields, name, reading or "", is_open)
    return text


def _read(fields: Mapping[str, Any], name: str, reading: str, is_open: bool) -> str:
    kind, _, noun = reading.partition(" ")
    if kind == "number":
        one, _, many = noun.partition("|")
        return format_count(fields[name], one, many or None)
    write, ending = _READINGS[kind]
    ends = [fields.get(f"{name}_{end}") for end in ("min", "max")]
    values = ends if is_open and None not in ends else [fields[name]]
    return " to ".join(dict.fromkeys(map(write, values))) + ending


def list_cited_fields(template: str, fields: Mapping[str, Any]) -> list[str]:
    """The fields that a template cites, with the bounds that may stand in their places."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    return [key for name in names for key in (name, f"{name}_min", f"{name}_max") if key in fields]


def join_names(names: Iterable[str]) -> str:
    """``a``; ``a and b``; ``a, b, c and 3 more``.

    >>> join_names("ab"), join_names("abcde")
    ('a and b', 'a, b, c and 2 more')
    """
    names = list(names)
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
