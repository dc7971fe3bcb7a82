"""Whether an evaluator leans on word overlap (VC §4.1, Figure 5): its rates by ROUGE-2 precision, and their trend.

VC finds that evaluators miss attributable claims that are paraphrased (TPR rises with overlap) and pass unattributable
ones that copy the document's wording (TNR falls with overlap).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, of_datasets
from factaudit.audit.core.decisions import surely_above, surely_below
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.groups import column_codes
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.jackknife import MIN_CLUSTERS, slope, slope_limits
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.plot import Forest, Lines
from factaudit.audit.core.rows import Row, number, reasons
from factaudit.audit.core.shares import by_cluster
from factaudit.audit.core.slopes import by_document, moments, slope_bounds
from factaudit.audit.core.words import points
from factaudit.errors import UsageError
from factaudit.tables.documents import in_blocks
from factaudit.text.overlap import rouge2_precision

#: Each rate with the label of its class.
_CLASSES = {"tpr": 1, "tnr": 0}
_NAMES = {"tpr": "attributable", "tnr": "unattributable"}


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
        bounds = nine.rate_bounds(nine.count(codes, size, judged.label, judged.certain[at]))
        limits = {}
        if intervals is not None:
            nines = nine.cells(judged.label, judged.prediction[at])
            clusters = by_cluster(judged.clusters, codes, size, nines, nine.CELLS)
            limits = nine.rate_limits(clusters, over_all, intervals.confidence)
        rates = nine.rates(counts, over_all)
        figures = nine.with_ends(
            {name: rates[name] for name in _CLASSES},
            bounds,
            {name: limits[name] for name in limits if name in _CLASSES},
        )
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
        sums = moments(judged, task, overlap.r2, label, size)
        slopes = slope(sums)
        low, high = slope_bounds(judged, task, overlap.r2, label, size)
        # The line through what is scored may lead beyond 0 or 1 where a claim is unscored: no completion would.
        figures = {"slope": slopes, "slope_min": np.fmin(low, slopes), "slope_max": np.fmax(high, slopes)}
        if intervals is not None:
            ends = [
                slope_limits(by_document(judged, task, overlap.r2, label, at, size), intervals.confidence)
                for at in range(len(judged.evaluators))
            ]
            for at, end in enumerate(("slope_low", "slope_high")):
                figures[end] = np.array([each[at] for each in ends])
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
    """Read once, whichever audits ask: it is the one thing here that takes time."""
    if ("overlap",) not in judged.kept:
        judged.kept["overlap",] = _read(judged)
    found: _Overlap = judged.kept["overlap",]
    return found


def _read(judged: Judged) -> _Overlap:
    named = judged.claims["task"].where(judged.claims["task"].notna(), judged.claims["dataset"])
    codes, tasks = column_codes(named.to_frame("task"), "task")
    labelled = np.flatnonzero(judged.label >= 0)
    r2 = np.full(len(judged.claims), np.nan)
    some = judged.claims.iloc[labelled]
    for rows, docs in in_blocks(some["doc"]):
        r2[labelled[rows]] = rouge2_precision(some["claim"].iloc[rows].tolist(), docs)
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


def _trend_reason(row: Row) -> str | None:
    if row["slope"] is not None:
        if row.get("slope_low", 0) is not None:
            return None
        return f"no interval for slope: fewer than {MIN_CLUSTERS} clusters, or all predictions right or all wrong"
    if row["n"] == 0:
        return f"no {_NAMES[row['rate']]} claim with a ROUGE-2 precision is scored"
    return "all claims have the same ROUGE-2 precision" if row["n"] > 1 else "a single claim has no slope"


# ----------------------------------------------------------------------------------------------------------- findings


def _leaning(audited: Audited) -> Iterator[Finding]:
    """TPR that rises, TNR that falls with word overlap."""
    rows = [row for row in audited.rows("surface_trend") if row["slope"] is not None]
    for evaluator, mine in by_evaluator(rows):
        tasks = list(dict.fromkeys(row["task"] for row in mine))
        sure: dict[str, dict[str, Row]] = {}
        for row in mine:
            rises = row["rate"] == "tpr"
            if surely_above(row, "slope", 0) if rises else surely_below(row, "slope", 0):
                sure.setdefault(row["task"], {})[row["rate"]] = row
        if not sure:
            continue
        task = max(sure, key=lambda each: (len(sure[each]), sum(abs(row["slope"]) for row in sure[each].values())))
        how = {
            "tpr": "misses attributable claims in other words (TPR {} points for every tenth of overlap)",
            "tnr": "passes unattributable claims in the document's words (TNR {})",
        }
        said = " and ".join(how[rate].format(points(r["slope"] / 10, sign=True)) for rate, r in sure[task].items())
        where = of_datasets(list(sure), tasks, "task")
        yield Finding(
            "fail" if len(sure[task]) == 2 else "warn",
            evaluator,
            task,
            f"{evaluator} surely leans on word overlap{where}: on {task} it {said}; distrust it on paraphrases and "
            "near "
            "copies.",
            {"n_tasks": len(sure)}
            | {
                f"{rate}_{key}": row[key]
                for rate, row in sure[task].items()
                for key in ("slope", "slope_low", "slope_high")
            },
        )


# --------------------------------------------------------------------------------------------------------- declaration

_TASK = Column("task", "text", "the task group; the data set where claims have none", key=True)
_OF_CLASS = "scored claims with label 1, with label 0"
_SLOPE = Column(
    "slope",
    "points",
    'the change of the rate from no overlap (ROUGE-2 precision 0) to full overlap (1): ordinary least squares of "the '
    'prediction is right" on ROUGE-2 precision, a line that may lead beyond 0 and 1. An evaluator leans on word '
    "overlap where TPR's slope is above 0 and TNR's below",
    bounds=True,
    interval=True,
)

AUDITS = (
    Audit(
        name="surface_bias",
        place=80,
        title="Leaning on word overlap",
        question="How often is an evaluator right where claims repeat few, or many, words of the document?",
        source="VC §4.1, Fig. 5",
        formula="ROUGE-2 precision = clipped share of the claim's bigrams found in the document; five bins by "
        "percentile within a task group; TPR and TNR within a bin.",
        text="An evaluator that leans on shared words accepts more, right or wrong, as a claim repeats more of the "
        "document: TPR rises and TNR falls (VC §4.1).",
        columns={
            "task": _TASK,
            **shared("evaluator"),
            "bin": Column("bin", "count", "the bin; 1 has the least overlap", key=True),
            **shared("n", "n_unscored", "reason"),
            "n_no_r2": Column(
                "no R2", "count", "labelled claims of the task group without ROUGE-2 precision, so without a bin"
            ),
            "n_pos": Column("label 1", "count", _OF_CLASS),
            "n_neg": Column("label 0", "count", _OF_CLASS),
            "r2_low": Column("ROUGE-2 from", "number", "the ROUGE-2 precisions between which the bin lies", digits=3),
            "r2_high": Column("ROUGE-2 to", "number", "the ROUGE-2 precisions between which the bin lies", digits=3),
            "tpr": Column("TPR", "percent", "within the bin, whose edges are held fixed", bounds=True, interval=True),
            "tnr": Column("TNR", "percent", "within the bin, whose edges are held fixed", bounds=True, interval=True),
        },
        options={"bins": "how many"},
        compute=surface_bias,
        plots=(
            Lines(
                what="TPR and TNR over bins of ROUGE-2 precision, by task group",
                reading="TPR that rises while TNR falls is leaning on word overlap.",
                x="bin",
                x_label="ROUGE-2 precision bin (1 = least overlap with the document)",
                keys=("tpr", "tnr"),
                groups=("task",),
            ),
        ),
    ),
    Audit(
        name="surface_trend",
        place=90,
        title="How strongly evaluators lean on word overlap",
        question="How much do TPR and TNR change with word overlap?",
        source="VC §4.1",
        formula="Slope of a least squares fit of “the prediction is right” on ROUGE-2 precision, over the claims of "
        "the rate's class: the change from no overlap (0) to full overlap (1), along a straight line that may lead "
        "beyond 100 %.",
        text="The same leaning as one figure per rate: an evaluator leans on word overlap where the slope of TPR is "
        "above zero and that of TNR below.",
        columns={
            "task": _TASK,
            "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values={"tpr": "TPR", "tnr": "TNR"}),
            **shared("evaluator", "n", "n_unscored", "reason"),
            "n_no_r2": Column("no R2", "count", "labelled claims of the rate's class without ROUGE-2 precision"),
            "slope": _SLOPE,
        },
        compute=surface_trend,
        plots=(
            Forest(
                what="How much TPR and TNR change from no overlap to full overlap, by task group",
                reading="TPR to the right of zero and TNR to the left of it is leaning on word overlap.",
                key="slope",
                labels=("evaluator",),
                series="rate",
                guide=0,
                groups=("task",),
            ),
        ),
        checks=(
            Check(
                "overlap",
                "Leaning on word overlap",
                "TPR rises, or TNR falls, with word overlap",
                _leaning,
                {
                    "tpr_slope": replace(_SLOPE, heading="slope of TPR"),
                    "tnr_slope": replace(_SLOPE, heading="slope of TNR"),
                }
                | {"n_trends": Column("trends", "count")},
            ),
        ),
    ),
)
