"""How a request gets to the server and its answer back: the SDK's clients, kept open for as long as they are used."""

from __future__ import annotations

import asyncio
import base64
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

from factaudit.errors import FactauditError
from factaudit.llm.errors import Failure, redact
from factaudit.llm.settings import LLMSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import AsyncOpenAI, OpenAI


class Answer(NamedTuple):
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    text: str


class Transport:
    """The way to one server. Nothing is looked up, connected or started before the first request.

    ``OPENAI_BASE_URL`` stands in for an address that the settings do not give, and may hold a password.
    """

    def __init__(self, settings: LLMSettings, api_key: str | None = None) -> None:
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._settings = settings
        self._local = settings.local_model
        self._api_key = api_key
        self._openai: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()

    def opened(self) -> None:
        """Begin in the event loop that runs now: what waits belongs to the loop that it first waited in."""
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections, and stop a local server."""
        if self._openai is not None:
            await self._openai.close()
            self._openai = None
        if self._local is not None:
            self._local.stop()

    async def post(self, body: dict[str, Any]) -> Answer | Failure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        import openai

        if (client := self._openai) is None:
            async with self._connecting:
                client = self._openai = self._openai or await self._connect()
        timeout = self._settings.timeout
        try:
            # The SDK's typed models cost more than all the rest of a call, and fail on what is not of their shape.
            async with asyncio.timeout(timeout):
                return Answer(200, {}, await client.post("/chat/completions", cast_to=str, body=body))
        except openai.APIStatusError as error:
            return Answer(error.response.status_code, error.response.headers, error.response.text)
        except TimeoutError:
            return Failure(f"no answer within {timeout:g} seconds", timed_out=True)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            # By name: the transport is httpx or httpx2 as the SDK has it, and calls a refused connection a timeout, and
            # one that the server closed after it was sent a request, too.
            closed = type(cause.__cause__).__name__ == "ServerDisconnectedError"
            unreached = not closed and type(cause).__name__ in ("ConnectError", "ConnectTimeout")
            timed_out = isinstance(error, openai.APITimeoutError) and not (unreached or closed)
            reason = self.redact(f"connection: {type(cause).__name__}: {cause}")
            return Failure(reason, unreached=unreached, timed_out=timed_out, dropped=not (unreached or timed_out))
        except ValueError as error:  # a body that its declared encoding does not fit
            return Failure(f"unreadable answer: {self.redact(str(error))}", malformed=True)

    def sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        from openai import OpenAI

        return OpenAI(**self._access(), timeout=self._settings.timeout, max_retries=4)

    def api_key(self) -> str:
        """The key; servers other than OpenAI's often need none. Raises `FactauditError` where OpenAI's is missing."""
        key = self._api_key or os.environ.get(self._settings.api_key_env)
        if not key and (self.base_url is None or urlsplit(self.base_url).hostname == "api.openai.com"):
            name, model = self._settings.api_key_env, self._settings.model
            raise FactauditError(f"model {model!r} needs a key: set {name}, or give base_url for another server")
        return key or "none"

    def server(self) -> str:
        """The server's address without user, password or query."""
        if self.base_url is None:
            return "https://api.openai.com/v1"
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def redact(self, text: str) -> str:
        """A text without the key, and without what looks like one."""
        return redact(text, self._api_key, os.environ.get(self._settings.api_key_env))

    async def _connect(self) -> AsyncOpenAI:
        import openai

        # The aiohttp transport carries more than twice the calls per second of the default one.
        http: Any = None
        with suppress(AttributeError, RuntimeError):  # an older SDK, or no aiohttp: slower, and otherwise the same
            http = openai.DefaultAioHttpClient(timeout=self._settings.timeout)
        if self._local is None:
            access = self._access()
        else:
            access = {"api_key": "none", "base_url": await asyncio.to_thread(self._local.start)}
        return openai.AsyncOpenAI(**access, max_retries=0, timeout=self._settings.timeout, http_client=http)

    def _access(self) -> dict[str, Any]:
        """Where the server is and what opens it, as the SDK's clients take it."""
        netloc = urlsplit(self.base_url or "").netloc
        if "@" not in netloc:
            return {"api_key": self.api_key(), "base_url": self.base_url}
        # The HTTP client writes every address into its log: a password goes the way of a key.
        password = base64.b64encode(unquote(netloc.rpartition("@")[0]).encode()).decode()
        return {
            "api_key": self.api_key(),
            "base_url": self.server(),
            "default_headers": {"Authorization": f"Basic {password}"},
        }
