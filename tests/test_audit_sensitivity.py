"""The audits of sensitivity: figures by hand, what cannot be told, findings and when they must not
be said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from audit_tables import compute, find, judged, tables
from test_audit_properties import check_rows

from factaudit import compare

Row = dict[str, Any]


def make_facts(
    variant: str, system: str, topic: str, supported: int, facts: int = 4, **more: Any
) -> list[Row]:
    """The facts of one response by one variant."""
    shared = {
        "system": system,
        "response_id": f"{system} {topic}",
        "topic": topic,
        "variant": variant,
        **more,
    }
    return [
        {
            "claim_id": f"{variant} {system} {topic} {n}",
            "fact_id": f"{variant} {n}",
            "e": int(n < supported),
            **shared,
        }
        for n in range(facts)
    ]


def test_scores_changes_and_orders_by_hand():
    rows = [
        *make_facts("base", "a", "x", 4),
        *make_facts("base", "a", "y", 2),
        *make_facts("base", "b", "x", 1),
        *make_facts("base", "b", "y", 1),
        *make_facts("k=1", "a", "x", 2),
        *make_facts("k=1", "a", "y", 1),
        *make_facts("k=1", "b", "x", 2),
        *make_facts("k=1", "b", "y", 2),
        # Another decomposer makes other facts, and none of one response.
        *make_facts("rules", "a", "x", 1, facts=2),
        *make_facts("rules", "b", "x", 2, facts=2),
    ]
    found = compute("sensitivity", judged(rows, "e"), gamma=0, replicates=200)
    assert [(row["variant"], row["system"]) for row in found] == [
        (variant, system)
        for variant in ("base", "k=1", "rules")
        for system in ("__all__", "a", "b")
    ]
    assert [row["score"] for row in found] == [
        0.5,
        0.75,
        0.25,
        7 / 16,
        3 / 8,
        1 / 2,
        0.75,
        0.5,
        1.0,
    ]
    assert [row["change"] for row in found] == [None] * 3 + [
        -1 / 16,
        -3 / 8,
        1 / 4,
        1 / 8,
        -1 / 2,
        3 / 4,
    ]
    assert [row["n"] for row in found] == [0] * 3 + [4, 2, 2, 2, 1, 1]
    # Of system a: changes of -2/4 and -1/4, two topics: at least as wide as Student's t of one
    # degree of freedom.
    row = find(found, variant="k=1", system="a")
    assert row["change_low"] <= -3 / 8 - 12.706 / 8
    assert row["change_high"] >= -3 / 8 + 12.706 / 8
    check_rows({"sensitivity": found})


def test_the_length_penalty_may_be_another():
    rows = [*make_facts("base", "a", "x", 4), *make_facts("gamma=0", "a", "x", 4)]
    found = compute("sensitivity", judged(rows, "e"), gammas={"gamma=0": 0.0})
    assert find(found, variant="base")["score"] == pytest.approx(np.exp(1 - 10 / 4))
    assert find(found, variant="gamma=0")["change"] == pytest.approx(1 - np.exp(1 - 10 / 4))


def test_unscored_facts_widen_the_bounds_of_the_change_and_no_figure_is_of_nothing():
    rows = [*make_facts("base", "a", "x", 2), *make_facts("v", "a", "x", 2)]
    rows[-1]["e"] = None
    table = judged([*rows, *make_facts("base", "a", "y", 2), *make_facts("v", "a", "z", 2)], "e")
    row = find(compute("sensitivity", table, gamma=0), variant="v")
    assert (row["change"], row["change_min"], row["change_max"], row["n_unscored"]) == (
        0,
        0,
        0.25,
        1,
    )
    (row,) = compute("sensitivity", judged(make_facts("v", "a", "x", 2), "e"), gamma=0)
    assert row["change"] is None
    assert row["reason"].startswith("no response is scored by both a variant and the base")
    without = [
        {key: value for key, value in each.items() if key != "variant"}
        for each in make_facts("v", "a", "x", 2)
    ]
    assert compute("sensitivity", judged(without, "e")) == []
    assert not [name for name in compare(*tables(without, ["e"])).audits if "sensitivity" in name]
