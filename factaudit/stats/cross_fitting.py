"""Cross-fitted regression on scores: the predictions of regression-PPI (Angelopoulos et al. 2023; Chernozhukov 2018).

Regression-PPI estimates a rate by the mean prediction plus the mean of label − prediction over the labels
(`factaudit.stats.difference_estimator`). So the prediction of a labelled claim comes from folds that have not seen it.
"""

from __future__ import annotations

import numpy as np

from factaudit.stats.hierarchical_regression import error_probabilities_at_mode, fit_posterior_mode
from factaudit.stats.score_covariates import ScoreCovariates

N_FOLDS = 5


def cross_fit_error_probabilities(
    covariates: ScoreCovariates,
    system: np.ndarray,
    labelled_rows: np.ndarray,
    error: np.ndarray,
    n_systems: int,
    effect_scale: float,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Predicted P(error) of all N claims, the mean over folds, and of the n labelled ones by folds without them.

    covariates: of N claims; system: int (N,), 0..n_systems-1; labelled_rows: int (n,); error: float64 (n,), 1 or 0;
    effect_scale: standard deviation of the system effects. Returns float64 (N,) and (n,).

    >>> from factaudit.stats.score_covariates import build_score_covariates
    >>> covariates = build_score_covariates(np.linspace(0.05, 0.95, 40)[None], ["e"])
    >>> rows, random = np.arange(0, 40, 2), np.random.default_rng(0)
    >>> error = (rows < 20).astype(float)  # low scores are errors
    >>> p, held_out = cross_fit_error_probabilities(covariates, np.zeros(40, int), rows, error, 1, 1.0, random)
    >>> p.shape, held_out.shape, bool(p[0] > 0.9), bool(p[-1] < 0.1)
    ((40,), (20,), True, True)
    """
    fold = np.empty(len(labelled_rows), dtype=np.int64)
    order = random.permutation(len(labelled_rows))
    order = order[np.argsort(system[labelled_rows][order], kind="stable")]  # each system's labels spread over the folds
    fold[order] = np.arange(len(labelled_rows)) % N_FOLDS
    everywhere, held_out = np.zeros(len(system)), np.empty(len(labelled_rows))
    numbers = np.unique(fold)
    for number in numbers:
        inside = fold == number
        train = labelled_rows[~inside]
        mode = fit_posterior_mode(covariates, train, system[train], error[~inside], n_systems, effect_scale)
        everywhere += error_probabilities_at_mode(mode, covariates, system) / len(numbers)
        held_out[inside] = error_probabilities_at_mode(mode, covariates, system, labelled_rows[inside])
    return everywhere, held_out
