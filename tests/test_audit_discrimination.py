"""What scores are worth whatever the threshold: against scikit-learn, and what is missing brought
to its worst."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from audit_tables import compute, find, judged
from sklearn.metrics import roc_auc_score

Row = dict[str, Any]


def claims(n: int, seed: int = 0, shift: float = 0.0, **names: Any) -> list[Row]:
    """Scores of two overlapping classes in [0, 1], three claims to a document."""
    random = np.random.default_rng(seed)
    label = random.random(n) < 0.7
    score = np.clip(np.round(random.normal(0.3 + 0.25 * label, 0.15) + shift, 2), 0, 1)
    return [
        {"doc_id": str(at // 3), "label": int(label[at]), "e": float(score[at]), **names}
        for at in range(n)
    ]


def test_auc_is_that_of_scikit_learn():
    rows = claims(300) + claims(200, seed=1, dataset="other")
    found = compute("discrimination", judged(rows, "e"))
    for dataset in ("d", "other"):
        some = [row for row in rows if row.get("dataset", "d") == dataset]
        label, score = (np.array([row[key] for row in some]) for key in ("label", "e"))
        row = find(found, dataset=dataset)
        assert row["auc"] == pytest.approx(roc_auc_score(label, score))
    mean = find(found, dataset="__macro__")
    assert mean["auc"] == pytest.approx(
        np.mean([row["auc"] for row in found if row["dataset"] != "__macro__"])
    )


def test_bounds_hold_whatever_the_missing_scores_had_been():
    rows = claims(14, seed=3)
    for at in (0, 5, 9):
        rows[at]["e"] = None
    bounds = find(compute("discrimination", judged(rows, "e")), dataset="d")
    assert bounds["n_unscored"] == 3
    reached = []
    for filled in product((0.0, 1.0), repeat=3):
        full = [dict(row) for row in rows]
        for at, score in zip((0, 5, 9), filled, strict=True):
            full[at]["e"] = score
        row = find(compute("discrimination", judged(full, "e")), dataset="d")
        reached.append(row)
        for key in ("auc", "bacc"):
            assert bounds[f"{key}_min"] - 1e-12 <= row[key] <= bounds[f"{key}_max"] + 1e-12
    assert min(row["bacc"] for row in reached) == pytest.approx(bounds["bacc_min"])
    assert max(row["bacc"] for row in reached) == pytest.approx(bounds["bacc_max"])
