"""Does an evaluator order systems as the labels do? (VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, evidence_of, of_datasets
from factaudit.audit.core.decisions import limits_of
from factaudit.audit.core.declare import Answer, Audit, Audited, Check, Column, Decision, Finding, Glance, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.orders import (
    ADDS,
    ORDERS,
    POWER,
    Correction,
    compare,
    confusion,
    correlations,
    detectable_difference,
    error_bounds,
    pair_counts,
    power_of_pairs,
    shares_of_pairs,
    soft,
)
from factaudit.audit.core.pairs import MIN_SYSTEMS
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, reasons
from factaudit.audit.core.tallies import LABEL, Tallies, says, states
from factaudit.audit.core.words import percent
from factaudit.errors import UsageError
from factaudit.text.printable import count

#: An order as its symbol: system_a's error rate is significantly lower than system_b's, neither, higher.
SYMBOLS = {-1: "<", 0: "=", 1: ">"}
#: The true differences between two error rates that `ranking` asks the data to show, in points.
POINTS = (5, 10)


def ranking(
    judged: Tallies,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    correction: Correction = "none",
    min_systems: int = MIN_SYSTEMS,
    min_errors: int = 0,
    intervals: Intervals | None = None,
) -> list[Row]:
    """How well each evaluator orders the systems of each dataset: a summary of `ranking_pairs`, with correlations.

    min_systems: kendall_tau and pearson_r are null below so many systems. min_errors: systems with fewer labelled
    errors are left out (VC's Table 28 has those with more than 10: 11 here).

    A row per dataset, level and evaluator: n_systems and n_pairs (with labelled and scored claims), n, n_unscored,
    n_guessed, error_rate and major_error_rate (shares of the pairs), orderable (the share of pairs that the labels
    themselves order; so much is the error_rate of a constant evaluator, for which all are equal), soft_accuracy (soft
    pairwise accuracy, `factaudit.audit.core.pairs`) and soft_accuracy_constant (what a constant evaluator gets),
    kendall_tau (tau-b) and pearson_r over the systems' error rates, detectable_5 and detectable_10 (the share of pairs
    whose labels would show a difference of 5 and 10 points with a `power` of at least 80 %), detectable_difference
    (what half of the pairs would show so), and the confusion of orders as ``labelled_lt_predicted_gt`` and so on
    (numbers of pairs), the system with the lower labelled rate being the first of a pair.

    error_rate and major_error_rate have ``_min`` and ``_max`` (uncorrected tests only): no way to score what is
    unscored leads outside of them, though the worst cases of two pairs need not go together. They have no interval: how
    many pairs are significant depends on the number of labels, so there is no true share to hold. With intervals
    kendall_tau and pearson_r have ``_low`` and ``_high``, r (Fisher's z) from four systems on.
    """
    if min_systems < MIN_SYSTEMS:
        raise UsageError(f"ranking: expected min_systems of at least {MIN_SYSTEMS}, found {min_systems}")
    rows: list[Row] = []
    for case in cases(judged, levels, min_errors, intervals):
        counts = case.counts[case.used]
        row: Row = {"dataset": case.dataset, "level": case.level, "evaluator": case.evaluator}
        orders = compare(counts, alpha, correction)
        labelled, predicted = orders["labelled_order"], orders["predicted_order"]
        row |= {"n_systems": len(counts), "n_pairs": len(labelled)}
        row |= {name: int(values.sum()) for name, values in nine.sizes(case.counts, case.certain).items()}
        row["n"] = int(counts[:, :2, :2].sum())
        row |= shares_of_pairs(labelled, predicted)
        row |= error_bounds(case.certain[case.used], labelled, predicted, alpha, correction)
        row |= soft(counts)
        row |= correlations(counts, case.drawn, min_systems, intervals)
        for points in POINTS:
            powers = power_of_pairs(counts, points / 100, alpha)
            row[f"detectable_{points}"] = float((powers >= POWER).mean()) if len(powers) else None
        row["detectable_difference"] = detectable_difference(counts, alpha)
        row |= confusion(counts, labelled, predicted)
        rows.append(row | {"reason": _reason(case, row, correction, min_systems, min_errors)})
    rows.sort(key=lambda row: row["dataset"])
    return rows


@dataclass(frozen=True)
class _Case:
    """The systems of one dataset at one level, as one evaluator sees them.

    counts, certain (without guesses): (S, 3, 3); drawn: (B, of these the used, 4), the numbers of `ADDS`; used: bool
    (S,), those with labels, enough of them errors, and with scored claims among the labelled.
    """

    dataset: str
    level: str
    evaluator: str
    systems: list[str]
    counts: np.ndarray
    certain: np.ndarray
    drawn: np.ndarray | None
    used: np.ndarray


def cases(judged: Tallies, levels: Sequence[str], min_errors: int, intervals: Intervals | None) -> Iterator[_Case]:
    for level in dict.fromkeys(levels):
        systems = judged.group(level, systems=True)
        places: dict[str, list[int]] = {dataset: [] for dataset in judged.dataset_names}
        for place, key in enumerate(systems.keys):
            places[key["dataset"]].append(place)
        asked = [(LABEL, says(at)) for at in range(len(judged.evaluators))]
        counted = [[judged.count(systems, LABEL, field(at)) for field in (says, states)] for at in range(len(asked))]
        resampled = iter(()) if intervals is None else intervals.counts(judged, systems, *asked, adds=ADDS)
        for dataset, inside in places.items():
            names = [systems.keys[place]["system"] for place in inside]
            _, drawn = next(resampled, (dataset, None)) if inside else (dataset, None)
            for at, evaluator in enumerate(judged.evaluators):
                of, sure = (each[inside] for each in counted[at])
                used = (of[:, :2, :2].sum((1, 2)) > 0) & (of[:, 0].sum(1) >= min_errors)
                some = None if drawn is None else drawn[at][:, used]
                yield _Case(dataset, level, evaluator, names, of, sure, some, used)


def _reason(case: _Case, row: Row, correction: Correction, min_systems: int, min_errors: int) -> str | None:
    few: list[str] = []
    unscored: list[str] = []
    unlabelled: list[str] = []
    for system, used, of in zip(case.systems, case.used, case.counts, strict=True):
        if not used:
            (few if of[:2, :2].sum() else unscored if of[:2].sum() else unlabelled).append(system)
    n = row["n_systems"]
    undefined = f"{count(n, 'system')} to compare, of {len(case.systems)}; correlations need {min_systems}"
    return reasons(
        [
            f"fewer than {count(min_errors, 'labelled error')}: {', '.join(few)}" if few else "",
            f"no labelled {case.level} is scored: {', '.join(unscored)}" if unscored else "",
            f"no {case.level} is labelled: {', '.join(unlabelled)}" if unlabelled else "",
            undefined if n < min_systems else "",
            "all systems have the same error rate" if n >= min_systems and row["kendall_tau"] is None else "",
            "no bounds with corrected tests" if correction != "none" else "",
            _without_interval(row),
        ]
    )


def _without_interval(row: Row) -> str:
    if row.get("pearson_r") is None or row.get("pearson_r_low", 0) is not None:
        return ""
    if row["n_systems"] < 4:
        return "no interval of r below four systems"
    return "no interval of r: it is 1 or -1" if row["kendall_tau_low"] is not None else "no interval: too few clusters"


# ----------------------------------------------------------------------------------------------------------- findings

#: Less than this share of pairs with enough labels to show 10 points, and most orders are beyond the data.
MIN_DETECTABLE = 0.50


def _order(audited: Audited) -> Iterator[Finding]:
    """Systems that the predictions put in another order than the labels."""
    for evaluator, rows in by_evaluator(_of_claims(audited)):
        told = pair_counts(rows)
        datasets = [row for row in rows if row["error_rate"]]
        if told["wrong"]:
            worst = max(datasets, key=lambda row: row["error_rate"])
            where = of_datasets(datasets, rows)
            turned = f", {told['major']} of them turned round" if told["major"] else ""
            useless = told["wrong"] >= told["constant"]
            most = f"{round(worst['error_rate'] * worst['n_pairs'])} of {worst['n_pairs']} on {worst['dataset']}"
            at_worst = f". At worst {most}" if len(rows) > 1 else ""
            yield Finding(
                "fail" if useless or told["major_min"] else "warn",
                evaluator,
                worst["dataset"],
                f"{evaluator} orders {told['wrong']} of {count(told['pairs'], 'pair')} of systems otherwise than the "
                f"labels do{where}{turned}; a constant evaluator, for which all systems are "
                f"equal, {told['constant']}{at_worst}: do not rank systems by it unchecked.",
                evidence_of(worst, "n_systems", "n_pairs", "error_rate", "major_error_rate", "orderable")
                | evidence_of(worst, "soft_accuracy", "soft_accuracy_constant", "kendall_tau"),
            )
        elif told["wrong_max"] == 0 and told["constant"] and told["able"] == told["pairs"]:
            yield Finding(
                "ok",
                evaluator,
                None,
                f"{evaluator} orders all {count(told['pairs'], 'pair')} of systems as the labels do, "
                f"{told['constant']} "
                "of them clearly, and all could have shown a difference of 10 points.",
                {"n_pairs": told["pairs"]},
            )


def _of_claims(audited: Audited) -> list[Row]:
    return [row for row in audited.per_dataset("ranking", "error_rate") if row["level"] == "claim"]


def _labels_enough(audited: Audited) -> Iterator[Finding]:
    """Too few labels to tell the systems apart."""
    rows = {row["dataset"]: row for row in sorted(_of_claims(audited), key=lambda row: row["n"])}
    # Where the labels order most pairs, they could tell them apart: what they miss is smaller than that.
    few = [
        row
        for row in rows.values()
        if row["detectable_10"] < MIN_DETECTABLE and (row.get("orderable") or 0) < MIN_DETECTABLE
    ]
    if few:
        worst = min(few, key=lambda row: row["detectable_10"])
        where = of_datasets(few, list(rows))
        able = f"{round(worst['detectable_10'] * worst['n_pairs'])} of {count(worst['n_pairs'], 'pair')} of systems"
        yield Finding(
            "warn",
            None,
            worst["dataset"],
            f"The labels can hardly tell systems apart{where}: on {worst['dataset']} {able} have enough of them to "
            "show a "
            "difference of 10 points. A pair without a significant difference is not a pair of equals.",
            evidence_of(worst, "n_systems", "n_pairs", "n", "detectable_5", "detectable_10", "detectable_difference"),
        )
    elif rows and all(row["detectable_10"] == 1 for row in rows.values()):
        total = sum(row["n_pairs"] for row in rows.values())
        yield Finding(
            "ok", None, None, f"All {count(total, 'pair')} of systems have enough labels to show 10 points.", {}
        )


# ---------------------------------------------------------------------------------------------- the report's opening


def _misordered(rows: Sequence[Row], evaluator: str) -> Row | None:
    """The share of pairs ordered wrongly at claim level, over all datasets, and the number of pairs."""
    mine = [row for row in rows if row["evaluator"] == evaluator and row.get("level", "claim") == "claim"]
    mine = [row for row in mine if row.get("error_rate") is not None]
    pairs = sum(row.get("n_pairs") or 0 for row in mine)
    if not pairs:
        return None
    constant = sum((row.get("orderable") or 0) * row["n_pairs"] for row in mine) / pairs
    wrong = sum(row["error_rate"] * row["n_pairs"] for row in mine) / pairs
    return {"misordered": wrong, "of_constant": constant, "n_pairs": pairs}


def _opening(audited: Audited, evaluator: str | None) -> str:
    found = None if evaluator is None else _misordered(audited.rows("ranking"), evaluator)
    if found is None:
        return ""
    share, pairs = percent(found["misordered"]), count(found["n_pairs"], "pair")
    return (
        f"{evaluator} orders {share} of {pairs} of systems otherwise than the labels; a constant evaluator, for which "
        f"all systems are equal, {percent(found['of_constant'])}."
    )


def _rank_systems(audited: Audited, evaluator: str) -> Answer | None:
    """May systems be ranked by it?"""
    rows = [row for row in _of_claims(audited) if row["evaluator"] == evaluator and row["n_systems"] >= MIN_SYSTEMS]
    if not rows:
        return None
    limits, told = limits_of(audited), pair_counts(rows)
    pairs = told["pairs"]
    figure = f"{told['wrong']} of {pairs} pairs misordered (a constant: {told['constant']})"
    if all(row.get("soft_accuracy") is not None for row in rows):  # not in rows of earlier versions
        keys = ("soft_accuracy", "soft_accuracy_constant")
        own, constant = (sum(row[key] * row["n_pairs"] for row in rows) / pairs for key in keys)
        figure += f"; soft accuracy {percent(own)} (a constant: {percent(constant)})"
    asked = percent(limits.max_misordered)
    if told["constant"] < limits.min_orderable * pairs:
        able = f"{told['able']} have enough of them to show 10 points"
        return Answer("cannot tell", figure, f"The labels order {told['constant']} of {pairs} pairs; {able}.")
    if told["wrong_min"] >= told["constant"]:
        return Answer("no", figure, "An evaluator that calls all systems equal misorders no more.")
    if told["major_min"]:
        return Answer("no", figure, f"It turns {count(told['major_min'], 'pair')} round.")
    if told["wrong_min"] > limits.max_misordered * pairs:
        wrong = percent(told["wrong"] / pairs)
        return Answer("no", figure, f"It misorders {wrong} of the pairs; at most {asked} are asked.")
    if told["wrong_max"] > limits.max_misordered * pairs:
        return Answer("cannot tell", figure, "Unscored claims could change whether too many pairs are misordered.")
    return Answer("yes", figure, f"It surely misorders no more than the {asked} of the pairs that are asked.")


# --------------------------------------------------------------------------------------------------------- declaration

_ERRORS = "share of pairs that labels and predictions order differently; significantly and oppositely"
_ERRORS += " (bounds with uncorrected tests only)"
_SOFT = (
    "soft pairwise accuracy, 1 − mean |p labelled − p predicted| of one-sided p-values (Thompson et al. 2024), of the "
    "evaluator and of a constant one"
)
_TAU = "τ-b and r over the systems' error rates"
_DETECTABLE = "share of pairs whose labels would show a true difference of 5, of 10 points at least 80 % of the time"
_COUNTED = "systems with labelled and scored claims, and their pairs"
_CONFUSION = {
    f"labelled_{ORDERS[true]}_predicted_{ORDERS[said]}": Column(
        f"labelled {SYMBOLS[true]}, predicted {SYMBOLS[said]}",
        "count",
        "numbers of pairs by labelled and predicted order, the system with the lower labelled rate first",
        shown=False,
    )
    for true in ORDERS
    for said in ORDERS
}
PAIR_OPTIONS = {
    "levels": "`claim`, `response`",
    "alpha": "of the tests",
    "correction": "`none`, or `holm` for the pairs of a dataset, level and evaluator",
}
OPTIONS = {
    **PAIR_OPTIONS,
    "min_systems": f"τ-b and r are null below so many systems (at least {MIN_SYSTEMS}; VC uses six or more)",
    "min_errors": "systems with fewer labelled errors are left out (VC's Table 28: 11)",
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
        **shared("dataset", "level", "evaluator", "n", "n_unscored", "n_guessed", "n_unlabelled", "reason"),
        "n_systems": Column("systems", "count", _COUNTED),
        "n_pairs": Column("pairs", "count", _COUNTED),
        "error_rate": Column("error rate", "percent", _ERRORS, bounds=True),
        "orderable": Column(
            "of a constant",
            "percent",
            "share of pairs that the labels themselves order: the error rate of a constant evaluator, for which all "
            "systems are equal",
        ),
        "major_error_rate": Column("major error rate", "percent", _ERRORS, bounds=True),
        "soft_accuracy": Column("soft accuracy", "percent", _SOFT),
        "soft_accuracy_constant": Column("of a constant", "percent", _SOFT),
        "kendall_tau": Column("Kendall τ-b", "number", _TAU, digits=2, interval=True),
        "pearson_r": Column("Pearson r", "number", _TAU, digits=2, interval=True),
        **{
            f"detectable_{points}": Column(f"pairs with power for {points} points", "percent", _DETECTABLE)
            for points in POINTS
        },
        "detectable_difference": Column(
            "half of the pairs show",
            "points",
            "the difference that the labels of half of the pairs would show at least 80 % of the time",
            signed=False,
        ),
        **_CONFUSION,
    },
    options=OPTIONS,
    compute=ranking,
    tallies=True,
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
            "fewer than half of the pairs of systems have labels enough to show 10 points, and the labels order "
            "fewer than half",
            _labels_enough,
        ),
    ),
    opening=_opening,
    decides=(Decision("rank systems", _rank_systems),),
    glance=Glance(
        {
            "misordered": Column("pairs misordered", "percent"),
            "of_constant": Column("by a constant", "percent"),
        },
        _misordered,
        lambda row: "A constant evaluator, for which all systems are equal, misorders the pairs that the labels order.",
    ),
)
