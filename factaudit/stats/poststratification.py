"""Post-stratification: from a regression's posterior draws to draws of each system's rate (Gelman & Little 1997)."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.hierarchical_regression import PosteriorDraws, stable_logistic
from factaudit.stats.score_covariates import ScoreCovariates

#: Claims whose probabilities are computed at a time: with 1,000 draws they stay in the processor's cache.
_BLOCK_SIZE = 256


def poststratify_error_rates(
    posterior: PosteriorDraws,
    covariates: ScoreCovariates,
    system: np.ndarray,
    error: np.ndarray,
    random: np.random.Generator,
    documents: np.ndarray | None = None,
) -> np.ndarray:
    """Draws of the error rate of each system: float64 (D, S), NaN for a system without claims.

    system: int (N,), codes from 0; error: float64 (N,), 1, 0 or NaN where not labelled. Without ``documents`` the rates
    are of the *corpus*: the labelled errors plus N(Σp, Σp(1 − p)) over the other claims. With ``documents``, int (N,),
    they are of the *population* that the documents were drawn from: each document weighs Exp(1), the same for all
    systems (the Bayesian bootstrap, Rubin 1981), or more unevenly where documents are few
    (`bayesian_bootstrap_gamma_shape`).

    Two labelled claims and 98 others with P(error) = 1/2:

    >>> posterior = PosteriorDraws(np.zeros(1000), np.zeros((1000, 0)), np.zeros((1000, 1)), np.ones(1000), 1e3, ())
    >>> covariates = ScoreCovariates(np.zeros((100, 0)), np.zeros(0), np.zeros(0), ())
    >>> error = np.where(np.arange(100) < 2, 1.0, np.nan)
    >>> draws = poststratify_error_rates(posterior, covariates, np.zeros(100, int), error, np.random.default_rng(0))
    >>> f"{draws.mean():.2f} ± {draws.std():.2f}"
    '0.51 ± 0.05'
    """
    n_draws, n_systems = posterior.system_effects.shape
    total = np.zeros((n_draws, n_systems))
    errors = np.zeros((n_draws, n_systems))
    variance = np.zeros((n_draws, n_systems))
    slopes = posterior.slopes.T.astype(np.float32)
    base = (posterior.intercept[:, None] + posterior.system_effects).T.astype(np.float32)  # (S, D)
    order = np.argsort(system if documents is None else documents, kind="stable")
    last, carried = -1, np.empty(0)
    shape = 1.0 if documents is None else bayesian_bootstrap_gamma_shape(documents, system)
    for start in range(0, len(order), _BLOCK_SIZE):
        rows = order[start : start + _BLOCK_SIZE]
        rows = rows[np.argsort(system[rows], kind="stable")]
        here = system[rows]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        at = here[starts]
        known = ~np.isnan(error[rows])
        p = covariates.values[rows].astype(np.float32) @ slopes
        p += base[here]
        np.negative(p, out=p)
        np.exp(p, out=p)
        p += 1
        np.reciprocal(p, out=p)
        p[known] = error[rows[known], None]
        noise = p * (1 - p)
        if documents is None:
            total[:, at] += np.diff(np.append(starts, len(rows)))
        else:
            found, place = np.unique(documents[rows], return_inverse=True)
            drawn = random.standard_gamma(shape, (len(found), n_draws), dtype=np.float32)
            if found[0] == last:  # a document that began in the block before
                drawn[0] = carried
            last, carried = found[-1], drawn[-1]
            weights = drawn[place]
            total[:, at] += np.add.reduceat(weights, starts, axis=0).T
            p *= weights
            noise *= weights
            noise *= weights
        errors[:, at] += np.add.reduceat(p, starts, axis=0).T
        variance[:, at] += np.add.reduceat(noise, starts, axis=0).T
    errors += random.standard_normal(errors.shape) * np.sqrt(variance)
    with np.errstate(invalid="ignore"):
        return np.clip(errors, 0, total) / np.where(total > 0, total, np.nan)


def bayesian_bootstrap_gamma_shape(documents: np.ndarray, system: np.ndarray) -> float:
    """The shape of the documents' gamma weights: near 1 (exponential) for many documents, less for few.

    documents, system: int (N,), codes from 0. Exponential weights spread a mean over D documents as if its variance
    were known, and by (D − 1)/(D + 1) too little. The shape makes up for both, so that the 95 % interval is as wide as
    Student's. D is the number of documents of the system that has the fewest.

    >>> [round(bayesian_bootstrap_gamma_shape(np.arange(d), np.zeros(d, int)), 2) for d in (5, 50, 5000)]
    [0.2, 0.91, 1.0]
    """
    pairs = np.unique(system * (int(documents.max(initial=0)) + 1) + documents)
    counts = np.bincount(pairs // (int(documents.max(initial=0)) + 1))
    n = int(counts[counts > 0].min(initial=2**31))
    if n < 3:
        return 0.1
    return max(0.1, float(((n - 1) * (scipy.special.ndtri(0.975) / scipy.special.stdtrit(n - 1, 0.975)) ** 2 - 1) / n))


def posterior_error_probabilities(
    posterior: PosteriorDraws, covariates: ScoreCovariates, system: np.ndarray
) -> np.ndarray:
    """P(error) of each claim, the mean over the draws: float64 (N,). system: int (N,).

    >>> posterior = PosteriorDraws(np.zeros(2), np.array([[1.0], [-1.0]]), np.zeros((2, 1)), np.ones(2), 2.0, ())
    >>> covariates = ScoreCovariates(np.array([[2.0]]), np.zeros(1), np.ones(1), ("shared",))
    >>> posterior_error_probabilities(posterior, covariates, np.zeros(1, int)).tolist()
    [0.5]
    """
    base = (posterior.intercept[:, None] + posterior.system_effects).T
    found = np.empty(len(system))
    for start in range(0, len(system), _BLOCK_SIZE):
        rows = slice(start, start + _BLOCK_SIZE)
        found[rows] = stable_logistic(covariates.values[rows] @ posterior.slopes.T + base[system[rows]]).mean(1)
    return found
