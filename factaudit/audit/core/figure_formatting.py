"""How figures and names read, from the column that holds them: the same in tables, figures, findings and sentences."""

from __future__ import annotations

from typing import Any

from factaudit.audit.core.audit_declaration import Column

#: Stands for an undefined figure; its reason is given beside it.
UNDEFINED_MARK = "–"


def format_heading_with_unit(column: Column) -> str:
    """With its unit: ``TPR (%)``, ``bias (points)``, ``Kendall τ-b``."""
    unit = {"percent": " (%)", "points": " (points)"}.get(column.unit, "")
    return column.heading + unit


def format_audit_figure(column: Column, value: Any) -> str:
    """As it is printed: percent and points with one decimal, counts with thousands separators, null as "–"."""
    if value is None:
        return UNDEFINED_MARK
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


def format_figure_range(column: Column, low: Any, high: Any) -> str:
    """A range: ``71.2–80.4``, or with "to" where a sign would read like the dash."""
    first, last = format_audit_figure(column, low), format_audit_figure(column, high)
    return f"{first} to {last}" if "−" in first + last or "+" in first + last else f"{first}–{last}"


def format_percent(share: float) -> str:
    """``91.0 %``."""
    return f"{100 * share:.1f} %"


def format_percentage_points(difference: float, with_sign: bool = False) -> str:
    """A measured difference of shares in percentage points, with one decimal."""
    return format_audit_figure(Column("", "points", signed=with_sign), difference)


def format_limit_in_points(limit: float) -> str:
    """A limit in percentage points, without a needless decimal."""
    return f"{100 * limit:.1f}".removesuffix(".0")
