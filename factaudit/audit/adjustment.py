"""Can the labels of one system correct the error rates of the others? Adjusted counts and thresholds (VC §5, A.7)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from factaudit.arrays.calibration import THRESHOLD_METHODS, CalibrationClaims, CorrectedRates, correct_rates
from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditedRun,
    Column,
    pick_shared_columns,
)
from factaudit.audit.core.checks import Count, group_rows
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.calibration import (
    CORRECTION_METHODS,
    mean_of_calibrations,
    remaining_bias,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.text.display_text import format_count

#: The calibration_system of a row that is the mean over all calibrations.
MEAN_OVER_CALIBRATIONS = "__cv__"


def compute_adjustment_effect(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = CORRECTION_METHODS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Each system of a dataset calibrates in turn; what bias is left in the error rates of the others?

    A row per dataset, level, evaluator, method and calibration_system: calibration_error_rate (its labelled one) and
    calibration_errors (their number), n_calibration_labels (those that the method uses), threshold (of the threshold
    methods), mean_abs_bias and worst_abs_bias over the n_systems others, mean_abs_bias_before (that of method ``none``,
    of the same systems; in row ``__cv__`` by the same calibrations), change (= mean_abs_bias - mean_abs_bias_before:
    negative where the method helps), unidentifiable (1 where the calibration system cannot give what the method needs,
    or the evaluator is not clear of chance on it; reason says why). Row ``__cv__``: the means over the n_systems
    calibrations that could be made, and the number of those that could not. n, n_unscored: labelled claims (or
    responses) of all systems that the method could use and could not. Without scores there are no threshold rows.

    A mean of absolute values is pushed up by noise and never reaches 0: no interval of it, or of its change, holds.
    `adjusted_bias` has each system's signed bias with an interval. There are no bounds.
    """
    del intervals
    rows = [
        row
        for calibration in calibrate_on_each_system(judgements, levels, methods)
        for method in calibration.usable_methods(methods)
        for row in _tabulate_method(calibration, method)
    ]
    return sorted(rows, key=lambda row: row["dataset"])


@dataclass(frozen=True)
class Calibration:
    """What the labels of each system say of one evaluator on a dataset at a level.

    rates: by the claims as they are; sizes, refusals: per method, `CalibrationClaims.count_usable` and
    `explain_refusals`.
    """

    groups: ClaimGroups
    members: list[int]
    evaluator: int
    keys: Row
    rates: CorrectedRates
    sizes: Mapping[str, np.ndarray]
    refusals: Mapping[str, list[str]]

    @property
    def systems(self) -> list[str]:
        return [self.groups.keys[place]["system"] for place in self.members]

    def usable_methods(self, methods: Sequence[str]) -> list[str]:
        """The methods among these that can be used: an evaluator without scores has no thresholds."""
        return [method for method in self.refusals if method in methods]


def calibrate_on_each_system(
    judgements: Judgements, levels: Sequence[str], methods: Sequence[str]
) -> Iterator[Calibration]:
    """The calibrations of each level, dataset and evaluator; they are computed once for all audits."""
    for method in methods:
        if method not in CORRECTION_METHODS:
            raise UsageError(f"adjustment: unknown method {method!r}{suggest_known_name(method, CORRECTION_METHODS)}")
    for level in dict.fromkeys(levels):
        yield from judgements.compute_once(("calibrations", level), partial(_calibrate, judgements, level))


def _calibrate(judgements: Judgements, level: str) -> list[Calibration]:
    groups, found = judgements.make_groups(level, systems=True), []
    for dataset in judgements.dataset_names:
        members = [at for at, key in enumerate(groups.keys) if key["dataset"] == dataset]
        for place, evaluator in enumerate(judgements.evaluators):
            claims = select_calibration_claims(judgements, groups, members, place)
            keys: Row = {"dataset": dataset, "level": level, "evaluator": evaluator}
            sizes = {method: claims.count_usable(method) for method in claims.methods}
            refusals = {method: claims.explain_refusals(method) for method in claims.methods}
            rates = correct_rates(claims, claims.methods)
            found.append(Calibration(groups, members, place, keys, rates, sizes, refusals))
    return found


def select_calibration_claims(
    judgements: Judgements, groups: ClaimGroups, members: Sequence[int], evaluator: int
) -> CalibrationClaims:
    """The labelled claims of some systems, which are groups of one dataset."""
    units = judgements.at_level(groups.level)
    rows = [rows[units.label[rows] >= 0] for rows in map(groups.rows, members)]
    return CalibrationClaims.select(units, evaluator, rows)


def _tabulate_method(calibration: Calibration, method: str) -> list[Row]:
    """A row for each calibration system, and one for all of them in turn."""
    sizes, refusals, systems = calibration.sizes[method], calibration.refusals[method], calibration.systems
    labelled = calibration.rates.labelled[:, 0]
    has_claims, is_refused = sizes[..., 1].sum(1) > 0, np.array([bool(why) for why in refusals], dtype=bool)
    before, _ = remaining_bias(calibration.rates.corrected["none"][..., 0], labelled, has_claims)
    mean, worst = remaining_bias(calibration.rates.corrected[method][..., 0], labelled, has_claims)
    biases = {"mean_abs_bias": mean, "worst_abs_bias": worst, "mean_abs_bias_before": before, "change": mean - before}
    biases = {key: np.where(is_refused, np.nan, values) for key, values in biases.items()}
    made = ~np.isnan(biases["mean_abs_bias"])
    means = {key: mean_of_calibrations(values[made]) for key, values in biases.items()}
    if made.any():
        means["worst_abs_bias"] = biases["worst_abs_bias"][made].max()
    figures = {
        key: np.append(values, np.nan)
        for key, values in (
            ("calibration_error_rate", labelled),
            ("threshold", calibration.rates.thresholds[method][:, 0]),
        )
    }
    figures |= {key: np.append(values, means[key]) for key, values in biases.items()}
    others = has_claims.sum() - has_claims
    unusable, usable = sizes.sum((0, 1))
    n_rows = len(systems) + 1
    counts = {
        "n": np.full(n_rows, usable),
        "n_unscored": np.full(n_rows, unusable),
        "n_systems": np.append(others, made.sum()),
        "unidentifiable": np.append(is_refused, is_refused.sum()).astype(int),
        "calibration_errors": [*sizes[:, 0].sum(1).tolist(), None],
        "n_calibration_labels": [*sizes[:, :2, 1].sum(1).tolist(), None],
    }
    every = [f"{name}: {why}" for name, why in zip(systems, refusals, strict=True) if why]
    if len(systems) < 2:
        found = format_count(len(systems), "system")
        every.append(f"there is {found}, but two are needed: one whose labels are used and one to correct")
    if made.any():
        every.append("a mean over calibrations has no threshold of its own")
    elif not every:
        every.append("no calibration could be made")
    no_threshold = "" if method in THRESHOLD_METHODS else "the method has no threshold"
    reasons = [
        [*refusals, "; ".join(every)],
        [*np.where(others > 0, "", "no other system"), ""],
        [*[no_threshold] * len(systems), ""],
    ]
    about = calibration.keys | {"method": method}
    keys = [about | {"calibration_system": name} for name in [*systems, MEAN_OVER_CALIBRATIONS]]
    return tabulate(keys, counts, {key: Figure(values) for key, values in figures.items()}, reasons)


# ----------------------------------------------------------------------------------------------------------- checks

#: A system with fewer labelled errors is too little to calibrate on.
MIN_CALIBRATION_ERRORS = 10


def _count_systems_with_few_errors(run: AuditedRun) -> Iterator[Row]:
    """By data set the systems with too few labelled errors to calibrate on, and the one with the most (VC §5)."""
    rows = [row for row in run.rows("adjustment") if row["level"] == "claim"]
    # Of printed rates nobody knows the errors; a system without labels has no rate.
    known = [row for row in rows if None not in (row.get("calibration_errors"), row.get("calibration_error_rate"))]
    for (dataset,), mine in group_rows(known, "dataset").items():
        errors = {row["calibration_system"]: row["calibration_errors"] for row in mine}
        best = max(errors, key=lambda name: errors[name])
        n_few = sum(n < MIN_CALIBRATION_ERRORS for n in errors.values())
        if len(errors) > 1:
            yield {
                "dataset": dataset,
                "n_few": n_few,
                "n_systems": len(errors),
                "min_errors": MIN_CALIBRATION_ERRORS,
                "best": best,
                "n_errors": errors[best],
                "severity": "warn" if n_few < len(errors) else "fail",
            }


CHECK = Count(
    id="calibration",
    title="Too few labelled errors to correct rates with",
    rows=_count_systems_with_few_errors,
    figure="n_few",
    by=(),
    says="{n_few} of {n_systems:number system}{on} {verdict}. {best} has the most ({n_errors}).",
    beyond="have fewer than {min_errors} labelled errors, too few to correct the rates of other systems with",
    within="Each system has at least {min_errors} labelled errors, enough to correct the rates of others with.",
)


# --------------------------------------------------------------------------------------------------------- the report


def select_adjustment_means_over_calibrations(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The means over calibrations, where there are any: they have no threshold, and no system, of their own."""
    means = [row for row in rows if row.get("calibration_system") == MEAN_OVER_CALIBRATIONS]
    if not means:
        return list(rows), ""
    only_one = {"threshold", "n_calibration_labels"} | {key for key in rows[0] if key.startswith("calibration_error")}
    return [{k: v for k, v in row.items() if k not in only_one} for row in means], "Each calibration is in the CSV."


# --------------------------------------------------------------------------------------------------------- declaration

METHOD_COLUMN = Column(
    "method",
    "text",
    ", ".join(f"`{method}`" for method in CORRECTION_METHODS),
    key=True,
    values={
        "none": "no adjustment",
        "adjusted_counts": "adjusted counts",
        "zero_bias_threshold": "threshold: zero bias",
        "bacc_threshold": "threshold: best BAcc",
    },
)
CALIBRATION_SYSTEM_COLUMN = Column(
    "calibration system",
    "text",
    "the system whose labels are used, or `__cv__`: the mean over all systems that can be used",
    key=True,
    values={MEAN_OVER_CALIBRATIONS: "each in turn"},
)
CALIBRATION_OPTIONS = {
    "levels": "`claim`, `response`",
    "methods": "some of " + ", ".join(f"`{method}`" for method in CORRECTION_METHODS),
}
_BIAS_DESCRIPTION = "|bias| of the other systems' error rates"

_COLUMNS = {
    **pick_shared_columns("dataset", "level", "evaluator"),
    "method": METHOD_COLUMN,
    "calibration_system": CALIBRATION_SYSTEM_COLUMN,
    **pick_shared_columns("n", "n_unscored", "reason"),
    "n_systems": Column(
        "calibrations",
        "count",
        f"number of corrected systems; in a `{MEAN_OVER_CALIBRATIONS}` row, of systems that could calibrate",
    ),
    "unidentifiable": Column(
        "unidentifiable",
        "count",
        "1 if the system lacks what the method needs; in a `__cv__` row, the number of such systems",
    ),
    "calibration_errors": Column(
        "calibration errors",
        "count",
        "labelled errors of the calibration system, whether or not the method can use them",
    ),
    "n_calibration_labels": Column(
        "calibration labels", "count", "labels of the calibration system that the method uses"
    ),
    "calibration_error_rate": Column(
        "calibration error rate", "percent", ("share of errors among all labels of the calibration system")
    ),
    "threshold": Column(
        "threshold", "number", "the tuned threshold; a prediction is 1 if the score is above it", digits=3
    ),
    "mean_abs_bias": Column("mean |bias|", "points", f"mean {_BIAS_DESCRIPTION}", signed=False, counted_in="n_systems"),
    "worst_abs_bias": Column(
        "worst |bias|",
        "points",
        f"the largest {_BIAS_DESCRIPTION}; in a `{MEAN_OVER_CALIBRATIONS}` row, over all calibrations",
        signed=False,
        counted_in="n_systems",
    ),
    "mean_abs_bias_before": Column(
        "mean |bias| before",
        "points",
        "mean |bias| of `none` over the same systems and calibrations",
        signed=False,
    ),
    "change": Column("change", "points", "mean_abs_bias − mean_abs_bias_before: below 0, the method helps"),
}


AUDIT = Audit(
    name="adjustment",
    after="chunking_rates",
    title="Correcting error rates with one system's labels",
    question="Can the labels of one system correct the predicted error rates of the others?",
    source="VC §5, A.7",
    formula=(
        "Adjusted counts: corrected error rate = clip((predicted error rate − FNR) / (TNR − FNR), 0, 1), where "
        "FNR is the share of supported claims that are flagged and TNR the share of errors that are found. The "
        "two threshold methods tune the threshold on the calibration system, to zero bias or to the best BAcc. "
        "|bias| is over the other systems."
    ),
    text=(
        "The labels of one system are used to correct the predicted error rates of the other systems (VC §5). Not "
        "every method can use every system, so each mean is over the systems that the method can use. To compare a"
        " method with “no adjustment”, read “change”, which uses the same systems for both."
    ),
    remedy="If no method leaves less bias than `none`, do not correct rates with the labels of one system. Estimate "
    "the rate of each system from labels of its own (`factaudit estimate`). A correction assumes that the evaluator "
    "judges all systems alike; `covariates: {columns: [system]}` tests this.",
    columns=_COLUMNS,
    options=CALIBRATION_OPTIONS,
    compute=compute_adjustment_effect,
    counts="joint",
    readable=select_adjustment_means_over_calibrations,
    plot=PlotSpec(
        what="|Bias| of the other systems after a correction, by method",
        keys=("mean_abs_bias", "worst_abs_bias"),
        groups=("dataset", "evaluator"),
        series="method",
    ),
    checks=(CHECK,),
)
