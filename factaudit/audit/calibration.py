"""Can the labels of one system correct the error rates of the others? Adjusted counts and
thresholds (VC §5, A.7)

Each system of a data set calibrates in turn. `adjustment` has what bias is left on average in the
error rates of the others, `adjusted_bias` each system's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import mean

import numpy as np

from factaudit.arrays.calibration import (
    CORRECTED_FIGURES,
    THRESHOLD_METHODS,
    CalibrationClaims,
    CorrectedRates,
    ResampledRates,
    correct_rates,
    estimate_corrected_intervals,
    resample_corrected_rates,
)
from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, Count
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.interval_methods import CLUSTER_BOOTSTRAP
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import MOST_PRODUCT_ROWS, Row, group_rows
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.quantification import BIAS_CHECK
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.calibration import CORRECTION_METHODS, mean_of_calibrations, remaining_bias
from factaudit.stats.cluster_bootstrap import ClusterBootstrap, ClusterDraws

#: The calibration_system of a row that is the mean over all calibrations.
MEAN_OVER_CALIBRATIONS = "__cv__"
#: A corrected rate is drawn again no more often: more replicates move its interval by less than a
#: tenth of its width.
MOST_REPLICATES = 500
_NO_INTERVAL = "fewer than two clusters, or its replicates are all alike or mostly undefined"
_NO_CALIBRATION = "no calibration could be made"


def compute_adjustment_effect(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = CORRECTION_METHODS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Each system of a dataset calibrates in turn; what bias is left in the error rates of the
    others?

    A row per dataset, level, evaluator, method and calibration_system: calibration_error_rate (its
    labelled one) and calibration_errors (their number), n_calibration_labels (those that the method
    uses), threshold (of the threshold methods), mean_abs_bias and worst_abs_bias over the n_systems
    others, mean_abs_bias_before (that of method ``none``, of the same systems; in row ``__cv__`` by
    the same calibrations), change (= mean_abs_bias - mean_abs_bias_before: negative where the
    method helps), unidentifiable (1 where the calibration system cannot give what the method needs,
    or the evaluator is not clear of chance on it; reason says why). Row ``__cv__``: the means over
    the n_systems calibrations that could be made, and the number of those that could not. n,
    n_unscored: labelled claims (or responses) of all systems that the method could use and could
    not. Without scores there are no threshold rows.

    A mean of absolute values is pushed up by noise and never reaches 0: no interval of it, or of
    its change, holds. `adjusted_bias` has each system's signed bias with an interval. There are no
    bounds.
    """
    del intervals
    rows = [
        row
        for calibration in calibrate_on_each_system(judgements, levels)
        for method in _choose_methods(calibration, methods)
        for row in _tabulate_remaining_bias(calibration, method)
    ]
    return sorted(rows, key=lambda row: row["dataset"])


@dataclass(frozen=True)
class Calibration:
    """What the labels of each system say of one evaluator on a dataset at a level.

    claims: the labelled ones. rates: by them as they are; refusals: per method why each system
    cannot calibrate, "".
    """

    systems: Sequence[str]
    keys: Row
    claims: CalibrationClaims
    rates: CorrectedRates
    refusals: Mapping[str, Sequence[str]]


def calibrate_on_each_system(
    judgements: Judgements, levels: Sequence[str]
) -> Iterator[Calibration]:
    """The calibrations of each level, dataset and evaluator; they are computed once for both
    audits."""
    for level in dict.fromkeys(levels):
        yield from judgements.compute_once(
            ("calibrations", level), partial(_calibrate, judgements, level)
        )


def _calibrate(judgements: Judgements, level: str) -> list[Calibration]:
    units, groups, found = (
        judgements.at_level(level),
        judgements.make_groups(level, systems=True),
        [],
    )
    for dataset in judgements.dataset_names:
        members = [at for at, key in enumerate(groups.keys) if key["dataset"] == dataset]
        labelled = [rows[units.label[rows] >= 0] for rows in map(groups.rows, members)]
        for place, evaluator in enumerate(judgements.evaluators):
            claims = CalibrationClaims.select(units, place, labelled)
            keys: Row = {"dataset": dataset, "level": level, "evaluator": evaluator}
            refusals = {method: claims.explain_refusals(method) for method in claims.methods}
            systems = [groups.keys[at]["system"] for at in members]
            found.append(
                Calibration(systems, keys, claims, correct_rates(claims, claims.methods), refusals)
            )
    return found


def _choose_methods(calibration: Calibration, methods: Sequence[str]) -> list[str]:
    """The methods asked for that can be used: an evaluator without scores has no thresholds."""
    for method in methods:
        if method not in CORRECTION_METHODS:
            raise UsageError(
                "adjustment: unknown method"
                f" {method!r}{suggest_known_name(method, CORRECTION_METHODS)}"
            )
    return [method for method in calibration.claims.methods if method in methods]


def _tabulate_remaining_bias(calibration: Calibration, method: str) -> list[Row]:
    """A row for each calibration system, and one for all of them in turn."""
    sizes, refusals, rates = (
        calibration.claims.count_usable(method),
        calibration.refusals[method],
        calibration.rates,
    )
    labelled, has_claims = rates.labelled[:, 0], sizes[..., 1].sum(1) > 0
    is_refused = np.array([bool(why) for why in refusals], dtype=bool)
    before, _ = remaining_bias(rates.corrected["none"][..., 0], labelled, has_claims)
    after, worst = remaining_bias(rates.corrected[method][..., 0], labelled, has_claims)
    biases = {
        "mean_abs_bias": after,
        "worst_abs_bias": worst,
        "mean_abs_bias_before": before,
        "change": after - before,
    }
    biases = {key: np.where(is_refused, np.nan, values) for key, values in biases.items()}
    made = ~np.isnan(biases["mean_abs_bias"])
    figures = {
        key: np.append(values, mean_of_calibrations(values[made])) for key, values in biases.items()
    }
    if made.any():
        figures["worst_abs_bias"][-1] = biases["worst_abs_bias"][made].max()
    figures["calibration_error_rate"] = np.append(labelled, np.nan)
    figures["threshold"] = np.append(rates.thresholds[method][:, 0], np.nan)
    unusable, usable = sizes.sum((0, 1))
    n_others, n_rows = has_claims.sum() - has_claims, len(labelled) + 1
    counts = {
        "n": np.full(n_rows, usable),
        "n_unscored": np.full(n_rows, unusable),
        "n_systems": np.append(n_others, made.sum()),
        "unidentifiable": np.append(is_refused, is_refused.sum()).astype(int),
        "calibration_errors": [*sizes[:, 0].sum(1).tolist(), None],
        "n_calibration_labels": [*sizes[:, :2, 1].sum(1).tolist(), None],
    }
    every = [
        f"{name}: {why}" for name, why in zip(calibration.systems, refusals, strict=True) if why
    ]
    names = zip(
        [*calibration.systems, MEAN_OVER_CALIBRATIONS], [*refusals, "; ".join(every)], strict=True
    )
    keys = [
        calibration.keys | {"method": method, "calibration_system": name, "reason": why or None}
        for name, why in names
    ]
    is_mean = np.arange(n_rows) == n_rows - 1
    reasons = {
        "there is no other system to correct": np.append(n_others == 0, n_rows < 3),
        _NO_CALIBRATION: is_mean & (not made.any()),
        "a mean over calibrations has no threshold and no error rate of its own": (
            is_mean & made.any()
        ),
        "the method has no threshold": ~is_mean & (method not in THRESHOLD_METHODS),
    }
    return tabulate(keys, counts, {key: Figure(values) for key, values in figures.items()}, reasons)


def compute_adjusted_bias(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = CORRECTION_METHODS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The signed bias that is left of each system, by the calibration on each other one.

    A row per dataset, level, evaluator, method, calibration_system and system, and one of
    calibration_system ``__cv__``, the mean over the calibrations that could be made: n (the
    system's labelled claims or responses that the method can use), n_unscored, labelled_error_rate
    (of all labels), adjusted_error_rate and bias (= adjusted - labelled). With intervals ``_low``
    and ``_high`` of the adjusted rate and of the bias, by a cluster bootstrap that calibrates
    again, so that the errors of the calibration and of the rate are both in it. Approximated there,
    and
    there alone: with more than `MOST_RESAMPLED_SCORES` distinct scores a replicate's thresholds lie
    between that many bins.

    There are none where they would be more than `MOST_PRODUCT_ROWS`: ask for one data set, or fewer
    evaluators.
    """
    every = list(calibrate_on_each_system(judgements, levels))
    if (
        sum(len(each.systems) ** 2 * len(_choose_methods(each, methods)) for each in every)
        > MOST_PRODUCT_ROWS
    ):
        return []
    if intervals is not None:
        intervals = replace(intervals, replicates=min(intervals.replicates, MOST_REPLICATES))
    rows: list[Row] = []
    draws: dict[tuple[str, str], ClusterDraws] = {}
    for each in every:
        resampled, chosen = None, _choose_methods(each, methods)
        if intervals is not None:
            place = each.keys["level"], each.keys["dataset"]
            if place not in draws:
                draws = {place: intervals.draw(each.claims.cluster, each.keys["dataset"])}
            resampled = resample_corrected_rates(each.claims, chosen, draws[place])
        for method in chosen:
            rows += _tabulate_each_bias(each, method, resampled, intervals)
    return sorted(rows, key=lambda row: row["dataset"])


def _tabulate_each_bias(
    calibration: Calibration,
    method: str,
    resampled: ResampledRates | None,
    bootstrap: ClusterBootstrap | None,
) -> list[Row]:
    """The rows of each system, by each calibration on another one and by their mean."""
    refusals, size, rates = (
        calibration.refusals[method],
        len(calibration.systems),
        calibration.rates,
    )
    labelled, made = rates.labelled[:, 0], [at for at, why in enumerate(refusals) if not why]
    adjusted = np.full((size + 1, size), np.nan)
    adjusted[made] = rates.corrected[method][made, :, 0]
    np.fill_diagonal(adjusted[:-1], np.nan)
    adjusted[-1] = mean_of_calibrations(adjusted[:-1])
    # A row for each system and calibration on another one, the mean last.
    system, by = np.nonzero(
        np.append(~np.eye(size, dtype=bool), np.ones((size, 1), dtype=bool), axis=1)
    )
    points = np.stack([adjusted, adjusted - labelled])
    ends = (
        None
        if bootstrap is None
        else estimate_corrected_intervals(bootstrap, resampled, method, made, points)
    )
    figures = {"labelled_error_rate": Figure(labelled[system])}
    for at, key in enumerate(CORRECTED_FIGURES):
        interval = None if ends is None else (ends[0, at, by, system], ends[1, at, by, system])
        figures[key] = Figure(points[at, by, system], interval=interval)
    unscored, n = calibration.claims.count_usable(method)[:, :2].sum(1)[system].T
    counts = {"n": n, "n_unscored": unscored, "n_labelled": n + unscored}
    names, whys = [*calibration.systems, MEAN_OVER_CALIBRATIONS], [*refusals, ""]
    keys = [
        calibration.keys
        | {"method": method, "calibration_system": names[calibrating], "system": names[at]}
        | {"reason": whys[calibrating] or None}
        for calibrating, at in zip(by.tolist(), system.tolist(), strict=True)
    ]
    reasons = {
        _NO_CALIBRATION: (by == size) & np.isnan(adjusted[-1])[system],
        "no label": np.isnan(labelled[system]),
    }
    return tabulate(keys, counts, figures, reasons, _NO_INTERVAL)


# ---- checks

#: A system with fewer labelled errors is too little to calibrate on.
MIN_CALIBRATION_ERRORS = 10


def _count_systems_with_few_errors(run: AuditedRun) -> Iterator[Row]:
    """By data set the systems with too few labelled errors to calibrate on, and the one with the
    most (VC §5)."""
    rows = [row for row in run.rows("adjustment") if row["level"] == "claim"]
    # Published rates come without counts of errors, and a system without labels has no rate.
    known = [
        row
        for row in rows
        if None not in (row.get("calibration_errors"), row.get("calibration_error_rate"))
    ]
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


CALIBRATION_CHECK = Count(
    id="calibration",
    title="Too few labelled errors to correct rates with",
    rows=_count_systems_with_few_errors,
    figure="n_few",
    by=(),
    says="{n_few} of {n_systems:number system}{on} {verdict}. {best} has the most ({n_errors}).",
    beyond=(
        "have fewer than {min_errors} labelled errors, too few to correct the rates of other"
        " systems with"
    ),
    within=(
        "Each system has at least {min_errors} labelled errors, enough to correct the rates of"
        " others with."
    ),
)


_METHOD_WORDS = {
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "a threshold without bias",
    "bacc_threshold": "the threshold with the best BAcc",
}


def _list_corrected_biases(run: AuditedRun) -> Iterator[Row]:
    """What the best method leaves of the biases of each evaluator whose rates are wrong, system by
    system and
    calibration by calibration: biases by several calibrations would cancel in their mean.

    The best method is the one that corrects most rates, and of those the one that leaves the least
    mean |bias|. ``before`` and ``after`` are that mean over the rates that it corrects. A corrected
    rate rests on its system's
    documents as the predicted one does: of few, its test is no finer.
    """
    wrong = {
        found.evaluator for found in run.find(BIAS_CHECK) if found.verdict in ("beyond", "slight")
    }
    rows = [
        row
        for row in run.rows("adjusted_bias")
        if row["calibration_system"] != MEAN_OVER_CALIBRATIONS
        and row["level"] == "claim"
        and has_interval(row, "bias")
    ]
    clusters = {
        (row["dataset"], row["evaluator"], row["system"]): row.get("n_clusters")
        for row in run.rows("quantification")
        if row["level"] == "claim"
    }
    for (evaluator,), mine in group_rows(rows, "evaluator").items():
        before = {_place(row): abs(row["bias"]) for row in mine if row["method"] == "none"}
        choices = []
        for (method,), some in group_rows(mine, "method").items():
            some = [row for row in some if _place(row) in before]
            if some and method != "none" and evaluator in wrong:
                means = (
                    mean(before[_place(row)] for row in some),
                    mean(abs(row["bias"]) for row in some),
                )
                choices.append((len(some), means[0] - means[1], means, some))
        if choices:
            _, gain, means, corrected = max(choices, key=lambda one: one[:2])
            told = {
                "before": means[0],
                "after": means[1],
                "severity": "warn" if gain > 0 else "fail",
                "p_bias": 0.0,
            }
            for row in corrected:
                n = clusters.get((row["dataset"], evaluator, row["system"]))
                yield row | told | {"by": _METHOD_WORDS[row["method"]], "n_clusters": n}


def _place(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["calibration_system"], row["system"]


ADJUSTMENT_CHECK = Check(
    id="adjustment",
    title="What a correction with one system does to the others",
    rows=_list_corrected_biases,
    figure="bias",
    limit=lambda limits: limits.max_bias,
    side="off",
    says=(
        "Corrected by {by} with the labels of {calibration_system}, {evaluator}'s error rate of"
        " {system}{on} is {bias:signed} points from the labelled one, {verdict}. The mean |bias| of"
        " the corrected rates is {after:points} points; it was {before:points}."
    ),
    beyond="more than {limit:limit} points off",
    slight="off",
    advice="Do not rely on a correction with one system's labels.",
    within=(
        "Corrected by {by} with the labels of one system, every error rate of {evaluator} is"
        " significantly within {limit:limit} points of the labelled one."
    ),
    unit="corrected rate",
    null=(
        "no error rate of a system is off, or all are off alike, so that a calibration on one"
        " corrects the others"
    ),
)


# ---- the report


def select_adjustment_means_over_calibrations(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The means over calibrations, where there are any: they have no threshold, and no system, of
    their own."""
    means = [row for row in rows if row.get("calibration_system") == MEAN_OVER_CALIBRATIONS]
    if not means:
        return list(rows), ""
    only_one = {"threshold", "n_calibration_labels"} | {
        key for key in rows[0] if key.startswith("calibration_error")
    }
    return [
        {k: v for k, v in row.items() if k not in only_one} for row in means
    ], "Each calibration is in the CSV."


# ---- declaration

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
        f"number of corrected systems; in a `{MEAN_OVER_CALIBRATIONS}` row, of systems that could"
        " calibrate",
    ),
    "unidentifiable": Column(
        "unidentifiable",
        "count",
        "1 if the system lacks what the method needs; in a `__cv__` row, the number of such"
        " systems",
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
        "calibration error rate",
        "percent",
        "share of errors among all labels of the calibration system",
    ),
    "threshold": Column(
        "threshold",
        "number",
        "the tuned threshold; a prediction is 1 if the score is above it",
        digits=3,
    ),
    "mean_abs_bias": Column(
        "mean |bias|", "points", f"mean {_BIAS_DESCRIPTION}", signed=False, counted_in="n_systems"
    ),
    "worst_abs_bias": Column(
        "worst |bias|",
        "points",
        f"the largest {_BIAS_DESCRIPTION}; in a `{MEAN_OVER_CALIBRATIONS}` row, over all"
        " calibrations",
        signed=False,
        counted_in="n_systems",
    ),
    "mean_abs_bias_before": Column(
        "mean |bias| before",
        "points",
        "mean |bias| of `none` over the same systems and calibrations",
        signed=False,
    ),
    "change": Column(
        "change", "points", "mean_abs_bias − mean_abs_bias_before: below 0, the method helps"
    ),
}


ADJUSTMENT = Audit(
    name="adjustment",
    title="Correcting error rates with one system's labels",
    question="Can the labels of one system correct the predicted error rates of the others?",
    source="VC §5, A.7",
    formula=(
        "Adjusted counts: corrected error rate = clip((predicted error rate − FNR) / (TNR − FNR),"
        " 0, 1), where FNR is the share of supported claims that are flagged and TNR the share of"
        " errors that are found. The two threshold methods tune the threshold on the calibration"
        " system, to zero bias or to the best BAcc. |bias| is over the other systems."
    ),
    text=(
        "The labels of one system are used to correct the predicted error rates of the other"
        " systems (VC §5). Not every method can use every system, so each mean is over the systems"
        " that the method can use. To compare a method with “no adjustment”, read “change”, which"
        " uses the same systems for both."
    ),
    remedy=(
        "If no method leaves less bias than `none`, do not correct rates with the labels of one"
        " system. Estimate the rate of each system from labels of its own (`factaudit estimate`). A"
        " correction assumes that the evaluator judges all systems alike; `covariates: {columns:"
        " [system]}` tests this."
    ),
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
    checks=(CALIBRATION_CHECK,),
)

ADJUSTED_BIAS = Audit(
    name="adjusted_bias",
    title="What is left of each system's bias",
    question=(
        "How far off is each system's error rate after a correction with another system's labels,"
        " and in which direction?"
    ),
    source="VC §5, A.7",
    formula=(
        "Bias = corrected − labelled error rate. The interval includes the error of the calibration"
        " and of the rate (cluster bootstrap). For an uncorrected bias, quote the paired interval"
        " in the section on predicted error rates."
    ),
    text="The signed bias of each system, averaged over the systems that can calibrate it.",
    remedy="As for `adjustment`. This table names the systems that become worse.",
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "method": METHOD_COLUMN,
        "calibration_system": CALIBRATION_SYSTEM_COLUMN,
        "system": Column("system", "text", "the system whose rate is corrected", key=True),
        **pick_shared_columns("n", "n_unscored", "n_labelled", "reason"),
        "labelled_error_rate": Column(
            "labelled error rate", "percent", "share of errors among all its labels"
        ),
        "adjusted_error_rate": Column(
            "corrected error rate",
            "percent",
            "error rate after the correction",
            interval=CLUSTER_BOOTSTRAP,
        ),
        "bias": Column(
            "bias", "points", "corrected − labelled error rate", interval=CLUSTER_BOOTSTRAP
        ),
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
    checks=(ADJUSTMENT_CHECK,),
)

AUDITS = (ADJUSTMENT, ADJUSTED_BIAS)
