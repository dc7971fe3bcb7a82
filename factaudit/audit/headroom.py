"""The lowest error rate that any system reaches: how much room for improvement an evaluator sees (VC §3.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, evidence_of, of_datasets
from factaudit.audit.core.decisions import surely_beyond
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.groups import Groups
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.mover import combine_shares, lowest, paired
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import ALL, Row, number, reasons, without_interval
from factaudit.audit.core.shares import Clusters, Shares, shares
from factaudit.audit.core.tallies import LABEL, Tallies, says, states
from factaudit.audit.core.words import percent
from factaudit.errors import UsageError, hint

#: The strongest correlation that the rates of two systems on the same documents are believed to have.
MOST = 0.9


def headroom(
    judged: Tallies,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    levels: Sequence[str] = LEVELS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """The lowest labelled and the lowest predicted error rate among the systems of a dataset, and their difference.

    groups: named groups of systems, ``{"small": ["7b", "13b"], "large": ["70b"]}``; ``__all__`` is always there. A
    group of whose systems a dataset has none gets no row there. Raises `UsageError` for an unknown system.

    A row per dataset, level, group and evaluator: n_systems (with labels; all where no system has any), n
    and n_unscored (sums over systems), labelled, predicted and bias (= predicted - labelled) with bounds and, with
    intervals, ``_low`` and ``_high``; labelled_system and predicted_system that reach them (the first by name among
    equals). labelled is over all labels of all systems; predicted over what is scored of these. Where a labelled system
    is not scored at all, bias is null: two minima over different systems are not comparable. A minimum over systems is
    on average lower than the lowest true rate, so its interval is simultaneous (`factaudit.audit.core.mover.lowest`).
    """
    _check_systems(judged, groups or {})
    named: dict[str, Sequence[str] | None] = {ALL: None, **(groups or {})}
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        systems = judged.group(level, systems=True)
        for at, evaluator in enumerate(judged.evaluators):
            counts, sure = (judged.count(systems, LABEL, field(at)) for field in (says, states))
            over_all = nine.unlabelled(counts)
            figures = nine.error_rates(counts, over_all)
            bounds, sizes = nine.error_rate_bounds(sure), nine.sizes(counts, sure)
            clusters = judged.clusters_of(systems, LABEL, says(at)) if intervals is not None else None
            for dataset in judged.dataset_names:
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
                    row |= _lowest({key: values[used] for key, values in figures.items()}, names)
                    row |= _bounds({key: (low[used], high[used]) for key, (low, high) in bounds.items()})
                    if intervals is not None and clusters is not None:
                        row |= _intervals(clusters, over_all, used, intervals.confidence)
                        places = dict(zip(names, used, strict=True))
                        row |= _bias_interval(judged, at, systems, places, row, intervals)
                    row |= {"n": int(sizes["n"][used].sum())}
                    row |= {key: int(sizes[key][members].sum()) for key in ("n_unscored", "n_guessed", "n_unlabelled")}
                    said = figures["predicted_error_rate"][used]
                    unscored = [name for name, rate in zip(names, said, strict=True) if np.isnan(rate)]
                    unlabelled = [systems.keys[p]["system"] for p in members if p not in used]
                    why = [
                        "" if members else "no system",
                        f"without labels: {', '.join(unlabelled)}" if unlabelled else "",
                        f"without scored claims: {', '.join(unscored)}" if unscored else "",
                        "no system has labels" if used and over_all[used].all() else "",
                        without_interval(row),
                    ]
                    rows.append(row | {"reason": reasons(why)})
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _lowest(figures: Mapping[str, np.ndarray], names: Sequence[str]) -> Row:
    row: Row = {"n_systems": len(names)}
    for key, rates in (("labelled", figures["labelled_error_rate"]), ("predicted", figures["predicted_error_rate"])):
        defined = bool(names) and not np.isnan(rates).all()
        row |= {key: float(np.nanmin(rates)) if defined else None}
        row |= {f"{key}_system": names[int(np.nanargmin(rates))] if defined else None}
    comparable = bool(names) and not np.isnan(figures["bias"]).any()
    return row | {"bias": row["predicted"] - row["labelled"] if comparable else None}


def _bounds(bounds: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Row:
    """Each system's predictions are free of the others', so the least minimum is the minimum of the least."""
    row: Row = {}
    (labelled, _), (low, high) = bounds["labelled_error_rate"], bounds["predicted_error_rate"]
    ends = {"labelled": (labelled, labelled), "predicted": (low, high)}
    for key, values in ends.items():
        for end, rates in zip(("min", "max"), values, strict=True):
            row[f"{key}_{end}"] = number(rates.min()) if len(rates) else None
    for end in ("min", "max"):
        both = row[f"labelled_{end}"] is not None and row[f"predicted_{end}"] is not None
        row[f"bias_{end}"] = row[f"predicted_{end}"] - row[f"labelled_{end}"] if both else None
    return row


def _intervals(clusters: Clusters, over_all: np.ndarray, used: Sequence[int], confidence: float) -> Row:
    row: Row = {}
    rates = nine.error_rate_shares(clusters, over_all)
    for column, key in enumerate(("labelled", "predicted")):
        some = Shares(
            point=rates.point[used, column][None],
            n=rates.n[used, column][None],
            n_clusters=rates.n_clusters[used, column][None],
            cluster_size=rates.cluster_size[used, column][None],
            variance=rates.variance[used, column][None],
            correlation=np.eye(len(used))[None],
        )
        low, high = lowest(some, confidence) if used else (np.array([np.nan]),) * 2
        row |= {f"{key}_low": number(low[0]), f"{key}_high": number(high[0])}
    return row


def _bias_interval(
    judged: Tallies, at: int, systems: Groups, places: Mapping[str, int], row: Row, intervals: Intervals
) -> Row:
    """Of the two systems that are seen to have the lowest rates, with how far these go together."""
    if row["bias"] is None:
        return {"bias_low": None, "bias_high": None}
    predicted, labelled = places[row["predicted_system"]], places[row["labelled_system"]]
    clusters = judged.together(systems, list(dict.fromkeys((predicted, labelled))), LABEL, says(at))
    counts = clusters.counts.reshape(len(clusters.counts), -1, 3, 3)
    first, second = counts[:, 0, :2, :2].sum(1), counts[:, -1, :2].sum(-1)
    weights = np.array([1.0, -1.0])
    if predicted == labelled:  # the system's own bias: two shares of discordant claims
        both = counts[:, 0, :2, :2]
        n = both.sum((1, 2))
        apart = shares(clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), np.stack([n, n], 1))
        found, (low, high) = paired(apart, weights, intervals.confidence)
    else:
        of = np.stack([first.sum(-1), second.sum(-1)], 1)
        rates = shares(clusters, np.stack([first[:, 0], second[:, 0]], 1), of)
        # Claims of two systems go together by their documents only, never wholly, whatever few documents show.
        rates = replace(rates, correlation=np.clip(rates.correlation, -MOST, MOST) + (1 - MOST) * np.eye(2))
        found, (low, high) = combine_shares(rates, weights, intervals.confidence)
    moved = row["bias"] - found[0]
    return {"bias_low": number(max(low[0] + moved, -1)), "bias_high": number(min(high[0] + moved, 1))}


def _check_systems(judged: Tallies, groups: Mapping[str, Sequence[str]]) -> None:
    known = judged.system_names
    for group, wanted in groups.items():
        for system in wanted:
            if system not in known:
                raise UsageError(f"headroom, group {group!r}: unknown system {system!r}{hint(system, known)}")


# ----------------------------------------------------------------------------------------------------------- findings


def _misjudged(audited: Audited) -> Iterator[Finding]:
    """Headroom that is surely misjudged, for all systems or a named group of them (VC §3.4)."""
    rows = [row for row in audited.rows("headroom") if row["level"] == "claim" and row["bias"] is not None]
    for evaluator, mine in by_evaluator(row for row in rows if row["n_systems"] > 1):
        sure = [row for row in mine if surely_beyond(row, "bias", 0)]
        if not sure:
            continue
        worst = max(sure, key=lambda row: abs(row["bias"]))
        groups = list(dict.fromkeys(row["group"] for row in sure if row["group"] != ALL))
        of = "" if worst["group"] == ALL else f" among {worst['group']} systems"
        some, every = (list(dict.fromkeys(row["dataset"] for row in each)) for each in (sure, mine))
        where = of_datasets(some, every)
        whose = f", for {' and '.join(groups)} systems" if groups else ""
        yield Finding(
            "fail",
            evaluator,
            worst["dataset"],
            f"{evaluator} surely misjudges the headroom{where}{whose}: on {worst['dataset']}{of} the least error "
            "rate is "
            f"{percent(worst['labelled'])} by the labels and {percent(worst['predicted'])} by its predictions.",
            evidence_of(worst, "group", "labelled", "predicted", "bias", "bias_low", "bias_high")
            | {"n_off": len(sure)},
        )


# --------------------------------------------------------------------------------------------------------- declaration

_LOWEST = "the lowest error rate among the systems by the labels, by the predictions"

AUDIT = Audit(
    name="headroom",
    place=50,
    title="How much room is left",
    question="What is the lowest error rate that any system reaches, by the labels and by the predictions?",
    source="VC §3.4",
    formula="Headroom = the lowest error rate among the systems of a group, labelled and predicted; bias = predicted − "
    "labelled.",
    text="The best system's error rate is what is left to improve; an evaluator that gets it wrong ends a line of work "
    "too early or too late (VC §3.4).",
    columns={
        **shared("dataset", "level", "evaluator"),
        "group": Column(
            "group", "text", "`__all__` or a named group of systems", key=True, values={ALL: "all systems"}
        ),
        **shared("n", "n_unscored", "n_guessed", "n_unlabelled", "reason"),
        "n_systems": Column("systems", "count", "systems with labels (where there are none, with predictions)"),
        "labelled": Column("labelled", "percent", _LOWEST, bounds=True, interval=True),
        "labelled_system": Column("labelled system", "text", "whose they are"),
        "predicted": Column("predicted", "percent", _LOWEST, bounds=True, interval=True),
        "predicted_system": Column("predicted system", "text", "whose they are"),
        "bias": Column("bias", "points", "predicted − labelled", bounds=True, interval=True),
    },
    options={"groups": "named groups of systems, `{NAME: [systems]}`", "levels": "`claim`, `response`"},
    compute=headroom,
    tallies=True,
    counts="margins",
    plots=(
        DotPlot(
            what="Lowest error rate among the systems: labelled (black line) and as predicted",
            keys=("predicted",),
            panels="group",
            labels={"predicted": "lowest error rate (%)"},
            reference="labelled",
        ),
    ),
    checks=(
        Check(
            "headroom",
            "Headroom that is misjudged",
            "the bias of the least error rate among the systems is clear of 0",
            _misjudged,
            {"n_off": Column("off", "count")},
        ),
    ),
)
