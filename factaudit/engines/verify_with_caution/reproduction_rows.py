"""The tables of a reproduction: every printed cell beside ours, and how many agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factaudit.audit.core.result_rows import Row
from factaudit.engines.verify_with_caution.cell_recomputation import ORDER_TABLES, CellKey, RecomputedCell
from factaudit.engines.verify_with_caution.printed_tables import (
    LABELS_EVALUATOR,
    MACRO_MEAN,
    N_SYSTEM_PAIRS,
    PrintedCell,
    PrintedTables,
)

#: What floating point may add, and how little beside the rounding is at its edge.
_EPSILON, _ROUNDING_EDGE = 1e-6, 0.002


def build_reproduction_rows(
    printed: PrintedTables, recomputed_cells: Mapping[CellKey, Sequence[RecomputedCell]]
) -> list[Row]:
    """A row for each printed cell (two where it was recomputed in two ways), in the paper's order."""
    rows = []
    for cell in printed.cells:
        key = (cell.table, cell.dataset, cell.system, cell.evaluator, cell.quantity)
        about: Row = {name: getattr(cell, name) for name in ("table", "dataset", "level", "system", "evaluator")}
        about |= {"quantity": cell.quantity, "published": cell.value}
        for one in recomputed_cells.get(key, ()):
            apart = abs(one.value - cell.value) - one.tolerance
            agrees, note = apart <= _EPSILON, one.note
            if not agrees:
                note = f"{_explain_unreproduced_cell(printed, cell, one, apart)}; {note}"
            rows.append(about | {"recomputed": one.value, "within_rounding": int(agrees), "note": note})
        if key not in recomputed_cells:
            rows.append(
                about | {"recomputed": None, "within_rounding": None, "note": _explain_reproduction_input_cell(cell)}
            )
    return rows


def describe_reproduction_agreement(rows: Sequence[Row]) -> str:
    """How many printed cells agree in every comparison, and of how many agreement says only that numbers exist."""
    cells: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row["within_rounding"] is not None:
            key = tuple(row[name] for name in ("table", "dataset", "level", "system", "evaluator", "quantity"))
            cells.setdefault(key, []).append(row)
    agree = [mine for mine in cells.values() if all(row["within_rounding"] for row in mine)]
    existence = sum(any(_EXISTENCE in row["note"] for row in mine) for mine in agree)
    return (
        f"{len(agree):,} of {len(cells):,} published cells agree; {existence:,} of them agree with some numbers of "
        "claims, which are not printed"
    )


#: In the notes of cells that several numbers of claims could give, or that were chosen to come near.
_EXISTENCE = "exist"


def count_reproduced_cells(rows: Sequence[Row]) -> list[Row]:
    """How many of the comparisons of each table and evaluator agree."""
    counts: dict[tuple[int, str], list[int]] = {}
    for row in rows:
        if row["within_rounding"] is not None:
            counts.setdefault((row["table"], row["evaluator"]), []).append(row["within_rounding"])
    return [
        {
            "table": table,
            "evaluator": evaluator,
            "n": len(each),
            "n_agree": sum(each),
            "share": sum(each) / len(each),
            "cells": f"{sum(each)}/{len(each)}",
        }
        for (table, evaluator), each in counts.items()
    ]


def _explain_unreproduced_cell(
    printed: PrintedTables, cell: PrintedCell, recomputed: RecomputedCell, excess_difference: float
) -> str:
    """Why a cell does not agree."""
    if cell.table in ORDER_TABLES:
        mine = printed.select_cells(cell.table, dataset=cell.dataset, evaluator=cell.evaluator)
        total = sum(one.value for one in mine if one.quantity.startswith("pairs:labelled"))
        misprint = f"a misprint: the printed pairs of {cell.evaluator}"
        if total != N_SYSTEM_PAIRS:
            return f"{misprint} add up to {total:.0f}, six systems make {N_SYSTEM_PAIRS}"
        return f"{misprint} and its printed share do not go together"
    if excess_difference <= _ROUNDING_EDGE:
        return f"at the edge of rounding: {recomputed.value:.4f}"
    if cell.quantity.endswith(":adjusted_counts"):
        return "with these numbers of claims no number of found errors gives both printed figures"
    return "the printed inputs do not give it"


def _explain_reproduction_input_cell(cell: PrintedCell) -> str:
    if cell.quantity == "bias" and cell.evaluator == LABELS_EVALUATOR:
        return "0 by definition: the labels' own column"
    if cell.evaluator == "AlignScore" and (cell.table in ORDER_TABLES or cell.table in (6, 7)):
        return "no rates of AlignScore by system are printed; an input of what is"
    if cell.quantity.endswith("_threshold"):
        return "needs scores, which are not printed; an input of Table 1"
    inputs = {
        4: "an input of Tables 3 and 8",
        5: "an input of Tables 3 and 8",
        8: "an input of the predicted rates",
        30: "an input of BAcc and of PPR with chunks",
    }
    if cell.table == 3 and cell.dataset != MACRO_MEAN:
        return "no inputs are printed"
    return inputs.get(cell.table, "an input of biases, headroom and orders")
