"""Adjusted counts: the prevalence of errors, corrected by known rates of misclassification (Forman 2006)."""

from __future__ import annotations

import numpy as np

from factaudit.stats.undefined_values import divide_or_undefined


def adjust_counts(predicted_error_rate: np.ndarray, confusion: np.ndarray) -> np.ndarray:
    """Forman's adjusted counts with the error as the positive class: clip((p - FNR) / (TNR - FNR), 0, 1).

    predicted_error_rate: (...), p. confusion: (..., 2, 2), counts by [label, prediction] on the labelled sample that
    TNR and FNR come from. NaN where the correction is unidentifiable: no error or nothing else is labelled, or TNR <=
    FNR.

    Source: Forman 2006, "Quantifying trends accurately despite classifier error and class imbalance".

    >>> adjust_counts(np.array(0.3), np.array([[8, 2], [1, 9]])).round(4).item()  # TNR 0.8, FNR 0.1
    0.2857
    >>> adjust_counts(np.array(0.3), np.array([[5, 5], [5, 5]])).item()
    nan
    """
    errors, others = confusion[..., 0, :].sum(-1), confusion[..., 1, :].sum(-1)
    tnr, fnr = divide_or_undefined(confusion[..., 0, 0], errors), divide_or_undefined(confusion[..., 1, 0], others)
    # Compared as products of counts, which are exact: equal rates must not differ in the last bit.
    better = confusion[..., 0, 0] * others - confusion[..., 1, 0] * errors
    return np.clip(divide_or_undefined(predicted_error_rate - fnr, np.where(better > 0, tnr - fnr, 0)), 0, 1)
