"""Reads YAML and remembers its lines, so that each error names the line to look at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError

from factaudit.errors import (
    InputError,
    Problem,
    UsageError,
    format_error_first_line,
    suggest_known_name,
)
from factaudit.files import check_no_pipe, resolve_path

YamlPlace = tuple[str | int, ...]
#: More than any experiment needs. With more aliases, a few lines could stand for millions of
#: values.
_MAX_ALIASES = 20
ModelType = TypeVar("ModelType", bound=BaseModel)


class _Loader(yaml.SafeLoader):
    """`yaml.SafeLoader` that refuses text whose aliases could stand for millions of values."""

    n_aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self.n_aliases += 1
            if self.n_aliases > _MAX_ALIASES:
                raise yaml.YAMLError(f"expected at most {_MAX_ALIASES} aliases")
        return super().compose_node(parent, index)


class YamlFile:
    """A parsed YAML file: ``data`` (plain values, as by `yaml.safe_load`) and the line of each key
    and item."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lines: dict[YamlPlace, int] = {}
        self._overridden: list[YamlPlace] = []
        try:
            check_no_pipe(self.path)
            loader = _Loader(self.path.read_text(encoding="utf-8"))
            node = loader.get_single_node()
            if node is None:
                raise self.error("the file is empty")
            self._record_lines(node, (), set())
            self.data: Any = loader.construct_document(node)
        except FileNotFoundError:
            raise self.error("no such file") from None
        except OSError as error:
            raise self.error(f"cannot be read ({error.strerror})") from None
        except UnicodeDecodeError as error:
            raise self.error(f"not UTF-8 text ({error.reason})") from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else None
            raise InputError(
                str(path), [Problem(f"not YAML: {error.problem}", line, unit="line")]
            ) from None
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            # A control character, a date like 2024-13-01, or brackets that never close.
            raise self.error(f"not YAML: {format_error_first_line(error)}") from None

    def _record_lines(self, node: yaml.Node, place: YamlPlace, walked: set[int]) -> None:
        self.lines.setdefault(place, node.start_mark.line + 1)
        # An alias may contain itself, or stand for more values than there are lines.
        if id(node) in walked:
            return
        walked.add(id(node))
        if isinstance(node, yaml.MappingNode):
            seen: set[str] = set()
            for key, value in node.value:
                name = str(key.value)
                line = key.start_mark.line + 1
                if name in seen:
                    raise InputError(
                        str(self.path),
                        [Problem(f"the key {name!r} is there twice", line, unit="line")],
                    )
                seen.add(name)
                self.lines[(*place, name)] = line
                self._record_lines(value, (*place, name), walked)
        elif isinstance(node, yaml.SequenceNode):
            for number, item in enumerate(node.value):
                self._record_lines(item, (*place, number), walked)

    def override(self, settings: Mapping[str, Any]) -> None:
        """Set keys from outside: ``{"seed": 1, "factscore.k": 3, "evaluators.0.random.seed": 2}``.

        Missing mappings on the way are made. Problems with such a value name ``--set`` instead of a
        line. The file's own paths are relative to its folder; ``data``, ``claims`` and ``verdicts``
        from outside are relative to the working directory. Raises `UsageError` if a key has no
        place.
        """
        for key, value in settings.items():
            self._override_key(
                key,
                _resolve_yaml_value_from_folder(value)
                if key in ("data", "claims", "verdicts")
                else value,
            )

    def _override_key(self, key: str, value: Any) -> None:
        place = tuple(int(part) if part.isdecimal() else part for part in key.split("."))
        inner = self.data
        try:
            for part in place[:-1]:
                if isinstance(inner, dict) and not isinstance(inner.get(part), dict | list):
                    inner[part] = {}
                inner = inner[part]
            inner[place[-1]] = value
        except (IndexError, TypeError):
            raise UsageError(f"--set {key}: the file has no such place") from None
        self._overridden.append(place)

    @staticmethod
    def wrap_in_lists(block: Any, *keys: str) -> None:
        """Put single values under ``keys`` of ``block`` into lists: a path, or ``{NAME:
        {options}}``."""
        for key in keys if isinstance(block, dict) else ():
            if isinstance(block.get(key), str | dict):
                block[key] = [block[key]]

    def problem(self, message: str, place: YamlPlace = ()) -> Problem:
        """A problem at the line of ``place``, or of the nearest key around it that the file has."""
        for given in self._overridden:
            if place[: len(given)] == given:
                name = f"{'.'.join(map(str, given))}: "
                return Problem(f"--set {name}{message.removeprefix(name)}")
        while place and place not in self.lines:
            place = place[:-1]
        return Problem(message, self.lines.get(place), unit="line")

    def error(self, message: str, place: YamlPlace = ()) -> InputError:
        """An `InputError` with one problem."""
        return InputError(str(self.path), [self.problem(message, place)])


def _resolve_yaml_value_from_folder(value: Any) -> Any:
    if isinstance(value, list):
        return [_resolve_yaml_value_from_folder(one) for one in value]
    if not isinstance(value, str) or "${data}" in value:
        return value
    return str(resolve_path(Path(value).expanduser()))


def parse_plain_yaml(text: str) -> Any:
    """`yaml.safe_load` that refuses text with many aliases (`yaml.YAMLError`)."""
    return yaml.load(text, _Loader)


def read_shipped_yaml(package: str, name: str) -> Any:
    """The content of a YAML file that comes with factaudit."""
    text = files(package).joinpath(name).read_text(encoding="utf-8")
    # The loader in C, if there is one, is five times as fast.
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def parse_yaml_set_options(pairs: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """``["seed=1", "audits=[rates]"]`` as keys and YAML values. Raises `UsageError` that names the
    option."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{option} {pair}: expected KEY=VALUE")
        try:
            found[key] = parse_plain_yaml(value) if value else ""
        except (yaml.YAMLError, ValueError, RecursionError):
            raise UsageError(f"{option} {pair}: the value is not YAML") from None
    return found


def parse_option_of_varied_settings(pairs: Iterable[str]) -> dict[str, list[Any]]:
    """``["k=1,3", "verifier=[unigram, rouge2]"]`` as keys and lists of YAML values. Raises
    `UsageError`.

    >>> parse_option_of_varied_settings(["retriever.k=1,3", "parser=original"])
    {'k': [1, 3], 'parser': ['original']}
    """
    found: dict[str, list[Any]] = {}
    for pair in pairs:
        listed = re.sub(r"^([^=]+)=(?!\[)(.+)$", r"\1=[\2]", pair, flags=re.DOTALL)
        for key, values in parse_yaml_set_options([listed], "--vary").items():
            found.setdefault(key.removeprefix("retriever."), []).extend(
                values if values else [values]
            )
    return found


def check_yaml_settings(
    model: type[ModelType], data: Any, file: YamlFile | None = None
) -> ModelType:
    """Validate ``data`` as ``model``. All problems are raised together, with the lines of the file
    and hints for misspelt keys.

    Raises `InputError` (with a file) or `UsageError`.
    """
    if not isinstance(data, dict):
        message = f"expected keys and values, found {type(data).__name__}"
        raise file.error(message) if file else UsageError(message)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = list(dict.fromkeys(_list_yaml_validation_problems(model, data, error)))
        if file is None:
            raise UsageError("; ".join(message for message, _ in problems)) from None
        raise InputError(
            str(file.path), [file.problem(message, place) for message, place in problems]
        ) from None


def _list_yaml_validation_problems(
    model: type[BaseModel], data: Any, error: ValidationError
) -> Iterator[tuple[str, YamlPlace]]:
    found = error.errors()
    places = [_locate_validation_error_in_yaml(item, data) for item in found]
    for item, place in zip(found, places, strict=True):
        # If a value may be a text or an object and is an object, only the errors of the object
        # count.
        rivals = [other for other in places if other[: len(place)] == place]
        if item["type"] == "string_type" and isinstance(item["input"], dict) and len(rivals) > 1:
            continue
        yield _format_yaml_problem(model, item, place), place


def _locate_validation_error_in_yaml(found: Any, data: Any) -> YamlPlace:
    """The keys of the file in the location of an error. Pydantic also names the branch of a union
    that it tried."""
    place: list[str | int] = []
    for part in found["loc"]:
        if (isinstance(data, dict) and part in data) or (
            isinstance(data, list) and isinstance(part, int)
        ):
            place.append(part)
            data = data[part]
        elif found["type"] == "missing" and part == found["loc"][-1]:
            place.append(part)
    return tuple(place)


def _format_yaml_problem(model: type[BaseModel], found: Any, place: YamlPlace) -> str:
    name = ".".join(map(str, place))
    if found["type"] == "extra_forbidden":
        for part in found["loc"][:-1]:
            field = model.model_fields.get(part)
            if field is None:  # the name of a branch of a union
                model = next(
                    (one for one in _find_nested_yaml_models(model) if one.__name__ == part), model
                )
            elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                model = field.annotation
        known = [field.alias or key for key, field in model.model_fields.items()]
        return f"unknown key {name!r}{suggest_known_name(str(place[-1]), known)}"
    if found["type"] == "missing":
        return f"the key {name!r} is missing"
    detail = found["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
    shown = repr(found.get("input"))
    where = f"{name}: " if name else ""
    return f"{where}{detail}" + (f", found {shown[:60]}" if found["type"] != "value_error" else "")


def _find_nested_yaml_models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models inside the fields of a model, or inside an annotation (``list[str | Source]``)."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for field in annotation.model_fields.values():
            yield from _find_nested_yaml_models(field.annotation)
        yield annotation
    else:
        for inner in get_args(annotation):
            yield from _find_nested_yaml_models(inner)
