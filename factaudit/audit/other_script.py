"""What audits of word overlap say of claims in another script than their document, which have none."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import make_statement
from factaudit.text.display_text import format_count

OTHER_SCRIPT_COLUMN = Column(
    "other script",
    "count",
    "of the claims without ROUGE-2 precision: those in another script than their document",
    shown="any",
)


def list_other_script_remarks(rows: Sequence[Row], name_key: str) -> list[str]:
    """How many claims of which tasks or datasets (by ``name_key``) have no overlap for their script."""
    told = {row.get(name_key): row for row in rows if row.get("n_other_script")}
    return [
        make_statement(
            "{row.n_other_script:number claim}"
            + (f" of {{row.{name_key}}}" if name else "")
            + (" is in another script than its" if row["n_other_script"] == 1 else " are in another script than their")
            + " document, which leaves no overlap of words to count.",
            row=row,
        )
        for name, row in told.items()
    ]


def explain_other_script(row: Row) -> str:
    """For the ``reason`` of a row; "" where no claim is in another script than its document."""
    n = row["n_other_script"]
    return f"no overlap of {format_count(n, 'claim')} in another script than the document" if n else ""
