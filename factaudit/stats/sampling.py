"""Stratified sampling in phases: the draw, its weights, and rates estimated by it (Neyman 1934;
Cochran 1977).

A draw has *phases*. Each phase draws within strata from the claims that were not drawn before, and
may look at the labels so far. So each phase gives an unbiased estimate by itself: the claims drawn
before are known, and the mean of the others is the weighted mean over the strata. The errors of the
phases are uncorrelated; the estimates are averaged in proportion to their labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from factaudit.errors import UsageError
from factaudit.stats import divide_or_undefined
from factaudit.stats.clustered_proportions import wilson_interval

#: Score bins per system where the budget allows `MIN_STRATUM_LABELS` labels in each; else fewer
#: bins.
N_SCORE_BINS = 3
MIN_STRATUM_LABELS = 2
#: From so many labels, and so many a system, a draw has two phases.
TWO_PHASE_MINIMUM = (100, 8)
#: Least variance that a stratum is taken to have: by the mean score, and by the fitted probability.
MIN_SCORE_VARIANCE = 0.03
MIN_FITTED_VARIANCE = 0.01
#: Labels' worth of the model's variance that a stratum's own is shrunk by, and of all labels' share
#: in a stratum's.
VARIANCE_PRIOR_LABELS = 2.0
SHARE_PRIOR_LABELS = 2.0


@dataclass(frozen=True)
class StratifiedDraw:
    """n drawn claims of N.

    rows: int (n,), positions among the N; phase: int (n,), from 0; stratum: int (n,), codes unique
    over phases and systems (a stratum lies in one system); frame_size: (n,), how many claims the
    stratum held when the phase began.

    >>> strata, sizes = np.array([0, 0, 1]), np.array([10, 10, 4])
    >>> draw = StratifiedDraw(np.array([3, 5, 8]), np.zeros(3, int), strata, sizes)
    >>> draw.inclusion_probability.tolist()
    [0.2, 0.2, 0.25]
    """

    rows: np.ndarray
    phase: np.ndarray
    stratum: np.ndarray
    frame_size: np.ndarray

    @property
    def inclusion_probability(self) -> np.ndarray:
        """float64 (n,): the share of each claim's stratum that its phase drew."""
        _, code, times = np.unique(self.stratum, return_inverse=True, return_counts=True)
        probability: np.ndarray = times[code] / self.frame_size
        return probability

    def select(self, mask: np.ndarray) -> StratifiedDraw:
        """The drawn claims where ``mask``, bool (n,), is true."""
        return StratifiedDraw(
            self.rows[mask], self.phase[mask], self.stratum[mask], self.frame_size[mask]
        )

    def append(self, later: StratifiedDraw) -> StratifiedDraw:
        """This draw and a later one together; the later one's strata get new codes."""
        stratum = later.stratum + self.stratum.max(initial=-1) + 1
        return StratifiedDraw(
            np.append(self.rows, later.rows),
            np.append(self.phase, later.phase),
            np.append(self.stratum, stratum),
            np.append(self.frame_size, later.frame_size),
        )


def simple_random_draw(is_labelled: np.ndarray, system: np.ndarray) -> StratifiedDraw:
    """Labels of unknown origin as a simple random draw within each system: one phase, one stratum
    per system.

    is_labelled: bool (N,); system: int (N,), codes from 0.
    """
    rows = np.flatnonzero(is_labelled)
    return StratifiedDraw(
        rows, np.zeros(len(rows), dtype=np.int64), system[rows], np.bincount(system)[system[rows]]
    )


# ---- drawing


@dataclass(frozen=True)
class Strata:
    """H strata of N claims.

    code: int (N,), -1 where a claim is not to be drawn; size: int (H,), claims; need: float64 (H,),
    Neyman's weights: the size times the assumed standard deviation of the labels.
    """

    code: np.ndarray
    size: np.ndarray
    need: np.ndarray

    def allocate(self, budget: int, least: int) -> np.ndarray:
        """Labels per stratum, int (H,): in proportion to the need, at least ``least``, at most all
        claims.

        They sum up to the budget, or to all claims where these are fewer. Raises `UsageError` where
        the budget is too small for the least.

        >>> strata = Strata(np.empty(0, int), np.array([100, 100, 3]), np.array([50.0, 10.0, 1.0]))
        >>> strata.allocate(60, least=2).tolist()
        [49, 9, 2]
        """
        least_each = np.minimum(least, self.size)
        if least_each.sum() > budget:
            raise UsageError(
                f"{budget} labels are too few for {len(self.size)} strata: expected"
                f" {least_each.sum()}"
            )
        share = np.floor(budget * self.need / self.need.sum()).astype(np.int64)
        labels: np.ndarray = np.minimum(np.maximum(share, least_each), self.size)
        while labels.sum() > budget:  # the least ones have taken what others had
            labels[np.where(labels > least_each, labels / self.need, -np.inf).argmax()] -= 1
        while labels.sum() < min(budget, self.size.sum()):
            labels[np.where(labels < self.size, self.need / (labels + 1), -np.inf).argmax()] += 1
        return labels

    def draw(self, labels: np.ndarray, phase: int, random: np.random.Generator) -> StratifiedDraw:
        """Draw so many claims of each stratum, int (H,), without replacement."""
        drawn = [
            random.choice(np.flatnonzero(self.code == code), n, replace=False)
            for code, n in enumerate(labels)
            if n
        ]
        rows = np.concatenate([np.empty(0, dtype=np.int64), *drawn])
        code = self.code[rows]
        return StratifiedDraw(rows, np.full(len(rows), phase), code, self.size[code])


def make_strata(
    guess: np.ndarray, group: np.ndarray, is_free: np.ndarray, n_bins: int, min_variance: float
) -> Strata:
    """Cut each group into ``n_bins`` strata of equally many claims by a guess at P(error).

    guess: float64 (N,), NaN where there is none (those claims are a stratum of their own); group:
    int (N,), codes from 0; is_free: bool (N,), claims that may be drawn; min_variance: the least
    variance p(1 − p) that a stratum is taken to have. Of equal guesses the earlier row is the lower
    one.

    >>> guess = np.array([0.1, 0.9, 0.2, 0.8, np.nan])
    >>> strata = make_strata(guess, np.zeros(5, int), np.ones(5, bool), n_bins=2, min_variance=0.03)
    >>> strata.code.tolist()
    [0, 1, 0, 1, 2]
    """
    code = np.full(len(guess), -1, dtype=np.int64)
    size: list[int] = []
    need: list[float] = []
    rows = np.flatnonzero(is_free)
    rows = rows[np.lexsort((guess[rows], group[rows]))]  # NaN comes last
    for members in np.split(rows, np.flatnonzero(np.diff(group[rows])) + 1):
        known = members[~np.isnan(guess[members])]
        for part in (*np.array_split(known, min(n_bins, len(known)) or 1), members[len(known) :]):
            if not len(part):
                continue
            mean = float(guess[part].mean())
            variance = 0.25 if np.isnan(mean) else max(mean * (1 - mean), min_variance)
            code[part] = len(size)
            size.append(len(part))
            need.append(len(part) * variance**0.5)
    return Strata(code, np.array(size, dtype=np.int64), np.array(need))


def first_phase_budget(budget: int, n_systems: int) -> int:
    """The labels of the first phase: half of the budget, or all of it where one phase is better.

    >>> first_phase_budget(200, 6), first_phase_budget(60, 6)
    (100, 60)
    """
    least, per_system = TWO_PHASE_MINIMUM
    return budget // 2 if budget >= max(least, per_system * n_systems) else budget


def draw_first_phase(
    guess: np.ndarray,
    system: np.ndarray,
    budget: int,
    random: np.random.Generator,
    stratum_codes: np.ndarray | None = None,
    has_second_phase: bool = False,
) -> StratifiedDraw:
    """Draw the first phase, or the only one: strata within systems by the main evaluator's guess at
    P(error).

    guess: float64 (N,), NaN where there is none; system: int (N,); stratum_codes: int (N,), codes
    that strata do not cross where the budget allows; has_second_phase: one label in a stratum is
    then enough.

    >>> guess, system = np.linspace(0, 1, 60), np.repeat([0, 1], 30)
    >>> draw = draw_first_phase(guess, system, 12, np.random.default_rng(0))
    >>> np.bincount(system[draw.rows]).tolist(), len(np.unique(draw.stratum))
    ([6, 6], 6)
    """
    least = 1 if has_second_phase else MIN_STRATUM_LABELS
    groups = [system]
    if stratum_codes is not None:
        groups.insert(0, system * (int(stratum_codes.max(initial=0)) + 1) + stratum_codes)
    every = np.ones(len(guess), dtype=bool)
    for group, bins in ((group, bins) for group in groups for bins in range(N_SCORE_BINS, 0, -1)):
        strata = make_strata(guess, group, every, bins, MIN_SCORE_VARIANCE)
        if np.minimum(strata.size, least).sum() <= budget:
            break
    else:  # so few labels that a stratum cannot have two: one each, and the others by need
        least = 1
    return strata.draw(strata.allocate(budget, least), 0, random)


def draw_next_phase(
    error_probability: np.ndarray,
    system: np.ndarray,
    previous: StratifiedDraw,
    budget: int,
    random: np.random.Generator,
) -> StratifiedDraw:
    """Draw a further phase: equally many labels per system, in thirds of the fitted P(error) of the
    claims left.

    error_probability: float64 (N,); system: int (N,). A system with too few claims left gives its
    labels to the others.

    >>> p, system = np.linspace(0, 1, 60), np.repeat([0, 1], 30)
    >>> first = draw_first_phase(p, system, 12, np.random.default_rng(0))
    >>> second = draw_next_phase(p, system, first, 10, np.random.default_rng(1))
    >>> np.bincount(system[second.rows]).tolist(), set(first.rows) & set(second.rows)
    ([5, 5], set())
    """
    is_free = np.ones(len(error_probability), dtype=bool)
    is_free[previous.rows] = False
    strata = make_strata(error_probability, system, is_free, N_SCORE_BINS, MIN_FITTED_VARIANCE)
    of_system = np.full(len(strata.size), -1)
    of_system[strata.code[is_free]] = system[is_free]
    names = np.unique(of_system)
    left = np.array([strata.size[of_system == name].sum() for name in names])
    # Equal parts, none above the claims left; chance decides who gets one more.
    shares, order = np.zeros_like(left), random.permutation(len(left))
    while shares.sum() < min(budget, left.sum()):
        for at in order:
            shares[at] += shares[at] < left[at] and shares.sum() < budget
    labels = np.zeros(len(strata.size), dtype=np.int64)
    for name, n in zip(names, shares.tolist(), strict=True):
        inside = of_system == name
        part = Strata(strata.code, strata.size[inside], strata.need[inside])
        labels[inside] = part.allocate(n, 1 if n >= inside.sum() else 0)
    return strata.draw(labels, int(previous.phase.max(initial=-1)) + 1, random)


# ---- estimating


def _weigh_phases(
    draw: StratifiedDraw, is_labelled: np.ndarray, n_claims: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """How many claims each label stands for in the mean over the phases, and as a label of its own
    phase: (n,) each.

    A phase counts by its labels. It knows the mean of what was drawn before it, and estimates the
    rest of ``n_claims``; a stratum without a label counts as the mean of its others (n_claims None:
    it counts for nothing). A phase without labels, or after others without any, has no say.
    """
    weights, own = np.zeros((2, len(draw.rows)))
    n_used = 0
    for phase in np.unique(draw.phase):
        is_before = draw.phase < phase
        here, before, n_before = (
            (draw.phase == phase) & is_labelled,
            is_before & is_labelled,
            is_before.sum(),
        )
        if not here.any() or (n_before and not before.any()):
            continue
        _, code, counts = np.unique(draw.stratum[here], return_inverse=True, return_counts=True)
        claims = draw.frame_size[here] / counts[code]
        n_here, n_used = here.sum(), n_used + here.sum()
        rest = claims.sum() if n_claims is None else n_claims - n_before
        own[here] = n_here * claims * rest / claims.sum()
        weights[before] += n_here * n_before / max(before.sum(), 1)
    return (weights + own) / max(n_used, 1), own / max(n_used, 1)


def label_weights(draw: StratifiedDraw, is_labelled: np.ndarray) -> np.ndarray:
    """How many of one system's claims each label stands for: float64 (n,), 0 where a drawn claim
    got no label.

    draw: of that system alone; is_labelled: bool (n,). Where each stratum has a label, these are
    the weights of `stratified_mean`, and sum up to the number of claims.

    >>> strata, sizes = np.array([0, 0, 1]), np.array([30, 30, 10])
    >>> draw = StratifiedDraw(np.arange(3), np.zeros(3, int), strata, sizes)
    >>> label_weights(draw, np.ones(3, bool)).tolist()
    [15.0, 15.0, 10.0]
    """
    return _weigh_phases(draw, is_labelled, None)[0]


def stratified_mean(
    draw: StratifiedDraw,
    values: np.ndarray,
    model_variance: np.ndarray,
    n_claims: int,
    prior_labels: float = VARIANCE_PRIOR_LABELS,
) -> tuple[float, float]:
    """The mean over one system's ``n_claims`` claims from the values of its drawn claims, and its
    sampling variance.

    draw: of that system alone; values: float64 (n,), NaN where a drawn claim got no label (it
    counts as the others of its stratum); model_variance: float64 (n,), the variance within each
    claim's stratum that is assumed beforehand, worth ``prior_labels`` labels (infinity: the assumed
    variance is used as it is). NaN where nothing is known.

    Three of 30 claims and two of 10, with one error among the three and two among the two:

    >>> strata, sizes = np.array([0, 0, 0, 1, 1]), np.repeat([30, 10], [3, 2])
    >>> draw = StratifiedDraw(np.arange(5), np.zeros(5, int), strata, sizes)
    >>> stratified_mean(draw, np.array([0, 0, 1.0, 1, 1]), np.full(5, 0.2), 40)[0]
    0.5
    """
    known = ~np.isnan(values)
    weights, own = _weigh_phases(draw, known, n_claims)
    if not weights.any():
        return np.nan, np.nan
    _, code = np.unique(draw.stratum, return_inverse=True)
    labels = np.bincount(code, known)[code]
    known_values = np.where(known, values, 0.0)
    means = divide_or_undefined(np.bincount(code, known_values)[code], labels)
    spread = divide_or_undefined(np.bincount(code, model_variance * known)[code], labels)
    if np.isfinite(prior_labels):
        squares = np.bincount(code, np.where(known, (known_values - means) ** 2, 0.0))[code]
        spread = (squares + prior_labels * spread) / (prior_labels + labels - 1)
    variances = own**2 * (1 - labels / draw.frame_size) * spread
    return float(weights @ known_values) / n_claims, float(variances[known].sum()) / n_claims**2


def cluster_design_effect(residual: np.ndarray, cluster: np.ndarray) -> float:
    """How many times as variable a sum of residuals is as if those of a cluster were independent;
    at least 1.

    residual: float64 (n,), with mean 0; cluster: (n,), equal where two residuals are of one
    cluster. Kish 1965.

    >>> cluster_design_effect(np.array([0.5, 0.5, -0.5, -0.5]), np.array([0, 0, 1, 1]))
    4.0
    """
    names, code = np.unique(cluster, return_inverse=True)
    if len(names) in (0, 1, len(residual)) or not residual.any():
        return 1.0
    together = float((np.bincount(code, residual) ** 2).sum()) / float((residual**2).sum())
    return max(1.0, together * len(names) / (len(names) - 1))


def difference_estimate(
    draw: StratifiedDraw,
    error: np.ndarray,
    n_claims: int,
    cluster: np.ndarray,
    confidence: float,
    *,
    guess: np.ndarray,
    mean_guess: float,
) -> tuple[float, float, float]:
    """Rate, low and high of one system: the mean prediction plus the mean residual of the labels
    (Särndal et al. 1992).

    With predictions of a regression this is prediction-powered inference (Angelopoulos et al.
    2023), with the variance of the draw. draw: of that system alone; error: float64 (n,), 1, 0 or
    NaN where a drawn claim got no label; guess: float64 (n,), P(error) of the drawn claims,
    predicted without their labels; mean_guess: over all ``n_claims`` claims of the system; cluster:
    (n,), equal where labels may be alike.

    Predictions of 0.2 for all claims, and labels that hold 30 % errors:

    >>> strata, sizes = np.zeros(50, int), np.full(50, 1000)
    >>> draw = StratifiedDraw(np.arange(50), np.zeros(50, int), strata, sizes)
    >>> error = np.repeat([1.0, 0.0], [15, 35])
    >>> rate, low, high = difference_estimate(
    ...     draw, error, 1000, np.arange(50), 0.95, guess=np.full(50, 0.2), mean_guess=0.2
    ... )
    >>> f"{rate:.2f} ({low:.2f} to {high:.2f})"
    '0.30 (0.18 to 0.42)'
    """
    residual = error - guess
    known = ~np.isnan(residual)
    mean, variance = stratified_mean(draw, residual, guess * (1 - guess), n_claims)
    spread = cluster_design_effect((residual - mean)[known], cluster[known])
    # Where all is labelled the rate is a count: the predictions play no part.
    middle = float(error.mean()) if known.sum() == n_claims else mean_guess + mean
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(variance * spread)
    rate, low, high = np.clip(middle + half * np.array([0, -1, 1]), 0, 1)
    return float(rate), float(low), float(high)


def stratified_wilson_interval(
    draw: StratifiedDraw,
    error: np.ndarray,
    n_claims: int,
    cluster: np.ndarray,
    confidence: float,
) -> tuple[float, float, float]:
    """Rate, low and high of one system from its labels alone: Wilson's interval on the effective
    number of labels.

    Arguments as of `difference_estimate`. The effective number is that of a simple random draw with
    replacement of the same variance: strata and a finite corpus raise it, clusters lower it (Korn &
    Graubard 1998). NaN without a label.

    >>> draw = StratifiedDraw(np.arange(20), np.zeros(20, int), np.zeros(20, int), np.full(20, 400))
    >>> error = np.repeat([1.0, 0.0], [5, 15])
    >>> rate, low, high = stratified_wilson_interval(draw, error, 400, np.arange(20), 0.95)
    >>> f"{rate:.2f} ({low:.2f} to {high:.2f})"
    '0.25 (0.11 to 0.46)'
    """
    known = ~np.isnan(error)
    n = int(known.sum())
    if n == 0:
        return np.nan, np.nan, np.nan
    share = min(max(stratified_mean(draw, error, np.zeros(len(error)), n_claims)[0], 0.0), 1.0)
    # A stratum of a few equal labels would have no variance. So the effective number is computed
    # from shares of strata that are drawn towards the share of all labels, never 0 or 1.
    overall = (error[known].sum() + 0.5) / (n + 1)
    _, code = np.unique(draw.stratum, return_inverse=True)
    errors, labels = (
        np.bincount(code[known], error[known], code.max() + 1),
        np.bincount(code[known], minlength=code.max() + 1),
    )
    p = ((errors + SHARE_PRIOR_LABELS * overall) / (labels + SHARE_PRIOR_LABELS))[code]
    smooth, variance = stratified_mean(
        draw, np.where(known, p, np.nan), p * (1 - p), n_claims, prior_labels=np.inf
    )
    effect = cluster_design_effect((error - error[known].mean())[known], cluster[known])
    if n == n_claims or variance == 0:
        return share, share, share
    effective = smooth * (1 - smooth) / (variance * effect)
    low, high = wilson_interval(np.array(share), np.array(effective), np.array(np.inf), confidence)
    return share, float(low), float(high)
