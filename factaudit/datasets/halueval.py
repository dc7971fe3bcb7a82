"""HaluEval: right texts beside hallucinated ones, and labelled replies of ChatGPT (Li et al. 2023).

Files of RUCAIBox/HaluEval's ``data``: ``qa_data.json``, ``dialogue_data.json``, ``summarization_data.json``,
``general_data.json`` (JSON lines, whatever the name says).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.conversion import Conversion, reads
from factaudit.datasets.source_files import SourceRow, parse_rows
from factaudit.errors import Problem
from factaudit.files import check_is_table_file
from factaudit.tables.table_files import read_json_lines
from factaudit.tables.unreadable_rows import leave_out_unreadable_row


class _Sample(SourceRow):
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


@reads(
    "halueval",
    "HaluEval: right and hallucinated answers, replies and summaries in pairs (Li et al. 2023)",
    "factaudit convert halueval qa_data.json summarization_data.json --out claims.parquet",
    ["*_data.json"],
    marks=[
        "right_answer hallucinated_answer",
        "right_response hallucinated_response",
        "right_summary hallucinated_summary",
        "user_query chatgpt_response hallucination",
    ],
)
def convert_halueval(sources: Sequence[Path]) -> Conversion:
    """A right and a hallucinated text are a pair (``pair_of``); a general reply has no document."""
    claims: list[dict[str, Any]] = []
    for path in sources:
        check_is_table_file(path)
        for sample in parse_rows(read_json_lines(path), path, _Sample):
            rows = [*_list_claims(f"halueval:{path.stem}:{sample.position - 1}", sample)]
            if not rows:
                expected = "right_answer and hallucinated_answer (or response, summary), or a reply with hallucination"
                leave_out_unreadable_row(path, Problem(f"expected {expected}", sample.position, unit="line"))
            claims += [{"dataset": f"HaluEval-{path.stem.removesuffix('_data')}", **row} for row in rows]
    return Conversion.from_claims("halueval", claims)


def _list_claims(sample_id: str, sample: _Sample) -> Iterator[dict[str, Any]]:
    """The two claims of a pair, or a reply of ChatGPT's as a claim; none of a sample that is neither."""
    for kind in ("answer", "response", "summary"):
        right, wrong = getattr(sample, f"right_{kind}"), getattr(sample, f"hallucinated_{kind}")
        if right and wrong:
            shared = {
                "doc_id": sample_id,
                "question": sample.question or sample.dialogue_history,
                "doc": sample.knowledge or sample.document,
            }
            own = {"claim_id": f"{sample_id}:right", "claim": right, "label": 1}
            yield shared | own
            yield shared | {"claim_id": f"{sample_id}:wrong", "claim": wrong, "label": 0, "pair_of": own["claim_id"]}
            return
    said = (sample.hallucination or "").strip().lower()
    if sample.chatgpt_response is not None and said in ("yes", "no"):
        yield {
            "claim_id": sample_id,
            "doc_id": sample_id,
            "question": sample.user_query,
            "system": "ChatGPT",
            "claim": sample.chatgpt_response,
            "label": int(said == "no"),
        }
