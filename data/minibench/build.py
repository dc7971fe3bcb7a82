"""Join source/*.jsonl into claims.jsonl.gz, one claim per line, and print the counts that README.md
shows.

Run it after any edit of the sources: python data/minibench/build.py
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def read_source(kind: str) -> list[dict[str, Any]]:
    """The rows of source/KIND-*.jsonl (``documents`` or ``responses``), files in name order."""
    paths = sorted((HERE / "source").glob(f"{kind}-*.jsonl"))
    return [
        json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()
    ]


def join() -> list[dict[str, Any]]:
    """One row per claim, with the columns of the claims table and ``error_type``, sorted by
    claim_id."""
    documents = {document["doc_id"]: document for document in read_source("documents")}
    rows = []
    for response in read_source("responses"):
        document = documents[response["doc_id"]]
        for number, claim in enumerate(response["claims"], start=1):
            row = {
                "claim_id": f"{response['response_id']}-{number}",
                "dataset": document["dataset"],
                "task": document["task"],
                "system": response["system"],
                "response_id": response["response_id"],
                "doc_id": response["doc_id"],
                "topic": response["topic"],
                "split": "dev",
                "claim": claim["claim"],
                "doc": document["text"],
                "label": claim["label"],
                "error_type": claim["error_type"],
            }
            rows.append(row)
    return sorted(rows, key=lambda row: row["claim_id"])


def write(rows: list[dict[str, Any]], path: Path) -> None:
    """Write rows as gzipped JSONL whose header holds no file name and no time, so that equal rows
    give equal bytes."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
        for row in rows:
            packed.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))


def counts(rows: list[dict[str, Any]]) -> str:
    """The three Markdown tables of README.md: claims by dataset, by system, and error types by
    dataset."""
    return "\n\n".join([_table("dataset", rows), _table("system", rows), _error_types(rows)])


def _table(column: str, rows: list[dict[str, Any]]) -> str:
    lines = [
        (
            f"| {column} | documents | over 1,000 words | responses | claims | unattributable |"
            " error rate |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for group in [*sorted({row[column] for row in rows}), "all"]:
        mine = [row for row in rows if group in ("all", row[column])]
        documents = {row["doc_id"]: len(row["doc"].split()) for row in mine}
        long = sum(words > 1000 for words in documents.values())
        responses = len({row["response_id"] for row in mine})
        wrong = sum(row["label"] == 0 for row in mine)
        cells = (
            group,
            len(documents),
            long,
            responses,
            len(mine),
            wrong,
            f"{wrong / len(mine):.1%}",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _error_types(rows: list[dict[str, Any]]) -> str:
    seen = Counter((row["error_type"], row["dataset"]) for row in rows if row["label"] == 0)
    datasets = sorted({row["dataset"] for row in rows})
    lines = [
        f"| error type | {' | '.join(datasets)} | all |",
        "|---|" + "--:|" * (len(datasets) + 1),
    ]
    for error in sorted({error for error, _ in seen}):
        numbers = [seen[error, dataset] for dataset in datasets]
        lines.append("| " + " | ".join(map(str, [error, *numbers, sum(numbers)])) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    claims = join()
    write(claims, HERE / "claims.jsonl.gz")
    print(counts(claims))
