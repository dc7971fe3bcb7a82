"""How often do 95 % intervals hold the truth where groups of claims are compared, and over the length of documents?
The regimes are those of `regimes.py`. The first half of the systems is one group, the others are the other one.
"""

from __future__ import annotations

import numpy as np
from covering import LEVEL, Covered, holds
from regimes import Regime

from factaudit.stats.influence import MIN_CLUSTERS, interval, slope
from factaudit.stats.mover import mover_proportion_sum
from factaudit.stats.slice_comparison import estimate_slice_and_rest_proportions


def cover_slices(regime: Regime, drawn: np.ndarray) -> Covered:
    """BAcc of evaluator a on the claims of one system less its BAcc on all others, which are on the same documents
    unless each system has its own; and on every other document, where it is the same."""
    of_a = regime.truth[..., :2, :].sum(-1)  # (S, label, prediction)
    both = [of_a[0], of_a[1:].sum(0)]
    baccs = [(each[1, 1] / each[1].sum() + each[0, 0] / each[0].sum()) / 2 for each in both]
    document, system, label, a, _ = (each.ravel() for each in np.indices(drawn.shape[1:]))
    cluster = document * drawn.shape[2] + system if regime.own else document
    hit = np.where(a == 2, -1, a == label)
    weights = np.array([0.5, 0.5, -0.5, -0.5])
    found: dict[str, list[bool]] = {}
    for counts in drawn:
        at = np.repeat(np.arange(len(label)), counts.ravel())
        for name, inside, truth in (
            ("one system", system == 0, baccs[0] - baccs[1]),
            ("every other document", cluster % 2 == 0, 0.0),
        ):
            slices = np.where(inside, 0, -1)[at]
            shares = estimate_slice_and_rest_proportions(hit[at], 1 - label[at], 2, slices, 1, cluster[at])
            low, high = mover_proportion_sum(shares, weights, LEVEL)[1]
            if not np.isnan(low[0]):
                found.setdefault(f"BAcc of a slice: {name}", []).append(bool(low[0] <= truth <= high[0]))
    return {name: np.array(held) for name, held in found.items()}


def cover_document_slopes(regime: Regime, random: np.random.Generator, replicates: int) -> Covered:
    """The slope over a number that all claims of a document share, as its length; documents are hard or easy."""
    n_systems, docs = len(regime.errors), regime.docs * (len(regime.errors) if regime.own else 1)
    size = (replicates, docs)
    mean = regime.claims * (1 if regime.own else n_systems)
    n = random.integers(1, 2 * mean, size) if regime.uneven else np.full(size, mean)
    document = np.repeat(np.arange(replicates * docs), n.ravel())
    length = np.clip(random.normal(size=replicates * docs), -3, 3)[document]
    hard = np.sqrt(regime.icc) / 4 * random.uniform(-1, 1, replicates * docs)[document]
    tnr = np.clip(regime.a[1], 0.3, 0.7)
    is_error = random.random(len(document)) < max(regime.errors)
    found: Covered = {}
    for name, rate, inside in (("TPR", 0.8, ~is_error), ("TNR", tnr, is_error)):
        right = (random.random(len(document)) < rate - 0.04 * length + hard).astype(int)
        lines = []
        for group in range(replicates):
            rows = inside & (document // docs == group)
            line = slope(length[rows], right[rows].astype(float))
            lines.append(interval(line, document[rows], confidence=LEVEL, min_clusters=MIN_CLUSTERS))
        found[f"slope of {name} over documents"] = holds(tuple(np.array(lines).T), -0.04)
    return found


def coverage(regime: Regime, replicates: int, seed: int = 11) -> Covered:
    """Per figure which intervals of the replicates held the truth."""
    random = np.random.default_rng(seed)
    drawn = regime.draw(random, replicates)
    found = cover_slices(regime, drawn)
    return found | cover_document_slopes(regime, random, replicates)
