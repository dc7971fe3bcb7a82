"""RAGTruth's responses with several detectors' P(hallucinated): claims, and verdicts with score = 1 − P.

Files: ``results/unified_predictions.parquet`` of rag-hallucination-detector, a row per detector (``system``) and
response, beside RAGTruth's ``response.jsonl`` of whose test split ``row_index`` counts the responses; or our own JSONL
of {response_id, source_id, task_type, system, hallucinated, scores: {detector: P}}, which the demo ships. Neither has
text: RAGTruth's files do, as further sources or by ``text``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.conversion import VERDICTS, Conversion, expand_folders, reads
from factaudit.datasets.ragtruth import FILES, RagTruthResponse, Task, ragtruth_claim_id, read_ragtruth_responses
from factaudit.datasets.source_files import BinaryLabel, PathsOption, Probability, SourceRow, read_rows
from factaudit.errors import InputError, Problem
from factaudit.tables.schema import make_text_placeholder
from factaudit.text.display_text import format_count


class _ScoredResponse(SourceRow):
    response_id: str
    source_id: str
    task_type: Task
    system: str
    hallucinated: BinaryLabel
    scores: dict[str, Probability | None]


class _Prediction(SourceRow):
    """One detector's P(hallucinated) of one response; ``row_index`` counts RAGTruth's test responses from 0."""

    system: str
    row_index: int = Field(ge=0)
    source_id: str
    task_type: Task
    y_true: BinaryLabel
    y_score: Probability


@reads(
    "ragtruth-scores",
    "RAGTruth responses with detectors' P(hallucinated): claims, and verdicts with score = 1 - P",
    "factaudit convert ragtruth-scores scores.jsonl --out claims.parquet --verdicts verdicts.parquet",
    ["*.jsonl", "*.jsonl.gz", "*.parquet"],
    options={"text": "files in RAGTruth's format that have the responses' text and documents"},
    marks=["response_id task_type hallucinated scores", "row_index task_type y_true y_score"],
)
def convert_ragtruth_scores(sources: Sequence[Path], *, text: PathsOption = ()) -> Conversion:
    """Responses as claims (1 where not hallucinated), and one verdict per detector and response.

    ``claim_id`` is `ragtruth_claim_id`'s, so that the verdicts also fit the claims that ``ragtruth`` makes. A detector
    without a score for a response has no verdict on it: the claim is unscored.
    """
    text_paths = [path for path in sources if path.name in FILES] + expand_folders(text, FILES)
    rows: list[_ScoredResponse] = []
    for path in sources:
        if path.suffix == ".parquet":
            rows += _read_predictions(path, text_paths)
        elif path not in text_paths:
            rows += read_rows(path, _ScoredResponse)
    if not rows:
        raise InputError(", ".join(map(str, sources)), [Problem("expected detectors' scores beside RAGTruth's files")])
    texts = {}
    if any(path.name != FILES[0] for path in text_paths):
        texts = {one.response.response_id: one for one in read_ragtruth_responses(text_paths)[0]}
    claims: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        dataset = f"RAGTruth-{row.task_type}"
        known = texts.get(row.response_id)
        claims.append(
            {
                "claim_id": ragtruth_claim_id(row.response_id),
                "dataset": dataset,
                "system": row.system,
                "response_id": row.response_id,
                "doc_id": row.source_id,
                "claim": known.response.response if known else make_text_placeholder(dataset, number),
                "doc": known.document if known else None,
                "label": 1 - row.hallucinated,
                VERDICTS: [
                    {"evaluator": name, "score": 1 - score} for name, score in row.scores.items() if score is not None
                ],
            }
        )
    notes = []
    n_detectors = len({name for row in rows for name in row.scores})
    if n_missing := len(rows) * n_detectors - sum(len(row[VERDICTS]) for row in claims):
        notes.append(f"{format_count(n_missing, 'score')} missing: those claims are unscored")
    if texts and (n_without := len([row for row in rows if row.response_id not in texts])):
        notes.append(f"{format_count(n_without, 'claim')} with scores but without a text")
    return Conversion.from_claims("ragtruth-scores", claims, notes)


def _read_predictions(path: Path, text_paths: Sequence[Path]) -> list[_ScoredResponse]:
    """The detectors' scores by response: ``row_index`` is a place among RAGTruth's test responses in file order."""
    responses_path = next((one for one in text_paths if one.name.startswith(FILES[0])), None)
    if responses_path is None:
        message = "row_index counts the test responses of RAGTruth's response.jsonl, which is not given"
        raise InputError(str(path), [Problem(f"{message}: add --option text=published:ragtruth")])
    responses = read_rows(responses_path, RagTruthResponse, is_counted=True)
    tests = [one for one in responses if one.split == "test"]
    found: dict[int, _ScoredResponse] = {}
    problems = []
    for row in read_rows(path, _Prediction):
        test = tests[row.row_index] if row.row_index < len(tests) else None
        if test is None or test.source_id != row.source_id:
            expected = "none" if test is None else test.source_id
            message = f"expected the source of test response {row.row_index} ({expected}), found {row.source_id}"
            problems.append(Problem(message, row.position, "source_id"))
            continue
        own = found.setdefault(
            row.row_index,
            _ScoredResponse(
                response_id=test.response_id,
                source_id=row.source_id,
                task_type=row.task_type,
                system=test.system,
                hallucinated=row.y_true,
                scores={},
            ),
        )
        if row.system in own.scores:
            problems.append(Problem(f"a second score of {row.system!r} for row_index {row.row_index}", row.position))
        elif (own.hallucinated, own.task_type) != (row.y_true, row.task_type):
            message = f"another label or task than earlier of row_index {row.row_index}"
            problems.append(Problem(message, row.position))
        own.scores[row.system] = row.y_score
    if problems:
        raise InputError(str(path), problems)
    return [one for _, one in sorted(found.items())]
