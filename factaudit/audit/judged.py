"""Claims and verdicts joined once, as arrays that every audit computes on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.tables import STATUSES, claim_positions

#: In `Judged.label` and `Judged.prediction`: not annotated, unscored.
MISSING = -1


@dataclass(frozen=True)
class Judged:
    """n claims and what E evaluators said of them.

    claims: the claims table, n rows in the order of the arrays.
    evaluators: E names, in order of first appearance in the verdicts.
    label: int8 (n,), 1 attributable, 0 unattributable, -1 not annotated.
    prediction: int8 (E, n), 1, 0 or -1 for unscored (a verdict without a prediction, or no verdict at all).
    score: float64 (E, n), NaN where the evaluator gave none.
    status: int8 (E, n), an index into `factaudit.tables.STATUSES`; -1 where there is no verdict at all.
    """

    claims: pd.DataFrame
    evaluators: tuple[str, ...]
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    status: np.ndarray

    @classmethod
    def join(cls, claims: pd.DataFrame, verdicts: pd.DataFrame) -> Judged:
        """Join validated tables (`factaudit.tables`); a verdict of a claim that isn't in ``claims`` is left out."""
        rows = claim_positions(claims, verdicts["claim_id"])
        codes, names = pd.factorize(verdicts["evaluator"])
        known = rows >= 0
        at = (codes[known], rows[known])
        shape = (len(names), len(claims))
        prediction = np.full(shape, MISSING, dtype=np.int8)
        score = np.full(shape, np.nan)
        status = np.full(shape, MISSING, dtype=np.int8)
        prediction[at] = verdicts["prediction"].fillna(MISSING).to_numpy(dtype=np.int8)[known]
        score[at] = verdicts["score"].to_numpy(dtype=np.float64)[known]
        status[at] = pd.Categorical(verdicts["status"], categories=list(STATUSES)).codes[known]
        label = claims["label"].fillna(MISSING).to_numpy(dtype=np.int8)
        return cls(claims, tuple(map(str, names)), label, prediction, score, status)
