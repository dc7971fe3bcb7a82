"""Intervals: what is resampled, what has none, what they are computed from. `validity/` simulates
that they cover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from audit_tables import find, judged, tables
from audit_worlds import make_world
from scipy.special import ndtr, stdtrit
from scipy.stats import binom

import factaudit
from factaudit import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    estimate_clustered_proportions,
    wilson_interval,
)

# What varies together
# ------------------------------------------------------------


def list_clusters(rows: list[dict]) -> list[set[int]]:
    codes = judged([row | {"e": 1} for row in rows], "e").cluster_codes
    return sorted(
        (set(np.flatnonzero(codes == code).tolist()) for code in set(codes.tolist())), key=min
    )


def test_clusters_are_documents_else_responses_else_claims():
    about = [
        *(
            ("1", "a", "x"),
            ("1", "b", "x"),
            ("2", "a", "y"),
            (None, "a", "z"),
            (None, "a", "z"),
            (None, "b", "z"),
        ),
        *((None, "b", None), (None, "b", None), ("1", "b", None), ("1", "a", "x")),
    ]
    rows = [dict(zip(("doc_id", "system", "response_id"), each, strict=True)) for each in about]
    rows[-1]["dataset"] = "another"
    assert list_clusters(rows) == [{0, 1, 8}, {2}, {3, 4}, {5}, {6}, {7}, {9}]


def test_a_response_that_names_several_documents_stays_whole():
    rows = [{"system": "a", "response_id": "x", "doc_id": str(i)} for i in range(3)]
    rows += [{"system": "a", "response_id": "y", "doc_id": d} for d in ("0", None)]
    assert list_clusters(rows) == [{0, 1, 2}, {3, 4}]


@pytest.mark.parametrize("doc", ["text", "passages", "none"])
def test_claims_without_a_document_id_are_clustered_by_text_else_by_response(doc):
    """Ten claims of one document counted as ten observations where nobody had given it an id."""
    n = 60
    at = np.arange(n)
    claims = pd.DataFrame({"claim_id": [f"c{i}" for i in at], "claim": [f"claim {i}" for i in at]})
    claims = claims.assign(
        dataset=np.where(at < 30, "x", "y"),
        response_id=(at // 5).astype(str),
        label=(at % 3 > 0) * 1,
    )
    number = at // 10 % 3  # the same three documents in both data sets
    if doc == "text":
        claims["doc"] = [f"text of document {i}" for i in number]
    elif doc == "passages":
        claims["doc"] = [[f"passage of {i}", "another"] for i in number]
    named = claims.assign(doc_id=number.astype(str) if doc != "none" else None)
    verdicts = pd.DataFrame(
        {"claim_id": claims["claim_id"], "evaluator": "e", "prediction": (at % 4 > 0) * 1}
    )
    verdicts["status"] = "ok"
    found, of_named, shuffled = (
        factaudit.compare(table, verdicts, replicates=20)
        for table in (claims, named, claims.sample(frac=1))
    )
    assert [row["n_clusters"] for row in found.about["claims"]] == [3 if doc != "none" else 6] * 2
    assert found.audits["rates"] == of_named.audits["rates"] == shuffled.audits["rates"]


# What has no interval
# ------------------------------------------------------------


def test_nothing_to_resample_is_no_interval():
    rows = [{"doc_id": "1", "label": i % 2, "e": int(i > 3)} for i in range(8)]
    lone = [{"label": 1, "e": i % 2} for i in range(9)] + [{"label": 0, "e": 0}]
    one_document, one_error = (
        find(
            factaudit.compare(*tables(each, ["e"]), audits=["rates"], replicates=50).audits[
                "rates"
            ],
            dataset="d",
        )
        for each in (rows, lone)
    )
    assert one_document["bacc"] is not None
    assert one_document["bacc_low"] is one_document["bacc_high"] is one_document["ppr_low"] is None
    assert one_error["tnr"] == 1.0
    assert one_error["tnr_low"] is one_error["bacc_high"] is None
    assert one_error["tpr_low"] < one_error["tpr"] < one_error["tpr_high"]


def test_responses_that_are_all_alike_have_no_interval():
    rows = [
        {
            "system": "s",
            "response_id": f"r{i // 4}",
            "doc_id": f"d{i // 4}",
            "label": 1,
            "e": int(i % 4 > 0),
        }
        for i in range(40)
    ]
    unlike = [one | {"e": 1} if one["response_id"] == "r0" else one for one in rows]
    asked = [{"factscore": {"gamma": 0}}]
    (alike,), (row,) = (
        factaudit.compare(*tables(each, ["e"]), audits=asked, replicates=50).audits["factscore"]
        for each in (rows, unlike)
    )
    assert (alike["score"], alike["score_low"], alike["score_high"]) == (0.75, None, None)
    assert "no interval for score" in alike["reason"]
    assert row["score_low"] < row["score"] < row["score_high"]
    assert row["reason"] is None


# What they are computed from
# ------------------------------------------------------------


def test_seeds_reproduce_what_is_drawn_and_change_nothing_else():
    claims, verdicts = make_world("unscored")
    found, again, other = (
        factaudit.compare(claims, verdicts, replicates=100, seed=seed).audits for seed in (7, 7, 8)
    )
    assert found == again
    changed = {name for name in found if found[name] != other[name]}
    assert "adjustment" in changed
    assert not changed & {"rates", "quantification", "headroom", "ranking"}, (
        "their intervals are not resampled"
    )


@pytest.mark.parametrize("n_clusters", [3, 40])
def test_percentiles_are_numpys_to_the_last_digit(n_clusters):
    random = np.random.default_rng(5)
    replicates = random.random((4, 6, 301)).round(2)
    replicates[random.random(replicates.shape) < 0.2] = np.nan
    replicates[1, :, :200] = np.nan
    replicates[2, 3], replicates[3, 0] = np.nan, random.random(301)
    low, high = ClusterBootstrap(replicates=301).percentile_ends(replicates, n_clusters)
    tail = ndtr(stdtrit(n_clusters - 1, 0.025) * np.sqrt(n_clusters / (n_clusters - 1)))
    for place in np.ndindex(4, 6):
        mine = replicates[place]
        ends = (
            np.nanquantile(mine, [tail, 1 - tail])
            if np.isnan(mine).mean() <= 0.5
            else [np.nan, np.nan]
        )
        np.testing.assert_allclose([low[place], high[place]], ends)


def test_many_clusters_are_drawn_in_groups_that_vary_as_much(monkeypatch):
    monkeypatch.setattr("factaudit.stats.cluster_bootstrap.MOST_RESAMPLED_UNITS", 1000)
    random, intervals = np.random.default_rng(0), ClusterBootstrap(replicates=4000, seed=1)
    n = random.integers(1, 6, 5300)
    errors = random.binomial(n, random.beta(0.5, 2, len(n)))
    draws, by_unit = intervals.draw(np.arange(5300), "d"), np.zeros((1000, 2))
    np.add.at(by_unit, draws.unit, np.column_stack([errors, n]))
    sums = draws.times @ by_unit
    rate, ratio = errors.sum() / n.sum(), sums[:, 0] / sums[:, 1]
    standard_error = np.sqrt(((errors - rate * n) ** 2).sum()) / n.sum()
    assert ratio.mean() == pytest.approx(rate, abs=standard_error / 10)
    # 2.2 % by chance of 1,000 units and 1.1 % of 4,000 replicates, three times over.
    assert ratio.std() == pytest.approx(standard_error, rel=0.075)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replicates": 0}, "at least 1"),
        ({"confidence": 95}, "found 95"),
        ({"seed": -1}, "found -1"),
    ],
)
def test_impossible_settings_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        ClusterBootstrap(**arguments)


@pytest.mark.parametrize("n", [20, 30, 50, 100])
def test_rare_shares_are_held_exactly(n):
    """Over all true shares from 0.1 to 30 %: Wilson's own limits hold some in 85 %."""
    hits = np.arange(n + 1)
    low, high = wilson_interval(hits / n, np.full(n + 1, float(n)), np.full(n + 1, n - 1), 0.95)
    held = [
        binom.pmf(hits, n, share)[(low <= share) & (share <= high)].sum()
        for share in np.linspace(0.001, 0.3, 300)
    ]
    assert min(held) > 0.92
    assert np.mean(held) < 0.975


def test_a_large_cluster_counts_for_what_it_moves():
    """The variance is that of the jackknife, and unequal clusters are worth fewer degrees of
    freedom."""
    counts = np.array([[9, 20], *[[1, 4], [0, 4], [1, 8], [2, 8]] * 4])
    n = len(counts)
    clusters = ClusterCounts(np.zeros(n, dtype=int), np.ones(n, dtype=int), counts, n_groups=1)
    found = estimate_clustered_proportions(clusters, counts[:, :1], counts[:, 1:])
    left = [np.delete(counts, at, 0).sum(0) for at in range(n)]
    without = np.array([hits / of for hits, of in left])
    assert found.variance.item() == pytest.approx(
        (n - 1) / n * ((without - found.point.item()) ** 2).sum()
    )
    size = counts[:, 1]
    alike = (found.n / found.effective_n - 1) / (found.cluster_size - 1)
    # Of the variance, where units are so much alike.
    part = (size * (1 + (size - 1) * alike.item())).astype(float)
    assert found.degrees_of_freedom.item() == pytest.approx(part.sum() ** 2 / (part**2).sum() - 1)
    assert 1 < found.degrees_of_freedom.item() < size.sum() ** 2 / (size**2).sum() - 1
