"""Which JSON may a reply be? Schemas for ``response_format`` (OpenAI, vLLM, llama.cpp, Ollama)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: How the engines ask: in the prompts of the original; with a short one that small models follow, one fact a line; with
#: the short one and a JSON schema, by which the server keeps every reply in its form.
PROMPT_STYLES = ORIGINAL_PROMPTS, SHORT_PROMPTS, JSON_PROMPTS = "original", "short", "json"


def make_json_reply_params(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameter of a request whose reply is an object with one key.

    >>> make_json_reply_params("facts", {"type": "array"})["response_format"]["json_schema"]["schema"]["required"]
    ['facts']
    """
    whole = {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": key, "strict": True, "schema": whole}}}


def make_json_answer_params(answers: Sequence[str]) -> dict[str, Any]:
    """The parameter of a request whose reply is one of a few answers."""
    return make_json_reply_params("answer", {"type": "string", "enum": list(answers)})
