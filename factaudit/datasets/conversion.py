"""How a published data set becomes tables: its format is declared in ``formats.yaml``, and its
reader makes a `Conversion`.

A reader is a function of paths and options. It makes one dictionary for each claim, with the
columns of claims; in it, ``verdicts`` and ``annotations`` list the judgements of evaluators and of
annotators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pandas as pd

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import describe_wrong_file
from factaudit.errors import UsageError, suggest_known_name
from factaudit.files import list_folder_files
from factaudit.publications.fetching import (
    fetch_missing_published_files,
    resolve_published_data_paths,
)
from factaudit.publications.register import list_format_references
from factaudit.settings.python_errors import raise_python_errors
from factaudit.settings.yaml_file import read_shipped_yaml
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.annotations import validate_annotations
from factaudit.tables.unreadable_rows import collect_unreadable_rows

#: Further keys of a claim's row.
VERDICTS, ANNOTATIONS = "verdicts", "annotations"


@dataclass(frozen=True)
class Conversion:
    """Validated claims and, where the source has them, verdicts and annotations.

    notes: what a user wants to know, a line each: rows left out and why, how a join went.
    provenance: what pins a source beyond its files' checksums (a hub's resolved revision).
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame | None = None
    notes: list[str] = field(default_factory=list)
    provenance: dict[str, Any] = field(default_factory=dict)
    annotations: pd.DataFrame | None = None

    @classmethod
    def from_claims(
        cls,
        source: str,
        claims: Sequence[Mapping[str, Any]],
        notes: Iterable[str] = (),
    ) -> Conversion:
        """Validate a row for each claim with what it says of verdicts and annotations; `InputError`
        names ``source``.

        A claim's task is its data set's, where it has none.
        """
        rows = pd.DataFrame(list(claims))
        table = rows.drop(columns=[VERDICTS, ANNOTATIONS], errors="ignore")
        if "task" not in table and "dataset" in table:
            table["task"] = table["dataset"].map(find_dataset_task)
        table = validate_claims(table, source=source)
        judged = _list_nested_rows(table, claims, VERDICTS)
        verdicts = None if judged.empty else validate_verdicts(judged, claims=table, source=source)
        said = _list_nested_rows(table, claims, ANNOTATIONS)
        annotations = None if said.empty else validate_annotations(said, table, source)
        return cls(table, verdicts, [*notes], annotations=annotations)


def _list_nested_rows(
    table: pd.DataFrame, claims: Sequence[Mapping[str, Any]], key: str
) -> pd.DataFrame:
    """What the claims' rows list under a key, a row each, with the claim's id."""
    pairs = zip(table["claim_id"], claims, strict=True)
    return pd.DataFrame(
        [{"claim_id": claim_id, **one} for claim_id, row in pairs for one in row.get(key, ())]
    )


@dataclass(frozen=True)
class DatasetFormat:
    """The format of a published data set, as ``formats.yaml`` declares it.

    reader: MODULE:FUNCTION of this package. files: names of its files, which are looked for in
    folders. options: what each option means, by name. marks: how a file is recognised, see
    `format_detection`; without any it is not.
    """

    reader: str
    summary: str
    example: str
    files: Sequence[str]
    options: Mapping[str, str] = field(default_factory=dict)
    marks: Sequence[str] = ()

    @property
    def converter(self) -> Callable[..., Conversion]:
        """The function that reads it: of the paths of files, and the options as keywords. Its
        module is imported only now."""
        converter: Callable[..., Conversion] = resolve_name(f"factaudit.datasets.{self.reader}")
        return converter


#: All formats, by name.
FORMATS: dict[str, DatasetFormat] = {
    name: DatasetFormat(**declared)
    for name, declared in read_shipped_yaml("factaudit.datasets", "formats.yaml").items()
}


def expand_folders(sources: Iterable[Path], patterns: Sequence[str]) -> list[Path]:
    """The files given, and of each folder given those inside that have one of the names, sorted."""
    found: list[Path] = []
    for source in sources:
        inside = [source]
        if source.is_dir():
            inside = [one for one in list_folder_files(source) if any(map(one.match, patterns))]
        if not inside:
            message = f"the folder holds no file named {' or '.join(patterns)}"
            raise describe_wrong_file(source, message)
        found += inside
    return found


def check_conversion_options(format: str, options: Iterable[str]) -> None:
    """Raise `UsageError`, with a hint, for an unknown format or an option that it does not have."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}{suggest_known_name(format, list(FORMATS))}")
    known = list(FORMATS[format].options)
    for key in options:
        if key not in known:
            hint = suggest_known_name(key, known) if known else ""
            raise UsageError(f"format {format!r} has no option {key!r}{hint}")


@raise_python_errors
def convert(
    format: str,
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    report_line: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Conversion:
    """Convert sources (files or folders) of a registered format; see `FORMATS` for their options.

    A source may be published data (``published:tofueval``), which is fetched where it is missing;
    without any source it is all that the register has in this format. ``report_line`` is told what
    is fetched. Rows that cannot be read are left out and noted with their reasons. Raises
    `UsageError` for an unknown format, option or value, and `InputError` naming file, row and
    column where a file is of another form, or more than a fifth of it cannot be read.
    """
    from pydantic import ConfigDict, ValidationError, validate_call

    check_conversion_options(format, options)
    entry = FORMATS[format]
    # An empty glob fetches nothing.
    sources = list_format_references(format) if sources is None else sources
    sources = [sources] if isinstance(sources, str | Path) else sources
    if not sources:
        raise UsageError(f"format {format!r}: expected at least one file or folder")
    paths, *values = (
        resolve_published_data_paths(one) for one in (list(map(str, sources)), *options.values())
    )
    fetch_missing_published_files(
        [
            text
            for value in (paths, *values)
            for text in (value if isinstance(value, list) else [value])
            if isinstance(text, str)
        ],
        report_line,
    )
    # `--option dataset=2024` is text that looks like a number.
    converter = validate_call(config=ConfigDict(coerce_numbers_to_str=True))(entry.converter)
    try:
        with collect_unreadable_rows() as left_out:
            files = expand_folders(map(Path, paths), entry.files)
            converted = converter(files, **dict(zip(options, values, strict=True)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        expected = first["msg"].replace("Input should be", "expected")
        raise UsageError(
            f"format {format!r}, option {name!r} ({entry.options[name]}): {expected}"
        ) from None
    return replace(converted, notes=[*converted.notes, *left_out.list_notes()])
