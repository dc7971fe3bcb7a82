"""Is being right associated with X? X is word overlap, a length, the place of the evidence or any column.

A number gives bins and a slope, a category gives groups, each compared with all other claims. TPR and TNR are looked at
apart, for what makes an evaluator pass more claims makes it right on correct ones and wrong on errors (VC §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure, compute_rates
from factaudit.arrays.judgements import LABEL, Judgements
from factaudit.audit.core.audit_declaration import (
    DEFAULT_CONFIDENCE,
    Audit,
    Column,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.interval_methods import JACKKNIFE, MOVER
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import CONSTANT_EVALUATOR, Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.covariate_sources import Covariate, has_covariates, list_covariates
from factaudit.audit.surface_bias import RATE_LABELS, encode_task_groups
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
    for covariate in list_covariates(judgements, columns, bins):
        for rate in RATE_LABELS:
            for place in range(len(judgements.evaluators)):
                part = _CovariatePart(judgements, covariate, rate, place, *tasks, confidence, min_labels)
                rows += part.tabulate_groups()
                if covariate.numbers is not None:
                    rows += part.tabulate_slopes(covariate.numbers)
    return sorted(rows, key=lambda row: (row["task"], row["covariate"]))


#: Of a figure: the point, the ends of its bounds and of its interval, and the number of clusters behind it.
_N_PARTS = 6


@dataclass(frozen=True)
class _CovariatePart:
    """What one evaluator says of the labelled claims of one class that have a covariate, by task group.

    task: int (n,), a place in ``tasks``.
    """

    judgements: Judgements
    covariate: Covariate
    rate: str
    place: int
    task: np.ndarray
    tasks: Sequence[str]
    confidence: float | None
    min_labels: int

    def tabulate_groups(self) -> list[Row]:
        """A row for each task and value; differences are those of a category's groups."""
        label, names = RATE_LABELS[self.rate], self.covariate.names
        inside = (self.covariate.codes >= 0) & (self.judgements.label == label)
        codes = np.where(inside, self.task * len(names) + self.covariate.codes, -1)
        keys = [{"task": task, "value": value, "per": ""} for task in self.tasks for value in names]
        tally = self.judgements.tally(ClaimGroups(codes, keys), LABEL, self.place)
        right, cells = compute_rates(tally, self.confidence)[self.rate], tally.cells[:, label]
        parts, is_few = np.full((_N_PARTS, len(keys)), np.nan), np.zeros(len(keys), dtype=bool)
        if self.covariate.numbers is None:
            for task in range(len(self.tasks)):
                of_task = slice(task * len(names), (task + 1) * len(names))
                rows = np.flatnonzero(inside & (self.task == task))
                parts[:, of_task], is_few[of_task] = self._compare_with_others(rows)
        reasons = {
            "no claim of this group is scored": np.isnan(right.point),
            f"no difference: fewer than {self.min_labels} labels in the group, or outside of it": is_few,
            f"differences of a number are in its row `{SLOPE}`": np.full(len(keys), self.covariate.numbers is not None),
        }
        return self._tabulate(keys, cells[:, :2].sum(1), cells[:, 2], right, parts, reasons)

    def _tabulate(
        self,
        keys: Sequence[Row],
        n: np.ndarray,
        n_unscored: np.ndarray,
        right: Figure,
        parts: np.ndarray,
        reasons: Mapping[str, np.ndarray],
    ) -> list[Row]:
        """An evaluator that says the same of every claim has no intervals."""
        said, judgements = self.judgements.prediction[self.place], self.judgements
        point, least, most, low, high, clusters = parts
        cause = np.full(len(keys), "too few clusters, or all predictions are right or all wrong")
        interval = None if self.confidence is None else (low, high)
        figures = {"right": right, "difference": Figure(point, (least, most), interval, cause)}
        if len(np.unique(said[said >= 0])) < 2:
            everywhere = np.ones(len(keys), dtype=bool)
            figures = {key: one.without_interval(everywhere, CONSTANT_EVALUATOR) for key, one in figures.items()}
        n_clusters = [None if np.isnan(number) else int(number) for number in clusters]
        counts = {"n": n, "n_unscored": n_unscored, "n_clusters": n_clusters}
        about = {"covariate": self.covariate.name, "rate": self.rate, "evaluator": judgements.evaluators[self.place]}
        rows = tabulate([key | about for key in keys], counts, figures, reasons)
        return [row for row in rows if row["n"] or row["n_unscored"]]

    def _compare_with_others(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each group of a task's claims the difference from all the others, and whether labels are too few."""
        judgements, label = self.judgements, RATE_LABELS[self.rate]
        said, stated = (each[self.place][rows] for each in (judgements.prediction, judgements.stated_prediction))
        slices = np.zeros(len(rows), dtype=np.int64), 1, self.covariate.codes[rows], len(self.covariate.names)
        is_right = np.where(said < 0, -1, said == label)
        shares = estimate_slice_and_rest_proportions(is_right, *slices, judgements.cluster_codes[rows])
        point, ends = mover_proportion_sum(shares, np.array([1.0, -1.0]), self.confidence or DEFAULT_CONFIDENCE)
        # What a share could be: all that is unscored or guessed is wrong, or is right.
        worst, best = (
            divide_or_undefined(*count_slice_and_rest_hits(np.where(stated < 0, value, stated == label), *slices))
            for value in (0, 1)
        )
        bounds = np.minimum(worst[:, 0] - best[:, 1], point), np.maximum(best[:, 0] - worst[:, 1], point)
        if (stated >= 0).all():
            bounds = point, point
        labels = count_slice_and_rest_hits(np.ones(len(rows), dtype=np.int64), *slices)[1]
        is_few = labels.min(1) < self.min_labels
        found = np.array([point, *bounds, *ends, shares.n_clusters.min(1)])
        return np.where(is_few | np.isnan(point), np.nan, found), is_few

    def tabulate_slopes(self, numbers: np.ndarray) -> list[Row]:
        """A row for each task: how much the rate changes with the number."""
        label, counts = RATE_LABELS[self.rate], np.zeros((2, len(self.tasks)), dtype=np.int64)
        parts = np.full((_N_PARTS, len(self.tasks)), np.nan)
        for task in range(len(self.tasks)):
            rows = np.flatnonzero((self.judgements.label == label) & ~np.isnan(numbers) & (self.task == task))
            # In an order of their own, so that sums do not depend on that of the table.
            rows = rows[np.lexsort([self.judgements.cluster_codes[rows], numbers[rows]])]
            counts[0, task] = n = (self.judgements.prediction[self.place][rows] >= 0).sum()
            counts[1, task] = len(rows) - n
            if n >= MIN_SLOPE_CLAIMS:
                parts[:, task] = self._fit_line(rows, numbers)
        keys = [{"task": task, "value": SLOPE, "per": self.covariate.per} for task in self.tasks]
        few = f"fewer than {MIN_SLOPE_CLAIMS} scored claims have no slope"
        reasons = {
            few: counts[0] < MIN_SLOPE_CLAIMS,
            "all claims are alike in this": np.isnan(parts[0]) & (counts[0] >= MIN_SLOPE_CLAIMS),
            "a slope is over all groups: right is told of each": np.ones(len(keys), dtype=bool),
        }
        nothing = np.full(len(keys), np.nan)
        right = Figure(nothing, (nothing, nothing), None if self.confidence is None else (nothing, nothing))
        return self._tabulate(keys, counts[0], counts[1], right, parts, reasons)

    def _fit_line(self, rows: np.ndarray, numbers: np.ndarray) -> list[float]:
        judgements, label = self.judgements, RATE_LABELS[self.rate]
        known = rows[judgements.prediction[self.place][rows] >= 0]
        is_right, cluster = judgements.prediction[self.place][known] == label, judgements.cluster_codes[known]
        line, stated = (
            slope(numbers[known], is_right.astype(np.float64)),
            judgements.stated_prediction[self.place][rows],
        )
        least = most = line.point
        if (stated < 0).any() and not np.isnan(line.point):
            # The line through what is scored may lead beyond 0 or 1 where a claim is unscored: no completion would.
            ends = slope_bounds(numbers[rows], np.where(stated < 0, np.nan, stated == label))
            least, most = min(ends[0], least), max(ends[1], most)
        confidence = self.confidence or DEFAULT_CONFIDENCE
        low, high = interval(line, cluster, confidence=confidence, min_clusters=MIN_CLUSTERS)
        n_clusters = min(len(np.unique(cluster[which])) for which in (is_right, ~is_right))
        return [line.point, least, most, low, high, np.nan if self.confidence is None else n_clusters]


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
        "right": share_column("right", "rate within the group"),
        "difference": share_column(
            "difference",
            "the slope, or the rate of the group − the rate of all others",
            f"{MOVER}; of a slope {JACKKNIFE}",
            "points",
        ),
    },
    options={
        "columns": "columns of the claims; by default properties of the texts and all columns that form groups",
        "bins": "number of bins of a numeric column",
        "min_labels": "labels needed of a class, both inside and outside a group",
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
