"""From draws of the model to draws of each system's error rate."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from factaudit.estimate.columns import Columns
from factaudit.estimate.hierarchical import Posterior, expit

#: Claims whose probabilities are computed at a time: with 1,000 draws they stay in the processor's cache.
_BLOCK = 256


def rate_draws(
    posterior: Posterior,
    columns: Columns,
    system: np.ndarray,
    error: np.ndarray,
    random: np.random.Generator,
    documents: np.ndarray | None = None,
) -> np.ndarray:
    """Draws of the error rate of each system: float64 (D, S), NaN for a system without claims.

    system: int (N,); error: (N,), 1, 0 or NaN where not labelled. Of the *corpus*: the labelled errors plus
    N(Σp, Σp(1 − p)) over the others. With ``documents``, int (N,), of the *population* that they were drawn from: each
    document weighs Exp(1), the same for all systems (the Bayesian bootstrap, Rubin 1981), or more unevenly where there
    are few documents (`weight_shape`).
    """
    n_draws, n_systems = posterior.effects.shape
    total = np.zeros((n_draws, n_systems))
    errors = np.zeros((n_draws, n_systems))
    variance = np.zeros((n_draws, n_systems))
    slopes = posterior.slopes.T.astype(np.float32)
    base = (posterior.intercept[:, None] + posterior.effects).T.astype(np.float32)  # (S, D)
    order = np.argsort(system if documents is None else documents, kind="stable")
    last, carried = -1, np.empty(0)
    shape = 1.0 if documents is None else weight_shape(documents, system)
    for start in range(0, len(order), _BLOCK):
        rows = order[start : start + _BLOCK]
        rows = rows[np.argsort(system[rows], kind="stable")]
        here = system[rows]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        at = here[starts]
        known = ~np.isnan(error[rows])
        p = columns.values[rows].astype(np.float32) @ slopes
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


def weight_shape(documents: np.ndarray, system: np.ndarray) -> float:
    """The shape of the documents' gamma weights: 1 (exponential) for many documents, less for few.

    Exponential weights spread a mean over D documents as if its variance were known and by (D − 1)/(D + 1) too little;
    the shape makes up for both, so that the 95 % interval is as wide as Student's. D: the least of the systems'.
    """
    pairs = np.unique(system * (int(documents.max(initial=0)) + 1) + documents)
    counts = np.bincount(pairs // (int(documents.max(initial=0)) + 1))
    n = int(counts[counts > 0].min(initial=2**31))
    if n < 3:
        return 0.1
    return max(0.1, ((n - 1) * (ndtri(0.975) / stdtrit(n - 1, 0.975)) ** 2 - 1) / n)


def fitted(posterior: Posterior, columns: Columns, system: np.ndarray) -> np.ndarray:
    """P(error) of each claim, the mean over the draws: float64 (N,)."""
    base = (posterior.intercept[:, None] + posterior.effects).T
    found = np.empty(len(system))
    for start in range(0, len(system), _BLOCK):
        rows = slice(start, start + _BLOCK)
        found[rows] = expit(columns.values[rows] @ posterior.slopes.T + base[system[rows]]).mean(1)
    return found
