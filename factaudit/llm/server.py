"""How does a request get to the server and its answer back? Through aiohttp.

Measured: the openai SDK takes 0.9 ms of CPU for a call (1.5 by ``create``), aiohttp 0.2, and all
the rest of a call 0.6. Nothing here repeats a request: the store must know of each. The Batch API,
where calls are few, goes through the SDK.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from factaudit.errors import FactauditError, format_error_first_line
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.settings import LOCAL_BASE_URL, LLMSettings, check_base_url
from factaudit.llm.store import DROPPED, MALFORMED
from factaudit.text.display_text import mask_secrets_in_text
from factaudit.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import OpenAI

_OPENAI_BASE_URL = "https://api.openai.com/v1"
_KEY_VARIABLE = "OPENAI_API_KEY"
#: The one limit on what a server may send: an answer of more bytes is not read to its end.
MAX_BODY_BYTES = 64 << 20
#: Seconds for a server to accept a connection: one that does not has not been reached, and nothing
#: was paid.
_CONNECT_SECONDS = 30.0


class HTTPAnswer(NamedTuple):
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: str


class Server:
    """The server that settings name. Nothing is looked up, connected or started before the first
    request.

    ``OPENAI_BASE_URL`` stands in for an address that the settings do not give.
    """

    def __init__(self, settings: LLMSettings) -> None:
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_BASE_URL
        check_base_url(self.base_url)
        self._settings = settings
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._proxy: str | None = None

    async def post(self, body: dict[str, Any]) -> HTTPAnswer | ServerAttemptFailure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        import aiohttp

        async with self._opening:
            self._session = self._session or await self._open_session()
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await self._post(self._session, body)
        except TimeoutError as error:
            # No connection at all is another matter: nothing was paid.
            if not isinstance(error, aiohttp.ConnectionTimeoutError):
                reason = f"no answer within {self._settings.timeout:g} seconds"
                return ServerAttemptFailure(reason, DROPPED)
            return ServerAttemptFailure(self._describe_error(error), unreached=True)
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            return ServerAttemptFailure(self._describe_error(error), unreached=True)
        except Exception as error:  # aiohttp's and the system's: whether it was paid nobody knows
            return ServerAttemptFailure(self._describe_error(error), DROPPED)

    async def _post(
        self, session: ClientSession, body: dict[str, Any]
    ) -> HTTPAnswer | ServerAttemptFailure:
        content = bytearray()
        # Prompts are not sent on to another server: a redirect is an error like others.
        async with session.post(
            "chat/completions",
            data=json.dumps(body).encode(),
            proxy=self._proxy,
            allow_redirects=False,
        ) as answer:
            async for piece in answer.content.iter_any():
                content += piece
                if len(content) > MAX_BODY_BYTES:
                    reason = f"an answer of more than {MAX_BODY_BYTES >> 20} MB"
                    return ServerAttemptFailure(reason, MALFORMED)
        return HTTPAnswer(answer.status, answer.headers, content.decode(errors="replace"))

    async def close(self) -> None:
        """Close the connections, and stop a local server."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._settings.local_model is not None:
            self._settings.local_model.stop()

    def make_sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        from openai import DefaultHttpxClient, OpenAI

        return OpenAI(
            api_key=self.find_api_key(),
            base_url=self.base_url,
            timeout=self._settings.timeout,
            max_retries=4,
            http_client=DefaultHttpxClient(follow_redirects=False),
        )

    def find_api_key(self) -> str:
        """The key for this server: ``none`` where it needs none.

        ``OPENAI_API_KEY`` belongs to OpenAI's server, or to that of ``OPENAI_BASE_URL``; any other
        gets it only where ``api_key_env`` names it. Raises `FactauditError` where a key is missing,
        or would go to another server.
        """
        settings = self._settings
        if settings.local_model is not None:
            return "none"
        variable = settings.api_key_env or _KEY_VARIABLE
        key = os.environ.get(variable)
        host = urlsplit(self.base_url).hostname or ""
        owners = [_OPENAI_BASE_URL, os.environ.get("OPENAI_BASE_URL") or ""]
        if key and (settings.api_key_env or host in [urlsplit(url).hostname for url in owners]):
            return key
        if not key and self.base_url == _OPENAI_BASE_URL:
            raise FactauditError(
                f"model {settings.model!r} needs a key: set {variable}, or give base_url for"
                " another server"
            )
        if not key or host in ("localhost", "::1") or host.startswith("127."):
            return "none"
        raise FactauditError(
            f"{self.base_url}: {variable} is the key of another server and is not sent there: name"
            f" the variable of this server's key with api_key_env (api_key_env={variable} sends"
            " this one)"
        )

    @property
    def cache_name(self) -> str:
        """The server as cache keys have it: its name, else its address; "" of one that runs here,
        whose weights they have."""
        if self._settings.server_name or self._settings.base_url == LOCAL_BASE_URL:
            return self._settings.server_name
        return self.base_url.rstrip("/").lower()

    def redact(self, text: str) -> str:
        """A text without the key, and without what looks like a key."""
        if key := os.environ.get(self._settings.api_key_env or _KEY_VARIABLE):
            text = text.replace(key, "***")
        return mask_secrets_in_text(text)

    async def _open_session(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout, TCPConnector

        url = self.base_url
        if self._settings.local_model is not None:  # which takes its time to load
            url = await asyncio.to_thread(self._settings.local_model.start)
        # Looked up once: aiohttp's own way (``trust_env``) asks two threads about it at every call.
        address = urlsplit(url)
        if not proxy_bypass(address.hostname or ""):
            self._proxy = getproxies().get(address.scheme)
        headers = {
            "Authorization": f"Bearer {self.find_api_key()}",
            "Content-Type": "application/json",
            "User-Agent": f"factaudit/{__version__}",
            "OpenAI-Organization": os.environ.get("OPENAI_ORG_ID"),
            "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID"),
        }
        return ClientSession(
            url.rstrip("/") + "/",
            headers={name: value for name, value in headers.items() if value},
            connector=TCPConnector(limit=0),  # the client bounds what is under way
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

    def _describe_error(self, error: Exception) -> str:
        said = self.redact(format_error_first_line(error))[:300]
        return f"connection: {type(error).__name__}: {said}"
