"""Comparing evaluators: each one's overall row, pairs alike by BAcc, whether one is surely better, and how
much review it needs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import (
    has_interval,
    is_significantly_above,
    is_significantly_below,
    read_decision_limits,
    widen_interval_for_decision_limits,
)
from factaudit.audit.core.result_rows import (
    MACRO_MEAN,
    Row,
    is_constant_evaluator_row,
    is_redundant_macro_row,
    is_total_key,
)

#: Evaluators whose BAccs are no further apart are alike by BAcc.
ALIKE_BACC_DIFFERENCE = 0.02
#: What the audit `triage` promises of an evaluator's single verdicts.
REVIEW_SENTENCE = (
    "If people review {review_share:percent} of the claims, at most {max_error:limit} % of the others are errors "
    "({confidence:limit} % confidence)."
)


def rank_evaluators_by_bacc(rows: Sequence[Row]) -> list[str]:
    """The evaluators from the highest balanced accuracy on; without those that have none."""
    scored = [row for row in find_overall_evaluator_rows(rows).values() if row.get("bacc") is not None]
    return [row["evaluator"] for row in sorted(scored, key=lambda row: -row["bacc"])]


def is_constant_evaluator(name: str) -> bool:
    """Whether an evaluator says one thing of every claim by its nature, and not by chance of these claims.

    >>> is_constant_evaluator("always-no"), is_constant_evaluator("random:seed=0")
    (True, False)
    """
    return re.split(r"[|:@]", name)[0] in ("always-yes", "always-no")


def find_overall_evaluator_rows(rows: Sequence[Row]) -> dict[str, Row]:
    """Each evaluator's one row that stands for all claims: the mean over datasets, else its only row."""
    found: dict[str, Row] = {}
    for evaluator in dict.fromkeys(row["evaluator"] for row in rows):
        mine = [row for row in rows if row["evaluator"] == evaluator and not is_redundant_macro_row(row)]
        choices = [[row for row in mine if row.get("dataset") == total] for total in (MACRO_MEAN, ALL_TOGETHER)]
        one = next((only[0] for only in [*choices, mine] if len(only) == 1), None)
        if one is not None:
            found[evaluator] = one
    return found


def list_evaluators_alike_by_bacc(audited_run: AuditedRun) -> list[tuple[str, str]]:
    """Pairs of evaluators whose BAccs are alike *on average* (as VC pairs them), none of them at chance."""
    pairs = combinations(_list_rows_of_evaluators_above_chance(audited_run), 2)
    alike = [(a, b) for a, b in pairs if abs(a["bacc"] - b["bacc"]) <= ALIKE_BACC_DIFFERENCE]
    return [(a["evaluator"], b["evaluator"]) for a, b in alike]


def _list_rows_of_evaluators_above_chance(audited_run: AuditedRun) -> list[Row]:
    """The overall rows of the evaluators that are clear of chance."""
    rows = find_overall_evaluator_rows(audited_run.rows("rates"))
    return [
        row
        for name, row in rows.items()
        if name not in audited_run.floors and row.get("bacc") is not None
        if (is_significantly_above(row, "bacc", 0.5) if "bacc_low" in row else row["bacc"] > 0.5)
    ]


def explain_absence_of_evaluators_of_like_accuracy(audited_run: AuditedRun) -> str:
    """Why there is no pair of like BAcc to look at; "" where there is one."""
    if list_evaluators_alike_by_bacc(audited_run):
        return ""
    able = [row["evaluator"] for row in _list_rows_of_evaluators_above_chance(audited_run)]
    others = find_overall_evaluator_rows(audited_run.rows("rates")).keys() - audited_run.floors - set(able)
    limit = f"{100 * ALIKE_BACC_DIFFERENCE:.0f} points of BAcc"
    if len(able) + len(others) == 2:  # maybe the pair of a finding, of a run with more: they are named and not counted
        if others:
            return f"{' and '.join(sorted(others))} {'are' if len(others) > 1 else 'is'} not clear of chance"
        return f"{' and '.join(able)} are not within {limit} of each other"
    if len(able) < 2:
        return f"{'one' if able else 'no'} evaluator {'alone ' * len(able)}is clear of chance"
    return f"no two of {len(able)} evaluators clear of chance are within {limit}"


def is_significantly_better_evaluator(audited_run: AuditedRun, best_row: Row, other_evaluator: str) -> bool:
    """Whether an evaluator's BAcc is surely above that of another one.

    By the paired difference on the same claims; where that was not computed, by intervals that do not overlap.
    """
    for row in audited_run.rows("differences"):
        if row.get("key") == "bacc" and row.get("dataset") == best_row.get("dataset"):
            if (row["evaluator_a"], row["evaluator_b"]) == (best_row["evaluator"], other_evaluator):
                return is_significantly_above(row, "difference", 0)
            if (row["evaluator_a"], row["evaluator_b"]) == (other_evaluator, best_row["evaluator"]):
                return is_significantly_below(row, "difference", 0)
    other_row = find_overall_evaluator_rows(audited_run.rows("rates")).get(other_evaluator, {})
    mine, its = (widen_interval_for_decision_limits(row, "bacc") for row in (best_row, other_row))
    if its is None and is_constant_evaluator_row(other_row):  # 50 % for any claims
        its = other_row.get("bacc_min") or 0.5, other_row.get("bacc_max") or 0.5
    return mine is not None and its is not None and mine[0] > its[1]


def is_difference_open_by_unscored_claims(audited_run: AuditedRun, best_row: Row, other_evaluator: str) -> bool:
    """Whether two evaluators' BAcc differ by the paired interval, and not whatever the unscored claims may be.

    Where no difference was computed: whether their intervals would not meet but for the bounds.
    """
    pair = {best_row["evaluator"], other_evaluator}
    differences = [
        row
        for row in audited_run.rows("differences")
        if row.get("key") == "bacc" and row.get("dataset") == best_row.get("dataset")
        if {row["evaluator_a"], row["evaluator_b"]} == pair and has_interval(row, "difference")
    ]
    if differences:
        return any(
            (row["difference_low"] > 0 or row["difference_high"] < 0)
            and not is_significantly_above(row, "difference", 0)
            and not is_significantly_below(row, "difference", 0)
            for row in differences
        )
    other_row = find_overall_evaluator_rows(audited_run.rows("rates")).get(other_evaluator, {})
    if not has_interval(best_row, "bacc") or not has_interval(other_row, "bacc"):
        return False
    lower, upper = sorted((best_row, other_row), key=lambda row: float(row["bacc"]))
    widened = [widen_interval_for_decision_limits(row, "bacc") for row in (lower, upper)]
    if widened[0] is None or widened[1] is None or lower["bacc_high"] >= upper["bacc_low"]:
        return False
    return widened[0][1] >= widened[1][0]


def find_datasets_of_lowest_and_highest_bacc(rates_rows: Sequence[Row], evaluator: str) -> tuple[Row, Row] | None:
    """An evaluator's rows of the data sets where its BAcc is lowest and highest; None where their intervals (with
    their bounds) meet.
    """
    parts = [row for row in rates_rows if row["evaluator"] == evaluator and not is_total_key(row.get("dataset"))]
    parts = sorted((row for row in parts if row.get("bacc") is not None), key=lambda row: row["bacc"])
    if not len({row["dataset"] for row in parts}) == len(parts) > 1:
        return None
    worst, top = parts[0], parts[-1]
    low, high = widen_interval_for_decision_limits(worst, "bacc"), widen_interval_for_decision_limits(top, "bacc")
    return (worst, top) if low is not None and high is not None and low[1] < high[0] else None


def find_least_review_evaluator_row(audited_run: AuditedRun, evaluators: Sequence[str]) -> Row | None:
    """Of these evaluators the overall row with the least review; None where more must be reviewed than the limit says,
    or nothing: then errors are so rare that no evaluator is needed.
    """
    rows = find_overall_evaluator_rows(audited_run.rows("triage"))
    most = read_decision_limits(audited_run).max_review
    able = [rows[name] for name in evaluators if name in rows and 0 < rows[name]["review_share"] <= most]
    return min(able, key=lambda row: row["review_share"], default=None)
