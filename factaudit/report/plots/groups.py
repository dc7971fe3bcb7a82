"""Which keys distinguish the groups of a figure, and how are the groups labelled?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from factaudit.arrays.judgements import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import AnyPlot, Column, PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.wording import format_audit_figure

#: The keys of a row that name evaluators.
EVALUATOR_KEYS = ("evaluator", "evaluator_a", "evaluator_b", "chunked_evaluator")


def list_group_columns(
    plot: PlotSpec,
    declared: Mapping[str, Column],
    columns: Mapping[str, Column],
    rows: Sequence[Row],
) -> list[str]:
    """The columns that distinguish the groups of a figure: ``plot.groups`` or the data set, and the
    columns that the rows are grouped ``by``.

    The data set is left out if another column distinguishes the rows and the rows are about all
    data sets together. Of several group columns, those with a single value are left out.
    """
    by = [
        key
        for key, column in columns.items()
        if column.key and key not in declared and key != "dataset"
    ]
    own = [key for key in plot.groups or ("dataset",) if key in columns or key in plot.groups]
    own = [key for key in own if len({row.get(key) for row in rows}) > 1] or own[:1]
    if (
        by
        and own == ["dataset"]
        and all(row.get("dataset") in (None, ALL_TOGETHER) for row in rows)
    ):
        return by
    return own + by


def format_group_label(
    row: Row, group_columns: Sequence[str], columns: Mapping[str, Column]
) -> str:
    """The label for the group of a row: ``MediaSum``, ``MediaSum · numbers`` or ``QA · bin 1``."""
    parts = []
    for key in group_columns:
        named = format_audit_figure(columns[key], row.get(key))
        parts.append(
            f"{columns[key].heading} {named}" if isinstance(row.get(key), int | float) else named
        )
    return " · ".join(parts)


def drop_floor_rows(plot: AnyPlot, rows: Sequence[Row], floors: Set[str]) -> list[Row]:
    """The rows that a plot draws: without the baselines if it has no line for them, unless all rows
    are baselines."""
    if isinstance(plot, PlotSpec) and plot.series == "evaluator":
        return list(rows)
    return [
        row for row in rows if not any(row.get(name) in floors for name in EVALUATOR_KEYS)
    ] or list(rows)
