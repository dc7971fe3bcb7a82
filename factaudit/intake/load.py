"""From files as they lie to claims and verdicts: as they are where the columns are ours, else by a mapping."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.errors import InputError, UsageError, hint
from factaudit.intake.anyfile import read_any
from factaudit.intake.apply import apply
from factaudit.intake.mapping import Mapping
from factaudit.intake.profile import nearest, propose
from factaudit.intake.words import COLUMN_NAMES, plain
from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS, read_claims, read_verdicts
from factaudit.tables.annotations import ANNOTATION_COLUMNS, read_annotations

#: Columns whose values a mapping can change.
_MAPPED = {"label", "score", "prediction"}


@dataclass(frozen=True)
class Loaded:
    """Validated claims, verdicts and annotations (None where there are none), and the mapping that made them (None:
    none needed)."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    mapping: Mapping | None = None
    annotations: pd.DataFrame | None = None


def load(sources: Sequence[Any], mapping: Any = None, say: Callable[[str], None] = lambda line: None) -> Loaded:
    """Read claims and verdicts from one source or several, in any order.

    Args:
        sources: paths; or data frames (pandas, polars, PyArrow), which messages call ``table 1``, ``table 2``.
        mapping: a `Mapping`, its path or plain data. ``auto`` (the default): sources whose columns are all ours are
            read as they are; for others it is what `propose` takes them for, changed by what the mapping says.
        say: gets a line for each thing that was taken for another, before anything can go wrong.

    Raises `InputError` and `UsageError`.
    """
    given = Mapping(auto=True) if mapping is None else Mapping.of(mapping)
    paths = [source for source in sources if isinstance(source, str | Path)]
    if given == Mapping(auto=True) and len(paths) == len(sources) and all(map(is_standard, paths)):
        try:
            return _as_they_are(paths, say)
        except InputError as error:
            # The columns are ours; what they hold (words for labels, other scales) may still be what a mapping is for.
            if {problem.column for problem in error.problems} - _MAPPED or _needs_none(paths):
                raise error from None
    tables = [
        (str(source), read_any(source)) if isinstance(source, str | Path) else (f"table {number}", as_pandas(source))
        for number, source in enumerate(sources, start=1)
    ]
    if given.auto:
        proposal = propose(tables)
        given = changed(proposal.mapping, given)
        lines = [*proposal.told, *(f"assumed  {question}" for question in proposal.questions)]
        for line in [*lines, *([f"unread  {', '.join(proposal.unread)}"] if proposal.unread else [])]:
            say(line)
    mapped = apply(tables, given)
    return Loaded(mapped.claims, mapped.verdicts, given, mapped.annotations)


def frames(claims: Any, verdicts: Any = None, mapping: Any = None) -> Loaded:
    """`load` for frames that Python code has: validated ones as they are; what is taken for what goes to stderr."""
    ours = all(
        isinstance(frame, pd.DataFrame) and {*columns} <= {*frame.columns}
        for frame, columns in ((claims, CLAIM_COLUMNS), (verdicts, VERDICT_COLUMNS))
        if frame is not None
    )
    if ours and mapping is None:
        return Loaded(claims, verdicts)
    given = [claims] if verdicts is None else [claims, verdicts]
    return load(given, mapping, lambda line: print(line, file=sys.stderr))


def _as_they_are(paths: Sequence[str | Path], say: Callable[[str], None]) -> Loaded:
    """Files whose columns are ours, by our readers; a column that looks like a misspelt one of ours is told of."""
    headers = {path: _header(path) or set() for path in paths}
    verdicts = [path for path in paths if "evaluator" in headers[path]]
    people = [path for path in paths if "annotator" in headers[path]]
    claims = [path for path in paths if path not in (*verdicts, *people)]
    for path, header in headers.items():
        strange = sorted(header - {*CLAIM_COLUMNS, *VERDICT_COLUMNS, *ANNOTATION_COLUMNS})
        near = [
            f"{name} (did you mean {ours!r}?)" for name in strange if (ours := nearest(name)) not in (None, *header)
        ]
        if near:
            say(f"unread  {'' if len(paths) == 1 else f'{path}: '}{', '.join(near)}")
    table = read_claims(*claims) if claims else None
    said = read_annotations(*people, claims=table) if people else None
    return Loaded(table, read_verdicts(*verdicts, claims=table) if verdicts else None, None, said)


def _needs_none(paths: Sequence[str | Path]) -> bool:
    """Whether no mapping would help: none is proposed, or the files cannot be read in any form."""
    try:
        return propose([(str(path), read_any(path)) for path in paths]).is_standard
    except InputError:
        return True


def as_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of pandas, polars or PyArrow as pandas'. Raises `UsageError`."""
    if isinstance(frame, pd.DataFrame):
        return frame
    if hasattr(frame, "to_arrow"):  # polars: by way of Arrow, which needs nothing installed
        frame = frame.to_arrow()
    if isinstance(frame, pa.Table):
        return frame.to_pandas()
    raise UsageError(f"expected a path or a data frame (pandas, polars, PyArrow), found {type(frame).__name__}")


def changed(proposed: Mapping, own: Mapping) -> Mapping:
    """A proposed mapping with what the user's says in place of it; columns and labels key by key."""
    data, said = proposed.model_dump(exclude_defaults=True), own.model_dump(exclude_defaults=True, exclude={"auto"})
    columns = data.get("columns", {})
    named = {name for value in own.columns.values() for name in ([value] if isinstance(value, str) else value)}
    kept_people = {name: column for name, column in data.get("annotators", {}).items() if column not in named}
    # A column that the user gives a role loses the one that it was taken for.
    kept = {ours: theirs for ours, theirs in columns.items() if isinstance(theirs, list) or theirs not in named}
    kept_evaluators = {} if own.wide or own.evaluators else data.get("evaluators", {})
    for one in kept_evaluators.values():
        one.update({key: said[key] for key in ("scale", "threshold") if key in said} if one.get("score") else {})
    merged = {
        **data,
        **said,
        "columns": kept | said.get("columns", {}),
        "labels": data.get("labels", {}) | said.get("labels", {}),
        "annotators": said.get("annotators", kept_people),
        "evaluators": {
            name: one for name, one in kept_evaluators.items() if not {one.get("score"), one.get("prediction")} & named
        }
        | said.get("evaluators", {}),
    }
    return Mapping.of(merged)


def is_standard(path: str | Path) -> bool:
    """Whether a file can be read as it is: all that it needs is there, and no column stands under another name."""
    header = _header(path)
    if header is None:
        return False
    ours = {*CLAIM_COLUMNS, *VERDICT_COLUMNS}
    if {"claim_id", "annotator", "label"} <= header and "claim" not in header:
        return True
    is_verdicts = {"claim_id", "evaluator"} <= header and bool({"score", "prediction"} & header)
    if not is_verdicts and not {"dataset", "claim"} <= header:
        return False
    known = {name: column for column, names in COLUMN_NAMES.items() for name in names}
    relevant = VERDICT_COLUMNS if is_verdicts else CLAIM_COLUMNS
    return not any(
        (column := known.get(plain(name))) in relevant and column not in header for name in header if name not in ours
    )


def _header(path: str | Path) -> set[str] | None:
    """The names of a file's columns, from its first line; None where they can't be had so."""
    path = Path(path)
    name = path.name.lower()
    text = name.removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            return set(pq.read_schema(path).names)
        if not text.endswith((".csv", ".jsonl")):
            return None
        with gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb") as file:
            first = file.readline().decode("utf-8-sig")
        if text.endswith(".csv"):
            names = next(csv.reader([first]), [])
            return set(names) if len(names) > 1 else None
        row = json.loads(first)
        nested = not isinstance(row, dict) or any(isinstance(value, dict) for value in row.values())
        return None if nested else set(row)
    except (OSError, ValueError, EOFError, RecursionError, pa.ArrowException):
        return None  # whoever reads the file says what is wrong with it


def parse_settings(
    columns: Sequence[str] = (),
    labels: str | None = None,
    scale: str | None = None,
    threshold: float | None = None,
    label_threshold: float | None = None,
    wide: Sequence[str] = (),
) -> Mapping:
    """The command line's single settings as a mapping: ``claim=sentence``, ``supported=1,refuted=0``, ``1:5``.

    ``columns`` may instead be the path of a mapping (YAML), alone. Raises `UsageError`.
    """
    if len(columns) == 1 and columns[0].endswith((".yaml", ".yml")):
        if labels or scale or wide or threshold is not None or label_threshold is not None:
            raise UsageError("give a mapping's file or single settings, not both: put the settings into the file")
        return Mapping.of(Path(columns[0]))
    given: dict[str, Any] = {"auto": True, "threshold": threshold, "label_threshold": label_threshold}
    given |= {"wide": list(wide), "columns": {}}
    for text in columns:
        ours, equals, theirs = text.partition("=")
        if not equals or not theirs:
            raise UsageError(f"--map: expected OURS=THEIRS, or one YAML file, found {text!r}")
        if ours not in COLUMN_NAMES:
            raise UsageError(f"--map: no column {ours!r} of claims or verdicts{hint(ours, list(COLUMN_NAMES))}")
        given["columns"][ours] = theirs
    if labels is not None:
        given["labels"] = {}
        for part in labels.split(","):
            word, equals, value = part.rpartition("=")
            if not equals or value.strip() not in ("0", "1", ""):
                raise UsageError(f"--labels: expected WORD=1, WORD=0 or WORD= (not annotated), found {part!r}")
            given["labels"][word.strip()] = int(value) if value.strip() else None
    if scale is not None:
        low, _, high = scale.partition(":")
        try:
            given["scale"] = (float(low), float(high))
        except ValueError:
            expected = "LOW:HIGH (1:5; 1:0 where 1 is hallucinated)"
            raise UsageError(f"--scale: expected {expected}, found {scale!r}") from None
    return Mapping.of(given)
