"""How is text of files, models and servers shown? Without commands to the terminal, without keys,
and on one line where it must be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Control characters but tab and line feed, and the marks that turn the direction of what follows.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def escape_control_characters(text: str) -> str:
    """The text with the characters that a terminal obeys, or that reorder a line, as their escapes
    (``\\x1b``)."""
    return _CONTROL_CHARACTERS.sub(
        lambda found: found[0].encode("unicode_escape").decode("ascii"), text
    )


def put_on_one_line(text: str) -> str:
    """The text with a single blank for each run of white space.

    >>> put_on_one_line("No.\\n\\nThe year  differs.")
    'No. The year differs.'
    """
    return " ".join(text.split())


def cut_text(text: str, length: int) -> str:
    """The text, or its beginning and dots where it has more characters than ``length``.

    >>> cut_text("supported", 20), cut_text("not supported", 8)
    ('supported', 'not s...')
    """
    return text if len(text) <= length else text[: length - 3] + "..."


#: Keys by their look, and where a name says that a key or password follows.
_SECRET_PATTERNS = (
    # Of hf only with a low line: names of models end in "-hf", and those of files go on.
    re.compile(r"()\b(?:(?:sk|gsk|xai|pk)[-_]|hf_)[\w-]{16,}"),
    re.compile(r"(\bBearer\s+)[^\s'\"]{8,}", re.IGNORECASE),
    re.compile(r"([?&][\w-]*(?:key|token|secret|sig|password)=)[^&\s'\"#]+", re.IGNORECASE),
    re.compile(
        r"(\b(?:api[-_]?key|access[-_]?token|password)['\"]?\s*[=:]\s*['\"]?)[^\s'\",}\])]+",
        re.IGNORECASE,
    ),
    re.compile(r"(\w:/{1,2})[^/@\s]+(?=@)"),
)
_KEY_VARIABLE = re.compile(r"(?:_|^)(?:API_?KEY|TOKEN|SECRET|PASSWORD)$")


def mask_secrets_in_text(text: str) -> str:
    """The text with keys and passwords as ``***``: what looks like one, and what the environment
    has as one."""
    for name, value in os.environ.items():
        if len(value) >= 8 and _KEY_VARIABLE.search(name.upper()):
            text = text.replace(value, "***")
    for secret in _SECRET_PATTERNS:
        text = secret.sub(r"\1***", text)
    return text


def format_count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 claim``, ``1,200 claims``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def format_cached_reply_dates(call_rows: Iterable[Mapping[str, Any]]) -> str:
    """From when cached replies are; "" where none is dated.

    >>> format_cached_reply_dates([{"cached_from": "2026-01-02", "cached_until": "2026-01-05"}])
    'kept from 2026-01-02 to 2026-01-05'
    """
    rows = [row for row in call_rows if row.get("cached_from")]
    if not rows:
        return ""
    first, last = min(row["cached_from"] for row in rows), max(row["cached_until"] for row in rows)
    return f"kept on {first}" if first == last else f"kept from {first} to {last}"


def join_reasons(single_reasons: Iterable[str]) -> str | None:
    """Several reasons as one text; None where there is none."""
    return "; ".join(dict.fromkeys(filter(None, single_reasons))) or None
