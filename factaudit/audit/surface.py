"""Whether an evaluator leans on word overlap (VC §4.1, Figure 5): its rates by ROUGE-2 precision, and their trend.

VC finds that evaluators miss attributable claims that are paraphrased (TPR rises with overlap) and pass unattributable
ones that copy the document's wording (TNR falls with overlap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.groups import column_codes
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import Row, number, ratio, reasons
from factaudit.errors import UsageError
from factaudit.text.overlap import rouge2_precision

#: Each rate with the label of its class.
_CLASSES = {"tpr": 1, "tnr": 0}
_NAMES = {"tpr": "attributable", "tnr": "unattributable"}
#: A spread of overlap under this share of its mean square is rounding, not a spread.
_NO_SPREAD = 1e-9


@dataclass(frozen=True)
class _Overlap:
    """The labelled claims' overlap with their documents.

    tasks: the sorted task groups; a claim without a task has its dataset as group.
    task: int64 (n,), each claim's group.
    r2: float64 (n,), ROUGE-2 precision; NaN where the claim isn't labelled, has fewer than two tokens or no document.
    """

    tasks: list[str]
    task: np.ndarray
    r2: np.ndarray

    def split(self, members: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each member's group (-1: not one of ``members``, or without overlap); how many of each have no overlap."""
        defined = ~np.isnan(self.r2)
        lost = np.bincount(self.task[members & ~defined], minlength=len(self.tasks))
        return np.where(members & defined, self.task, -1), lost


def surface_bias(judged: Judged, *, bins: int = 5, intervals: Intervals | None = None) -> list[Row]:
    """TPR and TNR of each evaluator in bins of ROUGE-2 precision, within each task group.

    The bins hold equal numbers of the group's labelled claims as far as ties allow: bin b has the claims over its lower
    edge and up to its upper one (bin 1 has its lower one too). Where edges coincide a bin has no claim: its claims are
    in an earlier bin. The bins are the same for all evaluators.

    A row per task group, evaluator and bin: task (the dataset's name where the claims have no task), evaluator, bin
    (1..bins), r2_low, r2_high (the edges), n (scored claims), n_unscored, n_no_r2 (the group's labelled claims that
    have no ROUGE-2 precision, so no bin), n_pos, n_neg, tpr, tnr, each rate with ``_min`` and ``_max`` and, with
    intervals, ``_low`` and ``_high`` (bin edges are held fixed).
    """
    if bins < 1:
        raise UsageError(f"surface_bias: expected at least 1 bin, found {bins}")
    overlap = _overlap(judged)
    grouped, lost = overlap.split(judged.label >= 0)
    edges = [_edges(overlap.r2[grouped == at], bins) for at in range(len(overlap.tasks))]
    codes = np.full(len(judged.claims), -1, dtype=np.int64)
    for at, inner in enumerate(edges):
        inside = np.flatnonzero(grouped == at)
        codes[inside] = at * bins + np.searchsorted(inner[1:-1], overlap.r2[inside], side="left")
    size = len(overlap.tasks) * bins
    over_all = np.zeros(size, dtype=bool)
    rows: list[tuple[int, Row]] = []
    for at, evaluator in enumerate(judged.evaluators):
        counts = nine.count(codes, size, judged.label, judged.prediction[at])
        figures: dict[str, np.ndarray] = {}
        bounds = nine.rate_bounds(counts)
        rates = nine.rates(counts, over_all)
        for name in _CLASSES:
            figures |= {name: rates[name], f"{name}_min": bounds[name][0], f"{name}_max": bounds[name][1]}
        if intervals is not None:
            drawn = nine.rates(nine.replicates(judged, at, codes, over_all, intervals), over_all)
            for name, label in _CLASSES.items():
                # A class with one claim is either drawn or not: its rate never varies.
                drawn[name][:, counts[:, label, :2].sum(-1) < 2] = np.nan
            figures |= low_high(intervals, {name: drawn[name] for name in _CLASSES})
        for place in range(size):
            task, position = divmod(place, bins)
            scored_of = counts[place, :2, :2].sum(-1)
            row: Row = {
                "task": overlap.tasks[task],
                "evaluator": evaluator,
                "bin": position + 1,
                "r2_low": number(edges[task][position]),
                "r2_high": number(edges[task][position + 1]),
                "n": int(scored_of.sum()),
                "n_unscored": int(counts[place, :2, -1].sum()),
                "n_no_r2": int(lost[task]),
                "n_pos": int(scored_of[1]),
                "n_neg": int(scored_of[0]),
            }
            row |= {name: number(values[place]) for name, values in figures.items()}
            rows.append((task, row | {"reason": _bin_reason(row, counts[place])}))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def surface_trend(judged: Judged, *, intervals: Intervals | None = None) -> list[Row]:
    """How much TPR and TNR change from no overlap (ROUGE-2 precision 0) to full overlap (1), within each task group.

    The slope of a linear probability fit (ordinary least squares) of "the prediction is right" on ROUGE-2 precision,
    over the claims of the rate's class; the line may lead beyond 0 and 1 where few claims have that little or that much
    overlap. Word overlap is what the evaluator leans on where TPR's slope is positive and TNR's negative.

    A row per task group, evaluator and rate: task (the dataset's name where the claims have no task), evaluator, rate
    (``tpr`` or ``tnr``), n (scored claims of the class), n_unscored, n_no_r2 (the class's labelled claims without
    ROUGE-2 precision), slope with ``_min`` and ``_max`` and, with intervals, ``_low`` and ``_high``.
    """
    overlap = _overlap(judged)
    rows: list[tuple[int, Row]] = []
    for rate, label in _CLASSES.items():
        task, lost = overlap.split(judged.label == label)
        size = len(overlap.tasks)
        sums = _moments(judged, task, overlap.r2, label, size)
        low, high = _slope_bounds(judged, task, overlap.r2, label, size)
        figures = {"slope": _slope(sums), "slope_min": low, "slope_max": high}
        if intervals is not None:
            drawn = _resampled(judged, task, overlap.r2, label, size, intervals)
            figures |= low_high(intervals, {"slope": _slope(drawn)})
        for at, evaluator in enumerate(judged.evaluators):
            unscored = np.bincount(task[(task >= 0) & (judged.prediction[at] < 0)], minlength=size)
            for place, name in enumerate(overlap.tasks):
                row: Row = {
                    "task": name,
                    "evaluator": evaluator,
                    "rate": rate,
                    "n": int(sums[at, place, 0]),
                    "n_unscored": int(unscored[place]),
                    "n_no_r2": int(lost[place]),
                }
                row |= {key: number(values[at, place]) for key, values in figures.items()}
                rows.append((place, row | {"reason": _trend_reason(row)}))
    order = {evaluator: at for at, evaluator in enumerate(judged.evaluators)}
    return [row for _, row in sorted(rows, key=lambda pair: (pair[0], order[pair[1]["evaluator"]]))]


# ------------------------------------------------------------------------------------------------------- overlap


def _overlap(judged: Judged) -> _Overlap:
    named = judged.claims["task"].where(judged.claims["task"].notna(), judged.claims["dataset"])
    codes, tasks = column_codes(named.to_frame("task"), "task")
    labelled = np.flatnonzero(judged.label >= 0)
    r2 = np.full(len(judged.claims), np.nan)
    texts = judged.claims.iloc[labelled]
    r2[labelled] = rouge2_precision(texts["claim"].tolist(), texts["doc"].tolist())
    return _Overlap(tasks, codes, r2)


def _edges(values: np.ndarray, bins: int) -> np.ndarray:
    """float64 (bins + 1,): the percentiles between which the bins lie; NaN where there is no value.

    Each edge is one of the values, so that a bin between two different edges has at least its upper one.
    """
    if not len(values):
        return np.full(bins + 1, np.nan)
    # The k-th edge is the least value that k / bins of the values do not exceed (in whole numbers: 3 / 5 is no float).
    places = -(-np.arange(bins + 1) * len(values) // bins) - 1
    return np.sort(values)[np.maximum(places, 0)]


def _bin_reason(row: Row, counts: np.ndarray) -> str | None:
    if row["r2_low"] is None:
        return "no labelled claim of this task has a document and at least two tokens"
    if not counts.any():
        return f"no claim: both edges are {row['r2_high']:.4g}, so an earlier bin has all claims up to there"
    return reasons(
        f"{rate} needs {_NAMES[rate]} claims: "
        + ("none of this bin's is scored" if counts[label].sum() else "this bin has none")
        for rate, label in _CLASSES.items()
        if row[rate] is None
    )


# --------------------------------------------------------------------------------------------------------- trend

#: What a slope is made of, of each claim: 1, x, y, xy, xx.
_MOMENTS = 5


def _terms(r2: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    return [np.ones(len(r2)), r2, right, r2 * right, r2 * r2]


def _members(judged: Judged, task: np.ndarray, r2: np.ndarray, at: int) -> np.ndarray:
    """The scored claims, by rising overlap: sums then do not depend on the order of the table's rows."""
    rows = np.flatnonzero((task >= 0) & (judged.prediction[at] >= 0))
    return rows[np.argsort(r2[rows], kind="stable")]


def _moments(judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, n_tasks: int) -> np.ndarray:
    """float64 (evaluators, tasks, 5)."""
    out = np.zeros((len(judged.evaluators), n_tasks, _MOMENTS))
    for at in range(len(judged.evaluators)):
        rows = _members(judged, task, r2, at)
        for term, values in enumerate(_terms(r2[rows], judged.prediction[at, rows] == label)):
            out[at, :, term] = np.bincount(task[rows], values, n_tasks)
    return out


def _slope(sums: np.ndarray) -> np.ndarray:
    """The least squares slope of (..., 5) moments; NaN where all overlaps are equal."""
    n, x, y, xy, xx = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    return ratio(n * xy - x * y, np.where(spread > _NO_SPREAD * n * xx, spread, 0.0))


def _slope_bounds(
    judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, n_tasks: int
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest slope, whatever the missing predictions had been: float64 (evaluators, tasks) each.

    A slope is linear in what is right, with the sign of the claim's overlap above or below the mean.
    """
    ends = np.full((2, len(judged.evaluators), n_tasks), np.nan)
    for place in range(n_tasks):
        rows = np.flatnonzero(task == place)
        rows = rows[np.argsort(r2[rows], kind="stable")]
        if not len(rows):
            continue
        centred = r2[rows] - r2[rows].mean()
        spread = (centred * centred).sum()
        if spread <= _NO_SPREAD * (r2[rows] ** 2).sum():
            continue
        for at in range(len(judged.evaluators)):
            prediction = judged.prediction[at, rows]
            known = (centred * (prediction == label)).sum()
            free = centred[prediction < 0]
            ends[:, at, place] = known + np.minimum(free, 0).sum(), known + np.maximum(free, 0).sum()
            ends[:, at, place] /= spread
    return ends[0], ends[1]


def _resampled(
    judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, n_tasks: int, intervals: Intervals
) -> np.ndarray:
    """float64 (replicates, evaluators, tasks, 5): moments with whole clusters resampled within each dataset.

    All evaluators get the same draws. NaN where the claims lie in a single cluster: there is nothing to resample.
    """
    stratum, names = judged.datasets
    n_evaluators = len(judged.evaluators)
    out = np.zeros((intervals.replicates, n_evaluators, n_tasks, _MOMENTS))
    clusters_of = np.zeros((n_evaluators, n_tasks), dtype=np.int64)
    for where, name in enumerate(names):
        inside = stratum == where
        clusters = np.unique(judged.clusters[inside], return_inverse=True)[1]
        cluster = np.zeros(len(task), dtype=np.int64)
        cluster[inside] = clusters
        n_clusters = int(clusters.max(initial=-1)) + 1
        present = np.unique(task[inside & (task >= 0)])
        for place in present:
            statistics = np.zeros((n_clusters, n_evaluators, _MOMENTS))
            for at in range(n_evaluators):
                rows = _members(judged, np.where(inside & (task == place), place, -1), r2, at)
                for term, values in enumerate(_terms(r2[rows], judged.prediction[at, rows] == label)):
                    statistics[:, at, term] = np.bincount(cluster[rows], values, n_clusters)
            clusters_of[:, place] += (statistics[..., 0] > 0).sum(0)
            drawn = intervals.sums(statistics.reshape(n_clusters, -1), name)
            out[:, :, place] += drawn.reshape(-1, n_evaluators, _MOMENTS)
    out[:, clusters_of < 2] = np.nan
    return out


def _trend_reason(row: Row) -> str | None:
    if row["slope"] is not None:
        return None
    if row["n"] == 0:
        return f"no {_NAMES[row['rate']]} claim with a ROUGE-2 precision is scored"
    return "all claims have the same ROUGE-2 precision" if row["n"] > 1 else "a single claim has no slope"
