"""What a caption says of the points that a figure lacks, and of those without an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factaudit.audit.core.audit_declaration import Audit, list_declared_columns
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.figure_formatting import format_audit_figure
from factaudit.audit.core.result_rows import Row
from factaudit.report.figure_selection import find_wholly_undefined_values

#: So many rows are named in a caption; of more it says how many.
_MAX_NAMED_ROWS = 3


def describe_undefined_values(audit: Audit, keys: Sequence[str], rows: Sequence[Row]) -> str:
    """``Undefined, so not drawn: TNR (deberta, RAGTruth-QA).``, or ``TNR (12 of 36 rows)``."""
    undefined = {key: [row for row in rows if key in row and row[key] is None] for key in keys}
    named = _name_rows_of_figures(audit, undefined, dict.fromkeys(keys, rows))
    return f"Undefined, so not drawn: {named}." if named else ""


def describe_points_without_interval(audit: Audit, keys: Sequence[str], rows: Sequence[Row]) -> str:
    """``Without an interval: τ-b (10 of 12 rows).``: a short line may hide behind its marker, and one of none does not.

    Nothing is said of an evaluator that says the same of any claim: nothing of it varies.
    """
    drawn = [row for row in rows if not is_constant_evaluator(str(row.get("evaluator")))]
    points = {key: [row for row in drawn if row.get(key) is not None and f"{key}_low" in row] for key in keys}
    without = {key: [row for row in of if row[f"{key}_low"] is None] for key, of in points.items()}
    if any(without.values()) and without == points:
        return "No point has an interval."
    named = _name_rows_of_figures(audit, without, points)
    return f"Without an interval: {named}." if named else ""


def _name_rows_of_figures(
    audit: Audit, lacking_by_key: Mapping[str, Sequence[Row]], rows_by_key: Mapping[str, Sequence[Row]]
) -> str:
    """Which rows of each figure's some figures are lacking in: by name, or how many."""
    named = []
    for key, lacking in lacking_by_key.items():
        rows = rows_by_key[key]
        present = list_declared_columns(audit.columns, rows)
        by = [one for one, column in present.items() if column.key and len({str(row.get(one)) for row in rows}) > 1]
        names = [", ".join(format_audit_figure(present[one], row.get(one)) for one in by) for row in lacking]
        n_lacking, n_rows = (sum(row.get("n_rows", 1) for row in of) for of in (lacking, rows))
        if n_lacking > min(len(lacking), _MAX_NAMED_ROWS):
            names = [f"{n_lacking:,} of {n_rows:,} rows"]
        if whole := find_wholly_undefined_values(by, lacking, rows, _MAX_NAMED_ROWS):
            column, values = whole
            names = [format_audit_figure(present[column], value) for value in values]
        if lacking:
            named.append(audit.columns[key].heading + f" ({'; '.join(names)})" * (any(names) and n_lacking < n_rows))
    return "; ".join(named)
