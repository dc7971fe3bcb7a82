"""The queries on Apache Spark, where verdicts live in a lake: needs a session of yours (``pip install pyspark``).

>>> engine = SparkEngine(session, "scratch")  # doctest: +SKIP
>>> tables = SourceTables("lake.claims", "lake.verdicts", "lake.claims", "lake.verdicts")  # doctest: +SKIP
>>> tallies = SqlTallies(engine, join_source_tables(engine, tables))  # doctest: +SKIP
>>> compute_evaluator_rates(tallies, intervals=ClusterBootstrap())  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factaudit.errors import InputError, Problem, format_error_first_line
from factaudit.sql.sql_engine import ColumnKind, classify_sql_column_type


class SparkEngine:
    """A Spark session as a `SqlEngine`; tables are stored as Parquet under ``folder``, which all workers reach."""

    def __init__(self, session: Any, folder: str | Path) -> None:
        self._session, self._folder = session, str(folder)
        self._kept: list[str] = []

    def query(self, sql: str) -> dict[str, np.ndarray]:
        found = self._session.sql(sql)
        columns = zip(*found.collect(), strict=True)
        types = dict(found.dtypes)
        values = dict(zip(found.columns, columns, strict=False)) or dict.fromkeys(found.columns, ())
        return {
            name: np.array(each, dtype=object if classify_sql_column_type(types[name]) == "text" else None)
            if len(each)
            else np.zeros(0, dtype=np.int64)
            for name, each in values.items()
        }

    def store_table(self, name: str, *queries: str, order: Sequence[str] = ()) -> None:
        path = f"{self._folder}/{name}"
        for at, sql in enumerate(queries):
            self._session.sql(sql).write.mode("append" if at else "overwrite").parquet(path)
        self._session.read.parquet(path).createOrReplaceTempView(name)
        self._kept.append(name)

    def drop_table(self, name: str) -> None:
        self._session.catalog.dropTempView(name)

    def find_part_bounds(self, relation: str, column: str, rows: int) -> list[Any]:
        return []  # the cluster parts it

    def read_column_kinds(self, relation: str) -> dict[str, ColumnKind]:
        try:
            declared = self._session.sql(f"SELECT * FROM {relation} AS t").dtypes
        except Exception as error:  # py4j's classes are known where pyspark is
            raise InputError(relation, [Problem(f"cannot be read ({format_error_first_line(error)})")]) from None
        return {str(name): classify_sql_column_type(str(kind)) for name, kind in declared}

    def close(self) -> None:
        for name in self._kept:
            self._session.catalog.dropTempView(name)
