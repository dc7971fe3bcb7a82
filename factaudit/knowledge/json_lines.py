"""Lines of JSON, as files of pages and of responses have them: what is wrong with a line is said in one way."""

from __future__ import annotations

import json
from typing import Any

from factaudit.files import parse_json_file_text


def parse_knowledge_json_line(line: bytes, number: int) -> dict[str, Any]:
    """The object on a line; half of a surrogate pair in a text becomes "?". number: the line's, from 1.

    Raises `ValueError` with what is wrong.
    """
    try:
        row = parse_json_file_text(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text") from None
    except json.JSONDecodeError as error:
        problem = "not JSON" if line.endswith(b"\n") else "the line is cut off"
        raise ValueError(f"{problem}: {error.msg} at character {error.pos + 1}") from None
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, found {type(row).__name__}")
    return replace_surrogates_in_knowledge_json(row)


def replace_surrogates_in_knowledge_json(value: Any) -> Any:
    """A JSON value whose texts can be written: half of a surrogate pair, which JSON can escape, becomes "?"."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [replace_surrogates_in_knowledge_json(one) for one in value]
    if isinstance(value, dict):
        return {key: replace_surrogates_in_knowledge_json(one) for key, one in value.items()}
    return value
