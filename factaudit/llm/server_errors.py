"""What a server's HTTP errors mean: for this request, for an attempt that may be repeated, or for every request."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from factaudit.errors import FactauditError
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply

_CONTEXT_LENGTH_PATTERN = re.compile(
    r"context.?(length|size|window)|maximum context|exceeds? .{0,30}context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_CONTENT_FILTER_PATTERN = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE
)
_API_KEY_PATTERN = re.compile(r"\b(sk|key|hf|gsk)[-_][\w*.-]{6,}")


@dataclass(frozen=True)
class ServerAttemptFailure:
    """One attempt that may be worth repeating, ``retry_after`` so many seconds where the server says so.

    malformed: an answer came that is none, and was paid for; ``billed_tokens`` has its tokens where they could be read.
    unreached: no server. timed_out, dropped: it was sent, and nobody knows what became of it.
    """

    reason: str
    retry_after: float | None = None
    malformed: bool = False
    unreached: bool = False
    timed_out: bool = False
    dropped: bool = False
    billed_tokens: tuple[int, int] | None = None

    @property
    def status(self) -> str:
        """How the ledger has it (`factaudit.llm.ledger`)."""
        told = {"malformed": self.malformed, "timed out": self.timed_out, "dropped": self.dropped}
        return next((status for status, holds in told.items() if holds), "not billed")


class PermanentServerError(FactauditError):
    """What would befall every request: a key refused, no such model, an account without credit."""


def parse_server_error_response(
    status: int, headers: Mapping[str, str], body: str, *, has_answered: bool
) -> ChatReply | ServerAttemptFailure:
    """What an HTTP error means: a reply that says so, or a failure that may pass.

    ``has_answered``: the server has answered other requests. Raises `PermanentServerError` for what no request will get
    past; the caller adds which server and model.
    """
    message, code = _parse_server_error_body(body)
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
    if code in ("unsupported_parameter", "unsupported_value"):
        raise PermanentServerError(
            f"refuses every request: {said} (a parameter set to null under 'params' is not sent)"
        )
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


def _parse_server_error_body(body: str) -> tuple[str, str]:
    """The message and the code(s) of an error body in any of the shapes that servers use."""
    try:
        data = parse_json_file_text(body.removeprefix("\ufeff"))
    except ValueError:
        return body.strip()[:300] or "no message", ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return str(error)[:300], ""
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    code = next((str(c) for c in codes[:1] if isinstance(c, str)), "") or " ".join(str(c) for c in codes[1:] if c)
    return str(error.get("message") or error.get("detail") or body)[:300], code


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
