"""How good are an evaluator's scores at any threshold, and how good with a tuned one? (VC §5)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from factaudit.arrays.figures import Figure, Figures, compute_rates
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns, share_column
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, combine_figures
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.interval_methods import INFLUENCE, MOVER
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    Row,
)
from factaudit.audit.core.tabulate import average_datasets, tabulate
from factaudit.errors import UsageError
from factaudit.stats.calibration import best_bacc_threshold, cross_validate_threshold
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.roc import curve_interval, curve_statistics
from factaudit.stats.undefined_values import divide_or_undefined

#: The figures that have a mean over data sets.
AVERAGED_FIGURES = ("auc", "average_precision", "tuned_tpr", "tuned_tnr", "tuned_bacc", "bacc")


def compute_score_discrimination(
    judgements: Judgements, *, folds: int = 5, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """AUC, average precision and BAcc at a tuned threshold, of every evaluator that gives scores.

    folds: of the cross-validation; documents (clusters) stay whole.

    A row per dataset and evaluator over its n labelled claims with a score (n_unscored: labelled,
    without one): auc, average_precision (of finding errors, the least score first), error_rate (the
    share of errors: what guessing gets as average precision), bacc (of the predictions as they are,
    of the same claims), tuned_threshold (of best BAcc), tuned_tpr, tuned_tnr and tuned_bacc (each
    claim by the threshold of the other folds). Figures have ``_min`` and ``_max`` (what they could
    be, whatever the missing scores) and, where there are intervals, ``_low`` and ``_high``.
    Row ``__macro__``: the means over datasets. An evaluator has no row of a dataset where it gives
    no score.
    """
    if folds < 2:
        raise UsageError(f"discrimination: expected at least 2 folds, found {folds}")
    rows = [
        row
        for place in np.flatnonzero(~np.isnan(judgements.score).all(1)).tolist()
        for row in _tabulate_evaluator(judgements, place, folds, intervals)
    ]
    if not rows:
        return rows
    counts, remark = ("n", "n_unscored", "n_datasets"), "each data set has a threshold of its own"
    means = average_datasets(rows, ["evaluator"], ("error_rate", *AVERAGED_FIGURES), counts, remark)
    return sorted(rows, key=lambda row: row["dataset"]) + means


def _tabulate_evaluator(
    judgements: Judgements, place: int, folds: int, intervals: ClusterBootstrap | None
) -> list[Row]:
    """A row for each dataset where the evaluator gives a score."""
    confidence = None if intervals is None else intervals.confidence
    evaluator, score, size = (
        judgements.evaluators[place],
        judgements.score[place],
        len(judgements.dataset_names),
    )
    dataset, prediction = judgements.dataset_codes, judgements.prediction[place]
    # A guess states no score either.
    lacks = np.isnan(score) | (judgements.stated_prediction[place] != prediction)
    inside = np.flatnonzero((judgements.label >= 0) & ~np.isnan(score))
    numbers = np.stack(
        [
            np.bincount(dataset[inside[judgements.label[inside] == at]], minlength=size)
            for at in (0, 1)
        ]
    )
    figures = _measure_ranking(judgements, score, inside, lacks, confidence)
    as_is = np.where(np.isnan(score), MISSING, prediction)
    figures["bacc"] = _measure_predictions(judgements, judgements.label, as_is, lacks, confidence)[
        "bacc"
    ]
    tried, predicted = (
        np.full_like(judgements.label, MISSING),
        np.full_like(judgements.label, MISSING),
    )
    thresholds = []
    for at in range(size):
        rows = inside[dataset[inside] == at]
        threshold, predicted[rows] = _tune_threshold(judgements, score, rows, folds, intervals)
        thresholds.append(threshold)
        # Without a threshold nothing was tried, so nothing is known of what is missing either.
        if threshold is not None:
            tried[dataset == at] = judgements.label[dataset == at]
    rates = _measure_predictions(judgements, tried, predicted, lacks, confidence)
    figures |= {f"tuned_{key}": rates[key] for key in ("tpr", "tnr", "bacc")}
    if is_constant_evaluator(evaluator):
        # The average precision of a constant is the share of errors, which other claims would
        # change.
        everywhere, varying = np.ones(size, dtype=bool), figures.pop("average_precision")
        figures = {
            key: one.without_interval(everywhere, CONSTANT_EVALUATOR)
            for key, one in figures.items()
        }
        figures["average_precision"] = varying
    figures["error_rate"] = Figure(divide_or_undefined(numbers[0], numbers.sum(0)))
    n = numbers.sum(0)
    unscored = np.bincount(dataset[(judgements.label >= 0) & np.isnan(score)], minlength=size)
    counts: dict[str, Any] = {"n": n, "n_unscored": unscored, "n_datasets": np.ones_like(n)}
    counts["tuned_threshold"] = thresholds
    keys = [{"dataset": name, "evaluator": evaluator} for name in judgements.dataset_names]
    reasons = {
        "no labelled claim has a score": n == 0,
        "only one class among the labelled claims that have a score": (n > 0) & ~numbers.all(0),
        "too few documents of each class to tune on some and try on others": (
            numbers.all(0) & np.isnan(figures["tuned_bacc"].point)
        ),
    }
    table = tabulate(keys, counts, figures, reasons, "all claims of one class are of one document")
    is_silent = np.bincount(dataset, ~np.isnan(score), size) == 0
    return [row for row, silent in zip(table, is_silent, strict=True) if not silent]


def _measure_ranking(
    judgements: Judgements,
    score: np.ndarray,
    inside: np.ndarray,
    lacks: np.ndarray,
    confidence: float | None,
) -> Figures:
    """auc and average_precision of each dataset; inside: the labelled claims with a score.

    Bounds: of all labelled claims, had those that lack a score the worst scores that there could
    be, and the best.
    """
    label, cluster = judgements.label.astype(np.int64), judgements.cluster_codes
    figures: dict[str, list[list[float]]] = {"auc": [], "average_precision": []}
    for place in range(len(judgements.dataset_names)):
        mine = judgements.dataset_codes == place
        rows = inside[mine[inside]]
        known, open_rows = rows[~lacks[rows]], np.flatnonzero(mine & lacks & (label >= 0))
        curves = curve_statistics(label[rows], score[rows])
        ends = [curves, curves]
        if len(open_rows):
            every, best = (
                np.append(known, open_rows),
                np.where(label[open_rows] == 1, np.inf, -np.inf),
            )
            ends = [
                curve_statistics(label[every], np.append(score[known], extreme))
                for extreme in (-best, best)
            ]
        for key, curve in curves.items():
            # Average precision with more errors can be higher though they all come last.
            bounds = [
                np.fmin(ends[0][key].point, curve.point),
                np.fmax(ends[1][key].point, curve.point),
            ]
            limits = [np.nan, np.nan]
            if confidence is not None:
                limits = [*curve_interval(curve, label[rows], cluster[rows], confidence)]
            figures[key].append([curve.point, *bounds, *limits])
    found = {}
    for key, values in figures.items():
        point, least, most, low, high = np.array(values).reshape(-1, 5).T
        found[key] = Figure(point, (least, most), None if confidence is None else (low, high))
    return found


def _measure_predictions(
    judgements: Judgements,
    label: np.ndarray,
    prediction: np.ndarray,
    lacks: np.ndarray,
    confidence: float | None,
) -> Figures:
    """Rates of each dataset under other predictions than the evaluator's own; those that lack a
    score are free in the bounds."""
    datasets = judgements.make_groups("claim")
    stated = label, np.where(lacks, MISSING, prediction)
    return compute_rates(judgements.tally_values(datasets, (label, prediction), stated), confidence)


def _tune_threshold(
    judgements: Judgements,
    score: np.ndarray,
    rows: np.ndarray,
    folds: int,
    intervals: ClusterBootstrap | None,
) -> tuple[float | None, np.ndarray]:
    """Of the labelled claims of a dataset that have a score: the threshold, and what those of the
    other folds predict of them, `MISSING` where some documents hold a class alone."""
    label, seed = judgements.label[rows], 0 if intervals is None else intervals.seed
    threshold = best_bacc_threshold(label, score[rows])
    prediction = cross_validate_threshold(
        label, score[rows], judgements.cluster_codes[rows], folds=folds, seed=seed
    )
    if threshold is None or (prediction < 0).any():
        return None, np.full(len(rows), MISSING, dtype=np.int8)
    return threshold, prediction


# ---- checks


def _list_gains_of_thresholds(run: AuditedRun) -> Iterator[Row]:
    """How much more accurate a tuned threshold is than the evaluator's own, where both have an
    interval."""
    for row in run.per_dataset("discrimination", "tuned_bacc"):
        if has_interval(row, "tuned_bacc") and has_interval(row, "bacc"):
            yield row | combine_figures("gain", (row, "tuned_bacc", 1), (row, "bacc", -1))


CHECK = Check(
    id="threshold",
    title="Scores at the wrong threshold",
    rows=_list_gains_of_thresholds,
    figure="gain",
    says=(
        "Another threshold would make {evaluator} {verdict}{on}: a BAcc of {tuned_bacc:percent} in"
        " place of {bacc:percent} (TPR {tuned_tpr:percent}, TNR {tuned_tnr:percent}), measured on"
        " documents that did not tune it."
    ),
    beyond="more accurate",
    advice=(
        "The threshold tuned on all documents is {tuned_threshold:threshold}. Check it on your own"
        " labels."
    ),
    severity="warn",
    null="no threshold has a better BAcc on other documents than the evaluator's own",
)


# ---- declaration

_TUNED_RATES_DESCRIPTION = "at tuned thresholds, on claims that were not used for tuning"

AUDIT = Audit(
    name="discrimination",
    title="What the scores are worth, whatever the threshold",
    question=(
        "How well do an evaluator's scores separate supported claims from errors, and at which"
        " threshold?"
    ),
    source="VC §5; DeLong et al. 1988; Obuchowski 1997",
    formula=(
        "AUC = probability that a supported claim scores higher than an error (ties count half)."
        " Average precision is for finding errors, the lowest score first. The tuned threshold"
        " maximises BAcc on other documents than those it is tested on (cross-validation), so it"
        " can be worse than the original threshold."
    ),
    text=(
        "Balanced accuracy depends on one threshold. An evaluator whose scores rank claims well can"
        " still have a bad threshold."
    ),
    remedy=(
        "If the tuned BAcc is well above the original one, set the threshold"
        " (`unigram:threshold=0.9`) and check it on claims that were not used for tuning. If AUC is"
        " near 0.5, no threshold helps: choose another evaluator."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator", "n", "n_unscored", "reason", "n_datasets"),
        "error_rate": Column(
            "errors", "percent", "share of label 0, which is the average precision of guessing"
        ),
        "auc": Column(
            "AUC", "number", "area under the ROC curve", digits=3, bounds=True, interval=INFLUENCE
        ),
        "average_precision": Column(
            "AP of errors",
            "number",
            "average precision of finding errors",
            digits=3,
            bounds=True,
            interval=INFLUENCE,
        ),
        "bacc": share_column(
            "BAcc as it is", "of the evaluator's own predictions, on the same claims", MOVER
        ),
        "tuned_bacc": share_column("BAcc tuned", _TUNED_RATES_DESCRIPTION, MOVER),
        "tuned_tpr": share_column("TPR tuned", _TUNED_RATES_DESCRIPTION),
        "tuned_tnr": share_column("TNR tuned", _TUNED_RATES_DESCRIPTION),
        "tuned_threshold": Column(
            "threshold",
            "number",
            "the threshold with the best BAcc on all claims that may be used for tuning; a"
            " prediction is 1 if the score is above it",
            digits=3,
        ),
    },
    options={
        "folds": "number of folds of the cross-validation; claims of one document stay in one fold"
    },
    compute=compute_score_discrimination,
    applies=lambda judged: not np.isnan(judged.score).all(),
    checks=(CHECK,),
    plot=PlotSpec(
        what="What scores are worth: AUC, and BAcc as it is and at a tuned threshold",
        keys=("auc", "bacc", "tuned_bacc"),
        guides={"auc": 0.5, "bacc": 0.5, "tuned_bacc": 0.5},
    ),
)
