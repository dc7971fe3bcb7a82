"""Numbers of claims from printed rates: the paper prints none, but a rate of few claims says how few they are.

A system of n claims has rates that are whole numbers of claims divided by n, and biases that are the differences of two
such. Rounded to one decimal they still rule out most n. The smallest n that fits all printed rates and biases of a
system is taken for its number of claims; for TofuEval that gives the numbers that its own files have. Where RAGTruth's
orders of systems do not come out with these (MARCO and Yelp, by claims), as few systems as possible get another n that
fits: which shows that the tables *can* agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product

import numpy as np
import pandas as pd

from factaudit.audit.core.calibration import adjusted_counts
from factaudit.audit.core.orders import kendall_tau, orders, pearson_r
from factaudit.audit.ranking import SYMBOLS
from factaudit.engines.verify_with_caution.printed import CV, LABELLED, MACRO, WHOLE, Printed, Unit
from factaudit.tables.counts import validate_counts

#: The evaluator whose adjustment Tables 1 and 31 show, and what they show of it.
CALIBRATED, KINDS = "Bespoke-7B", ("mean_abs_bias", "worst_abs_bias")
#: The systems of RAGTruth that §3.4 calls small and large.
SMALL_AND_LARGE = {
    "small": ["llama-2-7b-chat", "mistral-7B-instruct"],
    "large": ["gpt-3.5-turbo-0613", "gpt-4-0613"],
}
#: Table 28 compares systems with more labelled errors than this (the text does not say so; 10 is out, 11 is in).
FEW_ERRORS = 10
#: The greatest number of claims that is tried, the same where several n fit, and how many of these are tried then: for
#: one or two systems that get another n than the smallest, and for three.
MOST, MOST_CHANGED = 1500, 3000
MAX_CHANGED, FITS, FITS_OF_MANY = 3, 40, 14
#: Half a unit of the last digit of a printed rate, of a correlation, and what floating point may add to it.
_HALF, _HALF_CORRELATION, _EPSILON = 0.05, 0.005, 1e-6


@dataclass(frozen=True)
class Fit:
    """Numbers of claims of one system that fit: n of them, and errors by evaluator, the labels' among them."""

    n: int
    errors: dict[str, int]


def fits(unit: Unit, most: int = MOST) -> Iterator[Fit]:
    """All n up to ``most`` that fit the printed rates and biases, from the smallest on, with the errors that they mean.

    Where an n allows several numbers of errors (from about 1,000 claims on), the ones nearest to the printed rates.
    """
    n = np.arange(1, most + 1)
    rates = np.array(list(unit.rates.values()))[:, None]
    low = np.ceil((rates - _HALF) * n / 100 - _EPSILON)
    high = np.floor((rates + _HALF) * n / 100 + _EPSILON)
    for at in np.flatnonzero((low <= high).all(0)):
        errors = _errors(unit, int(n[at]), low[:, at].astype(int), high[:, at].astype(int))
        if errors is not None:
            yield Fit(int(n[at]), errors)


def _smallest(unit: Unit) -> Fit:
    """The smallest n of which all rates are whole numbers, whatever the biases."""
    for n in range(1, MOST + 1):
        errors = {name: round(rate * n / 100) for name, rate in unit.rates.items()}
        if all(abs(100 * errors[name] / n - rate) <= _HALF + _EPSILON for name, rate in unit.rates.items()):
            return Fit(n, errors)
    raise ValueError(f"no number of claims up to {MOST} fits the rates of {unit.dataset}")


def _errors(unit: Unit, n: int, low: np.ndarray, high: np.ndarray) -> dict[str, int] | None:
    names = list(unit.rates)
    ranges = {name: range(first, last + 1) for name, first, last in zip(names, low, high, strict=True)}

    def nearest(name: str, options: Sequence[int]) -> int:
        return min(options, key=lambda errors: (abs(100 * errors / n - unit.rates[name]), errors))

    for labelled in sorted(ranges[LABELLED], key=lambda errors: abs(100 * errors / n - unit.rates[LABELLED])):
        found = {LABELLED: labelled}
        for name in unit.evaluators:
            bias = unit.biases[name]
            fit = [e for e in ranges[name] if abs(100 * (e - labelled) / n - bias) <= _HALF + _EPSILON]
            if not fit:
                break
            found[name] = nearest(name, fit)
        else:
            return found
    return None


@dataclass(frozen=True)
class Recovered:
    """The units of Tables 8 to 29 with a fit each; ``chosen``: the datasets where not all are the smallest."""

    fits: dict[tuple[str, str, str], Fit]
    chosen: frozenset[str]

    def counts(self, found: Mapping[tuple[str, str], int] | None = None) -> pd.DataFrame:
        """A validated counts table; ``found``: by dataset and system the labelled errors that `CALIBRATED` found."""
        rows = []
        for (dataset, level, system), fit in self.fits.items():
            for evaluator, errors in fit.errors.items():
                if evaluator == LABELLED:
                    continue
                known = evaluator == CALIBRATED and level == "claim"
                rows.append(
                    {
                        "dataset": dataset,
                        "level": level,
                        "system": None if system == WHOLE else system,
                        "evaluator": evaluator,
                        "n": fit.n,
                        "labelled_errors": fit.errors[LABELLED],
                        "predicted_errors": errors,
                        "errors_found": (found or {}).get((dataset, system)) if known else None,
                    }
                )
        return validate_counts(pd.DataFrame(rows))


def recover(printed: Printed) -> Recovered:
    """A fit for every unit."""
    units = printed.units()
    found = {(unit.dataset, unit.level, unit.system): next(fits(unit)) for unit in units}
    chosen = set()
    for dataset in dict.fromkeys(unit.dataset for unit in units if unit.table == 27):
        mine = [unit for unit in units if unit.table == 27 and unit.dataset == dataset]
        options = [list(islice(fits(unit, MOST_CHANGED), FITS)) for unit in mine]
        picks = _in_order(printed, dataset, [unit.system for unit in mine], options)
        if any(picks):
            chosen.add(dataset)
        for unit, fit, pick in zip(mine, options, picks, strict=True):
            found[dataset, unit.level, unit.system] = fit[pick]
    return Recovered(found, frozenset(chosen))


def _in_order(
    printed: Printed, dataset: str, systems: Sequence[str], options: Sequence[Sequence[Fit]]
) -> tuple[int, ...]:
    """Which fit of each system, so that the printed orders come out: the fewest that are not the smallest, of these the
    one that misses the fewest printed biases, then the one of least total n; all the smallest where none does."""
    places, names = range(len(systems)), list(options[0][0].errors)
    for changed in range(MAX_CHANGED + 1):
        most = FITS if changed < MAX_CHANGED else FITS_OF_MANY
        best: tuple[int, int, tuple[int, ...]] | None = None
        for which in combinations(places, changed):
            ranges = [range(1, min(most, len(options[at]))) if at in which else range(1) for at in places]
            picks = np.array(list(product(*ranges)))
            n = np.stack([np.array([fit.n for fit in options[at]])[picks[:, at]] for at in places], axis=1)
            errors = np.stack(
                [np.array([list(fit.errors.values()) for fit in options[at]])[picks[:, at]] for at in places], axis=1
            )
            good = _comes_out(printed, dataset, names, n, errors)
            missed = _missed_biases(printed, dataset, systems, names, n, errors)
            for at in np.flatnonzero(good):
                candidate = (int(missed[at]), int(n[at].sum()), tuple(map(int, picks[at])))
                best = candidate if best is None else min(best, candidate)
        if best is not None:
            return best[-1]
    return tuple(0 for _ in places)


def _comes_out(printed: Printed, dataset: str, names: Sequence[str], n: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """bool (b,): with which numbers the correlations of Table 6 and the pairs of Table 28 are the printed ones.

    n: (b, S) claims; errors: (b, S, E), by the labels first.
    """
    rates = errors / n[..., None]
    good = np.ones(len(n), dtype=bool)
    for at, name in enumerate(names[1:], start=1):
        for quantity, correlation in (("kendall_tau", kendall_tau), ("pearson_r", pearson_r)):
            wanted = printed.value(6, dataset, None, name, quantity)
            good &= np.abs(correlation(rates[..., 0], rates[..., at]) - wanted) <= _HALF_CORRELATION + _EPSILON
    a, b = np.triu_indices(n.shape[1], 1)
    compared = (errors[:, a, 0] > FEW_ERRORS) & (errors[:, b, 0] > FEW_ERRORS)
    # The first of a pair is the one with the lower labelled rate.
    flip = np.where(rates[:, a, 0] > rates[:, b, 0], -1, 1)
    true = orders(errors[..., 0], n)[1] * flip
    for at, name in enumerate(names[1:], start=1):
        said = orders(errors[..., at], n)[1] * flip
        for one, other in product((-1, 0), (-1, 0, 1)):
            wanted = printed.value(28, dataset, None, name, f"pairs:labelled{SYMBOLS[one]},predicted{SYMBOLS[other]}")
            good &= (compared & (true == one) & (said == other)).sum(-1) == wanted
    return good


def _missed_biases(
    printed: Printed, dataset: str, systems: Sequence[str], names: Sequence[str], n: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """int (b,): how many of the biases without adjustment of Tables 31 and 1 are not the printed ones."""
    bias = 100 * np.abs(errors[..., names.index(CALIBRATED)] - errors[..., 0]) / n
    missed = np.zeros(len(n), dtype=np.int64)
    others = [np.delete(bias, at, axis=1) for at in range(len(systems))]
    lefts = ([each.mean(axis=1) for each in others], [each.max(axis=1) for each in others])
    for kind, left in zip(KINDS, lefts, strict=True):
        wanted = [printed.value(31, dataset, system, CALIBRATED, f"{kind}:none") for system in systems]
        wanted.append(printed.value(1, dataset, CV, CALIBRATED, f"{kind}:none"))
        for value, one in zip([*left, np.mean(left, axis=0)], wanted, strict=True):
            missed += np.abs(value - one) > _HALF + _EPSILON
    return missed


def balanced(printed: Printed) -> pd.DataFrame:
    """A validated counts table of Tables 4 and 5: by dataset, the smallest numbers of errors and of others of which all
    printed FPR and all printed FNR are whole numbers."""
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for cell in printed.of(4, 5):
        if cell.dataset != MACRO:
            rates.setdefault(cell.dataset, {}).setdefault(cell.quantity, {})[cell.evaluator] = cell.value
    rows = []
    for dataset, by_quantity in rates.items():
        # A share with one decimal is a whole number of a thousand, so that there always is one.
        units = {q: Unit(0, dataset, "claim", WHOLE, {LABELLED: 0.0, **each}, {}) for q, each in by_quantity.items()}
        fit = {quantity: _smallest(unit) for quantity, unit in units.items()}
        for evaluator in by_quantity["fpr"]:
            errors, missed = fit["fpr"].n, fit["fpr"].errors[evaluator]
            rows.append(
                {
                    "dataset": dataset,
                    "evaluator": evaluator,
                    "n": errors + fit["fnr"].n,
                    "labelled_errors": errors,
                    "predicted_errors": errors - missed + fit["fnr"].errors[evaluator],
                    "errors_found": errors - missed,
                }
            )
    return validate_counts(pd.DataFrame(rows))


def errors_found(printed: Printed, recovered: Recovered) -> dict[tuple[str, str], int]:
    """How many labelled errors Bespoke-7B found, by dataset and system of Table 31: the only number of the 2 x 2 table
    that the rates leave open, so that both adjusted biases that the system's calibration gives are nearest the printed.
    """
    found = {}
    for dataset in dict.fromkeys(cell.dataset for cell in printed.of(31)):
        mine = {key[2]: fit for key, fit in recovered.fits.items() if key[:2] == (dataset, "claim")}
        for system, fit in mine.items():
            wanted = [printed.value(31, dataset, system, CALIBRATED, f"{kind}:adjusted_counts") for kind in KINDS]
            labelled, predicted = fit.errors[LABELLED], fit.errors[CALIBRATED]
            possible = range(max(0, labelled + predicted - fit.n), min(labelled, predicted) + 1)
            left = 100 * np.array([adjusted(mine, system, errors) for errors in possible])
            apart = np.abs(left - wanted).max(axis=1)
            found[dataset, system] = possible[int(np.where(np.isnan(apart), np.inf, apart).argmin())]
    return found


def adjusted(fits: Mapping[str, Fit], system: str, errors: int) -> tuple[float, float]:
    """Mean and worst |bias| of adjusted counts over the other systems, where ``system`` calibrates and Bespoke-7B found
    so many of its labelled errors."""
    fit = fits[system]
    labelled, predicted = fit.errors[LABELLED], fit.errors[CALIBRATED]
    table = np.array([[errors, labelled - errors], [predicted - errors, fit.n - labelled - predicted + errors]])
    others = [each for name, each in fits.items() if name != system]
    rates = np.array([each.errors[CALIBRATED] / each.n for each in others])
    true = np.array([each.errors[LABELLED] / each.n for each in others])
    left = np.abs(adjusted_counts(rates, table, refuse=False) - true)
    return float(left.mean()), float(left.max())
