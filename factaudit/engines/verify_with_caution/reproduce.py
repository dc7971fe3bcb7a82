"""The tables of a reproduction: every printed cell beside ours, and how many agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factaudit.audit.core.rows import Row
from factaudit.engines.verify_with_caution.printed import LABELLED, MACRO, Cell, Printed
from factaudit.engines.verify_with_caution.recompute import ORDERS, Key, Recomputed

#: What floating point may add, and how little beside the rounding is at its edge.
_EPSILON, _EDGE = 1e-6, 0.002
#: Six systems make so many pairs.
_PAIRS = 15


def reproduction(printed: Printed, found: Mapping[Key, Sequence[Recomputed]]) -> list[Row]:
    """A row for each printed cell (two where it was recomputed in two ways), in the paper's order."""
    rows = []
    for cell in printed.cells:
        key = (cell.table, cell.dataset, cell.system, cell.evaluator, cell.quantity)
        about: Row = {name: getattr(cell, name) for name in ("table", "dataset", "level", "system", "evaluator")}
        about |= {"quantity": cell.quantity, "published": cell.value}
        for one in found.get(key, ()):
            apart = abs(one.value - cell.value) - one.tolerance
            note = one.note if apart <= _EPSILON else f"{_missed(printed, cell, one, apart)}; {one.note}"
            rows.append(about | {"recomputed": one.value, "within_rounding": int(apart <= _EPSILON), "note": note})
        if key not in found:
            rows.append(about | {"recomputed": None, "within_rounding": None, "note": _not_recomputed(cell)})
    return rows


def agreement(rows: Sequence[Row]) -> list[Row]:
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


def _missed(printed: Printed, cell: Cell, one: Recomputed, apart: float) -> str:
    """Why a cell does not agree."""
    if cell.table in ORDERS:
        quantity = "pairs:labelled"
        mine = [c for c in printed.of(cell.table) if (c.dataset, c.evaluator) == (cell.dataset, cell.evaluator)]
        total = sum(c.value for c in mine if c.quantity.startswith(quantity))
        if total != _PAIRS:
            return f"a misprint: the printed pairs of {cell.evaluator} add up to {total:.0f}, six systems make {_PAIRS}"
        return f"a misprint: the printed pairs of {cell.evaluator} and its printed share do not go together"
    if apart <= _EDGE:
        return f"at the edge of rounding: {one.value:.4f}"
    if cell.quantity.endswith(":adjusted_counts"):
        return "with these numbers of claims no number of found errors gives both printed figures"
    return "the printed inputs do not give it"


def _not_recomputed(cell: Cell) -> str:
    if cell.quantity == "bias" and cell.evaluator == LABELLED:
        return "0 by definition: the labels' own column"
    if cell.evaluator == "AlignScore" and (cell.table in ORDERS or cell.table in (6, 7)):
        return "no rates of AlignScore by system are printed; an input of what is"
    if cell.quantity.endswith("_threshold"):
        return "needs scores, which are not printed; an input of Table 1"
    inputs = {
        4: "an input of Tables 3 and 8",
        5: "an input of Tables 3 and 8",
        8: "an input of the predicted rates",
        30: "an input of BAcc and of PPR with chunks",
    }
    if cell.table == 3 and cell.dataset != MACRO:
        return "no inputs are printed"
    return inputs.get(cell.table, "an input of biases, headroom and orders")
