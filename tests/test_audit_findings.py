"""Findings: each check on rows that should and should not set it off."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy
from audit_tables import as_declared, collect_findings, find, judged

from factaudit.audit import list_computable_audits
from factaudit.audit.core.figure_formatting import format_percentage_points
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.hypothesis_tests import pair_mean_p

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


def of_rates(rows: list[Row], *evaluators: str) -> list[Row]:
    return collect_findings({"rates": compute_evaluator_rates(judged(rows, *evaluators), intervals=INTERVALS)})


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
#: Check, audits, rows, severities, what the finding says, and options of the audits.
CASES: dict[str, tuple[Any, ...]] = {
    "TPR 95, TNR 40": (
        *("gap", "rates", cells(190, 10, 80, 120), "fail"),
        "e passes 95.0 % of the correct claims but finds only 40.0 % of the errors on d. Check a sample of the claims "
        "that it passes before you rely on it.",
    ),
    "TPR 40, TNR 95": ("gap", "rates", cells(80, 120, 190, 10), "fail", "of the claims that it flags"),
    "a gap of 22 points of 100 claims tells nothing": ("gap", "rates", cells(41, 9, 30, 20), "", ""),
    "a gap without intervals is not certain": ("gap", "rates", cells(190, 10, 80, 120), "warn", "", NO_INTERVALS),
    "no gap": ("gap", "rates", cells(800, 200, 780, 220), "ok", ""),
    "100 claims do not show that the gap is small": ("gap", "rates", cells(80, 20, 70, 30), "", ""),
    "opposite habits: who finds errors": ("bacc_tie", "rates", OPPOSITE, "warn", "To find errors, choose b"),
    "opposite habits: who keeps claims": ("bacc_tie", "rates", OPPOSITE, "warn", "To keep correct claims, choose a"),
    "one habit": ("bacc_tie", "rates", [row | {"b": row["a"]} for row in OPPOSITE], "", ""),
    "evaluators find different errors": (
        *("iou", "rates consistency", PARTED, "fail"),
        "have about the same BAcc, but of the claims that either flags on d, both flag only",
    ),
    "different errors without intervals": (
        *("iou", "rates consistency", PARTED, "warn"),
        *("% (no interval was computed).", NO_INTERVALS),
    ),
    "evaluators find the same errors": (
        *("iou", "rates consistency", [row | {"b": row["a"]} for row in PARTED], "", ""),
        NO_INTERVALS,
    ),
    "only evaluators of like BAcc are expected to agree": (
        *("iou", "rates consistency", [row | {"b": 1} for row in PARTED], "", ""),
        NO_INTERVALS,
    ),
    "one of two rates is off": (
        *("bias", "quantification", HALF_OFF, "fail"),
        "1 of the 2 error rates that e predicts is significantly wrong, 1 of them by significantly more than 5 points. "
        "It puts s's error rate on d at 50.0 %; by the labels it is 0.0 %. Do not publish",
    ),
    "what the rate of a sample of labels says of the whole system is another": (
        *("bias", "quantification", [*HALF_OFF, *[{"system": "s", "label": None, "e": 0}] * 43], "fail"),
        "Of s's labelled claims on d it calls 50.0 % errors; by the labels it is 0.0 %. Do not publish",
    ),
    "a rate is right": ("bias", "quantification", cells(500, 0, 500, 0, system="s"), "ok", ""),
    "ten claims do not show that a rate is right": ("bias", "quantification", cells(5, 0, 5, 0, system="s"), "", ""),
    "a bias without intervals is not tested": ("bias", "quantification", HALF_OFF, "", "", NO_INTERVALS),
    "rates that are each a little off show in all systems together": (
        *("bias", "quantification", LITTLE_OFF, "warn"),
        "The error rate that e predicts for all systems together is significantly wrong, but not by significantly more "
        "than 5 points. On d it puts the rate at 35.0 %; by the labels it is 25.0 %. After the correction for all "
        "tests, none of the 6 rates of single systems is significantly wrong.",
    ),
    "no rate is a little off": (
        *("bias", "quantification", [row for at in range(6) for row in cells(36, 9, 6, 9, system=f"s{at}")], "", ""),
    ),
    "a rate that is surely off": ("bias", "quantification", cells(50, 12, 20, 0, system="s"), "fail", ""),
    "a rate is not called off where the bounds leave it open": (
        *("bias", "quantification"),
        *([*cells(50, 12, 20, 0, system="s"), *[{"system": "s", "label": 0, "e": None}] * 60], "", ""),
    ),
    "over here": (
        *("direction", "quantification", OVER + UNDER, "fail"),
        "significantly too high on 1 of 2 data sets (at most by 33.3 points, on over)",
    ),
    "under there": (
        *("direction", "quantification", OVER + UNDER, "fail"),
        "significantly too low on 1 (at most by 41.7 points, on under)",
    ),
    "over alone": ("direction", "quantification", OVER, "", ""),
    "responses are further off than their claims": (
        *("level", "quantification", HEAPED, "warn"),
        "is significantly larger for responses than for claims. On d it is +80.0 points for responses and +22.5 for",
        {"levels": ["claim", "response"]},
    ),
    "a response of one claim is that claim": (
        *("level", "quantification", [row | {"response_id": str(at)} for at, row in enumerate(HEAPED)], "", ""),
        {"levels": ["claim", "response"]},
    ),
    "a group's headroom is off by 10 points, few claims": ("headroom", "headroom", FAMILIES, "warn", "", GROUPS),
    "a group's headroom is off by 10 points, many claims": ("headroom", "headroom", FAMILIES * 5, "fail", "", GROUPS),
    "headroom within a limit of 20 points": (
        *("headroom", "headroom", FAMILIES * 5, "warn", ""),
        GROUPS | {"about": {"limits": {"max_bias": 0.2}}},
    ),
    "only the predictions find a difference: that is no reversal": (
        *("order", "ranking", systems((90, 0, 10, 0), (70, 0, 12, 18)), "", ""),
    ),
    "reversed": (
        *("order", "ranking", systems((0, 90, 0, 10), (10, 0, 0, 90)), "fail"),
        "e puts 1 of 1 pair of systems significantly in the wrong order. The labels order 1 significantly. Do not rank",
    ),
    "six claims a system order nothing by an exact test": (
        *("order", "ranking", systems((0, 4, 0, 2), (2, 0, 0, 4)), "", ""),
    ),
    "all orders are right": (
        *("order", "ranking", RIGHT_ORDER, "ok"),
        "orders all 1 pair of systems like the labels, 1 of them significantly",
    ),
    "all orders are =": ("order", "ranking", systems((9, 0, 1, 0), (8, 0, 2, 0)), "", ""),
    "what is unscored could turn an order": (
        *("order", "ranking", RIGHT_ORDER + [{"system": "s", "label": 1, "e": None}] * 9000, "", ""),
    ),
    "too few errors to calibrate on": (
        *("calibration", "adjustment", systems((90, 0, 2, 1), (70, 0, 10, 10)), "warn"),
        "On d, 1 of 2 systems has fewer than 10 labelled errors: s (3). These are too few to correct the rates of "
        "other systems with. t has the most (20).",
    ),
    "no system has enough errors": ("calibration", "adjustment", systems((90, 0, 2, 1), (70, 0, 1, 0)), "fail", ""),
    "enough errors": ("calibration", "adjustment", systems((90, 0, 20, 1), (70, 0, 10, 0)), "ok", ""),
    "errors are counted by labels, whatever is scored": (
        *("calibration", "adjustment"),
        *([row | {"e": None} for row in systems((90, 0, 20, 1), (70, 0, 10, 0))], "ok", ""),
    ),
    "too few labels to tell systems apart": (
        *("power", "ranking", systems((20, 0, 10, 0), (15, 0, 10, 0)), "warn", ""),
    ),
    "enough labels": ("power", "ranking", systems((900, 0, 200, 0), (800, 0, 200, 0)), "ok", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_a_check_says_what_is_wrong_and_nothing_else(case):
    check, audits, rows, severity, text, *options = CASES[case]
    found = [one for one in of_audits(audits, rows, **(options[0] if options else {})) if one["id"] == check]
    assert [one["severity"] for one in found] == severity.split()
    assert all(text in one["statement"] for one in found)


def test_evidence_has_the_figures_that_a_finding_is_of():
    for check, audits, rows, expected in (
        ("gap", "rates", cells(190, 10, 80, 120), {"gap": pytest.approx(0.55)}),
        ("iou", "rates consistency", PARTED, {"class": "unattributable", "iou": 0}),
        ("bias", "quantification", HALF_OFF, {"system": "s", "n_off": 1}),
        ("order", "ranking", systems((0, 90, 0, 10), (10, 0, 0, 90)), {"n_reversed": 1, "n_ordered_alike": 0}),
        ("calibration", "adjustment", systems((90, 0, 2, 1), (70, 0, 10, 10)), {"best": "t"}),
    ):
        evidence = find(of_audits(audits, rows), id=check)["evidence"]
        assert evidence | expected == evidence
    assert "n_off" not in find(of_audits("quantification", LITTLE_OFF), id="bias")["evidence"], "of no single system"


def flips(kind: str, lost: float, gained: float, low: float | None = None, high: float | None = None) -> Row:
    row = {"dataset": "d", "evaluator": "e", "chunked_evaluator": "chunked-e", "r2_diff": kind, "n": 100}
    row |= {"flip_1_to_0": lost, "flip_0_to_1": gained, "chunk_size": 500}
    return as_declared("chunking", row | ({} if low is None else {"flip_1_to_0_low": low, "flip_1_to_0_high": high}))


def test_claims_that_chunks_make_unverifiable():
    bad = [flips("zero", 0.02, 0.02, 0.01, 0.04), flips("positive", 0.3, 0.02, 0.2, 0.4)]
    assert told(collect_findings({"chunking": bad}), "chunking") == [("fail", "e", "d")]
    blurred = [row | {"chunk_size": None} for row in bad]
    assert "chunks of unknown size turn" in find(collect_findings({"chunking": blurred}), id="chunking")["statement"]
    # That is no fault where with chunks it is right on as many claims: then many of the rejected claims are errors.
    rates = [
        {"dataset": "d", "evaluator": name, "bacc": bacc, "chunk_size": 500}
        for name, bacc in (("e", 0.8), ("chunked-e", 0.82))
    ]
    finding = find(collect_findings({"chunking": bad, "chunking_rates": rates}), id="chunking")
    shown = "Its balanced accuracy there is 82.0 % with chunks and 80.0 % without, so the labels show no harm."
    assert (finding["severity"], finding["statement"].endswith(shown)) == ("warn", True)
    rates[1]["bacc"] = 0.78
    finding = find(collect_findings({"chunking": bad, "chunking_rates": rates}), id="chunking")
    assert finding["statement"].endswith(
        "78.0 % with chunks and 80.0 % without. Give it whole documents or larger chunks."
    )
    # Where the fall is tested, it is a fault only where it is significant.
    for high, severity, end in (
        (0.01, "warn", "78.0 % with chunks and 80.0 % without, not significantly lower."),
        (-0.01, "fail", "78.0 % with chunks and 80.0 % without. Give it whole documents or larger chunks."),
    ):
        rates[1] |= {"bacc_change": -0.02, "bacc_change_low": -0.05, "bacc_change_high": high}
        finding = find(collect_findings({"chunking": bad, "chunking_rates": rates}), id="chunking")
        assert (finding["severity"], finding["statement"].endswith(end)) == (severity, True)
    unsure = [flips("zero", 0.02, 0.02, 0.01, 0.04), flips("positive", 0.1, 0.02, 0.01, 0.2)]
    assert told(collect_findings({"chunking": unsure}), "chunking") == []
    assert told(
        collect_findings({"chunking": [flips("zero", 0.0, 0.0), flips("positive", 0.1, 0.02)]}), "chunking"
    ) == [("warn", "e", "d")]
    good = [flips("zero", 0.1, 0.1), flips("positive", 0.12, 0.1)]
    assert told(collect_findings({"chunking": good}), "chunking") == []


def unscored(n: int, label: int, name: str = "e") -> list[Row]:
    return [{"label": label, name: None} for _ in range(n)]


def test_unscored_claims_that_could_change_a_conclusion():
    rows = cells(80, 20, 70, 30)
    assert told(of_rates(rows, "e"), "unscored") == [("ok", "e", None)]
    harmless = of_rates(rows + unscored(1, 0), "e")
    assert told(harmless, "unscored") == [("ok", "e", None)]
    assert (
        find(harmless, id="unscored")["statement"]
        == "e has 1 unscored claim. This cannot change its rank by BAcc, or whether TPR and TNR are more than 20 "
        "points apart."
    ), "no bias was computed"
    table = judged([*rows, *unscored(1, 0)], "e")
    both = {"rates": compute_evaluator_rates(table, intervals=INTERVALS)}
    both["quantification"] = compute_quantification_bias(table, levels=["claim"])
    assert (
        "its rank by BAcc, whether its error rate is too high or too low, or"
        in find(collect_findings(both), id="unscored")["statement"]
    )
    # Two biases of unlike signs, each far from 0 for one claim; their mean is not.
    one = [row | {"dataset": "one"} for row in cells(70, 30, 100, 0)]
    two = [row | {"dataset": "two"} for row in cells(100, 0, 71, 29) + unscored(1, 0)]
    mean = of_rates(one + two, "e")
    assert (
        "e has 1 unscored claim. On no data set can this change its rank by BAcc"
        in find(mean, id="unscored")["statement"]
    )
    found = of_rates(rows + unscored(30, 0), "e")
    assert told(found, "unscored") == [("warn", "e", "d")]
    assert "whether its TPR and TNR are more than 20 points apart" in find(found, id="unscored")["statement"]
    none = of_rates(unscored(5, 0) + unscored(5, 1), "e")
    assert told(none, "unscored") == [("fail", "e", "d")]
    # A data set that is wholly unscored hides nothing of another.
    elsewhere = [row | {"dataset": "other"} for row in unscored(5, 0) + unscored(5, 1)]
    both_parts = of_rates(rows + unscored(30, 0) + elsewhere, "e")
    assert sorted(told(both_parts, "unscored")) == [("fail", "e", "other"), ("warn", "e", "d")]


def test_unscored_claims_that_could_change_the_better_evaluator_or_the_sign_of_a_bias():
    rows = [row | {"f": row["e"]} for row in cells(80, 20, 80, 20)]
    rows[0]["f"] = 0
    for row in rows[180:184]:  # errors that e passes and f may catch
        row["f"] = None
    table = judged(rows, "e", "f")
    found = collect_findings(
        {"rates": compute_evaluator_rates(table), "quantification": compute_quantification_bias(table)}
    )
    statements = {row["evaluator"]: row["statement"] for row in found if row["id"] == "unscored"}
    assert "whether its BAcc is higher than that of f" not in statements["e"], "e is fully scored"
    assert "f did not score, or only guessed, 4 claims on d. They could change" in statements["f"]
    assert "whether its BAcc is higher than that of e" in statements["f"]


def test_an_evaluator_without_any_verdict_is_told_of():
    found = collect_findings(
        {"rates": compute_evaluator_rates(judged(cells(8, 2, 8, 2), "e"))},
        {"evaluators": [{"name": "e"}, {"name": "lost"}]},
    )
    assert ("fail", "lost", None) in told(found, "unscored")


def test_rates_over_other_columns_are_not_taken_for_those_of_the_dataset():
    rows = [row | {"error_type": "x"} for row in cells(95, 5, 10, 90)]
    table = judged(rows, "e")
    for by, expected in (
        (["dataset", "error_type"], []),
        (["error_type"], []),
        (["dataset"], [("warn", "e", "d")]),
        ([], [("warn", "e", "__all__")]),
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


def of_corrections(rows: list[Row]) -> list[Row]:
    """What is found of corrected rates, beside the rates as they are, whose bias is tested once."""
    plain = {row["system"]: row for row in rows if row["method"] == "none"}
    kept = ("dataset", "level", "evaluator", "system", "bias", "bias_low", "bias_high")
    rates = {"labelled_error_rate": 0.2, "predicted_error_rate": 0.4}
    biases = [rates | {key: row[key] for key in kept} for row in plain.values()]
    found = collect_findings({"quantification": biases, "adjusted_bias": rows})
    assert collect_findings({"adjusted_bias": rows}) == [], "nothing says that a rate was wrong"
    return [row for row in found if row["id"] == "adjustment"]


@pytest.mark.parametrize("seed", range(6))
def test_a_gain_is_tested_by_the_means_without_each_system_of_its_data_set(seed: int) -> None:
    """The jackknife again, by loops: a pair is left out with either system; data sets may be any distance apart."""
    draw, gains = np.random.default_rng(seed), {}
    for dataset, names, mean in (("c", "abcdef"[: 3 + seed % 4], 0.2), ("d", "abcd", 0.02 * (seed % 3))):
        skill = {name: draw.normal(0, 0.03) for name in names}
        for by, system in itertools.permutations(names, 2):
            gains[dataset, by, system] = mean + skill[by] + skill[system] + draw.normal(0, 0.02)
    parts = []
    for dataset in "cd":
        mine = {key[1:]: gain for key, gain in gains.items() if key[0] == dataset}
        names = sorted({by for by, _ in mine})
        means = [np.mean([gain for pair, gain in mine.items() if name not in pair]) for name in names]
        spread = (len(names) - 1) / len(names) * sum((one - np.mean(means)) ** 2 for one in means)
        parts.append(((len(mine) / len(gains)) ** 2 * spread, len(names) - 1))
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    p = scipy.stats.t.sf(np.mean([*gains.values()]) / variance**0.5, freedom)
    values, (stratum, first, second) = np.array([*gains.values()]), np.array([*gains]).T
    assert pair_mean_p(values, first, second, stratum) == pytest.approx(p, rel=1e-9)
    further = values + np.where(stratum == "c", 1.0, 0.0)
    assert pair_mean_p(further, first, second, stratum) < p, "a gain of one data set is no error"


def test_what_a_calibration_does_to_the_others():
    def of(method: str, bias: float, half: float, spread: float = 0.01) -> list[Row]:
        """Four systems, each corrected by each other one; ``spread``: between systems."""
        rows = []
        for by, system in itertools.permutations("abcd", 2):
            about = {"dataset": "d", "level": "claim", "evaluator": "e", "calibration_system": by, "system": system}
            mine = bias + spread * ("abcd".index(system) - 1.5)
            rows.append(about | {"method": method, "bias": mine, "bias_low": mine - half, "bias_high": mine + half})
        return rows

    before, harmed = of("none", 0.12, 0.04, 0.0), of("bacc_threshold", 0.2, 0.04)
    helped = of("zero_bias_threshold", 0.02, 0.04)
    found = find(of_corrections(before + helped + harmed))
    assert (found["severity"], found["evaluator"]) == ("ok", "e")
    assert found["statement"] == (
        "Correcting e's error rates with the labels of one system, by a threshold without bias (the best of 2 "
        "methods), "
        "changes the mean |bias| of the other systems from 12.0 to 2.0 points (at worst 3.5). None of 12 corrected "
        "rates is still significantly wrong. The improvement is significant. It is not known whether every corrected "
        "rate is within 5 points."
    )
    near = of("zero_bias_threshold", 0.005, 0.02, 0.001)
    assert find(of_corrections(before + near))["statement"].endswith(" The improvement is significant."), (
        "all within 5 points"
    )
    # Lower by 0.2 points on average, as systems differ by chance: that none is significantly off shows nothing.
    chance = of("zero_bias_threshold", 0.118, 0.2, 0.05)
    assert of_corrections(before + chance) == []
    assert of_corrections(before + of("zero_bias_threshold", 0.02, 0.2)) == [], "a gain, by labels that reject nothing"
    some_off = [row | {"bias_low": row["bias"] - 0.02} if row["system"] == "d" else row for row in chance]
    found = find(of_corrections(before + some_off))
    assert found["severity"] == "warn"
    assert "3 of 12 corrected rates are still significantly wrong." in found["statement"]
    assert found["statement"].endswith(
        " It is not shown to help, so do not rely on a correction with one system's labels."
    )
    partly = [row | {"bias": 0.1, "bias_low": 0.06} if row["system"] == "c" else row for row in helped]
    found = find(of_corrections(before + partly))
    assert (found["severity"], found["statement"].endswith("The improvement is significant.")) == ("warn", True)
    found = find(of_corrections(before + harmed))
    assert found["severity"] == "fail"
    assert found["statement"].endswith(" significantly wrong. Do not rely on a correction with one system's labels.")
    blurred = [row for row in of("bacc_threshold", 0.2, 0.04) if row["calibration_system"] == "a"]
    found = find(of_corrections(before + blurred))
    assert "3 of 3 corrected rates are still significantly wrong; 9 more cannot be corrected." in found["statement"]
    wider = of("adjusted_counts", 0.2, 0.4)
    found = find(of_corrections(before + wider))
    assert found["severity"] == "warn", "a wider interval is no smaller bias, and no test says that it is as large"
    few_wide = [row for row in wider if row["calibration_system"] == "a"]
    found = find(of_corrections(before + harmed + few_wide))
    assert found["severity"] == "fail", "a method that corrects three rates, none of them found off, is no milder fault"
    fine, right = of("none", 0.0, 0.04, 0.0), of("zero_bias_threshold", 0.0, 0.04, 0.0)
    assert of_corrections(fine + right) == [], "nothing was wrong: nothing can help"


def test_biases_by_several_calibrations_do_not_cancel():
    def of(method: str, by: str, bias: float) -> Row:
        about = {"dataset": "d", "level": "claim", "evaluator": "e", "calibration_system": by, "system": "a"}
        return about | {"method": method, "bias": bias, "bias_low": bias - 0.05, "bias_high": bias + 0.05}

    rows = [of("none", by, 0.3) for by in "bc"] + [of("bacc_threshold", "b", 0.5), of("bacc_threshold", "c", -0.4)]
    rows += [of("none", "__cv__", 0.3), of("bacc_threshold", "__cv__", 0.05)]
    found = find(of_corrections(rows))
    assert "changes the mean |bias| of the other systems from 30.0 to 45.0 points (at worst 50.0)" in found["statement"]
    assert found["severity"] == "fail"


def test_a_rounded_zero_has_no_sign_and_a_minus_is_no_hyphen():
    assert [format_percentage_points(value, with_sign=True) for value in (-1e-9, 0, 0.0004, -0.052, 0.1)] == [
        "0.0",
        "0.0",
        "+0.04",
        "−5.2",
        "+10.0",
    ]


def test_too_few_documents_for_an_interval():
    audits = {"rates": compute_evaluator_rates(judged(cells(8, 2, 8, 2), "e"), intervals=INTERVALS)}
    about = {"claims": [{"dataset": f"d{n}", "n_claims": 20, "n_clusters": n} for n in (1, 9, 10)]}
    found = [row for row in collect_findings(audits, about) if row["id"] == "clusters"]
    assert [(row["severity"], row["dataset"]) for row in found] == [("warn", "d1")]
    assert (
        "All claims of d1 come from 1 document or response. Intervals from so few are unreliable"
        in found[0]["statement"]
    )
    assert "There are too few documents on 2 of 3 data sets." in found[0]["statement"]
    without = {"rates": compute_evaluator_rates(judged(cells(8, 2, 8, 2), "e"))}
    assert "clusters" not in {row["id"] for row in collect_findings(without, about)}


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
