"""The audit ``triage``: how much review single verdicts need, and when nothing may be said of
it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from audit_tables import compute, find, judged
from test_decisions import Row


def scored_rows(
    n: int = 900, skill: float = 2.0, rate: float = 0.25, seed: int = 0, **names: Any
) -> list[Row]:
    """Claims in documents of three; ``e`` tells errors with this skill, ``useless`` not at all."""
    random = np.random.default_rng(seed)
    error = random.random(n) < rate
    good, noise = (1 / (1 + np.exp(-random.standard_normal(n) + by * error)) for by in (skill, 0.0))
    return [
        {"claim_id": f"c{at}", "doc_id": f"d{at // 3}", "label": int(not error[at]), **names}
        | {"e": float(good[at]), "useless": float(noise[at])}
        for at in range(n)
    ]


def test_a_good_score_needs_little_review_and_a_useless_one_promises_nothing():
    table = judged(scored_rows(skill=4.0), "e", "useless")
    rows = compute("triage", table)
    good, useless = (find(rows, evaluator=name) for name in ("e", "useless"))
    assert 0.2 < good["review_share"] < 0.3
    passes = table.score[0] >= good["threshold"]
    assert passes.mean() == pytest.approx(1 - good["review_share"])
    assert (table.label[passes] == 0).mean() == good["passing_error_share"] < 0.05
    assert (useless["review_share"], useless["threshold"], useless["passing_error_share"]) == (
        1,
        None,
        None,
    )
    too_few = "the labels are too few to promise anything at any threshold"
    assert useless["reason"] == too_few
    worse = compute("triage", judged([row | {"e": 1 - row["e"]} for row in scored_rows()], "e"))
    assert worse[0]["reason"] == too_few
    right = compute("triage", judged([row for row in scored_rows() if row["label"]][:4], "e"))
    assert right[0]["reason"] == f"{too_few}; there is no labelled error"
    (few,) = compute("triage", judged(scored_rows(n=36, skill=6.0), "e"))
    assert (few["review_share"], few["reason"]) == (1, too_few)


def test_what_is_unscored_or_guessed_is_reviewed():
    rows = scored_rows(skill=4.0)
    whole = find(compute("triage", judged(rows, "e")), evaluator="e")
    lacking = judged(
        [row | ({"e": None} if at % 3 == 0 else {}) for at, row in enumerate(rows)], "e"
    )
    (row,) = compute("triage", lacking)
    assert (row["n"], row["n_unscored"]) == (600, 300)
    assert row["review_share"] > 1 / 3 + whole["review_share"] / 2
    guessed = judged(rows, "e")
    status = guessed.status.copy()
    status[:, ::3] = 1  # unparsed, with a score all the same
    assert compute("triage", replace(guessed, status=status)) == [row]


def test_several_evaluators_share_the_level_and_several_datasets_do_not():
    rows = scored_rows(skill=2.5)
    alone = find(compute("triage", judged(rows, "e")), evaluator="e")
    beside = find(compute("triage", judged(rows, "e", "useless")), evaluator="e")
    assert beside["review_share"] > alone["review_share"]
    other = [
        row | {"dataset": "x", "claim_id": f"x{at}"}
        for at, row in enumerate(scored_rows(seed=1, skill=2.5))
    ]
    both = compute("triage", judged([*rows, *other], "e"))
    assert [row["dataset"] for row in both] == ["d", "x", "__all__"]
    assert both[0] == alone
