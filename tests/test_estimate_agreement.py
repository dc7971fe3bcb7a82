"""Agreement of annotators against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from factaudit.estimate.label_agreement import compute_label_agreement, find_disputed_claims


def judged(columns: dict[str, list[int | None]]) -> pd.DataFrame:
    rows = [
        (f"c{at}", name, label)
        for name, labels in columns.items()
        for at, label in enumerate(labels)
    ]
    return pd.DataFrame(rows, columns=["claim_id", "annotator", "label"]).astype({"label": "Int8"})


def test_kappa_is_scikit_learns() -> None:
    random = np.random.default_rng(0)
    a = (random.random(80) < 0.6).astype(int)
    b = np.where(random.random(80) < 0.8, a, 1 - a)
    (row,) = compute_label_agreement(judged({"a": a.tolist(), "b": b.tolist()}))
    assert row["kappa"] == pytest.approx(cohen_kappa_score(a, b))
    assert row["percent"] == pytest.approx((a == b).mean())
    for key in ("percent", "kappa", "alpha"):
        assert row[f"{key}_low"] < row[key] < row[f"{key}_high"]
    assert row["alpha"] == pytest.approx(row["kappa"], abs=0.02)


def test_alpha_with_labels_missing_is_the_coincidence_matrix() -> None:
    columns = {
        "a": [1, 0, None, 1, 1, 0],
        "b": [1, 1, 0, 1, None, 0],
        "c": [None, 0, 0, 1, None, 1],
    }
    rows = compute_label_agreement(judged(columns))
    assert [(row["annotator_a"], row["annotator_b"]) for row in rows] == [
        ("__all__", None),
        *(("a", "b"), ("a", "c"), ("b", "c")),
    ]
    table = np.array(
        [[np.nan if v is None else v for v in column] for column in columns.values()]
    ).T
    matrix = np.zeros((2, 2))
    for labels in table:
        known = labels[~np.isnan(labels)].astype(int)
        for i in range(len(known)):
            for j in range(len(known)):
                if i != j:
                    matrix[known[i], known[j]] += 1 / (len(known) - 1)
    n, n0, n1 = matrix.sum(), matrix[0].sum(), matrix[1].sum()
    expected = 1 - (n - 1) * matrix[0, 1] / (n0 * n1)
    assert rows[0]["alpha"] == pytest.approx(expected)
    assert rows[0]["n"] == 5


def test_disagreements() -> None:
    assert list(
        find_disputed_claims(judged({"a": [1, 0, 1], "b": [1, 1, None], "c": [1, 0, 0]}))
    ) == ["c1", "c2"]


def test_claims_of_one_document_are_resampled_together() -> None:
    """Ten claims of a document on which annotators agree or not as one are one observation, not
    ten."""
    random = np.random.default_rng(3)
    agree = np.repeat(random.random(20) < 0.7, 10)
    a = (random.random(200) < 0.6).astype(int)
    labels = judged({"a": a.tolist(), "b": np.where(agree, a, 1 - a).tolist()})
    claims = pd.DataFrame(
        {"claim_id": [f"c{at}" for at in range(200)], "dataset": "d", "doc_id": None}
    )
    claims["doc"] = [f"text {at // 10}" for at in range(200)]
    (alone,), (together,) = (compute_label_agreement(labels, table) for table in (None, claims))
    widths = [row["percent_high"] - row["percent_low"] for row in (alone, together)]
    assert widths[1] > 2 * widths[0]
    assert alone["percent"] == together["percent"]
