"""One work list for several machines: each takes the documents whose hash falls to it, whatever the others do."""

from __future__ import annotations

import re

import pandas as pd

from factaudit.errors import UsageError
from factaudit.signature import hash_texts
from factaudit.tables.documents import encode_distinct_documents, iterate_document_text_blocks


def parse_claim_shard(text: str) -> tuple[int, int]:
    """``i/n``, the i-th of n parts, counted from 1. Raises `UsageError`.

    >>> parse_claim_shard("2/8")
    (2, 8)
    """
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    part, parts = map(int, found.groups()) if found else (0, 0)
    if not 1 <= part <= parts:
        raise UsageError(f"shard: expected i/n with i from 1 to n, e.g. 2/8, found {text!r}")
    return part, parts


def select_claim_shard(claims: pd.DataFrame, part: int, n_parts: int) -> pd.DataFrame:
    """The rows of a claims table that are the ``part``-th (from 1) of ``n_parts``; each row is in exactly one.

    A row's part hangs on its document alone (without one, on its claim_id): the claims of a document stay together,
    so that a server reads it once, and claims that are added move no others. Raises `UsageError` for an empty part.
    """
    of_text: dict[str, bool] = {}

    def mine(text: str) -> bool:
        if text not in of_text:
            of_text[text] = int(hash_texts("shard", text), 16) % n_parts == part - 1
        return of_text[text]

    numbers, texts = encode_distinct_documents(claims["doc"])
    of_document = [
        mine(text) for start, end in iterate_document_text_blocks(texts) for text in texts[start:end].to_pylist()
    ]
    owners = zip(numbers.tolist(), claims["claim_id"], strict=True)
    kept = [of_document[number] if number >= 0 else mine(claim_id) for number, claim_id in owners]
    if not any(kept):
        raise UsageError(f"shard {part}/{n_parts}: no document falls to it; take fewer parts than there are documents")
    return claims[kept].reset_index(drop=True)
