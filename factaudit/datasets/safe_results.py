"""SAFE's results (Wei et al. 2024, google-deepmind/long-form-factuality): ``*-SAFE.json`` of
``eval.run_eval``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from factaudit.datasets.checked_facts import make_fact_claims
from factaudit.datasets.conversion import Conversion, reads
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

    @property
    def verdict(self) -> str:
        return self.annotation.lower()


class _Sentence(BaseModel):
    sentence: str
    atomic_facts: list[str]


class _Search(BaseModel):
    result: str | None = None


class _Step(BaseModel):
    google_searches: list[_Search] = Field(default_factory=list)


class _Evaluation(BaseModel):
    prompt: str = ""
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
    side_1: str | None = None
    side_2: str | None = None


@reads(
    "safe-results",
    "SAFE's *-SAFE.json of long-form-factuality: facts, search results and verdicts (Wei et al."
    " 2024)",
    "factaudit convert safe-results results/ --out claims.parquet --verdicts verdicts.parquet",
    ["*-SAFE.json"],
    marks=[
        "per_prompt_data[].side*_posthoc_eval_data.checked_statements[]",
        "response checked_statements[].self_contained_atomic_fact",
    ],
)
def convert_safe_results(sources: Sequence[Path]) -> Conversion:
    """A fact in its self-contained form is a claim, a side is a system, search results are the
    document.

    Irrelevant facts are left out, as SAFE's precision and F1@K leave them out, and counted; a fact
    that SAFE gave up on is unscored.
    """
    claims: list[dict[str, Any]] = []
    n_irrelevant = 0
    for path in sources:
        for prompt, system, found in _read_evaluations(path):
            n_irrelevant += sum(one.verdict == _IRRELEVANT for one in found.checked_statements)
            response = {
                "dataset": "LongFact",
                "system": system,
                "response_id": f"safe:{hash_texts(path.name, system, prompt, found.response)}",
                "topic": prompt,
                "response": found.response,
            }
            claims += make_fact_claims(response, "SAFE", _list_facts(found))
    notes = (
        [f"{format_count(n_irrelevant, 'irrelevant fact')} left out, as SAFE does"]
        if n_irrelevant
        else []
    )
    return Conversion.from_claims("safe", claims, notes)


def _read_evaluations(path: Path) -> Iterator[tuple[str, str, _Evaluation]]:
    """The prompt, the system and the checked response of each evaluation of a file: of
    ``eval.run_eval``, or a list of what SAFE returns for a response."""
    if isinstance(read_json(path, Any), list):
        evaluations: list[_Evaluation] = read_json(path, list[_Evaluation])
        yield from ((one.prompt, path.stem, one) for one in evaluations)
        return
    content: _File = read_json(path, _File)
    for prompt in content.per_prompt_data:
        sides = (
            (content.side_1, prompt.side1_posthoc_eval_data),
            (content.side_2, prompt.side2_posthoc_eval_data),
        )
        for number, (name, found) in enumerate(sides, start=1):
            if found is not None:
                yield prompt.prompt, name or f"side {number}", found


def _list_facts(evaluation: _Evaluation) -> Iterator[dict[str, Any]]:
    steps = evaluation.past_steps_jsonified_all
    seen: Counter[tuple[str, str]] = Counter()
    for number, one in enumerate(evaluation.checked_statements):
        seen[one.sentence, one.atomic_fact] += 1
        if one.verdict == _IRRELEVANT:
            continue
        prediction = _VERDICTS.get(one.verdict)
        searches = steps[number].google_searches if number < len(steps) else []
        yield {
            "claim": one.self_contained_atomic_fact,
            "sentence": one.sentence,
            "doc": "\n\n".join(search.result for search in searches if search.result) or None,
            "prediction": prediction,
            "status": "unparsed" if prediction is None else "ok",
            "raw": one.rate_data and (str(one.rate_data.get("response") or "") or None),
        }
    for sentence in evaluation.all_atomic_facts:  # facts that SAFE gave up on are in no statement
        for fact in sentence.atomic_facts:
            if seen[sentence.sentence, fact]:
                seen[sentence.sentence, fact] -= 1
                continue
            given_up = {
                "claim": fact,
                "sentence": sentence.sentence,
                "prediction": None,
                "status": "error",
            }
            yield given_up | {"raw": "SAFE gave up on this fact"}
