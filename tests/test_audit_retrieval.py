"""The audits of retrieval: recall of what the whole page supports, and what "not supported" is, by
hand."""

from __future__ import annotations

from typing import Any

from audit_tables import compute, find, judged
from test_audit_properties import check_rows

Row = dict[str, Any]


def make_facts(variant: str, verdicts: str, response: str = "r") -> list[Row]:
    """Facts of one response: a letter each, ``s`` supported, ``n`` not, ``-`` without a verdict."""
    shared = {"system": "a", "response_id": response, "topic": "t", "variant": variant}
    return [
        shared
        | {
            "claim_id": f"{variant} {response} {at}",
            "fact_id": f"{variant} {at}",
            "claim": f"fact {at}",
        }
        | {"e": {"s": 1, "n": 0, "-": None}[one]}
        for at, one in enumerate(verdicts)
    ]


def test_recall_and_the_split_of_what_is_not_supported_by_hand() -> None:
    rows = [
        *make_facts("retrieval=all", "ssssnns-"),
        *make_facts("base", "ssnnnss-"),
        *make_facts("k=1", "snnnnn--"),
        *make_facts("retrieval=all", "sn", "q"),
        *make_facts("base", "nn", "q"),
        # Another decomposer's facts are others: nothing to compare with.
        *[row | {"claim": f"other {row['claim']}"} for row in make_facts("rules", "sn")],
    ]
    found = compute("retrieval", judged(rows, "e"), replicates=2000)
    check_rows({"retrieval": found})
    assert [row["variant"] for row in found] == ["base", "k=1"]
    base = find(found, variant="base")
    # The page supports five of the first response and one of the second; passages find three and
    # none.
    assert (base["n"], base["n_unscored"], base["n_in_page"], base["n_not_supported"]) == (
        9,
        1,
        6,
        5,
    )
    assert base["n_only_passages"] == 1
    assert (base["recall"], base["not_in_passages"]) == (3 / 6, 3 / 5)
    assert base["recall_low"] < 0.5 < base["recall_high"]
    (one,) = [row for row in found if row["variant"] == "k=1"]
    assert (one["n"], one["recall"], one["not_in_passages"]) == (6, 1 / 4, 3 / 5)
    assert one["reason"] == "no interval for recall, not_in_passages: fewer than two clusters"
