"""What the converters share: a source's rows read against a model of its format, and what a conversion gives back."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from factaudit.files import check_is_table_file, list_folder_files
from factaudit.settings.yaml_paths import YamlPathKind
from factaudit.tables import list_plain_rows, read_table, validate_claims, validate_verdicts
from factaudit.tables.column_kinds import find_judged_columns
from factaudit.tables.schema import POSITIONS_KEY, name_row_unit
from factaudit.tables.table_files import read_json_document
from factaudit.tables.unreadable_rows import leave_out_columns_of_judgements, leave_out_unreadable_rows
from factaudit.text.display_text import format_count


@dataclass(frozen=True)
class Conversion:
    """Validated claims and, where the source has them, verdicts and annotations.

    notes: what a user wants to know, a line each: rows read, rows left out and why, how a join went.
    provenance: what pins a source beyond its files' checksums (a hub's resolved revision).
    left_out: what could not be read: file, row, column and reason.
    unread_judgements: columns that may hold what people or evaluators said, and that the format has no place for.
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    annotations: pd.DataFrame | None = None
    left_out: list[dict[str, Any]] = field(default_factory=list)
    unread_judgements: list[str] = field(default_factory=list)

    @classmethod
    def from_rows(
        cls,
        claim_rows: Sequence[Mapping[str, Any]],
        verdict_rows: Sequence[Mapping[str, Any]] = (),
        *,
        source: str,
        notes: Iterable[str] = (),
    ) -> Conversion:
        """Validate rows of claims, and of verdicts where there are any; `InputError` names ``source``."""
        claims = validate_claims(pd.DataFrame(claim_rows), source=source)
        verdicts = validate_verdicts(pd.DataFrame(verdict_rows), claims, source) if verdict_rows else None
        return cls(claims, verdicts, list(notes))


def describe_grade_to_label_mapping(graded_labels: Iterable[tuple[str | None, int | None]]) -> str:
    """Which grade of a source was read as which label, of how many claims.

    >>> describe_grade_to_label_mapping([("full", 1), ("partial", 0), ("full", 1), (None, None)])
    'labels: full = 1 (2 claims), partial = 0 (1 claim), none = no label (1 claim)'
    """
    counts = Counter(graded_labels)
    read = [
        f"{grade or 'none'} = {'no label' if label is None else label} ({format_count(n, 'claim')})"
        for (grade, label), n in counts.most_common(MAX_NOTED_GRADES)
    ]
    more = len(counts) - len(read)
    return f"labels: {', '.join(read)}{f' and {more} more grades' if more else ''}"


#: A note lists at most so many grades.
MAX_NOTED_GRADES = 8


class DatasetSourceRow(BaseModel):
    """A row of a source, as its publisher documents it; columns that are not named are ignored."""

    model_config = ConfigDict(coerce_numbers_to_str=True, frozen=True)

    #: Where the row stands in its file, from 1: a row (Parquet, CSV), a line (JSONL) or an item (JSON).
    _position: int = PrivateAttr(0)

    @property
    def position(self) -> int:
        return self._position


def _parse_dataset_source_label(value: Any) -> Any:
    # CSV has "1" and "1.0"; anything else is left for the type to refuse.
    try:
        return int(number) if (number := float(value)) in (0, 1) else value
    except (TypeError, ValueError):
        return value


def _wrap_single_value(value: Any) -> Any:
    return [value] if isinstance(value, str | Path) else value


#: 1 or 0, also as CSV's text.
BinaryLabel = Annotated[Literal[0, 1], BeforeValidator(_parse_dataset_source_label)]
#: A number from 0 to 1.
Probability = Annotated[float, Field(ge=0, le=1)]
#: An option that may be given once or several times.
PathsOption = Annotated[Sequence[Path], BeforeValidator(_wrap_single_value)]
NamesOption = Annotated[Sequence[str], BeforeValidator(_wrap_single_value)]
JoinsOption = Annotated[Sequence[str], BeforeValidator(_wrap_single_value), YamlPathKind.FORMAT_AND_PATH]

T = TypeVar("T")
R = TypeVar("R", bound=DatasetSourceRow)


def read_dataset_source_rows(path: Path, model: type[R], *, is_counted: bool = False) -> list[R]:
    """The rows of a Parquet, JSONL or CSV file as ``model``.

    Rows that cannot be read are left out (`leave_out_unreadable_rows`), but not where other files count them
    (``is_counted``): then, and where they are too many, `InputError` says all that is wrong.
    """
    return parse_dataset_source_rows(read_table(path, is_counted=is_counted), path, model, is_counted=is_counted)


def parse_dataset_source_rows(table: pd.DataFrame, path: Path, model: type[R], *, is_counted: bool = False) -> list[R]:
    """`read_dataset_source_rows` for a table that was read already."""
    if table.empty:
        raise InputError(str(path), [Problem("the file has no rows")])
    positions = table.attrs.get(POSITIONS_KEY) or range(1, len(table) + 1)
    return parse_numbered_dataset_source_rows(
        list(zip(positions, list_plain_rows(table), strict=True)), path, model, name_row_unit(path), is_counted
    )


def parse_numbered_dataset_source_rows(
    numbered_rows: Sequence[tuple[int, Any]], path: Path, model: type[R], unit: str, is_counted: bool = False
) -> list[R]:
    """Rows with their positions in a file as ``model``; see `read_dataset_source_rows`."""
    try:
        values = [row for _, row in numbered_rows]
        rows: list[R] = TypeAdapter(list[model]).validate_python(values)  # type: ignore[valid-type]
        for (position, _), row in zip(numbered_rows, rows, strict=True):
            row._position = position
    except ValidationError as error:
        positions = [position for position, _ in numbered_rows]
        if is_counted:
            raise _make_input_error(path, error, unit, positions) from None
        items = error.errors(include_url=False)
        problems = [describe_invalid_source_row(item, unit, positions) for item in items]
        leave_out_unreadable_rows(path, problems, len(positions))
        bad = {problem.row for problem in problems}
        return parse_numbered_dataset_source_rows(
            [row for row in numbered_rows if row[0] not in bad], path, model, unit
        )
    leave_out_unreadable_rows(path, [], len(numbered_rows))
    leave_out_columns_of_judgements(path, _list_unread_judgement_columns(values, model))
    return rows


def _list_unread_judgement_columns(rows: Sequence[Any], model: type[DatasetSourceRow]) -> list[str]:
    """The columns of judgements that rows have and their model has not."""
    if model.model_config.get("extra") == "allow" or not all(isinstance(row, Mapping) for row in rows):
        return []
    known: set[Any] = {*model.model_fields}
    for one in model.model_fields.values():
        aliases = one.validation_alias
        known |= {one.alias, *(aliases.choices if isinstance(aliases, AliasChoices) else [aliases])}
    names = dict.fromkeys(str(name) for row in rows for name in row if name not in known)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return [*find_judged_columns(columns, ("people", "judge", "both", "plain"))]


def read_dataset_source_items(path: Path, model: type[R], key: str | None = None) -> dict[str, R]:
    """The items of a JSON file as ``model``: of its list or object, or of that under ``key`` (``results.results``).

    Returned by their own keys, of a list by their numbers from 0. Items that cannot be read are left out.
    """
    items: Any = read_dataset_source_json(path, Any)
    for part in [] if key is None else key.split("."):
        items = items.get(part) if isinstance(items, dict) else None
    if not isinstance(items, list | dict) or not items:
        expected = "a list or an object of items" if key is None else f"a list of items under {key!r}"
        raise InputError(str(path), [Problem(f"expected {expected}")])
    keys = list(map(str, items)) if isinstance(items, dict) else list(map(str, range(len(items))))
    values = list(items.values()) if isinstance(items, dict) else items
    rows = parse_numbered_dataset_source_rows(list(enumerate(values, start=1)), path, model, "item")
    return {keys[row.position - 1]: row for row in rows}


def read_dataset_source_json(path: Path, value_type: type[T] | Any) -> T:
    """A JSON file that is one value of type ``value_type``; raises `InputError` with all that is wrong."""
    check_is_table_file(path)
    try:
        value = read_json_document(path)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at character {error.colno}"
        raise InputError(str(path), [Problem(message, error.lineno, unit="line")]) from None
    try:
        return TypeAdapter(value_type).validate_python(value)
    except ValidationError as error:
        raise _make_input_error(path, error, "item", None) from None


def expand_dataset_source_folders(sources: Iterable[Path], *patterns: str) -> Iterator[Path]:
    """The files given, and of each folder given those inside that have one of the names, sorted."""
    for source in sources:
        if not source.is_dir():
            yield source
            continue
        inside = [path for path in list_folder_files(source) if any(path.match(pattern) for pattern in patterns)]
        if not inside:
            raise InputError(str(source), [Problem(f"the folder holds no file named {' or '.join(patterns)}")])
        yield from inside


def parse_split_name(path: Path) -> str | None:
    """The split that a file's name says: ``test-00000-of-00001.parquet``, ``mediasum_factual_eval_dev.csv``."""
    found = re.search(r"(?:^|[_.-])(train|dev|test)(?=[_.-])", path.name)
    return found[1] if found else None


def _make_input_error(path: Path, error: ValidationError, unit: str, positions: Sequence[int] | None) -> InputError:
    return InputError(
        str(path), [describe_invalid_source_row(item, unit, positions) for item in error.errors(include_url=False)]
    )


def describe_invalid_source_row(error: Any, unit: str, positions: Sequence[int] | None = None) -> Problem:
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
