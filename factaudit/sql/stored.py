"""Claims and verdicts that an engine holds, as numbers: what `Judged` answers from arrays, from queries.

A cluster's numbers of claims in each cell come as digits of a few whole numbers (`_words`), so that a query groups
clusters by these: millions of clusters come back as the thousands of kinds that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factaudit.audit.core.groups import Groups
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.kinds import distinct
from factaudit.audit.core.rows import ALL
from factaudit.audit.core.scores import Case, Claims, Kinds
from factaudit.audit.core.shares import Clusters
from factaudit.audit.core.tallies import LABEL, Field, Stratum, says
from factaudit.audit.core.units import Units
from factaudit.errors import FactauditError, UsageError, hint
from factaudit.sql.engine import Engine
from factaudit.sql.prepare import Prepared
from factaudit.sql.units import relabel, units

#: Digits that a whole number of 64 bits has room for, one bit being its sign.
_BITS = 62
#: The most numbers (of 8 bytes) that the clusters of one dataset may come to.
_LARGEST = 1 << 26
#: The most kinds of claims (by score, label and prediction) of one dataset that are held, and claims read at a time.
_KINDS = 1 << 22
_ROWS = 1 << 21
_NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class StoredGroups(Groups):
    """Groups as the codes of columns. ``columns``: of the table; ``radix``: how many codes each has; ``own``: sorted
    codes of the groups as one number; ``inside``: what holds of claims that are in some group."""

    columns: tuple[str, ...] = ()
    radix: tuple[int, ...] = ()
    own: np.ndarray = field(default_factory=lambda: _NONE)
    inside: str = "TRUE"

    def places(self, found: dict[str, np.ndarray]) -> np.ndarray:
        """The group of each row of a result that has the columns."""
        rows = len(next(iter(found.values())))
        return np.searchsorted(self.own, _combined([found[one] for one in self.columns], self.radix, rows))

    def where(self, places: Sequence[int]) -> str:
        """Whether a claim is in one of some groups."""
        return " OR ".join(f"({self.condition(place)})" for place in places) or "FALSE"

    def condition(self, place: int) -> str:
        """Whether a claim is in one group."""
        code, parts = int(self.own[place]), []
        for column, size in zip(reversed(self.columns), reversed(self.radix), strict=True):
            code, digit = divmod(code, size)
            parts.append(f"{column} = {digit}")
        return " AND ".join(parts) or "TRUE"


@dataclass(frozen=True)
class Stored:
    """What `factaudit.audit.core.tallies.Tallies` asks, from the table that `factaudit.sql.prepare` made."""

    engine: Engine
    prepared: Prepared
    kept: dict[Any, Any] = field(default_factory=dict)

    @property
    def evaluators(self) -> tuple[str, ...]:
        return tuple(self.prepared.evaluators)

    @property
    def dataset_names(self) -> list[str]:
        return list(self.prepared.names["dataset"])

    @property
    def system_names(self) -> list[str]:
        return list(self.prepared.names["system"])

    def group(self, level: str, by: Sequence[str] = ("dataset",), *, systems: bool = False) -> StoredGroups:
        if level not in LEVELS:
            raise UsageError(f"unknown level {level!r}{hint(level, LEVELS)}")
        known = list(self.prepared.names)
        named = list(dict.fromkeys([*by, *(["system"] if systems else [])]))
        for column in named:
            if column not in known:
                raise UsageError(f"the claims have no column {column!r}{hint(column, known)}")
        columns = tuple(f"g{known.index(one)}" for one in named)
        radix = tuple(len(self.prepared.names[one]) + 1 for one in named)
        inside = f"g1 < {len(self.system_names)}" if systems else "TRUE"
        if level == "response":
            self._check_responses(columns, by)
        # A group without a response is seen; of a system without one nothing is.
        table = self._table(level) if systems else "claims"
        selected = ", ".join(columns) or "0 AS g"
        found = self._ask(f"SELECT DISTINCT {selected} FROM {table} WHERE {inside}")
        own = np.sort(_combined([found[one] for one in columns], radix, len(next(iter(found.values())))))
        names = [[*self.prepared.names[one], None] for one in named]
        keys = [
            dict(zip(named, (each[d] for each, d in zip(names, _digits(int(code), radix), strict=True)), strict=True))
            for code in own
        ]
        keys = [{"dataset": key.get("dataset", ALL), **key} for key in keys]
        groups = StoredGroups(_NONE, keys, level, (), columns, radix, own, inside)
        if level == "claim" or systems:
            return groups
        outside = np.zeros(len(keys), dtype=np.int64)
        told = self._ask(f"SELECT {_listed(columns)}COUNT(*) AS n FROM claims WHERE response < 0{_by(columns)}")
        np.add.at(outside, groups.places(told), told["n"])
        return StoredGroups(_NONE, keys, level, tuple(outside.tolist()), columns, radix, own, inside)

    def count(self, groups: StoredGroups, *fields: Field) -> np.ndarray:
        values = [self._value(one) for one in fields]
        told = ", ".join(f"{value} AS f{at}" for at, value in enumerate(values))
        table = self._table(groups.level)
        sql = f"SELECT {_listed(groups.columns)}{told}, COUNT(*) AS n FROM {table} WHERE {groups.inside}"
        found = self._ask(sql + _by([*groups.columns, *dict.fromkeys(values)]))
        counts = np.zeros((len(groups.keys), *[3] * len(fields)), dtype=np.int64)
        at = (groups.places(found), *(found[f"f{at}"].astype(np.int64) for at in range(len(fields))))
        np.add.at(counts, at, found["n"])
        return counts

    def clusters_of(self, groups: StoredGroups, *fields: Field, known: bool = False) -> Clusters:
        width = 2 if known else 3
        values = [self._value(one) for one in fields]
        where = " AND ".join([groups.inside, *(f"{value} < 2" for value in values if known)])
        found, counts = self._kinds(
            groups.level, groups.columns, [(None, _cell(values, width), width ** len(fields))], where
        )
        return Clusters.kinds(groups.places(found), counts, len(groups.keys), found["times"])

    def together(self, groups: StoredGroups, places: Sequence[int], *fields: Field) -> Clusters:
        cell = _cell([self._value(one) for one in fields], 3)
        parts: list[_Part] = [(groups.condition(place), cell, 3 ** len(fields)) for place in places]
        found, counts = self._kinds(groups.level, (), parts, groups.where(places))
        return Clusters.kinds(np.zeros(len(counts), dtype=np.int64), counts, 1, found["times"])

    def strata(self, groups: StoredGroups, *fields: Field) -> Iterator[Stratum]:
        sizes = self._ask(f"SELECT g0, COUNT(DISTINCT cluster) AS n FROM {self._table(groups.level)} GROUP BY g0")
        for at, n_clusters in sorted(zip(sizes["g0"].tolist(), sizes["n"].tolist(), strict=True)):
            yield self._stratum(
                groups, fields, at, n_clusters
            )  # held by who asks alone, while the next one is waited for

    def _stratum(self, groups: StoredGroups, fields: Sequence[Field], at: int, n_clusters: int) -> Stratum:
        """`strata` of the dataset at this place, which has so many clusters."""
        name, size = self.dataset_names[at], 3 ** len(fields)
        places = [place for place, key in enumerate(groups.keys) if key["dataset"] == name]
        if n_clusters * (len(places) * size + 1) > _LARGEST:
            raise FactauditError(
                f"{n_clusters:,} clusters of {len(places)} systems of {name} are too many to resample in memory: "
                "leave the audit out, or use --replicates 0"
            )
        cell = _cell([self._value(one) for one in fields], 3)
        parts: list[_Part] = [(groups.condition(place), cell, size) for place in places]
        # What is in no group is drawn all the same: its cluster is one of those that are resampled.
        outside = "FALSE" if groups.inside == "TRUE" else f"NOT ({groups.inside})"
        found, counts = self._kinds(groups.level, (), [(outside, "0", 1), *parts], f"g0 = {at}")
        codes = np.concatenate([[-1], *(np.arange(size) + place * size for place in places)])
        used = counts.any(0)
        kinds, times = distinct(counts[:, used], found["times"])
        if (kinds.sum(1) == 1).all():  # as `tally` has clusters of a claim each
            kinds, times = kinds[::-1], times[::-1]
        return name, codes[used], kinds, times

    def scored(self, groups: StoredGroups, places: Sequence[int], evaluator: int) -> Case:
        name = f"{groups.level}s of {groups.keys[places[0]]['dataset']}" if places else ""
        table, where = self._table(groups.level), f"({groups.where(places)}) AND label < 2"
        score = f"s{evaluator}" if self.prepared.scored[evaluator] else "2"
        columns = ["label", f"p{evaluator} AS said", f"{score} AS score"]
        system = np.full(len(groups.keys) + 1, -1, dtype=np.int64)
        system[list(places)] = np.arange(len(places))

        def read(found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            """The system, label, prediction and score of each row."""
            label, said = (np.where(found[one] > 1, -1, found[one]).astype(np.int8) for one in ("label", "said"))
            return system[groups.places(found)], label, said, np.where(found["score"] > 1, np.nan, found["score"])

        # What is told apart, and no row more than can be held.
        every = f"SELECT {_listed(groups.columns)}{', '.join(columns)} FROM {table} WHERE {where}"
        kinds = [*groups.columns, "label", "said", "score"]
        sql = f"SELECT {_listed(kinds)}COUNT(*) AS n FROM ({every}) AS c{_by(kinds)} LIMIT {_KINDS + 1}"
        found = self.engine.query(sql)
        if len(found["n"]) > _KINDS:
            raise FactauditError(
                f"{self.evaluators[evaluator]} has more than {_KINDS:,} different scores on the {name}: too many to "
                "calibrate by in memory. Round its scores (to 4 digits, say), or leave adjustment and adjusted_bias out"
            )
        total = int(found["n"].sum())

        def rows() -> Iterator[Claims]:
            parts = max(1, -(-total // _ROWS))
            for part in range(parts):
                some = f"SELECT {_listed(groups.columns)}{', '.join(columns)}, cluster FROM {table} WHERE {where}"
                some += f" AND MOD(cluster, {parts}) = {part}" if parts > 1 else ""
                claims = self.engine.query(some)
                yield Claims(*read(claims), claims["cluster"])

        def right() -> Clusters:
            key = ("right", groups.level, groups.columns, evaluator)
            if key not in self.kept:
                self.kept[key] = self.clusters_of(groups, LABEL, says(evaluator), known=True)
            found: Clusters = self.kept[key]
            inside = system[found.group] >= 0
            return Clusters(system[found.group[inside]], found.times[inside], found.counts[inside], len(places))

        return Case(Kinds.of(*read(found), len(places), found["n"]), right, rows)

    def relabel(self, labels: Mapping[str, int | None]) -> None:
        relabel(self.engine, labels)
        self.kept["labels"] = True

    def units(self, dataset: str, level: str, evaluators: Sequence[int], strata: Sequence[str]) -> Units:
        return units(self.engine, self.prepared, dataset, level, evaluators, strata, "labels" in self.kept)

    def n_clusters(self, groups: StoredGroups) -> np.ndarray:
        table = self._table(groups.level)
        sql = f"SELECT {_listed(groups.columns)}COUNT(DISTINCT cluster) AS n FROM {table} WHERE {groups.inside}"
        found = self._ask(sql + _by(groups.columns))
        counts = np.zeros(len(groups.keys), dtype=np.int64)
        counts[groups.places(found)] = found["n"]
        return counts

    def about(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What ``results.json`` says of the claims, by dataset, and of the evaluators."""
        labels = self._ask("SELECT g0, label, COUNT(*) AS n FROM claims GROUP BY g0, label")
        others = self._ask(
            f"SELECT g0, COUNT(DISTINCT CASE WHEN g1 < {len(self.system_names)} THEN g1 END) AS n_systems, "
            "COUNT(DISTINCT CASE WHEN response >= 0 THEN response END) AS n_responses, "
            "COUNT(DISTINCT cluster) AS n_clusters FROM claims GROUP BY g0"
        )
        counts = np.zeros((len(self.dataset_names), 3), dtype=np.int64)
        np.add.at(counts, (labels["g0"], labels["label"]), labels["n"])
        claims = [
            {
                "dataset": self.dataset_names[dataset],
                "task": None,
                "n_claims": int(counts[dataset].sum()),
                "n_labelled": int(counts[dataset, :2].sum()),
                "n_attributable": int(counts[dataset, 1]),
                **{key: int(others[key][at]) for key in ("n_systems", "n_responses", "n_clusters")},
            }
            for at, dataset in sorted(enumerate(others["g0"].tolist()), key=lambda pair: pair[1])
        ]
        told = self.prepared.evaluators.items()
        total = {name: sum(n for key, n in numbers.items() if key != "n_guessed") for name, numbers in told}
        return claims, [{"name": name, "n_verdicts": total[name], **numbers} for name, numbers in told]

    # ------------------------------------------------------------------------------------------------------ queries

    def _ask(self, sql: str) -> dict[str, np.ndarray]:
        """A query's result; each is asked once. Those of clusters are not kept: they are large, and read once."""
        if sql not in self.kept:
            self.kept[sql] = self.engine.query(sql)
        return self.kept[sql]

    def _kinds(
        self, level: str, columns: Sequence[str], parts: Sequence[_Part], where: str
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Kinds of clusters by their numbers of claims in the cells of all parts: the columns with ``times``, and
        counts (k, cells)."""
        bits = self._bits(level)
        sums: list[str] = []
        layout: list[tuple[int, int]] = []  # of each word, its first cell among all and the number of its cells
        first = 0
        for condition, cell, size in parts:
            for start in range(0, size, _BITS // bits):
                width = min(_BITS // bits, size - start)
                digits = " ".join(f"WHEN {start + k} THEN {1 << (bits * k)}" for k in range(width))
                value = f"CASE {cell} {digits} ELSE 0 END" if cell != "0" else "1"
                value = value if condition is None else f"CASE WHEN {condition} THEN {value} ELSE 0 END"
                sums.append(f"CAST(SUM(CAST({value} AS BIGINT)) AS BIGINT) AS w{len(layout)}")
                layout.append((first + start, width))
            first += size
        words = [f"w{at}" for at in range(len(layout))]
        inner = f"SELECT {_listed(columns)}{', '.join(sums)} FROM {self._table(level)} WHERE {where}"
        inner += _by([*columns, "cluster"])
        found = self.engine.query(
            f"SELECT {_listed([*columns, *words])}COUNT(*) AS times FROM ({inner}) AS c{_by([*columns, *words])}"
        )
        counts = np.zeros((len(found["times"]), first), dtype=np.int64)
        for word, (start, width) in zip(words, layout, strict=True):
            for k in range(width):
                counts[:, start + k] = (found[word].astype(np.int64) >> (bits * k)) & ((1 << bits) - 1)
        return found, counts

    def _bits(self, level: str) -> int:
        """Binary digits that hold the number of claims of any cluster."""
        sizes = f"SELECT COUNT(*) AS n FROM {self._table(level)} GROUP BY cluster"
        return int(self._ask(f"SELECT MAX(n) AS n FROM ({sizes}) AS c")["n"][0] or 1).bit_length()

    def _scores(self) -> list[str]:
        return [f"s{at}" for at, scored in enumerate(self.prepared.scored) if scored]

    def _value(self, one: Field) -> str:
        """The column of a field."""
        if one.kind == "label":
            return "label"
        own = one.kind == "certain" and self.prepared.guessed[one.evaluator]
        return f"{'q' if own else 'p'}{one.evaluator}"

    def _table(self, level: str) -> str:
        """The claims, or the responses, which are made of them when they are asked for.

        A response's value is the Kleene AND of its claims': MOD(2 * x, 3) ranks 0 < 2 (missing) < 1, and back.
        """
        if level == "claim" or "responses" in self.kept:
            return level + "s"
        grouping = [f"g{at}" for at in range(len(self.prepared.names))]
        every = ["label", *(f"p{at}" for at in range(len(self.evaluators)))]
        made = [f"MOD(2 * MIN(MOD(2 * {value}, 3)), 3) AS {value}" for value in every]
        for at, guessed in enumerate(self.prepared.guessed):
            if guessed:
                same = f"MIN(MOD(2 * q{at}, 3)) = MIN(MOD(2 * p{at}, 3))"
                made.append(f"CASE WHEN {same} THEN MOD(2 * MIN(MOD(2 * p{at}, 3)), 3) ELSE 2 END AS q{at}")
        # A response's score is the least of its claims', which all have one.
        made += [f"CASE WHEN MAX({one}) > 1 THEN 2 ELSE MIN({one}) END AS {one}" for one in self._scores()]
        told = ", ".join(f"MIN({one}) AS {one}" for one in [*grouping, "cluster"])
        sql = f"SELECT response, {told}, {', '.join(made)} FROM claims WHERE response >= 0 GROUP BY response"
        self.engine.keep("responses", sql)
        self.kept["responses"] = True
        return "responses"

    def _check_responses(self, columns: Sequence[str], by: Sequence[str]) -> None:
        further = [one for one in columns if one not in ("g0", "g1")]
        if not further:
            return
        apart = " OR ".join(f"MIN({one}) <> MAX({one})" for one in further)
        torn = f"SELECT response FROM claims WHERE response >= 0 GROUP BY response HAVING {apart}"
        if self._ask(f"SELECT COUNT(*) AS n FROM ({torn}) AS r")["n"][0]:
            raise UsageError(f"claims of one response differ in {', '.join(by)}: use levels: [claim]")


#: Claims that a condition holds for (None: all), the expression of their cell, and the number of cells.
_Part = tuple[str | None, str, int]


def _cell(values: Sequence[str], width: int) -> str:
    """The place of a claim's values in an array of ``width`` in each of its axes."""
    return " + ".join(f"{width ** (len(values) - 1 - at)} * {value}" for at, value in enumerate(values))


def _combined(columns: Sequence[np.ndarray], radix: Sequence[int], rows: int) -> np.ndarray:
    found = np.zeros(rows, dtype=np.int64)
    for values, size in zip(columns, radix, strict=True):
        found = found * size + values.astype(np.int64)
    return found


def _digits(code: int, radix: Sequence[int]) -> list[int]:
    found = []
    for size in reversed(radix):
        code, digit = divmod(code, size)
        found.append(digit)
    return found[::-1]


def _listed(columns: Sequence[str]) -> str:
    return "".join(f"{one}, " for one in columns)


def _by(columns: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(columns)}" if columns else ""
