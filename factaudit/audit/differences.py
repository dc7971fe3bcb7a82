"""Is one evaluator better than another on the same claims? Differences in BAcc and bias, with a
paired test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from factaudit.arrays.evaluator_contrast import compare_evaluators
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.judgements import pair_evaluators as pairs_of
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns, share_column
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.interval_methods import DISCORDANT
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    FEW_CLUSTERS,
    Row,
)
from factaudit.audit.core.tabulate import average_datasets, tabulate
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def compute_evaluator_differences(
    judgements: Judgements,
    *,
    pairs: Mapping[str, str] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Per dataset and pair of evaluators, ``difference`` = figure of a - figure of b, for BAcc and
    for bias.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Each figure is over what its evaluator scored, as in `rates` and `quantification`, so that the
    difference is that of the two printed figures; n labelled claims were scored by both
    (n_unscored: labelled, not scored by both). ``_min`` and ``_max`` say what the difference could
    be, whatever the missing predictions. With intervals: ``_low`` and ``_high`` are paired, from
    the claims that only one of the two judges rightly. Dataset ``__macro__`` is the mean over the
    datasets where the difference is defined.
    """
    datasets = judgements.make_groups("claim")
    names = judgements.dataset_names
    confidence = None if intervals is None else intervals.confidence
    rows: list[Row] = []
    for a, b in pairs_of(judgements.evaluators, pairs):
        contrast = compare_evaluators(judgements, datasets, a, b, confidence)
        pair: Row = {
            "evaluator_a": judgements.evaluators[a],
            "evaluator_b": judgements.evaluators[b],
        }
        is_constant = all(map(is_constant_evaluator, pair.values()))
        by_label = contrast.both.sum((2, 3))
        n = by_label.sum(1)
        counts: dict[str, Any] = {
            "n": n,
            "n_unscored": contrast.n_labelled - n,
            "n_datasets": np.ones_like(n),
        }
        for key, figure in contrast.figures.items():
            of_class = " of a class" * (key == "bacc")
            reasons = {
                "no labelled claim is scored by both": n == 0,
                "only one class among the labelled claims that both scored": (
                    (by_label == 0).any(1) & (n > 0) & (key == "bacc")
                ),
            }
            figure = figure.without_interval(np.full(len(n), is_constant), CONSTANT_EVALUATOR)
            keys = [{"dataset": name, **pair, "key": key} for name in names]
            rows += tabulate(keys, counts, {"difference": figure}, reasons, FEW_CLUSTERS + of_class)
    rows.sort(key=lambda row: row["dataset"])
    if not rows:
        return rows
    alike, sizes = ("evaluator_a", "evaluator_b", "key"), ("n", "n_unscored", "n_datasets")
    return rows + average_datasets(rows, alike, ["difference"], sizes)


# ---- declaration

_DIFFERENCE_DESCRIPTION = (
    "figure of a − figure of b, each over the claims that it scored (the interval is paired)"
)

AUDIT = Audit(
    name="differences",
    title="Differences between evaluators",
    question="Is one evaluator better than another on the same claims?",
    formula=(
        "Difference = figure of the first evaluator − figure of the second, each over the claims"
        " that it scored, with a paired interval."
    ),
    text=(
        "The comparison is paired. Since both evaluators judge the same claims, a difference can be"
        " significant although the intervals of the two overlap."
    ),
    remedy=(
        "If the interval contains 0, choose by cost or by the kind of mistake that matters to you,"
        " or label more claims. Half the width needs four times as many labels."
    ),
    columns={
        **pick_shared_columns("dataset"),
        "key": Column(
            "figure",
            "text",
            "the figure compared: `bacc`, or `bias` (predicted − labelled error rate)",
            key=True,
            values={"bacc": "BAcc", "bias": "bias"},
        ),
        **pick_shared_columns(
            "evaluator_a", "evaluator_b", "n", "n_unscored", "reason", "n_datasets"
        ),
        "difference": share_column(
            "difference",
            _DIFFERENCE_DESCRIPTION + " (the interval is paired)",
            DISCORDANT,
            "points",
        ),
    },
    options={
        "pairs": "each evaluator_a with the evaluator_b to compare it with; by default all pairs"
    },
    compute=compute_evaluator_differences,
)
