"""Two evaluators on the same claims: the difference of their BAccs and of their biases, by data set, paired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.groups import Groups
from factaudit.audit.core.mover import paired
from factaudit.audit.core.rows import Row, number
from factaudit.audit.core.shares import Clusters, Limits, shares
from factaudit.audit.core.tallies import LABEL, Tallies, says, states


@dataclass(frozen=True)
class Contrast:
    """Figure of a - figure of b for the keys ``bacc`` and ``bias``, arrays over the D data sets of the claims.

    counts: int64 (D, 2, 2, 2), the labelled claims that both scored, by label, a's and b's prediction; labelled: int64
    (D,), all labelled ones. figures: float64 (D,), each over what its evaluator scored; bounds: what they could be,
    whatever the missing predictions; clusters and limits (paired intervals): None and {} without intervals.
    """

    counts: np.ndarray
    labelled: np.ndarray
    figures: Mapping[str, np.ndarray]
    bounds: Mapping[str, Limits]
    clusters: Clusters | None
    limits: Mapping[str, Limits]

    @classmethod
    def of(cls, judged: Tallies, datasets: Groups, a: int, b: int, confidence: float | None) -> Contrast:
        """The evaluators at the places ``a`` and ``b``, in ``judged.group("claim")``; None for no intervals."""
        counts = judged.count(datasets, LABEL, says(a), says(b))[:, :2, :2, :2]
        of_each = [judged.count(datasets, LABEL, says(e)) for e in (a, b)]
        figures = _differences(*of_each)
        bounds = _bounds(*(judged.count(datasets, LABEL, states(e)) for e in (a, b)))
        labelled = of_each[0][:, :2].sum((1, 2))
        if confidence is None:
            return cls(counts, labelled, figures, bounds, None, {})
        clusters = judged.clusters_of(datasets, LABEL, says(a), says(b), known=True)
        return cls(counts, labelled, figures, bounds, clusters, _limits(clusters, figures, confidence))

    def row(self, at: int, key: str, name: str = "difference") -> Row:
        """The difference on data set ``at`` as ``name`` with its ends: null where both have not scored both classes."""
        known = self.counts[at].sum((1, 2)).all() if key == "bacc" else self.counts[at].sum()
        row: Row = {name: number(self.figures[key][at]) if known else None}
        row |= {
            f"{name}_{end}": number(values[at]) for end, values in zip(("min", "max"), self.bounds[key], strict=True)
        }
        if self.limits:
            low, high = (number(end[at]) if known else None for end in self.limits[key])
            row |= {f"{name}_low": low, f"{name}_high": high}
        return row


def _differences(a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """From the nine counts of both evaluators: (D,)."""
    over_all = nine.unlabelled(a)
    rates = [nine.rates(counts, over_all)["bacc"] for counts in (a, b)]
    errors = [nine.error_rates(counts, over_all)["predicted_error_rate"] for counts in (a, b)]
    return {"bacc": rates[0] - rates[1], "bias": errors[0] - errors[1]}


def _bounds(a: np.ndarray, b: np.ndarray) -> dict[str, Limits]:
    """What a - b could be: the predictions that a lacks are free of those that b lacks."""
    found = {}
    for key, bounds in (("bacc", nine.rate_bounds), ("bias", nine.error_rate_bounds)):
        (a_min, a_max), (b_min, b_max) = bounds(a)[key], bounds(b)[key]
        found[key] = a_min - b_max, a_max - b_min
    return found


def _limits(clusters: Clusters, figures: Mapping[str, np.ndarray], confidence: float) -> dict[str, Limits]:
    """Paired intervals from the discordant claims of both; moved where what the two scored differs."""
    counts = clusters.counts.reshape(-1, 2, 2, 2)  # label, a, b
    of_label = counts.sum((2, 3))
    n = of_label.sum(1)
    right = [counts[:, 1, 1, 0], counts[:, 1, 0, 1], counts[:, 0, 0, 1], counts[:, 0, 1, 0]]
    bacc = shares(clusters, np.stack(right, 1), np.repeat(of_label[:, ::-1], 2, axis=1))
    errors = [counts[:, :, 0, 1].sum(1), counts[:, :, 1, 0].sum(1)]
    bias = shares(clusters, np.stack(errors, 1), np.stack([n, n], 1))
    found = {}
    for key, each, weights in (("bacc", bacc, np.array([0.5, -0.5, 0.5, -0.5])), ("bias", bias, np.array([1.0, -1.0]))):
        difference, (low, high) = paired(each, weights, confidence)
        moved = figures[key] - difference
        found[key] = np.maximum(low + moved, -1), np.minimum(high + moved, 1)
    return found
