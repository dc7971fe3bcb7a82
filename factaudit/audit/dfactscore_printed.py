"""Printed figures beside those that published decisions give (MF Table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import Row
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table

_PRINTED_FILE_COLUMNS = ("system", "figure", "value", "source")


def compare_printed_dfactscores(dfactscore_rows: Sequence[Row], printed_figures: Sequence[Row]) -> list[Row]:
    """Each printed figure beside what the system's row of `dfactscore` says: a row per system and figure.

    printed_figures: as `read_printed_dfactscores` gives them. ``same``: whether the figure, rounded to the printed
    decimals, is the printed one; null (with a reason) where there is no row of the system.
    """
    by_system = {row["system"]: row for row in dfactscore_rows}
    found = []
    for one in printed_figures:
        row = by_system.get(one["system"])
        value = None if row is None else row[one["figure"]]
        scaled = 100 * value if value is not None and one["figure"].startswith("init_") else value
        shown = None if scaled is None else round(scaled, one["decimals"])
        found.append(
            {"system": one["system"], "figure": one["figure"], "printed": one["value"], "rebuilt": shown}
            | {"same": None if shown is None else shown == one["value"], "source": one["source"]}
            | {"reason": "nothing of this system was read" if row is None else None}
        )
    return found


def read_printed_dfactscores(path: str | Path) -> list[Row]:
    """The rows of a file of printed figures (``data/published/mf_table4.csv``), for `compare_printed_dfactscores`.

    Columns: system, figure (a key of the audit `dfactscore`), value (as printed; rates in per cent), source.
    """
    table = read_table(path)
    missing = [Problem("expected this column", column=name) for name in _PRINTED_FILE_COLUMNS if name not in table]
    if missing:
        raise InputError(str(path), missing)
    rows = []
    for number, row in enumerate(table[list(_PRINTED_FILE_COLUMNS)].astype("str").to_dict("records"), 1):
        try:
            value = float(row["value"])
        except ValueError:
            raise InputError(
                str(path), [Problem(f"expected a number, found {row['value']!r}", number, "value")]
            ) from None
        decimals = len(row["value"].partition(".")[2])
        rows.append({str(key): row[key] for key in _PRINTED_FILE_COLUMNS} | {"value": value, "decimals": decimals})
    return rows


AUDIT = Audit(
    name="dfactscore_printed",
    after="factscore_calibration",
    title="Against the printed table",
    question="Are the printed figures those that the published decisions give?",
    source="MF Table 4",
    text="Each printed figure beside what the published decisions give.",
    formula="Rebuilt: rounded to the printed decimals.",
    columns={
        **pick_shared_columns("system"),
        "figure": Column("figure", "text", "a key of `dfactscore`", key=True),
        "printed": Column("printed", "number", "as printed; rates in per cent"),
        "rebuilt": Column("rebuilt", "number", "the figure of the decisions, rounded as the printed one"),
        "same": Column("same", "text", "whether they are equal"),
        "source": Column("source", "text", "where it is printed", shown=False),
        **pick_shared_columns("reason"),
    },
    compute=None,
)
