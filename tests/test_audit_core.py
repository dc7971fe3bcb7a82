"""What intervals and tests are made of: against published examples, scikit-learn, scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from audit_tables import judged
from scipy.stats import fisher_exact, norm, pearsonr
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from factaudit.stats.agreement import intersection_over_union_interval, kappa_interval
from factaudit.stats.bacc_threshold import cross_validate_threshold, find_best_bacc_threshold
from factaudit.stats.cluster_jackknife import jackknife_slope_interval
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    count_codes_by_cluster,
    estimate_clustered_proportions,
    wilson_interval,
)
from factaudit.stats.mover import discordant_difference_interval, least_proportion_interval, mover_weighted_sum
from factaudit.stats.permutation import studentised_permutation_p
from factaudit.stats.proportion_test import fisher_exact_p
from factaudit.stats.rank_correlation import fisher_z_interval, kendall_tau_interval
from factaudit.stats.roc import RocRankedScores
from factaudit.stats.slope_moments import least_squares_slope


def single(*hits_of: tuple[int, int]) -> ClusterCounts:
    """Groups of independent claims, kinds of clusters of one: counts are [hit, miss]."""
    group = np.repeat(np.arange(len(hits_of)), 2)
    times = np.array([[hits, n - hits] for hits, n in hits_of]).ravel()
    return ClusterCounts(group, times, np.tile(np.eye(2, dtype=np.int64), (len(hits_of), 1)), len(hits_of))


def share_of(clusters: ClusterCounts):
    return estimate_clustered_proportions(clusters, clusters.counts[:, :1], clusters.counts.sum(1, keepdims=True))


def test_independent_claims_have_wilsons_interval():
    low, high = share_of(single((30, 1000), (999, 1000), (0, 1000))).wilson_intervals(0.95)
    for at, hits in enumerate((30, 999, 0)):
        expected = proportion_confint(hits, 1000, method="wilson")
        assert (low[at, 0], high[at, 0]) == (pytest.approx(expected[0], abs=3e-4), pytest.approx(expected[1], abs=3e-4))


def test_nothing_seen_is_not_nothing_possible():
    low, high = share_of(single((0, 8), (8, 8), (1, 1), (0, 0))).wilson_intervals(0.95)
    assert low[0, 0] == 0
    assert 0.3 < high[0, 0] < 0.5
    assert high[1, 0] == 1
    assert 0.5 < low[1, 0] < 0.7
    assert np.isnan([low[2, 0], high[2, 0], low[3, 0], high[3, 0]]).all(), "one cluster, or none, has no interval"


def test_kinds_of_clusters_give_what_the_clusters_give():
    random = np.random.default_rng(0)
    label, said = random.integers(0, 2, (2, 300))
    rows = [
        {"label": int(a), "e": int(b), "dataset": "xy"[i % 2]} for i, (a, b) in enumerate(zip(label, said, strict=True))
    ]
    alone = judged(rows, "e")
    groups = np.arange(300) % 2
    codes = alone.label.astype(int) * 2 + alone.prediction[0]
    kinds = count_codes_by_cluster(alone.cluster_codes, groups, 2, codes, 4)
    assert len(kinds.group) <= 8
    pairs = ClusterCounts(groups, np.ones(300, dtype=int), np.eye(4, dtype=int)[codes], 2)
    for each in (
        estimate_clustered_proportions(c, c.counts[:, [3]], c.counts[:, [2]] + c.counts[:, [3]]) for c in (kinds, pairs)
    ):
        assert each.n_clusters[:, 0].tolist() == [label[0::2].sum(), label[1::2].sum()]
        assert each.variance == pytest.approx(
            estimate_clustered_proportions(pairs, pairs.counts[:, [3]], pairs.counts[:, 2:].sum(1)[:, None]).variance
        )
    together = judged([row | {"doc_id": str(i // 10)} for i, row in enumerate(rows)], "e")
    found = count_codes_by_cluster(together.cluster_codes, groups, 2, codes, 4)
    assert found.times @ found.counts.sum(1) == 300
    assert len(found.times) < 60  # equal clusters are one kind, sorted by their counts from the last one on
    order = np.column_stack([found.group, found.counts[:, ::-1]]).tolist()
    assert order == sorted(order)
    assert np.bincount(found.group, found.times).tolist() == [30, 30]


def test_linearised_variance_is_the_jackknifes():
    random = np.random.default_rng(1)
    of = random.integers(1, 9, 400)
    hits = random.binomial(of, np.repeat(random.random(40), 10))
    clusters = ClusterCounts(np.zeros(400, dtype=int), np.ones(400, dtype=int), np.stack([hits, of], 1), 1)
    found = estimate_clustered_proportions(clusters, hits[:, None], of[:, None])
    left = (hits.sum() - hits) / (of.sum() - of)
    jackknife = 399 / 400 * ((left - left.mean()) ** 2).sum()
    assert found.variance[0, 0] == pytest.approx(jackknife, rel=0.02)


def test_mover_gives_newcombes_interval_of_a_difference():
    """Newcombe 1998 (Interval estimation for the difference), Table II: 56/70 - 48/80, method 10: 0.0524 to 0.3339."""
    point, n = np.array([56 / 70, 48 / 80]), np.array([70.0, 80.0])
    limits = wilson_interval(point, n, np.array([1e9, 1e9]), 0.95)
    difference, (low, high) = mover_weighted_sum(point, limits, np.array([1.0, -1.0]))
    assert difference == pytest.approx(0.2)
    assert (low, high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))
    assert mover_weighted_sum(point, limits, np.array([1.0, -1.0]), np.array([[1, 0.4], [0.4, 1]]))[1][0] > low


def test_a_paired_difference_of_nothing_has_a_width():
    clusters = ClusterCounts(np.zeros(50, dtype=int), np.ones(50, dtype=int), np.zeros((50, 1), dtype=int), 1)
    none = estimate_clustered_proportions(clusters, np.zeros((50, 2)), np.full((50, 2), 4))
    difference, (low, high) = discordant_difference_interval(none, np.array([1.0, -1.0]), 0.95)
    assert (difference[0], low[0]) == (0, -high[0])
    assert 0 < high[0] < 0.05


def test_the_least_share_is_between_its_ends():
    clusters = ClusterCounts(np.zeros(600, dtype=int), np.ones(600, dtype=int), np.zeros((600, 1), dtype=int), 1)
    of = np.tile(np.eye(3), (200, 1))
    hits = of * (np.arange(600)[:, None] // 3 < [20, 24, 90])  # 20, 24 and 90 of 200
    three = estimate_clustered_proportions(clusters, hits, of)
    (low,), (high,) = least_proportion_interval(three, 0.95)
    alone = three.wilson_intervals(0.95)
    assert low < 0.1 < high
    assert high - low < 1.3 * (alone[1] - alone[0])[0, 0]
    (only_low,), (only_high,) = least_proportion_interval(
        estimate_clustered_proportions(clusters, hits[:, :1], of[:, :1]), 0.95
    )
    assert (only_low, only_high) == (pytest.approx(alone[0][0, 0]), pytest.approx(alone[1][0, 0]))


def test_curves_are_scikit_learns_and_their_influence_is_the_derivative():
    random = np.random.default_rng(2)
    n = 240
    group, label, cluster = random.integers(0, 3, n), random.integers(0, 2, n), np.arange(n)
    score = np.round(random.normal(label * 0.8, 1), 1)
    scored = RocRankedScores.of(group, label, score, cluster, 3)
    auc, precision = scored.auc(), scored.average_precision()
    for at in range(3):
        inside = group == at
        y, s = label[inside], score[inside]
        assert auc.point[at] == pytest.approx(roc_auc_score(y, s), abs=1e-12)
        assert precision.point[at] == pytest.approx(average_precision_score(1 - y, -s), abs=1e-12)
        step, weights = 1e-6, np.ones((inside.sum(),) * 2) + 1e-6 * np.eye(inside.sum())
        for curve, figure in (
            (auc, lambda w, y=y, s=s: roc_auc_score(y, s, sample_weight=w)),
            (precision, lambda w, y=y, s=s: average_precision_score(1 - y, -s, sample_weight=w)),
        ):
            change = np.array([(figure(w) - curve.point[at]) / step for w in weights])
            assert curve.variance[at] == pytest.approx((change**2).sum() * len(y) / (len(y) - 1), rel=1e-3)
    low, high = auc.log_odds_intervals(0.95)
    assert ((low < auc.point) & (auc.point < high)).all()


def test_a_perfect_score_has_an_interval_and_one_class_has_none():
    scored = RocRankedScores.of(
        np.array([0] * 8 + [1] * 4), np.array([0, 1] * 4 + [1] * 4), np.array([0.0, 1] * 4 + [1] * 4), np.arange(12), 2
    )
    auc = scored.auc()
    low, high = auc.log_odds_intervals(0.95)
    assert (auc.point[0], high[0]) == (1.0, 1.0)
    assert 0.2 < low[0] < 0.9
    assert np.isnan([auc.point[1], low[1]]).all()
    # Of errors in a single document nothing is known of the next one, however many documents have correct claims.
    label, score = np.array([0, 0, 0, *[1] * 9]), np.linspace(0.4, 0.6, 12)[::-1]
    one = RocRankedScores.of(np.zeros(12, dtype=int), label, score, np.array([0, 0, 0, *range(9)]), 1)
    assert np.isnan(one.auc().log_odds_intervals(0.95)).all()


def test_the_best_threshold_by_brute_force_and_of_other_scales():
    random = np.random.default_rng(3)
    for _ in range(20):
        label, score = random.integers(0, 2, 40), np.round(random.normal(0, 50, 40))
        if len(set(label)) < 2:
            continue
        found = find_best_bacc_threshold(label, score)
        best = max(balanced_accuracy_score(label, score > cut) for cut in [-1e9, *score])
        assert balanced_accuracy_score(label, score > found) == pytest.approx(best)
    assert find_best_bacc_threshold(np.ones(4), np.arange(4.0)) is None


def test_a_tuned_threshold_is_tried_on_documents_that_it_has_not_seen():
    random = np.random.default_rng(4)
    cluster = np.repeat(np.arange(40), 5)
    label = random.integers(0, 2, 200)
    noise = random.random(200)
    tuned = cross_validate_threshold(label, noise, cluster)
    assert balanced_accuracy_score(label, noise > tuned.threshold) > 0.52
    assert balanced_accuracy_score(label, tuned.prediction) < balanced_accuracy_score(label, noise > tuned.threshold)
    assert len(tuned.thresholds) == 5
    again = cross_validate_threshold(label, noise, cluster)
    assert (again.prediction == tuned.prediction).all()
    good = cross_validate_threshold(label, 100.0 * label + noise, cluster)
    assert balanced_accuracy_score(label, good.prediction) == 1


def test_kappa_and_iou():
    table = np.array([[120, 30], [20, 80]])
    kinds = ClusterCounts(np.zeros(4, dtype=int), table.ravel(), np.eye(4, dtype=int), 1)
    low, high = kappa_interval(kinds, kinds.counts.reshape(-1, 2, 2), 0.95)
    expected = cohens_kappa(table)
    assert (low[0], high[0]) == (
        pytest.approx(expected.kappa_low, abs=0.02),
        pytest.approx(expected.kappa_upp, abs=0.02),
    )
    low, high = intersection_over_union_interval(kinds, kinds.counts.reshape(-1, 2, 2), 0, 0.95)
    wilson_ends = proportion_confint(120, 170, method="wilson")
    assert (low[0], high[0]) == (pytest.approx(wilson_ends[0], abs=5e-3), pytest.approx(wilson_ends[1], abs=5e-3))
    same = ClusterCounts(np.zeros(2, dtype=int), np.array([40, 60]), np.eye(4, dtype=int)[[0, 3]], 1)
    low, high = kappa_interval(same, same.counts.reshape(-1, 2, 2), 0.95)
    assert high[0] == 1
    assert 0.8 < low[0] < 1, "two that always agreed need not always agree"
    for often in range(1, 12):
        constant = ClusterCounts(np.zeros(2, dtype=int), np.array([often, 12 - often]), np.eye(4, dtype=int)[[2, 3]], 1)
        low, high = kappa_interval(constant, constant.counts.reshape(-1, 2, 2), 0.95)
        assert np.isnan([low[0], high[0]]).all(), "with one that always says the same kappa is 0, and cannot vary"


def test_slopes():
    random = np.random.default_rng(6)
    x, document = random.random(600), np.repeat(np.arange(60), 10)
    y = (random.random(600) < 0.3 + 0.5 * x).astype(float)
    terms = np.stack([np.ones(600), x, y, x * y, x * x], 1)
    sums = np.stack([np.bincount(document, column) for column in terms.T], 1)
    clusters = ClusterCounts(np.zeros(60, dtype=int), np.ones(60, dtype=int), sums, 1)
    low, high = jackknife_slope_interval(clusters, 0.95)
    assert least_squares_slope(terms.sum(0)) == pytest.approx(np.polyfit(x, y, 1)[0])
    assert low[0] < 0.5 < high[0]
    flat = ClusterCounts(np.zeros(60, dtype=int), np.ones(60, dtype=int), sums * [1, 1, 0, 0, 1], 1)
    assert np.isnan(jackknife_slope_interval(flat, 0.95)[0][0])
    few = ClusterCounts(np.zeros(9, dtype=int), np.ones(9, dtype=int), sums[:9], 1)
    assert np.isnan(jackknife_slope_interval(few, 0.95)[0][0])


def test_fishers_z_is_scipys():
    random = np.random.default_rng(7)
    x = random.random(6)
    y = x + random.random(6)
    found = pearsonr(x, y)
    low, high = fisher_z_interval(np.array(found.statistic), np.array(6), 0.95)
    assert (low, high) == (
        pytest.approx(found.confidence_interval().low),
        pytest.approx(found.confidence_interval().high),
    )
    assert np.isnan(fisher_z_interval(np.array([0.5, 1.0]), np.array([3, 6]), 0.95)).all()


def test_tau_leaves_open_what_the_labels_leave_open():
    random = np.random.default_rng(8)
    rates = np.array([0.1, 0.2, 0.3, 0.4])
    sure = rates + random.normal(0, 0.001, (200, 4))
    assert kendall_tau_interval(sure, sure, 0.95) == (1, 1)
    assert kendall_tau_interval(sure, 1 - sure, 0.95) == (-1, -1)
    blurred = rates + random.normal(0, 1, (200, 4))
    assert kendall_tau_interval(sure, blurred, 0.95) == (-1, 1)


def test_the_test_of_equal_bacc_tests_equal_bacc():
    """a is better on one class and worse on the other: exchanging predictions finds nothing in a clear difference."""
    random = np.random.default_rng(9)
    gains = np.zeros((600, 2))
    gains[:300, 0] = random.choice([1.0, 0.0], 300, p=[0.6, 0.4])
    gains[300:, 1] = random.choice([-1.0, 0.0], 300, p=[0.5, 0.5])
    sizes = np.repeat(np.eye(2), 300, axis=0)
    weights = np.array([0.5, 0.5])
    p = studentised_permutation_p(gains, sizes, weights, [0], 4000)
    up, down = gains[:300, 0].mean(), gains[300:, 1].mean()
    z = (up + down) / np.sqrt((up * (1 - up) + -down * (1 + down)) / 300)
    assert p == pytest.approx(2 * norm.sf(z), abs=0.03)
    signs = np.random.default_rng(0).integers(0, 2, (4000, 600)) * 2 - 1
    exchanged = (np.abs(signs @ gains.sum(1)) >= abs(gains.sum())).mean()
    assert exchanged > 2 * p
    assert studentised_permutation_p(np.zeros((5, 2)), np.ones((5, 2)), weights, [0], 50) == 1
    assert studentised_permutation_p(gains[:300], sizes[:300], weights, [0], 50) is None


@pytest.mark.parametrize("clusters", [7, 29])
@pytest.mark.parametrize("weight", [1.0, 1 / 3, 0.7])
def test_a_difference_without_variance_is_only_reached_by_all_signs_alike(clusters, weight):
    gains, sizes = np.full((clusters, 1), -1), np.ones((clusters, 1), dtype=np.int64)
    found = studentised_permutation_p(gains, sizes, np.array([weight]), [0], 4000)
    assert found == pytest.approx(2.0 ** (1 - clusters), abs=0.006)


def test_fishers_exact_test_is_scipys():
    random = np.random.default_rng(0)
    n_a, n_b = random.integers(1, 40, 300), random.integers(1, 200, 300)
    errors_a, errors_b = random.integers(0, n_a + 1), random.integers(0, n_b + 1)
    expected = [
        fisher_exact([[a, n - a], [b, m - b]])[1] for a, n, b, m in zip(errors_a, n_a, errors_b, n_b, strict=True)
    ]
    np.testing.assert_allclose(fisher_exact_p(errors_a, n_a, errors_b, n_b), expected, rtol=1e-9)
