"""Rates from few labels: the model against its definition and by brute force; each method by hand,
from tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audit_tables import join
from estimate_data import ESTIMATE_COLUMNS, World, annotated, tables, without_labels
from scipy.special import expit

from factaudit import InputError, UsageError, estimate_rates
from factaudit.audit.screen import compose_screen
from factaudit.estimate.corpus import Corpus, build_corpora
from factaudit.estimate.methods import (
    ESTIMATION_METHODS,
    Estimation,
    RateEstimate,
    estimate_by_method,
)
from factaudit.estimate.rates import EstimationResults, compare_pairs, find_contradictions
from factaudit.stats.regression import (
    APART_SCALE,
    EFFECT_SCALES,
    HierarchicalRegression,
    make_covariates,
)
from factaudit.stats.sampling import (
    StratifiedDraw,
    cluster_design_effect,
    label_weights,
    simple_random_draw,
    stratified_mean,
    stratified_wilson_interval,
)

WORLDS = {
    "usual": World(),
    "rare": World(rates=(-4.5, -4.0, -3.5, -3.0)),
    "one system": World(rates=(-1.0,)),
    "thirty": World(rates=tuple(np.linspace(-3, 0.5, 30)), size=60),
    "perfect": World(skill=(12.0, 12.0)),
    "extreme": World(rates=(-8.0, 8.0)),
}


def corpus_of(world: World, seed: int = 0) -> Corpus:
    claims, verdicts = tables(world, seed)
    (corpus,) = build_corpora(
        join(claims, verdicts), "claim", sorted(verdicts["evaluator"].unique())
    )
    return corpus


def reveal(corpus: Corpus, rows: np.ndarray, **options: str) -> Estimation:
    """What is known where these rows are labelled."""
    error = np.full(len(corpus.error), np.nan)
    error[rows] = corpus.error[rows]
    return Estimation(
        replace(corpus, error=error), simple_random_draw(~np.isnan(error), corpus.system), **options
    )


# ---- the model


@pytest.mark.parametrize("name", WORLDS)
def test_the_gradient_vanishes_at_every_mode(name):
    corpus = corpus_of(WORLDS[name])
    rows = np.random.default_rng(1).choice(len(corpus.error), 60, replace=False)
    columns, n_systems = (
        make_covariates(corpus.score, corpus.evaluators, system=corpus.system),
        len(corpus.systems),
    )
    model = HierarchicalRegression(columns, corpus.system, rows, corpus.error[rows], n_systems)
    posterior = model.draw(np.random.default_rng(0))
    assert len(posterior.modes) == len(EFFECT_SCALES) * (3 if n_systems > 2 else 1)
    assert posterior.n_effective_proposals >= 100
    # Not what the fit says of itself: the gradient computed again from the model's definition.
    design = np.column_stack(
        [np.ones(60), columns.values[rows], np.eye(n_systems)[corpus.system[rows]]]
    )
    mean = np.concatenate([[0], columns.prior_mean, np.zeros(n_systems)])
    for mode in posterior.modes:
        sd = np.concatenate([[5.0], columns.prior_sd, np.full(n_systems, mode.effect_scale)])
        if mode.apart is not None:
            sd[-n_systems + mode.apart] = APART_SCALE
        residual = corpus.error[rows] - expit(design @ mode.parameters)
        assert np.abs(design.T @ residual - (mode.parameters - mean) / sd**2).max() < 1e-4


def test_agrees_with_importance_weights_over_a_wide_proposal():
    """One system, one evaluator: the posterior of the rate by brute force over a grid of its
    parameters."""
    corpus = corpus_of(World(rates=(-1.0,), size=120, skill=(1.5,)), seed=3)
    rows = np.random.default_rng(0).choice(120, 25, replace=False)
    x = make_covariates(corpus.score, corpus.evaluators).values[:, 0]
    a, b = (
        grid.ravel()
        for grid in np.meshgrid(np.linspace(-9, 9, 361), np.linspace(-4, 7, 221), indexing="ij")
    )
    # The intercept plus the one effect is normal with variance 25 + τ², given τ.
    weight = np.zeros(len(a))
    for tau in EFFECT_SCALES:
        variance = 25 + tau**2
        weight += tau / (1 + tau**2) * np.exp(-0.5 * a**2 / variance) / np.sqrt(variance)
    eta = a[:, None] + b[:, None] * x[rows]
    weight *= np.exp(
        -0.5 * ((b - 1.4) / 1.2) ** 2 + (eta @ corpus.error[rows] - np.logaddexp(0, eta).sum(1))
    )
    rest = np.setdiff1d(np.arange(120), rows)
    rate = (corpus.error[rows].sum() + expit(a[:, None] + b[:, None] * x[rest]).sum(1)) / 120
    exact = float(weight @ rate / weight.sum())
    assert reveal(corpus, rows).rate_draws.mean() == pytest.approx(exact, abs=0.005)


def test_the_wrong_order_is_that_of_the_difference_shown():
    corpus = corpus_of(World())
    case = reveal(corpus, np.arange(len(corpus.error)))
    # Most draws lie above 0, their mean below: the order shown is wrong in most of them.
    draws = np.tile(np.array([0.2, 0.1, 0.5, 0.5]), (100, 1))
    draws[:30, 0] = 0.0
    draws[:30, 1] = 0.4
    vars(case)["rate_draws"] = draws
    first = compare_pairs(case)[0]
    assert first["difference"] == pytest.approx(-0.05)
    assert first["p_wrong"] == pytest.approx(0.7)
    assert first["order"] == "?"


# ---- the draw


def one_phase(strata: list[tuple[int, list[float]]]) -> tuple[StratifiedDraw, np.ndarray]:
    """A draw from strata of so many claims, with these values."""
    frame = np.concatenate([np.full(len(values), size) for size, values in strata])
    code = np.concatenate([np.full(len(values), at) for at, (_, values) in enumerate(strata)])
    values = np.concatenate([values for _, values in strata])
    return StratifiedDraw(
        np.arange(len(values)), np.zeros(len(values), dtype=int), code, frame
    ), values


def test_draws_in_phases_are_unbiased_and_their_variance_is_right():
    """2,000 draws of a corpus of 60: the first phase by a poor guess, the second by what the first
    one said."""
    random = np.random.default_rng(0)
    error = np.concatenate([np.ones(18), np.zeros(42)])
    half = np.arange(60) % 2
    found, variances = [], []
    for _ in range(2000):
        first = np.concatenate(
            [random.choice(np.flatnonzero(half == h), 6, replace=False) for h in (0, 1)]
        )
        rest = np.setdiff1d(np.arange(60), first)
        # More are drawn of the half in which more errors were seen: by looking at the labels.
        worse = int(error[first][half[first] == 1].sum() > error[first][half[first] == 0].sum())
        sizes = {worse: 9, 1 - worse: 3}
        second = np.concatenate(
            [random.choice(rest[half[rest] == h], sizes[h], replace=False) for h in (0, 1)]
        )
        rows = np.concatenate([first, second])
        phase = np.repeat([0, 1], 12)
        frame = np.where(phase == 0, 30, 24)
        draw = StratifiedDraw(rows, phase, 2 * phase + half[rows], frame)
        mean, variance = stratified_mean(draw, error[rows], np.full(24, 0.21), 60)
        found.append(mean)
        variances.append(variance)
        weights = label_weights(draw, np.ones(24, dtype=bool))
        assert weights.sum() == pytest.approx(60)
        assert weights @ error[rows] / 60 == pytest.approx(mean)
    assert np.mean(found) == pytest.approx(0.3, abs=4 * np.std(found) / np.sqrt(2000))
    assert np.mean(variances) == pytest.approx(np.var(found), rel=0.15)


def test_labels_of_one_response_are_worth_less():
    residual = np.array([0.5, 0.5, -0.5, -0.5])
    assert cluster_design_effect(residual, np.array([0, 0, 1, 1])) == pytest.approx(4)
    assert cluster_design_effect(residual, np.arange(4)) == 1
    assert cluster_design_effect(residual, np.array([0, 1, 0, 1])) == 1


def test_labels_only():
    from statsmodels.stats.proportion import proportion_confint

    # Of few errors the end next to 0 is that of a Poisson count.
    for errors, n in (
        (0, 20),
        (6, 20),
        (50, 50),
    ):
        draw, values = one_phase([(1_000_000, [1.0] * errors + [0.0] * (n - errors))])
        rate, *ends = stratified_wilson_interval(draw, values, 1_000_000, np.arange(n), 0.95)
        assert rate == errors / n
        np.testing.assert_allclose(ends, proportion_confint(errors, n, 0.05, "wilson"), atol=0.03)
    draw, values = one_phase([(20, [1.0] * 5 + [0.0] * 15)])
    assert stratified_wilson_interval(draw, values, 20, np.arange(20), 0.95) == (0.25, 0.25, 0.25)


# ---- from tables


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


def test_every_method_is_near_the_truth():
    claims, verdicts, truth = labelled_at_random(400)
    found = estimate_rates(claims, verdicts, methods=list(ESTIMATION_METHODS), levels=["claim"])
    assert set(found.rates[0]) == set(ESTIMATE_COLUMNS)
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
    width = {
        method: (
            rate_rows(found, method)["rate_high"] - rate_rows(found, method)["rate_low"]
        ).mean()
        for method in ("hierarchical", "labels")
    }
    assert width["hierarchical"] < 0.9 * width["labels"], "the scores add to a label's worth"
    ranks = pd.DataFrame(found.ranks)
    assert ranks["p_best"].sum() == pytest.approx(1)
    assert ranks["rank"].sum() == pytest.approx(10, abs=0.2)
    assert len(found.differences) == 6


def test_no_figure_depends_on_the_order_of_rows():
    claims, verdicts, _ = labelled_at_random(100)
    first = estimate_rates(claims, verdicts, methods=list(ESTIMATION_METHODS), levels=["claim"])
    mixed = claims.sample(frac=1, random_state=1)
    second = estimate_rates(
        mixed.reset_index(drop=True), verdicts, methods=list(ESTIMATION_METHODS), levels=["claim"]
    )
    assert first == second


def test_a_system_without_labels_gets_no_rate():
    claims, verdicts, _ = labelled_at_random(300, World(drift=0.3))
    claims.loc[claims["system"] == "s01", "label"] = pd.NA
    found = estimate_rates(claims, verdicts, levels=["claim"])
    for method in ("hierarchical", "regression-ppi", "labels"):
        row = rate_rows(found, method).loc["s01"]
        assert np.isnan(row["rate"])
        assert "no label of its own" in row["reason"]
    assert not any("s01" in (row["system_a"], row["system_b"]) for row in found.differences)


def test_few_labels_are_flagged_and_have_no_design_based_interval():
    claims, verdicts, _ = labelled_at_random(24)
    found = estimate_rates(claims, verdicts, levels=["claim"])
    for row in found.rates:
        if row["method"] in ("labels", "regression-ppi") and row["n_labels"] < 10:
            assert row["rate_low"] is None
            assert "fewer than 10" in row["reason"]
        if row["method"] == "hierarchical" and row["n_labels"] < 8:
            assert "fewer than 8 labels" in row["reason"]
    assert "fewer than 8 labels a system" in found.summary[0]["why"]


def test_a_method_to_quote_that_was_not_asked_for_is_said_to_be_missing():
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


def test_everything_labelled_needs_no_estimate():
    claims, verdicts = tables(World(size=60))
    truth = 1 - claims.groupby("system")["label"].mean()
    found = estimate_rates(claims, verdicts, levels=["claim"])
    for method in ("hierarchical", "regression-ppi", "labels"):
        rows = rate_rows(found, method)
        for key in ("rate", "rate_low", "rate_high"):
            np.testing.assert_allclose(rows[key], truth.astype(float), atol=1e-6)
    assert found.summary[0]["quote"] == "labels"
    assert {row["order"] for row in found.differences} <= {"<", ">"}


def test_without_any_label_only_what_is_predicted_is_told():
    claims, verdicts = tables(World())
    found = estimate_rates(without_labels(claims), verdicts)
    told = {row["method"] for row in found.rates if row["rate"] is not None}
    assert told == {"raw"}
    assert found.summary[0]["quote"] is None
    assert found.ranks == found.differences == []


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_are_all_equal(label):
    claims, verdicts, _ = labelled_at_random(60)
    claims["label"] = claims["label"].where(claims["label"].isna(), label)
    found = estimate_rates(claims, verdicts, levels=["claim"])
    rows = rate_rows(found, "hierarchical")
    assert (rows["rate_high"] > rows["rate_low"]).all()
    assert ((rows["rate"] < 0.2) if label else (rows["rate"] > 0.8)).all()


def test_scores_that_are_constant_or_missing():
    claims, verdicts, truth = labelled_at_random(200)
    constant = verdicts.assign(score=0.7)
    found = estimate_rates(claims, constant, levels=["claim"])
    rows = rate_rows(found, "hierarchical")
    assert ((rows["rate_low"] <= truth) & (truth <= rows["rate_high"])).all()
    # Missing just where the errors are.
    wrong = claims["claim_id"][tables(World())[0]["label"] == 0]
    lost = verdicts["claim_id"].isin(wrong.sample(frac=0.8, random_state=0))
    holes = verdicts[~lost].reset_index(drop=True)
    found = estimate_rates(claims, holes, levels=["claim"])
    assert "e0 did not score 240 of 1,000 claims" in found.summary[0]["reason"]
    for row in rate_rows(found, "raw").itertuples():
        scored = row.n - row.n_unpredicted
        assert row.rate_min == pytest.approx(row.rate * scored / row.n)
        assert row.rate_max == pytest.approx((row.rate * scored + row.n_unpredicted) / row.n)
    assert sum(row["n_unpredicted"] for row in found.rates if row["method"] == "raw") == 240
    rows = rate_rows(found, "hierarchical")
    assert ((rows["rate_low"] <= truth) & (truth <= rows["rate_high"])).all()


def test_contradicting_estimates_are_flagged():
    """More than two of regression-PPI's standard errors apart (here 0.05); at a cut-off end the
    other side has them."""
    half = 1.96 * 0.05
    estimates = {
        "hierarchical": [
            RateEstimate(0.41),
            RateEstimate(0.39),
            RateEstimate(0.12),
            RateEstimate(0.3),
        ],
        "regression-ppi": [
            *[RateEstimate(0.3, 0.3 - half, 0.3 + half)] * 2,
            RateEstimate(0.01, 0.0, 0.01 + half),
            RateEstimate(),
        ],
    }
    assert find_contradictions(estimates.__getitem__, 0.95) == [0, 2]
    claims, verdicts, _ = labelled_at_random(
        600, World(rates=(-1.0, -1.0, -1.0), skill=(6.0,)), seed=1
    )
    found = estimate_rates(claims, verdicts, levels=["claim"])
    assert not any("standard errors apart" in (row["reason"] or "") for row in found.rates)


def test_responses():
    claims, verdicts, _ = labelled_at_random(1000, World(size=240))
    claims["response_id"] = [f"r{i // 4}" for i in range(len(claims))]
    kept = claims["response_id"].isin(sorted(set(claims["response_id"]))[:60])
    claims["label"] = claims["label"].where(kept)
    found = estimate_rates(claims, verdicts)
    by_level = {
        level: [row for row in found.rates if row["level"] == level]
        for level in ("claim", "response")
    }
    assert {row["n"] for row in by_level["response"]} == {60}
    assert sum(row["n_labels"] for row in by_level["response"] if row["method"] == "labels") == 60
    # Labels for a claim here and there tell nothing fair of a response.
    claims["label"] = claims["label"].where(np.arange(len(claims)) % 4 == 0)
    found = estimate_rates(claims, verdicts, levels=["response"])
    assert {row["method"] for row in found.rates if row["rate"] is not None} == {"raw"}
    assert "for some of their claims only" in found.rates[0]["reason"]


def test_wrong_usage():
    claims, verdicts, _ = labelled_at_random(50)
    for options, message in (
        ({"methods": ["hierarchic"]}, "did you mean 'hierarchical'"),
        ({"levels": ["sentence"]}, "unknown level"),
        ({"main": "e7"}, "no verdicts of 'e7'"),
        ({"confidence": 95.0}, "between 0 and 1"),
        (
            {
                "annotations": annotated(*tables(World())[:1], claims["claim_id"][:5]),
                "rule": "mean",
            },
            "numbers between 0 and 1, from which no rate can be estimated",
        ),
    ):
        with pytest.raises((UsageError, InputError), match=message):
            estimate_rates(claims, verdicts, **options)


def test_undecided_claims_widen_the_bounds():
    """A claim that people could not decide counts as unlabelled; the bounds are the rates if none,
    and if all, were errors."""
    (corpus,) = build_corpora(join(*tables(World())), "claim", ["e0", "e1"])
    error, undecided = corpus.error.copy(), np.zeros(len(corpus.error), dtype=bool)
    error[np.arange(len(error)) % 5 > 0] = np.nan
    unsure = replace(corpus, error=error, undecided=undecided)
    undecided[::50] = True
    unsure = replace(corpus, error=np.where(undecided, np.nan, error), undecided=undecided)
    case = Estimation(unsure, simple_random_draw(unsure.is_labelled | undecided, unsure.system))
    for method in ("hierarchical", "regression-ppi", "labels"):
        for one in estimate_by_method(method, case):
            assert one.least is not None
            assert one.greatest is not None
            assert one.least <= one.rate <= one.greatest, method
            assert one.least < one.greatest, method
