"""How does a request get to the server and its answer back? Through aiohttp, or through a client
object of the user's.

Of our own calls the openai SDK costs 1.1 ms of CPU, beside 0.4 for aiohttp alone and 0.4 for all
the rest of a call: they go through aiohttp. A user's object (`AsyncOpenAI`, `AsyncAzureOpenAI` or
what wraps one) is asked by its ``chat.completions.create``, which is what tracing libraries and
gateways patch; it repeats nothing by itself, as the store would not know of those calls. The Batch
API, where calls are few, goes through the SDK.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import os
from collections.abc import Mapping
from functools import cache, cached_property
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.settings import LOCAL_BASE_URL, SECRET_NAME_PATTERN, LLMSettings
from factaudit.llm.store import DROPPED, MALFORMED
from factaudit.settings.spec_string import import_object_of_spec_string
from factaudit.text.display_text import mask_secrets_in_text
from factaudit.version import __version__

if TYPE_CHECKING:
    from aiohttp import ClientSession
    from openai import OpenAI

_OPENAI_BASE_URL = "https://api.openai.com/v1"
_KEY_VARIABLE = "OPENAI_API_KEY"
#: The one limit on what a server may send: an answer of more bytes is not read to its end.
MAX_BODY_BYTES = 64 << 20
#: Errors of a user's object that no request gets past: it is not what it should be.
_USELESS = (TypeError, AttributeError, NotImplementedError, ImportError)
#: Seconds for a server to take a connection: one that does not has not been reached, and nothing
#: was paid.
_CONNECT_SECONDS = 30.0
#: Errors of aiohttp and of httpx where no server was reached, so that nothing was paid.
_UNREACHED = {
    *(
        "ClientConnectorError",
        "ClientConnectorDNSError",
        "ClientProxyConnectionError",
        "ConnectionTimeoutError",
    ),
    *("InvalidURL", "InvalidUrlClientError", "NonHttpUrlClientError"),
    *("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError"),
}


class HTTPAnswer(NamedTuple):
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: str


class BlockingClientError(UsageError):
    """A client object has answered without being awaited. The call was made, and may have been
    billed."""


class Server:
    """The server that settings name. Nothing is looked up, connected or started before the first
    request.

    ``OPENAI_BASE_URL`` stands in for an address that the settings do not give, and may hold a
    password. While a user's object is in use its ``max_retries`` is 0.
    """

    def __init__(self, settings: LLMSettings, api_key: str | None = None) -> None:
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_BASE_URL
        self._settings = settings
        self._api_key = api_key
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._proxy: str | None = None
        self._retries_before: int | None = None

    async def post(self, body: dict[str, Any]) -> HTTPAnswer | ServerAttemptFailure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        try:
            if self._settings.client is not None:
                async with asyncio.timeout(self._settings.timeout):
                    return HTTPAnswer(200, {}, await self._create_through_user_client(body))
            async with self._opening:
                self._session = self._session or await self._open_session()
            async with asyncio.timeout(self._settings.timeout):
                return await self._post(self._session, body)
        except FactauditError:
            raise
        except Exception as error:  # aiohttp's, the SDK's, or those of what wraps it
            return self._interpret_error(error)

    async def _post(
        self, session: ClientSession, body: dict[str, Any]
    ) -> HTTPAnswer | ServerAttemptFailure:
        content = bytearray()
        data = json.dumps(body).encode()
        async with session.post(
            "chat/completions", data=data, proxy=self._proxy, allow_redirects=False
        ) as answer:
            if 300 <= answer.status < 400:
                self._refuse_redirect(answer.headers.get("Location", ""))
            async for piece in answer.content.iter_any():
                content += piece
                if len(content) > MAX_BODY_BYTES:
                    return ServerAttemptFailure(
                        f"an answer of more than {MAX_BODY_BYTES >> 20} MB", MALFORMED
                    )
        errors = "strict" if answer.status == 200 else "replace"
        return HTTPAnswer(answer.status, answer.headers, content.decode(errors=errors))

    async def _create_through_user_client(self, body: dict[str, Any]) -> str:
        client, known = self.user_client, _list_sdk_params()
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
        if self._settings.local_model is not None:
            self._settings.local_model.stop()
        if self._retries_before is not None:
            self.user_client.max_retries, self._retries_before = self._retries_before, None

    def make_sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        from openai import DefaultHttpxClient, OpenAI

        return OpenAI(
            api_key=self.find_api_key(),
            base_url=self.address,
            default_headers=self._make_password_header(),
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
        if self._settings.client is not None:
            key = getattr(self.user_client, "api_key", "")
            return key if isinstance(key, str) else ""
        if self._settings.base_url == LOCAL_BASE_URL:
            return "none"
        variable = self._settings.api_key_env or _KEY_VARIABLE
        key = self._api_key or os.environ.get(variable)
        host = urlsplit(self.base_url).hostname or ""
        if not key and host == urlsplit(_OPENAI_BASE_URL).hostname:
            model = self._settings.model
            raise FactauditError(
                f"model {model!r} needs a key: set {variable}, or give base_url for another server"
            )
        owners = {
            urlsplit(url).hostname
            for url in (_OPENAI_BASE_URL, os.environ.get("OPENAI_BASE_URL") or "")
        }
        if key and (self._api_key or self._settings.api_key_env or host in owners):
            return key
        if not key or _is_loopback(host):
            return "none"
        raise FactauditError(
            f"{self.address}: {variable} is the key of another server and is not sent there: name"
            f" the variable of this server's key with api_key_env (api_key_env={variable} sends"
            " this one)"
        )

    @property
    def address(self) -> str:
        """The server's address without user, password or query; a client's name where it tells
        none."""
        url = self.base_url
        if self._settings.client is not None:
            url = str(getattr(self.user_client, "base_url", None) or "").rstrip("/")
        parts = urlsplit(url)
        if self._settings.client is not None and not parts.hostname:
            return f"client {self._client_name}"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @cached_property
    def cache_name(self) -> str:
        """The server as cache keys have it: its name, else its address; "" of one that runs here,
        whose weights they have. A client that a function makes is made, to know its address, unless
        the settings name the server.
        """
        if self._settings.server_name or self._settings.base_url == LOCAL_BASE_URL:
            return self._settings.server_name
        address = self.address
        parts = urlsplit(address)
        default_port = ":80" if parts.scheme == "http" else ":443"
        return f"{parts.scheme}://{parts.netloc.lower().removesuffix(default_port)}{parts.path.rstrip('/')}"

    def redact(self, text: str) -> str:
        """A text without the key, a client's secret headers, and what looks like a key."""
        secrets = [self._api_key, os.environ.get(self._settings.api_key_env or _KEY_VARIABLE)]
        if "user_client" in vars(self):
            secrets.append(self.find_api_key())
            headers = getattr(self.user_client, "default_headers", None)
            for name, value in headers.items() if isinstance(headers, Mapping) else ():
                if isinstance(value, str) and SECRET_NAME_PATTERN.search(name):
                    secrets += [value, *value.split()[1:]]
        for secret in filter(None, secrets):
            text = text.replace(secret, "***")
        return mask_secrets_in_text(text)

    @cached_property
    def user_client(self) -> Any:
        """The user's object, made or imported where the settings only name it."""
        return make_user_client(self._settings.client)

    @property
    def _client_name(self) -> str:
        client = self._settings.client
        return (
            client
            if isinstance(client, str)
            else getattr(client, "__qualname__", type(client).__qualname__)
        )

    async def _open_session(self) -> ClientSession:
        from aiohttp import ClientSession, ClientTimeout, TCPConnector

        url = self.address
        if self._settings.local_model is not None:  # which takes its time to load
            url = await asyncio.to_thread(self._settings.local_model.start)
        # Looked up once: aiohttp's own way (``trust_env``) asks two threads about it at every call.
        address = urlsplit(url)
        if not proxy_bypass(address.hostname or ""):
            self._proxy = getproxies().get(address.scheme)
        headers = {
            "Authorization": f"Bearer {self.find_api_key()}",
            "Content-Type": "application/json",
        }
        for header, variable in (
            ("OpenAI-Organization", "OPENAI_ORG_ID"),
            ("OpenAI-Project", "OPENAI_PROJECT_ID"),
        ):
            if os.environ.get(variable):
                headers[header] = os.environ[variable]
        return ClientSession(
            url.rstrip("/") + "/",
            headers={
                **headers,
                "User-Agent": f"factaudit/{__version__}",
                **self._make_password_header(),
            },
            connector=TCPConnector(limit=0),  # the client bounds what is under way
            timeout=ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
        )

    def _make_password_header(self) -> dict[str, str]:
        """Send a password from the address as a header: an address may be written into a log, and a
        header is not."""
        account, at, _ = urlsplit(self.base_url).netloc.rpartition("@")
        if not at:
            return {}
        return {"Authorization": f"Basic {base64.b64encode(unquote(account).encode()).decode()}"}

    def _refuse_redirect(self, location: str) -> None:
        to = urlsplit(urljoin(f"{self.address.rstrip('/')}/chat/completions", location))
        place = urlunsplit(
            (
                to.scheme,
                to.netloc.rpartition("@")[2],
                to.path.removesuffix("/chat/completions"),
                "",
                "",
            )
        )
        raise FactauditError(
            f"{self.address} redirects to {self.redact(place)}, and prompts are not sent on:"
            " if that is the server you mean, set base_url to it"
        )

    def _interpret_error(self, error: Exception) -> HTTPAnswer | ServerAttemptFailure:
        """What an error says of the attempt: was the server reached, was there an answer, may it
        have been paid?"""
        import openai

        if isinstance(error, openai.APIStatusError):
            answer = error.response
            if 300 <= answer.status_code < 400:
                self._refuse_redirect(answer.headers.get("location", ""))
            return HTTPAnswer(answer.status_code, answer.headers, answer.text)
        # The SDK takes all that aiohttp says of connections for one kind.
        shown = (
            error.__cause__
            if isinstance(error, openai.APIConnectionError) and error.__cause__
            else error
        )
        reason = f"{type(shown).__name__}: {self.redact(format_error_first_line(shown))[:300]}"
        if self._settings.client is not None and isinstance(error, _USELESS):
            raise UsageError(f"client {self._client_name}: {reason}") from error
        if isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIError):
            raise FactauditError(f"client: {reason}") from error  # no key, say
        if {type(shown).__name__, type(shown.__cause__).__name__} & _UNREACHED:
            return ServerAttemptFailure(f"connection: {reason}", unreached=True)
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            return ServerAttemptFailure(
                f"no answer within {self._settings.timeout:g} seconds", DROPPED
            )
        if isinstance(error, openai.APIResponseValidationError | ValueError):
            return ServerAttemptFailure(f"unreadable answer: {reason}", MALFORMED)
        return ServerAttemptFailure(f"connection: {reason}", DROPPED)


def make_user_client(value: Any) -> Any:
    """The client object that ``value`` is, makes or names. Raises `UsageError` where it is none, or
    a blocking one."""
    from openai import OpenAI

    client, name = value, value if isinstance(value, str) else getattr(value, "__qualname__", "")
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        client = import_object_of_spec_string("client", module, attribute)
    if not _is_chat_client(client) and callable(client):
        try:
            client = client()
        except Exception as error:  # the user's code raises as it pleases
            said = mask_secrets_in_text(format_error_first_line(error))
            raise UsageError(f"client {name}: {type(error).__name__}: {said}") from error
    kind = type(client).__name__
    if isinstance(client, OpenAI):
        raise UsageError(
            f"client: expected an asynchronous client, found one of class {kind}: use Async{kind}"
        )
    if not _is_chat_client(client):
        raise UsageError(
            "client: expected an AsyncOpenAI, an AsyncAzureOpenAI or what has their"
            f" chat.completions.create, found one of class {kind}"
        )
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
