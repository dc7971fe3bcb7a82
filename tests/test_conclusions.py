"""Conclusions that reports once drew wrongly, each with the tests that hold it now; and tests that belong to no other
file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_tables import find, judged
from scipy.stats import norm
from test_statements import make_world

from factaudit.audit import list_computable_audits, make_audited_run
from factaudit.audit.core.significance import p_above_other_figure, select_rows_beyond_limit
from factaudit.audit.differences import compute_evaluator_differences
from factaudit.audit.factscore import compute_factscore_audit
from factaudit.audit.findings import collect_findings, run_audit_checks
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.headroom import compute_headroom
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.audit.rates import RATE_NAMES, compute_evaluator_rates
from factaudit.estimate.rate_estimation import estimate_rates
from factaudit.report.check_table import build_report_check_table
from factaudit.report.figure_selection import count_unscored_verdicts
from factaudit.report.report_document import build_report_document
from factaudit.report.report_figures import list_report_figures
from factaudit.report.summary import compose_report_summary_paragraphs
from factaudit.results import compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import validate_claims, validate_verdicts

TESTS = Path(__file__).parent
HERE = "test_conclusions.py"
CHECKS = (validate_claims, validate_verdicts)
#: What was said wrongly, and the tests that fail where it is said again.
ONCE_WRONG = {
    "means over calibrations that cancel": [f"{HERE}::test_a_perfect_correction_is_no_failure"],
    "a figure that shows one system of six": ["test_figure_artists.py::test_every_row_of_a_dot_line_or_forest_plot"],
    "the lead of estimates": [
        "test_statements.py::test_openings_hold_for_claims_and_verdicts",
        "test_statements.py::test_estimates_are_set_beside_the_truth_only_where_all_of_it_is_known",
    ],
    "bootstrap where nothing was resampled": ["test_figure_artists.py::test_lines_are_drawn_where_rows_have_intervals"],
    "claims that are not behind a point": [
        "test_captions.py::test_a_caption_counts_what_stands_behind_its_points",
        "test_figure_artists.py::test_the_number_behind_the_points_is_that_of_the_rows_drawn",
    ],
    "bounds where nothing is unscored": ["test_captions.py::test_a_table_shows_bounds_only_where_they_leave"],
    "intervals of constants": [f"{HERE}::test_what_cannot_vary_has_no_interval"],
    "ends that the data exclude": [f"{HERE}::test_a_bias_reaches_no_farther_than_both_rates"],
    "formulas that give 1 - the rate": ["test_captions.py::test_the_formula_of_adjusted_counts_gives_the_true_rate"],
    "ties that a name decides": [f"{HERE}::test_systems_that_tie_are_all_named_and_names_decide_no_interval"],
    "conclusions where nothing was computed": ["test_nothing_computed.py::test_no_sentence_of_a_run_without_intervals"],
    "artefacts shown as data": ["test_verify_with_caution.py::test_nothing_derived_is_shown_as_observed"],
    "true facts as a verifier's errors": ["test_noise_floor.py::test_a_label_is_read_on_the_page_of_the_person"],
    "a perfect correction that fails": [f"{HERE}::test_a_perfect_correction_is_no_failure"],
    "cells that are no printed figures": ["test_verify_with_caution.py::test_the_papers_tables_come_out"],
    "no claim is labelled, above rates from labels": [f"{HERE}::test_a_run_says_whose_labels_its_estimates_rest_on"],
    "two levels that are one": [f"{HERE}::test_responses_of_one_claim_are_estimated_once"],
    "lost verdicts as wrong ones": ["test_rundiff.py::test_a_lost_verdict_is_no_wrong_one"],
    "a milder finding as a new one": ["test_rundiff.py::test_a_finding_that_changed_is_one"],
    "orders that chance makes": ["test_rundiff.py::test_an_order_of_systems_that_chance_makes"],
    "a smaller bias that fails": ["test_rundiff.py::test_a_bias_that_shrinks_fails_no_condition_on_bias"],
    "unscored claims counted twice": [f"{HERE}::test_unscored_claims_are_counted_once"],
    "a leaderboard that refuses our own run": ["test_export.py::test_a_run_of_printed_rates_is_exported"],
    "numbers of claims of another class": ["test_export.py::test_every_eval_ever_takes_what_is_defined"],
    "far from the labels, and not off": [f"{HERE}::test_nothing_is_beyond_a_limit_that_is_not_beyond_0"],
    "tests that another check made": [f"{HERE}::test_a_test_is_counted_for_the_check_that_makes_it"],
    "certainty from like responses": [f"{HERE}::test_responses_that_are_all_alike_have_no_interval"],
    "a headroom off by more than its rates": [f"{HERE}::test_a_headroom_is_off_by_no_more_than_both_rates_leave"],
    "tests that nobody made": [f"{HERE}::test_without_intervals_the_tests_that_need_none_are_told"],
    "all systems where none is named": [f"{HERE}::test_a_single_rate_is_no_list_of_rates"],
    "pages that are missing": ["test_factscore_run.py::test_where_nothing_is_scored_no_score_is_told"],
    "numbers without rows": [
        "test_statements.py::test_every_value_of_a_statement_is_that_of_its_rows",
        "test_report_statements.py::test_conclusions_hold_for_claims_and_verdicts",
    ],
}


@pytest.mark.parametrize("wrong", ONCE_WRONG)
def test_each_wrong_conclusion_has_its_test(wrong: str) -> None:
    for name in ONCE_WRONG[wrong]:
        file, _, start = name.partition("::")
        assert f"def {start}" in (TESTS / file).read_text(encoding="utf-8"), name


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


def test_a_bias_reaches_no_farther_than_both_rates() -> None:
    """Three errors were seen: no rate of errors without any is compared with a prediction of 100 %."""
    rows = [{"label": int(i > 2), "e": 0, "system": "s", "doc_id": f"d{i}"} for i in range(19)]
    row = find(
        compute_quantification_bias(judged(rows, "e"), intervals=ClusterBootstrap(50)), system="s", level="claim"
    )
    assert row["bias"] == pytest.approx(16 / 19)
    assert row["bias_high"] <= row["predicted_error_rate_high"] - row["labelled_error_rate_low"] + 1e-12
    assert row["bias_high"] < 1
    assert row["bias_low"] < row["bias"] < row["bias_high"]


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
        assert select_rows_beyond_limit(run, [row | {"p_bias": 0.2}], "bias", limit) == []
        assert len(select_rows_beyond_limit(run, [row | {"p_bias": 1e-6}], "bias", limit)) == 1
        turned = {"bias": -0.3, "bias_low": -0.4, "bias_high": -0.2, "p_bias": 0.2}
        assert select_rows_beyond_limit(run, [row | turned], "bias", limit) == []


@pytest.mark.parametrize("other", [0.5, 0.7, 0.8, 0.9])
def test_a_figure_is_above_another_by_the_sides_of_their_intervals_that_face(other: float) -> None:
    """Each side's half-width is its own: 0.1 below the one, 0.1 above the other, whatever stands on their far sides."""
    row = {"dataset": "d", "tpr": 0.8, "tpr_low": 0.7, "tpr_high": 0.95, "n_clusters": 10**6}
    other_row = {"dataset": "d", "fpr": other, "fpr_low": other - 0.2, "fpr_high": other + 0.1}
    z = norm.isf(0.025) * (0.8 - other) / 0.02**0.5
    found = p_above_other_figure(make_audited_run({}, {}), row, "tpr", other_row, "fpr")
    assert found == pytest.approx(min(1.0, 2 * norm.sf(z)), rel=1e-3)


def test_a_test_is_counted_for_the_check_that_makes_it() -> None:
    results = compare(*(check(table) for check, table in zip(CHECKS, make_world("whole"), strict=True)), replicates=50)
    rows, about = results.audits, results.about
    n_tests = run_audit_checks(rows, about)[1]
    corrected = [row for row in rows["adjusted_bias"] if row["level"] == "claim" and row["bias_low"] is not None]
    corrected = [row for row in corrected if not row["calibration_system"].startswith("__")]
    keys = ("dataset", "evaluator", "method", "system", "calibration_system")
    once = {tuple(row[key] for key in (keys[:-1] if row["method"] == "none" else keys)) for row in corrected}
    assert n_tests["adjustment"] == len(once) < len(corrected), "a rate that is not corrected is tested once"
    without = {name: of for name, of in rows.items() if name != "adjusted_bias"}
    assert "adjustment" not in run_audit_checks(without, about)[1], "the audit was not computed"


def test_responses_that_are_all_alike_have_no_interval() -> None:
    rows = [
        {"system": "s", "response_id": f"r{i // 4}", "doc_id": f"d{i // 4}", "label": 1, "e": int(i % 4 > 0)}
        for i in range(40)
    ]
    (row,) = compute_factscore_audit(judged(rows, "e"), gamma=0, intervals=ClusterBootstrap(50))
    assert (row["score"], row["score_low"], row["score_high"]) == (0.75, None, None)
    assert (
        "no interval for score, init_score, f1: its responses are fewer than two, or all have the same" in row["reason"]
    )
    unlike = [one | {"e": 1} if one["response_id"] == "r0" else one for one in rows]
    (row,) = compute_factscore_audit(judged(unlike, "e"), gamma=0, intervals=ClusterBootstrap(50))
    assert row["score_low"] < row["score"] < row["score_high"]
    assert row["reason"] is None


def test_a_headroom_is_off_by_no_more_than_both_rates_leave() -> None:
    random = np.random.default_rng(0)
    rows = [
        {"system": f"s{i % 6}", "label": int(random.random() > 0.2), "e": int(random.random() > 0.2), "doc_id": f"d{i}"}
        for i in range(36)
    ]
    (row,) = compute_headroom(judged(rows, "e"), levels=["claim"], intervals=ClusterBootstrap(50))
    assert row["bias_high"] <= max(row["predicted_high"] - row["labelled_low"], 0)
    assert row["bias_low"] >= min(row["predicted_low"] - row["labelled_high"], 0)
    assert row["bias_low"] <= row["bias"] <= row["bias_high"]


def test_without_intervals_the_tests_that_need_none_are_told(tmp_path: Path) -> None:
    results = compare(*(check(table) for check, table in zip(CHECKS, make_world("whole"), strict=True)), replicates=0)
    table = build_report_check_table(results.to_dict())
    assert table is not None
    made = [line[table.columns.index("tests")].text for line in table.rows]
    assert any(text != "–" for text in made), "pairs of systems are tested"
    assert "nothing is tested" not in table.caption
    assert "where a check made no test, its warnings go by the figures alone" in table.caption
    sections = build_report_document(results.to_dict(), tmp_path).sections
    text = " ".join(paragraph for section in sections for paragraph in section.paragraphs)
    assert "No interval of a figure was computed." in text
    assert "small figures in tables are intervals" not in text


def test_a_single_rate_is_no_list_of_rates() -> None:
    rows = [{"label": int(i % 3 > 0), "e": int(i % 3 > 1), "doc_id": f"d{i}"} for i in range(300)]
    table = judged(rows, "e")
    audits = {
        "rates": compute_evaluator_rates(table, intervals=ClusterBootstrap(50)),
        "quantification": compute_quantification_bias(table, intervals=ClusterBootstrap(50)),
    }
    about = {"evaluators": [{"name": "e"}], "claims": [{"dataset": "d", "n_claims": 300, "n_labelled": 300}]}
    (found,) = [each for each in collect_findings(audits, about) if each["id"] == "bias"]
    assert found["statement"].startswith("The error rate that e predicts is significantly off by over 5 points. It")
    assert "system" not in found["evidence"]
    run = make_audited_run(audits, about)
    answers = [one.answer(run, "e") for one in list_computable_audits()["quantification"].decides]
    texts = [str(one.sentence) for one in answers if one is not None]
    texts += [str(one.sentence) for one in compose_first_screen({"audits": audits, "about": about}).advice]
    assert texts
    assert not any("all systems" in text or "1 of 1" in text for text in texts)


def test_a_perfect_correction_is_no_failure() -> None:
    def bias(method: str, calibration: str, system: str, value: float) -> dict[str, Any]:
        row = {"dataset": "d", "level": "claim", "evaluator": "e", "method": method, "calibration_system": calibration}
        ends = {"bias_low": value - 0.02, "bias_high": value + 0.02, "n_clusters": 200}
        return row | {"system": system, "n": 500, "bias": value} | ends

    pairs = [("a", "b"), ("b", "a")]
    perfect = [bias("none", *pair, 0.2) for pair in pairs] + [bias("adjusted_counts", *pair, 0.0) for pair in pairs]
    found = [each for each in collect_findings({"adjusted_bias": perfect}) if each["id"] == "adjusted_bias"]
    assert [each["severity"] for each in found if "do not count" in each["statement"].lower()] == []
    nothing_wrong = [bias("none", *pair, 0.0) for pair in pairs] + [
        bias("adjusted_counts", *pair, 0.0) for pair in pairs
    ]
    assert [each for each in collect_findings({"adjusted_bias": nothing_wrong}) if each["severity"] == "fail"] == []


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


def test_a_run_says_whose_labels_its_estimates_rest_on() -> None:
    claims, verdicts = make_world("whole")
    estimates = estimate_rates(validate_claims(few_labels(claims)), validate_verdicts(verdicts), levels=["claim"])
    for labelled, said in (
        (claims, "Estimates rest on 72 of the labels."),
        (claims.assign(label=pd.array([pd.NA] * len(claims), dtype="Int8")), "estimates rest on 72 labels"),
    ):
        results = compare(validate_claims(labelled), validate_verdicts(verdicts), audits=["rates"], replicates=20)
        results.audits.update(estimates.audits())
        text = " ".join(compose_report_summary_paragraphs(results.to_dict()))
        assert said in text
        assert "compared with each other only" not in text


def test_unscored_claims_are_counted_once() -> None:
    about = {"dataset": "d", "evaluator": "e", "level": "claim", "n": 10, "n_labelled": 15}
    rates = {"labelled_error_rate": 0.2, "predicted_error_rate": 0.3, "bias": 0.1}
    rows = [about | rates | {"system": name, "n_unscored": n} for name, n in (("a", 2), ("b", 3), ("__all__", 5))]
    audit = list_computable_audits()["quantification"]
    captions = [one.caption for one in list_report_figures(audit, rows, ["e"], {"confidence": 0.95})]
    assert captions
    assert all("5 unscored in all." in caption for caption in captions)
    methods = [row | {"method": method} for row in rows for method in ("none", "adjusted_counts")]
    assert count_unscored_verdicts(methods[:4]) == 5, "of each method the same claims are unscored"
