"""What one table is taken for, column by column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pandas as pd

from factaudit.tables.column_mapping import EvaluatorColumnMapping
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.questions import OpenQuestion


@dataclass
class TableRoles:
    """What one table is taken for, column by column.

    ``roles``: column of ours to theirs. ``people``: columns of one annotator each. ``evaluators``: by name their
    columns (``score``, ``prediction``). ``declared``: those of a tool's log, which says what they are. ``ignored``:
    columns that are not read, and why. ``people_evaluators``: the evaluators of the long form that are people;
    ``left_out``: those that are not read, and why. ``kind``: of a table with our own columns, what it is. ``unclear``:
    columns whose names do not say for certain what they are, and what they may be.
    ``settled``: columns of which the user said what they are.
    """

    name: str
    rows: pd.DataFrame
    profiles: dict[str, ColumnProfile]
    kind: str | None = None
    roles: dict[str, ColumnProfile] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)
    evaluators: dict[str, dict[str, str]] = field(default_factory=dict)
    declared: dict[str, EvaluatorColumnMapping] = field(default_factory=dict)
    ignored: dict[str, str] = field(default_factory=dict)
    people_evaluators: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)
    questions: list[OpenQuestion] = field(default_factory=list)

    @property
    def is_labelled(self) -> bool:
        return "label" in self.roles or bool(self.people or self.people_evaluators)

    @property
    def is_judged(self) -> bool:
        return bool(self.evaluators) or bool({"score", "prediction"} & {*self.roles})

    def is_free(self, column: str) -> bool:
        """Whether nothing has been found out of a column."""
        taken = {one.name for one in self.roles.values()} | {*self.people, *self.ignored}
        return column not in taken | {name for pair in self.evaluators.values() for name in pair.values()}

    def list_free_columns(self) -> list[ColumnProfile]:
        return [column for name, column in self.profiles.items() if self.is_free(name)]

    def list_values(self, column: ColumnProfile) -> list[str]:
        """The different values of a column, as texts."""
        return [*dict.fromkeys(str(one) for one in self.rows[column.name] if not is_missing_value(one))]

    def doubt(self, columns: Iterable[ColumnProfile], what: str) -> None:
        """Note that it is unclear what columns are; the first doubt counts."""
        for one in columns:
            if one.name in self.settled:
                continue
            self.unclear.setdefault(one.name, what)
