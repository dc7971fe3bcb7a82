"""Printed cells of *Verify with Caution* computed from other printed cells, by the audits that compute them on claims.

What a figure is computed from is put into a counts table, and the audit is run on that. A cell that went in does not
come out: it is an input, and compared with nothing. Each figure comes with the rounding that its inputs allow: as rates
are printed to 0.1, a difference of two of them is known to 0.1, and printed to another 0.05.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

from factaudit.audit import computable
from factaudit.audit.core.counted import judged
from factaudit.audit.core.rows import Row
from factaudit.engines.verify_with_caution.printed import (
    AVERAGE,
    CV,
    HEADROOM,
    LABELLED,
    MACRO,
    WHOLE,
    Printed,
    Unit,
)
from factaudit.engines.verify_with_caution.recover import (
    CALIBRATED,
    FEW_ERRORS,
    KINDS,
    Fit,
    Recovered,
    adjusted,
    errors_found,
)
from factaudit.tables.counts import validate_counts

#: table, dataset, system, evaluator, quantity.
Key = tuple[int, str, str | None, str, str]

#: Half a unit of the last printed digit.
_RATE, _CORRELATION = 0.05, 0.005
_EXACT = 0.0
#: Rates with one decimal are whole numbers of a thousand, and products of two nearly so of many.
_THOUSAND, _MANY = 1000, 100_000

#: The tables of error rates, and those of orders with the tables that they are of.
RATES = (*range(9, 12), 13, 14, *range(16, 22), 23, 24, 26, 27, 29)
ORDERS = {12: 11, 15: 14, 22: 21, 25: 24, 28: 27}
CORRELATIONS = {6: "claim", 7: "response"}
METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")


@dataclass(frozen=True)
class Recomputed:
    """A figure in the units of its cell, what rounding may have done to it, and where it comes from."""

    value: float
    tolerance: float
    note: str


def recompute(printed: Printed, recovered: Recovered) -> dict[Key, list[Recomputed]]:
    """All cells that other cells give; some in two ways."""
    found: dict[Key, list[Recomputed]] = {}
    alone = (part(printed) for part in (_balanced, _wice_and_factcheck, _biases, _chunked))
    numbers = (part(printed, recovered) for part in (_correlations, _orders, _adjustments))
    for key, value in chain.from_iterable((*alone, *numbers)):
        # A lowest labelled rate comes with each evaluator.
        if value not in (before := found.setdefault(key, [])):
            before.append(value)
    return found


def audit(name: str, counts: pd.DataFrame, level: str = "claim", **options: Any) -> list[Row]:
    """The rows of an audit on a counts table at one level, without intervals."""
    compute = computable()[name].compute
    assert compute is not None
    return compute(judged(counts, level), **options)


Found = Iterator[tuple[Key, Recomputed]]


def _balanced(printed: Printed) -> Found:
    """Tables 3 to 5: BAcc from FPR and FNR, and the means over datasets."""
    rates = {
        (cell.dataset, cell.evaluator, cell.quantity): cell.value for cell in printed.of(4, 5) if cell.dataset != MACRO
    }
    pairs = list(dict.fromkeys((dataset, evaluator) for dataset, evaluator, _ in rates))
    counts = [
        _joint(dataset, evaluator, _THOUSAND, _THOUSAND, *(rates[dataset, evaluator, q] for q in ("fpr", "fnr")))
        for dataset, evaluator in pairs
    ]
    tables = {"bacc": 3, "fpr": 4, "fnr": 5}
    for row in audit("rates", validate_counts(pd.DataFrame(counts))):
        for quantity, table in tables.items():
            if row["dataset"] != MACRO and quantity != "bacc":
                continue
            mean = "the mean over 14 datasets " if row["dataset"] == MACRO else ""
            note = f"{mean}from the printed {'FPR and FNR' if quantity == 'bacc' else quantity.upper()}"
            yield (
                (table, row["dataset"], None, row["evaluator"], quantity),
                Recomputed(100 * row[quantity], 2 * _RATE, note),
            )


def _wice_and_factcheck(printed: Printed) -> Found:
    """Table 8: predicted error rates from FPR, FNR (Tables 4, 5) and the labelled rate."""
    for unit in (unit for unit in printed.units() if unit.table == 8):
        share = unit.rates[LABELLED] / 100
        rows, tolerances = [], {}
        for name in unit.evaluators:
            fpr, fnr = (printed.value(table, unit.dataset, None, name, q) for table, q in ((4, "fpr"), (5, "fnr")))
            errors = round(share * _MANY)
            rows.append(_joint(unit.dataset, name, errors, _MANY - errors, fpr, fnr))
            # Of the three inputs, each known to 0.05: the labelled rate weighs as much as the evaluator tells apart.
            informed = (100 - fpr - fnr) / 100
            tolerances[name] = {"error_rate": _RATE * (2 + abs(informed)), "bias": _RATE * (2 + abs(informed - 1))}
        for row in audit("quantification", validate_counts(pd.DataFrame(rows)), levels=["claim"]):
            for quantity, key in (("error_rate", "predicted_error_rate"), ("bias", "bias")):
                note = "from the labelled rate and the printed FPR and FNR"
                tolerance = tolerances[row["evaluator"]][quantity] + 0.01
                yield (8, unit.dataset, WHOLE, row["evaluator"], quantity), Recomputed(100 * row[key], tolerance, note)


def _biases(printed: Printed) -> Found:
    """Tables 9 to 29: biases and headroom from the printed rates, as they stand."""
    units = [unit for unit in printed.units() if unit.table in RATES]
    table_of = {(unit.dataset, unit.level): unit.table for unit in units}
    counts = validate_counts(pd.DataFrame([row for unit in units for row in _as_printed(unit)]))
    for level in dict.fromkeys(unit.level for unit in units):
        for row in audit("quantification", counts, level, levels=[level]):
            if row["system"] == WHOLE:
                continue
            key = (table_of[row["dataset"], level], row["dataset"], row["system"], row["evaluator"], "bias")
            yield key, Recomputed(100 * row["bias"], 3 * _RATE, "predicted − labelled rate, as printed")
        for row in audit("headroom", counts, level, levels=[level]):
            about = (table_of[row["dataset"], level], row["dataset"], HEADROOM)
            lowest = "the lowest printed rate of the systems"
            yield (*about, LABELLED, "error_rate"), Recomputed(100 * row["labelled"], _EXACT, lowest)
            yield (*about, row["evaluator"], "error_rate"), Recomputed(100 * row["predicted"], _EXACT, lowest)
            note = "lowest predicted − lowest labelled rate, as printed"
            yield (*about, row["evaluator"], "bias"), Recomputed(100 * row["bias"], 3 * _RATE, note)


def _chunked(printed: Printed) -> Found:
    """Table 30: BAcc from TPR and TNR; PPR with chunks from the share of labels that PPR without chunks implies."""
    datasets = list(dict.fromkeys(cell.dataset for cell in printed.of(30)))
    names = list(dict.fromkeys(cell.evaluator for cell in printed.of(30)))
    rows, tolerances = [], {}
    for dataset in datasets:
        given = {
            name: [printed.value(30, dataset, None, name, quantity) for quantity in ("ppr", "tpr", "tnr")]
            for name in names
        }
        attributable = _attributable(*given[names[0]])
        others = round(attributable * _MANY)
        rows += [
            _joint(dataset, name, _MANY - others, others, 100 - tnr, 100 - tpr) for name, (_, tpr, tnr) in given.items()
        ]
        _, tpr, tnr = given[names[1]]
        ends = [
            _attributable(*(np.array(given[names[0]]) + signs[:3])) * (tpr + signs[3])
            + (1 - _attributable(*(np.array(given[names[0]]) + signs[:3]))) * (100 - tnr - signs[4])
            for signs in product((-_RATE, _RATE), repeat=5)
        ]
        tolerances[dataset] = (max(ends) - min(ends)) / 2 + _RATE
    for row in audit("rates", validate_counts(pd.DataFrame(rows))):
        about = (row["dataset"], None, row["evaluator"])
        if row["dataset"] == MACRO:
            continue
        yield (30, *about, "bacc"), Recomputed(100 * row["bacc"], 2 * _RATE, "from the printed TPR and TNR")
        if row["evaluator"] != names[0]:
            note = "from TPR, TNR and the share of attributable labels that PPR, TPR and TNR without chunks imply"
            yield (30, *about, "ppr"), Recomputed(100 * row["ppr"], tolerances[row["dataset"]], note)


def _attributable(ppr: float, tpr: float, tnr: float) -> float:
    return (ppr - (100 - tnr)) / (tpr - (100 - tnr))


def _correlations(printed: Printed, recovered: Recovered) -> Found:
    """Tables 6 and 7: tau and r over systems, and their means over datasets."""
    counts = recovered.counts()
    for table, level in CORRELATIONS.items():
        wanted = {cell.dataset for cell in printed.of(table)} - {AVERAGE}
        values: dict[tuple[str, str], list[float]] = {}
        for row in audit("ranking", counts[counts["dataset"].isin(wanted)], level, levels=[level]):
            for quantity in ("kendall_tau", "pearson_r"):
                values.setdefault((row["evaluator"], quantity), []).append(row[quantity])
                note = f"over the systems' numbers of errors; {_rule(recovered, row['dataset'], level)}"
                key = (table, row["dataset"], None, row["evaluator"], quantity)
                yield key, Recomputed(row[quantity], _CORRELATION, note)
        for (name, quantity), each in values.items():
            note = "the mean of the recomputed figures of six datasets"
            yield (table, AVERAGE, None, name, quantity), Recomputed(float(np.mean(each)), _CORRELATION, note)
        # Of AlignScore no rates are printed, only these figures.
        for name in {cell.evaluator for cell in printed.of(table)} - {name for name, _ in values}:
            for quantity in ("kendall_tau", "pearson_r"):
                mean = float(np.mean([printed.value(table, dataset, None, name, quantity) for dataset in wanted]))
                note = "the mean of the printed figures of six datasets"
                yield (table, AVERAGE, None, name, quantity), Recomputed(mean, 2 * _CORRELATION, note)


def _orders(printed: Printed, recovered: Recovered) -> Found:
    """Tables 12, 15, 22, 25 and 28: how pairs of systems are ordered, and how many otherwise than by the labels."""
    counts = recovered.counts()
    for table in ORDERS:
        for dataset in dict.fromkeys(cell.dataset for cell in printed.of(table)):
            mine = counts[(counts["dataset"] == dataset) & (counts["level"] == "claim")]
            if table == 28:
                mine = mine[mine["labelled_errors"] > FEW_ERRORS]
            note = f"two-proportion z-tests of all pairs of systems; {_rule(recovered, dataset, 'claim')}"
            if table == 28:
                note += f"; systems with more than {FEW_ERRORS} labelled errors"
            pairs: dict[tuple[str, str], int] = {}
            for row in audit("ranking_pairs", mine, levels=["claim"]):
                for true, said in product("=<", ">=<"):
                    pairs.setdefault((row["evaluator"], f"pairs:labelled{true},predicted{said}"), 0)
                pairs[row["evaluator"], _oriented(row)] += 1
            for (name, quantity), number in pairs.items():
                yield (table, dataset, None, name, quantity), Recomputed(number, _EXACT, note)
            for row in audit("ranking", mine, levels=["claim"]):
                for quantity, key in (
                    ("order_error_rate", "error_rate"),
                    ("order_major_error_rate", "major_error_rate"),
                ):
                    value = Recomputed(100 * row[key], _RATE, note)
                    yield (table, dataset, None, row["evaluator"], quantity), value
            for name in dict.fromkeys(cell.evaluator for cell in printed.of(table)):
                yield from _printed_pairs(printed, table, dataset, name)


def _oriented(row: Row) -> str:
    """A pair's two orders, the system with the lower labelled rate first."""
    turn = {"<": ">", ">": "<", "=": "="}
    true, said = row["labelled_order"], row["predicted_order"]
    if row["labelled_error_rate_a"] > row["labelled_error_rate_b"]:
        true, said = turn[true], turn[said]
    return f"pairs:labelled{true},predicted{said}"


def _printed_pairs(printed: Printed, table: int, dataset: str, name: str) -> Found:
    """The shares of wrong orders of an evaluator from its printed pairs (of AlignScore no rates are printed)."""
    pairs = {
        (true, said): printed.value(table, dataset, None, name, f"pairs:labelled{true},predicted{said}")
        for true, said in product("=<", ">=<")
    }
    total = sum(pairs.values())
    wrong = {
        "order_error_rate": sum(number for (true, said), number in pairs.items() if true != said),
        "order_major_error_rate": pairs["<", ">"],
    }
    for quantity, number in wrong.items():
        note = f"{number:.0f} of the {total:.0f} printed pairs"
        yield (table, dataset, None, name, quantity), Recomputed(100 * number / total, _RATE, note)


def _adjustments(printed: Printed, recovered: Recovered) -> Found:
    """Tables 31 and 1: the biases that are left without and with adjusted counts, and means over calibrations."""
    found = errors_found(printed, recovered)
    counts = recovered.counts(found)
    datasets = list(dict.fromkeys(cell.dataset for cell in printed.of(31)))
    mine = counts[counts["dataset"].isin(datasets) & (counts["evaluator"] == CALIBRATED)]
    for row in audit("adjustment", mine, levels=["claim"], methods=["none"]):
        rule = _rule(recovered, row["dataset"], "claim")
        table, system = (1, CV) if row["calibration_system"] == CV else (31, row["calibration_system"])
        for kind in KINDS:
            value = Recomputed(100 * row[kind], _RATE, f"over the other five systems; {rule}")
            yield (table, row["dataset"], system, CALIBRATED, f"{kind}:none"), value
        if table == 31:
            note = f"the system's labelled rate; {rule}"
            rate = Recomputed(100 * row["calibration_error_rate"], _RATE, note)
            yield (31, row["dataset"], system, LABELLED, "error_rate"), rate
    for (dataset, system), errors in found.items():
        fits: dict[str, Fit] = {key[2]: fit for key, fit in recovered.fits.items() if key[:2] == (dataset, "claim")}
        note = (
            f"{errors} of {fits[system].errors[LABELLED]} labelled errors taken as found, the number that comes "
            f"nearest to "
            f"both printed figures: that such a number exists is all that an agreement shows; "
            f"{_rule(recovered, dataset, 'claim')}"
        )
        for kind, left in zip(KINDS, adjusted(fits, system, errors), strict=True):
            key = (31, dataset, system, CALIBRATED, f"{kind}:adjusted_counts")
            yield key, Recomputed(100 * left, _RATE, note)
    yield from _repeated(printed, datasets)


def _repeated(printed: Printed, datasets: Sequence[str]) -> Found:
    """Table 1: means over the calibrations of Table 31, and what is printed in both."""
    once = {cell.system for cell in printed.of(1)} - {CV}
    for dataset, kind, method in product(datasets, KINDS, METHODS):
        quantity = f"{kind}:{method}"
        cells = [cell for cell in printed.of(31) if (cell.dataset, cell.quantity) == (dataset, quantity)]
        if method != "none":
            mean = Recomputed(
                float(np.mean([c.value for c in cells])), 2 * _RATE, "the mean of six printed figures of Table 31"
            )
            yield (1, dataset, CV, CALIBRATED, quantity), mean
        for cell in cells:
            if cell.system in once:
                yield (1, dataset, cell.system, CALIBRATED, quantity), Recomputed(cell.value, _EXACT, "as in Table 31")


def _rule(recovered: Recovered, dataset: str, level: str) -> str:
    """How the numbers of claims were recovered."""
    if level == "claim" and dataset in recovered.chosen:
        return (
            "numbers of claims recovered: of those that fit the printed rates and biases, some that give Tables 6, "
            "28 and 31; "
            "several do, so the agreement is of existence"
        )
    rule = "numbers of claims recovered: the smallest that fit the system's printed rates and biases"
    several = level == "claim" and dataset.startswith("RAGTruth")
    return f"{rule} (several fit: the agreement is of existence)" if several else rule


def _joint(dataset: str, evaluator: str, errors: int, others: int, fpr: float, fnr: float) -> dict[str, Any]:
    """A row of a counts table from rates in per cent."""
    found = round(errors * (100 - fpr) / 100)
    return {
        "dataset": dataset,
        "evaluator": evaluator,
        "n": errors + others,
        "labelled_errors": errors,
        "predicted_errors": found + round(others * fnr / 100),
        "errors_found": found,
    }


def _as_printed(unit: Unit) -> Iterator[dict[str, Any]]:
    """Rows of a counts table in which a system has a thousand claims: every printed rate is a whole number of them."""
    for name in unit.evaluators:
        yield {
            "dataset": unit.dataset,
            "level": unit.level,
            "system": unit.system,
            "evaluator": name,
            "n": _THOUSAND,
            "labelled_errors": round(10 * unit.rates[LABELLED]),
            "predicted_errors": round(10 * unit.rates[name]),
        }
