"""A budget rehearsed in several ways on claims that are all labelled: other draws, and what they are worth."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_data import World, tables

from factaudit.arrays.judgements import Judgements
from factaudit.estimate.budget_rehearsal import rehearse_sampling_designs, rehearse_sampling_designs_by_dataset
from factaudit.estimate.comparison_draws import COMPARED_WAYS
from factaudit.estimate.estimation_case import RateEstimationOptions
from factaudit.estimate.label_budget_plan import simulate_compared_way
from factaudit.estimate.scored_corpus import ScoredCorpus, build_scored_corpora


@pytest.fixture(scope="module")
def corpus() -> ScoredCorpus:
    claims, verdicts = tables(World(), 5)
    (found,) = build_scored_corpora(Judgements.join(claims, verdicts), "claim", ["e0", "e1"])
    return found


@pytest.mark.parametrize("way", COMPARED_WAYS)
def test_labels_stand_for_all_claims_of_their_system(way: str, corpus: ScoredCorpus) -> None:
    """Each way knows with what probability it drew: over draws a system's labels stand for its claims."""
    stood = np.zeros(4)
    for seed in range(60):
        case = simulate_compared_way(way, corpus, 80, RateEstimationOptions(seed=seed))
        assert abs(len(case.labelled_rows) - 80) <= (40 if way == "active" else 0)
        weight = 1 / case.draw.inclusion_probability
        stood += np.bincount(corpus.system[case.draw.rows], weight, 4) / 60
    assert abs(stood - 250).max() < 25


def test_a_draw_by_uncertainty_looks_where_the_evaluator_is_unsure(corpus: ScoredCorpus) -> None:
    unsure = abs(corpus.score[0] - 0.5) < 0.2
    shares = {}
    for way in ("random, labels", "active"):
        rows = [
            simulate_compared_way(way, corpus, 80, RateEstimationOptions(seed=seed)).draw.rows for seed in range(20)
        ]
        shares[way] = unsure[np.concatenate(rows)].mean()
    assert shares["active"] > shares["random, labels"] + 0.05
    assert shares["random, labels"] == pytest.approx(unsure.mean(), abs=0.05)


def test_a_rehearsal_compares_this_sample_with_other_ways(corpus: ScoredCorpus) -> None:
    rows = {row["way"]: row for row in rehearse_sampling_designs(corpus, 80, RateEstimationOptions(), n_draws=6)}
    assert list(rows) == ["sample, hierarchical", "sample, regression-ppi", "sample, labels", *COMPARED_WAYS]
    assert all(row["held"] >= 0.7 and row["reason"] is None for row in rows.values())
    # Good evaluators: the model gains on the labels, and so do strata on chance.
    assert rows["sample, hierarchical"]["bias"] < rows["random, labels"]["bias"]
    assert rows["sample, labels"]["width"] < rows["random, labels"]["width"]
    few = {row["way"]: row for row in rehearse_sampling_designs(corpus, 20, RateEstimationOptions(), n_draws=1)}
    assert few["random, labels"]["width"] is None
    assert few["random, labels"]["reason"] == "fewer than 10 labels a system: no interval"


def test_only_what_is_all_labelled_is_rehearsed() -> None:
    claims, verdicts = tables(World(size=60), 5)
    assert len(rehearse_sampling_designs_by_dataset(claims, verdicts, 40)) == 6
    some = claims.assign(label=claims["label"].where(claims.index > 3))
    assert rehearse_sampling_designs_by_dataset(some, verdicts, 40) == []
