"""Does an evaluator order systems as the labels do? (VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, by_keys, evidence_of
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, Glance, shared
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.orders import (
    Correction,
    compare,
    errors_of,
    kendall_tau,
    orders,
    pearson_r,
    power,
    proportion_test,
)
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, counted, number, ratio, reasons, without_interval
from factaudit.audit.core.words import count, percent
from factaudit.audit.quantification import by_system

#: An order as its symbol: system_a's error rate is significantly lower than system_b's, neither, higher.
SYMBOLS = {-1: "<", 0: "=", 1: ">"}
_NAMES = {-1: "lt", 0: "eq", 1: "gt"}
#: A pair counts as detectable where its labels would show a true difference this often.
POWER = 0.8
#: The true differences between two error rates that `ranking` asks the data to show, in points.
POINTS = (5, 10)


def ranking(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    correction: Correction = "none",
    intervals: Intervals | None = None,
) -> list[Row]:
    """How well each evaluator orders the systems of each dataset: a summary of `ranking_pairs`, with correlations.

    A row per dataset, level and evaluator: n_systems and n_pairs (with labelled and scored claims), n, n_unscored,
    error_rate and major_error_rate (shares of the pairs), kendall_tau (tau-b) and pearson_r over the systems' error
    rates, the 3 x 3 confusion of orders as ``labelled_lt_predicted_gt`` and so on (numbers of pairs), and detectable_5
    and detectable_10: the share of pairs with a power of at least 80 % (`power`) for a difference of 5 and 10 points.

    With intervals: ``_low`` and ``_high`` of error_rate, major_error_rate, kendall_tau and pearson_r. error_rate and
    major_error_rate have ``_min`` and ``_max`` (uncorrected tests only): no way to score what is unscored leads outside
    of them, though the worst cases of two pairs need not go together. The correlations have no bounds.
    """
    rows: list[Row] = []
    for case in cases(judged, levels, intervals):
        counts = case.counts[case.used]
        row: Row = {"dataset": case.dataset, "level": case.level, "evaluator": case.evaluator}
        orders = compare(counts, alpha, correction)
        labelled, predicted = orders["labelled_order"], orders["predicted_order"]
        row |= {"n_systems": len(counts), "n_pairs": len(labelled)}
        row |= {name: int(values.sum()) for name, values in nine.sizes(case.counts).items() if name != "n"}
        row["n"] = int(counts[:, :2, :2].sum())
        row |= {name: number(value) for name, value in _figures(counts, alpha, correction).items()}
        row |= _bounds(case.counts, alpha) if correction == "none" else dict.fromkeys(_BOUNDS)
        if intervals is not None and case.drawn is not None:
            drawn = _figures(case.drawn[:, case.used], alpha, correction)
            row |= {name: number(value) for name, value in low_high(intervals, drawn).items()}
        for points in POINTS:
            powers = power_of_pairs(counts, points / 100, alpha)
            row[f"detectable_{points}"] = float((powers >= POWER).mean()) if len(powers) else None
        row |= {
            f"labelled_{_NAMES[true]}_predicted_{_NAMES[said]}": int(((labelled == true) & (predicted == said)).sum())
            for true in _NAMES
            for said in _NAMES
        }
        rows.append(row | {"reason": _reason(case, row, correction)})
    rows.sort(key=lambda row: row["dataset"])
    return rows


@dataclass(frozen=True)
class _Case:
    """The systems of one dataset at one level, as one evaluator sees them; counts (S, 3, 3), drawn (B, S, 3, 3)."""

    dataset: str
    level: str
    evaluator: str
    systems: list[str]
    counts: np.ndarray
    drawn: np.ndarray | None

    @property
    def used(self) -> np.ndarray:
        """bool (S,): the systems with labelled and scored claims."""
        return ~nine.unlabelled(self.counts)


def cases(judged: Judged, levels: Sequence[str], intervals: Intervals | None) -> Iterator[_Case]:
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        places: dict[str, list[int]] = {dataset: [] for dataset in judged.datasets[1]}
        for place, key in enumerate(systems.keys):
            places[key["dataset"]].append(place)
        for at, evaluator in enumerate(judged.evaluators):
            counts = nine.count(systems.codes, len(systems.keys), units.label, units.prediction[at])
            drawn = None
            if intervals is not None:
                labelled_only = np.zeros(len(counts), dtype=bool)
                drawn = nine.replicates(units, at, systems.codes, labelled_only, intervals)
            for dataset, inside in places.items():
                names = [systems.keys[place]["system"] for place in inside]
                yield _Case(
                    dataset, level, evaluator, names, counts[inside], None if drawn is None else drawn[:, inside]
                )


def _figures(counts: np.ndarray, alpha: float, correction: Correction) -> dict[str, np.ndarray]:
    """(..., S, 3, 3) -> (...): NaN where undefined, also where one system has no claim."""
    found = compare(counts, alpha, correction)
    true, said = found["labelled_order"], found["predicted_order"]
    n, labelled, predicted = errors_of(counts)
    x, y = ratio(labelled, n), ratio(predicted, n)
    undefined = np.isnan(true).any(-1)
    pairs = np.where(undefined, 0, true.shape[-1])
    return {
        "error_rate": ratio((true != said).sum(-1), pairs),
        "major_error_rate": ratio((true * said == -1).sum(-1), pairs),
        "kendall_tau": kendall_tau(x, y),
        "pearson_r": pearson_r(x, y),
    }


_BOUNDS = ("error_rate_min", "error_rate_max", "major_error_rate_min", "major_error_rate_max")


def _bounds(counts: np.ndarray, alpha: float) -> Row:
    """What the shares of wrong orders could be, each pair on its own, had every labelled claim been scored."""
    labelled = counts[:, :2]
    n = labelled.sum((-1, -2))
    labelled, n = labelled[n > 0], n[n > 0]
    if len(n) < 2:
        return dict.fromkeys(_BOUNDS)
    a, b = np.triu_indices(len(n), 1)
    least, most = labelled[..., 0].sum(-1), (labelled[..., 0] + labelled[..., -1]).sum(-1)
    _, true = orders(labelled[:, 0].sum(-1), n, alpha)
    # z rises with a's errors and falls with b's, so the two corners hold every order in between.
    corners = []
    for first, second in ((least, most), (most, least)):
        p = proportion_test(first[a], n[a], second[b], n[b])
        corners.append(np.where(p < alpha, np.sign(first[a] / n[a] - second[b] / n[b]), 0.0))
    low, high = corners
    return {
        "error_rate_min": float(((true < low) | (true > high)).mean()),
        "error_rate_max": float(((low != true) | (high != true)).mean()),
        "major_error_rate_min": float(((true * low == -1) & (true * high == -1)).mean()),
        "major_error_rate_max": float(((true * low == -1) | (true * high == -1)).mean()),
    }


def power_of_pairs(counts: np.ndarray, difference: float, alpha: float) -> np.ndarray:
    n, labelled, _ = errors_of(counts)
    a, b = np.triu_indices(len(n), 1)
    return power(ratio(labelled[a] + labelled[b], n[a] + n[b]), difference, n[a], n[b], alpha)


def _reason(case: _Case, row: Row, correction: Correction) -> str | None:
    if row["n_systems"] < 2:
        return f"{counted(row['n_systems'], 'system')} with labelled and scored {case.level}s, of {len(case.systems)}"
    without = [system for system, used in zip(case.systems, case.used, strict=True) if not used]
    return reasons(
        [
            f"no labelled and scored {case.level}: {', '.join(without)}" if without else "",
            "all systems have the same error rate" if row["kendall_tau"] is None else "",
            "no bounds with corrected tests" if correction != "none" else "",
            without_interval(row),
        ]
    )


# ----------------------------------------------------------------------------------------------------------- findings

#: Less than this share of pairs with enough labels to show 10 points, and most orders are beyond the data.
MIN_DETECTABLE = 0.50


def _order(audited: Audited) -> Iterator[Finding]:
    """Systems that the predictions put in another order than the labels."""
    for evaluator, rows in by_evaluator(audited.per_dataset("ranking", "error_rate")):
        bad = [row for row in rows if row["error_rate"] > 0]
        for row in bad:
            wrong, major = (round(row[key] * row["n_pairs"]) for key in ("error_rate", "major_error_rate"))
            turned = f", {major} of them turned round" if major else ""
            yield Finding(
                "fail" if major or (row.get("error_rate_low") or 0) > 0 else "warn",
                evaluator,
                row["dataset"],
                f"On {row['dataset']}, {evaluator} orders {wrong} of {row['n_pairs']} pairs of systems "
                f"({row['level']} level) otherwise than the labels do{turned}: do not rank systems by it unchecked.",
                evidence_of(row, "level", "n_systems", "n_pairs", "error_rate", "major_error_rate", "kendall_tau"),
            )
        if rows and not bad:
            yield Finding(
                "ok",
                evaluator,
                None,
                f"{evaluator} orders every pair of systems as the labels do.",
                {"n_pairs": sum(row["n_pairs"] for row in rows)},
            )


def _labels_enough(audited: Audited) -> Iterator[Finding]:
    """Too few labels to tell the systems apart."""
    for (dataset, level), group in by_keys(audited.per_dataset("ranking", "detectable_10"), "dataset", "level"):
        row = max(group, key=lambda row: row["n"])
        evidence = evidence_of(row, "level", "n_systems", "n_pairs", "n", "detectable_5", "detectable_10")
        able = f"{round(row['detectable_10'] * row['n_pairs'])} of {row['n_pairs']} pairs of systems"
        if row["detectable_10"] < MIN_DETECTABLE:
            yield Finding(
                "warn",
                None,
                dataset,
                f"On {dataset}, only {able} have enough labels to show a difference of 10 points ({level} level): "
                "a pair without a significant difference is not a pair of equals.",
                evidence,
            )
        else:
            yield Finding(
                "ok",
                None,
                dataset,
                f"On {dataset}, {able} have enough labels to show a difference of 10 points ({level} level).",
                evidence,
            )


# ---------------------------------------------------------------------------------------------- the report's opening


def _misordered(rows: Sequence[Row], evaluator: str) -> Row | None:
    """The share of pairs ordered wrongly at claim level, over all datasets, and the number of pairs."""
    mine = [row for row in rows if row["evaluator"] == evaluator and row.get("level", "claim") == "claim"]
    mine = [row for row in mine if row.get("error_rate") is not None]
    pairs = sum(row.get("n_pairs") or 0 for row in mine)
    if not pairs:
        return None
    return {"misordered": sum(row["error_rate"] * row["n_pairs"] for row in mine) / pairs, "n_pairs": pairs}


def _opening(audited: Audited, evaluator: str | None) -> str:
    found = None if evaluator is None else _misordered(audited.rows("ranking"), evaluator)
    if found is None:
        return ""
    share, pairs = percent(found["misordered"]), count(found["n_pairs"], "pair")
    return f"{evaluator} orders {share} of {pairs} of systems otherwise than the labels."


# --------------------------------------------------------------------------------------------------------- declaration

_ERRORS = "share of pairs that labels and predictions order differently; significantly and oppositely"
_ERRORS += " (bounds with uncorrected tests only)"
_TAU = "τ-b and r over the systems' error rates"
_DETECTABLE = "share of pairs whose labels would show a true difference of 5, of 10 points at least 80 % of the time"
_COUNTED = "systems with labelled and scored claims, and their pairs"
_CONFUSION = {
    f"labelled_{_NAMES[true]}_predicted_{_NAMES[said]}": Column(
        f"labelled {SYMBOLS[true]}, predicted {SYMBOLS[said]}",
        "count",
        "numbers of pairs by labelled and predicted order",
        shown=False,
    )
    for true in _NAMES
    for said in _NAMES
}
OPTIONS = {
    "levels": "`claim`, `response`",
    "alpha": "of the tests",
    "correction": "`none`, or `holm` for the pairs of a dataset, level and evaluator",
}

AUDIT = Audit(
    name="ranking",
    place=60,
    title="Whether systems come out in the right order",
    question="Does an evaluator order systems as the labels do?",
    source="VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28",
    formula="Per pair a pooled two-sided two-proportion z-test at p < 0.05 gives <, = or >. Wrong order: the two "
    "differ; major error: both are significant and opposite. τ-b and r are over the systems' error rates.",
    text="Each pair of systems is compared once with the labels and once with the predictions (VC §3.5).",
    columns={
        **shared("dataset", "level", "evaluator", "n", "n_unscored", "n_unlabelled", "reason"),
        "n_systems": Column("systems", "count", _COUNTED),
        "n_pairs": Column("pairs", "count", _COUNTED),
        "error_rate": Column("error rate", "percent", _ERRORS, bounds=True, interval=True),
        "major_error_rate": Column("major error rate", "percent", _ERRORS, bounds=True, interval=True),
        "kendall_tau": Column("Kendall τ-b", "number", _TAU, digits=2, interval=True),
        "pearson_r": Column("Pearson r", "number", _TAU, digits=2, interval=True),
        **{
            f"detectable_{points}": Column(f"pairs with power for {points} points", "percent", _DETECTABLE)
            for points in POINTS
        },
        **_CONFUSION,
    },
    options=OPTIONS,
    compute=ranking,
    counts="margins",
    plots=(
        DotPlot(
            what="How evaluators order pairs of systems",
            keys=("error_rate", "major_error_rate", "kendall_tau", "pearson_r"),
            labels={"error_rate": "wrong orders (%)", "major_error_rate": "major errors (%)"},
            guides={"kendall_tau": 0, "pearson_r": 0},
            limits={"kendall_tau": (-1, 1), "pearson_r": (-1, 1)},
        ),
    ),
    checks=(
        Check(
            "order",
            "Systems in the wrong order",
            "systems come out in another order than by the labels",
            _order,
        ),
        Check(
            "power",
            "Too few labels to tell systems apart",
            "fewer than half of the pairs of systems have labels enough to show 10 points",
            _labels_enough,
        ),
    ),
    opening=_opening,
    glance=Glance({"misordered": Column("pairs misordered", "percent")}, _misordered, lambda row: ""),
)
