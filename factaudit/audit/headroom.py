"""How much room for improvement does an evaluator see? The lowest error rate of any system (VC
§3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER, ClaimGroups
from factaudit.arrays.figures import (
    Figure,
    Figures,
    Tally,
    compute_error_rates,
    share_discordant_claims,
    share_errors,
)
from factaudit.arrays.judgements import (
    LABEL,
    LEVELS,
    Judgements,
)
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns, share_column
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.interval_methods import DISCORDANT, MOVER, SIMULTANEOUS
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_labels
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.quantification import settle_constant_evaluator
from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import (
    ClusteredProportions,
    estimate_clustered_proportions,
)
from factaudit.stats.mover import (
    error_balance_interval,
    least_proportion_interval,
    mover_proportion_sum,
)

#: The strongest correlation that the rates of two systems on the same documents are believed to
#: have.
MAX_SYSTEM_CORRELATION = 0.9


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
    always there. A group of whose systems a dataset has none gets no row there. Raises `UsageError`
    for an unknown system.

    A row per dataset, level, group and evaluator: n_systems (with labels; all where no system has
    any), n and n_unscored (sums over systems), labelled, predicted and bias (= predicted -
    labelled) with bounds and, with intervals, ``_low`` and ``_high``; labelled_system and
    predicted_system that reach them (all of them, where several do). labelled is over all labels of
    all systems; predicted over what is scored of these. Where a labelled
    system is not scored at all, bias is null: two minima over different systems are not comparable.
    A minimum over systems is on average lower than the lowest true rate, so its interval is
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
        for place in range(len(judgements.evaluators)):
            tally = judgements.tally(systems, LABEL, place)
            for dataset, (group, wanted) in product(judgements.dataset_names, named.items()):
                members = [
                    at
                    for at, key in enumerate(systems.keys)
                    if key["dataset"] == dataset and key["system"] in wanted
                ]
                if members or group == ALL_TOGETHER:
                    keys: Row = {"dataset": dataset, "level": level, "group": group}
                    rows += _tabulate_systems(
                        keys, judgements, systems, place, tally, members, confidence
                    )
    return sorted(rows, key=lambda row: row["dataset"])


_KINDS = ("labelled", "predicted")


def _tabulate_systems(
    keys: Row,
    judgements: Judgements,
    systems: ClaimGroups,
    place: int,
    tally: Tally,
    members: Sequence[int],
    confidence: float | None,
) -> list[Row]:
    """The row of some systems; members: their places among ``systems``, whose claims are in
    ``tally``."""
    evaluator, rates, counts = (
        judgements.evaluators[place],
        compute_error_rates(tally, confidence),
        tally.count_sizes(),
    )
    used = [at for at in members if not tally.is_unlabelled[at]] or list(members)
    lowest = {kind: _find_lowest(rates[f"{kind}_error_rate"].point, used) for kind in _KINDS}
    figures = _compute_lowest_rates(
        rates, share_errors(tally, confidence).estimate, used, confidence
    )
    if confidence is not None:
        figures["bias"] = _add_bias_interval(
            judgements, systems, place, lowest, figures, confidence
        )
    if is_constant_evaluator(evaluator):
        settle_constant_evaluator(figures, "labelled", "predicted")
    row = keys | {"evaluator": evaluator, "n_systems": len(used)}
    row |= {name: int(counts[name][used].sum()) for name in ("n", "n_unscored", "n_guessed")}
    row["n_unlabelled"] = int(counts["n_unlabelled"][members].sum())
    for kind, places in lowest.items():
        row[f"{kind}_system"] = ", ".join(systems.keys[at]["system"] for at in places) or None
    is_unlabelled = bool(used) and bool(tally.is_unlabelled[used].all())
    reasons = {
        "no system": not members,
        "systems without labels are left out": len(used) < len(members),
        "a system has no scored claims": bool(
            np.isnan(rates["predicted_error_rate"].point[used]).any()
        ),
        explain_missing_labels(keys["level"]): is_unlabelled,
    }
    return tabulate(
        [row], {}, figures, {text: np.array([so]) for text, so in reasons.items()}, _FEW_CLUSTERS
    )


_FEW_CLUSTERS = f"a system of {FEW_CLUSTERS}"


def _find_lowest(rates: np.ndarray, places: Sequence[int]) -> list[int]:
    """The systems with the lowest rate: several where they are equal, none where no rate is
    defined."""
    defined = [place for place in places if not np.isnan(rates[place])]
    return [place for place in defined if rates[place] == rates[defined].min()]


def _compute_lowest_rates(
    rates: Figures, shares: ClusteredProportions, used: Sequence[int], confidence: float | None
) -> Figures:
    """The lowest rates and their difference, as figures of one group. Each system's predictions are
    free of the others', so the least bound is the lowest of the least.
    """
    figures: Figures = {}
    for column, kind in enumerate(_KINDS):
        rate = rates[f"{kind}_error_rate"]
        defined = rate.point[used][~np.isnan(rate.point[used])]
        point = defined.min(keepdims=True) if len(defined) else np.array([np.nan])
        low, high = (end[used].min(keepdims=True) if used else point for end in rate.limits)
        figures[kind] = Figure(point, (low, high))
        if confidence is not None:
            some = shares.select_as_one_group(used, column)
            ends = least_proportion_interval(some, confidence) if used else (point, point)
            figures[kind] = replace(figures[kind], interval=ends)
    predicted, labelled = figures["predicted"], figures["labelled"]
    is_comparable = bool(used) and not np.isnan(rates["bias"].point[used]).any()
    bias = predicted.point - labelled.point if is_comparable else np.array([np.nan])
    (p_min, p_max), (l_min, l_max) = predicted.limits, labelled.limits
    return figures | {"bias": Figure(bias, (p_min - l_min, p_max - l_max))}


def _add_bias_interval(
    judgements: Judgements,
    systems: ClaimGroups,
    evaluator: int,
    lowest: Mapping[str, Sequence[int]],
    figures: Figures,
    confidence: float,
) -> Figure:
    """The interval of the bias; where several systems are lowest, each of them could be the one,
    whatever its name.

    It goes no farther than the intervals of both lowest rates leave it; 0 is never cut off.
    """
    bias = figures["bias"]
    if np.isnan(bias.point[0]):
        return replace(bias, interval=(bias.point, bias.point))
    pairs = [
        (predicted, labelled)
        for predicted in lowest["predicted"]
        for labelled in lowest["labelled"]
    ]
    ends = [
        _compute_bias_interval(judgements, systems, evaluator, pair, bias.point[0], confidence)
        for pair in pairs
    ]
    low, high = (
        pick([end[side] for end in ends], keepdims=True)
        for side, pick in enumerate((np.min, np.max))
    )
    (p_low, p_high), (l_low, l_high) = figures["predicted"].ends, figures["labelled"].ends
    least, most = np.minimum(p_low - l_high, 0), np.maximum(p_high - l_low, 0)
    if np.isnan([least, most, low, high]).any():
        return replace(bias, interval=(low, high))
    return replace(bias, interval=(np.maximum(low, least), np.minimum(high, most)))


def _compute_bias_interval(
    judgements: Judgements,
    systems: ClaimGroups,
    evaluator: int,
    pair: tuple[int, int],
    bias: float,
    confidence: float,
) -> tuple[float, float]:
    """The interval of the bias: the rates of two systems that are lowest by the predictions, and by
    the labels, which are correlated over clusters."""
    predicted, labelled = pair
    clusters = judgements.tally_jointly(systems, list(dict.fromkeys(pair)), evaluator)
    counts = clusters.counts.reshape(len(clusters.counts), -1, 3, 3)
    if predicted == labelled:  # the system's own bias: two shares of discordant claims
        apart = share_discordant_claims(replace(clusters, counts=counts.reshape(-1, 9)))[1]
        found, (low, high) = error_balance_interval(apart, confidence)
    else:
        first, second = counts[:, 0, :2, :2].sum(1), counts[:, 1, :2].sum(-1)
        of = np.stack([first.sum(-1), second.sum(-1)], 1)
        rates = estimate_clustered_proportions(
            clusters, np.stack([first[:, 0], second[:, 0]], 1), of
        )
        # Claims of two systems go together by their documents only, never wholly, whatever few
        # documents show.
        kept = np.clip(rates.correlation, -MAX_SYSTEM_CORRELATION, MAX_SYSTEM_CORRELATION)
        rates = replace(rates, correlation=kept + (1 - MAX_SYSTEM_CORRELATION) * np.eye(2))
        found, (low, high) = mover_proportion_sum(rates, np.array([1.0, -1.0]), confidence)
    moved = bias - found[0]
    return float(max(low[0] + moved, -1)), float(min(high[0] + moved, 1))


# ---- checks


def _list_headroom_of_several(run: AuditedRun) -> list[Row]:
    """Of all systems, or of a named group of them."""
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
