"""What may an evaluator be used for? To find single errors, to report the error rate of a system,
to rank systems.

A decision asks whether figures are on the right side of a limit by their intervals, whatever the
unscored claims are.
All are: yes. One is significantly not: no. Else these labels cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from factaudit.arrays.system_rankings import count_ordered_system_rankings
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.decision_limits import is_within, widen_interval
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.wording import fill
from factaudit.audit.quantification import BIAS_CHECK, list_tested_biases
from factaudit.audit.ranking import ORDER_CHECK, list_compared_orders
from factaudit.stats.rank_correlation import MIN_CORRELATED_SYSTEMS

Permission = Literal["yes", "with a correction", "with review", "no", "cannot tell"]


@dataclass(frozen=True)
class Answer:
    """``figure`` is what it rests on, ``why`` what is required and whether that is met."""

    task: str
    may: Permission
    figure: str
    why: str


def list_decisions(run: AuditedRun, evaluator: str) -> list[Answer]:
    """An answer for each task that there is something to answer by."""
    answers = [
        ask(run, evaluator) for ask in (may_find_errors, may_publish_rates, may_rank_systems)
    ]
    return [answer for answer in answers if answer is not None]


def _decide(task: str, figure: str, required: str, is_met: bool, is_missed: bool) -> Answer:
    """The answer by what is ``required``: whether that is significantly so, or significantly not
    so."""
    may: Permission = "cannot tell"
    why = "Either is possible by the intervals, or no interval was computed."
    if is_met:
        may, why = "yes", "This is significantly so."
    elif is_missed:
        may, why = "no", "This is significantly not so."
    return Answer(task, may, figure, f"Required: {required}. {why}")


def may_find_errors(run: AuditedRun, evaluator: str) -> Answer | None:
    """As it is, with a tuned threshold, or with review of a part."""
    task, least, row = (
        "find single errors",
        run.limits.min_rate,
        run.overall("rates").get(evaluator),
    )
    if row is None:
        return None
    required = fill("TPR and TNR of at least {least:limit} %", {"least": least})
    if row["tpr"] is None or row["tnr"] is None:
        figure = fill("{n:number scored claim}", row)
        return _decide(
            task, figure, f"{required}, of scored claims with either label", False, False
        )
    ends = [widen_interval(row, key) for key in ("tpr", "tnr")]
    is_met, is_missed = all(low > least for low, _ in ends), any(high < least for _, high in ends)
    figure = run.fill("TPR {tpr:percent}, TNR {tnr:percent}", row)
    found = _decide(task, figure, required, is_met, is_missed)
    tuned, review = run.overall("discrimination").get(evaluator, {}), run.overall("triage")
    share = review.get(evaluator, {}).get("review_share", 1.0)
    if is_met:
        return found
    if all(widen_interval(tuned, key)[0] > least for key in ("tuned_tpr", "tuned_tnr")):
        why = "With a threshold tuned to each data set, TPR is {tuned_tpr:percent} and TNR "
        return Answer(task, "with a correction", figure, fill(why + "{tuned_tnr:percent}.", tuned))
    if 0 < share <= run.limits.max_review:  # of 0, errors are so rare that no evaluator is needed
        why = "If people review {review_share:percent} of the claims, at most {max_error:limit} % "
        why += "of the others are errors ({confidence:limit} % confidence)."
        return Answer(task, "with review", figure, fill(why, review[evaluator]))
    return found


def may_publish_rates(run: AuditedRun, evaluator: str) -> Answer | None:
    """Each rate of a system must be near the labelled one."""
    rows, most = list_system_biases(run, evaluator), run.limits.max_bias
    if not rows:
        return None
    text = "{n_rates:number rate}, on average wrong by {off:points} points"
    findings = [one for one in run.find(BIAS_CHECK) if one.evaluator == evaluator]
    return _decide(
        "report a system's error rate",
        run.fill(text, average_absolute_bias(rows)),
        fill("every error rate within {most:limit} points of the labelled one", {"most": most}),
        is_met=all(is_within(row, "bias", most) for row in rows),
        is_missed=any(one.verdict == "beyond" for one in findings),
    )


def list_system_biases(run: AuditedRun, evaluator: str) -> list[Row]:
    """The claims' rates of single systems, of all together where a data set names none; those that
    may be published."""
    biases = list_tested_biases(run)
    return [row for row in biases if row["evaluator"] == evaluator and not row["is_total"]]


def average_absolute_bias(rows: Sequence[Row]) -> Row:
    """The mean |bias| of some rates with the least and the greatest that the unscored claims leave
    possible."""
    least, most = (
        np.array([row[f"bias{end}"] for row in rows], dtype=float) for end in ("_min", "_max")
    )
    found: Row = {"n_rates": len(rows), "off": float(np.mean([abs(row["bias"]) for row in rows]))}
    found |= {
        key: sum(row.get(key) or 0 for row in rows) for key in ("n", "n_unscored", "n_guessed")
    }
    if not np.isnan([least, most]).any():
        found["off_min"] = float(np.maximum(np.maximum(least, -most), 0).mean())
        found["off_max"] = float(np.maximum(-least, most).mean())
    return found


def may_rank_systems(run: AuditedRun, evaluator: str) -> Answer | None:
    """That no pair is reversed is no merit of who orders hardly any."""
    limits = run.limits
    orders = list_orders_of(run, evaluator)
    rows = [row for row in orders if row["n_systems"] >= MIN_CORRELATED_SYSTEMS]
    if not rows:
        return None
    counts = count_ordered_system_rankings(rows)
    n_pairs, findings = counts["n_pairs"], run.find(ORDER_CHECK)
    text = "of {n_pairs:number pair}, the labels order {n_ordered}, {n_ordered_alike} in the same"
    figure = fill(text + " order, {n_reversed} reversed", counts)
    required = (
        "no pair in the wrong order, {least:limit} % of the pairs ordered by the labels, and "
    )
    required += "an evaluator that disagrees with them on at most {most:limit} % of the pairs"
    told = {"least": limits.min_orderable, "most": limits.max_misordered} | counts
    may: Permission = "cannot tell"
    why = "{n_not_alike_max:number pair} may be ordered differently; the labels order {n_ordered}."
    if any(one.evaluator == evaluator and one.verdict == "beyond" for one in findings):
        may, why = "no", "Some pairs significantly are in the wrong order."
    elif counts["n_ordered"] >= limits.min_orderable * n_pairs:
        if not counts["n_ordered_alike"]:
            may, why = "no", "It finds none of the differences that the labels show."
        elif counts["n_not_alike_max"] <= limits.max_misordered * n_pairs:
            may, why = "yes", "This is so."
    return Answer("rank systems", may, figure, fill(f"Required: {required}. {why}", told))


def list_orders_of(run: AuditedRun, evaluator: str) -> list[Row]:
    """Of each data set how the pairs of systems come out by it, at claim level."""
    return [row for row in list_compared_orders(run) if row["evaluator"] == evaluator]
