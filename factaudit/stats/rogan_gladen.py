"""Rogan & Gladen 1978: a predicted error rate corrected by TPR and TNR, measured on labels or stated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy


@dataclass(frozen=True)
class RoganGladenConfusion:
    """TNR (share of errors that are predicted errors) and TPR, and the effective number of labels behind each."""

    tnr: float
    n_errors: float
    tpr: float
    n_others: float

    @property
    def youden_index(self) -> float:
        """TPR + TNR − 1, NaN where the labels lack a class."""
        return self.tpr + self.tnr - 1

    @property
    def youden_variance(self) -> float:
        return self.tnr * (1 - self.tnr) / self.n_errors + self.tpr * (1 - self.tpr) / self.n_others

    def is_better_than_chance(self, confidence: float) -> bool:
        """Whether the labels show that TPR + TNR is above 1. If not, the correction is not identified."""
        if not (self.n_errors > 0 and self.n_others > 0):
            return False
        return bool(self.youden_index > scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(self.youden_variance))


def estimate_rogan_gladen_confusion(
    error: np.ndarray, prediction: np.ndarray, weight: np.ndarray
) -> RoganGladenConfusion:
    """TPR and TNR from n labelled and scored claims, with Kish's effective numbers.

    error: float64 (n,), 1 or 0; prediction: int (n,), 1 (no error) or 0; weight: float64 (n,).

    >>> confusion = estimate_rogan_gladen_confusion(np.array([1.0, 1, 0, 0]), np.array([0, 1, 1, 1]), np.ones(4))
    >>> confusion.tnr, confusion.tpr, confusion.n_errors
    (0.5, 1.0, 2.0)
    """
    shares = []
    for kind, right in ((error == 1, prediction == 0), (error == 0, prediction == 1)):
        total = weight[kind].sum()
        share = float(weight[kind & right].sum() / total) if total else np.nan
        shares.append((share, float(total**2 / (weight[kind] ** 2).sum()) if total else 0.0))
    (tnr, n_errors), (tpr, n_others) = shares
    return RoganGladenConfusion(tnr, n_errors, tpr, n_others)


def rogan_gladen_error_rate(
    predicted_rate: float, n_claims: int, confusion: RoganGladenConfusion, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Rate, low and high, clipped to [0, 1], from an error rate predicted over ``n_claims`` claims; delta method.

    >>> confusion = RoganGladenConfusion(tnr=0.8, n_errors=100, tpr=0.9, n_others=200)
    >>> rate, low, high = rogan_gladen_error_rate(0.24, 1000, confusion)
    >>> f"{rate:.2f} ({low:.2f} to {high:.2f})"
    '0.20 (0.14 to 0.26)'
    """
    rate = (predicted_rate + confusion.tpr - 1) / confusion.youden_index
    variance = (
        predicted_rate * (1 - predicted_rate) / n_claims
        + rate**2 * confusion.tnr * (1 - confusion.tnr) / confusion.n_errors
        + (1 - rate) ** 2 * confusion.tpr * (1 - confusion.tpr) / confusion.n_others
    ) / confusion.youden_index**2
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(variance)
    low, middle, high = np.clip([rate - half, rate, rate + half], 0, 1)
    return float(middle), float(low), float(high)


def can_accuracy_give_predicted_share(predicted_rate: float, n_claims: int, tpr: float, tnr: float) -> bool:
    """Whether some error rate gives this share of predicted errors, from 1 − TPR (none is an error) to TNR (all are).

    Beyond these ends two standard errors of the share are allowed for.

    >>> can_accuracy_give_predicted_share(0.87, 349, tpr=0.78, tnr=0.69)
    False
    >>> can_accuracy_give_predicted_share(0.24, 349, tpr=0.78, tnr=0.69)
    True
    """
    low, high = 1 - tpr, tnr
    slack = [2 * float(np.sqrt(end * (1 - end) / n_claims)) for end in (low, high)]
    return low - slack[0] <= predicted_rate <= high + slack[1]


def rogan_gladen_error_probabilities(
    prediction: np.ndarray, system: np.ndarray, n_systems: int, tpr: float, tnr: float
) -> np.ndarray:
    """P(error) of each claim given its prediction, by Bayes' rule from TPR, TNR and each system's corrected rate: (N,).

    prediction: int (N,), 1, 0 or -1 where missing (such a claim has its system's rate; 0.5 where the system has no
    prediction at all); system: int (N,), 0..n_systems-1. Rates are kept from 0.5 to 99.5 %.

    >>> rogan_gladen_error_probabilities(np.array([0, 1, -1]), np.zeros(3, int), 1, tpr=0.75, tnr=0.75).tolist()
    [0.75, 0.25, 0.5]
    """
    p = np.full(len(prediction), 0.5)
    for at in range(n_systems):
        mine = system == at
        scored = mine & (prediction >= 0)
        if not scored.any():
            continue
        predicted = float((prediction[scored] == 0).mean())
        rate = float(np.clip((predicted + tpr - 1) / (tpr + tnr - 1), 0.005, 0.995))
        of_zero = tnr * rate / max(tnr * rate + (1 - tpr) * (1 - rate), 1e-9)
        of_one = (1 - tnr) * rate / max((1 - tnr) * rate + tpr * (1 - rate), 1e-9)
        p[mine] = np.where(prediction[mine] < 0, rate, np.where(prediction[mine] == 0, of_zero, of_one))
    return p
