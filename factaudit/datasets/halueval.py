"""HaluEval: right texts beside hallucinated ones, and labelled replies of ChatGPT (Li et al. 2023).

Files of RUCAIBox/HaluEval's ``data``: ``qa_data.json``, ``dialogue_data.json``,
``summarization_data.json``, ``general_data.json`` (JSON lines, whatever the name says).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from factaudit.datasets.conversion import Conversion, reads
from factaudit.datasets.source_files import SourceRow, parse_rows
from factaudit.errors import Problem
from factaudit.files import check_is_table_file
from factaudit.tables.table_files import read_json_lines
from factaudit.tables.unreadable_rows import leave_out_unreadable_row


def _name_kinds(which: str) -> AliasChoices:
    return AliasChoices(*(f"{which}_{kind}" for kind in ("answer", "response", "summary")))


class _Sample(SourceRow):
    doc: str | None = Field(None, validation_alias=AliasChoices("knowledge", "document"))
    question: str | None = Field(
        None, validation_alias=AliasChoices("question", "dialogue_history", "user_query")
    )
    right: str | None = Field(None, validation_alias=_name_kinds("right"))
    hallucinated: str | None = Field(None, validation_alias=_name_kinds("hallucinated"))
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
    """A right and a hallucinated text are two claims on one document; a general reply has no
    document."""
    claims: list[dict[str, Any]] = []
    for path in sources:
        check_is_table_file(path)
        for sample in parse_rows(read_json_lines(path), path, _Sample):
            sample_id = f"halueval:{path.stem}:{sample.position - 1}"
            said = (sample.hallucination or "").strip().lower()
            if sample.right and sample.hallucinated:
                rows = [
                    {
                        "claim_id": f"{sample_id}:right",
                        "claim": sample.right,
                        "label": 1,
                        "doc": sample.doc,
                    },
                    {
                        "claim_id": f"{sample_id}:wrong",
                        "claim": sample.hallucinated,
                        "label": 0,
                        "doc": sample.doc,
                    },
                ]
            elif sample.chatgpt_response is not None and said in ("yes", "no"):
                own = {
                    "claim_id": sample_id,
                    "claim": sample.chatgpt_response,
                    "label": int(said == "no"),
                }
                rows = [own | {"system": "ChatGPT"}]
            else:
                expected = (
                    "right_answer and hallucinated_answer (or response, summary), or a reply with"
                    " hallucination"
                )
                leave_out_unreadable_row(
                    path, Problem(f"expected {expected}", sample.position, unit="line")
                )
                continue
            shared = {"dataset": f"HaluEval-{path.stem.removesuffix('_data')}", "doc_id": sample_id}
            claims += [shared | {"question": sample.question} | row for row in rows]
    return Conversion.from_claims("halueval", claims)
