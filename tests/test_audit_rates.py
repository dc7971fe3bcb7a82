"""Rates, consistency and differences: by hand, and against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from audit_tables import compute, find, judged
from audit_worlds import make_world
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, jaccard_score, recall_score

import factaudit
from factaudit import UsageError


def test_an_unknown_column_is_named_with_a_hint():
    with pytest.raises(UsageError, match=r"no column 'sytem' \(did you mean 'system'\?\)"):
        compute("rates", judged([{"label": 0, "e": 0}], "e"), by=["sytem"])


def random_rows(
    seed: int, n: int = 300, evaluators: str = "abc", unscored: float = 0.1
) -> list[dict]:
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        row = {"dataset": str(random.choice(["x", "y"])), "label": int(random.random() < 0.6)}
        for name in evaluators:
            row[name] = (
                None
                if random.random() < unscored
                else int(random.random() < 0.5 + 0.3 * row["label"])
            )
        rows.append(row)
    return rows


def test_rates_agree_with_scikit_learn():
    rows = random_rows(1)
    for row in compute("rates", judged(rows, *"abc")):
        if row["dataset"] == "__macro__":
            continue
        e = row["evaluator"]
        kept = [each for each in rows if each["dataset"] == row["dataset"] and each[e] is not None]
        label, prediction = [each["label"] for each in kept], [each[e] for each in kept]
        assert row["n"] == len(kept)
        assert row["bacc"] == pytest.approx(balanced_accuracy_score(label, prediction), abs=1e-12)
        assert row["tpr"] == pytest.approx(recall_score(label, prediction), abs=1e-12)
        assert row["tnr"] == pytest.approx(recall_score(label, prediction, pos_label=0), abs=1e-12)


def test_consistency_agrees_with_scikit_learn():
    rows = random_rows(2)
    found = compute("consistency", judged(rows, *"abc"))
    assert len(found) == 2 * 3 * 2
    for row in found:
        a, b = row["evaluator_a"], row["evaluator_b"]
        kept = [
            each
            for each in rows
            if each["dataset"] == row["dataset"] and None not in (each[a], each[b])
        ]
        total = sum(each["dataset"] == row["dataset"] for each in rows)
        first, second = [each[a] for each in kept], [each[b] for each in kept]
        assert (row["n"], row["n_unscored"]) == (len(kept), total - len(kept))
        positive = 1 if row["class"] == "attributable" else 0
        assert row["iou"] == pytest.approx(
            jaccard_score(first, second, pos_label=positive), abs=1e-12
        )
        assert row["kappa"] == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)
        assert row["iou_min"] <= row["iou"] <= row["iou_max"]


def test_differences_are_those_of_the_printed_figures():
    """Of claims that both have judged, evaluator a less evaluator b."""
    claims, verdicts = make_world("whole")
    found = factaudit.compare(
        claims, verdicts, audits=["rates", "differences", "quantification"], replicates=50
    )
    assert len(found.audits["differences"]) == 18, (
        "three pairs, two figures, two data sets and their mean"
    )
    for row in found.audits["differences"]:
        where = {"dataset": row["dataset"]}
        if row["key"] == "bias":
            where |= {"system": "__all__", "level": "claim"}
        if row["dataset"] != "__macro__":
            name = {"bacc": "rates", "bias": "quantification"}[row["key"]]
            a, b = (
                find(found.audits[name], evaluator=row[f"evaluator_{x}"], **where)[row["key"]]
                for x in "ab"
            )
            assert row["difference"] == pytest.approx(a - b, abs=1e-12)
        assert row["difference_low"] < row["difference"] < row["difference_high"]
