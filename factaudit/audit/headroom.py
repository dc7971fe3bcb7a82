"""How much room for improvement does an evaluator see? Headroom is the lowest error rate of any
system (VC §3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from factaudit.arrays.figures import Figure, Figures, Tally, compute_error_rates, share_errors
from factaudit.arrays.judgements import ALL_TOGETHER, LABEL, LEVELS, ClaimGroups, Judgements
from factaudit.audit.core.audit_declaration import (
    DISCORDANT,
    MOVER,
    SIMULTANEOUS,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_labels, tabulate
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.mover import least_proportion_interval, mover_weighted_sum


def compute_headroom(
    judgements: Judgements,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    levels: Sequence[str] = LEVELS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The lowest labelled and the lowest predicted error rate among the systems of a dataset, and
    their difference.

    groups: named groups of systems, ``{"small": ["7b", "13b"], "large": ["70b"]}``; ``__all__`` is
    always among them. A dataset gets no row for a group if it has none of its systems. Raises
    `UsageError` for an unknown system.

    A row per dataset, level, group and evaluator has n_systems (with labels; all systems if none
    has labels), n and n_unscored (sums over systems), and labelled, predicted and bias (= predicted
    - labelled) with bounds and, if wanted, intervals (``_low``, ``_high``). labelled_system and
    predicted_system name the systems with the lowest rates, all of them in a tie. labelled is over
    all labels of all systems; predicted is over their scored claims. If a labelled system is not
    scored at all, bias is null, because two minima over different systems cannot be compared. A
    minimum over systems is on average lower than the lowest true rate, so its interval is
    simultaneous (`factaudit.stats.mover.least_proportion_interval`).
    """
    for group, wanted in (groups or {}).items():
        for system in wanted:
            if system not in judgements.system_names:
                hint = suggest_known_name(system, judgements.system_names)
                raise UsageError(f"headroom, group {group!r}: unknown system {system!r}{hint}")
    named: dict[str, Sequence[str]] = {ALL_TOGETHER: judgements.system_names, **(groups or {})}
    confidence = None if intervals is None else intervals.confidence
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        systems = judgements.make_groups(level, systems=True)
        for place, evaluator in enumerate(judgements.evaluators):
            tally = judgements.tally(systems, LABEL, place)
            rates = compute_error_rates(tally, confidence)
            for dataset, (group, wanted) in product(judgements.dataset_names, named.items()):
                members = [
                    at
                    for at, key in enumerate(systems.keys)
                    if key["dataset"] == dataset and key["system"] in wanted
                ]
                if members or group == ALL_TOGETHER:
                    key: Row = {"dataset": dataset, "level": level, "group": group}
                    key["evaluator"] = evaluator
                    rows += _tabulate_systems(key, systems, tally, rates, members, confidence)
    return sorted(rows, key=lambda row: row["dataset"])


_KINDS = ("labelled", "predicted")
_FEW_CLUSTERS = f"a system of {FEW_CLUSTERS}"


def _tabulate_systems(
    key: Row,
    systems: ClaimGroups,
    tally: Tally,
    rates: Figures,
    members: Sequence[int],
    confidence: float | None,
) -> list[Row]:
    """The row of some systems. members: their positions in ``systems``."""
    used = [at for at in members if not tally.is_unlabelled[at]] or list(members)
    counts, shares = tally.count_sizes(), share_errors(tally, confidence).estimate
    row = key | {"n_systems": len(used)}
    row |= {name: int(counts[name][used].sum()) for name in ("n", "n_unscored", "n_guessed")}
    row["n_unlabelled"] = int(counts["n_unlabelled"][members].sum())
    figures: Figures = {}
    lowest: dict[str, list[int]] = {}
    for column, kind in enumerate(_KINDS):
        rate = rates[f"{kind}_error_rate"]
        point = _find_least(rate.point[used])
        # The missing predictions of each system are independent of the others', so the lower bound
        # is the lowest of all.
        least, most = (_find_least(end[used]) for end in rate.limits)
        ends = None
        if confidence is not None:
            ends = (np.array([np.nan]), np.array([np.nan]))
            if used:
                chosen = shares.select_as_one_group(used, column)
                ends = least_proportion_interval(chosen, confidence)
        figures[kind] = Figure(point, (least, most), ends)
        lowest[kind] = [at for at in used if rate.point[at] == point]
        row[f"{kind}_system"] = ", ".join(systems.keys[at]["system"] for at in lowest[kind]) or None
    figures["bias"] = _subtract_lowest_rates(rates, figures, lowest, confidence)
    is_unscored = bool(np.isnan(rates["predicted_error_rate"].point[used]).any())
    if is_unscored:  # two minima over different systems are not comparable
        figures["bias"] = replace(figures["bias"], point=np.array([np.nan]))
    reasons = {
        "no system": [not members],
        "systems without labels are left out": [len(used) < len(members)],
        "a system has no scored claims": [is_unscored],
        explain_missing_labels(key["level"]): [bool(members) and not lowest["labelled"]],
    }
    return tabulate([row], {}, figures, reasons, _FEW_CLUSTERS)


def _find_least(values: np.ndarray) -> np.ndarray:
    """(1,): the lowest value that is defined; NaN if none is."""
    known = values[~np.isnan(values)]
    return known.min(keepdims=True) if len(known) else np.array([np.nan])


def _subtract_lowest_rates(
    rates: Figures,
    figures: Figures,
    lowest: Mapping[str, Sequence[int]],
    confidence: float | None,
) -> Figure:
    """The bias of the lowest rate. If several systems are lowest, each of them could be the truly
    lowest one.

    If one system is lowest by labels and by predictions, the interval is that of its own bias;
    otherwise the rates of two systems are treated as independent. The interval never goes beyond
    what the intervals of both lowest rates allow.
    """
    predicted, labelled = figures["predicted"], figures["labelled"]
    bounds = [a - b for a, b in zip(predicted.limits, labelled.limits, strict=True)]
    bias = Figure(predicted.point - labelled.point, (bounds[0], bounds[1]))
    if confidence is None:
        return bias
    first, second = rates["predicted_error_rate"], rates["labelled_error_rate"]
    ends: list[Sequence[Any]] = []
    for a, b in product(lowest["predicted"], lowest["labelled"]):
        if a == b:
            ends.append([end[a] for end in rates["bias"].ends])
            continue
        point, low, high = (
            np.array([of_a[a], of_b[b]])
            for of_a, of_b in zip(
                (first.point, *first.ends), (second.point, *second.ends), strict=True
            )
        )
        ends.append(mover_weighted_sum(point, (low, high), np.array([1.0, -1.0]))[1])
    lows, highs = np.array(ends or [[np.nan, np.nan]]).T
    (p_low, p_high), (l_low, l_high) = predicted.ends, labelled.ends
    low = np.maximum(lows.min(), np.minimum(p_low - l_high, 0))
    return replace(bias, interval=(low, np.minimum(highs.max(), np.maximum(p_high - l_low, 0))))


# ---- checks


def _list_headroom_of_several(run: AuditedRun) -> list[Row]:
    """The rows that are about several systems: all of them, or a named group."""
    rows = [row for row in run.rows("headroom") if row["level"] == "claim" and row["n_systems"] > 1]
    among = {row["group"]: f" among {row['group']} systems" for row in rows} | {ALL_TOGETHER: ""}
    return [row | {"among": among[row["group"]]} for row in rows]


CHECK = Check(
    id="headroom",
    title="Headroom that is misjudged",
    rows=_list_headroom_of_several,
    figure="bias",
    limit=lambda limits: limits.max_bias,
    side="off",
    says=(
        "{evaluator} puts the lowest error rate of any system{among}{on} at {predicted:percent}"
        " where the labels say {labelled:percent}, {verdict}."
    ),
    beyond="more than {limit:limit} points off",
    slight="off",
    advice="Do not conclude from predicted rates that a task is solved, or that it is not.",
    null=(
        "the least error rate is the same by the labels and by the predictions, in every group of"
        " systems"
    ),
)


# ---- declaration

_BIAS_INTERVAL = f"{DISCORDANT}, where one system is lowest by both; else {MOVER}"
_LOWEST_RATE_DESCRIPTION = "the lowest error rate among the systems, by labels and by predictions"

AUDIT = Audit(
    name="headroom",
    title="How much room is left",
    question=(
        "What is the lowest error rate of any system, according to the labels and according to the"
        " predictions?"
    ),
    source="VC §3.4",
    formula=(
        "Headroom = the lowest error rate among the systems of a group, once by labels and once by"
        " predictions. Bias = predicted − labelled."
    ),
    text=(
        "The error rate of the best system is the room for improvement that is left. An evaluator"
        " that gets it wrong ends a line of work too early or too late (VC §3.4)."
    ),
    remedy=(
        "Do not conclude from predicted rates that a task is solved, or that it is not. Label"
        " claims of the best system."
    ),
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "group": Column(
            "group",
            "text",
            "`__all__` or a named group of systems",
            key=True,
            values={ALL_TOGETHER: "all systems"},
        ),
        **pick_shared_columns("n", "n_unscored", "n_guessed", "n_unlabelled", "reason"),
        "n_systems": Column(
            "systems", "count", "systems with labels or, if none has labels, with predictions"
        ),
        "labelled": share_column(
            "labelled", _LOWEST_RATE_DESCRIPTION, SIMULTANEOUS, counted_in="n_systems"
        ),
        "labelled_system": Column(
            "labelled system",
            "text",
            "the system with this rate; all of them if several are equal",
        ),
        "predicted": share_column(
            "predicted", _LOWEST_RATE_DESCRIPTION, SIMULTANEOUS, counted_in="n_systems"
        ),
        "predicted_system": Column(
            "predicted system",
            "text",
            "the system with this rate; all of them if several are equal",
        ),
        "bias": share_column("bias", "predicted − labelled", _BIAS_INTERVAL, "points"),
    },
    options={
        "groups": "named groups of systems, `{NAME: [systems]}`",
        "levels": "`claim`, `response`",
    },
    compute=compute_headroom,
    counts="margins",
    plot=PlotSpec(
        what="Lowest error rate among the systems: labelled (black line) and as predicted",
        keys=("predicted",),
        groups=("dataset", "group"),
        labels={"predicted": "lowest error rate (%)"},
        reference="labelled",
    ),
    checks=(CHECK,),
)
