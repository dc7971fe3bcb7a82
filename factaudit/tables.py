"""The two tables that everything reads and writes: claims and verdicts.

A *claim* is one statement to check against one document; a *verdict* is what one evaluator said of one claim. Both are
pandas DataFrames with the columns below, kept as Parquet, JSONL or CSV (the last two also ``.gz``). Reading validates:
all that is wrong with a file is reported together, by row and column.

CSV has no null: an empty cell is one. In Parquet and CSV an extra column of objects, or of values of several types,
is written as JSON text.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import accumulate, islice
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.errors import MAX_PROBLEMS, InputError, Problem
from factaudit.files import atomic
from factaudit.signature import digest

#: Columns of the claims table, in order. All but `label` and `abstained` hold text; extra columns are kept as they are.
#: `abstained` is set (1, or 0 where the response answered) on a row that stands for a response without any claim: such
#: a row has no claim, no label and no verdict, and only what counts responses reads it.
CLAIM_COLUMNS = (
    "claim_id",
    "dataset",
    "task",
    "system",
    "response_id",
    "doc_id",
    "topic",
    "group",
    "entity",
    "fact_id",
    "split",
    "claim",
    "doc",
    "label",
    "abstained",
)
#: Columns of the verdicts table, in order.
VERDICT_COLUMNS = ("claim_id", "evaluator", "repeat", "score", "prediction", "status", "raw", "chunk_scores")
#: What tells verdicts apart. `repeat` counts from 0 how often the same evaluator was asked before; most audits read 0.
VERDICT_KEY = ("claim_id", "evaluator", "repeat")
#: What became of a verdict. Without a prediction, anything but "ok".
STATUSES = ("ok", "unparsed", "refused", "error", "skipped")
#: A score above this (strictly) is prediction 1, where no prediction is given.
DEFAULT_THRESHOLD = 0.5

_CLAIM_REQUIRED = ("dataset", "claim")
_CLAIM_TEXT = tuple(column for column in CLAIM_COLUMNS if column not in ("label", "abstained"))
_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz")


def read_claims(*paths: str | Path) -> pd.DataFrame:
    """Read and validate claims from one or several files (concatenated in the order given).

    Returns a DataFrame with all of `CLAIM_COLUMNS` (missing optional ones null), then any extra columns.
    Raises `InputError` naming file, row and column.
    """
    tables, made = [], []
    for path in paths:
        table = read_table(path)
        made.append("claim_id" not in table)
        tables.append(validate_claims(table, source=str(path), unit=_unit(path)))
    if len(tables) > 1 and any(made):
        # Made over all the files together, so that equal rows of two files get two ids.
        together = pd.concat([table for table, own in zip(tables, made, strict=True) if own], ignore_index=True)
        ids = iter(make_claim_ids(together))
        for table in (table for table, own in zip(tables, made, strict=True) if own):
            table["claim_id"] = pd.Series(list(islice(ids, len(table))), dtype="str")
    return merge_claims(tables, [str(path) for path in paths])


def read_verdicts(*paths: str | Path, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read and validate verdicts from one or several files; against ``claims`` where given.

    Returns a DataFrame with `VERDICT_COLUMNS`. Raises `InputError` naming file, row and column.
    """
    tables = [validate_verdicts(read_table(path), claims=claims, source=str(path), unit=_unit(path)) for path in paths]
    return merge_verdicts(tables, [str(path) for path in paths])


def merge_claims(tables: Sequence[pd.DataFrame], sources: Sequence[str] = ()) -> pd.DataFrame:
    """Put validated claims tables under each other; the same id twice is an `InputError` that names its ``sources``."""
    if len(tables) == 1:
        return tables[0]
    claims = pd.concat(tables, ignore_index=True)
    problems = _Problems("claims", parts=_parts(tables, sources))
    problems.duplicates(claims["claim_id"], "claim_id", "ids that are unique over all the sources")
    problems.raise_if_any()
    return claims


def merge_verdicts(tables: Sequence[pd.DataFrame], sources: Sequence[str] = ()) -> pd.DataFrame:
    """Put validated verdicts tables under each other; the same `VERDICT_KEY` twice is an `InputError`."""
    if len(tables) == 1:
        return tables[0]
    verdicts = pd.concat(tables, ignore_index=True)
    names = [set(table["evaluator"].unique()) for table in tables]
    if len(set().union(*names)) < sum(map(len, names)):  # else no two tables can have the same pair
        problems = _Problems("verdicts", parts=_parts(tables, sources))
        problems.duplicate_verdicts(verdicts)
        problems.raise_if_any()
    return verdicts


def validate_claims(table: pd.DataFrame, source: str = "claims", unit: str = "row") -> pd.DataFrame:
    """Check a table of claims and bring it into the standard form (a new DataFrame, index 0..n-1).

    Where ``claim_id`` is missing, ids are made by `make_claim_ids`. LLM-AggreFact's own columns load as they are.
    """
    problems = _Problems(source, unit, table.attrs.get(_POSITIONS))
    table = _plain_index(table)
    problems.columns(table, _CLAIM_REQUIRED)
    problems.no_rows(table)
    problems.raise_if_any()

    standard: dict[str, Any] = {}
    for column in _CLAIM_TEXT:
        if column in table:
            standard[column] = _text(table[column], column, problems)
        else:
            standard[column] = _no_text(table.index)
    for column in ("label", "abstained"):
        standard[column] = _binary(table.get(column), table.index, column, _EXPECTED[column], problems)
    lone = standard["abstained"].notna()  # rows that stand for a response without claims
    for column in _CLAIM_REQUIRED:
        empty = table[column].isna() | (standard[column].str.strip() == "")
        problems.mask(empty & ~lone if column == "claim" else empty, column, "expected text, found none")
    for column in ("claim", "label"):
        wrong = lone & standard[column].notna()
        problems.mask(wrong, column, "expected nothing where abstained is set", standard[column])
    problems.mask(lone & standard["response_id"].isna(), "response_id", "expected text where abstained is set")
    problems.raise_if_any()

    claims = pd.DataFrame({column: standard[column] for column in CLAIM_COLUMNS})
    for column in table.columns:
        if column not in claims:
            claims[column] = table[column].infer_objects()
    if "claim_id" not in table:
        claims["claim_id"] = make_claim_ids(claims)
    else:
        empty = claims["claim_id"].isna() | (claims["claim_id"] == "")
        problems.mask(empty, "claim_id", "expected an id, found none")
        problems.duplicates(claims["claim_id"], "claim_id", "unique ids")
    problems.raise_if_any()
    return claims


def validate_verdicts(
    table: pd.DataFrame, claims: pd.DataFrame | None = None, source: str = "verdicts", unit: str = "row"
) -> pd.DataFrame:
    """Check a table of verdicts and bring it into the standard form (a new DataFrame, index 0..n-1).

    A missing prediction is ``score > 0.5`` where there is a score and the status is ok; a missing repeat is 0. With
    ``claims``, a verdict of an unknown claim, or of a row that stands for a response without claims, is an error; a
    claim without a verdict is not (it is *unscored* in every audit).
    """
    problems = _Problems(source, unit, table.attrs.get(_POSITIONS))
    table = _plain_index(table)
    problems.columns(table, ("claim_id", "evaluator"))
    if "score" not in table and "prediction" not in table:
        problems.add("expected a column 'score' or a column 'prediction'")
    problems.no_rows(table)
    problems.raise_if_any()

    ids = _text(table["claim_id"], "claim_id", problems)
    evaluators = _text(table["evaluator"], "evaluator", problems)
    for column, values in (("claim_id", ids), ("evaluator", evaluators)):
        problems.mask(table[column].isna() | (values == ""), column, "expected text, found none")
    repeat = _repeat(table.get("repeat"), table.index, problems)
    score = _score(table.get("score"), table.index, problems)
    prediction = _binary(table.get("prediction"), table.index, "prediction", _EXPECTED["prediction"], problems)
    if "status" in table:
        status = _text(table["status"], "status", problems).fillna("ok")
        problems.mask(~status.isin(STATUSES), "status", f"expected one of {', '.join(STATUSES)}", table["status"])
    else:
        status = pd.Series("ok", index=table.index, dtype="str")
    problems.raise_if_any()

    derive = prediction.isna() & score.notna() & (status == "ok")
    prediction = prediction.mask(derive, (score > DEFAULT_THRESHOLD).astype("Int8"))
    problems.mask(
        prediction.isna() & (status == "ok"),
        "prediction",
        "no score and no prediction: expected one of them, or a status of unparsed, refused, error or skipped",
    )
    verdicts = pd.DataFrame(
        {
            "claim_id": ids,
            "evaluator": evaluators,
            "repeat": repeat,
            "score": score,
            "prediction": prediction,
            "status": status,
            "raw": _text(table["raw"], "raw", problems) if "raw" in table else _no_text(table.index),
            "chunk_scores": _chunk_scores(table.get("chunk_scores"), table.index, problems),
        }
    )
    positions = None if claims is None else claim_positions(claims, ids)
    problems.duplicate_verdicts(verdicts, positions)
    if claims is not None and positions is not None:
        problems.mask(positions < 0, "claim_id", "expected the id of a claim, but no claim has it", ids)
        lone = claims["abstained"].notna().to_numpy()
        if lone.any():
            of_none = (positions >= 0) & lone[positions]
            problems.mask(of_none, "claim_id", "expected the id of a claim, but it is a response without claims", ids)
    problems.raise_if_any()
    return verdicts


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a Parquet, JSONL or CSV file as it is, unchecked; `InputError` where it is no whole, readable file.

    CSV cells are text, null where empty. Where a JSONL file has blank lines, ``attrs["positions"]`` has the line number
    of each row.
    """
    path = Path(path)
    if not path.is_file():
        message = "this is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(str(path), [Problem(message)])
    kind = suffix(path)
    try:
        if path.stat().st_size == 0:
            raise InputError(str(path), [Problem("the file is empty")])
        if kind == ".parquet":
            return _read_parquet(path)
        return _read_csv(path, kind) if kind.startswith(".csv") else _read_jsonl(path, kind)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(str(path), [Problem(f"not a whole gzip file ({_line(error)})")]) from None
    except OSError as error:
        raise InputError(str(path), [Problem(f"cannot be read ({error.strerror or _line(error)})")]) from None


def suffix(path: str | Path) -> str:
    """The format that a table's file name says: one of .parquet, .jsonl, .jsonl.gz, .csv, .csv.gz, else `InputError`.

    Writers can ask before there is anything to write.
    """
    name = Path(path).name.lower()
    for known in _SUFFIXES:
        if name.endswith(known):
            return known
    raise InputError(str(path), [Problem(f"expected a name that ends in {', '.join(_SUFFIXES)}")])


def claim_positions(claims: pd.DataFrame, ids: pd.Series) -> np.ndarray:
    """The row number in ``claims`` of each id, -1 where there is none (int64 array of len(ids))."""
    wanted, known = _arrow(ids), _arrow(claims["claim_id"])
    size = len(known)
    # Verdicts mostly come in the order of the claims, one evaluator after the other: comparing beats looking up.
    if (
        size
        and len(wanted) % size == 0
        and all(wanted[at : at + size].equals(known) for at in range(0, len(wanted), size))
    ):
        return np.tile(np.arange(size), len(wanted) // size)
    found = pc.index_in(wanted, value_set=known)
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def make_claim_ids(claims: pd.DataFrame) -> pd.Series:
    """Stable ids: a hash of (dataset, system, response_id, doc, claim, position among equals), 16 hex digits."""
    columns = ["dataset", "system", "response_id", "doc", "claim"]
    rows = list(zip(*(claims[c].astype(object).where(claims[c].notna(), None) for c in columns), strict=True))
    documents: dict[str | None, str | None] = {}
    seen: dict[str, int] = {}
    ids = []
    for dataset, system, response, doc, claim in rows:
        # A document is long and shared by many claims: it is hashed once.
        if doc not in documents:
            documents[doc] = None if doc is None else digest(doc, length=64)
        key = digest(dataset, system, response, documents[doc], claim, length=64)
        position = seen.get(key, 0)
        seen[key] = position + 1
        ids.append(digest(key, str(position)))
    return pd.Series(ids, index=claims.index, dtype="str")


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write claims or verdicts (or any table) atomically; the format is that of the suffix.

    Columns of the standard that hold nothing are left out of JSONL and CSV files, to keep them readable.
    """
    target = Path(path)
    kind = suffix(target)
    table = table.set_axis(table.columns.map(str), axis=1)
    with atomic(target) as temporary:
        if kind == ".parquet":
            frame = pa.Table.from_pandas(_flat(table, lists=False), preserve_index=False)
            pq.write_table(frame, temporary, compression="zstd")
            return
        full = table.drop(columns=[c for c in table.columns if c not in _ALWAYS and _says_nothing(table[c])])
        if kind.startswith(".csv"):
            # A lone carriage return ends a row for most readers, and pandas quotes it only where it quotes everything.
            texts = [column for column in full if not pd.api.types.is_numeric_dtype(full[column].dtype)]
            returns = any(full[column].astype("str").str.contains("\r", regex=False).any() for column in texts)
            quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
            text = _flat(full, lists=True).to_csv(index=False, lineterminator="\n", quoting=quoting)
        else:
            text = "".join(_json(row) + "\n" for row in records(full))
        # No name and no time stamp in the gzip header: the same table gives the same bytes.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0) if kind.endswith(".gz") else text.encode())


def _says_nothing(values: pd.Series) -> bool:
    """Nothing but what a reader takes a missing column for."""
    return bool((values == 0).all() if values.name == "repeat" else values.isna().all())


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain dictionaries for JSON: missing values are None, numbers are Python's own."""
    columns = {name: [_plain(value) for value in table[name].tolist()] for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


#: In the ``attrs`` of a table that was read: the line of each row, where blank lines stand between them.
_POSITIONS = "positions"
_ALWAYS = ("claim_id", "dataset", "claim", "label", "evaluator", "score", "prediction", "status")
_EXPECTED = {
    "label": "expected 1 (attributable), 0 (unattributable) or nothing",
    "abstained": "expected 1 (the response abstained), 0 (it holds no claim) or nothing",
    "prediction": "expected 1, 0 or nothing",
}


# ---------------------------------------------------------------------------------------------------- reading


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(path)
        _check_header(path, file.schema_arrow.names)
        # Without pandas' metadata an index that has a name ("claim_id") is the column that it is in the file.
        table = file.read().to_pandas(ignore_metadata=True)
    except pa.ArrowException as error:
        raise InputError(str(path), [Problem(f"not a readable Parquet file ({_line(error)})")]) from None
    return table.drop(columns=[name for name in table.columns if re.fullmatch(r"__index_level_\d+__", name)])


def _read_csv(path: Path, kind: str) -> pd.DataFrame:
    problems = _Problems(str(path), "row")
    blocks: list[list[pa.Array]] = []
    with _open(path, kind) as file, _fields_of_any_size():
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            header = next(filter(None, rows), None)
            if header is None:
                raise InputError(str(path), [Problem("the file has no header line")])
            _check_header(path, [name for name in header if name])
            wrong = f"expected {len(header)} columns, as in the header, found "
            number = 0
            for block in _blocks(filter(None, rows), 50_000):
                for row in block:
                    number += 1
                    if len(row) != len(header):
                        problems.add(f"{wrong}{len(row)}", number)
                if not problems.total:
                    blocks.append([_cells(column) for column in zip(*block, strict=True)])
        except UnicodeDecodeError:
            raise InputError(str(path), [_undecodable(path, kind)]) from None
        except csv.Error as error:
            message = "a quoted cell is not closed" if "end of data" in str(error) else f"not CSV ({error})"
            raise InputError(str(path), [Problem(message, rows.line_num, unit="line")]) from None
    problems.raise_if_any()
    columns = {}
    for position, name in enumerate(header):
        values = pa.chunked_array([block[position] for block in blocks], type=pa.large_string())
        # pandas writes its index, and spreadsheets their empty columns, without a name.
        if name or values.null_count < len(values):
            columns[name or f"Unnamed: {position}"] = pd.Series(values, dtype="str")
    return pd.DataFrame(columns)


def _cells(column: Sequence[str]) -> pa.Array:
    texts = pa.array(column, type=pa.large_string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _blocks(rows: Iterator[list[str]], size: int) -> Iterator[list[list[str]]]:
    while block := list(islice(rows, size)):
        yield block


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    # Documents are longer than the 131,072 characters that Python's csv allows a field.
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_header(path: Path, names: Sequence[str]) -> None:
    twice = [Problem("the column is there twice", column=name) for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(str(path), twice)


def _read_jsonl(path: Path, kind: str) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    problems = _Problems(str(path), "line")
    positions: list[int] = []
    with _open(path, kind) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = _JSON.decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                # JSON can escape half a surrogate pair, which is no text and can be written nowhere.
                if b"\\ud" in line.lower():
                    json.dumps(row, ensure_ascii=False).encode()
            except UnicodeDecodeError:
                problems.add("not UTF-8 text; save the file as UTF-8", number)
            except UnicodeEncodeError:
                problems.add("not Unicode text: it has half of a surrogate pair (\\ud800 to \\udfff)", number)
            except json.JSONDecodeError as error:
                cut = not line.endswith(b"\n")
                what = "the last line is cut off (the file was not written to its end)" if cut else "not JSON"
                problems.add(f"{what}: {error.msg} at character {error.pos + 1}", number)
            except (ValueError, RecursionError) as error:
                problems.add(f"not JSON: {_line(error)}", number)
            else:
                if isinstance(row, dict):
                    rows.append(row)
                    positions.append(number)
                else:
                    problems.add(f"expected a JSON object, found {type(row).__name__}", number)
    problems.raise_if_any()
    # `object` keeps "007" a text.
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype="object") for name in names})
    if rows and positions[-1] != len(rows):
        table.attrs[_POSITIONS] = positions
    return table


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_object)


def _undecodable(path: Path, kind: str) -> Problem:
    with _open(path, kind) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return Problem(f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8", number, unit="line")
    return Problem("not UTF-8 text; save the file as UTF-8")


def _open(path: Path, kind: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if kind.endswith(".gz") else path.open("rb")


def _unit(path: str | Path) -> str:
    return "line" if suffix(path).startswith(".jsonl") else "row"


def _line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


# ---------------------------------------------------------------------------------------------------- checking


class _Problems:
    """Collects what is wrong with one source: the first `MAX_PROBLEMS` in full, the rest as a count."""

    def __init__(
        self,
        source: str,
        unit: str = "row",
        positions: Sequence[int] | None = None,
        parts: Sequence[tuple[str, int]] = (),
    ) -> None:
        """``positions``: the line of each row, where they are not 1, 2, ...; ``parts``: names and sizes of what the
        rows were put together from."""
        self.source, self.unit, self.positions, self.parts = source, unit, positions, parts
        self.found: list[Problem] = []
        self.total = 0

    def add(self, message: str, row: int | None = None, column: str | None = None, unit: str | None = None) -> None:
        self.total += 1
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(message, row, column, unit or self.unit))

    def mask(self, bad: Any, column: str, message: str, values: pd.Series | None = None) -> None:
        """Every row where ``bad`` is true is a problem; with ``values`` the message quotes what was found."""
        rows = np.flatnonzero(np.asarray(bad, dtype=bool))
        for row in rows[:MAX_PROBLEMS]:
            found = "" if values is None else f", found {_show(values.iloc[row])}"
            unit, number = self._place(int(row))
            self.add(message + found, number, column, unit)
        self.total += max(0, len(rows) - MAX_PROBLEMS)

    def columns(self, table: pd.DataFrame, required: Iterable[str]) -> None:
        for column in table.columns[table.columns.duplicated()].unique():
            self.add("the column is there twice", column=str(column))
        for column in required:
            if column not in table:
                near = [name for name in map(str, table.columns) if name.strip().lower() == column]
                present = ", ".join(map(repr, map(str, table.columns))) or "none"
                found = f"did you mean {near[0]!r}?" if near else f"columns found: {present}"
                self.add(f"the column is missing ({found})", column=column)

    def no_rows(self, table: pd.DataFrame) -> None:
        if len(table) == 0:
            self.add("the file has no rows")

    def duplicates(self, values: pd.Series, column: str, expected: str) -> None:
        again = values.duplicated() & values.notna()
        if again.any():
            first = values.drop_duplicates().reset_index().set_index(values.name or column)["index"]
            rows = np.flatnonzero(again)
            for row in rows[:MAX_PROBLEMS]:
                unit, number = self._place(int(row))
                before = " ".join(map(str, self._place(int(first[values.iloc[row]]))))
                self.add(
                    f"expected {expected}, but {_show(values.iloc[row])} is also in {before}", number, column, unit
                )
            self.total += max(0, len(rows) - MAX_PROBLEMS)

    def duplicate_verdicts(self, verdicts: pd.DataFrame, ids: np.ndarray | None = None) -> None:
        """``ids``: what tells the claims apart, where it is known already (their rows)."""
        if ids is None or (ids < 0).any():
            ids = pc.dictionary_encode(_arrow(verdicts["claim_id"])).indices.to_numpy(zero_copy_only=False)
        names = pc.dictionary_encode(_arrow(verdicts["evaluator"]))
        key = ids.astype(np.int64) * max(1, len(names.dictionary)) + names.indices.to_numpy(zero_copy_only=False)
        repeats = verdicts["repeat"].to_numpy()
        both = pd.Series(key) if not repeats.any() else pd.DataFrame({"key": key, "repeat": repeats})
        rows = np.flatnonzero(both.duplicated().to_numpy())
        for row in map(int, rows[:MAX_PROBLEMS]):
            unit, number = self._place(row)
            claim, evaluator, repeat = (verdicts[column].iloc[row] for column in VERDICT_KEY)
            of = f" of repeat {repeat}" if repeat else ""
            message = f"expected one verdict per claim and evaluator, but {evaluator!r} has another on {claim!r}{of}"
            self.add(message, number, "claim_id", unit)
        self.total += max(0, len(rows) - MAX_PROBLEMS)

    def _place(self, row: int) -> tuple[str, int]:
        """What a message calls the row: its unit (with the part's name) and number."""
        if self.parts:
            ends = list(accumulate(size for _, size in self.parts))
            part = bisect_right(ends, row)
            name, size = self.parts[part]
            return f"{name}, row", row - (ends[part] - size) + 1
        return self.unit, row + 1 if self.positions is None else self.positions[row]

    def raise_if_any(self) -> None:
        if self.total:
            raise InputError(self.source, self.found, self.total)


def _parts(tables: Sequence[pd.DataFrame], sources: Sequence[str]) -> list[tuple[str, int]]:
    return [(source, len(table)) for source, table in zip(sources, tables, strict=True)] if sources else []


def _plain_index(table: pd.DataFrame) -> pd.DataFrame:
    """The rows as 0..n-1; an index that has the name of a column of ours is that column."""
    named = [name for name in table.index.names if name in (*CLAIM_COLUMNS, *VERDICT_COLUMNS) and name not in table]
    table = table.reset_index(level=named) if named else table
    table = table.reset_index(drop=True)
    table.attrs = {}  # pandas copies them with every column
    return table


def _text(values: pd.Series, column: str, problems: _Problems) -> pd.Series:
    """Text as it is; whole numbers (a doc_id of 15596) as their digits; anything else is a problem."""
    if isinstance(values.dtype, pd.StringDtype):
        return values.astype("str")
    objects = values.astype(object)
    texts = objects.map(_digits, na_action="ignore")
    good = texts.notna() | values.isna()
    problems.mask(~good, column, "expected text", objects)
    return texts.where(texts.notna(), None).astype("str")


def _digits(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | Decimal | np.number):
        return None
    # A float has the digits of a whole number only up to 2**53: 15596.0 is what a missing value elsewhere in the
    # column made of 15596.
    number: Any = value
    exact = isinstance(number, int | np.integer) or (abs(number) <= 2**53 and number == int(number))
    return str(int(number)) if exact else None


def _binary(values: pd.Series | None, index: pd.Index, column: str, expected: str, problems: _Problems) -> pd.Series:
    """1, 0 or null as Int8; CSV's "1", "1.0" and "True", booleans and 1.0 are understood, "yes" is not."""
    if values is None:
        return pd.Series(pd.NA, index=index, dtype="Int8")
    if not pd.api.types.is_numeric_dtype(values.dtype):
        values = values.replace({"True": True, "False": False, "true": True, "false": False})
    numbers = _numbers(values)
    good = values.isna() | numbers.isin([0, 1])
    problems.mask(~good, column, expected, values)
    return numbers.where(good).astype("Int8")


def _repeat(values: pd.Series | None, index: pd.Index, problems: _Problems) -> pd.Series:
    if values is None:
        return pd.Series(0, index=index, dtype="int64")
    numbers = _numbers(values)
    good = values.isna() | ((numbers >= 0) & (numbers < 2**31) & (numbers % 1 == 0))
    problems.mask(~good, "repeat", "expected a whole number from 0 on, or nothing", values)
    return numbers.where(good).fillna(0).astype("int64")


def _score(values: pd.Series | None, index: pd.Index, problems: _Problems) -> pd.Series:
    if values is None:
        return pd.Series(np.nan, index=index, dtype="float64")
    numbers = _numbers(values)
    good = values.isna() | ((numbers >= 0) & (numbers <= 1))
    problems.mask(~good, "score", "expected a number from 0 to 1, or nothing", values)
    return numbers.where(good)


def _numbers(values: pd.Series) -> pd.Series:
    if values.dtype == object:
        # A JSON list or object is no number; to_numeric would raise on it.
        values = values.map(lambda v: v if isinstance(v, str | int | float | Decimal | np.number) else None)
    elif not pd.api.types.is_numeric_dtype(values.dtype) and not isinstance(
        values.dtype, pd.StringDtype | pd.CategoricalDtype
    ):
        values = pd.Series(np.nan, index=values.index)  # times would be numbers of nanoseconds
    return pd.to_numeric(values, errors="coerce").astype("float64")


def _chunk_scores(values: pd.Series | None, index: pd.Index, problems: _Problems) -> pd.Series:
    """One list of numbers or nulls per row; CSV holds them as JSON."""
    if values is None:
        return pd.Series(None, index=index, dtype="object")
    lists = values.astype(object).map(_score_list, na_action="ignore")
    expected = "expected a list of numbers from 0 to 1 ([0.2, null, 0.9]) or nothing"
    problems.mask(lists.isna() & values.notna(), "chunk_scores", expected, values)
    return lists.where(lists.notna(), None)


def _score_list(value: Any) -> list[float | None] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    items: Any = _plain(value)
    if not isinstance(items, list):
        return None
    return items if all(item is None or _is_score(item) for item in items) else None


def _is_score(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def _no_text(index: pd.Index) -> pd.Series:
    return pd.Series(None, index=index, dtype="str")


def _flat(table: pd.DataFrame, lists: bool) -> pd.DataFrame:
    """The table with JSON text for the columns that the format can't hold: objects, mixed types and (CSV) lists."""
    flat = table.copy(deep=False)
    for column in flat.columns:
        if flat[column].dtype != object:
            continue
        kinds = {type(value) for value in flat[column] if not _missing(value)}
        has_lists = bool(kinds & {list, np.ndarray})
        if not kinds & {dict} and not (lists and has_lists):
            try:
                pa.array(flat[column], from_pandas=True)
                continue
            except pa.ArrowException:
                pass
        flat[column] = flat[column].map(_json, na_action="ignore").astype("str")
    return flat


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, default=_text_of)


def _text_of(value: Any) -> Any:
    # What JSON has no form for, inside an extra column: numpy's scalars, times, decimals.
    return value.item() if isinstance(value, np.generic) else str(value)


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def _plain(value: Any) -> Any:
    if _missing(value):
        return None
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def _show(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _arrow(values: pd.Series) -> pa.Array:
    array = pa.array(values, type=pa.large_string(), from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
