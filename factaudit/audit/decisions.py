"""What may an evaluator be used for? To find single errors, to report the error rate of a system,
to rank systems.

A decision compares figures of the evaluator as it is with a limit, by their intervals and whatever
the unscored claims are: yes if all are on the right side of it, no if one is significantly on the
wrong side; otherwise these labels cannot tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from factaudit.arrays.system_rankings import count_ordered_system_rankings
from factaudit.audit.core.audited_run import AuditedRun, has_interval, is_within, widen_interval
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.wording import fill
from factaudit.audit.quantification import BIAS_CHECK, list_tested_biases
from factaudit.audit.ranking import ORDER_CHECK, list_compared_orders
from factaudit.stats.agreement import MIN_CORRELATED_SYSTEMS

Permission = Literal["yes", "no", "cannot tell"]


@dataclass(frozen=True)
class Answer:
    """``figure`` says what the evaluator does, as a sentence without its subject; ``required`` what
    it must do."""

    task: str
    may: Permission
    figure: str
    required: str


def list_decisions(run: AuditedRun, evaluator: str) -> list[Answer]:
    """An answer for each task that there is something to answer by."""
    answers = [
        may_find_errors(run, evaluator),
        may_publish_rates(run, evaluator),
        may_rank_systems(run, evaluator),
    ]
    return [answer for answer in answers if answer is not None]


def _choose(is_met: bool, is_missed: bool) -> Permission:
    if is_met:
        return "yes"
    return "no" if is_missed else "cannot tell"


def may_find_errors(run: AuditedRun, evaluator: str) -> Answer | None:
    """Both TPR and TNR must be high enough."""
    row, least = run.overall("rates").get(evaluator), run.limits.min_rate
    if row is None:
        return None
    required = (
        "at most {most:limit} % of the errors missed and {most:limit} % of the correct claims"
    )
    required = fill(f"{required} flagged", {"most": 1 - least})
    if row["tpr"] is None or row["tnr"] is None:
        figure = fill("has {n:number scored claim}", row)
        return Answer("find single errors", "cannot tell", figure, required)
    ends = {
        "misses {fpr:whole} of the errors": widen_interval(row, "tnr"),
        "flags {fnr:whole} of the correct claims": widen_interval(row, "tpr"),
    }
    too_low = [text for text, (_, high) in ends.items() if high < least]
    may = _choose(all(low > least for low, _ in ends.values()), bool(too_low))
    figure = " and ".join(too_low or ends)
    return Answer("find single errors", may, run.fill(figure, row), required)


def may_publish_rates(run: AuditedRun, evaluator: str) -> Answer | None:
    """Each predicted error rate of a system must be near the labelled one."""
    rows, most = list_system_biases(run, evaluator), run.limits.max_bias
    if not rows:
        return None
    beyond = [
        row
        for one in run.find(BIAS_CHECK)
        if one.evaluator == evaluator and one.verdict == "beyond"
        for row in one.alike
    ]
    may = _choose(all(is_within(row, "bias", most) for row in rows), bool(beyond))
    bias = average_absolute_bias(rows)
    figure = run.fill("is off by {off:rough}", bias)
    if len(rows) > 1:
        figure += " on average"
    if not run.is_open(bias):
        figure += _word_worst_rate(rows, beyond, may, most)
    if may == "cannot tell":
        figure += _word_labels_needed(rows, most)
    required = "at most {most:limit} points off"
    if len(rows) > 1:
        required = f"each of {{n}} rates{_word_places(rows, ', one per')}, {required}"
    required = fill(required, {"n": len(rows), "most": most})
    return Answer("report a system's error rate", may, figure, required)


def _word_worst_rate(
    rows: Sequence[Row], beyond: Sequence[Row], may: Permission, limit: float
) -> str:
    """How far the worst rate is off, and how sure it is that this is more than the limit.

    beyond: the rates for which it is sure; that of all systems together may be among them.
    """
    single = [row for row in beyond if not row["is_total"]]
    worst = max(abs(row["bias"]) for row in single or rows)
    told = {"off": worst, "n": len(rows), "beyond": len(single), "limit": limit}
    more = "significantly more than {limit:limit} points"
    if len(rows) > 1 and len(single) > 1:
        text = f", and {{beyond}} of its {{n}} rates by {more}, the worst by {{off:rough}}"
        return fill(text, told)
    if len(rows) > 1 and single:
        return fill(f", and one rate by {{off:rough}}, {more}", told)
    text = ", and by {off:rough} for the worst of its {n} rates" if len(rows) > 1 else ""
    if single:
        text += f", {more}"
    elif may == "no":
        text += f"; all systems together are off by {more}"
    elif not all(has_interval(row, "bias") for row in rows):
        pass  # nothing can be said of significance
    elif may == "cannot tell" and worst > limit + 0.005:  # not "5 points, not more than 5 points"
        text += "; the labels are too few to tell whether that is more than {limit:limit} points"
    elif may == "cannot tell":
        text += "; that every rate is at most {limit:limit} points off is not certain"
    return fill(text, told)


def _word_labels_needed(rows: Sequence[Row], limit: float) -> str:
    """How many labels would let the interval of a typical rate's bias be as wide as the limit to
    either side; "" where there are as many, or no interval."""
    known = [row for row in rows if has_interval(row, "bias") and row["n"]]
    widths = np.array([row["bias_high"] - row["bias_low"] for row in known])
    have = np.array([row["n"] for row in known])
    needed = np.median(have * (widths / (2 * limit)) ** 2) if known else 0.0
    if not known or needed <= np.median(have):
        return ""
    # Rounded to two digits: 1,437 labels are about 1,400.
    told = {"needed": int(float(f"{needed:.2g}")), "have": round(np.median(have)), "limit": limit}
    text = ". Checking an uncorrected rate to within {limit:limit} points takes about {needed}"
    text += f" labels{_word_places(known, ' of each')}; you have {{have}}"
    return fill(text, told)


def _word_places(rows: Sequence[Row], before: str) -> str:
    """What each rate is of (a system, a data set, or both), after some words; "" where it is of all
    claims."""
    units = ["system"] if any(not is_total_key(row["system"]) for row in rows) else []
    units += ["data set"] if len({row["dataset"] for row in rows}) > 1 else []
    return f"{before} {' and '.join(units)}" if units else ""


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
    found: Row = {"off": float(np.mean([abs(row["bias"]) for row in rows]))}
    found |= {
        key: sum(row.get(key) or 0 for row in rows) for key in ("n", "n_unscored", "n_guessed")
    }
    if not np.isnan([least, most]).any():
        found["off_min"] = float(np.maximum(np.maximum(least, -most), 0).mean())
        found["off_max"] = float(np.maximum(-least, most).mean())
    return found


def may_rank_systems(run: AuditedRun, evaluator: str) -> Answer | None:
    """That no pair is reversed is no merit of an evaluator that orders hardly any."""
    limits, orders = run.limits, list_orders_of(run, evaluator)
    rows = [row for row in orders if row["n_systems"] >= MIN_CORRELATED_SYSTEMS]
    if not rows:
        return None
    counts = count_ordered_system_rankings(rows)
    n_pairs, n_ordered = counts["n_pairs"], counts["n_ordered"]
    findings = [one for one in run.find(ORDER_CHECK) if one.evaluator == evaluator]
    is_reversed = any(one.verdict == "beyond" for one in findings)
    has_power = n_ordered >= limits.min_orderable * n_pairs
    # Unscored claims may hide that it finds some.
    is_known = counts["n_not_alike_min"] >= n_ordered
    finds_none = has_power and not counts["n_ordered_alike"] and is_known
    is_alike = has_power and counts["n_not_alike_max"] <= limits.max_misordered * n_pairs
    may = _choose(is_alike and not (is_reversed or finds_none), is_reversed or finds_none)
    figure = "agrees with the labels on {agreeing} pairs of systems and puts"
    figure += " {n_reversed:number pair} in the wrong order" if counts["n_reversed"] else " none in"
    figure += "" if counts["n_reversed"] else " the wrong order"
    # Unscored claims may hide a difference, so the pairs are counted only where they cannot.
    if counts["n_one_sided"] and counts["n_not_alike_min"] == counts["n_not_alike_max"]:
        figure += " (on {n_one_sided:number pair}, one of the two finds a significant difference,"
        figure += " the other does not)"
    # The sums are rounded, because 0.1 · 30 is more than 3.
    told = counts | {
        "agreeing": count_agreeing_pairs(rows),
        "needed": n_pairs - math.floor(round(limits.max_misordered * n_pairs, 6)),
        "least": math.ceil(round(limits.min_orderable * n_pairs, 6)),
    }
    required = "agreement on at least {needed:number pair} and none in the wrong order"
    if not has_power:
        required += "; by the labels, a significant difference for at least {least:number pair},"
        required += " where {n_ordered:number pair} have one"
    return Answer("rank systems", may, fill(figure, told), fill(required, told))


def list_orders_of(run: AuditedRun, evaluator: str) -> list[Row]:
    """Of each data set how the pairs of systems come out by it, at claim level."""
    return [row for row in list_compared_orders(run) if row["evaluator"] == evaluator]


def count_agreeing_pairs(orders: Sequence[Row]) -> str:
    """``26 of 30``, or ``24 to 26 of 30`` where unscored claims decide. Both agree on a pair that
    neither orders."""
    found = count_ordered_system_rankings(orders)
    ends = dict.fromkeys(
        f"{found['n_pairs'] - found[f'n_not_alike_{end}']:,}" for end in ("max", "min")
    )
    return f"{' to '.join(ends)} of {found['n_pairs']:,}"
