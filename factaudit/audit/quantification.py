"""How well an evaluator quantifies a system's error rate (VC §3.3, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, evidence_of, of_datasets
from factaudit.audit.core.decisions import (
    limits_of,
    range_of,
    surely_above,
    surely_below,
    surely_beyond,
    surely_within,
)
from factaudit.audit.core.declare import Answer, Audit, Audited, Check, Column, Decision, Finding, Glance, shared
from factaudit.audit.core.groups import Groups
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.plot import DotPlot, Scatter
from factaudit.audit.core.rows import ALL, Row, is_total, number, reasons, without_interval
from factaudit.audit.core.tallies import LABEL, Tallies, says, states
from factaudit.audit.core.words import figure, percent, points, round_points
from factaudit.text.printable import count


def quantification(
    judged: Tallies,
    *,
    levels: Sequence[str] = LEVELS,
    by: Sequence[str] = ("dataset",),
    intervals: Intervals | None = None,
) -> list[Row]:
    """Labelled and predicted error rates of each system, and the bias = predicted - labelled.

    A row per group of ``by``, level, evaluator and system, then one of system ``__all__`` (all claims of the group,
    those without a system too): the keys of ``by``, level, system, evaluator, n (labelled and scored claims or
    responses; all scored ones where none is labelled), n_unscored, n_guessed, n_unlabelled, labelled_error_rate (over
    all labels, scored or not), predicted_error_rate (over n) and bias, each with ``_min`` and ``_max`` (what it could
    be, whatever the missing predictions) and, with intervals, ``_low`` and ``_high``. A claim without response_id
    belongs to no response; the ``__all__`` row says how many.
    """
    by = [column for column in by if column != "system"]  # every row is of a system anyway
    rows: list[tuple[int, Row]] = []
    for level in dict.fromkeys(levels):
        whole, systems = judged.group(level, by), judged.group(level, by, systems=True)
        place_of = {tuple(key.values()): place for place, key in enumerate(whole.keys)}
        parents = [place_of[tuple(key.values())[:-1]] for key in systems.keys]  # the system comes last
        for evaluator in range(len(judged.evaluators)):
            rows += zip(parents, _rows(judged, evaluator, systems, intervals), strict=True)
            for place, row in enumerate(_rows(judged, evaluator, whole, intervals)):
                if whole.outside and whole.outside[place]:
                    outside = f"{count(whole.outside[place], 'claim')} without response_id"
                    row["reason"] = reasons([outside, row["reason"] or ""])
                rows.append((place, row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _rows(judged: Tallies, evaluator: int, groups: Groups, intervals: Intervals | None) -> list[Row]:
    counts, sure = (judged.count(groups, LABEL, field(evaluator)) for field in (says, states))
    over_all = nine.unlabelled(counts)
    limits = None
    if intervals is not None:
        clusters = judged.clusters_of(groups, LABEL, says(evaluator))
        limits = nine.error_rate_limits(clusters, over_all, intervals.confidence)
    figures = nine.with_ends(nine.error_rates(counts, over_all), nine.error_rate_bounds(sure), limits)
    sizes = nine.sizes(counts, sure)
    rows = []
    for at, key in enumerate(groups.keys):
        row: Row = {column: value for column, value in key.items() if column != "system"}
        row |= {"level": groups.level, "system": key.get("system", ALL), "evaluator": judged.evaluators[evaluator]}
        row |= {name: int(values[at]) for name, values in sizes.items()}
        row |= {name: number(values[at]) for name, values in figures.items()}
        rows.append(row | {"reason": reasons([_undefined(counts[at], row), without_interval(row)])})
    return rows


def _undefined(counts: np.ndarray, row: Row) -> str:
    if not counts.sum():
        return f"no {row['level']}"
    if not row["n"]:
        return f"no {'labelled ' if counts[:2].any() else ''}{row['level']} is scored"
    if row["labelled_error_rate"] is None:
        return f"no {row['level']} is labelled: the rate is of all scored"
    return ""


# ----------------------------------------------------------------------------------------------------------- findings


def _bias(audited: Audited) -> Iterator[Finding]:
    """Systems whose predicted error rate is surely off."""
    for evaluator, mine in by_evaluator(_of_systems(audited)):
        usable = [row for row in mine if row.get("bias_low") is not None]
        sure = [row for row in usable if surely_beyond(row, "bias", 0)]
        if sure:
            worst = max(sure, key=lambda row: abs(row["bias"]))
            datasets = list(dict.fromkeys(row["dataset"] for row in mine))
            where = of_datasets(list(dict.fromkeys(row["dataset"] for row in sure)), datasets)
            of = "the error rate" if worst["system"] == ALL else f"{worst['system']}'s error rate"
            told = f"{len(sure)} of {count(len(usable), 'error rate')}{where}"
            yield Finding(
                "fail",
                evaluator,
                worst["dataset"],
                f"{evaluator} is surely off for {told}: at worst it puts {of} on {worst['dataset']} at "
                f"{percent(worst['predicted_error_rate'])} where the labels say {percent(worst['labelled_error_rate'])}"
                "; do not quote its error rates unadjusted.",
                {"n_off": len(sure), "n_rates": len(usable), "system": worst["system"]}
                | evidence_of(
                    worst, "labelled_error_rate", "predicted_error_rate", "bias", "bias_low", "bias_high", "n"
                ),
            )
        elif usable and all(surely_within(row, "bias", limits_of(audited).max_bias) for row in usable):
            yield Finding(
                "ok",
                evaluator,
                None,
                f"Every error rate that {evaluator} predicts is surely within "
                f"{round_points(limits_of(audited).max_bias)} points of the labelled one.",
                {"n_rates": len(usable)},
            )


def _of_systems(audited: Audited) -> list[Row]:
    """Rows of single systems at claim level; of all claims, in a data set that names no system."""
    rows = [row for row in audited.per_dataset("quantification", "bias") if row["level"] == "claim"]
    named = {(row["dataset"], row["evaluator"]) for row in rows if row["system"] != ALL}
    return [row for row in rows if (row["system"] != ALL) == ((row["dataset"], row["evaluator"]) in named)]


def _direction(audited: Audited) -> Iterator[Finding]:
    """Error rates that are too high on some data sets and too low on others (VC §3.3)."""
    rows = [
        row for row in audited.per_dataset("quantification", "bias") if row["level"] == "claim" and row["system"] == ALL
    ]
    for evaluator, mine in by_evaluator(rows):
        over = [row for row in mine if surely_above(row, "bias", 0)]
        under = [row for row in mine if surely_below(row, "bias", 0)]
        if over and under:
            most, least = max(over, key=lambda row: row["bias"]), min(under, key=lambda row: row["bias"])
            yield Finding(
                "fail",
                evaluator,
                None,
                f"{evaluator} surely over-estimates the error rate on {len(over)} of {len(mine)} datasets (most on "
                f"{most['dataset']}: {points(most['bias'], sign=True)} points) and under-estimates it on {len(under)} "
                f"(most on {least['dataset']}: {points(least['bias'], sign=True)}): one correction does not fit all.",
                {"n_over": len(over), "n_under": len(under), "n_datasets": len(mine)},
            )


def _levels(audited: Audited) -> Iterator[Finding]:
    """A response level that magnifies the bias of the claim level (VC §3.3)."""
    rows = [row for row in audited.per_dataset("quantification", "bias") if row["system"] == ALL]
    for evaluator, mine in by_evaluator(rows):
        at = {(row["dataset"], row["level"]): row for row in mine}
        pairs = [
            (at[dataset, "claim"], at[dataset, "response"])
            for dataset in dict.fromkeys(dataset for dataset, _ in at)
            if (dataset, "claim") in at and (dataset, "response") in at
        ]
        # Where responses are single claims, the two levels are one.
        pairs = [(claim, response) for claim, response in pairs if claim["n"] != response["n"]]
        larger = [(c, r) for c, r in pairs if _farther(r, c)]
        if larger:
            claim, response = max(larger, key=lambda pair: abs(pair[1]["bias"]))
            where = of_datasets(larger, pairs)
            yield Finding(
                "warn",
                evaluator,
                response["dataset"],
                f"{evaluator}'s bias is surely larger for responses than for claims{where}: on "
                f"{response['dataset']} {points(response['bias'], sign=True)} points against "
                f"{points(claim['bias'], sign=True)}. A response is wrong with its first wrong claim, so check the "
                "level that you report.",
                {"bias_of_claims": claim["bias"], "bias_of_responses": response["bias"], "n_larger": len(larger)},
            )


def _farther(row: Row, other: Row) -> bool:
    """Whether a bias is surely farther from 0 than another one."""
    mine, its = range_of(row, "bias"), range_of(other, "bias")
    if mine is None or its is None:
        return False
    return max(mine[0], -mine[1]) > max(abs(its[0]), abs(its[1]))


# ---------------------------------------------------------------------------------------------- the report's opening

_MEAN_BIAS = Column("mean system |bias|", "points", signed=False)


def _biases(rows: Sequence[Row], evaluator: str) -> list[Row]:
    """The rows of single systems at claim level."""
    mine = [row for row in rows if row["evaluator"] == evaluator and row.get("level", "claim") == "claim"]
    return [row for row in mine if not is_total(row.get("system")) and row.get("bias") is not None]


def _mean_bias(rows: Sequence[Row], evaluator: str) -> Row | None:
    biases = [abs(row["bias"]) for row in _biases(rows, evaluator)]
    return {"mean_abs_bias": sum(biases) / len(biases)} if biases else None


def _opening(audited: Audited, evaluator: str | None) -> str:
    if evaluator is None:
        return ""
    rows = audited.rows("quantification")
    biases, mean = _biases(rows, evaluator), _mean_bias(rows, evaluator)
    if mean is None:
        return ""
    worst = max(biases, key=lambda row: abs(row["bias"]))
    dataset, system = (figure(COLUMNS[key], worst[key]) for key in ("dataset", "system"))
    sure = sum(surely_beyond(row, "bias", 0) for row in biases)
    return (
        f"As a measure of systems, the claim error rates that {evaluator} predicts are off by "
        f"{figure(_MEAN_BIAS, mean['mean_abs_bias'])} points on average over "
        f"{count(len(biases), 'system and dataset', 'systems and datasets')} (surely off for {sure}), at worst by "
        f"{figure(_MEAN_BIAS, abs(worst['bias']))} ({system} on {dataset}: labelled "
        f"{percent(worst['labelled_error_rate'])}, predicted {percent(worst['predicted_error_rate'])})."
    )


def _report_rates(audited: Audited, evaluator: str) -> Answer | None:
    """May a system's error rate be reported by it?"""
    rows = [row for row in _of_systems(audited) if row["evaluator"] == evaluator]
    if not rows:
        return None
    most, mean = limits_of(audited).max_bias, sum(abs(row["bias"]) for row in rows) / len(rows)
    far = [row for row in rows if surely_beyond(row, "bias", most)]
    told = f"mean |bias| {points(mean)} points over {count(len(rows), 'rate')}"
    if all(surely_within(row, "bias", most) for row in rows):
        return Answer("yes", told, f"Every rate is surely within {round_points(most)} points of the labelled one.")
    method = _correction(audited, evaluator, most)
    if method is not None:
        return Answer(
            "with a correction",
            told,
            f"After {method.replace('_', ' ')} on one system every other is surely within {round_points(most)} points, "
            "and the test that TPR and TNR are the same on all systems had the power to say otherwise.",
        )
    if far:
        worst = max(far, key=lambda row: abs(row["bias"]))
        name = figure(COLUMNS["system"], worst["system"])
        return Answer(
            "no",
            told,
            f"{len(far)} surely off by over {round_points(most)} points, at worst {points(worst['bias'], sign=True)} "
            f"({name} on {worst['dataset']}).",
        )
    return Answer(
        "cannot tell", told, f"The intervals or bounds do not say whether all are within {round_points(most)} points."
    )


def _correction(audited: Audited, evaluator: str, most: float) -> str | None:
    """A method after which every system's bias is surely small enough, where the transfer of rates is supported."""
    tests = [row for row in audited.rows("transfer") if row["evaluator"] == evaluator and row["level"] == "claim"]
    if not tests or any(row["transfers"] != "yes" for row in tests):
        return None
    rows = [row for row in audited.rows("adjusted_bias") if row["evaluator"] == evaluator and row["level"] == "claim"]
    rows = [row for row in rows if row["calibration_system"] == "__cv__"]
    for method in dict.fromkeys(row["method"] for row in rows if row["method"] != "none"):
        if all(surely_within(row, "bias", most) for row in rows if row["method"] == method):
            return method
    return None


# --------------------------------------------------------------------------------------------------------- declaration

_RATES = "share of label 0, share of prediction 0"
COLUMNS: dict[str, Column] = {
    **shared("dataset", "level", "evaluator"),
    "system": Column(
        "system",
        "text",
        "an NLG system, or `__all__`: all claims, those without a system too",
        key=True,
        values={ALL: "all systems"},
    ),
    **shared("n", "n_unscored", "n_guessed", "n_unlabelled", "reason"),
    "labelled_error_rate": Column("labelled error rate", "percent", _RATES, bounds=True, interval=True),
    "predicted_error_rate": Column("predicted error rate", "percent", _RATES, bounds=True, interval=True),
    "bias": Column("bias", "points", "predicted − labelled error rate", bounds=True, interval=True),
}

AUDIT = Audit(
    name="quantification",
    place=40,
    title="Error rates of systems, predicted and labelled",
    question="How well does an evaluator say what share of a system's claims, or responses, are errors?",
    source="VC §3.3, Fig. 4, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29",
    formula="Error rate = share of 0; bias = predicted − labelled error rate, so below zero the evaluator sees too few "
    "errors. A response is attributable when all its claims are.",
    text="Whether an evaluator can say how many errors a system makes (VC Fig. 4).",
    columns=COLUMNS,
    options={"levels": "`claim`, `response`", "by": "columns of the claims"},
    compute=quantification,
    tallies=True,
    counts="margins",
    without_labels=True,
    plots=(
        Scatter(
            what="Predicted against labelled error rates, a point per system and evaluator",
            reading="On the dashed line the evaluator is right; below it, it sees too few errors.",
            x="labelled_error_rate",
            y="predicted_error_rate",
            per="system",
        ),
        DotPlot(
            name="systems",
            what="Error rates of each system as predicted, and as labelled (the black line)",
            keys=("predicted_error_rate",),
            groups=("system",),
            panels="dataset",
            families=True,
            reference="labelled_error_rate",
        ),
    ),
    checks=(
        Check(
            "bias",
            "Error rates of systems that are off",
            "the bias of a system's error rate is clear of 0, by its interval and its bounds",
            _bias,
            {key: Column(key.removeprefix("n_"), "count") for key in ("n_off", "n_rates")},
        ),
        Check(
            "direction",
            "Too many errors on some data sets, too few on others",
            "the error rate is surely over-estimated on one data set and under-estimated on another",
            _direction,
            {key: Column(key.removeprefix("n_"), "count") for key in ("n_over", "n_under")},
        ),
        Check(
            "level",
            "More bias for responses than for claims",
            "the bias at response level is surely farther from 0 than at claim level",
            _levels,
            {
                "bias_of_claims": Column("bias of claims", "points"),
                "bias_of_responses": Column("bias of responses", "points"),
                "n_larger": Column("larger", "count"),
            },
        ),
    ),
    decides=(Decision("report a system's error rate", _report_rates),),
    opening=_opening,
    glance=Glance(
        {"mean_abs_bias": _MEAN_BIAS},
        _mean_bias,
        lambda row: "System |bias|: how far predicted error rates of systems are off.",
    ),
)
