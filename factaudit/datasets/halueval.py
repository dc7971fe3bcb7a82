"""HaluEval: right texts beside hallucinated ones, and labelled replies of ChatGPT (Li et al. 2023).

Files of RUCAIBox/HaluEval's ``data``: ``qa_data.json``, ``dialogue_data.json``, ``summarization_data.json``,
``general_data.json`` (JSON lines, whatever the name says).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import TypeAdapter, ValidationError

from factaudit.datasets.sources import Conversion, Row, expand, problem
from factaudit.errors import InputError, Problem
from factaudit.tables import validate_claims
from factaudit.text.printable import count


class Sample(Row):
    knowledge: str | None = None
    document: str | None = None
    question: str | None = None
    dialogue_history: str | None = None
    right_answer: str | None = None
    hallucinated_answer: str | None = None
    right_response: str | None = None
    hallucinated_response: str | None = None
    right_summary: str | None = None
    hallucinated_summary: str | None = None
    user_query: str | None = None
    chatgpt_response: str | None = None
    hallucination: str | None = None


def convert(sources: Sequence[Path]) -> Conversion:
    """A right and a hallucinated text are a pair (``pair_of``; audit pairs); a general reply has no document."""
    rows: list[dict[str, Any]] = []
    for path in expand(sources, "*_data.json"):
        dataset = f"HaluEval-{path.stem.removesuffix('_data')}"
        for at, sample in enumerate(_read(path)):
            rows += _claims(f"halueval:{path.stem}:{at}", dataset, sample, path, at)
    claims = validate_claims(pd.DataFrame(rows), source="halueval")
    pairs = int(claims["pair_of"].notna().sum()) if "pair_of" in claims else 0
    return Conversion(claims, notes=[f"{count(len(claims), 'claim')}, {count(pairs, 'pair')}"])


def _claims(key: str, dataset: str, sample: Sample, path: Path, at: int) -> Iterator[dict[str, Any]]:
    shared = {"dataset": dataset, "doc_id": key, "question": sample.question or sample.dialogue_history}
    for kind in ("answer", "response", "summary"):
        right, wrong = getattr(sample, f"right_{kind}"), getattr(sample, f"hallucinated_{kind}")
        if right and wrong:
            doc = sample.knowledge or sample.document
            yield {**shared, "claim_id": f"{key}:right", "claim": right, "doc": doc, "label": 1}
            yield {
                **shared,
                "claim_id": f"{key}:wrong",
                "claim": wrong,
                "doc": doc,
                "label": 0,
                "pair_of": f"{key}:right",
            }
            return
    said = (sample.hallucination or "").strip().lower()
    if sample.chatgpt_response is None or said not in ("yes", "no"):
        message = "expected right_answer and hallucinated_answer (or response, summary), or a reply with hallucination"
        raise InputError(str(path), [Problem(message, at + 1, unit="line")])
    shared |= {"question": sample.user_query, "system": "ChatGPT"}
    yield {**shared, "claim_id": key, "claim": sample.chatgpt_response, "doc": None, "label": int(said == "no")}


def _read(path: Path) -> list[Sample]:
    if not path.is_file():
        raise InputError(str(path), [Problem("no such file")])
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        return TypeAdapter(list[Sample]).validate_python([json.loads(line) for line in lines if line.strip()])
    except ValidationError as error:
        problems = [problem(one, "line") for one in error.errors(include_url=False)]
        raise InputError(str(path), problems) from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), [Problem(f"expected a JSON object on each line ({error})")]) from None
