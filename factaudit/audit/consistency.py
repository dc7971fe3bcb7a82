"""Do two evaluators flag, or pass, the same claims? (VC §3.1, Figures 2, 9, 10)"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.judgements import pair_evaluators as pairs_of
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.evaluator_comparison import (
    is_constant_evaluator,
    list_evaluators_alike_by_bacc,
)
from factaudit.audit.core.interval_methods import KAPPA, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.stats.agreement import has_constant_rater, iou_interval, kappa_interval
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import divide_or_undefined

PREDICTED_CLASSES = {"attributable": 1, "unattributable": 0}


def compute_evaluator_consistency(
    judgements: Judgements,
    *,
    pairs: Mapping[str, str] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Per pair of evaluators and class: IoU of the sets of claims that they predict to be of that
    class.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Labels aren't read. A row per data set, pair and class: dataset, evaluator_a, evaluator_b,
    class, n (claims scored by both), n_unscored (by one or both), iou with ``_min`` and ``_max``
    (whatever the missing predictions had been), kappa (Cohen's, the same in both rows of a pair)
    and, with intervals, ``_low`` and ``_high``
    of both. kappa has no bounds: its extremes over missing predictions are not those of any simple
    completion; and no interval where one evaluator says the same of every claim, for it is 0 then
    whatever is drawn.
    """
    groups = judgements.make_groups("claim")
    rows: list[tuple[int, Row]] = []
    for pair in pairs_of(judgements.evaluators, pairs):
        # The cells are as of a label and a prediction, with a's prediction in the label's place.
        tally = judgements.tally(groups, *pair)
        both, names = tally.cells[:, :2, :2], [judgements.evaluators[place] for place in pair]
        n = both.sum((1, 2))
        counts = {"n": n, "n_unscored": tally.cells.sum((1, 2)) - n}
        table = tally.clusters.counts.reshape(-1, 3, 3)[:, :2, :2]
        kappa = Figure(consistency_kappa(both))
        if intervals is not None:
            kappa = replace(
                kappa, interval=kappa_interval(tally.clusters, table, intervals.confidence)
            )
            kappa = kappa.without_interval(
                has_constant_rater(both), "one gives every claim the same prediction"
            )
        keys = [{**key, "evaluator_a": names[0], "evaluator_b": names[1]} for key in groups.keys]
        for name, cls in PREDICTED_CLASSES.items():
            iou = Figure(consistency_iou(both, cls), consistency_iou_bounds(tally.stated, cls))
            if intervals is not None:
                ends = iou_interval(tally.clusters, table, cls, intervals.confidence)
                given = both[:, cls].sum(1), both[:, :, cls].sum(1)
                never = [
                    is_constant_evaluator(who) & (of == 0)
                    for who, of in zip(names, given, strict=True)
                ]
                iou = replace(iou, interval=ends).without_interval(
                    never[0] | never[1], "one gives the class to no claim, whatever the claims"
                )
            reasons = {
                "no claim is scored by both": n == 0,
                f"neither predicts a claim {name}": np.isnan(iou.point) & (n > 0),
                "both give every claim the same prediction": np.isnan(kappa.point) & (n > 0),
            }
            figures = {"iou": iou, "kappa": kappa}
            rows += enumerate(
                tabulate([key | {"class": name} for key in keys], counts, figures, reasons)
            )
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def consistency_iou(both: np.ndarray, predicted_class: int) -> np.ndarray:
    """Intersection over union of "predicted ``predicted_class``" by two evaluators, of (G, 2, 2)
    claims."""
    given = both[:, predicted_class, predicted_class]
    return divide_or_undefined(
        given, both.sum((1, 2)) - both[:, 1 - predicted_class, 1 - predicted_class]
    )


def consistency_iou_bounds(
    counts: np.ndarray, predicted_class: int
) -> tuple[np.ndarray, np.ndarray]:
    """The least and greatest IoU over all ways to score what is unscored."""
    both = counts[..., predicted_class, predicted_class]
    union = (
        both
        + counts[..., predicted_class, 1 - predicted_class]
        + counts[..., 1 - predicted_class, predicted_class]
    )
    # In the union already, whatever the other had said; and what may enter it, never the
    # intersection.
    one, other = (
        counts[..., cls, -1] + counts[..., -1, cls]
        for cls in (predicted_class, 1 - predicted_class)
    )
    none = counts[..., -1, -1]
    low = divide_or_undefined(both, union + one + other + none)
    high = divide_or_undefined(both + one + none, union + one + none)
    return low, np.where(np.isnan(high), low, high)


def consistency_kappa(both: np.ndarray) -> np.ndarray:
    """Cohen's kappa over what both scored; NaN where both always say the same one thing."""
    n = both.sum((1, 2)).astype(float)
    observed = both[:, 0, 0] + both[:, 1, 1]
    expected = (both.sum(2) * both.sum(1)).sum(1)
    return divide_or_undefined(n * observed - expected, n * n - expected)


# ---- checks


#: Like evaluators should agree on at least this share of what either finds (IoU).
MIN_IOU = 0.50


def _list_alike_pairs(run: AuditedRun) -> Iterator[Row]:
    """The pairs of evaluators of like BAcc (on average), by class."""
    alike = {frozenset(pair) for pair in list_evaluators_alike_by_bacc(run)}
    for row in run.per_dataset("consistency", "iou"):
        if frozenset((row["evaluator_a"], row["evaluator_b"])) in alike:
            either, both = (
                ("flags", "flag") if row["class"] == "unattributable" else ("passes", "pass")
            )
            yield row | {"either": either, "both": both}


CHECK = Check(
    id="iou",
    title="Evaluators that find different errors",
    rows=_list_alike_pairs,
    figure="iou",
    limit=MIN_IOU,
    side="under",
    by=(),
    says=(
        "{evaluator_a} and {evaluator_b} have about the same BAcc, but of the claims that either"
        " {either}{on}, both {both} {iou:percent}, {verdict}."
    ),
    beyond="less than half",
    advice="One cannot replace the other.",
    null=(
        "evaluators of about the same BAcc (within 2 points) share at least half of the claims that"
        " either puts in a class"
    ),
    is_share=True,
    by_figure=True,
    claims="disagree",
)


# ---- declaration

AUDIT = Audit(
    name="consistency",
    title="Whether evaluators agree on the same claims",
    question="Do two evaluators accept the same claims, and flag the same claims?",
    source="VC §3.1 and A.8, Figs. 2, 9, 10",
    formula=(
        "IoU of a class = claims that both evaluators put in the class / claims that at least one"
        " puts in it; κ is Cohen's. Only claims that both scored count; labels are not needed."
    ),
    text=(
        "Two evaluators of similar balanced accuracy can flag quite different claims as errors (VC"
        " Fig. 2)."
    ),
    remedy=(
        "If IoU is low although BAcc is similar, read the claims that only one evaluator flags"
        " (`factaudit view`), and do not replace one evaluator by the other within a study."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator_a", "evaluator_b"),
        "class": Column("class", "text", "`attributable` or `unattributable`", key=True),
        **pick_shared_columns("n", "n_unscored", "reason"),
        "iou": Column(
            "IoU",
            "number",
            "claims that both put in the class / claims that at least one puts in it",
            digits=2,
            bounds=True,
            interval=WILSON,
        ),
        "kappa": Column(
            "Cohen's κ",
            "number",
            "Cohen's κ, the same in both rows of a pair",
            digits=2,
            interval=KAPPA,
        ),
    },
    options={
        "pairs": "each evaluator_a with the evaluator_b to compare it with; by default all pairs",
    },
    compute=compute_evaluator_consistency,
    without_labels=True,
    plot=PlotSpec(
        what="Pairwise IoU of evaluators, by predicted class",
        reading=(
            "1 means that two evaluators give the class to the same claims, 0 that they share none."
        ),
        keys=("iou",),
        groups=("dataset", "evaluator_a", "evaluator_b"),
        series="class",
        per_page=28,
    ),
    checks=(CHECK,),
)
