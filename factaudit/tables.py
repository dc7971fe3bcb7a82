"""The two tables that everything reads and writes: claims and verdicts.

A *claim* is one statement to check against one document; a *verdict* is what one evaluator said of one claim. Both are
pandas DataFrames with the columns below, kept as Parquet, JSONL or CSV (the last two also ``.gz``). Reading validates:
all that is wrong with a file is reported together, by row and column.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.errors import MAX_PROBLEMS, InputError, Problem
from factaudit.files import atomic
from factaudit.signature import digest

#: Columns of the claims table, in order. All but `label` hold text; extra columns are kept as they are.
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
    "split",
    "claim",
    "doc",
    "label",
)
#: Columns of the verdicts table, in order.
VERDICT_COLUMNS = ("claim_id", "evaluator", "score", "prediction", "status", "raw", "chunk_scores")
#: What became of a verdict. Without a prediction, anything but "ok".
STATUSES = ("ok", "unparsed", "refused", "error", "skipped")
#: A score above this (strictly) is prediction 1, where no prediction is given.
DEFAULT_THRESHOLD = 0.5

_CLAIM_REQUIRED = ("dataset", "claim")
_CLAIM_TEXT = tuple(column for column in CLAIM_COLUMNS if column != "label")
_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz")


def read_claims(*paths: str | Path) -> pd.DataFrame:
    """Read and validate claims from one or several files (concatenated in the order given).

    Returns a DataFrame with all of `CLAIM_COLUMNS` (missing optional ones null), then any extra columns.
    Raises `InputError` naming file, row and column.
    """
    tables = [validate_claims(_read(Path(path)), source=str(path), unit=_unit(path)) for path in paths]
    if len(tables) == 1:
        return tables[0]
    claims = pd.concat(tables, ignore_index=True)
    problems = _Problems(", ".join(str(path) for path in paths), "row")
    problems.duplicates(claims["claim_id"], "claim_id", "ids that are unique over all the files")
    problems.raise_if_any()
    return claims


def read_verdicts(*paths: str | Path, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read and validate verdicts from one or several files; against ``claims`` where given.

    Returns a DataFrame with `VERDICT_COLUMNS`. Raises `InputError` naming file, row and column.
    """
    tables = [validate_verdicts(_read(Path(path)), claims=claims, source=str(path), unit=_unit(path)) for path in paths]
    if len(tables) == 1:
        return tables[0]
    return merge_verdicts(tables, source=", ".join(str(path) for path in paths))


def merge_verdicts(tables: Iterable[pd.DataFrame], source: str = "verdicts") -> pd.DataFrame:
    """Put validated verdict tables under each other; the same (claim_id, evaluator) twice is an `InputError`."""
    verdicts = pd.concat(list(tables), ignore_index=True)
    problems = _Problems(source, "row")
    problems.duplicate_verdicts(verdicts)
    problems.raise_if_any()
    return verdicts


def validate_claims(table: pd.DataFrame, source: str = "claims", unit: str = "row") -> pd.DataFrame:
    """Check a table of claims and bring it into the standard form (a new DataFrame, index 0..n-1).

    Where ``claim_id`` is missing, ids are made by `make_claim_ids`. LLM-AggreFact's own columns load as they are.
    """
    problems = _Problems(source, unit)
    table = table.reset_index(drop=True)
    problems.missing_columns(table, _CLAIM_REQUIRED)
    problems.no_rows(table)
    problems.raise_if_any()

    standard: dict[str, Any] = {}
    for column in _CLAIM_TEXT:
        if column in table:
            standard[column] = _text(table[column], column, problems)
        else:
            standard[column] = pd.Series(None, index=table.index, dtype="str")
    for column in _CLAIM_REQUIRED:
        problems.mask(
            standard[column].isna() | (standard[column].str.strip() == ""),
            column,
            "expected text, found none",
        )
    standard["label"] = _binary(table.get("label"), table.index, "label", _LABEL_EXPECTED, problems)
    problems.raise_if_any()

    claims = pd.DataFrame({column: standard[column] for column in CLAIM_COLUMNS})
    for column in table.columns:
        if column not in claims:
            claims[column] = table[column].infer_objects()
    if "claim_id" not in table:
        claims["claim_id"] = make_claim_ids(claims)
    else:
        problems.mask(claims["claim_id"].isna() | (claims["claim_id"] == ""), "claim_id", "expected an id, found none")
        problems.duplicates(claims["claim_id"], "claim_id", "unique ids")
    problems.raise_if_any()
    return claims


def validate_verdicts(
    table: pd.DataFrame, claims: pd.DataFrame | None = None, source: str = "verdicts", unit: str = "row"
) -> pd.DataFrame:
    """Check a table of verdicts and bring it into the standard form (a new DataFrame, index 0..n-1).

    A missing prediction is ``score > 0.5`` where there is a score and the status is ok. With ``claims``, a verdict of
    an unknown claim is an error; a claim without a verdict is not (it is *unscored* in every audit).
    """
    problems = _Problems(source, unit)
    table = table.reset_index(drop=True)
    problems.missing_columns(table, ("claim_id", "evaluator"))
    if "score" not in table and "prediction" not in table:
        problems.add("expected a column 'score' or a column 'prediction'")
    problems.no_rows(table)
    problems.raise_if_any()

    ids = _text(table["claim_id"], "claim_id", problems)
    evaluators = _text(table["evaluator"], "evaluator", problems)
    for column, values in (("claim_id", ids), ("evaluator", evaluators)):
        problems.mask(values.isna() | (values == ""), column, "expected text, found none")
    score = _score(table.get("score"), table.index, problems)
    prediction = _binary(table.get("prediction"), table.index, "prediction", _PREDICTION_EXPECTED, problems)
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
            "score": score,
            "prediction": prediction,
            "status": status,
            "raw": _text(table["raw"], "raw", problems) if "raw" in table else _no_text(table.index),
            "chunk_scores": table["chunk_scores"] if "chunk_scores" in table else _no_text(table.index, "object"),
        }
    )
    if "chunk_scores" in table and isinstance(_first(table["chunk_scores"]), str):
        verdicts["chunk_scores"] = table["chunk_scores"].map(json.loads, na_action="ignore")
    problems.duplicate_verdicts(verdicts)
    if claims is not None:
        problems.mask(
            claim_positions(claims, ids) < 0,
            "claim_id",
            "expected the id of a claim, but no claim has it",
            ids,
        )
    problems.raise_if_any()
    return verdicts


def read_table(path: str | Path) -> pd.DataFrame:
    """Read a Parquet, JSONL or CSV file as it is, unchecked; `InputError` where it is no whole, readable file.

    CSV cells are text, null where empty. A JSONL table carries its rows' line numbers in ``attrs["positions"]``.
    """
    return _read(Path(path))


def has_column(path: str | Path, column: str) -> bool:
    """Whether a claims or verdicts file has a column of that name; raises `InputError` where it cannot be read."""
    return column in _read(Path(path))


def claim_positions(claims: pd.DataFrame, ids: pd.Series) -> np.ndarray:
    """The row number in ``claims`` of each id, -1 where there is none (int64 array of len(ids))."""
    found = pc.index_in(_arrow(ids), value_set=_arrow(claims["claim_id"]))
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
    kind = _suffix(target)
    with atomic(target) as temporary:
        if kind == ".parquet":
            frame = pa.Table.from_pandas(table, preserve_index=False)
            pq.write_table(frame, temporary, compression="zstd")
            return
        full = table.drop(columns=[c for c in table.columns if c not in _ALWAYS and table[c].isna().all()])
        if kind.startswith(".csv"):
            full = full.copy()
            for column in full.columns:
                if isinstance(_first(full[column]), list | np.ndarray):
                    full[column] = full[column].map(lambda v: json.dumps(_plain(v)), na_action="ignore")
            text = full.to_csv(index=False, lineterminator="\n")
        else:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in records(full))
        # No name and no time stamp in the gzip header: the same table gives the same bytes.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0) if kind.endswith(".gz") else text.encode())


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as plain dictionaries for JSON: missing values are None, numbers are Python's own."""
    columns = {name: [_plain(value) for value in table[name].tolist()] for name in table.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_ALWAYS = ("claim_id", "dataset", "claim", "label", "evaluator", "score", "prediction", "status")
_LABEL_EXPECTED = "expected 1 (attributable), 0 (unattributable) or nothing"
_PREDICTION_EXPECTED = "expected 1, 0 or nothing"


# ---------------------------------------------------------------------------------------------------- reading


def _read(path: Path) -> pd.DataFrame:
    kind = _suffix(path)
    if not path.is_file():
        raise InputError(
            str(path), [Problem("no such file" if not path.is_dir() else "this is a folder, expected a file")]
        )
    if path.stat().st_size == 0:
        raise InputError(str(path), [Problem("the file is empty")])
    if kind == ".parquet":
        try:
            return pq.read_table(path).to_pandas()
        except (pa.ArrowException, OSError) as error:
            raise InputError(str(path), [Problem(f"not a readable Parquet file ({_line(error)})")]) from None
    try:
        if kind.startswith(".csv"):
            return _read_csv(path, kind)
        return _read_jsonl(path, kind)
    except (EOFError, gzip.BadGzipFile) as error:
        raise InputError(str(path), [Problem(f"not a whole gzip file ({_line(error)})")]) from None


def _read_csv(path: Path, kind: str) -> pd.DataFrame:
    try:
        return pd.read_csv(
            path,
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8-sig",
            compression="gzip" if kind.endswith(".gz") else None,
        )
    except UnicodeDecodeError:
        raise InputError(str(path), [_undecodable(path, kind)]) from None
    except pd.errors.EmptyDataError:
        raise InputError(str(path), [Problem("the file has no header line")]) from None
    except pd.errors.ParserError as error:
        raise InputError(str(path), [Problem(f"not a readable CSV file ({_line(error)})")]) from None


def _read_jsonl(path: Path, kind: str) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    problems = _Problems(str(path), "line")
    positions: list[int] = []
    with _open(path, kind) as file:
        last = b""
        for number, line in enumerate(file, start=1):
            last = line
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError:
                problems.add("not UTF-8 text; save the file as UTF-8", number)
                continue
            except json.JSONDecodeError as error:
                cut = not line.endswith(b"\n")
                what = "the last line is cut off (the file was not written to its end)" if cut else "not JSON"
                problems.add(f"{what}: {error.msg} at character {error.pos + 1}", number)
                continue
            if not isinstance(row, dict):
                problems.add(f"expected a JSON object, found {type(row).__name__}", number)
                continue
            rows.append(row)
            positions.append(number)
    problems.raise_if_any()
    if not rows:
        raise InputError(str(path), [Problem("the file has no rows" if last else "the file is empty")])
    # Blank lines are allowed, so the line of a row is kept for the messages; `object` keeps "007" a text.
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype="object") for name in names})
    table.attrs["positions"] = positions
    return table


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


def _suffix(path: Path) -> str:
    for suffix in _SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    raise InputError(str(path), [Problem(f"expected a name that ends in {', '.join(_SUFFIXES)}")])


def _unit(path: str | Path) -> str:
    return "line" if ".jsonl" in Path(path).name else "row"


def _line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


# ---------------------------------------------------------------------------------------------------- checking


class _Problems:
    """Collects what is wrong with one source: the first `MAX_PROBLEMS` in full, the rest as a count."""

    def __init__(self, source: str, unit: str) -> None:
        self.source, self.unit = source, unit
        self.found: list[Problem] = []
        self.total = 0
        self.positions: list[int] | None = None

    def add(self, message: str, row: int | None = None, column: str | None = None) -> None:
        self.total += 1
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(message, row, column, self.unit))

    def mask(self, bad: Any, column: str, message: str, values: pd.Series | None = None) -> None:
        """Every row where ``bad`` is true is a problem; with ``values`` the message quotes what was found."""
        rows = np.flatnonzero(np.asarray(bad, dtype=bool))
        for row in rows[:MAX_PROBLEMS]:
            found = "" if values is None else f", found {_show(values.iloc[row])}"
            self.add(message + found, self._position(int(row)), column)
        self.total += max(0, len(rows) - MAX_PROBLEMS)

    def missing_columns(self, table: pd.DataFrame, required: Iterable[str]) -> None:
        if "positions" in table.attrs:
            self.positions = table.attrs["positions"]
        for column in required:
            if column not in table:
                present = ", ".join(map(str, table.columns)) or "none"
                self.add(f"the column is missing (columns found: {present})", column=column)

    def no_rows(self, table: pd.DataFrame) -> None:
        if len(table) == 0:
            self.add("the file has no rows")

    def duplicates(self, values: pd.Series, column: str, expected: str) -> None:
        again = values.duplicated() & values.notna()
        if again.any():
            first = values.drop_duplicates().reset_index().set_index(values.name or column)["index"]
            rows = np.flatnonzero(again)
            for row in rows[:MAX_PROBLEMS]:
                before = self._position(int(first[values.iloc[row]]))
                message = f"expected {expected}, but {_show(values.iloc[row])} is also in {self.unit} {before}"
                self.add(message, self._position(int(row)), column)
            self.total += max(0, len(rows) - MAX_PROBLEMS)

    def duplicate_verdicts(self, verdicts: pd.DataFrame) -> None:
        ids = pc.dictionary_encode(_arrow(verdicts["claim_id"])).indices.to_numpy(zero_copy_only=False)
        names = pc.dictionary_encode(_arrow(verdicts["evaluator"]))
        key = ids.astype(np.int64) * max(1, len(names.dictionary)) + names.indices.to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(pd.Series(key).duplicated().to_numpy())
        for row in rows[:MAX_PROBLEMS]:
            claim, evaluator = verdicts["claim_id"].iloc[row], verdicts["evaluator"].iloc[row]
            message = f"expected one verdict per claim and evaluator, but {evaluator!r} has another on {claim!r}"
            self.add(message, self._position(int(row)), "claim_id")
        self.total += max(0, len(rows) - MAX_PROBLEMS)

    def _position(self, row: int) -> int:
        return self.positions[row] if self.positions is not None else row + 1

    def raise_if_any(self) -> None:
        if self.total:
            raise InputError(self.source, self.found, self.total)


def _text(values: pd.Series, column: str, problems: _Problems) -> pd.Series:
    """Text as it is; whole numbers (a doc_id of 15596) as their digits; anything else is a problem."""
    if isinstance(values.dtype, pd.StringDtype):
        return values.astype("str")
    if pd.api.types.is_bool_dtype(values.dtype):
        problems.mask(values.notna(), column, "expected text", values)
        return _no_text(values.index)
    if pd.api.types.is_integer_dtype(values.dtype):
        return values.astype("Int64").astype("str")
    if pd.api.types.is_float_dtype(values.dtype):
        whole = values.isna() | (values == values.round())
        problems.mask(~whole, column, "expected text", values)
        # Int64 writes 15596, not the 15596.0 that a missing value elsewhere in the column made of it.
        return values.where(whole).astype("Int64").astype("str").where(values.notna(), None).astype("str")
    objects = values.astype(object)
    good = objects.map(lambda v: _missing(v) or isinstance(v, str) or (isinstance(v, int) and not isinstance(v, bool)))
    problems.mask(~good.astype(bool), column, "expected text", values)
    return objects.where(good.astype(bool), None).map(lambda v: None if _missing(v) else str(v)).astype("str")


def _binary(values: pd.Series | None, index: pd.Index, column: str, expected: str, problems: _Problems) -> pd.Series:
    """1, 0 or null as Int8; CSV's "1" and "1.0", booleans and 1.0 are understood, "yes" is not."""
    if values is None:
        return pd.Series(pd.NA, index=index, dtype="Int8")
    numbers = _numbers(values)
    good = values.isna() | numbers.isin([0, 1])
    problems.mask(~good, column, expected, values)
    return numbers.where(good).astype("Int8")


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
        values = values.map(lambda v: v if isinstance(v, str | int | float | np.number) else None)
    return pd.to_numeric(values, errors="coerce").astype("float64")


def _no_text(index: pd.Index, dtype: str = "str") -> pd.Series:
    return pd.Series(None, index=index, dtype=cast(Any, dtype))


def _missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and value != value)


def _plain(value: Any) -> Any:
    if _missing(value):
        return None
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _first(values: pd.Series) -> Any:
    present = values.first_valid_index()
    return None if present is None else values.loc[present]


def _show(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def _arrow(values: pd.Series) -> pa.Array:
    array = pa.array(values, type=pa.large_string(), from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
