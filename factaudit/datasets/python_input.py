"""Data frames as Python users give them: with the names of their columns."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypedDict, Unpack

import pandas as pd

from factaudit.datasets.input_tables import load_input_tables, name_input_sources
from factaudit.errors import UsageError, suggest_known_name
from factaudit.settings.python_errors import raise_python_errors, translate_error_text_to_python
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.questions import merge_mapping_data
from factaudit.tables.table_files import load_pandas_frame
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
    """`load_input_tables` of frames or paths; validated frames stay as they are, and what is said
    goes to stderr.

    columns: columns of claims by what they are called here. evaluators: the columns that hold what
    one evaluator said each; of a table of verdicts the evaluators to read. Raises `UsageError` for
    a column that is not there.
    """
    frames, others = _list_python_input_frames(claims), _list_python_input_frames(verdicts)
    is_plain = mapping is None and not columns and len(frames) == 1 and len(others) <= 1
    ours = [(frames, CLAIM_COLUMNS), (others, VERDICT_COLUMNS)]
    validated = [
        one
        for part, names in ours
        for one in part
        if isinstance(one, pd.DataFrame) and {*names} <= {*one.columns}
    ]
    if not is_plain or len(validated) < len([*frames, *others]):
        named = _make_python_mapping(mapping, columns or {}, evaluators, [*frames, *others])
        return load_input_tables([*frames, *others], named, _print_reading)
    judged = validated[1] if others else None
    if judged is not None and evaluators is not None:
        known = [*judged["evaluator"].unique()]
        for name in evaluators:
            if name not in known:
                raise UsageError(
                    f"evaluators: no verdict of {name!r}{suggest_known_name(name, known)}"
                )
        judged = judged[judged["evaluator"].isin([*evaluators])].reset_index(drop=True)
    return LoadedTables(validated[0], judged)


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
    frames = _list_python_input_frames(sources)
    claims = load_input_tables(
        frames, _make_python_mapping(mapping, columns, None, frames), _print_reading
    ).claims
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
    frames = [*_list_python_input_frames(claims), *_list_python_input_frames(sources)]
    named = _make_python_mapping(mapping, columns, evaluators, frames)
    verdicts = load_input_tables(frames, named, _print_reading).verdicts
    if verdicts is None:
        raise UsageError(
            f"{name_input_sources(sources)}: no verdicts in it: say evaluators=['COLUMN']"
        )
    return verdicts


def _print_reading(line: str) -> None:
    print(translate_error_text_to_python(line), file=sys.stderr)


def _list_python_input_frames(
    sources: TableSource | Sequence[TableSource] | None,
) -> list[pd.DataFrame | str | Path]:
    given = sources if isinstance(sources, list | tuple) else [] if sources is None else [sources]
    return [
        one if isinstance(one, pd.DataFrame | str | Path) else load_pandas_frame(one)
        for one in given
    ]


def _make_python_mapping(
    mapping: MappingSource | None,
    columns: ClaimColumnNames,
    evaluators: Sequence[str] | None,
    sources: Iterable[TableSource],
) -> MappingSource | None:
    if not columns and evaluators is None:
        return mapping
    known = [str(name) for one in sources if isinstance(one, pd.DataFrame) for name in one.columns]
    for argument, name in columns.items():
        if not isinstance(name, str):
            raise UsageError(
                f"{argument}: expected the name of a column, found {type(name).__name__}; labels in"
                " a table of their own are given as annotations"
            )
        if known and name not in known:
            raise UsageError(
                f"{argument}={name!r}: no such column{suggest_known_name(name, known)}"
            )
    exact = [re.sub(r"([*?[])", r"[\1]", name) for name in evaluators or ()]
    given = (
        {}
        if mapping is None
        else ColumnMapping.from_source(mapping).model_dump(exclude_defaults=True, mode="json")
    )
    return merge_mapping_data(given, {"columns": dict(columns), "evaluator": exact})
