"""Correct the error rates of systems, labelled or not, with one labelled system (``factaudit adjust``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factaudit.audit.core.calibration import (
    METHODS,
    Case,
    Ranked,
    adjusted_counts,
    labelled_claims,
    no_threshold,
    table_of,
    unidentifiable,
)
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import Row, number, ratio, reasons
from factaudit.audit.quantification import by_system
from factaudit.errors import UsageError, hint


def adjust(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    evaluator: str | None,
    calibrate: str,
    *,
    levels: Sequence[str] = ("claim",),
    methods: Sequence[str] = METHODS,
) -> list[Row]:
    """Calibrate on one labelled system and correct the predicted error rates of the others, labelled or not.

    A row per dataset (where ``calibrate`` has claims), level, evaluator (all, or the one named), method and other
    system: threshold, n (its scored claims), n_unscored, predicted_error_rate (as predicted), adjusted_error_rate,
    labelled_error_rate and bias (= adjusted - labelled) where its scored claims have labels (over those), reason.
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
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        for place in [at for at, key in enumerate(systems.keys) if key["system"] == calibrate]:
            dataset = systems.keys[place]["dataset"]
            others = [(o, k["system"]) for o, k in enumerate(systems.keys) if k["dataset"] == dataset and o != place]
            for at in [e for e, name in enumerate(judged.evaluators) if evaluator in (None, name)]:
                case = Case.of(units, at, *labelled_claims(units, systems.codes, [place]), 1)
                for other, system in others:
                    row: Row = {"dataset": dataset, "level": level, "evaluator": judged.evaluators[at]}
                    row |= {"calibration_system": calibrate, "system": system}
                    claims_of = np.flatnonzero(systems.codes == other)
                    rows += [row | _corrected(units, at, claims_of, case, method) for method in methods]
    if not rows:
        raise UsageError(
            f"nothing to correct: {calibrate!r} shares no dataset with another system ({', '.join(levels)})"
        )
    return rows


def _corrected(units: Judged, evaluator: int, rows: np.ndarray, calibration: Case, method: str) -> Row:
    """One line of `adjust`: the error rate of one system, ``rows`` of ``units``, after a calibration."""
    label, prediction, score = units.label[rows], units.prediction[evaluator, rows], units.score[evaluator, rows]
    usable = ~np.isnan(score) if method in METHODS[2:] else prediction >= 0
    # As in every audit: the labelled ones where there are any, so that the bias is of the same claims.
    population = label >= 0 if (usable & (label >= 0)).any() else np.ones(len(rows), dtype=bool)
    used = usable & population
    predicted = ratio((prediction[used] == 0).sum(), (prediction[used] >= 0).sum())
    ones = np.ones((1, len(calibration.label)))
    threshold, adjusted = np.array(np.nan), predicted
    why = unidentifiable(calibration, 0, method)
    if method in METHODS[2:]:
        threshold = Ranked.of(calibration, 0, ones).tune(method)[0]
        adjusted = ratio((score[used] <= threshold).sum(), 0 if why else used.sum())
    elif method == "adjusted_counts":
        adjusted = adjusted_counts(predicted, table_of(calibration, ones)[0, 0])
    labelled = ratio((label[used] == 0).sum(), (label[used] >= 0).sum())
    return {
        "method": method,
        "threshold": number(threshold),
        "n": int(used.sum()),
        "n_unscored": int((population & ~usable).sum()),
        "predicted_error_rate": number(predicted),
        "adjusted_error_rate": number(adjusted),
        "labelled_error_rate": number(labelled),
        "bias": number(adjusted - labelled),
        "reason": reasons(
            [
                f"calibration system: {why}" if why else "",
                "" if used.any() else "no claim that the method can use",
                "no label" if used.any() and np.isnan(labelled) else "",
                no_threshold(method),
            ]
        ),
    }
