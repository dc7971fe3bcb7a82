"""Do an evaluator's grades agree with people's, where both are more than right and wrong?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.arrays.graded_claims import (
    GradedClaims,
    choose_evaluator_grade_fields,
    collect_graded_claims,
    has_people_grades,
)
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.decision_limits import read_decision_limits, unscored_share_for_decision
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_significant_rows_by_evaluator,
    make_row_finding,
)
from factaudit.audit.core.interval_methods import FISHER_JACKKNIFE, JACKKNIFE
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_row_intervals
from factaudit.audit.core.significance import p_below_limit, p_beyond_limit, select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.stats.agreement import correlation_interval, krippendorff_alpha, spearman, weighted_kappa
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS, Scale, Statistic, interval, mean
from factaudit.stats.undefined_values import name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons

#: An evaluator whose ρ is under this hardly follows people's grades.
LEAST_RANK_CORRELATION = 0.2
#: The share of the scale's length by which grades may be off on average.
MAX_GRADE_SHIFT = 0.05
_COEFFICIENTS = ("rho", "kappa", "alpha", "alpha_people", "ceiling", "room")
_NO_COEFFICIENT_INTERVAL = f"fewer than {MIN_CLUSTERS} clusters, or grades agree wholly"
_NO_MEAN_INTERVAL = f"{FEW_CLUSTERS}, or grades alike in all"


def compute_grade_agreement(
    judgements: Judgements,
    *,
    order: Sequence[str] | None = None,
    scale: tuple[float, float] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How an evaluator's grades agree with people's: a row per dataset with grades of people and evaluator.

    order: people's grades from the lowest to the highest where they are words. scale: the lowest and highest grade of
    people and evaluators alike; by default that of their grades, where both have the same ends. Raises `UsageError` for
    a word that order lacks, and for grades of people outside of the scale.

    measure: ``grade``, or ``score`` of an evaluator that gives no grade. n: claims with a grade of both; n_unscored:
    those that people alone graded. rho: Spearman's ρ. kappa (quadratic weights), alpha (Krippendorff's, ordinal), mae
    (the mean of \\|grade - people's\\|) and difference (the mean of grade - people's) need one scale, of which lowest
    and highest are the ends. alpha_people: α of the annotators of n_several claims; ceiling: ρ of each one's grade with
    the lower median of the others'; room: ceiling - the evaluator's ρ with the same medians, paired. With intervals
    ``_low`` and ``_high``; mae and difference have bounds, whatever the missing grades are.
    """
    measures, rows = choose_evaluator_grade_fields(judgements), []
    for claims in collect_graded_claims(judgements, order):
        claims.check_people_on_scale(scale)
        among_people = _compute_annotator_agreement(claims, intervals)
        for at, evaluator in enumerate(judgements.evaluators):
            both = ~np.isnan(claims.evaluators[at])
            row: Row = {"dataset": claims.dataset, "evaluator": evaluator, "measure": measures[at]}
            row |= {"n": int(both.sum()), "n_unscored": int((~both).sum())}
            row["n_clusters"] = len(np.unique(claims.cluster[both]))
            row |= _compute_grade_agreement_figures(claims, at, scale, intervals) | among_people
            row |= _compute_grade_ceiling_gap(claims, at, intervals)
            rows.append(row | {"reason": _explain_grade_agreement_row(claims, at, row)})
    return rows


def _compute_grade_agreement_figures(
    claims: GradedClaims, evaluator: int, scale: tuple[float, float] | None, intervals: ClusterBootstrap | None
) -> Row:
    both = ~np.isnan(claims.evaluators[evaluator])
    given, people, cluster = (each[both] for each in (claims.evaluators[evaluator], claims.people, claims.cluster))
    row = _build_grade_correlation_figures("rho", spearman(given, people), cluster, intervals)
    common = claims.find_common_scale(evaluator, scale)
    if common is None:
        given, people, cluster = given[:0], people[:0], cluster[:0]
    row |= _build_grade_correlation_figures(
        "kappa", weighted_kappa(given, people), cluster, intervals, telling=given != people
    )
    unit = np.tile(np.arange(len(given)), 2)
    alpha = krippendorff_alpha(np.concatenate([given, people]), unit, len(given), ordinal=True)
    row |= _build_grade_correlation_figures("alpha", alpha, cluster, intervals)
    lowest, highest = common or (np.nan, np.nan)
    apart, alone = given - people, claims.people[~both]
    farthest = np.maximum(alone - lowest, highest - alone)
    error, nearest = np.abs(apart), np.zeros(len(alone))
    row |= _build_grade_mean_figures("mae", error, cluster, nearest, farthest, intervals, "log")
    row |= _build_grade_mean_figures("difference", apart, cluster, lowest - alone, highest - alone, intervals)
    return row | {"lowest": none_if_undefined(lowest), "highest": none_if_undefined(highest)}


def _compute_annotator_agreement(claims: GradedClaims, intervals: ClusterBootstrap | None) -> Row:
    """What the grades of several annotators say of each other, without any evaluator."""
    units, unit = np.unique(claims.annotated, return_inverse=True)
    alpha = krippendorff_alpha(claims.own, unit, len(units), ordinal=True)
    row: Row = {"n_several": len(units)}
    row |= _build_grade_correlation_figures("alpha_people", alpha, claims.cluster[units], intervals)
    ceiling = spearman(claims.own, claims.others)
    return row | _build_grade_correlation_figures("ceiling", ceiling, claims.cluster[claims.annotated], intervals)


def _compute_grade_ceiling_gap(claims: GradedClaims, evaluator: int, intervals: ClusterBootstrap | None) -> Row:
    given = claims.evaluators[evaluator][claims.annotated]
    known, cluster = ~np.isnan(given), claims.cluster[claims.annotated]
    ceiling = spearman(claims.own, claims.others)
    mine = spearman(given[known], claims.others[known])
    change = ceiling.influence.copy()
    change[known] -= mine.influence
    room = Statistic(ceiling.point - mine.point, change)
    row: Row = {"room": none_if_undefined(room.point)}
    if intervals is not None:
        ends = interval(room, cluster, confidence=intervals.confidence, min_clusters=MIN_CLUSTERS)
        row |= name_ends("room", ends)
    return row


def _build_grade_correlation_figures(
    key: str,
    statistic: Statistic,
    cluster: np.ndarray,
    intervals: ClusterBootstrap | None,
    telling: np.ndarray | None = None,
) -> Row:
    row: Row = {key: none_if_undefined(statistic.point)}
    if intervals is not None:
        row |= name_ends(key, correlation_interval(statistic, cluster, intervals.confidence, telling))
    return row


def _build_grade_mean_figures(
    key: str,
    values: np.ndarray,
    cluster: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
    intervals: ClusterBootstrap | None,
    scale: Scale = "identity",
) -> Row:
    """A mean with its bounds and interval; least, most: what the missing values could be (NaN: not known)."""
    found = mean(values)
    n, point = len(values) + len(least), none_if_undefined(found.point)
    row: Row = {key: point}
    for end, missing, pick in (("min", least, min), ("max", most, max)):
        is_open = point is not None and len(missing)
        row[f"{key}_{end}"] = none_if_undefined(pick((values.sum() + missing.sum()) / n, point)) if is_open else point
    if intervals is not None:
        row |= name_ends(key, interval(found, cluster, scale, intervals.confidence))
    return row


def _explain_grade_agreement_row(claims: GradedClaims, evaluator: int, row: Row) -> str | None:
    given = claims.evaluators[evaluator]
    if not row["n"]:
        return f"the evaluator gives no {row['measure']} of a claim that people graded"
    why = []
    if row["rho"] is None:
        one = "people" if np.ptp(claims.people[~np.isnan(given)]) == 0 else "the evaluator"
        why.append(f"rho: of the claims that both graded {one} gave one grade only")
    if row["lowest"] is None:
        its, theirs = (f"{np.nanmin(one):g} to {np.nanmax(one):g}" for one in (given, claims.people))
        text = f"kappa, alpha, mae, difference: people's grades run from {theirs}, its {row['measure']}s from {its}"
        why.append(f"{text}; where both are on one scale, say it (option scale)")
    elif row["kappa"] is None:
        why.append("kappa, alpha: all grades are the same")
    if not row["n_several"]:
        why.append("alpha_people, ceiling, room: no claim has grades of several annotators")
    elif row["room"] is None or row["alpha_people"] is None:
        why.append("alpha_people, ceiling, room: annotators, or the evaluator, gave one grade only where several did")
    why.append(explain_missing_row_intervals(row, _NO_COEFFICIENT_INTERVAL, _COEFFICIENTS))
    why.append(explain_missing_row_intervals(row, _NO_MEAN_INTERVAL, ("mae", "difference")))
    return join_reasons(why)


# ----------------------------------------------------------------------------------------------------------- findings


def _find_low_grade_agreement(audited_run: AuditedRun) -> Iterator[Finding]:
    """Grades that hardly follow people's; not said where so many are missing that they could."""
    most = read_decision_limits(audited_run).max_unscored
    every = [row for row in audited_run.per_dataset("grades", "rho") if unscored_share_for_decision(row) <= most]
    p_values = [p_below_limit(audited_run, row, "rho", LEAST_RANK_CORRELATION) for row in every]
    unrelated = select_significant_rows(audited_run, every, p_values)
    for evaluator, mine, rows in group_significant_rows_by_evaluator(every, unrelated):
        worst = min(mine, key=lambda row: row["rho"])
        statement = make_statement(
            "The {worst.measure}s of {evaluator} hardly follow human grades{where}. On {worst.dataset}, "
            "Spearman's ρ is "
            "{worst.rho:hundredths}, significantly lower than {limit:hundredths}. Do not rank anything by them.",
            evaluator=evaluator,
            where=format_how_many_datasets(mine, rows),
            worst=worst,
            limit=LEAST_RANK_CORRELATION,
        )
        yield make_row_finding("fail", worst, statement, "rho", "rho_low", "rho_high", "n")


def _find_shifted_evaluator_grades(audited_run: AuditedRun) -> Iterator[Finding]:
    """Grades that are higher, or lower, than people's on average."""
    every = list(audited_run.per_dataset("grades", "difference"))
    p_values = [
        p_beyond_limit(audited_run, row, "difference", MAX_GRADE_SHIFT * (row["highest"] - row["lowest"]))
        for row in every
    ]
    shifted = select_significant_rows(audited_run, every, p_values)
    for evaluator, mine, rows in group_significant_rows_by_evaluator(every, shifted):
        worst = max(mine, key=lambda row: abs(row["difference"]))
        statement = make_statement(
            f"{{evaluator}} gives significantly {'higher' if worst['difference'] > 0 else 'lower'} grades than people"
            "{where}. On {worst.dataset}, the mean difference is {worst.difference:hundredths} on a scale from "
            "{worst.lowest:threshold} to {worst.highest:threshold}. Do not report its mean grade as a human grade.",
            evaluator=evaluator,
            where=format_how_many_datasets(mine, rows),
            worst=worst,
        )
        keys = ("difference", "difference_low", "difference_high", "mae", "n")
        yield make_row_finding("warn", worst, statement, *keys)


# -------------------------------------------------------------------------------------------------------- declarations

_MEASURE_COLUMN = Column("of its", "text", "what is compared: the evaluator's `grade`, else its `score`")
_GRADE_OPTIONS = {
    "order": "human grades from the lowest to the highest, if they are words",
    "scale": (
        "the lowest and the highest grade, the same for people and evaluators; by default it is known if both "
        "have the same ends"
    ),
}
_ENDS_DESCRIPTION = "ends of the scale that both use"


def _declare_coefficient(heading: str, what: str, interval: str = FISHER_JACKKNIFE) -> Column:
    return Column(heading, "number", what, digits=2, interval=interval)


def _declare_mean(heading: str, what: str) -> Column:
    return Column(heading, "number", what, digits=2, bounds=True, interval=JACKKNIFE)


AUDITS = (
    Audit(
        name="grades",
        after="label_rules",
        title="How far an evaluator's grades agree with people's",
        question="Do an evaluator's grades or scores agree with human grades?",
        source="Spearman 1904; Cohen 1968; Krippendorff 2011 (α)",
        formula=(
            "ρ = Pearson's r of the midranks (Spearman). κ = 1 − mean (grade − human grade)² / its value "
            "expected by chance. α = Krippendorff's, ordinal. MAE = mean |grade − human grade|; difference = "
            "mean (grade − human grade). Ceiling = ρ of one annotator's grade with the lower median of the "
            "others'. Room = ceiling − the evaluator's ρ with the same medians."
        ),
        text=(
            "ρ compares the order only; κ, α, MAE and difference compare the grades themselves, on one scale. If "
            "several annotators graded a claim, its grade is their lower median, so that a cut of it is their "
            "majority. An evaluator cannot be shown to agree with people more than people agree with each other. A"
            " grade whose status is not ok counts as missing."
        ),
        remedy=(
            "If ρ is near 0, choose another evaluator. If ρ is near the ceiling but κ is low, the order is right"
            " and the grades are shifted: map them with labels of your own. If the ceiling is low, improve the "
            "guideline."
        ),
        columns={
            **pick_shared_columns("dataset", "evaluator"),
            "measure": _MEASURE_COLUMN,
            **pick_shared_columns("n", "n_unscored", "reason"),
            "n_clusters": Column("clusters", "count", "clusters of claims that the intervals rest on", shown=False),
            "rho": _declare_coefficient("Spearman's ρ", "Spearman's ρ of the evaluator's grades with human grades"),
            "kappa": _declare_coefficient("weighted κ", "Cohen's κ with quadratic weights"),
            "alpha": _declare_coefficient("α", "Krippendorff's α (ordinal) of human grades and the evaluator's"),
            "mae": _declare_mean("MAE", "mean absolute error, in grades"),
            "difference": _declare_mean("difference", "mean of the evaluator's grade − the human grade"),
            "lowest": Column("lowest", "number", _ENDS_DESCRIPTION, shown=False),
            "highest": Column("highest", "number", _ENDS_DESCRIPTION, shown=False),
            "n_several": Column("by several", "count", "claims with grades from several annotators", shown="any"),
            "alpha_people": _declare_coefficient("α of people", "Krippendorff's α (ordinal) of the annotators"),
            "ceiling": _declare_coefficient("ceiling", "ρ of one annotator with the others"),
            "room": _declare_coefficient("room", "ceiling − ρ of the evaluator with the same others", JACKKNIFE),
        },
        options=_GRADE_OPTIONS,
        compute=compute_grade_agreement,
        applies=has_people_grades,
        without_labels=True,
        plot=PlotSpec(
            what="How far the order of an evaluator's grades, and its grades, are people's",
            keys=("rho", "kappa"),
            guides={"rho": 0, "kappa": 0},
            reference="ceiling",
        ),
        checks=(
            Check(
                "grade_order",
                "Grades that do not follow human grades",
                "Spearman's ρ between an evaluator's grades and human grades is below 0.2",
                _find_low_grade_agreement,
                null="ρ is 0.2 or more, on every data set",
                controls="Holm over all evaluators[ on all data sets]",
                figure="rho",
                gravity=lambda evidence: -evidence["rho"],
            ),
            Check(
                "grade_shift",
                "Grades that are higher or lower than human grades",
                "an evaluator's mean grade differs from the human mean by more than 5 % of the scale",
                _find_shifted_evaluator_grades,
                null="mean grades differ by at most 5 % of the scale, on every data set",
                controls="Holm over all evaluators[ on all data sets]",
                figure="difference",
            ),
        ),
    ),
)
