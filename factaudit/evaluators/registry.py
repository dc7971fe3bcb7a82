"""The evaluators by name: ours, and third-party ones through the entry point group ``factaudit.evaluators``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from pydantic import TypeAdapter, ValidationError

from factaudit.errors import UsageError, hint
from factaudit.evaluators.base import Evaluator
from factaudit.evaluators.own import as_evaluator, load
from factaudit.llm.settings import nest_params
from factaudit.paths import Kind, option_kinds
from factaudit.spec import FORM

#: Distributions add evaluators of their own under this entry point group: ``name = "package.module:Class"``.
ENTRY_POINTS = "factaudit.evaluators"


@dataclass(frozen=True)
class Entry:
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


_NOT_RUN = "The published weights could not be run here"

_OURS = (
    Entry(
        "rouge2",
        "factaudit.evaluators.lexical:Rouge2",
        "ROUGE-2 precision: the share of the claim's bigrams that the document has",
        source="Lin 2004, as VC §4.1 uses it",
        checked="the rouge-score package",
    ),
    Entry(
        "unigram",
        "factaudit.evaluators.lexical:Unigram",
        "the share of the claim's content words that the document has",
        checked="figures worked out by hand",
    ),
    Entry(
        "tfidf",
        "factaudit.evaluators.lexical:Tfidf",
        "TF-IDF cosine between the claim and the nearest sentence of the document",
        checked="figures worked out by hand",
    ),
    Entry("always-yes", "factaudit.evaluators.lexical:AlwaysYes", "finds every claim attributable: a floor"),
    Entry("always-no", "factaudit.evaluators.lexical:AlwaysNo", "finds no claim attributable: a floor"),
    Entry(
        "random",
        "factaudit.evaluators.lexical:Random",
        "a coin per claim, seeded: a floor",
        example="random:seed=1",
    ),
    Entry(
        "stored",
        "factaudit.evaluators.stored:Stored",
        "verdicts that a file already holds",
        needs="a verdicts file",
        example="stored:path=verdicts.parquet,evaluator=gpt-4o",
    ),
    Entry(
        "llm",
        "factaudit.evaluators.llm:LLMJudge",
        "asks a language model whether the document supports the claim",
        needs="an OpenAI-compatible server, or the extra [local]",
        checked="a scripted server that fails in every way, llama.cpp with SmolLM2-135M. No hosted one was asked",
        example="llm:model=gpt-4o-mini",
    ),
    Entry(
        "no-context",
        "factaudit.evaluators.llm:NoContext",
        "asks a language model whether the claim is true, without the document",
        needs="an OpenAI-compatible server, or the extra [local]",
        source="Min et al. 2023, FActScore §4.1, No-context LM",
        checked="as llm",
        example="no-context:model=smollm2,base_url=local",
    ),
    Entry(
        "bespoke-minicheck",
        "factaudit.evaluators.llm:BespokeMiniCheck",
        "Bespoke-MiniCheck-7B behind a server (Ollama, vLLM)",
        needs="a server that has the model",
        source="Tang, Laban and Durrett 2024, MiniCheck",
        checked=f"the authors' prompts and their way to read P(Yes), on a scripted server. {_NOT_RUN}",
        example="bespoke-minicheck:server=vllm,base_url=http://localhost:8000/v1",
    ),
    Entry(
        "minicheck",
        "factaudit.evaluators.minicheck:MiniCheck",
        "a MiniCheck model: RoBERTa, DeBERTa or Flan-T5, over chunks of the document",
        needs="the [hf] extra",
        source="Tang, Laban and Durrett 2024, MiniCheck",
        checked=f"a plain loop over single examples, on tiny models of the three architectures. {_NOT_RUN}",
        example="minicheck:model=flan-t5-large",
    ),
    Entry(
        "alignscore",
        "factaudit.evaluators.alignscore:AlignScore",
        "AlignScore: P(aligned) for each sentence of the claim over chunks of the document, then the mean",
        needs="the [hf] extra",
        source="Zha et al. 2023, AlignScore",
        checked=f"a plain loop over single examples, on a tiny checkpoint of the authors' form. {_NOT_RUN}",
        example="alignscore:model=large",
    ),
    Entry(
        "nli",
        "factaudit.evaluators.nli:NLI",
        "an NLI cross-encoder: the probability that the document entails the claim",
        needs="the [hf] extra",
        source="Laban et al. 2022, SummaC",
        checked=f"a plain loop over single examples, on tiny models of two architectures. {_NOT_RUN}",
        example="nli:model=cross-encoder/nli-deberta-v3-base",
    ),
    Entry(
        "chunked",
        "factaudit.evaluators.chunked:Chunked",
        "any evaluator over chunks of the document: the maximum over chunks",
        needs="what the inner evaluator needs",
        source="Tang et al. 2024, §3; VC §4.2",
        example="chunked:size=500,evaluator=rouge2",
    ),
    Entry(
        "ensemble",
        "factaudit.evaluators.ensemble:Ensemble",
        "several evaluators as one: the mean of their scores, or their vote",
        needs="what its members need",
        example="ensemble:how=vote,evaluators=rouge2+unigram+tfidf",
    ),
)


def ours() -> tuple[Entry, ...]:
    """The evaluators that come with factaudit."""
    return _OURS


def entries() -> dict[str, Entry]:
    """All evaluators by name, in the order of the listing; a third-party one cannot replace one of ours."""
    found = {entry.name: entry for entry in _OURS}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name):
        package = point.dist.name if point.dist else point.value
        found.setdefault(point.name, Entry(point.name, point.value, f"from the package {package}", needs=package))
    return found


def make_evaluator(name: str, options: Mapping[str, Any] | None = None) -> Evaluator:
    """Make an evaluator from its registered name and options, checked against the evaluator's own fields.

    Raises `UsageError` for an unknown name or option (with the nearest known one) or a value of the wrong type.
    """
    cls = _class(name)
    if not isinstance(cls, type):  # an object of the user's, or a function
        if options:
            raise UsageError(f"evaluator {name!r} is no class, so it has no option {next(iter(options))!r}")
        return as_evaluator(cls)
    fields = [field for field in getattr(cls, "__dataclass_fields__", {}) if not field.startswith("_")]
    options = nest_params(options or {})
    for key in options:
        if key not in fields:
            raise UsageError(f"evaluator {name!r} has no option {key!r}" + (hint(key, fields) if fields else ""))
    try:
        return TypeAdapter(cls).validate_python(options)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "options"
        raise UsageError(f"evaluator {name!r}, option {where}: {first['msg']}, found {first.get('input')!r}") from None


def evaluator_kinds(name: str) -> dict[str, Kind]:
    """The options of an evaluator that hold paths, and how. Raises `UsageError` for an unknown name."""
    found = _class(name)
    return option_kinds(found) if isinstance(found, type) else {}


def _class(name: str) -> Any:
    """What a name stands for: a registered evaluator's class, or what ``MODULE:ATTRIBUTE`` is."""
    known = entries()
    module, own, attribute = name.partition(":")
    if module in known and own:
        raise UsageError(f"evaluator {name!r}: expected {FORM}, found {attribute!r}")
    if own:
        return load(module, attribute)
    if name not in known:
        files = f"; or MODULE:CLASS, if {name}.py is yours" if re.fullmatch(r"\w+", name) else ""
        order = ": evaluator=... takes the rest of the text, so it comes last" if "," in name else ""
        raise UsageError(f"unknown evaluator {name!r}{hint(name, list(known))}{order}{files}")
    module, _, attribute = known[name].target.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"evaluator {name!r} needs {known[name].needs}: {error}") from error
