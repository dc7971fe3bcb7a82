"""What are the systems' error rates after a correction with one system's labels? (``factaudit adjust``)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factaudit.arrays.calibration_claims import (
    CalibrationClaims,
    calibrate_error_rates_without_resampling,
    explain_missing_threshold,
    explain_unidentifiable_calibration,
)
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.resampled_calibration import (
    CORRECTED_FIGURES,
    resample_calibrations,
    resampled_calibration_rate_intervals,
)
from factaudit.audit.adjusted_bias import explain_missing_correction_interval
from factaudit.audit.core.result_rows import Row, explain_missing_row_intervals
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.threshold_calibration import CORRECTION_METHODS
from factaudit.stats.undefined_values import name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons


def correct_system_error_rates(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    evaluator: str | None,
    calibration_system: str,
    *,
    levels: Sequence[str] = ("claim",),
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Calibrate on one labelled system and correct the predicted error rates of the others, labelled or not.

    A row per dataset (where ``calibration_system`` has claims), level, evaluator (all, or the one named), method and
    other system: threshold, n (its scored claims, labelled or not), n_unscored, n_labels, n_calibration_labels (of the
    calibration system, that the method uses), predicted_error_rate (as predicted), adjusted_error_rate,
    labelled_error_rate (of its n_labels) and bias (= adjusted - labelled), reason. With intervals ``_low`` and
    ``_high`` of the adjusted rate and the bias: whole clusters are resampled, calibration and correction made again.
    A correction supposes that TPR and TNR are equal on both systems. Raises `UsageError` for an unknown evaluator or
    system, or where no dataset has another system.
    """
    judged = Judgements.join(claims, verdicts)
    known = sorted(set(claims["system"].dropna()))
    if calibration_system not in known:
        raise UsageError(
            f"unknown system {calibration_system!r}{suggest_known_name(calibration_system, known)}"
            if known
            else "no claim names a system; name the column with --system COLUMN"
        )
    if evaluator is not None and evaluator not in judged.evaluators:
        raise UsageError(f"unknown evaluator {evaluator!r}{suggest_known_name(evaluator, judged.evaluators)}")
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at_level(level), judged.make_groups(level, systems=True)
        for place in [at for at, key in enumerate(systems.keys) if key["system"] == calibration_system]:
            dataset = systems.keys[place]["dataset"]
            others = [(o, k["system"]) for o, k in enumerate(systems.keys) if k["dataset"] == dataset and o != place]
            for at in [e for e, name in enumerate(judged.evaluators) if evaluator in (None, name)]:
                about: Row = {"dataset": dataset, "level": level, "evaluator": judged.evaluators[at]}
                for other, system in others:
                    case = _collect_correction_claims(units, systems.codes, at, place, other)
                    row = about | {"calibration_system": calibration_system, "system": system}
                    rows += [row | found for found in _correct_error_rates_by_each_method(case, dataset, intervals)]
    if not rows:
        raise UsageError(
            f"nothing to correct: {calibration_system!r} shares no data set with another system ({', '.join(levels)})"
        )
    return rows


def _collect_correction_claims(
    judgements: Judgements, system_codes: np.ndarray, evaluator: int, calibration_system: int, other_system: int
) -> CalibrationClaims:
    """The labelled claims of the calibration system (0), and all of the other (1)."""
    mine = np.flatnonzero((system_codes == calibration_system) & (judgements.label >= 0))
    rest = np.flatnonzero(system_codes == other_system)
    system = np.repeat([0, 1], [len(mine), len(rest)])
    return CalibrationClaims.of(judgements.select_scored_claims(evaluator, np.concatenate([mine, rest]), system), 2)


def _correct_error_rates_by_each_method(
    calibration_claims: CalibrationClaims, dataset: str, intervals: ClusterBootstrap | None
) -> list[Row]:
    """The error rate of system 1 after a calibration on system 0, by each method."""
    found = calibrate_error_rates_without_resampling(calibration_claims, CORRECTION_METHODS)
    labelled = found.labelled_rates[1, 0]
    drawn = (
        None
        if intervals is None
        else next(resample_calibrations([calibration_claims.bin_scores()], CORRECTION_METHODS, dataset, intervals))
    )
    rows = []
    for method in CORRECTION_METHODS:
        why = explain_unidentifiable_calibration(calibration_claims, method)[0]
        unusable, usable = calibration_claims.count_usable_claims(method)[1].sum(0).tolist()
        adjusted = np.nan if why or not usable else found.corrected_rates[method][0, 1, 0]
        row: Row = {"method": method, "threshold": none_if_undefined(found.thresholds[method][0, 0])}
        sizes = calibration_claims.count_usable_claims(method)
        row |= {"n": usable, "n_unscored": unusable, "n_labels": int(sizes[1, :2].sum())}
        row["n_calibration_labels"] = int(sizes[0, :2, 1].sum())
        row |= {
            "predicted_error_rate": none_if_undefined(found.corrected_rates["none"][0, 1, 0]),
            "adjusted_error_rate": none_if_undefined(adjusted),
        }
        row |= {"labelled_error_rate": none_if_undefined(labelled), "bias": none_if_undefined(adjusted - labelled)}
        if intervals is not None:
            points = np.full((2, 3, 2), np.nan)
            points[:, 0, 1] = adjusted, adjusted - labelled
            ends = resampled_calibration_rate_intervals(intervals, drawn, method, [0], points)[:, :, 0, 1]
            for key, of in zip(CORRECTED_FIGURES, ends.T, strict=True):
                row |= name_ends(key, of)
        reason = [
            f"calibration system: {why}" if why else "",
            "" if usable else "no claim that the method can use",
            "no label" if usable and np.isnan(labelled) else "",
            explain_missing_threshold(method),
            explain_missing_row_intervals(row, explain_missing_correction_interval(drawn)),
        ]
        rows.append(row | {"reason": join_reasons(reason)})
    return rows
