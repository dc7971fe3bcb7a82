"""What does a server's HTTP error mean? For this request, for an attempt that may be repeated, or for every request.

Models differ: some take no ``temperature``, some no log-probabilities, some want ``max_completion_tokens`` in the place
of ``max_tokens``. Nothing is guessed from a model's name. The first refusal of a parameter (HTTP 400 or 422) costs
nothing; it is remembered in the cache for the model and its server, and what was named once is not sent again.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from factaudit.errors import FactauditError
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply
from factaudit.llm.store import ReplyStore

_CONTEXT_LENGTH_PATTERN = re.compile(
    r"context.?(length|size|window)|maximum context|exceeds? .{0,30}context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_CONTENT_FILTER_PATTERN = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE
)
_API_KEY_PATTERN = re.compile(r"\b(sk|key|hf|gsk)[-_][\w*.-]{6,}")
#: What every request needs.
_NEEDED_PARAMS = ("model", "messages")
_LIMIT, _LIMIT_WITH_THOUGHTS = "max_tokens", "max_completion_tokens"
#: A model that wants the latter counts its thoughts in it: they come on top of the answer.
_THOUGHT_TOKENS = 4096
#: What is of no use without another parameter.
_DEPENDENT_PARAMS = {"logprobs": ("top_logprobs",), "stream": ("stream_options",)}
_TECHNICAL_WORDS = ("logprobs", "temperature", "seed")
_REFUSAL_WORDS = re.compile(
    r"unsupported|not\s+(?:\w+\s+)?support|n['’]t\s+support|unrecogni[sz]ed|unknown|not\s+(?:\w+\s+)?(?:permitted|allowed"
    r"|available|valid|accepted)|unexpected|invalid|deprecated|extra|must\b|should\s+be|only|too\s+large|cannot|can['’]t",
    re.IGNORECASE,
)

_log = logging.getLogger("factaudit.llm")


@dataclass(frozen=True)
class ServerAttemptFailure:
    """One attempt that may be worth repeating, ``retry_after`` so many seconds where the server says so.

    malformed: an answer came that is none, and was paid for; ``billed_tokens`` has its tokens where they could be read.
    unreached: no server. timed_out, dropped: it was sent, and nobody knows what became of it. refused_params: the model
    does not take these parameters.
    """

    reason: str
    retry_after: float | None = None
    malformed: bool = False
    unreached: bool = False
    timed_out: bool = False
    dropped: bool = False
    billed_tokens: tuple[int, int] | None = None
    refused_params: tuple[str, ...] = ()

    @property
    def status(self) -> str:
        """How the store has it (`factaudit.llm.store`)."""
        told = {"malformed": self.malformed, "timed out": self.timed_out, "dropped": self.dropped}
        return next((status for status, holds in told.items() if holds), "not billed")


class PermanentServerError(FactauditError):
    """What would befall every request: a key refused, no such model, an account without credit."""


def parse_server_error_response(
    status: int, headers: Mapping[str, str], body: str, *, has_answered: bool, sent_params: Iterable[str] = ()
) -> ChatReply | ServerAttemptFailure:
    """What an HTTP error means: a reply that says so, or a failure that may pass.

    ``has_answered``: the server has answered other requests. ``sent_params``: what the request's body had. Raises
    `PermanentServerError` for what no request will get past; the caller adds which server and model.
    """
    message, code, param = _parse_server_error_body(body)
    named = f"{code} {message}"
    said = f"HTTP {status}: {message}"
    if "insufficient_quota" in code:
        raise PermanentServerError(f"the account has no credit left ({message})")
    if status == 429 and not re.search("request too large", message, re.IGNORECASE):
        return ServerAttemptFailure(said, _parse_server_retry_after(headers))
    if _CONTEXT_LENGTH_PATTERN.search(named) or status == 413 or status == 429:
        return ChatReply("skipped", error=f"the prompt is longer than the model's context ({said})")
    if status in (408, 409) or status >= 500:
        return ServerAttemptFailure(said, _parse_server_retry_after(headers))
    if _CONTENT_FILTER_PATTERN.search(named):
        return ChatReply("refused", said, finish_reason="content_filter")
    if refused := find_refused_params(status, message, param, sent_params):
        return ServerAttemptFailure(said, refused_params=refused)
    if code in ("unsupported_parameter", "unsupported_value"):  # of nothing that could be left out
        raise PermanentServerError(f"refuses every request: {said}")
    # Where others were answered, a 403 is this request's: a gateway that does not like a document.
    if status in (401, 404) or (status == 403 and not has_answered):
        raise PermanentServerError(f"refuses every request: {said}")
    return ChatReply("error", error=said)


def redact_keys_in_server_error(text: str, *keys: str | None) -> str:
    """A text without keys: these, and whatever looks like one."""
    for key in keys:
        if key:
            text = text.replace(key, "[key]")
    return _API_KEY_PATTERN.sub("[key]", text)


def _parse_server_error_body(body: str) -> tuple[str, str, object]:
    """The message, the code(s) and the parameter that an error body names, in any of the shapes that servers use."""
    try:
        data = parse_json_file_text(body.removeprefix("\ufeff"))
    except ValueError:
        return body.strip()[:300] or "no message", "", None
    error = data.get("error", data) if isinstance(data, dict) else data
    detail = error.get("detail") if isinstance(error, dict) else error
    if isinstance(detail, list) and detail and isinstance(detail[0], dict):
        # FastAPI's: [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
        place = [part for part in detail[0].get("loc") or () if isinstance(part, str) and part != "body"]
        return str(detail[0].get("msg") or body)[:300], "", place[0] if place else None
    if not isinstance(error, dict):
        return str(error)[:300], "", None
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    code = next((str(c) for c in codes[:1] if isinstance(c, str)), "") or " ".join(str(c) for c in codes[1:] if c)
    return str(error.get("message") or error.get("detail") or body)[:300], code, error.get("param")


def _parse_server_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date); at most ten minutes."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (value := headers.get("retry-after")) is None:
            return None
        elif re.fullmatch(r"\s*\d+(\.\d*)?\s*", value):
            seconds = float(value)
        else:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), 600.0) if math.isfinite(seconds) else None


def find_refused_params(status: int, message: str, named_param: object, sent: Iterable[str]) -> tuple[str, ...]:
    """The parameters among those sent that an HTTP error refuses: the one that it names as such, else those in its
    message.

    >>> find_refused_params(400, "logprobs and top_logprobs are not supported", None, ["logprobs", "seed"])
    ('logprobs',)
    """
    if status not in (400, 422):
        return ()
    droppable = [name for name in sent if name not in _NEEDED_PARAMS]
    if isinstance(named_param, str) and (named := re.split(r"[.\[]", named_param)[0]) in droppable:
        return (named,)
    if not _REFUSAL_WORDS.search(message):
        return ()
    return tuple(name for name in droppable if _is_named(name, message))


def _is_named(name: str, message: str) -> bool:
    if "_" in name or name in _TECHNICAL_WORDS:
        pattern = rf"(?<![\w.-]){re.escape(name)}(?![\w-])"
    else:  # an ordinary word ("stop", "user") must stand in quotes, lead the message, or be called a parameter
        pattern = rf"(?:['\"`‘“]|\A\W*|(?:parameter|argument|field|property)s?\W+){re.escape(name)}\b"
    return re.search(pattern, message, re.IGNORECASE) is not None


class RefusedParams:
    """The parameters that one model of one server refuses."""

    def __init__(self, server: str, model: str, cache: ReplyStore | None) -> None:
        self._server, self._model, self._cache = server, model, cache
        self._names: set[str] | None = None

    @property
    def names(self) -> set[str]:
        if self._names is None:
            self._names = set(() if self._cache is None else self._cache.list_refused_params(self._server, self._model))
        return self._names

    def add(self, names: Iterable[str]) -> None:
        """Remember further ones, and say so once."""
        for name in names:
            if name in self.names:
                continue
            self.names.add(name)
            instead = ""
            if name == _LIMIT and _LIMIT_WITH_THOUGHTS not in self.names:
                instead = f"; {_LIMIT_WITH_THOUGHTS} is sent in its place, {_THOUGHT_TOKENS:,} higher for its thoughts"
            _log.warning("%s refuses the parameter %s, which is no longer sent%s", self._model, name, instead)
            if self._cache is not None:
                self._cache.add_refused_param(self._server, self._model, name)

    def adapt_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request without what is refused."""
        refused = self.names
        if not refused:
            return dict(body)
        adapted = dict(body)
        if _LIMIT in refused and _LIMIT in adapted and _LIMIT_WITH_THOUGHTS not in refused:
            adapted.setdefault(_LIMIT_WITH_THOUGHTS, adapted[_LIMIT] + _THOUGHT_TOKENS)
        elif _LIMIT_WITH_THOUGHTS in refused and _LIMIT_WITH_THOUGHTS in adapted and _LIMIT not in refused:
            adapted.setdefault(_LIMIT, adapted[_LIMIT_WITH_THOUGHTS])
        for name in refused:
            for each in (name, *_DEPENDENT_PARAMS.get(name, ())):
                adapted.pop(each, None)
        return adapted
