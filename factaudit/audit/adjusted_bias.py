"""How far each system's error rate is off after a calibration on another one (VC §5), with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat
from typing import Any

import numpy as np

from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.arrays.resampled_calibration import (
    CORRECTED_FIGURES,
    ResampledCalibration,
    resample_calibrations,
    resampled_calibration_rate_intervals,
)
from factaudit.arrays.row_table import RowTable, join_row_table_reasons
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
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditProductTableSummary,
    Column,
    pick_shared_columns,
)
from factaudit.audit.core.interval_methods import CLUSTER_BOOTSTRAP
from factaudit.audit.core.plot_specs import DotPlotSpec
from factaudit.audit.core.result_rows import DETAIL_OPTION, FEW_CLUSTERS, MOST_DETAIL_ROWS, Row, is_detail_wanted
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.threshold_calibration import CORRECTION_METHODS, mean_over_threshold_calibrations
from factaudit.stats.undefined_values import none_if_undefined

#: The replicates of all pairs of more systems fill gigabytes: they are computed where they are asked for (``detail``).
MOST_DETAIL_SYSTEMS = 120


def compute_adjusted_bias(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = CORRECTION_METHODS,
    detail: bool | None = None,
    intervals: ClusterBootstrap | None = None,
) -> RowTable:
    """The signed bias that is left of each system, by the calibration on each other one.

    A row per dataset, level, evaluator, method, calibration_system and system, and one of calibration_system
    ``__cv__``, the mean over the calibrations that could be made: n (the system's labelled claims or responses that the
    method can use), n_unscored, labelled_error_rate (of all labels), adjusted_error_rate and bias (= adjusted -
    labelled). With intervals ``_low`` and ``_high`` of the adjusted rate and of the bias, by a cluster bootstrap that
    calibrates again, so that the errors of the calibration and of the rate are both in it. Approximated there, and
    there alone: with more than `SCORE_BINS` distinct scores a replicate's thresholds lie between that many bins.

    detail: by default no more than `MOST_DETAIL_ROWS` rows are computed, of no more than `MOST_DETAIL_SYSTEMS`
    systems. Of more there are those of ``__cv__`` alone, without intervals, which every calibration is resampled for.
    """
    every = list(calibrate_adjustment_on_each_system(judgements, levels, methods))
    n_rows = sum(len(each.systems) ** 2 * len(each.usable_methods(methods)) for each in every)
    widest = max((len(each.systems) for each in every), default=0)
    in_detail = is_detail_wanted(detail, n_rows if widest <= MOST_DETAIL_SYSTEMS else MOST_DETAIL_ROWS + 1)
    tables: list[tuple[str, RowTable]] = []
    for (_, dataset), several in groupby(every, lambda each: (each.row_keys["level"], each.row_keys["dataset"])):
        of = list(several)
        drawn: Iterable[ResampledCalibration | None] = repeat(None)
        if intervals is not None and in_detail:
            drawn = resample_calibrations([each.binned_scores for each in of], methods, dataset, intervals)
        for each, replicates in zip(of, drawn, strict=False):
            tables += [
                (dataset, table)
                for table in _build_adjusted_bias_tables(each, methods, replicates, intervals, in_detail)
                if len(table)
            ]
    tables.sort(key=lambda named: named[0])
    found = RowTable.concatenate([table for _, table in tables])
    return found if in_detail else found.leave_out(n_rows - len(found))


def _build_adjusted_bias_tables(
    system_calibrations: AdjustmentCalibrationLabels,
    methods: Sequence[str],
    replicates: ResampledCalibration | None,
    intervals: ClusterBootstrap | None,
    in_detail: bool,
) -> Iterator[RowTable]:
    """The rows of one evaluator on a dataset at a level, by method."""
    labelled = system_calibrations.estimates.labelled_rates[:, 0]
    for method in system_calibrations.usable_methods(methods):
        made = [at for at, reason in enumerate(system_calibrations.refusal_reasons[method]) if reason is None]
        adjusted = _compute_adjusted_bias_rates(system_calibrations.estimates.corrected_rates[method][..., 0], made)
        figures = np.stack([adjusted, adjusted - labelled])
        if intervals is None:
            ends, cause = None, ""
        elif in_detail:
            ends = resampled_calibration_rate_intervals(intervals, replicates, method, made, figures)
            cause = explain_missing_correction_interval(replicates)
        else:
            ends, cause = np.full((2, *figures.shape), np.nan), _NO_DETAIL_CAUSE
        yield _build_adjusted_bias_method_table(system_calibrations, method, figures, ends, cause, in_detail)


#: Why the means over calibrations have no intervals where a row for each calibration was not computed.
_NO_DETAIL_CAUSE = "the calibrations one by one were not computed (detail)"


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


def _build_adjusted_bias_method_table(
    system_calibrations: AdjustmentCalibrationLabels,
    method: str,
    figures: np.ndarray,
    interval_ends: np.ndarray | None,
    no_interval_cause: str,
    in_detail: bool,
) -> RowTable:
    """The rows of each system, by each calibration (in_detail) and by their mean.

    figures, interval_ends: the points and the result of `resampled_calibration_rate_intervals`.
    """
    names, size = system_calibrations.systems, len(system_calibrations.systems)
    # Of each system the calibrations on the others, then the mean.
    calibration = np.broadcast_to(np.arange(size + 1), (size, size + 1))
    calibration = calibration[~np.eye(size, size + 1, dtype=bool)].reshape(size, size)
    calibration = (calibration if in_detail else calibration[:, -1:]).ravel()
    system = np.repeat(np.arange(size), len(calibration) // max(1, size))
    unscored, n = system_calibrations.sizes[method][:, :2].sum(1).T
    labelled = system_calibrations.estimates.labelled_rates[:, 0]
    alone = np.zeros(len(system), dtype=np.int64)
    found: dict[str, Any] = {key: ([value], alone) for key, value in system_calibrations.row_keys.items()}
    found |= {
        "method": ([method], alone),
        "calibration_system": ([*names, MEAN_OVER_CALIBRATIONS], calibration),
        "system": (names, system),
        "n": n[system],
        "n_unscored": unscored[system],
        "n_labelled": (n + unscored)[system],
        "labelled_error_rate": labelled[system],
    }
    found |= {key: of[calibration, system] for key, of in zip(CORRECTED_FIGURES, figures, strict=True)}
    reasons = _explain_undefined_adjusted_rates(
        system_calibrations, method, calibration, system, found["adjusted_error_rate"]
    )
    if interval_ends is not None:
        lacking = np.zeros(len(system), dtype=np.int64)
        for at, key in enumerate(CORRECTED_FIGURES):
            found[f"{key}_low"], found[f"{key}_high"] = (ends[at][calibration, system] for ends in interval_ends)
            lacking += (np.isnan(found[f"{key}_low"]) & ~np.isnan(found[key])) << at
        figures_without = (CORRECTED_FIGURES[0], CORRECTED_FIGURES[1], ", ".join(CORRECTED_FIGURES))
        reasons.append((["", *(f"no interval for {keys}: {no_interval_cause}" for keys in figures_without)], lacking))
    return RowTable.from_columns(found | {"reason": join_row_table_reasons(reasons)})


def _explain_undefined_adjusted_rates(
    system_calibrations: AdjustmentCalibrationLabels,
    method: str,
    calibration: np.ndarray,
    system: np.ndarray,
    adjusted_rates: np.ndarray,
) -> list[tuple[list[str], np.ndarray]]:
    """Of each row why its figures are undefined: texts, and the place of each row's."""
    refused = [reason or "" for reason in system_calibrations.refusal_reasons[method]]
    identifiable = np.array([not reason for reason in refused], dtype=bool)
    others = identifiable.sum() - identifiable
    by_mean = calibration == len(refused)
    none_made = by_mean & (others[system] == 0)
    no_claim = ~none_made & np.append(identifiable, True)[calibration] & np.isnan(adjusted_rates)
    no_label = np.isnan(system_calibrations.estimates.labelled_rates[:, 0])[system]
    return [
        ([*refused, ""], calibration),
        (
            ["", "no calibration could be made", "no claim of the system that the method can use"],
            none_made + 2 * no_claim,
        ),
        (["", "no label"], no_label.astype(np.int64)),
    ]


# --------------------------------------------------------------------------------------------------------- declaration


def _average_adjusted_bias_by_method(rows: RowTable) -> list[Row]:
    """By method, over the systems: the mean over calibrations of their bias."""
    means = rows.select({"calibration_system": [MEAN_OVER_CALIBRATIONS]})
    bias = means.column("bias")
    absent = np.full(len(bias), np.nan)
    low, high = (means.column(key) if key in means.keys else absent for key in ("bias_low", "bias_high"))
    found = []
    for about, places in means.group_places("dataset", "level", "evaluator", "method"):
        known = places[~np.isnan(bias[places])]
        tested = known[~np.isnan(low[known])]
        figures = (bias[known].mean(), bias[known].min(), bias[known].max()) if len(known) else (np.nan,) * 3
        row = about | {"n_systems": len(known)}
        row["n_off"] = int(((low[tested] > 0) | (high[tested] < 0)).sum()) if len(tested) else None
        found.append(row | {key: none_if_undefined(one) for key, one in zip(_SUMMARY_FIGURES, figures, strict=True)})
    return found


_SUMMARY_FIGURES = ("mean_bias", "lowest_bias", "highest_bias")
_SUMMARY_COLUMNS = {
    **pick_shared_columns("dataset", "level", "evaluator"),
    "method": METHOD_COLUMN,
    "n_systems": Column("systems", "count", "those whose bias is defined: the mean over calibrations on the others"),
    "n_off": Column("off", "count", "systems whose interval of the bias is without 0; null where none was computed"),
    **{key: Column(key.replace("_", " "), "points", "over these systems") for key in _SUMMARY_FIGURES},
}


AUDIT = Audit(
    name="adjusted_bias",
    after="adjustment",
    title="What is left of each system's bias",
    question="How far is each system's error rate off, and to which side, after a calibration on another system?",
    source="VC §5, A.7",
    formula="Bias = corrected − labelled error rate; the interval has the error of the calibration and of the rate "
    "(cluster bootstrap). Of an unadjusted bias quote the paired interval, in the section on predicted error rates.",
    text="The signed bias of each system, as the mean over the systems that can calibrate for it.",
    remedy="As for `adjustment`; the systems that it makes worse are named here.",
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "method": METHOD_COLUMN,
        "calibration_system": CALIBRATION_SYSTEM_COLUMN,
        "system": Column("system", "text", "the system whose rate is corrected", key=True),
        **pick_shared_columns("n", "n_unscored", "n_labelled", "reason"),
        "labelled_error_rate": Column("labelled error rate", "percent", "of all its labels"),
        "adjusted_error_rate": Column(
            "corrected error rate", "percent", "after the calibration", interval=CLUSTER_BOOTSTRAP
        ),
        "bias": Column("bias", "points", "corrected − labelled error rate", interval=CLUSTER_BOOTSTRAP),
    },
    options=CALIBRATION_OPTIONS | DETAIL_OPTION,
    compute=compute_adjusted_bias,
    summary=AuditProductTableSummary(_SUMMARY_COLUMNS, _average_adjusted_bias_by_method),
    readable=select_adjustment_means_over_calibrations,
    plots=(
        DotPlotSpec(
            what="What is left of each system's bias, by method",
            keys=("bias",),
            panels="evaluator",
            series="method",
            guides={"bias": 0},
        ),
    ),
    checks=(ADJUSTED_BIAS_CHECK,),
)
