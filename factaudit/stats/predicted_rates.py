"""Error rates as an evaluator predicts them."""

from __future__ import annotations

import numpy as np

from factaudit.stats.undefined_values import divide_or_undefined


def pooled_prediction_error_rates(prediction: np.ndarray, system: np.ndarray, n_systems: int) -> np.ndarray:
    """The share of each system's scored claims that are predicted 0: float64 (S,), NaN where none is scored.

    prediction: int (N,), 1, 0 or -1 where missing; system: int (N,), 0..n_systems-1.

    >>> pooled_prediction_error_rates(np.array([0, 1, -1, -1]), np.array([0, 0, 0, 1]), 2).tolist()
    [0.5, nan]
    """
    errors = np.bincount(system[prediction == 0], minlength=n_systems)
    return divide_or_undefined(errors, np.bincount(system[prediction >= 0], minlength=n_systems))
