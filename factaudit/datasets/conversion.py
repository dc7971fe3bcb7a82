"""Sources of a known format as our tables: options are checked, published data is fetched, the converter is called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.datasets.formats import FORMATS
from factaudit.errors import UsageError, suggest_known_name
from factaudit.files import check_no_pipe
from factaudit.publications.fetching import fetch_missing_published_files, resolve_published_data_paths
from factaudit.publications.register import list_published_format_references
from factaudit.settings.python_errors import raise_python_errors
from factaudit.tables.unreadable_rows import collect_unreadable_rows

if TYPE_CHECKING:
    from factaudit.datasets.source_files import Conversion


def check_conversion_options(format: str, options: Iterable[str]) -> None:
    """Raise `UsageError`, with a hint, for an unknown format or an option that it does not have."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}{suggest_known_name(format, list(FORMATS))}")
    known = FORMATS[format].options
    for key in options:
        if key not in known:
            raise UsageError(
                f"format {format!r} has no option {key!r}" + (suggest_known_name(key, list(known)) if known else "")
            )


@raise_python_errors
def convert(
    format: str,
    sources: str | Path | Sequence[str | Path] | None = None,
    *,
    report_line: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> Conversion:
    """Convert sources (files or folders) of a registered format; see `FORMATS` for their options.

    A source may be published data (``published:tofueval``), which is fetched where it is missing; without any source
    it is all that the register has in this format. ``report_line`` is told what is fetched. Rows that cannot be read
    are left out, noted with their reasons, and listed in `Conversion.left_out`. Raises `UsageError` for an unknown
    format, option or value, and `InputError` naming file, row and column where a file is of another form, or more than
    a fifth of it cannot be read.
    """
    # pydantic is not needed to list the formats.
    from pydantic import ConfigDict, ValidationError, validate_call

    check_conversion_options(format, options)
    known = FORMATS[format].options
    sources = list_published_format_references(format) if sources is None else sources  # an empty glob fetches nothing
    if not sources:
        raise UsageError(f"format {format!r}: expected at least one file or folder")
    sources = [sources] if isinstance(sources, str | Path) else sources  # not the files "/", "d", "a", ...
    paths = [Path(resolve_published_data_paths(source)) for source in sources]
    options = {name: resolve_published_data_paths(value) for name, value in options.items()}
    values = [one for value in options.values() for one in (value if isinstance(value, list) else [value])]
    for path in (*paths, *(value for value in values if isinstance(value, str))):
        check_no_pipe(str(path))
    fetch_missing_published_files([*paths, *(value for value in values if isinstance(value, str))], report_line)
    try:
        # `--option dataset=2024` is text that looks like a number.
        function = validate_call(config=ConfigDict(coerce_numbers_to_str=True))(FORMATS[format].converter)
        with collect_unreadable_rows() as left_out:
            converted = function(paths, **options)
        found = left_out.list_problem_rows()
        notes = left_out.list_notes()
        unread = [name for names in left_out.columns.values() for name in names]
        return replace(converted, notes=[*converted.notes, *notes], left_out=found, unread_judgements=unread)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = first["loc"][0]
        if first["type"].startswith("missing"):
            raise UsageError(f"format {format!r} needs the option {name!r}: {known[str(name)]}") from None
        expected = first["msg"].replace("Input should be", "expected")
        raise UsageError(f"format {format!r}, option {name!r}: {expected}, found {first['input']!r}") from None
