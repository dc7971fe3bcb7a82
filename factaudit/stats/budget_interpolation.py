"""The number of labels that a wanted interval takes, between budgets whose intervals are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def interpolate_budget(n_labels: Sequence[float], widths: Sequence[float], width: float) -> float | None:
    """The labels at which straight lines through (log n_labels, log widths) first reach ``width``.

    n_labels ascends. The first budget where its interval is narrow enough; None where no budget's is.

    >>> round(interpolate_budget([100, 400], [0.2, 0.1], 0.15), 1)
    177.8
    >>> interpolate_budget([100, 400], [0.2, 0.1], 0.05) is None
    True
    """
    x, y, target = np.log(n_labels), np.log(np.maximum(widths, 1e-9)), np.log(width)
    narrow = np.flatnonzero(y <= target)
    if not len(narrow):
        return None
    at = int(narrow[0])
    if at == 0:
        return float(np.exp(x[0]))
    share = (y[at - 1] - target) / (y[at - 1] - y[at])
    return float(np.exp(x[at - 1] + share * (x[at] - x[at - 1])))
