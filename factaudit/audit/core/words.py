"""How figures and names read, from the column that holds them: the same in tables, figures, findings and sentences."""

from __future__ import annotations

from typing import Any

from factaudit.audit.core.declare import Column
from factaudit.audit.core.rows import Row

#: Stands for an undefined figure; its reason is given beside it.
UNDEFINED = "–"


def heading(column: Column) -> str:
    """With its unit: ``TPR (%)``, ``bias (points)``, ``Kendall τ-b``."""
    unit = {"percent": " (%)", "points": " (points)"}.get(column.unit, "")
    return column.heading + unit


def figure(column: Column, value: Any) -> str:
    """As it is printed: percent and points with one decimal, counts with thousands separators, null as "–"."""
    if value is None:
        return UNDEFINED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return column.values.get(value, value)
    if column.unit == "percent":
        text = f"{100 * value:.1f}"
    elif column.unit == "points":
        text = f"{100 * value:{'+' if column.signed else ''}.1f}"
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


def span(column: Column, low: Any, high: Any) -> str:
    """A range: ``71.2–80.4``, or with "to" where a sign would read like the dash."""
    first, last = figure(column, low), figure(column, high)
    return f"{first} to {last}" if "−" in first + last or "+" in first + last else f"{first}–{last}"


def with_interval(column: Column, row: Row, key: str) -> str:
    """``78.3 % (75.1–81.2)``: a share with its interval, where it has one."""
    text = f"{figure(column, row[key])} %"
    if row.get(f"{key}_low") is not None and row.get(f"{key}_high") is not None:
        text += f" ({span(column, row[f'{key}_low'], row[f'{key}_high'])})"
    return text


def percent(rate: float) -> str:
    """``91.0 %``."""
    return f"{100 * rate:.1f} %"


def points(difference: float, sign: bool = False) -> str:
    """A measured difference of shares in percentage points, with one decimal."""
    return figure(Column("", "points", signed=sign), difference)


def round_points(limit: float) -> str:
    """A limit in percentage points, without a needless decimal."""
    return f"{100 * limit:.1f}".removesuffix(".0")
