"""What readers of fresh reports found false or misleading, sixth round: each test is of a sentence that one tried."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pandas as pd
import pytest
from test_fresh_reports import make_tables
from test_report_breadth import figures_of

from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.findings import collect_findings, list_audit_check_outcomes
from factaudit.report.check_table import build_report_check_table
from factaudit.report.figure_captions import describe_points_without_interval
from factaudit.report.plots.plot_data import PlotFigureData
from factaudit.report.report_figures import list_report_figures
from factaudit.report.report_tables import build_report_table
from factaudit.report.summary import build_report_evaluator_overview, build_report_evaluator_uses_table
from factaudit.results import compare

Row = dict[str, Any]

ABOUT = {"dataset": "d", "level": "claim", "evaluator": "e"}
RATES = {"labelled_error_rate": 0.2, "predicted_error_rate": 0.8, "bias_min": 0.6, "bias_max": 0.6}


def make_corrected_rows(n_clusters: dict[str, int]) -> dict[str, list[Row]]:
    """Rates of systems of so many documents that are far off, before and after a calibration; and of all together."""
    off = {"bias": 0.6, "bias_low": 0.5, "bias_high": 0.7}
    sizes = {**n_clusters, "__all__": 40}
    biases = [ABOUT | RATES | off | {"system": name, "n": 3 * k, "n_clusters": k} for name, k in sizes.items()]
    rows = [
        ABOUT | off | {"method": method, "calibration_system": by, "system": name}
        for by, name in permutations(n_clusters, 2)
        for method in ("none", "bacc_threshold")
    ]
    return {"quantification": biases, "adjusted_bias": rows}


@pytest.mark.parametrize(
    ("n_clusters", "said", "is_tested"),
    [
        ((7, 6, 7), "The 6 corrected rates could not be tested (too few documents).", False),
        ((7, 60, 60), "4 of 4 corrected rates are significantly off; 2 more could not be tested", True),
        ((60, 60, 60), "6 of 6 corrected rates are significantly off.", True),
    ],
)
def test_corrected_rates_of_few_documents_are_not_called_significantly_off(
    n_clusters: tuple[int, ...], said: str, is_tested: bool
) -> None:
    """ "39 of 120 corrected rates are significantly off", of 6 or 7 documents each: no sign test of them can reject."""
    audits = make_corrected_rows(dict(zip("stu", n_clusters, strict=True)))
    (found,) = [one for one in collect_findings(audits) if one["id"] == "adjustment"]
    assert said in found["statement"]
    assert ("significantly off" in found["statement"]) == is_tested
    (outcome,) = [one for one in list_audit_check_outcomes(audits) if one.check.id == "adjustment"]
    assert ("too few documents" in outcome.not_run) == (not is_tested)


def test_a_constant_evaluator_s_bias_varies_as_the_labels_do() -> None:
    """always-yes: bias "−14.3 (−40.5 to +14.7)": above 0 it is of no claims whatever; its IoU "0.00 (0.00–0.11)"."""
    claims, verdicts = make_tables({"always-yes": (1.0, 0.0), "always-no": (0.0, 1.0), "e": (0.9, 0.6)}, n=40)
    audits = compare(claims, verdicts, audits=["quantification", "headroom", "consistency"], replicates=200).audits
    for name, rate in (("quantification", "_error_rate"), ("headroom", "")):
        for row in audits[name]:
            if row["evaluator"] != "e" and row["bias"] is not None:
                predicted, low, high = (row[key + rate + end] for key, end in WANTED)
                assert (row["bias_low"], row["bias_high"]) == pytest.approx((predicted - high, predicted - low))
                assert row[f"predicted{rate}_low"] is None
    for row in audits["consistency"]:
        never = {"attributable": "always-no", "unattributable": "always-yes"}[row["class"]]
        is_never = never in (row["evaluator_a"], row["evaluator_b"])
        assert (row["iou_low"] is None) == is_never
        assert ("gives the class to no claim" in (row["reason"] or "")) == is_never


WANTED = (("predicted", ""), ("labelled", "_low"), ("labelled", "_high"))


def test_a_caption_names_the_points_without_an_interval() -> None:
    """ "Intervals of TPR to the right of zero: leaning on word overlap", under 24 points, none of which had one."""
    audit = load_all_audits()["rates"]
    row = {"dataset": "d", "evaluator": "e", "tpr": 0.9, "tpr_low": 0.8, "tpr_high": 0.95, "tnr": 0.5, "tnr_low": None}
    bare = row | {"evaluator": "f", "tpr_low": None}
    for rows, said in (
        ([row], "Without an interval: TNR."),
        ([row, bare], "Without an interval: TPR (f); TNR."),
        ([bare], "No point has an interval."),
        ([row | {"tnr_low": 0.4}], ""),
        ([row | {"tnr_low": 0.4}, bare | {"evaluator": "always-yes"}], ""),
    ):
        assert describe_points_without_interval(audit, ["tpr", "tnr"], rows) == said


@pytest.mark.parametrize("has_interval", [True, False])
def test_a_figure_without_intervals_says_so(has_interval: bool) -> None:
    ends = {"slope_low": 0.2, "slope_high": 0.6} if has_interval else {"slope_low": None, "slope_high": None}
    row = {"task": "t", "evaluator": "e", "n": 40, "n_unscored": 0, "slope": 0.4} | ends
    rows = [row | {"rate": rate} for rate in ("tpr", "tnr")]
    (figure,) = figures_of("surface_trend", rows)
    assert ("No point has an interval." in figure.caption) == (not has_interval)


def test_markers_of_one_evaluator_are_told_apart_by_their_hover_texts() -> None:
    """ "deberta, RAGTruth-QA: mean |bias| (points) 3.9", 16.9 and 2.8: of three methods, which none of them named."""
    columns = load_all_audits()["surface_bias"].columns
    rows = [{"task": task, "evaluator": "e", "bin": at, "tpr": 0.5} for task in ("QA", "dialogue") for at in (1, 2)]
    frame = PlotFigureData(rows, columns, ["task"], ["e"])
    titles = [frame.make_point(row, "tpr").title for row in rows]
    assert titles[:2] == ["e, QA, bin 1: TPR (%) 50.0", "e, QA, bin 2: TPR (%) 50.0"]
    assert len(set(titles)) == len(rows)


def test_a_slice_is_named_in_its_hover_text_where_all_that_are_drawn_are_of_one_value() -> None:
    columns = load_all_audits()["slices"].columns
    row = {"dataset": "d", "column": "error_type", "value": "merged", "evaluator": "e", "difference": -0.4}
    frame = PlotFigureData([row], columns, ["dataset"], ["e"], line_keys=("column", "value"))
    assert frame.make_point(row, "difference").title == "e, d, error_type, merged: difference (points) −40.0"


@pytest.mark.parametrize(("least", "is_open"), [(0.81, True), (0.88, False)])
def test_bounds_by_facts_in_no_group_are_drawn_although_no_fact_is_unscored(least: float, is_open: bool) -> None:
    """The table had 87.8 [81.7–88.4], “what the unscored claims leave possible”; none was, and no bar was drawn."""
    row = {"dataset": "d", "evaluator": "e", "system": "s", "link": "given", "n_answered": 9, "n_unscored": 0}
    row |= {"init_factscore": 0.95, "init_factscore_min": 0.95, "init_factscore_max": 0.95, "n_ungrouped": 9}
    row |= {"init_dfactscore": 0.88, "init_dfactscore_min": least, "init_dfactscore_max": 0.88}
    (figure,) = figures_of("dfactscore", [row])
    what = "the least and the greatest value that missing verdicts and facts in no group leave possible."
    assert (f"Pale bars: {what}" in figure.caption) == is_open
    frame = PlotFigureData([row], load_all_audits()["dfactscore"].columns, ["system"], ["e"])
    point = frame.make_point(row, "init_dfactscore")
    assert (point.lower_bound is not None) == is_open
    table = build_report_table([row], load_all_audits()["dfactscore"].columns, "")
    assert (f"In brackets: {what}" in " ".join(table.notes)) == is_open


def test_a_report_says_what_its_words_count() -> None:
    """ "Of ranked", where no pair is; "at most 10.0 % differ", of all pairs; "too few documents" of under ten."""
    results = compare(*make_tables({"e": (0.9, 0.6), "f": (0.8, 0.7)}, n=40), replicates=50).to_dict()
    assert not any(row["n_ordered"] for row in results["audits"]["ranking"])
    makers = (build_report_evaluator_overview, build_report_evaluator_uses_table, build_report_check_table)
    tables = [table for make in makers if (table := make(results)) is not None]
    assert len(tables) == len(makers)
    overview, uses, checks = tables
    assert "Of ranked" not in overview.caption
    assert "yes where at most 10.0 % of all pairs differ" in uses.caption
    (cell,) = [line[1].text for line in checks.rows if line[0].text == "Too few documents for intervals"]
    assert "fewer than 10 documents" in cell


def test_the_mean_over_datasets_has_a_share_of_errors() -> None:
    """Undefined, "each dataset has a threshold of its own", stood on the mean of the error rates."""
    claims, verdicts = make_tables({"e": (0.9, 0.6)}, datasets=2)
    verdicts["score"] = verdicts["prediction"].astype(float)
    rows = compare(claims, verdicts, audits=["discrimination"], replicates=0).audits["discrimination"]
    (mean,) = [row for row in rows if row["dataset"] == "__macro__"]
    by_dataset = 1 - claims.groupby("dataset")["label"].mean().astype(float)
    assert mean["error_rate"] == pytest.approx(by_dataset.mean())


def test_one_row_s_reason_does_not_speak_for_the_others() -> None:
    """ "All claims have the same ROUGE-2 precision", of claims from 0 to 1: so had the attributable ones."""
    rows = [{"task": "t", "evaluator": "e", "rate": rate, "n": 9, "n_unscored": 0} for rate in ("tpr", "tnr")]
    ends = {"slope_low": None, "slope_high": None}
    same = rows[0] | ends | {"slope": None, "reason": "all attributable claims have the same ROUGE-2 precision"}
    few = rows[1] | ends | {"slope": 0.1, "reason": "no interval for slope: fewer than 20 clusters"}
    (outcome,) = list_audit_check_outcomes({"surface_trend": [same, few]})
    assert outcome.not_run == f"{same['reason']}; {few['reason']}"
    others = [few | {"task": task, "reason": f"{task}: no text"} for task in "uvw"]
    (outcome,) = list_audit_check_outcomes({"surface_trend": [same, few, *others]})
    assert outcome.not_run == f"{same['reason']}; {few['reason']}; 3 more reasons"


def test_a_check_of_which_nothing_was_tested_does_not_name_some_evaluators_only() -> None:
    """ "Systems in the wrong order, not tested: not for f", where it was not tested for e either."""
    claims, verdicts = make_tables({"e": (0.9, 0.9), "f": (0.9, 0.9)}, n=90)
    verdicts.loc[verdicts["evaluator"] == "f", ["prediction", "status"]] = [pd.NA, "error"]
    results = compare(claims, verdicts, audits=["ranking"], replicates=50)
    (outcome,) = [one for one in list_audit_check_outcomes(results.audits, results.about) if one.check.id == "order"]
    assert outcome.not_run == "the labels order no pair of systems significantly"


def make_half_scored_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """``f`` is as good as guessing, and has scored one of two datasets."""
    claims, verdicts = make_tables({"e": (0.75, 0.75), "f": (0.5, 0.5)}, datasets=2)
    of_set = claims.loc[claims["dataset"] == "set1", "claim_id"]
    lost = (verdicts["evaluator"] == "f") & verdicts["claim_id"].isin(of_set)
    verdicts.loc[lost, ["prediction", "status"]] = [pd.NA, "error"]
    return claims, verdicts


def test_a_difference_that_unscored_claims_leave_open_is_not_called_insignificant() -> None:
    """ "The differences are not significant", of 78 % and 55 % (+17 to +30) on the claims that both scored."""
    results = compare(*make_half_scored_tables(), audits=["rates"], replicates=50)
    run = make_audited_run(results.audits, results.about)
    opening = str(load_all_audits()["rates"].opening(run, "e"))
    assert "is open by the unscored claims." in opening
    assert "not significant" not in opening
    alike = compare(*make_tables({"e": (0.9, 0.9), "f": (0.9, 0.9)}), audits=["rates"], replicates=50)
    opening = str(load_all_audits()["rates"].opening(make_audited_run(alike.audits, alike.about), "e"))
    assert "is not significant." in opening


def test_a_mean_over_some_datasets_is_not_shown_as_one_over_all() -> None:
    """ "mean over datasets 64.9", of one of three, beside means over all three."""
    results = compare(*make_half_scored_tables(), audits=["rates"], replicates=50)
    remark = load_all_audits()["rates"].remarks
    assert remark(results.audits["rates"], []) == [
        "Means over datasets leave out those on which a figure is undefined: of f not all are in the mean."
    ]
    whole = compare(*make_tables({"e": (0.9, 0.9)}, datasets=2), audits=["rates"], replicates=50)
    assert remark(whole.audits["rates"], []) == []


def test_differences_are_of_what_each_evaluator_scored_and_say_so() -> None:
    """ "Both evaluators judge the same claims": a − b was +17.4 over what each scored, +19.4 on the same claims."""
    audit = load_all_audits()["differences"]
    assert "each over what it scored" in audit.formula
    assert "where both evaluators judge the same claims" in audit.text
    assert "same claims" not in audit.title


def test_the_caption_of_the_ceiling_counts_judgements() -> None:
    """ "n = 10,036 to 10,079 behind each point", of 3,993 claims."""
    row = {"dataset": "d", "evaluator": "e", "n": 30, "n_unscored": 0, "bacc": 0.8, "ceiling": 0.9}
    (figure,) = list_report_figures(load_all_audits()["ceiling"], [row], ["e"], {"confidence": 0.95})
    assert "n = 30 judgements (BAcc)" in figure.caption or "n = 30 judgements behind" in figure.caption
