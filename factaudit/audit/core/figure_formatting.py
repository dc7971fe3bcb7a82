"""How is a figure written? In the same way in tables, figures, findings and sentences, by the
column that holds it."""

from __future__ import annotations

import math
from typing import Any

from factaudit.audit.core.audit_declaration import Column

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
