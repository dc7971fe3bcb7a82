"""How does an audit look as a frame with a row per figure, as plots and group-bys need it?"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from factaudit.audit.core.audit_declaration import Column

#: The columns of findings where there is none.
FINDING_KEYS = ["id", "severity", "evaluator", "dataset", "statement", "evidence"]


def make_tidy_report_frame(table: pd.DataFrame, columns: Mapping[str, Column]) -> pd.DataFrame:
    """What each row is about, then ``figure``, ``value``, ``low`` and ``high`` (missing without an interval).

    Texts that are no keys, such as reasons, are in the wide table only.
    """
    keys = [name for name, column in columns.items() if column.key and name in table]
    figures = [name for name, column in columns.items() if not column.key and column.unit != "text" and name in table]
    parts = []
    for name in figures:
        part = table[keys].assign(figure=name, value=pd.to_numeric(table[name], errors="coerce"))
        for end in ("low", "high"):
            given = table.get(f"{name}_{end}")
            part[end] = float("nan") if given is None else pd.to_numeric(given, errors="coerce")
        parts.append(part)
    empty = pd.DataFrame(columns=[*keys, "figure", "value", "low", "high"])
    # Row by row, the figures of each in their order.
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True) if parts else empty
