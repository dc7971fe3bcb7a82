"""Can one labelled system mend the error rates of the others? Adjusted counts and threshold tuning (VC §5, A.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core.calibration import (
    Estimates,
    mean_of,
    no_threshold,
    observed,
    over_others,
    unidentifiable,
)
from factaudit.audit.core.checks import names, of_datasets
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, number, reasons
from factaudit.audit.core.scores import METHODS, Binned
from factaudit.audit.core.tallies import Tallies
from factaudit.errors import UsageError, hint
from factaudit.text.printable import count

#: The calibration_system of a row that is the mean over all calibrations.
CV = "__cv__"


def adjustment(
    judged: Tallies,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = METHODS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """Each system of a dataset calibrates in turn; what bias is left in the error rates of the others?

    A row per dataset, level, evaluator, method and calibration_system: calibration_error_rate (its labelled one) and
    calibration_errors (their number), threshold (of the threshold methods), mean_abs_bias and worst_abs_bias over the
    n_systems others, change (= mean_abs_bias - that of method ``none``: negative where the method helps),
    unidentifiable (1 where the calibration system cannot give what the method needs, or the evaluator is not clear of
    chance on it; reason says why). Row ``__cv__``: the means over the n_systems calibrations that could be made, and
    the number of those that could not. n, n_unscored: labelled claims (or responses) of all systems that the method
    could use and could not. Without scores there are no threshold rows.

    A mean of absolute values is pushed up by noise and never reaches 0: no interval of it, or of its change, holds.
    `adjusted_bias` has each system's signed bias with an interval. There are no bounds.
    """
    del intervals
    rows: list[Row] = []
    for each in calibrations(judged, levels, methods):
        found, labelled = each.found, each.found.labelled[:, 0]
        without, _ = over_others(found.rates["none"][..., 0], labelled, each.sizes["none"][..., 1].sum(1) > 0)
        for method in each.used(methods):
            why, sizes = each.why[method], each.sizes[method]
            refused = np.array([reason is not None for reason in why], dtype=bool)
            mean, worst = over_others(found.rates[method][..., 0], labelled, sizes[..., 1].sum(1) > 0)
            figures = {
                "calibration_error_rate": labelled,
                "threshold": found.thresholds[method][:, 0],
                "mean_abs_bias": np.where(refused, np.nan, mean),
                "worst_abs_bias": np.where(refused, np.nan, worst),
                "change": np.where(refused, np.nan, mean - without),
            }
            rows += [each.about | row for row in _rows(sizes, each.systems, method, figures, why)]
    rows.sort(key=lambda row: row["dataset"])
    return rows


@dataclass(frozen=True)
class Calibrations:
    """What the labels of each system say of one evaluator on a dataset at a level.

    found: by the claims as they are; sizes, why: per method, `Case.sizes` and `unidentifiable`; binned: what is
    resampled.
    """

    about: Row
    systems: list[str]
    found: Estimates
    sizes: Mapping[str, np.ndarray]
    why: Mapping[str, list[str | None]]
    binned: Binned

    def used(self, methods: Sequence[str]) -> list[str]:
        """Those that can be used: without scores no thresholds."""
        return [method for method in self.why if method in methods]


def calibrations(judged: Tallies, levels: Sequence[str], methods: Sequence[str]) -> Iterator[Calibrations]:
    """Per level, dataset and evaluator; made once for all audits."""
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"adjustment: unknown method {method!r}{hint(method, METHODS)}")
    for level in dict.fromkeys(levels):
        if ("calibrations", level) not in judged.kept:
            judged.kept["calibrations", level] = list(_calibrations(judged, level))
        yield from judged.kept["calibrations", level]


def _calibrations(judged: Tallies, level: str) -> Iterator[Calibrations]:
    systems = judged.group(level, systems=True)
    for dataset in judged.dataset_names:
        places = [at for at, key in enumerate(systems.keys) if key["dataset"] == dataset]
        names = [systems.keys[at]["system"] for at in places]
        for at, evaluator in enumerate(judged.evaluators):
            case = judged.scored(systems, places, at)
            used = METHODS if case.has_scores else METHODS[:2]
            sizes = {method: case.sizes(method) for method in used}
            why = {method: unidentifiable(case, method) for method in used}
            about: Row = {"dataset": dataset, "level": level, "evaluator": evaluator}
            yield Calibrations(about, names, observed(case, used), sizes, why, case.binned())


def _rows(
    sizes: np.ndarray, names: Sequence[str], method: str, figures: Mapping[str, np.ndarray], why: Sequence[str | None]
) -> list[Row]:
    with_claims = sizes[..., 1].sum(1) > 0
    made = np.flatnonzero(~np.isnan(figures["mean_abs_bias"]))
    unusable, usable = sizes.sum((0, 1)).tolist()
    about: Row = {"method": method, "n": usable, "n_unscored": unusable}
    rows = []
    for at, name in enumerate(names):
        others = int(with_claims.sum() - with_claims[at])
        row = about | {"calibration_system": name, "n_systems": others, "unidentifiable": int(why[at] is not None)}
        row["calibration_errors"] = int(sizes[at, 0].sum())
        row |= {key: number(values[at]) for key, values in figures.items()}
        reason = [why[at] or "", "" if others else "no other system", no_threshold(method)]
        rows.append(row | {"reason": reasons(reason)})
    row = about | {"calibration_system": CV, "n_systems": len(made)}
    row |= {"unidentifiable": sum(reason is not None for reason in why), "calibration_errors": None}
    row |= {key: number(mean_of(values[made])) if key in _MEANT else None for key, values in figures.items()}
    reason = [f"{name}: {reason}" for name, reason in zip(names, why, strict=True) if reason]
    if len(names) < 2:
        reason.append(f"{count(len(names), 'system')}: one to calibrate on and another to correct are needed")
    reason.append("a mean over calibrations has no threshold of its own")
    return [*rows, row | {"reason": reasons(reason)}]


#: The figures of a calibration that have a mean over calibrations.
_MEANT = ("mean_abs_bias", "worst_abs_bias", "change")


# ----------------------------------------------------------------------------------------------------------- findings

#: A system with fewer labelled errors is too little to calibrate on.
MIN_ERRORS = 10


def _calibration(audited: Audited) -> Iterator[Finding]:
    """Systems with too few labelled errors to calibrate on: the one with the fewest first (VC §5)."""
    rows = [row for row in audited.rows("adjustment") if row.get("calibration_errors") is not None]
    errors: dict[str, dict[str, int]] = {}
    for row in rows:
        if row["level"] == "claim":
            errors.setdefault(row["dataset"], {})[row["calibration_system"]] = row["calibration_errors"]
    errors = {dataset: of for dataset, of in errors.items() if len(of) > 1}
    few = {dataset: [name for name in of if of[name] < MIN_ERRORS] for dataset, of in errors.items()}
    bad = [dataset for dataset, systems in few.items() if systems]
    if bad:
        worst = max(bad, key=lambda dataset: len(few[dataset]) / len(errors[dataset]))
        of = errors[worst]
        best, least = max(of, key=lambda name: of[name]), min(of, key=lambda name: of[name])
        listed = names([f"{name} ({of[name]})" for name in sorted(few[worst], key=lambda name: of[name])])
        more = f" Some have too few{of_datasets(bad, list(errors))}." if len(errors) > 1 else ""
        advice = f"use {best} ({of[best]})" if best not in few[worst] else "label more first"
        yield Finding(
            "warn" if best not in few[worst] else "fail",
            None,
            worst,
            f"Do not calibrate on the system with the fewest errors: {len(few[worst])} of {len(of)} systems on {worst} "
            f"have fewer than {MIN_ERRORS} labelled errors ({listed}). There {advice}.{more}",
            {"n_too_few": len(few[worst]), "best": best, "n_errors": of[best], "least": least},
        )
    elif errors:
        yield Finding(
            "ok",
            None,
            None,
            f"Each system has at least {MIN_ERRORS} labelled errors to calibrate on, of all its labels.",
            {"n_errors": min(min(of.values()) for of in errors.values())},
        )


# --------------------------------------------------------------------------------------------------------- the report


def _readable(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The means over calibrations, where there are any: they have no threshold, and no system, of their own."""
    means = [row for row in rows if row.get("calibration_system") == CV]
    if not means:
        return list(rows), ""
    only_one = {"threshold"} | {key for key in rows[0] if key.startswith("calibration_error")}
    return [{k: v for k, v in row.items() if k not in only_one} for row in means], "Each calibration is in the CSV."


# --------------------------------------------------------------------------------------------------------- declaration

METHOD = Column(
    "method",
    "text",
    ", ".join(f"`{method}`" for method in METHODS),
    key=True,
    values={
        "none": "no adjustment",
        "adjusted_counts": "adjusted counts",
        "zero_bias_threshold": "threshold: zero bias",
        "bacc_threshold": "threshold: best BAcc",
    },
)
_BIASES = "of the other systems' error rates"

AUDIT = Audit(
    name="adjustment",
    place=120,
    title="Correcting error rates with a few labels",
    question="Can one labelled system mend the predicted error rates of the others?",
    source="VC §5, A.7",
    formula="Adjusted counts: p̂ = clip((p̂₀ − FNR) / (TNR − FNR), 0, 1), the error being the positive class; thresholds "
    "are tuned on the calibration system to zero bias or to the best BAcc. |bias| is over the other systems; “each in "
    "turn” is the mean over calibration systems.",
    text="One system's labels calibrate the evaluator; the others' predicted error rates are corrected (VC §5).",
    columns={
        **shared("dataset", "level", "evaluator"),
        "method": METHOD,
        "calibration_system": Column(
            "calibration system",
            "text",
            f"the system whose labels are used, or `{CV}`: the mean over all that could be",
            key=True,
            values={CV: "mean, each in turn"},
        ),
        **shared("n", "n_unscored", "reason"),
        "n_systems": Column(
            "systems", "count", f"the other systems; in a `{CV}` row, the calibrations that could be made"
        ),
        "unidentifiable": Column(
            "unidentifiable",
            "count",
            f"1 where the system cannot give what the method needs; in a `{CV}` row, how many cannot",
        ),
        "calibration_errors": Column("calibration errors", "count", "labelled errors of the calibration system"),
        "calibration_error_rate": Column("calibration error rate", "percent", "their share of its labels"),
        "threshold": Column(
            "threshold", "number", "the tuned one; a prediction is 1 where the score is above it", digits=3
        ),
        "mean_abs_bias": Column("mean |bias|", "points", _BIASES, signed=False),
        "worst_abs_bias": Column("worst |bias|", "points", _BIASES, signed=False),
        "change": Column("change", "points", "mean_abs_bias − that of `none`: below 0 the method helps"),
    },
    options={"levels": "`claim`, `response`", "methods": "some of " + ", ".join(f"`{method}`" for method in METHODS)},
    compute=adjustment,
    counts="joint",
    tallies=True,
    readable=_readable,
    plots=(
        DotPlot(
            what="|Bias| of the systems that did not calibrate, by method: mean (filled) and worst (hollow)",
            keys=("mean_abs_bias",),
            beyond="worst_abs_bias",
            panels="evaluator",
            series="method",
            labels={"mean_abs_bias": "|bias| (points)", "worst_abs_bias": "worst"},
        ),
    ),
    checks=(
        Check(
            "calibration",
            "Calibration on too few errors",
            f"systems with fewer than {MIN_ERRORS} labelled errors: too few to calibrate on",
            _calibration,
        ),
    ),
)
