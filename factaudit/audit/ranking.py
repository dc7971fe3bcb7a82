"""Does an evaluator order systems as the labels do? (VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.arrays.system_rankings import (
    ORDER_NAMES,
    PAIR_DETECTION_POWER,
    PairTest,
    RankingCase,
    SystemErrors,
    SystemPairTest,
    bound_order_errors,
    compare_orders,
    correlate_rates,
    count_reversed_pairs,
    cross_tabulate_orders,
    iterate_ranking_cases,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, Count
from factaudit.audit.core.interval_methods import FISHER, OPEN_ORDERS
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row, group_rows
from factaudit.audit.core.tabulate import explain_row, pick_figure
from factaudit.audit.ranking_pairs import (
    ORDER_SYMBOLS,
    RANKING_PAIR_OPTIONS,
)
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.multiplicity import MultiplicityCorrection
from factaudit.stats.rank_correlation import MIN_CORRELATED_SYSTEMS

#: A wider interval of τ is not given: it would leave open more than half of what τ can be.
MAX_TAU_INTERVAL_WIDTH = 1.0


def compute_ranking_agreement(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    test: SystemPairTest = "clustered",
    correction: MultiplicityCorrection = "holm",
    min_systems: int = MIN_CORRELATED_SYSTEMS,
    min_errors: int = 0,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How well each evaluator orders the systems of each dataset: a summary of `ranking_pairs`, with correlations.

    min_systems: kendall_tau and pearson_r are null below so many systems. min_errors: systems with fewer labelled
    errors are left out (VC's Table 28 comes out with 11).

    A row per dataset, level and evaluator: n_systems and n_pairs (with labelled and scored claims), n, n_unscored,
    n_guessed, error_rate and major_error_rate (shares of the pairs), orderable (the share of pairs that the labels
    themselves order; so much is the error_rate of a constant evaluator, for which all are equal),
    kendall_tau (tau-b) and pearson_r over the systems' error rates, detectable_10 (the share of pairs whose labels
    would show a difference of 10 points with a power of at least 80 %), and the confusion of orders as
    ``labelled_lt_predicted_gt`` and so on (numbers of pairs), the system with the lower labelled rate being the first
    of a pair.

    test, correction: how pairs are ordered; ``z`` and ``none`` give VC's ordering error.
    error_rate and major_error_rate have ``_min`` and ``_max``: no way to score what is unscored leads outside of them,
    though the worst cases of two pairs need not go together. They have no interval: how many pairs are significant
    depends on the number of labels, so there is no true share to hold. With intervals kendall_tau and pearson_r have
    ``_low`` and ``_high``, r (Fisher's z) from four systems on; an interval of τ that is wider than 1 is null.
    """
    if min_systems < MIN_CORRELATED_SYSTEMS:
        raise UsageError(f"ranking: expected min_systems of at least {MIN_CORRELATED_SYSTEMS}, found {min_systems}")
    how = PairTest(test, correction, alpha)
    confidence = None if intervals is None else intervals.confidence
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        for cases in iterate_ranking_cases(judgements, judgements.make_groups(level, systems=True)):
            for case in cases:
                is_used = (case.cells[:, :2, :2].sum((1, 2)) > 0) & (case.cells[:, 0].sum(1) >= min_errors)
                used = case.select(is_used)
                clustered = used.count_errors()
                row: Row = {"dataset": case.dataset, "level": level, "evaluator": judgements.evaluators[case.evaluator]}
                row |= _compare_systems(used, clustered, how) | _count_ranked_claims(case, used)
                is_enough = len(used.members) >= min_systems
                compared = clustered if is_enough else used.select(np.zeros(len(used.members), bool)).count_errors()
                figures = correlate_rates(*compared, confidence)
                low, high = figures["kendall_tau"].ends
                is_too_wide = high - low > MAX_TAU_INTERVAL_WIDTH
                figures["kendall_tau"] = figures["kendall_tau"].without_interval(is_too_wide, _TOO_WIDE)
                for key, figure in figures.items():
                    row |= pick_figure(key, figure, 0)
                reasons = [
                    _LEFT_OUT if len(used.members) < len(case.systems) else "",
                    "" if is_enough else f"correlations need {min_systems} systems",
                ]
                causes = {"kendall_tau": _TOO_WIDE} if is_too_wide[0] else {}
                rows.append(explain_row(row, figures, reasons, _NO_INTERVAL, causes))
    return sorted(rows, key=lambda row: row["dataset"])


_LEFT_OUT = "systems without labelled and scored claims, or with too few errors, are left out"
_TOO_WIDE = "it would be wider than half of the range of τ"
_NO_INTERVAL = "it takes four systems, several clusters, and a correlation that is not 1 or -1"


def _compare_systems(case: RankingCase, clustered: tuple[SystemErrors, SystemErrors], how: PairTest) -> Row:
    """How both sides order the pairs of systems, and what the labels could show; clustered: their errors."""
    labelled, predicted = clustered if how.test == "clustered" else case.count_errors(by_cluster=False)
    orders = labelled.order_pairs(how)[1], predicted.order_pairs(how)[1]
    row: Row = {"n_systems": len(case.members), "n_pairs": len(orders[0])}
    row |= compare_orders(*orders) | bound_order_errors(case, *orders, how)
    powers = labelled.compute_power(0.1, how)
    row["detectable_10"] = float((powers >= PAIR_DETECTION_POWER).mean()) if len(powers) else None
    row |= cross_tabulate_orders(labelled.rates, *orders)
    return row | count_reversed_pairs(*clustered, how.alpha)


def _count_ranked_claims(case: RankingCase, used: RankingCase) -> Row:
    """Of a system without labels nothing is compared: what of it is unscored leaves nothing open here."""
    has_labels = case.cells[:, :2].any((1, 2))
    unscored, unstated = (cells[has_labels, :2, 2].sum() for cells in (case.cells, case.stated))
    row = {"n": used.cells[:, :2, :2].sum(), "n_unscored": unscored, "n_guessed": unstated - unscored}
    return {key: int(value) for key, value in row.items()} | {"n_unlabelled": int(case.cells[:, 2].sum())}


# ------------------------------------------------------------------------------------------------------ checks

#: Less than this share of pairs with enough labels to show 10 points, and most orders are beyond the data.
MIN_DETECTABLE = 0.50


def list_compared_orders(run: AuditedRun) -> list[Row]:
    """A row per data set and evaluator, at claim level, whose pairs of systems were compared.

    ``p_n_reversed`` is the p-value of "no pair is in the wrong order", 1 where the unscored claims could undo it.
    """
    rows = [row for row in run.per_dataset("ranking", "n_reversed") if row["level"] == "claim"]
    return [
        row | {"p_n_reversed": row.get("p_reversed") if row.get("major_error_rate_min") != 0 else 1.0} for row in rows
    ]


def _list_orders_by_labels(run: AuditedRun) -> list[Row]:
    """A row per data set: the labels are the same beside all evaluators, so that who scored least counts.

    ``orderable`` is 1 where most pairs could have shown 10 points and did not: it is known that the systems are alike.
    """
    rows = group_rows((row for row in list_compared_orders(run) if row["n"] is not None), "dataset")
    least = [min(mine, key=lambda row: row["n"]) for mine in rows.values()]
    return [
        row | {"evaluator": None} | ({"orderable": 1.0} if (row["detectable_10"] or 0.0) >= MIN_DETECTABLE else {})
        for row in least
    ]


ORDER_CHECK = Check(
    id="order",
    title="Systems in the wrong order",
    rows=list_compared_orders,
    figure="n_reversed",
    says="{evaluator} puts {n_reversed} of {n_pairs:number pair} of systems{on} {verdict}.",
    beyond="in the wrong order",
    advice="Do not rank systems by it.",
    null="no pair of systems is in one order by the labels and in the reverse order by an evaluator",
)
CHECKS = (
    ORDER_CHECK,
    Count(
        id="power",
        title="Too few labels to tell systems apart",
        rows=_list_orders_by_labels,
        figure="orderable",
        limit=lambda limits: limits.min_orderable,
        side="under",
        by=(),
        says="Labelled error rates differ significantly for {n_ordered} of {n_pairs:number pair} of "
        "systems{on}, {verdict}.",
        beyond="too few to judge rankings",
        advice="Two systems without a significant difference may still differ: label more claims.",
        null="on every data set the labels order a quarter of the pairs, or half of the pairs have enough labels to "
        "show a difference of 10 points",
        on_screen=True,
    ),
)


# --------------------------------------------------------------------------------------------------------- declaration

_ORDER_ERRORS_DESCRIPTION = (
    "share of pairs that labels and predictions order differently; for the major error "
    "rate, significantly in opposite order"
)
_CORRELATION_DESCRIPTION = "τ-b and r over the systems' error rates"
_DETECTABLE_DESCRIPTION = "share of pairs with labels enough to detect a true difference of 10 points with 80 % power"
_SYSTEMS_DESCRIPTION = "systems with labelled and scored claims, and the number of their pairs"
_CLUSTERED_ORDERS_DESCRIPTION = (
    "number of pairs in significant order, by a test that accounts for clusters (Fisher's exact test if there are "
    "few) with Holm's correction: by the labels; by both in the same order; by only one; by both in opposite order"
)
_CONFUSION_COLUMNS = {
    f"labelled_{ORDER_NAMES[true]}_predicted_{ORDER_NAMES[said]}": Column(
        f"labelled {ORDER_SYMBOLS[true]}, predicted {ORDER_SYMBOLS[said]}",
        "count",
        (
            "number of pairs with this order by labels (first sign) and by predictions (second sign); the system with "
            "the lower labelled rate comes first"
        ),
        shown=False,
    )
    for true in ORDER_NAMES
    for said in ORDER_NAMES
}
RANKING_OPTIONS = {
    **RANKING_PAIR_OPTIONS,
    "min_systems": "with fewer systems τ-b and r are null (at least 3; VC uses six or more)",
    "min_errors": "systems with fewer labelled errors are left out (11 reproduces VC's Table 28)",
}


AUDIT = Audit(
    name="ranking",
    title="Whether systems come out in the right order",
    question="Does an evaluator put systems in the same order as the labels do?",
    source="VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28",
    formula=(
        "For each pair, a test of two proportions at p < 0.05 gives <, = or >. The default test accounts for "
        "clusters, with Holm's correction over the pairs. An ordering error is a pair on which labels and "
        "predictions differ, mostly because only one of the two is significant. A major error (wrong order) is "
        "a pair on which both are significant and opposite. With `test: z, correction: none` you get VC's "
        "ordering error. VC's Table 28 seems to leave out systems with at most 10 labelled errors (`min_errors:"
        " 11`). τ-b and r are computed over the systems' error rates."
    ),
    text="Each pair of systems is compared twice, once by labels and once by predictions (VC §3.5).",
    remedy=(
        "If pairs are in the wrong order, rank by the labels or by `factaudit estimate`. If the labels "
        "themselves order few pairs, label more claims before you rank."
    ),
    columns={
        **pick_shared_columns(
            "dataset", "level", "evaluator", "n", "n_unscored", "n_guessed", "n_unlabelled", "reason"
        ),
        "n_systems": Column("systems", "count", _SYSTEMS_DESCRIPTION),
        "n_pairs": Column("pairs", "count", _SYSTEMS_DESCRIPTION),
        "error_rate": Column("ordering error", "percent", _ORDER_ERRORS_DESCRIPTION, bounds=True, counted_in="n_pairs"),
        "orderable": Column(
            "of a constant",
            "percent",
            (
                "share of pairs that the labels order significantly. It is the error rate of a constant evaluator, for "
                "which all systems are equal"
            ),
        ),
        "major_error_rate": Column(
            "reversed pairs", "percent", _ORDER_ERRORS_DESCRIPTION, bounds=True, counted_in="n_pairs"
        ),
        "kendall_tau": Column(
            "Kendall τ-b",
            "number",
            _CORRELATION_DESCRIPTION,
            digits=2,
            interval=OPEN_ORDERS,
            counted_in="n_systems",
        ),
        "pearson_r": Column(
            "Pearson r", "number", _CORRELATION_DESCRIPTION, digits=2, interval=FISHER, counted_in="n_systems"
        ),
        "detectable_10": Column("pairs with power for 10 points", "percent", _DETECTABLE_DESCRIPTION),
        **_CONFUSION_COLUMNS,
        "n_ordered": Column("ordered by the labels", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False),
        "n_ordered_alike": Column("ordered alike", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False),
        "n_one_sided": Column("ordered by one side", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False),
        "n_reversed": Column("reversed", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False),
        "p_reversed": Column(
            "p of a reversal",
            "p",
            ('p-value of "no pair is in the wrong order", corrected for the number of pairs'),
            shown=False,
        ),
    },
    options=RANKING_OPTIONS,
    compute=compute_ranking_agreement,
    counts="margins",
    plot=PlotSpec(
        what="How evaluators order pairs of systems",
        keys=("error_rate", "major_error_rate", "kendall_tau", "pearson_r"),
        labels={"error_rate": "ordering errors (%)", "major_error_rate": "reversed pairs (%)"},
        guides={"kendall_tau": 0, "pearson_r": 0},
        limits={"kendall_tau": (-1, 1), "pearson_r": (-1, 1)},
    ),
    checks=CHECKS,
)
