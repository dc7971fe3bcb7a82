"""Decisions: what an evaluator may be used for, and when these labels cannot tell."""

from __future__ import annotations

from typing import Any

import pytest
from audit_tables import judged

from factaudit import Results, UsageError
from factaudit.audit import load_all_audits
from factaudit.audit.core.audited_run import DecisionLimits
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
INTERVALS = ClusterBootstrap(replicates=100, seed=0)
AUDITS = ("rates", "differences", "quantification", "ranking")
SYSTEMS = {"a": 0.05, "b": 0.2, "c": 0.4, "d": 0.6}


def claims(
    errors: dict[str, float], n: int = 1000, tpr: float = 0.98, tnr: float = 0.98, **names: Any
) -> list[Row]:
    """Of each system n claims with these error rates, and e that is right so often; shuffled evenly
    over documents."""
    rows = []
    for system, rate in errors.items():
        for at in range(n):
            label = int(at >= rate * n)
            first, size = (rate * n, n - rate * n) if label else (0, rate * n)
            right = (at - first + 0.5) / max(size, 1) < (tpr if label else tnr)
            rows.append(
                {"system": system, "label": label, "e": float(label if right else 1 - label)}
                | names
            )
    return rows


def decide(
    rows: list[Row], *evaluators: str, about: Row | None = None, has_intervals: bool = True
) -> list[Row]:
    table, declared = judged(rows, *evaluators), load_all_audits()
    chosen = [
        declared[name]
        for name in AUDITS
        if declared[name].applies is None or declared[name].applies(table)
    ]
    found = {
        audit.name: audit.compute(table, intervals=INTERVALS if has_intervals else None)
        for audit in chosen
    }
    told = {"evaluators": [{"name": name, "floor": name == "always-yes"} for name in evaluators]}
    return Results("s", told | (about or {}), found).decisions


def alternate(systems: tuple[str, ...]) -> list[Row]:
    """Predictions of these systems that say nothing."""
    return [
        row | ({"e": float(at % 2)} if row["system"] in systems else {})
        for at, row in enumerate(claims(SYSTEMS))
    ]


UNSCORED = [{"system": system, "label": 1, "e": None} for system in SYSTEMS for _ in range(700)]
CANNOT = "cannot tell"
#: Claims, and what e may be used for: finding errors, publishing rates, ranking systems.
CASES = {
    "a good one": (claims(SYSTEMS), ("yes", "yes", "yes")),
    "few labels": (claims(dict.fromkeys("abcd", 0.2), n=15), (CANNOT, CANNOT, CANNOT)),
    "a bad one": (claims(SYSTEMS, tpr=0.6, tnr=0.55), ("no", "no", CANNOT)),
    "all reversed": (
        [row | {"e": float(1 - row["label"])} for row in claims(SYSTEMS)],
        ("no", "no", "no"),
    ),
    "all systems alike": (alternate(("a", "b", "c", "d")), ("no", "no", "no")),
    "three systems alike": (alternate(("b", "c", "d")), ("no", "no", CANNOT)),
    "many unscored": (claims(SYSTEMS) + UNSCORED, (CANNOT, CANNOT, CANNOT)),
    "half unscored, so that no pair is surely ordered otherwise": (
        [
            row | {"e": float(at % 3 > 0) if at % 2 else None}
            for at, row in enumerate(claims(SYSTEMS))
        ],
        ("no", "no", CANNOT),
    ),
    "a shifted score": (
        [
            row | {"e": 0.6 + 0.3 * row["e"], "doc_id": str(at // 5)}
            for at, row in enumerate(claims(SYSTEMS))
        ],
        ("no", "no", "no"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_an_evaluator_may_be_used_for(case):
    rows, expected = CASES[case]
    found = decide(rows, "e")
    assert [row["task"] for row in found] == [
        "find single errors",
        "report a system's error rate",
        "rank systems",
    ]
    assert tuple(row["may"] for row in found) == expected
    assert all(row["figure"] for row in found)
    assert all("at most" in row["required"] or "at least" in row["required"] for row in found)


def test_limits_can_be_set_and_are_checked():
    rows = claims(SYSTEMS, tpr=0.9, tnr=0.9)
    assert decide(rows, "e")[0]["may"] == "yes"
    strict = {"limits": DecisionLimits.parse({"min_rate": 0.95}).as_dict()}
    assert decide(rows, "e", about=strict)[0]["may"] == "no"
    with pytest.raises(UsageError, match="unknown limit 'max_biass'"):
        DecisionLimits.parse({"max_biass": 0.1})
    with pytest.raises(UsageError, match="expected max_bias between 0 and 1, found 5"):
        DecisionLimits.parse({"max_bias": 5})


def test_what_is_not_scored_cannot_be_told_of_and_floors_are_no_candidates():
    found = decide(
        [row | {"e": None, "always-yes": 1.0} for row in claims(SYSTEMS, n=50)], "e", "always-yes"
    )
    assert {row["evaluator"] for row in found} == {"e"}
    assert (found[0]["may"], found[0]["figure"]) == (CANNOT, "has 0 scored claims")
