"""The rows of a published file, checked against a model of its format (pydantic). What is wrong is
said by row and field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pandas as pd
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
)

from factaudit.errors import InputError, Problem
from factaudit.files import check_is_table_file
from factaudit.settings.yaml_paths import YamlPathKind
from factaudit.tables import list_plain_rows, read_table
from factaudit.tables.schema import POSITIONS_KEY, name_row_unit
from factaudit.tables.table_files import read_json_document
from factaudit.tables.unreadable_rows import leave_out_unreadable_rows
from factaudit.text.display_text import cut_text

T = TypeVar("T")


class SourceRow(BaseModel):
    """A row of a source, as its publisher documents it; columns that are not named are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True, defer_build=True)

    #: Where the row stands in its file, from 1: a row (Parquet, CSV), a line (JSONL) or an item
    #: (JSON).
    _position: int = PrivateAttr(0)

    @property
    def position(self) -> int:
        return self._position


R = TypeVar("R", bound=SourceRow)


def _wrap_single_value(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


#: 1 or 0, also as a CSV writes them ("1", "1.0").
BinaryLabel = Annotated[int, Field(ge=0, le=1)]
#: A number from 0 to 1.
Probability = Annotated[float, Field(ge=0, le=1)]
#: An option that may be given once or several times.
PathsOption = Annotated[Sequence[Path], BeforeValidator(_wrap_single_value)]
JoinsOption = Annotated[
    Sequence[str], BeforeValidator(_wrap_single_value), YamlPathKind.FORMAT_AND_PATH
]


def describe_wrong_file(
    source: str | Path | Sequence[Path],
    message: str,
    row: int | None = None,
    column: str | None = None,
    unit: str = "row",
) -> InputError:
    """The error to be raised for the one thing that is wrong with a file, or with several."""
    names = [source] if isinstance(source, str | Path) else source
    return InputError(", ".join(map(str, names)), [Problem(message, row, column, unit)])


def read_rows(path: Path, model: type[R], is_counted: bool = False) -> list[R]:
    """The rows of a Parquet, JSONL or CSV file, or the items of a JSON file that is a list, as
    ``model``.

    Rows that cannot be read are left out and noted. Where they are too many, and where other files
    count the rows (``is_counted``), `InputError` says all that is wrong.
    """
    if not path.name.lower().endswith(".json"):
        return parse_rows(read_table(path, is_counted=is_counted), path, model, is_counted)
    items: list[Any] = read_json(path, list[Any])
    return _parse_numbered_rows(dict(enumerate(items, start=1)), path, model, "item", is_counted)


def parse_rows(
    table: pd.DataFrame, path: Path, model: type[R], is_counted: bool = False
) -> list[R]:
    """`read_rows` of a table that was read already."""
    positions = table.attrs.get(POSITIONS_KEY) or range(1, len(table) + 1)
    rows = dict(zip(positions, list_plain_rows(table), strict=True))
    return _parse_numbered_rows(rows, path, model, name_row_unit(path), is_counted)


def _parse_numbered_rows(
    values: Mapping[int, Any], path: Path, model: type[R], unit: str, is_counted: bool
) -> list[R]:
    """The rows, by their positions in the file, as ``model``."""
    if not values:
        raise describe_wrong_file(path, "the file has no rows")
    rows, problems = [], []
    for position, value in values.items():
        try:
            row = model.model_validate(value)
        except ValidationError as error:
            problems += [
                describe_invalid_row(one, unit, position) for one in error.errors(include_url=False)
            ]
        else:
            row._position = position
            rows.append(row)
    if problems and is_counted:
        raise InputError(str(path), problems)
    leave_out_unreadable_rows(path, problems, len(values))
    return rows


def read_json(path: Path, value_type: type[T] | Any) -> T:
    """A JSON file that is one value of type ``value_type``; raises `InputError` with all that is
    wrong."""
    check_is_table_file(path)
    try:
        return TypeAdapter(value_type).validate_python(read_json_document(path))
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at character {error.colno}"
        raise describe_wrong_file(path, message, error.lineno, unit="line") from None
    except ValidationError as error:
        problems = [describe_invalid_row(one, "item") for one in error.errors(include_url=False)]
        raise InputError(str(path), problems) from None


def parse_split_name(path: Path) -> str | None:
    """The split that a file's name says: ``test-00000-of-00001.parquet``,
    ``mediasum_factual_eval_dev.csv``."""
    found = re.search(r"(?:^|[_.-])(train|dev|test)(?=[_.-])", path.name)
    return found[1] if found else None


def describe_invalid_row(error: Any, unit: str, row: int | None = None) -> Problem:
    """What pydantic found, in our words; the column is the path of a field (``labels.1.start``)."""
    column = ".".join(map(str, error["loc"])) or None
    if error["type"] == "missing":
        return Problem("the field is missing", row, column, unit)
    expected = error["msg"].replace("Input should be", "expected")
    return Problem(f"{expected}, found {cut_text(repr(error['input']), 60)}", row, column, unit)
