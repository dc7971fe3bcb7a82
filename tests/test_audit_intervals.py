"""Intervals: what is resampled, that statistics give what rows would, and that 95 % intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from audit_tables import find, judged
from scipy.special import ndtr, stdtrit
from scipy.stats import binom

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.system_rankings import iterate_ranking_cases, resample_system_errors
from factaudit.audit import list_computable_audits
from factaudit.audit.adjusted_bias import compute_adjusted_bias
from factaudit.audit.differences import compute_evaluator_differences
from factaudit.audit.ranking import compute_ranking_agreement
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.errors import UsageError
from factaudit.stats import cluster_bootstrap
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    estimate_clustered_proportions,
    wilson_interval,
)
from factaudit.stats.distinct_rows import count_distinct_clusters, count_distinct_rows
from factaudit.stats.hypothesis_tests import permutation_p


def clusters(rows: list[dict]) -> list[set[int]]:
    codes = judged(rows, "e").cluster_codes
    return sorted((set(np.flatnonzero(codes == code).tolist()) for code in set(codes.tolist())), key=min)


def test_clusters_are_documents_else_responses_else_claims():
    rows = [
        {"doc_id": "1", "system": "a", "response_id": "x"},
        {"doc_id": "1", "system": "b", "response_id": "x"},
        {"doc_id": "2", "system": "a", "response_id": "y"},
        {"doc_id": None, "system": "a", "response_id": "z"},
        {"doc_id": None, "system": "a", "response_id": "z"},
        {"doc_id": None, "system": "b", "response_id": "z"},
        {"doc_id": None, "system": "b", "response_id": None},
        {"doc_id": None, "system": "b", "response_id": None},
        {"doc_id": "1", "system": "b", "response_id": None},
        {"doc_id": "1", "system": "a", "response_id": "x", "dataset": "another"},
    ]
    rows = [row | {"e": 1} for row in rows]
    assert clusters(rows) == [{0, 1, 8}, {2}, {3, 4}, {5}, {6}, {7}, {9}]


def test_a_response_that_names_several_documents_stays_whole():
    rows = [{"system": "a", "response_id": "x", "doc_id": str(i), "e": 1} for i in range(3)]
    rows += [{"system": "a", "response_id": "y", "doc_id": d, "e": 1} for d in ("0", None)]
    assert clusters(rows) == [{0, 1, 2}, {3, 4}]


def table(seed: int = 0, n: int = 400) -> Judgements:
    random = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        label = int(random.random() < 0.6)
        rows.append(
            {
                "dataset": "x" if number % 3 else "y",
                "doc_id": str(number // 7),
                "system": "abc"[number % 3],
                "response_id": str(number // 14),
                "label": label if random.random() > 0.05 else None,
                "e": int(random.random() < 0.4 + 0.4 * label) if random.random() > 0.05 else None,
                "f": int(random.random() < 0.6),
                "pair_of": None if number % 5 else f"c{number + 1}",
            }
        )
    return judged(rows, "e", "f")


def test_replicates_of_equal_documents_are_the_observed_numbers():
    document = [("a", 1, 0), ("a", 0, 0), ("a", None, 1), ("b", 1, 1), ("b", 0, None), (None, 0, 1)]
    rows = [
        {"doc_id": str(doc), "system": system, "label": label, "e": said}
        for doc in range(40)
        for system, label, said in document
    ]
    joined = judged(rows, "e")
    (cases,) = iterate_ranking_cases(joined, joined.make_groups("claim", systems=True))
    (drawn,) = resample_system_errors(cases, ClusterBootstrap(replicates=5, seed=3))
    # of systems a and b: labelled errors, labels, predicted errors among what is scored, predictions
    assert drawn.tolist() == [[[40, 80, 80, 80], [40, 80, 0, 40]]] * 5


def test_distinct_clusters_and_their_numbers_give_the_clusters_back():
    random = np.random.default_rng(0)
    statistics = random.integers(0, 3, (500, 3))
    kinds, times = count_distinct_rows(statistics)
    assert sorted(map(tuple, np.repeat(kinds, times, axis=0))) == sorted(map(tuple, statistics))
    assert len({tuple(kind) for kind in kinds}) == len(kinds)
    shuffled = count_distinct_rows(random.permutation(statistics))
    assert (shuffled[0] == kinds).all()
    assert (shuffled[1] == times).all()
    codes = random.integers(0, 4, 60)
    for groups in (np.arange(60), np.arange(60) // 3):
        kinds, times = count_distinct_clusters(groups, codes, 4)
        assert (times @ kinds).tolist() == np.bincount(codes, minlength=4).tolist()
        assert times.sum() == len(set(groups.tolist()))


@pytest.mark.parametrize("whole", [True, False])
def test_more_clusters_than_units_are_drawn_in_random_groups_that_vary_as_much(monkeypatch, whole):
    monkeypatch.setattr(cluster_bootstrap, "MOST_RESAMPLED_UNITS", 1000)
    monkeypatch.setattr(cluster_bootstrap, "_MULTINOMIAL_PAYS", 10**9)
    random, intervals = np.random.default_rng(0), ClusterBootstrap(replicates=4000, seed=1)
    n = random.integers(1, 6, 5300)
    errors = random.binomial(n, random.beta(0.5, 2, len(n)))
    statistics = np.column_stack([errors, n]) if whole else np.column_stack([errors, n]) / 7
    unit = intervals.assign_resampled_units(len(n), "d")
    assert sorted(set(np.bincount(unit).tolist())) == [5, 6]
    assert not np.array_equal(unit, intervals.assign_resampled_units(len(n), "other"))
    (sums,) = intervals.resample_sums([statistics], "d")
    (again,) = intervals.resample_sums([random.permutation(statistics)], "d")
    np.testing.assert_allclose(sums, again)
    drawn = np.concatenate(list(intervals.draw_cluster_weights(1000, "d")))
    kinds, times = count_distinct_rows(statistics)
    by_unit = np.zeros((1000, 2))
    np.add.at(by_unit, unit, np.repeat(kinds, times, axis=0))
    np.testing.assert_allclose(sums, drawn @ by_unit)
    rate = errors.sum() / n.sum()
    standard_error = np.sqrt(((errors - rate * n) ** 2).sum()) / n.sum()
    ratio = sums[:, 0] / sums[:, 1]
    assert ratio.mean() == pytest.approx(rate, abs=standard_error / 10)
    # 2.2 % by chance of 1,000 units and 1.1 % of 4,000 replicates, three times over.
    assert ratio.std() == pytest.approx(standard_error, rel=0.075)
    monkeypatch.setattr(cluster_bootstrap, "MOST_RESAMPLED_UNITS", len(n))
    (one_by_one,) = intervals.resample_sums([statistics], "d")
    assert ratio.std() == pytest.approx((one_by_one[:, 0] / one_by_one[:, 1]).std(), rel=0.075)


def test_corrections_of_many_clusters_are_resampled_in_random_groups_too(monkeypatch):
    joined = clustered(np.random.default_rng(3), n_docs=600)
    found = []
    for most in (150, 600):
        monkeypatch.setattr(cluster_bootstrap, "MOST_RESAMPLED_UNITS", most)
        rows = compute_adjusted_bias(joined, levels=["claim"], intervals=ClusterBootstrap(1000, seed=2))
        found.append([row for row in rows if row["method"] in ("none", "adjusted_counts")])
    grouped, each = ([(row["bias_low"], row["bias_high"]) for row in rows] for rows in found)
    assert len(each) == 8
    assert [row["bias"] for row in found[0]] == [row["bias"] for row in found[1]]
    widths = [np.diff(np.array(ends, dtype=float), axis=1)[:, 0] for ends in (grouped, each)]
    assert not np.array_equal(*widths)
    assert np.mean(widths[0] / widths[1]) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("n_clusters", [None, 3, 40])
def test_percentiles_are_numpys_to_the_last_digit(n_clusters):
    random = np.random.default_rng(5)
    replicates = random.random((301, 4, 6)).round(2)
    replicates[random.random(replicates.shape) < 0.2] = np.nan
    replicates[:200, 1] = np.nan
    replicates[:, 2, 3], replicates[:, 3, 0] = np.nan, random.random(301)
    low, high = ClusterBootstrap(replicates=301).percentile_ends(replicates, n_clusters)
    tail = (1 - 0.95) / 2
    if n_clusters is not None:
        tail = ndtr(-stdtrit(n_clusters - 1, 1 - tail) * np.sqrt(n_clusters / (n_clusters - 1)))
    for place in np.ndindex(4, 6):
        mine = replicates[:, *place]
        ends = np.nanquantile(mine, [tail, 1 - tail]) if np.isnan(mine).mean() <= 0.5 else [np.nan, np.nan]
        np.testing.assert_allclose([low[place], high[place]], ends)


def test_no_difference_on_paper_is_never_significant():
    # 0.1 + 0.2 - 0.3 in the place of 0: of three clusters a gains one and two claims, and loses three.
    gains, sizes = np.array([[1], [2], [-3], [0]]), np.full((4, 1), 10)
    assert permutation_p(gains, sizes, np.array([0.1]), [0], 500) == 1.0


def test_all_who_resample_as_many_clusters_of_a_dataset_share_the_draws():
    intervals, statistics = ClusterBootstrap(replicates=50, seed=9), np.random.default_rng(0).integers(0, 9, (30, 2))
    (drawn,) = intervals.draw_cluster_weights(30, "d")
    (again,) = ClusterBootstrap(replicates=50, seed=9).draw_cluster_weights(30, "d")
    np.testing.assert_array_equal(drawn, again)
    assert not np.array_equal(drawn, next(iter(intervals.draw_cluster_weights(30, "other"))))
    assert not np.array_equal(drawn, next(iter(ClusterBootstrap(replicates=50, seed=8).draw_cluster_weights(30, "d"))))
    kinds, times = count_distinct_rows(statistics)
    several = intervals.resample_sums([statistics, statistics + 0.5], "d")
    for found, rows in zip(
        several, (np.repeat(kinds, times, axis=0), np.repeat(kinds + 0.5, times, axis=0)), strict=True
    ):
        np.testing.assert_array_equal(found, drawn @ rows)


def test_seeds_reproduce_and_another_dataset_or_block_size_changes_nothing(monkeypatch):
    joined = table()
    intervals = ClusterBootstrap(replicates=100, seed=7)
    rows = {name: audit.compute(joined, intervals=intervals) for name, audit in list_computable_audits().items()}
    assert rows == {
        name: audit.compute(joined, intervals=ClusterBootstrap(replicates=100, seed=7))
        for name, audit in list_computable_audits().items()
    }
    assert rows["rates"] == compute_evaluator_rates(joined, intervals=ClusterBootstrap(replicates=9, seed=8)), (
        "not resampled"
    )
    assert rows["differences"] != compute_evaluator_differences(
        joined, intervals=ClusterBootstrap(replicates=100, seed=8)
    )
    monkeypatch.setattr("factaudit.stats.cluster_bootstrap._BLOCK_NUMBERS", 500)
    assert rows["ranking"] == compute_ranking_agreement(joined, intervals=intervals)
    inside = np.flatnonzero(joined.claims["dataset"] == "x")
    alone = Judgements(
        joined.claims.iloc[inside].reset_index(drop=True),
        joined.evaluators,
        joined.label[inside],
        joined.prediction[:, inside],
        joined.score[:, inside],
        joined.status[:, inside],
    )
    assert [row for row in rows["rates"] if row["dataset"] == "x"] == [
        row for row in compute_evaluator_rates(alone, intervals=intervals) if row["dataset"] == "x"
    ]


def test_nothing_to_resample_is_no_interval():
    rows = [{"doc_id": "1", "label": i % 2, "e": int(i > 3)} for i in range(8)]
    row = find(compute_evaluator_rates(judged(rows, "e"), intervals=ClusterBootstrap(50)), dataset="d")
    assert row["bacc"] is not None
    assert row["bacc_low"] is row["bacc_high"] is row["ppr_low"] is None
    lone = [{"label": 1, "e": i % 2} for i in range(9)] + [{"label": 0, "e": 0}]
    row = find(compute_evaluator_rates(judged(lone, "e"), intervals=ClusterBootstrap(50)), dataset="d")
    assert row["tnr"] == 1.0
    assert row["tnr_low"] is row["bacc_high"] is None
    assert row["tpr_low"] < row["tpr"] < row["tpr_high"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"replicates": 0}, "at least 1"), ({"confidence": 95}, "found 95"), ({"seed": -1}, "found -1")],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        ClusterBootstrap(**arguments)


def clustered(random: np.random.Generator, n_docs: int = 120) -> Judgements:
    """Claims of two systems on documents, some hard and some easy: labels and predictions agree within a document."""
    rows = []
    for doc in range(n_docs):
        shift = random.choice([-0.15, 0.15])
        for system, errors in (("a", 0.3), ("b", 0.5)):
            for _ in range(int(random.integers(1, 6))):
                label = int(random.random() > errors + shift)
                good = 0.8 if label else 0.6
                right = random.random() < good + shift * (-1 if label else 1)
                rows.append({"doc_id": str(doc), "system": system, "label": label, "e": label if right else 1 - label})
    return judged(rows, "e")


@pytest.mark.parametrize("n", [20, 30, 50, 100])
def test_rare_shares_are_held_exactly(n: int) -> None:
    """Over all true shares from 0.1 to 30 %: Wilson's own limits hold some in 85 %."""
    hits = np.arange(n + 1)
    low, high = wilson_interval(hits / n, np.full(n + 1, float(n)), np.full(n + 1, n - 1), 0.95)
    held = [binom.pmf(hits, n, share)[(low <= share) & (share <= high)].sum() for share in np.linspace(0.001, 0.3, 300)]
    assert min(held) > 0.92
    assert np.mean(held) < 0.975


def test_a_large_cluster_counts_for_what_it_moves() -> None:
    """The variance is that of the jackknife, and unequal clusters are worth fewer degrees of freedom."""
    counts = np.array([[9, 20], *[[1, 4], [0, 4], [1, 8], [2, 8]] * 4])
    n = len(counts)
    clusters = ClusterCounts(np.zeros(n, dtype=int), np.ones(n, dtype=int), counts, n_groups=1)
    found = estimate_clustered_proportions(clusters, counts[:, :1], counts[:, 1:])
    left = [np.delete(counts, at, 0).sum(0) for at in range(n)]
    without = np.array([hits / of for hits, of in left])
    assert found.variance.item() == pytest.approx((n - 1) / n * ((without - found.point.item()) ** 2).sum())
    size = counts[:, 1]
    alike = (found.n / found.effective_n - 1) / (found.cluster_size - 1)
    part = (size * (1 + (size - 1) * alike.item())).astype(float)  # of the variance, where units are so much alike
    assert found.degrees_of_freedom.item() == pytest.approx(part.sum() ** 2 / (part**2).sum() - 1)
    assert 1 < found.degrees_of_freedom.item() < size.sum() ** 2 / (size**2).sum() - 1
