"""Labels only: the share of errors among the labels, with an interval that knows how they were drawn."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from factaudit.estimate.design import Draw, mean_of

#: Labels' worth of the overall share in that of a stratum.
PRIOR = 2.0


def labelled_rate(
    draw: Draw,
    error: np.ndarray,
    size: int,
    confidence: float,
    design_effect: float = 1.0,
    population_variance: float = 0.0,
) -> tuple[float, float, float]:
    """Rate, low and high of one system from its drawn claims: Wilson 1927 on the effective number of labels.

    error: (n,), 1, 0 or NaN where a drawn claim got no label; size: the system's claims; design_effect: of labels that
    come in clusters; population_variance: of the rate itself, 0 for the corpus's. The effective number is that of a
    simple random draw with replacement of the same variance: strata and a finite corpus raise it, clusters lower it.
    """
    n = int((~np.isnan(error)).sum())
    if n == 0:
        return np.nan, np.nan, np.nan
    share = min(max(mean_of(draw, error, np.zeros(len(error)), size).value, 0.0), 1.0)
    # A stratum of a few equal labels would have no variance: its share is drawn towards that of all, and the effective
    # number is told by shares that are all drawn so.
    p = _smoothed(draw, error)
    smooth = mean_of(draw, p, p * (1 - p), size, prior=np.inf)
    variance = (0.0 if n == size else smooth.variance * design_effect) + population_variance
    if variance == 0:
        return share, share, share
    effective = smooth.value * (1 - smooth.value) / variance
    low, high = wilson(share, effective, confidence)
    return share, low, high


def _smoothed(draw: Draw, error: np.ndarray) -> np.ndarray:
    """The share of errors in each drawn claim's stratum, `PRIOR` labels of the share of all added: (n,), never 0 or 1.

    NaN where a claim got no label.
    """
    known = ~np.isnan(error)
    overall = (error[known].sum() + 0.5) / (known.sum() + 1)
    code = np.unique(draw.stratum, return_inverse=True)[1]
    errors, labels = (
        np.bincount(code[known], error[known], code.max() + 1),
        np.bincount(code[known], minlength=code.max() + 1),
    )
    return np.where(known, ((errors + PRIOR * overall) / (labels + PRIOR))[code], np.nan)


def wilson(share: float, n: float, confidence: float) -> tuple[float, float]:
    """Wilson's interval of a share of ``n`` (any positive number)."""
    z = float(ndtri((1 + confidence) / 2))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return min(max(0.0, middle - half), share), max(min(1.0, middle + half), share)
