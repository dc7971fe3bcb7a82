"""Cases in which a figure or its interval was once wrong: what cannot vary, what ties, what is counted twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from audit_tables import collect_findings, judged
from audit_worlds import make_world
from scipy.stats import norm

from factaudit.audit import make_audited_run
from factaudit.audit.adjustment import compute_adjustment_effect
from factaudit.audit.core.checks import subtract_figures
from factaudit.audit.core.significance import compute_p_values
from factaudit.audit.differences import compute_evaluator_differences
from factaudit.audit.factscore import compute_factscore_audit
from factaudit.audit.headroom import compute_headroom
from factaudit.audit.rates import RATE_NAMES, compute_evaluator_rates
from factaudit.estimate.rates import estimate_rates
from factaudit.results import compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.noise_floor import estimate_noise_floor
from factaudit.tables import validate_claims, validate_verdicts


def test_what_cannot_vary_has_no_interval() -> None:
    rows = [{"label": i % 3 > 0, "a": 1, "b": 0, "e": i % 2, "doc_id": f"d{i // 4}"} for i in range(60)]
    renamed = [{**row, "always-yes": row["a"], "always-no": row["b"], "label": int(row["label"])} for row in rows]
    table = judged(renamed, "always-yes", "always-no", "e")
    rates = compute_evaluator_rates(table, intervals=ClusterBootstrap(50))
    for row in rates:
        is_constant = row["evaluator"] != "e"
        assert {row[f"{key}_low"] is None for key in RATE_NAMES} == {is_constant}
        assert (
            row["dataset"] == "__macro__" or ("it says the same of every claim" in (row["reason"] or "")) == is_constant
        )
        assert not is_constant or row["bacc"] == 0.5
    differences = compute_evaluator_differences(table, intervals=ClusterBootstrap(50))
    for row in differences:
        both = {row["evaluator_a"], row["evaluator_b"]} == {"always-yes", "always-no"}
        assert (row["difference_low"] is None) == both
    claims, verdicts = make_world("whole")
    verdicts = verdicts.assign(evaluator=verdicts["evaluator"].replace({"swift": "always-no"}))
    verdicts.loc[verdicts["evaluator"] == "always-no", ["score", "prediction"]] = [0.0, 0]
    found = compare(validate_claims(claims), validate_verdicts(verdicts), audits=["discrimination"], replicates=50)
    constant = [row for row in found.audits["discrimination"] if row["evaluator"] == "always-no"]
    assert constant
    assert all(row["auc"] == 0.5 for row in constant)
    assert {row[f"{key}_low"] for row in constant for key in ("auc", "tuned_tpr", "tuned_tnr", "tuned_bacc")} == {None}
    assert all(row["average_precision_low"] < row["average_precision"] for row in constant), "it is the share of errors"


def test_systems_that_tie_are_all_named_and_names_decide_no_interval() -> None:
    random = np.random.default_rng(2)
    rows = [
        {"system": system, "label": int(i % 4 > 0), "e": int(i % 5 > 0), "doc_id": f"d{random.integers(30)}"}
        for system in ("ant", "bee", "cat")
        for i in range(40)
    ]
    intervals = ClusterBootstrap(50)
    (row,) = compute_headroom(judged(rows, "e"), levels=["claim"], intervals=intervals)
    assert row["predicted_system"] == row["labelled_system"] == "ant, bee, cat"
    names = {"ant": "zebra", "bee": "yak", "cat": "wolf"}
    other = [{**one, "system": names[one["system"]]} for one in rows]
    (renamed,) = compute_headroom(judged(other, "e"), levels=["claim"], intervals=intervals)
    assert (renamed["bias_low"], renamed["bias_high"]) == pytest.approx((row["bias_low"], row["bias_high"]))


def test_nothing_is_beyond_a_limit_that_is_not_beyond_0() -> None:
    """An exact test of the bias holds for every limit: what is 5 points off is off."""
    row = {"dataset": "d", "bias": 0.3, "bias_low": 0.2, "bias_high": 0.4, "n_clusters": 50}
    run = make_audited_run({}, {})
    for limit in (0.0, 0.05):
        turned = {"bias": -0.3, "bias_low": -0.4, "bias_high": -0.2}
        rows = [row | {"p_bias": 0.2}, row | {"p_bias": 1e-6}, row | turned | {"p_bias": 0.2}]
        assert [p < 0.05 for p in compute_p_values(run, rows, "bias", limit, "off")] == [False, True, False]


@pytest.mark.parametrize("other", [0.5, 0.7, 0.8, 0.9])
def test_a_figure_is_above_another_by_the_sides_of_their_intervals_that_face(other: float) -> None:
    """Each side's half-width is its own: 0.1 below the one, 0.1 above the other, whatever stands on their far sides."""
    row = {"dataset": "d", "tpr": 0.8, "tpr_low": 0.7, "tpr_high": 0.95, "n_clusters": 10**6}
    other_row = {"dataset": "d", "fpr": other, "fpr_low": other - 0.2, "fpr_high": other + 0.1}
    z = norm.isf(0.025) * (0.8 - other) / 0.02**0.5
    row |= subtract_figures("gap", row, "tpr", other_row, "fpr")
    (found,) = compute_p_values(make_audited_run({}, {}), [row], "gap", 0.0, "over")
    assert found == pytest.approx(min(1.0, 2 * norm.sf(z)), rel=1e-3)


def test_responses_that_are_all_alike_have_no_interval() -> None:
    rows = [
        {"system": "s", "response_id": f"r{i // 4}", "doc_id": f"d{i // 4}", "label": 1, "e": int(i % 4 > 0)}
        for i in range(40)
    ]
    (row,) = compute_factscore_audit(judged(rows, "e"), gamma=0, intervals=ClusterBootstrap(50))
    assert (row["score"], row["score_low"], row["score_high"]) == (0.75, None, None)
    assert "no interval for score, init_score: its responses are fewer than two, or all have the same" in row["reason"]
    unlike = [one | {"e": 1} if one["response_id"] == "r0" else one for one in rows]
    (row,) = compute_factscore_audit(judged(unlike, "e"), gamma=0, intervals=ClusterBootstrap(50))
    assert row["score_low"] < row["score"] < row["score_high"]
    assert row["reason"] is None


def few_labels(claims: pd.DataFrame) -> pd.DataFrame:
    return claims.assign(label=claims["label"].where(np.arange(len(claims)) < 72))


def test_responses_of_one_claim_are_estimated_once() -> None:
    claims, verdicts = make_world("whole")
    verdicts = validate_verdicts(verdicts)
    single = claims.assign(response_id=claims["claim_id"])
    claims = claims.assign(response_id=[f"r{i // 24}-{i % 6}" for i in range(len(claims))])
    levels = {
        name: {
            row["level"] for row in estimate_rates(validate_claims(few_labels(table)), verdicts).audits()["estimates"]
        }
        for name, table in (("single", single), ("several", claims))
    }
    assert levels == {"single": {"claim"}, "several": {"claim", "response"}}
    asked = estimate_rates(validate_claims(few_labels(single)), verdicts, levels=["response"]).audits()["estimates"]
    assert {row["level"] for row in asked} == {"response"}


def test_labelled_errors_of_a_system_are_counted_by_claims_not_by_responses() -> None:
    rows = [
        {"system": system, "response_id": f"{system}{at // 4}", "label": int(at >= errors), "e": at % 2}
        for system, errors in (("ant", 12), ("bee", 4))
        for at in range(40)
    ]
    found = collect_findings({"adjustment": compute_adjustment_effect(judged(rows, "e"))})
    (statement,) = [each["statement"] for each in found if each["id"] == "calibration"]
    assert statement.endswith("ant has the most (12).")  # of 3 responses


def test_an_interval_of_the_noise_floor_holds_its_point() -> None:
    merged, n_open = np.array([1.0, 0, 0, 1, 0, 0]), np.full(6, 8)
    for hits in (0, 4):
        floor = estimate_noise_floor(merged, n_open, np.array([[4] * 6, [hits] * 6]), ClusterBootstrap(replicates=60))
        assert floor is not None
        for point, (low, high) in zip(
            (floor.false_positive_rate, floor.floor, floor.excess), floor.intervals, strict=True
        ):
            assert low is not None
            assert high is not None
            assert low <= point <= high


@pytest.mark.parametrize("doc", ["text", "passages", "none"])
def test_claims_without_a_document_id_are_clustered_by_text_else_by_response(doc: str) -> None:
    """Ten claims of one document counted as ten observations where nobody had given it an id."""
    n = 60
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{at}" for at in range(n)],
            "dataset": ["x" if at < 30 else "y" for at in range(n)],
            "response_id": [f"r{at // 5}" for at in range(n)],
            "claim": [f"claim {at}" for at in range(n)],
            "label": [at % 3 > 0 for at in range(n)],
        }
    ).astype({"label": int})
    number = [at // 10 % 3 for at in range(n)]  # the same three documents in both data sets
    if doc == "text":
        claims["doc"] = [f"text of document {at}" for at in number]
    elif doc == "passages":
        claims["doc"] = [[f"passage of {at}", "another"] for at in number]
    named = claims.assign(doc_id=[f"d{at}" for at in number] if doc != "none" else None)
    verdicts = pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": "e", "prediction": 1, "status": "ok"})
    verdicts["prediction"] = [int(at % 4 > 0) for at in range(n)]
    found = [compare(table, verdicts, replicates=20, seed=1) for table in (claims, named)]
    assert [row["n_clusters"] for row in found[0].about["claims"]] == [3 if doc != "none" else 6] * 2
    assert found[0].audits["rates"] == found[1].audits["rates"]
    shuffled = compare(claims.sample(frac=1, random_state=3), verdicts, replicates=20, seed=1)
    assert found[0].audits["rates"] == shuffled.audits["rates"]
