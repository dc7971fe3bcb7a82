"""ClaimVerify: statements of four generative search engines and the pages that they cite (Liu et
al. 2023).

Files of nelson-liu/evaluating-verifiability-in-generative-search-engines:
``verifiability_judgments_*.jsonl.gz`` (a statement, a cited page, a judgement) and
``human_evaluation_annotations.jsonl``, which alone says the system.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import (
    SourceRow,
    describe_wrong_file,
    parse_rows,
    parse_split_name,
)
from factaudit.signature import hash_texts
from factaudit.tables import read_table
from factaudit.text.display_text import format_count

#: Their systems as the papers write them.
SYSTEMS = {
    "bing_chat": "Bing Chat",
    "neeva": "NeevaAI",
    "perplexity": "perplexity.ai",
    "you": "YouChat",
}


class _Judgement(SourceRow):
    query: str
    response: str
    statement: str
    source_text: str | None = None
    source_url: str | None = None
    source_supports_statement: Literal["complete_support", "partial_support", "no_support"]


class _Response(SourceRow):
    id: str
    query: str
    response: str
    system_name: str


def convert_claimverify(sources: Sequence[Path]) -> Conversion:
    """A statement and one cited page are a claim: complete support is 1, partial and no support 0.

    The judgements do not say the system: the annotations do, found by query and response; without
    them it is null.
    """
    judgements: list[tuple[Path, _Judgement]] = []
    responses: dict[tuple[str, str], _Response] = {}
    for path in sources:
        table = read_table(path)
        if "system_name" in table:
            responses |= {
                (one.query, one.response): one for one in parse_rows(table, path, _Response)
            }
        else:
            judgements += [(path, one) for one in parse_rows(table, path, _Judgement)]
    if not judgements:
        message = "expected judgements (verifiability_judgments_*.jsonl), found annotations alone"
        raise describe_wrong_file(sources, message)
    claims: list[dict[str, Any]] = []
    for path, one in judgements:
        annotated = responses.get((one.query, one.response))
        response_hash = hash_texts(one.query, one.response, length=12)
        response = f"claimverify:{annotated.id if annotated else response_hash}"
        claims.append(
            {
                "claim_id": f"{response}:{path.name.split('.')[0]}:{one.position}",
                "dataset": "ClaimVerify",
                "response_id": response,
                "system": annotated and SYSTEMS.get(annotated.system_name, annotated.system_name),
                "split": parse_split_name(path),
                "claim": one.statement,
                "doc": one.source_text,
                "doc_id": one.source_url,
                "label": int(one.source_supports_statement == "complete_support"),
                "question": one.query,
            }
        )
    notes = []
    if without := sum(row["system"] is None for row in claims):
        counted = format_count(without, "claim")
        notes = [f"{counted} without a system, which human_evaluation_annotations.jsonl says"]
    return Conversion.from_claims("claimverify", claims, notes)
