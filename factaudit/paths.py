"""Which options hold paths, by the types that they are declared with, and where a YAML's paths lead."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

from factaudit.errors import InputError, Problem
from factaudit.yamlfile import Place, YamlFile

#: An absolute path needs nothing done, and servers have models by such names.
_PATH_STARTS = ("./", "../", "~/", "${data}")


class Kind(Enum):
    """What an option's declared type says of the paths in its values."""

    PATH = "a path"
    NAME_OR_PATH = "a name, or a path: what begins with ./, ../, ~/ or ${data}"
    FORMAT_AND_PATH = "FORMAT:PATH"
    EVALUATORS = "evaluators, whose own options say what is a path"


#: The type of an option that takes a name or a path (a model on the hub or in a folder). One that takes a path alone
#: is declared as `Path`; any other text is left as it is.
NameOrPath = Annotated[str, Kind.NAME_OR_PATH]


def option_kinds(declared: Callable[..., Any]) -> dict[str, Kind]:
    """The options of a dataclass or function whose values hold paths, and how; none where its types cannot be read."""
    try:
        hints = get_type_hints(declared, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}
    return {name: kind for name, hint in hints.items() if (kind := _kind(hint)) is not None}


def _kind(hint: Any) -> Kind | None:
    if hint is Path:
        return Kind.PATH
    marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Kind)]
    inner = (_kind(each) for each in get_args(hint))
    return marks[0] if marks else next((kind for kind in inner if kind is not None), None)


class Paths:
    """The paths that a YAML file names: relative to its folder, with ``${data}`` for its ``data``; all that is wrong
    with them is collected, and raised together by `check`."""

    def __init__(self, file: YamlFile, data: str | None) -> None:
        self.file = file
        self.base = file.path.resolve().parent
        self.data = None if data is None else str((self.base / Path(data).expanduser()).resolve())
        self.problems: list[Problem] = []

    def absolute(self, text: str, place: Place) -> str:
        """The absolute path; one that does not exist is a problem."""
        if "${data}" in text and self.data is None:
            self.problems.append(self.file.problem("${data} is used, but 'data' is not set (--set data=FOLDER)", place))
            return text
        full = (self.base / Path(text.replace("${data}", self.data or "")).expanduser()).resolve()
        if not full.exists():
            message = f"no such file: {full} (paths are relative to {self.base})"
            self.problems.append(self.file.problem(message, place))
        return str(full)

    def option(self, kind: Kind | None, value: Any, place: Place) -> Any:
        """An option's value, or list of values, of a declared kind: the paths in it absolute, missing ones problems."""
        if isinstance(value, list):
            return [self.option(kind, one, (*place, at)) for at, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        if kind is Kind.FORMAT_AND_PATH and ":" in value:
            word, _, rest = value.partition(":")
            return f"{word}:{self.absolute(rest, place)}"
        if kind is Kind.PATH or (kind is Kind.NAME_OR_PATH and value.startswith(_PATH_STARTS)):
            return self.absolute(value, place)
        return value

    def check(self) -> None:
        """Raise the `InputError` of all problems, where there are some."""
        if self.problems:
            raise InputError(str(self.file.path), self.problems)
