"""What are the systems' error rates after a correction with one system's labels? (``factaudit adjust``)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from factaudit.arrays.calibration import (
    CORRECTED_FIGURES,
    THRESHOLD_METHODS,
    CalibrationClaims,
    correct_rates,
    estimate_corrected_intervals,
    resample_corrected_rates,
)
from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import Judgements
from factaudit.audit.adjusted_bias import explain_missing_interval
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.calibration import CORRECTION_METHODS
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


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
    known = judged.system_names
    if not known:
        raise UsageError("no claim names a system; name the column with --system COLUMN")
    if calibration_system not in known:
        raise UsageError(f"unknown system {calibration_system!r}{suggest_known_name(calibration_system, known)}")
    if evaluator is not None and evaluator not in judged.evaluators:
        raise UsageError(f"unknown evaluator {evaluator!r}{suggest_known_name(evaluator, judged.evaluators)}")
    chosen = [at for at, name in enumerate(judged.evaluators) if evaluator in (None, name)]
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at_level(level), judged.make_groups(level, systems=True)
        calibrating = {key["dataset"]: at for at, key in enumerate(systems.keys) if key["system"] == calibration_system}
        others = [(at, key) for at, key in enumerate(systems.keys) if key["system"] != calibration_system]
        for place, at in calibrating.items():
            labelled = systems.rows(at)[units.label[systems.rows(at)] >= 0]
            for name in chosen:
                for other, key in others:
                    if key["dataset"] == place:
                        case = CalibrationClaims.select(units, name, [labelled, systems.rows(other)])
                        about: Row = {"dataset": place, "level": level, "evaluator": judged.evaluators[name]}
                        about |= {"calibration_system": calibration_system, "system": key["system"]}
                        rows += _correct_by_each_method(case, about, intervals)
    if not rows:
        raise UsageError(
            f"nothing to correct: {calibration_system!r} shares no data set with another system ({', '.join(levels)})"
        )
    return rows


def _correct_by_each_method(claims: CalibrationClaims, keys: Row, bootstrap: ClusterBootstrap | None) -> list[Row]:
    """The error rate of system 1 after a calibration on system 0."""
    found = correct_rates(claims, CORRECTION_METHODS)
    labelled, predicted = found.labelled[1], found.corrected["none"][0, 1]
    resampled = None
    if bootstrap is not None:
        draws = bootstrap.draw(claims.cluster, keys["dataset"])
        resampled = resample_corrected_rates(claims, CORRECTION_METHODS, draws)
    rows = []
    for method in CORRECTION_METHODS:
        why, sizes = claims.explain_refusals(method)[0], claims.count_usable(method)
        unusable, usable = sizes[1].sum(0).tolist()
        adjusted = np.full(1, np.nan) if why or not usable else found.corrected[method][0, 1]
        figures = {
            "threshold": Figure(found.thresholds[method][0]),
            "predicted_error_rate": Figure(predicted),
            "adjusted_error_rate": Figure(adjusted),
            "labelled_error_rate": Figure(labelled),
            "bias": Figure(adjusted - labelled),
        }
        if bootstrap is not None:
            points = np.full((2, 3, 2), np.nan)
            points[:, 0, 1] = adjusted[0], adjusted[0] - labelled[0]
            ends = estimate_corrected_intervals(bootstrap, resampled, method, [0], points)[:, :, 0, 1]
            for at, key in enumerate(CORRECTED_FIGURES):
                figures[key] = replace(figures[key], interval=(ends[0, [at]], ends[1, [at]]))
        counts = {"n": [usable], "n_unscored": [unusable], "n_labels": [int(sizes[1, :2].sum())]}
        counts["n_calibration_labels"] = [int(sizes[0, :2, 1].sum())]
        reasons = [
            f"calibration system: {why}" if why else "",
            "" if usable else "no claim that the method can use",
            "no label" if usable and np.isnan(labelled[0]) else "",
            "" if method in THRESHOLD_METHODS else "the method has no threshold",
        ]
        cause = explain_missing_interval(resampled)
        rows += tabulate([keys | {"method": method}], counts, figures, [[text] for text in reasons], cause)
    return rows
