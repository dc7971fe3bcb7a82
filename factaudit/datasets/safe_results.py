"""SAFE's results (Wei et al. 2024, google-deepmind/long-form-factuality): ``*-SAFE.json`` of
``eval.run_eval``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from factaudit.datasets.checked_facts import make_fact_claims
from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import read_json
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count

#: What SAFE calls its verdicts; irrelevant facts have none.
_VERDICTS = {"supported": 1, "not supported": 0}
_IRRELEVANT = "irrelevant"


class _Statement(BaseModel):
    sentence: str
    atomic_fact: str
    self_contained_atomic_fact: str
    rate_data: dict[str, Any] | None = None
    annotation: str


class _Sentence(BaseModel):
    sentence: str
    atomic_facts: list[str]


class _Search(BaseModel):
    result: str | None = None


class _Step(BaseModel):
    google_searches: list[_Search] = Field(default_factory=list)


class _Evaluation(BaseModel):
    response: str
    checked_statements: list[_Statement]
    all_atomic_facts: list[_Sentence] = Field(default_factory=list)
    past_steps_jsonified_all: list[_Step] = Field(default_factory=list)


class _Prompt(BaseModel):
    prompt: str
    side1_posthoc_eval_data: _Evaluation | None = None
    side2_posthoc_eval_data: _Evaluation | None = None


class _File(BaseModel):
    per_prompt_data: list[_Prompt]
    side_1: str = "side 1"
    side_2: str = "side 2"


def convert_safe_results(sources: Sequence[Path]) -> Conversion:
    """A fact in its self-contained form is a claim, a side is a system, search results are the
    document.

    Irrelevant facts are left out, as SAFE's precision and F1@K leave them out, and counted; a fact
    that SAFE gave up on is unscored.
    """
    claims: list[dict[str, Any]] = []
    n_irrelevant = 0
    for path in sources:
        content: _File = read_json(path, _File)
        for prompt in content.per_prompt_data:
            for system, found in (
                (content.side_1, prompt.side1_posthoc_eval_data),
                (content.side_2, prompt.side2_posthoc_eval_data),
            ):
                if found is None:
                    continue
                identity = hash_texts(path.name, system, prompt.prompt, found.response)
                response = {
                    "dataset": "LongFact",
                    "system": system,
                    "response_id": f"safe:{identity}",
                    "topic": prompt.prompt,
                    "response": found.response,
                }
                verdicts = [one.annotation.lower() for one in found.checked_statements]
                n_irrelevant += verdicts.count(_IRRELEVANT)
                claims += make_fact_claims(response, "SAFE", _list_facts(found))
    note = f"{format_count(n_irrelevant, 'irrelevant fact')} left out, as SAFE does"
    return Conversion.from_claims("safe", claims, [note] if n_irrelevant else [])


def _list_facts(evaluation: _Evaluation) -> Iterator[dict[str, Any]]:
    steps = evaluation.past_steps_jsonified_all
    searches = [[one.result for one in step.google_searches] for step in steps]
    seen: Counter[tuple[str, str]] = Counter()
    for number, one in enumerate(evaluation.checked_statements):
        seen[one.sentence, one.atomic_fact] += 1
        verdict = one.annotation.lower()
        if verdict == _IRRELEVANT:
            continue
        prediction = _VERDICTS.get(verdict)
        found = searches[number] if number < len(searches) else []
        yield {
            "claim": one.self_contained_atomic_fact,
            "sentence": one.sentence,
            "doc": "\n\n".join(filter(None, found)) or None,
            "prediction": prediction,
            "status": "unparsed" if prediction is None else "ok",
            "raw": (one.rate_data or {}).get("response"),
        }
    for sentence in evaluation.all_atomic_facts:  # facts that SAFE gave up on are in no statement
        for fact in sentence.atomic_facts:
            if seen[sentence.sentence, fact]:
                seen[sentence.sentence, fact] -= 1
                continue
            given_up = {"prediction": None, "status": "error", "raw": "SAFE gave up on this fact"}
            yield {"claim": fact, "sentence": sentence.sentence, **given_up}
