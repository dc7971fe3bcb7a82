"""True labels behind those of annotators who err: Dawid & Skene's model (1979), drawn by Gibbs sampling.

Each annotator finds errors with a probability of their own (sensitivity), and finds correct claims correct with another
(specificity); given the true label annotators err independently. Both probabilities have the prior of
`ANNOTATOR_PRIOR`: with two annotators the data alone would not settle them.
"""

from __future__ import annotations

import numpy as np

#: Beta prior of each annotator's sensitivity and specificity: right in nine of ten, worth ten claims.
ANNOTATOR_PRIOR = (9.0, 1.0)
#: Below so many claims with two labels nothing is said of annotators' errors.
MIN_OVERLAP = 20
_N_SWEEPS = 10


def count_overlapping_claims(labels: np.ndarray) -> tuple[int, int]:
    """How many claims have two labels or more, and how many of these have both. labels: (n, A), 1, 0 or NaN.

    >>> count_overlapping_claims(np.array([[1, 1, np.nan], [1, 0, np.nan], [0, np.nan, np.nan]]))
    (2, 1)
    """
    ones, zeros = (labels == 1).sum(1), (labels == 0).sum(1)
    return int((ones + zeros > 1).sum()), int(((ones > 0) & (zeros > 0)).sum())


def draw_true_errors(
    labels: np.ndarray, error: np.ndarray, error_probability: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """One draw of which claims are errors, given annotators' labels and what a model says: float64 (n,), 1 or 0.

    labels: (n, A), 1 (attributable), 0 or NaN; error: (n,), 1 or 0, where the chain starts; error_probability: (n,),
    P(error) before the labels are seen.

    Three annotators agree on 30 claims, one of them against the other two on one more:

    >>> labels = np.repeat([[1.0, 1, 1], [0, 0, 0], [0, 1, 1]], [20, 10, 1], axis=0)
    >>> error = (labels.mean(1) < 0.5).astype(float)
    >>> draws = [draw_true_errors(labels, error, np.full(31, 0.3), np.random.default_rng(at)) for at in range(40)]
    >>> means = np.mean(draws, axis=0)
    >>> bool(means[0] < 0.05), bool(means[20] > 0.95), bool(means[30] < 0.5)
    (True, True, True)
    """
    says_error, says_correct = labels == 0, labels == 1
    right, wrong = ANNOTATOR_PRIOR
    prior_log_odds = np.log(error_probability) - np.log1p(-error_probability)
    for _ in range(_N_SWEEPS):
        correct = 1 - error
        sensitivity = random.beta(right + error @ says_error, wrong + error @ says_correct)
        specificity = random.beta(right + correct @ says_correct, wrong + correct @ says_error)
        log_odds = prior_log_odds + says_error @ (np.log(sensitivity) - np.log1p(-specificity))
        log_odds += says_correct @ (np.log1p(-sensitivity) - np.log(specificity))
        error = (random.logistic(size=len(error)) < log_odds).astype(np.float64)
    return error
