"""Adjusted counts and threshold tuning: by hand, and against a slow, plain implementation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from audit_tables import compute, find, judged

from factaudit.audit.calibration import INTERVAL_METHODS, MEAN_OVER_CALIBRATIONS
from factaudit.stats.calibration import (
    CORRECTION_METHODS,
)

TUNED = CORRECTION_METHODS[2:]


def random_rows(seed: int, unscored: float = 0.0, ties: bool = False) -> list[dict]:
    random = np.random.default_rng(seed)
    rows = []
    for system, errors in (("a", 0.2), ("b", 0.4), ("c", 0.6), ("d", 0.35)):
        for number in range(int(random.integers(30, 60))):
            label = int(random.random() > errors)
            score = float(np.clip(random.normal(0.35 + 0.3 * label, 0.2), 0, 1))
            score = round(score, 1) if ties else score
            row = {
                "system": system,
                "response_id": f"{number // 3}",
                "doc_id": f"{number // 6}",
                "label": label,
            }
            rows.append(row | {"e": None if random.random() < unscored else score})
    return rows


def best_threshold(scores: list[float], labels: list[int], method: str) -> float:
    """As DESIGN words it, one candidate after the other."""
    values = sorted(set(scores))
    ends = [-1.0 if values[0] == 0 else 0.0, 1.0]
    tried = []
    for threshold in [(a + b) / 2 for a, b in itertools.pairwise(values)] + ends:
        said = [int(score > threshold) for score in scores]
        if method == "zero_bias_threshold":
            loss = abs(said.count(0) - labels.count(0))
        else:
            true = sum(
                p == label == 1 for p, label in zip(said, labels, strict=True)
            ) * labels.count(0)
            loss = -(
                true
                + sum(p == label == 0 for p, label in zip(said, labels, strict=True))
                * labels.count(1)
            )
        tried.append((loss, abs(threshold - 0.5), threshold))
    return min(tried)[2]


def slow(rows: list[dict], calibration: str, method: str) -> tuple[float, float, float | None]:
    """Mean and worst |bias| over the other systems, and the threshold."""
    of = {
        s: [(row["label"], row["e"]) for row in rows if row["system"] == s and row["e"] is not None]
        for s in "abcd"
    }
    threshold = None
    if method in TUNED:
        threshold = best_threshold(
            [s for _, s in of[calibration]], [label for label, _ in of[calibration]], method
        )
    tnr = np.mean([score <= 0.5 for label, score in of[calibration] if label == 0])
    fnr = np.mean([score <= 0.5 for label, score in of[calibration] if label == 1])
    biases = []
    for system, pairs in of.items():
        if system != calibration:
            rate = np.mean(
                [score <= (0.5 if threshold is None else threshold) for _, score in pairs]
            )
            if method == "adjusted_counts":
                rate = np.clip((rate - fnr) / (tnr - fnr), 0, 1)
            # What the labels say is over all of them, scored or not.
            biases.append(
                abs(rate - np.mean([row["label"] == 0 for row in rows if row["system"] == system]))
            )
    return float(np.mean(biases)), max(biases), threshold


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_every_method_agrees_with_the_plain_implementation(seed, ties):
    rows = random_rows(seed, unscored=0.1, ties=ties)
    found = compute("adjustment", judged(rows, "e"), levels=["claim"])
    assert len(found) == 4 * 5
    for method in CORRECTION_METHODS:
        expected = {system: slow(rows, system, method) for system in "abcd"}
        made = {}
        for system, (mean, worst, threshold) in expected.items():
            row = find(found, method=method, calibration_system=system)
            if row["unidentifiable"]:  # too few labels to be clear of chance
                assert (method, row["mean_abs_bias"]) == ("adjusted_counts", None)
                assert "not clear of 0" in row["reason"]
                continue
            made[system] = mean, worst
            assert row["mean_abs_bias"] == pytest.approx(mean, abs=1e-12)
            assert row["worst_abs_bias"] == pytest.approx(worst, abs=1e-12)
            assert row["threshold"] == threshold
            assert (row["n_systems"], row["unidentifiable"]) == (3, 0)
            assert row["change"] == pytest.approx(mean - slow(rows, system, "none")[0], abs=1e-12)
            assert row["n"] + row["n_unscored"] == len(rows)
            assert row["n_unscored"] == sum(each["e"] is None for each in rows) > 0
        row = find(found, method=method, calibration_system=MEAN_OVER_CALIBRATIONS)
        assert row["n_systems"] == len(made) >= 1
        assert row["mean_abs_bias"] == pytest.approx(np.mean([mean for mean, _ in made.values()]))
        assert row["worst_abs_bias"] == pytest.approx(max(worst for _, worst in made.values()))


def test_at_response_level_the_score_is_the_least_of_the_claims():
    rows = random_rows(7)
    by_response: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        by_response.setdefault((row["system"], row["response_id"]), []).append(row)
    whole = [
        {
            "system": system,
            "label": min(r["label"] for r in claims),
            "e": min(r["e"] for r in claims),
        }
        for (system, _), claims in by_response.items()
    ]
    found = compute("adjustment", judged(rows, "e"), levels=["response"])
    expected = compute("adjustment", judged(whole, "e"), levels=["claim"])
    figures = ("mean_abs_bias", "worst_abs_bias", "threshold", "calibration_error_rate", "n")
    assert [[row[key] for key in figures] for row in found] == [
        [row[key] for key in figures] for row in expected
    ]


def test_unidentifiable_calibrations_are_counted_and_named():
    rows = [
        *[{"system": "no errors", "label": 1, "e": score} for score in (0.2, 0.7, 0.9)],
        *[
            {"system": "equal", "label": label, "e": score}
            for label in (0, 1)
            for score in (0.1, 0.9)
        ],
        *[
            {"system": "fine", "label": label, "e": 0.2 + 0.6 * label}
            for label in (0, 1, 1)
            for _ in range(9)
        ],
        *[
            {"system": "worse", "label": label, "e": 0.8 - 0.6 * label}
            for label in (0, 1)
            for _ in range(9)
        ],
        *[{"system": "few", "label": label, "e": 0.2 + 0.6 * label} for label in (0, 1, 1)],
        *[{"system": "unscored", "label": label, "e": None} for label in (0, 1)],
    ]
    found = compute("adjustment", judged(rows, "e"), levels=["claim"], replicates=50)
    row = find(found, method="adjusted_counts", calibration_system="no errors")
    assert (row["unidentifiable"], row["mean_abs_bias"]) == (1, None)
    assert row["reason"].startswith("no labelled error")
    assert (
        find(found, method="bacc_threshold", calibration_system="no errors")["unidentifiable"] == 1
    )
    assert (
        find(found, method="zero_bias_threshold", calibration_system="no errors")["unidentifiable"]
        == 0
    )
    over = find(found, method="adjusted_counts", calibration_system=MEAN_OVER_CALIBRATIONS)
    assert (over["n_systems"], over["unidentifiable"]) == (1, 5)
    worse = find(found, method="adjusted_counts", calibration_system="worse")
    assert (worse["unidentifiable"], worse["mean_abs_bias"]) == (1, None)
    assert worse["reason"].startswith("TNR − FNR is not clear of 0")
    few = find(found, method="adjusted_counts", calibration_system="few")
    assert few["reason"].startswith("TNR − FNR is not clear of 0"), (
        "three claims do not show that it beats chance"
    )
    assert (
        over["mean_abs_bias"]
        == find(found, method="adjusted_counts", calibration_system="fine")["mean_abs_bias"]
    )
    for text in (
        "no errors: no labelled error",
        "equal, few, worse: TNR − FNR",
        "unscored: no labelled claim",
    ):
        assert text in over["reason"]


def test_each_systems_own_bias_is_the_mean_over_the_others_calibrations():
    """The same as of two systems at a time, of which each corrects the other one."""
    rows = random_rows(5, unscored=0.1)
    found = compute("adjustment", judged(rows, "e"), levels=["claim"], replicates=100)
    for method in CORRECTION_METHODS:
        for system in "abcd":
            alone = []
            for other in set("abcd") - {system}:
                two = [row for row in rows if row["system"] in (system, other)]
                pair = compute("adjustment", judged(two, "e"), levels=["claim"])
                alone.append(find(pair, method=method, calibration_system=system)["bias"])
            row = find(found, method=method, calibration_system=system)
            assert row["bias"] == pytest.approx(
                np.mean([bias for bias in alone if bias is not None])
            )
            if method in INTERVAL_METHODS:
                assert row["bias_low"] <= row["bias"] <= row["bias_high"]
            else:
                assert row["bias_low"] is None
                assert "no interval for adjusted_error_rate, bias: only claims" in row["reason"]
            assert row["adjusted_error_rate"] - row["bias"] == pytest.approx(
                row["calibration_error_rate"]
            )


def test_of_many_systems_the_best_method_alone_has_a_row_for_each(monkeypatch):
    table = judged(random_rows(5), "e")
    whole = compute("adjustment", table, levels=["claim"])
    monkeypatch.setattr("factaudit.audit.calibration.MOST_SYSTEMS", 3)
    found = compute("adjustment", table, levels=["claim"], replicates=50)
    means = [row for row in found if row["calibration_system"] == MEAN_OVER_CALIBRATIONS]
    assert [row["method"] for row in means] == list(CORRECTION_METHODS)
    best = min(means, key=lambda row: row["mean_abs_bias"])["method"]
    single = [row for row in found if row["calibration_system"] != MEAN_OVER_CALIBRATIONS]
    assert {row["method"] for row in single} == {best}
    for row in single:
        same = find(whole, method=best, calibration_system=row["calibration_system"])
        assert row["bias"] == same["bias"]
        assert row["bias_low"] is None
