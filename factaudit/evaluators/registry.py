"""Which evaluators are there? Ours, those of other packages (entry points
``factaudit.evaluators``), and the user's.

Of his own the user names a class or function, ``MODULE:NAME``, or gives it as it is.
"""

from __future__ import annotations

import inspect
import re
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.base import Evaluator, EvaluatorEntry, FromFunction
from factaudit.llm.settings import LLMSettings, make_from_options
from factaudit.settings.spec_string import SPEC_FORM, import_object_of_spec_string
from factaudit.settings.yaml_paths import YamlPathKind, find_yaml_path_options

#: Distributions add evaluators of their own under this entry point group: ``name =
#: "package.module:Class"``.
ENTRY_POINTS = "factaudit.evaluators"
#: Ours, in the order of the listing.
_MODULES = (
    *(
        "lexical_baselines",
        "stored_verdicts",
        "llm_judges",
        "minicheck",
        "alignscore",
        "nli",
        "nonparametric",
    ),
    "chunked_evaluator",
)


@cache
def list_builtin_evaluators() -> tuple[EvaluatorEntry, ...]:
    """The evaluators that come with factaudit."""
    modules = [import_module(f"factaudit.evaluators.{name}") for name in (*_MODULES, "ensemble")]
    own = [
        item for module in modules for item in vars(module).values() if _is_defined_in(item, module)
    ]
    return tuple(
        entry for item in own if isinstance(entry := vars(item).get("entry"), EvaluatorEntry)
    )


def _is_defined_in(item: Any, module: Any) -> bool:
    return isinstance(item, type) and item.__module__ == module.__name__


def list_evaluators() -> dict[str, EvaluatorEntry]:
    """All evaluators by name, in the order of the listing; a third-party one cannot replace one of
    ours."""
    found = {entry.name: entry for entry in list_builtin_evaluators()}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name):
        package = point.dist.name if point.dist else point.value
        found.setdefault(
            point.name,
            EvaluatorEntry(point.name, point.value, f"from the package {package}", needs=package),
        )
    return found


def make_evaluator(evaluator_name: str, options: Mapping[str, Any] | None = None) -> Evaluator:
    """Make an evaluator from its registered name and options, checked against the evaluator's own
    fields.

    Raises `UsageError` for an unknown name or option (with the nearest known one) or a value of the
    wrong type.
    """
    cls = _find_evaluator_class(evaluator_name)
    if not isinstance(cls, type):  # an object of the user's, or a function
        if options:
            raise UsageError(
                f"evaluator {evaluator_name!r} is no class, so it has no option"
                f" {next(iter(options))!r}"
            )
        return wrap_as_evaluator(cls, evaluator_name)
    for name, needed in (("judge", "method judge(claims)"), ("signature", "signature")):
        if not hasattr(cls, name) and name not in getattr(cls, "__dataclass_fields__", {}):
            raise UsageError(
                f"evaluator {evaluator_name}: the class {cls.__name__} has no {needed}"
            )
    return make_from_options(cls, options or {}, f"evaluator {evaluator_name!r}")


def find_evaluator_path_options(evaluator_name: str) -> dict[str, YamlPathKind]:
    """The options of an evaluator that hold paths, and how. Raises `UsageError` for an unknown
    name."""
    found = _find_evaluator_class(evaluator_name)
    return find_yaml_path_options(found) if isinstance(found, type) else {}


def _find_evaluator_class(evaluator_name: str) -> Any:
    """What a name stands for: a registered evaluator's class, or what ``MODULE:ATTRIBUTE`` is."""
    known = list_evaluators()
    module, own, attribute = evaluator_name.partition(":")
    if module in known and own:
        raise UsageError(f"evaluator {evaluator_name!r}: expected {SPEC_FORM}, found {attribute!r}")
    if own:
        return import_object_of_spec_string("evaluator", module, attribute)
    if evaluator_name not in known:
        files = (
            f"; or MODULE:CLASS, if {evaluator_name}.py is yours"
            if re.fullmatch(r"\w+", evaluator_name)
            else ""
        )
        order = (
            ": evaluator=... takes the rest of the text, so it comes last"
            if "," in evaluator_name
            else ""
        )
        raise UsageError(
            "unknown evaluator"
            f" {evaluator_name!r}{suggest_known_name(evaluator_name, list(known))}{order}{files}"
        )
    module, _, attribute = known[evaluator_name].target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise UsageError(
            f"evaluator {evaluator_name!r} needs {known[evaluator_name].needs}: {error}"
        ) from error


def is_user_evaluator(evaluator: Evaluator) -> bool:
    """Whether an evaluator runs code that is not ours."""
    return (
        isinstance(evaluator, FromFunction)
        or type(evaluator).__module__.partition(".")[0] != "factaudit"
    )


def wrap_as_evaluator(candidate: Any, name: str | None = None) -> Evaluator:
    """Make an evaluator of a function of (claim, doc), or of a language model. Raises `UsageError`.

    name: what the user wrote for it, where it was named.
    """
    called = "" if name is None else f"evaluator {name}: "
    if isinstance(candidate, Evaluator):
        return candidate
    if isinstance(candidate, LLMSettings):
        from factaudit.evaluators.llm_judges import LLMJudge

        return LLMJudge(**{one.name: getattr(candidate, one.name) for one in fields(candidate)})
    if callable(candidate) and not isinstance(candidate, type):
        _check_function_arguments(candidate, called)
        return FromFunction(candidate)
    raise UsageError(
        f"{called}expected an evaluator (with a signature and a method judge) or a function of"
        f" (claim, doc), found {reprlib.repr(candidate)}"
    )


def _check_function_arguments(function: Callable[..., Any], called: str) -> None:
    try:
        parameters = inspect.signature(function)
    except (TypeError, ValueError):  # some of C have none
        return
    try:
        parameters.bind("claim", "doc")
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        raise UsageError(
            f"{called}expected a function of (claim, doc), found {name}{parameters}"
        ) from None
