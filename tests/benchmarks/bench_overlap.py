"""ROUGE-2 precision and R2-diff against the rouge-score package, side by side in one run.

Every sentence of LFQA with the documents of its question, and every claim of WiCE. Prints a Markdown table and checks
that both give the same figures. rouge-score is called claim by claim, as it has to be; for R2-diff it gets our chunks,
made once per document.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

from factaudit.text.chunks import chunk
from factaudit.text.overlap import r2_diff, rouge2_precision

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


def timed(compute: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    """The least of several times in seconds, and the result."""
    best, result = math.inf, np.empty(0)
    for _ in range(repeats):
        start = time.perf_counter()
        result = compute()
        best = min(best, time.perf_counter() - start)
    return best, result


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
        chunks = {doc: chunk(doc) for doc in docs}
        best = [max(precision(claim, part) for part in chunks[doc]) for claim, doc in zip(claims, docs, strict=True)]
        return precisions() - np.array(best)

    chunk("Punkt is read. Once.", 2)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{len(claims):,} claims, {len(set(docs)):,} documents; {machine}")
    print("\n| | rouge-score | factaudit | times as fast | largest difference |\n|---|--:|--:|--:|--:|")
    for name, theirs, ours in (
        ("ROUGE-2 precision", precisions, rouge2_precision),
        ("R2-diff", differences, r2_diff),
    ):
        slow, expected = timed(theirs, options.repeats)
        fast, found = timed(partial(ours, claims, docs), options.repeats)
        known = ~np.isnan(found)
        apart = np.abs(found[known] - expected[known]).max()
        print(f"| {name} | {slow:.2f} s | {fast:.3f} s | {slow / fast:.1f} | {apart:.0e} |")
        if apart > 1e-12:
            sys.exit(f"bench_overlap: {name} differs from rouge-score's")


if __name__ == "__main__":
    main()
