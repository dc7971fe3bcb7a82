"""What a first screen and decisions may say: each test is of a statement that a check by other code found wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.audit.adjustment import compute_adjustment_effect
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.findings import collect_findings, list_audit_check_outcomes, run_audit_checks
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.quantification import AUDIT as QUANTIFICATION
from factaudit.audit.quantification import compute_mean_absolute_bias
from factaudit.results import compare
from factaudit.tables import validate_claims, validate_verdicts

Row = dict[str, Any]


def make_tables(datasets: int, evaluators: dict[str, float], n: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims without systems, 30 % of them errors, and evaluators that miss a share of the errors."""
    draw, parts = np.random.default_rng(4), []
    claims = pd.DataFrame({"claim_id": [f"c{i}" for i in range(n * datasets)], "claim": "a claim"})
    claims["dataset"] = [f"set{i % datasets}" for i in range(len(claims))]
    claims["label"] = (draw.random(len(claims)) < 0.7).astype(int)
    for name, missed in evaluators.items():
        passes = (claims["label"] == 1) | (draw.random(len(claims)) < missed)
        parts.append(claims[["claim_id"]].assign(evaluator=name, prediction=passes.astype(int), status="ok"))
    return validate_claims(claims), validate_verdicts(pd.concat(parts))


def list_advice(claims: pd.DataFrame, verdicts: pd.DataFrame) -> list[str]:
    results = compare(claims, verdicts, audits=["rates", "differences", "quantification"], replicates=20).to_dict()
    return [f"{one.word} {one.sentence}" for one in compose_first_screen(results).advice]


def test_rates_of_data_sets_without_systems_are_counted_not_called_the_predicted_one() -> None:
    told = list_advice(*make_tables(3, {"alone": 0.5}))
    (line,) = [one for one in told if "error rates" in one and one.startswith("Not for")]
    assert line.startswith(
        "Not for reporting error rates: 3 of 3 by alone are significantly off by over 5 points (worst"
    )
    (line,) = [one for one in list_advice(*make_tables(1, {"alone": 0.5})) if "error rates: " in one]
    assert line.startswith("Not for reporting error rates: that of alone is significantly off by over 5 points (")


@pytest.mark.parametrize(
    ("names", "who"),
    [
        ("a", r"a misses \d+ of 100 errors"),
        *((f"a{more}", f"{who} miss significantly over 20 %") for more, who in (("b", "both"), ("bc", "all"))),
    ],
)
def test_what_the_evaluators_of_use_miss_is_said_of_them(names: str, who: str) -> None:
    """One that is to be avoided may miss less: "the best miss at least" was false there."""
    evaluators = dict.fromkeys(names, 0.4)
    claims, verdicts = make_tables(1, evaluators)
    strict = claims[["claim_id"]].assign(evaluator="strict", prediction=0, status="ok")
    told = list_advice(claims, validate_verdicts(pd.concat([verdicts, strict])))
    (line,) = [one for one in told if "flagging single errors" in one]
    assert re.fullmatch(f"Not for flagging single errors: {who}\\.", line)
    assert "strict" not in line


def make_bias_row(system: str, bias: float, half: float, p: float, n: int = 10) -> Row:
    row = {"dataset": "d", "level": "claim", "evaluator": "e", "system": system, "n": 40, "n_unscored": 0}
    row |= {"labelled_error_rate": 0.1, "predicted_error_rate": 0.1 + bias, "bias": bias, "bias_min": bias}
    return row | {"bias_max": bias, "bias_low": bias - half, "bias_high": bias + half, "p_bias": p, "n_clusters": n}


def decide(rows: list[Row]) -> str:
    answer = QUANTIFICATION.decides[0].answer(AuditedRun({"quantification": rows}), "e")
    assert answer is not None
    assert answer.may == "cannot tell"
    return str(answer.sentence)


def test_few_documents_are_no_sign_of_small_biases() -> None:
    """Ten clusters can show something after Holm over twelve rates, 2/2^10 x 12; and 50 points off is not "not off"."""
    rows = [make_bias_row(f"s{at}", 0.5, 0.2, 2**-7) for at in range(12)]
    assert "by the intervals of single rates 12 of 12 are farther off. By sign tests of the few" in decide(rows)
    rows = [make_bias_row("s0", 0.5, 0.2, 2**-7), *(make_bias_row(f"s{at}", 0.04, 0.1, 0.4) for at in range(1, 12))]
    assert "1 of 12 is farther off" in decide(rows)
    rows = [make_bias_row(f"s{at}", 0.04, 0.1, 0.4) for at in range(12)]
    assert "no rate is significantly farther off, and not every one is significantly within" in decide(rows)


@pytest.mark.parametrize(("bias", "p", "may"), [(0.5, 2**-9, "no"), (0.02, 0.4, "cannot tell")])
def test_a_data_set_is_tested_where_its_systems_have_too_few_documents(bias: float, p: float, may: str) -> None:
    """Of ten documents, six for a system, all systems together can be shown to be off after Holm, and no single one."""
    whole = make_bias_row(ALL_TOGETHER, bias, 0.15, p)
    run = {"quantification": [*(make_bias_row(f"s{at}", 0.5, 0.2, 2**-5, 6) for at in range(24)), whole]}
    answer = QUANTIFICATION.decides[0].answer(AuditedRun(run), "e")
    assert answer is not None
    assert answer.may == may
    is_open = (
        "by the intervals of single rates 24 of 24 are farther off. Sign tests of so few clusters (6 a rate) cannot "
    )
    assert (is_open in str(answer.sentence)) == (may == "cannot tell")
    found = [one["statement"] for one in run_audit_checks(run)[0] if one["id"] == "bias"]
    if may == "no":
        assert "at worst +50.0 (on d): not every system is within. Which ones are not is open." in str(answer.sentence)
        assert "off for all systems together by over 5 points." in found[0]
        assert "Single systems have too few documents for tests of their 24 rates." in found[0]
    else:
        assert not found


@pytest.mark.parametrize(("n", "is_checked"), [(2, False), (8, False), (9, True), (20, True)])
def test_a_test_that_could_not_have_rejected_is_not_checked(n: int, is_checked: bool) -> None:
    """The least p-value of a sign test of n documents is 2/2^n: times twelve it is below 5 % from nine on."""
    rows = [make_bias_row(f"s{at}", 0.5, 0.2, 2.0 ** (1 - n), n) for at in range(12)]
    run = {"quantification": rows}
    (outcome,) = [one for one in list_audit_check_outcomes(run) if one.check.id == "bias"]
    findings, n_tests = run_audit_checks(run)
    assert any(one["id"] == "bias" for one in findings) == is_checked
    assert ("bias" in n_tests) == is_checked
    if is_checked:
        assert outcome.not_run == ""
    else:
        assert outcome.not_run == "too few documents: after the correction for 12 tests none could reject"
        assert decide(rows) == (
            "Whether all are within 5 points is open: by the intervals of single rates 12 of 12 are farther off. Sign "
            f"tests of so few clusters ({n} a rate) cannot reject after a correction for 12 tests, and are not made."
        )
        rows = [row | {"bias_low": -0.1} for row in rows]
        assert decide(rows) == (
            "Whether all are within 5 points is not checked: too few documents for tests of these rates to reject "
            "after the correction for 12 tests."
        )


def test_tests_of_a_check_that_has_nothing_to_look_at_are_not_counted() -> None:
    """One data set: that no other is off to the other side was not checked, and its rate is no test."""
    claims, verdicts = make_tables(1, {"alone": 0.5})
    assert "direction" not in compare(claims, verdicts, audits=["quantification"], replicates=20).about["n_tests"]
    claims, verdicts = make_tables(2, {"alone": 0.5})
    assert compare(claims, verdicts, audits=["quantification"], replicates=20).about["n_tests"]["direction"] == 2


def test_error_rates_of_systems_are_averaged_without_whole_data_sets() -> None:
    """A data set that names no system has a rate, of no system."""
    of_systems = [make_bias_row(name, bias, 0.01, 1e-4, 40) for name, bias in (("a", 0.1), ("b", -0.2))]
    whole = [make_bias_row("__all__", 0.6, 0.01, 1e-4, 40) | {"dataset": "unnamed"}]
    rows = of_systems + whole
    ends = dict.fromkeys(("mean_abs_bias", "mean_abs_bias_min", "mean_abs_bias_max"), pytest.approx(0.15))
    assert compute_mean_absolute_bias(rows, "e") == ends | {"n_rates": 2, "n_datasets": 1}
    assert compute_mean_absolute_bias(whole, "e") is None


@pytest.mark.parametrize(
    ("missable", "told"),
    [
        (0.3, "a TNR of one system that is 30.0 points off"),
        (0.9, "any difference of one system's TNR more than once in five times"),
    ],
)
def test_a_test_cannot_miss_more_than_rates_can_differ(missable: float, told: str) -> None:
    """Rates of 60 to 80 % can be 80 points apart from another at most."""
    row = {"dataset": "d", "level": "claim", "evaluator": "e", "rate": "tnr", "n": 45, "n_unscored": 0, "n_systems": 3}
    row |= {"lowest": 0.6, "highest": 0.8, "p": 0.4, "power_10": 0.06, "missable": missable, "transfers": "cannot tell"}
    (finding,) = collect_findings({"transfer": [row | {"reason": None}]}, {})
    assert f"the test would miss {told}" in finding["statement"]


def test_it_is_adjusted_counts_that_unlike_systems_forbid() -> None:
    """A zero-bias threshold of one system may correct the others even so."""
    row = {"dataset": "d", "level": "claim", "evaluator": "e", "rate": "tnr", "n": 45, "n_unscored": 0, "n_systems": 3}
    row |= {
        "n_lowest": 5,
        "n_highest": 9,
        "lowest": 0.2,
        "highest": 0.8,
        "p": 1e-6,
        "power_10": 0.9,
        "missable": 0.08,
        "transfers": "no",
    }
    (finding,) = collect_findings({"transfer": [row | {"reason": None}]}, {})
    assert finding["statement"].endswith("Adjusted counts by one system's labels need not correct the others.")


def make_estimates(off: float, n: int) -> dict[str, list[Row]]:
    """``n`` systems with a rate of 20 % each; the first is predicted ``off`` points from it."""
    about = {"dataset": "d", "level": "claim", "n": 100, "n_labels": 20}
    rows = []
    for at in range(n):
        row = about | {"system": f"s{at}", "rate": 0.2, "rate_low": 0.1, "rate_high": 0.3}
        rows += [row | {"method": "hierarchical"}]
        rows += [row | {"method": "raw", "rate": 0.2 + (off if at == 0 else 0), "rate_low": None, "rate_high": None}]
    summary = about | {"quote": "hierarchical", "why": "quote hierarchical", "width": 0.2}
    summary |= {"n_systems": n, "main": "judge"}
    return {"estimates": rows, "estimate_summary": [summary]}


def test_one_of_many_predicted_rates_outside_its_interval_is_no_reason_to_avoid_all() -> None:
    """Of twelve intervals of 95 % one misses in half of all runs; Holm's correction is over all of them."""
    for off, n, is_avoided in ((0.11, 1, True), (0.11, 12, False), (0.2, 12, True)):
        told = compose_first_screen({"audits": make_estimates(off, n), "about": {"confidence": 0.95}}).advice
        avoided = [str(one.sentence) for one in told if one.word == "Avoid"]
        assert bool(avoided) == is_avoided, (off, n)
        assert all(text.startswith("the rates that judge predicts: 1 of") for text in avoided)


def test_what_undecided_claims_count_for_is_said_where_they_are_in_the_rates() -> None:
    for n_undecided, greatest, is_said in ((6, 0.28, True), (6, 0.2, False), (0, 0.2, False)):  # kept, left out, none
        audits = make_estimates(0.0, 1)
        for row in audits["estimates"]:
            row |= {"n_undecided": n_undecided, "rate_min": 0.2, "rate_max": greatest}
        told = [str(one.sentence) for one in compose_first_screen({"audits": audits, "about": {}}).advice]
        said = [text for text in told if "each with a third of the probability" in text]
        assert [text.startswith("people could not decide 6 claims: the rates count such") for text in said] == (
            [True] * is_said
        )


def test_claims_that_annotators_split_on_are_not_called_undecided_where_their_errors_are_estimated() -> None:
    """ "People could not decide 16 claims": 9 were `?`, of 7 one annotator said yes, and one no."""
    for n_split, quote, said in ((4, "hierarchical", "2 claims"), (4, "labels", "6 claims"), (6, "hierarchical", "")):
        audits = make_estimates(0.0, 1)
        for row in audits["estimates"]:
            row |= {"n_undecided": 6, "rate_min": 0.2, "rate_max": 0.28}
            row["method"] = {"hierarchical": quote}.get(row["method"], row["method"])
        audits["estimate_summary"][0] |= {"n_undecided": 6, "n_split": n_split, "quote": quote}
        told = [str(one.sentence) for one in compose_first_screen({"audits": audits, "about": {}}).advice]
        found = [text for text in told if text.startswith("people could not decide")]
        assert len(found) == bool(said)
        assert all(text.startswith(f"people could not decide {said}: the rates count such") for text in found)


@pytest.mark.parametrize("is_lacking", [True, False])
def test_a_data_set_without_a_rate_is_named(is_lacking: bool) -> None:
    """Six rates of one of two data sets stood without its name, and nothing was said of the other."""
    audits = make_estimates(0.0, 2)
    if is_lacking:
        why = "no rate can be quoted: there is no label to correct the predictions by"
        lacking = {"dataset": "other", "level": "claim", "n": 50, "n_labels": 0, "quote": None, "why": why}
        audits["estimate_summary"].append(lacking)
    screen = compose_first_screen({"audits": audits, "about": {"confidence": 0.95}})
    assert [line[0] for line in screen.rows] == (["d, s0", "d, s1"] if is_lacking else ["s0", "s1"])
    said = "on other no rate can be quoted: there is no label to correct the predictions by."
    assert (said in [str(one.sentence) for one in screen.advice]) == is_lacking


def test_labels_of_claims_are_not_counted_again_as_those_of_responses() -> None:
    """ "400 labels give intervals 29.7 points wide": 295 labels of claims, and a width that neither rates had."""
    claims = make_estimates(0.0, 2)
    audits = {
        name: rows + [row | {"level": "response", "n_labels": 7} for row in rows] for name, rows in claims.items()
    }
    for row in audits["estimates"]:
        low, high = (0.1, 0.3) if row["level"] == "claim" else (0.0, 0.6)
        row |= {"n_undecided": 2 if row["level"] == "claim" else 1, "rate_min": 0.1, "rate_max": 0.25}
        row |= {"rate_low": low, "rate_high": high} if row["method"] == "hierarchical" else {}
    pair = {"dataset": "d", "order": "?"}
    audits["estimate_differences"] = [pair | {"level": level} for level in ("claim", "response")]
    about = {"confidence": 0.95, "claims": [{"n_claims": 100, "n_labelled": 0}]}
    screen = compose_first_screen({"audits": audits, "about": about})
    assert screen.size.endswith("estimates rest on 20 labels, all that is labelled.")
    assert [str(one.sentence) for one in screen.advice] == [
        "the hierarchical rates: 20 labels of claims give their rates intervals 20.0 points wide on average.",
        "people could not decide 4 claims: the rates count such claims as no errors, as errors, or as the model says, "
        "each with a third of the probability.",
        "of 1 pair of systems on d the hierarchical estimates of claims tell none apart.",
        "of 1 pair of systems on d the hierarchical estimates of responses tell none apart.",
    ]


@pytest.mark.parametrize("undecided", ["leave-out", "keep"])
def test_rates_of_decidable_claims_alone_are_called_so(undecided: str) -> None:
    audits = make_estimates(0.0, 2)
    audits["estimate_summary"][0] |= {"undecided": undecided, "n_undecided": 5}
    told = [str(one.sentence) for one in compose_first_screen({"audits": audits, "about": {}}).advice]
    said = "the rates are of the claims that people can decide: of 25 claims that they looked at, 5 are left out."
    assert (said in told) == (undecided == "leave-out")


def test_the_width_that_is_said_is_that_of_all_intervals_to_report() -> None:
    """The summary's width is of the systems whose labels alone give an interval, too."""
    audits = make_estimates(0.0, 3)
    for width in (0.3, None):
        audits["estimate_summary"][0]["width"] = width
        told = compose_first_screen({"audits": audits, "about": {"confidence": 0.95}}).advice
        assert str(told[0].sentence) == "the hierarchical rates: 20 labels give intervals 20.0 points wide on average."


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        (None, "1 system on d has no label: s0. No rate of it can be reported."),
        (0.4, "1 system on d has no label: s0. Its rate is borrowed from others' labels."),
    ],
)
def test_systems_without_a_label_are_named(rate: float | None, said: str) -> None:
    """Their row fell out of the table without a word, or stood there as that of any other, and widened the mean."""
    audits = make_estimates(0.0, 3)
    for row in audits["estimates"]:
        row |= {"n_labels": 5, "n_undecided": 0}
        if row["system"] == "s0":
            low, high = (None, None) if rate is None else (0.0, 1.0)
            row |= {"n_labels": 0, "rate": rate, "rate_low": low, "rate_high": high}
    told = [str(one.sentence) for one in compose_first_screen({"audits": audits, "about": {"confidence": 0.95}}).advice]
    assert said in told
    assert told[0] == "the hierarchical rates: 20 labels give intervals 20.0 points wide on average."


def test_intervals_of_one_look_are_called_so_beside_those_of_every_look() -> None:
    audits = make_estimates(0.0, 3)
    looks = [{"dataset": "d", "level": "claim", "look": at, "width": 0.5 / at} for at in (1, 2)]
    for n in (1, 2):
        found = {"audits": audits | {"estimate_look_summary": looks[:n]}, "about": {"confidence": 0.95}}
        told = [str(one.sentence) for one in compose_first_screen(found).advice]
        said = (
            "the intervals above hold at one look. After 2 looks those that hold at every look are 25.0 points wide on "
        )
        assert (f"{said}average." in told) == (n == 2)
    # Of two data sets each line says which.
    of_both = {
        name: [row | {"dataset": dataset} for dataset in "de" for row in rows]
        for name, rows in (audits | {"estimate_look_summary": looks}).items()
    }
    found = compose_first_screen({"audits": of_both, "about": {"confidence": 0.95}}).advice
    told = [str(one.sentence) for one in found]
    assert [text for text in told if "hold at every look" in text] == [
        f"the intervals above hold at one look. After 2 looks those of {dataset} that hold at every look are 25.0 "
        "points wide on average."
        for dataset in "de"
    ]


def test_rates_by_labels_alone_are_called_so() -> None:
    audits = make_estimates(0.0, 3)
    for row in [*audits["estimates"], *audits["estimate_summary"]]:
        row |= {key: "labels" for key in ("method", "quote") if row.get(key) == "hierarchical"}
    told = compose_first_screen({"audits": audits, "about": {"confidence": 0.95}}).advice
    assert str(told[0].sentence).startswith("the labels-only rates: 20 labels give intervals")


def test_a_mean_of_no_calibration_gives_its_own_reason_alone() -> None:
    """ "A mean over calibrations has no threshold" explained why there is no mean |bias|."""
    draw, n = np.random.default_rng(2), 60
    claims = pd.DataFrame({"claim_id": [f"c{i}" for i in range(n)], "dataset": "d", "claim": "a claim"})
    claims["system"] = [f"s{i % 3}" for i in range(n)]
    claims["label"] = (draw.random(n) < 0.7).astype(int)
    said = claims[["claim_id"]].assign(evaluator="e", score=draw.random(n), status="ok")
    said["prediction"] = 1
    rows = compute_adjustment_effect(
        Judgements.join(validate_claims(claims), validate_verdicts(said)),
        methods=("none", "adjusted_counts"),
        levels=("claim",),
    )
    means = {row["method"]: row for row in rows if row["calibration_system"] == "__cv__"}
    assert means["adjusted_counts"]["mean_abs_bias"] is None
    assert "threshold of its own" not in means["adjusted_counts"]["reason"]
    assert "threshold of its own" in means["none"]["reason"]
