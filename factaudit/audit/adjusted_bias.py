"""How wrong is each system's error rate after a correction with another system's labels? (VC §5)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat

import numpy as np

from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.arrays.resampled_calibration import (
    CORRECTED_FIGURES,
    ResampledCalibration,
    resample_calibrations,
    resampled_calibration_rate_intervals,
)
from factaudit.audit.adjusted_bias_checks import ADJUSTED_BIAS_CHECK
from factaudit.audit.adjustment import (
    CALIBRATION_OPTIONS,
    CALIBRATION_SYSTEM_COLUMN,
    MEAN_OVER_CALIBRATIONS,
    METHOD_COLUMN,
    AdjustmentCalibrationLabels,
    calibrate_adjustment_on_each_system,
    select_adjustment_means_over_calibrations,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import CLUSTER_BOOTSTRAP
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import (
    FEW_CLUSTERS,
    MOST_PRODUCT_ROWS,
    Row,
    explain_missing_row_intervals,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.threshold_calibration import CORRECTION_METHODS, mean_over_threshold_calibrations
from factaudit.stats.undefined_values import name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons


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
    there alone: with more than `SCORE_BINS` distinct scores a replicate's thresholds lie between that many bins.

    There are none where they would be more than `MOST_PRODUCT_ROWS`: ask for one data set, or fewer evaluators.
    """
    every = list(calibrate_adjustment_on_each_system(judgements, levels, methods))
    n_rows = sum(len(each.systems) ** 2 * len(each.usable_methods(methods)) for each in every)
    if n_rows > MOST_PRODUCT_ROWS:
        return []
    rows: list[Row] = []
    for (_, dataset), several in groupby(every, lambda each: (each.row_keys["level"], each.row_keys["dataset"])):
        of = list(several)
        drawn: Iterable[ResampledCalibration | None] = repeat(None)
        if intervals is not None:
            drawn = resample_calibrations([each.binned_scores for each in of], methods, dataset, intervals)
        for each, replicates in zip(of, drawn, strict=False):
            rows += _build_adjusted_bias_rows(each, methods, replicates, intervals)
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _build_adjusted_bias_rows(
    system_calibrations: AdjustmentCalibrationLabels,
    methods: Sequence[str],
    replicates: ResampledCalibration | None,
    intervals: ClusterBootstrap | None,
) -> Iterator[Row]:
    """The rows of one evaluator on a dataset at a level, by method."""
    labelled = system_calibrations.estimates.labelled_rates[:, 0]
    for method in system_calibrations.usable_methods(methods):
        made = [at for at, reason in enumerate(system_calibrations.refusal_reasons[method]) if reason is None]
        adjusted = _compute_adjusted_bias_rates(system_calibrations.estimates.corrected_rates[method][..., 0], made)
        figures = np.stack([adjusted, adjusted - labelled])
        ends = None
        if intervals is not None:
            ends = resampled_calibration_rate_intervals(intervals, replicates, method, made, figures)
        cause = explain_missing_correction_interval(replicates)
        yield from _build_adjusted_bias_method_rows(system_calibrations, method, figures, ends, cause)


def explain_missing_correction_interval(replicates: ResampledCalibration | None) -> str:
    """Why a corrected rate or its bias has no interval: what `resampled_calibration_rate_intervals` asks of the
    replicates.
    """
    return FEW_CLUSTERS if replicates is None else "its replicates are all alike, or most of them undefined"


def _compute_adjusted_bias_rates(corrected_rates: np.ndarray, calibration_positions: Sequence[int]) -> np.ndarray:
    """Each system's corrected rate by each calibration, and by the mean over those of others: (S + 1, S)."""
    adjusted = np.full((len(corrected_rates) + 1, len(corrected_rates)), np.nan)
    adjusted[calibration_positions] = corrected_rates[calibration_positions]
    np.fill_diagonal(adjusted[:-1], np.nan)
    adjusted[-1] = mean_over_threshold_calibrations(adjusted[:-1])
    return adjusted


def _build_adjusted_bias_method_rows(
    system_calibrations: AdjustmentCalibrationLabels,
    method: str,
    figures: np.ndarray,
    interval_ends: np.ndarray | None,
    no_interval_cause: str,
) -> Iterator[Row]:
    """The rows of each system, by each calibration and by their mean.

    figures, interval_ends: the points and the result of `resampled_calibration_rate_intervals`.
    """
    names, size = system_calibrations.systems, len(system_calibrations.systems)
    labelled_rates = system_calibrations.estimates.labelled_rates[:, 0]
    sizes = system_calibrations.sizes[method][:, :2].sum(1).tolist()
    for at, system in enumerate(names):
        unscored, n = sizes[at]
        of_system: Row = {
            "system": system,
            "n": n,
            "n_unscored": unscored,
            "n_labelled": n + unscored,
            "labelled_error_rate": none_if_undefined(labelled_rates[at]),
        }
        for by in [*(other for other in range(size) if other != at), size]:
            name = names[by] if by < size else MEAN_OVER_CALIBRATIONS
            row = system_calibrations.row_keys | {"method": method, "calibration_system": name} | of_system
            row |= {key: none_if_undefined(one) for key, one in zip(CORRECTED_FIGURES, figures[:, by, at], strict=True)}
            reasons = _explain_undefined_adjusted_rate(system_calibrations.refusal_reasons[method], by, at, row)
            if interval_ends is not None:
                for place, key in enumerate(CORRECTED_FIGURES):
                    row |= name_ends(key, interval_ends[:, place, by, at])
                reasons.append(explain_missing_row_intervals(row, no_interval_cause))
            yield row | {"reason": join_reasons(reasons)}


def _explain_undefined_adjusted_rate(
    refusal_reasons: Sequence[str | None], calibration: int, system: int, row: Row
) -> list[str]:
    """Why the figures of a row are undefined: of a system, by one calibration or by the mean over all of the others."""
    if calibration < len(refusal_reasons):
        refused = refusal_reasons[calibration] or ""
    else:
        made = [at for at, reason in enumerate(refusal_reasons) if reason is None and at != system]
        refused = "" if made else "no calibration could be made"
    is_empty = not refused and row["adjusted_error_rate"] is None
    return [
        refused,
        "no claim of the system that the method can use" if is_empty else "",
        "no label" if row["labelled_error_rate"] is None else "",
    ]


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
    checks=(ADJUSTED_BIAS_CHECK,),
)
