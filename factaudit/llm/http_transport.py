"""How does a request get to the server and its answer back? Over connections that are kept open.

Chat requests go out through aiohttp: building and checking one in the SDK costs several times the CPU of all the rest
of a call. The Batch API, where calls are few, goes through the SDK.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from pydantic_core import to_json

from factaudit.errors import FactauditError
from factaudit.llm.server_errors import ServerAttemptFailure, redact_keys_in_server_error
from factaudit.llm.settings import LLMSettings
from factaudit.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Mapping

    from aiohttp import ClientSession
    from openai import OpenAI

_OPENAI_BASE_URL = "https://api.openai.com/v1"
_MAX_REDIRECTS = 3
_KEY_VARIABLE = "OPENAI_API_KEY"
#: Seconds for a server to take a connection: one that does not has not been reached, and nothing was paid.
_CONNECT_SECONDS = 30.0
#: The one limit on what a server may send: an answer of more bytes is not read to its end.
MAX_BODY_BYTES = 64 << 20


class HTTPAnswer(NamedTuple):
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: str


class HTTPTransport:
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

    def bind_event_loop(self) -> None:
        """Begin in the event loop that runs now: what waits belongs to the loop that it first waited in."""
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections, and stop a local server."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._local is not None:
            self._local.stop()

    async def post(self, body: dict[str, Any], n_redirects: int = 0) -> HTTPAnswer | ServerAttemptFailure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        import aiohttp

        if (session := self._session) is None:
            async with self._connecting:
                session = self._session = self._session or await self._open_session()
        timeout = self._settings.timeout
        try:
            data = _encode_http_body(body)
            request = session.post(self._url, data=data, proxy=self._proxy, allow_redirects=False)
            async with asyncio.timeout(timeout), request as answer:
                location = answer.headers.get("Location") if 300 <= answer.status < 400 else None
                if (content := await _read_http_body(answer.content.iter_any())) is None:
                    return ServerAttemptFailure(f"an answer of more than {MAX_BODY_BYTES >> 20} MB", malformed=True)
                errors = "strict" if answer.status == 200 else "replace"
                if location is None:
                    return HTTPAnswer(answer.status, answer.headers, content.decode("utf-8", errors))
            self._follow_redirect(location, n_redirects)
            return await self.post(body, n_redirects + 1)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            return ServerAttemptFailure(self._format_connection_error(error), unreached=True)
        except TimeoutError:
            return ServerAttemptFailure(f"no answer within {timeout:g} seconds", timed_out=True)
        except aiohttp.ClientError as error:
            return ServerAttemptFailure(self._format_connection_error(error), dropped=True)
        except ValueError as error:  # JSON is UTF-8
            return ServerAttemptFailure(f"unreadable answer: {self.redact_keys(str(error))}", malformed=True)

    def _follow_redirect(self, location: str, n_redirects: int) -> None:
        """Send to another path of this server now. Raises `FactauditError` where it is another host or scheme."""
        url = urljoin(self._url, location)
        to, here = urlsplit(url), urlsplit(self._url)
        if (to.scheme, to.netloc.rpartition("@")[2]) == (here.scheme, here.netloc) and n_redirects < _MAX_REDIRECTS:
            self._url = url
            return
        place = urlunsplit((to.scheme, to.netloc.rpartition("@")[2], to.path.removesuffix("/chat/completions"), "", ""))
        raise FactauditError(
            f"{self.server_address()} redirects to {self.redact_keys(place)}, and prompts are not sent on:"
            " if that is the server you mean, set base_url to it"
        )

    def _format_connection_error(self, error: Exception) -> str:
        return self.redact_keys(f"connection: {type(error).__name__}: {error}")

    def make_sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        from openai import DefaultHttpxClient, OpenAI

        http = DefaultHttpxClient(follow_redirects=False)
        options = self._make_access_options()
        return OpenAI(**options, timeout=self._settings.timeout, max_retries=4, http_client=http)

    def find_api_key(self) -> str:
        """The key for this server: ``none`` where it needs none.

        ``OPENAI_API_KEY`` belongs to OpenAI's server, or to that of ``OPENAI_BASE_URL``; any other gets it only where
        ``api_key_env`` names it. Raises `FactauditError` where a key is missing, or would go to another server.
        """
        variable = self._settings.api_key_env or _KEY_VARIABLE
        key = self._api_key or os.environ.get(variable)
        host = urlsplit(self.base_url or _OPENAI_BASE_URL).hostname
        if not key:
            if host == urlsplit(_OPENAI_BASE_URL).hostname:
                model = self._settings.model
                raise FactauditError(
                    f"model {model!r} needs a key: set {variable}, or give base_url for another server"
                )
            return "none"
        owners = {urlsplit(url).hostname for url in (_OPENAI_BASE_URL, os.environ.get("OPENAI_BASE_URL") or "")}
        if self._api_key or self._settings.api_key_env or self._settings.base_url is None or host in owners:
            return key
        if _is_http_loopback(host or ""):
            return "none"
        raise FactauditError(
            f"{self.server_address()}: {variable} is the key of another server and is not sent there: name the variable"
            f" of this server's key with api_key_env (api_key_env={variable} sends this one)"
        )

    def find_account_key(self) -> str:
        """What tells this account from others at the same server."""
        return "none" if self._local is not None else self.find_api_key()

    def server_address(self) -> str:
        """The server's address without user, password or query."""
        if self.base_url is None:
            return _OPENAI_BASE_URL
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def redact_keys(self, text: str) -> str:
        """A text without the key, and without what looks like one."""
        return redact_keys_in_server_error(
            text, self._api_key, os.environ.get(self._settings.api_key_env or _KEY_VARIABLE)
        )

    async def _open_session(self) -> ClientSession:
        import aiohttp

        if self._local is None:
            access = self._make_access_options()
        else:
            access = {"api_key": "none", "base_url": await asyncio.to_thread(self._local.start)}
        self._url = (access["base_url"] or _OPENAI_BASE_URL).rstrip("/") + "/chat/completions"
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
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

    def _make_access_options(self) -> dict[str, Any]:
        """Where the server is and what opens it, as the SDK's clients take it."""
        netloc = urlsplit(self.base_url or "").netloc
        if "@" not in netloc:
            return {"api_key": self.find_api_key(), "base_url": self.base_url}
        # Whoever writes an address into a log writes a password in it, too: it goes the way of a key.
        password = base64.b64encode(unquote(netloc.rpartition("@")[0]).encode()).decode()
        return {
            "api_key": self.find_api_key(),
            "base_url": self.server_address(),
            "default_headers": {"Authorization": f"Basic {password}"},
        }


def _is_http_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _encode_http_body(body: dict[str, Any]) -> bytes:
    try:
        return to_json(body)
    except ValueError:  # half a surrogate pair, which only an escape can say
        return json.dumps(body).encode()


async def _read_http_body(pieces: AsyncIterable[bytes]) -> bytes | None:
    """The whole of a body, read piece by piece; None of one that is larger than `MAX_BODY_BYTES`."""
    found: list[bytes] = []
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > MAX_BODY_BYTES:
            return None
        found.append(piece)
    return b"".join(found)
