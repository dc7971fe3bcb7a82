"""Files and data frames as Python users give them, with arguments that name their columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypedDict, TypeGuard, Unpack, cast

import pandas as pd

from factaudit.datasets.input_tables import load_input_tables, name_input_sources
from factaudit.errors import UsageError
from factaudit.settings.python_errors import raise_python_errors, translate_error_text_to_python
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.questions import merge_mapping_data
from factaudit.tables.table_loading import LoadedTables


class FrameLike(Protocol):
    """A table of another library (Polars, Arrow, Hugging Face's datasets)."""

    def to_pandas(self) -> pd.DataFrame: ...


#: A table, or the path of a file with one.
TableSource = pd.DataFrame | FrameLike | str | Path
#: What says how tables of other people's columns are read: the keys of `ColumnMapping`, or the path
#: of a YAML file.
MappingSource = ColumnMapping | Mapping[str, object] | str | Path


class ClaimColumnNames(TypedDict, total=False):
    """Which columns of yours are which columns of claims: ``label="human", system="model"``."""

    claim: str
    doc: str
    label: str
    system: str
    dataset: str
    task: str
    response_id: str
    doc_id: str
    topic: str
    group: str
    entity: str
    split: str
    claim_id: str


def load_python_input_frames(
    claims: TableSource | Sequence[TableSource],
    verdicts: TableSource | Sequence[TableSource] | None = None,
    mapping: MappingSource | None = None,
    columns: ClaimColumnNames | None = None,
    evaluators: Sequence[str] | None = None,
) -> LoadedTables:
    """`load_input_tables` of frames or paths; what is said of the reading goes to stderr.

    columns: columns of claims by what they are called here. evaluators: the columns that hold what
    one evaluator said each; of a table of verdicts the evaluators to read. Frames that are
    validated already are not read again where nothing is said of them.
    """
    is_plain = mapping is None and not columns and evaluators is None
    if (
        is_plain
        and _is_validated(claims, CLAIM_COLUMNS)
        and (verdicts is None or _is_validated(verdicts, VERDICT_COLUMNS))
    ):
        return LoadedTables(claims, verdicts)
    frames = [*_list_frames(claims), *_list_frames(verdicts)]
    named = _make_mapping(mapping, columns or {}, evaluators)
    return load_input_tables(frames, named, _print_reading)


def _is_validated(table: Any, names: Sequence[str]) -> TypeGuard[pd.DataFrame]:
    return isinstance(table, pd.DataFrame) and {*names} <= {*table.columns}


@raise_python_errors
def read_python_input_claims(
    *sources: TableSource, mapping: MappingSource | None = None, **columns: Unpack[ClaimColumnNames]
) -> pd.DataFrame:
    """Read the claims of files or data frames of any shape, of known formats too; see
    `load_input_tables`.

    columns: which columns of yours hold what (``label="human"``); ``mapping`` says everything else.

    Returns a DataFrame with all columns of claims (missing optional ones null), then any others.
    Raises `InputError` naming file, row and column, and `UsageError` where there are no claims, or
    two readings are possible.
    """
    claims = load_python_input_frames(sources, None, mapping, columns).claims
    if claims is None:
        raise UsageError(f"{name_input_sources(sources)}: no claims in it: say claim='COLUMN'")
    return claims


@raise_python_errors
def read_python_input_verdicts(
    *sources: TableSource,
    claims: TableSource | None = None,
    evaluators: Sequence[str] | None = None,
    mapping: MappingSource | None = None,
    **columns: Unpack[ClaimColumnNames],
) -> pd.DataFrame:
    """Read the verdicts of files or data frames of any shape; against ``claims`` where given.

    evaluators: columns with what an evaluator said, or names of evaluators. columns: as in
    `read_python_input_claims`.

    Returns a DataFrame with the columns of verdicts. Raises as `read_python_input_claims` does.
    """
    given = [*_list_frames(claims), *sources]
    verdicts = load_python_input_frames(given, None, mapping, columns, evaluators).verdicts
    if verdicts is None:
        raise UsageError(
            f"{name_input_sources(sources)}: no verdicts in it: say evaluators=['COLUMN']"
        )
    return verdicts


def _print_reading(line: str) -> None:
    print(translate_error_text_to_python(line), file=sys.stderr)


def _list_frames(sources: TableSource | Sequence[TableSource] | None) -> list[TableSource]:
    if sources is None:
        return []
    return [*sources] if isinstance(sources, list | tuple) else [cast("TableSource", sources)]


def _make_mapping(
    mapping: MappingSource | None, columns: ClaimColumnNames, evaluators: Sequence[str] | None
) -> MappingSource | None:
    if not columns and evaluators is None:
        return mapping
    for argument, name in columns.items():
        if not isinstance(name, str):
            raise UsageError(
                f"{argument}: expected the name of a column, found {type(name).__name__}; labels in"
                " a table of their own are given as annotations"
            )
    exact = [re.sub(r"([*?[])", r"[\1]", name) for name in evaluators or ()]
    given = ColumnMapping.from_source(mapping).model_dump(exclude_defaults=True, mode="json")
    return merge_mapping_data(given, {"columns": dict(columns), "evaluator": exact})
