"""Can the labels of one system correct the error rates of the others? Adjusted counts and tuned
thresholds (VC §5, A.7).

Each system of a data set calibrates in turn. A row of a system says what its labels make of the
others' rates, and what the others' labels make of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

import numpy as np

from factaudit.arrays.calibration import (
    THRESHOLD_METHODS,
    CalibrationClaims,
    CorrectedRates,
    average_calibrations,
    estimate_corrected_intervals,
)
from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.audit.core.audit_declaration import (
    CLUSTER_BOOTSTRAP,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.audited_run import AuditedRun, has_interval
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, group_rows, tabulate
from factaudit.audit.quantification import BIAS_CHECK
from factaudit.stats.calibration import CORRECTION_METHODS, mean_of_calibrations, remaining_bias
from factaudit.stats.cluster_bootstrap import ClusterBootstrap, ClusterDraws

#: The calibration_system of a row that is the mean over all calibrations.
MEAN_OVER_CALIBRATIONS = "__cv__"
#: A corrected rate is drawn again no more often: more replicates move its interval by less than a
#: tenth of its width.
MOST_REPLICATES = 500
#: Of more systems than this there are no intervals, and only the best method has a row for each.
MOST_SYSTEMS = 20
#: Of what a corrected rate has an interval. Of others too few intervals held the true bias, or too
#: many (tests/validity/coverage.md): of responses, of which few are without an error, and of the
#: threshold with the best BAcc, which jumps when claims are drawn again. The bias without a
#: correction has its interval in `quantification`.
INTERVAL_LEVEL = "claim"
INTERVAL_METHODS = ("adjusted_counts", "zero_bias_threshold")
#: Of fewer labelled errors, other claims or misjudged claims of a system, claims drawn again vary
#: less than new ones.
FEWEST_CLAIMS = 5
_NEVER_INTERVAL = "only claims have one, after adjusted counts or a threshold without bias"
_NO_INTERVAL = (
    f"fewer than {FEWEST_CLAIMS} labelled errors, other claims or misjudged claims, fewer than two"
    f" clusters, more than {MOST_SYSTEMS} systems, or its replicates are all alike or mostly"
    " undefined"
)


def compute_adjustment(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Each system of a dataset calibrates in turn; what bias is left in the error rates of the
    others?

    A row per dataset, level, evaluator, method and calibration_system, with two kinds of figures.
    What its labels make of the n_systems others: threshold (of the threshold methods),
    mean_abs_bias and worst_abs_bias, change (mean_abs_bias less that of method ``none``, of the
    same systems by the same calibrations: negative where the method helps), unidentifiable (1 where
    it cannot give what the method needs, or the evaluator is not clear of chance on it; reason says
    why). What the labels of the others make of its own rate, averaged over the calibrations that
    could be made: adjusted_error_rate and bias (adjusted - labelled), with an interval from a
    cluster bootstrap that calibrates again (of `INTERVAL_LEVEL` and `INTERVAL_METHODS` alone).
    calibration_error_rate (its labelled one) is of all its labels.

    Row ``__cv__`` has the means over the n_systems calibrations that could be made, and the number
    of those that could not. Of more than `MOST_SYSTEMS` systems the single rows are of the best
    method alone, and without intervals. n, n_unscored: labelled claims (or responses) of all
    systems that the method could use and could not. Without scores there are no threshold rows.

    A mean of absolute values is pushed up by noise and never reaches 0, so no interval of it holds.
    There are no bounds.
    """
    if intervals is not None:
        intervals = replace(intervals, replicates=min(intervals.replicates, MOST_REPLICATES))
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units = judgements.at_level(level)
        groups = judgements.make_groups(level, systems=True)
        for dataset in judgements.dataset_names:
            members = [at for at, key in enumerate(groups.keys) if key["dataset"] == dataset]
            systems = [groups.keys[at]["system"] for at in members]
            labelled = [found[units.label[found] >= 0] for found in map(groups.rows, members)]
            draws = None
            if intervals is not None and level == INTERVAL_LEVEL and len(systems) <= MOST_SYSTEMS:
                every = np.concatenate([np.empty(0, dtype=np.int64), *labelled])
                draws = intervals.draw(units.cluster_codes[every], dataset)
            for place, evaluator in enumerate(judgements.evaluators):
                claims = CalibrationClaims.select(units, place, labelled)
                key: Row = {"dataset": dataset, "level": level, "evaluator": evaluator}
                rows += _tabulate_calibrations(key, systems, claims, intervals, draws)
    return sorted(rows, key=lambda row: row["dataset"])


def _tabulate_calibrations(
    key: Row,
    systems: Sequence[str],
    claims: CalibrationClaims,
    intervals: ClusterBootstrap | None,
    draws: ClusterDraws | None,
) -> list[Row]:
    """The rows of one evaluator: its rates, corrected by each method, calibrated on each system."""
    rates = claims.correct_rates(claims.methods)
    refusals = {method: claims.explain_refusals(method) for method in claims.methods}
    ends: dict[str, np.ndarray] = {}
    if intervals is not None:
        ends = dict.fromkeys(claims.methods, np.full((2, 2, len(systems)), np.nan))
        if draws is not None and draws.n_units > 1:
            possible = {
                method: np.array([not why for why in refusals[method]], dtype=bool)
                for method in claims.methods
                if method in INTERVAL_METHODS
            }
            ends |= estimate_corrected_intervals(claims, possible, intervals, draws)
    tables = {
        method: _tabulate_method(
            key | {"method": method}, systems, claims, rates, refusals[method], ends.get(method)
        )
        for method in claims.methods
    }
    if len(systems) > MOST_SYSTEMS:
        left = {method: table[-1]["mean_abs_bias"] for method, table in tables.items()}
        known = {method: bias for method, bias in left.items() if bias is not None}
        best = min(known, key=known.__getitem__, default=None)
        tables = {name: table if name == best else table[-1:] for name, table in tables.items()}
    return [row for table in tables.values() for row in table]


def _tabulate_method(
    key: Row,
    systems: Sequence[str],
    claims: CalibrationClaims,
    rates: CorrectedRates,
    refusals: Sequence[str],
    ends: np.ndarray | None,
) -> list[Row]:
    """A row for each system, and one for all of them in turn."""
    method, size = key["method"], len(systems)
    labelled, corrected = rates.labelled[:, 0], rates.corrected[method][..., 0]
    n_usable = claims.count_usable(method).sum(1)
    possible = np.array([not why for why in refusals], dtype=bool)
    before, _ = remaining_bias(rates.corrected["none"][..., 0], labelled, n_usable > 0)
    after, worst = remaining_bias(corrected, labelled, n_usable > 0)
    of_others = {"mean_abs_bias": after, "worst_abs_bias": worst, "change": after - before}
    of_others = {name: np.where(possible, values, np.nan) for name, values in of_others.items()}
    made = ~np.isnan(of_others["mean_abs_bias"])
    adjusted = average_calibrations(corrected, possible)
    of_one = {
        "calibration_error_rate": labelled,
        "threshold": rates.thresholds.get(method, np.full((size, 1), np.nan))[:, 0],
        "adjusted_error_rate": adjusted,
        "bias": adjusted - labelled,
    }
    figures = {}
    for name, values in of_others.items():
        figures[name] = Figure(np.append(values, mean_of_calibrations(values[made])))
    if made.any():
        figures["worst_abs_bias"].point[-1] = worst[made].max()
    for name, values in of_one.items():
        figures[name] = Figure(np.append(values, np.nan))
    if ends is not None:
        cells = claims.cells[:, :2, :2]
        n_misjudged = cells[:, 0, 1] + cells[:, 1, 0]
        has_enough = np.minimum(cells.sum(2).min(1), n_misjudged) >= FEWEST_CLAIMS
        for at, name in enumerate(("adjusted_error_rate", "bias")):
            # The interval holds the point, and there is none without a point.
            low, high = np.minimum(ends[0, at], of_one[name]), np.maximum(ends[1, at], of_one[name])
            low, high = np.where(has_enough, [low, high], np.nan)
            interval = np.append(low, np.nan), np.append(high, np.nan)
            figures[name] = replace(figures[name], interval=interval)
    n_others = (n_usable > 0).sum() - (n_usable > 0)
    n_labels = claims.cells[:, :2].sum()
    counts = {
        "n": np.full(size + 1, n_usable.sum()),
        "n_unscored": np.full(size + 1, n_labels - n_usable.sum()),
        "n_systems": np.append(n_others, made.sum()),
        "unidentifiable": np.append(~possible, (~possible).sum()).astype(int),
    }
    refused: dict[str, list[str]] = {}
    for name, why in zip(systems, refusals, strict=True):
        refused.setdefault(why, []).append(name)
    every = "; ".join(f"{', '.join(names)}: {why}" for why, names in refused.items() if why)
    keys = [
        key | {"calibration_system": name, "reason": why}
        for name, why in zip([*systems, MEAN_OVER_CALIBRATIONS], [*refusals, every], strict=True)
    ]
    is_mean = np.arange(size + 1) == size
    reasons = {
        "there is no other system to correct": np.append(n_others == 0, size < 2),
        "no calibration could be made": is_mean & (not made.any()),
        "a mean over calibrations has no figure of a single system": is_mean & made.any(),
        "the method has no threshold": ~is_mean & (method not in THRESHOLD_METHODS),
        "no other system can calibrate": np.append(np.isnan(adjusted), False),
        "no label": np.append(np.isnan(labelled), False),
    }
    has_intervals = key["level"] == INTERVAL_LEVEL and method in INTERVAL_METHODS
    why = _NO_INTERVAL if has_intervals else _NEVER_INTERVAL
    return tabulate(keys, counts, figures, reasons, why)


# ---- checks

_METHOD_WORDS = {
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "a threshold without bias",
}


def _list_corrected_biases(run: AuditedRun) -> Iterator[Row]:
    """What the best method leaves of the bias of each system, of evaluators whose rates are wrong.

    The best method is the one that lowers the mean |bias| most, of those with intervals. A
    corrected rate rests on its system's documents as the predicted one does: of few, its test is no
    finer (``p_bias`` and n_clusters say so to it).
    """
    wrong = {
        found.evaluator for found in run.find(BIAS_CHECK) if found.verdict in ("beyond", "slight")
    }
    clusters = {
        (row["dataset"], row["evaluator"], row["system"]): row.get("n_clusters")
        for row in run.rows("quantification")
        if row["level"] == "claim"
    }
    corrected = [
        row
        for row in run.rows("adjustment")
        if row["level"] == "claim"
        and row["method"] in INTERVAL_METHODS
        and row["evaluator"] in wrong
    ]
    for (evaluator,), rows in group_rows(corrected, "evaluator").items():
        gains = {}
        for (method,), some in group_rows(rows, "method").items():
            means = [row for row in some if row["calibration_system"] == MEAN_OVER_CALIBRATIONS]
            changes = [row["change"] for row in means if row["change"] is not None]
            if changes and any(has_interval(row, "bias") for row in some):
                after = mean(row["mean_abs_bias"] for row in means if row["change"] is not None)
                gains[method] = -mean(changes), after
        if not gains:
            continue
        best = max(gains, key=gains.__getitem__)
        gain, after = gains[best]
        told = {"by": _METHOD_WORDS[best], "before": after + gain, "after": after, "p_bias": 0.0}
        told["severity"] = "warn" if gain > 0 else "fail"
        for row in rows:
            if row["method"] == best and has_interval(row, "bias"):
                system = row["calibration_system"]
                n_clusters = clusters.get((row["dataset"], evaluator, system))
                yield row | told | {"system": system, "n_clusters": n_clusters}


CHECK = Check(
    id="adjustment",
    title="What a correction with one system does to the others",
    rows=_list_corrected_biases,
    figure="bias",
    limit=lambda limits: limits.max_bias,
    side="off",
    says=(
        "Corrected by {by} with another system's labels, {evaluator}'s error rate of {system}{on}"
        " is off by {bias:signed} points on average, {verdict}. Over all systems, corrected rates"
        " are off by {after:points} points on average, uncorrected ones by {before:points}."
    ),
    beyond="more than {limit:limit} points",
    slight="off",
    advice="Do not rely on a correction with one system's labels.",
    within=(
        "Corrected by {by} with the labels of one other system, every error rate of {evaluator}"
        " that could be tested is on average over these systems significantly within {limit:limit}"
        " points of the labelled one."
    ),
    unit="corrected rate",
    null=(
        "no error rate of a system is off, or all are off alike, so that a calibration on one"
        " corrects the others"
    ),
)


# ---- the report


def _select_means(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The means over calibrations: what single systems do is for the CSV."""
    means = [row for row in rows if row["calibration_system"] == MEAN_OVER_CALIBRATIONS]
    return means, ""


# ---- declaration

_BIAS_DESCRIPTION = "|bias| of the other systems' error rates"
_OWN_DESCRIPTION = (
    "the system's own error rate, corrected with the labels of each other system in turn (their"
    " mean), and its difference from the labelled one"
)

AUDIT = Audit(
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
        " uses the same systems for both. “Bias” says how far off each system's own rate is after"
        " corrections with the others' labels, and in which direction; its interval includes the"
        " error of the calibration. Only claims have one, after adjusted counts or a threshold"
        " without bias: of responses, and after the threshold with the best BAcc, intervals from"
        " the same draws were wrong too often in simulations."
    ),
    remedy=(
        "If no method leaves less bias than `none`, do not correct rates with the labels of one"
        " system. Estimate the rate of each system from labels of its own (`factaudit estimate`). A"
        " correction assumes that the evaluator judges all systems alike; `covariates: {columns:"
        " [system]}` tests this."
    ),
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "method": Column(
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
        ),
        "calibration_system": Column(
            "system",
            "text",
            "the system whose labels are used, and whose own bias the row has; or `__cv__`: the"
            " mean over all systems that can be used",
            key=True,
            values={MEAN_OVER_CALIBRATIONS: "each in turn"},
        ),
        **pick_shared_columns("n", "n_unscored", "reason"),
        "n_systems": Column(
            "calibrations",
            "count",
            f"number of corrected systems; in a `{MEAN_OVER_CALIBRATIONS}` row, of systems that"
            " could calibrate",
        ),
        "unidentifiable": Column(
            "unidentifiable",
            "count",
            "1 if the system lacks what the method needs; in a `__cv__` row, the number of such"
            " systems",
        ),
        "calibration_error_rate": Column(
            "labelled error rate", "percent", "share of errors among all labels of the system"
        ),
        "threshold": Column(
            "threshold",
            "number",
            "the tuned threshold; a prediction is 1 if the score is above it",
            digits=3,
        ),
        "mean_abs_bias": Column(
            "mean |bias|",
            "points",
            f"mean {_BIAS_DESCRIPTION}",
            signed=False,
            counted_in="n_systems",
        ),
        "worst_abs_bias": Column(
            "worst |bias|",
            "points",
            f"the largest {_BIAS_DESCRIPTION}; in a `{MEAN_OVER_CALIBRATIONS}` row, over all"
            " calibrations",
            signed=False,
            counted_in="n_systems",
        ),
        "change": Column(
            "change",
            "points",
            "mean_abs_bias − that of `none` over the same systems and calibrations: below 0, the"
            " method helps",
        ),
        "adjusted_error_rate": Column(
            "corrected error rate", "percent", _OWN_DESCRIPTION, interval=CLUSTER_BOOTSTRAP
        ),
        "bias": Column("bias", "points", _OWN_DESCRIPTION, interval=CLUSTER_BOOTSTRAP),
    },
    options={"levels": "`claim`, `response`"},
    compute=compute_adjustment,
    counts="joint",
    readable=_select_means,
    plot=PlotSpec(
        what="|Bias| of the other systems after a correction, by method",
        keys=("mean_abs_bias", "worst_abs_bias"),
        groups=("dataset", "evaluator"),
        series="method",
    ),
    checks=(CHECK,),
)
