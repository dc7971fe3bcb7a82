"""Does an evaluator put systems in the right order, and can the labels tell? The checks of the audit `ranking`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.arrays.system_rankings import count_ordered_system_rankings
from factaudit.audit.core.audit_declaration import AuditDecision, AuditedRun, Check, Finding, Permission
from factaudit.audit.core.decision_limits import read_decision_limits
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    make_row_finding,
    pick_finding_evidence,
)
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.stats.rank_correlation import MIN_CORRELATED_SYSTEMS

#: Less than this share of pairs with enough labels to show 10 points, and most orders are beyond the data.
MIN_DETECTABLE = 0.50
#: The difference of two error rates that labels should show.
SHOWN_DIFFERENCE = 0.1


def list_ranking_reversal_rows(audited_run: AuditedRun) -> list[Row]:
    """The rows in which a pair of systems is significantly reversed, by the bounds as well: Holm over all of the run's.

    A pair that only one side orders is none: there the other side found no significant difference.
    """
    every = [row for row in _list_claim_ranking_rows(audited_run) if row["evaluator"] not in audited_run.floors]
    n_tests = sum(row["n_pairs"] for row in every)
    reversing = select_significant_rows(audited_run, every, [row["p_reversed"] for row in every], n_tests)
    return [row for row in reversing if row.get("major_error_rate_min") != 0]


def _find_systems_in_reversed_order(audited_run: AuditedRun) -> Iterator[Finding]:
    """Systems that the predictions put in the reverse order of the labels."""
    reversing = list_ranking_reversal_rows(audited_run)
    for evaluator, rows in group_finding_rows_by_evaluator(_list_claim_ranking_rows(audited_run)):
        turned = [row for row in reversing if row["evaluator"] == evaluator]
        told = count_ordered_system_rankings(rows)
        if turned:
            worst = max(turned, key=lambda row: row["n_reversed"])
            at_worst = " ({worst.n_reversed:number} of them on {worst.dataset})" if len(turned) > 1 else ""
            said = make_statement(
                "{evaluator} puts {turned.n_reversed:number} of {rows.n_pairs:number pair} of systems significantly in "
                f"the wrong order{{where}}{at_worst}. The labels order {{rows.n_ordered:number}} significantly. Do not "
                "rank systems by it.",
                evaluator=evaluator,
                turned=turned,
                rows=rows,
                worst=worst,
                where=format_how_many_datasets(turned, rows),
            )
            counts = ("n_systems", "n_pairs", "n_ordered", "n_ordered_alike", "n_one_sided", "n_reversed")
            keys = (*counts, "p_reversed", "kendall_tau")
            yield make_row_finding("fail", worst, said, *keys)
        elif told["n_not_alike_max"] == 0 and told["n_ordered"] and told["n_able"] == told["n_pairs"]:
            said = make_statement(
                "{evaluator} orders all {rows.n_pairs:number pair} of systems like the labels, "
                "{rows.n_ordered:number} of them significantly. Each pair has enough labels to show a difference of "
                "{shown:limit} points.",
                evaluator=evaluator,
                rows=rows,
                shown=SHOWN_DIFFERENCE,
            )
            yield Finding("ok", evaluator, None, said, {"n_pairs": told["n_pairs"]})


def _explain_no_ordered_pair(audited_run: AuditedRun) -> str:
    rows = _list_claim_ranking_rows(audited_run)
    return "" if any(row["n_ordered"] for row in rows) else "the labels order no pair of systems significantly"


def _number_or_none(field: str, number: int) -> str:
    """The part of a template that says how many: ``none`` where there is nothing."""
    return f"{{{field}:number}}" if number else "none"


def _describe_able_pairs(n_able: int) -> str:
    """The part of a template that says how many pairs (``able``) have enough labels."""
    return "{able:count} " + ("has" if n_able == 1 else "have") if n_able else "none has"


def _list_claim_ranking_rows(audited_run: AuditedRun) -> list[Row]:
    return [row for row in audited_run.per_dataset("ranking", "p_reversed") if row["level"] == "claim"]


def _find_too_few_ranking_labels(audited_run: AuditedRun) -> Iterator[Finding]:
    """Labels that order too few systems to say how an evaluator ranks them."""
    asked = read_decision_limits(audited_run).min_orderable
    rows: dict[str, Row] = {}  # of the evaluator that scored least: labels are the same beside all
    for row in _list_claim_ranking_rows(audited_run):
        if row["n"] is not None:
            rows[row["dataset"]] = min(rows.get(row["dataset"], row), row, key=lambda each: each["n"])
    # Where most pairs could have shown 10 points and did not, the systems are alike: that is known, and no lack.
    few = [
        row
        for row in rows.values()
        if row["n_ordered"] < asked * row["n_pairs"] and row["detectable_10"] < MIN_DETECTABLE
    ]
    if few:
        worst = min(few, key=lambda row: row["n_ordered"] / row["n_pairs"])
        keys = ("n_systems", "n_pairs", "n_ordered", "n", "detectable_5", "detectable_10", "detectable_difference")
        yield Finding(
            "warn",
            None,
            worst["dataset"],
            make_statement(
                "There are too few labels to tell how well evaluators rank systems{where}. On {worst.dataset} "
                "the labels "
                f"order {_number_or_none('worst.n_ordered', worst['n_ordered'])} of {{worst.n_pairs:number pair}} of "
                f"systems significantly, and {_describe_able_pairs(count_ordered_system_rankings([worst])['n_able'])} "
                "enough labels to show a difference of {shown:limit} points. Two systems without a significant "
                "difference may still differ.",
                worst=worst,
                able=range(count_ordered_system_rankings([worst])["n_able"]),
                shown=SHOWN_DIFFERENCE,
                where=format_how_many_datasets(few, list(rows)),
            ),
            pick_finding_evidence(worst, *keys),
        )
    elif rows and all(row["detectable_10"] == 1 for row in rows.values()):
        text = "Each of the {rows.n_pairs:number pair} of systems has enough labels to show a difference of "
        text += "{shown:limit} points."
        yield Finding("ok", None, None, make_statement(text, rows=list(rows.values()), shown=SHOWN_DIFFERENCE))


# ---------------------------------------------------------------------------------------------- the decision


def list_ranking_order_rows(rows: Sequence[Row], evaluator: str) -> list[Row]:
    """The rows of an evaluator at claim level whose pairs were compared."""
    return [
        row
        for row in rows
        if row["evaluator"] == evaluator and row["level"] == "claim" and row.get("n_reversed") is not None
    ]


def sum_ordered_pairs(rows: Sequence[Row], evaluator: str) -> Row | None:
    """How many pairs of systems are ordered alike, and how not, at claim level, over all datasets."""
    mine = list_ranking_order_rows(rows, evaluator)
    return dict(count_ordered_system_rankings(mine)) if mine else None


def decide_on_ranking_systems(audited_run: AuditedRun, evaluator: str) -> AuditDecision | None:
    """May systems be ranked by it?"""
    rows = [
        row
        for row in _list_claim_ranking_rows(audited_run)
        if row["evaluator"] == evaluator and row["n_systems"] >= MIN_CORRELATED_SYSTEMS
    ]
    if not rows:
        return None
    limits, counts = read_decision_limits(audited_run), count_ordered_system_rankings(rows)
    pairs, told = counts["n_pairs"], dict(rows[0])
    # That none is reversed is no merit of who orders hardly any of those that the labels order.
    text = "of {rows.n_ordered:number pair} that the labels order, "
    text += f"{_number_or_none('rows.n_ordered_alike', counts['n_ordered_alike'])} in the same order, "
    text += f"{_number_or_none('rows.n_reversed', counts['n_reversed'])} reversed"
    if not counts["n_ordered"]:
        text = "the labels order none of {rows.n_pairs:number pair}"
    reversing = [row for row in list_ranking_reversal_rows(audited_run) if row["evaluator"] == evaluator]
    told["n_not_alike"] = counts["n_not_alike_max"]
    may: Permission = "no"
    if reversing:
        why = "It puts {reversing.n_reversed:number pair} of systems significantly in the wrong order."
    elif counts["n_ordered"] < limits.min_orderable * pairs:
        may = "cannot tell"
        why = f"The labels order {_number_or_none('rows.n_ordered', counts['n_ordered'])} of "
        why += f"{{rows.n_pairs:number pair}} significantly; {_describe_able_pairs(counts['n_able'])} enough labels to "
        why += "show a difference of {shown:limit} points."
    elif not counts["n_ordered_alike"]:
        why = "It orders none of the {rows.n_ordered:number pair} that the labels order."
    elif counts["n_not_alike_max"] <= limits.max_misordered * pairs:
        may, why = "yes", "It disagrees with the labels on at most {most:limit} % of all pairs."
        if limits.max_misordered * pairs < 1:  # of so few that is a promise of each
            is_one_of_several = len(rows) == 1 < len(audited_run.about.get("claims") or [])
            why = (
                "It agrees with the labels on all {rows.n_pairs:number pair}" + " on {rows.dataset}" * is_one_of_several
            )
            why += ", but these are few."
    else:
        may = "cannot tell"
        why = "In {told.n_not_alike:number} of {rows.n_pairs:number pair}, only the labels or only the predictions "
        why += "find a significant difference."
        if counts["n_not_alike_max"] > counts["n_one_sided"]:
            why = "Because of unscored claims, it may disagree with the labels on up to {told.n_not_alike:number pair}."
    sentence = make_statement(
        why,
        rows=rows,
        reversing=reversing,
        told=told,
        able=range(counts["n_able"]),
        shown=SHOWN_DIFFERENCE,
        most=limits.max_misordered,
    )
    return AuditDecision(may, make_statement(text, rows=rows, told=told), sentence)


RANKING_CHECKS = (
    Check(
        "order",
        "Systems in the wrong order",
        "the predictions put two systems significantly in the opposite order of the labels",
        _find_systems_in_reversed_order,
        null="no pair of systems is in one order by the labels and in the reverse order by an evaluator",
        controls="Holm over all pairs, then over all evaluators[ on all data sets]; of a pair both tests must reject",
        figure="p_reversed",
        gravity=lambda evidence: evidence["n_reversed"],
        lacks=_explain_no_ordered_pair,
    ),
    Check(
        "power",
        "Too few labels to tell systems apart",
        "the labels order fewer pairs of systems than required (a quarter), and fewer than half of the pairs have "
        "enough labels to show a difference of 10 points",
        _find_too_few_ranking_labels,
        null="on every data set the labels order a quarter of the pairs, or half of the pairs have enough labels to "
        "show a difference of 10 points",
        controls="no test: the power of each pair's test is computed from the numbers of its labels",
        figure="detectable_10",
    ),
)
