"""Finds the options that hold paths, by their declared types, and resolves the paths in a YAML
file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from glob import glob
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from factaudit.errors import InputError, Problem, UsageError
from factaudit.files import resolve_path
from factaudit.publications.fetching import locate_published_reference
from factaudit.publications.register import REFERENCE_PREFIX, is_reference
from factaudit.settings.yaml_file import YamlFile, YamlPlace

#: Absolute paths stay as they are; names of models on servers may look like them.
_PATH_PREFIXES = ("./", "../", "~/", "${data}", REFERENCE_PREFIX)
#: The characters that make a text a pattern.
_WILDCARDS = frozenset("*?[")


class YamlPathKind(Enum):
    """What an option's declared type says about the paths in its values."""

    PATH = "a path"
    NAME_OR_PATH = "a name, or a path: what begins with ./, ../, ~/ or ${data}"
    FORMAT_AND_PATH = "FORMAT:PATH"
    EVALUATORS = "evaluators, whose own options say what is a path"


#: The type of an option that takes a name or a path (a model on the hub or in a folder). An option
#: that only takes a path is declared as `Path`. Any other text stays as it is.
NameOrPath = Annotated[str, YamlPathKind.NAME_OR_PATH]


def find_yaml_path_options(option_class: Callable[..., Any]) -> dict[str, YamlPathKind]:
    """The options of a dataclass or function whose values hold paths. There are none if its types
    cannot be read."""
    try:
        hints = get_type_hints(option_class, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}
    return {
        name: kind
        for name, hint in hints.items()
        if (kind := _find_yaml_path_kind(hint)) is not None
    }


def _find_yaml_path_kind(type_hint: Any) -> YamlPathKind | None:
    if type_hint is Path:
        return YamlPathKind.PATH
    marks = [
        mark for mark in getattr(type_hint, "__metadata__", ()) if isinstance(mark, YamlPathKind)
    ]
    inner = (_find_yaml_path_kind(each) for each in get_args(type_hint))
    return marks[0] if marks else next((kind for kind in inner if kind is not None), None)


class YamlPaths:
    """The paths in a YAML file. They are relative to its folder, with ``${data}`` for its ``data``.
    All problems are collected and raised together by `check_problems`."""

    def __init__(self, file: YamlFile, data: str | None) -> None:
        self.file = file
        self.base = resolve_path(file.path).parent
        self.data = None if data is None else str(resolve_path(self.base / Path(data).expanduser()))
        self.problems: list[Problem] = []

    def resolve_path(self, text: str, place: YamlPlace) -> str:
        """The absolute path. It is a problem if it does not exist, unless it is published data that
        can be fetched."""
        if is_reference(text):
            try:
                return str(locate_published_reference(text, self.data))
            except UsageError as error:
                self.problems.append(self.file.problem(str(error), place))
                return text
        if "${data}" in text and self.data is None:
            self.problems.append(
                self.file.problem(
                    "${data} is used, but 'data' is not set (--set data=FOLDER)", place
                )
            )
            return text
        full = self._make_absolute(text)
        if not full.exists():
            message = f"no such file: {full} (paths are relative to {self.base})"
            self.problems.append(self.file.problem(message, place))
        return str(full)

    def resolve_file(self, text: str, place: YamlPlace) -> str:
        """Like `resolve_path`, but a folder is a problem, too."""
        full = self.resolve_path(text, place)
        if Path(full).is_dir():
            message = f"{full} is a folder, expected a file (or a format and source)"
            self.problems.append(self.file.problem(message, place))
        return full

    def resolve_files(self, texts: Sequence[str], *place: str | int) -> list[str]:
        """The absolute paths of a key's files, with patterns expanded."""
        return [
            self.resolve_file(text, where) for text, where in self.expand_patterns(texts, *place)
        ]

    def expand_patterns(
        self, texts: Sequence[str], *place: str | int
    ) -> Iterator[tuple[str, YamlPlace]]:
        """The paths of a key with their places. A pattern (``verdicts/*.parquet``) stands for the
        files that match it, by name. Patterns without a match, and paths that exist, stay as they
        are."""
        for at, text in enumerate(texts):
            matching: list[str] = []
            if (
                _WILDCARDS & set(text)
                and not is_reference(text)
                and ("${data}" not in text or self.data is not None)
            ):
                path = self._make_absolute(text)
                matching = [] if path.exists() else sorted(glob(str(path), recursive=True))
            for name in matching or [text]:
                yield name, (*place, at)

    def _make_absolute(self, text: str) -> Path:
        return resolve_path(self.base / Path(text.replace("${data}", self.data or "")).expanduser())

    def resolve_option(self, path_kind: YamlPathKind | None, value: Any, place: YamlPlace) -> Any:
        """An option's value, or list of values, of a declared kind. Paths in it become absolute;
        missing ones are problems."""
        if isinstance(value, list):
            return [
                self.resolve_option(path_kind, one, (*place, at)) for at, one in enumerate(value)
            ]
        if not isinstance(value, str):
            return value
        if path_kind is YamlPathKind.FORMAT_AND_PATH and ":" in value:
            word, _, rest = value.partition(":")
            return f"{word}:{self.resolve_path(rest, place)}"
        if path_kind is YamlPathKind.PATH or (
            path_kind is YamlPathKind.NAME_OR_PATH and value.startswith(_PATH_PREFIXES)
        ):
            return self.resolve_path(value, place)
        return value

    def collect_problem(
        self, checker: Callable[[Any], object], spec: Any, *place: str | int
    ) -> bool:
        """Call ``checker`` with a value. If it refuses the value, note a problem at its line.
        Returns whether the value was accepted."""
        try:
            checker(spec)
        except UsageError as error:
            self.problems.append(self.file.problem(str(error), place))
            return False
        return True

    def check_problems(self) -> None:
        """Raise an `InputError` with all problems, if there are any."""
        if self.problems:
            raise InputError(str(self.file.path), self.problems)
