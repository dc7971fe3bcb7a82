"""What readers of fresh reports found false or misleading, third round: each test is of a sentence that one tried."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from test_fresh_reports import make_tables
from test_fresh_reports_second import make_orders

from factaudit.audit import list_computable_audits, load_all_audits
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.estimate_remarks import _state_estimate_interval_widths
from factaudit.audit.estimates import _state_audit_estimates_of_error_rates
from factaudit.audit.findings import collect_findings
from factaudit.audit.first_screen_systems import list_first_screen_system_advice
from factaudit.audit.first_screen_table import state_missed_errors_or_false_alarms
from factaudit.audit.quantification import decide_on_quantification
from factaudit.audit.ranking_checks import decide_on_ranking_systems
from factaudit.audit.triage import AUDIT as TRIAGE
from factaudit.report.check_table import build_report_check_table
from factaudit.report.html import _list_html_next_steps
from factaudit.report.report_document import build_report_document
from factaudit.results import compare
from factaudit.run_diff import RunDiff
from factaudit.run_diff_markdown import render_run_diff_markdown
from factaudit.run_gate import RunGateVerdict, judge_run_gate_changes

Row = dict[str, Any]

# ---------------------------------------------------------------------------------------------------------- estimates


def test_widths_are_said_and_no_number_of_labels_that_would_do() -> None:
    """ "As narrow as 375 labels alone would": about 215 do, as the claims are finite and the rates near 0."""
    row = {"width": 0.19, "width_shuffled": 0.302, "width_labels": 0.368, "worth": 3.75, "n_labels": 100}
    (told,) = _state_estimate_interval_widths(row)
    assert told == (
        "Hierarchical intervals are 19.0 points wide on average; with useless (shuffled) scores 30.2, by these labels "
        "alone 36.8 (of systems that have all three)."
    )
    for lacking in ("width", "width_shuffled"):
        assert list(_state_estimate_interval_widths(row | {lacking: None})) == []
    # Where annotators' errors widen the intervals, the ratio of the table is that of other widths.
    (told,) = _state_estimate_interval_widths(row | {"width_majority": 0.18})
    assert told.endswith("(of systems that have all three; the table's ratios are by the majority's labels).")


# ------------------------------------------------------------------------------------------------------------- report


@pytest.mark.parametrize(("second", "is_said"), [(0.0244, False), (0.031, True)])
def test_rates_that_are_shown_alike_have_no_lowest_one(second: float, is_said: bool) -> None:
    """Of 2.35 and 2.36 %, both shown as 2.4, one was "the lowest", and another was best in more of the draws."""
    same = {"dataset": "d", "level": "claim"}
    rates = [
        same | {"system": system, "method": "hierarchical", "rate": rate, "n_labels": 14, "n": 150}
        for system, rate in {"a": 0.0236, "b": second, "c": 0.3}.items()
    ]
    summary = same | {"n_labels": 42, "n_systems": 3, "n": 450, "quote": "hierarchical", "why": "quote hierarchical"}
    run = AuditedRun({"estimates": rates, "estimate_summary": [summary]})
    told = " ".join(map(str, _state_audit_estimates_of_error_rates(run, summary)))
    assert ("a has the lowest of these rates, 2.4 %." in told) == is_said


@pytest.mark.parametrize("has_transfer", [True, False])
def test_a_check_that_warns_of_what_is_not_known_is_excepted_from_the_promise(has_transfer: bool) -> None:
    audits = ["rates", "transfer"] if has_transfer else ["rates"]
    results = compare(*make_tables({"e": (0.9, 0.8)}), audits=audits, replicates=20)
    table = build_report_check_table(results.to_dict())
    assert table is not None
    assert ("“Rates that differ between systems” also warns where that is not known." in table.caption) == has_transfer
    assert table.columns[-1] == "not tested", "without intervals a check finds something, and tests nothing"


@pytest.mark.parametrize(
    ("section", "n_labelled", "is_said"), [("rates", 5, True), ("rates", 9, False), ("dfactscore", 5, False)]
)
def test_a_sample_is_advised_of_claims_that_lack_labels(section: str, n_labelled: int, is_said: bool) -> None:
    """Of 164 facts, all labelled, the claims table had 392 rows: a row for each person of the name."""
    document: Any = SimpleNamespace(sections=[SimpleNamespace(id=section)], evaluator_table=None)
    browser: Any = SimpleNamespace(table=range(9), n_labelled=n_labelled, has_text=True)
    browser.list_filter_choices = lambda: {"systems": ["s", "t"]}
    told = _list_html_next_steps(document, browser)
    assert any("from few labels" in step for step, _ in told) == is_said


def test_what_significant_means_is_said_of_comparisons_too(tmp_path: Path) -> None:
    results = compare(*make_tables({"e": (0.9, 0.8)}), replicates=20)
    results.save(tmp_path)
    told = " ".join(" ".join(one.paragraphs) for one in build_report_document(results.to_dict(), tmp_path).sections)
    assert "Of two evaluators, of data sets, and of TPR or TNR against a limit it is said by the intervals" in told
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "cited here as VC. <" in page, "Merging Facts is cited where its scores are"


def make_unscored_row(n_unscored: int) -> Row:
    row = {"dataset": "d", "evaluator": "e", "n": 900, "n_unscored": n_unscored, "n_unattributable": 200}
    return row | {"tnr": 0.45, "tnr_min": 0.33, "tnr_max": 0.59}


def test_what_is_missed_is_bounded_where_much_is_unscored() -> None:
    """ "Both under Use miss at least 44 of 100": one of them missed 41 to 67."""
    told = [
        state_missed_errors_or_false_alarms(AuditedRun({}), make_unscored_row(n), "tnr", "n_unattributable")
        for n in (0, 250)
    ]
    assert told == ["55 of 100 errors", "41 of 100 to 67 of 100 errors"]


def test_pairs_that_one_side_orders_are_said_of_all_pairs() -> None:
    """ "Of the 20 it orders 17 alike; in 4, only one side": 21 of 20, as 4 were of all 30."""
    run = AuditedRun({"ranking": [make_orders("e", 10, 6) | {"n_one_sided": 5}]})
    answer = decide_on_ranking_systems(run, "e")
    assert answer is not None
    assert answer.sentence == "In 5 of 15 pairs, only one side finds a significant difference."


@pytest.mark.parametrize(("dataset", "is_said"), [("__all__", True), ("d", False)])
def test_a_promise_over_all_data_sets_is_none_of_each(dataset: str, is_said: bool) -> None:
    row = {"dataset": dataset, "evaluator": "e", "review_share": 0.7, "max_error": 0.05, "confidence": 0.9, "n": 90}
    assert TRIAGE.remarks is not None
    (told,) = TRIAGE.remarks([row], [])
    assert ("of the rest are errors, over all data sets together, by the scores of e" in told) == is_said


# --------------------------------------------------------------------------------------------------------------- diff


def test_a_summary_of_a_diff_says_what_it_leaves_out() -> None:
    whole = RunDiff("one", "two", 9, 0, 0, [], [], [], {})
    told = render_run_diff_markdown(whole, RunGateVerdict("no significant change", [], [], [], []))
    assert not re.search("Not compared|Labels: ", told)
    assert "(unscored: of all claims in both runs)" in told
    part = replace(whole, n_labels_changed=1, only_evaluators_before=["old"], only_evaluators_after=["new"])
    told = render_run_diff_markdown(part, RunGateVerdict("no significant change", [], [], [], []))
    assert "Labels: 1 differ; these figures use those before." in told
    assert "Not compared: old (before)." in told
    assert "Not compared: new (after)." in told


@pytest.mark.parametrize(("n_evaluators", "word"), [(1, "worse"), (3, "no significant change")])
def test_one_of_many_evaluators_that_changed_by_chance_is_none(n_evaluators: int, word: str) -> None:
    """Three judges asked again were called worse, better or changed in 8 of 40 pairs of runs without a change."""
    rows = [
        {"dataset": "__macro__", "evaluator": f"e{at}", "n_both": 90, "n_flips": 9, "lost": 0}
        | {f"{key}{end}": 0.0 for key in ("bacc", "tpr", "tnr", "abs_bias") for end in ("", "_before", "_after")}
        | {f"{key}_low": -0.02 for key in ("bacc", "tpr", "tnr", "abs_bias")}
        | {f"{key}_high": 0.02 for key in ("bacc", "tpr", "tnr", "abs_bias")}
        for at in range(n_evaluators)
    ]
    rows[0] |= {"bacc": -0.025, "bacc_low": -0.048, "bacc_high": -0.002}  # p = .03
    assert judge_run_gate_changes(rows, [], []).word == word
    rows[0] |= {"bacc_high": -0.012}
    assert judge_run_gate_changes(rows, [], []).word == "worse"


def test_slices_on_which_an_evaluator_is_better_are_not_the_worst() -> None:
    slices = load_all_audits()["slices"]
    assert slices.readable is not None
    rows = [{"difference": at, "difference_low": at - 0.1, "difference_high": at + 0.1} for at in (-0.3, 0.0, 0.4)]
    shown, note = slices.readable(rows)
    assert [row["difference"] for row in shown] == [-0.3]
    assert note == "These are the 1 of 3 comparisons with an interval that are below 0; all rows are in the CSV."
    assert slices.readable(rows[1:])[1] == "No comparison with an interval is below 0; all rows are in the CSV."


@pytest.mark.parametrize(("n_unscored", "told"), [(0, "at 16.0 %"), (30, "(depending on the unscored claims)")])
def test_a_rate_with_many_unscored_claims_is_said_with_its_bounds(n_unscored: int, told: str) -> None:
    """ "16.0 % for 57.3 %": of 119 scored claims of 150; the missing ones were 4 of the 41 points."""
    row = {"dataset": "d", "level": "claim", "evaluator": "e", "system": "s", "n": 120, "n_unscored": n_unscored}
    row |= {"labelled_error_rate": 0.57, "predicted_error_rate": 0.16, "n_clusters": 120}
    row |= {"predicted_error_rate_min": 0.127, "predicted_error_rate_max": 0.333}
    row |= {"bias": -0.41, "bias_low": -0.52, "bias_high": -0.3, "bias_min": -0.44, "bias_max": -0.24}
    other = row | {"system": "t", "bias": 0.0, "bias_low": -0.02, "bias_high": 0.02, "bias_min": 0.0, "bias_max": 0.0}
    run = AuditedRun({"quantification": [row, other]})
    (finding,) = collect_findings({"quantification": [row, other]})
    assert f"{told}, the labels at 57.0 %" in finding["statement"]
    answer = decide_on_quantification(run, "e")
    assert answer is not None
    assert ("at worst −44.0 to −24.0" if n_unscored else "at worst −41.0") in answer.sentence
    line = dict(list_first_screen_system_advice(run, ["e"]))["Not for"]
    assert ("(24.0 to 44.0)" if n_unscored else "(41.0)") in line


def test_what_is_found_is_bounded_where_much_is_unscored() -> None:
    row = make_unscored_row(250) | {"tpr": 0.9, "tpr_min": 0.8, "tpr_max": 0.95, "bacc": 0.67}
    ends = {"tnr_low": 0.4, "tnr_high": 0.5, "tpr_low": 0.88, "tpr_high": 0.92}
    for n_unscored, told in ((0, "It finds 45.0 % of the errors"), (250, "It finds at most 59.0 % of the errors")):
        run = AuditedRun({"rates": [row | ends | {"n_unscored": n_unscored}]})
        (one,) = load_all_audits()["rates"].decides
        answer = one.answer(run, "e")
        assert answer is not None
        assert answer.sentence.startswith(told)
        assert ("TNR 33.0 % to 59.0 %" in answer.figure) == bool(n_unscored)


@pytest.mark.parametrize("audits", [None, ["rates"]])
def test_every_audit_that_did_not_apply_is_named(audits: list[str] | None, tmp_path: Path) -> None:
    """Two were listed as not computed, and two more were neither computed nor listed."""
    results = compare(*make_tables({"e": (0.9, 0.8)}), audits=audits, replicates=20)
    document = build_report_document(results.to_dict(), tmp_path)
    told = " ".join(next(one for one in document.sections if one.id == "provenance").paragraphs)
    _, _, listed = told.partition("Not computed, as claims and verdicts have not what is needed: ")
    lacking = {audit.title for name, audit in list_computable_audits().items() if not results.audits.get(name)}
    assert set(filter(None, listed.rstrip(".").split("; "))) == (lacking if audits is None else set())
