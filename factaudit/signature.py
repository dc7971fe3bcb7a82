"""How exactly was a figure computed? One line says it, modelled on the signatures of sacrebleu.

A signature is ``name|key:value|key:value``: it can be compared as a string, read by a person, and
put in a paper.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def make_signature(name: str, settings: Mapping[str, Any]) -> str:
    """``name|key:value|...`` with sorted keys. Values that are not plain words or numbers are
    written as compact JSON.

    >>> make_signature("rouge2", {"threshold": 0.5, "stemmer": False})
    'rouge2|stemmer:false|threshold:0.5'
    """
    return "|".join(
        [name, *(f"{key}:{_format_signature_value(settings[key])}" for key in sorted(settings))]
    )


def _format_signature_value(value: Any) -> str:
    if isinstance(value, str) and value and not set(value) & set('|:"\n'):
        return value
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)


def hash_texts(*parts: str | bytes | None, length: int = 16) -> str:
    """A stable hexadecimal hash of a sequence of texts. None and "" give different hashes, and so
    do ("ab", "c") and ("a", "bc")."""
    hashed = hashlib.sha256()
    for part in parts:
        if part is None:
            hashed.update(b"\xff")
            continue
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.hexdigest()[:length]


def compute_file_checksum(path: Path) -> str:
    """SHA-256 of a file's bytes, as ``sha256:<hex>``, read in blocks."""
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
