"""Which estimate should be quoted, and why? The sentences of the report about it."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.wording import fill


def list_estimation_remarks(rows: Sequence[Row]) -> list[str]:
    """A paragraph for each dataset and level; a reason that was given before is not repeated."""
    remarks = []
    for at, row in enumerate(rows):
        is_repeated = row["quote"] and any(other["why"] == row["why"] for other in rows[:at])
        why = f"quote {row['quote']}, for the same reason" if is_repeated else str(row["why"])
        labels = "{n_labels:number label}" if row["n_labels"] else "no usable label"
        systems = "{n_systems:number system} and " if row["n_systems"] else ""
        text = (
            f"{{dataset}}, {{level}} level: {labels} for {systems}{{n:number {row['level']}}}."
            " {why}."
        )
        text += " Note: {reason}." if row["reason"] else ""
        remarks.append(fill(text, row | {"why": why[0].upper() + why[1:]}))
    return remarks
