"""Findings: each check on rows that should and should not set it off."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy
from audit_tables import as_declared, collect_findings, find, judged

from factaudit.audit import list_computable_audits, load_all_audits
from factaudit.audit.adjustment import compute_adjustment_effect
from factaudit.audit.consistency import compute_evaluator_consistency
from factaudit.audit.core.figure_formatting import format_percentage_points
from factaudit.audit.findings import _explain_evaluators_not_checked
from factaudit.audit.headroom import compute_headroom
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.audit.ranking import compute_ranking_agreement
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.cluster_jackknife import jackknife_pair_mean_p

Row = dict[str, Any]
INTERVALS = ClusterBootstrap(replicates=300, seed=0)


def cells(tp: int, fn: int, tn: int, fp: int, name: str = "e", **columns: Any) -> list[Row]:
    return [
        columns | {"label": label, name: said}
        for n, label, said in ((tp, 1, 1), (fn, 1, 0), (tn, 0, 0), (fp, 0, 1))
        for _ in range(n)
    ]


def told(found: list[Row], name: str) -> list[tuple[str, str | None, str | None]]:
    return [(row["severity"], row["evaluator"], row["dataset"]) for row in found if row["id"] == name]


def of_rates(rows: list[Row], *evaluators: str, intervals: ClusterBootstrap | None = INTERVALS) -> list[Row]:
    return collect_findings({"rates": compute_evaluator_rates(judged(rows, *evaluators), intervals=intervals)})


def test_a_gap_over_20points():
    wide = cells(190, 10, 80, 120)  # TPR 95, TNR 40
    found = of_rates(wide, "e")
    assert told(found, "gap") == [("fail", "e", "d")]
    finding = find(found, id="gap")
    assert finding["statement"] == (
        "e passes 95.0 % of the correct claims but finds only 40.0 % of the errors on d. Check a sample of the claims "
        "that it passes before you rely on it."
    )
    assert finding["evidence"]["gap"] == pytest.approx(0.55)
    turned = find(of_rates(cells(80, 120, 190, 10), "e"), id="gap")
    assert (turned["severity"], "of the claims that it flags" in turned["statement"]) == ("fail", True)
    # 22 points of 100 claims: the interval reaches under 20, which tells nothing; without one there is no certainty
    assert told(of_rates(cells(41, 9, 30, 20), "e"), "gap") == []
    assert told(of_rates(wide, "e", intervals=None), "gap") == [("warn", "e", "d")]
    assert told(of_rates(cells(800, 200, 780, 220), "e"), "gap") == [("ok", "e", None)]
    assert told(of_rates(cells(80, 20, 70, 30), "e"), "gap") == [], "100 claims do not show that the gap is small"


def test_a_tie_of_opposite_habits():
    rows = [{"label": 1, "a": int(i < 90), "b": int(i < 50)} for i in range(100)]
    rows += [{"label": 0, "a": int(i < 50), "b": int(i < 10)} for i in range(100)]
    found = of_rates(rows, "a", "b")
    assert told(found, "bacc_tie") == [("warn", "a / b", "d")]
    statement = find(found, id="bacc_tie")["statement"]
    assert "To find errors, choose b" in statement
    assert "To keep correct claims, choose a" in statement
    alike = [row | {"b": row["a"]} for row in rows]
    assert told(of_rates(alike, "a", "b"), "bacc_tie") == []


def test_evaluators_of_like_bacc_that_find_different_errors():
    rows = [{"label": 0, "a": int(i % 2), "b": int(i % 2 == 0)} for i in range(100)]
    rows += [{"label": 1, "a": 1, "b": 1} for _ in range(100)]
    table = judged(rows, "a", "b")
    audits = {
        "rates": compute_evaluator_rates(table),
        "consistency": compute_evaluator_consistency(table, intervals=INTERVALS),
    }
    finding = find(collect_findings(audits), id="iou")
    assert (finding["severity"], finding["evidence"]["class"], finding["evidence"]["iou"]) == (
        "fail",
        "unattributable",
        0,
    )
    assert "have about the same BAcc, but of the claims that either flags on d, both flag only" in finding["statement"]
    assert "no interval" not in finding["statement"]
    untested = audits | {"consistency": compute_evaluator_consistency(table)}
    told_of_it = find(collect_findings(untested), id="iou")
    assert (told_of_it["severity"], "% (no interval was computed)." in told_of_it["statement"]) == ("warn", True)
    same = judged([row | {"b": row["a"]} for row in rows], "a", "b")
    assert (
        told(
            collect_findings(
                {"rates": compute_evaluator_rates(same), "consistency": compute_evaluator_consistency(same)}
            ),
            "iou",
        )
        == []
    )
    worse = judged([row | {"b": 1} for row in rows], "a", "b")
    audits = {"rates": compute_evaluator_rates(worse), "consistency": compute_evaluator_consistency(worse)}
    assert told(collect_findings(audits), "iou") == [], "only evaluators of like BAcc are expected to agree"


def test_error_rates_that_are_significantly_off():
    rows = cells(50, 50, 0, 0, system="s") + cells(50, 0, 50, 0, system="t")
    found = collect_findings({"quantification": compute_quantification_bias(judged(rows, "e"), intervals=INTERVALS)})
    finding = find(found, id="bias")
    assert (finding["severity"], finding["evidence"]["system"], finding["evidence"]["n_off"]) == ("fail", "s", 1)
    assert (
        "1 of the 2 error rates that e predicts is significantly wrong, 1 of them by significantly more than 5 points. "
        "It puts s's error rate on d at 50.0 %; by the labels it is 0.0 %. Do not publish" in finding["statement"]
    )
    # Where labels are of a sample, the rate is that of the sample: what it says of the whole system is another (65 %).
    part = [*rows, *({"system": "s", "label": None, "e": 0} for _ in range(43))]
    found = collect_findings({"quantification": compute_quantification_bias(judged(part, "e"), intervals=INTERVALS)})
    sampled = "Of s's labelled claims on d it calls 50.0 % errors; by the labels it is 0.0 %. Do not publish"
    assert sampled in find(found, id="bias")["statement"]
    right = cells(500, 0, 500, 0, system="s")
    found = collect_findings({"quantification": compute_quantification_bias(judged(right, "e"), intervals=INTERVALS)})
    assert told(found, "bias") == [("ok", "e", None)]
    few = cells(5, 0, 5, 0, system="s")
    found = collect_findings({"quantification": compute_quantification_bias(judged(few, "e"), intervals=INTERVALS)})
    assert told(found, "bias") == [], "ten claims do not show that a rate is right"
    assert collect_findings({"quantification": compute_quantification_bias(judged(rows, "e"))}) == [], (
        "without intervals there is no test"
    )


def test_rates_that_are_each_a_little_off_show_in_all_systems_together():
    off = [row for at in range(6) for row in cells(36, 9, 12, 3, system=f"s{at}")]  # 21 errors predicted of 60, 15 are
    rows = compute_quantification_bias(judged(off, "e"), levels=["claim"], intervals=INTERVALS)
    found = find(collect_findings({"quantification": rows}), id="bias")
    assert (found["severity"], "n_off" in found["evidence"]) == ("warn", False)
    assert found["statement"] == (
        "The error rate that e predicts for all systems together is significantly wrong, but not by significantly more "
        "than 5 points. On d it puts the rate at 35.0 %; by the labels it is 25.0 %. After the correction for all "
        "tests, none of the 6 rates of single systems is significantly wrong."
    )
    one = compute_quantification_bias(
        judged([row | {"system": "s"} for row in off], "e"), levels=["claim"], intervals=INTERVALS
    )
    assert find(collect_findings({"quantification": one}), id="bias")["evidence"]["n_off"] == 1
    right = [row for at in range(6) for row in cells(36, 9, 6, 9, system=f"s{at}")]
    rows = compute_quantification_bias(judged(right, "e"), levels=["claim"], intervals=INTERVALS)
    assert told(collect_findings({"quantification": rows}), "bias") == []


def test_error_rates_are_not_called_off_where_the_bounds_leave_it_open():
    rows = cells(50, 12, 20, 0, system="s")
    sure = collect_findings({"quantification": compute_quantification_bias(judged(rows, "e"), intervals=INTERVALS)})
    assert told(sure, "bias") == [("fail", "e", "d")]
    open_rows = rows + [{"system": "s", "label": 0, "e": None} for _ in range(60)]
    assert (
        told(
            collect_findings(
                {"quantification": compute_quantification_bias(judged(open_rows, "e"), intervals=INTERVALS)}
            ),
            "bias",
        )
        == []
    )


def test_over_estimates_here_and_under_estimates_there():
    over = cells(60, 40, 20, 0, dataset="over", system="s")
    under = cells(60, 0, 10, 50, dataset="under", system="s")
    found = collect_findings(
        {"quantification": compute_quantification_bias(judged(over + under, "e"), intervals=INTERVALS)}
    )
    statement = find(found, id="direction")["statement"]
    assert "significantly too high on 1 of 2 data sets (at most by 33.3 points, on over)" in statement
    assert "significantly too low on 1 (at most by 41.7 points, on under)" in statement
    found = collect_findings({"quantification": compute_quantification_bias(judged(over, "e"), intervals=INTERVALS)})
    assert told(found, "direction") == []


def test_responses_are_further_off_than_their_claims():
    rows = [
        {"system": "s", "response_id": str(n // 8), "label": int(n % 40 > 0), "e": int(n % 4 > 0)} for n in range(1600)
    ]
    found = collect_findings({"quantification": compute_quantification_bias(judged(rows, "e"), intervals=INTERVALS)})
    assert told(found, "level") == [("warn", "e", "d")]
    assert (
        "is significantly larger for responses than for claims. On d it is +80.0 points for responses and +22.5 for"
        in find(found, id="level")["statement"]
    )
    alone = [row | {"response_id": str(at)} for at, row in enumerate(rows)]
    found = collect_findings({"quantification": compute_quantification_bias(judged(alone, "e"), intervals=INTERVALS)})
    assert told(found, "level") == [], "a response of one claim is that claim"


def test_headroom_of_a_group_that_is_misjudged():
    """Off by 10 points it fails where the interval is beyond the limit of 5, of many claims, and warns of few."""
    rows = cells(160, 0, 40, 0, system="7b") + cells(100, 0, 100, 0, system="13b") + cells(120, 60, 20, 0, system="70b")
    for times, severity in ((1, "warn"), (5, "fail")):
        table = judged(rows * times, "e")
        audit = compute_headroom(
            table, groups={"small": ["7b", "13b"], "large": ["70b"]}, levels=["claim"], intervals=INTERVALS
        )
        assert find(audit, group="large")["n_systems"] == 1
        assert told(collect_findings({"headroom": audit}), "headroom") == [(severity, "e", "d")]
    strict = {"limits": {"max_bias": 0.2}}
    assert told(collect_findings({"headroom": audit}, strict), "headroom") == [("warn", "e", "d")]
    small = [row for row in audit if row["group"] == "small"]
    assert told(collect_findings({"headroom": small}), "headroom") == []


def test_misordered_systems():
    rows = cells(90, 0, 10, 0, system="s") + cells(70, 0, 12, 18, system="t")
    found = collect_findings({"ranking": compute_ranking_agreement(judged(rows, "e"), levels=["claim"])})
    assert told(found, "order") == [], "only the predictions find a difference: that is no reversal"
    turned = cells(0, 90, 0, 10, system="s") + cells(10, 0, 0, 90, system="t")
    finding = find(
        collect_findings({"ranking": compute_ranking_agreement(judged(turned, "e"), levels=["claim"])}), id="order"
    )
    assert finding["severity"] == "fail"
    assert (
        "e puts 1 of 1 pair of systems significantly in the wrong order. The labels order 1 significantly. Do not rank"
    ) in finding["statement"]
    assert (finding["evidence"]["n_reversed"], finding["evidence"]["n_ordered_alike"]) == (1, 0)
    few = cells(0, 4, 0, 2, system="s") + cells(2, 0, 0, 4, system="t")
    found = collect_findings({"ranking": compute_ranking_agreement(judged(few, "e"), levels=["claim"])})
    assert told(found, "order") == [], "six claims a system order nothing by an exact test"


def test_all_orders_right_is_said_only_where_the_labels_could_have_said_otherwise():
    right = cells(900, 0, 100, 0, system="s") + cells(100, 0, 900, 0, system="t")
    found = collect_findings({"ranking": compute_ranking_agreement(judged(right, "e"), levels=["claim"])})
    assert told(found, "order") == [("ok", "e", None)]
    assert (
        "orders all 1 pair of systems like the labels, 1 of them significantly" in find(found, id="order")["statement"]
    )
    few = cells(9, 0, 1, 0, system="s") + cells(8, 0, 2, 0, system="t")
    assert (
        told(collect_findings({"ranking": compute_ranking_agreement(judged(few, "e"), levels=["claim"])}), "order")
        == []
    ), "all are ="
    unscored = right + [{"system": "s", "label": 1, "e": None}] * 9000
    assert (
        told(collect_findings({"ranking": compute_ranking_agreement(judged(unscored, "e"), levels=["claim"])}), "order")
        == []
    )


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


def test_too_few_errors_to_calibrate_on():
    rows = cells(90, 0, 2, 1, system="s") + cells(70, 0, 10, 10, system="t")
    finding = find(
        collect_findings({"adjustment": compute_adjustment_effect(judged(rows, "e"), levels=["claim"])}),
        id="calibration",
    )
    assert (finding["severity"], finding["evaluator"], finding["evidence"]["best"]) == ("warn", None, "t")
    assert (
        "On d, 1 of 2 systems has fewer than 10 labelled errors: s (3). These are too few to correct the rates of "
        "other systems with. t has the most (20)." in finding["statement"]
    )
    few = cells(90, 0, 2, 1, system="s") + cells(70, 0, 1, 0, system="t")
    assert told(
        collect_findings({"adjustment": compute_adjustment_effect(judged(few, "e"), levels=["claim"])}), "calibration"
    ) == [("fail", None, "d")]
    enough = cells(90, 0, 20, 1, system="s") + cells(70, 0, 10, 0, system="t")
    assert told(
        collect_findings({"adjustment": compute_adjustment_effect(judged(enough, "e"), levels=["claim"])}),
        "calibration",
    ) == [("ok", None, None)]
    unscored = [row | {"e": None} for row in enough]
    assert told(
        collect_findings({"adjustment": compute_adjustment_effect(judged(unscored, "e"), levels=["claim"])}),
        "calibration",
    ) == [("ok", None, None)], "errors are counted by labels, whatever is scored"


def test_too_few_labels_to_tell_systems_apart():
    few = cells(20, 0, 10, 0, system="s") + cells(15, 0, 10, 0, system="t")
    assert told(
        collect_findings({"ranking": compute_ranking_agreement(judged(few, "e"), levels=["claim"])}), "power"
    ) == [("warn", None, "d")]
    many = cells(900, 0, 200, 0, system="s") + cells(800, 0, 200, 0, system="t")
    assert told(
        collect_findings({"ranking": compute_ranking_agreement(judged(many, "e"), levels=["claim"])}), "power"
    ) == [("ok", None, None)]


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
    assert jackknife_pair_mean_p(values, first, second, stratum) == pytest.approx(p, rel=1e-9)
    further = values + np.where(stratum == "c", 1.0, 0.0)
    assert jackknife_pair_mean_p(further, first, second, stratum) < p, "a gain of one data set is no error"


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


def test_why_an_evaluator_was_not_checked_is_said_of_what_it_judged() -> None:
    """A verifier of facts and a judge of citations, neither labelled: "no claim is scored" was said of the verifier."""
    quantification = load_all_audits()["quantification"]
    check = next(check for check in quantification.checks if check.id == "bias")
    rows = [{"evaluator": "verifier", "n": 0, "bias": None, "bias_low": None, "reason": "no claim is scored"}]
    rows += [{"evaluator": "verifier", "n": 90, "bias": None, "bias_low": None, "reason": "no claim is labelled"}]
    assert _explain_evaluators_not_checked(quantification, check, rows) == "no claim is labelled"


def test_why_something_was_not_checked_names_no_key() -> None:
    dfactscore = load_all_audits()["dfactscore"]
    check = next(check for check in dfactscore.checks if check.id == "merged_facts")
    reason = "6 of 2,794 responses have no D-FActScore: init_dfactscore; no decoys or labelled errors: merged_excess"
    rows = [{"evaluator": "e", "init_dfactscore": 0.9, "merged_excess": None, "reason": reason}]
    assert _explain_evaluators_not_checked(dfactscore, check, rows) == "no decoys or labelled errors"
