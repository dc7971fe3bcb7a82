"""How do sentences cite figures? ``{bias:points}`` in a template becomes the row's bias as every table writes it.

>>> row = {"system": "a", "bias": -0.05, "rate": 0.123, "n": 1200}
>>> fill("{system} is off by {bias:points} points ({bias:signed}): {rate:percent} of {n:number claim}.", row)
'a is off by 5.0 points (−5.0): 12.3 % of 1,200 claims.'

Where so much is unscored that a figure says little, its bounds stand in its place.

>>> fill("It misses {rate:percent}.", row | {"rate_min": 0.1, "rate_max": 0.3}, True)
'It misses 10.0 to 30.0 %.'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from string import Formatter
from typing import Any

from factaudit.audit.core.figure_formatting import (
    format_limit_in_points,
    format_percent,
    format_percentage_points,
    format_whole_percent,
)
from factaudit.text.display_text import format_count

#: Of fewer things (errors, responses) a count is said, not a share.
MIN_SHARE_COUNT = 30

#: How values read; what follows the number, and stands once behind a range, is apart.
_READINGS: dict[str, tuple[Callable[[Any], str], str]] = {
    "percent": (lambda share: format_percent(share).removesuffix(" %"), " %"),
    "whole": (format_whole_percent, " %"),
    "points": (lambda difference: format_percentage_points(abs(difference)), ""),
    "signed": (lambda difference: format_percentage_points(difference, with_sign=True), ""),
    "limit": (format_limit_in_points, ""),
    # Whole points, where that does not hide what is there.
    "rough": (
        lambda share: (format_percentage_points if 0 < share < 0.015 else format_whole_percent)(share),
        " points",
    ),
    "decimal": (lambda number: f"{number:.1f}", ""),
    "hundredths": (lambda number: f"{number:.2f}".replace("-", "−"), ""),
    "threshold": (lambda number: f"{number:.6g}", ""),
    "": (lambda value: f"{value:,}" if isinstance(value, int) else str(value), ""),
}


def fill(template: str, fields: Mapping[str, Any], is_open: bool = False) -> str:
    """The template with the values of its fields; is_open: a figure with bounds is told as their range.

    A field reads ``percent`` (12.3 %), ``whole`` (12 %), ``points`` (without its sign), ``signed``, ``rough`` (23
    points), ``limit`` (in points or percent, without needless decimals), ``decimal``, ``hundredths``, ``threshold``,
    ``number NOUN`` (3 claims; an irregular plural stands behind a bar), or as it is.
    """
    text = ""
    for literal, name, reading, _ in Formatter().parse(template):
        text += literal + (_read(fields, name, reading or "", is_open) if name is not None else "")
    return text


def _read(fields: Mapping[str, Any], name: str, reading: str, is_open: bool) -> str:
    kind, _, noun = reading.partition(" ")
    if kind == "number":
        one, _, many = noun.partition("|")
        return format_count(fields[name], one, many or None) if noun else f"{fields[name]:,}"
    write, ending = _READINGS[kind]
    ends = [fields.get(f"{name}_{end}") for end in ("min", "max")]
    values = ends if is_open and None not in ends else [fields[name]]
    return " to ".join(dict.fromkeys(map(write, values))) + ending


def list_cited_fields(template: str, fields: Mapping[str, Any]) -> list[str]:
    """The fields that a template cites, with the bounds that may stand in their places."""
    names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    return [key for name in names for key in (name, f"{name}_min", f"{name}_max") if key in fields]


def format_share_of(some: int, every: int, noun: str) -> str:
    """The template of how many others are like the one that is named; "" where there is but one."""
    if every < 2:
        return ""
    preposition = "on" if noun == "data set" else "for"
    if some == every:
        return f"This is so {preposition} {'both' if every == 2 else 'all {n_compared}'} {noun}s."
    return f"This is so {preposition} {{n_beyond}} of {{n_compared}} {noun}s."


def join_names(names: Sequence[str] | Iterable[str], last: str = "and") -> str:
    """``a``; ``a and b``; ``a, b, c and 3 more``.

    >>> join_names("ab"), join_names("abcde")
    ('a and b', 'a, b, c and 2 more')
    """
    names = list(names)
    if len(names) > 4:
        return f"{', '.join(names[:3])} and {len(names) - 3} more"
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
