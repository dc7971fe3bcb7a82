"""What a first screen and decisions may say: each test is of a statement that a check by other code found wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from factaudit.arrays.judgements import Judgements
from factaudit.audit.adjustment import compute_adjustment_effect
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.findings import collect_findings
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.quantification import AUDIT as QUANTIFICATION
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
        "Not for reporting error rates: 3 of 3 rates that alone predicts are significantly off, the worst"
    )
    (line,) = [one for one in list_advice(*make_tables(1, {"alone": 0.5})) if "error rates: " in one]
    assert line.startswith("Not for reporting error rates: the one that alone predicts is significantly off, by ")


@pytest.mark.parametrize(("names", "who"), [("a", "it misses"), ("ab", "both under Use miss at least"), ("abc", "all")])
def test_what_the_evaluators_of_use_miss_is_said_of_them(names: str, who: str) -> None:
    """One that is to be avoided may miss less: "the best miss at least" was false there."""
    evaluators = dict.fromkeys(names, 0.4)
    claims, verdicts = make_tables(1, evaluators)
    strict = claims[["claim_id"]].assign(evaluator="strict", prediction=0, status="ok")
    told = list_advice(claims, validate_verdicts(pd.concat([verdicts, strict])))
    (line,) = [one for one in told if "flagging single errors" in one]
    assert f"flagging single errors: {who}" in line


def make_bias_row(system: str, bias: float, half: float, p: float) -> Row:
    row = {"dataset": "d", "level": "claim", "evaluator": "e", "system": system, "n": 40, "n_unscored": 0}
    row |= {"labelled_error_rate": 0.1, "predicted_error_rate": 0.1 + bias, "bias": bias, "bias_min": bias}
    return row | {"bias_max": bias, "bias_low": bias - half, "bias_high": bias + half, "p_bias": p, "n_clusters": 8}


def decide(rows: list[Row]) -> str:
    answer = QUANTIFICATION.decides[0].answer(AuditedRun({"quantification": rows}), "e")
    assert answer is not None
    assert answer.may == "cannot tell"
    return str(answer.sentence)


def test_few_documents_are_no_sign_of_small_biases() -> None:
    """Eight clusters can show nothing after Holm over twelve rates: 50 points off is not "not farther off"."""
    rows = [make_bias_row(f"s{at}", 0.5, 0.2, 2**-7) for at in range(12)]
    assert "by the intervals of single rates 12 of 12 are farther off, but none is after the correction" in decide(rows)
    rows = [make_bias_row("s0", 0.5, 0.2, 2**-7), *(make_bias_row(f"s{at}", 0.04, 0.1, 0.4) for at in range(1, 12))]
    assert "1 of 12 is farther off" in decide(rows)
    rows = [make_bias_row(f"s{at}", 0.04, 0.1, 0.4) for at in range(12)]
    assert "no rate is significantly farther off, and not every one is significantly within" in decide(rows)


@pytest.mark.parametrize(("missable", "told"), [(0.3, "30.0 points off"), (0.9, "off by however much")])
def test_a_test_cannot_miss_more_than_rates_can_differ(missable: float, told: str) -> None:
    """Rates of 60 to 80 % can be 80 points apart from another at most."""
    row = {"dataset": "d", "level": "claim", "evaluator": "e", "rate": "tnr", "n": 45, "n_unscored": 0, "n_systems": 3}
    row |= {"lowest": 0.6, "highest": 0.8, "p": 0.4, "power_10": 0.06, "missable": missable, "transfers": "cannot tell"}
    (finding,) = collect_findings({"transfer": [row | {"reason": None}]}, {})
    assert f"the test would miss a TNR of one system that is {told}" in finding["statement"]


def make_estimates(off: float, n: int) -> dict[str, list[Row]]:
    """``n`` systems with a rate of 20 % each; the first is predicted ``off`` points from it."""
    about = {"dataset": "d", "level": "claim", "n": 100, "n_labels": 20}
    rows = []
    for at in range(n):
        row = about | {"system": f"s{at}", "rate": 0.2, "rate_low": 0.1, "rate_high": 0.3}
        rows += [row | {"method": "hierarchical"}]
        rows += [row | {"method": "raw", "rate": 0.2 + (off if at == 0 else 0), "rate_low": None, "rate_high": None}]
    summary = about | {"quote": "hierarchical", "why": "quote hierarchical", "width": 0.2, "n_systems": n}
    return {"estimates": rows, "estimate_summary": [summary]}


def test_one_of_many_predicted_rates_outside_its_interval_is_no_reason_to_avoid_all() -> None:
    """Of twelve intervals of 95 % one misses in half of all runs; Holm's correction is over all of them."""
    for off, n, is_avoided in ((0.11, 1, True), (0.11, 12, False), (0.2, 12, True)):
        told = compose_first_screen({"audits": make_estimates(off, n), "about": {"confidence": 0.95}}).advice
        assert any(one.word == "Avoid" for one in told) == is_avoided, (off, n)


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
