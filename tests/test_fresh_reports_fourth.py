"""What readers of fresh reports found false or misleading, fourth round: each test is of a sentence that one tried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from test_fresh_reports import make_tables

from factaudit.audit import list_computable_audits
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.findings import collect_findings
from factaudit.audit.first_screen_systems import list_first_screen_system_advice
from factaudit.report.plots.command_plots import draw_triage_curve
from factaudit.report.report_document import build_report_document
from factaudit.report.summary import build_report_evaluator_overview, format_report_summary_finding_evidence
from factaudit.results import compare
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions, wilson_interval
from factaudit.stats.mover import mover_proportion_sum

Row = dict[str, Any]

# ---------------------------------------------------------------------------------------------------------- intervals


@pytest.mark.parametrize(("bad_documents", "is_narrowed"), [(1, False), (8, True)])
def test_mistakes_of_one_document_do_not_tie_two_rates(bad_documents: int, is_narrowed: bool) -> None:
    """ "+10.6 (+6.7 to +43.1)": all six mistakes were one response's, and without it the gap was 0.0."""
    rows = np.array([[6, 7, 2, 2] if at >= bad_documents else [4, 7, 0, 2] for at in range(20)])
    counts = ClusterCounts(np.zeros(20, dtype=int), np.ones(20, dtype=int), rows, n_groups=1)
    rates = estimate_clustered_proportions(counts, rows[:, ::2], rows[:, 1::2])
    gap, (low, high) = mover_proportion_sum(rates, np.array([1.0, -1.0]), 0.95)
    lows, highs = (each[0] for each in rates.wilson_intervals(0.95))
    tpr, tnr = rates.point[0]
    # Of independent rates: the distances of the ends of both intervals, added as variances (Newcombe 1998).
    alone = gap[0] - np.hypot(tpr - lows[0], highs[1] - tnr), gap[0] + np.hypot(highs[0] - tpr, tnr - lows[1])
    assert ((low[0], high[0]) == pytest.approx(alone)) != is_narrowed
    assert high[0] - low[0] <= alone[1] - alone[0] + 1e-12
    # A sum becomes wider by the same correlation: that is kept.
    _, (low, high) = mover_proportion_sum(rates, np.array([0.5, 0.5]), 0.95)
    assert high[0] - low[0] > 1.01 * np.hypot(tpr - lows[0], tnr - lows[1]) / 2


def test_a_share_of_responses_has_one_interval_whichever_audit_computes_it() -> None:
    """7 of 10 responses were 70.0 (35.7–90.7) on one page and 70.0 (34.2–91.3) on another."""
    rows = np.array([[at < 7, 1] for at in range(10)], dtype=int)
    counts = ClusterCounts(np.zeros(10, dtype=int), np.ones(10, dtype=int), rows, n_groups=1)
    low, high = estimate_clustered_proportions(counts, rows[:, :1], rows[:, 1:]).wilson_intervals(0.95)
    plain = wilson_interval(np.array(0.7), np.array(10), np.array(9), 0.95)
    assert (low.item(), high.item()) == pytest.approx((plain[0].item(), plain[1].item()))
    assert (low.item(), high.item()) == pytest.approx((0.357, 0.907), abs=5e-4)


def test_who_says_the_same_of_any_claim_has_no_interval_in_any_table() -> None:
    """A constant's 100.0 had none among the rates, and (48.4–100.0) by place; it was not known whether it transfers."""
    claims, verdicts = make_tables({"always-yes": (1.0, 0.0), "e": (0.8, 0.7)}, n=240)
    words = np.array(["one two three four five six seven eight nine ten. "] * 40)
    claims["doc"] = "".join(words)
    claims["kind"] = np.where(np.arange(240) % 2, "odd", "even")
    audits = ["rates", "slices", "transfer", "quantification", "headroom", "surface_bias"]
    results = compare(claims, verdicts, audits=audits, replicates=20)
    keys = {"slices": ["difference"], "quantification": ["predicted_error_rate"], "headroom": ["predicted"]}
    keys |= {"rates": ["tpr", "tnr", "bacc"], "surface_bias": ["tpr", "tnr"]}
    for audit, figures in keys.items():
        for key in figures:
            of = {
                name: [row[f"{key}_low"] for row in results.rows(audit, evaluator=name) if row[key] is not None]
                for name in ("always-yes", "e")
            }
            assert not any(low is not None for low in of["always-yes"]), (audit, key)
            assert any(low is not None for low in of["e"]) or audit == "surface_bias", (audit, key)
    told = {row["evaluator"]: row for row in results.rows("transfer", level="claim", rate="tnr")}
    assert (told["always-yes"]["transfers"], told["always-yes"]["missable"]) == ("yes", None)
    assert told["e"]["transfers"] != "yes" or told["e"]["missable"] <= 0.1


# ------------------------------------------------------------------------------------------------------- first screen


@pytest.mark.parametrize(
    ("distance", "width", "word"),
    [(0.0, 0.2, "Instead"), (0.09, 0.2, "Instead"), (0.0, 0.4, "Labels"), (0.2, 0.2, "Labels")],
)
def test_one_draw_of_labels_is_no_comparison_with_rates_as_predicted(distance: float, width: float, word: str) -> None:
    """ "Estimates come no nearer" was one unlucky draw: 15 of 16 others were nearer. Their intervals decide."""
    claims, verdicts = make_tables({"e": (0.95, 0.6)}, n=900)
    both = claims.merge(verdicts, on="claim_id").astype({"label": float, "prediction": float})
    true, said = (1 - both.groupby("system")[key].mean() for key in ("label", "prediction"))
    about = {"dataset": "set0", "level": "claim", "n": 300, "n_labels": 40, "method": "hierarchical", "n_undecided": 0}
    estimates = [
        about
        | {
            "system": name,
            "rate": rate + distance,
            "rate_low": rate + distance - width / 2,
            "rate_high": rate + distance + width / 2,
        }
        for name, rate in true.items()
    ]
    summary = {"dataset": "set0", "level": "claim", "quote": "hierarchical", "width": width, "n_labels": 120}
    results = compare(claims, verdicts, audits=["quantification"], replicates=20)
    audits = dict(results.audits) | {"estimates": estimates, "estimate_summary": [summary]}
    advice = list_first_screen_system_advice(AuditedRun(audits), ["e"])
    ((said_word, line),) = [(word, str(text)) for word, text in advice if "estimates" in str(text)]
    expected = 100 * width * norm.expect(abs) / (2 * norm.ppf(0.975))
    assert (expected < 100 * (said - true).abs().mean()) == (width == 0.2)
    assert said_word == word
    told = f"about {expected:.1f} points off by their intervals ({100 * width:.1f} wide), {100 * distance:.1f} in this "
    told += "draw; 3 of 3 hold the truth."
    if distance == 0.2:
        told = "20.0 points off; of 3 intervals (20.0 wide) none hold the truth."
    assert line == f"estimates (120 labels): on average {told}"


# ------------------------------------------------------------------------------------------------------------- report


@pytest.mark.parametrize("is_open", [True, False])
def test_the_table_at_a_glance_has_bounds_where_claims_are_unscored(is_open: bool) -> None:
    claims, verdicts = make_tables({"e": (0.9, 0.8)}, n=300)
    if is_open:
        lost = np.arange(300) % 5 == 0
        verdicts.loc[lost, "prediction"], verdicts.loc[lost, "status"] = pd.NA, "error"
    results = compare(claims, verdicts, audits=["rates", "quantification"], replicates=20).to_dict()
    table = build_report_evaluator_overview(results)
    assert table is not None
    cells = dict(zip(table.columns, table.rows[0], strict=True))
    both = claims.merge(verdicts, on="claim_id")
    errors = both[both["label"] == 0]["prediction"]
    ends = [100 * (errors.fillna(value) == 0).mean() for value in (1, 0)]
    assert (f"[{ends[0]:.1f}–{ends[1]:.1f}]" in cells["TNR (%)"].notes) == is_open
    assert any(note.startswith("[") for note in cells["mean system |bias| (points)"].notes) == is_open
    assert ("what the unscored claims leave possible" in table.caption) == is_open


@pytest.mark.parametrize("has_estimates", [True, False])
def test_labels_of_the_claims_are_told_from_those_of_estimates(has_estimates: bool, tmp_path: Path) -> None:
    """ "labelled 0" stood on the page of estimates from 142 labels."""
    claims, verdicts = make_tables({"e": (0.9, 0.8)}, n=90)
    results = compare(claims, verdicts, audits=["rates"], replicates=0).to_dict()
    if has_estimates:
        results["about"]["estimate"] = {"labels": ["labels.jsonl"], "sample": None}
    (section,) = [one for one in build_report_document(results, tmp_path).sections if one.id == "provenance"]
    assert section.tables[0].caption == ("Claims, with the labels of their own table." if has_estimates else "Claims.")


@pytest.mark.parametrize(("n_off", "severity"), [(0, "warn"), (1, "fail")])
def test_a_correction_fails_only_where_a_test_says_so(n_off: int, severity: str) -> None:
    """ "fail: the mean |bias| is 19.0 points (uncalibrated: 17.3)", of three rates, none significantly off."""
    about = {"dataset": "d", "level": "claim", "evaluator": "e", "n": 90, "n_clusters": 90}
    rates = {"labelled_error_rate": 0.2, "predicted_error_rate": 0.4, "bias_min": 0.2, "bias_max": 0.2}
    biases = [about | rates | {"system": name, "bias": 0.2, "bias_low": 0.16, "bias_high": 0.24} for name in "st"]
    rows = [row | {"method": "none", "calibration_system": "c"} for row in biases]
    half = 0.05 if n_off else 0.5
    rows += [
        about
        | {"system": name, "method": "adjusted_counts", "calibration_system": "c"}
        | {"bias": 0.25, "bias_low": 0.25 - half, "bias_high": 0.25 + half}
        for name in "st"
    ]
    found = [
        one for one in collect_findings({"quantification": biases, "adjusted_bias": rows}) if one["id"] == "adjustment"
    ]
    assert [one["severity"] for one in found] == [severity]
    assert ("It is not shown to help: do" in found[0]["statement"]) == (not n_off)


def test_limits_of_a_curve_are_said_to_be_of_each_threshold_alone() -> None:
    """No claim passed at 10 %, and the area of the same figure stayed under 10 % over two thirds of the claims."""
    row = {"group": "__all__", "is_rule": False, "error_share": 0.02, "error_share_high": 0.05}
    figure = draw_triage_curve([row | {"share_passing": share} for share in (0.2, 0.5)], 0.1)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["up to the upper limit of each threshold alone"]


def test_p_of_pairs_is_said_to_be_corrected() -> None:
    assert "p is corrected (Holm)" in list_computable_audits()["ranking_pairs"].formula


def test_figures_of_a_finding_are_those_that_its_sentence_leaves_out() -> None:
    evidence = {"tpr": 0.009, "tnr": 1.0, "gap": -0.991, "gap_low": -0.996, "gap_high": -0.967, "n": 900}
    finding = {
        "id": "gap",
        "statement": "e recognises 100.0 % of wrong but only 0.9 % of right claims.",
        "evidence": evidence,
    }
    assert format_report_summary_finding_evidence(finding) == "gap −99.1 points (−99.6 to −96.7), n 900"
    other = format_report_summary_finding_evidence(finding | {"statement": "e: 20.9 % and 1,100.0."})
    assert other.startswith("TPR 0.9 %, TNR 100.0 %, "), "a part of another number says nothing of it"


def test_a_formula_stands_once_in_its_section(tmp_path: Path) -> None:
    claims, verdicts = make_tables({"e": (0.9, 0.8)}, n=90)
    results = compare(claims, verdicts, audits=["quantification"], replicates=20)
    sections = build_report_document(results.to_dict(), tmp_path).sections
    (section,) = [one for one in sections if one.id == "quantification"]
    assert len(section.figures) > 1
    assert [bool(figure.formula) for figure in section.figures] == [at == 0 for at in range(len(section.figures))]


@pytest.mark.parametrize(
    ("n_of_checks", "told"),
    [
        ([1, 1], "the gravest of each check"),
        ([3, 1], "the gravest of each check, then the next"),
        ([2, 1, 1, 1, 1], "the gravest of each check"),
        ([1] * 6, "the gravest of 5 of 6 checks"),
    ],
)
def test_findings_to_read_first_are_called_what_they_are(n_of_checks: list[int], told: str, tmp_path: Path) -> None:
    """ "The gravest of each check" stood over five findings of two checks."""
    results = compare(*make_tables({"e": (0.9, 0.8)}), audits=["rates"], replicates=20).to_dict()
    finding = {"severity": "warn", "dataset": "set0", "statement": "s", "evidence": {"n_reversed": 1}}
    results["findings"] = [
        finding | {"id": name, "evaluator": f"e{at}"}
        for name, n in zip(("gap", "bacc_tie", "bias", "transfer", "order", "iou"), n_of_checks, strict=False)
        for at in range(n)
    ]
    document = build_report_document(results, tmp_path)
    assert document.describe_headline_choice() == told
    shown = {one.check.title for one in document.headline_findings}
    assert (len(document.headline_findings) > len(shown)) == told.endswith("the next")
