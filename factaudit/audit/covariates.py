"""Is being right associated with X? X is word overlap, a length, the place of the evidence or any
column.

A number gives bins and a slope, a category gives groups, each compared with all other claims. TPR
and TNR are looked at apart, for what makes an evaluator pass more claims makes it right on correct
ones and wrong on errors (VC §4.1).
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
from factaudit.stats.slice_comparison import (
    count_slice_and_rest_hits,
    estimate_slice_and_rest_proportions,
)
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

    A row per task group, covariate, rate, value and evaluator: n (scored claims of the rate's
    class), n_unscored, right (the rate among them) and difference, both with bounds and intervals,
    and n_clusters. Of a category, and of a number's bins, ``value`` is the group; the difference of
    a category's group is from all other claims of the class. A number has a further row, whose
    value is ``slope`` and whose difference is the slope of an ordinary least squares fit of "the
    prediction is right" on the number, over the change that ``per`` says.
    """
    if bins < 2:
        raise UsageError(f"covariates: expected at least 2 bins, found {bins}")
    confidence = None if intervals is None else intervals.confidence
    task, tasks = encode_task_groups(judgements)
    rows: list[Row] = []
    for covariate in list_covariates(judgements, columns, bins):
        for rate, label in RATE_LABELS.items():
            for place, evaluator in enumerate(judgements.evaluators):
                about = {"covariate": covariate.name, "rate": rate, "evaluator": evaluator}
                part = _Part(judgements, place, rate, task, tasks, about, confidence)
                inside = (judgements.label == label) & (covariate.codes >= 0)
                rows += part.tabulate_groups(covariate, inside, min_labels)
                if covariate.numbers is not None:
                    rows += part.tabulate_slopes(covariate, inside, covariate.numbers)
    return sorted(rows, key=lambda row: (row["task"], row["covariate"]))


#: A difference that is not defined: its point, the ends of its bounds and of its interval, and the
#: clusters behind it.
_UNDEFINED = np.full(6, np.nan)


@dataclass(frozen=True)
class _Part:
    """What one evaluator says of the labelled claims of one class. task: int (n,), a place in
    ``tasks``."""

    judgements: Judgements
    place: int
    rate: str
    task: np.ndarray
    tasks: Sequence[str]
    about: Row
    confidence: float | None

    def is_right(self, rows: np.ndarray, *, stated: bool = False) -> np.ndarray:
        """int (n,): 1, 0, or -1 where it is unscored (stated: or guessed)."""
        said = self.judgements.stated_prediction if stated else self.judgements.prediction
        return np.where(
            said[self.place][rows] < 0, -1, said[self.place][rows] == RATE_LABELS[self.rate]
        )

    def tabulate_groups(
        self, covariate: Covariate, inside: np.ndarray, min_labels: int
    ) -> list[Row]:
        """A row for each task and value; differences are those of a category's groups."""
        names, label, is_number = (
            covariate.names,
            RATE_LABELS[self.rate],
            covariate.numbers is not None,
        )
        codes = np.where(inside, self.task * len(names) + covariate.codes, -1)
        keys = [{"task": task, "value": value, "per": ""} for task in self.tasks for value in names]
        tally = self.judgements.tally(ClaimGroups(codes, keys), LABEL, self.place)
        right, cells = compute_rates(tally, self.confidence)[self.rate], tally.cells[:, label]
        labels = cells.sum(1).reshape(len(self.tasks), -1)
        is_few = (
            np.minimum(labels, labels.sum(1, keepdims=True) - labels) < min_labels
        ).ravel() & (not is_number)
        differences = np.tile(_UNDEFINED[:, None], len(keys))
        if not is_number:
            rows = [np.flatnonzero(inside & (self.task == at)) for at in range(len(self.tasks))]
            differences = np.hstack([self._compare_with_others(own, covariate) for own in rows])
            differences[:, is_few | np.isnan(differences[0])] = np.nan
        reasons = {
            "no claim of this group is scored": np.isnan(right.point),
            f"no difference: fewer than {min_labels} labels in the group, or outside of it": is_few,
            f"differences of a number are in its row `{SLOPE}`": np.full(len(keys), is_number),
        }
        return self._tabulate(keys, cells[:, :2].sum(1), cells[:, 2], right, differences, reasons)

    def _compare_with_others(self, rows: np.ndarray, covariate: Covariate) -> np.ndarray:
        """Of each group of a task's claims the difference from all the others: (6, V), as
        `_UNDEFINED`."""
        right, stated = self.is_right(rows), self.is_right(rows, stated=True)
        slices = np.zeros(len(rows), dtype=np.int64), 1, covariate.codes[rows], len(covariate.names)
        shares = estimate_slice_and_rest_proportions(
            right, *slices, self.judgements.cluster_codes[rows]
        )
        point, ends = mover_proportion_sum(
            shares, np.array([1.0, -1.0]), self.confidence or DEFAULT_CONFIDENCE
        )
        # What a share could be: all that is unscored or guessed is wrong, or is right.
        worst, best = (
            divide_or_undefined(
                *count_slice_and_rest_hits(np.where(stated < 0, value, stated), *slices)
            )
            for value in (0, 1)
        )
        bounds = (
            np.minimum(worst[:, 0] - best[:, 1], point),
            np.maximum(best[:, 0] - worst[:, 1], point),
        )
        return np.array([point, *bounds, *ends, shares.n_clusters.min(1)])

    def tabulate_slopes(
        self, covariate: Covariate, inside: np.ndarray, numbers: np.ndarray
    ) -> list[Row]:
        """A row for each task: how much the rate changes with the number."""
        n, n_unscored, slopes = [], [], []
        for at in range(len(self.tasks)):
            rows = np.flatnonzero(inside & ~np.isnan(numbers) & (self.task == at))
            # In an order of their own, so that sums do not depend on that of the table.
            rows = rows[np.lexsort([self.judgements.cluster_codes[rows], numbers[rows]])]
            n.append(int((self.is_right(rows) >= 0).sum()))
            n_unscored.append(len(rows) - n[-1])
            slopes.append(
                self._fit_line(rows, numbers) if n[-1] >= MIN_SLOPE_CLAIMS else _UNDEFINED
            )
        parts, is_few = np.array(slopes).T, np.array(n) < MIN_SLOPE_CLAIMS
        reasons = {
            f"fewer than {MIN_SLOPE_CLAIMS} scored claims have no slope": is_few,
            "all claims are alike in this": np.isnan(parts[0]) & ~is_few,
            "a slope is over all groups: right is told of each": np.full(len(n), True),
        }
        keys = [{"task": task, "value": SLOPE, "per": covariate.per} for task in self.tasks]
        nothing = np.full(len(n), np.nan)
        right = Figure(
            nothing, (nothing, nothing), None if self.confidence is None else (nothing, nothing)
        )
        return self._tabulate(keys, np.array(n), np.array(n_unscored), right, parts, reasons)

    def _fit_line(self, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """The slope over a task's claims, as `_UNDEFINED`."""
        right, stated = self.is_right(rows), self.is_right(rows, stated=True)
        known = rows[right >= 0]
        is_right, cluster = right[right >= 0], self.judgements.cluster_codes[known]
        line = slope(numbers[known], is_right.astype(np.float64))
        least = most = line.point
        if (stated < 0).any() and not np.isnan(line.point):
            # The line through what is scored may lead beyond 0 or 1 where a claim is unscored: no
            # completion would.
            ends = slope_bounds(numbers[rows], np.where(stated < 0, np.nan, stated))
            least, most = min(ends[0], least), max(ends[1], most)
        confidence = self.confidence or DEFAULT_CONFIDENCE
        low, high = interval(line, cluster, confidence=confidence, min_clusters=MIN_CLUSTERS)
        n_clusters = min(len(np.unique(cluster[is_right == value])) for value in (0, 1))
        return np.array(
            [line.point, least, most, low, high, np.nan if self.confidence is None else n_clusters]
        )

    def _tabulate(
        self,
        keys: Sequence[Row],
        n: np.ndarray,
        n_unscored: np.ndarray,
        right: Figure,
        differences: np.ndarray,
        reasons: Mapping[str, np.ndarray],
    ) -> list[Row]:
        """An evaluator that says the same of every claim has no intervals."""
        point, least, most, low, high, clusters = differences
        cause = np.full(len(keys), "too few clusters, or all predictions are right or all wrong")
        ends = None if self.confidence is None else (low, high)
        figures = {"right": right, "difference": Figure(point, (least, most), ends, cause)}
        said = self.judgements.prediction[self.place]
        if len(np.unique(said[said >= 0])) < 2:
            everywhere = np.ones(len(keys), dtype=bool)
            figures = {
                key: one.without_interval(everywhere, CONSTANT_EVALUATOR)
                for key, one in figures.items()
            }
        n_clusters = [None if np.isnan(number) else int(number) for number in clusters]
        counts = {"n": n, "n_unscored": n_unscored, "n_clusters": n_clusters}
        rows = tabulate([key | self.about for key in keys], counts, figures, reasons)
        return [row for row in rows if row["n"] or row["n_unscored"]]


# ---- checks


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
    says=(
        "{evaluator}'s {rate_name}{on} is {verdict} with the {what}: {difference:signed} points"
        " {against}."
    ),
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
    return shown, (
        "" if len(shown) == len(rows) else "The greatest differences; all rows are in the CSV."
    )


# ---- declaration

AUDIT = Audit(
    name="covariates",
    title="What being right is associated with",
    question=(
        "Does accuracy depend on word overlap, on length, on the place of the evidence or on any"
        " other column?"
    ),
    source="VC §4.1; Liu et al. 2024 (place of evidence)",
    text=(
        "An evaluator that relies on something it should ignore is more often right on correct"
        " claims and less often right on errors as there is more of it, or the other way round."
        " Columns of numbers, and columns with 2 to 50 different values, are tested."
    ),
    formula=(
        "For a number: the slope of a least-squares fit of “the prediction is right”; the fitted"
        " line may leave the range of 0 to 100 %. For a category: the rate of the group − the rate"
        " of all other claims of the class."
    ),
    remedy=(
        "Report results for such claims separately, and do not compare systems whose claims differ"
        " in this property."
    ),
    columns={
        "task": Column(
            "task", "text", "the task group or, if the claims have none, the data set", key=True
        ),
        "covariate": Column("covariate", "text", "the property of the claims", key=True),
        "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values=_RATE_NAMES),
        "value": Column(
            "value",
            "text",
            f"the group or bin, or `{SLOPE}`: the slope over all values of a number",
            key=True,
        ),
        **pick_shared_columns("evaluator", "n", "n_unscored", "reason"),
        "n_clusters": Column(
            "clusters", "count", "clusters behind the interval of the difference", shown=False
        ),
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
        "columns": (
            "columns of the claims; by default properties of the texts and all columns that form"
            " groups"
        ),
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
