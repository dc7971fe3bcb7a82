"""Rows that are a product (pairs of systems; calibrations × systems) as columns: a row is made when it is asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from factaudit.errors import InputError, Problem
from factaudit.text.display_text import join_reasons

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = dict[str, Any]

#: Rows of a product have a CSV beside their Parquet file where they are at most so many.
MAX_CSV_ROWS = 50_000
#: The keys of a table's metadata: how many rows were not computed, and the signature of the run.
_LEFT_OUT, _SIGNATURE = b"factaudit.rows_left_out", b"factaudit.signature"
#: So many rows are made at a time where all are read one by one.
_ROWS_AT_A_TIME = 10_000


class RowTable(Sequence[Row]):
    """The rows of an audit, held as an Arrow table or in a Parquet file that is read when a row is asked for.

    To whoever reads rows it is a sequence of them; whoever reads many takes `column`.

    >>> rows = RowTable.from_columns({"system": (["a", "b"], np.array([1, 0])), "bias": np.array([0.5, np.nan])})
    >>> rows[1], rows.column("bias").tolist()
    ({'system': 'a', 'bias': None}, [0.5, nan])
    """

    def __init__(self, source: pa.Table | Path, n_rows: int | None = None, signature: str = "") -> None:
        """n_rows, signature: of a file that is not read yet what it must have."""
        self._source, self._n_rows, self._signature = source, n_rows, signature

    @classmethod
    def from_rows(cls, rows: Sequence[Row]) -> RowTable:
        """Rows that have the same keys; a table is given back as it is."""
        if isinstance(rows, RowTable):
            return rows
        import pyarrow as pa

        keys = list(dict.fromkeys(key for row in rows for key in row))
        columns = [pa.array([row.get(key) for row in rows]) for key in keys]
        return cls(pa.table(dict(zip(keys, map(_dictionary_encode_text, columns), strict=True))))

    @classmethod
    def from_columns(cls, columns: Mapping[str, np.ndarray | tuple[Sequence[str | None], np.ndarray]]) -> RowTable:
        """A row for each place of the columns: numbers (NaN is undefined), or names and the place of each row's."""
        import pyarrow as pa

        made = {}
        for key, values in columns.items():
            if isinstance(values, tuple):
                names, places = values
                known = [name for name in names if name is not None]
                codes = np.cumsum([name is not None for name in names]) - 1
                absent = np.array([name is None for name in names], dtype=bool)[places]
                chosen = pa.array(codes[places].astype(np.int32), mask=absent if absent.any() else None)
                made[key] = pa.DictionaryArray.from_arrays(chosen, pa.array(known, pa.string()))
            else:
                made[key] = pa.array(values, from_pandas=True)
        return cls(pa.table(made))

    @classmethod
    def concatenate(cls, tables: Sequence[RowTable]) -> RowTable:
        """The rows of all; figures that a table has only undefined are figures there, too."""
        import pyarrow as pa

        if not tables:
            return cls(pa.table({}))
        whole = pa.concat_tables([each.arrow for each in tables], promote_options="permissive")
        return cls(whole.unify_dictionaries().combine_chunks())

    @classmethod
    def read(cls, path: Path) -> RowTable:
        """The rows of a Parquet file, of whatever run; raises `InputError`."""
        return cls(_read_row_table_from_arrow(path))

    @cached_property
    def arrow(self) -> pa.Table:
        """The columns; raises `InputError` where their file is missing or none of ours."""
        if not isinstance(self._source, Path):
            return self._source
        found = _read_row_table_from_arrow(self._source)
        if len(found) != self._n_rows or _read_metadata(found, _SIGNATURE) != self._signature:
            raise InputError(
                str(self._source), [Problem("its rows are of another run than results.json: run the experiment again")]
            )
        return found

    def leave_out(self, n_rows: int) -> RowTable:
        """The same rows, with the number of those of the product that were not computed."""
        return RowTable(_add_metadata(self.arrow, _LEFT_OUT, str(n_rows)))

    @property
    def n_left_out(self) -> int:
        """How many rows of the product were not computed."""
        return int(_read_metadata(self.arrow, _LEFT_OUT) or 0)

    def write(self, path: Path, signature: str) -> None:
        """Write a Parquet file that names the run's signature; the same rows give the same bytes."""
        import pyarrow.parquet as pq

        pq.write_table(_add_metadata(self.arrow, _SIGNATURE, signature), path, compression="zstd")

    @property
    def keys(self) -> list[str]:
        """The keys of each row."""
        return list(self.arrow.column_names)

    def column(self, key: str) -> np.ndarray:
        """The values of a key: numbers (float64, NaN where undefined), or objects, None where there is none."""
        import pyarrow as pa

        values = self.arrow.column(key)
        kind = values.type
        if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind):
            return np.asarray(values.cast(pa.float64()).to_numpy())
        names, places = self.codes(key)
        return np.array([*names, None], dtype=object)[places]

    def codes(self, key: str) -> tuple[list[Any], np.ndarray]:
        """The distinct values of a key, in the order in which they occur, and the place of each row's (-1: none)."""
        import pyarrow as pa

        values = self.arrow.column(key).combine_chunks()
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        places = np.asarray(values.indices.fill_null(-1)).astype(np.int64)
        used, first = np.unique(places, return_index=True)
        used = used[np.argsort(first)]
        used = used[used >= 0]
        names = values.dictionary.to_pylist()
        renumbered = np.full(len(names) + 1, -1)
        renumbered[used] = np.arange(len(used))
        return [names[at] for at in used], renumbered[places]

    def take(self, chosen: np.ndarray) -> RowTable:
        """The rows at these places, or where this is true."""
        import pyarrow as pa

        places = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return RowTable(self.arrow.take(pa.array(places)))

    def group_places(self, *keys: str) -> Iterator[tuple[Row, np.ndarray]]:
        """The values of these keys, in the order in which they occur together, and the places of the rows with them."""
        listed = [self.codes(key) for key in keys]
        combined = np.zeros(len(self), dtype=np.int64)
        for names, places in listed:
            combined = combined * (len(names) + 1) + places + 1
        _, first, group = np.unique(combined, return_index=True, return_inverse=True)
        order = np.argsort(group, kind="stable")
        starts = np.searchsorted(group[order], np.arange(len(first) + 1))
        for at in np.argsort(first):
            values = {key: [*names, None][places[first[at]]] for key, (names, places) in zip(keys, listed, strict=True)}
            yield values, order[starts[at] : starts[at + 1]]

    def count_distinct_rows(self, *keys: str) -> list[Row]:
        """A row for each combination of these keys' values, with ``n_rows``: how many rows have it."""
        return [values | {"n_rows": len(places)} for values, places in self.group_places(*keys)]

    def sort_by_names(self, keys_before: Sequence[str], keys: Sequence[str], names: Sequence[str]) -> RowTable:
        """The rows with the values of ``keys`` in the order of ``names`` within what ``keys_before`` are; all else as
        it is."""
        order = np.empty(0, dtype=np.int64)
        place = {name: at for at, name in enumerate(names)}
        for _, places in self.group_places(*keys_before):
            ranks = []
            for key in keys:
                found, codes = self.codes(key)
                ranks.append(np.array([*(place.get(name, len(names)) for name in found), len(names)])[codes[places]])
            order = np.append(order, places[np.lexsort(np.sort(ranks, axis=0)[::-1])])
        return self.take(order)

    def drop(self, unwanted: Mapping[str, Collection[Any]]) -> RowTable:
        """The rows without those in which some key has one of these values."""
        kept = np.ones(len(self), dtype=bool)
        for key in unwanted.keys() & set(self.keys):
            names, places = self.codes(key)
            kept &= np.array([*(name not in unwanted[key] for name in names), True], dtype=bool)[places]
        return self if kept.all() else self.take(kept)

    def select(self, wanted: Mapping[str, Collection[Any]]) -> RowTable:
        """The rows whose keys have one of the values that are wanted of each."""
        chosen = np.ones(len(self), dtype=bool)
        for key, values in wanted.items():
            names, places = self.codes(key)
            chosen &= np.array([*(name in values for name in names), None in values], dtype=bool)[places]
        return self if chosen.all() else self.take(chosen)

    @property
    def example_row(self) -> Row:
        """A defined value of each key, None where there is none."""
        found: Row = {}
        for key in self.keys:
            some = self.arrow.column(key).drop_null()
            found[key] = some[0].as_py() if len(some) else None
        return found

    def to_frame(self) -> pd.DataFrame:
        """The columns as a DataFrame; undefined figures are missing values, names are text."""
        import pyarrow as pa

        plain = [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in self.arrow.columns
        ]
        return pa.table(plain, names=self.keys).to_pandas()

    def __len__(self) -> int:
        return len(self.arrow) if self._n_rows is None else self._n_rows

    def __iter__(self) -> Iterator[Row]:
        for start in range(0, len(self), _ROWS_AT_A_TIME):
            yield from self.arrow.slice(start, _ROWS_AT_A_TIME).to_pylist()

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> RowTable: ...

    def __getitem__(self, place: int | slice) -> Row | RowTable:
        if isinstance(place, slice):
            return self.take(np.arange(len(self))[place])
        row: Row = self.arrow.slice(range(len(self))[place], 1).to_pylist()[0]
        return row

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RowTable):
            return self.arrow.equals(other.arrow) or list(self) == list(other)
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


def _read_row_table_from_arrow(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read()
    except FileNotFoundError:
        raise InputError(str(path), [Problem("missing: results.json says that rows are there")]) from None
    except (pa.ArrowException, OSError) as error:
        raise InputError(str(path), [Problem(f"not Parquet: {error}")]) from None


def _read_metadata(table: pa.Table, key: bytes) -> str | None:
    found = (table.schema.metadata or {}).get(key)
    return None if found is None else found.decode("utf-8")


def _add_metadata(table: pa.Table, key: bytes, text: str) -> pa.Table:
    return table.replace_schema_metadata({**(table.schema.metadata or {}), key: text.encode("utf-8")})


def _dictionary_encode_text(values: pa.Array) -> pa.Array:
    import pyarrow as pa

    return values.dictionary_encode() if pa.types.is_string(values.type) else values


def join_row_table_reasons(reasons: Sequence[tuple[Sequence[str], np.ndarray]]) -> tuple[list[str | None], np.ndarray]:
    """Several reasons of each row as one text, as `join_reasons` joins them: texts, and the place of each row's.

    >>> join_row_table_reasons([(["", "few"], np.array([0, 1])), (["", "no label"], np.array([0, 1]))])
    ([None, 'few; no label'], array([0, 1]))
    """
    combined = np.zeros(len(reasons[0][1]), dtype=np.int64)
    for texts, places in reasons:
        combined = combined * len(texts) + places
    distinct, found = np.unique(combined, return_inverse=True)
    joined = []
    for code in distinct.tolist():
        parts = []
        for texts, _ in reversed(reasons):
            code, at = divmod(code, len(texts))
            parts.append(texts[at])
        joined.append(join_reasons(reversed(parts)))
    return joined, found
