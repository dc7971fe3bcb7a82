"""The claims that may pass without review: the largest set whose share of errors is kept, with a
stated confidence.

Claims are ordered by risk, and thresholds are tested from strict to loose: at each the hypothesis
"more errors pass than promised" is tested at level 1 − confidence, and the last one rejected before
the first that is not is the rule. The order is fixed beforehand, so the whole sequence errs no more
often than one test (fixed-sequence testing; Angelopoulos et al. 2021, Learn then Test; Jung et al.
2024, Trust or Escalate). It begins where the test would reject even with one error among the
labels. Of the first thresholds only those are tested at which one more error could be borne than
before (and those behind the last of these): between two of them the test gets no abler, and an
error would end the sequence for nothing.

A labelled error does not pass. Of N claims up to a threshold let E be errors, e of them labelled:
that at most a share a of the N − e that pass are errors means E ≤ aN + (1 − a)e. Tested is E > aN +
(1 − a)k, where k is the least e with which the sequence can end there: the next threshold has more
errors than it can bear, and only the labels between the two may be errors too. No label's value is
looked at for k. So, as above, the sequence ends where such a hypothesis is true no more often than
one test errs, and where it is false the promise holds, as k ≤ e. Only at the last threshold may e
be below k, the most errors that the test bears there. If no hypothesis is true, a promise can only
be broken there, by so few labelled errors that E > aN + (1 − a)e. The test with this e in place of
k rejects then, as it does with k, so that this too is no more probable than that one test errs.
Labels of unequal weights, and labels of documents, are tested with k = 0, which is strict.

Each test is exact for labels drawn at random: hypergeometric for the claims at hand, binomial for
what they were drawn from. (Which thresholds are tested, and k, depend on where the labels lie; this
is not in the tests, but in what was simulated.) Labels that stand for unequally many claims count
as so many equal ones as would tell the share of errors as precisely, and so do labels of one
document, where they are alike (Korn & Graubard 1998).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from factaudit.stats.regression import risk_logit

#: Thresholds that are tried, at equal steps of the share that passes.
N_THRESHOLDS = 200
#: The sequence begins where so many errors among the labels could be borne.
ERRORS_AT_START = 1
#: Until so many errors can be borne, a threshold is tested where one more can than at those before.
MAX_ERRORS_IN_STEPS = 3
#: Errors' worth of the mean weight of all labels in that of the errors.
PRIOR_ERRORS = 2.0
#: Further labels are said to be enough where the test then rejects with this probability, about.
PLANNED_POWER_Z = 0.84
MAX_LABEL_FACTOR = 64
_MAX_KNOWN_ERROR_STEPS = 1000
#: Weights of evaluators are fitted without the labels of one of so many parts of the clusters at a
#: time.
N_FOLDS = 10


def risk_scale(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By what the scores of E evaluators become comparable: mean and standard deviation of the
    logit of 1 − score.

    score: float64 (E, N), support, NaN where missing. A spread is infinite where nothing varies:
    that tells no risk.
    """
    logit = np.ma.masked_invalid(risk_logit(score))
    mean, spread = logit.mean(1).filled(0.0), logit.std(1).filled(0.0)
    return mean, np.where(spread > 1e-9, spread, np.inf)


def combine_risks(
    score: np.ndarray,
    labelled_rows: np.ndarray,
    error: np.ndarray,
    cluster: np.ndarray,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """One risk of N claims from the scores of E evaluators, and the weights of the evaluators:
    float64 (N,), (E,).

    Of one evaluator the risk is 1 − score. Of several it is the weighted mean of their logits of 1
    − score, standardised (`risk_scale`). An evaluator weighs as much as its risk varies together
    with the labelled errors, and never less than 0: a claim that one evaluator supports more is
    never riskier for it. Weights sum up to 1, so that risks by other labels are on the same scale;
    those of a claim rest on labels of other clusters than its own.

    score: as in `risk_scale` (the risk is NaN where one is); labelled_rows: int (n,); error: (n,);
    cluster: int (N,).

    >>> score = np.vstack([np.linspace(0.05, 0.95, 60), np.tile([0.2, 0.8], 30)])
    >>> rows, random = np.arange(0, 60, 3), np.random.default_rng(0)
    >>> risk, weights = combine_risks(score, rows, (rows < 30).astype(float), np.arange(60), random)
    >>> bool(risk[0] > risk[-1]), bool(weights[0] > 0.8)
    (True, True)
    """
    if len(score) == 1:
        return 1 - score[0], np.ones(1)
    mean, spread = risk_scale(score)
    standardised = (risk_logit(score) - mean[:, None]) / spread[:, None]
    labelled = np.nan_to_num(standardised[:, labelled_rows])
    names, code = np.unique(cluster, return_inverse=True)
    fold = (random.permutation(len(names)) % N_FOLDS)[code]
    risk, weights = np.full(score.shape[1], np.nan), []
    for number in np.unique(fold):
        inside = fold == number
        others = ~inside[labelled_rows]
        together = np.maximum(labelled[:, others] @ (error[others] - error[others].mean()), 0)
        weight = (
            together / together.sum() if together.any() else np.full(len(score), 1 / len(score))
        )
        risk[inside] = weight @ standardised[:, inside]
        weights.append(weight)
    return risk, np.mean(weights, axis=0)


@dataclass(frozen=True)
class RiskCurve:
    """T thresholds from strict to loose, and what the labels say of the claims that pass each.

    threshold: float64 (T,), claims of at most this risk pass, but for labelled errors; n_claims,
    n_known: int (T,), the claims of at most this risk and the labelled errors among them; n_labels,
    n_errors: float64 (T,), the effective numbers of labels and of errors among them; last: the last
    threshold that was rejected, −1 where there is none.
    """

    threshold: np.ndarray
    n_claims: np.ndarray
    n_known: np.ndarray
    n_labels: np.ndarray
    n_errors: np.ndarray
    last: int


def control_passing_errors(
    risk: np.ndarray,
    labelled_rows: np.ndarray,
    error: np.ndarray,
    confidence: float,
    max_error: float,
    claims_per_label: np.ndarray | None = None,
    cluster: np.ndarray | None = None,
    is_population: bool = False,
) -> RiskCurve:
    """The loosest threshold on risk at which few errors pass. Labelled errors do not pass, at any.

    risk: float64 (N,), NaN for claims that never pass; labelled_rows: int (n,), drawn with known
    probabilities; error: (n,), 1 or 0; max_error: promised share of errors among what passes;
    claims_per_label: float64 (n,), by default 1; cluster: int (n,), where labels of a cluster count
    for less; is_population: the promise is about what the claims were drawn from, not about these
    N.

    A hundred labels of 1,000 claims, errors only among the riskier half:

    >>> risk = np.linspace(0, 1, 1000)
    >>> rows = np.arange(0, 1000, 10)
    >>> error = (risk[rows] > 0.5).astype(float)
    >>> curve = control_passing_errors(risk, rows, error, 0.9, max_error=0.1)
    >>> int(curve.n_claims[curve.last])
    490
    """
    weight = np.ones(len(labelled_rows)) if claims_per_label is None else claims_per_label
    known = np.sort(risk[~np.isnan(risk)])
    steps = np.unique(np.ceil(np.linspace(0, len(known), N_THRESHOLDS + 1)[1:]).astype(np.int64))
    threshold = np.unique(known[steps[steps > 0] - 1])
    n_claims = np.searchsorted(known, threshold, side="right")
    effect = np.ones(len(threshold))
    place = np.searchsorted(threshold, risk[labelled_rows])
    place[np.isnan(risk[labelled_rows])] = len(threshold)  # those never pass
    n_known = _sum_passing(place, len(threshold), error == 1).astype(np.int64)
    if cluster is not None:
        effect = _passing_label_design_effects(place, len(threshold), cluster, error)
    n_labels, n_errors = (
        found / effect
        for found in _count_effective_passing_labels(place, len(threshold), weight, error)
    )
    of = None if is_population else n_claims
    heaviest = weight.max(initial=1.0) / weight.mean() if len(weight) else 1.0
    is_tested = _select_tested_risk_thresholds(n_labels, max_error, 1 - confidence, heaviest, of)
    aside = np.zeros(len(threshold))
    if of is not None and cluster is None and heaviest < 1 + 1e-9:
        aside[is_tested] = _count_known_errors_at_end(
            n_labels[is_tested], max_error, of[is_tested], 1 - confidence
        )
    p = error_share_p_values(n_labels, n_errors, max_error, of, aside)
    tested = np.flatnonzero(is_tested)
    n_rejected = int(np.append(p[tested] <= 1 - confidence, False).argmin())
    last = int(tested[n_rejected - 1]) if n_rejected else -1
    return RiskCurve(threshold, n_claims, n_known, n_labels, n_errors, last)


def _select_tested_risk_thresholds(
    n_labels: np.ndarray,
    max_error: float,
    level: float,
    heaviest: float,
    n_claims: np.ndarray | None,
) -> np.ndarray:
    """Which thresholds are tested, by how many errors each could bear: bool (T,). No label's value
    is looked at.

    heaviest: the greatest weight of a label over the mean: k such errors count for more than k of
    equal weights (`_count_effective_passing_labels`).
    """
    n_bearable = np.zeros(len(n_labels))
    for n in range(MAX_ERRORS_IN_STEPS + 1):
        effective = n * heaviest * (PRIOR_ERRORS + n) / (PRIOR_ERRORS + n * heaviest)
        n_bearable += (
            error_share_p_values(n_labels, np.full(len(n_labels), effective), max_error, n_claims)
            <= level
        )
    is_step = n_bearable > np.maximum.accumulate(np.append(0, n_bearable[:-1]))
    is_behind_last_step = np.cumsum(is_step[::-1])[::-1] == 0
    can_bear = n_bearable > ERRORS_AT_START
    selected: np.ndarray = can_bear & (
        is_step | is_behind_last_step | (n_bearable > MAX_ERRORS_IN_STEPS)
    )
    return selected


def _count_known_errors_at_end(
    n_labels: np.ndarray, max_error: float, n_claims: np.ndarray, level: float
) -> np.ndarray:
    """How many labelled errors there are at least, where the sequence ends at a threshold: float64
    (T,).

    Of the T thresholds that are tested. The last one has none behind it and counts what it can bear
    itself. The more errors are known, the more can be borne, and the other way round: every step of
    the loop holds, the last says most.
    """
    drawn = np.floor(n_labels + 1e-9)
    more_labels = np.append(np.diff(drawn), 1)
    known = np.zeros(len(drawn))
    wrong = _count_least_broken_errors(n_claims, max_error, known)
    bearable = np.asarray(scipy.stats.hypergeom.ppf(level, n_claims, wrong, drawn)) - 1
    for _ in range(_MAX_KNOWN_ERROR_STEPS):
        known = np.maximum(known, np.append(bearable[1:], bearable[-1:]) + 1 - more_labels)
        wrong = _count_least_broken_errors(n_claims, max_error, known)
        can_bear_more = (
            np.asarray(scipy.stats.hypergeom.cdf(bearable + 1, n_claims, wrong, drawn)) <= level
        )
        if not can_bear_more.any():
            break
        bearable = bearable + can_bear_more
    return known


def _count_least_broken_errors(
    n_claims: np.ndarray, max_share: float, n_known: np.ndarray | float
) -> np.ndarray:
    """The smallest number of errors among the claims that breaks the promise where so many of them
    are set aside."""
    share = max_share * n_claims + (1 - max_share) * n_known
    least: np.ndarray = np.minimum(np.floor(share + 1e-9) + 1, n_claims)
    return least


def error_share_p_values(
    n_labels: np.ndarray,
    n_errors: np.ndarray,
    max_share: float,
    n_claims: np.ndarray | None = None,
    n_known: np.ndarray | float = 0.0,
) -> np.ndarray:
    """The probability of so few errors among the labels were the share of errors just above
    ``max_share``.

    Of ``n_claims`` claims from which the labels were drawn (hypergeometric), or of infinitely many
    (binomial). Numbers may be fractions. 1 without a label. n_known: so many errors of the
    ``n_claims`` are set aside, and the share is of the others.

    >>> error_share_p_values(np.array([45.0]), np.array([0.0]), 0.05).round(3).tolist()
    [0.099]
    """
    if n_claims is None:
        with np.errstate(invalid="ignore"):
            p = scipy.special.betainc(
                np.maximum(n_labels - n_errors, 1e-9), n_errors + 1, 1 - max_share
            )
        return np.where(n_errors >= n_labels, 1.0, p)
    wrong = _count_least_broken_errors(n_claims, max_share, n_known)
    drawn, low = np.floor(n_labels + 1e-9), np.floor(n_errors + 1e-9)
    between = np.clip(n_errors - low, 0, 1)
    below, above = (
        scipy.stats.hypergeom.cdf(low + more, n_claims, wrong, drawn) for more in (0, 1)
    )
    return np.where(drawn > 0, (1 - between) * below + between * above, 1.0)


def plan_labels_to_pass(
    curve: RiskCurve, n_labels: int, max_error: float, confidence: float
) -> int | None:
    """About how many labels in all would let some claims pass, to two digits; None where 64 times
    as many would not.

    The share of errors at each threshold is taken as the labels so far have it, with a quarter of
    an error more.

    >>> risk, rows = np.linspace(0, 1, 1000), np.arange(0, 1000, 40)
    >>> error = (risk[rows] > 0.5).astype(float)
    >>> curve = control_passing_errors(risk, rows, error, 0.9, max_error=0.1)
    >>> plan_labels_to_pass(curve, 25, 0.1, 0.9)
    100
    """
    share = (curve.n_errors + 0.25) / (curve.n_labels + 0.5)
    for factor in (
        np.unique(np.ceil(2 ** np.arange(0.5, np.log2(MAX_LABEL_FACTOR), 0.5) * n_labels))
        / n_labels
    ):
        n = curve.n_labels * factor
        with np.errstate(invalid="ignore"):
            errors = n * share + PLANNED_POWER_Z * np.sqrt(n * share * (1 - share))
        if (
            (error_share_p_values(n, errors, max_error) <= 1 - confidence) & (share < max_error)
        ).any():
            return int(float(f"{factor * n_labels:.2g}"))
    return None


def find_errors_by_review(risk: np.ndarray, error: np.ndarray, share: float) -> float:
    """The share of the errors among the ``share`` of the claims with the highest risk; NaN where
    there is no error.

    Claims without a risk (NaN) are reviewed first. Of claims with equal risk, as many as fit are
    reviewed at random, so this is the expected share.

    >>> find_errors_by_review(np.array([0.9, 0.5, 0.5, 0.1]), np.array([1.0, 1.0, 0.0, 0.0]), 0.5)
    0.75
    """
    _, level = np.unique(np.where(np.isnan(risk), -np.inf, -risk), return_inverse=True)
    n, errors = np.bincount(level), np.bincount(level, weights=error)
    reviewed = np.clip(share * len(risk) - (np.cumsum(n) - n), 0, n)
    total = errors.sum()
    return float((errors * reviewed / n).sum() / total) if total else float("nan")


def are_labels_clustered(labelled_rows: np.ndarray, cluster: np.ndarray) -> bool:
    """Whether labels lie in fewer clusters than a random draw of claims would hit: as where
    documents were drawn.

    cluster: int (N,), of all claims.

    >>> cluster = np.repeat(np.arange(100), 5)
    >>> are_labels_clustered(np.arange(100), cluster)
    True
    >>> are_labels_clustered(np.arange(0, 500, 5), cluster)
    False
    >>> are_labels_clustered(np.r_[0:220:5, 1:220:5, 2:57:5], cluster)  # 99 labels in 44 clusters
    True
    """
    size = np.bincount(cluster)
    size = size[size > 0]
    missed = np.asarray(scipy.stats.hypergeom.pmf(0, len(cluster), size, len(labelled_rows)))
    hit = len(np.unique(cluster[labelled_rows]))
    expected, variance = float((1 - missed).sum()), float((missed * (1 - missed)).sum())
    return bool(hit < expected - 4 * np.sqrt(variance))


def _sum_passing(place: np.ndarray, n_thresholds: int, values: np.ndarray) -> np.ndarray:
    """The sum over the labels that pass each threshold: float64 (T,). place: the first threshold
    that each passes."""
    return np.cumsum(np.bincount(place, values, n_thresholds + 1)[:-1])


def _count_effective_passing_labels(
    place: np.ndarray, n_thresholds: int, weight: np.ndarray, error: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and errors that pass each threshold, as so many labels of equal weights (Kish 1965).

    A sum of rare errors has the variance of as many errors as there are, times their mean weight.
    That is the mean weight of all labels that pass, or of the errors among them where that is
    greater.
    """
    labels, errors, squares, n_errors = (
        _sum_passing(place, n_thresholds, values)
        for values in (weight, weight * error, weight**2, error)
    )
    mean = np.where(labels > 0, squares / np.where(labels > 0, labels, 1.0), 1.0)
    of_errors = (PRIOR_ERRORS * mean + errors) / (PRIOR_ERRORS + n_errors)
    unit = np.maximum(mean, of_errors)
    return labels / unit, errors / unit


def _passing_label_design_effects(
    place: np.ndarray, n_thresholds: int, cluster: np.ndarray, error: np.ndarray
) -> np.ndarray:
    """How many labels of each threshold's claims are worth one: 1 + (m − 1)ρ, m the mean cluster by
    size (Kish 1965).

    ρ is the correlation of two labels of one cluster among all labels, one standard error above its
    estimate: among the claims that pass there are too few errors to tell.
    """
    code = np.unique(cluster, return_inverse=True)[1]
    residual = error - error.mean() if len(error) else error
    size, total = np.bincount(code), np.bincount(code, residual)
    n_pairs = float((size * (size - 1)).sum()) / 2
    variance = float(residual.var()) if len(error) else 0.0
    if n_pairs == 0:
        return np.ones(n_thresholds)
    together = float((total**2 - np.bincount(code, residual**2)).sum()) / 2
    alike = together / n_pairs / variance if variance > 0 else 0.0
    alike = min(1.0, max(0.0, alike + 1 / np.sqrt(n_pairs)))
    # A label that joins k others of its cluster adds (k + 1)² − k² = 2k + 1 to the sum of squared
    # sizes.
    order = np.lexsort([place, code])
    rank = np.arange(len(order)) - np.searchsorted(code[order], code[order])
    squares = _sum_passing(place[order], n_thresholds, 2 * rank + 1)
    labels = _sum_passing(place, n_thresholds, np.ones(len(place)))
    effect: np.ndarray = 1 + (squares / np.maximum(labels, 1) - 1) * alike * (labels > 0)
    return effect
