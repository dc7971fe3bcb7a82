"""Which known format a file is of, by what it holds: its keys and columns, never its name.

A format's mark is paths that all occur in a file, apart by blanks: ``testCases[].metricsData`` is
the key metricsData of the objects in the list testCases; a column of a table is a path of one key,
and so is a key of a line of JSON. ``*`` stands for any text within a key. ``{label-score-pairs}``
is a document of nothing but lists of pairs.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.datasets.conversion import FORMATS
from factaudit.datasets.logs import LOG_RECIPES, WANTED_TABLE
from factaudit.errors import InputError, Problem
from factaudit.files import list_folder_files, open_input_file
from factaudit.settings.yaml_file import read_shipped_yaml
from factaudit.tables.table_files import read_json_document

#: How many rows of a file, items of a list and keys of an object are looked at, and how deep.
_MAX_ROWS, _MAX_ITEMS, _MAX_KEYS, _MAX_DEPTH = 20, 5, 200, 6
#: The marks of FActScore's annotated responses: an engine's input, which holds facts but no claims
#: yet.
_ANNOTATED_FACTS_MARKS = (
    "input output annotations[].human-atomic-facts",
    "input output annotations[].model-atomic-facts",
)


def describe_known_format(name: str) -> str:
    """What a format is: published data, or the log of a tool."""
    return str(LOG_RECIPES[name]["summary"]) if name in LOG_RECIPES else FORMATS[name].summary


def detect_dataset_format(path: str | Path) -> str | None:
    """The name of the published format or the log that a file is of; None where it is of none, or
    cannot be read.

    Of a folder: that of its first files which are of one. Raises `InputError` where it could be of
    two.
    """
    path = Path(path)
    if path.is_dir():
        names = (detect_dataset_format(one) for one in list_folder_files(path)[:_MAX_ROWS])
        return next(filter(None, names), None)
    paths = _list_paths(path)
    marks = {name: one.marks for name, one in FORMATS.items()}
    marks |= {name: recipe["marks"] for name, recipe in LOG_RECIPES.items()}
    found = [name for name, own in marks.items() if _has_mark(paths, own)]
    if len(found) > 1:
        message = f"looks like {' and like '.join(found)}: {WANTED_TABLE}"
        raise InputError(str(path), [Problem(message)])
    return found[0] if found else None


def check_is_readable(path: Path, has_claims: bool) -> None:
    """Raise `InputError` where a file holds no claims yet: responses with annotated facts; and,
    unless the user says which column holds them (``has_claims``), files that are not read."""
    if is_annotated_responses_file(path):
        command = suggest_score_command(path)
        message = f"FActScore's annotated responses, not claims yet: run `{command}`"
        raise InputError(str(path), [Problem(message)])
    paths, tools = _list_paths(path), read_shipped_yaml("factaudit.datasets", "unread.yaml")
    unread = [name for name, marks in tools.items() if _has_mark(paths, marks)]
    if unread and not has_claims:
        message = f"a file of {unread[0]}, which is not read: {WANTED_TABLE}"
        raise InputError(str(path), [Problem(message)])


def suggest_score_command(path: str | Path) -> str:
    """The command that makes claims and verdicts of FActScore's annotated responses."""
    options = "--facts human --knowledge KNOWLEDGE.db --llm MODEL --out runs/facts"
    return f"factaudit factscore {shlex.quote(str(path))} {options}"


def is_annotated_responses_file(path: str | Path) -> bool:
    """Whether a file has FActScore's responses with the facts that people annotated in them."""
    return _has_mark(_list_paths(Path(path)), _ANNOTATED_FACTS_MARKS)


def _has_mark(paths: frozenset[str], marks: Sequence[str]) -> bool:
    """Whether all paths of one of the marks are there."""
    return any(all(_is_among(part, paths) for part in mark.split()) for mark in marks)


def _is_among(pattern: str, paths: frozenset[str]) -> bool:
    if "*" not in pattern:
        return pattern in paths
    compiled = re.compile(re.escape(pattern).replace(r"\*", r"[^.\[\]]*"), re.DOTALL)
    return any(map(compiled.fullmatch, paths))


def _list_paths(path: Path) -> frozenset[str]:
    """The paths of a file's keys or columns, of its first rows; none where it cannot be read: who
    reads it says why."""
    try:
        state = path.stat()
        return frozenset(map(str, _read_paths(path, state.st_size, state.st_mtime_ns)))
    except (
        OSError,
        ValueError,
        EOFError,
        NotImplementedError,
        RecursionError,
        csv.Error,
        pa.ArrowException,
    ):
        return frozenset()


@lru_cache(maxsize=16)
def _read_paths(path: Path, n_bytes: int, modified: int) -> list[str]:
    name = path.name.lower().removesuffix(".gz")
    if name.endswith(".parquet"):
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        # A first batch costs a whole page each.
        nested = [one.name for one in schema if pa.types.is_nested(one.type)]
        batches = file.iter_batches(batch_size=_MAX_ROWS, columns=nested) if nested else iter(())
        return [
            *schema.names,
            *(path for batch in islice(batches, 1) for path in _walk(batch.to_pylist())),
        ]
    if name.endswith(".eval"):
        return ["log.eval"]  # an archive of Inspect: its reader says how to make JSON of it
    if name.endswith((".json", ".score")):
        with suppress(json.JSONDecodeError):  # lines of JSON under another name
            document = read_json_document(path)
            # Written with pandas' orient="split".
            if isinstance(document, dict) and {*document} == {"columns", "data"}:
                return list(document["columns"])
            if (
                isinstance(document, dict)
                and document
                and all(map(_is_list_of_pairs, document.values()))
            ):
                return ["{label-score-pairs}"]
            return [*_walk(document)]
    if name.endswith((".csv", ".jsonl", ".ndjson", ".json")) and path.is_file():
        with open_input_file(path) as lines:
            if name.endswith(".csv"):
                return next(csv.reader([lines.readline().decode("utf-8-sig")]), [])
            return [*_walk([*_parse_first_lines(lines)])]
    return []


def _parse_first_lines(lines: Iterable[bytes]) -> Iterator[Any]:
    for line in islice(filter(bytes.strip, lines), _MAX_ROWS):
        with suppress(ValueError):  # a broken line is left out
            yield json.loads(line)


def _is_list_of_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 for one in value[:_MAX_ROWS]
    )


def _walk(value: Any, prefix: str = "", depth: int = _MAX_DEPTH) -> Iterator[str]:
    """The paths within a value; those within the rows of a document that is a list are the rows'
    own."""
    if depth == 0:
        return
    inside: Iterable[tuple[str, Any]] = ()
    if isinstance(value, dict):
        inside = [
            (f"{prefix}.{key}".lstrip("."), one) for key, one in islice(value.items(), _MAX_KEYS)
        ]
    elif isinstance(value, list):
        name = f"{prefix}[]" if prefix else ""
        inside = [(name, one) for one in value[: _MAX_ITEMS if name else _MAX_ROWS]]
        yield name
    for name, one in inside:
        yield name
        yield from _walk(one, name, depth - 1)
