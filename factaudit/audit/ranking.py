"""Does an evaluator order systems as the labels do? (VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28)"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.arrays.system_rankings import (
    SIDES,
    PairTest,
    RankingCase,
    correlate_rates,
    list_ranking_cases,
    measure_orders,
)
from factaudit.audit.core.audit_declaration import (
    FISHER,
    OPEN_ORDERS,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, Count
from factaudit.audit.core.result_rows import (
    MOST_PRODUCT_ROWS,
    Row,
    explain_row,
    group_rows,
    tabulate,
)
from factaudit.stats.agreement import MIN_CORRELATED_SYSTEMS
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.hypothesis_tests import MultiplicityCorrection, SystemPairTest

#: The symbol of an order: system_a's error rate is significantly lower than system_b's, not
#: significantly different, or significantly higher.
ORDER_SYMBOLS = {-1: "<", 0: "=", 1: ">"}


def compute_ranking_agreement(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    test: SystemPairTest = "clustered",
    correction: MultiplicityCorrection = "holm",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How well each evaluator orders the systems of each dataset: a summary of `ranking_pairs`,
    with correlations.

    A row per dataset, level and evaluator has these figures: n_systems and n_pairs (with labelled
    and scored claims), n, n_unscored and n_guessed; the shares and numbers of pairs that
    `measure_orders` returns, of which orderable is the error_rate of a constant evaluator, because
    it rates all systems equal; and kendall_tau (tau-b) and pearson_r over the systems' error rates.

    test, correction: how pairs are ordered; ``z`` and ``none`` give VC's ordering error. error_rate
    and major_error_rate have ``_min`` and ``_max``: no way to score the unscored claims leads
    outside of them, though the worst cases of two pairs need not occur together. They have no
    interval: the number of significant pairs depends on the number of labels, so there is no true
    share to cover. If intervals are wanted, kendall_tau and pearson_r have ``_low`` and ``_high``;
    r has Fisher's z from four systems on; an interval of τ that is wider than 1 is null. Both
    correlations are null for fewer than three systems.
    """
    how, confidence = (
        PairTest(test, correction),
        None if intervals is None else intervals.confidence,
    )
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        for case in list_ranking_cases(judgements, judgements.make_groups(level, systems=True)):
            is_used = case.cells[:, :2, :2].sum((1, 2)) > 0
            used = replace(case, members=case.members[is_used])
            row: Row = {"dataset": case.dataset, "level": level}
            row["evaluator"] = judgements.evaluators[case.evaluator]
            row["n_systems"] = len(used.members)
            row |= measure_orders(used, how) | _count_ranked_claims(case, used)
            is_enough = len(used.members) >= MIN_CORRELATED_SYSTEMS
            compared = used if is_enough else replace(used, members=used.members[:0])
            row |= correlate_rates(compared, confidence)
            reasons = [
                _LEFT_OUT if len(used.members) < len(case.systems) else "",
                "" if is_enough else f"correlations need {MIN_CORRELATED_SYSTEMS} systems",
            ]
            figures = ("kendall_tau", "pearson_r")
            rows.append(explain_row(row, figures, reasons, _NO_INTERVAL))
    return sorted(rows, key=lambda row: row["dataset"])


_LEFT_OUT = "systems without labelled and scored claims are left out"
_NO_INTERVAL = (
    "it takes four systems, several clusters, a correlation that is not 1 or -1, and for τ pairs"
    " that settle half of its range"
)


def _count_ranked_claims(case: RankingCase, used: RankingCase) -> Row:
    """The numbers of claims of the systems that are compared. A system without labels is not
    compared, so its unscored claims leave nothing open here."""
    has_labels = case.cells[:, :2].any((1, 2))
    unscored, unstated = (cells[has_labels, :2, 2].sum() for cells in (case.cells, case.stated))
    counts = {"n": used.cells[:, :2, :2].sum(), "n_unscored": unscored}
    counts |= {"n_guessed": unstated - unscored, "n_unlabelled": case.cells[:, 2].sum()}
    return {key: int(value) for key, value in counts.items()}


def compute_ranking_pairs(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    test: SystemPairTest = "clustered",
    correction: MultiplicityCorrection = "holm",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The order of each pair of systems by a test of two proportions, by the labels and by the
    predictions.

    A row per dataset, level, pair and evaluator has labelled_order and predicted_order (``<``:
    system_a has the lower error rate; ``=``: no significant difference at 5 %), p_labelled and
    p_predicted (adjusted by Holm's method for the pairs of the dataset, level and evaluator), n_a
    and n_b (labels) and the four error rates. system_a is the system with the lower labelled rate.
    What the labels say is over all labels, whether the claims were scored or not. No figure here
    has an interval.

    There are no rows if there would be more than `MOST_PRODUCT_ROWS`; ask for one data set or fewer
    evaluators then.
    """
    how = PairTest(test, correction)
    groups = [judgements.make_groups(level, systems=True) for level in dict.fromkeys(levels)]
    cases = [case for each in groups for case in list_ranking_cases(judgements, each)]
    if sum(math.comb(len(case.members), 2) for case in cases) > MOST_PRODUCT_ROWS:
        return []
    cases.sort(key=lambda case: case.dataset)
    return [
        row
        for case in cases
        if len(case.members) > 1
        for row in _tabulate_pairs(case, how, judgements.evaluators)
    ]


def _tabulate_pairs(case: RankingCase, how: PairTest, evaluators: Sequence[str]) -> list[Row]:
    """The pairs of systems of one dataset at one level, as one evaluator sees them."""
    first, second = np.triu_indices(len(case.members), 1)
    is_turned = case.compare_pairs("labelled") > 0
    places = {"a": np.where(is_turned, second, first), "b": np.where(is_turned, first, second)}
    level, names = case.groups.level, np.array(case.systems)
    figures, orders, reasons = {}, {}, {}
    for kind in SIDES:
        p, order = case.order_pairs(kind, how)
        figures[f"p_{kind}"] = Figure(p)
        orders[f"{kind}_order"] = [
            None if np.isnan(one) else ORDER_SYMBOLS[int(one)]
            for one in np.where(is_turned, -order, order)
        ]
        for side, at in places.items():
            figures[f"{kind}_error_rate_{side}"] = Figure(case.error_rates(kind)[at])
        what = "labelled" if kind == "labelled" else "labelled and scored"
        reasons[f"of a system no {level} is {what}"] = np.isnan(p)
    keys = [
        {"dataset": case.dataset, "level": level, "system_a": name_a, "system_b": name_b}
        | {"evaluator": evaluators[case.evaluator]}
        for name_a, name_b in zip(*(names[at].tolist() for at in places.values()), strict=True)
    ]
    n_labels = case.cells[:, :2].sum((1, 2))
    counts = {f"n_{side}": n_labels[at] for side, at in places.items()} | orders
    return tabulate(keys, counts, figures, reasons)


# ---- checks


def list_compared_orders(run: AuditedRun) -> list[Row]:
    """A row per data set and evaluator, at claim level, whose pairs of systems were compared.

    ``p_n_reversed`` is the p-value of the hypothesis that no pair is in the wrong order. It is 1 if
    the unscored claims could undo a reversal.
    """
    rows = [row for row in run.per_dataset("ranking", "n_reversed") if row["level"] == "claim"]
    return [
        row
        | {"p_n_reversed": row.get("p_reversed") if row.get("major_error_rate_min") != 0 else 1.0}
        for row in rows
    ]


def _list_orders_by_labels(run: AuditedRun) -> list[Row]:
    """A row per data set. The labels are the same for all evaluators, so the evaluator that scored
    the fewest claims counts."""
    rows = group_rows((row for row in list_compared_orders(run) if row["n"] is not None), "dataset")
    least = [min(mine, key=lambda row: row["n"]) for mine in rows.values()]
    return [row | {"evaluator": None} for row in least]


ORDER_CHECK = Check(
    id="order",
    title="Systems in the wrong order",
    rows=list_compared_orders,
    figure="n_reversed",
    says="{evaluator} puts {n_reversed} of {n_pairs:number pair} of systems{on} {verdict}.",
    beyond="in the wrong order",
    advice="Do not rank systems by it.",
    null=(
        "no pair of systems is in one order by the labels and in the reverse order by an evaluator"
    ),
)
POWER_CHECK = Count(
    id="power",
    title="Too few labels to tell systems apart",
    rows=_list_orders_by_labels,
    figure="orderable",
    limit=lambda limits: limits.min_orderable,
    side="under",
    by=(),
    says=(
        "Labelled error rates differ significantly for {n_ordered} of {n_pairs:number pair} of "
        "systems{on}, {verdict}."
    ),
    beyond="too few to judge rankings",
    advice="Two systems without a significant difference may still differ: label more claims.",
    null="on every data set the labels order a quarter of the pairs",
    on_screen=True,
)


# ---- declaration

_ORDER_ERRORS_DESCRIPTION = (
    "share of pairs that labels and predictions order differently; for the major error "
    "rate, significantly in opposite order"
)
_CORRELATION_DESCRIPTION = "τ-b and r over the systems' error rates"
_SYSTEMS_DESCRIPTION = "systems with labelled and scored claims, and the number of their pairs"
_CLUSTERED_ORDERS_DESCRIPTION = (
    "number of pairs in significant order: by the labels; by both in the same order; by only one;"
    " by both in opposite order"
)
_OPTIONS = {
    "levels": "`claim`, `response`",
    "test": (
        "`clustered` (Student's t with the effective sample size of the clusters, Fisher's exact"
        " test if it is small) or `z` (VC's test, which treats claims as independent)"
    ),
    "correction": (
        "`holm` over the pairs of a data set, level and evaluator, or `none`; `test: z` with"
        " `correction: none` gives VC's ordering error"
    ),
}
_PAIR_DESCRIPTION = "the two systems; the one with the lower labelled error rate comes first"


_ORDER_DESCRIPTION = "`<`: a has significantly fewer errors; `=`: no significant difference; `>`"
_P_DESCRIPTION = (
    "two-sided p-values of the tests of two proportions, corrected for the number of pairs as"
    " `correction` says"
)
_PAIR_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("dataset", "level", "evaluator"),
    "system_a": Column("system a", "text", _PAIR_DESCRIPTION, key=True),
    "system_b": Column("system b", "text", _PAIR_DESCRIPTION, key=True),
    **pick_shared_columns("reason"),
    "n_a": Column("n a", "count", "labelled claims of each"),
    "n_b": Column("n b", "count", "labelled claims of each"),
    **{
        f"{kind}_error_rate_{side}": Column(
            f"{kind} error rate {side}", "percent", "the four error rates"
        )
        for kind in ("labelled", "predicted")
        for side in "ab"
    },
    "labelled_order": Column("labelled order", "text", _ORDER_DESCRIPTION),
    "predicted_order": Column("predicted order", "text", _ORDER_DESCRIPTION),
    "p_labelled": Column("p labelled", "p", _P_DESCRIPTION),
    "p_predicted": Column("p predicted", "p", _P_DESCRIPTION),
}

_SUMMARY = Audit(
    name="ranking",
    title="Whether systems come out in the right order",
    question="Does an evaluator put systems in the same order as the labels do?",
    source="VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28",
    formula=(
        "For each pair, a test of two proportions at p < 0.05 gives <, = or >. The default test"
        " accounts for clusters, with Holm's correction over the pairs. An ordering error is a pair"
        " on which labels and predictions differ, mostly because only one of the two is"
        " significant. A major error (wrong order) is a pair on which both are significant and"
        " opposite. With `test: z, correction: none` you get VC's ordering error. τ-b and r"
        " are computed over the systems' error rates."
    ),
    text=(
        "Each pair of systems is compared twice, once by labels and once by predictions (VC §3.5)."
    ),
    remedy=(
        "If pairs are in the wrong order, rank by the labels or by `factaudit estimate`. If the"
        " labels themselves order few pairs, label more claims before you rank."
    ),
    columns={
        **pick_shared_columns(
            "dataset",
            "level",
            "evaluator",
            "n",
            "n_unscored",
            "n_guessed",
            "n_unlabelled",
            "reason",
        ),
        "n_systems": Column("systems", "count", _SYSTEMS_DESCRIPTION),
        "n_pairs": Column("pairs", "count", _SYSTEMS_DESCRIPTION),
        "error_rate": Column(
            "ordering error",
            "percent",
            _ORDER_ERRORS_DESCRIPTION,
            bounds=True,
            counted_in="n_pairs",
        ),
        "orderable": Column(
            "of a constant",
            "percent",
            "share of pairs that the labels order significantly. It is the error rate of a constant"
            " evaluator, for which all systems are equal",
        ),
        "major_error_rate": Column(
            "reversed pairs",
            "percent",
            _ORDER_ERRORS_DESCRIPTION,
            bounds=True,
            counted_in="n_pairs",
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
            "Pearson r",
            "number",
            _CORRELATION_DESCRIPTION,
            digits=2,
            interval=FISHER,
            counted_in="n_systems",
        ),
        "n_ordered": Column(
            "ordered by the labels", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False
        ),
        "n_ordered_alike": Column(
            "ordered alike", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False
        ),
        "n_one_sided": Column(
            "ordered by one side", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False
        ),
        "n_reversed": Column("reversed", "count", _CLUSTERED_ORDERS_DESCRIPTION, shown=False),
        "p_reversed": Column(
            "p of a reversal",
            "p",
            'p-value of "no pair is in the wrong order", by the clustered test, corrected for the'
            " number of pairs",
            shown=False,
        ),
    },
    options=_OPTIONS,
    compute=compute_ranking_agreement,
    counts="margins",
    plot=PlotSpec(
        what="How evaluators order pairs of systems",
        keys=("error_rate", "major_error_rate", "kendall_tau", "pearson_r"),
        labels={"error_rate": "ordering errors (%)", "major_error_rate": "reversed pairs (%)"},
        guides={"kendall_tau": 0, "pearson_r": 0},
        limits={"kendall_tau": (-1, 1), "pearson_r": (-1, 1)},
    ),
    checks=(ORDER_CHECK, POWER_CHECK),
)
_PAIRS = Audit(
    name="ranking_pairs",
    title="The pairs of systems one by one",
    question="In which order does an evaluator put each two systems, and how sure is it?",
    source="VC §3.5",
    formula=(
        "< means that the first system has significantly fewer errors than the second; = means that"
        " the test cannot tell. p is corrected (Holm) for the pairs of a data set, level and"
        " evaluator, unless `correction: none` is set."
    ),
    text="The pairs behind the section above, one by one.",
    remedy=(
        "If the labels do not order a pair, no order is known to be right: say so, or label more"
        " claims of the two systems."
    ),
    columns=_PAIR_COLUMNS,
    options=_OPTIONS,
    compute=compute_ranking_pairs,
    counts="margins",
)
AUDITS = (_SUMMARY, _PAIRS)
