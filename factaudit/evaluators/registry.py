"""Which evaluators are there? Ours, and those of other packages (entry points ``factaudit.evaluators``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.base import Evaluator
from factaudit.evaluators.user_evaluators import check_evaluator_class, wrap_as_user_evaluator
from factaudit.llm.settings import nest_dotted_llm_request_params
from factaudit.spec_string import SPEC_FORM, import_object_of_spec_string
from factaudit.yaml_paths import YamlPathKind, find_yaml_path_options

#: Distributions add evaluators of their own under this entry point group: ``name = "package.module:Class"``.
ENTRY_POINTS = "factaudit.evaluators"


@dataclass(frozen=True)
class EvaluatorEntry:
    """One entry of ``factaudit list evaluators``. The module is imported only when the evaluator is used.

    ``checked``: what our implementation was compared with, and what could not be.
    """

    name: str
    target: str
    summary: str
    needs: str = "nothing"
    source: str = ""
    checked: str = ""
    example: str = ""


_WEIGHTS_NOT_RUN = "The published weights could not be run here"

_BUILTIN_EVALUATORS = (
    EvaluatorEntry(
        "rouge2",
        "factaudit.evaluators.lexical_baselines:Rouge2Evaluator",
        "ROUGE-2 precision: the share of the claim's bigrams that the document has",
        source="Lin 2004, as VC §4.1 uses it",
        checked="the rouge-score package",
    ),
    EvaluatorEntry(
        "unigram",
        "factaudit.evaluators.lexical_baselines:UnigramEvaluator",
        "the share of the claim's content words that the document has",
        checked="figures worked out by hand",
    ),
    EvaluatorEntry(
        "tfidf",
        "factaudit.evaluators.lexical_baselines:TfidfEvaluator",
        "TF-IDF cosine between the claim and the nearest sentence of the document",
        checked="figures worked out by hand",
    ),
    EvaluatorEntry(
        "always-yes",
        "factaudit.evaluators.lexical_baselines:AlwaysYesEvaluator",
        "finds every claim attributable: a floor",
    ),
    EvaluatorEntry(
        "always-no", "factaudit.evaluators.lexical_baselines:AlwaysNoEvaluator", "finds no claim attributable: a floor"
    ),
    EvaluatorEntry(
        "random",
        "factaudit.evaluators.lexical_baselines:RandomEvaluator",
        "a coin per claim, seeded: a floor",
        example="random:seed=1",
    ),
    EvaluatorEntry(
        "stored",
        "factaudit.evaluators.stored_verdicts:StoredVerdictsEvaluator",
        "verdicts that a file already holds",
        needs="a verdicts file",
        example="stored:path=verdicts.parquet,evaluator=gpt-4o",
    ),
    EvaluatorEntry(
        "llm",
        "factaudit.evaluators.llm_judges:LLMJudge",
        "asks a language model whether the document supports the claim",
        needs="an OpenAI-compatible server, or the extra [local]",
        checked="a scripted server that fails in every way, llama.cpp with SmolLM2-135M. No hosted one was asked",
        example="llm:model=gpt-4o-mini",
    ),
    EvaluatorEntry(
        "no-context",
        "factaudit.evaluators.llm_judges:NoContextLLMJudge",
        "asks a language model whether the claim is true, without the document",
        needs="an OpenAI-compatible server, or the extra [local]",
        source="Min et al. 2023, FActScore §4.1, No-context LM",
        checked="as llm",
        example="no-context:model=smollm2,base_url=local",
    ),
    EvaluatorEntry(
        "bespoke-minicheck",
        "factaudit.evaluators.llm_judges:BespokeMiniCheckJudge",
        "Bespoke-MiniCheck-7B behind a server (Ollama, vLLM)",
        needs="a server that has the model",
        source="Tang, Laban and Durrett 2024, MiniCheck",
        checked=f"the authors' prompts and their way to read P(Yes), on a scripted server. {_WEIGHTS_NOT_RUN}",
        example="bespoke-minicheck:server=vllm,base_url=http://localhost:8000/v1",
    ),
    EvaluatorEntry(
        "minicheck",
        "factaudit.evaluators.minicheck:MiniCheckEvaluator",
        "a MiniCheck model: RoBERTa, DeBERTa or Flan-T5, over chunks of the document",
        needs="the [hf] extra",
        source="Tang, Laban and Durrett 2024, MiniCheck",
        checked=f"a plain loop over single examples, on tiny models of the three architectures. {_WEIGHTS_NOT_RUN}",
        example="minicheck:model=flan-t5-large",
    ),
    EvaluatorEntry(
        "alignscore",
        "factaudit.evaluators.alignscore:AlignScoreEvaluator",
        "AlignScore: P(aligned) for each sentence of the claim over chunks of the document, then the mean",
        needs="the [hf] extra",
        source="Zha et al. 2023, AlignScore",
        checked=f"a plain loop over single examples, on a tiny checkpoint of the authors' form. {_WEIGHTS_NOT_RUN}",
        example="alignscore:model=large",
    ),
    EvaluatorEntry(
        "nli",
        "factaudit.evaluators.nli:NLIEvaluator",
        "an NLI cross-encoder: the probability that the document entails the claim",
        needs="the [hf] extra",
        source="Laban et al. 2022, SummaC",
        checked=f"a plain loop over single examples, on tiny models of two architectures. {_WEIGHTS_NOT_RUN}",
        example="nli:model=cross-encoder/nli-deberta-v3-base",
    ),
    EvaluatorEntry(
        "chunked",
        "factaudit.evaluators.chunked_evaluator:ChunkedEvaluator",
        "any evaluator over chunks of the document: the maximum over chunks",
        needs="what the inner evaluator needs",
        source="Tang et al. 2024, §3; VC §4.2",
        example="chunked:size=500,evaluator=rouge2",
    ),
    EvaluatorEntry(
        "ensemble",
        "factaudit.evaluators.ensemble:EnsembleEvaluator",
        "several evaluators as one: the mean of their scores, or their vote",
        needs="what its members need",
        example="ensemble:how=vote,evaluators=rouge2+unigram+tfidf",
    ),
)


def list_builtin_evaluators() -> tuple[EvaluatorEntry, ...]:
    """The evaluators that come with factaudit."""
    return _BUILTIN_EVALUATORS


def list_evaluators() -> dict[str, EvaluatorEntry]:
    """All evaluators by name, in the order of the listing; a third-party one cannot replace one of ours."""
    found = {entry.name: entry for entry in _BUILTIN_EVALUATORS}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name):
        package = point.dist.name if point.dist else point.value
        found.setdefault(
            point.name, EvaluatorEntry(point.name, point.value, f"from the package {package}", needs=package)
        )
    return found


def make_evaluator(evaluator_name: str, options: Mapping[str, Any] | None = None) -> Evaluator:
    """Make an evaluator from its registered name and options, checked against the evaluator's own fields.

    Raises `UsageError` for an unknown name or option (with the nearest known one) or a value of the wrong type.
    """
    cls = _find_evaluator_class(evaluator_name)
    if not isinstance(cls, type):  # an object of the user's, or a function
        if options:
            raise UsageError(f"evaluator {evaluator_name!r} is no class, so it has no option {next(iter(options))!r}")
        return wrap_as_user_evaluator(cls, evaluator_name)
    if ":" in evaluator_name:
        check_evaluator_class(cls, evaluator_name)
    fields = [field for field in getattr(cls, "__dataclass_fields__", {}) if not field.startswith("_")]
    options = nest_dotted_llm_request_params(options or {})
    for key in options:
        if key not in fields:
            raise UsageError(
                f"evaluator {evaluator_name!r} has no option {key!r}"
                + (suggest_known_name(key, fields) if fields else "")
            )
    try:
        return TypeAdapter(cls).validate_python(options)
    except PydanticSchemaGenerationError as error:
        raise UsageError(
            f"evaluator {evaluator_name!r}: its class is no dataclass, or has an option of an unknown type"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "options"
        raise UsageError(
            f"evaluator {evaluator_name!r}, option {where}: {first['msg']}, found {first.get('input')!r}"
        ) from None


def find_evaluator_path_options(evaluator_name: str) -> dict[str, YamlPathKind]:
    """The options of an evaluator that hold paths, and how. Raises `UsageError` for an unknown name."""
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
        files = f"; or MODULE:CLASS, if {evaluator_name}.py is yours" if re.fullmatch(r"\w+", evaluator_name) else ""
        order = ": evaluator=... takes the rest of the text, so it comes last" if "," in evaluator_name else ""
        raise UsageError(
            f"unknown evaluator {evaluator_name!r}{suggest_known_name(evaluator_name, list(known))}{order}{files}"
        )
    module, _, attribute = known[evaluator_name].target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"evaluator {evaluator_name!r} needs {known[evaluator_name].needs}: {error}") from error
