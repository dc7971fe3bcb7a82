"""RAGTruth's responses with several detectors' P(hallucinated): claims, and verdicts with score = 1 − P.

Files: ``results/unified_predictions.parquet`` of rag-hallucination-detector, a row per detector (``system``) and
response, beside RAGTruth's ``response.jsonl`` of whose test split ``row_index`` counts the responses; or our own JSONL
of {response_id, source_id, task_type, system, hallucinated, scores: {detector: P}}, which the demo ships. Neither has
text: RAGTruth's files do, as further sources or by ``text``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.ragtruth import (
    RagTruthResponse,
    describe_ragtruth_response,
    ragtruth_claim_id,
    read_ragtruth_responses,
)
from factaudit.datasets.source_files import (
    BinaryLabel,
    Conversion,
    DatasetSourceRow,
    PathsOption,
    Probability,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)
from factaudit.errors import InputError, Problem
from factaudit.tables.schema import make_text_placeholder
from factaudit.text.display_text import format_count


class RagTruthDetectorRow(DatasetSourceRow):
    response_id: str
    source_id: str
    task_type: Literal["QA", "Summary", "Data2txt"]
    system: str
    hallucinated: BinaryLabel
    scores: dict[str, Probability | None]


class RagTruthPredictionRow(DatasetSourceRow):
    """One detector's P(hallucinated) of one response; ``row_index`` counts RAGTruth's test responses from 0."""

    system: str
    row_index: int = Field(ge=0)
    source_id: str
    task_type: Literal["QA", "Summary", "Data2txt"]
    y_true: BinaryLabel
    y_score: Probability


def convert_ragtruth_scores(sources: Sequence[Path], *, text: PathsOption = ()) -> Conversion:
    """Responses as claims (1 where not hallucinated), and one verdict per detector and response.

    ``claim_id`` is `ragtruth_claim_id`'s, so that the verdicts also fit the claims that ``ragtruth`` makes. A detector
    without a score for a response has no verdict on it: the claim is unscored.
    """
    paths = list(expand_dataset_source_folders(sources, "*.jsonl", "*.jsonl.gz", "*.parquet"))
    own = [path for path in paths if path.name in ("response.jsonl", "source_info.jsonl")]
    text_paths = [*own, *expand_dataset_source_folders(text, "response.jsonl", "source_info.jsonl")]
    rows = [
        row
        for path in paths
        if path not in own
        for row in (
            _read_ragtruth_predictions(path, text_paths)
            if path.suffix == ".parquet"
            else read_dataset_source_rows(path, RagTruthDetectorRow)
        )
    ]
    if not rows:
        raise InputError(", ".join(map(str, sources)), [Problem("expected detectors' scores beside RAGTruth's files")])
    texts = {}
    if any(path.name != "response.jsonl" for path in text_paths):
        texts = {response.response_id: (response, info) for response, info in read_ragtruth_responses(text_paths)[0]}
    claims = []
    for number, row in enumerate(rows, start=1):
        dataset = f"RAGTruth-{row.task_type}"
        known = texts.get(row.response_id)
        claims.append(
            {
                "dataset": dataset,
                "task": find_dataset_task(dataset),
                "system": row.system,
                "response_id": row.response_id,
                "doc_id": row.source_id,
                "claim": known[0].response if known else make_text_placeholder(dataset, number),
                "doc": describe_ragtruth_response(*known)["doc"] if known else None,
                "claim_id": ragtruth_claim_id(row.response_id),
                "label": 1 - row.hallucinated,
            }
        )
    verdicts = [
        {"claim_id": ragtruth_claim_id(row.response_id), "evaluator": name, "score": 1 - score}
        for row in rows
        for name, score in row.scores.items()
        if score is not None
    ]
    detectors = {name for row in rows for name in row.scores}
    notes = []
    if missing := len(rows) * len(detectors) - len(verdicts):
        notes.append(f"{format_count(missing, 'score')} missing: those claims are unscored")
    without = sum(row.response_id not in texts for row in rows)
    if texts and without:
        notes.append(f"{format_count(without, 'claim')} with scores but without a text")
    return Conversion.from_rows(claims, verdicts, source="ragtruth-scores", notes=notes)


def _read_ragtruth_predictions(path: Path, text_paths: Sequence[Path]) -> list[RagTruthDetectorRow]:
    """The detectors' scores by response: ``row_index`` is a place among RAGTruth's test responses in file order."""
    responses_path = next((one for one in text_paths if one.name.startswith("response.jsonl")), None)
    if responses_path is None:
        message = "row_index counts the test responses of RAGTruth's response.jsonl, which is not given"
        raise InputError(str(path), [Problem(f"{message}: add --option text=published:ragtruth")])
    tests = [
        one
        for one in read_dataset_source_rows(responses_path, RagTruthResponse, is_counted=True)
        if one.split == "test"
    ]
    scores: dict[int, dict[str, float]] = {}
    first: dict[int, RagTruthPredictionRow] = {}
    problems = []
    for number, row in enumerate(read_dataset_source_rows(path, RagTruthPredictionRow), start=1):
        known = first.setdefault(row.row_index, row)
        if row.system in scores.setdefault(row.row_index, {}):
            problems.append(Problem(f"a second score of {row.system!r} for row_index {row.row_index}", number))
        elif row.row_index >= len(tests) or tests[row.row_index].source_id != row.source_id:
            found = tests[row.row_index].source_id if row.row_index < len(tests) else "none"
            message = f"expected the source of test response {row.row_index} ({found}), found {row.source_id}"
            problems.append(Problem(message, number, "source_id"))
        elif (known.y_true, known.task_type) != (row.y_true, row.task_type):
            problems.append(Problem(f"another label or task than earlier of row_index {row.row_index}", number))
        scores[row.row_index][row.system] = row.y_score
    if problems:
        raise InputError(str(path), problems)
    return [
        RagTruthDetectorRow(
            response_id=tests[index].response_id,
            source_id=row.source_id,
            task_type=row.task_type,
            system=tests[index].system,
            hallucinated=row.y_true,
            scores=dict(scores[index]),
        )
        for index, row in sorted(first.items())
    ]
