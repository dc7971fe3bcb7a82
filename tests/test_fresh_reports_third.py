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

from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.estimates import _list_biases_of_nearest_other_evaluator, _state_audit_estimates_interval_widths
from factaudit.audit.first_screen_table import state_missed_errors_or_false_alarms
from factaudit.audit.ranking_checks import decide_on_ranking_systems, format_ranking_opening
from factaudit.audit.triage import AUDIT as TRIAGE
from factaudit.report.check_table import build_report_check_table
from factaudit.report.html import _list_html_next_steps
from factaudit.report.report_document import build_report_document
from factaudit.results import compare
from factaudit.run_diff import RunDiff
from factaudit.run_diff_markdown import render_run_diff_markdown
from factaudit.run_gate import RunGateVerdict

Row = dict[str, Any]

# ---------------------------------------------------------------------------------------------------------- estimates


def test_widths_are_said_and_no_number_of_labels_that_would_do() -> None:
    """ "As narrow as 375 labels alone would": about 215 do, as the claims are finite and the rates near 0."""
    row = {"width": 0.19, "width_shuffled": 0.302, "width_labels": 0.368, "worth": 3.75, "n_labels": 100}
    (told,) = _state_audit_estimates_interval_widths(row)
    assert told == (
        "Where the labels alone give an interval, too, intervals are 19.0 points wide on average; with useless "
        "(shuffled) scores 30.2, by these labels alone 36.8."
    )
    for lacking in ("width", "width_shuffled"):
        assert list(_state_audit_estimates_interval_widths(row | {lacking: None})) == []


@pytest.mark.parametrize(("other", "nearest"), [(0.03, "b"), (0.09, None)])
def test_the_nearest_evaluator_stands_beside_the_main_one(other: float, nearest: str | None) -> None:
    """ "Those that modernbert_a predicts by 5.4": modernbert_b's were off by 3.1, the estimates by 5.1."""
    rows = [
        {"dataset": "d", "level": "claim", "system": system, "evaluator": name, "bias": bias}
        for name, bias in (("a", 0.05), ("b", other), ("floor", 0.0))
        for system in ("s", "t", "__all__")
    ]
    about = {"evaluators": [{"name": "floor", "floor": True}]}
    found = _list_biases_of_nearest_other_evaluator(
        AuditedRun({"quantification": rows}, about), {"dataset": "d", "level": "claim", "main": "a"}, 2
    )
    assert [one["evaluator"] for one in found] == [nearest] * 2 * bool(nearest)


# ------------------------------------------------------------------------------------------------------------- report


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
    browser: Any = SimpleNamespace(table=range(9), n_labelled=n_labelled)
    browser.list_filter_choices = lambda: {"systems": ["s", "t"]}
    told = _list_html_next_steps(document, browser)
    assert any("from few labels" in step for step, _ in told) == is_said


def test_what_significant_means_is_said_of_comparisons_too(tmp_path: Path) -> None:
    results = compare(*make_tables({"e": (0.9, 0.8)}), replicates=20)
    results.save(tmp_path)
    told = " ".join(" ".join(one.paragraphs) for one in build_report_document(results.to_dict(), tmp_path).sections)
    assert "Of two evaluators, and of an evaluator's data sets, it is said by the intervals of that one" in told
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
    assert format_ranking_opening(run, "e").endswith("of the 10 that the labels order significantly it orders 6 alike.")
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
    assert not re.search("Not compared|Labels that differ", told)
    assert "(unscored: of all claims in both runs)" in told
    part = replace(whole, n_labels_changed=1, only_evaluators_before=["old"], only_evaluators_after=["new"])
    told = render_run_diff_markdown(part, RunGateVerdict("no significant change", [], [], [], []))
    assert "Labels that differ: 1; those before are used for both runs." in told
    assert "Not compared: old, only before." in told
    assert "Not compared: new, only after." in told
