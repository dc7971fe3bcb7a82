"""What the regressions read of the scores: standardised logits of each evaluator's score, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Scores are kept this far from 0 and 1 before their logit is taken.
_EDGE = 0.001
#: Prior mean and standard deviation of the shared column's coefficient, and standard deviation of all others'.
SHARED_PRIOR = (1.4, 1.2)
OTHER_SD = 0.5
#: Standard deviation of the coefficients of columns that are 1 or 0: a lacking score, a stratum.
INDICATOR_SD = 1.0


@dataclass(frozen=True)
class Columns:
    """Covariates (N, K) float64 and the normal prior of each one's coefficient: mean (K,), sd (K,).

    The first is what the evaluators share, with the main one counted double; greater means more likely an error.
    ``names`` says what each is.
    """

    values: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    names: tuple[str, ...]


def columns_of(score: np.ndarray, names: Sequence[str], strata: np.ndarray | None = None) -> Columns:
    """Covariates of N claims from (E, N) scores (support for the claim; NaN where missing), the main evaluator first.

    An evaluator whose scores are all equal or all missing gives nothing. Where one lacks some scores, a column says
    which claims lack it: their errors may be more or fewer than the median score, which stands in, would say.
    ``strata``: int (N,), codes of the user's columns; each value gets a column of its own.
    """
    logits = [standardised(row) for row in score]
    used = [at for at, column in enumerate(logits) if column is not None]
    x = [column for column in logits if column is not None]
    columns: list[tuple[str, np.ndarray, float, float]] = []
    if x:
        together = np.mean(x, axis=0)
        spread = together.std()
        together = together / spread if spread > 0 else together
        first = together if logits[0] is None else logits[0]
        shared = (together + first) / 2
        columns.append(("shared", shared, *SHARED_PRIOR))
        if len(x) > 1:
            columns += [(names[at], column - shared, 0.0, OTHER_SD) for at, column in zip(used, x, strict=True)]
    columns += [
        (f"{name} missing", missing - missing.mean(), 0.0, INDICATOR_SD)
        for name, missing in zip(names, np.isnan(score).astype(np.float64), strict=True)
        if 0 < missing.mean() < 1
    ]
    if strata is not None:
        for code in range(int(strata.max()) + 1):
            inside = (strata == code).astype(np.float64)
            columns.append((f"stratum {code}", inside - inside.mean(), 0.0, INDICATOR_SD))
    values = np.stack([column for _, column, _, _ in columns], axis=1) if columns else np.zeros((score.shape[1], 0))
    return Columns(
        values=values,
        mean=np.array([mean for _, _, mean, _ in columns]),
        sd=np.array([sd for _, _, _, sd in columns]),
        names=tuple(name for name, _, _, _ in columns),
    )


def guess_of(score: np.ndarray) -> np.ndarray:
    """An evaluator's guess at P(error), NaN where it has no score: what the first strata are cut by."""
    return 1 - score


def standardised(score: np.ndarray) -> np.ndarray | None:
    """logit(1 − score) with mean 0 and variance 1, missing ones at the median; None where nothing varies."""
    known = ~np.isnan(score)
    if not known.any():
        return None
    wrong = 1 - score
    np.clip(wrong, _EDGE, 1 - _EDGE, out=wrong)
    logit = np.log(wrong) - np.log1p(-wrong)
    logit[~known] = np.median(logit[known])
    spread = logit.std()
    return (logit - logit.mean()) / spread if spread > 1e-9 else None
