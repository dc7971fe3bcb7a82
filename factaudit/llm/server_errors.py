"""What does a server's HTTP error mean? For this request, for an attempt that may be repeated, or
for every request.

Models differ: some take no ``temperature``, some no log-probabilities, some want
``max_completion_tokens`` in the place of ``max_tokens``. Nothing is guessed from a model's name.
The first refusal of a parameter (HTTP 400 or 422) costs nothing; it is remembered in the cache for
the model and its server, and what was named once is not sent again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply
from factaudit.llm.store import NOT_BILLED, ReplyStore
from factaudit.text.display_text import mask_secrets_in_text

_CONTEXT_LENGTH_PATTERN = re.compile(
    r"context.?(length|size|window)|maximum context|exceeds? .{0,30}context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_TOO_LARGE_PATTERN = re.compile("request too large", re.IGNORECASE)
_CONTENT_FILTER_PATTERN = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE
)
#: What an error says, in the shapes of several servers: {"error": {"message": ...}}, {"detail":
#: [{"msg": ...}]}, {"error": ...}.
_MESSAGE_PATTERN = re.compile(r'"(?:message|msg|detail|error)":\s*"((?:[^"\\]|\\.)+)"')
_LIMIT, _LIMIT_WITH_THOUGHTS = "max_tokens", "max_completion_tokens"
#: A model that wants the latter counts its thoughts in it: they come on top of the answer.
_THOUGHT_TOKENS = 4096
#: No words of ordinary language. Any other name ("stop", "user") must stand in quotes to be meant.
_TECHNICAL_NAMES = re.compile(r"\w+_\w+|logprobs|temperature|seed")
_MAX_RETRY_AFTER = 600.0

_log = logging.getLogger("factaudit.llm")


@dataclass(frozen=True)
class ServerAttemptFailure:
    """One attempt that came to nothing, and may be worth repeating.

    status: what it counts as (`factaudit.llm.store`). retry_after: seconds, where the server says
    so. unreached: there is no server. refused_params: the model does not take these parameters.
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
    asked: str,
    hint: str,
    has_answered: bool,
    sent_params: Iterable[str] = (),
) -> ChatReply | ServerAttemptFailure:
    """What an HTTP error means: a reply that says so, or a failure that may pass.

    ``asked``: server and model, and ``hint``: what may help, as errors name them. ``has_answered``:
    the server has answered other requests. ``sent_params``: what the request's body had. Raises
    `PermanentServerError` for what no request will get past.
    """
    found = _MESSAGE_PATTERN.search(body)
    message = (found[1] if found else body.strip())[:300] or "no message"
    said = f"HTTP {status}: {message}"
    if 300 <= status < 400:
        to = headers.get("location", "").partition("?")[0].removesuffix("/chat/completions")
        raise PermanentServerError(
            f"{asked}: redirects to {mask_secrets_in_text(to)}, and prompts are not sent on: if"
            " that is the server you mean, set base_url to it"
        )
    if "insufficient_quota" in body:
        raise PermanentServerError(f"{asked}: the account has no credit left ({message})")
    # "Too many tokens" is a rate limit, too.
    is_too_long = _CONTEXT_LENGTH_PATTERN if status != 429 else _TOO_LARGE_PATTERN
    if status == 413 or is_too_long.search(body):
        error = f"the prompt is longer than the model's context ({said})"
        return ChatReply("skipped", error=error)
    if status in (408, 409, 429) or status >= 500:
        seconds = headers.get("retry-after", "")
        is_number = re.fullmatch(r"\d+(\.\d+)?", seconds)
        retry_after = min(float(seconds), _MAX_RETRY_AFTER) if is_number else None
        return ServerAttemptFailure(said, retry_after=retry_after)
    if _CONTENT_FILTER_PATTERN.search(body):
        return ChatReply("refused", said, finish_reason="content_filter")
    if status in (400, 422) and (refused := find_refused_params(body, sent_params)):
        return ServerAttemptFailure(said, refused_params=refused)
    # Where others were answered, a 403 is this request's: a gateway that does not like a document.
    if status in (401, 404) or (status == 403 and not has_answered) or '"unsupported_' in body:
        raise PermanentServerError(f"{asked}: refuses every request: {said}{hint}")
    return ChatReply("error", error=said)


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
    if _TECHNICAL_NAMES.fullmatch(name):
        return re.search(rf"(?<![\w-]){name}(?![\w-])", body, re.IGNORECASE) is not None
    return re.search(rf"['\"`‘“]{name}['\"`’”.]", body, re.IGNORECASE) is not None


class RefusedParams:
    """The parameters that one model of one server refuses."""

    def __init__(self, server: str, model: str, store: ReplyStore) -> None:
        self._server, self._model, self._store = server, model, store
        self.names = set(store.list_refused_params(server, model))

    def add(self, names: Iterable[str]) -> None:
        """Remember further ones, and say so once."""
        for name in set(names) - self.names:
            self.names.add(name)
            self._store.add_refused_param(self._server, self._model, name)
            _log.warning("%s refuses the parameter %s, which is no longer sent", self._model, name)

    def adapt_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request without what is refused; the other limit of tokens takes the place
        of ``max_tokens``."""
        adapted = dict(body)
        if _LIMIT in self.names and _LIMIT in body:
            adapted.setdefault(_LIMIT_WITH_THOUGHTS, body[_LIMIT] + _THOUGHT_TOKENS)
        # Of no use without the other one.
        dependent = ["top_logprobs"] if "logprobs" in self.names else []
        for name in [*self.names, *dependent]:
            adapted.pop(name, None)
        return adapted
