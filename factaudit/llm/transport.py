"""How a request gets to the server and its answer back, over connections kept open for as long as they are used.

Chat requests go out through aiohttp: building and checking one in the SDK costs several times the CPU of all the rest
of a call. The Batch API, where calls are few, goes through the SDK.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from pydantic_core import to_json

from factaudit.errors import FactauditError
from factaudit.llm.errors import Failure, redact
from factaudit.llm.settings import LLMSettings
from factaudit.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Mapping

    from aiohttp import ClientSession
    from openai import OpenAI

_OPENAI = "https://api.openai.com/v1"
#: Seconds for a server to take a connection: one that does not has not been reached, and nothing was paid.
_CONNECT = 30.0
#: An answer of more bytes is not read to its end. A text of `factaudit.llm.completion.MAX_TEXT` fits, as JSON has it.
MAX_BODY = 64 << 20


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
        self._session: ClientSession | None = None
        self._url = ""
        self._proxy: str | None = None
        self._connecting = asyncio.Lock()

    def opened(self) -> None:
        """Begin in the event loop that runs now: what waits belongs to the loop that it first waited in."""
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections, and stop a local server."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._local is not None:
            self._local.stop()

    async def post(self, body: dict[str, Any]) -> Answer | Failure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        import aiohttp

        if (session := self._session) is None:
            async with self._connecting:
                session = self._session = self._session or await self._connect()
        timeout = self._settings.timeout
        try:
            data = _encoded(body)
            async with asyncio.timeout(timeout), session.post(self._url, data=data, proxy=self._proxy) as answer:
                if (content := await _bounded(answer.content.iter_any())) is None:
                    return Failure(f"an answer of more than {MAX_BODY >> 20} MB", malformed=True)
                errors = "strict" if answer.status == 200 else "replace"
                return Answer(answer.status, answer.headers, content.decode("utf-8", errors))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            return Failure(self._told(error), unreached=True)
        except TimeoutError:
            return Failure(f"no answer within {timeout:g} seconds", timed_out=True)
        except aiohttp.ClientError as error:
            return Failure(self._told(error), dropped=True)
        except ValueError as error:  # JSON is UTF-8
            return Failure(f"unreadable answer: {self.redact(str(error))}", malformed=True)

    def _told(self, error: Exception) -> str:
        return self.redact(f"connection: {type(error).__name__}: {error}")

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
            return _OPENAI
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def redact(self, text: str) -> str:
        """A text without the key, and without what looks like one."""
        return redact(text, self._api_key, os.environ.get(self._settings.api_key_env))

    async def _connect(self) -> ClientSession:
        import aiohttp

        if self._local is None:
            access = self._access()
        else:
            access = {"api_key": "none", "base_url": await asyncio.to_thread(self._local.start)}
        self._url = (access["base_url"] or _OPENAI).rstrip("/") + "/chat/completions"
        address = urlsplit(self._url)
        # Looked up once: aiohttp's own way (``trust_env``) asks two threads about it at every call.
        if not proxy_bypass(address.hostname or ""):
            self._proxy = getproxies().get(address.scheme)
        headers = {
            "Authorization": f"Bearer {access['api_key']}",
            "Content-Type": "application/json",
            "User-Agent": f"factaudit/{__version__}",
        }
        for header, variable in (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID")):
            if os.environ.get(variable):
                headers[header] = os.environ[variable]
        return aiohttp.ClientSession(
            headers=headers | access.get("default_headers", {}),
            connector=aiohttp.TCPConnector(limit=0),  # the client bounds what is under way
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT),
        )

    def _access(self) -> dict[str, Any]:
        """Where the server is and what opens it, as the SDK's clients take it."""
        netloc = urlsplit(self.base_url or "").netloc
        if "@" not in netloc:
            return {"api_key": self.api_key(), "base_url": self.base_url}
        # Whoever writes an address into a log writes a password in it, too: it goes the way of a key.
        password = base64.b64encode(unquote(netloc.rpartition("@")[0]).encode()).decode()
        return {
            "api_key": self.api_key(),
            "base_url": self.server(),
            "default_headers": {"Authorization": f"Basic {password}"},
        }


def _encoded(body: dict[str, Any]) -> bytes:
    try:
        return to_json(body)
    except ValueError:  # half a surrogate pair, which only an escape can say
        return json.dumps(body).encode()


async def _bounded(pieces: AsyncIterable[bytes]) -> bytes | None:
    """The whole of a body, read piece by piece; None of one that is larger than `MAX_BODY`."""
    found: list[bytes] = []
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > MAX_BODY:
            return None
        found.append(piece)
    return b"".join(found)
