"""How does a request get to the server and its answer back? Through aiohttp, or through a client object of the user's.

Of our own calls the openai SDK costs 1.1 ms of CPU, beside 0.4 for aiohttp alone and 0.4 for all the rest of a call:
they go through aiohttp. A user's object (`AsyncOpenAI`, `AsyncAzureOpenAI` or what wraps one) is asked by its
``chat.completions.create``, which is what tracing libraries and gateways patch; it repeats nothing by itself, as the
store would not know of those calls. The Batch API, where calls are few, goes through the SDK.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cache, cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from pydantic_core import to_json

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.llm.server_errors import ServerAttemptFailure, redact_keys_in_server_error
from factaudit.llm.settings import LOCAL_BASE_URL, SECRET_NAME_PATTERN, LLMSettings
from factaudit.settings.spec_string import import_object_of_spec_string
from factaudit.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import OpenAI

_OPENAI_BASE_URL = "https://api.openai.com/v1"
_KEY_VARIABLE = "OPENAI_API_KEY"
#: Errors of a user's object that no request gets past: it is not what it should be.
_USELESS = (TypeError, AttributeError, NotImplementedError, ImportError)
#: Seconds for a server to take a connection: one that does not has not been reached, and nothing was paid.
_CONNECT_SECONDS = 30.0
#: The one limit on what a server may send: an answer of more bytes is not read to its end.
MAX_BODY_BYTES = 64 << 20
#: HTTP clients' errors where no server was reached, so that nothing was paid.
_UNREACHED = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError", "InvalidURL")


class HTTPAnswer(NamedTuple):
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: str


class BlockingClientError(UsageError):
    """A client object has answered without being awaited. The call was made, and may have been billed."""


class Server:
    """The server that settings name. Nothing is looked up, connected or started before the first request.

    ``OPENAI_BASE_URL`` stands in for an address that the settings do not give, and may hold a password. While a user's
    object is in use its ``max_retries`` is 0.
    """

    def __init__(self, settings: LLMSettings, api_key: str | None = None) -> None:
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._settings = settings
        self._api_key = api_key
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._url = ""
        self._proxy: str | None = None
        self._retries_before: int | None = None

    async def post(self, body: dict[str, Any]) -> HTTPAnswer | ServerAttemptFailure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        try:
            if self._settings.client is None and self._session is None:
                async with self._opening:
                    self._session = self._session or await self._open_session()
            async with asyncio.timeout(self._settings.timeout):
                if self._session is not None:
                    return await self._post(self._session, body)
                return HTTPAnswer(200, {}, await self._create_through_user_client(body))
        except FactauditError:
            raise
        except Exception as error:  # aiohttp's, the SDK's, or those of what wraps it
            return self._interpret_error(error)

    async def _post(self, session: ClientSession, body: dict[str, Any]) -> HTTPAnswer | ServerAttemptFailure:
        # JSON by pydantic is the faster one, but knows no half surrogate pairs.
        try:
            data = to_json(body)
        except ValueError:
            data = json.dumps(body).encode()
        pieces, size = [], 0
        async with session.post(self._url, data=data, proxy=self._proxy, allow_redirects=False) as answer:
            if 300 <= answer.status < 400:
                self._refuse_redirect(answer.headers.get("Location", ""))
            async for piece in answer.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if size > MAX_BODY_BYTES:
                    return ServerAttemptFailure(f"an answer of more than {MAX_BODY_BYTES >> 20} MB", malformed=True)
        errors = "strict" if answer.status == 200 else "replace"
        return HTTPAnswer(answer.status, answer.headers, b"".join(pieces).decode("utf-8", errors))

    async def _create_through_user_client(self, body: dict[str, Any]) -> str:
        client, known = self._user_client, _list_sdk_params()
        if self._retries_before is None and isinstance(getattr(client, "max_retries", None), int):
            self._retries_before, client.max_retries = client.max_retries, 0
        params = {name: value for name, value in body.items() if name in known}
        # What the SDK does not know (top_k, say) goes into the same body.
        if others := {name: value for name, value in body.items() if name not in known}:
            params["extra_body"] = others
        completion = client.chat.completions.create(**params)
        if not inspect.isawaitable(completion):
            raise BlockingClientError("client: its chat.completions.create is not asynchronous")
        completion = await completion
        if hasattr(completion, "model_dump"):
            completion = completion.model_dump(warnings=False)
        # A text is what the SDK gives for an answer that is not JSON.
        return completion if isinstance(completion, str) else json.dumps(completion, default=str)

    async def close(self) -> None:
        """Close the connections, stop a local server, and give a user's object its retries back."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._opening = asyncio.Lock()
        if self._settings.local_model is not None:
            self._settings.local_model.stop()
        if self._retries_before is not None:
            self._user_client.max_retries, self._retries_before = self._retries_before, None
        if self._settings.client is not None and self._user_client is not self._settings.client:
            with suppress(Exception):  # a client that was made here
                await self._user_client.close()
            del self._user_client

    def make_sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        from openai import DefaultHttpxClient, OpenAI

        options = self._make_access_options()
        http = DefaultHttpxClient(follow_redirects=False)
        return OpenAI(**options, timeout=self._settings.timeout, max_retries=4, http_client=http)

    def find_api_key(self) -> str:
        """The key for this server: ``none`` where it needs none.

        ``OPENAI_API_KEY`` belongs to OpenAI's server, or to that of ``OPENAI_BASE_URL``; any other gets it only where
        ``api_key_env`` names it. Raises `FactauditError` where a key is missing, or would go to another server.
        """
        if self._settings.client is not None:
            key = getattr(self._user_client, "api_key", "")
            return key if isinstance(key, str) else ""
        if self._settings.base_url == LOCAL_BASE_URL:
            return "none"
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
        if _is_loopback(host or ""):
            return "none"
        raise FactauditError(
            f"{self.address}: {variable} is the key of another server and is not sent there: name the variable"
            f" of this server's key with api_key_env (api_key_env={variable} sends this one)"
        )

    @property
    def address(self) -> str:
        """The server's address without user, password or query; a client's name where it tells none."""
        url = self.base_url or _OPENAI_BASE_URL
        if self._settings.client is not None:
            url = str(getattr(self._user_client, "base_url", None) or "").rstrip("/")
        parts = urlsplit(url)
        if self._settings.client is not None and not parts.hostname:
            return f"client {self._client_name}"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @cached_property
    def cache_name(self) -> str:
        """The server as cache keys have it: its name, else its address; "" of one that runs here, whose weights they
        have. A client that a function makes is made, to know its address, unless the settings name the server."""
        if self._settings.server_name or self._settings.base_url == LOCAL_BASE_URL:
            return self._settings.server_name
        return _normalise_address(self.address)

    def redact(self, text: str) -> str:
        """A text without the key, a client's secret headers, and what looks like a key."""
        secrets = [self._api_key, os.environ.get(self._settings.api_key_env or _KEY_VARIABLE)]
        if self._settings.client is not None and "_user_client" in vars(self):
            headers = getattr(self._user_client, "default_headers", None)
            pairs = headers.items() if isinstance(headers, Mapping) else ()
            for name, value in pairs:
                if isinstance(value, str) and SECRET_NAME_PATTERN.search(name):
                    secrets += [value, *value.split()[1:]]
            secrets.append(self.find_api_key())
        return redact_keys_in_server_error(text, *secrets)

    @cached_property
    def _user_client(self) -> Any:
        return make_user_client(self._settings.client)

    @property
    def _client_name(self) -> str:
        client = self._settings.client
        return client if isinstance(client, str) else getattr(client, "__qualname__", type(client).__qualname__)

    async def _open_session(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout, TCPConnector

        if self._settings.local_model is not None:  # which takes its time to load
            await asyncio.to_thread(self._settings.local_model.start)
        access = self._make_access_options()
        self._url = (access["base_url"] or _OPENAI_BASE_URL).rstrip("/") + "/chat/completions"
        address = urlsplit(self._url)
        # Looked up once: aiohttp's own way (``trust_env``) asks two threads about it at every call.
        if not proxy_bypass(address.hostname or ""):
            self._proxy = getproxies().get(address.scheme)
        headers = {"Authorization": f"Bearer {access['api_key']}", "Content-Type": "application/json"}
        for header, variable in (("OpenAI-Organization", "OPENAI_ORG_ID"), ("OpenAI-Project", "OPENAI_PROJECT_ID")):
            if os.environ.get(variable):
                headers[header] = os.environ[variable]
        return ClientSession(
            headers={**headers, "User-Agent": f"factaudit/{__version__}", **access.get("default_headers", {})},
            connector=TCPConnector(limit=0),  # the client bounds what is under way
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

    def _make_access_options(self) -> dict[str, Any]:
        """Where the server is and what opens it, as the SDK's clients take it."""
        if self._settings.local_model is not None:
            return {"api_key": "none", "base_url": self._settings.local_model.start()}
        netloc = urlsplit(self.base_url or "").netloc
        if "@" not in netloc:
            return {"api_key": self.find_api_key(), "base_url": self.base_url}
        # Whoever writes an address into a log writes a password in it, too: it goes the way of a key.
        password = base64.b64encode(unquote(netloc.rpartition("@")[0]).encode()).decode()
        headers = {"Authorization": f"Basic {password}"}
        return {"api_key": self.find_api_key(), "base_url": self.address, "default_headers": headers}

    def _refuse_redirect(self, location: str) -> None:
        to = urlsplit(urljoin(f"{self.address.rstrip('/')}/chat/completions", location))
        place = urlunsplit((to.scheme, to.netloc.rpartition("@")[2], to.path.removesuffix("/chat/completions"), "", ""))
        raise FactauditError(
            f"{self.address} redirects to {self.redact(place)}, and prompts are not sent on:"
            " if that is the server you mean, set base_url to it"
        )

    def _format_error(self, error: Exception) -> str:
        return self.redact(format_error_first_line(error))[:300]

    def _interpret_error(self, error: Exception) -> HTTPAnswer | ServerAttemptFailure:
        """What an error says of the attempt: was the server reached, was there an answer, may it have been paid?"""
        import openai

        if isinstance(error, openai.APIStatusError):
            answer = error.response
            if 300 <= answer.status_code < 400:
                self._refuse_redirect(answer.headers.get("location", ""))
            return HTTPAnswer(answer.status_code, answer.headers, answer.text)
        if self._settings.client is not None and isinstance(error, _USELESS):
            raise UsageError(f"client {self._client_name}: {self._format_error(error)}") from error
        cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else None
        shown = cause if isinstance(cause, Exception) else error
        reason = f"{type(shown).__name__}: {self._format_error(shown)}"
        if _is_of_connecting(shown):
            return ServerAttemptFailure(f"connection: {reason}", unreached=True)
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return ServerAttemptFailure(f"no answer within {self._settings.timeout:g} seconds", timed_out=True)
        if isinstance(error, openai.APIResponseValidationError | ValueError):
            return ServerAttemptFailure(f"unreadable answer: {reason}", malformed=True)
        if isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIError):
            raise FactauditError(f"client: {reason}") from error  # no key, say
        return ServerAttemptFailure(f"connection: {reason}", dropped=True)


def _is_of_connecting(error: Exception) -> bool:
    """Whether a connection was never made. The SDK takes all that aiohttp says of connections for that."""
    from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError, InvalidURL

    for one in (error, error.__cause__):
        if isinstance(one, ClientError | TimeoutError):
            return isinstance(one, ClientConnectorError | ConnectionTimeoutError | InvalidURL)
    return type(error).__name__ in _UNREACHED


def make_user_client(value: Any) -> Any:
    """The client object that ``value`` is, makes or names. Raises `UsageError` where it is none, or a blocking one."""
    client, name = value, value if isinstance(value, str) else getattr(value, "__qualname__", "")
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        client = import_object_of_spec_string("client", module, attribute)
    if not _is_chat_client(client) and callable(client):
        try:
            client = client()
        except Exception as error:  # the user's code raises as it pleases
            said = redact_keys_in_server_error(format_error_first_line(error))
            raise UsageError(f"client {name}: {type(error).__name__}: {said}") from error
    if inspect.iscoroutine(client):
        client.close()
        raise UsageError("client: expected a function that returns a client, found an asynchronous one")
    kind = type(client).__name__
    if not _is_chat_client(client):
        raise UsageError(
            "client: expected an AsyncOpenAI, an AsyncAzureOpenAI or what has their chat.completions.create,"
            f" found one of class {kind}"
        )
    from openai import OpenAI

    if isinstance(client, OpenAI):
        raise UsageError(f"client: expected an asynchronous client, found one of class {kind}: use Async{kind}")
    return client


def _is_chat_client(client: Any) -> bool:
    completions = getattr(getattr(client, "chat", None), "completions", None)
    return not isinstance(client, type) and callable(getattr(completions, "create", None))


@cache
def _list_sdk_params() -> frozenset[str]:
    from openai.resources.chat.completions import AsyncCompletions

    return frozenset(inspect.signature(AsyncCompletions.create).parameters)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _normalise_address(address: str) -> str:
    """A server's address in one form, however it was written.

    >>> _normalise_address("HTTP://Localhost:80/v1/"), _normalise_address("client mine:make")
    ('http://localhost/v1', 'client mine:make')
    """
    parts = urlsplit(address)
    if not parts.hostname:
        return address
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
