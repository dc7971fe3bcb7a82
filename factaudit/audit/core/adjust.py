"""Correct the error rates of systems, labelled or not, with one labelled system (``factaudit adjust``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factaudit.audit.core.calibration import (
    no_threshold,
    observed,
    unidentifiable,
)
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.recalibration import KEYS, ends_of, resampled
from factaudit.audit.core.rows import Row, number, reasons, without_interval
from factaudit.audit.core.scores import METHODS, Case
from factaudit.audit.transfer import transfer
from factaudit.errors import UsageError, hint


def adjust(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    evaluator: str | None,
    calibrate: str,
    *,
    levels: Sequence[str] = ("claim",),
    methods: Sequence[str] = METHODS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """Calibrate on one labelled system and correct the predicted error rates of the others, labelled or not.

    A row per dataset (where ``calibrate`` has claims), level, evaluator (all, or the one named), method and other
    system: threshold, n (its scored claims; those with labels where it has any), n_unscored, predicted_error_rate (as
    predicted), adjusted_error_rate, labelled_error_rate (of all its labels) and bias (= adjusted - labelled), reason.
    With intervals ``_low`` and ``_high`` of the adjusted rate and the bias: whole clusters are resampled, calibration
    and correction made again. Beside them the *transfer test* of `factaudit.audit.transfer` over the dataset's labelled
    systems, as ``tpr_p``, ``tpr_missable`` and the same of TNR: a correction supposes that both rates are equal.
    Raises `UsageError` for an unknown evaluator or system, or where no dataset has another system.
    """
    judged = Judged.join(claims, verdicts)
    known = sorted(set(claims["system"].dropna()))
    if calibrate not in known:
        raise UsageError(f"unknown system {calibrate!r}{hint(calibrate, known)}" if known else "no claim has a system")
    if evaluator is not None and evaluator not in judged.evaluators:
        raise UsageError(f"unknown evaluator {evaluator!r}{hint(evaluator, judged.evaluators)}")
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"unknown method {method!r}{hint(method, METHODS)}")
    tests = {
        (row["dataset"], row["level"], row["evaluator"], row["rate"]): row for row in transfer(judged, levels=levels)
    }
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), judged.group(level, systems=True)
        for place in [at for at, key in enumerate(systems.keys) if key["system"] == calibrate]:
            dataset = systems.keys[place]["dataset"]
            others = [(o, k["system"]) for o, k in enumerate(systems.keys) if k["dataset"] == dataset and o != place]
            for at in [e for e, name in enumerate(judged.evaluators) if evaluator in (None, name)]:
                about: Row = {"dataset": dataset, "level": level, "evaluator": judged.evaluators[at]}
                held: Row = {}
                for rate in ("tpr", "tnr"):
                    test = tests.get((dataset, level, judged.evaluators[at], rate), {})
                    held |= {f"{rate}_p": test.get("p"), f"{rate}_missable": test.get("missable")}
                for other, system in others:
                    case = _case(units, systems.codes, at, place, other)
                    row = about | {"calibration_system": calibrate, "system": system}
                    rows += [row | found | held for found in _corrected(case, methods, dataset, intervals)]
    if not rows:
        raise UsageError(
            f"nothing to correct: {calibrate!r} shares no dataset with another system ({', '.join(levels)})"
        )
    return rows


def _case(units: Judged, codes: np.ndarray, evaluator: int, calibration: int, other: int) -> Case:
    """The labelled claims of the calibration system (0), and those of the other (1): the labelled ones, if any."""
    mine = np.flatnonzero((codes == calibration) & (units.label >= 0))
    rest = np.flatnonzero(codes == other)
    labelled = rest[units.label[rest] >= 0]
    rest = labelled if len(labelled) else rest
    system = np.repeat([0, 1], [len(mine), len(rest)])
    return Case.of(units.claims_of(evaluator, np.concatenate([mine, rest]), system), 2)


def _corrected(case: Case, methods: Sequence[str], dataset: str, intervals: Intervals | None) -> list[Row]:
    """The error rate of system 1 after a calibration on system 0, by each method."""
    found = observed(case, list(dict.fromkeys(["none", *methods])))
    labelled = found.labelled[1, 0]
    drawn = None if intervals is None else next(resampled([case.binned()], methods, dataset, intervals))
    rows = []
    for method in methods:
        why = unidentifiable(case, method)[0]
        unusable, usable = case.sizes(method)[1].sum(0).tolist()
        adjusted = np.nan if why or not usable else found.rates[method][0, 1, 0]
        row: Row = {"method": method, "threshold": number(found.thresholds[method][0, 0])}
        row |= {"n": usable, "n_unscored": unusable}
        row |= {"predicted_error_rate": number(found.rates["none"][0, 1, 0]), "adjusted_error_rate": number(adjusted)}
        row |= {"labelled_error_rate": number(labelled), "bias": number(adjusted - labelled)}
        if intervals is not None:
            points = np.full((2, 3, 2), np.nan)
            points[:, 0, 1] = adjusted, adjusted - labelled
            ends = ends_of(intervals, drawn, method, [0], points)[:, :, 0, 1]
            row |= {
                f"{key}_{end}": number(ends[i, k])
                for k, key in enumerate(KEYS)
                for i, end in enumerate(("low", "high"))
            }
        reason = [
            f"calibration system: {why}" if why else "",
            "" if usable else "no claim that the method can use",
            "no label" if usable and np.isnan(labelled) else "",
            no_threshold(method),
            without_interval(row),
        ]
        rows.append(row | {"reason": reasons(reason)})
    return rows
