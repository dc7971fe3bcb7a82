"""How often is an evaluator right on correct claims (TPR) and on errors (TNR)? (VC §3.2, Figure 3)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.arrays.figures import Tally, compute_rates
from factaudit.arrays.judgements import LABEL, Judgements
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
from factaudit.audit.core.finding_parts import format_first_finding_names
from factaudit.audit.core.interval_methods import MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    MACRO_MEAN,
    Row,
    is_total_key,
)
from factaudit.audit.core.statements import make_statement
from factaudit.audit.core.tabulate import average_datasets, interleave, tabulate
from factaudit.audit.rates_checks import RATES_CHECKS
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

RATE_NAMES = ("tpr", "tnr", "fpr", "fnr", "bacc", "ppr", "gap")


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
    confidence = None if intervals is None else intervals.confidence
    tables = []
    for place, evaluator in enumerate(judgements.evaluators):
        tally = judgements.tally(groups, LABEL, place)
        figures = compute_rates(tally, confidence)
        if is_constant_evaluator(evaluator):
            is_constant = np.isin(figures["gap"].point, (-1, 1))
            figures = {key: one.without_interval(is_constant, CONSTANT_EVALUATOR) for key, one in figures.items()}
        scored = tally.cells[:, :2, :2].sum(2)
        counts = tally.count_sizes() | {"n_attributable": scored[:, 1], "n_unattributable": scored[:, 0]}
        counts["n_datasets"] = np.ones(len(scored), dtype=int)
        keys = [{**key, "evaluator": evaluator} for key in groups.keys]
        tables.append(tabulate(keys, counts, figures, _explain_undefined_rates(tally)))
    rows = interleave(tables)
    if "dataset" not in by or not rows:
        return rows
    others = ["evaluator", *(column for column in by if column != "dataset")]
    return rows + average_datasets(rows, others, RATE_NAMES, list(counts))


def _explain_undefined_rates(tally: Tally) -> list[np.ndarray]:
    labels, scored = tally.cells[:, :2].sum(2), tally.cells[:, :2, :2].sum(2)
    reasons = [
        np.where(labels[:, label] > 0, f"no {name} claim is labelled and scored", f"no {name} label")
        for label, name in ((1, "attributable"), (0, "unattributable"))
    ]
    reasons = [np.where(scored[:, label] > 0, "", text) for label, text in zip((1, 0), reasons, strict=True)]
    over_all = np.where(tally.scored[:, :2].any(1), "ppr is over all scored claims", "no claim is scored")
    return [*reasons, np.where(tally.is_unlabelled, over_all, "")]


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
