"""Printed cells of *Verify with Caution* computed from other printed cells, by the audits that compute them on claims.

What a figure is computed from is put into a counts table, and the audit is run on that. The rates that went in are
inputs, and compared with nothing. Each figure comes with the rounding that its inputs allow: as rates
are printed to 0.1, a difference of two of them is known to 0.1, and printed to another 0.05.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.published_counts import expand_published_counts
from factaudit.audit import list_computable_audits
from factaudit.audit.core.result_rows import Row
from factaudit.engines.verify_with_caution.claim_count_recovery import (
    BIAS_KINDS,
    CALIBRATED_EVALUATOR,
    MAX_FEW_ERRORS,
    RecoveredClaimCounts,
    compute_recovered_biases,
    recover_detected_error_counts,
)
from factaudit.engines.verify_with_caution.printed_tables import (
    ALL_SYSTEMS,
    CROSS_VALIDATION,
    DATASET_AVERAGE,
    HEADROOM,
    LABELS_EVALUATOR,
    MACRO_MEAN,
    PRINTED_PAIR_TEST,
    PrintedSystemRates,
    PrintedTables,
)
from factaudit.tables.counts_table import validate_counts
from factaudit.text.display_text import join_reasons

#: table, dataset, system, evaluator, quantity.
CellKey = tuple[int, str, str | None, str, str]

#: Half a unit of the last printed digit.
_RATE_ROUNDING, _CORRELATION_ROUNDING = 0.05, 0.005
_NO_ROUNDING = 0.0
#: Rates with one decimal are whole numbers of a thousand, and products of two nearly so of many.
_THOUSAND, _MANY = 1000, 100_000

#: The tables of error rates, and those of orders with the tables that they are of.
RATE_TABLES = (*range(9, 12), 13, 14, *range(16, 22), 23, 24, 26, 27, 29)
ORDER_TABLES = {12: 11, 15: 14, 22: 21, 25: 24, 28: 27}
CORRELATION_TABLES = {6: "claim", 7: "response"}
TABLES_GIVEN_BY_CHOICE = (1, 6, 28, 31)
COUNTS_CHOSEN_TO_FIT = (
    "numbers of claims recovered: of those that fit the printed rates and biases, some chosen to come near Tables 1, "
    "6, 28 and 31; others come as near, so the agreement is of existence"
)
CALIBRATION_METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")


@dataclass(frozen=True)
class RecomputedCell:
    """A figure in the units of its cell, what rounding may have done to it, and where it comes from."""

    value: float
    tolerance: float
    note: str


def recompute_printed_cells(
    printed: PrintedTables, recovered: RecoveredClaimCounts
) -> dict[CellKey, list[RecomputedCell]]:
    """All cells that other cells give; some in two ways."""
    found: dict[CellKey, list[RecomputedCell]] = {}
    alone = (
        part(printed)
        for part in (
            _recompute_balanced_accuracies,
            _recompute_wice_factcheck_error_rates,
            _recompute_printed_biases_and_headroom,
            _recompute_printed_chunk_rates,
        )
    )
    numbers = (
        part(printed, recovered)
        for part in (_recompute_printed_correlations, _recompute_system_orders, _recompute_adjusted_biases)
    )
    for key, value in chain.from_iterable((*alone, *numbers)):
        # A lowest labelled rate comes with each evaluator.
        if value not in (before := found.setdefault(key, [])):
            before.append(value)
    return found


def recompute_audit_of_counts(audit_name: str, counts: pd.DataFrame, level: str = "claim", **options: Any) -> list[Row]:
    """The rows of an audit on a counts table at one level, without intervals."""
    compute = list_computable_audits()[audit_name].compute
    assert compute is not None
    return list(compute(expand_published_counts(counts, level), **options))


RecomputedCells = Iterator[tuple[CellKey, RecomputedCell]]


def _recompute_balanced_accuracies(printed: PrintedTables) -> RecomputedCells:
    """Tables 3 to 5: BAcc from FPR and FNR, and the means over datasets."""
    cells = [cell for cell in printed.select_cells(4, 5) if cell.dataset != MACRO_MEAN]
    counts = []
    for dataset, evaluator in dict.fromkeys((cell.dataset, cell.evaluator) for cell in cells):
        fpr, fnr = _get_fpr_and_fnr(printed, dataset, evaluator)
        counts.append(_make_recomputed_counts_row(dataset, evaluator, _THOUSAND, _THOUSAND, fpr, fnr))
    tables = {"bacc": 3, "fpr": 4, "fnr": 5}
    for row in recompute_audit_of_counts("rates", validate_counts(pd.DataFrame(counts))):
        for quantity, table in tables.items():
            if row["dataset"] != MACRO_MEAN and quantity != "bacc":
                continue
            mean = "the mean over 14 datasets " if row["dataset"] == MACRO_MEAN else ""
            note = f"{mean}from the printed {'FPR and FNR' if quantity == 'bacc' else quantity.upper()}"
            figure = RecomputedCell(100 * row[quantity], 2 * _RATE_ROUNDING, note)
            yield (table, row["dataset"], None, row["evaluator"], quantity), figure


def _get_fpr_and_fnr(printed: PrintedTables, dataset: str, evaluator: str) -> tuple[float, float]:
    """In per cent, of Tables 4 and 5."""
    fpr = printed.get_value(4, dataset, None, evaluator, "fpr")
    return fpr, printed.get_value(5, dataset, None, evaluator, "fnr")


def _recompute_wice_factcheck_error_rates(printed: PrintedTables) -> RecomputedCells:
    """Table 8: predicted error rates from FPR, FNR (Tables 4, 5) and the labelled rate."""
    for unit in (unit for unit in printed.list_system_rates() if unit.table == 8):
        share = unit.rates[LABELS_EVALUATOR] / 100
        rows, tolerances = [], {}
        for name in unit.evaluators:
            fpr, fnr = _get_fpr_and_fnr(printed, unit.dataset, name)
            errors = round(share * _MANY)
            rows.append(_make_recomputed_counts_row(unit.dataset, name, errors, _MANY - errors, fpr, fnr))
            # Of the three inputs, each known to 0.05: the labelled rate weighs as much as the evaluator tells apart.
            informed = (100 - fpr - fnr) / 100
            tolerances[name, "error_rate"] = _RATE_ROUNDING * (2 + abs(informed))
            tolerances[name, "bias"] = _RATE_ROUNDING * (2 + abs(informed - 1))
        for row in recompute_audit_of_counts("quantification", validate_counts(pd.DataFrame(rows)), levels=["claim"]):
            for quantity, key in (("error_rate", "predicted_error_rate"), ("bias", "bias")):
                note = "from the labelled rate and the printed FPR and FNR"
                figure = RecomputedCell(100 * row[key], tolerances[row["evaluator"], quantity] + 0.01, note)
                yield (8, unit.dataset, ALL_SYSTEMS, row["evaluator"], quantity), figure


def build_printed_rates_table(printed: PrintedTables) -> pd.DataFrame:
    """A counts table in which every system has a thousand claims, so that its rates are the printed ones.

    Its numbers of claims mean nothing: rows made of it go through `remove_counts_derived_from_printed_rates`.
    """
    units = printed.list_system_rates()
    rows = [row for unit in units for row in _make_thousand_claim_counts(unit)]
    table = pd.DataFrame(rows)
    return validate_counts(table.assign(system=table["system"].where(table["system"] != ALL_SYSTEMS, None)))


#: What only numbers of claims say, in rows of audits.
_COUNT_FIGURES = re.compile(
    r"n_(?!systems$|datasets$|calibrations$|pairs).*|n|calibration_errors|power_.*|detectable_.*|p_.*|"
    r".*_(low|high|min|max)"
)
NO_COUNTS_PRINTED = "no number of claims is printed"


def remove_counts_derived_from_printed_rates(rows: Sequence[Row], *more_keys: str) -> list[Row]:
    """Rows without what was derived to fit printed rates: numbers of claims, and figures that follow from them alone.

    Those are null, and the reason says why. more_keys: others that follow from numbers of claims.
    """
    hidden = []
    for row in rows:
        kept = {key: None if key in more_keys or _COUNT_FIGURES.fullmatch(key) else value for key, value in row.items()}
        hidden.append(kept | {"reason": join_reasons([NO_COUNTS_PRINTED, row.get("reason") or ""])})
    return hidden


def _recompute_printed_biases_and_headroom(printed: PrintedTables) -> RecomputedCells:
    """Tables 9 to 29: biases and headroom from the printed rates, as they stand."""
    units = [unit for unit in printed.list_system_rates() if unit.table in RATE_TABLES]
    table_of = {(unit.dataset, unit.level): unit.table for unit in units}
    counts = validate_counts(pd.DataFrame([row for unit in units for row in _make_thousand_claim_counts(unit)]))
    for level in dict.fromkeys(unit.level for unit in units):
        for row in recompute_audit_of_counts("quantification", counts, level, levels=[level]):
            if row["system"] == ALL_SYSTEMS:
                continue
            cell = (table_of[row["dataset"], level], row["dataset"], row["system"], row["evaluator"], "bias")
            yield cell, RecomputedCell(100 * row["bias"], 3 * _RATE_ROUNDING, "predicted − labelled rate, as printed")
        for row in recompute_audit_of_counts("headroom", counts, level, levels=[level]):
            about = (table_of[row["dataset"], level], row["dataset"], HEADROOM)
            lowest = "the lowest printed rate of the systems"
            for evaluator, key in ((LABELS_EVALUATOR, "labelled"), (row["evaluator"], "predicted")):
                yield (*about, evaluator, "error_rate"), RecomputedCell(100 * row[key], _NO_ROUNDING, lowest)
            note = "lowest predicted − lowest labelled rate, as printed"
            yield (*about, row["evaluator"], "bias"), RecomputedCell(100 * row["bias"], 3 * _RATE_ROUNDING, note)


def _recompute_printed_chunk_rates(printed: PrintedTables) -> RecomputedCells:
    """Table 30: BAcc from TPR and TNR; PPR with chunks from the share of labels that PPR without chunks implies."""
    names = list(dict.fromkeys(cell.evaluator for cell in printed.select_cells(30)))
    rows, tolerances = [], {}
    for dataset in printed.list_datasets(30):
        given = {
            name: [printed.get_value(30, dataset, None, name, quantity) for quantity in ("ppr", "tpr", "tnr")]
            for name in names
        }
        attributable = _attributable_share(*given[names[0]])
        others = round(attributable * _MANY)
        rows += [
            _make_recomputed_counts_row(dataset, name, _MANY - others, others, 100 - tnr, 100 - tpr)
            for name, (_, tpr, tnr) in given.items()
        ]
        _, tpr, tnr = given[names[1]]
        ends = []
        for signs in product((-_RATE_ROUNDING, _RATE_ROUNDING), repeat=5):
            share = _attributable_share(*(np.array(given[names[0]]) + signs[:3]))
            ends.append(share * (tpr + signs[3]) + (1 - share) * (100 - tnr - signs[4]))
        tolerances[dataset] = (max(ends) - min(ends)) / 2 + _RATE_ROUNDING
    for row in recompute_audit_of_counts("rates", validate_counts(pd.DataFrame(rows))):
        about = (row["dataset"], None, row["evaluator"])
        if row["dataset"] == MACRO_MEAN:
            continue
        figure = RecomputedCell(100 * row["bacc"], 2 * _RATE_ROUNDING, "from the printed TPR and TNR")
        yield (30, *about, "bacc"), figure
        if row["evaluator"] != names[0]:
            note = "from TPR, TNR and the share of attributable labels that PPR, TPR and TNR without chunks imply"
            yield (30, *about, "ppr"), RecomputedCell(100 * row["ppr"], tolerances[row["dataset"]], note)


def _attributable_share(ppr: float, tpr: float, tnr: float) -> float:
    return (ppr - (100 - tnr)) / (tpr - (100 - tnr))


def _recompute_printed_correlations(printed: PrintedTables, recovered: RecoveredClaimCounts) -> RecomputedCells:
    """Tables 6 and 7: tau and r over systems, and their means over datasets."""
    counts = recovered.build_counts_table()
    for table, level in CORRELATION_TABLES.items():
        wanted = printed.list_datasets(table)
        values: dict[tuple[str, str], list[float]] = {}
        for row in recompute_audit_of_counts("ranking", counts[counts["dataset"].isin(wanted)], level, levels=[level]):
            for quantity in ("kendall_tau", "pearson_r"):
                values.setdefault((row["evaluator"], quantity), []).append(row[quantity])
                rule = _describe_recovered_counts(recovered, row["dataset"], level)
                note = f"over the systems' numbers of errors; {rule}"
                cell = (table, row["dataset"], None, row["evaluator"], quantity)
                yield cell, RecomputedCell(row[quantity], _CORRELATION_ROUNDING, note)
        for (name, quantity), each in values.items():
            note = "the mean of the recomputed figures of six datasets"
            figure = RecomputedCell(float(np.mean(each)), _CORRELATION_ROUNDING, note)
            yield (table, DATASET_AVERAGE, None, name, quantity), figure
        # Of AlignScore no rates are printed, only these figures.
        for name in {cell.evaluator for cell in printed.select_cells(table)} - {name for name, _ in values}:
            for quantity in ("kendall_tau", "pearson_r"):
                mean = float(np.mean([printed.get_value(table, dataset, None, name, quantity) for dataset in wanted]))
                note = "the mean of the printed figures of six datasets"
                figure = RecomputedCell(mean, 2 * _CORRELATION_ROUNDING, note)
                yield (table, DATASET_AVERAGE, None, name, quantity), figure


def _recompute_system_orders(printed: PrintedTables, recovered: RecoveredClaimCounts) -> RecomputedCells:
    """Tables 12, 15, 22, 25 and 28: how pairs of systems are ordered, and how many not as the labels do."""
    counts = recovered.build_counts_table()
    for table in ORDER_TABLES:
        for dataset in printed.list_datasets(table):
            mine = counts[(counts["dataset"] == dataset) & (counts["level"] == "claim")]
            rule = _describe_recovered_counts(recovered, dataset, "claim")
            note = f"two-proportion z-tests of all pairs of systems; {rule}"
            if table == 28:
                mine = mine[mine["labelled_errors"] > MAX_FEW_ERRORS]
                note += f"; systems with more than {MAX_FEW_ERRORS} labelled errors"
            pairs: dict[tuple[str, str], int] = {}
            for row in recompute_audit_of_counts("ranking_pairs", mine, levels=["claim"], **PRINTED_PAIR_TEST):
                for true, said in product("=<", ">=<"):
                    pairs.setdefault((row["evaluator"], f"pairs:labelled{true},predicted{said}"), 0)
                pairs[row["evaluator"], _format_recomputed_order(row)] += 1
            for (name, quantity), number in pairs.items():
                yield (table, dataset, None, name, quantity), RecomputedCell(number, _NO_ROUNDING, note)
            for row in recompute_audit_of_counts("ranking", mine, levels=["claim"], **PRINTED_PAIR_TEST):
                for key in ("error_rate", "major_error_rate"):
                    figure = RecomputedCell(100 * row[key], _RATE_ROUNDING, note)
                    yield (table, dataset, None, row["evaluator"], f"order_{key}"), figure
            for name in dict.fromkeys(cell.evaluator for cell in printed.select_cells(table)):
                yield from _recompute_order_error_rates(printed, table, dataset, name)


def _format_recomputed_order(row: Row) -> str:
    """A pair's two orders, the system with the lower labelled rate first."""
    turn = {"<": ">", ">": "<", "=": "="}
    true, said = row["labelled_order"], row["predicted_order"]
    if row["labelled_error_rate_a"] > row["labelled_error_rate_b"]:
        true, said = turn[true], turn[said]
    return f"pairs:labelled{true},predicted{said}"


def _recompute_order_error_rates(printed: PrintedTables, table: int, dataset: str, evaluator: str) -> RecomputedCells:
    """The shares of wrong orders of an evaluator from its printed pairs (of AlignScore no rates are printed)."""
    pairs = {
        (true, said): printed.get_value(table, dataset, None, evaluator, f"pairs:labelled{true},predicted{said}")
        for true, said in product("=<", ">=<")
    }
    total = sum(pairs.values())
    wrong = {
        "order_error_rate": sum(number for (true, said), number in pairs.items() if true != said),
        "order_major_error_rate": pairs["<", ">"],
    }
    for quantity, number in wrong.items():
        note = f"{number:.0f} of the {total:.0f} printed pairs"
        yield (table, dataset, None, evaluator, quantity), RecomputedCell(100 * number / total, _RATE_ROUNDING, note)


def _recompute_adjusted_biases(printed: PrintedTables, recovered: RecoveredClaimCounts) -> RecomputedCells:
    """Tables 31 and 1: the biases that are left without and with adjusted counts, and means over calibrations."""
    found = recover_detected_error_counts(printed, recovered)
    counts = recovered.build_counts_table(found)
    datasets = printed.list_datasets(31)
    mine = counts[counts["dataset"].isin(datasets) & (counts["evaluator"] == CALIBRATED_EVALUATOR)]
    rows = recompute_audit_of_counts("adjustment", mine, levels=["claim"], methods=["none"])
    for row in rows:
        rule = _describe_recovered_counts(recovered, row["dataset"], "claim")
        system = row["calibration_system"]
        table = 1 if system == CROSS_VALIDATION else 31
        for kind in BIAS_KINDS:
            # Table 1 prints means over the calibrations of the worst, too; the audit's row has the worst of all.
            of = [one for one in rows if one["dataset"] == row["dataset"] and one["calibration_system"] != system]
            figure = float(np.mean([one[kind] for one in of])) if table == 1 else row[kind]
            value = RecomputedCell(100 * figure, _RATE_ROUNDING, f"over the other five systems; {rule}")
            yield (table, row["dataset"], system, CALIBRATED_EVALUATOR, f"{kind}:none"), value
        if table == 31:
            note = f"the system's labelled rate; {rule}"
            rate = RecomputedCell(100 * row["calibration_error_rate"], _RATE_ROUNDING, note)
            yield (31, row["dataset"], system, LABELS_EVALUATOR, "error_rate"), rate
    for (dataset, system), errors in found.items():
        fits = recovered.select_claim_fits(dataset)
        note = (
            f"{errors} of {fits[system].errors[LABELS_EVALUATOR]} labelled errors taken as found, the number that "
            "comes nearest to both printed figures: that such a number exists is all that an agreement shows; "
            f"{_describe_recovered_counts(recovered, dataset, 'claim')}"
        )
        for kind, left in zip(BIAS_KINDS, compute_recovered_biases(fits, system, errors), strict=True):
            key = (31, dataset, system, CALIBRATED_EVALUATOR, f"{kind}:adjusted_counts")
            yield key, RecomputedCell(100 * left, _RATE_ROUNDING, note)
    yield from _recompute_calibration_means(printed, datasets)


def _recompute_calibration_means(printed: PrintedTables, datasets: Sequence[str]) -> RecomputedCells:
    """Table 1: means over the calibrations of Table 31, and what is printed in both."""
    once = {cell.system for cell in printed.select_cells(1)} - {CROSS_VALIDATION}
    for dataset, kind, method in product(datasets, BIAS_KINDS, CALIBRATION_METHODS):
        quantity = f"{kind}:{method}"
        cells = printed.select_cells(31, dataset=dataset, quantity=quantity)
        if method != "none":
            mean, note = float(np.mean([cell.value for cell in cells])), "the mean of six printed figures of Table 31"
            figure = RecomputedCell(mean, 2 * _RATE_ROUNDING, note)
            yield (1, dataset, CROSS_VALIDATION, CALIBRATED_EVALUATOR, quantity), figure
        for cell in cells:
            if cell.system in once:
                figure = RecomputedCell(cell.value, _NO_ROUNDING, "as in Table 31")
                yield (1, dataset, cell.system, CALIBRATED_EVALUATOR, quantity), figure


def _describe_recovered_counts(recovered: RecoveredClaimCounts, dataset: str, level: str) -> str:
    if level == "claim" and dataset in recovered.adapted_datasets:
        return COUNTS_CHOSEN_TO_FIT
    rule = "numbers of claims recovered: the smallest that fit the system's printed rates and biases"
    return f"{rule} (others may fit: the agreement is of existence)"


def _make_recomputed_counts_row(
    dataset: str, evaluator: str, errors: int, others: int, fpr: float, fnr: float
) -> dict[str, Any]:
    found = round(errors * (100 - fpr) / 100)
    return {
        "dataset": dataset,
        "evaluator": evaluator,
        "n": errors + others,
        "labelled_errors": errors,
        "predicted_errors": found + round(others * fnr / 100),
        "errors_found": found,
    }


def _make_thousand_claim_counts(system_rates: PrintedSystemRates) -> Iterator[dict[str, Any]]:
    """Rows of a counts table in which a system has a thousand claims: every printed rate is a whole number of them."""
    for name in system_rates.evaluators:
        yield {
            "dataset": system_rates.dataset,
            "level": system_rates.level,
            "system": system_rates.system,
            "evaluator": name,
            "n": _THOUSAND,
            "labelled_errors": round(10 * system_rates.rates[LABELS_EVALUATOR]),
            "predicted_errors": round(10 * system_rates.rates[name]),
        }
