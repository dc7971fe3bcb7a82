"""The printed cells of *Verify with Caution* (``data/published/vc_tables.csv``) as numbers that can be looked up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from factaudit.datasets.sources import Row, read_rows

#: The evaluator of a cell in the column of the labels.
LABELLED = "labelled"
#: Systems and datasets that stand for something else.
HEADROOM, CV, WHOLE, MACRO, AVERAGE = "__headroom__", "__cv__", "__all__", "__macro__", "__average__"


class Cell(Row):
    """One printed number: rates in per cent, tau and r as they are. ``system`` is None where it is of all systems."""

    table: int
    dataset: str
    level: Literal["claim", "response"]
    system: str | None = None
    evaluator: str
    quantity: str
    value: float


@dataclass(frozen=True)
class Unit:
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
        return [name for name in self.rates if name != LABELLED]


class Printed:
    """All cells, by what they are of."""

    def __init__(self, cells: list[Cell]) -> None:
        self.cells = cells
        self._values = {
            (cell.table, cell.dataset, cell.system, cell.evaluator, cell.quantity): cell.value for cell in cells
        }

    @classmethod
    def read(cls, path: str | Path) -> Printed:
        """Read the file; raises `InputError` naming row and column."""
        return cls(read_rows(Path(path), Cell))

    def of(self, *tables: int) -> Iterator[Cell]:
        """The cells of some tables, in the order of the file."""
        return (cell for cell in self.cells if cell.table in tables)

    def value(self, table: int, dataset: str, system: str | None, evaluator: str, quantity: str) -> float:
        """One number; raises `KeyError` where the paper does not print it."""
        return self._values[table, dataset, system, evaluator, quantity]

    def units(self) -> list[Unit]:
        """What Tables 8 to 29 have error rates of, in the order of the file; without the headroom."""
        found: dict[tuple[int, str, str, str], Unit] = {}
        for cell in self.cells:
            if (
                8 <= cell.table <= 29
                and cell.quantity in ("error_rate", "bias")
                and cell.system not in (None, HEADROOM)
            ):
                key = (cell.table, cell.dataset, cell.level, cell.system or WHOLE)
                unit = found.setdefault(key, Unit(*key, rates={}, biases={}))
                (unit.rates if cell.quantity == "error_rate" else unit.biases)[cell.evaluator] = cell.value
        return list(found.values())
