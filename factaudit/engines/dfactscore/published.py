"""MF's published outputs (`factaudit.datasets.merging_facts`) beside the figures that the paper prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

Row = dict[str, Any]


def compare_printed(rows: Sequence[Row], printed: Sequence[Row]) -> list[Row]:
    """Each printed figure beside what the decisions give: a row per system and figure.

    printed: ``{system, figure, value, decimals, ...}``; rates in per cent, as a table prints them. ``same``: whether
    the figure, rounded to the printed decimals, is the printed one.
    """
    by_system = {row["system"]: row for row in rows}
    found = []
    for one in printed:
        row = by_system.get(one["system"])
        if row is None:
            continue
        percent = one["figure"].startswith("init_")
        value = row[one["figure"]]
        shown = None if value is None else round(100 * value if percent else value, one["decimals"])
        found.append(
            {"system": one["system"], "figure": one["figure"], "printed": one["value"], "rebuilt": shown}
            | {"same": shown == one["value"], "source": one["source"]}
        )
    return found


def read_printed(path: str | Path) -> list[Row]:
    """The printed figures of ``data/published/mf_table4.csv``, for `compare_printed`."""
    table = pd.read_csv(path, dtype={"value": str})
    return [
        {
            "system": row["system"],
            "figure": row["figure"],
            "value": float(row["value"]),
            "decimals": len(row["value"].partition(".")[2]),
            "source": row["source"],
        }
        for row in table.to_dict("records")
    ]
