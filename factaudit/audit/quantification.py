"""How well an evaluator quantifies a system's error rate (VC §3.3, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, by_keys, evidence_of
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, Glance, shared
from factaudit.audit.core.groups import Groups, group_by, split
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.plot import DotPlot, Scatter
from factaudit.audit.core.rows import ALL, Row, counted, is_total, number, reasons, without_interval
from factaudit.audit.core.words import count, figure, percent
from factaudit.errors import UsageError


def quantification(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    by: Sequence[str] = ("dataset",),
    intervals: Intervals | None = None,
) -> list[Row]:
    """Labelled and predicted error rates of each system, and the bias = predicted - labelled.

    A row per group of ``by``, level, evaluator and system, then one of system ``__all__`` (all claims of the group,
    those without a system too): the keys of ``by``, level, system, evaluator, n (labelled and scored claims or
    responses; all scored ones where none is both), n_unscored, n_unlabelled, labelled_error_rate, predicted_error_rate
    and bias, each with ``_min`` and ``_max`` (what it could be, whatever the missing predictions) and, with intervals,
    ``_low`` and ``_high``. A claim without response_id belongs to no response; the ``__all__`` row says how many.
    """
    by = [column for column in by if column != "system"]  # every row is of a system anyway
    rows: list[tuple[int, Row]] = []
    for level in dict.fromkeys(levels):
        units = judged.at(level)
        whole, left_out = grouped(judged, level, by)
        systems, parents = split(whole, units.claims, "system")
        for evaluator in range(len(judged.evaluators)):
            rows += zip(parents.tolist(), _rows(units, evaluator, level, systems, intervals), strict=True)
            for place, row in enumerate(_rows(units, evaluator, level, whole, intervals)):
                if left_out[place]:
                    outside = f"{counted(left_out[place], 'claim')} without response_id"
                    row["reason"] = reasons([outside, row["reason"] or ""])
                rows.append((place, row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def grouped(judged: Judged, level: str, by: Sequence[str]) -> tuple[Groups, list[int]]:
    """The claims or responses in the groups that the *claims* have (so that a group without a response is seen).

    Also per group how many claims belong to no response. Raises `UsageError` where a response's claims differ in a
    column of ``by``: it would be in several groups.
    """
    groups = group_by(judged.claims, by)
    if level == "claim":
        return groups, [0] * len(groups.keys)
    outside = judged.claims["response_id"].isna().to_numpy()
    left_out = np.bincount(groups.codes[outside], minlength=len(groups.keys)).tolist()
    first, last = judged.response_ends(groups.codes)
    if (first != last).any():
        raise UsageError(f"claims of one response differ in {', '.join(by)}: use levels: [claim]")
    return Groups(first, groups.keys), left_out


def by_system(judged: Judged, level: str) -> Groups:
    """The claims or responses by dataset and system; code -1 where there is no system."""
    return split(grouped(judged, level, ("dataset",))[0], judged.at(level).claims, "system")[0]


def _rows(units: Judged, evaluator: int, level: str, groups: Groups, intervals: Intervals | None) -> list[Row]:
    prediction = units.prediction[evaluator]
    counts = nine.count(groups.codes, len(groups.keys), units.label, prediction)
    over_all = nine.unlabelled(counts)
    bounds = nine.error_rate_bounds(counts)
    figures: dict[str, np.ndarray] = {}
    for name, values in nine.error_rates(counts, over_all).items():
        figures |= {name: values, f"{name}_min": bounds[name][0], f"{name}_max": bounds[name][1]}
    if intervals is not None:
        drawn = nine.replicates(units, evaluator, groups.codes, over_all, intervals)
        figures |= low_high(intervals, nine.error_rates(drawn, over_all))
    sizes = nine.sizes(counts)
    rows = []
    for at, key in enumerate(groups.keys):
        row: Row = {column: value for column, value in key.items() if column != "system"}
        row |= {"level": level, "system": key.get("system", ALL), "evaluator": units.evaluators[evaluator]}
        row |= {name: int(values[at]) for name, values in sizes.items()}
        row |= {name: number(values[at]) for name, values in figures.items()}
        rows.append(row | {"reason": reasons([_undefined(counts[at], row), without_interval(row)])})
    return rows


def _undefined(counts: np.ndarray, row: Row) -> str:
    if not counts.sum():
        return f"no {row['level']}"
    if not row["n"]:
        return f"no {row['level']} is scored"
    if row["labelled_error_rate"] is None:
        unlabelled = not counts[:2].sum()
        return f"no {row['level']} is labelled" + ("" if unlabelled else " and scored") + ": the rate is of all scored"
    return ""


# ----------------------------------------------------------------------------------------------------------- findings


def _bias(audited: Audited) -> Iterator[Finding]:
    """Predicted error rates whose interval does not hold the labelled one."""
    rows = [row for row in audited.per_dataset("quantification", "bias") if "predicted_error_rate_low" in row]
    for evaluator, mine in by_evaluator(rows):
        missed_any = False
        for (dataset, level), group in by_keys(mine, "dataset", "level"):
            systems = [row for row in group if row["system"] != ALL] or group
            usable = [row for row in systems if row["predicted_error_rate_low"] is not None]
            missed = [row for row in usable if not _inside(row, "labelled_error_rate", "predicted_error_rate")]
            if not missed:
                continue
            missed_any = True
            worst = max(missed, key=lambda row: abs(row["bias"]))
            # The labelled rate has an error of its own; the interval of the paired difference has both.
            sure = any(row["bias_low"] is not None and row["bias_low"] * row["bias_high"] > 0 for row in missed)
            told, true = percent(worst["predicted_error_rate"]), percent(worst["labelled_error_rate"])
            if worst["system"] == ALL:
                said = f"error rate is off: it is put at {told} where the labels say {true}"
            else:
                said = (
                    f"error rates are off for {len(missed)} of {len(usable)} systems: it puts {worst['system']}'s at "
                )
                said += f"{told} where the labels say {true}"
            yield Finding(
                "fail" if sure else "warn",
                evaluator,
                dataset,
                f"On {dataset}, {evaluator}'s {level}-level {said}; do not quote it unadjusted.",
                {"level": level, "n_missed": len(missed), "n_systems": len(usable), "system": worst["system"]}
                | evidence_of(
                    worst, "labelled_error_rate", "predicted_error_rate", "bias", "bias_low", "bias_high", "n"
                ),
            )
        if mine and not missed_any:
            yield Finding(
                "ok",
                evaluator,
                None,
                f"No labelled error rate lies outside the interval of {evaluator}'s predicted one.",
                {"n_rates": len(mine)},
            )


def _inside(row: Row, key: str, of: str) -> bool:
    return row[f"{of}_low"] <= row[key] <= row[f"{of}_high"]


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
    return (
        f"As a measure of systems, the claim error rates that {evaluator} predicts are off by "
        f"{figure(_MEAN_BIAS, mean['mean_abs_bias'])} points on average over "
        f"{count(len(biases), 'system and dataset', 'systems and datasets')}, at worst by "
        f"{figure(_MEAN_BIAS, abs(worst['bias']))} ({system} on {dataset}: labelled "
        f"{percent(worst['labelled_error_rate'])}, predicted {percent(worst['predicted_error_rate'])})."
    )


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
    **shared("n", "n_unscored", "n_unlabelled", "reason"),
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
            "the labelled error rate lies outside the interval of the predicted one",
            _bias,
            {key: Column(key.removeprefix("n_"), "count") for key in ("n_missed", "n_systems", "n_rates")},
        ),
    ),
    opening=_opening,
    glance=Glance(
        {"mean_abs_bias": _MEAN_BIAS},
        _mean_bias,
        lambda row: "System |bias|: how far predicted error rates of systems are off.",
    ),
)
