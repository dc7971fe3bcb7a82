"""Do two evaluators flag, or pass, the same claims? (VC §3.1, Figures 2, 9, 10)"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from factaudit.arrays.figures import Figure, Tally, estimate_share
from factaudit.arrays.judgements import ClaimGroups, Judgements
from factaudit.audit.core.audit_declaration import (
    FISHER_JACKKNIFE,
    WILSON,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, tabulate
from factaudit.audit.rates import list_evaluators_alike_by_bacc
from factaudit.stats import divide_or_undefined
from factaudit.stats.agreement import weighted_kappa
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import interval

#: With fewer clusters, intervals of kappa are too narrow (Cameron, Gelbach & Miller 2008).
FEWEST_CLUSTERS = 10
PREDICTED_CLASSES = {"attributable": 1, "unattributable": 0}


def compute_evaluator_consistency(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """For each pair of evaluators and each class, the IoU (intersection over union) of the sets of
    claims that they predict to be of that class.

    Labels are not read. A row per data set, pair and class has dataset, evaluator_a, evaluator_b,
    class, n (claims scored by both), n_unscored (by one or both), iou with ``_min`` and ``_max``
    (the lowest and highest values that the missing predictions allow), kappa (Cohen's, the same in
    both rows of a pair) and, if intervals are wanted, ``_low`` and ``_high`` of both. kappa has no
    bounds, because its extremes over missing predictions are not those of any simple completion.
    """
    groups = judgements.make_groups("claim")
    confidence = None if intervals is None else intervals.confidence
    names = judgements.evaluators
    rows: list[Row] = []
    for a, b in combinations(range(len(names)), 2):
        # The cells are laid out as for a label and a prediction; a's prediction takes the place of
        # the label.
        tally = judgements.tally(groups, a, b)
        n = tally.cells[:, :2, :2].sum((1, 2))
        counts = {"n": n, "n_unscored": tally.cells.sum((1, 2)) - n}
        kappa = _measure_kappa(judgements, groups, (a, b), confidence)
        for name, value in PREDICTED_CLASSES.items():
            pair = {"evaluator_a": names[a], "evaluator_b": names[b], "class": name}
            iou = _measure_iou(tally, value, confidence)
            reasons = {
                "no claim is scored by both": n == 0,
                f"neither predicts a claim {name}": np.isnan(iou.point) & (n > 0),
                "both give every claim the same prediction": np.isnan(kappa.point) & (n > 0),
            }
            keys, figures = [key | pair for key in groups.keys], {"iou": iou, "kappa": kappa}
            rows += tabulate(keys, counts, figures, reasons, _FEW_CLUSTERS)
    return sorted(rows, key=lambda row: row["dataset"])


_FEW_CLUSTERS = (
    f"fewer than two clusters (of kappa: {FEWEST_CLUSTERS}), or (of kappa) the two agree on every"
    " claim, or one says the same of all"
)


def _measure_iou(tally: Tally, value: int, confidence: float | None) -> Figure:
    """The intersection over union of the claims for which each of two evaluators predicts
    ``value``."""
    other, stated = 1 - value, tally.stated
    (both, union), (sure, known) = (
        (cells[:, value, value], cells[:, :2, :2].sum((1, 2)) - cells[:, other, other])
        for cells in (tally.clusters.counts.reshape(-1, 3, 3), stated)
    )
    # Claims that one evaluator scored are in the union already, or may be in it but not in the
    # intersection. Claims that neither scored may be in both.
    inside, outside = (stated[:, cls, 2] + stated[:, 2, cls] for cls in (value, other))
    free = inside + stated[:, 2, 2]
    least = divide_or_undefined(sure, known + free + outside)
    most = divide_or_undefined(sure + free, known + free)
    bounds = least, np.fmax(least, most)
    return estimate_share(tally.clusters, both, union, confidence, bounds)


def _measure_kappa(
    judgements: Judgements, groups: ClaimGroups, pair: tuple[int, int], confidence: float | None
) -> Figure:
    """Cohen's kappa of two evaluators in each group, over the claims that both scored."""
    a, b = (judgements.prediction[place].astype(np.int64) for place in pair)
    cluster = judgements.cluster_codes
    # In a fixed order, so that the sums do not depend on the order of the table.
    order = np.argsort(cluster * 4 + a * 2 + b, kind="stable")
    order = order[(a[order] >= 0) & (b[order] >= 0)]
    found = np.full((len(groups.keys), 3), np.nan)
    for at in range(len(groups.keys)):
        rows = order[groups.codes[order] == at]
        kappa = weighted_kappa(a[rows].astype(np.float64), b[rows].astype(np.float64))
        found[at, 0] = kappa.point
        if confidence is not None:
            telling = a[rows] != b[rows]
            found[at, 1:] = interval(
                kappa,
                cluster[rows],
                "fisher",
                confidence,
                min_clusters=FEWEST_CLUSTERS,
                telling=telling,
            )
    return Figure(found[:, 0], interval=None if confidence is None else (found[:, 1], found[:, 2]))


# ---- checks


#: Evaluators of similar accuracy should agree on at least this share of what either finds (IoU).
MIN_IOU = 0.50


def _list_alike_pairs(run: AuditedRun) -> Iterator[Row]:
    """The pairs of evaluators with similar balanced accuracy (on average), by class."""
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
            interval=FISHER_JACKKNIFE,
        ),
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
