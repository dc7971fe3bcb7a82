"""Findings: rows that set a check off and rows that do not; what a finding says is in its evidence."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from audit_tables import as_declared, collect_findings, find, judged
from audit_worlds import audit_world, make_world

from factaudit.audit import list_computable_audits
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
INTERVALS = ClusterBootstrap(replicates=300, seed=0)
NO_INTERVALS = {"intervals": None}


def cells(tp: int, fn: int, tn: int, fp: int, name: str = "e", **columns: Any) -> list[Row]:
    return [
        columns | {"label": label, name: said}
        for n, label, said in ((tp, 1, 1), (fn, 1, 0), (tn, 0, 0), (fp, 0, 1))
        for _ in range(n)
    ]


def told(found: list[Row], name: str) -> list[tuple[str, str | None, str | None]]:
    return [(row["severity"], row["evaluator"], row["dataset"]) for row in found if row["id"] == name]


def of_audits(names: str, rows: list[Row], about: Row | None = None, **options: Any) -> list[Row]:
    """The findings of some audits, over claims where they know levels."""
    table, audits = judged(rows, *sorted({"a", "b", "e", "f"} & set(rows[0]))), list_computable_audits()
    found = {}
    for name in names.split():
        given = {key: value for key, value in options.items() if key == "intervals" or key in audits[name].options}
        given |= {"levels": ["claim"]} if "levels" in audits[name].options and "levels" not in given else {}
        found[name] = audits[name].compute(table, **({"intervals": INTERVALS} | given))
    return collect_findings(found, about)


def systems(s: tuple[int, int, int, int], t: tuple[int, int, int, int]) -> list[Row]:
    return cells(*s, system="s") + cells(*t, system="t")


OPPOSITE = [
    {"label": label, "a": int(i < a), "b": int(i < b)} for label, a, b in ((1, 90, 50), (0, 50, 10)) for i in range(100)
]
#: Each finds the errors that the other misses.
PARTED = [{"label": 0, "a": i % 2, "b": 1 - i % 2} for i in range(100)] + [{"label": 1, "a": 1, "b": 1}] * 100
#: Of 60 claims of each of six systems 15 are errors, and 21 are predicted.
LITTLE_OFF = [row for at in range(6) for row in cells(36, 9, 12, 3, system=f"s{at}")]
HALF_OFF = systems((50, 50, 0, 0), (50, 0, 50, 0))
OVER, UNDER = cells(60, 40, 20, 0, dataset="over", system="s"), cells(60, 0, 10, 50, dataset="under", system="s")
HEAPED = [
    {"system": "s", "response_id": str(n // 8), "label": int(n % 40 > 0), "e": int(n % 4 > 0)} for n in range(1600)
]
FAMILIES = cells(160, 0, 40, 0, system="7b") + cells(100, 0, 100, 0, system="13b") + cells(120, 60, 20, 0, system="70b")
GROUPS = {"groups": {"small": ["7b", "13b"], "large": ["70b"]}}
RIGHT_ORDER = systems((900, 0, 100, 0), (100, 0, 900, 0))


def unscored(n: int, label: int, **columns: Any) -> list[Row]:
    return [{"label": label, "e": None} | columns for _ in range(n)]


RESPONSES = {"levels": ["claim", "response"]}
#: Check, audits, rows, severities, and options of the audits.
CASES: dict[str, tuple[Any, ...]] = {
    "TPR 95, TNR 40": ("gap", "rates", cells(190, 10, 80, 120), "fail"),
    "TPR 40, TNR 95": ("gap", "rates", cells(80, 120, 190, 10), "fail"),
    "a gap of 22 points of 100 claims tells nothing": ("gap", "rates", cells(41, 9, 30, 20), ""),
    "a gap without intervals is not certain": ("gap", "rates", cells(190, 10, 80, 120), "warn", NO_INTERVALS),
    "no gap": ("gap", "rates", cells(800, 200, 780, 220), "ok"),
    "100 claims do not show that the gap is small": ("gap", "rates", cells(80, 20, 70, 30), ""),
    "a gap that unscored claims decide": ("gap", "rates", cells(190, 10, 80, 60) + unscored(80, 0), "warn"),
    "six data sets of 20 points more show it together": (
        "gap",
        "rates",
        [row for at in range(6) for row in cells(19, 1, 10, 10, dataset=f"d{at}")],
        "fail",
    ),
    "opposite habits": ("bacc_tie", "rates", OPPOSITE, "warn"),
    "one habit": ("bacc_tie", "rates", [row | {"b": row["a"]} for row in OPPOSITE], ""),
    "evaluators find different errors": ("iou", "rates consistency", PARTED, "fail"),
    "different errors without intervals": ("iou", "rates consistency", PARTED, "warn", NO_INTERVALS),
    "the same errors": ("iou", "rates consistency", [row | {"b": row["a"]} for row in PARTED], "", NO_INTERVALS),
    "only evaluators of like BAcc are expected to agree": (
        *("iou", "rates consistency", [row | {"b": 1} for row in PARTED], "", NO_INTERVALS),
    ),
    "one of two rates is off": ("bias", "quantification", HALF_OFF, "fail"),
    "one of two rates is off, some without labels": (
        *("bias", "quantification", [*HALF_OFF, *[{"system": "s", "label": None, "e": 0}] * 43], "fail"),
    ),
    "a rate is right": ("bias", "quantification", cells(500, 0, 500, 0, system="s"), "ok"),
    "ten claims do not show that a rate is right": ("bias", "quantification", cells(5, 0, 5, 0, system="s"), ""),
    "a bias without intervals is not tested": ("bias", "quantification", HALF_OFF, "", NO_INTERVALS),
    "rates that are each a little off show in all systems together": ("bias", "quantification", LITTLE_OFF, "warn"),
    "no rate is a little off": (
        *("bias", "quantification", [row for at in range(6) for row in cells(36, 9, 6, 9, system=f"s{at}")], ""),
    ),
    "a rate that is surely off": ("bias", "quantification", cells(50, 12, 20, 0, system="s"), "fail"),
    "a bias that unscored claims decide": (
        *("bias", "quantification", cells(50, 12, 20, 0, system="s") + unscored(60, 0, system="s"), "warn"),
    ),
    "over here, under there": ("direction", "quantification", OVER + UNDER, "fail"),
    "over alone": ("direction", "quantification", OVER, ""),
    "responses are farther off than their claims": ("level", "quantification", HEAPED, "warn", RESPONSES),
    "a response of one claim is that claim": (
        *("level", "quantification", [row | {"response_id": str(at)} for at, row in enumerate(HEAPED)], "", RESPONSES),
    ),
    "a group's headroom is off by 10 points, few claims": ("headroom", "headroom", FAMILIES, "warn", GROUPS),
    "a group's headroom is off by 10 points, many claims": ("headroom", "headroom", FAMILIES * 5, "fail", GROUPS),
    "headroom within a limit of 20 points": (
        *("headroom", "headroom", FAMILIES * 5, "", GROUPS | {"about": {"limits": {"max_bias": 0.2}}}),
    ),
    "only the predictions find a difference: that is no reversal": (
        *("order", "ranking", systems((90, 0, 10, 0), (70, 0, 12, 18)), ""),
    ),
    "reversed": ("order", "ranking", systems((0, 90, 0, 10), (10, 0, 0, 90)), "fail"),
    "six claims a system order nothing by an exact test": (
        *("order", "ranking", systems((0, 4, 0, 2), (2, 0, 0, 4)), ""),
    ),
    "all orders are right": ("order", "ranking", RIGHT_ORDER, ""),
    "what is unscored could turn an order": ("order", "ranking", RIGHT_ORDER + unscored(9000, 1, system="s"), ""),
    "too few errors to calibrate on": ("calibration", "adjustment", systems((90, 0, 2, 1), (70, 0, 10, 10)), "warn"),
    "no system has enough errors": ("calibration", "adjustment", systems((90, 0, 2, 1), (70, 0, 1, 0)), "fail"),
    "enough errors": ("calibration", "adjustment", systems((90, 0, 20, 1), (70, 0, 10, 0)), "ok"),
    "errors are counted by labels, whatever is scored": (
        "calibration",
        "adjustment",
        [row | {"e": None} for row in systems((90, 0, 20, 1), (70, 0, 10, 0))],
        "ok",
    ),
    "too few labels to tell systems apart": ("power", "ranking", systems((20, 0, 10, 0), (15, 0, 10, 0)), "warn"),
    "enough labels": ("power", "ranking", systems((900, 0, 200, 0), (800, 0, 200, 0)), ""),
    "a fifth of the claims unscored": ("unscored", "rates", cells(80, 20, 70, 30) + unscored(50, 0), "warn"),
    "a few claims unscored": ("unscored", "rates", cells(80, 20, 70, 30) + unscored(9, 0), ""),
    "no claim scored": ("unscored", "rates", unscored(5, 0) + unscored(5, 1), "fail"),
    "an evaluator without any verdict": (
        *("unscored", "rates", cells(8, 2, 8, 2), "fail", {"about": {"evaluators": [{"name": "e"}, {"name": "lost"}]}}),
    ),
    "nine documents": (
        "clusters",
        "rates",
        cells(8, 2, 8, 2),
        "warn",
        {"about": {"claims": [{"dataset": f"d{n}", "n_claims": 20, "n_clusters": n} for n in (9, 10)]}},
    ),
    "nine documents without intervals": (
        "clusters",
        "rates",
        cells(8, 2, 8, 2),
        "",
        {"about": {"claims": [{"dataset": "d", "n_claims": 20, "n_clusters": 9}]}} | NO_INTERVALS,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_check_says_what_is_wrong_and_nothing_else(case: str) -> None:
    check, audits, rows, severity, *options = CASES[case]
    found = [one for one in of_audits(audits, rows, **(options[0] if options else {})) if one["id"] == check]
    assert [one["severity"] for one in found] == severity.split()
    for one in found:
        assert_numbers_are_evidence(one)


# ---------------------------------------------------------------------------------- what a finding says is its evidence


def assert_numbers_are_evidence(finding: Row) -> None:
    """Every number of a statement is read again from the evidence, by rules that share nothing with the package."""
    texts = {"0.0"}
    statement = finding["statement"]
    for value in sorted(map(str, finding["evidence"].values()), key=len, reverse=True):
        if not value.replace(".", "").replace("-", "").isdigit():
            statement = statement.replace(value, "")
    for value in finding["evidence"].values():
        if isinstance(value, int | float):
            texts |= {f"{value:,}", f"{value:.6g}", f"{value:.2f}", f"{100 * value:.1f}", f"{100 * abs(value):.1f}"}
            texts |= {f"{100 * value:+.1f}".replace("-", "−"), f"{100 * value:.1f}".removesuffix(".0")}
    for name in filter(None, (finding["dataset"], *str(finding["evaluator"]).split(" / "))):
        statement = statement.replace(name, "")
    numbers = re.findall(r"[+−]?\d[\d,]*(?:\.\d+)?", statement)
    assert not [number for number in numbers if number not in texts], (finding["statement"], finding["evidence"])
    assert "nan" not in statement
    assert "{" not in statement


@pytest.mark.parametrize("world", ["whole", "unscored", "a constant", "one evaluator"])
def test_every_number_of_a_run_is_of_a_row(world: str) -> None:
    results = audit_world(make_world(world))
    assert results.finding_rows
    rows = [row for mine in results.audits.values() for row in mine]
    for finding in results.finding_rows:
        assert_numbers_are_evidence(finding)
        own = {key: value for key, value in finding["evidence"].items() if key in ("tpr", "tnr", "iou", "bacc", "n")}
        assert not own or any(own.items() <= row.items() for row in rows), finding


def test_new_names_and_another_order_change_nothing_but_names() -> None:
    claims, verdicts = make_world("whole")
    before = audit_world((claims, verdicts), with_estimates=False)
    new_names = {"ant": "zebra", "bee": "yak", "cat": "wolf", "quill": "owl", "robin": "lark", "swift": "crane"}
    order = np.random.default_rng(1).permutation(len(claims))
    claims = claims.assign(system=claims["system"].map(new_names)).iloc[order]
    verdicts = verdicts.assign(evaluator=verdicts["evaluator"].map(new_names))
    after = audit_world((claims, verdicts), with_estimates=False)
    pattern = re.compile(r"\b(" + "|".join(new_names) + r")\b")
    renamed = {pattern.sub(lambda name: new_names[name[0]], each["statement"]) for each in before.finding_rows}
    assert renamed == {each["statement"] for each in after.finding_rows}
    told = [(each["task"], each["may"], each["figure"], each["why"]) for each in before.decisions]
    assert told == [(each["task"], each["may"], each["figure"], each["why"]) for each in after.decisions]


def test_the_run_tells_how_many_tests_were_made() -> None:
    results = audit_world(make_world("whole"))
    of_claims = [row for row in results.audits["quantification"] if row["level"] == "claim" and row["bias_low"]]
    told = results.about["n_tests"]
    assert told["bias"] == len(of_claims), "each system, and each data set as a whole, by each evaluator"
    assert "unscored" not in told, "it counts, and tests nothing"


def flips(kind: str, lost: float, gained: float, half: float = 0.02) -> Row:
    row = {"dataset": "d", "evaluator": "e", "chunked_evaluator": "chunked-e", "r2_diff": kind, "n": 100}
    ends = {"flip_1_to_0_low": max(lost - half, 0.0), "flip_1_to_0_high": lost + half}
    return as_declared("chunking", row | {"flip_1_to_0": lost, "flip_0_to_1": gained, "chunk_size": 500} | ends)


WITH_CHUNKS = {"dataset": "d", "evaluator": "chunked-e", "chunk_size": 500}
CHUNK_CASES = {
    "a third of the split claims": ((0.02, 0.02), (0.3, 0.02), {}, "fail"),
    "as many of the others": ((0.1, 0.1), (0.12, 0.1), {}, ""),
    "as many turn the other way": ((0.02, 0.02), (0.3, 0.3), {}, ""),
    "an interval that leaves it open": ((0.02, 0.02), (0.1, 0.02, 0.2), {}, ""),
    "the labels show no harm": ((0.02, 0.02), (0.3, 0.02), {"bacc": 0.82}, "warn"),
    "the labels show harm": ((0.02, 0.02), (0.3, 0.02), {"bacc": 0.78}, "fail"),
    "a fall that may be chance": ((0.02, 0.02), (0.3, 0.02), {"bacc": 0.78, "bacc_change_high": 0.01}, "warn"),
    "a fall that is significant": ((0.02, 0.02), (0.3, 0.02), {"bacc": 0.78, "bacc_change_high": -0.01}, "fail"),
}


@pytest.mark.parametrize("case", CHUNK_CASES)
def test_claims_that_chunks_make_unverifiable(case: str) -> None:
    whole, split, with_chunks, severity = CHUNK_CASES[case]
    audits = {"chunking": [flips("zero", *whole), flips("positive", *split)]}
    if with_chunks:
        audits["chunking_rates"] = [WITH_CHUNKS | {"evaluator": "e", "bacc": 0.8}, WITH_CHUNKS | with_chunks]
    assert [one["severity"] for one in collect_findings(audits)] == severity.split()


def test_rates_over_other_columns_are_not_taken_for_those_of_the_dataset():
    rows = [row | {"error_type": "x"} for row in cells(95, 5, 10, 90)]
    table = judged(rows, "e")
    for by, expected in (
        (["dataset", "error_type"], []),
        (["error_type"], []),
        (["dataset"], [("warn", "e", "d")]),
        ([], [("warn", "e", None)]),
    ):
        rates = {"rates": compute_evaluator_rates(table, by=by)}
        assert told(collect_findings(rates, {"options": {"rates": {"by": by}}}), "gap") == expected


def test_a_key_that_no_audit_declares_hides_no_row():
    """A row with one more key than its audit declares was taken for one of a part of the data set."""
    rates = compute_evaluator_rates(judged(cells(95, 5, 10, 90), "e"))
    longer = [row | {"note": "by hand"} for row in rates]
    assert told(collect_findings({"rates": longer}), "gap") == told(collect_findings({"rates": rates}), "gap")
    assert told(collect_findings({"rates": longer}), "gap") == [("warn", "e", "d")]


def test_findings_do_not_depend_on_the_order_of_keys():
    table = judged([row | {"system": "ab"[at % 2]} for at, row in enumerate(cells(95, 5, 10, 90))], "e")
    audits = {
        name: list_computable_audits()[name].compute(table, intervals=INTERVALS) for name in ("rates", "quantification")
    }
    expected = collect_findings(audits)
    turned = {name: [dict(reversed(row.items())) for row in rows] for name, rows in audits.items()}
    assert expected
    assert collect_findings(turned) == expected


def test_no_audit_no_finding():
    assert collect_findings({}) == []
    assert collect_findings({name: [] for name in list_computable_audits()}, {"evaluators": []}) == []


CORRECTIONS = {
    "helped": ([("zero_bias_threshold", 0.005, 0.02)], "ok"),
    "helped, and one is still off": ([("zero_bias_threshold", 0.06, 0.02)], "warn"),
    "harmed": ([("bacc_threshold", 0.2, 0.04)], "fail"),
    "the better of two": ([("bacc_threshold", 0.2, 0.04), ("zero_bias_threshold", 0.005, 0.02)], "ok"),
    "labels that reject nothing": ([("zero_bias_threshold", 0.02, 0.2)], ""),
}


@pytest.mark.parametrize("case", CORRECTIONS)
def test_what_a_calibration_does_to_the_others(case: str) -> None:
    """Four systems, each corrected by each other one."""

    def correct(method: str, bias: float, half: float) -> list[Row]:
        return [
            {"dataset": "d", "level": "claim", "evaluator": "e", "calibration_system": by, "system": system}
            | {"method": method, "bias": bias, "bias_low": bias - half, "bias_high": bias + half, "n": 100}
            for by, system in itertools.permutations("abcd", 2)
        ]

    methods, severity = CORRECTIONS[case]
    before = correct("none", 0.12, 0.04)
    rows = [*before, *(row for method in methods for row in correct(*method))]
    keys = ("dataset", "level", "evaluator", "system", "bias", "bias_low", "bias_high", "n")
    rates = {"labelled_error_rate": 0.2, "predicted_error_rate": 0.4}
    biases = [rates | {key: row[key] for key in keys} for row in {row["system"]: row for row in before}.values()]
    found = collect_findings({"quantification": biases, "adjusted_bias": rows})
    assert [one["severity"] for one in found if one["id"] == "adjustment"] == severity.split()
    assert collect_findings({"adjusted_bias": rows}) == [], "nothing says that a rate was wrong"


def test_many_unbiased_rates_are_not_called_off():
    """One of 20 intervals of 95 % misses 0 by chance: that is no finding."""
    rows = [row for at in range(19) for row in cells(60, 10, 20, 10, system=f"s{at}")]
    rows += cells(60, 17, 20, 6, system="odd")
    found = compute_quantification_bias(judged(rows, "e"), levels=["claim"], intervals=INTERVALS)
    odd = find(found, system="odd")
    assert odd["bias_low"] > 0
    assert 0.01 < odd["p_bias"] < 0.05
    assert told(collect_findings({"quantification": found}), "bias") == []
    alone = [row for row in found if row["system"] == "odd"]
    assert told(collect_findings({"quantification": alone}), "bias") == [("warn", "e", "d")]


def test_the_p_value_of_a_bias_is_exact_where_few_clusters_are_judged_wrongly():
    rows = cells(0, 6, 0, 0, system="s")
    found = find(compute_quantification_bias(judged(rows, "e"), levels=["claim"], intervals=INTERVALS), system="s")
    assert found["p_bias"] == pytest.approx(2 * 0.5**6)
    assert found["n_clusters"] == 6
