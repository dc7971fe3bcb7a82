"""The rows of a published file, checked against a model of its format: what is wrong is told by row
and field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pandas as pd
from pydantic import (
    AliasChoices,
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
from factaudit.tables.column_profiles import find_judged_columns
from factaudit.tables.schema import POSITIONS_KEY, name_row_unit
from factaudit.tables.table_files import read_json_document
from factaudit.tables.unreadable_rows import (
    leave_out_columns_of_judgements,
    leave_out_unreadable_rows,
)
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


def _parse_label(value: Any) -> Any:
    # CSV has "1" and "1.0"; anything else is left for the type to refuse.
    try:
        return int(number) if (number := float(value)) in (0, 1) else value
    except (TypeError, ValueError):
        return value


def _wrap_single_value(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


#: 1 or 0, also as CSV's text.
BinaryLabel = Annotated[Literal[0, 1], BeforeValidator(_parse_label)]
#: A number from 0 to 1.
Probability = Annotated[float, Field(ge=0, le=1)]
#: An option that may be given once or several times.
PathsOption = Annotated[Sequence[Path], BeforeValidator(_wrap_single_value)]
NamesOption = Annotated[Sequence[str], BeforeValidator(_wrap_single_value)]
JoinsOption = Annotated[
    Sequence[str], BeforeValidator(_wrap_single_value), YamlPathKind.FORMAT_AND_PATH
]


def read_rows(
    path: Path, model: type[R], key: str | None = None, is_counted: bool = False
) -> list[R]:
    """The rows of a Parquet, JSONL or CSV file as ``model``; the items of a JSON file, or of its
    list under ``key``.

    Rows that cannot be read are left out (`leave_out_unreadable_rows`), but not where other files
    count them (``is_counted``): then, and where they are too many, `InputError` says all that is
    wrong.
    """
    if not path.name.lower().endswith(".json"):
        return parse_rows(read_table(path, is_counted=is_counted), path, model, is_counted)
    items: Any = read_json(path, Any)
    items = items.get(key) if key is not None and isinstance(items, dict) else items
    items = [*items.values()] if isinstance(items, dict) else items
    if not isinstance(items, list) or not items:
        expected = (
            "a list or an object of items" if key is None else f"a list of items under {key!r}"
        )
        raise InputError(str(path), [Problem(f"expected {expected}")])
    return _parse_numbered_rows(dict(enumerate(items, start=1)), path, model, "item", is_counted)


def parse_rows(
    table: pd.DataFrame, path: Path, model: type[R], is_counted: bool = False
) -> list[R]:
    """`read_rows` of a table that was read already."""
    if table.empty:
        raise InputError(str(path), [Problem("the file has no rows")])
    positions = table.attrs.get(POSITIONS_KEY) or range(1, len(table) + 1)
    rows = dict(zip(positions, list_plain_rows(table), strict=True))
    return _parse_numbered_rows(rows, path, model, name_row_unit(path), is_counted)


def _parse_numbered_rows(
    values: Mapping[int, Any], path: Path, model: type[R], unit: str, is_counted: bool
) -> list[R]:
    """The rows, by their positions in the file, as ``model``."""
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
    leave_out_columns_of_judgements(path, _list_unread_judgement_columns([*values.values()], model))
    return rows


def _list_unread_judgement_columns(rows: Sequence[Any], model: type[SourceRow]) -> list[str]:
    """The columns of judgements that rows have and their model has not."""
    known: set[Any] = {*model.model_fields}
    for one in model.model_fields.values():
        if isinstance(one.validation_alias, AliasChoices):
            known |= {*one.validation_alias.choices}
    names = dict.fromkeys(
        str(name) for row in rows if isinstance(row, Mapping) for name in row if name not in known
    )
    columns = {name: [row.get(name) for row in rows] for name in names}
    return [*find_judged_columns(columns, ("people", "judge", "both", "plain"))]


def read_json(path: Path, value_type: type[T] | Any) -> T:
    """A JSON file that is one value of type ``value_type``; raises `InputError` with all that is
    wrong."""
    check_is_table_file(path)
    try:
        return TypeAdapter(value_type).validate_python(read_json_document(path))
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at character {error.colno}"
        raise InputError(str(path), [Problem(message, error.lineno, unit="line")]) from None
    except ValidationError as error:
        problems = [describe_invalid_row(one, "item") for one in error.errors(include_url=False)]
        raise InputError(str(path), problems) from None


def parse_split_name(path: Path) -> str | None:
    """The split that a file's name says: ``test-00000-of-00001.parquet``,
    ``mediasum_factual_eval_dev.csv``."""
    found = re.search(r"(?:^|[_.-])(train|dev|test)(?=[_.-])", path.name)
    return found[1] if found else None


def describe_invalid_row(error: Any, unit: str, row: int | None = None) -> Problem:
    """What pydantic found, in our words; without ``row`` the first number in its place is the
    row's, from 0."""
    place = list(error["loc"])
    if row is None and (numbers := [part for part in place if isinstance(part, int)]):
        place.remove(numbers[0])
        row = numbers[0] + 1
    column = (
        "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in place
        ).removeprefix(".")
        or None
    )
    if error["type"] == "missing":
        return Problem("the field is missing", row, column, unit)
    expected = error["msg"].replace("Input should be", "expected")
    return Problem(f"{expected}, found {cut_text(repr(error['input']), 60)}", row, column, unit)
