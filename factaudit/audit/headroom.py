"""The lowest error rate that any system reaches: how much room for improvement an evaluator sees (VC §3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import ALL, Row, number, reasons, without_interval
from factaudit.audit.quantification import by_system
from factaudit.errors import UsageError, hint


def headroom(
    judged: Judged,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    levels: Sequence[str] = LEVELS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """The lowest labelled and the lowest predicted error rate among the systems of a dataset, and their difference.

    groups: named groups of systems, ``{"small": ["7b", "13b"], "large": ["70b"]}``; ``__all__`` is always there. A
    group of whose systems a dataset has none gets no row there. Raises `UsageError` for an unknown system.

    A row per dataset, level, group and evaluator: n_systems (with a labelled and a predicted rate; where no system has
    labels, with a predicted one), n and n_unscored (sums over systems), labelled, predicted and bias (= predicted -
    labelled) with bounds and, with intervals, ``_low`` and ``_high``; labelled_system and predicted_system that reach
    them (the first by name among equals). A minimum over systems is on average lower than the lowest true rate, and
    more so where systems have few claims.
    """
    _check_systems(judged, groups or {})
    named: dict[str, Sequence[str] | None] = {ALL: None, **(groups or {})}
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        for at, evaluator in enumerate(judged.evaluators):
            counts = nine.count(systems.codes, len(systems.keys), units.label, units.prediction[at])
            over_all = nine.unlabelled(counts)
            figures = nine.error_rates(counts, over_all)
            predicted = figures["predicted_error_rate"]
            bounds, sizes = nine.error_rate_bounds(counts), nine.sizes(counts)
            drawn = None
            if intervals is not None:
                drawn = nine.error_rates(nine.replicates(units, at, systems.codes, over_all, intervals), over_all)
            for dataset in judged.datasets[1]:
                for group, wanted in named.items():
                    members = [
                        place
                        for place, key in enumerate(systems.keys)
                        if key["dataset"] == dataset and (wanted is None or key["system"] in wanted)
                    ]
                    if wanted is not None and not members:
                        continue
                    row: Row = {"dataset": dataset, "level": level, "group": group, "evaluator": evaluator}
                    # Only systems with both rates: two minima over different systems would not be comparable.
                    both = [place for place in members if not np.isnan(figures["bias"][place])]
                    rated = both or [place for place in members if not np.isnan(predicted[place])]
                    names = [systems.keys[place]["system"] for place in rated]
                    row |= _lowest({key: values[rated] for key, values in figures.items()}, names)
                    # A labelled system that is not scored at all would join the others.
                    possible = [place for place in members if counts[place, :2].any()] or members
                    row |= _bounds({key: (low[possible], high[possible]) for key, (low, high) in bounds.items()})
                    if intervals is not None and drawn is not None:
                        row |= _interval({key: values[:, rated] for key, values in drawn.items()}, intervals)
                    row |= {"n": int(sizes["n"][rated].sum())}
                    row |= {key: int(sizes[key][possible].sum()) for key in ("n_unscored", "n_unlabelled")}
                    without = [systems.keys[place]["system"] for place in members if place not in both]
                    rows.append(row | {"reason": reasons([_undefined(members, without), without_interval(row)])})
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _lowest(figures: Mapping[str, np.ndarray], names: Sequence[str]) -> Row:
    row: Row = {"n_systems": len(names)}
    for key, rates in (("labelled", figures["labelled_error_rate"]), ("predicted", figures["predicted_error_rate"])):
        defined = bool(names) and not np.isnan(rates).any()
        row |= {key: number(rates.min()) if defined else None}
        row |= {f"{key}_system": names[int(rates.argmin())] if defined else None}
    both = row["labelled"] is not None and row["predicted"] is not None
    return row | {"bias": row["predicted"] - row["labelled"] if both else None}


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


def _interval(drawn: Mapping[str, np.ndarray], intervals: Intervals) -> Row:
    labelled, predicted = drawn["labelled_error_rate"], drawn["predicted_error_rate"]
    if not labelled.shape[1]:
        return {f"{key}_{end}": None for key in ("labelled", "predicted", "bias") for end in ("low", "high")}
    lowest = {"labelled": labelled.min(1), "predicted": predicted.min(1)}
    lowest["bias"] = lowest["predicted"] - lowest["labelled"]
    return {key: number(value) for key, value in low_high(intervals, lowest).items()}


def _undefined(members: Sequence[int], without: Sequence[str]) -> str:
    if not members:
        return "no system"
    return f"without labelled and scored claims: {', '.join(without)}" if without else ""


def _check_systems(judged: Judged, groups: Mapping[str, Sequence[str]]) -> None:
    known = sorted(set(judged.claims["system"].dropna()))
    for group, wanted in groups.items():
        for system in wanted:
            if system not in known:
                raise UsageError(f"headroom, group {group!r}: unknown system {system!r}{hint(system, known)}")


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
        **shared("n", "n_unscored", "n_unlabelled", "reason"),
        "n_systems": Column("systems", "count", "systems with both rates"),
        "labelled": Column("labelled", "percent", _LOWEST, bounds=True, interval=True),
        "labelled_system": Column("labelled system", "text", "whose they are"),
        "predicted": Column("predicted", "percent", _LOWEST, bounds=True, interval=True),
        "predicted_system": Column("predicted system", "text", "whose they are"),
        "bias": Column("bias", "points", "predicted − labelled", bounds=True, interval=True),
    },
    options={"groups": "named groups of systems, `{NAME: [systems]}`", "levels": "`claim`, `response`"},
    compute=headroom,
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
)
