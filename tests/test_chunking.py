"""What chunking flips: by hand, with missing verdicts, and against scikit-learn."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_tables import compute
from audit_tables import judged as judge_rows
from sklearn.metrics import balanced_accuracy_score

from factaudit import Judgements, UsageError

#: Two chunks of three words; one chunk.
LONG = "The cat sat. A dog ran."
SHORT = "The cat sat."
#: All within a chunk, and across.
NEAR, FAR = "the cat sat", "cat sat a dog"


def judged(rows: list[dict[str, Any]], names: tuple[str, str] = ("e", "chunked-e")) -> Judgements:
    """Rows of claims with the two evaluators' predictions in ``plain`` and ``chunked`` (None =
    unscored)."""
    plain, chunked = names
    return judge_rows(
        [
            {"doc": LONG, "label": 1, plain: row["plain"], chunked: row["chunked"], **row}
            for row in rows
        ],
        *names,
    )


def rows_of(claim: str, *pairs: tuple[int | None, int | None], **more: Any) -> list[dict[str, Any]]:
    return [
        {"claim": claim, "plain": plain, "chunked": chunked, **more} for plain, chunked in pairs
    ]


def test_flips_by_hand():
    data = judged(
        rows_of(NEAR, (1, 1), (0, 0), (0, 1), (1, 1))
        + rows_of(FAR, (1, 0), (1, 0), (1, 1), (0, 0), (0, 1))
        + rows_of(NEAR, (1, 1), doc=SHORT)
        + rows_of("word", (1, 0))
        + rows_of(NEAR, (1, 0), doc=None)
    )
    zero, positive = compute("chunking", data, size=3)
    assert zero["r2_diff"] == "zero"
    assert (zero["n"], zero["flip_1_to_0"], zero["flip_0_to_1"]) == (4, 0, 0.25)
    assert (zero["n_one_chunk"], positive["n_one_chunk"]) == (1, 1), (
        "left out: a document that is not cut"
    )
    assert positive["r2_diff"] == "positive"
    assert (positive["n"], positive["flip_1_to_0"], positive["flip_0_to_1"]) == (5, 0.4, 0.2)
    for row in (zero, positive):
        assert (row["dataset"], row["evaluator"], row["chunked_evaluator"]) == (
            "d",
            "e",
            "chunked-e",
        )
        assert (row["n_no_r2"], row["n_unscored"], row["reason"]) == (2, 0, None)
        assert row["flip_1_to_0_min"] == row["flip_1_to_0"] == row["flip_1_to_0_max"]


def test_pairs_are_found_by_name_or_given():
    rows = rows_of(FAR, (1, 0))
    assert compute("chunking", judged(rows, ("e", "sliced"))) == []
    found = compute("chunking", judged(rows, ("e", "sliced")), pairs={"e": "sliced"}, size=3)
    assert {(row["evaluator"], row["chunked_evaluator"]) for row in found} == {("e", "sliced")}
    with pytest.raises(UsageError, match=r"no verdicts of 'slice'.*did you mean 'sliced'"):
        compute("chunking", judged(rows, ("e", "sliced")), pairs={"e": "slice"})
    assert compute("chunking_rates", judged(rows, ("e", "sliced"))) == []


def test_a_chunk_size_that_nobody_knows_is_no_500():
    long = " ".join(["The cat sat."] * 200) + " A dog ran."
    data = judged(rows_of(FAR, (1, 0), (1, 1), doc=long))
    for row in [*compute("chunking", data), *compute("chunking_rates", data)]:
        assert row["chunk_size"] is None
        assert row["reason"].startswith("chunk size unknown: 500 words assumed")
    for row in [*compute("chunking", data, size=500), *compute("chunking_rates", data, size=500)]:
        assert row["chunk_size"] == 500
        assert "unknown" not in (row["reason"] or "")


def random_rows(n: int = 400) -> list[dict[str, Any]]:
    random = np.random.default_rng(8)
    return [
        {
            "claim": [NEAR, FAR][int(random.integers(2))],
            "doc": [LONG, SHORT, "A dog ran. The cat sat."][int(random.integers(3))],
            "dataset": f"d{int(random.integers(2))}",
            "doc_id": str(int(random.integers(60))),
            "label": int(random.random() < 0.7),
            "plain": int(random.random() < 0.6) if random.random() < 0.95 else None,
            "chunked": int(random.random() < 0.4),
        }
        for _ in range(n)
    ]


def test_rates_are_over_long_documents_alone():
    rows = random_rows()
    table = pd.DataFrame(rows)
    found = compute("chunking_rates", judged(rows), size=3)
    assert {(row["dataset"], row["evaluator"]) for row in found} == set(
        product(["d0", "d1", "__macro__"], ["e", "chunked-e"])
    )
    for row in found[:4]:
        column = "chunked" if row["evaluator"] == "chunked-e" else "plain"
        part = table[(table["doc"] != SHORT) & (table["dataset"] == row["dataset"])].dropna(
            subset=column
        )
        assert row["n"] == len(part)
        assert row["bacc"] == pytest.approx(
            balanced_accuracy_score(part["label"], part[column].astype(int))
        )
        assert row["ppr"] == pytest.approx(part[column].mean())
    assert compute("chunking_rates", judged(rows), size=100) == []
