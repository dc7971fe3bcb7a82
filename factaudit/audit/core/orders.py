"""The order of systems by their error rates: tests of two proportions, their power, and correlations over systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.pairs import fisher_limits, p_worse, soft_pairwise_accuracy, tau_limits
from factaudit.audit.core.rows import Row, number, ratio
from factaudit.errors import UsageError

#: An order in the names of counts: a's error rate is significantly lower than b's, neither, higher.
ORDERS = {-1: "lt", 0: "eq", 1: "gt"}
#: A pair counts as detectable where its labels would show a true difference this often.
POWER = 0.8
#: So many differences are looked at together for the least that labels would show.
_STEPS = 20

Correction = Literal["none", "holm"]


def proportion_test(errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray) -> np.ndarray:
    """Two-sided p-values of the pooled two-proportion z-test (statsmodels' `proportions_ztest`), elementwise.

    1 where both rates are 0 or both are 1 (there is no difference to test); NaN where an n is 0.
    """
    pooled = ratio(errors_a + errors_b, n_a + n_b)
    variance = pooled * (1 - pooled) * (ratio(1, n_a) + ratio(1, n_b))
    difference = np.abs(ratio(errors_a, n_a) - ratio(errors_b, n_b))
    z = np.where(difference == 0, 0.0, ratio(difference, np.sqrt(variance)))
    return np.where(np.isnan(difference), np.nan, 2 * ndtr(-z))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjusted p-values along the last axis (Holm 1979)."""
    order = np.argsort(p, axis=-1, kind="stable")
    factors = np.arange(p.shape[-1], 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(np.take_along_axis(p, order, -1) * factors, axis=-1), 1)
    out = np.empty_like(p)
    np.put_along_axis(out, order, adjusted, -1)
    return out


def power(
    rate: np.ndarray, difference: float | np.ndarray, n_a: np.ndarray, n_b: np.ndarray, alpha: float = 0.05
) -> np.ndarray:
    """How probably the two-sided pooled z-test finds a true ``difference`` between two error rates.

    Normal approximation (statsmodels' `power_proportions_2indep`), for rates ``difference`` apart around ``rate``, or
    beside it where that would leave [0, 1]. NaN where an n is 0.
    """
    low = np.clip(rate - difference / 2, 0, 1 - difference)
    high = low + difference
    middle = ratio(low * n_a + high * n_b, n_a + n_b)
    null = np.sqrt(middle * (1 - middle) * (ratio(1, n_a) + ratio(1, n_b)))
    true = np.sqrt(ratio(low * (1 - low), n_a) + ratio(high * (1 - high), n_b))
    critical = ndtri(1 - alpha / 2) * null
    return ndtr(ratio(difference - critical, true)) + ndtr(ratio(-difference - critical, true))


def kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's tau-b along the last axis (scipy's `kendalltau`); NaN where x or y is constant."""
    a, b = np.triu_indices(x.shape[-1], 1)
    first, second = np.sign(x[..., a] - x[..., b]), np.sign(y[..., a] - y[..., b])
    return ratio((first * second).sum(-1), np.sqrt(np.abs(first).sum(-1) * np.abs(second).sum(-1)))


def pearson_r(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r along the last axis (scipy's `pearsonr`); NaN where x or y is constant."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    first, second = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    # Asked of the values: the deviations of equal ones from their rounded mean need not be 0.
    varies = (np.ptp(x, axis=-1) > 0) & (np.ptp(y, axis=-1) > 0)
    scale = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    return np.clip(ratio((first * second).sum(-1), np.where(varies, scale, 0)), -1, 1)


def compare(counts: np.ndarray, alpha: float = 0.05, correction: Correction = "none") -> dict[str, np.ndarray]:
    """p_labelled, p_predicted, labelled_order and predicted_order (-1, 0, 1; NaN where undefined) of all pairs.

    counts: (..., S, 3, 3) per system, as in `factaudit.audit.core.counts`. Gives (..., S (S - 1) / 2), pairs a < b.
    The labelled order is that of all labels, whatever the evaluator scored.
    """
    found = {}
    for kind, (errors, n) in {"labelled": labelled_errors(counts), "predicted": predicted_errors(counts)}.items():
        found[f"p_{kind}"], found[f"{kind}_order"] = orders(errors, n, alpha, correction)
    return found


def orders(
    errors: np.ndarray, n: np.ndarray, alpha: float = 0.05, correction: Correction = "none"
) -> tuple[np.ndarray, np.ndarray]:
    """p-values and orders (-1: a has the lower error rate, 0: no significant difference, 1) of all pairs a < b.

    errors, n: (..., S) numbers of errors and of claims per system. Raises `UsageError` for an unknown correction.
    """
    if correction not in ("none", "holm"):
        raise UsageError(f"ranking: expected correction none or holm, found {correction!r}")
    a, b = np.triu_indices(n.shape[-1], 1)
    p = proportion_test(errors[..., a], n[..., a], errors[..., b], n[..., b])
    if correction == "holm":
        p = holm(p)
    rates = ratio(errors, n)
    order = np.where(p < alpha, np.sign(rates[..., a] - rates[..., b]), 0.0)
    return p, np.where(np.isnan(p), np.nan, order)


def labelled_errors(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., S) numbers of labelled errors, and of labels."""
    return counts[..., 0, :].sum(-1), counts[..., :2, :].sum((-1, -2))


def predicted_errors(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., S) numbers of predicted errors, and of predictions, among what is labelled and scored."""
    both = counts[..., :2, :2]
    return both[..., 0].sum(-1), both.sum((-1, -2))


_EACH = np.eye(9, dtype=np.int64).reshape(9, 3, 3)
#: int64 (9, 4): what a claim of each cell adds to the numbers of `labelled_errors` and of `predicted_errors`.
ADDS = np.stack([*labelled_errors(_EACH), *predicted_errors(_EACH)], axis=1)


def power_of_pairs(counts: np.ndarray, difference: float | np.ndarray, alpha: float) -> np.ndarray:
    """How probably the labels of each pair of systems would show a true difference."""
    errors, n = labelled_errors(counts)
    a, b = np.triu_indices(len(n), 1)
    return power(ratio(errors[a] + errors[b], n[a] + n[b]), difference, n[a], n[b], alpha)


def detectable_difference(counts: np.ndarray, alpha: float) -> float | None:
    """The least difference (in steps of half a point) that at least half of the pairs' labels would show."""
    if len(counts) < 2:
        return None
    for first in range(1, 200, _STEPS):
        differences = np.arange(first, min(first + _STEPS, 200)) / 200
        shown = (power_of_pairs(counts, differences[:, None], alpha) >= POWER).mean(-1) >= 0.5
        if shown.any():
            return float(differences[shown.argmax()])
    return 1.0


_BOUNDS = ("error_rate_min", "error_rate_max", "major_error_rate_min", "major_error_rate_max")


def error_bounds(
    certain: np.ndarray, labelled: np.ndarray, predicted: np.ndarray, alpha: float, correction: Correction
) -> Row:
    """What the shares of wrong orders could be, each pair on its own, had every labelled claim been scored.

    labelled, predicted: the orders of the pairs. The predicted one, from fewer claims than are labelled, may be.
    """
    if len(certain) < 2 or correction != "none":
        return dict.fromkeys(_BOUNDS)
    of_labelled = certain[:, :2]
    n = of_labelled.sum((-1, -2))
    a, b = np.triu_indices(len(n), 1)
    least, most = of_labelled[..., 0].sum(-1), (of_labelled[..., 0] + of_labelled[..., -1]).sum(-1)
    # z rises with a's errors and falls with b's, so the two corners hold every order in between.
    corners = []
    for first, second in ((least, most), (most, least)):
        p = proportion_test(first[a], n[a], second[b], n[b])
        corners.append(np.where(p < alpha, np.sign(first[a] / n[a] - second[b] / n[b]), 0.0))
    low, high = np.minimum(corners[0], predicted), np.maximum(corners[1], predicted)
    return {
        "error_rate_min": float(((labelled < low) | (labelled > high)).mean()),
        "error_rate_max": float(((low != labelled) | (high != labelled)).mean()),
        "major_error_rate_min": float(((labelled * low == -1) & (labelled * high == -1)).mean()),
        "major_error_rate_max": float(((labelled * low == -1) | (labelled * high == -1)).mean()),
    }


# --- the figures of one dataset's systems, counts (S, 3, 3) ---


def shares_of_pairs(labelled: np.ndarray, predicted: np.ndarray) -> Row:
    if not len(labelled):
        return dict.fromkeys(("error_rate", "major_error_rate", "orderable"))
    return {
        "error_rate": float((labelled != predicted).mean()),
        "major_error_rate": float((labelled * predicted == -1).mean()),
        "orderable": float((labelled != 0).mean()),
    }


def soft(counts: np.ndarray) -> Row:
    if len(counts) < 2:
        return dict.fromkeys(("soft_accuracy", "soft_accuracy_constant"))
    labelled, predicted = p_worse(*labelled_errors(counts)), p_worse(*predicted_errors(counts))
    return {
        "soft_accuracy": float(soft_pairwise_accuracy(labelled, predicted)),
        "soft_accuracy_constant": float(soft_pairwise_accuracy(labelled, np.full(len(labelled), 0.5))),
    }


def correlations(counts: np.ndarray, drawn: np.ndarray | None, min_systems: int, intervals: Intervals | None) -> Row:
    """Over S systems, counts (S, 3, 3); drawn: (B, S, 4), the numbers of `ADDS` in each replicate."""
    row: Row = {"kendall_tau": None, "pearson_r": None}
    if intervals is not None:
        row |= dict.fromkeys(f"{key}_{end}" for key in list(row) for end in ("low", "high"))
    if len(counts) < min_systems:
        return row
    x, y = ratio(*labelled_errors(counts)), ratio(*predicted_errors(counts))
    tau, r = number(kendall_tau(x, y)), number(pearson_r(x, y))
    row |= {"kendall_tau": tau, "pearson_r": r}
    if intervals is None or drawn is None or tau is None or r is None or np.isnan(drawn).any():
        return row
    found = [ratio(drawn[..., at], drawn[..., at + 1]) for at in (0, 2)]
    whole = ~np.isnan(found).any((0, 2))  # a replicate without a claim of one system says nothing of its order
    low, high = tau_limits(found[0][whole], found[1][whole], intervals.confidence)
    row |= {"kendall_tau_low": min(low, tau), "kendall_tau_high": max(high, tau)}
    ends = fisher_limits(np.array(r), np.array(len(counts)), intervals.confidence)
    return row | {"pearson_r_low": number(ends[0]), "pearson_r_high": number(ends[1])}


def confusion(counts: np.ndarray, labelled: np.ndarray, predicted: np.ndarray) -> Row:
    rates = ratio(*labelled_errors(counts))
    a, b = np.triu_indices(len(counts), 1)
    turn = np.where(rates[a] > rates[b], -1, 1)
    return {
        f"labelled_{ORDERS[true]}_predicted_{ORDERS[said]}": int(
            ((labelled * turn == true) & (predicted * turn == said)).sum()
        )
        for true in ORDERS
        for said in ORDERS
    }


def pair_counts(rows: Sequence[Row]) -> dict[str, int]:
    """Numbers of pairs: all, wrong, turned round, wrong for a constant, whose labels would show 10 points."""

    def total(key: str, other: str = "") -> int:
        values = [(row[key] if row.get(key) is not None else row.get(other)) or 0 for row in rows]
        return sum(round(value * row["n_pairs"]) for value, row in zip(values, rows, strict=True))

    return {
        "pairs": sum(row["n_pairs"] for row in rows),
        "wrong": total("error_rate"),
        "wrong_min": total("error_rate_min", "error_rate"),
        "wrong_max": total("error_rate_max", "error_rate"),
        "major": total("major_error_rate"),
        "major_min": total("major_error_rate_min", "major_error_rate"),
        "constant": total("orderable"),
        "able": total("detectable_10"),
    }
