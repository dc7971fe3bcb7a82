"""Claims and verdicts that an engine holds, as numbers: what `Judgements` answers from arrays, from queries.

A cluster's numbers of claims in each cell come as digits of a few whole numbers (`_words`), so that a query groups
clusters by these: millions of clusters come back as the thousands of kinds that there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from factaudit.arrays.calibration_claims import CalibrationClaims
from factaudit.arrays.claim_groups import ALL_TOGETHER, ClaimGroups
from factaudit.arrays.count_source import LABEL_FIELD, BootstrapStratum, LabelOrPrediction, prediction_field
from factaudit.arrays.estimation_units import EstimationUnits
from factaudit.arrays.judgements import LEVELS
from factaudit.arrays.scored_claims import DistinctScoredClaims, ScoredClaims
from factaudit.errors import FactauditError, UsageError, suggest_known_name
from factaudit.sql.estimation_queries import query_sql_estimation_units, store_annotated_labels_in_sql
from factaudit.sql.sql_engine import SqlEngine
from factaudit.sql.table_join import SqlJoinSummary
from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.distinct_rows import count_distinct_rows

#: Digits that a whole number of 64 bits has room for, one bit being its sign.
_WORD_BITS = 62
#: The most numbers (of 8 bytes) that the clusters of one dataset may come to.
_MAX_CLUSTER_NUMBERS = 1 << 26
#: The most kinds of claims (by score, label and prediction) of one dataset that are held, and claims read at a time.
_MAX_CLAIM_KINDS = 1 << 22
_ROWS_PER_READ = 1 << 21
_NO_CODES = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class SqlClaimGroups(ClaimGroups):
    """Groups as the codes of columns. ``columns``: of the table; ``code_counts``: how many codes each has;
    ``group_codes``: sorted
    codes of the groups as one number; ``inside``: what holds of claims that are in some group."""

    columns: tuple[str, ...] = ()
    code_counts: tuple[int, ...] = ()
    group_codes: np.ndarray = field(default_factory=lambda: _NO_CODES)
    members: str = "TRUE"

    def find_group_places(self, query_result: dict[str, np.ndarray]) -> np.ndarray:
        """The group of each row of a result that has the columns."""
        rows = len(next(iter(query_result.values())))
        return np.searchsorted(
            self.group_codes, _combine_column_codes([query_result[one] for one in self.columns], self.code_counts, rows)
        )

    def any_group_condition(self, places: Sequence[int]) -> str:
        """Whether a claim is in one of some groups."""
        return " OR ".join(f"({self.group_condition(place)})" for place in places) or "FALSE"

    def group_condition(self, place: int) -> str:
        """Whether a claim is in one group."""
        code, parts = int(self.group_codes[place]), []
        for column, size in zip(reversed(self.columns), reversed(self.code_counts), strict=True):
            code, digit = divmod(code, size)
            parts.append(f"{column} = {digit}")
        return " AND ".join(parts) or "TRUE"


@dataclass(frozen=True)
class SqlTallies:
    """What `factaudit.arrays.count_source.CountSource` asks, from the table that `factaudit.sql.table_join` made."""

    engine: SqlEngine
    join_summary: SqlJoinSummary
    cache: dict[Any, Any] = field(default_factory=dict)

    @property
    def evaluators(self) -> tuple[str, ...]:
        return tuple(self.join_summary.verdict_counts)

    @property
    def dataset_names(self) -> list[str]:
        return list(self.join_summary.column_values["dataset"])

    @property
    def system_names(self) -> list[str]:
        return list(self.join_summary.column_values["system"])

    def make_groups(self, level: str, by: Sequence[str] = ("dataset",), *, systems: bool = False) -> SqlClaimGroups:
        if level not in LEVELS:
            raise UsageError(f"unknown level {level!r}{suggest_known_name(level, LEVELS)}")
        known = list(self.join_summary.column_values)
        named = list(dict.fromkeys([*by, *(["system"] if systems else [])]))
        for column in named:
            if column not in known:
                raise UsageError(f"the claims have no column {column!r}{suggest_known_name(column, known)}")
        columns = tuple(f"g{known.index(one)}" for one in named)
        radix = tuple(len(self.join_summary.column_values[one]) + 1 for one in named)
        inside = f"g1 < {len(self.system_names)}" if systems else "TRUE"
        if level == "response":
            self._check_response_groups(columns, by)
        # A group without a response is seen; of a system without one nothing is.
        table = self._level_table(level) if systems else "claims"
        selected = ", ".join(columns) or "0 AS g"
        found = self._query_once(f"SELECT DISTINCT {selected} FROM {table} WHERE {inside}")
        own = np.sort(_combine_column_codes([found[one] for one in columns], radix, len(next(iter(found.values())))))
        names = [[*self.join_summary.column_values[one], None] for one in named]
        codes = (_split_combined_sql_code(int(code), radix) for code in own)
        values = ([each[digit] for each, digit in zip(names, code, strict=True)] for code in codes)
        keys = [{"dataset": ALL_TOGETHER, **dict(zip(named, value, strict=True))} for value in values]
        groups = SqlClaimGroups(_NO_CODES, keys, level, (), columns, radix, own, inside)
        if level == "claim" or systems:
            return groups
        outside = np.zeros(len(keys), dtype=np.int64)
        told = self._query_once(
            f"SELECT {_select_list(columns)}COUNT(*) AS n FROM claims WHERE response < 0{_group_by(columns)}"
        )
        np.add.at(outside, groups.find_group_places(told), told["n"])
        return replace(groups, claims_without_response=tuple(outside.tolist()))

    def count_cells(self, groups: SqlClaimGroups, *fields: LabelOrPrediction) -> np.ndarray:
        values = [self._field_column(one) for one in fields]
        told = ", ".join(f"{value} AS f{at}" for at, value in enumerate(values))
        table = self._level_table(groups.level)
        sql = f"SELECT {_select_list(groups.columns)}{told}, COUNT(*) AS n FROM {table} WHERE {groups.members}"
        found = self._query_once(sql + _group_by([*groups.columns, *dict.fromkeys(values)]))
        counts = np.zeros((len(groups.keys), *[3] * len(fields)), dtype=np.int64)
        at = (groups.find_group_places(found), *(found[f"f{at}"].astype(np.int64) for at in range(len(fields))))
        np.add.at(counts, at, found["n"])
        return counts

    def count_clusters(
        self, groups: SqlClaimGroups, *fields: LabelOrPrediction, complete_only: bool = False
    ) -> ClusterCounts:
        width = 2 if complete_only else 3
        values = [self._field_column(one) for one in fields]
        where = " AND ".join([groups.members, *(f"{value} < 2" for value in values if complete_only)])
        cell = _build_sql_cell_expression(values, width)
        found, counts = self._query_cluster_kinds(
            groups.level, groups.columns, [(None, cell, width ** len(fields))], where
        )
        return ClusterCounts.collapse_equal_clusters(
            groups.find_group_places(found), counts, len(groups.keys), found["times"]
        )

    def count_clusters_jointly(
        self, groups: SqlClaimGroups, group_indices: Sequence[int], *fields: LabelOrPrediction
    ) -> ClusterCounts:
        if not len(group_indices):
            nothing = np.zeros(0, dtype=np.int64)
            return ClusterCounts.collapse_equal_clusters(nothing, np.zeros((0, 0), dtype=np.int64), 1, nothing)
        cell = _build_sql_cell_expression([self._field_column(one) for one in fields], 3)
        parts: list[_CellPart] = [(groups.group_condition(place), cell, 3 ** len(fields)) for place in group_indices]
        found, counts = self._query_cluster_kinds(groups.level, (), parts, groups.any_group_condition(group_indices))
        return ClusterCounts.collapse_equal_clusters(np.zeros(len(counts), dtype=np.int64), counts, 1, found["times"])

    def bootstrap_strata(self, groups: SqlClaimGroups, *fields: LabelOrPrediction) -> Iterator[BootstrapStratum]:
        sizes = self._query_once(
            f"SELECT g0, COUNT(DISTINCT cluster) AS n FROM {self._level_table(groups.level)} GROUP BY g0"
        )
        for at, n_clusters in sorted(zip(sizes["g0"].tolist(), sizes["n"].tolist(), strict=True)):
            yield self._query_stratum(
                groups, fields, at, n_clusters
            )  # held by who asks alone, while the next one is waited for

    def _query_stratum(
        self, groups: SqlClaimGroups, fields: Sequence[LabelOrPrediction], at: int, n_clusters: int
    ) -> BootstrapStratum:
        """`strata` of the dataset at this place, which has so many clusters."""
        name, size = self.dataset_names[at], 3 ** len(fields)
        places = [place for place, key in enumerate(groups.keys) if key["dataset"] == name]
        if n_clusters * (len(places) * size + 1) > _MAX_CLUSTER_NUMBERS:
            raise FactauditError(
                f"{n_clusters:,} clusters of {len(places)} systems of {name} are too many to resample in memory: "
                "leave the audit out, or use --replicates 0"
            )
        cell = _build_sql_cell_expression([self._field_column(one) for one in fields], 3)
        parts: list[_CellPart] = [(groups.group_condition(place), cell, size) for place in places]
        # What is in no group is drawn all the same: its cluster is one of those that are resampled.
        outside = "FALSE" if groups.members == "TRUE" else f"NOT ({groups.members})"
        found, counts = self._query_cluster_kinds(groups.level, (), [(outside, "0", 1), *parts], f"g0 = {at}")
        codes = np.concatenate([[-1], *(np.arange(size) + place * size for place in places)])
        used = counts.any(0)
        kinds, times = count_distinct_rows(counts[:, used], found["times"])
        if (kinds.sum(1) == 1).all():  # as `tally` has clusters of a claim each
            kinds, times = kinds[::-1], times[::-1]
        return name, codes[used], kinds, times

    def scored_claims(self, groups: SqlClaimGroups, group_indices: Sequence[int], evaluator: int) -> CalibrationClaims:
        name = f"{groups.level}s of {groups.keys[group_indices[0]]['dataset']}" if group_indices else ""
        table, where = self._level_table(groups.level), f"({groups.any_group_condition(group_indices)}) AND label < 2"
        score = f"s{evaluator}" if self.join_summary.has_scores[evaluator] else "2"
        columns = ["label", f"p{evaluator} AS said", f"{score} AS score"]
        system = np.full(len(groups.keys) + 1, -1, dtype=np.int64)
        system[list(group_indices)] = np.arange(len(group_indices))

        def read(found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
            """The system, label, prediction and score of each row."""
            label, said = (np.where(found[one] > 1, -1, found[one]).astype(np.int8) for one in ("label", "said"))
            return (
                system[groups.find_group_places(found)],
                label,
                said,
                np.where(found["score"] > 1, np.nan, found["score"]),
            )

        # What is told apart, and no row more than can be held.
        every = f"SELECT {_select_list(groups.columns)}{', '.join(columns)} FROM {table} WHERE {where}"
        kinds = [*groups.columns, "label", "said", "score"]
        sql = f"SELECT {_select_list(kinds)}COUNT(*) AS n FROM ({every}) AS c{_group_by(kinds)}"
        sql += f" LIMIT {_MAX_CLAIM_KINDS + 1}"
        found = self.engine.query(sql)
        if len(found["n"]) > _MAX_CLAIM_KINDS:
            raise FactauditError(
                f"{self.evaluators[evaluator]} has more than {_MAX_CLAIM_KINDS:,} different scores "
                f"on the {name}: too many to calibrate by in memory. "
                "Round its scores (to 4 digits, say), or leave adjustment and adjusted_bias out"
            )
        total = int(found["n"].sum())

        def rows() -> Iterator[ScoredClaims]:
            parts = max(1, -(-total // _ROWS_PER_READ))
            for part in range(parts):
                some = f"SELECT {_select_list(groups.columns)}{', '.join(columns)}, cluster FROM {table} WHERE {where}"
                some += f" AND MOD(cluster, {parts}) = {part}" if parts > 1 else ""
                claims = self.engine.query(some)
                yield ScoredClaims(*read(claims), claims["cluster"])

        def right() -> ClusterCounts:
            key = ("right", groups.level, groups.columns, evaluator)
            if key not in self.cache:
                self.cache[key] = self.count_clusters(
                    groups, LABEL_FIELD, prediction_field(evaluator), complete_only=True
                )
            found: ClusterCounts = self.cache[key]
            inside = system[found.group] >= 0
            return ClusterCounts(
                system[found.group[inside]], found.times[inside], found.counts[inside], len(group_indices)
            )

        return CalibrationClaims(DistinctScoredClaims.of(*read(found), len(group_indices), found["n"]), right, rows)

    def relabel(self, labels: Mapping[str, int | None]) -> None:
        store_annotated_labels_in_sql(self.engine, labels)
        self.cache["labels"] = True

    def units(self, dataset: str, level: str, evaluators: Sequence[int], strata: Sequence[str]) -> EstimationUnits:
        return query_sql_estimation_units(
            self.engine, self.join_summary, dataset, level, evaluators, strata, "labels" in self.cache
        )

    def n_clusters(self, groups: SqlClaimGroups) -> np.ndarray:
        table = self._level_table(groups.level)
        sql = f"SELECT {_select_list(groups.columns)}COUNT(DISTINCT cluster) AS n FROM {table} WHERE {groups.members}"
        found = self._query_once(sql + _group_by(groups.columns))
        counts = np.zeros(len(groups.keys), dtype=np.int64)
        counts[groups.find_group_places(found)] = found["n"]
        return counts

    def describe_tables(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """What ``results.json`` says of the claims, by dataset, and of the evaluators."""
        labels = self._query_once("SELECT g0, label, COUNT(*) AS n FROM claims GROUP BY g0, label")
        others = self._query_once(
            f"SELECT g0, COUNT(DISTINCT CASE WHEN g1 < {len(self.system_names)} THEN g1 END) AS n_systems, "
            "COUNT(DISTINCT CASE WHEN response <> -1 THEN response END) AS n_responses, "
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
        told = self.join_summary.verdict_counts.items()
        total = {name: sum(n for key, n in numbers.items() if key != "n_guessed") for name, numbers in told}
        return claims, [{"name": name, "n_verdicts": total[name], **numbers} for name, numbers in told]

    # ------------------------------------------------------------------------------------------------------ queries

    def _query_once(self, sql: str) -> dict[str, np.ndarray]:
        """A query's result; each is asked once. Those of clusters are not kept: they are large, and read once."""
        if sql not in self.cache:
            self.cache[sql] = self.engine.query(sql)
        return self.cache[sql]

    def _query_cluster_kinds(
        self, level: str, columns: Sequence[str], parts: Sequence[_CellPart], where: str
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Kinds of clusters by their numbers of claims in the cells of all parts: the columns with ``times``, and
        counts (k, cells)."""
        bits = self._count_cell_bits(level)
        sums: list[str] = []
        layout: list[tuple[int, int]] = []  # of each word, its first cell among all and the number of its cells
        first = 0
        for condition, cell, size in parts:
            for start in range(0, size, _WORD_BITS // bits):
                width = min(_WORD_BITS // bits, size - start)
                digits = " ".join(f"WHEN {start + k} THEN {1 << (bits * k)}" for k in range(width))
                value = f"CASE {cell} {digits} ELSE 0 END" if cell != "0" else "1"
                value = value if condition is None else f"CASE WHEN {condition} THEN {value} ELSE 0 END"
                sums.append(f"CAST(SUM(CAST({value} AS BIGINT)) AS BIGINT) AS w{len(layout)}")
                layout.append((first + start, width))
            first += size
        words = [f"w{at}" for at in range(len(layout))]
        inner = f"SELECT {_select_list(columns)}{', '.join(sums)} FROM {self._level_table(level)} WHERE {where}"
        inner += _group_by([*columns, "cluster"])
        kinds = [*columns, *words]
        found = self.engine.query(
            f"SELECT {_select_list(kinds)}COUNT(*) AS times FROM ({inner}) AS c{_group_by(kinds)}"
        )
        counts = np.zeros((len(found["times"]), first), dtype=np.int64)
        for word, (start, width) in zip(words, layout, strict=True):
            for k in range(width):
                counts[:, start + k] = (found[word].astype(np.int64) >> (bits * k)) & ((1 << bits) - 1)
        return found, counts

    def _count_cell_bits(self, level: str) -> int:
        """Binary digits that hold the number of claims of any cluster."""
        sizes = f"SELECT COUNT(*) AS n FROM {self._level_table(level)} GROUP BY cluster"
        return int(self._query_once(f"SELECT MAX(n) AS n FROM ({sizes}) AS c")["n"][0] or 1).bit_length()

    def _field_column(self, one: LabelOrPrediction) -> str:
        if one.kind == "label":
            return "label"
        own = one.kind == "stated_prediction" and self.join_summary.has_guesses[one.evaluator]
        return f"{'q' if own else 'p'}{one.evaluator}"

    def _level_table(self, level: str) -> str:
        """The claims, or the responses, which are made of them when they are asked for.

        A response's prediction is the Kleene AND of its claims': MOD(2 * x, 3) ranks 0 < 2 (missing) < 1, and back.
        Its label is missing where that of any claim is.
        """
        if level == "claim" or "responses" in self.cache:
            return level + "s"
        grouping = [f"g{at}" for at in range(len(self.join_summary.column_values))]
        made = ["CASE WHEN MAX(label) > 1 THEN 2 ELSE MIN(label) END AS label"]
        made += [f"MOD(2 * MIN(MOD(2 * p{at}, 3)), 3) AS p{at}" for at in range(len(self.evaluators))]
        for at, guessed in enumerate(self.join_summary.has_guesses):
            if guessed:
                same = f"MIN(MOD(2 * q{at}, 3)) = MIN(MOD(2 * p{at}, 3))"
                made.append(f"CASE WHEN {same} THEN MOD(2 * MIN(MOD(2 * p{at}, 3)), 3) ELSE 2 END AS q{at}")
        # A response's score is the least of its claims', which all have one.
        scores = [f"s{at}" for at, scored in enumerate(self.join_summary.has_scores) if scored]
        made += [f"CASE WHEN MAX({one}) > 1 THEN 2 ELSE MIN({one}) END AS {one}" for one in scores]
        told = ", ".join(f"MIN({one}) AS {one}" for one in [*grouping, "cluster"])
        sql = f"SELECT response, {told}, {', '.join(made)} FROM claims WHERE response >= 0 GROUP BY response"
        self.engine.store_table("responses", sql)
        self.cache["responses"] = True
        return "responses"

    def _check_response_groups(self, columns: Sequence[str], by: Sequence[str]) -> None:
        further = [one for one in columns if one not in ("g0", "g1")]
        if not further:
            return
        apart = " OR ".join(f"MIN({one}) <> MAX({one})" for one in further)
        torn = f"SELECT response FROM claims WHERE response >= 0 GROUP BY response HAVING {apart}"
        if self._query_once(f"SELECT COUNT(*) AS n FROM ({torn}) AS r")["n"][0]:
            raise UsageError(f"claims of one response differ in {', '.join(by)}: use levels: [claim]")


#: Claims that a condition holds for (None: all), the expression of their cell, and the number of cells.
_CellPart = tuple[str | None, str, int]


def _build_sql_cell_expression(value_expressions: Sequence[str], axis_width: int) -> str:
    """The place of a claim's values in an array of ``axis_width`` in each of its axes."""
    return " + ".join(
        f"{axis_width ** (len(value_expressions) - 1 - at)} * {value}" for at, value in enumerate(value_expressions)
    )


def _combine_column_codes(code_columns: Sequence[np.ndarray], code_counts: Sequence[int], n_rows: int) -> np.ndarray:
    found = np.zeros(n_rows, dtype=np.int64)
    for values, size in zip(code_columns, code_counts, strict=True):
        found = found * size + values.astype(np.int64)
    return found


def _split_combined_sql_code(code: int, code_counts: Sequence[int]) -> list[int]:
    found = []
    for size in reversed(code_counts):
        code, digit = divmod(code, size)
        found.append(digit)
    return found[::-1]


def _select_list(columns: Sequence[str]) -> str:
    return "".join(f"{one}, " for one in columns)


def _group_by(columns: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(columns)}" if columns else ""
