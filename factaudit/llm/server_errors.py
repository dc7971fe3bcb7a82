"""What does a server's HTTP error mean? For this request, for an attempt that may be repeated, or
for every request.

Models differ: some take no ``temperature``, some no log-probabilities, some want
``max_completion_tokens`` in the place of ``max_tokens``. Nothing is guessed from a model's name.
The first refusal of a parameter (HTTP 400 or 422) costs nothing; it is remembered in the cache for
the model and its server, and what was named once is not sent again.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from factaudit.errors import FactauditError
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply
from factaudit.llm.store import NOT_BILLED, ReplyStore

_CONTEXT_LENGTH_PATTERN = re.compile(
    r"context.?(length|size|window)|maximum context|exceeds? .{0,30}context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_CONTENT_FILTER_PATTERN = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE
)
_LIMIT, _LIMIT_WITH_THOUGHTS = "max_tokens", "max_completion_tokens"
#: A model that wants the latter counts its thoughts in it: they come on top of the answer.
_THOUGHT_TOKENS = 4096
#: Parameters that are of no use without another one, whose refusal takes them along.
_DEPENDENT_PARAMS = {"logprobs": ("top_logprobs",)}
#: No words of ordinary language. Any other name ("stop", "user") must stand in quotes to be meant.
_TECHNICAL_NAMES = re.compile(r"\w+_\w+|logprobs|temperature|seed")
_MAX_RETRY_AFTER = 600.0

_log = logging.getLogger("factaudit.llm")


@dataclass(frozen=True)
class ServerAttemptFailure:
    """One attempt that came to nothing, and may be worth repeating.

    status: what it counts as (`factaudit.llm.store`). retry_after: seconds, where the server says
    so. unreached: there
    is no server. refused_params: the model does not take these parameters.
    """

    reason: str
    status: str = NOT_BILLED
    retry_after: float | None = None
    unreached: bool = False
    refused_params: tuple[str, ...] = ()


class PermanentServerError(FactauditError):
    """What would befall every request: a key refused, no such model, an account without credit."""


def parse_server_error_response(
    status: int,
    headers: Mapping[str, str],
    body: str,
    *,
    has_answered: bool,
    sent_params: Iterable[str] = (),
) -> ChatReply | ServerAttemptFailure:
    """What an HTTP error means: a reply that says so, or a failure that may pass.

    ``has_answered``: the server has answered other requests. ``sent_params``: what the request's
    body had. Raises `PermanentServerError` for what no request will get past; the caller adds which
    server and model.
    """
    message = _find_error_message(body)
    said = f"HTTP {status}: {message}"
    if "insufficient_quota" in body:
        raise PermanentServerError(f"the account has no credit left ({message})")
    if status == 429 and "request too large" not in body.lower():
        return ServerAttemptFailure(said, retry_after=_parse_retry_after(headers))
    if _CONTEXT_LENGTH_PATTERN.search(body) or status in (413, 429):
        return ChatReply("skipped", error=f"the prompt is longer than the model's context ({said})")
    if status in (408, 409) or status >= 500:
        return ServerAttemptFailure(said, retry_after=_parse_retry_after(headers))
    if _CONTENT_FILTER_PATTERN.search(body):
        return ChatReply("refused", said, finish_reason="content_filter")
    if status in (400, 422) and (refused := find_refused_params(body, sent_params)):
        return ServerAttemptFailure(said, refused_params=refused)
    # Where others were answered, a 403 is this request's: a gateway that does not like a document.
    if status in (401, 404) or (status == 403 and not has_answered) or '"unsupported_' in body:
        raise PermanentServerError(f"refuses every request: {said}")
    return ChatReply("error", error=said)


def _find_error_message(body: str) -> str:
    """What an error body says, in any of the shapes that servers use."""
    try:
        found: Any = parse_json_file_text(body.removeprefix("\ufeff"))
        while isinstance(found, dict | list):  # {"error": {"message": ...}}, [{"msg": ...}]
            inner = (
                found
                if isinstance(found, list)
                else [found.get(key) for key in ("error", "message", "detail", "msg")]
            )
            found = next(filter(None, inner), str(found))
    except (ValueError, RecursionError):
        found = body.strip()
    return str(found)[:300] or "no message"


def _parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After``; at most ten minutes. A date
    there is not read."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        else:
            seconds = float(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return min(max(seconds, 0.0), _MAX_RETRY_AFTER) if math.isfinite(seconds) else None


def find_refused_params(body: str, sent: Iterable[str]) -> tuple[str, ...]:
    """The parameters among those sent that the body of an error names.

    >>> body = '{"error": "logprobs and \\'stop\\' are not supported"}'
    >>> find_refused_params(body, ["logprobs", "seed", "stop"])
    ('logprobs', 'stop')
    """
    named = re.search(r'"param":\s*"(\w+)', body)
    droppable = [name for name in sent if name not in ("model", "messages")]
    if named is not None and named[1] in droppable:
        return (named[1],)
    return tuple(name for name in droppable if _is_named(name, body))


def _is_named(name: str, body: str) -> bool:
    quote = r"" if _TECHNICAL_NAMES.fullmatch(name) else r"['\"`‘“]"
    return (
        re.search(rf"{quote}(?<![\w-]){name}(?![\w-]){quote and '[^a-z]'}", body, re.IGNORECASE)
        is not None
    )


class RefusedParams:
    """The parameters that one model of one server refuses."""

    def __init__(self, server: str, model: str, cache: ReplyStore | None) -> None:
        self._server, self._model, self._cache = server, model, cache
        self.names = set(() if cache is None else cache.list_refused_params(server, model))

    def add(self, names: Iterable[str]) -> None:
        """Remember further ones, and say so once."""
        for name in set(names) - self.names:
            self.names.add(name)
            instead = ""
            if name == _LIMIT and _LIMIT_WITH_THOUGHTS not in self.names:
                instead = (
                    f"; {_LIMIT_WITH_THOUGHTS} is sent in its place, {_THOUGHT_TOKENS:,} higher for"
                    " its thoughts"
                )
            _log.warning(
                "%s refuses the parameter %s, which is no longer sent%s", self._model, name, instead
            )
            if self._cache is not None:
                self._cache.add_refused_param(self._server, self._model, name)

    def adapt_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request without what is refused; one limit of tokens takes the place of the
        other."""
        adapted = dict(body)
        for limit, other, more in (
            (_LIMIT, _LIMIT_WITH_THOUGHTS, _THOUGHT_TOKENS),
            (_LIMIT_WITH_THOUGHTS, _LIMIT, 0),
        ):
            if limit in self.names and limit in body and other not in self.names:
                adapted.setdefault(other, body[limit] + more)
        for name in self.names:
            for each in (name, *_DEPENDENT_PARAMS.get(name, ())):
                adapted.pop(each, None)
        return adapted
