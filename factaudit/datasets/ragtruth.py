"""RAGTruth: responses of six systems with hallucinated spans marked (Niu et al. 2024).

Files: ``dataset/response.jsonl`` and ``dataset/source_info.jsonl`` of ParticleMedia/RAGTruth. A
file of responses that bring their own ``passages`` (question answering) needs no source file.

Scores of detectors (P(hallucinated)) on its responses: ``results/unified_predictions.parquet`` of
rag-hallucination-detector, a row per detector (``system``) and response, beside ``response.jsonl``
of whose test split ``row_index`` counts the responses; or our own JSONL of {response_id, source_id,
task_type, system, hallucinated,
scores: {detector: P}}, which the demo ships. Neither has text: RAGTruth's files do, as further
sources or by ``text``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field

from factaudit.datasets.aggrefact_subsets import find_aggrefact_subset, find_dataset_task
from factaudit.datasets.conversion import VERDICTS, Conversion, expand_folders, reads
from factaudit.datasets.source_files import (
    BinaryLabel,
    PathsOption,
    Probability,
    SourceRow,
    parse_rows,
    read_rows,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table
from factaudit.tables.schema import make_text_placeholder, name_row_unit
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count
from factaudit.text.sentences import find_sentence_spans

FILES = ["response.jsonl", "source_info.jsonl"]
Task = Literal["QA", "Summary", "Data2txt"]


class _Span(SourceRow):
    start: int
    end: int


class _Response(SourceRow):
    response_id: str = Field(validation_alias=AliasChoices("id", "response_id"))
    source_id: str
    system: str = Field(validation_alias=AliasChoices("model", "system"))
    response: str
    labels: list[_Span]
    split: str | None = None
    quality: str | None = None
    question: str | None = None
    passages: str | None = None


class _Source(SourceRow):
    source_id: str
    task_type: Task
    source: str | None = None
    source_info: str | dict[str, Any]


def _make_shared_claim(response: _Response, source: _Source) -> dict[str, Any]:
    """What all claims of a response share; its document is the article, the passages, or the record
    as JSON.

    The data set is named by the source's own name (VC's four), by the task where the file does not
    say the source.
    """
    info = source.source_info
    record: dict[str, Any] = info if isinstance(info, dict) else {}
    is_asked = source.task_type == "QA" and isinstance(record.get("passages"), str)
    question = record.get("question")
    name = f"RAGTruth-{source.source or source.task_type}"
    subset = find_aggrefact_subset(name)
    return {
        "dataset": name if subset is None else subset.dataset,
        "task": find_dataset_task(name) or find_dataset_task(f"RAGTruth-{source.task_type}"),
        "system": response.system,
        "response_id": response.response_id,
        "doc_id": response.source_id,
        "split": response.split,
        "doc": (
            record["passages"]
            if is_asked
            else json.dumps(info, ensure_ascii=False)
            if record
            else info
        ),
        "question": question if isinstance(question, str) else None,
    }


@reads(
    "ragtruth",
    "RAGTruth's response.jsonl and source_info.jsonl (Niu et al. 2024)",
    "factaudit convert ragtruth response.jsonl source_info.jsonl --option level=sentence --out"
    " claims.parquet",
    FILES,
    options={
        "level": (
            "response (default), or sentence: a sentence is unattributable where it overlaps a span"
        ),
        "split": "only the responses of this split (train or test)",
    },
    marks=[
        "source_id labels quality response",
        "source_id task_type source_info",
        "source_id labels passages response",
    ],
)
def convert_ragtruth(
    sources: Sequence[Path],
    *,
    level: Literal["response", "sentence"] = "response",
    split: str | None = None,
) -> Conversion:
    """Whole responses, or their sentences, as claims.

    The datasets are RAGTruth-CNN/DM, RAGTruth-News, RAGTruth-MARCO and RAGTruth-Yelp, by the
    sources' field ``source`` (VC's four subsets); RAGTruth-Summary, RAGTruth-QA and
    RAGTruth-Data2txt, by the task, where it is missing. A response is attributable (1) when no span
    of it is marked; a sentence, when no marked span overlaps it by a character. Spans that RAGTruth
    calls ``implicit_true`` (true, but not in the source) count: they are unattributable. A
    response's ``claim_id`` is ``ragtruth:ID``, a sentence's ``ragtruth:ID:NUMBER``; ``question`` is
    an extra column.
    """
    found, notes = _read_responses(sources)
    chosen = [
        (response, shared) for response, shared in found if split is None or response.split == split
    ]
    if not chosen:
        names = ", ".join(sorted({str(response.split) for response, _ in found}))
        message = f"no response is left with split {split!r} (splits found: {names})"
        raise InputError(", ".join(map(str, sources)), [Problem(message)])
    if len(chosen) < len(found):
        notes.append(
            f"{format_count(len(found) - len(chosen), 'response')} left out: not of split {split!r}"
        )
    claims: list[dict[str, Any]] = []
    n_unplaced = 0
    for response, shared in chosen:
        text, claim_id = response.response, f"ragtruth:{response.response_id}"
        if level == "response":
            claims.append(
                shared | {"claim_id": claim_id, "claim": text, "label": int(not response.labels)}
            )
            continue
        sentences = find_sentence_spans(text)
        labels = _label_sentences(sentences, response.labels)
        n_unplaced += None in labels
        for number, ((start, end), label) in enumerate(zip(sentences, labels, strict=True)):
            claims.append(
                shared
                | {
                    "claim_id": f"{claim_id}:{number}",
                    "claim": text[start:end],
                    "label": label,
                }
            )
    if n_unplaced:
        notes.append(
            f"{format_count(n_unplaced, 'response')} with a span that overlaps no sentence: which"
            " of its sentences are meant is unknown, so they have no label"
        )
    return Conversion.from_claims("ragtruth", claims, notes)


def _read_responses(
    paths: Sequence[Path],
) -> tuple[list[tuple[_Response, dict[str, Any]]], list[str]]:
    """The responses of all files with what their claims share, and notes. Those without text are
    left out, and noted."""
    responses: list[tuple[Path, _Response]] = []
    infos: dict[str, _Source] = {}
    notes = []
    for path in paths:
        table = read_table(path)
        if "source_info" in table:
            infos |= {info.source_id: info for info in parse_rows(table, path, _Source)}
            continue
        read = parse_rows(table, path, _Response)
        with_text = [(path, row) for row in read if row.response.strip()]
        responses += with_text
        quality = Counter(row.quality for row in read if row.quality and row.quality != "good")
        notes += [
            f"{path.name}: {format_count(n, 'response')} marked {name}"
            for name, n in sorted(quality.items())
        ]
        if n_blank := len(read) - len(with_text):
            notes.append(f"{path.name}: {format_count(n_blank, 'response')} left out: no text")
    found = []
    for path, response in responses:
        info = infos.get(response.source_id)
        if info is None and response.passages is not None:
            own = {"question": response.question, "passages": response.passages}
            info = _Source(source_id=response.source_id, task_type="QA", source_info=own)
        if info is None:
            known = (
                "one of source_info.jsonl's"
                if infos
                else "a source, but no source_info.jsonl is given"
            )
            message = f"expected {known}, found {response.source_id!r}"
            leave_out_unreadable_row(
                path, Problem(message, response.position, "source_id", name_row_unit(path))
            )
        else:
            found.append((response, _make_shared_claim(response, info)))
    if not found:
        names = ", ".join(map(str, paths))
        raise InputError(
            names, [Problem("expected responses (response.jsonl), found none with text")]
        )
    return found, notes


def _label_sentences(
    sentences: Sequence[tuple[int, int]], spans: Sequence[_Span]
) -> list[int | None]:
    """1 or 0 per sentence (start, end); None where a marked span overlaps no sentence, so that it
    can't be placed."""
    hit = [[start < span.end and span.start < end for start, end in sentences] for span in spans]
    if not all(map(any, hit)):
        return [None] * len(sentences)
    return [int(not any(row[number] for row in hit)) for number in range(len(sentences))]


# Scores of detectors
# ------------------------------------------------------------


class _ScoredResponse(SourceRow):
    response_id: str
    source_id: str
    task_type: Task
    system: str
    hallucinated: BinaryLabel
    scores: dict[str, Probability | None]


class _Prediction(SourceRow):
    """One detector's P(hallucinated) of one response; ``row_index`` counts RAGTruth's test
    responses from 0."""

    system: str
    row_index: int = Field(ge=0)
    source_id: str
    task_type: Task
    y_true: BinaryLabel
    y_score: Probability


@reads(
    "ragtruth-scores",
    "RAGTruth responses with detectors' P(hallucinated): claims, and verdicts with score = 1 - P",
    "factaudit convert ragtruth-scores scores.jsonl --out claims.parquet --verdicts"
    " verdicts.parquet",
    ["*.jsonl", "*.jsonl.gz", "*.parquet"],
    options={"text": "files in RAGTruth's format that have the responses' text and documents"},
    marks=["response_id task_type hallucinated scores", "row_index task_type y_true y_score"],
)
def convert_ragtruth_scores(sources: Sequence[Path], *, text: PathsOption = ()) -> Conversion:
    """Responses as claims (1 where not hallucinated), and one verdict per detector and response.

    ``claim_id`` is ``ragtruth:ID``, so that the verdicts also fit the claims that ``ragtruth``
    makes. A detector without a score for a response has no verdict on it: the claim is unscored.
    """
    text_paths = [path for path in sources if path.name in FILES] + expand_folders(text, FILES)
    rows: list[_ScoredResponse] = []
    for path in sources:
        if path.suffix == ".parquet":
            rows += _read_predictions(path, text_paths)
        elif path not in text_paths:
            rows += read_rows(path, _ScoredResponse)
    if not rows:
        raise InputError(
            ", ".join(map(str, sources)),
            [Problem("expected detectors' scores beside RAGTruth's files")],
        )
    texts = {}
    if any(path.name != FILES[0] for path in text_paths):
        texts = {
            one.response_id: (one.response, shared["doc"])
            for one, shared in _read_responses(text_paths)[0]
        }
    claims: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        dataset = f"RAGTruth-{row.task_type}"
        text_of_claim, document = texts.get(
            row.response_id, (make_text_placeholder(dataset, number), None)
        )
        claims.append(
            {
                "claim_id": f"ragtruth:{row.response_id}",
                "dataset": dataset,
                "system": row.system,
                "response_id": row.response_id,
                "doc_id": row.source_id,
                "claim": text_of_claim,
                "doc": document,
                "label": 1 - row.hallucinated,
                VERDICTS: [
                    {"evaluator": name, "score": 1 - score}
                    for name, score in row.scores.items()
                    if score is not None
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
    """The detectors' scores by response: ``row_index`` is a place among RAGTruth's test responses
    in file order."""
    responses_path = next((one for one in text_paths if one.name.startswith(FILES[0])), None)
    if responses_path is None:
        message = (
            "row_index counts the test responses of RAGTruth's response.jsonl, which is not given"
        )
        raise InputError(str(path), [Problem(f"{message}: add --option text=published:ragtruth")])
    responses = read_rows(responses_path, _Response, is_counted=True)
    tests = [one for one in responses if one.split == "test"]
    found: dict[int, _ScoredResponse] = {}
    problems = []
    for row in read_rows(path, _Prediction):
        test = tests[row.row_index] if row.row_index < len(tests) else None
        if test is None or test.source_id != row.source_id:
            expected = "none" if test is None else test.source_id
            message = (
                f"expected the source of test response {row.row_index} ({expected}), found"
                f" {row.source_id}"
            )
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
            problems.append(
                Problem(
                    f"a second score of {row.system!r} for row_index {row.row_index}", row.position
                )
            )
        elif (own.hallucinated, own.task_type) != (row.y_true, row.task_type):
            message = f"another label or task than earlier of row_index {row.row_index}"
            problems.append(Problem(message, row.position))
        own.scores[row.system] = row.y_score
    if problems:
        raise InputError(str(path), problems)
    return [one for _, one in sorted(found.items())]
