"""Rogan & Gladen 1978: a predicted error rate mended by measured TPR and TNR. To compare with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri


@dataclass(frozen=True)
class Confusion:
    """TNR (share of errors predicted errors) and TPR from labels, and how many labels of each kind they rest on."""

    tnr: float
    n_errors: float
    tpr: float
    n_others: float

    @property
    def youden(self) -> float:
        """TPR + TNR − 1, NaN where the labels lack a class."""
        return self.tpr + self.tnr - 1

    @property
    def variance(self) -> float:
        return self.tnr * (1 - self.tnr) / self.n_errors + self.tpr * (1 - self.tpr) / self.n_others

    def usable(self, confidence: float) -> bool:
        """Whether the evaluator is shown to do better than chance: else the correction is not identified."""
        if not (self.n_errors > 0 and self.n_others > 0):
            return False
        return self.youden - ndtri((1 + confidence) / 2) * np.sqrt(self.variance) > 0


def confusion(error: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> Confusion:
    """From labelled and scored claims: error 1 or 0, prediction 1 or 0, weight (n,). Effective numbers are Kish's."""
    shares = []
    for kind, right in ((error == 1, prediction == 0), (error == 0, prediction == 1)):
        total = weight[kind].sum()
        share = float(weight[kind & right].sum() / total) if total else np.nan
        shares.append((share, float(total**2 / (weight[kind] ** 2).sum()) if total else 0.0))
    (tnr, n_errors), (tpr, n_others) = shares
    return Confusion(tnr, n_errors, tpr, n_others)


def rogan_gladen(predicted: float, n: int, known: Confusion, confidence: float = 0.95) -> tuple[float, float, float]:
    """Rate, low and high, clipped to [0, 1], from a predicted error rate over ``n`` claims; delta method."""
    rate = (predicted + known.tpr - 1) / known.youden
    variance = (
        predicted * (1 - predicted) / n
        + rate**2 * known.tnr * (1 - known.tnr) / known.n_errors
        + (1 - rate) ** 2 * known.tpr * (1 - known.tpr) / known.n_others
    ) / known.youden**2
    half = ndtri((1 + confidence) / 2) * np.sqrt(variance)
    low, middle, high = np.clip([rate - half, rate, rate + half], 0, 1)
    return float(middle), float(low), float(high)
