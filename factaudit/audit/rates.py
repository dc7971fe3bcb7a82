"""How often is an evaluator right on correct claims (TPR) and on errors (TNR)? (VC §3.2, Figure 3)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.judgements import LABEL_FIELD, Judgements, prediction_field, stated_prediction_field
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditDecision,
    AuditDecisionColumn,
    AuditedRun,
    Column,
    Unit,
    pick_shared_columns,
)
from factaudit.audit.core.data_caveats import CAVEAT_CHECKS
from factaudit.audit.core.decision_limits import (
    explain_undecided_decision_limit,
    has_interval,
    is_significantly_above,
    is_significantly_below,
    read_decision_limits,
    unscored_share_for_decision,
)
from factaudit.audit.core.evaluator_comparison import (
    find_least_review_evaluator_row,
    find_overall_evaluator_rows,
    is_constant_evaluator,
    rank_evaluators_by_bacc,
    state_review_share,
)
from factaudit.audit.core.finding_parts import format_first_finding_names, group_finding_rows_by_keys
from factaudit.audit.core.interval_methods import MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    FEW_CLUSTERS,
    MACRO_MEAN,
    Row,
    average_dataset_rows,
    drop_row_intervals,
    explain_missing_row_intervals,
    explain_undefined_dataset_means,
    is_constant_evaluator_row,
    is_total_key,
)
from factaudit.audit.core.statements import make_statement
from factaudit.audit.rates_checks import RATES_CHECKS
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.text.display_text import join_reasons

RATE_NAMES = ("tpr", "tnr", "fpr", "fnr", "bacc", "ppr", "gap")
_CLASS_NAMES = ("unattributable", "attributable")


def compute_evaluator_rates(
    judgements: Judgements, *, by: Sequence[str] = ("dataset",), intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """TPR, TNR, BAcc, PPR and the TPR - TNR gap of each evaluator, over any columns of the claims table.

    A row per group of ``by`` and evaluator: the keys of ``by``, evaluator, n (labelled and scored claims; all scored
    ones where none is labelled), n_unscored, n_guessed, n_unlabelled, n_attributable, n_unattributable, then tpr, tnr,
    fpr, fnr, bacc, ppr, gap, each with ``_min`` and ``_max`` (what it could be, whatever the missing predictions) and,
    with intervals, ``_low`` and ``_high``. Where ``by`` has dataset, a row of dataset ``__macro__`` has the unweighted
    mean of each figure over the datasets where it is defined.
    """
    groups = judgements.make_groups("claim", by)
    rows: list[tuple[int, Row]] = []
    means: list[Row] = []
    for at, evaluator in enumerate(judgements.evaluators):
        counts, sure = (
            judgements.count_cells(groups, LABEL_FIELD, field(at))
            for field in (prediction_field, stated_prediction_field)
        )
        over_all = confusion_counts.is_group_unlabelled(counts)
        limits = None
        if intervals is not None:
            clusters = judgements.count_clusters(groups, LABEL_FIELD, prediction_field(at))
            limits = confusion_counts.confusion_rate_intervals(clusters, over_all, intervals.confidence)
        figures = confusion_counts.add_confusion_bounds_and_intervals(
            confusion_counts.confusion_rates(counts, over_all), confusion_counts.confusion_rate_bounds(sure), limits
        )
        sizes = confusion_counts.count_scored_confusion_cells(counts, sure) | {
            "n_attributable": counts[:, 1, :2].sum(-1),
            "n_unattributable": counts[:, 0, :2].sum(-1),
        }
        own = []
        for place, key in enumerate(groups.keys):
            row: Row = {**key, "evaluator": evaluator}
            row |= {name: int(values[place]) for name, values in sizes.items()} | {"n_datasets": 1}
            row |= {name: none_if_undefined(values[place]) for name, values in figures.items()}
            why = [*_explain_undefined_rates(counts[place], row), explain_missing_row_intervals(row, FEW_CLUSTERS)]
            own.append(row | {"reason": join_reasons(why)})
        if is_constant_evaluator(evaluator):
            drop_row_intervals([row for row in own if is_constant_evaluator_row(row)], CONSTANT_EVALUATOR, *RATE_NAMES)
        rows += enumerate(own)
        if "dataset" in by:
            others = [column for column in by if column != "dataset"]
            for _, group in group_finding_rows_by_keys(own, *others):
                means.append(_average_rates_over_datasets(group, [*by, "evaluator"], [*sizes, "n_datasets"]))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])] + means


def _average_rates_over_datasets(dataset_rows: list[Row], keys: Sequence[str], counts: Sequence[str]) -> Row:
    row = {key: dataset_rows[0][key] for key in keys} | {"dataset": MACRO_MEAN}
    row |= average_dataset_rows(dataset_rows, RATE_NAMES, counts)
    why = [
        *explain_undefined_dataset_means(dataset_rows, RATE_NAMES),
        explain_missing_row_intervals(row, "a data set has none"),
    ]
    return row | {"reason": join_reasons(why)}


def _explain_undefined_rates(counts: np.ndarray, row: Row) -> list[str]:
    scored = counts[:, :2].sum(-1)
    found = [
        f"no {_CLASS_NAMES[label]} claim is labelled and scored"
        if counts[label].sum()
        else f"no {_CLASS_NAMES[label]} label"
        for label in (1, 0)
        if scored[label] == 0
    ]
    if confusion_counts.is_group_unlabelled(counts):
        found.append("ppr is over all scored claims" if row["n"] else "no claim is scored")
    return found


# ---------------------------------------------------------------------------------------------- the decision


def _decide_on_evaluator_rates(audited_run: AuditedRun, evaluator: str) -> AuditDecision | None:
    """May single errors be found with it?"""
    row, least = (
        find_overall_evaluator_rows(audited_run.rows("rates")).get(evaluator),
        read_decision_limits(audited_run).min_rate,
    )
    if row is None:
        return None
    if row.get("tpr") is None or row.get("tnr") is None:
        scored = make_statement("{row.n:number scored claim}", row=row)
        why = make_statement(
            "TPR and TNR need scored claims of both kinds, labelled errors and labelled correct claims."
        )
        return AuditDecision("cannot tell", scored, why)
    is_open = unscored_share_for_decision(row) > read_decision_limits(audited_run).max_unscored
    is_open &= all(row.get(f"{key}_min") is not None for key in ("tpr", "tnr"))
    text = "TPR {row.tpr:percent}, TNR {row.tnr:percent}"
    if is_open:  # so much is unscored that only the bounds hold
        text = "TPR {row.tpr_min:percent} to {row.tpr_max:percent}, TNR {row.tnr_min:percent} to {row.tnr_max:percent}"
    figure = make_statement(text, row=row)
    required = "{least:limit} % of both are required."
    rates = {"tpr": "the correct claims", "tnr": "the errors"}
    if all(is_significantly_above(row, key, least) for key in rates):
        return AuditDecision(
            "yes",
            figure,
            make_statement(
                "It finds significantly more than {least:limit} % of the errors and passes significantly more than "
                "{least:limit} % of the correct claims.",
                least=least,
            ),
        )
    tuned = find_overall_evaluator_rows(audited_run.rows("discrimination")).get(evaluator, {})
    if all(is_significantly_above(tuned, f"tuned_{key}", least) for key in rates):
        return AuditDecision(
            "with a correction",
            figure,
            make_statement(
                "With a threshold tuned to each data set, TPR is {tuned.tuned_tpr:percent} and TNR "
                "{tuned.tuned_tnr:percent}, both significantly more than {least:limit} %.",
                tuned=tuned,
                least=least,
            ),
        )
    if (review := find_least_review_evaluator_row(audited_run, [evaluator])) is not None:
        return AuditDecision("with review", figure, state_review_share(review))
    short = [key for key in rates if is_significantly_below(row, key, least)]
    if short:
        key = min(short, key=lambda each: row[each])
        found = f"at most {{row.{key}_max:percent}}" if is_open else f"{{row.{key}:percent}}" if row[key] else "none"
        text = f"It {'passes' if key == 'tpr' else 'finds'} {found} of {rates[key]}; {required}"
        return AuditDecision("no", figure, make_statement(text, row=row, least=least))
    undecided = [key for key in rates if not is_significantly_above(row, key, least)]
    open_question = explain_undecided_decision_limit(row, *undecided)
    if all(has_interval(row, key) for key in undecided):
        open_question = f"{' and '.join(key.upper() for key in undecided)}: {open_question}"
    told = make_statement("{why}; " + required, why=open_question[0].upper() + open_question[1:], least=least)
    return AuditDecision("cannot tell", figure, told)


def _list_partial_mean_remarks(rows: Sequence[Row], findings: Sequence[Row]) -> list[str]:
    """Whose means leave out data sets: beside a mean over all of them it is not of the same claims."""
    del findings
    lacking = {row["evaluator"] for row in rows if not is_total_key(row.get("dataset")) and row.get("bacc") is None}
    means = [row for row in rows if row.get("dataset") == MACRO_MEAN and row.get("bacc") is not None]
    partial = [row["evaluator"] for row in means if row["evaluator"] in lacking]
    if not partial:
        return []
    text = "A mean over data sets leaves out those on which a figure is undefined. This concerns {names}."
    return [make_statement(text, names=format_first_finding_names(partial))]


# --------------------------------------------------------------------------------------------------------- declaration


def _build_evaluator_rate_column(
    heading: str,
    what: str,
    unit: Unit = "percent",
    interval: str = WILSON,
    shown: bool = True,
    claims: str = "wrong",
    counted_in: str = "n",
) -> Column:
    return Column(
        heading, unit, what, bounds=True, interval=interval, shown=shown, claims=claims, counted_in=counted_in
    )


#: Also of the audits that compute rates of a part of the claims.
RATES_COLUMNS: dict[str, Column] = {
    **pick_shared_columns(
        "dataset", "evaluator", "n", "n_unscored", "n_guessed", "n_unlabelled", "reason", "n_datasets"
    ),
    "n_attributable": Column("label 1", "count", "scored claims with this label"),
    "n_unattributable": Column("label 0", "count", "scored claims with this label"),
    "tpr": _build_evaluator_rate_column(
        "TPR",
        "P(prediction 1 given label 1), P(prediction 0 given label 0)",
        claims="rejected",
        counted_in="n_attributable",
    ),
    "tnr": _build_evaluator_rate_column(
        "TNR",
        "P(prediction 1 given label 1), P(prediction 0 given label 0)",
        claims="passed",
        counted_in="n_unattributable",
    ),
    "fpr": _build_evaluator_rate_column(
        "FPR", "1 − TNR, 1 − TPR", shown=False, claims="passed", counted_in="n_unattributable"
    ),
    "fnr": _build_evaluator_rate_column(
        "FNR", "1 − TNR, 1 − TPR", shown=False, claims="rejected", counted_in="n_attributable"
    ),
    "bacc": Column("BAcc", "percent", "(TPR + TNR) / 2", bounds=True, interval=MOVER),
    "ppr": _build_evaluator_rate_column("PPR", "share of claims with prediction 1"),
    "gap": _build_evaluator_rate_column("gap", "TPR − TNR", "points", MOVER),
}

AUDIT = Audit(
    name="rates",
    after="dfactscore_grouping",
    title="How often each evaluator is right",
    question="How often is each evaluator right on supported claims (label 1) and on errors (label 0)?",
    source="VC §3.2, Fig. 3",
    formula=(
        "TPR = P(prediction 1 | label 1); TNR = P(prediction 0 | label 0); BAcc = (TPR + TNR) / 2; PPR = share "
        "of claims with prediction 1; gap = TPR − TNR."
    ),
    text=(
        "Predictions are compared with labels. An evaluator with a high TPR and a low TNR accepts claims too "
        "readily. Two evaluators of equal balanced accuracy can err in opposite ways (VC Fig. 3)."
    ),
    remedy=(
        "If TPR and TNR are far apart, tune the threshold on your own labels (`discrimination`) or correct the "
        "error rates (`factaudit estimate`). If the interval of BAcc contains 50 %, do not use the evaluator on "
        "such data."
    ),
    columns=RATES_COLUMNS,
    options={"by": "columns of the claims table that form the groups"},
    compute=compute_evaluator_rates,
    counts="joint",
    plot=PlotSpec(
        what="TPR, TNR and BAcc of evaluators", keys=("tpr", "tnr", "bacc"), guides={"bacc": 0.5}, per_page=16
    ),
    checks=(*RATES_CHECKS, *CAVEAT_CHECKS),
    remarks=_list_partial_mean_remarks,
    best=rank_evaluators_by_bacc,
    decides=(AuditDecisionColumn("find single errors", _decide_on_evaluator_rates),),
)
