"""Is being right associated with X? X is word overlap, a length, the place of the evidence, own family or any column.

A number gives bins and a slope, a category gives groups, each compared with all other claims. TPR and TNR are looked at
apart, for what makes an evaluator pass more claims makes it right on correct ones and wrong on errors (VC §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure, compute_rates
from factaudit.arrays.judgements import LABEL, Judgements
from factaudit.audit.core.audit_declaration import (
    DEFAULT_CONFIDENCE,
    Audit,
    AuditedRun,
    Column,
    pick_shared_columns,
)
from factaudit.audit.core.checks import Check
from factaudit.audit.core.interval_methods import JACKKNIFE, MOVER, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import CONSTANT_EVALUATOR, Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.covariate_sources import Covariate, has_covariates, list_covariates
from factaudit.audit.surface_bias import RATE_CLASS_NAMES, RATE_LABELS, encode_task_groups
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import MIN_CLUSTERS, interval, slope, slope_bounds
from factaudit.stats.mover import mover_proportion_sum
from factaudit.stats.slice_comparison import count_slice_and_rest_hits, estimate_slice_and_rest_proportions
from factaudit.stats.undefined_values import divide_or_undefined

#: The value of a number's row that has its slope.
SLOPE = "slope"
_RATE_NAMES = {"tpr": "TPR", "tnr": "TNR"}
#: Of rows that are not significantly different the report shows so many.
_SHOWN_ROWS = 20


#: A line through fewer claims says nothing: two of them gave a slope of -866 points.
MIN_SLOPE_CLAIMS = 10


def compute_covariates(
    judgements: Judgements,
    *,
    columns: Sequence[str] | None = None,
    bins: int = 4,
    min_labels: int = 10,
    family: str | None = None,
    families: Mapping[str, str] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How TPR and TNR differ with what is known of claims, within each task group.

    A row per task group, covariate, rate, value and evaluator: n (scored claims of the rate's class), n_unscored,
    right (the rate among them) and difference, both with bounds and intervals, and n_clusters. Of a category, and of a
    number's bins, ``value`` is the group; the difference of a category's group is from all other claims of the class.
    A number has a further row, whose value is ``slope`` and whose difference is the slope of an ordinary least squares
    fit of "the prediction is right" on the number, over the change that ``per`` says.
    """
    if bins < 2:
        raise UsageError(f"covariates: expected at least 2 bins, found {bins}")
    confidence = None if intervals is None else intervals.confidence
    tasks = encode_task_groups(judgements)
    rows: list[Row] = []
    for covariate in list_covariates(judgements, columns, bins, family, families):
        for rate in RATE_LABELS:
            part = _CovariatePart(judgements, covariate, rate, *tasks, confidence)
            for place, evaluator in enumerate(judgements.evaluators):
                if covariate.evaluators is None or evaluator in covariate.evaluators:
                    rows += part.tabulate_groups(place, min_labels)
                    if covariate.numbers is not None:
                        rows += part.tabulate_slopes(place, covariate.numbers)
    return sorted(rows, key=lambda row: (row["task"], row["covariate"]))


@dataclass(frozen=True)
class _CovariatePart:
    """The labelled claims of one class that have a covariate, by task group: task: int (n,), a place in ``tasks``."""

    judgements: Judgements
    covariate: Covariate
    rate: str
    task: np.ndarray
    tasks: Sequence[str]
    confidence: float | None

    @cached_property
    def groups(self) -> ClaimGroups:
        """A group for each task and value."""
        codes, size = self.covariate.codes, len(self.covariate.names)
        inside = (codes >= 0) & (self.judgements.label == RATE_LABELS[self.rate])
        keys = [{"task": task, "value": value} for task in self.tasks for value in self.covariate.names]
        return ClaimGroups(np.where(inside, self.task * size + codes, -1), keys)

    def tabulate(
        self, place: int, counts: Mapping[str, Any], right: Figure, difference: Figure, reasons: Sequence[Any]
    ) -> list[Row]:
        """counts: with the columns task and value. An evaluator that says the same of every claim has no intervals."""
        said = self.judgements.prediction[place]
        is_constant = np.full(len(right.point), len(np.unique(said[said >= 0])) < 2)
        figures = {
            key: figure.without_interval(is_constant, CONSTANT_EVALUATOR)
            for key, figure in {"right": right, "difference": difference}.items()
        }
        about: Row = {"covariate": self.covariate.name, "rate": self.rate}
        about["evaluator"] = self.judgements.evaluators[place]
        rows = tabulate([about] * len(right.point), counts, figures, reasons)
        return [row for row in rows if row["n"] or row["n_unscored"]]

    def tabulate_groups(self, place: int, min_labels: int) -> list[Row]:
        tally, size = self.judgements.tally(self.groups, LABEL, place), len(self.covariate.names)
        cells, right = tally.cells[:, RATE_LABELS[self.rate]], compute_rates(tally, self.confidence)[self.rate]
        nothing = np.full(len(cells), np.nan)
        difference = Figure(nothing, (nothing, nothing), None if self.confidence is None else (nothing, nothing))
        why = np.full(len(cells), f"differences of a number are in its row `{SLOPE}`", dtype=object)
        n_clusters = nothing
        if self.covariate.numbers is None:
            parts = [self._compare_with_others(place, task, min_labels) for task in range(len(self.tasks))]
            point, low, high, least, most, n_clusters, why = (np.concatenate(each) for each in zip(*parts, strict=True))
            difference = Figure(point, (least, most), None if self.confidence is None else (low, high))
        unscored = f"no {RATE_CLASS_NAMES[self.rate]} claim of this group is scored"
        counts = {
            "task": np.repeat(np.array(self.tasks, dtype=object), size),
            "value": np.tile(np.array(self.covariate.names, dtype=object), len(self.tasks)),
            "n": cells[:, :2].sum(1),
            "n_unscored": cells[:, 2],
            "n_clusters": [None if np.isnan(n) else int(n) for n in n_clusters],
            "per": [""] * len(cells),
        }
        return self.tabulate(place, counts, right, difference, [np.where(np.isnan(right.point), unscored, why)])

    def _compare_with_others(self, place: int, task: int, min_labels: int) -> tuple[np.ndarray, ...]:
        """Of each group of a task the difference from all its other claims: the point, both ends of its interval and of
        its bounds, the number of clusters behind it, and why there is none."""
        size, label = len(self.covariate.names), RATE_LABELS[self.rate]
        rows = np.flatnonzero((self.groups.codes >= 0) & (self.task == task))
        said, stated = (each[place][rows] for each in (self.judgements.prediction, self.judgements.stated_prediction))
        slices = np.zeros(len(rows), dtype=np.int64), 1, self.covariate.codes[rows], size
        is_right = np.where(said < 0, -1, said == label)
        shares = estimate_slice_and_rest_proportions(is_right, *slices, self.judgements.cluster_codes[rows])
        confidence, weights = self.confidence or DEFAULT_CONFIDENCE, np.array([1.0, -1.0])
        point, (low, high) = mover_proportion_sum(shares, weights, confidence)
        # What a share could be: all that is unscored or guessed is wrong, or is right.
        worst, best = (
            divide_or_undefined(*count_slice_and_rest_hits(np.where(stated < 0, value, stated == label), *slices))
            for value in (0, 1)
        )
        least, most = np.minimum(worst[:, 0] - best[:, 1], point), np.maximum(best[:, 0] - worst[:, 1], point)
        if (stated >= 0).all():
            least = most = point
        labels = count_slice_and_rest_hits(np.ones(len(rows), dtype=np.int64), *slices)[1]
        few, unscored = labels.min(1) < min_labels, np.isnan(point)
        why = np.where(unscored, "no difference: no claim is scored in the group, or outside of it", "")
        why = np.where(few, f"no difference: fewer than {min_labels} labels in the group, or outside of it", why)
        figures = np.where(few | unscored, np.nan, [point, low, high, least, most, shares.n_clusters.min(1)])
        return *figures, why

    def tabulate_slopes(self, place: int, numbers: np.ndarray) -> list[Row]:
        """The slope of each task: how much the rate changes with the number."""
        judgements, label = self.judgements, RATE_LABELS[self.rate]
        said, stated = judgements.prediction[place], judgements.stated_prediction[place]
        figures, counts = np.full((len(self.tasks), 5), np.nan), np.zeros((len(self.tasks), 3), dtype=np.int64)
        for task in range(len(self.tasks)):
            rows = np.flatnonzero((judgements.label == label) & ~np.isnan(numbers) & (self.task == task))
            # In an order of their own, so that sums do not depend on that of the table.
            rows = rows[np.lexsort([judgements.cluster_codes[rows], numbers[rows]])]
            known = rows[said[rows] >= 0]
            counts[task, :2] = len(known), len(rows) - len(known)
            if len(known) < MIN_SLOPE_CLAIMS:
                continue
            is_right, cluster = said[known] == label, judgements.cluster_codes[known]
            line = slope(numbers[known], is_right.astype(np.float64))
            low = high = line.point
            if (stated[rows] < 0).any() and not np.isnan(line.point):
                is_stated_right = np.where(stated[rows] < 0, np.nan, stated[rows] == label)
                low, high = slope_bounds(numbers[rows], is_stated_right)
            # The line through what is scored may lead beyond 0 or 1 where a claim is unscored: no completion would.
            outer = np.fmin(low, line.point), np.fmax(high, line.point)
            confidence = self.confidence or DEFAULT_CONFIDENCE
            ends = interval(line, cluster, confidence=confidence, min_clusters=MIN_CLUSTERS)
            figures[task] = line.point, *outer, *ends
            counts[task, 2] = min(len(np.unique(cluster[which])) for which in (is_right, ~is_right))
        point, *bounds, lowest, highest = figures.T
        nothing = np.full(len(self.tasks), np.nan)
        name = RATE_CLASS_NAMES[self.rate]
        alike = np.where(np.isnan(point), f"all {name} claims are alike in this", "")
        few = f"fewer than {MIN_SLOPE_CLAIMS} scored {name} claims have no slope"
        reasons = [
            np.where(counts[:, 0] < MIN_SLOPE_CLAIMS, few, alike),
            ["a slope is over all groups: right is told of each"] * len(nothing),
        ]
        columns: dict[str, Any] = {"task": self.tasks, "value": [SLOPE] * len(nothing)}
        columns |= {"per": [self.covariate.per] * len(nothing), "n": counts[:, 0], "n_unscored": counts[:, 1]}
        columns["n_clusters"] = [None] * len(nothing) if self.confidence is None else counts[:, 2]
        cause = np.full(len(nothing), "too few clusters, or all predictions are right or all wrong")
        difference = Figure(
            point, (bounds[0], bounds[1]), None if self.confidence is None else (lowest, highest), cause
        )
        right = Figure(nothing, (nothing, nothing), None if self.confidence is None else (nothing, nothing))
        return self.tabulate(place, columns, right, difference, reasons)


# ----------------------------------------------------------------------------------------------------------- checks


def _list_associations(run: AuditedRun) -> Iterator[Row]:
    """The slope of a number, and the difference of each group from the other claims."""
    for row in run.rows("covariates"):
        is_slope = row["value"] == SLOPE
        yield row | {
            "dataset": row["task"],
            "what": row["covariate"] if is_slope else f"{row['covariate']} “{row['value']}”",
            "against": row["per"] if is_slope else "against the other claims",
            "rate_name": _RATE_NAMES[row["rate"]],
        }


CHECK = Check(
    id="covariate",
    title="Accuracy that depends on something else",
    rows=_list_associations,
    figure="difference",
    side="off",
    by=("evaluator", "covariate"),
    says="{evaluator}'s {rate_name}{on} is {verdict} with the {what}: {difference:signed} points {against}.",
    beyond="associated",
    severity="warn",
    null="TPR and TNR do not depend on any other property of the claims",
)


def _select_greatest_differences(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The rows with the greatest differences, those whose interval leaves out 0 first."""
    known = [row for row in rows if row["difference"] is not None]

    def order(row: Row) -> tuple[bool, float]:
        low, high = row.get("difference_low"), row.get("difference_high")
        return low is None or high is None or low <= 0 <= high, -abs(row["difference"])

    shown = sorted(known, key=order)[:_SHOWN_ROWS] or list(rows)[:_SHOWN_ROWS]
    return shown, "" if len(shown) == len(rows) else "The greatest differences; all rows are in the CSV."


# --------------------------------------------------------------------------------------------------------- declaration

AUDIT = Audit(
    name="covariates",
    after="surface_bias",
    title="What being right is associated with",
    question="Does accuracy depend on word overlap, on length, on the place of the evidence or on any other column?",
    source="VC §4.1; Liu et al. 2024 (place of evidence)",
    text=(
        "An evaluator that relies on something it should ignore is more often right on correct claims and less "
        "often right on errors as there is more of it, or the other way round. Columns of numbers, and columns "
        "with 2 to 50 different values, are tested."
    ),
    formula=(
        "For a number: the slope of a least-squares fit of “the prediction is right”; the fitted line may leave"
        " the range of 0 to 100 %. For a category: the rate of the group − the rate of all other claims of the "
        "class."
    ),
    remedy=(
        "Report results for such claims separately, and do not compare systems whose claims differ in this property."
    ),
    columns={
        "task": Column("task", "text", "the task group or, if the claims have none, the data set", key=True),
        "covariate": Column("covariate", "text", "the property of the claims", key=True),
        "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values=_RATE_NAMES),
        "value": Column(
            "value", "text", f"the group or bin, or `{SLOPE}`: the slope over all values of a number", key=True
        ),
        **pick_shared_columns("evaluator", "n", "n_unscored", "reason"),
        "n_clusters": Column("clusters", "count", "clusters behind the interval of the difference", shown=False),
        "per": Column("per", "text", "the change of the number that the slope refers to"),
        "right": Column("right", "percent", "rate within the group", bounds=True, interval=WILSON),
        "difference": Column(
            "difference",
            "points",
            "the slope, or the rate of the group − the rate of all others",
            bounds=True,
            interval=f"{MOVER}; of a slope {JACKKNIFE}",
        ),
    },
    options={
        "columns": "columns of the claims; by default properties of the texts and all columns that form groups",
        "bins": "number of bins of a numeric column",
        "min_labels": "labels needed of a class, both inside and outside a group",
        "family": "the column with the model family of each system",
        "families": "`{EVALUATOR: family}`",
    },
    compute=compute_covariates,
    applies=has_covariates,
    readable=_select_greatest_differences,
    plot=PlotSpec(
        what="How much TPR and TNR differ with what is known of claims",
        reading="Intervals that leave out zero: the evaluator leans on it.",
        keys=("difference",),
        groups=("task", "evaluator", "covariate", "value"),
        series="rate",
        guides={"difference": 0},
        per_page=28,
    ),
    checks=(CHECK,),
)
