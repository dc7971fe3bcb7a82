"""How many claims of which stratum to label, and which: the plan that `sample` records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.errors import UsageError
from factaudit.estimate.design import Draw

#: Score bins per system, where the budget allows at least `MIN_STRATUM` labels in each; fewer bins where it does not.
BINS = 3
MIN_STRATUM = 2
#: From so many labels, and so many a system, a draw has two phases.
TWO_PHASES = (100, 8)
#: Least variance that a stratum is taken to have: by the mean score, and by the fitted probability.
SCORE_FLOOR = 0.03
FITTED_FLOOR = 0.01


@dataclass(frozen=True)
class Strata:
    """Strata of N claims: code (N,), -1 where a claim is not to be drawn; size (H,); need (H,), the size times s_h."""

    code: np.ndarray
    size: np.ndarray
    need: np.ndarray


def strata_of(
    guess: np.ndarray, system: np.ndarray, free: np.ndarray, bins: int, floor: float, within: np.ndarray | None = None
) -> Strata:
    """Cut each system (and each value of ``within``) into ``bins`` of equally many claims by a guess at P(error).

    guess: (N,), NaN where there is none: those are a stratum of their own; system, within: int (N,) codes; free: bool
    (N,), the claims that may be drawn. Of equal guesses the earlier row is the lower one.
    """
    code = np.full(len(guess), -1, dtype=np.int64)
    size: list[int] = []
    need: list[float] = []
    group = system if within is None else system * (int(within.max(initial=0)) + 1) + within
    rows = np.flatnonzero(free)
    rows = rows[np.lexsort((guess[rows], group[rows]))]  # NaN comes last
    ends = np.flatnonzero(np.diff(group[rows], append=-1)) + 1
    start = 0
    for end in ends.tolist():
        members = rows[start:end]
        start = end
        known = members[~np.isnan(guess[members])]
        parts = [*np.array_split(known, min(bins, len(known)) or 1), members[len(known) :]]
        for part in filter(len, parts):
            mean = float(guess[part].mean())
            variance = 0.25 if np.isnan(mean) else max(mean * (1 - mean), floor)
            code[part] = len(size)
            size.append(len(part))
            need.append(len(part) * np.sqrt(variance))
    return Strata(code, np.array(size, dtype=np.int64), np.array(need))


def allocate(strata: Strata, budget: int, least: int) -> np.ndarray:
    """Labels per stratum (H,): in proportion to need, at least ``least``, never more than there are claims.

    Sums up to the budget, or to all claims where these are fewer. Raises `UsageError` where the budget is too small.
    """
    least_each = np.minimum(least, strata.size)
    if least_each.sum() > budget:
        raise UsageError(f"{budget} labels are too few for {len(strata.size)} strata: expected {least_each.sum()}")
    share = budget * strata.need / strata.need.sum()
    labels = np.minimum(np.maximum(np.floor(share).astype(np.int64), least_each), strata.size)
    while labels.sum() > budget:  # the least ones have taken what others had
        over = np.where(labels > least_each, labels / strata.need, -np.inf)
        labels[over.argmax()] -= 1
    while labels.sum() < min(budget, strata.size.sum()):
        gain = np.where(labels < strata.size, strata.need / (labels + 1), -np.inf)
        labels[gain.argmax()] += 1
    return labels


def pick(strata: Strata, labels: np.ndarray, phase: int, random: np.random.Generator) -> Draw:
    """Draw so many claims of each stratum without replacement."""
    drawn = [random.choice(np.flatnonzero(strata.code == code), n, replace=False) for code, n in enumerate(labels) if n]
    rows = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
    code = strata.code[rows]
    return Draw(rows, np.full(len(rows), phase), code, strata.size[code])


def first_budget(budget: int, n_systems: int) -> int:
    """The labels of the first phase; all of them where one phase is better."""
    least, per_system = TWO_PHASES
    return budget // 2 if budget >= max(least, per_system * n_systems) else budget


def _equally(budget: int, left: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A budget in equal parts, none above what is left; who gets one more is random."""
    shares = np.zeros(len(left), dtype=np.int64)
    order = random.permutation(len(left))
    while shares.sum() < min(budget, left.sum()):
        for at in order:
            if shares[at] < left[at] and shares.sum() < budget:
                shares[at] += 1
    return shares


def draw_first(
    guess: np.ndarray,
    system: np.ndarray,
    budget: int,
    random: np.random.Generator,
    within: np.ndarray | None = None,
    then: bool = False,
) -> Draw:
    """The first phase, or the only one (``then`` false): strata by the main evaluator's guess, NaN where it has none.

    system: int (N,); within: (N,) codes that strata do not cross, where the budget allows.
    """
    least = 1 if then else MIN_STRATUM
    options = [
        (bins, cut) for cut in ((within, None) if within is not None else (None,)) for bins in range(BINS, 0, -1)
    ]
    free = np.ones(len(guess), dtype=bool)
    for bins, cut in options:
        strata = strata_of(guess, system, free, bins, SCORE_FLOOR, cut)
        if np.minimum(strata.size, least).sum() <= budget:
            break
    else:  # as few labels as this: one a system, and more as it comes
        least = 1
    return pick(strata, allocate(strata, budget, least), 0, random)


def draw_more(fitted: np.ndarray, system: np.ndarray, before: Draw, budget: int, random: np.random.Generator) -> Draw:
    """A further phase: equally many labels per system, in thirds of the fitted P(error) of what was not yet drawn.

    A system that has fewer claims left gives its labels to the others.
    """
    free = np.ones(len(fitted), dtype=bool)
    free[before.row] = False
    strata = strata_of(fitted, system, free, BINS, FITTED_FLOOR)
    of_system = np.full(len(strata.size), -1)
    of_system[strata.code[free]] = system[free]
    names = np.unique(of_system)
    left = np.array([strata.size[of_system == name].sum() for name in names])
    shares = _equally(budget, left, random)
    labels = np.zeros(len(strata.size), dtype=np.int64)
    for name, n in zip(names, shares, strict=True):
        inside = of_system == name
        part = Strata(strata.code, strata.size[inside], strata.need[inside])
        labels[inside] = allocate(part, int(n), 1 if n >= inside.sum() else 0)
    phase = int(before.phase.max(initial=-1)) + 1
    return pick(strata, labels, phase, random)
