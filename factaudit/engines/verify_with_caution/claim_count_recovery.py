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

from factaudit.arrays.system_rankings import order_system_rankings
from factaudit.audit.ranking_pairs import ORDER_SYMBOLS
from factaudit.engines.verify_with_caution.printed_tables import (
    ALL_SYSTEMS,
    CROSS_VALIDATION,
    LABELS_EVALUATOR,
    MACRO_MEAN,
    PrintedSystemRates,
    PrintedTables,
)
from factaudit.stats.adjusted_counts import adjust_counts
from factaudit.stats.rank_correlation import kendall_tau, pearson_r
from factaudit.tables.counts_table import validate_counts

#: The evaluator whose adjustment Tables 1 and 31 show, and what they show of it.
CALIBRATED_EVALUATOR, BIAS_KINDS = "Bespoke-7B", ("mean_abs_bias", "worst_abs_bias")
#: The systems of RAGTruth that §3.4 calls small and large.
SYSTEM_SIZE_GROUPS = {
    "small": ["llama-2-7b-chat", "mistral-7B-instruct"],
    "large": ["gpt-3.5-turbo-0613", "gpt-4-0613"],
}
#: Table 28 compares systems with more labelled errors than this (the text does not say so; 10 is out, 11 is in).
MAX_FEW_ERRORS = 10
#: The greatest number of claims that is tried, the same where several n fit, and how many of these are tried then: for
#: one or two systems that get another n than the smallest, and for three.
MAX_CLAIMS, MAX_CLAIMS_OF_CHANGED = 1500, 3000
MAX_CHANGED_SYSTEMS, MAX_FITS, MAX_FITS_OF_THREE_SYSTEMS = 3, 40, 14
#: Half a unit of the last digit of a printed rate, of a correlation, and what floating point may add to it.
_RATE_ROUNDING, _CORRELATION_ROUNDING, _EPSILON = 0.05, 0.005, 1e-6


@dataclass(frozen=True)
class ClaimCountFit:
    """Numbers of claims of one system that fit: n of them, and errors by evaluator, the labels' among them."""

    n: int
    errors: dict[str, int]


def find_claim_count_fits(system_rates: PrintedSystemRates, max_claims: int = MAX_CLAIMS) -> Iterator[ClaimCountFit]:
    """All n up to ``max_claims`` that fit the printed rates and biases, from the smallest on, with the errors that they
    mean.

    Where an n allows several numbers of errors (from about 1,000 claims on), the ones nearest to the printed rates.
    """
    n = np.arange(1, max_claims + 1)
    rates = np.array(list(system_rates.rates.values()))[:, None]
    low = np.ceil((rates - _RATE_ROUNDING) * n / 100 - _EPSILON)
    high = np.floor((rates + _RATE_ROUNDING) * n / 100 + _EPSILON)
    for at in np.flatnonzero((low <= high).all(0)):
        errors = _fit_recovered_error_counts(system_rates, int(n[at]), low[:, at].astype(int), high[:, at].astype(int))
        if errors is not None:
            yield ClaimCountFit(int(n[at]), errors)


def _find_smallest_claim_count_fit(system_rates: PrintedSystemRates) -> ClaimCountFit:
    """The smallest n of which all rates are whole numbers, whatever the biases."""
    for n in range(1, MAX_CLAIMS + 1):
        errors = {name: round(rate * n / 100) for name, rate in system_rates.rates.items()}
        if all(
            abs(100 * errors[name] / n - rate) <= _RATE_ROUNDING + _EPSILON for name, rate in system_rates.rates.items()
        ):
            return ClaimCountFit(n, errors)
    raise ValueError(f"no number of claims up to {MAX_CLAIMS} fits the rates of {system_rates.dataset}")


def _fit_recovered_error_counts(
    system_rates: PrintedSystemRates, n: int, low: np.ndarray, high: np.ndarray
) -> dict[str, int] | None:
    names = list(system_rates.rates)
    ranges = {name: range(first, last + 1) for name, first, last in zip(names, low, high, strict=True)}

    def nearest(name: str, options: Sequence[int]) -> int:
        return min(options, key=lambda errors: (abs(100 * errors / n - system_rates.rates[name]), errors))

    for labelled in sorted(
        ranges[LABELS_EVALUATOR], key=lambda errors: abs(100 * errors / n - system_rates.rates[LABELS_EVALUATOR])
    ):
        found = {LABELS_EVALUATOR: labelled}
        for name in system_rates.evaluators:
            bias = system_rates.biases[name]
            fit = [e for e in ranges[name] if abs(100 * (e - labelled) / n - bias) <= _RATE_ROUNDING + _EPSILON]
            if not fit:
                break
            found[name] = nearest(name, fit)
        else:
            return found
    return None


@dataclass(frozen=True)
class RecoveredClaimCounts:
    """The rows of Tables 8 to 29 with a fit each.

    adapted_datasets: those where not all fits are the smallest.
    """

    fits: dict[tuple[str, str, str], ClaimCountFit]
    adapted_datasets: frozenset[str]

    def select_claim_fits(self, dataset: str) -> dict[str, ClaimCountFit]:
        """The fits by claims of a data set, by system."""
        return {key[2]: fit for key, fit in self.fits.items() if key[:2] == (dataset, "claim")}

    def build_counts_table(self, found_errors: Mapping[tuple[str, str], int] | None = None) -> pd.DataFrame:
        """A validated counts table.

        found_errors: by dataset and system how many labelled errors the `CALIBRATED_EVALUATOR` found.
        """
        rows = []
        for (dataset, level, system), fit in self.fits.items():
            for evaluator, errors in fit.errors.items():
                if evaluator == LABELS_EVALUATOR:
                    continue
                known = evaluator == CALIBRATED_EVALUATOR and level == "claim"
                rows.append(
                    {
                        "dataset": dataset,
                        "level": level,
                        "system": None if system == ALL_SYSTEMS else system,
                        "evaluator": evaluator,
                        "n": fit.n,
                        "labelled_errors": fit.errors[LABELS_EVALUATOR],
                        "predicted_errors": errors,
                        "errors_found": (found_errors or {}).get((dataset, system)) if known else None,
                    }
                )
        return validate_counts(pd.DataFrame(rows))


def recover_claim_counts(printed: PrintedTables) -> RecoveredClaimCounts:
    """Find the numbers of claims behind all printed rates."""
    units = printed.list_system_rates()
    found = {(unit.dataset, unit.level, unit.system): next(find_claim_count_fits(unit)) for unit in units}
    chosen = set()
    for dataset in dict.fromkeys(unit.dataset for unit in units if unit.table == 27):
        mine = [unit for unit in units if unit.table == 27 and unit.dataset == dataset]
        options = [list(islice(find_claim_count_fits(unit, MAX_CLAIMS_OF_CHANGED), MAX_FITS)) for unit in mine]
        picks = _choose_fits_by_printed_orders(printed, dataset, [unit.system for unit in mine], options)
        if any(picks):
            chosen.add(dataset)
        for unit, fit, pick in zip(mine, options, picks, strict=True):
            found[dataset, unit.level, unit.system] = fit[pick]
    return RecoveredClaimCounts(found, frozenset(chosen))


def _choose_fits_by_printed_orders(
    printed: PrintedTables, dataset: str, systems: Sequence[str], options: Sequence[Sequence[ClaimCountFit]]
) -> tuple[int, ...]:
    """Which fit of each system gives the printed orders; all the smallest where none does.

    Of several: the fewest that are not the smallest, then the fewest missed biases, then the least total n.
    """
    places, names = range(len(systems)), list(options[0][0].errors)
    for changed in range(MAX_CHANGED_SYSTEMS + 1):
        most = MAX_FITS if changed < MAX_CHANGED_SYSTEMS else MAX_FITS_OF_THREE_SYSTEMS
        best: tuple[int, int, tuple[int, ...]] | None = None
        for which in combinations(places, changed):
            ranges = [range(1, min(most, len(options[at]))) if at in which else range(1) for at in places]
            picks = np.array(list(product(*ranges)))
            n = np.stack([np.array([fit.n for fit in options[at]])[picks[:, at]] for at in places], axis=1)
            errors = np.stack(
                [np.array([list(fit.errors.values()) for fit in options[at]])[picks[:, at]] for at in places], axis=1
            )
            good = _find_counts_matching_printed_orders(printed, dataset, names, n, errors)
            missed = _count_mismatches_with_printed_biases(printed, dataset, systems, names, n, errors)
            for at in np.flatnonzero(good):
                candidate = (int(missed[at]), int(n[at].sum()), tuple(map(int, picks[at])))
                best = candidate if best is None else min(best, candidate)
        if best is not None:
            return best[-1]
    return tuple(0 for _ in places)


def _find_counts_matching_printed_orders(
    printed: PrintedTables, dataset: str, names: Sequence[str], n: np.ndarray, errors: np.ndarray
) -> np.ndarray:
    """bool (b,): with which numbers the correlations of Table 6 and the pairs of Table 28 are the printed ones.

    n: (b, S) claims; errors: (b, S, E), by the labels first.
    """
    rates = errors / n[..., None]
    good = np.ones(len(n), dtype=bool)
    for at, name in enumerate(names[1:], start=1):
        for quantity, correlation in (("kendall_tau", kendall_tau), ("pearson_r", pearson_r)):
            wanted = printed.get_value(6, dataset, None, name, quantity)
            good &= np.abs(correlation(rates[..., 0], rates[..., at]) - wanted) <= _CORRELATION_ROUNDING + _EPSILON
    a, b = np.triu_indices(n.shape[1], 1)
    compared = (errors[:, a, 0] > MAX_FEW_ERRORS) & (errors[:, b, 0] > MAX_FEW_ERRORS)
    # The first of a pair is the one with the lower labelled rate.
    flip = np.where(rates[:, a, 0] > rates[:, b, 0], -1, 1)
    true = order_system_rankings(errors[..., 0], n)[1] * flip
    for at, name in enumerate(names[1:], start=1):
        said = order_system_rankings(errors[..., at], n)[1] * flip
        for one, other in product((-1, 0), (-1, 0, 1)):
            quantity = f"pairs:labelled{ORDER_SYMBOLS[one]},predicted{ORDER_SYMBOLS[other]}"
            wanted = printed.get_value(28, dataset, None, name, quantity)
            good &= (compared & (true == one) & (said == other)).sum(-1) == wanted
    return good


def _count_mismatches_with_printed_biases(
    printed: PrintedTables,
    dataset: str,
    systems: Sequence[str],
    names: Sequence[str],
    n: np.ndarray,
    errors: np.ndarray,
) -> np.ndarray:
    """int (b,): how many of the biases without adjustment of Tables 31 and 1 are not the printed ones."""
    bias = 100 * np.abs(errors[..., names.index(CALIBRATED_EVALUATOR)] - errors[..., 0]) / n
    missed = np.zeros(len(n), dtype=np.int64)
    others = [np.delete(bias, at, axis=1) for at in range(len(systems))]
    lefts = ([each.mean(axis=1) for each in others], [each.max(axis=1) for each in others])
    for kind, left in zip(BIAS_KINDS, lefts, strict=True):
        wanted = [printed.get_value(31, dataset, system, CALIBRATED_EVALUATOR, f"{kind}:none") for system in systems]
        wanted.append(printed.get_value(1, dataset, CROSS_VALIDATION, CALIBRATED_EVALUATOR, f"{kind}:none"))
        for value, one in zip([*left, np.mean(left, axis=0)], wanted, strict=True):
            missed += np.abs(value - one) > _RATE_ROUNDING + _EPSILON
    return missed


def recover_smallest_counts_from_printed_rates(printed: PrintedTables) -> pd.DataFrame:
    """A validated counts table of Tables 4 and 5: by dataset, the smallest numbers of errors and of others of which all
    printed FPR and all printed FNR are whole numbers."""
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for cell in printed.select_cells(4, 5):
        if cell.dataset != MACRO_MEAN:
            rates.setdefault(cell.dataset, {}).setdefault(cell.quantity, {})[cell.evaluator] = cell.value
    rows = []
    for dataset, by_quantity in rates.items():
        # A share with one decimal is a whole number of a thousand, so that there always is one.
        units = {
            q: PrintedSystemRates(0, dataset, "claim", ALL_SYSTEMS, {LABELS_EVALUATOR: 0.0, **each}, {})
            for q, each in by_quantity.items()
        }
        fit = {quantity: _find_smallest_claim_count_fit(unit) for quantity, unit in units.items()}
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


def recover_detected_error_counts(
    printed: PrintedTables, recovered: RecoveredClaimCounts
) -> dict[tuple[str, str], int]:
    """How many labelled errors Bespoke-7B found, by dataset and system of Table 31.

    The rates leave only this number of the 2 x 2 table open. Taken is the one whose adjusted biases, mean and worst,
    come nearest to the printed ones.
    """
    found = {}
    for dataset in printed.list_datasets(31):
        mine = recovered.select_claim_fits(dataset)
        for system, fit in mine.items():
            quantities = [f"{kind}:adjusted_counts" for kind in BIAS_KINDS]
            wanted = [printed.get_value(31, dataset, system, CALIBRATED_EVALUATOR, one) for one in quantities]
            labelled, predicted = fit.errors[LABELS_EVALUATOR], fit.errors[CALIBRATED_EVALUATOR]
            possible = range(max(0, labelled + predicted - fit.n), min(labelled, predicted) + 1)
            left = 100 * np.array([compute_recovered_biases(mine, system, errors) for errors in possible])
            apart = np.abs(left - wanted).max(axis=1)
            found[dataset, system] = possible[int(np.where(np.isnan(apart), np.inf, apart).argmin())]
    return found


def compute_recovered_biases(fits: Mapping[str, ClaimCountFit], system: str, errors_found: int) -> tuple[float, float]:
    """Mean and worst |bias| of adjusted counts over the other systems.

    system: the one that calibrates; errors_found: how many of its labelled errors Bespoke-7B found.
    """
    fit = fits[system]
    labelled, predicted = fit.errors[LABELS_EVALUATOR], fit.errors[CALIBRATED_EVALUATOR]
    rest = fit.n - labelled - predicted + errors_found
    table = np.array([[errors_found, labelled - errors_found], [predicted - errors_found, rest]])
    others = [each for name, each in fits.items() if name != system]
    rates = np.array([each.errors[CALIBRATED_EVALUATOR] / each.n for each in others])
    true = np.array([each.errors[LABELS_EVALUATOR] / each.n for each in others])
    left = np.abs(adjust_counts(rates, table, refuse_unidentified=False) - true)
    return float(left.mean()), float(left.max())
