"""The printed cells of *Verify with Caution* (``data/published/vc_tables.csv``) as numbers that can be looked up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from factaudit.audit.core.result_rows import Row
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_rows

#: The evaluator of a cell in the column of the labels.
LABELS_EVALUATOR = "labelled"
#: Systems and datasets that stand for something else.
HEADROOM, CROSS_VALIDATION, ALL_SYSTEMS = "__headroom__", "__cv__", "__all__"
MACRO_MEAN, DATASET_AVERAGE = "__macro__", "__average__"
#: Six systems make so many pairs.
N_SYSTEM_PAIRS = 15
#: How the paper compares two systems: an uncorrected z-test.
PRINTED_PAIR_TEST = {"test": "z", "correction": "none"}


class PrintedCell(DatasetSourceRow):
    """One printed number: rates in per cent, tau and r as they are. ``system`` is None where it is of all systems."""

    table: int
    dataset: str
    level: Literal["claim", "response"]
    system: str | None = None
    evaluator: str
    quantity: str
    value: float


@dataclass(frozen=True)
class PrintedSystemRates:
    """The claims (or responses) of one system that a row of a table is about: its printed rates and biases."""

    table: int
    dataset: str
    level: str
    system: str
    rates: dict[str, float]
    biases: dict[str, float]

    @property
    def evaluators(self) -> list[str]:
        """Those with a rate, without the labels."""
        return [name for name in self.rates if name != LABELS_EVALUATOR]


class PrintedTables:
    """All cells, by what they are of."""

    def __init__(self, cells: list[PrintedCell]) -> None:
        self.cells = cells
        self._values = {
            (cell.table, cell.dataset, cell.system, cell.evaluator, cell.quantity): cell.value for cell in cells
        }

    @classmethod
    def read(cls, path: str | Path) -> PrintedTables:
        """Read the file; raises `InputError` naming row and column."""
        return cls(read_dataset_source_rows(Path(path), PrintedCell))

    def select_cells(self, *tables: int, **fields: str) -> list[PrintedCell]:
        """The cells of some tables whose fields (``evaluator="gpt-4-turbo"``) are these, in the order of the file."""
        inside = [cell for cell in self.cells if cell.table in tables]
        return [cell for cell in inside if all(getattr(cell, name) == value for name, value in fields.items())]

    def list_datasets(self, *tables: int) -> list[str]:
        """The data sets of some tables, without their means, in the order of the file."""
        found = dict.fromkeys(cell.dataset for cell in self.select_cells(*tables))
        return [dataset for dataset in found if dataset not in (MACRO_MEAN, DATASET_AVERAGE)]

    def get_value(self, table: int, dataset: str, system: str | None, evaluator: str, quantity: str) -> float:
        """One number; raises `KeyError` where the paper does not print it."""
        return self._values[table, dataset, system, evaluator, quantity]

    def list_system_rates(self) -> list[PrintedSystemRates]:
        """What Tables 8 to 29 have error rates of, in the order of the file; without the headroom."""
        found: dict[tuple[int, str, str, str], PrintedSystemRates] = {}
        for cell in self.cells:
            is_rate = 8 <= cell.table <= 29 and cell.quantity in ("error_rate", "bias")
            if is_rate and cell.system not in (None, HEADROOM):
                key = (cell.table, cell.dataset, cell.level, cell.system or ALL_SYSTEMS)
                unit = found.setdefault(key, PrintedSystemRates(*key, rates={}, biases={}))
                (unit.rates if cell.quantity == "error_rate" else unit.biases)[cell.evaluator] = cell.value
        return list(found.values())


def drop_rates_pooled_over_printed_systems(rows: Sequence[Row]) -> list[Row]:
    """Rows of error rates without those of all systems together where single systems have some.

    How many claims each system has is not printed, so that no rate over all claims follows from theirs.
    """
    named = {(row["dataset"], row["level"]) for row in rows if row["system"] != ALL_SYSTEMS}
    return [row for row in rows if row["system"] != ALL_SYSTEMS or (row["dataset"], row["level"]) not in named]


def show_printed_balanced_accuracies(printed: PrintedTables, rates_rows: Sequence[Row]) -> list[Row]:
    """Rows of `rates` with the BAcc of Table 3: that of the rounded TPR and TNR may round to another last digit."""
    return [
        row | {"bacc": printed.get_value(3, row["dataset"], None, row["evaluator"], "bacc") / 100} for row in rates_rows
    ]
