"""Does an evaluator order systems as the labels do? (VC §3.5, Tables 6, 7, 12, 15, 22, 25, 28)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from factaudit.audit.core import counts as nine
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.rows import Row, counted, number, ratio, reasons, without_interval
from factaudit.audit.quantification import by_system
from factaudit.errors import UsageError

Correction = Literal["none", "holm"]

#: An order as its symbol: system_a's error rate is significantly lower than system_b's, neither, higher.
SYMBOLS = {-1: "<", 0: "=", 1: ">"}
_NAMES = {-1: "lt", 0: "eq", 1: "gt"}
#: A pair counts as detectable where its labels would show a true difference this often.
POWER = 0.8
#: The true differences between two error rates that `ranking` asks the data to show, in points.
POINTS = (5, 10)


def ranking(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    correction: Correction = "none",
    intervals: Intervals | None = None,
) -> list[Row]:
    """How well each evaluator orders the systems of each dataset: a summary of `ranking_pairs`, with correlations.

    A row per dataset, level and evaluator: n_systems and n_pairs (with labelled and scored claims), n, n_unscored,
    error_rate and major_error_rate (shares of the pairs), kendall_tau (tau-b) and pearson_r over the systems' error
    rates, the 3 x 3 confusion of orders as ``labelled_lt_predicted_gt`` and so on (numbers of pairs), and detectable_5
    and detectable_10: the share of pairs with a power of at least 80 % (`power`) for a difference of 5 and 10 points.

    With intervals: ``_low`` and ``_high`` of error_rate, major_error_rate, kendall_tau and pearson_r. error_rate and
    major_error_rate have ``_min`` and ``_max`` (uncorrected tests only): no way to score what is unscored leads outside
    of them, though the worst cases of two pairs need not go together. The correlations have no bounds.
    """
    rows: list[Row] = []
    for case in _cases(judged, levels, intervals):
        counts = case.counts[case.used]
        row: Row = {"dataset": case.dataset, "level": case.level, "evaluator": case.evaluator}
        orders = compare(counts, alpha, correction)
        labelled, predicted = orders["labelled_order"], orders["predicted_order"]
        row |= {"n_systems": len(counts), "n_pairs": len(labelled)}
        row |= {name: int(values.sum()) for name, values in nine.sizes(case.counts).items() if name != "n"}
        row["n"] = int(counts[:, :2, :2].sum())
        row |= {name: number(value) for name, value in _figures(counts, alpha, correction).items()}
        row |= _bounds(case.counts, alpha) if correction == "none" else dict.fromkeys(_BOUNDS)
        if intervals is not None and case.drawn is not None:
            drawn = _figures(case.drawn[:, case.used], alpha, correction)
            row |= {name: number(value) for name, value in low_high(intervals, drawn).items()}
        for points in POINTS:
            powers = _power(counts, points / 100, alpha)
            row[f"detectable_{points}"] = float((powers >= POWER).mean()) if len(powers) else None
        row |= {
            f"labelled_{_NAMES[true]}_predicted_{_NAMES[said]}": int(((labelled == true) & (predicted == said)).sum())
            for true in _NAMES
            for said in _NAMES
        }
        rows.append(row | {"reason": _reason(case, row, correction)})
    rows.sort(key=lambda row: row["dataset"])
    return rows


def ranking_pairs(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    correction: Correction = "none",
    intervals: Intervals | None = None,
) -> list[Row]:
    """The order of each pair of systems by a two-proportion z-test, by the labels and by the predictions.

    A row per dataset, level, pair and evaluator: labelled_order and predicted_order (``<``: system_a has the lower
    error rate; ``=``: no difference at ``alpha``), p_labelled and p_predicted (Holm: adjusted for the pairs of the
    dataset, level and evaluator), error (the orders differ), major_error (both significant, and opposite), n_a, n_b,
    the four error rates, power_5 and power_10 (see `power`). Nothing to put an interval on.
    """
    rows: list[Row] = []
    for case in _cases(judged, levels, None):
        n, labelled, predicted = _errors(case.counts)
        orders = compare(case.counts, alpha, correction)
        powers = {points: _power(case.counts, points / 100, alpha) for points in POINTS}
        rates = {"labelled_error_rate": ratio(labelled, n), "predicted_error_rate": ratio(predicted, n)}
        unscored = nine.sizes(case.counts)["n_unscored"]
        for at, (a, b) in enumerate(zip(*np.triu_indices(len(n), 1), strict=True)):
            row: Row = {"dataset": case.dataset, "level": case.level}
            row |= {"system_a": case.systems[a], "system_b": case.systems[b], "evaluator": case.evaluator}
            row |= {"n_a": int(n[a]), "n_b": int(n[b]), "n_unscored": int(unscored[a] + unscored[b])}
            for key, values in rates.items():
                row |= {f"{key}_a": number(values[a]), f"{key}_b": number(values[b])}
            row |= {f"p_{kind}": number(orders[f"p_{kind}"][at]) for kind in ("labelled", "predicted")}
            true, said = orders["labelled_order"][at], orders["predicted_order"][at]
            known = not np.isnan(true)
            row |= {
                "labelled_order": SYMBOLS[int(true)] if known else None,
                "predicted_order": SYMBOLS[int(said)] if known else None,
                "error": bool(true != said) if known else None,
                "major_error": bool(true * said == -1) if known else None,
            }
            row |= {f"power_{points}": number(values[at]) for points, values in powers.items()}
            without = [case.systems[s] for s in (a, b) if not n[s]]
            rows.append(
                row | {"reason": f"no labelled and scored {case.level}: {', '.join(without)}" if without else None}
            )
    rows.sort(key=lambda row: row["dataset"])
    return rows


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


def power(rate: np.ndarray, difference: float, n_a: np.ndarray, n_b: np.ndarray, alpha: float = 0.05) -> np.ndarray:
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
    """
    n, labelled, predicted = _errors(counts)
    found = {}
    for kind, errors in (("labelled", labelled), ("predicted", predicted)):
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


@dataclass(frozen=True)
class _Case:
    """The systems of one dataset at one level, as one evaluator sees them; counts (S, 3, 3), drawn (B, S, 3, 3)."""

    dataset: str
    level: str
    evaluator: str
    systems: list[str]
    counts: np.ndarray
    drawn: np.ndarray | None

    @property
    def used(self) -> np.ndarray:
        """bool (S,): the systems with labelled and scored claims."""
        return ~nine.unlabelled(self.counts)


def _cases(judged: Judged, levels: Sequence[str], intervals: Intervals | None) -> Iterator[_Case]:
    for level in dict.fromkeys(levels):
        units, systems = judged.at(level), by_system(judged, level)
        places: dict[str, list[int]] = {dataset: [] for dataset in judged.datasets[1]}
        for place, key in enumerate(systems.keys):
            places[key["dataset"]].append(place)
        for at, evaluator in enumerate(judged.evaluators):
            counts = nine.count(systems.codes, len(systems.keys), units.label, units.prediction[at])
            drawn = None
            if intervals is not None:
                labelled_only = np.zeros(len(counts), dtype=bool)
                drawn = nine.replicates(units, at, systems.codes, labelled_only, intervals)
            for dataset, inside in places.items():
                names = [systems.keys[place]["system"] for place in inside]
                yield _Case(
                    dataset, level, evaluator, names, counts[inside], None if drawn is None else drawn[:, inside]
                )


def _errors(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(..., S) numbers of labelled and scored claims, of labelled and of predicted errors among them."""
    both = counts[..., :2, :2]
    return both.sum((-1, -2)), both[..., 0, :].sum(-1), both[..., 0].sum(-1)


def _figures(counts: np.ndarray, alpha: float, correction: Correction) -> dict[str, np.ndarray]:
    """(..., S, 3, 3) -> (...): NaN where undefined, also where one system has no claim."""
    found = compare(counts, alpha, correction)
    true, said = found["labelled_order"], found["predicted_order"]
    n, labelled, predicted = _errors(counts)
    x, y = ratio(labelled, n), ratio(predicted, n)
    undefined = np.isnan(true).any(-1)
    pairs = np.where(undefined, 0, true.shape[-1])
    return {
        "error_rate": ratio((true != said).sum(-1), pairs),
        "major_error_rate": ratio((true * said == -1).sum(-1), pairs),
        "kendall_tau": kendall_tau(x, y),
        "pearson_r": pearson_r(x, y),
    }


_BOUNDS = ("error_rate_min", "error_rate_max", "major_error_rate_min", "major_error_rate_max")


def _bounds(counts: np.ndarray, alpha: float) -> Row:
    """What the shares of wrong orders could be, each pair on its own, had every labelled claim been scored."""
    labelled = counts[:, :2]
    n = labelled.sum((-1, -2))
    labelled, n = labelled[n > 0], n[n > 0]
    if len(n) < 2:
        return dict.fromkeys(_BOUNDS)
    a, b = np.triu_indices(len(n), 1)
    least, most = labelled[..., 0].sum(-1), (labelled[..., 0] + labelled[..., -1]).sum(-1)
    _, true = orders(labelled[:, 0].sum(-1), n, alpha)
    # z rises with a's errors and falls with b's, so the two corners hold every order in between.
    corners = []
    for first, second in ((least, most), (most, least)):
        p = proportion_test(first[a], n[a], second[b], n[b])
        corners.append(np.where(p < alpha, np.sign(first[a] / n[a] - second[b] / n[b]), 0.0))
    low, high = corners
    return {
        "error_rate_min": float(((true < low) | (true > high)).mean()),
        "error_rate_max": float(((low != true) | (high != true)).mean()),
        "major_error_rate_min": float(((true * low == -1) & (true * high == -1)).mean()),
        "major_error_rate_max": float(((true * low == -1) | (true * high == -1)).mean()),
    }


def _power(counts: np.ndarray, difference: float, alpha: float) -> np.ndarray:
    n, labelled, _ = _errors(counts)
    a, b = np.triu_indices(len(n), 1)
    return power(ratio(labelled[a] + labelled[b], n[a] + n[b]), difference, n[a], n[b], alpha)


def _reason(case: _Case, row: Row, correction: Correction) -> str | None:
    if row["n_systems"] < 2:
        return f"{counted(row['n_systems'], 'system')} with labelled and scored {case.level}s, of {len(case.systems)}"
    without = [system for system, used in zip(case.systems, case.used, strict=True) if not used]
    return reasons(
        [
            f"no labelled and scored {case.level}: {', '.join(without)}" if without else "",
            "all systems have the same error rate" if row["kendall_tau"] is None else "",
            "no bounds with corrected tests" if correction != "none" else "",
            without_interval(row),
        ]
    )
