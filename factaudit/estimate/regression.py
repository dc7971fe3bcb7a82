"""Regression-PPI: a regression on the scores, mended by what the labels say of its errors.

Prediction-powered inference (Angelopoulos et al. 2023) with a prediction that is fitted here: the rate is the mean of
the predictions plus the mean of label − prediction over the labels. Each label's prediction comes from folds that have
not seen it.
"""

from __future__ import annotations

import numpy as np

from factaudit.estimate.columns import Columns
from factaudit.estimate.hierarchical import point_fit, probabilities

FOLDS = 5


def cross_fitted(
    columns: Columns,
    system: np.ndarray,
    rows: np.ndarray,
    error: np.ndarray,
    n_systems: int,
    tau: float,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Predicted P(error) of all N claims (mean over folds), and of the labelled ones (n,) by folds without them.

    system: int (N,); rows: int (n,), those labelled; error: (n,); tau: how far system effects may spread.
    """
    fold = np.empty(len(rows), dtype=np.int64)
    order = random.permutation(len(rows))
    order = order[np.argsort(system[rows][order], kind="stable")]  # each system's labels spread over the folds
    fold[order] = np.arange(len(rows)) % FOLDS
    everywhere, held_out = np.zeros(len(system)), np.empty(len(rows))
    numbers = np.unique(fold)
    for number in numbers:
        inside = fold == number
        train = rows[~inside]
        mode = point_fit(columns, train, system[train], error[~inside], n_systems, tau)
        everywhere += probabilities(mode, columns, system) / len(numbers)
        held_out[inside] = probabilities(mode, columns, system, rows[inside])
    return everywhere, held_out
