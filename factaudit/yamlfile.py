"""YAML that remembers its lines, so that every complaint about a file names the line to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from factaudit.errors import InputError, Problem, UsageError

Place = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


class YamlFile:
    """A parsed YAML file: ``data`` (plain values, `yaml.safe_load`'s) and the line of each key and item."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(str(path), [Problem("no such file")]) from None
        except UnicodeDecodeError as error:
            raise InputError(str(path), [Problem(f"not UTF-8 text ({error.reason})")]) from None
        self.lines: dict[Place, int] = {}
        try:
            loader = yaml.SafeLoader(text)
            node = loader.get_single_node()
            if node is None:
                raise InputError(str(path), [Problem("the file is empty")])
            self._walk(node, ())
            self.data: Any = yaml.safe_load(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else None
            raise InputError(str(path), [Problem(f"not YAML: {error.problem}", line, unit="line")]) from None

    def _walk(self, node: yaml.Node, place: Place) -> None:
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                if name in seen:
                    line = key.start_mark.line + 1
                    raise InputError(str(self.path), [Problem(f"the key {name!r} is there twice", line, unit="line")])
                seen.add(name)
                self.lines[(*place, name)] = key.start_mark.line + 1
                self._walk(value, (*place, name))
        elif isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._walk(item, (*place, number))

    def override(self, settings: Mapping[str, Any]) -> None:
        """Set keys from outside, ``{"seed": 1, "factscore.k": 3}``; what no mapping has a place for is left to `check`.

        The file's own paths are relative to its folder; ``data``, given from outside, to where the user stands.
        """
        for name, value in settings.items():
            inner, keys = self.data, name.split(".")
            for key in keys[:-1]:
                if not isinstance(inner, dict):
                    break
                if not isinstance(inner.get(key), dict):
                    inner[key] = {}
                inner = inner[key]
            if isinstance(inner, dict):
                inner[keys[-1]] = str(Path(value).resolve()) if name == "data" else value

    def problem(self, message: str, place: Place = ()) -> Problem:
        """A problem at the line of ``place``, or of the nearest thing around it that the file has."""
        while place and place not in self.lines:
            place = place[:-1]
        return Problem(message, self.lines.get(place), unit="line")

    def error(self, message: str, place: Place = ()) -> InputError:
        """An `InputError` of one problem."""
        return InputError(str(self.path), [self.problem(message, place)])


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

    def check(self) -> None:
        """Raise the `InputError` of all problems, where there are some."""
        if self.problems:
            raise InputError(str(self.file.path), self.problems)


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """``["seed=1", "audits=[rates]"]`` as keys and YAML values. Raises `UsageError`."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"--set {pair}: expected KEY=VALUE")
        try:
            found[key] = yaml.safe_load(value) if value else ""
        except yaml.YAMLError:
            raise UsageError(f"--set {pair}: the value is not YAML") from None
    return found


def check(model: type[Model], data: Any, file: YamlFile | None = None) -> Model:
    """Validate ``data`` as ``model``: all problems together, with the file's lines, and hints for misspelt keys.

    Raises `InputError` (with a file) or `UsageError`.
    """
    if not isinstance(data, dict):
        message = f"expected keys and values, found {type(data).__name__}"
        raise file.error(message) if file else UsageError(message)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = []
        for found in error.errors():
            place = tuple(part for part in found["loc"] if not _is_branch(part))
            problems.append((_message(model, found, place), place))
        problems = list(dict.fromkeys(problems))
        if file is None:
            raise UsageError("; ".join(message for message, _ in problems)) from None
        raise InputError(str(file.path), [file.problem(message, place) for message, place in problems]) from None


def _is_branch(part: str | int) -> bool:
    # pydantic names the branch of a union that it tried ("str", "list[...]", "Source"): no key of the file.
    return isinstance(part, str) and (part in ("str", "dict", "list") or "[" in part or part[:1].isupper())


def _message(model: type[BaseModel], found: Any, place: Place) -> str:
    name = ".".join(map(str, place))
    if found["type"] == "extra_forbidden":
        known = [field.alias or key for key, field in model.model_fields.items()]
        near = get_close_matches(str(place[-1]), known, n=1)
        return f"unknown key {name!r}" + (f" (did you mean {near[0]!r}?)" if near else f" (known: {', '.join(known)})")
    if found["type"] == "missing":
        return f"the key {name!r} is missing"
    shown = repr(found.get("input"))
    detail = found["msg"].removeprefix("Value error, ")
    return f"{name}: {detail}" + (f", found {shown[:60]}" if found["type"] != "value_error" else "")
