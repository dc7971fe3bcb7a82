"""Evaluators beside each other: which row stands for each, which are alike by BAcc, which the labels tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from factaudit.audit.core.decisions import range_of, surely_above, surely_below
from factaudit.audit.core.declare import Audited
from factaudit.audit.core.rows import ALL, MACRO, Row, repeats

#: Evaluators whose BAccs are no further apart are alike by BAcc.
LIKE_BACC = 0.02


def overall(rows: Sequence[Row]) -> dict[str, Row]:
    """Each evaluator's one row that stands for all claims: the mean over datasets, else its only row."""
    found: dict[str, Row] = {}
    for evaluator in dict.fromkeys(row["evaluator"] for row in rows):
        mine = [row for row in rows if row["evaluator"] == evaluator and not repeats(row)]
        choices = [[row for row in mine if row.get("dataset") == total] for total in (MACRO, ALL)]
        one = next((only[0] for only in [*choices, mine] if len(only) == 1), None)
        if one is not None:
            found[evaluator] = one
    return found


def like_pairs(audited: Audited) -> list[tuple[str, str]]:
    """Pairs of evaluators whose BAccs are alike *on average* (as VC pairs them), none of them at chance."""
    rows = {name: row for name, row in overall(audited.rows("rates")).items() if name not in audited.floors}
    able = [
        name
        for name, row in rows.items()
        if row.get("bacc") is not None and (surely_above(row, "bacc", 0.5) if "bacc_low" in row else row["bacc"] > 0.5)
    ]
    pairs = combinations(able, 2)
    return [(a, b) for a, b in pairs if abs(rows[a]["bacc"] - rows[b]["bacc"]) <= LIKE_BACC]


def apart(audited: Audited, best: Row, other: str) -> bool:
    """Whether an evaluator's BAcc is surely above that of another one.

    By the paired difference on the same claims; where that was not computed, by intervals that do not overlap.
    """
    for row in audited.rows("differences"):
        if row.get("key") == "bacc" and row.get("dataset") == best.get("dataset"):
            if (row["evaluator_a"], row["evaluator_b"]) == (best["evaluator"], other):
                return surely_above(row, "difference", 0)
            if (row["evaluator_a"], row["evaluator_b"]) == (other, best["evaluator"]):
                return surely_below(row, "difference", 0)
    mine, its = range_of(best, "bacc"), range_of(overall(audited.rows("rates")).get(other, {}), "bacc")
    return mine is not None and its is not None and mine[0] > its[1]
