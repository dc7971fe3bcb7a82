"""Can one labelled system mend the error rates of the others? Adjusted counts and threshold tuning (VC §5, A.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from factaudit.audit.core.calibration import (
    METHODS,
    Case,
    figures_of,
    labelled_claims,
    no_threshold,
    unidentifiable,
)
from factaudit.audit.core.checks import by_keys
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, Severity, shared
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, counted, number, ratio, reasons, without_interval
from factaudit.audit.core.words import points
from factaudit.audit.quantification import by_system
from factaudit.errors import UsageError, hint

#: The calibration_system of a row that is the mean over all calibrations.
CV = "__cv__"


def adjustment(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    methods: Sequence[str] = METHODS,
    intervals: Intervals | None = None,
) -> list[Row]:
    """Each system of a dataset calibrates in turn; what bias is left in the error rates of the others?

    A row per dataset, level, evaluator, method and calibration_system: calibration_error_rate (its labelled one) and
    calibration_errors (their number), threshold (of the threshold methods), mean_abs_bias and worst_abs_bias over the
    n_systems others, change (= mean_abs_bias - that of method ``none``: negative where the method helps),
    unidentifiable (1 where the calibration system cannot give what the method needs; reason says why). Row ``__cv__``:
    the means over the n_systems calibrations that could be made, and the number of those that could not. n, n_unscored:
    labelled claims (or responses) of all systems that the method could use and could not. Without scores there are no
    threshold rows.

    With intervals, ``_low`` and ``_high`` of calibration_error_rate, both biases and the change: each replicate
    calibrates again, choosing among the observed candidates. Approximated there, and there alone: where a dataset has
    more than `SCORE_BINS` distinct scores, a replicate's candidates lie between that many bins of equally many claims
    (so that its threshold may miss the best one by a bin). A mean of absolute values is pushed up by
    noise and never reaches 0, so read the interval of the change. There are no bounds.
    """
    for method in methods:
        if method not in METHODS:
            raise UsageError(f"adjustment: unknown method {method!r}{hint(method, METHODS)}")
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        for dataset in judged.datasets[1]:
            places = [at for at, key in enumerate(systems.keys) if key["dataset"] == dataset]
            names = [systems.keys[at]["system"] for at in places]
            inside, of = labelled_claims(units, systems.codes, places)
            cases = [Case.of(units, at, inside, of, len(places)) for at in range(len(judged.evaluators))]
            used = [[m for m in METHODS if m in methods and (m in METHODS[:2] or case.has_scores)] for case in cases]
            drawn = _replicates(cases, used, units.clusters[inside], dataset, intervals)
            for at, evaluator in enumerate(judged.evaluators):
                about: Row = {"dataset": dataset, "level": level, "evaluator": evaluator}
                rows += [about | row for row in _rows(cases[at], names, used[at], drawn[at], intervals)]
    rows.sort(key=lambda row: row["dataset"])
    return rows


#: The figures of a calibration that get intervals, and those that have a mean over calibrations.
_SPREAD = ("calibration_error_rate", "mean_abs_bias", "worst_abs_bias", "change")
_MEANT = _SPREAD[1:]


#: Per method the replicates of each figure of `_SPREAD`: (replicates, S).
_Drawn = Mapping[str, Mapping[str, np.ndarray]]


def _replicates(
    cases: Sequence[Case],
    methods: Sequence[Sequence[str]],
    clusters: np.ndarray,
    dataset: str,
    intervals: Intervals | None,
) -> list[_Drawn]:
    """The resampled figures of each evaluator's case, all from the same draws; empty where there is no interval."""
    names, cluster = np.unique(clusters, return_inverse=True)
    if intervals is None or len(names) < 2:
        return [{} for _ in cases]
    from scipy.sparse import csr_array

    reduced = []
    for case in cases:
        kinds, kind = case.kinds()
        # How many claims of each kind a cluster has: what a draw of clusters makes of the kinds is a product.
        ones = np.ones(len(kind))
        reduced.append((kinds, csr_array((ones, (kind, cluster)), shape=(len(kinds.label), len(names)))))
    # Blocks that stay in the processor's cache take half the time.
    width = 16 * max(len(kinds.label) for kinds, _ in reduced)
    blocks: list[list[_Drawn]] = [[] for _ in cases]
    for drawn in intervals.weights(np.ones(len(names), dtype=np.int64), dataset, width=width):
        by_cluster = np.ascontiguousarray(drawn.T)
        for at, (kinds, members) in enumerate(reduced):
            blocks[at].append(figures_of(kinds, np.ascontiguousarray((members @ by_cluster).T), methods[at]))
    return [
        {m: {key: np.concatenate([block[m][key] for block in blocks[at]]) for key in _SPREAD} for m in methods[at]}
        for at in range(len(cases))
    ]


def _rows(
    case: Case, names: Sequence[str], methods: Sequence[str], drawn: _Drawn, intervals: Intervals | None
) -> list[Row]:
    observed = figures_of(case, np.ones((1, len(case.label))), methods)
    rows: list[Row] = []
    for method in methods:
        figures = {key: values[0] for key, values in observed[method].items()}
        usable = case.usable(method)
        with_claims = case.has_usable(method)
        why = [unidentifiable(case, at, method) for at in range(len(names))]
        made = np.flatnonzero(~np.isnan(figures["mean_abs_bias"]))
        about: Row = {"method": method, "n": int(usable.sum()), "n_unscored": int((~usable).sum())}
        for at, name in enumerate(names):
            others = int(with_claims.sum() - with_claims[at])
            row = about | {"calibration_system": name, "n_systems": others, "unidentifiable": int(why[at] is not None)}
            row["calibration_errors"] = int((usable & (case.system == at) & (case.label == 0)).sum())
            row |= {key: number(values[at]) for key, values in figures.items()}
            if intervals is not None:
                row |= _ends(intervals, {key: drawn[method][key][:, at] for key in _SPREAD if drawn})
            reason = [why[at] or "", "" if others else "no other system", no_threshold(method), without_interval(row)]
            rows.append(row | {"reason": reasons(reason)})
        row = about | {"calibration_system": CV, "n_systems": len(made)}
        row |= {"unidentifiable": sum(reason is not None for reason in why), "calibration_errors": None}
        row |= {key: number(_mean(values[made])) if key in _MEANT else None for key, values in figures.items()}
        if intervals is not None:
            # As the observed mean is over the calibrations that could be made, so is each replicate's.
            row |= _ends(intervals, {key: _mean(drawn[method][key][:, made].T) for key in _MEANT if drawn})
        reason = [f"{name}: {reason}" for name, reason in zip(names, why, strict=True) if reason]
        if len(names) < 2:
            reason.append(f"{counted(len(names), 'system')}: one to calibrate on and another to correct are needed")
        reason += ["a mean over calibrations has no threshold of its own", without_interval(row)]
        rows.append(row | {"reason": reasons(reason)})
    return rows


def _mean(values: np.ndarray) -> np.ndarray:
    """The mean along the first axis of what is defined; NaN where nothing is."""
    return ratio(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


def _ends(intervals: Intervals, drawn: Mapping[str, np.ndarray]) -> Row:
    row: Row = {f"{key}_{end}": None for key in _SPREAD for end in ("low", "high")}
    return row | {key: number(value) for key, value in low_high(intervals, drawn).items()}


# ----------------------------------------------------------------------------------------------------------- findings

#: A system with fewer labelled errors is too little to calibrate on.
MIN_ERRORS = 10
#: The methods of `adjustment` in words; the first two are those of VC §5's finding.
_IN_WORDS = {
    "zero_bias_threshold": "a zero-bias threshold",
    "bacc_threshold": "a best-BAcc threshold",
    "adjusted_counts": "adjusted counts",
}


def _calibration(audited: Audited) -> Iterator[Finding]:
    """Systems with too few labelled errors to calibrate on."""
    rows = [row for row in audited.rows("adjustment") if row.get("calibration_errors") is not None]
    for (dataset, level), group in by_keys(rows, "dataset", "level"):
        errors: dict[str, int] = {}
        for row in group:
            name = row["calibration_system"]
            errors[name] = max(errors.get(name, 0), row["calibration_errors"])
        few = {name: count for name, count in errors.items() if count < MIN_ERRORS}
        best = max(errors, key=lambda name: errors[name])
        if few:
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(few.items(), key=lambda item: item[1]))
            advice = f"use {best} ({errors[best]})" if best not in few else "label more first"
            yield Finding(
                "warn" if best not in few else "fail",
                None,
                dataset,
                f"On {dataset}, {len(few)} of {len(errors)} systems have fewer than {MIN_ERRORS} labelled errors "
                f"({level} level: {listed}): do not calibrate on them; {advice}.",
                {
                    "level": level,
                    "n_systems": len(errors),
                    "n_too_few": len(few),
                    "best": best,
                    "n_errors": errors[best],
                },
            )
        else:
            yield Finding(
                "ok",
                None,
                dataset,
                f"On {dataset}, each system has at least {MIN_ERRORS} labelled errors to calibrate on ({level} level).",
                {"level": level, "n_systems": len(errors), "n_errors": min(errors.values())},
            )


def _adjustment(audited: Audited) -> Iterator[Finding]:
    """What calibrating on one system does to the bias of the others, and whether that is what VC §5 found."""
    rows = [row for row in audited.rows("adjustment") if row["calibration_system"] == CV]
    rows = [row for row in rows if row["method"] in _IN_WORDS and row["change"] is not None and "change_low" in row]
    before = {
        (row["dataset"], row["level"], row["evaluator"]): row["mean_abs_bias"]
        for row in audited.rows("adjustment")
        if row["calibration_system"] == CV and row["method"] == "none"
    }
    for (dataset, level, evaluator), group in by_keys(rows, "dataset", "level", "evaluator"):
        by_method = {row["method"]: row for row in group}
        sure = {method: _direction(row) for method, row in by_method.items()}
        said = ", ".join(
            f"{points(row['change'], sign=True)} with {words}"
            for method, words in _IN_WORDS.items()
            if (row := by_method.get(method))
        )
        helping = [method for method in by_method if sure[method] < 0]
        best = min(helping, key=lambda method: by_method[method]["mean_abs_bias"], default=None)
        advice = f"use {_IN_WORDS[best]}" if best else "none is shown to reduce it, so do not count on a correction"
        uncorrected = before[dataset, level, evaluator]
        text = (
            f"On {dataset}, calibrating {evaluator} on one system changes the mean |bias| of the others' {level}-level "
            f"error rates ({points(uncorrected)} points uncorrected) by {said}: {advice}"
        )
        evidence: Row = {"level": level, "mean_abs_bias": uncorrected}
        paper = (sure.get("zero_bias_threshold"), sure.get("bacc_threshold"))
        if None not in paper:
            holds = "holds" if paper == (-1, 1) else "fails" if paper[0] == 1 or paper[1] == -1 else "is not settled"
            text += f" (VC §5's finding, that zero bias helps and BAcc harms, {holds} here)"
            evidence |= {"published_finding": holds}
        for method in (each for each in _IN_WORDS if each in by_method):
            row = by_method[method]
            evidence |= {f"{method}_{key}": row[key] for key in ("change", "change_low", "change_high")}
        severity: Severity = "ok" if best else "fail" if 1 in sure.values() else "warn"
        yield Finding(severity, evaluator, dataset, f"{text}.", evidence)


def _direction(row: Row) -> int:
    """-1 where a method surely reduces the bias of the others, 1 where it surely increases it, else 0."""
    if row["change_low"] is None:
        return 0
    return -1 if row["change_high"] < 0 else 1 if row["change_low"] > 0 else 0


# --------------------------------------------------------------------------------------------------------- the report


def _readable(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """The means over calibrations, where there are any: they have no threshold, and no system, of their own."""
    means = [row for row in rows if row.get("calibration_system") == CV]
    if not means:
        return list(rows), ""
    only_one = {"threshold"} | {key for key in rows[0] if key.startswith("calibration_error")}
    return [{k: v for k, v in row.items() if k not in only_one} for row in means], "Each calibration is in the CSV."


def _remarks(rows: Sequence[Row], findings: Sequence[Row]) -> list[str]:
    """Where what VC §5 found of tuned thresholds is found here too; nothing where that was not looked at."""
    where: dict[str, list[str]] = {"holds": [], "fails": [], "is not settled": []}
    for each in findings:
        told = (each.get("evidence") or {}).get("published_finding")
        if told in where:
            level = "" if each["evidence"].get("level") == "claim" else f" ({each['evidence'].get('level')} level)"
            where[told].append(f"{each['evaluator']} on {each['dataset']}{level}")
    if not any(where.values()):
        return []
    said = "; ".join(f"{told} for {', '.join(names) or 'none'}" for told, names in where.items())
    return [
        "VC §5 found that tuning the threshold to zero bias reduces the bias of the other systems and tuning it to "
        f"BAcc increases it. By the intervals of the changes, that {said}."
    ]


# --------------------------------------------------------------------------------------------------------- declaration

_BIASES = "of the other systems' error rates"

AUDIT = Audit(
    name="adjustment",
    place=120,
    title="Correcting error rates with a few labels",
    question="Can one labelled system mend the predicted error rates of the others?",
    source="VC §5, A.7",
    formula="Adjusted counts: p̂ = clip((p̂₀ − FNR) / (TNR − FNR), 0, 1), the error being the positive class; thresholds "
    "are tuned on the calibration system to zero bias or to the best BAcc. |bias| is over the other systems; “each in "
    "turn” is the mean over calibration systems.",
    text="One system's labels calibrate the evaluator; the others' predicted error rates are corrected (VC §5).",
    columns={
        **shared("dataset", "level", "evaluator"),
        "method": Column(
            "method",
            "text",
            ", ".join(f"`{method}`" for method in METHODS),
            key=True,
            values={
                "none": "no adjustment",
                "adjusted_counts": "adjusted counts",
                "zero_bias_threshold": "threshold: zero bias",
                "bacc_threshold": "threshold: best BAcc",
            },
        ),
        "calibration_system": Column(
            "calibration system",
            "text",
            f"the system whose labels are used, or `{CV}`: the mean over all that could be",
            key=True,
            values={CV: "mean, each in turn"},
        ),
        **shared("n", "n_unscored", "reason"),
        "n_systems": Column(
            "systems", "count", f"the other systems; in a `{CV}` row, the calibrations that could be made"
        ),
        "unidentifiable": Column(
            "unidentifiable",
            "count",
            f"1 where the system cannot give what the method needs; in a `{CV}` row, how many cannot",
        ),
        "calibration_errors": Column("calibration errors", "count", "labelled errors of the calibration system"),
        "calibration_error_rate": Column(
            "calibration error rate", "percent", "their share of its claims", interval=True
        ),
        "threshold": Column(
            "threshold", "number", "the tuned one; a prediction is 1 where the score is above it", digits=3
        ),
        "mean_abs_bias": Column("mean |bias|", "points", _BIASES, interval=True, signed=False),
        "worst_abs_bias": Column("worst |bias|", "points", _BIASES, interval=True, signed=False),
        "change": Column("change", "points", "mean_abs_bias − that of `none`: below 0 the method helps", interval=True),
    },
    options={"levels": "`claim`, `response`", "methods": "some of " + ", ".join(f"`{method}`" for method in METHODS)},
    compute=adjustment,
    counts="joint",
    readable=_readable,
    remarks=_remarks,
    plots=(
        DotPlot(
            what="|Bias| of the systems that did not calibrate, by method: mean (filled) and worst (hollow)",
            keys=("mean_abs_bias",),
            beyond="worst_abs_bias",
            panels="evaluator",
            series="method",
            labels={"mean_abs_bias": "|bias| (points)", "worst_abs_bias": "worst"},
        ),
    ),
    checks=(
        Check(
            "calibration",
            "Calibration on too few errors",
            f"systems with fewer than {MIN_ERRORS} labelled errors: too few to calibrate on",
            _calibration,
        ),
        Check(
            "adjustment",
            "What a calibration does to the other systems",
            "what a calibration on one system does to the error rates of the others",
            _adjustment,
            {f"{method}_change": Column(f"{method.replace('_', ' ')} change", "points") for method in METHODS},
        ),
    ),
)
