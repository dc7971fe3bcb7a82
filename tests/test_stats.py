"""`factaudit.stats`: its figures are scikit-learn's, SciPy's, statsmodels' and those of papers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from factaudit.stats.agreement import (
    krippendorff_alpha,
    pearson,
    weighted_kappa,
)
from factaudit.stats.calibration import best_bacc_threshold, cross_validate_threshold
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    estimate_clustered_proportions,
    wilson_interval,
)
from factaudit.stats.hypothesis_tests import fisher_exact_p
from factaudit.stats.influence import MIN_CLUSTERS, auc_statistic, interval, mean, slope
from factaudit.stats.mover import (
    least_proportion_interval,
    mover_weighted_sum,
)


def single(*hits_of: tuple[int, int]) -> ClusterCounts:
    """Groups of independent claims, kinds of clusters of one: counts are [hit, miss]."""
    group = np.repeat(np.arange(len(hits_of)), 2)
    times = np.array([[hits, n - hits] for hits, n in hits_of]).ravel()
    return ClusterCounts(
        group, times, np.tile(np.eye(2, dtype=np.int64), (len(hits_of), 1)), len(hits_of)
    )


def share_of(clusters: ClusterCounts):
    return estimate_clustered_proportions(
        clusters, clusters.counts[:, :1], clusters.counts.sum(1, keepdims=True)
    )


def test_a_share_is_as_certain_as_what_it_leaves():
    hits = np.array([5, 5, 5, 3, 5, 5])
    rows = np.stack([hits, 5 - hits], axis=1)
    clusters = ClusterCounts(np.zeros(6, dtype=int), np.ones(6, dtype=int), rows, 1)
    found = [
        estimate_clustered_proportions(clusters, rows[:, [at]], rows.sum(1, keepdims=True))
        for at in (0, 1)
    ]
    assert found[0].effective_n == pytest.approx(found[1].effective_n)
    low, high = found[0].wilson_intervals(0.95)
    assert found[1].wilson_intervals(0.95) == (pytest.approx(1 - high), pytest.approx(1 - low))


def test_one_cluster_tells_neither_how_sure_a_share_is_nor_how_two_go_together():
    assert np.isnan(share_of(single((1, 1))).effective_n).all()
    for rows, of, rests in (([[4, 4], [0, 0]], [4, 4], False), ([[0, 0], [3, 3]], [9, 1], True)):
        hits, denominators = np.array(rows), np.array(of)[:, None].repeat(2, axis=1)
        ones = np.ones(2, dtype=int)
        clusters = ClusterCounts(0 * ones, ones, hits, 1)
        found = estimate_clustered_proportions(clusters, hits, denominators)
        assert (found.rests_on_one == rests).all()


def test_independent_claims_have_wilsons_interval():
    low, high = share_of(single((30, 1000), (999, 1000), (0, 1000))).wilson_intervals(0.95)
    for at, hits in enumerate((30, 999, 0)):
        expected = proportion_confint(hits, 1000, method="wilson")
        assert (low[at, 0], high[at, 0]) == (
            pytest.approx(expected[0], abs=3e-4),
            pytest.approx(expected[1], abs=3e-4),
        )


def test_mover_gives_newcombes_interval_of_a_difference():
    """Newcombe 1998 (Interval estimation for the difference), Table II: 56/70 - 48/80, method 10:
    0.0524 to 0.3339."""
    point, n = np.array([56 / 70, 48 / 80]), np.array([70.0, 80.0])
    limits = wilson_interval(point, n, np.array([1e9, 1e9]), 0.95)
    difference, (low, high) = mover_weighted_sum(point, limits, np.array([1.0, -1.0]))
    assert difference == pytest.approx(0.2)
    assert (low, high) == (pytest.approx(0.0524, abs=5e-5), pytest.approx(0.3339, abs=5e-5))
    assert (
        mover_weighted_sum(point, limits, np.array([1.0, -1.0]), np.array([[1, 0.4], [0.4, 1]]))[1][
            0
        ]
        > low
    )


def test_the_least_share_is_between_its_ends():
    clusters = ClusterCounts(
        np.zeros(600, dtype=int), np.ones(600, dtype=int), np.zeros((600, 1), dtype=int), 1
    )
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


def test_auc_is_scikit_learns():
    random = np.random.default_rng(2)
    label = random.integers(0, 2, 240)
    score = np.round(random.normal(label * 0.8, 1), 1)
    expected = roc_auc_score(label, score)
    assert auc_statistic(label, score).point == pytest.approx(expected, abs=1e-12)
    assert np.isnan(auc_statistic(np.ones(4, dtype=int), np.arange(4.0)).point)


GRADES = np.random.default_rng(3).integers(1, 6, 30).astype(float)
OTHERS = np.clip(GRADES + np.random.default_rng(4).integers(-1, 3, 30), 1, 5)
PAIRS = {
    "mean": lambda a, b: mean(a - b),
    "slope": slope,
    "auc": lambda a, b: auc_statistic((a > 2).astype(int), b),
    "κ": weighted_kappa,
    "r": pearson,
    "α": lambda a, b: krippendorff_alpha(
        np.concatenate([a, b]), np.tile(np.arange(len(a)), 2), len(a)
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_influence_is_what_one_more_unit_changes(name):
    often = np.repeat(np.arange(30), 300)
    whole = PAIRS[name](GRADES[often], OTHERS[often])
    more = [
        PAIRS[name](*(one[np.append(often, unit)] for one in (GRADES, OTHERS))).point
        for unit in range(30)
    ]
    changes = (np.array(more) - whole.point) * len(often)
    assert whole.influence[::300] * len(often) == pytest.approx(
        changes, abs=4e-3 * np.abs(changes).max()
    )
    assert PAIRS[name](GRADES, OTHERS).influence.sum() == pytest.approx(0, abs=0.01)


def test_the_published_examples_of_alpha():
    """Krippendorff 2011, Computing Krippendorff's alpha-reliability: examples C (of interval
    data) and A (of labels)."""
    table = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
            [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
        ]
    )
    _, unit = np.nonzero(table)
    found = krippendorff_alpha(table[table > 0], unit, 12)
    assert found.point == pytest.approx(0.849, abs=5e-4)
    # A: two observers, binary.
    one, two = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    labels = np.array(one + two)
    assert krippendorff_alpha(labels, np.tile(np.arange(10), 2), 10).point == pytest.approx(
        0.095, abs=5e-4
    )
    assert np.isnan(krippendorff_alpha(np.ones(3), np.array([0, 0, 1]), 2).point)


def test_the_interval_of_a_mean_is_that_of_the_means_of_equal_clusters():
    cluster, values = np.repeat(np.arange(12), 4), np.random.default_rng(3).normal(size=48)
    low, high = interval(mean(values), cluster)
    means = values.reshape(12, 4).mean(1)
    assert high - low >= 2 * 2.200985 * means.std(ddof=1) / 12**0.5
    assert high - low == pytest.approx(2 * 2.200985 * means.std(ddof=1) / 12**0.5, rel=0.2)
    for nothing in (
        interval(mean(values[:4]), cluster[:4]),
        interval(mean(values[:0]), cluster[:0]),
    ):
        assert np.isnan(nothing).all(), "of one cluster there is nothing to leave out"
    assert np.isnan(interval(mean(np.full(48, 0.1)), cluster)).all(), "rounding is no variance"


def test_the_best_threshold_by_brute_force_and_of_other_scales():
    random = np.random.default_rng(3)
    for _ in range(20):
        label, score = random.integers(0, 2, 40), np.round(random.normal(0, 50, 40))
        if len(set(label)) < 2:
            continue
        found = best_bacc_threshold(label, score)
        best = max(balanced_accuracy_score(label, score > cut) for cut in [-1e9, *score])
        assert balanced_accuracy_score(label, score > found) == pytest.approx(best)
    assert best_bacc_threshold(np.ones(4), np.arange(4.0)) is None


def test_a_tuned_threshold_is_tried_on_documents_that_it_has_not_seen():
    random = np.random.default_rng(4)
    cluster = np.repeat(np.arange(40), 5)
    label = random.integers(0, 2, 200)
    noise = random.random(200)
    predicted = cross_validate_threshold(label, noise, cluster)
    on_itself = balanced_accuracy_score(label, noise > best_bacc_threshold(label, noise))
    assert on_itself > 0.52
    assert balanced_accuracy_score(label, predicted) < on_itself
    assert (cross_validate_threshold(label, noise, cluster) == predicted).all()
    assert (
        balanced_accuracy_score(
            label, cross_validate_threshold(label, 100.0 * label + noise, cluster)
        )
        == 1
    )


def test_kappa():
    table = np.array([[120, 30], [20, 80]])
    a, b = (
        np.repeat(answers, table.ravel()).astype(float) for answers in ([0, 0, 1, 1], [0, 1] * 2)
    )
    expected = cohens_kappa(table)
    ends = interval(weighted_kappa(a, b), np.arange(250), "fisher", telling=a != b)
    assert ends == pytest.approx((expected.kappa_low, expected.kappa_upp), abs=0.02)
    same = interval(weighted_kappa(a, a), np.arange(250), "fisher", telling=a != a)
    assert np.isnan(same).all(), "two that always agreed need not always agree: no zero width"


def test_slopes():
    random = np.random.default_rng(6)
    x, document = random.random(600), np.repeat(np.arange(60), 10)
    y = (random.random(600) < 0.3 + 0.5 * x).astype(float)
    line = slope(x, y)
    assert line.point == pytest.approx(np.polyfit(x, y, 1)[0])
    low, high = interval(line, document)
    assert low < 0.5 < high
    assert np.isnan(interval(slope(x, np.ones(600)), document)[0])
    assert np.isnan(interval(slope(x[:90], y[:90]), document[:90], min_clusters=MIN_CLUSTERS)[0])


def test_fishers_exact_test_is_scipys():
    random = np.random.default_rng(0)
    n_a, n_b = random.integers(1, 40, 300), random.integers(1, 200, 300)
    errors_a, errors_b = random.integers(0, n_a + 1), random.integers(0, n_b + 1)
    expected = [
        fisher_exact([[a, n - a], [b, m - b]])[1]
        for a, n, b, m in zip(errors_a, n_a, errors_b, n_b, strict=True)
    ]
    np.testing.assert_allclose(fisher_exact_p(errors_a, n_a, errors_b, n_b), expected, rtol=1e-9)
