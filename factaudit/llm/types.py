"""What is asked of a language model and what comes back, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Message = Mapping[str, str]  # {"role": "system" | "user" | "assistant", "content": ...}


@dataclass(frozen=True)
class Request:
    """One chat request. ``params`` are the sampling parameters as the API names them (temperature, max_tokens, ...)."""

    messages: tuple[Message, ...]
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Token:
    """One token of a reply with its log-probability and, where asked for, the likeliest alternatives there."""

    text: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """What became of one request. ``model`` and ``fingerprint``: what answered it, as the server says.

    ``status`` is one of `factaudit.tables.STATUSES`: ok (``text`` is the model's), refused (a refusal or a content
    filter), error (gave up; ``error`` says why), skipped (never sent: the money limit was reached, or the prompt is
    longer than the model's context). Only an "ok" or "refused" reply is ever cached.
    """

    status: str
    text: str = ""
    finish_reason: str | None = None
    tokens: tuple[Token, ...] | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False
    error: str | None = None
    model: str | None = None
    fingerprint: str | None = None


class LLM(Protocol):
    """The one method that engines and evaluators use; the client, the local server and the tests' doubles have it."""

    @property
    def signature(self) -> str:
        """Model, sampling parameters and revision on one line; never a key or an address with one."""
        ...

    async def ask(self, request: Request) -> Reply:
        """Send one request; bounded, retried and cached inside. Never raises for what goes wrong with one request."""
        ...
