"""How close is a predicted error rate to the labelled one? (VC §3.3, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER, ClaimGroups
from factaudit.arrays.figures import Figures, compute_error_rates, count_bias_clusters
from factaudit.arrays.judgements import (
    LABEL,
    LEVELS,
    Judgements,
)
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditDecision,
    AuditDecisionColumn,
    AuditedRun,
    Column,
    pick_shared_columns,
)
from factaudit.audit.core.decision_limits import (
    explain_undecided_decision_limit,
    is_significantly_within,
    read_decision_limits,
    unscored_share_for_decision,
)
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.interval_methods import DISCORDANT, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    Row,
    explain_missing_labels,
    is_total_key,
)
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.quantification_checks import (
    QUANTIFICATION_CHECKS,
    list_quantification_bias_rows,
    select_significant_biases,
    select_single_system_bias_rows,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.text.display_text import format_count


def compute_quantification_bias(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    by: Sequence[str] = ("dataset",),
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Labelled and predicted error rates of each system, and the bias = predicted - labelled.

    A row per group of ``by``, level, evaluator and system, then one of system ``__all__`` (all claims of the group,
    those without a system too): the keys of ``by``, level, system, evaluator, n (labelled and scored claims or
    responses; all scored ones where none is labelled), n_unscored, n_guessed, n_unlabelled, labelled_error_rate (over
    all labels, scored or not), predicted_error_rate (over n) and bias, each with ``_min`` and ``_max`` (what it could
    be, whatever the missing predictions) and, with intervals, ``_low`` and ``_high``. Claims in no response
    (`find_claims_in_responses`) are counted in the ``__all__`` row's reason.
    """
    by = [column for column in by if column != "system"]  # every row is of a system anyway
    rows: list[tuple[int, Row]] = []
    for level in dict.fromkeys(levels):
        whole, systems = judgements.make_groups(level, by), judgements.make_groups(level, by, systems=True)
        place_of = {tuple(key.values()): place for place, key in enumerate(whole.keys)}
        parents = [place_of[tuple(key.values())[:-1]] for key in systems.keys]  # the system comes last
        for evaluator in range(len(judgements.evaluators)):
            rows += zip(parents, _tabulate_error_rates(judgements, evaluator, systems, intervals), strict=True)
            rows += enumerate(_tabulate_error_rates(judgements, evaluator, whole, intervals))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _tabulate_error_rates(
    judgements: Judgements, place: int, groups: ClaimGroups, intervals: ClusterBootstrap | None
) -> list[Row]:
    tally, evaluator, level = judgements.tally(groups, LABEL, place), judgements.evaluators[place], groups.level
    figures = compute_error_rates(tally, None if intervals is None else intervals.confidence)
    if is_constant_evaluator(evaluator):
        settle_constant_evaluator(figures, "labelled_error_rate", "predicted_error_rate")
    labels, counts = tally.cells[:, :2].sum((1, 2)), tally.count_sizes()
    counts["n_labelled"] = labels
    if intervals is not None:
        counts["n_clusters"] = count_bias_clusters(tally)
    outside = groups.claims_without_response or [0] * len(labels)
    unlabelled = [
        f"{format_count(n, 'response')} without labels for all claims left out" if level == "response" and n else ""
        for n in counts["n_unlabelled"].tolist()
    ]
    why: np.ndarray = np.where(labels == 0, f"{explain_missing_labels(level)}: the rate is of all scored", unlabelled)
    unscored = np.where(labels > 0, f"no labelled {level} is scored", f"no {level} is scored")
    why = np.where(counts["n"] == 0, unscored, why)
    why = np.where(tally.cells.sum((1, 2)) == 0, f"no {level}", why)
    reasons: list[Any] = [[f"{format_count(n, 'claim')} in no response" if n else "" for n in outside], why]
    keys = []
    for key in groups.keys:
        named = {column: value for column, value in key.items() if column != "system"}
        keys.append(named | {"level": level, "system": key.get("system", ALL_TOGETHER), "evaluator": evaluator})
    return tabulate(keys, counts, figures, reasons)


def settle_constant_evaluator(figures: Figures, labelled: str, predicted: str) -> None:
    """Of an evaluator that says the same of any claim nothing but the labels can vary: the predicted rate has no
    interval, and the bias has the labelled rate's.
    """
    point, ends, bias = figures[predicted].point, figures[labelled].interval, figures["bias"]
    if ends is None or bias.interval is None:
        return
    settled = ~np.isnan(bias.interval[0]) & ~np.isnan(ends[0])
    low, high = (
        np.where(settled, point - ends[1], bias.interval[0]),
        np.where(settled, point - ends[0], bias.interval[1]),
    )
    figures["bias"] = replace(bias, interval=(low, high))
    figures[predicted] = figures[predicted].without_interval(point >= 0, CONSTANT_EVALUATOR)


# ---------------------------------------------------------------------------------------------- the decision


def list_error_rate_bias_rows(rows: Sequence[Row], evaluator: str) -> list[Row]:
    """The rows of single systems at claim level, without data sets that name none: the whole is no system."""
    mine = [row for row in rows if row["evaluator"] == evaluator and row.get("bias") is not None]
    found = select_single_system_bias_rows([row for row in mine if not is_total_key(row.get("dataset"))])
    return [row for row in found if not is_total_key(row["system"])]


def _bound_absolute_bias(row: Row) -> tuple[float, float]:
    """The least and the greatest |bias| that the unscored claims leave possible."""
    low, high = row["bias_min"], row["bias_max"]
    return max(low, -high, 0.0), max(abs(low), abs(high))


def state_mean_absolute_bias(audited_run: AuditedRun, rows: Sequence[Row]) -> Statement:
    """The mean |bias| of some rates in points; its bounds, where so much is unscored that figures say little."""
    whole = {key: sum(row.get(key) or 0 for row in rows) for key in ("n", "n_unscored", "n_guessed")}
    most_unscored = read_decision_limits(audited_run).max_unscored
    if unscored_share_for_decision(whole) <= most_unscored or any(row.get("bias_min") is None for row in rows):
        return make_statement("{rows.bias:points}", rows=rows)
    bounded = [row | dict(zip(("least_bias", "greatest_bias"), _bound_absolute_bias(row), strict=True)) for row in rows]
    return make_statement("{bounded.least_bias:points} to {bounded.greatest_bias:points}", bounded=bounded)


def decide_on_quantification(audited_run: AuditedRun, evaluator: str) -> AuditDecision | None:
    """May a system's error rate be reported by it?"""
    rows = [row for row in list_quantification_bias_rows(audited_run) if row["evaluator"] == evaluator]
    if not rows:
        return None
    most = read_decision_limits(audited_run).max_bias
    far, far_datasets = (
        [row for row in rows_off if row["evaluator"] == evaluator]
        for rows_off in select_significant_biases(audited_run, most)
    )
    averaged = list_error_rate_bias_rows(rows, evaluator) or rows  # of systems, where any is named
    text = "{rows:count rate}" + " of systems" * (len(averaged) < len(rows)) + ", on average wrong by {mean} points"
    figure = make_statement(text, mean=state_mean_absolute_bias(audited_run, averaged), rows=averaged)
    if all(is_significantly_within(row, "bias", most) for row in rows):
        text = "Every rate is significantly less than {most:limit} points from the labelled rate."
        return AuditDecision("yes", figure, make_statement(text, most=most))
    if far:
        return AuditDecision("no", figure, _state_error_rates_far_from_labels(audited_run, far, rows))
    if far_datasets:
        text = "The rate of all systems together is significantly wrong by more than {most:limit} points, at worst by "
        text += "{worst.bias:signed} (on {worst.dataset}). It is not known which systems cause it."
        worst = max(far_datasets, key=lambda row: abs(row["bias"]))
        return AuditDecision("no", figure, make_statement(text, most=most, worst=worst))
    unsettled = [row for row in rows if not is_significantly_within(row, "bias", most)]
    why = "; ".join(dict.fromkeys(explain_undecided_decision_limit(row, "bias") for row in unsettled))
    text = "It is not known whether every rate is within {most:limit} points: {why}."
    return AuditDecision("cannot tell", figure, make_statement(text, most=most, why=why))


def _state_error_rates_far_from_labels(audited_run: AuditedRun, far: Sequence[Row], rows: Sequence[Row]) -> Statement:
    """How many rates are significantly too far from the labelled one, and which of them is farthest."""
    limits, worst = read_decision_limits(audited_run), max(far, key=lambda row: abs(row["bias"]))
    size = "{worst.bias:signed}"
    if unscored_share_for_decision(worst) > limits.max_unscored:
        size = "{worst.bias_min:signed} to {worst.bias_max:signed}"
    if len(rows) == 1:
        text = f"The rate is significantly wrong by more than {{most:limit}} points: by {size} on {{worst.dataset}}."
        return make_statement(text, most=limits.max_bias, worst=worst)
    place = "on {worst.dataset}" if worst["system"] == ALL_TOGETHER else "{worst.system} on {worst.dataset}"
    counted, verb = "{far:count}", "is" if len(far) == 1 else "are"
    if 0 < len(list_error_rate_bias_rows(rows, worst["evaluator"])) < len(rows):
        counted += " of {rows:count rate}, with those of data sets that name no system,"
    text = f"{counted} {verb} significantly wrong by more than {{most:limit}} points, at worst by {size} ({place})."
    return make_statement(text, far=far, rows=rows, most=limits.max_bias, worst=worst)


# --------------------------------------------------------------------------------------------------------- declaration

_ERROR_RATES_DESCRIPTION = "share of label 0, share of prediction 0"
QUANTIFICATION_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("dataset", "level", "evaluator"),
    "system": Column(
        "system",
        "text",
        "a system, or `__all__`: all claims, including those without a system",
        key=True,
        values={ALL_TOGETHER: "all systems"},
    ),
    **pick_shared_columns("n", "n_unscored", "n_guessed", "n_unlabelled", "n_labelled", "reason"),
    "labelled_error_rate": Column(
        "labelled error rate",
        "percent",
        _ERROR_RATES_DESCRIPTION,
        bounds=True,
        interval=WILSON,
        counted_in="n_labelled",
    ),
    "predicted_error_rate": Column(
        "predicted error rate", "percent", _ERROR_RATES_DESCRIPTION, bounds=True, interval=WILSON
    ),
    "bias": Column("bias", "points", "predicted − labelled error rate", bounds=True, interval=DISCORDANT),
    "p_bias": Column(
        "p of bias",
        "p",
        (
            "two-sided p-value of zero bias for this rate alone: the test that the interval inverts or, if few clusters"
            " change the rate, the exact sign test of these clusters, whichever p-value is larger"
        ),
        shown=False,
    ),
    "n_clusters": Column(
        "clusters", "count", "clusters behind the bias: documents, or responses, or claims", shown=False
    ),
}

AUDIT = Audit(
    name="quantification",
    after="consistency",
    title="Error rates of systems, predicted and labelled",
    question="How well does an evaluator estimate the error rate of each system?",
    source="VC §3.3, Fig. 4, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29",
    formula=(
        "Error rate = share of 0. Bias = predicted − labelled error rate: below zero, the evaluator sees too "
        "few errors. A response is supported if all its claims are, and labelled if all its claims are."
    ),
    text="Shows whether an evaluator can tell how many errors a system makes (VC Fig. 4).",
    remedy=(
        "Report rates from `factaudit estimate` (about 100 labels are enough to start) instead of the predicted "
        "ones, or report the bias beside them."
    ),
    columns=QUANTIFICATION_COLUMNS,
    options={"levels": "`claim`, `response`", "by": "columns of the claims table that form the groups"},
    compute=compute_quantification_bias,
    counts="margins",
    without_labels=True,
    plot=PlotSpec(
        what="Error rates of systems as predicted, and as labelled (the black line)",
        reading="A bias below zero: the evaluator sees too few errors.",
        keys=("predicted_error_rate", "bias"),
        groups=("dataset", "system"),
        guides={"bias": 0},
        reference="labelled_error_rate",
        per_page=28,
    ),
    checks=QUANTIFICATION_CHECKS,
    decides=(AuditDecisionColumn("report a system's error rate", decide_on_quantification),),
)
