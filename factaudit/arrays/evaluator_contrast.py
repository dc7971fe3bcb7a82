"""Two evaluators on the same claims: the difference of their BAccs and of their biases, by data set, paired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.judgements import (
    LABEL_FIELD,
    Judgements,
    prediction_field,
    stated_prediction_field,
)
from factaudit.stats.clustered_proportions import ClusterCounts, IntervalEnds, estimate_clustered_proportions
from factaudit.stats.mover import discordant_difference_interval
from factaudit.stats.undefined_values import name_ends, none_if_undefined


@dataclass(frozen=True)
class EvaluatorContrast:
    """Figure of a - figure of b for the keys ``bacc`` and ``bias``, arrays over the D data sets of the claims.

    counts: int64 (D, 2, 2, 2), the labelled claims that both scored, by label, a's and b's prediction; labelled: int64
    (D,), all labelled ones. differences: float64 (D,), each over what its evaluator scored; bounds: what they could be,
    whatever the missing predictions; clusters and limits (paired intervals): None and {} without intervals.
    """

    counts: np.ndarray
    labelled: np.ndarray
    differences: Mapping[str, np.ndarray]
    bounds: Mapping[str, IntervalEnds]
    clusters: ClusterCounts | None
    paired_intervals: Mapping[str, IntervalEnds]

    @classmethod
    def of(
        cls, judgements: Judgements, datasets: ClaimGroups, a: int, b: int, confidence: float | None
    ) -> EvaluatorContrast:
        """The evaluators at the places ``a`` and ``b``, by data set; confidence None: no intervals."""
        counts = judgements.count_cells(datasets, LABEL_FIELD, prediction_field(a), prediction_field(b))[:, :2, :2, :2]
        of_each = [judgements.count_cells(datasets, LABEL_FIELD, prediction_field(e)) for e in (a, b)]
        figures = _compute_evaluator_differences(*of_each)
        bounds = _bound_difference_of_two_evaluators(
            *(judgements.count_cells(datasets, LABEL_FIELD, stated_prediction_field(e)) for e in (a, b))
        )
        labelled = of_each[0][:, :2].sum((1, 2))
        if confidence is None:
            return cls(counts, labelled, figures, bounds, None, {})
        clusters = judgements.count_clusters(
            datasets, LABEL_FIELD, prediction_field(a), prediction_field(b), complete_only=True
        )
        return cls(
            counts,
            labelled,
            figures,
            bounds,
            clusters,
            _compute_paired_difference_intervals(clusters, figures, confidence),
        )

    def difference_row(self, dataset_index: int, key: str, name: str = "difference") -> dict[str, Any]:
        """The difference on data set ``dataset_index`` as ``name`` with its ends: null where both have not scored both
        classes.
        """
        known = self.counts[dataset_index].sum((1, 2)).all() if key == "bacc" else self.counts[dataset_index].sum()
        row: dict[str, Any] = {name: none_if_undefined(self.differences[key][dataset_index]) if known else None}
        row |= name_ends(name, (values[dataset_index] for values in self.bounds[key]), ("min", "max"))
        if self.paired_intervals:
            row |= name_ends(name, (end[dataset_index] if known else np.nan for end in self.paired_intervals[key]))
        return row


def _compute_evaluator_differences(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """From the nine counts of both evaluators: (D,)."""
    over_all = confusion_counts.is_group_unlabelled(a)
    rates = [confusion_counts.confusion_rates(counts, over_all)["bacc"] for counts in (a, b)]
    errors = [confusion_counts.confusion_error_rates(counts, over_all)["predicted_error_rate"] for counts in (a, b)]
    return {"bacc": rates[0] - rates[1], "bias": errors[0] - errors[1]}


def _bound_difference_of_two_evaluators(a: np.ndarray, b: np.ndarray) -> dict[str, IntervalEnds]:
    """What a - b could be: the predictions that a lacks are free of those that b lacks."""
    found = {}
    for key, bounds in (
        ("bacc", confusion_counts.confusion_rate_bounds),
        ("bias", confusion_counts.bound_error_rates_over_unscored_claims),
    ):
        (a_min, a_max), (b_min, b_max) = bounds(a)[key], bounds(b)[key]
        found[key] = a_min - b_max, a_max - b_min
    return found


def _compute_paired_difference_intervals(
    clusters: ClusterCounts, differences: Mapping[str, np.ndarray], confidence: float
) -> dict[str, IntervalEnds]:
    """Paired intervals from the discordant claims of both; moved where what the two scored differs."""
    counts = clusters.counts.reshape(-1, 2, 2, 2)  # label, a, b
    of_label = counts.sum((2, 3))
    n = of_label.sum(1)
    right = [counts[:, 1, 1, 0], counts[:, 1, 0, 1], counts[:, 0, 0, 1], counts[:, 0, 1, 0]]
    bacc = estimate_clustered_proportions(clusters, np.stack(right, 1), np.repeat(of_label[:, ::-1], 2, axis=1))
    errors = [counts[:, :, 0, 1].sum(1), counts[:, :, 1, 0].sum(1)]
    bias = estimate_clustered_proportions(clusters, np.stack(errors, 1), np.stack([n, n], 1))
    found = {}
    for key, each, weights in (("bacc", bacc, np.array([0.5, -0.5, 0.5, -0.5])), ("bias", bias, np.array([1.0, -1.0]))):
        difference, (low, high) = discordant_difference_interval(each, weights, confidence)
        moved = differences[key] - difference
        found[key] = np.maximum(low + moved, -1), np.minimum(high + moved, 1)
    return found
