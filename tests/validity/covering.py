"""How often do the 95 % intervals of a benchmark's figures hold the truth? `measure.py` prints the table."""

from __future__ import annotations

from functools import cache

import numpy as np
from regimes import Regime

from factaudit.stats.agreement import iou_interval, kappa_interval
from factaudit.stats.calibration import adjust_counts
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, IntervalEnds, estimate_clustered_proportions
from factaudit.stats.hypothesis_tests import permutation_p
from factaudit.stats.influence import MIN_CLUSTERS, interval, slope
from factaudit.stats.mover import (
    discordant_difference_interval,
    error_balance_interval,
    least_proportion_interval,
    mover_proportion_sum,
    mover_weighted_sum,
)
from factaudit.stats.rank_correlation import fisher_z_interval, kendall_tau, kendall_tau_interval, pearson_r
from factaudit.stats.roc import curve_interval, curve_statistics
from factaudit.stats.slice_comparison import estimate_slice_and_rest_proportions
from factaudit.stats.undefined_values import divide_or_undefined

LEVEL = 0.95
#: Data sets in a mean over data sets.
MEANT = 4
Covered = dict[str, np.ndarray]


def holds(limits: IntervalEnds, truth: float) -> np.ndarray:
    low, high = limits
    defined = ~np.isnan(low)
    return ((low <= truth) & (truth <= high))[defined]


def clustered(counts: np.ndarray) -> ClusterCounts:
    """(groups, clusters, ...) counts of claims, each first index a group."""
    groups, size = counts.shape[:2]
    flat = counts.reshape(groups * size, -1)
    return ClusterCounts(np.repeat(np.arange(groups), size), np.ones(len(flat), dtype=np.int64), flat, groups)


def of_evaluators(regime: Regime, drawn: np.ndarray) -> Covered:
    """Figures over the claims of all systems together."""
    documents = drawn.transpose(0, 2, 1, 3, 4, 5).reshape(len(drawn), -1, 2, 3, 3) if regime.own else drawn.sum(2)
    clusters = clustered(documents)
    counts = clusters.counts.reshape(-1, 2, 3, 3)
    true = regime.truth.mean(0)
    found: Covered = {}
    figures = {}
    for name, by_label, expected in (
        ("a", counts[:, :, :2].sum(-1), true[:, :2].sum(-1)),
        ("b", counts[:, :, :, :2].sum(-2), true[:, :, :2].sum(-2)),
    ):
        of_label = by_label.sum(-1)
        hits = np.stack([by_label[:, 1, 1], by_label[:, 0, 0], by_label[..., 1].sum(-1), counts[:, 0].sum((1, 2))], 1)
        of = np.stack([of_label[:, 1], of_label[:, 0], of_label.sum(-1), counts.sum((1, 2, 3))], 1)
        rates = estimate_clustered_proportions(clusters, hits, of)
        tpr, tnr = expected[1, 1] / expected[1].sum(), expected[0, 0] / expected[0].sum()
        figures[name] = tpr, tnr
        truths = {"TPR": tpr, "TNR": tnr, "PPR": expected[:, 1].sum() / expected.sum(), "labelled": true[0].sum()}
        low, high = rates.wilson_intervals(LEVEL)
        for at, (figure, value) in enumerate(truths.items()):
            if figure != "labelled" or name == "a":
                found[f"{figure} {name}"] = holds((low[:, at], high[:, at]), value)
        bacc, ends = mover_proportion_sum(rates, np.array([0.5, 0.5, 0, 0]), LEVEL)
        found[f"BAcc {name}"] = holds(ends, (tpr + tnr) / 2)
        found[f"gap {name}"] = holds(mover_proportion_sum(rates, np.array([1, -1, 0, 0]), LEVEL)[1], tpr - tnr)
        sets = len(bacc) // MEANT * MEANT
        parts = [each[:sets].reshape(-1, MEANT) for each in (bacc, *ends)]
        _, mean = mover_weighted_sum(parts[0], (parts[1], parts[2]), np.full(MEANT, 1 / MEANT))
        found[f"mean BAcc {name}"] = holds(mean, (tpr + tnr) / 2)
    both = counts[:, :, :2, :2]
    positive, negative = both[:, 1].sum((1, 2)), both[:, 0].sum((1, 2))
    apart = estimate_clustered_proportions(
        clusters,
        np.stack([both[:, 1, 1, 0], both[:, 1, 0, 1], both[:, 0, 0, 1], both[:, 0, 1, 0]], 1),
        np.stack([positive, positive, negative, negative], 1),
    )
    difference = (sum(figures["a"]) - sum(figures["b"])) / 2
    found["difference of BAcc"] = holds(
        discordant_difference_interval(apart, np.array([0.5, -0.5, 0.5, -0.5]), LEVEL)[1], difference
    )
    total = positive + negative
    apart = estimate_clustered_proportions(
        clusters, np.stack([both[:, :, 0, 1].sum(1), both[:, :, 1, 0].sum(1)], 1), np.stack([total] * 2, 1)
    )
    table = true[:, :2, :2].sum(0)
    table /= table.sum()
    found["difference of bias"] = holds(
        discordant_difference_interval(apart, np.array([1.0, -1.0]), LEVEL)[1], table[0, 1] - table[1, 0]
    )
    for cls, name in ((1, "IoU of 1"), (0, "IoU of 0")):
        expected_iou = table[cls, cls] / (1 - table[1 - cls, 1 - cls])
        found[name] = holds(iou_interval(clusters, both.sum(1), cls, LEVEL), expected_iou)
    chance = (table.sum(0) * table.sum(1)).sum()
    found["kappa"] = holds(kappa_interval(clusters, both.sum(1), LEVEL), (np.trace(table) - chance) / (1 - chance))
    return found


def of_systems(regime: Regime, drawn: np.ndarray) -> Covered:
    """Error rates, bias and headroom of systems."""
    n_systems = drawn.shape[2]
    found: Covered = {}
    labelled_true = regime.truth[:, 0].sum((1, 2))
    clusters = clustered(drawn)
    counts = clusters.counts.reshape(-1, n_systems, 2, 3, 3)
    n = counts.sum((2, 3, 4))
    labelled = estimate_clustered_proportions(clusters, counts[:, :, 0].sum((2, 3)), n)
    found["labelled rate"] = over_systems(labelled.wilson_intervals(LEVEL), labelled_true)
    found["headroom"] = holds(least_proportion_interval(labelled, LEVEL), labelled_true.min())
    for name, by_label, expected in (
        ("a", counts[..., :2, :].sum(-1), regime.truth[:, :, :2].sum(-1)),
        ("b", counts[..., :2].sum(-2), regime.truth[:, :, :, :2].sum(-2)),
    ):
        expected = expected / expected.sum((1, 2), keepdims=True)
        scored = by_label.sum((2, 3))
        predicted_true = expected[:, :, 0].sum(1)
        predicted = estimate_clustered_proportions(clusters, by_label[..., 0].sum(-1), scored)
        found[f"predicted rate {name}"] = over_systems(predicted.wilson_intervals(LEVEL), predicted_true)
        found[f"predicted headroom {name}"] = holds(least_proportion_interval(predicted, LEVEL), predicted_true.min())
        wrong = [by_label[:, :, 1, 0], by_label[:, :, 0, 1]]
        bias = []
        for system in range(n_systems):
            each = estimate_clustered_proportions(
                clusters, np.stack([w[:, system] for w in wrong], 1), np.stack([scored[:, system]] * 2, 1)
            )
            bias.append(error_balance_interval(each, LEVEL)[1])
        ends = np.stack([low for low, _ in bias], 1), np.stack([high for _, high in bias], 1)
        found[f"bias {name}"] = over_systems(ends, predicted_true - labelled_true)
        least = [np.nanargmin(each.point, 1) for each in (predicted, labelled)]
        chosen = estimate_clustered_proportions(
            clusters,
            np.stack(
                [
                    by_label[..., 0].sum(-1)[np.arange(len(counts)), least[0][clusters.group]],
                    counts[:, :, 0].sum((2, 3))[np.arange(len(counts)), least[1][clusters.group]],
                ],
                1,
            ),
            np.stack(
                [
                    scored[np.arange(len(counts)), least[0][clusters.group]],
                    n[np.arange(len(counts)), least[1][clusters.group]],
                ],
                1,
            ),
        )
        ends = mover_proportion_sum(chosen, np.array([1.0, -1.0]), LEVEL)[1]
        found[f"headroom bias {name}"] = holds(ends, predicted_true.min() - labelled_true.min())
    return found


def of_orders(regime: Regime, drawn: np.ndarray, random: np.random.Generator) -> Covered:
    """Kendall's tau between the true labelled and predicted rates, where no two true rates are equal."""
    rates = regime.truth[:, 0].sum((1, 2)), regime.truth[:, :, 0].sum((1, 2))
    if any(len(np.unique(each.round(6))) < len(each) for each in rates) or regime.own:
        return {}
    truth = kendall_tau(*rates)
    weights = random.multinomial(regime.docs, np.full(regime.docs, 1 / regime.docs), size=500).astype(float)
    found = []
    for each in drawn[:500].astype(float):
        n = weights @ each.sum((2, 3, 4))
        x, y = (
            divide_or_undefined(weights @ each[:, :, 0].sum((2, 3)), n),
            divide_or_undefined(weights @ each[:, :, :, 0].sum((2, 3)), n),
        )
        low, high = kendall_tau_interval(x, y, LEVEL)
        found.append(low - 1e-9 <= truth <= high + 1e-9)
    return {"tau": np.array(found)}


def of_corrections(regime: Regime, drawn: np.ndarray, random: np.random.Generator) -> Covered:
    """The adjusted count of the first system by a calibration on the last one, where that is not refused.

    What should be held is what the correction makes of true rates: whether TPR and TNR transfer is another question.
    """
    tables = regime.truth[:, :, :2].sum(-1)
    predicted = tables[0, :, 0].sum() / tables[0].sum()
    truth = float(adjust_counts(np.array(predicted), tables[-1]))
    if np.isnan(truth) or regime.own:
        return {}
    weights = random.multinomial(regime.docs, np.full(regime.docs, 1 / regime.docs), size=400).astype(float)
    intervals = ClusterBootstrap(replicates=400)
    found = []
    for each in drawn[:, :, :, :, :2].sum(-1).astype(float):
        calibration, target = each[:, -1], each[:, 0].sum(1)
        counts = calibration.reshape(-1, 4)
        clusters = ClusterCounts(np.zeros(len(counts), dtype=np.int64), np.ones(len(counts), dtype=np.int64), counts, 1)
        of = np.stack([counts[:, :2].sum(1), counts[:, 2:].sum(1)], 1)
        rates = estimate_clustered_proportions(clusters, np.stack([counts[:, 0], counts[:, 2]], 1), of)
        if not mover_proportion_sum(rates, np.array([1.0, -1.0]), LEVEL)[1][0][0] > 0:
            continue  # refused
        said = weights @ target
        again = adjust_counts(said[:, 0] / said.sum(1), (weights @ counts).reshape(-1, 2, 2))
        point = float(adjust_counts(target.sum(0)[0] / target.sum(), counts.sum(0).reshape(2, 2)))
        part = (counts.sum(1) + target.sum(1)) ** 2
        low, high = intervals.percentile_ends(again, part.sum() ** 2 / (part**2).sum())
        if low < high:  # else all replicates are cut off at 0, and nothing is said
            found.append(min(low, point) <= truth <= max(high, point))
    return {"adjusted count": np.array(found)} if len(found) > 100 else {}


def of_correlation(random: np.random.Generator, replicates: int) -> Covered:
    """Pearson's r of 6 systems that are themselves a sample, as Fisher's z supposes; 200 labels each."""
    x, y = draw_rates_of_systems(random, 6 * replicates)
    r = pearson_r(x.reshape(-1, 6), y.reshape(-1, 6))
    return {"r over systems": holds(fisher_z_interval(r, np.full(replicates, 6), LEVEL), true_correlation())}


def draw_rates_of_systems(random: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    errors = random.beta(4, 12, count)
    tnr, fnr = random.normal(0.7, 0.05, count), random.normal(0.15, 0.05, count)
    return random.binomial(200, errors) / 200, random.binomial(200, np.clip(errors * (tnr - fnr) + fnr, 0, 1)) / 200


@cache
def true_correlation() -> float:
    return float(pearson_r(*draw_rates_of_systems(np.random.default_rng(1), 1_000_000)))


def over_systems(limits: IntervalEnds, truths: np.ndarray) -> np.ndarray:
    low, high = limits
    return np.concatenate([holds((low[:, s], high[:, s]), truth) for s, truth in enumerate(truths)])


def of_tests(regime: Regime, drawn: np.ndarray, random: np.random.Generator) -> Covered:
    """How often a test of equal BAcc does not reject where the two are equal: its level is what should be covered."""
    if not regime.tie:
        return {}
    documents = drawn.transpose(0, 2, 1, 3, 4, 5).reshape(len(drawn), -1, 2, 3, 3) if regime.own else drawn.sum(2)
    both = documents[..., :2, :2]
    gains = np.stack([both[:, :, 1, 1, 0] - both[:, :, 1, 0, 1], both[:, :, 0, 0, 1] - both[:, :, 0, 1, 0]], -1)
    sizes = np.stack([both[:, :, 1].sum((2, 3)), both[:, :, 0].sum((2, 3))], -1)
    found = []
    for gain, size in zip(gains[:500], sizes[:500], strict=True):
        p = permutation_p(gain, size, np.array([0.5, 0.5]), [int(random.integers(1 << 62))], 300)
        if p is not None:
            found.append(p > 0.05)
    return {"test of equal BAcc": np.array(found)}


def of_scores(regime: Regime, random: np.random.Generator, replicates: int) -> Covered:
    """AUC, average precision and the slope over a covariate: scores are drawn claim by claim."""
    auc_true, ap_true, slope_true = truths_of_scores(max(regime.errors))
    drawn = draw_scores(regime, random, replicates, regime.docs)
    held: dict[str, list[bool]] = {}
    for rows in np.split(np.arange(len(drawn[0])), np.searchsorted(drawn[0], np.arange(1, replicates))):
        _, cluster, label, score, overlap, right = (each[rows] for each in drawn)
        curves = curve_statistics(label, score)
        ends = {
            "AUC": (curve_interval(curves["auc"], label, cluster, LEVEL), auc_true),
            "average precision": (curve_interval(curves["average_precision"], label, cluster, LEVEL), ap_true),
        }
        for name, inside in (("slope of TPR", label == 1), ("slope of TNR", label == 0)):
            line = slope(overlap[inside], right[inside].astype(float))
            limits = interval(line, cluster[inside], confidence=LEVEL, min_clusters=MIN_CLUSTERS)
            ends[name] = (limits, slope_true[int(name == "slope of TPR")])
        for name, ((low, high), truth) in ends.items():
            if not np.isnan(low):
                held.setdefault(name, []).append(low <= truth <= high)
    return {name: np.array(each) for name, each in held.items()}


def draw_scores(regime: Regime, random: np.random.Generator, replicates: int, docs: int) -> tuple[np.ndarray, ...]:
    """Claims of one system: group, cluster, label, score, overlap, right; two decimals make ties."""
    size = (replicates, docs)
    n = random.integers(1, 2 * regime.claims, size) if regime.uneven else np.full(size, regime.claims)
    group = np.repeat(np.repeat(np.arange(replicates), docs), n.ravel())
    cluster = np.repeat(np.tile(np.arange(docs), replicates), n.ravel())
    document = np.repeat(np.arange(replicates * docs), n.ravel())
    easy = random.normal(size=replicates * docs)[document]
    label = (random.random(len(group)) > max(regime.errors)).astype(np.int64)
    strength = np.sqrt(regime.icc)
    noise = strength * easy + np.sqrt(1 - regime.icc) * random.normal(size=len(group))
    score = np.round(np.where(label == 1, 1.2, 0.0) + noise, 1)
    overlap = random.random(len(group))
    right = random.random(len(group)) < np.where(label == 1, 0.6 + 0.3 * overlap, 0.9 - 0.4 * overlap)
    return group, cluster, label, score, overlap, right


@cache
def truths_of_scores(error_rate: float) -> tuple[float, float, dict[int, float]]:
    """From a very large sample of documents with one claim each: the marginal distribution is that of any claim."""
    single = Regime("", docs=1_000_000, claims=1, errors=(error_rate,), icc=0.0)
    _, _, label, score, *_ = draw_scores(single, np.random.default_rng(1), 1, single.docs)
    curves = curve_statistics(label, score)
    return curves["auc"].point, curves["average_precision"].point, {1: 0.3, 0: -0.4}


def cover_slices(regime: Regime, drawn: np.ndarray) -> Covered:
    """BAcc of evaluator a on the claims of one system less its BAcc on all others, which are on the same documents
    unless each system has its own; and on every other document, where it is the same."""
    of_a = regime.truth[..., :2, :].sum(-1)  # (S, label, prediction)
    both = [of_a[0], of_a[1:].sum(0)]
    baccs = [(each[1, 1] / each[1].sum() + each[0, 0] / each[0].sum()) / 2 for each in both]
    document, system, label, a, _ = (each.ravel() for each in np.indices(drawn.shape[1:]))
    cluster = document * drawn.shape[2] + system if regime.own else document
    hit = np.where(a == 2, -1, a == label)
    weights = np.array([0.5, 0.5, -0.5, -0.5])
    found: dict[str, list[bool]] = {}
    for counts in drawn:
        at = np.repeat(np.arange(len(label)), counts.ravel())
        for name, inside, truth in (
            ("one system", system == 0, baccs[0] - baccs[1]),
            ("every other document", cluster % 2 == 0, 0.0),
        ):
            slices = np.where(inside, 0, -1)[at]
            shares = estimate_slice_and_rest_proportions(hit[at], 1 - label[at], 2, slices, 1, cluster[at])
            low, high = mover_proportion_sum(shares, weights, LEVEL)[1]
            if not np.isnan(low[0]):
                found.setdefault(f"BAcc of a slice: {name}", []).append(bool(low[0] <= truth <= high[0]))
    return {name: np.array(held) for name, held in found.items()}


def cover_document_slopes(regime: Regime, random: np.random.Generator, replicates: int) -> Covered:
    """The slope over a number that all claims of a document share, as its length; documents are hard or easy."""
    n_systems, docs = len(regime.errors), regime.docs * (len(regime.errors) if regime.own else 1)
    size = (replicates, docs)
    mean = regime.claims * (1 if regime.own else n_systems)
    n = random.integers(1, 2 * mean, size) if regime.uneven else np.full(size, mean)
    document = np.repeat(np.arange(replicates * docs), n.ravel())
    length = np.clip(random.normal(size=replicates * docs), -3, 3)[document]
    hard = np.sqrt(regime.icc) / 4 * random.uniform(-1, 1, replicates * docs)[document]
    tnr = np.clip(regime.a[1], 0.3, 0.7)
    is_error = random.random(len(document)) < max(regime.errors)
    found: Covered = {}
    for name, rate, inside in (("TPR", 0.8, ~is_error), ("TNR", tnr, is_error)):
        right = (random.random(len(document)) < rate - 0.04 * length + hard).astype(int)
        lines = []
        for group in range(replicates):
            rows = inside & (document // docs == group)
            line = slope(length[rows], right[rows].astype(float))
            lines.append(interval(line, document[rows], confidence=LEVEL, min_clusters=MIN_CLUSTERS))
        found[f"slope of {name} over documents"] = holds(tuple(np.array(lines).T), -0.04)
    return found


def coverage(regime: Regime, replicates: int, seed: int = 5) -> Covered:
    """Per figure which intervals of the replicates held the truth."""
    random = np.random.default_rng(seed)
    drawn = regime.draw(random, replicates)
    found = of_evaluators(regime, drawn) | of_systems(regime, drawn) | of_tests(regime, drawn, random)
    found |= of_orders(regime, drawn, random) | of_corrections(regime, drawn, random)
    found |= of_correlation(random, replicates) | cover_slices(regime, drawn[:300])
    return found | of_scores(regime, random, replicates) | cover_document_slopes(regime, random, replicates)
