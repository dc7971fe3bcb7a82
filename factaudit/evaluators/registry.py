"""Which evaluators are there? Ours have a name; a user's own is a class or a function, given as it
is or named as ``MODULE:NAME``."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.base import Evaluator, EvaluatorEntry, FromFunction
from factaudit.llm.settings import LLMSettings, make_from_options
from factaudit.settings.spec_string import SPEC_FORM, import_object_of_spec_string
from factaudit.settings.yaml_paths import YamlPathKind, find_yaml_path_options

#: Our evaluators, in the order of the listing: the module and the class of each.
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
    """Our evaluators by name, in the order of the listing."""
    return {name: _find_evaluator_class(name).entry for name in _BUILTIN}


def make_evaluator(evaluator_name: str, options: Mapping[str, Any] | None = None) -> Evaluator:
    """Make an evaluator from its name and options, checked against the evaluator's own fields.

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
    """What a name stands for: the class of one of ours, or what ``MODULE:ATTRIBUTE`` is."""
    module, colon, attribute = evaluator_name.partition(":")
    if module not in _BUILTIN and colon:
        return import_object_of_spec_string("evaluator", module, attribute)
    if module not in _BUILTIN:
        near = suggest_known_name(evaluator_name, list(_BUILTIN))
        raise UsageError(
            f"unknown evaluator {evaluator_name!r}{near}; one of yours is MODULE:NAME, and"
            " evaluator=... comes last, as it takes the rest of the text"
        )
    if colon:
        raise UsageError(f"evaluator {evaluator_name!r}: expected {SPEC_FORM}, found {attribute!r}")
    file, _, name = _BUILTIN[module].partition(":")
    return getattr(import_module(f"factaudit.evaluators.{file}"), name)


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
