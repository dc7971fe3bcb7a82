"""SAFE's results (Wei et al. 2024, google-deepmind/long-form-factuality): ``*-SAFE.json`` of ``eval.run_eval``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from factaudit.datasets.checked_facts import CheckedFact, CheckedResponse, convert_checked_responses
from factaudit.datasets.source_files import Conversion, expand_dataset_source_folders, read_dataset_source_json
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count

EVALUATOR = "SAFE"
#: What SAFE calls its verdicts; irrelevant facts have none.
_VERDICTS = {"supported": 1, "not supported": 0}
_IRRELEVANT = "irrelevant"


class _SafeStatement(BaseModel):
    sentence: str
    atomic_fact: str
    self_contained_atomic_fact: str
    rate_data: dict[str, Any] | None = None
    annotation: str


class _SafeSentence(BaseModel):
    sentence: str
    atomic_facts: list[str]


class _SafeEvaluation(BaseModel):
    prompt: str = ""
    response: str
    checked_statements: list[_SafeStatement]
    all_atomic_facts: list[_SafeSentence] = Field(default_factory=list)
    past_steps_jsonified_all: list[dict[str, Any]] = Field(default_factory=list)


class _SafePrompt(BaseModel):
    prompt: str
    side1_posthoc_eval_data: _SafeEvaluation | None = None
    side2_posthoc_eval_data: _SafeEvaluation | None = None


class _SafeFile(BaseModel):
    per_prompt_data: list[_SafePrompt]
    side_1: str | None = None
    side_2: str | None = None


def convert_safe_results(sources: Sequence[Path]) -> Conversion:
    """A fact in its self-contained form is a claim, a side is a system, search results are the document.

    Irrelevant facts are left out, as SAFE's precision and F1@K leave them out, and counted; a fact that SAFE gave up on
    is unscored.
    """
    responses: list[CheckedResponse] = []
    n_irrelevant = 0
    for path in expand_dataset_source_folders(sources, "*-SAFE.json"):
        for prompt, system, found in _read_safe_evaluations(path):
            facts = list(_list_safe_facts(found))
            n_irrelevant += sum(one.annotation.lower() == _IRRELEVANT for one in found.checked_statements)
            response_id = f"safe:{hash_texts(path.name, system, prompt, found.response)}"
            responses.append(CheckedResponse(response_id, facts, "LongFact", system, prompt, found.response))
    notes = [f"{format_count(n_irrelevant, 'irrelevant fact')} left out, as SAFE does"] if n_irrelevant else []
    return convert_checked_responses(responses, EVALUATOR, "safe", notes)


def _read_safe_evaluations(path: Path) -> Iterator[tuple[str, str, _SafeEvaluation]]:
    """The prompt, the system and the checked response of each evaluation of a file: of ``eval.run_eval``, or a list of
    what SAFE returns for a response."""
    if isinstance(read_dataset_source_json(path, Any), list):
        evaluations: list[_SafeEvaluation] = read_dataset_source_json(path, list[_SafeEvaluation])
        yield from ((one.prompt, path.stem, one) for one in evaluations)
        return
    content: _SafeFile = read_dataset_source_json(path, _SafeFile)
    for prompt in content.per_prompt_data:
        for side, name in ((1, content.side_1), (2, content.side_2)):
            found: _SafeEvaluation | None = getattr(prompt, f"side{side}_posthoc_eval_data")
            if found is not None:
                yield prompt.prompt, name or f"side {side}", found


def _list_safe_facts(evaluation: _SafeEvaluation) -> Iterator[CheckedFact]:
    steps = evaluation.past_steps_jsonified_all
    seen: Counter[tuple[str, str]] = Counter()
    for number, one in enumerate(evaluation.checked_statements):
        seen[one.sentence, one.atomic_fact] += 1
        said = one.annotation.lower()
        if said != _IRRELEVANT:
            prediction = _VERDICTS.get(said)
            searched = _join_safe_searches(steps[number]) if number < len(steps) else None
            yield CheckedFact(
                one.self_contained_atomic_fact,
                prediction,
                "ok" if prediction is not None else "unparsed",
                one.sentence,
                searched,
                None if one.rate_data is None else str(one.rate_data.get("response") or "") or None,
            )
    for sentence in evaluation.all_atomic_facts:  # facts that SAFE gave up on are in no statement
        for fact in sentence.atomic_facts:
            if seen[sentence.sentence, fact]:
                seen[sentence.sentence, fact] -= 1
            else:
                yield CheckedFact(fact, None, "error", sentence.sentence, raw="SAFE gave up on this fact")


def _join_safe_searches(step: Mapping[str, Any]) -> str | None:
    searches = step.get("google_searches")
    found = [str(one.get("result") or "") for one in searches or () if isinstance(one, Mapping)]
    return "\n\n".join(filter(None, found)) or None
