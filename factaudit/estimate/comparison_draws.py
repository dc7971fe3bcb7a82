"""Other ways to spend a budget of labels, to compare with: at random, and by the evaluator's uncertainty."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from factaudit.estimate.scored_corpus import ScoredCorpus
from factaudit.stats.active_inference import uncertainty_sampling_probabilities
from factaudit.stats.allocation import (
    AllocationStrata,
    allocate_first_phase,
    allocate_labels_to_strata,
    draw_allocated_labels,
)
from factaudit.stats.stratified_sampling import StratifiedDraw


def draw_labels_at_random(world: ScoredCorpus, budget: int, random: np.random.Generator) -> StratifiedDraw:
    """Each system's claims with equal chances, as many of a system as it has of all claims."""
    sizes = world.system_sizes
    systems = AllocationStrata(world.system, sizes, sizes.astype(np.float64))
    return draw_allocated_labels(systems, allocate_labels_to_strata(systems, budget, 1), 0, random)


def draw_labels_by_score(world: ScoredCorpus, budget: int, random: np.random.Generator) -> StratifiedDraw:
    """By thirds of the main evaluator's score in one phase, more where it is unsure."""
    return allocate_first_phase(1 - world.score[0], world.system, budget, random)


def draw_labels_by_uncertainty(world: ScoredCorpus, budget: int, random: np.random.Generator) -> StratifiedDraw:
    """Each claim by itself, with a probability by the main evaluator's uncertainty; equally many of each system are
    expected."""
    guess = np.where(np.isnan(world.score[0]), 0.5, 1 - world.score[0])
    probability = np.empty(len(guess))
    for at in range(len(world.systems)):
        mine = world.system == at
        probability[mine] = uncertainty_sampling_probabilities(guess[mine], budget / len(world.systems))
    rows = np.flatnonzero(random.random(len(guess)) < probability)
    return StratifiedDraw(rows, np.zeros(len(rows), dtype=np.int64), np.arange(len(rows)), 1 / probability[rows])


Draw = Callable[[ScoredCorpus, int, np.random.Generator], StratifiedDraw]
#: Per way how its labels are drawn and which method estimates from them.
COMPARED_WAYS: dict[str, tuple[Draw, str]] = {
    "random, labels": (draw_labels_at_random, "labels"),
    "stratified-ppi": (draw_labels_by_score, "stratified-ppi"),
    "active": (draw_labels_by_uncertainty, "active"),
}
