"""Which evaluators are there? Ours, those of other packages (entry points
``factaudit.evaluators``), and the user's.

Of his own the user names a class or function, ``MODULE:NAME``, or gives it as it is.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import fields
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
_BUILTIN = {
    "rouge2": "lexical_baselines:Rouge2Evaluator",
    "unigram": "lexical_baselines:UnigramEvaluator",
    "tfidf": "lexical_baselines:TfidfEvaluator",
    "always-yes": "lexical_baselines:AlwaysYesEvaluator",
    "always-no": "lexical_baselines:AlwaysNoEvaluator",
    "random": "lexical_baselines:RandomEvaluator",
    "llm": "llm_judges:LLMJudge",
    "minicheck": "minicheck:MiniCheckEvaluator",
    "alignscore": "alignscore:AlignScoreEvaluator",
    "nli": "nli:NLIEvaluator",
    "npm": "nonparametric:NonparametricEvaluator",
    "chunked": "chunked_evaluator:ChunkedEvaluator",
    "ensemble": "ensemble:EnsembleEvaluator",
}


def list_evaluators() -> dict[str, EvaluatorEntry]:
    """All evaluators by name, in the order of the listing; a third-party one cannot replace one of
    ours."""
    found = {
        name: _import_target(f"factaudit.evaluators.{_BUILTIN[name]}").entry for name in _BUILTIN
    }
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        package = point.dist.name if point.dist else point.value
        entry = EvaluatorEntry(point.name, point.value, f"from the package {package}", package)
        found.setdefault(point.name, entry)
    return found


def _import_target(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


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
    if evaluator_name in _BUILTIN:
        return _import_target(f"factaudit.evaluators.{_BUILTIN[evaluator_name]}")
    known = list_evaluators()
    module, own, attribute = evaluator_name.partition(":")
    if module in known and own:
        raise UsageError(f"evaluator {evaluator_name!r}: expected {SPEC_FORM}, found {attribute!r}")
    if own:
        return import_object_of_spec_string("evaluator", module, attribute)
    if evaluator_name not in known:
        near = suggest_known_name(evaluator_name, list(known))
        raise UsageError(
            f"unknown evaluator {evaluator_name!r}{near}; one of yours is MODULE:NAME, and"
            " evaluator=... comes last, as it takes the rest of the text"
        )
    try:
        return _import_target(known[evaluator_name].target)
    except ImportError as error:
        needed = known[evaluator_name].needs
        raise UsageError(f"evaluator {evaluator_name!r} needs {needed}: {error}") from error


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
        return FromFunction(candidate)
    raise UsageError(
        f"{called}expected an evaluator (with a signature and a method judge) or a function of"
        f" (claim, doc), found {reprlib.repr(candidate)}"
    )
