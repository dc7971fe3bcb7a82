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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.datasets.conversion import FORMATS
from factaudit.datasets.logs import LOG_RECIPES, WANTED_TABLE
from factaudit.datasets.source_files import describe_wrong_file
from factaudit.files import list_folder_files, open_input_file
from factaudit.settings.yaml_file import read_shipped_yaml
from factaudit.tables.table_files import read_json_document

#: How many rows of a file, items of a list and keys of an object are looked at, and how deep.
_MAX_ROWS, _MAX_ITEMS, _MAX_KEYS, _MAX_DEPTH = 20, 5, 200, 6
#: Files that hold no claims, with their marks, by name; of these, FActScore's responses with facts,
#: which are an engine's input.
_UNREAD: dict[str, list[str]] = read_shipped_yaml("factaudit.datasets", "unread.yaml")
_ANNOTATED_RESPONSES = "FActScore's annotated responses"
#: The marks of each format and log that is read, by name.
_KNOWN: dict[str, Sequence[str]] = {
    **{name: one.marks for name, one in FORMATS.items()},
    **{name: recipe["marks"] for name, recipe in LOG_RECIPES.items()},
}
#: What makes a file unreadable; the reader of the file says why.
_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    NotImplementedError,
    RecursionError,
    csv.Error,
    pa.ArrowException,
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
    found = _find_marked(path, _KNOWN)
    if len(found) > 1:
        message = f"looks like {' and like '.join(found)}: {WANTED_TABLE}"
        raise describe_wrong_file(path, message)
    return found[0] if found else None


def check_is_readable(path: Path, has_claims: bool) -> None:
    """Raise `InputError` where a file holds no claims yet: responses with annotated facts; and,
    unless the user says which column holds them (``has_claims``), files that are not read."""
    unread = _find_marked(path, _UNREAD)
    if _ANNOTATED_RESPONSES in unread:
        command = suggest_score_command(path)
        message = f"{_ANNOTATED_RESPONSES}, not claims yet: run `{command}`"
        raise describe_wrong_file(path, message)
    if unread and not has_claims:
        message = f"a file of {unread[0]}, which is not read: {WANTED_TABLE}"
        raise describe_wrong_file(path, message)


def suggest_score_command(path: str | Path) -> str:
    """The command that makes claims and verdicts of FActScore's annotated responses."""
    options = "--facts human --knowledge KNOWLEDGE.db --llm MODEL --out runs/facts"
    return f"factaudit factscore {shlex.quote(str(path))} {options}"


def is_annotated_responses_file(path: str | Path) -> bool:
    """Whether a file has FActScore's responses with the facts that people annotated in them."""
    return _ANNOTATED_RESPONSES in _find_marked(Path(path), _UNREAD)


def _find_marked(path: Path, marks: Mapping[str, Sequence[str]]) -> list[str]:
    """The formats of which a file has all paths of a mark."""
    try:
        paths = [*_list_paths(path)]
    except _UNREADABLE:
        return []
    return [
        name
        for name, own in marks.items()
        if any(all(_is_among(part, paths) for part in mark.split()) for mark in own)
    ]


def _is_among(pattern: str, paths: Sequence[str]) -> bool:
    if "*" not in pattern:
        return pattern in paths
    compiled = re.compile(re.escape(pattern).replace(r"\*", r"[^.\[\]]*"), re.DOTALL)
    return any(map(compiled.fullmatch, paths))


def _list_paths(path: Path) -> Iterator[str]:
    """The paths of a file's keys or columns, of its first rows."""
    name = path.name.lower().removesuffix(".gz")
    if not path.is_file():
        return
    if name.endswith(".eval"):
        yield "log.eval"  # an archive of Inspect: its reader says how to make JSON of it
    elif name.endswith(".parquet"):
        yield from pq.read_schema(path).names
    elif name.endswith((".json", ".score")):
        try:
            document = read_json_document(path)
        except json.JSONDecodeError:  # lines of JSON under another name
            document = _read_first_lines(path)
        is_object = isinstance(document, dict) and bool(document)
        if is_object and all(map(_is_list_of_pairs, document.values())):
            yield "{label-score-pairs}"
        else:
            yield from _walk(document)
    elif name.endswith((".jsonl", ".ndjson")):
        yield from _walk(_read_first_lines(path))
    elif name.endswith(".csv"):
        with open_input_file(path) as lines:
            yield from next(csv.reader([lines.readline().decode("utf-8-sig")]), [])


def _read_first_lines(path: Path) -> list[Any]:
    """The values of a file's first lines of JSON; a broken line is left out."""
    values = []
    with open_input_file(path) as lines:
        for line in islice(filter(bytes.strip, lines), _MAX_ROWS):
            with suppress(ValueError):
                values.append(json.loads(line))
    return values


def _is_list_of_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 for one in value[:_MAX_ROWS]
    )


def _walk(value: Any, prefix: str = "", depth: int = _MAX_DEPTH) -> Iterator[str]:
    """The paths within a value; those within the rows of a document that is a list are the rows'
    own."""
    if depth == 0:
        return
    inside: list[tuple[str, Any]] = []
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
