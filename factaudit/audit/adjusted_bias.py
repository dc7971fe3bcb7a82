"""How wrong is each system's error rate after a correction with another system's labels? (VC §5)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.arrays.calibration import (
    CORRECTED_FIGURES,
    ResampledRates,
    estimate_corrected_intervals,
    resample_corrected_rates,
)
from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.audit.adjustment import (
    CALIBRATION_OPTIONS,
    CALIBRATION_SYSTEM_COLUMN,
    MEAN_OVER_CALIBRATIONS,
    METHOD_COLUMN,
    Calibration,
    calibrate_on_each_system,
    select_adjustment_means_over_calibrations,
    select_calibration_claims,
)
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Column, pick_shared_columns
from factaudit.audit.core.checks import Check, group_rows
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.interval_methods import CLUSTER_BOOTSTRAP
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    FEW_CLUSTERS,
    MOST_PRODUCT_ROWS,
    Row,
)
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.quantification import BIAS_CHECK
from factaudit.stats.calibration import CORRECTION_METHODS, mean_of_calibrations
from factaudit.stats.cluster_bootstrap import ClusterBootstrap, ClusterDraws


def compute_adjusted_bias(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = CORRECTION_METHODS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The signed bias that is left of each system, by the calibration on each other one.

    A row per dataset, level, evaluator, method, calibration_system and system, and one of calibration_system
    ``__cv__``, the mean over the calibrations that could be made: n (the system's labelled claims or responses that the
    method can use), n_unscored, labelled_error_rate (of all labels), adjusted_error_rate and bias (= adjusted -
    labelled). With intervals ``_low`` and ``_high`` of the adjusted rate and of the bias, by a cluster bootstrap that
    calibrates again, so that the errors of the calibration and of the rate are both in it. Approximated there, and
    there alone: with more than `MOST_RESAMPLED_SCORES` distinct scores a replicate's thresholds lie between that many
    bins.

    There are none where they would be more than `MOST_PRODUCT_ROWS`: ask for one data set, or fewer evaluators.
    """
    every = list(calibrate_on_each_system(judgements, levels, methods))
    if sum(len(each.members) ** 2 * len(each.usable_methods(methods)) for each in every) > MOST_PRODUCT_ROWS:
        return []
    rows: list[Row] = []
    draws: dict[tuple[str, str], ClusterDraws] = {}
    for each in every:
        resampled = None
        if intervals is not None:
            claims = select_calibration_claims(judgements, each.groups, each.members, each.evaluator)
            place = each.keys["level"], each.keys["dataset"]
            if place not in draws:
                draws = {place: intervals.draw(claims.cluster, each.keys["dataset"])}
            resampled = resample_corrected_rates(claims, each.usable_methods(methods), draws[place])
        for method in each.usable_methods(methods):
            rows += _tabulate_method(each, method, resampled, intervals)
    return sorted(rows, key=lambda row: row["dataset"])


def _tabulate_method(
    calibration: Calibration, method: str, resampled: ResampledRates | None, bootstrap: ClusterBootstrap | None
) -> list[Row]:
    """The rows of each system, by each calibration on another one and by their mean."""
    systems, refusals, size = calibration.systems, calibration.refusals[method], len(calibration.systems)
    labelled, corrected = calibration.rates.labelled[:, 0], calibration.rates.corrected[method][..., 0]
    made = [at for at, why in enumerate(refusals) if not why]
    adjusted = np.full((size + 1, size), np.nan)
    adjusted[made] = corrected[made]
    np.fill_diagonal(adjusted[:-1], np.nan)
    adjusted[-1] = mean_of_calibrations(adjusted[:-1])
    # A row for each system and calibration on another one, the mean last.
    system, by = np.nonzero(np.append(~np.eye(size, dtype=bool), np.ones((size, 1), dtype=bool), axis=1))
    points = np.stack([adjusted, adjusted - labelled])
    ends = None if bootstrap is None else estimate_corrected_intervals(bootstrap, resampled, method, made, points)
    figures = {"labelled_error_rate": Figure(labelled[system])}
    for at, key in enumerate(CORRECTED_FIGURES):
        interval = None if ends is None else (ends[0, at, by, system], ends[1, at, by, system])
        figures[key] = Figure(points[at, by, system], interval=interval)
    unscored, n = calibration.sizes[method][:, :2].sum(1)[system].T
    counts = {"n": n, "n_unscored": unscored, "n_labelled": n + unscored}
    has_other = np.array([any(other != at for other in made) for at in range(size)], dtype=bool)
    none_made = np.where(has_other[system], "", "no calibration could be made")
    refused = np.where(by == size, none_made, np.array([*refusals, ""])[by])
    is_empty = (refused == "") & np.isnan(points[0, by, system])
    reasons = [
        refused,
        np.where(is_empty, "no claim of the system that the method can use", ""),
        np.where(np.isnan(labelled[system]), "no label", ""),
    ]
    names = [*systems, MEAN_OVER_CALIBRATIONS]
    about = calibration.keys | {"method": method}
    keys = [
        about | {"calibration_system": names[calibrating], "system": names[at]}
        for calibrating, at in zip(by.tolist(), system.tolist(), strict=True)
    ]
    return tabulate(keys, counts, figures, reasons, explain_missing_interval(resampled))


def explain_missing_interval(resampled: ResampledRates | None) -> str:
    """Why a corrected rate or its bias has no interval: what `estimate_corrected_intervals` asks of the replicates."""
    return FEW_CLUSTERS if resampled is None else "its replicates are all alike, or most of them undefined"


# ----------------------------------------------------------------------------------------------------------- checks

_METHOD_WORDS = {
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "a threshold without bias",
    "bacc_threshold": "the threshold with the best BAcc",
}


def _list_corrected_biases(run: AuditedRun) -> Iterator[Row]:
    """What the best method leaves of the biases of each evaluator whose rates are wrong, system by system and
    calibration by calibration: biases by several calibrations would cancel in their mean.

    The best method is the one that corrects most rates, and of those the one that leaves the least mean |bias|.
    ``before`` and ``after`` are that mean over the rates that it corrects. A corrected rate rests on its system's
    documents as the predicted one does: of few, its test is no finer.
    """
    wrong = {found.evaluator for found in run.find(BIAS_CHECK) if found.verdict in ("beyond", "slight")}
    rows = [
        row
        for row in run.rows("adjusted_bias")
        if row["calibration_system"] != MEAN_OVER_CALIBRATIONS and row["level"] == "claim" and has_interval(row, "bias")
    ]
    clusters = {
        (row["dataset"], row["evaluator"], row["system"]): row.get("n_clusters")
        for row in run.rows("quantification")
        if row["level"] == "claim"
    }
    for (evaluator,), mine in group_rows(rows, "evaluator").items():
        by_method = {
            method: {_place(row): row for row in some} for (method,), some in group_rows(mine, "method").items()
        }
        uncorrected = by_method.pop("none", {})
        means = []
        for method, corrected in by_method.items():
            places = [place for place in corrected if place in uncorrected]
            if places:
                before, after = (
                    float(np.mean([abs(side[place]["bias"]) for place in places])) for side in (uncorrected, corrected)
                )
                means.append((len(places), before - after, {"method": method, "before": before, "after": after}))
        if evaluator not in wrong or not means:
            continue
        _, gain, best = max(means, key=lambda one: one[:2])
        best |= {"by": _METHOD_WORDS[best["method"]], "severity": "warn" if gain > 0 else "fail"}
        for place, row in by_method[best["method"]].items():
            if place in uncorrected:
                n = clusters.get((row["dataset"], evaluator, row["system"]))
                yield row | best | {"n_clusters": n, "p_bias": 0.0}


def _place(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["calibration_system"], row["system"]


CHECK = Check(
    id="adjustment",
    title="What a correction with one system does to the others",
    rows=_list_corrected_biases,
    figure="bias",
    limit=lambda limits: limits.max_bias,
    side="off",
    says="Corrected by {by} with the labels of {calibration_system}, {evaluator}'s error rate of {system}{on} is "
    "{bias:signed} points from the labelled one, {verdict}. The mean |bias| of the corrected rates is {after:points} "
    "points; it was {before:points}.",
    beyond="more than {limit:limit} points off",
    slight="off",
    advice="Do not rely on a correction with one system's labels.",
    within="Corrected by {by} with the labels of one system, every error rate of {evaluator} is significantly within "
    "{limit:limit} points of the labelled one.",
    unit="corrected rate",
    null="no error rate of a system is off, or all are off alike, so that a calibration on one corrects the others",
)


# --------------------------------------------------------------------------------------------------------- declaration

AUDIT = Audit(
    name="adjusted_bias",
    after="adjustment",
    title="What is left of each system's bias",
    question=(
        "How far off is each system's error rate after a correction with another system's labels, and in which"
        " direction?"
    ),
    source="VC §5, A.7",
    formula=(
        "Bias = corrected − labelled error rate. The interval includes the error of the calibration and of the "
        "rate (cluster bootstrap). For an uncorrected bias, quote the paired interval in the section on "
        "predicted error rates."
    ),
    text="The signed bias of each system, averaged over the systems that can calibrate it.",
    remedy="As for `adjustment`. This table names the systems that become worse.",
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "method": METHOD_COLUMN,
        "calibration_system": CALIBRATION_SYSTEM_COLUMN,
        "system": Column("system", "text", "the system whose rate is corrected", key=True),
        **pick_shared_columns("n", "n_unscored", "n_labelled", "reason"),
        "labelled_error_rate": Column("labelled error rate", "percent", "share of errors among all its labels"),
        "adjusted_error_rate": Column(
            "corrected error rate", "percent", "error rate after the correction", interval=CLUSTER_BOOTSTRAP
        ),
        "bias": Column("bias", "points", "corrected − labelled error rate", interval=CLUSTER_BOOTSTRAP),
    },
    options=CALIBRATION_OPTIONS,
    compute=compute_adjusted_bias,
    readable=select_adjustment_means_over_calibrations,
    plot=PlotSpec(
        what="What is left of each system's bias, by method",
        keys=("bias",),
        groups=("dataset", "evaluator", "system"),
        per_page=28,
        series="method",
        guides={"bias": 0},
    ),
    checks=(CHECK,),
)
