"""Each way to estimate a rate: against the libraries it is taken from, by hand, and refused where it must be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from estimate_data import World, annotated, tables, without_labels

from factaudit.arrays.judgements import Judgements
from factaudit.audit.screen import compose_screen
from factaudit.errors import InputError, UsageError
from factaudit.estimate.estimate_summary import find_systems_whose_methods_contradict
from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.estimate.estimation_methods import ESTIMATION_METHODS, RateEstimate, estimate_rates_by_method
from factaudit.estimate.rate_estimation import EstimationResults, estimate_rates
from factaudit.estimate.scored_corpus import build_scored_corpora
from factaudit.stats.stratified_sampling import (
    StratifiedDraw,
    assume_simple_random_draw,
    cluster_design_effect,
    estimate_stratified_mean,
    stratified_label_weights,
)
from factaudit.stats.stratified_wilson import stratified_wilson_interval, wilson_share_interval


def some(n: int, total: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    error = (random.random(n) < 0.3).astype(float)
    guess = np.where(random.random(n) < 0.8, error, 1 - error)
    return error, guess, (random.random(total) < 0.4).astype(float)


# ----------------------------------------------------------------------------------------------------- conformance


def test_wilson_agrees_with_statsmodels() -> None:
    from statsmodels.stats.proportion import proportion_confint

    for errors, n in ((0, 9), (3, 20), (50, 50)):  # of one or two errors the end next to 0 is that of a Poisson count
        np.testing.assert_allclose(
            wilson_share_interval(errors / n, n, 0.9), proportion_confint(errors, n, 0.1, "wilson"), atol=1e-12
        )


# ------------------------------------------------------------------------------------------------------- the design


def one_phase(strata: list[tuple[int, list[float]]]) -> tuple[StratifiedDraw, np.ndarray]:
    """A draw from strata of so many claims, with these values."""
    frame = np.concatenate([np.full(len(values), size) for size, values in strata])
    code = np.concatenate([np.full(len(values), at) for at, (_, values) in enumerate(strata)])
    values = np.concatenate([values for _, values in strata])
    return StratifiedDraw(np.arange(len(values)), np.zeros(len(values), dtype=int), code, frame), values


def test_a_stratified_mean_by_hand() -> None:
    draw, values = one_phase([(30, [0, 0, 1]), (10, [1, 1])])
    found = estimate_stratified_mean(draw, values, np.zeros(5), 40)
    assert found.value == pytest.approx((30 / 3 + 10) / 40)
    assert found.n_labels == 5
    np.testing.assert_allclose(draw.inclusion_probability, [0.1, 0.1, 0.1, 0.2, 0.2])
    weights = stratified_label_weights(draw, np.zeros(5, dtype=int), np.ones(5, dtype=bool))
    np.testing.assert_allclose(weights, [10, 10, 10, 5, 5])


def test_draws_in_phases_are_unbiased_and_their_variance_is_right() -> None:
    """2,000 draws of a corpus of 60: the first phase by a poor guess, the second by what the first one said."""
    random = np.random.default_rng(0)
    error = np.concatenate([np.ones(18), np.zeros(42)])
    half = np.arange(60) % 2
    found, variances = [], []
    for _ in range(2000):
        first = np.concatenate([random.choice(np.flatnonzero(half == h), 6, replace=False) for h in (0, 1)])
        rest = np.setdiff1d(np.arange(60), first)
        # More are drawn of the half in which more errors were seen: by looking at the labels.
        worse = int(error[first][half[first] == 1].sum() > error[first][half[first] == 0].sum())
        sizes = {worse: 9, 1 - worse: 3}
        second = np.concatenate([random.choice(rest[half[rest] == h], sizes[h], replace=False) for h in (0, 1)])
        rows = np.concatenate([first, second])
        phase = np.repeat([0, 1], 12)
        frame = np.where(phase == 0, 30, 24)
        draw = StratifiedDraw(rows, phase, 2 * phase + half[rows], frame)
        mean = estimate_stratified_mean(draw, error[rows], np.full(24, 0.21), 60)
        found.append(mean.value)
        variances.append(mean.variance)
        weights = stratified_label_weights(draw, np.zeros(24, dtype=int), np.ones(24, dtype=bool))
        assert weights.sum() == pytest.approx(60)
        assert weights @ error[rows] / 60 == pytest.approx(mean.value)
    assert np.mean(found) == pytest.approx(0.3, abs=4 * np.std(found) / np.sqrt(2000))
    assert np.mean(variances) == pytest.approx(np.var(found), rel=0.15)


def test_drawn_claims_without_a_label_count_as_their_stratum() -> None:
    draw, values = one_phase([(30, [0, np.nan, 1]), (10, [np.nan, np.nan])])
    found = estimate_stratified_mean(draw, values, np.full(5, 0.25), 40)
    assert (found.value, found.n_labels) == (0.5, 2)


def test_labels_of_one_response_are_worth_less() -> None:
    residual = np.array([0.5, 0.5, -0.5, -0.5])
    assert cluster_design_effect(residual, np.array([0, 0, 1, 1])) == pytest.approx(4)
    assert cluster_design_effect(residual, np.arange(4)) == 1
    assert cluster_design_effect(residual, np.array([0, 1, 0, 1])) == 1


def test_labels_only() -> None:
    draw, values = one_phase([(1_000_000, [0.0] * 20)])
    rate, low, high = stratified_wilson_interval(draw, values, 1_000_000, 0.95)
    assert (rate, low) == (0, 0)
    assert high == pytest.approx(wilson_share_interval(0, 20, 0.95)[1], abs=0.02)
    draw, values = one_phase([(20, [1.0] * 5 + [0.0] * 15)])
    assert stratified_wilson_interval(draw, values, 20, 0.95) == (0.25, 0.25, 0.25)
    assert stratified_wilson_interval(draw, values, 20, 0.95, population_variance=0.01)[1] < 0.25


# ---------------------------------------------------------------------------------------------------- from tables


def labelled_at_random(
    n: int, world: World | None = None, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Claims with n labels, verdicts, and the true rates."""
    claims, verdicts = tables(world or World(), seed)
    truth = 1 - claims.groupby("system")["label"].mean()
    keep = np.random.default_rng(seed).permutation(len(claims))[:n]
    claims["label"] = claims["label"].where(claims.index.isin(keep))
    return claims, verdicts, truth


def rate_rows(found: EstimationResults, method: str) -> pd.DataFrame:
    table = found.table()
    return table[table["method"] == method].set_index("system")


def test_every_method_is_near_the_truth() -> None:
    claims, verdicts, truth = labelled_at_random(400)
    found = estimate_rates(claims, verdicts, methods=list(ESTIMATION_METHODS), levels=["claim"])
    assert set(found.rates[0]) == {
        *("dataset", "level", "system", "method", "n", "n_unpredicted", "n_labels", "n_undecided", "reason"),
        *("rate", "rate_low", "rate_high", "rate_min", "rate_max"),
    }
    for method in ESTIMATION_METHODS:
        rows = rate_rows(found, method)
        if method != "raw":
            assert (rows["rate"].astype(float) - truth).abs().max() < 0.12, method
        with_interval = rows.dropna(subset="rate_low")
        assert (with_interval["rate_low"] <= with_interval["rate"]).all()
        assert (with_interval["rate"] <= with_interval["rate_high"]).all()
    for method in ("hierarchical", "regression-ppi", "labels"):
        rows = rate_rows(found, method)
        assert ((rows["rate_low"] <= truth) & (truth <= rows["rate_high"])).all(), method
    assert found.summary[0]["quote"] == "hierarchical"
    assert found.summary[0]["worth"] > 1.2 * found.summary[0]["worth_shuffled"], "the scores add to a label's worth"
    random = verdicts.assign(score=np.random.default_rng(0).permutation(verdicts["score"].to_numpy()), prediction=pd.NA)
    untold = estimate_rates(claims, random.astype(verdicts.dtypes), levels=["claim"]).summary[0]
    assert untold["worth"] == pytest.approx(untold["worth_shuffled"], rel=0.15), "random scores add nothing"
    ranks = pd.DataFrame(found.ranks)
    assert ranks["p_best"].sum() == pytest.approx(1)
    assert ranks["rank"].sum() == pytest.approx(10, abs=0.2)
    assert len(found.differences) == 6


def test_no_figure_depends_on_the_order_of_rows() -> None:
    claims, verdicts, _ = labelled_at_random(100)
    first = estimate_rates(claims, verdicts, methods=list(ESTIMATION_METHODS), levels=["claim"])
    mixed = claims.sample(frac=1, random_state=1)
    second = estimate_rates(mixed.reset_index(drop=True), verdicts, methods=list(ESTIMATION_METHODS), levels=["claim"])
    assert first == second


def test_a_system_without_labels_gets_no_rate() -> None:
    claims, verdicts, _ = labelled_at_random(300, World(drift=0.3))
    claims.loc[claims["system"] == "s01", "label"] = pd.NA
    found = estimate_rates(claims, verdicts, levels=["claim"])
    for method in ("hierarchical", "regression-ppi", "labels"):
        row = rate_rows(found, method).loc["s01"]
        assert np.isnan(row["rate"])
        assert "no label of its own" in row["reason"]
    assert not any("s01" in (row["system_a"], row["system_b"]) for row in found.differences)


def test_few_labels_are_flagged_and_have_no_design_based_interval() -> None:
    claims, verdicts, _ = labelled_at_random(24)
    found = estimate_rates(claims, verdicts, levels=["claim"])
    for row in found.rates:
        if row["method"] in ("labels", "regression-ppi") and row["n_labels"] < 10:
            assert row["rate_low"] is None
            assert "fewer than 10" in row["reason"]
        if row["method"] == "hierarchical" and row["n_labels"] < 8:
            assert "fewer than 8 labels" in row["reason"]
    assert "fewer than 8 labels a system" in found.summary[0]["why"]


def test_a_method_to_quote_that_was_not_asked_for_is_said_to_be_missing() -> None:
    claims, verdicts, _ = labelled_at_random(200)
    for methods, is_there in ((["labels", "raw"], False), (["labels", "hierarchical"], True)):
        found = estimate_rates(claims, verdicts, levels=["claim"], methods=methods)
        about = found.summary[0]
        assert about["quote"] == "hierarchical"
        assert ("which was not asked for" in about["why"]) != is_there
        screen = compose_screen({"audits": found.audits(), "about": {"confidence": 0.95}})
        said = " ".join(f"{one.word} {one.sentence}" for one in screen.advice)
        assert ("Use the estimated rates" in said) == is_there
        assert ("which was not asked for" in said) != is_there


def test_widths_that_are_not_compared_have_their_own_reason() -> None:
    """The reason that stood there was that of another thing: few labels make the pooled threshold as good."""
    for n_labels, is_compared in ((24, False), (200, True)):
        claims, verdicts, _ = labelled_at_random(n_labels)
        about = estimate_rates(claims, verdicts, levels=["claim"]).summary[0]
        assert (about["width"] is not None) == is_compared
        assert ("no widths are compared: no system has" in (about["reason"] or "")) != is_compared
    claims, verdicts = tables(World(size=60))
    assert "everything is labelled" in estimate_rates(claims, verdicts, levels=["claim"]).summary[0]["reason"]


def test_everything_labelled_needs_no_estimate() -> None:
    claims, verdicts = tables(World(size=60))
    truth = 1 - claims.groupby("system")["label"].mean()
    found = estimate_rates(claims, verdicts, levels=["claim"])
    for method in ("hierarchical", "regression-ppi", "labels"):
        rows = rate_rows(found, method)
        for key in ("rate", "rate_low", "rate_high"):
            np.testing.assert_allclose(rows[key], truth.astype(float), atol=1e-6)
    assert (found.summary[0]["quote"], found.summary[0]["resolved"]) == ("labels", 1.0)


def test_without_any_label_only_what_is_predicted_is_told() -> None:
    claims, verdicts = tables(World())
    found = estimate_rates(without_labels(claims), verdicts)
    told = {row["method"] for row in found.rates if row["rate"] is not None}
    assert told == {"raw"}
    assert found.summary[0]["quote"] is None
    assert found.ranks == found.differences == []


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_are_all_equal(label: int) -> None:
    claims, verdicts, _ = labelled_at_random(60)
    claims["label"] = claims["label"].where(claims["label"].isna(), label)
    found = estimate_rates(claims, verdicts, levels=["claim"])
    assert f"all labels are {'attributable' if label else 'unattributable'}" in found.summary[0]["reason"]
    rows = rate_rows(found, "hierarchical")
    assert (rows["rate_high"] > rows["rate_low"]).all()
    assert ((rows["rate"] < 0.2) if label else (rows["rate"] > 0.8)).all()


@pytest.mark.parametrize("skill", [0.0, -2.0])
def test_an_evaluator_at_or_below_chance_gives_wide_intervals_not_wrong_rates(skill: float) -> None:
    covered = []
    for seed in range(1, 7):
        claims, verdicts, truth = labelled_at_random(200, World(skill=(skill,)), seed)
        found = estimate_rates(claims, verdicts, levels=["claim"], methods=["hierarchical"])
        rows = rate_rows(found, "hierarchical")
        covered += [*((rows["rate_low"] <= truth) & (truth <= rows["rate_high"]))]
        reason = found.summary[0]["reason"]
        assert "do not show that the scores are higher for correct claims" in reason
        assert "expect little" not in reason  # of 40 labels 10 were errors, and the scores were good (AUC .775)
    assert np.mean(covered) > 0.75


def test_scores_that_are_constant_or_missing() -> None:
    claims, verdicts, truth = labelled_at_random(200)
    constant = verdicts.assign(score=0.7)
    found = estimate_rates(claims, constant, levels=["claim"])
    assert "all scores of e0 are equal" in found.summary[0]["reason"]
    rows = rate_rows(found, "hierarchical")
    assert ((rows["rate_low"] <= truth) & (truth <= rows["rate_high"])).all()
    # Missing just where the errors are.
    wrong = claims["claim_id"][tables(World())[0]["label"] == 0]
    lost = verdicts["claim_id"].isin(wrong.sample(frac=0.8, random_state=0))
    holes = verdicts[~lost].reset_index(drop=True)
    found = estimate_rates(claims, holes, levels=["claim"])
    assert "e0 did not score 240 of 1,000 claims" in found.summary[0]["reason"]
    for method in ("raw", "pooled-threshold"):
        for row in rate_rows(found, method).itertuples():
            scored = row.n - row.n_unpredicted
            assert row.rate_min == pytest.approx(row.rate * scored / row.n)
            assert row.rate_max == pytest.approx((row.rate * scored + row.n_unpredicted) / row.n)
    assert sum(row["n_unpredicted"] for row in found.rates if row["method"] == "raw") == 240
    rows = rate_rows(found, "hierarchical")
    assert ((rows["rate_low"] <= truth) & (truth <= rows["rate_high"])).all()


def test_bounds_where_all_is_scored_are_the_rate_itself() -> None:
    """33 of 80 became 0.4125000000000001, shown as "41.2 [41.2–41.3]"."""
    claims, verdicts, _ = labelled_at_random(100, World(rates=(-1.5, -1.0, -0.7, -0.4, -0.2, 0.0, 0.3, 0.6), size=80))
    raw = rate_rows(estimate_rates(claims, verdicts, levels=["claim"]), "raw")
    assert raw["rate_max"].tolist() == raw["rate"].tolist() == raw["rate_min"].tolist()


def test_evaluators_without_scores_count_by_their_predictions() -> None:
    claims, verdicts, truth = labelled_at_random(200)
    found = estimate_rates(claims, verdicts.assign(score=np.nan), levels=["claim"])
    rows = rate_rows(found, "hierarchical")
    assert ((rows["rate_low"] <= truth) & (truth <= rows["rate_high"])).all()
    assert found.summary[0]["worth"] > 1


def test_one_system_and_none() -> None:
    claims, verdicts, _ = labelled_at_random(60, World(rates=(-1.0,)))
    found = estimate_rates(claims, verdicts, levels=["claim"])
    assert "one system" in found.summary[0]["reason"]
    assert found.ranks == []
    nameless = estimate_rates(claims.assign(system=None), verdicts, levels=["claim"])
    assert {row["system"] for row in nameless.rates} == {"__all__"}


def test_contradicting_estimates_are_flagged() -> None:
    """More than two of regression-PPI's standard errors apart (here 0.05); at a cut-off end the other side has them."""
    half = 1.96 * 0.05
    estimates = {
        "hierarchical": [RateEstimate(0.41), RateEstimate(0.39), RateEstimate(0.12), RateEstimate(0.3)],
        "regression-ppi": [
            *[RateEstimate(0.3, 0.3 - half, 0.3 + half)] * 2,
            RateEstimate(0.01, 0.0, 0.01 + half),
            RateEstimate(),
        ],
    }
    assert find_systems_whose_methods_contradict(estimates.__getitem__, 0.95) == [0, 2]
    claims, verdicts, _ = labelled_at_random(600, World(rates=(-1.0, -1.0, -1.0), skill=(6.0,)), seed=1)
    found = estimate_rates(claims, verdicts, levels=["claim"])
    assert not any("standard errors apart" in (row["reason"] or "") for row in found.rates)


def test_responses() -> None:
    claims, verdicts, _ = labelled_at_random(1000, World(size=240))
    claims["response_id"] = [f"r{i // 4}" for i in range(len(claims))]
    kept = claims["response_id"].isin(sorted(set(claims["response_id"]))[:60])
    claims["label"] = claims["label"].where(kept)
    found = estimate_rates(claims, verdicts)
    by_level = {level: [row for row in found.rates if row["level"] == level] for level in ("claim", "response")}
    assert {row["n"] for row in by_level["response"]} == {60}
    assert sum(row["n_labels"] for row in by_level["response"] if row["method"] == "labels") == 60
    # Labels for a claim here and there tell nothing fair of a response.
    claims["label"] = claims["label"].where(np.arange(len(claims)) % 4 == 0)
    found = estimate_rates(claims, verdicts, levels=["response"])
    assert {row["method"] for row in found.rates if row["rate"] is not None} == {"raw"}
    assert "for some of their claims only" in found.rates[0]["reason"]


def test_wrong_usage() -> None:
    claims, verdicts, _ = labelled_at_random(50)
    for options, message in (
        ({"methods": ["hierarchic"]}, "did you mean 'hierarchical'"),
        ({"target": "sample"}, "unknown target"),
        ({"main": "e7"}, "no verdicts of 'e7'"),
        ({"confidence": 95.0}, "between 0 and 1"),
        (
            {"annotations": annotated(*tables(World())[:1], claims["claim_id"][:5]), "rule": "mean"},
            "numbers between 0 and 1, from which no rate can be estimated",
        ),
    ):
        with pytest.raises((UsageError, InputError), match=message):
            estimate_rates(claims, verdicts, **options)  # type: ignore[arg-type]


def test_undecided_claims_widen_the_bounds() -> None:
    """A claim that people could not decide counts as unlabelled; the bounds are the rates if none, and if all, were
    errors."""
    (corpus,) = build_scored_corpora(Judgements.join(*tables(World())), "claim", ["e0", "e1"])
    error, undecided = corpus.error.copy(), np.zeros(len(corpus.error), dtype=bool)
    error[np.arange(len(error)) % 5 > 0] = np.nan
    unsure = replace(corpus, error=error, undecided=undecided)
    undecided[::50] = True
    unsure = replace(corpus, error=np.where(undecided, np.nan, error), undecided=undecided)
    case = RateEstimationCase(unsure, assume_simple_random_draw(unsure.is_labelled | undecided, unsure.system))
    for method in ("hierarchical", "regression-ppi", "labels"):
        for one in estimate_rates_by_method(method, case):
            assert one.least is not None
            assert one.greatest is not None
            assert one.least <= one.rate <= one.greatest, method
            assert one.least < one.greatest, method


def test_predicted_rates_alone_fit_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    claims, verdicts, _ = labelled_at_random(300)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was fitted")

    monkeypatch.setattr("factaudit.estimate.estimation_case.fit_hierarchical_regression", refuse)
    monkeypatch.setattr("factaudit.estimate.estimation_methods.cross_fit_error_probabilities", refuse)
    found = estimate_rates(claims, verdicts, levels=["claim"], methods=["raw"])
    assert {row["method"] for row in found.rates} == {"raw"}
    assert all(row["rate"] is not None for row in found.rates)
