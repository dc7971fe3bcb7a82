"""Statements of reports that were checked and found wrong, one by one: each test is of the statement's cause."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
import pytest
from audit_tables import judged, tables
from test_statements import audit_world, make_world, read_values

from factaudit.audit import list_computable_audits, load_all_audits, make_audited_run
from factaudit.audit.adjustment import compute_adjustment_effect
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.dfactscore import AUDITS as DFACTSCORE_AUDITS
from factaudit.audit.estimates import AUDITS as ESTIMATE_AUDITS
from factaudit.audit.findings import collect_findings, list_audit_check_outcomes
from factaudit.audit.quantification import AUDIT as QUANTIFICATION
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.audit.rates_opening import format_rates_opening
from factaudit.cli.json_output import JsonOutputCommand
from factaudit.cli.result_display import RUN_JSON_KEYS, display_run_json
from factaudit.estimate.rate_estimation import estimate_rates
from factaudit.evaluators.judging import judge
from factaudit.report.check_table import build_report_check_table
from factaudit.report.report_document import build_report_document
from factaudit.report.summary import build_report_evaluator_uses_table
from factaudit.results import Results, compare
from factaudit.run_gate import judge_run_gate_changes
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.noise_floor import estimate_noise_floor
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.rouge_overlap import rouge2_precision

Row = dict[str, Any]


def unlabel(claims: pd.DataFrame) -> pd.DataFrame:
    return claims.assign(label=pd.array([pd.NA] * len(claims), dtype="Int8"))


def describe_provenance(results: Results, folder: Path) -> str:
    document = build_report_document(results.to_dict(), folder)
    return " ".join(next(one for one in document.sections if one.id == "provenance").paragraphs)


@pytest.fixture(scope="module")
def estimated() -> Results:
    """Estimates alone: no claim has a label of its own."""
    claims, verdicts = make_world("whole")
    few = claims.assign(label=claims["label"].where(np.arange(len(claims)) < 72))
    results = compare(validate_claims(unlabel(claims)), validate_verdicts(verdicts), audits=[], replicates=20)
    estimates = estimate_rates(validate_claims(few), validate_verdicts(verdicts), levels=["claim"])
    results.audits.update(estimates.audits())
    return results


# ------------------------------------------------------------------------------------------- calibration on too few


def test_labelled_errors_of_a_system_are_counted_by_claims_not_by_responses() -> None:
    rows = [
        {"system": system, "response_id": f"{system}{at // 4}", "label": int(at >= errors), "e": at % 2}
        for system, errors in (("ant", 12), ("bee", 4))
        for at in range(40)
    ]
    found = collect_findings({"adjustment": compute_adjustment_effect(judged(rows, "e"))})
    (statement,) = [each["statement"] for each in found if each["id"] == "calibration"]
    assert "(bee (4)): a calibration on one rests on no more. ant has most (12)." in statement  # 1 and 3 responses


def test_a_method_is_compared_over_the_calibrations_that_it_can_use() -> None:
    """A figure had "adjusted counts" of one calibration beside "no adjustment" of all, and no word of it."""
    rows = [
        {"system": system, "label": int(at % 3 > 0), "e": int(at % 3 > 0) if at % 10 < right else int(at % 3 == 0)}
        for system, right in (("ant", 9), ("bee", 5), ("cat", 8))
        for at in range(60)
    ]
    results = compute_adjustment_effect(judged(rows, "e"))
    means = {row["method"]: row for row in results if row["calibration_system"] == "__cv__" and row["level"] == "claim"}
    adjusted, none = means["adjusted_counts"], means["none"]
    assert (adjusted["n_systems"], none["n_systems"]) == (2, 3)
    assert adjusted["mean_abs_bias_before"] != none["mean_abs_bias"]
    assert adjusted["change"] == adjusted["mean_abs_bias"] - adjusted["mean_abs_bias_before"]
    text = load_all_audits()["adjustment"].text
    assert "leave out the calibrations that it cannot use" in text
    assert "read “change”" in text


def test_the_overlap_that_slopes_are_of_is_the_score_of_rouge2() -> None:
    """ "Without an interval a slope may be chance" was said of an evaluator drawn against its own score."""
    rows = [
        {"claim": f"a b {'c' * (at % 3 > 0)} {word}", "doc": "a b c d e f", "e": 1, "label": 1}
        for at, word in enumerate("dxeyfd" * 2)
    ]
    claims, _ = tables(rows, ("e",))
    overlap = rouge2_precision(list(claims["claim"]), list(claims["doc"]))
    assert len(set(overlap)) > 2
    np.testing.assert_allclose(judge(claims, ["rouge2"])["score"], overlap)
    assert "`rouge2` leans on it by definition" in load_all_audits()["surface_trend"].formula


def test_few_documents_are_counted_by_data_set() -> None:
    """Systems had 6 documents each, and "fewer than 10 documents" was found nowhere."""
    rows = [
        {"system": f"s{at % 2}", "doc_id": f"d{at % 12}", "label": at // 2 % 2, "e": at // 4 % 2} for at in range(96)
    ]
    claims, verdicts = tables(rows, ("e",))
    results = compare(claims, verdicts, audits=["rates", "quantification"], replicates=20)
    assert {row["n_clusters"] for row in results.rows("quantification") if row["system"] != "__all__"} == {6}
    (outcome,) = [one for one in list_audit_check_outcomes(results.audits, results.about) if one.check.id == "clusters"]
    assert outcome.check.says.startswith("a data set with fewer than 10 documents")
    assert not [each for each in collect_findings(results.audits, results.about) if each["id"] == "clusters"]


def test_nothing_is_said_of_labelled_errors_where_nothing_is_labelled() -> None:
    rows = [{"system": system, "label": None, "e": at % 2} for system in ("ant", "bee") for at in range(20)]
    found = collect_findings({"adjustment": compute_adjustment_effect(judged(rows, "e"))})
    assert [each["statement"] for each in found if each["id"] == "calibration"] == []
    printed = [{"level": "claim", "dataset": "d", "calibration_errors": None, "calibration_error_rate": 0.2}]
    assert collect_findings({"adjustment": printed}) == [], "printed rates have no number of errors"
    right = [row | {"label": 1} for row in rows]
    found = collect_findings({"adjustment": compute_adjustment_effect(judged(right, "e"))})
    assert [each["severity"] for each in found if each["id"] == "calibration"] == ["fail"], "no error is too few"


# ------------------------------------------------------------------------------------------------- D-FActScore


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


@pytest.mark.parametrize(("n", "said"), [(10, "7 of 10 responses say of"), (100, "70.0 % of its responses say of")])
def test_few_merged_responses_are_counted(n: int, said: str) -> None:
    row: Row = {"dataset": "d", "evaluator": "e", "system": "heron", "gap": 0.2, "gap_low": 0.1, "gap_min": 0.2}
    row |= {"share_merged": 0.7, "n_merged": 7 * n // 10, "n_answered": n, "n_undecided": 0, "n_without_candidates": 0}
    row |= {"merged_floor": None, "merged_excess": None, "n_elsewhere": 9, "n_facts": 90, "n_false": 0}
    row |= {"init_factscore": 1.0, "init_dfactscore": 0.8, "gap_high": 0.3, "merged_excess_low": None}
    (finding,) = DFACTSCORE_AUDITS[0].checks[0].run(AuditedRun({"dfactscore": [row]}))
    assert said in finding.statement


def test_a_false_fact_is_false_of_one_person_and_may_be_true_of_another() -> None:
    row: Row = {"dataset": "d", "evaluator": "e", "system": "heron", "gap": 0.2, "gap_low": 0.1, "gap_min": 0.2}
    row |= {"share_merged": 0.7, "n_merged": 14, "n_answered": 20, "n_undecided": 0, "n_without_candidates": 0}
    row |= {"merged_floor": 0.0, "merged_excess": 0.7, "n_elsewhere": 9, "n_facts": 90, "n_false": 26}
    row |= {"merged_excess_high": 0.9, "n_clusters": 20}
    row |= {"init_factscore": 1.0, "init_dfactscore": 0.8, "gap_high": 0.3, "merged_excess_low": 0.4}
    (finding,) = DFACTSCORE_AUDITS[0].checks[0].run(AuditedRun({"dfactscore": [row]}))
    assert (
        "Of 26 facts known to be false of a person, the verifier supports none on that person's page. "
        in finding.statement
    )


# ---------------------------------------------------------------------------------------- rates of systems, bounds


def test_the_mean_bias_is_over_the_same_rates_in_decision_and_first_screen() -> None:
    rows = [
        {"dataset": dataset, "system": system, "label": int(at % 4 > 0), "e": int(at % shift > 0)}
        for dataset, system, shift in (("d", "ant", 2), ("d", "bee", 3), ("f", None, 6))
        for at in range(48)
    ]
    found = compute_quantification_bias(judged(rows, "e"), levels=["claim"])
    run = AuditedRun({"quantification": found}, {})
    assert QUANTIFICATION.glance is not None
    answer = QUANTIFICATION.decides[0].answer(run, "e")
    assert answer is not None
    assert read_values(answer.figure)["rows"].text == "2 rates"
    mean = np.mean([abs(row["bias"]) for row in found if row["system"] in ("ant", "bee")])
    assert read_values(answer.figure)["rows.bias"].text == f"{100 * mean:.1f}"
    figures = QUANTIFICATION.glance.figures(found, "e")
    assert figures is not None
    assert figures["mean_abs_bias"] == pytest.approx(mean)
    nameless = [row for row in found if row["dataset"] == "f"]
    assert QUANTIFICATION.glance.figures(nameless, "e") is None, "no system is named"


def test_where_much_is_unscored_the_opening_says_bounds_throughout() -> None:
    results = audit_world(make_world("unscored"), with_estimates=False)
    run = make_audited_run(results.audits, results.about)
    values = [value for one in format_rates_opening(run, "quill").parts for value in one.cited]
    assert {value.key for value in values if value.rows[0]["evaluator"] == "quill"} <= {
        *("evaluator", "n_lacking", "dataset"),
        *(f"{key}_{end}" for key in ("bacc", "tpr", "tnr") for end in ("min", "max")),
    }


# ------------------------------------------------------------------------------------ captions, options, provenance


def test_a_section_says_the_options_of_its_run(tmp_path: Path) -> None:
    claims, verdicts = make_world("whole")
    audits = [{"ranking": {"test": "z", "correction": "none", "levels": ["claim", "response"]}}, "rates"]
    results = compare(validate_claims(claims), validate_verdicts(verdicts), audits=audits, replicates=20)
    document = build_report_document(results.to_dict(), tmp_path)
    text = {one.id: " ".join(one.paragraphs) for one in document.sections}
    assert "Options of this run: test z; correction none." in text["ranking"]
    assert "Options" not in text["rates"]
    assert re.search(r"by default[^.]*knows clusters", list_computable_audits()["ranking"].formula)


def test_only_checks_that_test_are_said_to_keep_false_alarms_rare() -> None:
    claims, verdicts = make_world("whole")
    tables = validate_claims(claims), validate_verdicts(verdicts)
    for replicates, said in ((20, "Each that tests something warns in at most 5 %"), (0, "nothing is tested")):
        results = compare(*tables, audits=["rates"], replicates=replicates).to_dict()
        table = build_report_check_table(results)
        assert table is not None
        assert said in table.caption
        assert "Each warns" not in table.caption


def test_provenance_says_of_labels_intervals_and_replicates_what_holds_for_the_run(
    estimated: Results, tmp_path: Path
) -> None:
    alone = describe_provenance(estimated, tmp_path)
    assert "all other figures" not in alone, "there is no other figure"
    assert "bootstrap" not in alone, "nothing was resampled"
    assert "The intervals of the lowest, the highest and the best-looking estimate allow for the choice. Each" in alone
    assert "at most 5 % are expected in the wrong order" in alone
    assert "after a correction" not in alone, "no check was made"
    claims, verdicts = make_world("whole")
    audits = ["rates", "headroom", "ranking"]
    whole = compare(validate_claims(claims), validate_verdicts(verdicts), audits=audits, replicates=20)
    text = describe_provenance(whole, tmp_path)
    assert "The interval of a lowest error rate is of all its systems together. Each other interval is of" in text
    assert "20 bootstrap replicates" in text
    assert "fewer rates" not in text
    rates = compare(validate_claims(claims), validate_verdicts(verdicts), audits=["rates"], replicates=20)
    assert "lowest error rate" not in describe_provenance(rates, tmp_path)


def test_the_limits_are_those_of_the_tasks_in_the_table() -> None:
    claims, verdicts = make_world("whole")
    results = compare(validate_claims(claims), validate_verdicts(verdicts), audits=["rates"], replicates=20).to_dict()
    table = build_report_evaluator_uses_table(results)
    assert table is not None
    assert "single errors" in table.caption
    assert "reversed" not in table.caption
    assert "error rate within" not in table.caption


# ---------------------------------------------------------------------------------------------------- estimates


def test_the_lowest_rate_of_one_system_is_not_below_its_own(estimated: Results) -> None:
    remarks = next(audit.remarks for audit in ESTIMATE_AUDITS if audit.name == "estimate_summary")
    assert remarks is not None
    row = estimated.audits["estimate_summary"][0]
    assert any("lowest error rate, whichever system has it" in text for text in remarks([row], []))
    assert not any("lowest error rate" in text for text in remarks([row | {"n_systems": 1}], []))


def test_estimates_beside_the_truth_say_how_many_intervals_hold_it() -> None:
    results = audit_world(make_world("whole"))
    audit = next(one for one in ESTIMATE_AUDITS if one.name == "estimate_summary")
    assert audit.opening is not None
    told = list(audit.opening(make_audited_run(results.audits, results.about), None).parts)  # type: ignore[attr-defined]
    found = [read_values(one) for one in told if "hold the labelled rate" in one]
    true = {
        (row["dataset"], row["system"]): row["labelled_error_rate"]
        for row in results.audits["quantification"]
        if row["level"] == "claim"
    }
    assert len(found) == 2
    for values in found:
        rows = values["with_interval"].rows
        held = [r for r in rows if r["rate_low"] <= true[r["dataset"], r["system"]] <= r["rate_high"]]
        assert values["holding"].text == str(len(held))


# ------------------------------------------------------------------------------------------------------ terminal


def test_a_run_is_not_put_together_as_json_where_lines_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(
        "factaudit.report.summary.build_report_evaluator_uses_table", lambda results: made.append("decisions")
    )
    claims, verdicts = make_world("whole")
    results = compare(validate_claims(claims), validate_verdicts(verdicts), audits=["rates"], replicates=0)
    command = JsonOutputCommand("verb", callback=lambda: display_run_json(results, Path()), json_keys=RUN_JSON_KEYS)
    group = click.Group("factaudit", commands=[command])
    group.main(["verb"], standalone_mode=False)
    assert made == []
    group.main(["verb", "--format", "json"], standalone_mode=False)
    assert made == ["decisions"]


def test_runs_whose_other_figures_changed_are_not_said_to_be_unchanged() -> None:
    row = {"dataset": "__macro__", "evaluator": "judge", "bacc": -0.01, "bacc_low": -0.03, "bacc_high": 0.01}
    row |= {"tpr": -0.04, "tpr_low": -0.05, "tpr_high": -0.03, "tnr": 0.02, "tnr_low": -0.01, "tnr_high": 0.05}
    verdict = judge_run_gate_changes([row], [], [])
    assert verdict.word == "changed"
    assert [one.partition(" changed")[0] for one in verdict.sentences] == ["judge: TPR", "judge: BAcc"]
    assert judge_run_gate_changes([row | {"tpr_high": 0.01}], [], []).word == "no significant change"


def test_a_check_that_has_nothing_to_look_at_is_listed_as_not_made() -> None:
    """A wide gap between two evaluators, one data set, and responses of one claim."""
    rows = [
        {"label": at % 2, "good": at % 2, "poor": at % 3 % 2, "doc_id": f"d{at}", "system": "s"} for at in range(90)
    ]
    claims, verdicts = tables([row | {"response_id": f"r{at}"} for at, row in enumerate(rows)], ("good", "poor"))
    audits = ["rates", "consistency", "quantification"]
    about = compare(claims, verdicts, audits=audits, replicates=20)
    why = {one.check.id: one.not_run for one in list_audit_check_outcomes(about.audits, about.about)}
    assert why["bacc_tie"] == why["iou"] == "poor is not clear of chance"
    assert (why["direction"], why["level"]) == ("there is one dataset", "no response has several claims")
    claims, verdicts = make_world("whole")
    claims["response_id"] = [f"r{at // 12}-{at % 6}" for at in range(len(claims))]
    whole = compare(validate_claims(claims), validate_verdicts(verdicts), audits=audits, replicates=20)
    why = {one.check.id: one.not_run for one in list_audit_check_outcomes(whole.audits, whole.about)}
    assert why["direction"] == why["level"] == ""
    # "There is one dataset" was said of two without labels, and of two of which one has some.
    of_first = (claims["dataset"] == claims["dataset"].iloc[0]).to_numpy()
    for label, said in (
        (claims["label"].where(of_first), "one dataset alone has a labelled error rate"),
        (claims["label"].where(of_first & ~of_first), "no claim is labelled: the rate is of all scored"),
    ):
        part = validate_claims(claims.assign(label=label))
        part_results = compare(part, validate_verdicts(verdicts), audits=["quantification"], replicates=20)
        outcomes = list_audit_check_outcomes(part_results.audits, part_results.about)
        assert [one.not_run.split(";")[0] for one in outcomes if one.check.id == "direction"] == [said]
