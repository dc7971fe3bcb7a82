"""ClaimVerify: statements of four generative search engines and the pages that they cite (Liu et al. 2023).

Files of nelson-liu/evaluating-verifiability-in-generative-search-engines: ``verifiability_judgments_*.jsonl.gz`` (a
statement, a cited page, a judgement) and ``human_evaluation_annotations.jsonl``, which alone says the system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    describe_grade_to_label_mapping,
    expand_dataset_source_folders,
    parse_dataset_source_rows,
    parse_split_name,
)
from factaudit.errors import InputError, Problem
from factaudit.signature import hash_texts
from factaudit.tables import read_table
from factaudit.text.display_text import format_count

#: Their systems as the papers write them.
SYSTEMS = {"bing_chat": "Bing Chat", "neeva": "NeevaAI", "perplexity": "perplexity.ai", "you": "YouChat"}


class ClaimVerifyJudgement(DatasetSourceRow):
    query: str
    response: str
    statement: str
    source_text: str | None = None
    source_url: str | None = None
    source_supports_statement: Literal["complete_support", "partial_support", "no_support"]


class _StatementAnnotation(DatasetSourceRow):
    statement_supported: str | None = None


class _ResponseAnnotation(DatasetSourceRow):
    statement_to_annotation: dict[str, _StatementAnnotation]


class ClaimVerifyResponse(DatasetSourceRow):
    id: str
    query: str
    response: str
    system_name: str
    annotation: _ResponseAnnotation


def convert_claimverify(sources: Sequence[Path]) -> Conversion:
    """A statement and one cited page are a claim: complete support is 1, partial and no support 0.

    The judgements do not say the system: the annotations do, found by query and response; without them it is null.
    Annotations alone are claims without documents, whose label is whether all citations together support the statement.
    """
    judgements: list[tuple[Path, ClaimVerifyJudgement]] = []
    responses: dict[tuple[str, str], ClaimVerifyResponse] = {}
    notes = []
    for path in expand_dataset_source_folders(
        sources, "verifiability_judgments_*.jsonl*", "human_evaluation_annotations.jsonl*"
    ):
        table = read_table(path)
        if "system_name" in table:
            annotated = parse_dataset_source_rows(table, path, ClaimVerifyResponse)
            responses |= {(one.query, one.response): one for one in annotated}
            notes.append(f"{path.name}: {format_count(len(annotated), 'response')} with its system")
        elif "statement" in table:
            found = parse_dataset_source_rows(table, path, ClaimVerifyJudgement)
            judgements += [(path, one) for one in found]
            notes.append(f"{path.name}: {format_count(len(found), 'judgement')}")
        else:
            raise InputError(str(path), [Problem("expected judgements (statement) or annotations (system_name)")])
    rows = list(
        _list_claimverify_claims_with_judgements(judgements, responses)
        if judgements
        else _list_claimverify_claims(responses)
    )
    if judgements:
        said = [one.source_supports_statement for _, one in judgements]
        notes.append(describe_grade_to_label_mapping((grade, int(grade == "complete_support")) for grade in said))
    if without := sum(row["system"] is None for row in rows):
        told = "their response is not among the annotations" if responses else "give human_evaluation_annotations.jsonl"
        notes.append(f"{format_count(without, 'claim')} without a system: {told}")
    return Conversion.from_rows(rows, source="claimverify", notes=notes)


def _list_claimverify_claims_with_judgements(
    judgements: Sequence[tuple[Path, ClaimVerifyJudgement]], responses: dict[tuple[str, str], ClaimVerifyResponse]
) -> Iterator[dict[str, Any]]:
    for path, one in judgements:
        annotated = responses.get((one.query, one.response))
        response = f"claimverify:{annotated.id if annotated else hash_texts(one.query, one.response, length=12)}"
        yield {
            **_describe_claimverify_statement(response, one.query, one.statement),
            "claim_id": f"{response}:{path.name.split('.')[0]}:{one.position}",
            "system": None if annotated is None else SYSTEMS.get(annotated.system_name, annotated.system_name),
            "split": parse_split_name(path),
            "doc": one.source_text,
            "doc_id": one.source_url,
            "label": int(one.source_supports_statement == "complete_support"),
        }


def _list_claimverify_claims(responses: dict[tuple[str, str], ClaimVerifyResponse]) -> Iterator[dict[str, Any]]:
    for one in responses.values():
        response = f"claimverify:{one.id}"
        for number, (statement, said) in enumerate(one.annotation.statement_to_annotation.items()):
            supported = said.statement_supported
            yield {
                **_describe_claimverify_statement(response, one.query, statement),
                "claim_id": f"{response}:{number}",
                "system": SYSTEMS.get(one.system_name, one.system_name),
                "doc": None,
                "label": None if supported is None else int(supported.strip().lower() == "yes"),
            }


def _describe_claimverify_statement(response_id: str, query: str, statement: str) -> dict[str, Any]:
    task = find_dataset_task("ClaimVerify")
    return {"dataset": "ClaimVerify", "task": task, "response_id": response_id, "claim": statement, "question": query}
