"""ROUGE-2 precision and R2-diff against the rouge-score package, side by side in one run.

Every sentence of LFQA with the documents of its question, and every claim of WiCE; checks that both
give the same figures. rouge-score is called claim by claim, as it has to be; for R2-diff it gets
our chunks, made once per document.

    python tests/benchmarks/bench_overlap.py
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from rouge_score.rouge_scorer import RougeScorer
from table import clocked, report

from factaudit import convert
from factaudit.text.chunks import split_document_into_chunks
from factaudit.text.rouge_overlap import rouge2_chunk_differences, rouge2_precision

SHARED = Path(
    os.environ.get("FACTAUDIT_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


def main() -> None:
    if not (SHARED / "wice").is_dir():
        print(f"skipped: no reference data at {SHARED} (FACTAUDIT_SHARED_DATA)")
        return
    lfqa = sorted((SHARED / "lfqa").rglob("*.json"))
    tables = [convert("lfqa", lfqa).claims, convert("wice", [SHARED / "wice" / "dev.jsonl"]).claims]
    both = pd.concat(tables).dropna(subset=["claim", "doc"])
    claims, docs = both["claim"].tolist(), both["doc"].tolist()
    scorer = RougeScorer(["rouge2"], use_stemmer=False)

    def precision(claim: str, doc: str) -> float:
        return scorer.score(doc, claim)["rouge2"].precision

    def precisions() -> np.ndarray:
        return np.array([precision(claim, doc) for claim, doc in zip(claims, docs, strict=True)])

    def differences() -> np.ndarray:
        chunks = {doc: split_document_into_chunks(doc) for doc in docs}
        best = [
            max(precision(claim, part) for part in chunks[doc])
            for claim, doc in zip(claims, docs, strict=True)
        ]
        return precisions() - np.array(best)

    split_document_into_chunks("Punkt is read. Once.", 2)
    print(f"{len(claims):,} claims, {len(set(docs)):,} documents")
    for name, theirs, ours, least in (
        ("ROUGE-2 precision", precisions, rouge2_precision, 8),
        (
            "R2-diff",
            differences,
            lambda claims, docs: rouge2_chunk_differences(claims, docs, [500])[0],
            10,
        ),
    ):
        slow, fast = clocked(theirs, 3), clocked(partial(ours, claims, docs), 3)
        known = ~np.isnan(fast.result)
        apart = np.abs(fast.result[known] - slow.result[known]).max()
        report(f"{name}, LFQA and WiCE", fast, peer=("rouge-score", slow), ratio=least)
        print(f"largest difference {apart:.0e}")
        if apart > 1e-12:
            sys.exit(f"bench_overlap: {name} differs from rouge-score's")


if __name__ == "__main__":
    main()
