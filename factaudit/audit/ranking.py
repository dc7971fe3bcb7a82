"""Does an evaluator order systems as the labels do? (VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28)"""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.arrays import confusion_counts
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.arrays.system_rankings import (
    ORDER_NAMES,
    PAIR_DETECTION_POWER,
    REVERSED_PAIR_KEYS,
    SystemPairTest,
    bound_system_ranking_errors,
    compute_system_rankings,
    correlate_system_rankings,
    count_reversed_system_rankings,
    cross_tabulate_system_rankings,
    least_rankable_system_difference,
    system_ranking_error_shares,
    system_ranking_power,
)
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditDecisionColumn,
    Column,
    pick_shared_columns,
)
from factaudit.audit.core.interval_methods import FISHER, ORDER_BOOTSTRAP
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row, explain_missing_labels
from factaudit.audit.ranking_checks import (
    RANKING_CHECKS,
    decide_on_ranking_systems,
)
from factaudit.audit.ranking_pairs import (
    DETECTABLE_POINTS,
    ORDER_SYMBOLS,
    RANKING_PAIR_OPTIONS,
    SystemRankingCase,
    check_system_pair_test,
    iterate_ranking_cases,
)
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.multiplicity import MultiplicityCorrection
from factaudit.stats.rank_correlation import MIN_CORRELATED_SYSTEMS
from factaudit.text.display_text import format_count, join_reasons

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
    kendall_tau (tau-b) and pearson_r over the systems' error rates, detectable_5 and detectable_10 (the share of pairs
    whose labels would show a difference of 5 and 10 points with a `power` of at least 80 %), detectable_difference
    (what half of the pairs would show so), and the confusion of orders as ``labelled_lt_predicted_gt`` and so on
    (numbers of pairs), the system with the lower labelled rate being the first of a pair.

    test, correction: how pairs are ordered; ``z`` and ``none`` give VC's ordering error.
    error_rate and major_error_rate have ``_min`` and ``_max``: no way to score what is unscored leads outside of them,
    though the worst cases of two pairs need not go together. They have no interval: how many pairs are significant
    depends on the number of labels, so there is no true share to hold. With intervals kendall_tau and pearson_r have
    ``_low`` and ``_high``, r (Fisher's z) from four systems on; an interval of τ that is wider than 1 is null.
    """
    if min_systems < MIN_CORRELATED_SYSTEMS:
        raise UsageError(f"ranking: expected min_systems of at least {MIN_CORRELATED_SYSTEMS}, found {min_systems}")
    check_system_pair_test(test)
    rows: list[Row] = []
    for case in iterate_ranking_cases(judgements, levels, min_errors, intervals):
        counts = case.counts[case.is_used]
        row: Row = {"dataset": case.dataset, "level": case.level, "evaluator": case.evaluator}
        rates = case.estimate_error_rates(case.is_used) if len(counts) else None
        how = correction, rates if test == "clustered" else None
        orders = compute_system_rankings(counts, alpha, *how)
        labelled, predicted = orders["labelled_order"], orders["predicted_order"]
        row |= {"n_systems": len(counts), "n_pairs": len(labelled)}
        sizes = confusion_counts.count_scored_confusion_cells(case.counts, case.certain_counts)
        # Of a system without labels nothing is compared: what of it is unscored leaves nothing open here.
        has_labels = ~confusion_counts.is_group_unlabelled(case.counts)
        row |= {"n": int(counts[:, :2, :2].sum())}
        row |= {key: int(sizes[key][has_labels].sum()) for key in ("n_unscored", "n_guessed")}
        row |= {"n_unlabelled": int(sizes["n_unlabelled"].sum())}
        row |= system_ranking_error_shares(labelled, predicted)
        certain_counts = case.certain_counts[case.is_used]
        # Where every labelled claim is scored nothing is open, and clusters are not asked for.
        by_cluster = test == "clustered" and certain_counts[:, :2, 2].any()
        certain = case.count_used_certain_clusters() if by_cluster else None
        row |= bound_system_ranking_errors(certain_counts, labelled, predicted, alpha, correction, certain)
        row |= correlate_system_rankings(counts, case.resampled_counts, min_systems, intervals)
        says_nothing = _is_tau_interval_too_wide(row)
        row |= dict.fromkeys(("kendall_tau_low", "kendall_tau_high")) if says_nothing else {}
        for points in DETECTABLE_POINTS:
            powers = system_ranking_power(counts, points / 100, alpha, *how)
            row[f"detectable_{points}"] = float((powers >= PAIR_DETECTION_POWER).mean()) if len(powers) else None
        row["detectable_difference"] = least_rankable_system_difference(counts, alpha, *how)
        row |= cross_tabulate_system_rankings(counts, labelled, predicted)
        row |= dict.fromkeys(REVERSED_PAIR_KEYS) if rates is None else count_reversed_system_rankings(rates, alpha)
        rows.append(row | {"reason": _explain_ranking_row(case, row, min_systems, min_errors, says_nothing)})
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _is_tau_interval_too_wide(row: Row) -> bool:
    low, high = row.get("kendall_tau_low"), row.get("kendall_tau_high")
    return low is not None and high is not None and high - low > MAX_TAU_INTERVAL_WIDTH


def _explain_ranking_row(
    case: SystemRankingCase, row: Row, min_systems: int, min_errors: int, is_tau_too_wide: bool
) -> str | None:
    few: list[str] = []
    unscored: list[str] = []
    unlabelled: list[str] = []
    for system, used, of in zip(case.systems, case.is_used, case.counts, strict=True):
        if not used:
            (few if of[:2, :2].sum() else unscored if of[:2].sum() else unlabelled).append(system)
    n = row["n_systems"]
    compared = f"{format_count(n, 'system')} to compare, of {len(case.systems)}"
    # Two systems are a pair all the same: the reason is that of the correlations alone.
    undefined = compared if n < 2 else f"{compared}, and correlations need {min_systems}: kendall_tau, pearson_r"
    return join_reasons(
        [
            f"fewer than {format_count(min_errors, 'labelled error')}: {', '.join(few)}" if few else "",
            f"no labelled {case.level} is scored: {', '.join(unscored)}" if unscored else "",
            f"{explain_missing_labels(case.level)}: {', '.join(unlabelled)}" if unlabelled else "",
            undefined if n < min_systems else "",
            "all systems have the same error rate" if n >= min_systems and row["kendall_tau"] is None else "",
            _explain_missing_ranking_correlation(row, is_tau_too_wide),
        ]
    )


def _explain_missing_ranking_correlation(row: Row, is_tau_too_wide: bool) -> str:
    too_wide = "no interval of τ: it would be wider than half of the range of τ" if is_tau_too_wide else ""
    if row.get("pearson_r") is None or row.get("pearson_r_low", 0) is not None:
        return too_wide
    if row["n_systems"] < 4:
        return join_reasons([too_wide, "no interval of r below four systems"]) or ""
    if is_tau_too_wide or row["kendall_tau_low"] is not None:
        return join_reasons([too_wide, "no interval of r: it is 1 or -1"]) or ""
    return "no interval: too few clusters"


# --------------------------------------------------------------------------------------------------------- declaration

_ORDER_ERRORS_DESCRIPTION = (
    "share of pairs that labels and predictions order differently; for the major error "
    "rate, significantly in opposite order"
)
_CORRELATION_DESCRIPTION = "τ-b and r over the systems' error rates"
_DETECTABLE_DESCRIPTION = (
    "share of pairs with labels enough to detect a true difference of 5 (or 10) points with 80 % power"
)
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
    after="headroom",
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
            interval=ORDER_BOOTSTRAP,
            counted_in="n_systems",
        ),
        "pearson_r": Column(
            "Pearson r", "number", _CORRELATION_DESCRIPTION, digits=2, interval=FISHER, counted_in="n_systems"
        ),
        **{
            f"detectable_{points}": Column(f"pairs with power for {points} points", "percent", _DETECTABLE_DESCRIPTION)
            for points in DETECTABLE_POINTS
        },
        "detectable_difference": Column(
            "half of the pairs show",
            "points",
            "the difference that half of the pairs have labels enough to detect with 80 % power",
            signed=False,
        ),
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
    checks=RANKING_CHECKS,
    decides=(AuditDecisionColumn("rank systems", decide_on_ranking_systems),),
)
