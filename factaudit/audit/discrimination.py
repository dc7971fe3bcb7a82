"""How good are an evaluator's scores at any threshold, and how good with a tuned one? (VC §5)"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from factaudit.arrays.figures import Figure, Figures, compute_rates
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit.core.audit_declaration import (
    INFLUENCE,
    MOVER,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun, has_interval
from factaudit.audit.core.checks import Check, combine_figures
from factaudit.audit.core.result_rows import (
    Row,
    average_datasets,
    tabulate,
)
from factaudit.stats.calibration import best_bacc_threshold, cross_validate_threshold
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import auc_interval, auc_statistic

#: The figures that have a mean over data sets.
AVERAGED_FIGURES = ("auc", "tuned_tpr", "tuned_tnr", "tuned_bacc", "bacc")


def compute_score_discrimination(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """AUC, and balanced accuracy at a tuned threshold, of every evaluator that gives scores.

    A row per dataset and evaluator covers its n labelled claims with a score (n_unscored: labelled,
    without a score): auc, bacc (of the predictions as they are, for the same claims),
    tuned_threshold (with the best BAcc), tuned_tpr, tuned_tnr and tuned_bacc (each claim is
    predicted with the threshold from the other of five folds, which keep documents whole). Figures
    have ``_min`` and ``_max``, the lowest and highest values that the missing scores allow, and if
    intervals are wanted ``_low`` and ``_high``. The row ``__macro__`` has the means over datasets.
    An evaluator without scores on a dataset has no row for it.
    """
    scored = np.flatnonzero(~np.isnan(judgements.score).all(1))
    rows = [row for at in scored.tolist() for row in _tabulate_evaluator(judgements, at, intervals)]
    counts, remark = ("n", "n_unscored", "n_datasets"), "each data set has a threshold of its own"
    means = average_datasets(rows, ["evaluator"], AVERAGED_FIGURES, counts, remark)
    return sorted(rows, key=lambda row: row["dataset"]) + means


def _tabulate_evaluator(
    judgements: Judgements, place: int, intervals: ClusterBootstrap | None
) -> list[Row]:
    """A row for each dataset on which the evaluator gives a score."""
    confidence, seed = (None, 0) if intervals is None else (intervals.confidence, intervals.seed)
    label, cluster = judgements.label.astype(np.int64), judgements.cluster_codes
    score, said = judgements.score[place], judgements.prediction[place]
    has_score, size = ~np.isnan(score), len(judgements.dataset_names)
    # A guessed prediction has no stated score either.
    lacks = ~has_score | (judgements.stated_prediction[place] != said)
    tried, tuned = np.full_like(label, MISSING), np.full_like(label, MISSING)
    auc, thresholds = np.full((size, 5), np.nan), list[float | None]()
    for at in range(size):
        mine = (judgements.dataset_codes == at) & (label >= 0)
        rows = np.flatnonzero(mine & has_score)
        auc[at] = _measure_auc(judgements, score, rows, np.flatnonzero(mine & lacks), confidence)
        threshold = best_bacc_threshold(label[rows], score[rows])
        found = cross_validate_threshold(label[rows], score[rows], cluster[rows], seed=seed)
        thresholds.append(None if (found < 0).any() else threshold)
        if thresholds[-1] is not None:
            tried[mine], tuned[rows] = label[mine], found
    rates = _measure_predictions(judgements, tried, tuned, lacks, confidence)
    figures = {f"tuned_{key}": rates[key] for key in ("tpr", "tnr", "bacc")}
    as_is = np.where(has_score, said, MISSING)
    figures["bacc"] = _measure_predictions(judgements, label, as_is, lacks, confidence)["bacc"]
    point, least, most, low, high = auc.T
    ends = None if confidence is None else (low, high)
    figures["auc"] = Figure(point, (least, most), ends)
    n, n_labels = (
        np.bincount(judgements.dataset_codes[(label >= 0) & which], minlength=size)
        for which in (has_score, True)
    )
    counts: dict[str, Any] = {"n": n, "n_unscored": n_labels - n, "n_datasets": np.ones_like(n)}
    is_lacking = np.isnan(point)
    reasons = {
        "no labelled claim has a score": n == 0,
        "only one class among the labelled claims that have a score": (n > 0) & is_lacking,
        "too few documents of each class to tune on some and try on others": (
            ~is_lacking & np.isnan(figures["tuned_bacc"].point)
        ),
    }
    keys = [
        {"dataset": name, "evaluator": judgements.evaluators[place]}
        for name in judgements.dataset_names
    ]
    counts["tuned_threshold"] = thresholds
    table = tabulate(keys, counts, figures, reasons, "all claims of one class are of one document")
    gives_scores = np.bincount(judgements.dataset_codes, has_score, size) > 0
    return [row for row, gives in zip(table, gives_scores, strict=True) if gives]


def _measure_auc(
    judgements: Judgements,
    score: np.ndarray,
    rows: np.ndarray,
    lacking: np.ndarray,
    confidence: float | None,
) -> list[float]:
    """The AUC of the labelled claims ``rows`` of a dataset that have a score, with the ends of its
    bounds and of its interval.

    The bounds assume that the labelled claims without a stated score (``lacking``) have the worst
    scores possible, or the best.
    """
    label, ends = judgements.label.astype(np.int64), (np.nan, np.nan)
    curve = auc_statistic(label[rows], score[rows])
    if confidence is not None:
        ends = auc_interval(curve, label[rows], judgements.cluster_codes[rows], confidence)
    bounds = [curve.point, curve.point]
    if len(lacking):
        known, best = np.setdiff1d(rows, lacking), np.where(label[lacking] == 1, np.inf, -np.inf)
        every = label[np.append(known, lacking)]
        for at, extreme in enumerate((-best, best)):
            found = auc_statistic(every, np.append(score[known], extreme)).point
            bounds[at] = (np.fmin, np.fmax)[at](found, curve.point)
    return [curve.point, *bounds, *ends]


def _measure_predictions(
    judgements: Judgements,
    label: np.ndarray,
    prediction: np.ndarray,
    lacks: np.ndarray,
    confidence: float | None,
) -> Figures:
    """The rates of each dataset under other predictions than the evaluator's own. In the bounds,
    claims without a score may have either prediction."""
    datasets = judgements.make_groups("claim")
    stated = label, np.where(lacks, MISSING, prediction)
    return compute_rates(judgements.tally_values(datasets, (label, prediction), stated), confidence)


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
        " The tuned threshold"
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
        "auc": Column(
            "AUC", "number", "area under the ROC curve", digits=3, bounds=True, interval=INFLUENCE
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
    compute=compute_score_discrimination,
    applies=lambda judged: not np.isnan(judged.score).all(),
    checks=(CHECK,),
    plot=PlotSpec(
        what="What scores are worth: AUC, and BAcc as it is and at a tuned threshold",
        keys=("auc", "bacc", "tuned_bacc"),
        guides={"auc": 0.5, "bacc": 0.5, "tuned_bacc": 0.5},
    ),
)
