"""One risk from several evaluators' scores: weights fitted to labels, none below 0, by ridge regression (logistic).

No weight is below 0, so a claim that one evaluator supports more is never riskier for it. Weights sum up to 1: risks by
weights from different labels are on one scale, and can be compared with one threshold. The penalty is heavy, so few
labels give weights in proportion to how far each evaluator alone agrees with them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from factaudit.stats.regression import risk_logit

#: The penalty on squared slopes of standardised scores.
RIDGE = 20.0
N_FOLDS = 10


@dataclass(frozen=True)
class ScoreStandardiser:
    """How the scores of E evaluators become comparable: the mean and standard deviation of the logit of 1 − score."""

    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def from_scores(cls, score: np.ndarray) -> ScoreStandardiser:
        """score: float64 (E, N), support for the claim, NaN where missing."""
        known = [row[~np.isnan(row)] for row in risk_logit(score)]
        mean, spread = (np.array([f(row) if len(row) else 0.0 for row in known]) for f in (np.mean, np.std))
        return cls(mean, np.where(spread > 1e-9, spread, np.inf))  # what does not vary has no risk to tell

    def standardise(self, score: np.ndarray) -> np.ndarray:
        """float64 (E, N), high where an evaluator holds the claim for an error.

        >>> score = np.array([[0.9, 0.1]])
        >>> ScoreStandardiser.from_scores(score).standardise(score).round(6).tolist()
        [[-1.0, 1.0]]
        """
        standardised: np.ndarray = (risk_logit(score) - self.mean[:, None]) / self.spread[:, None]
        return standardised


def fit_combination_weights(standardised: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Weights of E evaluators: float64 (E,), none below 0, with sum 1. Equal ones where no evaluator tells errors.

    standardised: float64 (E, n); error: (n,), 1 or 0.

    >>> x = np.array([[-1.0, -1, 1, 1], [1, -1, 1, -1]])
    >>> fit_combination_weights(x, np.array([0.0, 0, 1, 1])).round(2).tolist()
    [1.0, 0.0]
    """
    n_evaluators = len(standardised)
    equal = np.full(n_evaluators, 1 / n_evaluators)
    if not 0 < error.sum() < len(error):
        return equal
    columns = np.vstack([np.ones(len(error)), standardised])

    def penalised_loss(slopes: np.ndarray) -> tuple[float, np.ndarray]:
        odds, penalty = slopes @ columns, np.append(0.0, slopes[1:])
        gradient = columns @ (scipy.special.expit(odds) - error) + RIDGE * penalty
        return float(np.logaddexp(0, odds).sum() - error @ odds + RIDGE / 2 * penalty @ penalty), gradient

    begin = np.append(scipy.special.logit(error.mean()), np.zeros(n_evaluators))
    bounds = [(None, None)] + [(0, None)] * n_evaluators
    slopes = scipy.optimize.minimize(penalised_loss, begin, jac=True, method="L-BFGS-B", bounds=bounds).x[1:]
    return slopes / slopes.sum() if slopes.sum() > 1e-9 else equal


def cross_fit_combined_risk(
    score: np.ndarray, labelled_rows: np.ndarray, error: np.ndarray, cluster: np.ndarray, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The risk of N claims by weights fitted to labels of other clusters, and the mean weights. Of one evaluator
    the risk is 1 − score.

    score: float64 (E, N), support, NaN where missing (the risk is NaN then); labelled_rows: int (n,); error: (n,);
    cluster: int (N,). Returns float64 (N,) and (E,).

    >>> score = np.vstack([np.linspace(0.05, 0.95, 60), np.tile([0.2, 0.8], 30)])
    >>> rows, random = np.arange(0, 60, 3), np.random.default_rng(0)
    >>> risk, weights = cross_fit_combined_risk(score, rows, (rows < 30).astype(float), np.arange(60), random)
    >>> bool(risk[0] > risk[-1]), bool(weights[0] > 0.8)
    (True, True)
    """
    if len(score) == 1:
        return 1 - score[0], np.ones(1)
    standardised = ScoreStandardiser.from_scores(score).standardise(score)
    filled = np.where(np.isnan(standardised), 0.0, standardised)
    risk, weights = np.full(score.shape[1], np.nan), []
    _, codes = np.unique(cluster, return_inverse=True)
    fold = (random.permutation(codes.max(initial=-1) + 1) % N_FOLDS)[codes]  # whole clusters
    for number in np.unique(fold):
        inside = fold == number
        train = ~inside[labelled_rows]
        weight = fit_combination_weights(filled[:, labelled_rows[train]], error[train])
        risk[inside] = weight @ standardised[:, inside]
        weights.append(weight)
    return risk, np.mean(weights, axis=0)
