"""How far each system's error rate is off after a calibration on another one (VC §5), with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, repeat

import numpy as np

from factaudit.audit.adjustment import CV, METHOD, Calibrations, calibrations
from factaudit.audit.core.calibration import mean_of
from factaudit.audit.core.checks import by_keys
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.recalibration import KEYS, Resampled, ends_of, resampled
from factaudit.audit.core.rows import Row, numbers, reasons, without_interval
from factaudit.audit.core.scores import METHODS
from factaudit.audit.core.tallies import Tallies
from factaudit.audit.core.words import points
from factaudit.text.printable import count


def adjusted_bias(
    judged: Tallies,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = METHODS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """The signed bias that is left of each system, by the calibration on each other one.

    A row per dataset, level, evaluator, method, calibration_system and system, and one of calibration_system
    ``__cv__``, the mean over the calibrations that could be made: n (the system's labelled claims or responses that the
    method can use), n_unscored, labelled_error_rate (of all labels), adjusted_error_rate and bias (= adjusted -
    labelled). With intervals ``_low`` and ``_high`` of the adjusted rate and of the bias, by a cluster bootstrap that
    calibrates again, so that the errors of the calibration and of the rate are both in it. Approximated there, and
    there alone: with more than `SCORE_BINS` distinct scores a replicate's thresholds lie between that many bins.
    """
    rows: list[Row] = []
    every = calibrations(judged, levels, methods)
    for (_, dataset), several in groupby(every, lambda each: (each.about["level"], each.about["dataset"])):
        of = list(several)
        drawn: Iterable[Resampled | None] = repeat(None)
        if intervals is not None:
            drawn = resampled([each.binned for each in of], methods, dataset, intervals)
        for each, replicates in zip(of, drawn, strict=False):
            rows += _corrected(each, methods, replicates, intervals)
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _corrected(
    each: Calibrations, methods: Sequence[str], drawn: Resampled | None, intervals: Intervals | None
) -> Iterator[Row]:
    """The rows of one evaluator on a dataset at a level."""
    labelled = each.found.labelled[:, 0]
    for method in each.used(methods):
        made = [at for at, reason in enumerate(each.why[method]) if reason is None]
        adjusted = _adjusted(each.found.rates[method][..., 0], made)
        figures = np.stack([adjusted, adjusted - labelled])
        ends = None if intervals is None else ends_of(intervals, drawn, method, made, figures)
        for row in _rows(each, method, made, figures, ends):
            yield each.about | row


def _adjusted(rates: np.ndarray, made: Sequence[int]) -> np.ndarray:
    """Each system's corrected rate by each calibration, and by the mean over those of others: (S + 1, S)."""
    adjusted = np.full((len(rates) + 1, len(rates)), np.nan)
    adjusted[made] = rates[made]
    np.fill_diagonal(adjusted[:-1], np.nan)
    adjusted[-1] = mean_of(adjusted[:-1])
    return adjusted


def _rows(
    each: Calibrations, method: str, made: Sequence[int], figures: np.ndarray, ends: np.ndarray | None
) -> Iterator[Row]:
    """The rows of each system, by each calibration and the mean; figures: the points of `ends_of`, ends: its result."""
    names, size = each.systems, len(each.systems)
    labelled, sizes = numbers(each.found.labelled[:, 0]), each.sizes[method][:, :2].sum(1).tolist()
    adjusted, bias = numbers(figures)
    limits = None if ends is None else numbers(np.moveaxis(ends, 0, -1))
    for system, name in enumerate(names):
        unscored, n = sizes[system]
        unlabelled = "no label" if labelled[system] is None else ""
        others = len(made) - (each.why[method][system] is None)
        for at in [*(place for place in range(size) if place != system), size]:
            why = "" if at == size else each.why[method][at] or ""
            row: Row = {"method": method, "calibration_system": CV if at == size else names[at], "system": name}
            row |= {"n": n, "n_unscored": unscored, "labelled_error_rate": labelled[system]}
            row |= {"adjusted_error_rate": adjusted[at][system], "bias": bias[at][system]}
            lacking = ""
            if limits is not None:
                for key, of in zip(KEYS, limits, strict=True):
                    row[f"{key}_low"], row[f"{key}_high"] = of[at][system]
                if row["adjusted_error_rate_low"] is None or row["bias_low"] is None:
                    lacking = without_interval(row)
            left = "" if others or at < size else "no calibration could be made"
            if not left and not why and row["adjusted_error_rate"] is None:
                left = "no claim of the system that the method can use"
            yield row | {"reason": reasons([why, left, unlabelled, lacking])}


# ----------------------------------------------------------------------------------------------------------- findings

#: The methods in words.
_IN_WORDS = {
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "a zero-bias threshold",
    "bacc_threshold": "a best-BAcc threshold",
}


def _adjustment(audited: Audited) -> Iterator[Finding]:
    """How many systems' error rates are still surely wrong after a calibration on another system."""
    rows = [row for row in audited.rows("adjusted_bias") if row["calibration_system"] == CV and row["level"] == "claim"]
    rows = [row for row in rows if row.get("bias_low") is not None]
    for (evaluator,), mine in by_keys(rows, "evaluator"):
        systems: dict[str, dict[tuple[str, str], Row]] = {}
        for row in mine:
            systems.setdefault(row["method"], {})[row["dataset"], row["system"]] = row
        before = systems.get("none", {})
        said: list[str] = []
        off: dict[str, int] = {}
        shrinks: dict[str, bool] = {}
        evidence: Row = {}
        for method, words in _IN_WORDS.items():
            # Compared on the systems that the method could correct.
            pairs = [(before[key], row) for key, row in systems.get(method, {}).items() if key in before]
            if not pairs:
                continue
            wrong = [sum(_sure(row) for row in side) for side in zip(*pairs, strict=True)]
            means = [float(np.mean([abs(row["bias"]) for row in side])) for side in zip(*pairs, strict=True)]
            off[method], shrinks[method] = wrong[1] - wrong[0], means[1] < means[0]
            said.append(
                f"with {words} {wrong[1]} of {count(len(pairs), 'system')} stay surely wrong ({wrong[0]} before; mean "
                f"|bias| {points(means[1])} points, {points(means[0])} before)"
            )
            evidence |= {f"{method}_off": wrong[1], f"{method}_systems": len(pairs)}
        if not said:
            continue
        # Fewer systems that are surely wrong are no help where intervals have but grown: the bias must shrink as well.
        helping = [method for method in off if off[method] < 0 and shrinks[method]]
        best = min(helping, key=lambda method: off[method], default=None)
        advice = f"of these {_IN_WORDS[best]} leaves the least" if best else "do not count on a correction"
        yield Finding(
            "warn" if best else "fail",
            evaluator,
            None,
            f"Calibrating {evaluator} on one system and correcting the others: {'; '.join(said)}. {advice.capitalize()}"
            f"{'' if best else ' from one system'}.",
            evidence,
        )


def _sure(row: Row) -> bool:
    """Whether a bias is clear of 0."""
    return not row["bias_low"] <= 0 <= row["bias_high"]


# --------------------------------------------------------------------------------------------------------- declaration


def _readable(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The means over calibrations."""
    means = [row for row in rows if row.get("calibration_system") == CV]
    return (means, "Each calibration is in the CSV.") if means else (list(rows), "")


AUDIT = Audit(
    name="adjusted_bias",
    place=121,
    title="What is left of each system's bias",
    question="How far is each system's error rate off, and to which side, after a calibration on another system?",
    source="VC §5, A.7",
    formula="Bias = corrected − labelled error rate; the interval has the error of the calibration and of the rate "
    "(cluster bootstrap).",
    text="The signed bias of each system, as the mean over the systems that can calibrate for it.",
    columns={
        **shared("dataset", "level", "evaluator"),
        "method": METHOD,
        "calibration_system": Column(
            "calibration system",
            "text",
            f"the system whose labels are used, or `{CV}`",
            key=True,
            values={CV: "mean, each in turn"},
        ),
        "system": Column("system", "text", "the system whose rate is corrected", key=True),
        **shared("n", "n_unscored", "reason"),
        "labelled_error_rate": Column("labelled error rate", "percent", "of all its labels"),
        "adjusted_error_rate": Column("corrected error rate", "percent", "after the calibration", interval=True),
        "bias": Column("bias", "points", "corrected − labelled error rate", interval=True),
    },
    options={"levels": "`claim`, `response`", "methods": "some of " + ", ".join(f"`{method}`" for method in METHODS)},
    compute=adjusted_bias,
    tallies=True,
    readable=_readable,
    plots=(
        DotPlot(
            what="What is left of each system's bias, by method",
            keys=("bias",),
            panels="evaluator",
            series="method",
            guides={"bias": 0},
        ),
    ),
    checks=(
        Check(
            "adjustment",
            "What a calibration does to the other systems",
            "systems whose error rates are still surely wrong after a calibration on another system",
            _adjustment,
            {
                f"{method}_{what}": Column(f"{method.replace('_', ' ')}: {what}", "count")
                for method in METHODS
                for what in ("off", "systems")
            },
        ),
    ),
)
