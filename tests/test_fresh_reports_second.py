"""What a second reader of fresh reports found false or misleading: each test is of a sentence that the reader tried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factaudit.audit import load_all_audits
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.evaluator_comparison import explain_absence_of_evaluators_of_like_accuracy
from factaudit.audit.discrimination import _list_threshold_advice
from factaudit.audit.findings import collect_findings
from factaudit.audit.first_screen_systems import list_first_screen_system_advice
from factaudit.audit.first_screen_table import build_first_screen_evaluator_table
from factaudit.audit.quantification import decide_on_quantification
from factaudit.audit.ranking_checks import decide_on_ranking_systems
from factaudit.report.summary import (
    build_report_evaluator_overview,
    choose_report_summary_findings,
    group_report_summary_findings_by_check,
)
from factaudit.results import compare
from factaudit.tables import validate_claims, validate_verdicts

Row = dict[str, Any]


def make_rates(**bacc: tuple[float, float]) -> list[Row]:
    """Rates of evaluators by the two ends of their BAcc's interval."""
    return [
        {"dataset": "d", "evaluator": name, "n": 90, "n_unattributable": 45, "n_attributable": 45}
        | dict.fromkeys(("bacc", "tpr", "tnr"), (low + high) / 2)
        | {"bacc_low": low, "bacc_high": high}
        for name, (low, high) in bacc.items()
    ]


def make_orders(evaluator: str, ordered: int, alike: int, reversed_pairs: int = 0) -> Row:
    row: Row = {"dataset": "d", "level": "claim", "evaluator": evaluator, "n_systems": 6, "n_pairs": 15, "n": 90}
    row |= {"n_ordered": ordered, "n_ordered_alike": alike, "n_reversed": reversed_pairs, "p_reversed": 1.0}
    row |= {"n_one_sided": ordered - alike, "detectable_10": 1.0, "major_error_rate": 0.0, "error_rate": 0.0}
    return row | {"error_rate_max": 0.0, "major_error_rate_min": 0.0, "major_error_rate_max": 0.0}


# ------------------------------------------------------------------------------------------------ the report's tables


def make_overview(findings: list[Row], orders: list[Row] | None = None) -> tuple[list[str], list[list[str]], str]:
    audits = {"rates": make_rates(a=(0.7, 0.8), b=(0.7, 0.8))} | ({"ranking": orders} if orders else {})
    table = build_report_evaluator_overview({"audits": audits, "about": {}, "findings": findings})
    assert table is not None
    return table.columns, [[cell.text for cell in line] for line in table.rows], table.caption


def test_a_finding_on_a_pair_counts_for_both_members() -> None:
    """9 fail, and 8 in the column: the one on a pair was counted for neither."""
    findings = [{"evaluator": name, "severity": "fail"} for name in ("a", "a / b", "a@0.9", None)]
    columns, rows, caption = make_overview(findings)
    at = columns.index("findings: fail")
    assert {row[0]: row[at] for row in rows} == {"a": "2", "b": "1"}
    assert caption.endswith("A finding on two evaluators counts for both. 2 findings on none of them are left out.")
    assert "counts for both" not in make_overview(findings[:1])[2]
    assert "left out" not in make_overview(findings[:2])[2]


@pytest.mark.parametrize(
    ("ordered", "alike", "told", "figure"),
    [
        (0, 0, ["0", "–", "–"], "the labels order none of 15 pairs"),
        (10, 1, ["10", "1", "0"], "orders 1 of 10 pairs that the labels order as they do, reverses none"),
        (10, 0, ["10", "0", "0"], "orders none of 10 pairs that the labels order as they do, reverses none"),
    ],
)
def test_what_is_not_reversed_stands_beside_what_is_ordered(
    ordered: int, alike: int, told: list[str], figure: str
) -> None:
    """ "0 of 60 pairs reversed", where the labels order none of them, or the evaluator one of ten, is no merit."""
    orders = [make_orders(name, ordered, alike) for name in "ab"]
    columns, rows, _ = make_overview([], orders)
    at = columns.index("pairs that labels order")
    assert [row[at : at + 3] for row in rows] == [told] * 2
    answer = decide_on_ranking_systems(AuditedRun({"ranking": orders}), "a")
    assert answer is not None
    assert answer.figure == figure


@pytest.mark.parametrize(
    ("ordered", "alike", "turned", "told"),
    [
        (20, 0, 0, "no order"),
        (20, 1, 0, "0 of 1"),
        (20, 13, 0, "0 of 13"),
        (20, 3, 2, "2 of 5"),
        (0, 0, 0, ""),
    ],
)
def test_reversing_none_is_no_merit_of_who_orders_hardly_any(ordered: int, alike: int, turned: int, told: str) -> None:
    """A dash stood here, and 0 in the report: of the pairs that both order the count is 0 in both."""
    run = AuditedRun({"rates": make_rates(e=(0.7, 0.8)), "ranking": [make_orders("e", ordered, alike, turned)]})
    columns, rows = build_first_screen_evaluator_table(run, ["e"])
    found = {head[0]: cell for head, cell in zip(columns, rows[0], strict=True)}
    assert found.get("reversed,", "") == told


def test_slices_are_counted_by_data_set_and_columns_by_name() -> None:
    """ "4 slices of 1 column … and 23 more": 26 names stood for 44 slices, and two slices were in no sentence."""
    few = "too few labels: under 10 of either class in it"
    lone = "no interval for difference: fewer than two clusters of a class"
    rows = [
        {"dataset": f"d{at}", "column": column, "value": value, "evaluator": name, "reason": reason}
        | {"difference_low": None if reason else -0.1}
        for at in range(2)
        for column, value, reason in (
            ("type", "x", few),
            ("type", "y", few),
            ("type", "z", few),
            ("type", "v", None),
            ("topic", "t", lone),
        )
        for name in "ab"
    ]
    (said,) = load_all_audits()["slices"].remarks(rows, [])
    assert said == (
        "2 of 10 slices of 2 columns could be tested. Too few labels for 6: type “x” on d0, type “y” on d0, "
        "type “z” on d0 and 3 more. No interval, or no score, for 2: see their reason in the CSV."
    )


# -------------------------------------------------------------------------------------------- error rates of systems


def make_biases(evaluator: str, biases: list[tuple[float, float]], clusters: int = 60) -> list[Row]:
    """A row for each system's bias and half of its interval."""
    return [
        {"dataset": "d", "level": "claim", "evaluator": evaluator, "system": f"s{at}", "n": 90, "n_clusters": clusters}
        | {"labelled_error_rate": 0.3, "predicted_error_rate": 0.3 + bias, "bias": bias, "bias_min": bias}
        | {"bias_max": bias, "bias_low": bias - half, "bias_high": bias + half}
        for at, (bias, half) in enumerate(biases)
    ]


@pytest.mark.parametrize(
    ("biases", "may", "line"),
    [
        (
            [(0.3, 0.05), (0.0, 0.05)],
            "no",
            "Not for reporting error rates: 1 of 2 by e is significantly off by over 5 points (30.0).",
        ),
        (
            [(0.08, 0.05), (0.0, 0.1)],
            "cannot tell",
            "Beware error rates: 1 of 2 by e is significantly off (8.0 points), none significantly by over 5.",
        ),
        ([(0.02, 0.01), (0.0, 0.01)], "yes", None),  # off, and near enough
    ],
)
def test_screen_and_decision_answer_alike_on_error_rates(
    biases: list[tuple[float, float]], may: str, line: str | None
) -> None:
    biases_rows = make_biases("e", biases)
    run = AuditedRun({"quantification": biases_rows})
    answer = decide_on_quantification(run, "e")
    assert answer is not None
    assert answer.may == may
    told = [f"{word} {text}" for word, text in list_first_screen_system_advice(run, ["e"]) if word != "Instead"]
    assert told == ([line] if line else [])
    (finding,) = collect_findings({"quantification": biases_rows})
    assert finding["severity"] == {"no": "fail", "cannot tell": "warn", "yes": "ok"}[may]
    assert ("Do not report" in finding["statement"]) == (may == "no")
    assert "5 points" in finding["statement"]


def test_the_second_under_use_that_cannot_be_told_is_named_so() -> None:
    rows = make_biases("one", [(0.3, 0.05), (0, 0.05)]) + make_biases("two", [(0.08, 0.05), (0, 0.1)])
    lines = dict(list_first_screen_system_advice(AuditedRun({"quantification": rows}), ["one", "two"]))
    assert lines["Not for"].endswith("1 of 2 by one is significantly off by over 5 points (30.0); two: cannot tell.")


def test_who_has_no_rate_that_is_off_and_cannot_be_told_is_named_beside_others() -> None:
    """ "Two: cannot tell" and no word of the best, of which nobody can tell either, read as if the best were fine."""
    rows = make_biases("best", [(0.04, 0.1), (0, 0.1)]) + make_biases("one", [(0.3, 0.05), (0, 0.05)])
    rows += make_biases("two", [(0.08, 0.05), (0, 0.1)])
    lines = dict(list_first_screen_system_advice(AuditedRun({"quantification": rows}), ["best", "one", "two"]))
    assert lines["Not for"].endswith(
        "1 of 2 by one is significantly off by over 5 points (30.0); best, two: cannot tell."
    )


def test_who_is_off_for_all_systems_together_alone_is_named_beside_others() -> None:
    single = make_biases("one", [(0.3, 0.05), (0, 0.05)])
    both = make_biases("two", [(0.08, 0.09), (0.08, 0.09)])
    whole = make_biases("two", [(0.08, 0.02)])[0] | {"system": "__all__"}
    run = AuditedRun({"quantification": [*single, *both, whole]})
    lines = dict(list_first_screen_system_advice(run, ["one", "two"]))
    assert lines["Not for"].endswith(
        "1 of 2 by one, that of all systems together by two are significantly off by over 5 points (worst: 30.0)."
    )
    assert "together" not in dict(list_first_screen_system_advice(AuditedRun({"quantification": single}), ["one"]))


@pytest.mark.parametrize(("half", "is_far"), [(0.1, True), (0.22, False)])
def test_the_test_that_leaves_it_open_is_named(half: float, is_far: bool) -> None:
    """0.0 for 28.0 % was laid to the correction: by the interval it was over the limit after it, by a sign test not."""
    rows = make_biases("e", [(-0.28, half), (0.0, 0.2)], 60)
    for row in rows:
        row["p_bias"] = 0.04
    answer = decide_on_quantification(AuditedRun({"quantification": rows}), "e")
    assert answer is not None
    by_sign = "By sign tests of the few clusters that are judged wrongly on balance, corrected for 2 tests, none is."
    told = f"1 of 2 is farther off{'. ' + by_sign if is_far else '. After the correction for 2 tests none is.'}"
    assert answer.sentence.endswith(told)


def test_the_gravest_of_each_check_are_to_be_read_first(tmp_path: Path) -> None:
    """ "9 fail, to read first": those on the best evaluators, without the evaluator that is off by 96.7 points."""
    at = np.arange(240)
    claims = pd.DataFrame({"claim_id": [f"c{one}" for one in at], "claim": "a", "dataset": "d", "label": at % 2})
    claims = validate_claims(claims)
    said = {"able": np.where(at % 10 < 6, claims["label"], 1), "lax": np.ones(len(at), dtype=int)}
    verdicts = [claims[["claim_id"]].assign(evaluator=name, prediction=one) for name, one in said.items()]
    results = compare(claims, validate_verdicts(pd.concat(verdicts)), audits=["rates", "quantification"], replicates=20)
    assert [one["evaluator"] for one in results.finding_rows if one["severity"] == "fail"] == ["able", "lax"] * 2
    checks, _ = group_report_summary_findings_by_check(results.to_dict())
    first = choose_report_summary_findings(checks)
    assert [(one.check.title, one.finding["evaluator"]) for one in first[:4]] == [
        (title, name) for name in ("lax", "able") for title in ("TPR and TNR far apart", checks[1].title)
    ]
    results.save(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.search(
        "To read first, of [0-9]+ fail[^:]*: the gravest of (each check(, then the next)?|5 of [0-9]+ checks)<", page
    )


def test_what_is_graver_is_read_from_the_evidence_of_each_check() -> None:
    checks = {check.id: check for audit in load_all_audits().values() for check in audit.checks}
    for id_, grave, less in (
        ("gap", {"gap": -0.9}, {"gap": 0.5}),
        ("order", {"n_reversed": 3, "p_reversed": 0.01}, {"n_reversed": 1, "p_reversed": 0.03}),
        ("transfer", {"p_together": 0.01, "p": 0.02}, {"p_together": 0.03, "p": 0.01}),
        ("pairs", {"told_apart": 0.1}, {"told_apart": 0.3}),
        ("uncovered_text", {"coverage": 0.1}, {"coverage": 0.3}),
        ("overlap", {"tnr_slope": -0.5}, {"tpr_slope": 0.1, "tnr_slope": -0.2}),
        ("unscored", {}, {"n_unscored": 5}),
    ):
        assert checks[id_].measure_gravity(grave) > checks[id_].measure_gravity(less), id_


# ------------------------------------------------------------------------------------------------ pairs and thresholds


@pytest.mark.parametrize(
    ("rates", "why"),
    [
        ({"a": (0.45, 0.55), "b": (0.46, 0.56)}, "a and b are not clear of chance"),
        ({"a": (0.6, 0.7), "b": (0.46, 0.56)}, "b is not clear of chance"),
        ({"a": (0.6, 0.7), "b": (0.8, 0.9)}, "a and b are not within 2 points of BAcc of each other"),
        ({"a": (0.6, 0.7), "b": (0.61, 0.71)}, ""),
    ],
)
def test_why_no_two_evaluators_are_alike_names_the_condition(rates: dict[str, tuple[float, float]], why: str) -> None:
    assert explain_absence_of_evaluators_of_like_accuracy(AuditedRun({"rates": make_rates(**rates)})) == why


@pytest.mark.parametrize(("tuned", "is_said"), [(0.85, True), (0.79, False)])
def test_a_threshold_that_changes_the_order_is_named(tuned: float, is_said: bool) -> None:
    """ "Use unigram: more accurate than rouge2" held at one threshold of rouge2 alone."""
    rows = [
        {"dataset": "d", "evaluator": name, "bacc": bacc, "bacc_low": bacc - 0.01, "bacc_high": bacc + 0.01}
        | {"tuned_bacc": after, "tuned_bacc_low": after - 0.01, "tuned_bacc_high": after + 0.01, "n": 900}
        for name, bacc, after in (("best", 0.8, 0.82), ("other", 0.7, tuned))
    ]
    told = [text for _, text in _list_threshold_advice(AuditedRun({"discrimination": rows}), ["best"])]
    line = "with a tuned threshold other has a balanced accuracy of 85.0 % on d (best: 80.0 % as it is, 82.0 % tuned)."
    assert told == ([line] if is_said else [])


def test_blind_tests_do_not_hide_those_that_reject_alone() -> None:
    row = {"level": "claim", "evaluator": "e", "rate": "tnr", "n": 45, "n_unscored": 0, "n_systems": 3, "lowest": 0.2}
    row |= {"highest": 0.8, "power_10": 0.1, "missable": 0.7, "reason": None}
    tests = [(0.03, "no"), (0.04, "no"), (0.2, "cannot tell"), (0.3, "cannot tell")]
    rows = [row | {"dataset": f"d{at}", "p": p, "transfers": said} for at, (p, said) in enumerate(tests)]
    (finding,) = collect_findings({"transfer": rows}, {})
    assert finding["statement"].startswith(
        "Whether e judges all systems alike is not known: 2 of 4 tests of its rates reject alone, but not all together."
    )
