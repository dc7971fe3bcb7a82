"""Findings: each check on rows that should and should not set it off."""

from __future__ import annotations

from typing import Any

import pytest
from audit_tables import find, judged

from factaudit.audit import computable
from factaudit.audit.adjustment import adjustment
from factaudit.audit.consistency import consistency
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.words import points
from factaudit.audit.findings import findings
from factaudit.audit.quantification import quantification
from factaudit.audit.ranking import ranking
from factaudit.audit.rates import rates

Row = dict[str, Any]
INTERVALS = Intervals(replicates=300, seed=0)


def cells(tp: int, fn: int, tn: int, fp: int, name: str = "e", **columns: Any) -> list[Row]:
    return [
        columns | {"label": label, name: said}
        for n, label, said in ((tp, 1, 1), (fn, 1, 0), (tn, 0, 0), (fp, 0, 1))
        for _ in range(n)
    ]


def told(found: list[Row], name: str) -> list[tuple[str, str | None, str | None]]:
    return [(row["severity"], row["evaluator"], row["dataset"]) for row in found if row["id"] == name]


def of_rates(rows: list[Row], *evaluators: str, intervals: Intervals | None = INTERVALS) -> list[Row]:
    return findings({"rates": rates(judged(rows, *evaluators), intervals=intervals)})


def test_a_gap_over_20points():
    wide = cells(190, 10, 80, 120)  # TPR 95, TNR 40
    found = of_rates(wide, "e")
    assert told(found, "gap") == [("fail", "e", "d")]
    finding = find(found, id="gap")
    assert finding["statement"] == (
        "On d, e recognises 95.0 % of attributable but only 40.0 % of unattributable claims: check a sample of what it "
        "passes before you rely on it."
    )
    assert finding["evidence"]["gap"] == pytest.approx(0.55)
    turned = find(of_rates(cells(80, 120, 190, 10), "e"), id="gap")
    assert (turned["severity"], "of what it rejects" in turned["statement"]) == ("fail", True)
    # 22 points of 100 claims: the interval reaches under 20, and without one there is no certainty
    assert told(of_rates(cells(41, 9, 30, 20), "e"), "gap") == [("warn", "e", "d")]
    assert told(of_rates(wide, "e", intervals=None), "gap") == [("warn", "e", "d")]
    assert told(of_rates(cells(80, 20, 70, 30), "e"), "gap") == [("ok", "e", None)]


def test_a_tie_of_opposite_habits():
    rows = [{"label": 1, "a": int(i < 90), "b": int(i < 50)} for i in range(100)]
    rows += [{"label": 0, "a": int(i < 50), "b": int(i < 10)} for i in range(100)]
    found = of_rates(rows, "a", "b")
    assert told(found, "bacc_tie") == [("warn", "a / b", "d")]
    statement = find(found, id="bacc_tie")["statement"]
    assert "choose b to catch errors" in statement
    assert "a to keep good claims" in statement
    alike = [row | {"b": row["a"]} for row in rows]
    assert told(of_rates(alike, "a", "b"), "bacc_tie") == []


def test_evaluators_of_like_bacc_that_find_different_errors():
    rows = [{"label": 0, "a": int(i % 2), "b": int(i % 2 == 0)} for i in range(100)]
    rows += [{"label": 1, "a": 1, "b": 1} for _ in range(100)]
    table = judged(rows, "a", "b")
    audits = {"rates": rates(table), "consistency": consistency(table, intervals=INTERVALS)}
    finding = find(findings(audits), id="iou")
    assert (finding["severity"], finding["evidence"]["class"], finding["evidence"]["iou"]) == (
        "fail",
        "unattributable",
        0,
    )
    same = judged([row | {"b": row["a"]} for row in rows], "a", "b")
    assert told(findings({"rates": rates(same), "consistency": consistency(same)}), "iou") == []
    worse = judged([row | {"b": 1} for row in rows], "a", "b")
    audits = {"rates": rates(worse), "consistency": consistency(worse)}
    assert told(findings(audits), "iou") == [], "only evaluators of like BAcc are expected to agree"


def test_error_rates_that_the_interval_does_not_hold():
    rows = cells(50, 50, 0, 0, system="s") + cells(50, 0, 50, 0, system="t")
    found = findings({"quantification": quantification(judged(rows, "e"), intervals=INTERVALS)})
    finding = find(found, id="bias")
    assert (finding["severity"], finding["evidence"]["system"], finding["evidence"]["n_missed"]) == ("fail", "s", 1)
    assert "off for 1 of 2 systems: it puts s's at 50.0 % where the labels say 0.0 %" in finding["statement"]
    right = cells(50, 0, 50, 0, system="s")
    found = findings({"quantification": quantification(judged(right, "e"), intervals=INTERVALS)})
    assert told(found, "bias") == [("ok", "e", None)]
    assert findings({"quantification": quantification(judged(rows, "e"))}) == [], "without intervals there is no test"


def test_responses_are_told_of_only_where_they_say_something_else():
    rows = [row | {"response_id": str(at)} for at, row in enumerate(cells(50, 50, 10, 0, system="s"))]
    found = findings({"quantification": quantification(judged(rows, "e"), intervals=INTERVALS)})
    assert [row["evidence"]["level"] for row in found] == ["claim"]
    paired = [row | {"response_id": str(at // 2)} for at, row in enumerate(cells(50, 50, 10, 0, system="s"))]
    found = findings({"quantification": quantification(judged(paired, "e"), intervals=INTERVALS)})
    assert [row["evidence"]["level"] for row in found] == ["claim", "response"]


def test_misordered_systems():
    rows = cells(90, 0, 10, 0, system="s") + cells(70, 0, 12, 18, system="t")
    found = findings({"ranking": ranking(judged(rows, "e"), levels=["claim"])})
    assert told(found, "order") == [("warn", "e", "d")]
    turned = cells(0, 90, 0, 10, system="s") + cells(10, 0, 0, 90, system="t")
    finding = find(findings({"ranking": ranking(judged(turned, "e"), levels=["claim"])}), id="order")
    assert finding["severity"] == "fail"
    assert (
        "1 of 1 pairs of systems (claim level) otherwise than the labels do, 1 of them turned round"
        in finding["statement"]
    )
    right = cells(90, 0, 10, 0, system="s") + cells(10, 0, 90, 0, system="t")
    assert told(findings({"ranking": ranking(judged(right, "e"), levels=["claim"])}), "order") == [("ok", "e", None)]


def trend(rate: str, slope: float, low: float | None, high: float | None) -> Row:
    return {"task": "t", "evaluator": "e", "rate": rate, "slope": slope, "slope_low": low, "slope_high": high}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([trend("tpr", 0.4, 0.2, 0.6), trend("tnr", -0.3, -0.5, -0.1)], [("fail", "e", "t")]),
        ([trend("tpr", 0.4, 0.2, 0.6), trend("tnr", -0.3, -0.7, 0.1)], [("warn", "e", "t")]),
        ([trend("tpr", 0.1, -0.2, 0.4), trend("tnr", 0.3, 0.1, 0.5)], [("ok", "e", None)]),
        ([trend("tpr", 0.4, None, None)], [("ok", "e", None)]),
        ([{"task": "t", "evaluator": "e", "rate": "tpr", "slope": 0.4}], []),
    ],
)
def test_a_lean_on_word_overlap(rows, expected):
    assert told(findings({"surface_trend": rows}), "overlap") == expected


def test_a_lean_is_told_per_tenth_of_overlap_for_a_line_may_lead_beyond_100_percent():
    rows = [trend("tpr", 1.29, 0.9, 1.6), trend("tnr", -1.02, -1.5, -0.5)]
    statement = find(findings({"surface_trend": rows}), id="overlap")["statement"]
    assert "(TPR +12.9 points for every tenth of overlap)" in statement
    assert "(TNR −10.2)" in statement


def flips(kind: str, lost: float, gained: float, **ends: float) -> Row:
    row = {"dataset": "d", "evaluator": "e", "chunked_evaluator": "chunked-e", "r2_diff": kind, "n": 100}
    return row | {"flip_1_to_0": lost, "flip_0_to_1": gained} | ends


def test_claims_that_chunks_make_unverifiable():
    bad = [flips("zero", 0.02, 0.02, flip_1_to_0_high=0.04), flips("positive", 0.3, 0.02, flip_1_to_0_low=0.2)]
    assert told(findings({"chunking": bad}), "chunking") == [("fail", "e", "d")]
    unsure = [flips("zero", 0.02, 0.02, flip_1_to_0_high=0.04), flips("positive", 0.1, 0.02, flip_1_to_0_low=0.03)]
    assert told(findings({"chunking": unsure}), "chunking") == [("warn", "e", "d")]
    none = [flips("zero", 0.0, 0.0, flip_1_to_0_high=0.0), flips("positive", 0.1, 0.02, flip_1_to_0_low=0.05)]
    assert told(findings({"chunking": none}), "chunking") == [("fail", "e", "d")]
    good = [flips("zero", 0.1, 0.1), flips("positive", 0.12, 0.1)]
    assert told(findings({"chunking": good}), "chunking") == [("ok", "e", None)]


def test_too_few_errors_to_calibrate_on():
    rows = cells(90, 0, 2, 1, system="s") + cells(70, 0, 10, 10, system="t")
    finding = find(findings({"adjustment": adjustment(judged(rows, "e"), levels=["claim"])}), id="calibration")
    assert (finding["severity"], finding["evaluator"], finding["evidence"]["best"]) == ("warn", None, "t")
    assert "1 of 2 systems have fewer than 10 labelled errors (claim level: s (3))" in finding["statement"]
    few = cells(90, 0, 2, 1, system="s") + cells(70, 0, 1, 0, system="t")
    assert told(findings({"adjustment": adjustment(judged(few, "e"), levels=["claim"])}), "calibration") == [
        ("fail", None, "d")
    ]
    enough = cells(90, 0, 20, 1, system="s") + cells(70, 0, 10, 0, system="t")
    assert told(findings({"adjustment": adjustment(judged(enough, "e"), levels=["claim"])}), "calibration") == [
        ("ok", None, "d")
    ]


def test_too_few_labels_to_tell_systems_apart():
    few = cells(20, 0, 10, 0, system="s") + cells(15, 0, 10, 0, system="t")
    assert told(findings({"ranking": ranking(judged(few, "e"), levels=["claim"])}), "power") == [("warn", None, "d")]
    many = cells(900, 0, 200, 0, system="s") + cells(800, 0, 200, 0, system="t")
    assert told(findings({"ranking": ranking(judged(many, "e"), levels=["claim"])}), "power") == [("ok", None, "d")]


def unscored(n: int, label: int, name: str = "e") -> list[Row]:
    return [{"label": label, name: None} for _ in range(n)]


def test_unscored_claims_that_could_change_a_conclusion():
    rows = cells(80, 20, 70, 30)
    assert told(of_rates(rows, "e"), "unscored") == [("ok", "e", None)]
    harmless = of_rates(rows + unscored(1, 0), "e")
    assert told(harmless, "unscored") == [("ok", "e", None)]
    assert "1 unscored claim of e cannot change any" in find(harmless, id="unscored")["statement"]
    found = of_rates(rows + unscored(30, 0), "e")
    assert told(found, "unscored") == [("warn", "e", "d")]
    assert "whether its TPR and TNR are over 20 points apart" in find(found, id="unscored")["statement"]
    none = of_rates(unscored(5, 0) + unscored(5, 1), "e")
    assert told(none, "unscored") == [("fail", "e", "d")]


def test_unscored_claims_that_could_change_the_better_evaluator_or_the_sign_of_a_bias():
    rows = [row | {"f": row["e"]} for row in cells(80, 20, 80, 20)]
    rows[0]["f"] = 0
    for row in rows[180:184]:  # errors that e passes and f may catch
        row["f"] = None
    table = judged(rows, "e", "f")
    found = findings({"rates": rates(table), "quantification": quantification(table)})
    statements = {row["evaluator"]: row["statement"] for row in found if row["id"] == "unscored"}
    assert "whether its BAcc is above that of f" not in statements["e"], "e is fully scored"
    assert "On d, 4 claims that f did not score could change" in statements["f"]
    assert "whether its BAcc is above that of e" in statements["f"]


def test_an_evaluator_without_any_verdict_is_told_of():
    found = findings(
        {"rates": rates(judged(cells(8, 2, 8, 2), "e"))}, {"evaluators": [{"name": "e"}, {"name": "lost"}]}
    )
    assert ("fail", "lost", None) in told(found, "unscored")


def test_rates_over_other_columns_are_not_taken_for_those_of_the_dataset():
    rows = [row | {"error_type": "x"} for row in cells(95, 5, 10, 90)]
    table = judged(rows, "e")
    assert findings({"rates": rates(table, by=["dataset", "error_type"])}) == []
    over_all = findings({"rates": rates(table, by=[])})
    assert told(over_all, "gap") == [("warn", "e", "__all__")]


def test_no_audit_no_finding():
    assert findings({}) == []
    assert findings({name: [] for name in computable()}, {"evaluators": []}) == []


@pytest.mark.parametrize(
    ("zero_bias", "bacc", "severity", "finding"),
    [
        ((-0.05, -0.08, -0.02), (0.10, 0.04, 0.15), "ok", "holds"),
        ((-0.05, -0.08, 0.02), (0.10, 0.04, 0.15), "fail", "is not settled"),
        ((-0.05, -0.08, 0.02), (0.10, -0.04, 0.15), "warn", "is not settled"),
        ((-0.05, -0.08, -0.02), (-0.03, -0.04, -0.01), "ok", "fails"),
        ((0.05, 0.02, 0.08), (0.10, 0.04, 0.15), "fail", "fails"),
        ((-0.05, None, None), (0.10, None, None), "warn", "is not settled"),
    ],
)
def test_what_a_calibration_does_to_the_others(zero_bias, bacc, severity, finding):
    about = {"dataset": "d", "level": "claim", "evaluator": "e", "calibration_system": "__cv__"}
    rows = [
        about | {"method": method, "mean_abs_bias": 0.12 + low, "change": low, "change_low": a, "change_high": b}
        for method, (low, a, b) in (
            ("none", (0.0, 0.0, 0.0)),
            ("zero_bias_threshold", zero_bias),
            ("bacc_threshold", bacc),
        )
    ]
    found = find(findings({"adjustment": rows}), id="adjustment")
    assert (found["severity"], found["evaluator"], found["dataset"]) == (severity, "e", "d")
    assert found["evidence"]["published_finding"] == finding
    assert "error rates (12 points uncorrected) by " in found["statement"]
    assert f"VC §5's finding, that zero bias helps and BAcc harms, {finding} here" in found["statement"]
    assert ("use a zero-bias threshold" in found["statement"]) == (severity == "ok")
    if finding == "holds":
        assert "by −5 with a zero-bias threshold, +10 with a best-BAcc threshold: use" in found["statement"]
    assert findings({"adjustment": rows[:1]}) == []


def test_a_rounded_zero_has_no_sign_and_a_minus_is_no_hyphen():
    assert [points(value, sign=True) for value in (-0.0004, 0.0004, -0.052, 0.1)] == ["0", "0", "−5.2", "+10"]


def test_too_few_documents_for_an_interval():
    audits = {"rates": rates(judged(cells(8, 2, 8, 2), "e"), intervals=INTERVALS)}
    about = {"claims": [{"dataset": f"d{n}", "n_claims": 20, "n_clusters": n} for n in (1, 9, 10)]}
    found = [row for row in findings(audits, about) if row["id"] == "clusters"]
    assert [(row["severity"], row["dataset"]) for row in found] == [("warn", "d1"), ("warn", "d9")]
    assert "all claims come from 9 documents or responses, so that intervals are too narrow" in found[1]["statement"]
    without = {"rates": rates(judged(cells(8, 2, 8, 2), "e"))}
    assert "clusters" not in {row["id"] for row in findings(without, about)}
