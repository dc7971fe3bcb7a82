"""HaluEval: right texts beside hallucinated ones, and labelled replies of ChatGPT (Li et al. 2023).

Files of RUCAIBox/HaluEval's ``data``: ``qa_data.json``, ``dialogue_data.json``, ``summarization_data.json``,
``general_data.json`` (JSON lines, whatever the name says).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    parse_numbered_dataset_source_rows,
)
from factaudit.errors import InputError, Problem
from factaudit.files import check_is_table_file
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count


class HaluEvalSample(DatasetSourceRow):
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


def convert_halueval(sources: Sequence[Path]) -> Conversion:
    """A right and a hallucinated text are a pair (``pair_of``; audit pairs); a general reply has no document."""
    rows: list[dict[str, Any]] = []
    for path in expand_dataset_source_folders(sources, "*_data.json"):
        dataset = f"HaluEval-{path.stem.removesuffix('_data')}"
        for sample in _read_halueval_samples(path):
            rows += _list_halueval_claims(f"halueval:{path.stem}:{sample.position - 1}", dataset, sample, path)
    n_pairs = sum("pair_of" in row for row in rows)
    notes = [f"{format_count(len(rows), 'claim')}, {format_count(n_pairs, 'pair')}"]
    return Conversion.from_rows(rows, source="halueval", notes=notes)


def _list_halueval_claims(sample_id: str, dataset: str, sample: HaluEvalSample, path: Path) -> Iterator[dict[str, Any]]:
    shared = {"dataset": dataset, "doc_id": sample_id, "question": sample.question or sample.dialogue_history}
    for kind in ("answer", "response", "summary"):
        right, wrong = getattr(sample, f"right_{kind}"), getattr(sample, f"hallucinated_{kind}")
        if right and wrong:
            doc = sample.knowledge or sample.document
            yield {**shared, "claim_id": f"{sample_id}:right", "claim": right, "doc": doc, "label": 1}
            twin = {"claim_id": f"{sample_id}:wrong", "claim": wrong, "doc": doc, "label": 0}
            yield {**shared, **twin, "pair_of": f"{sample_id}:right"}
            return
    said = (sample.hallucination or "").strip().lower()
    if sample.chatgpt_response is None or said not in ("yes", "no"):
        message = "expected right_answer and hallucinated_answer (or response, summary), or a reply with hallucination"
        leave_out_unreadable_row(path, Problem(message, sample.position, unit="line"))
        return
    shared |= {"question": sample.user_query, "system": "ChatGPT"}
    yield {**shared, "claim_id": sample_id, "claim": sample.chatgpt_response, "doc": None, "label": int(said == "no")}


def _read_halueval_samples(path: Path) -> list[HaluEvalSample]:
    check_is_table_file(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        numbered = [(number, json.loads(line)) for number, line in enumerate(lines, start=1) if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(str(path), [Problem(f"expected a JSON object on each line ({error})")]) from None
    return parse_numbered_dataset_source_rows(numbered, path, HaluEvalSample, "line")
