"""What does a chat completion say? Its text, its tokens and its cost."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from factaudit.llm.answer_extraction import CUT_OFF_FINISH_REASONS
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, check_chat_logprobs
from factaudit.llm.server_errors import ServerAttemptFailure

#: Other servers' names of a reply that a filter took away.
_FILTER_FINISH_REASONS = ("content_filter", "safety", "recitation", "prohibited_content", "blocklist")


def parse_chat_completion(body: str) -> ChatReply | ServerAttemptFailure:
    """The reply in the body of an HTTP 200; a body that is no chat completion is a failure that may pass."""
    try:
        data = _parse_completion_body(body)
        choices = data["choices"]
        choice = next((one for one in choices if one.get("index") == 0), choices[0])
        message = choice["message"]
        content, refusal = _join_completion_text(message.get("content")), message.get("refusal")
        finish = choice.get("finish_reason") or "stop"
        usage = data.get("usage") or {}
        tokens = _parse_completion_logprobs(choice.get("logprobs"))
        counts = _parse_completion_token_counts(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0)
        model, fingerprint = _parse_model_name(data.get("model")), _parse_model_name(data.get("system_fingerprint"))
        if not isinstance(finish, str):
            raise TypeError("finish_reason is not text")
        check_chat_logprobs(tokens or ())
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError) as error:
        return ServerAttemptFailure(
            f"not a chat completion ({error!r}): {body[:200]}",
            malformed=True,
            billed_tokens=_parse_completion_tokens(body),
        )
    finish = finish if finish.lower() not in _FILTER_FINISH_REASONS else "content_filter"
    status = "refused" if refusal or finish == "content_filter" else "ok"
    if status == "refused":
        content = refusal if isinstance(refusal, str) and refusal else content
    elif finish.lower() in CUT_OFF_FINISH_REASONS:
        finish = "length"
    text = replace_reply_surrogates(content)
    return ChatReply(status, text, finish, tokens, *counts, model=model, fingerprint=fingerprint)


def _parse_completion_body(body: str) -> Any:
    body = body.removeprefix("\ufeff")
    try:
        return from_json(body)
    except ValueError:  # half a surrogate pair, or what no JSON is
        return json.loads(body)


def _parse_model_name(value: Any) -> str | None:
    return replace_reply_surrogates(value)[:200] if isinstance(value, str) and value else None


def _parse_completion_tokens(body: str) -> tuple[int, int] | None:
    """The tokens that a body tells which is otherwise no completion."""
    try:
        usage = _parse_completion_body(body)["usage"]
        return _parse_completion_token_counts(usage["prompt_tokens"], usage["completion_tokens"])
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
        return None


def _parse_completion_token_counts(prompt_tokens: Any, completion_tokens: Any) -> tuple[int, int]:
    counts = int(prompt_tokens), int(completion_tokens)
    if not all(0 <= count < 2**63 for count in counts):  # as SQLite holds them
        raise ValueError(f"no numbers of tokens: {counts}")
    return counts


def _join_completion_text(content: Any) -> str:
    """The text of a message; of one in parts (Mistral's, Anthropic's) those that are text, not thoughts or calls."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError(f"content is {type(content).__name__}")
    return "".join(part["text"] for part in content if part.get("type", "text") == "text")


def replace_reply_surrogates(text: str) -> str:
    """Half a surrogate pair, as a reply that was cut off may end in, can be neither stored nor printed."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _parse_completion_logprobs(logprobs: Any) -> tuple[ChatReplyToken, ...] | None:
    """The tokens of a choice's log-probabilities; None where there are none, or not in the API's shape."""
    try:
        return tuple(
            ChatReplyToken(
                replace_reply_surrogates(item["token"]),
                float(item["logprob"]),
                _merge_logprobs_of_equal_tokens(item.get("top_logprobs") or ()),
            )
            for item in logprobs["content"]
        )
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def _merge_logprobs_of_equal_tokens(alternatives: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    top: dict[str, float] = {}
    for item in alternatives:
        text, value = replace_reply_surrogates(item["token"]), float(item["logprob"])
        if (other := top.get(text)) is not None:
            # Two tokens may read the same (bytes that are no text): together they have the sum of both.
            value = max(value, other) + math.log1p(math.exp(-abs(value - other)))
        top[text] = value
    return top
