"""Wilson's interval of the share of errors in a stratified sample of labels (Wilson 1927; Korn & Graubard 1998)."""

from __future__ import annotations

import numpy as np

from factaudit.stats.clustered_proportions import wilson_interval
from factaudit.stats.stratified_sampling import StratifiedDraw, estimate_stratified_mean

#: Labels' worth of the overall share in that of a stratum.
SHARE_PRIOR_LABELS = 2.0


def stratified_wilson_interval(
    draw: StratifiedDraw,
    error: np.ndarray,
    n_claims: int,
    confidence: float,
    design_effect: float = 1.0,
    population_variance: float = 0.0,
) -> tuple[float, float, float]:
    """Rate, low and high of one system from its drawn claims: Wilson's interval on the effective number of labels.

    error: float64 (n,), 1, 0 or NaN where a drawn claim got no label; n_claims: of the system; design_effect: of labels
    that come in clusters (`cluster_design_effect`); population_variance: of the rate itself from one corpus to the
    next, 0 for the rate of this corpus. The effective number is that of a simple random draw with replacement of the
    same variance: strata and a finite corpus raise it, clusters lower it. NaN without a label.

    >>> draw = StratifiedDraw(np.arange(20), np.zeros(20, int), np.zeros(20, int), np.full(20, 400))
    >>> rate, low, high = stratified_wilson_interval(draw, np.repeat([1.0, 0.0], [5, 15]), 400, 0.95)
    >>> f"{rate:.2f} ({low:.2f} to {high:.2f})"
    '0.25 (0.11 to 0.46)'
    """
    n = int((~np.isnan(error)).sum())
    if n == 0:
        return np.nan, np.nan, np.nan
    share = min(max(estimate_stratified_mean(draw, error, np.zeros(len(error)), n_claims).value, 0.0), 1.0)
    # A stratum of a few equal labels would have no variance. So the effective number is computed from shares that are
    # drawn towards the share of all labels.
    p = _smooth_stratum_error_shares(draw, error)
    smooth = estimate_stratified_mean(draw, p, p * (1 - p), n_claims, prior_labels=np.inf)
    variance = (0.0 if n == n_claims else smooth.variance * design_effect) + population_variance
    if variance == 0:
        return share, share, share
    effective = smooth.value * (1 - smooth.value) / variance
    low, high = wilson_share_interval(share, effective, confidence)
    return share, low, high


def _smooth_stratum_error_shares(draw: StratifiedDraw, error: np.ndarray) -> np.ndarray:
    """The share of errors in each drawn claim's stratum, drawn towards that of all labels: (n,), never 0 or 1.

    The share of all labels counts as `SHARE_PRIOR_LABELS` further labels. NaN where a claim got no label.
    """
    known = ~np.isnan(error)
    overall = (error[known].sum() + 0.5) / (known.sum() + 1)
    code = np.unique(draw.stratum, return_inverse=True)[1]
    errors = np.bincount(code[known], error[known], code.max() + 1)
    labels = np.bincount(code[known], minlength=code.max() + 1)
    return np.where(known, ((errors + SHARE_PRIOR_LABELS * overall) / (labels + SHARE_PRIOR_LABELS))[code], np.nan)


def wilson_share_interval(share: float, n: float, confidence: float) -> tuple[float, float]:
    """`wilson_interval` of a share of ``n`` independent labels, an effective number: any positive one.

    >>> low, high = wilson_share_interval(0.1, 50, 0.95)
    >>> f"{low:.3f} to {high:.3f}"
    '0.043 to 0.214'
    """
    low, high = wilson_interval(np.array(share), np.array(n), np.array(np.inf), confidence)
    return float(low), float(high)
