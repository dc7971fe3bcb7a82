"""Rates, consistency and differences: by hand, and against scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from audit_tables import find, judged
from audit_worlds import make_world
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, jaccard_score, recall_score

import factaudit
from factaudit.audit.consistency import compute_evaluator_consistency
from factaudit.audit.differences import compute_evaluator_differences
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def test_an_unknown_column_is_named_with_a_hint():
    with pytest.raises(UsageError, match=r"no column 'sytem' \(did you mean 'system'\?\)"):
        compute_evaluator_rates(judged([{"label": 0, "e": 0}], "e"), by=["sytem"])


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
    for row in compute_evaluator_rates(judged(rows, *"abc")):
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
    found = compute_evaluator_consistency(judged(rows, *"abc"))
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


def test_permutation_p_values_agree_with_all_swaps():
    random = np.random.default_rng(4)
    rows = [
        {
            "label": int(random.random() < 0.5),
            "response_id": f"r{i % 8}",
            "a": int(random.random() < 0.8),
            "b": int(random.random() < 0.4),
        }
        for i in range(32)
    ]
    found = compute_evaluator_differences(
        judged(rows, "a", "b"), intervals=ClusterBootstrap(replicates=20_000, seed=5)
    )
    label, first, second = (np.array([row[key] for row in rows]) for key in ("label", "a", "b"))
    response = np.array([int(row["response_id"][1:]) for row in rows])
    for key in ("bacc", "bias"):

        def statistic(a: np.ndarray, b: np.ndarray, key: str = key) -> float:
            """The difference over its linearised standard error, from the claims themselves."""
            gain = (a - b) * np.where(label == 1, 1, -1 if key == "bacc" else 1)
            classes = [label == 0, label == 1] if key == "bacc" else [label >= 0]
            mean = [gain[inside].mean() for inside in classes]
            influence = sum(
                np.where(inside, (gain - m) / inside.sum(), 0)
                for inside, m in zip(classes, mean, strict=True)
            )
            return abs(sum(mean)) / np.sqrt((np.bincount(response, influence) ** 2).sum())

        observed = statistic(first, second)
        extreme = 0
        for swaps in itertools.product((False, True), repeat=8):
            swap = np.array(swaps)[response]
            extreme += (
                statistic(np.where(swap, second, first), np.where(swap, first, second))
                >= observed - 1e-9
            )
        row = find(found, dataset="d", key=key)
        assert row["p_permutation"] == pytest.approx(extreme / 256, abs=0.015)


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
