"""Do an evaluator's grades agree with those by people, where both are more than right and wrong?

ρ compares the order of the grades. κ and the difference compare the grades themselves, on one
scale.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import (
    FISHER_JACKKNIFE,
    JACKKNIFE,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.audited_run import AuditedRun, open_share
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, explain_row
from factaudit.errors import UsageError
from factaudit.stats import name_ends, name_figure
from factaudit.stats.agreement import correlation_interval, spearman, weighted_kappa
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS, Statistic, interval, mean
from factaudit.tables import STATUSES, find_claim_positions
from factaudit.tables.schema import GRADE_COLUMN

#: With a lower ρ than this, an evaluator hardly follows the grades by people.
LEAST_RANK_CORRELATION = 0.2

Scale = tuple[float, float]


def compute_grade_agreement(
    judgements: Judgements,
    *,
    scale: Scale | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How an evaluator's grades agree with those by people: a row per dataset with grades of both.

    scale: the lowest and the highest grade for people and evaluators alike; by default that of
    their grades, if both have the same ends. Raises `UsageError` for grades that are words, and for
    grades by people outside the scale.

    measure: ``grade``, or ``score`` for an evaluator that gives no grade. A grade whose status is
    not ok does not count. n: claims with a grade of both; n_unscored: those that only people
    graded. rho: Spearman's ρ. kappa (quadratic weights) and difference (the mean of grade - human
    grade) need one scale with a lowest and a highest grade.
    """
    people = _collect_people_grades(judgements)
    is_ok = judgements.status == STATUSES.index("ok")
    rows = []
    for place, dataset in enumerate(judgements.dataset_names):
        inside = np.flatnonzero((judgements.dataset_codes == place) & ~np.isnan(people))
        if not len(inside):
            continue
        least, most = people[inside].min(), people[inside].max()
        if scale is not None and not (scale[0] <= least and most <= scale[1]):
            raise UsageError(
                f"grades: expected people's grades from {scale[0]:g} to {scale[1]:g}, found"
                f" {least:g} to {most:g} on {dataset}"
            )
        for at, evaluator in enumerate(judgements.evaluators):
            measure, given = "score", judgements.score[at]
            if judgements.grade is not None and not np.isnan(judgements.grade[at]).all():
                measure, given = "grade", judgements.grade[at]
            given = np.where(is_ok[at], given, np.nan)
            # The rounding of a sum depends on the order of its terms, so they are put into an order
            # that does not depend on the rows.
            cluster = judgements.cluster_codes
            rank = inside[np.lexsort((given[inside], people[inside], cluster[inside]))]
            figures = _compare_grades(given[rank], people[rank], cluster[rank], scale, intervals)
            row = {"dataset": dataset, "evaluator": evaluator, "measure": measure} | figures
            why = ["" if row["n"] else "no claim that people graded has a grade by the evaluator"]
            if row["n"] and row["lowest"] is None:
                why.append(
                    "kappa, difference: grades are on different scales; where they are not, say it"
                    " (option scale)"
                )
            cause = (
                f"fewer than {MIN_CLUSTERS} clusters (of a difference: 2), or grades agree wholly"
            )
            rows.append(explain_row(row, ("rho", "kappa", "difference"), why, cause))
    return rows


def _compare_grades(
    given: np.ndarray,
    people: np.ndarray,
    cluster: np.ndarray,
    scale: Scale | None,
    intervals: ClusterBootstrap | None,
) -> Row:
    """The figures of n claims that people graded. given: float (n,), NaN if the evaluator gave no
    grade."""
    both = ~np.isnan(given)
    alone, ends = people[~both], _find_common_scale(given[both], people, scale)
    given, people, cluster = given[both], people[both], cluster[both]
    rho, kappa, difference = (
        spearman(given, people),
        weighted_kappa(given, people),
        mean(given - people),
    )
    row: Row = {"n": len(given), "n_unscored": len(alone), "n_clusters": len(np.unique(cluster))}
    row |= {"lowest": None, "highest": None}
    bounds = (np.nan, np.nan)
    if ends is None:  # without a common scale only orders can be compared
        kappa = difference = Statistic.undefined(len(given))
    else:
        row |= {"lowest": ends[0], "highest": ends[1]}
        bounds = (difference.point, difference.point)
        if len(alone):
            # The bounds: all missing grades are at one end of the scale.
            total = given.sum() - people.sum()
            least, most = (float((total + (end - alone).sum()) / len(both)) for end in ends)
            bounds = min(least, difference.point), max(most, difference.point)
    row |= name_ends("difference", bounds, ("min", "max"))
    of_rho = of_kappa = of_difference = None
    if intervals is not None:
        level = intervals.confidence
        of_rho = correlation_interval(rho, cluster, level)
        of_kappa = correlation_interval(kappa, cluster, level, telling=given != people)
        of_difference = interval(difference, cluster, confidence=level)
    row |= name_figure("rho", rho.point, of_rho)
    row |= name_figure("kappa", kappa.point, of_kappa)
    return row | name_figure("difference", difference.point, of_difference)


def _find_common_scale(given: np.ndarray, people: np.ndarray, scale: Scale | None) -> Scale | None:
    """The ends of the scale that people and an evaluator share; None if it is not known.

    scale: what the user says; otherwise both must have the same lowest and the same highest grade.
    """
    if not len(given):
        return None
    low, high = float(given.min()), float(given.max())
    if scale is not None:
        return scale if scale[0] <= low and high <= scale[1] else None
    return (low, high) if low < high and (low, high) == (people.min(), people.max()) else None


# ---- people's grades


def has_people_grades(judgements: Judgements) -> bool:
    """Whether people gave three different numbers or more; words have no order."""
    tables = [judgements.claims, judgements.annotations]
    given = [
        table[GRADE_COLUMN].dropna()
        for table in tables
        if table is not None and GRADE_COLUMN in table
    ]
    numbers = pd.to_numeric(
        pd.concat([pd.Series(dtype=float), *given]).drop_duplicates(), errors="coerce"
    )
    return bool(numbers.notna().all()) and numbers.nunique() > 2


def _collect_people_grades(judgements: Judgements) -> np.ndarray:
    """float64 (n,): the claim's grade, else the lower median of its annotators' grades."""
    people = np.full(len(judgements.claims), np.nan)
    annotations = judgements.annotations
    if annotations is not None and GRADE_COLUMN in annotations:
        table = annotations.dropna(subset=GRADE_COLUMN)
        at = find_claim_positions(judgements.claims, table["claim_id"])
        by_claim = pd.Series(_parse_grades(table[GRADE_COLUMN])).groupby(at)
        median = by_claim.quantile(0.5, interpolation="lower")
        people[median.index.to_numpy(dtype=np.int64)] = median
    if GRADE_COLUMN in judgements.claims:
        own = _parse_grades(judgements.claims[GRADE_COLUMN])
        people = np.where(np.isnan(own), people, own)
    return people


def _parse_grades(values: pd.Series) -> np.ndarray:
    """float64 (n,): NaN where there is none."""
    numbers = pd.to_numeric(values, errors="coerce")
    words = values[numbers.isna() & values.notna()]
    if len(words):
        found = f"expected people's grades as numbers, found {words.iloc[0]!r}"
        raise UsageError(
            f"grades: {found}; number them from the lowest to the highest in your file"
        )
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


# ---- checks


def _list_mostly_graded(run: AuditedRun) -> Iterator[Row]:
    """The rows in which few grades are missing. If many are missing, they could agree with those by
    people."""
    for row in run.per_dataset("grades"):
        if open_share(row) <= run.limits.max_unscored:
            yield row


CHECKS = (
    Check(
        id="grade_order",
        title="Grades that do not follow human grades",
        rows=_list_mostly_graded,
        figure="rho",
        limit=LEAST_RANK_CORRELATION,
        side="under",
        says=(
            "The {measure}s of {evaluator} have a Spearman's ρ of {rho:hundredths} with human"
            " grades{on}, {verdict}."
        ),
        beyond="lower than {limit:hundredths}",
        advice="Do not rank anything by them.",
        null="ρ is 0.2 or more, on every data set",
    ),
)


# ---- declaration

AUDIT = Audit(
    name="grades",
    title="How far an evaluator's grades agree with people's",
    question="Do an evaluator's grades or scores agree with human grades?",
    source="Spearman 1904; Cohen 1968",
    formula=(
        "ρ = Pearson's r of the midranks (Spearman). κ = 1 − mean (grade − human grade)² / its"
        " value expected by chance. Difference = mean (grade − human grade)."
    ),
    text=(
        "ρ compares the order only; κ and difference compare the grades themselves, on one scale."
        " If several annotators graded a claim, its grade is their lower median, so that a cut of"
        " it is their majority."
    ),
    remedy=(
        "If ρ is near 0, choose another evaluator. If ρ is high but κ is low, the order is right"
        " and the grades are shifted: map them with labels of your own."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "measure": Column(
            "of its", "text", "what is compared: the evaluator's `grade`, else its `score`"
        ),
        **pick_shared_columns("n", "n_unscored", "reason"),
        "n_clusters": Column(
            "clusters", "count", "clusters of claims that the intervals rest on", shown=False
        ),
        "rho": Column(
            "Spearman's ρ", "number", "ρ with human grades", digits=2, interval=FISHER_JACKKNIFE
        ),
        "kappa": Column(
            "weighted κ",
            "number",
            "Cohen's κ, quadratic weights",
            digits=2,
            interval=FISHER_JACKKNIFE,
        ),
        "difference": Column(
            "difference",
            "number",
            "mean of the evaluator's grade − the human grade",
            digits=2,
            bounds=True,
            interval=JACKKNIFE,
        ),
        "lowest": Column("lowest", "number", "ends of the scale that both use", shown=False),
        "highest": Column("highest", "number", "ends of the scale that both use", shown=False),
    },
    options={
        "scale": (
            "the lowest and the highest grade, the same for people and evaluators; by default it is"
            " known if both have the same ends"
        ),
    },
    compute=compute_grade_agreement,
    applies=has_people_grades,
    without_labels=True,
    plot=PlotSpec(
        what="How far the order of an evaluator's grades, and its grades, are people's",
        keys=("rho", "kappa"),
        guides={"rho": 0, "kappa": 0},
    ),
    checks=CHECKS,
)
