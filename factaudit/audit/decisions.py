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

from factaudit.arrays.system_rankings import count_ordered_system_rankings
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.decision_limits import has_interval, is_within, widen_interval
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


def _decide(
    task: str, figure: str, required: str, *, is_met: bool, is_missed: bool, has_intervals: bool
) -> Answer:
    """The answer by what is ``required``: whether that is significantly so, or significantly not
    so."""
    may: Permission = "cannot tell"
    why = (
        "Neither is significant, whatever the unscored claims are."
        if has_intervals
        else "No interval was computed."
    )
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
    if row.get("tpr") is None or row.get("tnr") is None:
        why = f"Required: {required}. These need scored claims with label 1, and with label 0."
        return Answer(task, "cannot tell", fill("{n:number scored claim}", row), why)
    figure = run.fill("TPR {tpr:percent}, TNR {tnr:percent}", row)
    ends = [widen_interval(row, key) for key in ("tpr", "tnr")]
    is_met, is_missed = all(low > least for low, _ in ends), any(high < least for _, high in ends)
    found = _decide(
        task,
        figure,
        required,
        is_met=is_met,
        is_missed=is_missed,
        has_intervals=has_interval(row, "tpr"),
    )
    tuned, review = (
        run.overall("discrimination").get(evaluator, {}),
        find_review_row(run, evaluator),
    )
    if is_met:
        return found
    if all(widen_interval(tuned, key)[0] > least for key in ("tuned_tpr", "tuned_tnr")):
        why = (
            "With a threshold tuned to each data set, TPR is {tuned_tpr:percent} and TNR"
            " {tuned_tnr:percent}."
        )
        return Answer(task, "with a correction", figure, fill(why, tuned))
    if review is not None:
        why = (
            "If people review {review_share:percent} of the claims, at most {max_error:limit} % of"
            " the others are "
        )
        why = fill(why + "errors ({confidence:limit} % confidence).", review)
        return Answer(task, "with review", figure, why)
    return found


def find_review_row(run: AuditedRun, evaluator: str) -> Row | None:
    """The evaluator's overall row of `triage`; None where more must be reviewed than the limit
    says, or nothing: then errors are so rare that no evaluator is needed."""
    row = run.overall("triage").get(evaluator)
    return row if row is not None and 0 < row["review_share"] <= run.limits.max_review else None


def may_publish_rates(run: AuditedRun, evaluator: str) -> Answer | None:
    """Each rate of a system must be near the labelled one."""
    rows, most = list_system_biases(run, evaluator), run.limits.max_bias
    if not rows:
        return None
    figure = run.fill(
        "{n_rates:number rate}, on average wrong by {off:points} points",
        average_absolute_bias(rows),
    )
    return _decide(
        "report a system's error rate",
        figure,
        fill("every error rate within {most:limit} points of the labelled one", {"most": most}),
        is_met=all(is_within(row, "bias", most) for row in rows),
        is_missed=any(
            one.evaluator == evaluator and one.verdict == "beyond" for one in run.find(BIAS_CHECK)
        ),
        has_intervals=has_interval(rows[0], "bias"),
    )


def list_system_biases(run: AuditedRun, evaluator: str) -> list[Row]:
    """The claims' rates of single systems, of all together where a data set names none; those that
    may be published."""
    return [
        row
        for row in list_tested_biases(run)
        if row["evaluator"] == evaluator and not row["is_total"]
    ]


def average_absolute_bias(rows: Sequence[Row]) -> Row:
    """The mean |bias| of some rates with the least and the greatest that the unscored claims leave
    possible."""
    found: Row = {
        key: sum(row.get(key) or 0 for row in rows) for key in ("n", "n_unscored", "n_guessed")
    }
    found |= {"n_rates": len(rows), "off": sum(abs(row["bias"]) for row in rows) / len(rows)}
    if all(row.get("bias_min") is not None for row in rows):
        found["off_min"] = sum(max(row["bias_min"], -row["bias_max"], 0.0) for row in rows) / len(
            rows
        )
        found["off_max"] = sum(max(-row["bias_min"], row["bias_max"]) for row in rows) / len(rows)
    return found


def may_rank_systems(run: AuditedRun, evaluator: str) -> Answer | None:
    """That no pair is reversed is no merit of who orders hardly any."""
    task, limits = "rank systems", run.limits
    rows = [
        row for row in list_orders_of(run, evaluator) if row["n_systems"] >= MIN_CORRELATED_SYSTEMS
    ]
    if not rows:
        return None
    counts = count_ordered_system_rankings(rows) | {
        "least": limits.min_orderable,
        "most": limits.max_misordered,
    }
    text = (
        "of {n_pairs:number pair}, the labels order {n_ordered}, {n_ordered_alike} in the same"
        " order, {n_reversed} "
    )
    required = (
        "the evaluator and the labels disagree on at most {most:limit} % of the pairs of systems."
    )
    may: Permission = "cannot tell"
    if any(one.evaluator == evaluator and one.verdict == "beyond" for one in run.find(ORDER_CHECK)):
        may, why = "no", "no pair in the wrong order. Some pairs significantly are."
    elif counts["n_ordered"] < limits.min_orderable * counts["n_pairs"]:
        why = "the labels order {least:limit} % of the pairs of systems. They order fewer."
    elif not counts["n_ordered_alike"]:
        may, why = "no", f"{required} It finds none of the differences that the labels show."
    elif counts["n_not_alike_max"] <= limits.max_misordered * counts["n_pairs"]:
        may, why = "yes", f"{required} This is so."
    else:
        why = (
            f"{required} They disagree on {{n_not_alike_max:number pair}}, counting those where"
            " only one side finds a"
        )
        is_open = counts["n_not_alike_max"] > counts["n_one_sided"]
        why += " difference and what the unscored claims leave open." if is_open else " difference."
    return Answer(task, may, fill(text + "reversed", counts), fill(f"Required: {why}", counts))


def list_orders_of(run: AuditedRun, evaluator: str) -> list[Row]:
    """Of each data set how the pairs of systems come out by it, at claim level."""
    return [row for row in list_compared_orders(run) if row["evaluator"] == evaluator]
