"""Is being right associated with X? X is word overlap, a length, the place of the evidence, own family or any column.

A number gives bins and a slope, a category gives groups, each compared with all other claims. TPR and TNR are looked at
apart, for what makes an evaluator pass more claims makes it right on correct ones and wrong on errors (VC §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.covariate_rates import (
    MIN_SLOPE_CLAIMS,
    RATE_CLASS_NAMES,
    RATE_LABELS,
    compute_covariate_rate_slopes,
    encode_task_groups,
)
from factaudit.arrays.figures import compute_rates
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
from factaudit.audit.core.tabulate import pick_figure
from factaudit.audit.covariate_sources import Covariate, has_covariates, list_covariates
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusteredProportions
from factaudit.stats.mover import mover_proportion_sum
from factaudit.stats.slice_comparison import count_slice_and_rest_hits, estimate_slice_and_rest_proportions
from factaudit.stats.undefined_values import divide_or_undefined, name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons

#: The value of a number's row that has its slope.
SLOPE = "slope"
_RATE_NAMES = {"tpr": "TPR", "tnr": "TNR"}
#: Of rows that are not significantly different the report shows so many.
_SHOWN_ROWS = 20


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
    task_codes, tasks = encode_task_groups(judgements)
    constant = [len(np.unique(said[said >= 0])) < 2 for said in judgements.prediction]
    rows: list[Row] = []
    for covariate in list_covariates(judgements, columns, bins, family, families):
        rows += _compute_groups(judgements, covariate, task_codes, tasks, min_labels, intervals)
        if covariate.numbers is not None:
            rows += _compute_slopes(judgements, covariate, task_codes, tasks, intervals)
    for row in rows:
        ends = [key for key in row if key.endswith(("_low", "_high")) and row[key] is not None]
        if ends and constant[judgements.evaluators.index(row["evaluator"])]:
            row.update(dict.fromkeys(ends))
            row["reason"] = join_reasons([row["reason"] or "", f"no interval: {CONSTANT_EVALUATOR}"])
    return sorted(rows, key=lambda row: (row["task"], row["covariate"]))


def _compute_slopes(
    judgements: Judgements,
    covariate: Covariate,
    task_codes: np.ndarray,
    tasks: Sequence[str],
    intervals: ClusterBootstrap | None,
) -> Iterator[Row]:
    assert covariate.numbers is not None
    for rate, label in RATE_LABELS.items():
        of_class = (judgements.label == label) & ~np.isnan(covariate.numbers)
        codes = np.where(of_class, task_codes, -1)
        found = compute_covariate_rate_slopes(judgements, covariate.numbers, codes, len(tasks), label, intervals)
        for task, name in enumerate(tasks):
            if not (codes == task).any():
                continue
            for at, evaluator in enumerate(judgements.evaluators):
                row = _start_row(name, covariate, rate, SLOPE, evaluator, intervals)
                row |= {"n": int(found.n[at, task]), "n_unscored": int(found.n_unscored[at, task])}
                row |= {
                    key.replace("slope", "difference"): none_if_undefined(values[at, task])
                    for key, values in found.figures.items()
                }
                if found.n_clusters is not None:
                    row["n_clusters"] = int(found.n_clusters[at, task])
                reasons = [_explain_slope(row, rate) or "", "a slope is over all groups: right is told of each"]
                yield row | {"reason": join_reasons(reasons)}


def _explain_slope(row: Row, rate: str) -> str | None:
    if row["n"] < MIN_SLOPE_CLAIMS:
        return f"fewer than {MIN_SLOPE_CLAIMS} scored {RATE_CLASS_NAMES[rate]} claims have no slope"
    if row["difference"] is None:
        return f"all {RATE_CLASS_NAMES[rate]} claims are alike in this"
    if row.get("difference_low", 0) is None:
        return "no interval for difference: too few clusters, or all predictions are right or all wrong"
    return None


def _compute_groups(
    judgements: Judgements,
    covariate: Covariate,
    task_codes: np.ndarray,
    tasks: Sequence[str],
    min_labels: int,
    intervals: ClusterBootstrap | None,
) -> Iterator[Row]:
    size, confidence = len(covariate.names), None if intervals is None else intervals.confidence
    codes = np.where((covariate.codes >= 0) & (judgements.label >= 0), task_codes * size + covariate.codes, -1)
    groups = ClaimGroups(codes, [{"task": task, "value": value} for task in tasks for value in covariate.names])
    for at, evaluator in enumerate(judgements.evaluators):
        if covariate.evaluators is not None and evaluator not in covariate.evaluators:
            continue
        tally = judgements.tally(groups, LABEL, at)
        rates = compute_rates(tally, confidence)
        for task, name in enumerate(tasks):
            inside = np.flatnonzero((task_codes == task) & (codes >= 0))
            for rate, label in RATE_LABELS.items():
                compared: dict[int, Row] = {}
                of_class = inside[judgements.label[inside] == label]
                if covariate.numbers is None and len(of_class):
                    compared = _compare_with_others(judgements, at, covariate, of_class, label, min_labels, intervals)
                for value in range(size):
                    place = task * size + value
                    counts = tally.cells[place, label]
                    if not counts.any():
                        continue
                    row = _start_row(name, covariate, rate, covariate.names[value], evaluator, intervals)
                    row |= {"n": int(counts[:2].sum()), "n_unscored": int(counts[2])}
                    row |= pick_figure("right", rates[rate], place)
                    told = compared.get(value, {"reason": f"differences of a number are in its row `{SLOPE}`"})
                    if row["right"] is None:
                        told = told | {"reason": f"no {RATE_CLASS_NAMES[rate]} claim of this group is scored"}
                    yield row | told


def _compare_with_others(
    judgements: Judgements,
    evaluator: int,
    covariate: Covariate,
    rows: np.ndarray,
    label: int,
    min_labels: int,
    intervals: ClusterBootstrap | None,
) -> dict[int, Row]:
    """Of each group the difference from all other claims (of one class and task group), or why there is none."""
    said, certain = (each[evaluator][rows] for each in (judgements.prediction, judgements.stated_prediction))
    kind, groups, size = np.zeros(len(rows), dtype=np.int64), covariate.codes[rows], len(covariate.names)
    arguments = (kind, 1, groups, size)
    shares = estimate_slice_and_rest_proportions(
        np.where(said < 0, -1, said == label), *arguments, judgements.cluster_codes[rows]
    )
    # What a share could be: all that is unscored or guessed is wrong, or is right.
    least, most = (
        divide_or_undefined(*count_slice_and_rest_hits(np.where(certain < 0, value, certain == label), *arguments))
        for value in (0, 1)
    )
    _, labels = count_slice_and_rest_hits(np.ones(len(rows), dtype=np.int64), *arguments)
    confidence, weights = DEFAULT_CONFIDENCE if intervals is None else intervals.confidence, np.array([1.0, -1.0])
    found: dict[int, Row] = {}
    for group in range(size):
        if labels[group].min() < min_labels:
            found[group] = {"reason": f"no difference: fewer than {min_labels} labels in the group, or outside of it"}
            continue
        one = _select_group(shares, group)
        difference, (low, high) = mover_proportion_sum(one, weights, confidence)
        if np.isnan(difference[0]):
            found[group] = {"reason": "no difference: no claim is scored in the group, or outside of it"}
            continue
        point, is_complete = float(difference[0]), bool((certain >= 0).all())
        row: Row = {"n_clusters": int(one.n_clusters.min()), "difference": point}
        row["difference_min"] = point if is_complete else min(least[group, 0] - most[group, 1], point)
        row["difference_max"] = point if is_complete else max(most[group, 0] - least[group, 1], point)
        if intervals is not None:
            row |= name_ends("difference", (low[0], high[0]))
        lacks = intervals is not None and row["difference_low"] is None
        found[group] = row | {"reason": "no interval for difference: fewer than two clusters" if lacks else None}
    return found


def _select_group(shares: ClusteredProportions, group: int) -> ClusteredProportions:
    return ClusteredProportions(**{each.name: getattr(shares, each.name)[[group]] for each in fields(shares)})


def _start_row(
    task: str, covariate: Covariate, rate: str, value: str, evaluator: str, intervals: ClusterBootstrap | None
) -> Row:
    ends = ("", "_min", "_max") + (("_low", "_high") if intervals is not None else ())
    row: Row = {"task": task, "covariate": covariate.name, "rate": rate, "value": value, "evaluator": evaluator}
    row |= {"n": 0, "n_unscored": 0, "n_clusters": None, "per": covariate.per if value == SLOPE else ""}
    return row | dict.fromkeys(f"{key}{end}" for key in ("right", "difference") for end in ends)


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
