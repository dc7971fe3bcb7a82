"""What an evaluator's scores are worth whatever its threshold, and what a tuned threshold makes of them (VC §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, evidence_of, of_datasets
from factaudit.audit.core.curves import Scored, best_threshold, rising, tune_threshold
from factaudit.audit.core.decisions import range_of
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.mover import combine
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import MACRO, Row, number, reasons, without_interval
from factaudit.audit.core.shares import Places
from factaudit.audit.core.words import percent
from factaudit.errors import UsageError

#: The figures that have a mean over data sets.
KEYS = ("auc", "average_precision", "tuned_tpr", "tuned_tnr", "tuned_bacc", "bacc")
#: Claims of this split tune a threshold for the others, where a data set has them.
DEV = "dev"


def discrimination(judged: Judged, *, folds: int = 5, intervals: Intervals | None = None) -> list[Row]:
    """AUC, average precision and BAcc at a tuned threshold, of every evaluator that gives scores.

    folds: of the cross-validation; documents (clusters) stay whole.

    A row per dataset and evaluator over its n labelled claims with a score (n_unscored: labelled, without one): auc,
    average_precision (of finding errors, the least score first), error_rate (the share of errors: what guessing gets as
    average precision), bacc (of the predictions as they are, of the same claims), tuned_threshold (of best BAcc), tuned
    (``dev``: on the claims whose split is dev, tried on the others; else ``cross-validation``: each claim by the
    threshold of the other folds), tuned_tpr, tuned_tnr and tuned_bacc there. Figures have ``_min`` and ``_max`` (what
    they could be, whatever the missing scores) and, where there are intervals, ``_low`` and ``_high``. Row
    ``__macro__``: the means over datasets. An evaluator without scores has no row.
    """
    if folds < 2:
        raise UsageError(f"discrimination: expected at least 2 folds, found {folds}")
    dataset, names = judged.datasets
    is_dev = (judged.claims["split"] == DEV).fillna(False).to_numpy(bool)
    size = len(names)
    rows: list[Row] = []
    for at, evaluator in enumerate(judged.evaluators):
        score = judged.score[at]
        if np.isnan(score).all():
            continue
        lacks = np.isnan(score) | (judged.certain[at] != judged.prediction[at])  # a guess states no score either
        inside, outside = (np.flatnonzero((judged.label >= 0) & which) for which in (~np.isnan(score), lacks))
        inside = inside[rising(dataset[inside], score[inside], size)]
        outside = outside[np.argsort(dataset[outside], kind="stable")]
        scored = Scored(
            dataset[inside], judged.label[inside].astype(np.int64), score[inside], judged.clusters[inside], size
        )
        curves = {"auc": scored.auc(), "average_precision": scored.average_precision()}
        limits = {key: curve.limits(intervals.confidence) for key, curve in curves.items()} if intervals else {}
        least, most = _filled(scored, lacks[inside], dataset[outside], judged.label[outside])
        ends = [np.searchsorted(dataset[rows], np.arange(size + 1)) for rows in (inside, outside)]
        for place, name in enumerate(names):
            mine, missing = (r[e[place] : e[place + 1]] for r, e in zip((inside, outside), ends, strict=True))
            row: Row = {"dataset": name, "evaluator": evaluator, "n": len(mine)}
            row |= {"n_unscored": int(np.isnan(score[missing]).sum()), "n_datasets": 1}
            row["error_rate"] = float((judged.label[mine] == 0).mean()) if len(mine) else None
            for key, curve in curves.items():
                row[key] = number(curve.point[place])
                # Average precision with more errors can be higher though they all come last.
                row[f"{key}_min"] = number(np.fmin(least[key][place], curve.point[place]))
                row[f"{key}_max"] = number(np.fmax(most[key][place], curve.point[place]))
                if key in limits:
                    row |= {f"{key}_{end}": number(limits[key][i][place]) for i, end in enumerate(("low", "high"))}
            row |= _at(judged, mine, lacks, judged.prediction[at, mine], missing, ("bacc",), "", intervals)
            row |= _tuned(judged, at, mine, lacks, missing, is_dev, folds, intervals)
            rows.append(row | {"reason": _reason(judged, mine, row)})
    rows.sort(key=lambda row: row["dataset"])
    named = dict.fromkeys(row["evaluator"] for row in rows)
    return rows + [_macro(evaluator, [row for row in rows if row["evaluator"] == evaluator]) for evaluator in named]


def _filled(
    scored: Scored, guessed: np.ndarray, group: np.ndarray, label: np.ndarray
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The figures over all labelled claims where those ``outside`` had the worst scores there could be; and the best.

    guessed: which of the scored ones are outside, too; group, label: of each claim outside.
    """
    if not len(group):
        return scored.points(), scored.points()
    ties = scored.taken(guessed) if guessed.any() else scored.ties
    errors, others = (np.bincount(group[label == one], minlength=scored.n_groups) for one in (0, 1))
    both = np.diag([1, 1])[:, :, None] * np.stack([errors, others])  # each class alone, by label
    return ties.filled(both[1], both[0]).points(), ties.filled(both[0], both[1]).points()


def _tuned(
    judged: Judged,
    at: int,
    mine: np.ndarray,
    lacks: np.ndarray,
    missing: np.ndarray,
    is_dev: np.ndarray,
    folds: int,
    intervals: Intervals | None,
) -> Row:
    """The tuned threshold and the rates at it, on claims that did not tune it."""
    dev, rest = mine[is_dev[mine]], mine[~is_dev[mine]]
    threshold, tried, prediction, how = None, mine, np.full(len(mine), -1, dtype=np.int8), "cross-validation"
    if len(dev) and len(rest):
        tried, missing, how = rest, missing[~is_dev[missing]], DEV
        threshold = best_threshold(judged.label[dev], judged.score[at, dev])
        prediction = np.full(len(tried), -1, dtype=np.int8)
        if threshold is not None:
            prediction = (judged.score[at, tried] > threshold).astype(np.int8)
    elif len(mine):
        seed = intervals.seed if intervals is not None else 0
        found = tune_threshold(
            judged.label[mine], judged.score[at, mine], judged.clusters[mine], folds=folds, seed=seed
        )
        if found is not None and (found.prediction >= 0).all():  # else some documents hold a class alone
            threshold, prediction = found.threshold, found.prediction
    if (prediction < 0).any():  # nothing was tried, so nothing is known of what is missing either
        tried, missing, prediction = tried[:0], missing[:0], prediction[:0]
    row: Row = {"tuned": how, "tuned_threshold": threshold}
    return row | _at(judged, tried, lacks, prediction, missing, ("tpr", "tnr", "bacc"), "tuned_", intervals)


def _at(
    judged: Judged,
    rows: np.ndarray,
    lacks: np.ndarray,
    prediction: np.ndarray,
    missing: np.ndarray,
    keys: Sequence[str],
    prefix: str,
    intervals: Intervals | None,
) -> Row:
    """Rates of some claims under other predictions than the evaluator's own; bounds with the missing ones.

    rows: claims with a score, of which some ``lacks`` a stated one; missing: all those without.
    """
    cells, everywhere = nine.cells(judged.label[rows], prediction), np.zeros(len(rows), dtype=np.int64)
    clusters = Places.of(everywhere, judged.clusters[rows], 1).count(cells, nine.CELLS)
    counts = clusters.total(clusters.counts).reshape(1, 3, 3)
    over_all = np.zeros(1, dtype=bool)
    figures = nine.rates(counts, over_all)
    row: Row = {f"{prefix}{key}": number(figures[key][0]) for key in keys}
    # A guess is among the rows as predicted, and free in the bounds.
    known = ~lacks[rows]
    certain = nine.count(np.zeros(known.sum(), dtype=np.int64), 1, judged.label[rows][known], prediction[known])
    nothing = np.full(len(missing), -1, dtype=np.int8)
    certain += nine.count(np.zeros(len(missing), dtype=np.int64), 1, judged.label[missing], nothing)
    bounds = nine.rate_bounds(certain)
    for key in keys:
        row |= {f"{prefix}{key}_{end}": number(bounds[key][i][0]) for i, end in enumerate(("min", "max"))}
    if intervals is not None:
        limits = nine.rate_limits(clusters, over_all, intervals.confidence)
        for key in keys:
            row |= {f"{prefix}{key}_{end}": number(limits[key][i][0]) for i, end in enumerate(("low", "high"))}
    return row


def _macro(evaluator: str, rows: Sequence[Row]) -> Row:
    row: Row = {"dataset": MACRO, "evaluator": evaluator, "n": sum(r["n"] for r in rows)}
    row |= {"n_unscored": sum(r["n_unscored"] for r in rows), "n_datasets": len(rows), "error_rate": None}
    missing = []
    for key in KEYS:
        defined = [each for each in rows if each[key] is not None]
        row[key] = float(np.mean([each[key] for each in defined])) if defined else None
        for end, narrower in (("min", min), ("max", max)):
            ends = [each[f"{key}_{end}"] for each in rows if each[f"{key}_{end}"] is not None]
            # A dataset without the figure may have bounds: their mean is over more datasets.
            row[f"{key}_{end}"] = float(np.mean(ends)) if ends else None
            if ends and row[key] is not None:
                row[f"{key}_{end}"] = narrower(row[f"{key}_{end}"], row[key])
        if len(defined) < len(rows):
            missing.append(f"{key} is undefined in {len(rows) - len(defined)} of {len(rows)} datasets")
        if f"{key}_low" in rows[0]:
            row |= {f"{key}_low": None, f"{key}_high": None}
            if defined and all(each[f"{key}_low"] is not None for each in defined):
                point, low, high = (
                    np.array([each[f"{key}{end}"] for each in defined]) for end in ("", "_low", "_high")
                )
                # The data sets are independent.
                _, limits = combine(point, (low, high), np.full(len(defined), 1 / len(defined)))
                row |= {f"{key}_low": float(limits[0]), f"{key}_high": float(limits[1])}
    row |= {"tuned": None, "tuned_threshold": None}
    return row | {"reason": reasons([*missing, "each dataset has a threshold of its own", without_interval(row)])}


def _reason(judged: Judged, mine: np.ndarray, row: Row) -> str | None:
    if not len(mine):
        return "no labelled claim has a score"
    if judged.label[mine].min() == judged.label[mine].max():
        return "only one class among the labelled claims that have a score"
    untuned = "too few documents of each class to tune on some and try on others"
    unpredicted = "not of both classes some claim with a score has a prediction"
    return reasons(
        [
            untuned if row["tuned_bacc"] is None else "",
            unpredicted if row["bacc"] is None else "",
            without_interval(row),
        ]
    )


# ----------------------------------------------------------------------------------------------------------- findings


def _threshold(audited: Audited) -> Iterator[Finding]:
    """A threshold that leaves much of what the scores could tell."""
    for evaluator, rows in by_evaluator(audited.per_dataset("discrimination", "tuned_bacc")):
        ends = [(row, range_of(row, "tuned_bacc"), range_of(row, "bacc")) for row in rows]
        rows = [row for row, tuned, own in ends if tuned and own]
        sure = [row for row, tuned, own in ends if tuned and own and tuned[0] > own[1]]
        if not sure:
            continue
        worst = max(sure, key=lambda row: row["tuned_bacc"] - row["bacc"])
        where = of_datasets(sure, rows)
        yield Finding(
            "warn",
            evaluator,
            worst["dataset"],
            f"{evaluator} stands at the wrong threshold{where}: on {worst['dataset']} its BAcc is "
            f"{percent(worst['bacc'])}, "
            f"and surely better tuned, {percent(worst['tuned_bacc'])} at {worst['tuned_threshold']:.6g} (AUC "
            f"{worst['auc']:.3f}): tune it on labels of your own.",
            evidence_of(worst, "auc", "auc_low", "auc_high", "bacc", "tuned_bacc", "tuned_threshold", "n"),
        )


# --------------------------------------------------------------------------------------------------------- declaration

_RATES = "rates at tuned thresholds, on claims that did not tune them"

AUDIT = Audit(
    name="discrimination",
    place=25,
    title="What the scores are worth, whatever the threshold",
    question="How well do an evaluator's scores part right from wrong, and at which threshold?",
    source="VC §5; DeLong et al. 1988; Obuchowski 1997",
    formula="AUC = how probably an attributable claim scores above an unattributable one (ties count half). Average "
    "precision is that of finding errors, the lowest score first. The tuned threshold has the best BAcc.",
    text="A balanced accuracy is that of one threshold. Scores that rank claims well may stand at the wrong one.",
    columns={
        **shared("dataset", "evaluator", "n", "n_unscored", "reason"),
        "n_datasets": Column("datasets", "count", "how many data sets a mean is over; 1 elsewhere", shown=False),
        "error_rate": Column("errors", "percent", "share of label 0: what guessing gets as average precision"),
        "auc": Column("AUC", "number", "area under the ROC curve", digits=3, bounds=True, interval=True),
        "average_precision": Column(
            "AP of errors", "number", "average precision of finding errors", digits=3, bounds=True, interval=True
        ),
        "bacc": Column(
            "BAcc as it is",
            "percent",
            "of the evaluator's own predictions, of the same claims",
            bounds=True,
            interval=True,
        ),
        "tuned_bacc": Column("BAcc tuned", "percent", _RATES, bounds=True, interval=True),
        "tuned_tpr": Column("TPR tuned", "percent", _RATES, bounds=True, interval=True),
        "tuned_tnr": Column("TNR tuned", "percent", _RATES, bounds=True, interval=True),
        "tuned_threshold": Column(
            "threshold",
            "number",
            "of best BAcc on all that may tune; a prediction is 1 where the score is above it",
            digits=3,
        ),
        "tuned": Column(
            "tuned on", "text", f"`{DEV}` (the claims of that split, where a data set has some) or `cross-validation`"
        ),
    },
    options={"folds": "of the cross-validation (5); documents stay whole"},
    compute=discrimination,
    applies=lambda judged: not np.isnan(judged.score).all(),
    checks=(
        Check(
            "threshold",
            "Scores at the wrong threshold",
            "a threshold tuned on other documents surely makes a better BAcc than the evaluator's own",
            _threshold,
        ),
    ),
    plots=(
        DotPlot(
            what="What scores are worth: AUC, and BAcc as it is and at a tuned threshold",
            keys=("auc", "bacc", "tuned_bacc"),
            guides={"auc": 0.5, "bacc": 0.5, "tuned_bacc": 0.5},
        ),
    ),
)
