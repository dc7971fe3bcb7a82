"""The decision table: what an evaluator may be used for, and when these labels cannot tell."""

from __future__ import annotations

from typing import Any

import pytest
from audit_tables import judged

from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import AuditDecision
from factaudit.audit.core.decision_limits import (
    DecisionLimits,
    is_significantly_within,
    unscored_share_for_decision,
    widen_interval_for_decision_limits,
)
from factaudit.errors import UsageError
from factaudit.results import Results
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
INTERVALS = ClusterBootstrap(replicates=100, seed=0)
AUDITS = ("rates", "differences", "quantification", "ranking", "discrimination")


def claims(errors: dict[str, float], n: int = 1000, tpr: float = 0.98, tnr: float = 0.98, **names: Any) -> list[Row]:
    """Of each system n claims with these error rates, and e that is right so often; shuffled evenly over documents."""
    rows = []
    for system, rate in errors.items():
        for at in range(n):
            label = int(at >= rate * n)
            first, size = (rate * n, n - rate * n) if label else (0, rate * n)
            right = (at - first + 0.5) / max(size, 1) < (tpr if label else tnr)
            rows.append({"system": system, "label": label, "e": float(label if right else 1 - label)} | names)
    return rows


def results(rows: list[Row], *evaluators: str, about: Row | None = None) -> Row:
    table = judged(rows, *evaluators)
    found = {}
    for name in AUDITS:
        compute = load_all_audits()[name].compute
        assert compute is not None
        found[name] = compute(table, intervals=INTERVALS)
    told = [{"name": name} for name in evaluators]
    return {"audits": found, "about": {"evaluators": told, **(about or {})}, "findings": []}


def answers(of: Row, evaluator: str = "e") -> dict[str, AuditDecision]:
    audited = make_audited_run(of["audits"], of["about"])
    tasks = [one for audit in load_all_audits().values() for one in audit.decides]
    return {one.task: found for one in tasks if (found := one.answer(audited, evaluator)) is not None}


SYSTEMS = {"a": 0.05, "b": 0.2, "c": 0.4, "d": 0.6}


def test_a_good_evaluator_may_be_used():
    found = answers(results(claims(SYSTEMS), "e"))
    assert {task: each.may for task, each in found.items()} == {
        "find single errors": "yes",
        "report a system's error rate": "yes",
        "rank systems": "yes",
    }
    assert found["rank systems"].figure.startswith("of 6 pairs that the labels order, 6 in the same order, none")
    assert found["rank systems"].sentence == "It agrees with the labels on all 6 pairs, but these are few."


def test_few_labels_cannot_tell():
    found = answers(results(claims(dict.fromkeys("abcd", 0.2), n=15), "e"))
    assert {each.may for each in found.values()} == {"cannot tell"}
    assert found["rank systems"].sentence.startswith(
        "The labels order none of 6 pairs significantly; none has enough labels"
    )


def test_a_bad_evaluator_may_not_be_used():
    found = answers(results(claims(SYSTEMS, tpr=0.6, tnr=0.55), "e"))
    assert found["find single errors"].may == found["report a system's error rate"].may == "no"
    assert "It finds 55.0 % of the errors" in found["find single errors"].sentence


def test_reversed_pairs_forbid_a_ranking_and_one_sided_ones_leave_it_open():
    turned = [row | {"e": float(1 - row["label"])} for row in claims(SYSTEMS)]
    found = answers(results(turned, "e"))["rank systems"]
    assert (found.may, found.sentence) == ("no", "It puts 6 pairs of systems significantly in the wrong order.")
    alike = [row | {"e": float(at % 2)} for at, row in enumerate(claims(SYSTEMS))]
    found = answers(results(alike, "e"))["rank systems"]
    assert (found.may, found.sentence) == ("no", "It orders none of the 6 pairs that the labels order.")
    coarse = [
        row | {"e": row["e"] if row["system"] == "a" else float(at % 2)} for at, row in enumerate(claims(SYSTEMS))
    ]
    found = answers(results(coarse, "e"))["rank systems"]
    assert found.may == "cannot tell"
    assert "only the labels or only the predictions find a significant difference" in found.sentence


def test_unscored_claims_can_leave_it_open():
    rows = claims(SYSTEMS)
    rows += [{"system": system, "label": 1, "e": None} for system in SYSTEMS for _ in range(700)]
    found = answers(results(rows, "e"))
    assert found["find single errors"].may == found["report a system's error rate"].may == "cannot tell"


def test_a_shifted_score_is_good_with_a_threshold():
    rows = [row | {"e": 0.6 + 0.3 * row["e"], "doc_id": str(at // 5)} for at, row in enumerate(claims(SYSTEMS))]
    found = answers(results(rows, "e"))
    assert found["find single errors"].may == "with a correction"
    assert "TPR is 98.0 % and TNR 98.0 %" in found["find single errors"].sentence


def test_each_evaluator_has_a_line_with_a_figure_and_a_sentence_for_each_task():
    rows = [row | {"f": row["e"], "g": float(1 - row["label"])} for row in claims(SYSTEMS)]
    of = results(rows, "e", "f", "g")
    found = Results("s", {**of["about"], "evaluators": [{"name": name} for name in "efg"]}, of["audits"]).decisions
    tasks = ["find single errors", "report a system's error rate", "rank systems"]
    assert [row["task"] for row in found if row["evaluator"] == "e"] == tasks
    assert {row["evaluator"] for row in found} == {*"efg"}
    assert all(row["may"] and row["figure"] and row["why"] for row in found)


def test_limits_can_be_set_and_are_checked():
    rows = claims(SYSTEMS, tpr=0.9, tnr=0.9)
    assert answers(results(rows, "e"))["find single errors"].may == "yes"
    strict = results(rows, "e", about={"limits": DecisionLimits.parse({"min_rate": 0.95}).as_dict()})
    assert answers(strict)["find single errors"].may == "no"
    with pytest.raises(UsageError, match="unknown limit 'max_biass'"):
        DecisionLimits.parse({"max_biass": 0.1})
    with pytest.raises(UsageError, match="expected max_bias between 0 and 1, found 5"):
        DecisionLimits.parse({"max_bias": 5})


def test_a_range_has_the_interval_and_the_bounds_in_it():
    row = {"x": 0.5, "x_low": 0.4, "x_high": 0.6, "x_min": 0.45, "x_max": 0.7}
    assert widen_interval_for_decision_limits(row, "x") == (pytest.approx(0.35), pytest.approx(0.8))
    assert widen_interval_for_decision_limits({"x": 0.5}, "x") is None
    assert not is_significantly_within({"x": 0.0}, "x", 1)
    assert unscored_share_for_decision({"n": 80, "n_unscored": 20, "n_guessed": 5}) == 0.25


def test_what_is_not_scored_cannot_be_told_of():
    """And nothing is told of a floor in its place."""
    rows = [row | {"e": None, "always-yes": 1.0} for row in claims(SYSTEMS, n=50)]
    of = results(rows, "e", "always-yes", about={"claims": []})
    of["about"]["evaluators"] = [{"name": "e"}, {"name": "always-yes", "floor": True}]
    found = answers(of)["find single errors"]
    assert (found.may, found.figure) == ("cannot tell", "0 scored claims")
