"""ROUGE-2 precision and R2-diff against the rouge-score package, side by side in one run.

Every sentence of LFQA with the documents of its question, and every claim of WiCE; checks that both give the same
figures. rouge-score is called claim by claim, as it has to be; for R2-diff it gets our chunks, made once per document.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
from rouge_score.rouge_scorer import RougeScorer
from table import clocked, report

from factaudit.text.chunks import split_document_into_chunks
from factaudit.text.rouge_overlap import rouge2_chunk_differences, rouge2_precision

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
#: Which documents each LFQA system's sentences are compared with.
LFQA = {
    "alpaca": "bing",
    "gpt3": "bing",
    "webgpt": "webgpt",
    "alpaca_wdoc": "webgpt",
    "gpt3_wdoc": "webgpt",
    "gpt3_whudoc": "human",
}


def read(shared: Path) -> tuple[list[str], list[str]]:
    """The claims and their documents."""
    documents: dict[tuple[str, int], str] = {}
    for kind in sorted(set(LFQA.values())):
        for row in json.loads((shared / "lfqa" / "docs" / f"docs-{kind}.json").read_text(encoding="utf-8")):
            documents[kind, row["question_id"]] = " ".join(doc["text"] for doc in row["docs"])
    claims, docs = [], []
    for system, kind in LFQA.items():
        path = shared / "lfqa" / "annotations" / f"annotations-{system}.json"
        for row in json.loads(path.read_text(encoding="utf-8")):
            claims += row["answers"]
            docs += [documents[kind, row["question_id"]]] * len(row["answers"])
    with (shared / "wice" / "dev.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            claims.append(row["claim"])
            docs.append(" ".join(row["evidence"]))
    return claims, docs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("FACTAUDIT_SHARED_DATA", SHARED)))
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many runs (default 3)")
    options = parser.parse_args()
    if not (options.data / "wice").is_dir():
        print(f"skipped: no reference data at {options.data} (--data FOLDER or FACTAUDIT_SHARED_DATA)")
        return
    claims, docs = read(options.data)
    scorer = RougeScorer(["rouge2"], use_stemmer=False)

    def precision(claim: str, doc: str) -> float:
        return scorer.score(doc, claim)["rouge2"].precision

    def precisions() -> np.ndarray:
        return np.array([precision(claim, doc) for claim, doc in zip(claims, docs, strict=True)])

    def differences() -> np.ndarray:
        chunks = {doc: split_document_into_chunks(doc) for doc in docs}
        best = [max(precision(claim, part) for part in chunks[doc]) for claim, doc in zip(claims, docs, strict=True)]
        return precisions() - np.array(best)

    split_document_into_chunks("Punkt is read. Once.", 2)
    print(f"{len(claims):,} claims, {len(set(docs)):,} documents")
    for name, theirs, ours, least in (
        ("ROUGE-2 precision", precisions, rouge2_precision, 8),
        ("R2-diff", differences, lambda claims, docs: rouge2_chunk_differences(claims, docs, [500])[0], 10),
    ):
        slow, fast = clocked(theirs, options.repeats), clocked(partial(ours, claims, docs), options.repeats)
        known = ~np.isnan(fast.result)
        apart = np.abs(fast.result[known] - slow.result[known]).max()
        report(f"{name}, LFQA and WiCE", fast, peer=("rouge-score", slow), ratio=least)
        print(f"largest difference {apart:.0e}")
        if apart > 1e-12:
            sys.exit(f"bench_overlap: {name} differs from rouge-score's")


if __name__ == "__main__":
    main()
