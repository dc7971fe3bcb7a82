"""How much room for improvement does an evaluator see? The lowest error rate of any system (VC §3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.claim_groups import ALL_TOGETHER, ClaimGroups
from factaudit.arrays.judgements import LABEL_FIELD, LEVELS, Judgements, prediction_field, stated_prediction_field
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.decision_limits import read_decision_limits
from factaudit.audit.core.evaluator_comparison import settle_constant_evaluator_error_rates
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_significant_rows_by_evaluator,
    make_row_finding,
)
from factaudit.audit.core.interval_methods import DISCORDANT, MOVER, SIMULTANEOUS
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_labels, explain_missing_row_intervals
from factaudit.audit.core.significance import select_rows_beyond_limit
from factaudit.audit.core.statements import make_statement
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.mover import error_balance_interval, least_proportion_interval, mover_proportion_sum
from factaudit.stats.undefined_values import name_ends, none_if_undefined
from factaudit.text.display_text import join_reasons

#: The strongest correlation that the rates of two systems on the same documents are believed to have.
MAX_SYSTEM_CORRELATION = 0.9


def compute_headroom(
    judgements: Judgements,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    levels: Sequence[str] = LEVELS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The lowest labelled and the lowest predicted error rate among the systems of a dataset, and their difference.

    groups: named groups of systems, ``{"small": ["7b", "13b"], "large": ["70b"]}``; ``__all__`` is always there. A
    group of whose systems a dataset has none gets no row there. Raises `UsageError` for an unknown system.

    A row per dataset, level, group and evaluator: n_systems (with labels; all where no system has any), n and
    n_unscored (sums over systems), labelled, predicted and bias (= predicted - labelled) with bounds and, with
    intervals, ``_low`` and ``_high``; labelled_system and predicted_system that reach them (all of them, where
    several do). labelled is over all labels of all systems; predicted over what is scored of these. Where a labelled
    system is not scored at all, bias is null: two minima over different systems are not comparable. A minimum over
    systems is on average lower than the lowest true rate, so its interval is simultaneous
    (`factaudit.stats.mover.least_proportion_interval`).
    """
    _check_headroom_groups(judgements, groups or {})
    named: dict[str, Sequence[str] | None] = {ALL_TOGETHER: None, **(groups or {})}
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        systems = judgements.make_groups(level, systems=True)
        for at, evaluator in enumerate(judgements.evaluators):
            counts, sure = (
                judgements.count_cells(systems, LABEL_FIELD, field(at))
                for field in (prediction_field, stated_prediction_field)
            )
            over_all = confusion_counts.is_group_unlabelled(counts)
            figures = confusion_counts.confusion_error_rates(counts, over_all)
            bounds, sizes = (
                confusion_counts.bound_error_rates_over_unscored_claims(sure),
                confusion_counts.count_scored_confusion_cells(counts, sure),
            )
            clusters = (
                judgements.count_clusters(systems, LABEL_FIELD, prediction_field(at)) if intervals is not None else None
            )
            for dataset in judgements.dataset_names:
                for group, wanted in named.items():
                    members = [
                        place
                        for place, key in enumerate(systems.keys)
                        if key["dataset"] == dataset and (wanted is None or key["system"] in wanted)
                    ]
                    if wanted is not None and not members:
                        continue
                    row: Row = {"dataset": dataset, "level": level, "group": group, "evaluator": evaluator}
                    used = [place for place in members if not over_all[place]] or members
                    names = [systems.keys[place]["system"] for place in used]
                    row |= _find_headroom_rates({key: values[used] for key, values in figures.items()}, names)
                    row |= _bound_headroom_rates({key: (low[used], high[used]) for key, (low, high) in bounds.items()})
                    if intervals is not None and clusters is not None:
                        row |= _compute_headroom_intervals(clusters, over_all, used, intervals.confidence)
                        ends = [
                            _compute_headroom_bias_interval(
                                judgements, at, systems, (used[predicted], used[labelled]), row, intervals
                            )
                            for predicted in _list_systems_with_lowest_rate(figures["predicted_error_rate"][used])
                            for labelled in _list_systems_with_lowest_rate(figures["labelled_error_rate"][used])
                            if row["bias"] is not None
                        ]
                        row |= _cut_bias_interval(row, _unite_intervals(ends))
                    row |= {"n": int(sizes["n"][used].sum())}
                    row |= {key: int(sizes[key][used].sum()) for key in ("n_unscored", "n_guessed")}
                    row |= {"n_unlabelled": int(sizes["n_unlabelled"][members].sum())}
                    said = figures["predicted_error_rate"][used]
                    unscored = [name for name, rate in zip(names, said, strict=True) if np.isnan(rate)]
                    unlabelled = [systems.keys[p]["system"] for p in members if p not in used]
                    why = [
                        "" if members else "no system",
                        f"without labels: {', '.join(unlabelled)}" if unlabelled else "",
                        f"without scored claims: {', '.join(unscored)}" if unscored else "",
                        explain_missing_labels(level) if used and over_all[used].all() else "",
                        explain_missing_row_intervals(row, f"a system of {FEW_CLUSTERS}"),
                    ]
                    rows.append(row | {"reason": join_reasons(why)})
    settle_constant_evaluator_error_rates(rows, "predicted", "labelled")
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _find_headroom_rates(figures: Mapping[str, np.ndarray], system_names: Sequence[str]) -> Row:
    row: Row = {"n_systems": len(system_names)}
    for key in ("labelled", "predicted"):
        rates = figures[f"{key}_error_rate"]
        lowest = _list_systems_with_lowest_rate(rates)
        row |= {key: float(rates[lowest[0]]) if lowest else None}
        row |= {f"{key}_system": ", ".join(system_names[place] for place in lowest) or None}
    comparable = bool(system_names) and not np.isnan(figures["bias"]).any()
    return row | {"bias": row["predicted"] - row["labelled"] if comparable else None}


def _list_systems_with_lowest_rate(rates: np.ndarray) -> list[int]:
    """Where the lowest rates are: several places where systems are equal, none where no rate is defined."""
    if not len(rates) or np.isnan(rates).all():
        return []
    return [int(place) for place in np.flatnonzero(rates == np.nanmin(rates))]


def _bound_headroom_rates(system_bounds: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Row:
    """Each system's predictions are free of the others', so the least minimum is the minimum of the least."""
    row: Row = {}
    (labelled, _), (low, high) = system_bounds["labelled_error_rate"], system_bounds["predicted_error_rate"]
    ends = {"labelled": (labelled, labelled), "predicted": (low, high)}
    for key, values in ends.items():
        for end, rates in zip(("min", "max"), values, strict=True):
            row[f"{key}_{end}"] = none_if_undefined(rates.min()) if len(rates) else None
    for end in ("min", "max"):
        both = row[f"labelled_{end}"] is not None and row[f"predicted_{end}"] is not None
        row[f"bias_{end}"] = row[f"predicted_{end}"] - row[f"labelled_{end}"] if both else None
    return row


def _compute_headroom_intervals(
    clusters: ClusterCounts, is_unlabelled: np.ndarray, system_positions: Sequence[int], confidence: float
) -> Row:
    row: Row = {}
    rates = confusion_counts.estimate_labelled_and_predicted_error_rates(clusters, is_unlabelled)
    for column, key in enumerate(("labelled", "predicted")):
        some = rates.select_as_one_group(system_positions, column)
        low, high = least_proportion_interval(some, confidence) if system_positions else (np.array([np.nan]),) * 2
        row |= name_ends(key, (low[0], high[0]))
    return row


def _unite_intervals(ends: Sequence[tuple[float, float]]) -> Row:
    """The interval of the bias where several systems are lowest: each of them could be the one, whatever its name."""
    low, high = np.array(ends or [(np.nan, np.nan)]).T  # undefined where one is
    return name_ends("bias", (low.min(), high.max()))


def _cut_bias_interval(row: Row, bias_ends: Row) -> Row:
    """The interval of the bias, no farther than the intervals of both lowest rates leave it; 0 is never cut off."""
    rates = [row[f"{key}_{end}"] for key in ("predicted", "labelled") for end in ("low", "high")]
    if None in rates or None in bias_ends.values():
        return bias_ends
    predicted_low, predicted_high, labelled_low, labelled_high = rates
    least, most = min(predicted_low - labelled_high, 0.0), max(predicted_high - labelled_low, 0.0)
    return {"bias_low": max(bias_ends["bias_low"], least), "bias_high": min(bias_ends["bias_high"], most)}


def _compute_headroom_bias_interval(
    judgements: Judgements,
    evaluator_position: int,
    systems: ClaimGroups,
    lowest_systems: tuple[int, int],
    row: Row,
    intervals: ClusterBootstrap,
) -> tuple[float, float]:
    """The interval of the bias: the rates of two systems that are lowest by the predictions, and by the labels, which
    are correlated over clusters."""
    predicted, labelled = lowest_systems
    clusters = judgements.count_clusters_jointly(
        systems, list(dict.fromkeys((predicted, labelled))), LABEL_FIELD, prediction_field(evaluator_position)
    )
    counts = clusters.counts.reshape(len(clusters.counts), -1, 3, 3)
    first, second = counts[:, 0, :2, :2].sum(1), counts[:, -1, :2].sum(-1)
    if predicted == labelled:  # the system's own bias: two shares of discordant claims
        both = counts[:, 0, :2, :2]
        n = both.sum((1, 2))
        apart = estimate_clustered_proportions(
            clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), np.stack([n, n], 1)
        )
        found, (low, high) = error_balance_interval(apart, intervals.confidence)
    else:
        of = np.stack([first.sum(-1), second.sum(-1)], 1)
        rates = estimate_clustered_proportions(clusters, np.stack([first[:, 0], second[:, 0]], 1), of)
        # Claims of two systems go together by their documents only, never wholly, whatever few documents show.
        rates = replace(
            rates,
            correlation=np.clip(rates.correlation, -MAX_SYSTEM_CORRELATION, MAX_SYSTEM_CORRELATION)
            + (1 - MAX_SYSTEM_CORRELATION) * np.eye(2),
        )
        found, (low, high) = mover_proportion_sum(rates, np.array([1.0, -1.0]), intervals.confidence)
    moved = row["bias"] - found[0]
    return float(max(low[0] + moved, -1)), float(min(high[0] + moved, 1))


def _check_headroom_groups(judgements: Judgements, groups: Mapping[str, Sequence[str]]) -> None:
    known = judgements.system_names
    for group, wanted in groups.items():
        for system in wanted:
            if system not in known:
                raise UsageError(
                    f"headroom, group {group!r}: unknown system {system!r}{suggest_known_name(system, known)}"
                )


# ----------------------------------------------------------------------------------------------------------- findings


def _find_biased_headroom(audited_run: AuditedRun) -> Iterator[Finding]:
    """Headroom that is significantly misjudged, for all systems or a named group of them (VC §3.4); by over the limit
    of a bias, it fails."""
    rows = [row for row in audited_run.rows("headroom") if row["level"] == "claim" and row["bias"] is not None]
    rows = [row for row in rows if row["n_systems"] > 1]
    misjudged = select_rows_beyond_limit(audited_run, rows, "bias", 0)
    # The same tests at the limit: of what is misjudged, some is significantly farther off.
    max_bias, same_tests = read_decision_limits(audited_run).max_bias, replace(audited_run, test_counts=[])
    far = [id(row) for row in select_rows_beyond_limit(same_tests, rows, "bias", max_bias)]
    for _, sure, mine in group_significant_rows_by_evaluator(rows, misjudged):
        worst = max(sure, key=lambda row: (id(row) in far, abs(row["bias"])))
        is_far = id(worst) in far
        groups = list(dict.fromkeys(row["group"] for row in sure if row["group"] != ALL_TOGETHER))
        of = "" if worst["group"] == ALL_TOGETHER else " among {worst.group} systems"
        whose = ", for {groups} systems" if groups else ""
        said = make_statement(
            f"{{worst.evaluator}} is significantly wrong about the headroom{{where}}{whose}. On "
            f"{{worst.dataset}}{of} the "
            "lowest error rate is {worst.labelled:percent} by the labels and {worst.predicted:percent} by its "
            f"predictions{' for the labelled claims' * bool(worst.get('n_unlabelled'))}"
            f"{'' if is_far else '; they are not significantly more than {most:limit} points apart'}.",
            worst=worst,
            most=max_bias,
            where=format_how_many_datasets(sure, mine),
            groups=" and ".join(groups),
        )
        keys = ("group", "labelled", "predicted", "bias", "bias_low", "bias_high")
        yield make_row_finding("fail" if is_far else "warn", worst, said, *keys, n_off=len(sure))


# --------------------------------------------------------------------------------------------------------- declaration

_BIAS_INTERVAL = f"{DISCORDANT}, where one system is lowest by both; else {MOVER}"
_LOWEST_RATE_DESCRIPTION = "the lowest error rate among the systems, by labels and by predictions"

AUDIT = Audit(
    name="headroom",
    after="quantification",
    title="How much room is left",
    question="What is the lowest error rate of any system, according to the labels and according to the predictions?",
    source="VC §3.4",
    formula=(
        "Headroom = the lowest error rate among the systems of a group, once by labels and once by predictions."
        " Bias = predicted − labelled."
    ),
    text=(
        "The error rate of the best system is the room for improvement that is left. An evaluator that gets it "
        "wrong ends a line of work too early or too late (VC §3.4)."
    ),
    remedy=(
        "Do not conclude from predicted rates that a task is solved, or that it is not. Label claims of the best"
        " system."
    ),
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "group": Column(
            "group", "text", "`__all__` or a named group of systems", key=True, values={ALL_TOGETHER: "all systems"}
        ),
        **pick_shared_columns("n", "n_unscored", "n_guessed", "n_unlabelled", "reason"),
        "n_systems": Column("systems", "count", "systems with labels or, if none has labels, with predictions"),
        "labelled": Column(
            "labelled", "percent", _LOWEST_RATE_DESCRIPTION, bounds=True, interval=SIMULTANEOUS, counted_in="n_systems"
        ),
        "labelled_system": Column(
            "labelled system", "text", ("the system with this rate; all of them if several are equal")
        ),
        "predicted": Column(
            "predicted", "percent", _LOWEST_RATE_DESCRIPTION, bounds=True, interval=SIMULTANEOUS, counted_in="n_systems"
        ),
        "predicted_system": Column(
            "predicted system", "text", ("the system with this rate; all of them if several are equal")
        ),
        "bias": Column("bias", "points", "predicted − labelled", bounds=True, interval=_BIAS_INTERVAL),
    },
    options={"groups": "named groups of systems, `{NAME: [systems]}`", "levels": "`claim`, `response`"},
    compute=compute_headroom,
    counts="margins",
    plot=PlotSpec(
        what="Lowest error rate among the systems: labelled (black line) and as predicted",
        keys=("predicted",),
        groups=("dataset", "group"),
        labels={"predicted": "lowest error rate (%)"},
        reference="labelled",
    ),
    checks=(
        Check(
            "headroom",
            "Headroom that is misjudged",
            "the bias of the least error rate among the systems is significantly not 0 (`warn`), or over the limit "
            "`max_bias` (`fail`)",
            _find_biased_headroom,
            {"n_off": Column("off", "count")},
            null="the least error rate is the same by the labels and by the predictions, in every group of systems",
            controls="Holm over all groups and evaluators[ on all data sets]",
            figure="bias",
        ),
    ),
)
