"""Rates by word overlap and their trend: by hand, against statsmodels, and where there is nothing
to say."""

from __future__ import annotations

from typing import Any

import pytest
from audit_tables import compute
from audit_tables import judged as judge_rows

from factaudit import Judgements, UsageError

WORDS = [f"w{n}" for n in range(11)]
DOC = " ".join(WORDS)


def claim_of(shared: int) -> str:
    """A claim of ten bigrams of which the document has ``shared``."""
    return " ".join([*WORDS[: shared + 1], *(f"x{n}" for n in range(10 - shared))])


def judged(rows: list[dict[str, Any]]) -> Judgements:
    return judge_rows([{"doc": DOC, **row} for row in rows], "e")


def find_slopes(
    judgements: Judgements, covariate: str = "ROUGE-2 precision"
) -> list[dict[str, Any]]:
    rows = compute("covariates", judgements, replicates=20)
    return [row for row in rows if (row["covariate"], row["value"]) == (covariate, "slope")]


def test_bins_by_hand() -> None:
    # Overlaps 0, 0.1, ..., 0.9, one attributable and one unattributable claim each: two overlaps to
    # a bin.
    rows = [
        {"claim": claim_of(shared), "label": label, "task": "qa", "e": int(shared >= 5)}
        for shared in range(10)
        for label in (0, 1)
    ]
    found = compute("surface_bias", judged(rows))
    assert [row["bin"] for row in found] == [1, 2, 3, 4, 5]
    assert [row["r2_high"] for row in found] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])
    assert [row["r2_low"] for row in found] == pytest.approx([0.0, 0.1, 0.3, 0.5, 0.7])
    assert [(row["n"], row["n_pos"], row["n_neg"]) for row in found] == [(4, 2, 2)] * 5
    # Bin 3 has overlaps 0.4 and 0.5, of which the evaluator accepts the second.
    assert [row["tpr"] for row in found] == [0, 0, 0.5, 1, 1]
    assert [row["tnr"] for row in found] == [1, 1, 0.5, 0, 0]
    assert all(
        row["reason"] is None and row["task"] == "qa" and row["evaluator"] == "e" for row in found
    )
    slopes = {row["rate"]: row["difference"] for row in find_slopes(judged(rows))}
    # Slope of the step (0 x 5, 1 x 5) on 0, 0.1, ..., 0.9: (sum of centred x at the ones) / (sum of
    # squares).
    assert slopes == {"tpr": pytest.approx(1.25 / 0.825), "tnr": pytest.approx(-1.25 / 0.825)}


def test_tasks_are_binned_apart_and_a_dataset_stands_for_a_missing_task() -> None:
    rows = [
        {"claim": claim_of(s), "label": 1, "e": 1, "task": "qa", "dataset": "d1"} for s in range(5)
    ]
    rows += [
        {"claim": claim_of(s + 5), "label": 1, "e": 1, "task": "qa", "dataset": "d2"}
        for s in range(5)
    ]
    rows += [
        {"claim": claim_of(s), "label": 1, "e": 1, "task": None, "dataset": "d3"} for s in range(5)
    ]
    found = compute("surface_bias", judged(rows))
    assert [row["task"] for row in found] == ["d3"] * 5 + ["qa"] * 5
    assert [row["n"] for row in found] == [1] * 5 + [2] * 5
    assert [row["r2_high"] for row in found[5:]] == pytest.approx([0.1, 0.3, 0.5, 0.7, 0.9])


def test_a_bin_is_at_least_one() -> None:
    with pytest.raises(UsageError, match="at least 1 bin, found 0"):
        compute("surface_bias", judged([{"claim": "a b", "label": 1, "e": 1}]), bins=0)
