"""How far two evaluators find the same claims (un)attributable (VC §3.2, Figures 2, 9, 10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from factaudit.audit.core.agreement import iou_limits, is_constant, kappa_limits
from factaudit.audit.core.checks import evidence_of, of_datasets
from factaudit.audit.core.compared import like_pairs
from factaudit.audit.core.decisions import surely_below
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.plot import Flips, HeatMap
from factaudit.audit.core.rows import Row, number, ratio, reasons, without_interval
from factaudit.audit.core.tallies import Tallies, says, states
from factaudit.audit.core.tallies import pairs as pairs_of
from factaudit.audit.core.words import percent

CLASSES = {"attributable": 1, "unattributable": 0}


def consistency(
    judged: Tallies,
    *,
    by: Sequence[str] = ("dataset",),
    pairs: Mapping[str, str] | None = None,
    intervals: Intervals | None = None,
) -> list[Row]:
    """Per pair of evaluators and class: IoU of the sets of claims that they predict to be of that class.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Labels aren't read. A row per group of ``by``, pair and class: the keys of ``by``, evaluator_a, evaluator_b, class,
    n (claims scored by both), n_unscored (by one or both), iou with ``_min`` and ``_max`` (whatever the missing
    predictions had been), kappa (Cohen's, the same in both rows of a pair) and, with intervals, ``_low`` and ``_high``
    of both. kappa has no bounds: its extremes over missing predictions are not those of any simple completion; and no
    interval where one evaluator says the same of every claim, for it is 0 then whatever is drawn.
    """
    groups = judged.group("claim", by)
    rows: list[Row] = []
    for a, b in pairs_of(judged.evaluators, pairs):
        # The same nine cells as for a label and a prediction, with a's prediction in the label's place.
        counts, sure = (judged.count(groups, field(a), field(b)) for field in (says, states))
        clusters = None
        if intervals is not None:
            clusters = judged.clusters_of(groups, says(a), says(b), known=True)
        for name, cls in CLASSES.items():
            low, high = iou_bounds(sure, cls)
            figures = {"iou": iou(counts, cls), "iou_min": low, "iou_max": high, "kappa": kappa(counts)}
            if intervals is not None and clusters is not None:
                table = clusters.counts.reshape(-1, 2, 2)
                for figure, ends in (
                    ("iou", iou_limits(clusters, table, cls, intervals.confidence)),
                    ("kappa", kappa_limits(clusters, table, intervals.confidence)),
                ):
                    figures |= {f"{figure}_low": ends[0], f"{figure}_high": ends[1]}
            for at, key in enumerate(groups.keys):
                n = int(counts[at, :2, :2].sum())
                row: Row = {
                    **key,
                    "evaluator_a": judged.evaluators[a],
                    "evaluator_b": judged.evaluators[b],
                    "class": name,
                    "n": n,
                    "n_unscored": int(counts[at].sum()) - n,
                }
                row |= {figure: number(values[at]) for figure, values in figures.items()}
                rows.append(row | {"reason": _reason(row, counts[at])})
    order = {tuple(key.values()): at for at, key in enumerate(groups.keys)}
    return sorted(rows, key=lambda row: order[tuple(row[column] for column in groups.keys[0])])


def iou(counts: np.ndarray, cls: int) -> np.ndarray:
    """Intersection over union of "predicted ``cls``" by the evaluator of axis -2 and by that of axis -1."""
    both = counts[..., cls, cls]
    return ratio(both, both + counts[..., cls, 1 - cls] + counts[..., 1 - cls, cls])


def iou_bounds(counts: np.ndarray, cls: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and greatest IoU over all ways to score what is unscored."""
    both = counts[..., cls, cls]
    union = both + counts[..., cls, 1 - cls] + counts[..., 1 - cls, cls]
    one = counts[..., cls, -1] + counts[..., -1, cls]  # in the union already, whatever the other had said
    none = counts[..., -1, -1]
    other = counts[..., 1 - cls, -1] + counts[..., -1, 1 - cls]  # may enter the union, never the intersection
    low = ratio(both, union + one + other + none)
    high = ratio(both + one + none, union + one + none)
    return low, np.where(np.isnan(high), low, high)


def kappa(counts: np.ndarray) -> np.ndarray:
    """Cohen's kappa over what both scored; NaN where both always say the same one thing."""
    both = counts[..., :2, :2].astype(np.float64)
    n = both.sum((-1, -2))
    observed = both[..., 0, 0] + both[..., 1, 1]
    expected = (both.sum(-1) * both.sum(-2)).sum(-1)
    return ratio(n * observed - expected, n * n - expected)


def _reason(row: Row, counts: np.ndarray) -> str | None:
    if row["n"] == 0:
        return "no claim is scored by both"
    constant = "kappa_low" in row and row["kappa"] is not None and is_constant(counts[:2, :2])
    return reasons(
        [
            f"neither predicts a claim {row['class']}" if row["iou"] is None else "",
            "both give every claim the same prediction" if row["kappa"] is None else "",
            "no interval for kappa: one gives every claim the same prediction" if constant else "",
            without_interval(row | {"kappa": None} if constant else row),
        ]
    )


# ----------------------------------------------------------------------------------------------------------- findings

#: Like evaluators should agree on at least this share of what either finds (IoU).
MIN_IOU = 0.50


def _iou(audited: Audited) -> Iterator[Finding]:
    """Evaluators of like BAcc (on average) that find different claims."""
    like = {frozenset(pair) for pair in like_pairs(audited)}
    rows = [
        row
        for row in audited.per_dataset("consistency", "iou")
        if frozenset((row["evaluator_a"], row["evaluator_b"])) in like
    ]
    apart = [row for row in rows if row["iou"] < MIN_IOU]
    sure = [row for row in apart if surely_below(row, "iou", MIN_IOU)]
    if not apart:
        return
    worst = min(sure or apart, key=lambda row: row["iou"])
    pair = f"{worst['evaluator_a']} / {worst['evaluator_b']}"
    pairs = {frozenset((row["evaluator_a"], row["evaluator_b"])) for row in sure}
    more = f" So do {len(pairs)} of {len(like)} pairs of like BAcc, surely, on some dataset." if len(like) > 1 else ""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    mine = [row for row in rows if {row["evaluator_a"], row["evaluator_b"]} == {*pair.split(" / ")}]
    where = of_datasets(list(dict.fromkeys(row["dataset"] for row in mine if row in sure)), datasets)
    less = f", surely less than half{where}" if where else ""
    yield Finding(
        "fail" if sure else "warn",
        pair,
        worst["dataset"],
        f"{worst['evaluator_a']} and {worst['evaluator_b']} have like BAcc but share only {percent(worst['iou'])} of "
        f"the claims that either finds {worst['class']} on {worst['dataset']}{less}: one cannot stand in for the "
        "other, "
        f"so look at claims, not only at rates.{more}",
        evidence_of(worst, "class", "iou", "iou_low", "iou_high", "kappa", "n") | {"n_pairs": len(pairs)},
    )


# --------------------------------------------------------------------------------------------------------- declaration

AUDIT = Audit(
    name="consistency",
    place=30,
    title="Whether evaluators agree on the same claims",
    question="Do two evaluators find the same claims attributable, and unattributable?",
    source="VC §3.2, Figs. 2, 9, 10",
    formula="IoU of a class = claims to which both evaluators give the class / claims to which either does; κ is "
    "Cohen's. Over claims that both have scored; labels are not needed.",
    text="Two evaluators of like balanced accuracy may call quite different claims errors (VC Fig. 2).",
    columns={
        **shared("dataset", "evaluator_a", "evaluator_b"),
        "class": Column("class", "text", "`attributable` or `unattributable`", key=True),
        **shared("n", "n_unscored", "reason"),
        "iou": Column(
            "IoU",
            "number",
            "claims to which both give the class / claims to which either does",
            digits=2,
            bounds=True,
            interval=True,
        ),
        "kappa": Column("Cohen's κ", "number", "Cohen's κ, the same in both rows of a pair", digits=2, interval=True),
    },
    options={
        "by": "columns of the claims",
        "pairs": "from each evaluator_a to its evaluator_b; by default every two evaluators",
    },
    compute=consistency,
    tallies=True,
    without_labels=True,
    plots=(
        HeatMap(
            what="Pairwise IoU of evaluators, by predicted class",
            reading="1 means that two evaluators give the class to the same claims, 0 that they share none.",
            value="iou",
            by="class",
            prefix="predicted ",
        ),
        Flips(
            name="pair",
            what="IoU of a pair of evaluators across datasets, by predicted class",
            keys=("iou",),
            pair=("evaluator_a", "evaluator_b"),
            by="class",
            values={"unattributable": "predicted unattributable", "attributable": "predicted attributable"},
            asked=True,
        ),
    ),
    checks=(
        Check(
            "iou",
            "Evaluators that find different errors",
            "two evaluators of like BAcc on average, clear of chance, share less than half of the claims that either "
            "puts in a class",
            _iou,
            {key: Column(f"BAcc {key[-1]}", "percent") for key in ("bacc_a", "bacc_b")},
            claims="disagree",
        ),
    ),
)
