"""What the converters share: a source's rows read against a model of its format, and what a conversion gives back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import pandas as pd
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from factaudit.errors import InputError, Problem
from factaudit.files import from_json
from factaudit.paths import Kind
from factaudit.tables import read_table, records


@dataclass(frozen=True)
class Conversion:
    """Validated claims and, where the source has them, verdicts and annotations.

    notes: what a user wants to know, a line each: rows read, rows left out and why, how a join went.
    provenance: what pins a source beyond its files' checksums (a hub's resolved revision).
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    annotations: pd.DataFrame | None = None


class Row(BaseModel):
    """A row of a source, as its publisher documents it; columns that are not named are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)


def _binary(value: Any) -> Any:
    # CSV has "1" and "1.0"; anything else is left for the type to refuse.
    try:
        return int(number) if (number := float(value)) in (0, 1) else value
    except (TypeError, ValueError):
        return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


#: 1 or 0, also as CSV's text.
Label = Annotated[Literal[0, 1], BeforeValidator(_binary)]
#: A number from 0 to 1.
Probability = Annotated[float, Field(ge=0, le=1)]
#: An option that may be given once or several times.
Paths = Annotated[Sequence[Path], BeforeValidator(_listed)]
Names = Annotated[Sequence[str], BeforeValidator(_listed)]
Joins = Annotated[Sequence[str], BeforeValidator(_listed), Kind.FORMAT_AND_PATH]

T = TypeVar("T")
R = TypeVar("R", bound=Row)


def read_rows(path: Path, model: type[R]) -> list[R]:
    """The rows of a Parquet, JSONL or CSV file as ``model``; raises `InputError` with all that is wrong."""
    return parse_rows(read_table(path), path, model)


def parse_rows(table: pd.DataFrame, path: Path, model: type[R]) -> list[R]:
    """`read_rows` for a table that was read already."""
    if table.empty:
        raise InputError(str(path), [Problem("the file has no rows")])
    try:
        return TypeAdapter(list[model]).validate_python(records(table))  # type: ignore[valid-type]
    except ValidationError as error:
        raise _input_error(path, error, unit(path), table.attrs.get("positions")) from None


def read_json(path: Path, form: type[T] | Any) -> T:
    """A JSON file that is one value of type ``form``; raises `InputError` with all that is wrong."""
    if not path.is_file():
        raise InputError(str(path), [Problem("this is a folder, expected a file" if path.is_dir() else "no such file")])
    try:
        value = from_json(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(str(path), [Problem("not UTF-8 text; save the file as UTF-8")]) from None
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at character {error.colno}"
        raise InputError(str(path), [Problem(message, error.lineno, unit="line")]) from None
    try:
        return TypeAdapter(form).validate_python(value)
    except ValidationError as error:
        raise _input_error(path, error, "item", None) from None


def expand(sources: Iterable[Path], *patterns: str) -> Iterator[Path]:
    """The files given, and of each folder given those inside that have one of the names, sorted."""
    for source in sources:
        if not source.is_dir():
            yield source
            continue
        inside = [path for path in files_in(source) if any(path.match(pattern) for pattern in patterns)]
        if not inside:
            raise InputError(str(source), [Problem(f"the folder holds no file named {' or '.join(patterns)}")])
        yield from inside


def files_in(folder: Path) -> list[Path]:
    """The files of a folder and its folders, sorted; neither hidden ones nor those of a run folder of ours."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_file():
            found.append(path)
        elif path.is_dir() and not (path / ".work").is_dir():
            found += files_in(path)
    return found


def unit(path: Path) -> str:
    """What a message calls a row of the file."""
    return "line" if ".jsonl" in path.name else "row"


def split_of(path: Path) -> str | None:
    """The split that a file's name says: ``test-00000-of-00001.parquet``, ``mediasum_factual_eval_dev.csv``."""
    found = re.search(r"(?:^|[_.-])(train|dev|test)(?=[_.-])", path.name)
    return found[1] if found else None


def no_text(dataset: str, row: int) -> str:
    """Stands for a claim whose text the source does not have; ``row`` counts from 1."""
    return f"(no text: row {row} of {dataset})"


def _input_error(path: Path, error: ValidationError, unit: str, positions: Sequence[int] | None) -> InputError:
    return InputError(str(path), [problem(item, unit, positions) for item in error.errors(include_url=False)])


def problem(error: Any, unit: str, positions: Sequence[int] | None = None) -> Problem:
    """What pydantic found, in our words; the first number in its place is the row's, from 0."""
    place = list(error["loc"])
    row = None
    for part in place:
        if isinstance(part, int):
            row = part + 1 if positions is None else positions[part]
            place.remove(part)
            break
    column = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")
    if error["type"] == "missing":
        message = "the field is missing"
    else:
        expected = error["msg"].replace("Input should be", "expected")
        found = repr(error["input"])
        message = f"{expected}, found {found if len(found) <= 60 else found[:57] + '...'}"
    return Problem(message, row, column or None, unit)
