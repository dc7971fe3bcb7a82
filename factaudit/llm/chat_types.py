"""What is a language model asked, and what comes back? Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ChatMessage = Mapping[str, str]  # {"role": "system" | "user" | "assistant", "content": ...}


@dataclass(frozen=True)
class ChatRequest:
    """One chat request. ``params`` are the sampling parameters as the API names them (temperature,
    max_tokens, ...)."""

    messages: tuple[ChatMessage, ...]
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ChatReplyToken:
    """One token of a reply with its log-probability and, where asked for, the likeliest
    alternatives there."""

    text: str
    logprob: float
    alternatives: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ChatReply:
    """What became of one request. ``model`` and ``fingerprint``: what answered it, as the server
    says.

    ``created``: of a cached reply, when the cache got it (Unix seconds).

    ``status`` is one of `factaudit.tables.STATUSES`: ok (``text`` is the model's), refused (a
    refusal or a content filter), error (gave up; ``error`` says why), skipped (never sent: the
    money limit was reached, or the prompt is longer than the model's context). Only an "ok" or
    "refused" reply is ever cached.
    """

    status: str
    text: str = ""
    finish_reason: str | None = None
    tokens: tuple[ChatReplyToken, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False
    error: str | None = None
    model: str | None = None
    fingerprint: str | None = None
    created: int | None = field(default=None, compare=False)
