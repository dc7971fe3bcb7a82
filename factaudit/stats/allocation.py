"""Allocation of labels to strata (Neyman 1934), and the draw of claims in one phase or two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.errors import UsageError
from factaudit.stats.stratified_sampling import StratifiedDraw

#: Score bins per system where the budget allows `MIN_STRATUM_LABELS` labels in each; else fewer bins.
N_SCORE_BINS = 3
MIN_STRATUM_LABELS = 2
#: From so many labels, and so many a system, a draw has two phases.
TWO_PHASE_MINIMUM = (100, 8)
#: Least variance that a stratum is taken to have: by the mean score, and by the fitted probability.
MIN_SCORE_VARIANCE = 0.03
MIN_FITTED_VARIANCE = 0.01


@dataclass(frozen=True)
class AllocationStrata:
    """H strata of N claims.

    code: int (N,), -1 where a claim is not to be drawn; size: int (H,), claims; neyman_weight: float64 (H,), the size
    times the assumed standard deviation of the labels.
    """

    code: np.ndarray
    size: np.ndarray
    neyman_weight: np.ndarray


def stratify_for_allocation(
    guess: np.ndarray,
    system: np.ndarray,
    can_be_drawn: np.ndarray,
    n_bins: int,
    min_variance: float,
    stratum_codes: np.ndarray | None = None,
) -> AllocationStrata:
    """Cut each system (and each stratum code) into ``n_bins`` strata of equally many claims by a guess at P(error).

    guess: float64 (N,), NaN where there is none (those claims are a stratum of their own); system, stratum_codes: int
    (N,), codes from 0; can_be_drawn: bool (N,); min_variance: the least variance p(1 − p) that a stratum is taken to
    have. Of equal guesses the earlier row is the lower one.

    >>> guess, system = np.array([0.1, 0.9, 0.2, 0.8, np.nan]), np.zeros(5, int)
    >>> stratify_for_allocation(guess, system, np.ones(5, bool), n_bins=2, min_variance=0.03).code.tolist()
    [0, 1, 0, 1, 2]
    """
    code = np.full(len(guess), -1, dtype=np.int64)
    size: list[int] = []
    need: list[float] = []
    group = system if stratum_codes is None else system * (int(stratum_codes.max(initial=0)) + 1) + stratum_codes
    rows = np.flatnonzero(can_be_drawn)
    rows = rows[np.lexsort((guess[rows], group[rows]))]  # NaN comes last
    ends = np.flatnonzero(np.diff(group[rows], append=-1)) + 1
    start = 0
    for end in ends.tolist():
        members = rows[start:end]
        start = end
        known = members[~np.isnan(guess[members])]
        parts = [*np.array_split(known, min(n_bins, len(known)) or 1), members[len(known) :]]
        for part in filter(len, parts):
            mean = float(guess[part].mean())
            variance = 0.25 if np.isnan(mean) else max(mean * (1 - mean), min_variance)
            code[part] = len(size)
            size.append(len(part))
            need.append(len(part) * np.sqrt(variance))
    return AllocationStrata(code, np.array(size, dtype=np.int64), np.array(need))


def allocate_labels_to_strata(strata: AllocationStrata, budget: int, min_per_stratum: int) -> np.ndarray:
    """Labels per stratum, int (H,): in proportion to the Neyman weights, at least a minimum, at most all claims.

    They sum up to the budget, or to all claims where these are fewer. Raises `UsageError` where the budget is too small
    for the minimum.

    >>> strata = AllocationStrata(np.empty(0, int), np.array([100, 100, 3]), np.array([50.0, 10.0, 1.0]))
    >>> allocate_labels_to_strata(strata, 60, min_per_stratum=2).tolist()
    [49, 9, 2]
    """
    least_each = np.minimum(min_per_stratum, strata.size)
    if least_each.sum() > budget:
        raise UsageError(f"{budget} labels are too few for {len(strata.size)} strata: expected {least_each.sum()}")
    share = budget * strata.neyman_weight / strata.neyman_weight.sum()
    labels: np.ndarray = np.minimum(np.maximum(np.floor(share).astype(np.int64), least_each), strata.size)
    while labels.sum() > budget:  # the least ones have taken what others had
        over = np.where(labels > least_each, labels / strata.neyman_weight, -np.inf)
        labels[over.argmax()] -= 1
    while labels.sum() < min(budget, strata.size.sum()):
        gain = np.where(labels < strata.size, strata.neyman_weight / (labels + 1), -np.inf)
        labels[gain.argmax()] += 1
    return labels


def draw_allocated_labels(
    strata: AllocationStrata, labels_per_stratum: np.ndarray, phase: int, random: np.random.Generator
) -> StratifiedDraw:
    """Draw so many claims of each stratum, int (H,), without replacement.

    >>> strata = AllocationStrata(np.array([0, 0, 1, -1]), np.array([2, 1]), np.array([1.0, 0.5]))
    >>> sorted(draw_allocated_labels(strata, np.array([2, 1]), 0, np.random.default_rng(0)).rows.tolist())
    [0, 1, 2]
    """
    drawn = [
        random.choice(np.flatnonzero(strata.code == code), n, replace=False)
        for code, n in enumerate(labels_per_stratum)
        if n
    ]
    rows = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
    code = strata.code[rows]
    return StratifiedDraw(rows, np.full(len(rows), phase), code, strata.size[code])


def allocate_first_phase_budget(budget: int, n_systems: int) -> int:
    """The labels of the first phase: half of the budget, or all of it where one phase is better.

    >>> allocate_first_phase_budget(200, 6), allocate_first_phase_budget(60, 6)
    (100, 60)
    """
    least, per_system = TWO_PHASE_MINIMUM
    return budget // 2 if budget >= max(least, per_system * n_systems) else budget


def _split_label_budget_equally(budget: int, claims_left: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Split a budget into equal parts, none above the claims left; chance decides who gets one more."""
    shares = np.zeros(len(claims_left), dtype=np.int64)
    order = random.permutation(len(claims_left))
    while shares.sum() < min(budget, claims_left.sum()):
        for at in order:
            if shares[at] < claims_left[at] and shares.sum() < budget:
                shares[at] += 1
    return shares


def allocate_first_phase(
    guess: np.ndarray,
    system: np.ndarray,
    budget: int,
    random: np.random.Generator,
    stratum_codes: np.ndarray | None = None,
    has_second_phase: bool = False,
) -> StratifiedDraw:
    """Draw the first phase, or the only one: strata within systems by the main evaluator's guess at P(error).

    guess: float64 (N,), NaN where there is none; system: int (N,); stratum_codes: int (N,), codes that strata do not
    cross where the budget allows.

    >>> guess, system = np.linspace(0, 1, 60), np.repeat([0, 1], 30)
    >>> draw = allocate_first_phase(guess, system, 12, np.random.default_rng(0))
    >>> np.bincount(system[draw.rows]).tolist(), len(np.unique(draw.stratum))
    ([6, 6], 6)
    """
    least = 1 if has_second_phase else MIN_STRATUM_LABELS
    options = [
        (bins, cut)
        for cut in ((stratum_codes, None) if stratum_codes is not None else (None,))
        for bins in range(N_SCORE_BINS, 0, -1)
    ]
    free = np.ones(len(guess), dtype=bool)
    for bins, cut in options:
        strata = stratify_for_allocation(guess, system, free, bins, MIN_SCORE_VARIANCE, cut)
        if np.minimum(strata.size, least).sum() <= budget:
            break
    else:  # so few labels that a stratum cannot have two: one each, and the others by need
        least = 1
    return draw_allocated_labels(strata, allocate_labels_to_strata(strata, budget, least), 0, random)


def allocate_further_phase(
    error_probability: np.ndarray,
    system: np.ndarray,
    previous_draw: StratifiedDraw,
    budget: int,
    random: np.random.Generator,
) -> StratifiedDraw:
    """Draw a further phase: equally many labels per system, in thirds of the fitted P(error) of the claims left.

    error_probability: float64 (N,); system: int (N,). A system with too few claims left gives its labels to the others.

    >>> p, system = np.linspace(0, 1, 60), np.repeat([0, 1], 30)
    >>> first = allocate_first_phase(p, system, 12, np.random.default_rng(0))
    >>> second = allocate_further_phase(p, system, first, 10, np.random.default_rng(1))
    >>> np.bincount(system[second.rows]).tolist(), set(first.rows) & set(second.rows)
    ([5, 5], set())
    """
    free = np.ones(len(error_probability), dtype=bool)
    free[previous_draw.rows] = False
    strata = stratify_for_allocation(error_probability, system, free, N_SCORE_BINS, MIN_FITTED_VARIANCE)
    of_system = np.full(len(strata.size), -1)
    of_system[strata.code[free]] = system[free]
    names = np.unique(of_system)
    left = np.array([strata.size[of_system == name].sum() for name in names])
    shares = _split_label_budget_equally(budget, left, random)
    labels = np.zeros(len(strata.size), dtype=np.int64)
    for name, n in zip(names, shares, strict=True):
        inside = of_system == name
        part = AllocationStrata(strata.code, strata.size[inside], strata.neyman_weight[inside])
        labels[inside] = allocate_labels_to_strata(part, int(n), 1 if n >= inside.sum() else 0)
    phase = int(previous_draw.phase.max(initial=-1)) + 1
    return draw_allocated_labels(strata, labels, phase, random)
