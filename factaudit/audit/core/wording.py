"""How is a figure written, in tables, figures and sentences alike? By the column that holds it.

In a template of a sentence ``{bias:points}`` becomes the row's bias as every table writes it.

>>> row = {"system": "a", "bias": -0.05, "rate": 0.123, "n": 1200}
>>> off = "{system} is off by {bias:points} points ({bias:signed}): "
>>> fill(off + "{rate:percent} of {n:number claim}.", row)
'a is off by 5.0 points (−5.0): 12.3 % of 1,200 claims.'

Where so much is unscored that a figure says little, its bounds stand in its place.

>>> fill("It misses {rate:percent}.", row | {"rate_min": 0.1, "rate_max": 0.3}, True)
'It misses 10.0 to 30.0 %.'
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any

from factaudit.audit.core.audit_declaration import Column
from factaudit.text.display_text import format_count

#: What is printed for an undefined figure; its reason is given beside it.
UNDEFINED_MARK = "–"
#: The column for a share that is in no audit's table.
PERCENT_COLUMN = Column("", "percent")


def format_heading_with_unit(column: Column) -> str:
    """The heading with its unit: ``TPR (%)``, ``bias (points)``, ``Kendall τ-b``."""
    return column.heading + {"percent": " (%)", "points": " (points)"}.get(column.unit, "")


def format_audit_figure(column: Column, value: Any) -> str:
    """A figure as it is printed: percent and points with one decimal, counts with thousands
    separators, null as "–".

    A share that is very close to 0 or 1 gets enough decimals to show that it is not 0 or 1.

    >>> [format_audit_figure(PERCENT_COLUMN, share) for share in (0.0004, 0, 0.12, 0.9996, 1)]
    ['0.04', '0.0', '12.0', '99.96', '100.0']
    >>> format_audit_figure(PERCENT_COLUMN, True), format_audit_figure(PERCENT_COLUMN, None)
    ('yes', '–')
    """
    if value is None:
        return UNDEFINED_MARK
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return column.values.get(value, value)
    if column.unit in ("percent", "points"):
        sign = "+" if column.unit == "points" and column.signed else ""
        text = f"{100 * value:{sign}.{_count_decimals(value)}f}"
    elif isinstance(value, int):
        text = f"{value:,}"
    elif column.unit == "p":
        text = "<0.001" if value < 0.001 else f"{value:.3f}"
    else:
        text = f"{value:.4g}" if column.digits is None else f"{value:.{column.digits}f}"
    # A rounded zero has no sign.
    if not text.strip("+-0.,"):
        text = text.lstrip("+-")
    return text.replace("-", "−")


def _count_decimals(value: float) -> int:
    rest = 100 * min(abs(value), abs(1 - abs(value)))
    return 1 if rest >= 0.05 or rest < 0.0005 else 2 if rest >= 0.005 else 3


def format_figure_range(column: Column, low: Any, high: Any) -> str:
    """A range: ``71.2–80.4``, or with "to" if a minus sign would look like the dash."""
    first, last = format_audit_figure(column, low), format_audit_figure(column, high)
    return f"{first} to {last}" if "−" in first + last or "+" in first + last else f"{first}–{last}"


def format_percent(share: float) -> str:
    """``91.0 %``."""
    return f"{format_audit_figure(PERCENT_COLUMN, share)} %"


def format_percentage_points(difference: float, with_sign: bool = False) -> str:
    """A measured difference of shares in percentage points, with one decimal."""
    return format_audit_figure(Column("", "points", signed=with_sign), difference)


def format_whole_percent(share: float) -> str:
    """A percentage without decimals. A half is rounded up, as readers would round a printed 70.5
    (Python's formats round it to an even number).

    >>> [format_whole_percent(share) for share in (0.705, 0.715, 0.7049)]
    ['71', '72', '70']
    """
    return str(math.floor(round(100 * share, 6) + 0.5))


# ---- sentences

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
