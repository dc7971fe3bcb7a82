"""Which estimate should be quoted, and why? The sentences of the report about it."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement


def list_estimation_remarks(rows: Sequence[Row], findings: Sequence[Row]) -> list[str]:
    """A paragraph for each dataset and level; a reason that was given before is not repeated."""
    reasons = [row["why"] for row in rows]
    return [_state_quoted_method(row, is_repeated=row["why"] in reasons[:at]) for at, row in enumerate(rows)]


def _state_quoted_method(row: Row, *, is_repeated: bool) -> Statement:
    noun = "response" if row["level"] == "response" else "claim"
    labels = "{row.n_labels:number label}" if row["n_labels"] else "no usable label"
    verb = "are" if row["n_labels"] > 1 else "is"
    systems = "{row.n_systems:number system} and " * bool(row["n_systems"])
    text = f"{{row.dataset}}, {{row.level}} level: there {verb} {labels} for {systems}{{row.n:number {noun}}}."
    why = f"quote {row['quote']}, for the same reason" if row["quote"] and is_repeated else str(row["why"])
    told = [make_statement(text, row=row), make_statement("{why}.", why=why[0].upper() + why[1:])]
    if row["reason"]:
        told.append(make_statement("Note: {row.reason}.", row=row))
    return join_statements(told)
