"""Quantification, headroom and ranking: by hand, and against scipy and statsmodels."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from audit_tables import compute, find, judged
from scipy.stats import kendalltau, pearsonr, t
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportions_ztest

from factaudit import UsageError
from factaudit.stats.agreement import kendall_tau
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.hypothesis_tests import pair_p_values


def of_systems(errors: dict[str, tuple[int, int, int]], dataset: str = "d") -> list[dict]:
    """Per system (n, labelled errors, predicted errors): the first claims are the errors."""
    return [
        {
            "dataset": dataset,
            "system": system,
            "label": int(i >= labelled),
            "e": int(i >= predicted),
        }
        for system, (n, labelled, predicted) in errors.items()
        for i in range(n)
    ]


SYSTEMS = {"a": (100, 10, 30), "b": (80, 24, 20), "c": (120, 12, 12), "d": (50, 25, 1)}


@pytest.mark.parametrize("correction", ["none", "holm"])
def test_orders_agree_with_statsmodels(correction):
    table = judged(of_systems(SYSTEMS), "e")
    pairs = compute("ranking_pairs", table, levels=["claim"], test="z", correction=correction)
    combinations = list(itertools.combinations("abcd", 2))
    assert [tuple(sorted((row["system_a"], row["system_b"]))) for row in pairs] == combinations
    assert all(row["labelled_error_rate_a"] <= row["labelled_error_rate_b"] for row in pairs)
    for kind, at in (("labelled", 1), ("predicted", 2)):
        p = [
            proportions_ztest([SYSTEMS[a][at], SYSTEMS[b][at]], [SYSTEMS[a][0], SYSTEMS[b][0]])[1]
            for a, b in itertools.combinations("abcd", 2)
        ]
        if correction == "holm":
            p = multipletests(p, method="holm")[1]
        assert [row[f"p_{kind}"] for row in pairs] == pytest.approx(p, abs=1e-12)
        for row, value in zip(pairs, p, strict=True):
            (n_a, *errors_a), (n_b, *errors_b) = SYSTEMS[row["system_a"]], SYSTEMS[row["system_b"]]
            lower = errors_a[at - 1] / n_a < errors_b[at - 1] / n_b
            assert row[f"{kind}_order"] == ("=" if value >= 0.05 else "<" if lower else ">")
    summary = compute("ranking", table, levels=["claim"], test="z", correction=correction)[0]
    orders = [(row["labelled_order"], row["predicted_order"]) for row in pairs]
    assert summary["error_rate"] == pytest.approx(np.mean([a != b for a, b in orders]))
    reversed_pairs = [set(pair) == {"<", ">"} for pair in orders]
    assert summary["major_error_rate"] == pytest.approx(np.mean(reversed_pairs))
    assert any(reversed_pairs), "the case is meant to hold a reversed pair"


def test_correlations_agree_with_scipy():
    table = judged(of_systems(SYSTEMS), "e")
    row = compute("ranking", table, levels=["claim"])[0]
    x, y = ([SYSTEMS[s][at] / SYSTEMS[s][0] for s in "abcd"] for at in (1, 2))
    assert row["kendall_tau"] == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    assert row["pearson_r"] == pytest.approx(pearsonr(x, y).statistic, abs=1e-12)
    random = np.random.default_rng(0)
    x, y = random.integers(0, 4, (50, 7)) / 7, random.integers(0, 4, (50, 7)) / 3  # many ties
    for a, b in zip(x, y, strict=True):
        assert kendall_tau(a, b) == pytest.approx(kendalltau(a, b).statistic, abs=1e-12)
    assert np.isnan(kendall_tau(np.ones(3), np.arange(3)))


def test_both_rates_0_or_1_are_equal_and_no_claim_is_undefined():
    errors, n = (
        np.array([[0, 0], [5, 3], [0, 0], [0, 5]]),
        np.array([[5, 9], [5, 3], [0, 4], [40, 5]]),
    )
    alone = ClusterCounts(np.arange(4), np.ones(4, dtype=int), errors, n_groups=4)
    rates, every = estimate_clustered_proportions(alone, errors, n), np.arange(4)
    p = pair_p_values(rates, (every, 0), (every, 1), "z")
    assert p == pytest.approx([1, 1, np.nan, proportions_ztest([0, 5], [40, 5])[1]], nan_ok=True)
    p = pair_p_values(rates, (every, 0), (every, 1))
    assert p == pytest.approx([1, 1, np.nan, 1], nan_ok=True), "one cluster tells nothing"


def test_orders_by_default_know_clusters_and_the_number_of_pairs():
    """20 documents of 5 claims that are all alike: 100 claims are worth 20."""
    errors = {"a": 3, "b": 9, "c": 10}
    rows = [
        {
            "system": system,
            "doc_id": str(at // 5),
            "label": int(at // 5 >= wrong),
            "e": int(at // 5 >= wrong),
        }
        for system, wrong in errors.items()
        for at in range(100)
    ]
    table = judged(rows, "e")
    printed = compute("ranking", table, levels=["claim"], test="z", correction="none")[0]
    assert printed["orderable"] == pytest.approx(2 / 3), (
        "VC's test takes 100 claims for independent"
    )
    assert (printed["n_ordered"], printed["n_ordered_alike"]) == (2, 2)
    found = compute("ranking", table, levels=["claim"])[0]
    assert (found["orderable"], found["error_rate"], found["n_ordered"]) == (0, 0, 0)
    pair = find(compute("ranking_pairs", table, levels=["claim"]), system_a="a", system_b="c")
    pooled = 13 / 40
    p = 2 * t.sf(0.35 / np.sqrt(pooled * (1 - pooled) * 2 / 20), 19)
    assert pair["p_labelled"] == pytest.approx(3 * p, rel=0.2), "Holm: of three pairs the least"


@pytest.mark.parametrize("how", [("z", "none"), ("z", "holm"), ("clustered", "holm")])
def test_bounds_of_ranking_hold_every_completion(how):
    random = np.random.default_rng(4)
    options = {"levels": ["claim"], "test": how[0], "correction": how[1]}
    for _ in range(6 if how == ("z", "none") else 3):
        rows = [
            {
                "system": system,
                "label": int(random.random() < p),
                "e": int(random.random() < q),
                "doc_id": str(at // 2),
            }
            for system, p, q in (("a", 0.95, 0.3), ("b", 0.5, 0.6), ("c", 0.1, 0.9))
            for at in range(int(random.integers(10, 17)))
        ]
        lacking = random.choice(len(rows), 5, replace=False)
        for at in lacking:
            rows[at]["e"] = None
        table = judged(rows, "e")
        row = compute("ranking", table, **options)[0]
        for guess in itertools.product((0, 1), repeat=len(lacking)):
            prediction = table.prediction.copy()
            prediction[0, lacking] = guess
            full = replace(table, prediction=prediction, status=np.zeros_like(table.status))
            complete = compute("ranking", full, **options)[0]
            for key in ("error_rate", "major_error_rate"):
                assert row[f"{key}_min"] - 1e-12 <= complete[key] <= row[f"{key}_max"] + 1e-12
                assert complete[f"{key}_min"] == complete[f"{key}_max"] == complete[key]


def test_an_unknown_system_of_a_group_is_named():
    with pytest.raises(UsageError, match=r"group 'x': unknown system 'ab'"):
        compute("headroom", judged(of_systems(SYSTEMS), "e"), groups={"x": ["ab"]})
