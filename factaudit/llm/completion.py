"""What a chat completion says: the text, its tokens and what it cost."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from factaudit.llm.errors import Failure
from factaudit.llm.replies import CUT_REASONS
from factaudit.llm.types import Reply, Token

#: A text longer than this (characters) is no answer that anybody asked for, and is not stored.
MAX_TEXT = 10_000_000

_log = logging.getLogger("factaudit.llm")

#: Other servers' names of a reply that a filter took away.
_FILTERED = ("content_filter", "safety", "recitation", "prohibited_content", "blocklist")


def read_completion(text: str) -> Reply | Failure:
    """The reply in the body of an HTTP 200; a body that is no chat completion is a failure that may pass."""
    try:
        data = _parsed(text)
        choice = data["choices"][0]
        message = choice["message"]
        content, refusal = _text(message.get("content")), message.get("refusal")
        finish = choice.get("finish_reason") or "stop"
        usage = data.get("usage") or {}
        tokens = _tokens(choice.get("logprobs"))
        counts = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
        model, fingerprint = _name(data.get("model")), _name(data.get("system_fingerprint"))
        if not isinstance(finish, str):
            raise TypeError("finish_reason is not text")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        return Failure(f"not a chat completion ({error!r}): {text[:200]}", malformed=True, usage=_usage(text))
    finish = finish if finish.lower() not in _FILTERED else "content_filter"
    if refusal or finish == "content_filter":
        content = refusal if isinstance(refusal, str) and refusal else content
        return Reply("refused", clean(_bounded(content)), finish, tokens, *counts, model=model, fingerprint=fingerprint)
    finish = "length" if finish.lower() in CUT_REASONS else finish
    if len(content) > MAX_TEXT:
        finish, tokens = "length", None
    return Reply("ok", clean(_bounded(content)), finish, tokens, *counts, model=model, fingerprint=fingerprint)


def _parsed(text: str) -> Any:
    try:
        return from_json(text)
    except ValueError:  # half a surrogate pair, or what no JSON is
        return json.loads(text)


def _bounded(text: str) -> str:
    if len(text) > MAX_TEXT:
        _log.warning("a reply of %s characters is cut after %s", f"{len(text):,}", f"{MAX_TEXT:,}")
    return text[:MAX_TEXT]


def _name(value: Any) -> str | None:
    return clean(value)[:200] if isinstance(value, str) and value else None


def _usage(text: str) -> tuple[int, int] | None:
    """The tokens that a body tells which is otherwise no completion."""
    try:
        usage = json.loads(text)["usage"]
        return int(usage["prompt_tokens"]), int(usage["completion_tokens"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _text(content: Any) -> str:
    """The text of a message; of one in parts (Mistral's, Anthropic's) those that are text, not thoughts or calls."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError(f"content is {type(content).__name__}")
    return "".join(part["text"] for part in content if part.get("type", "text") == "text")


def clean(text: str) -> str:
    """Half a surrogate pair, as a reply that was cut off may end in, can be neither stored nor printed."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """The tokens of a choice's log-probabilities; None where there are none, or not in the API's shape."""
    try:
        return tuple(
            Token(clean(item["token"]), float(item["logprob"]), _top(item.get("top_logprobs") or ()))
            for item in logprobs["content"]
        )
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def _top(alternatives: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    top: dict[str, float] = {}
    for item in alternatives:
        text, value = clean(item["token"]), float(item["logprob"])
        if (other := top.get(text)) is not None:
            # Two tokens may read the same (bytes that are no text): together they have the sum of both.
            value = max(value, other) + math.log1p(math.exp(-abs(value - other)))
        top[text] = value
    return top
