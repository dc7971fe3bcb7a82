"""Is one evaluator better than another on the same claims? Differences in BAcc and bias, with a paired test."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.intervals import Intervals, distinct
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import MACRO, Row, number, ratio, reasons
from factaudit.signature import digest

KEYS = ("bacc", "bias")


def differences(
    judged: Judged, *, pairs: Mapping[str, str] | None = None, intervals: Intervals | None = None
) -> list[Row]:
    """Per dataset and pair of evaluators, ``difference`` = figure of a - figure of b, for BAcc and for bias.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Both figures are over the n labelled claims that both scored (n_unscored: labelled, not scored by both). ``_min``
    and ``_max`` say what the difference could be, whatever the missing predictions. With intervals: ``_low`` and
    ``_high`` from a paired cluster bootstrap (both evaluators on the same resampled claims), and p_permutation, the
    two-sided p-value of a paired permutation test that swaps the two evaluators' predictions cluster by cluster.
    Dataset ``__macro__`` is the mean over the datasets where the difference is defined; it has no p-value.
    """
    dataset, names = judged.datasets
    rows: list[Row] = []
    means: list[Row] = []
    if pairs is None:
        places = list(combinations(range(len(judged.evaluators)), 2))
    else:
        judged.check_evaluators(name for pair in pairs.items() for name in pair)
        places = [(judged.evaluators.index(a), judged.evaluators.index(b)) for a, b in pairs.items()]
    for a, b in places:
        first, second = judged.prediction[a], judged.prediction[b]
        both = (judged.label >= 0) & (first >= 0) & (second >= 0)
        cells = np.where(both, judged.label * 4 + first * 2 + second, 0).astype(np.int64)
        groups = np.where(both, dataset, -1)
        counts = np.bincount((dataset * 8 + cells)[both], minlength=len(names) * 8).reshape(-1, 2, 2, 2)
        figures = _differences(counts)
        bounds = _bounds(*(nine.count(dataset, len(names), judged.label, judged.prediction[e]) for e in (a, b)))
        drawn: dict[str, np.ndarray] = {}
        if intervals is not None:
            replicates = intervals.counts(judged, groups, len(names), cells, 8)
            drawn = _differences(replicates.reshape(-1, len(names), 2, 2, 2))
        labelled = np.bincount(dataset[judged.label >= 0], minlength=len(names))
        pair: Row = {"evaluator_a": judged.evaluators[a], "evaluator_b": judged.evaluators[b]}
        for key in KEYS:
            for at, name in enumerate(names):
                n = int(counts[at].sum())
                row: Row = {"dataset": name, **pair, "key": key, "n": n, "n_unscored": int(labelled[at]) - n}
                row |= {"n_datasets": 1, "difference": number(figures[key][at])}
                row |= {f"difference_{end}": number(bounds[key][end][at]) for end in ("min", "max")}
                if intervals is not None:
                    low, high = intervals.ends(drawn[key][:, at])
                    row |= {"difference_low": number(low), "difference_high": number(high)}
                    inside = np.flatnonzero(groups == at)
                    row["p_permutation"] = _permutation(judged, inside, cells[inside], key, name, intervals)
                rows.append(row | {"reason": _reason(counts[at], row)})
            means.append(_macro(pair, key, rows[-len(names) :], drawn.get(key), intervals))
    rows.sort(key=lambda row: row["dataset"])
    return rows + means


def _differences(counts: np.ndarray) -> dict[str, np.ndarray]:
    """From counts (..., label, prediction of a, prediction of b)."""
    a, b = counts.sum(-1), counts.sum(-2)  # (..., label, prediction)
    n = a.sum((-1, -2))
    positive, negative = a[..., 1, :].sum(-1), a[..., 0, :].sum(-1)
    tpr = ratio(a[..., 1, 1] - b[..., 1, 1], positive)
    tnr = ratio(a[..., 0, 0] - b[..., 0, 0], negative)
    return {"bacc": (tpr + tnr) / 2, "bias": ratio(a[..., 0].sum(-1) - b[..., 0].sum(-1), n)}


def _bounds(a: np.ndarray, b: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """What a - b could be: the predictions that a lacks are free of those that b lacks."""
    found = {}
    for key, bounds in (("bacc", nine.rate_bounds), ("bias", nine.error_rate_bounds)):
        (a_min, a_max), (b_min, b_max) = bounds(a)[key], bounds(b)[key]
        found[key] = {"min": a_min - b_max, "max": a_max - b_min}
    return found


def _permutation(
    judged: Judged, rows: np.ndarray, cells: np.ndarray, key: str, dataset: str, intervals: Intervals
) -> float | None:
    """Two-sided p-value of a paired permutation test over clusters; None where the difference is undefined."""
    label, first, second = cells // 4, cells // 2 % 2, cells % 2
    positive, negative = int((label == 1).sum()), int((label == 0).sum())
    if not len(rows) or (key == "bacc" and not (positive and negative)):
        return None
    # Swapping a cluster's predictions changes the sign of what the cluster adds to the difference.
    clusters = np.unique(judged.clusters[rows], return_inverse=True)[1]
    gain = np.zeros((int(clusters.max()) + 1, 2), dtype=np.int64)
    np.add.at(gain, (clusters, label), first - second)
    kinds, times = distinct(gain)
    weight = np.array([-1 / negative, 1 / positive]) / 2 if key == "bacc" else np.array([-1, -1]) / len(rows)
    added = kinds @ weight
    random = np.random.default_rng([intervals.seed, int(digest(dataset, key, "permutation"), 16)])
    kept = random.binomial(times, 0.5, size=(intervals.replicates, len(times)))
    permuted = (2 * kept - times) @ added
    # Sums in another order differ in the last bits: what is equal on paper must count as equal.
    extreme = np.abs(permuted) >= abs(times @ added) - 1e-12
    return float((1 + extreme.sum()) / (1 + intervals.replicates))


def _macro(pair: Row, key: str, rows: list[Row], drawn: np.ndarray | None, intervals: Intervals | None) -> Row:
    defined = [at for at, row in enumerate(rows) if row["difference"] is not None]
    row: Row = {"dataset": MACRO, **pair, "key": key}
    row |= {name: sum(r[name] for r in rows) for name in ("n", "n_unscored", "n_datasets")}
    for name in ("difference", "difference_min", "difference_max"):
        values = [r[name] for r in rows if r[name] is not None]
        row[name] = float(np.mean(values)) if values else None
    if intervals is not None and drawn is not None:
        low, high = intervals.ends(drawn[:, defined].mean(1)) if defined else (np.nan, np.nan)
        row |= {"difference_low": number(low), "difference_high": number(high), "p_permutation": None}
    missing = len(rows) - len(defined)
    return row | {
        "reason": reasons(
            [
                f"undefined in {missing} of {len(rows)} datasets" if missing else "",
                "the permutation test is for one dataset" if intervals is not None else "",
            ]
        )
    }


def _reason(counts: np.ndarray, row: Row) -> str | None:
    if not counts.sum():
        return "no labelled claim is scored by both"
    if row["key"] == "bacc" and not counts.sum((1, 2)).all():
        return "only one class among the labelled claims that both scored"
    return "no interval: too few clusters to resample" if row.get("difference_low", 0) is None else None


# --------------------------------------------------------------------------------------------------------- declaration

_DIFFERENCE = "figure of a − figure of b on the same claims"

AUDIT = Audit(
    name="differences",
    place=20,
    title="Differences between evaluators on the same claims",
    question="Is one evaluator better than another on the same claims?",
    formula="Difference = the first evaluator's figure − the second's, with a paired cluster bootstrap and, for one "
    "dataset, a paired permutation test.",
    text="Paired: both evaluators judge the same claims, so that a difference can be clear where intervals overlap.",
    columns={
        **shared("dataset"),
        "key": Column(
            "figure",
            "text",
            "the figure that is compared: `bacc`, or `bias` (predicted − labelled error rate)",
            key=True,
            values={"bacc": "BAcc", "bias": "bias"},
        ),
        **shared("evaluator_a", "evaluator_b", "n", "n_unscored", "reason"),
        "n_datasets": Column("datasets", "count", "how many data sets a mean is over; 1 elsewhere", shown=False),
        "difference": Column(
            "difference", "points", _DIFFERENCE + " (the interval is paired)", bounds=True, interval=True
        ),
        "p_permutation": Column(
            "p permutation",
            "p",
            "two-sided p-value of a permutation test that swaps the two evaluators' predictions cluster by cluster; "
            "null for `__macro__`",
        ),
    },
    options={"pairs": "from each evaluator_a to its evaluator_b; by default every two evaluators"},
    compute=differences,
)
