"""How does a request get to the server and its answer back? Through aiohttp, or through a client
object of the user's.

Our own calls go through aiohttp: the openai SDK takes 0.9 ms of CPU for a call (1.5 by ``create``),
aiohttp 0.2, and all the rest of a call 0.6. A user's object (`AsyncOpenAI`, `AsyncAzureOpenAI` or
what wraps one) is asked by its ``chat.completions.create``, which is what tracing libraries and
gateways patch. It repeats nothing by itself, because the store would not know of those calls. The
Batch API, where calls are few, goes through the SDK.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.settings import LOCAL_BASE_URL, LLMSettings, check_base_url
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
#: Seconds for a server to accept a connection: one that does not has not been reached, and nothing
#: was paid.
_CONNECT_SECONDS = 30.0
#: Errors of aiohttp and of httpx where no server was reached, so that nothing was paid.
_UNREACHED = {
    *("ClientConnectorError", "ClientConnectorDNSError", "ClientProxyConnectionError"),
    *("ConnectionTimeoutError", "InvalidURL", "InvalidUrlClientError", "NonHttpUrlClientError"),
    *("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError"),
}


class HTTPAnswer(NamedTuple):
    """An HTTP answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    body: str


class Server:
    """The server that settings name. Nothing is looked up, connected or started before the first
    request.

    ``OPENAI_BASE_URL`` stands in for an address that the settings do not give. While a user's
    object is in use its ``max_retries`` is 0.
    """

    def __init__(self, settings: LLMSettings) -> None:
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_BASE_URL
        check_base_url(self.base_url)
        self._settings = settings
        self._session: ClientSession | None = None
        self._opening = asyncio.Lock()
        self._proxy: str | None = None
        self._retries_before: int | None = None

    async def post(self, body: dict[str, Any]) -> HTTPAnswer | ServerAttemptFailure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        try:
            if self._settings.client is None:
                async with self._opening:
                    self._session = self._session or await self._open_session()
            async with asyncio.timeout(self._settings.timeout):
                if self._session is None:
                    return HTTPAnswer(200, {}, await self._create_through_user_client(body))
                return await self._post(self._session, body)
        except FactauditError:
            raise
        except Exception as error:  # aiohttp's, the SDK's, or those of what wraps it
            return self._interpret_error(error)

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

    async def _create_through_user_client(self, body: dict[str, Any]) -> str:
        client = self.user_client
        if self._retries_before is None and isinstance(getattr(client, "max_retries", None), int):
            self._retries_before, client.max_retries = client.max_retries, 0
        # ``extra_body`` goes into the same body, and takes what the SDK does not know, too.
        own = {"model": body["model"], "messages": body["messages"]}
        others = {name: value for name, value in body.items() if name not in own}
        completion = client.chat.completions.create(**own, extra_body=others)
        if not inspect.isawaitable(completion):
            raise UsageError("client: its chat.completions.create is not asynchronous")
        completion = await completion
        if hasattr(completion, "model_dump"):
            completion = completion.model_dump(warnings=False)
        # A text is what the SDK gives for an answer that is not JSON.
        if isinstance(completion, str):
            return completion
        return json.dumps(completion, default=str)

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
        if settings.client is not None:
            return str(getattr(self.user_client, "api_key", ""))
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
            f"{self.address}: {variable} is the key of another server and is not sent there: name"
            f" the variable of this server's key with api_key_env (api_key_env={variable} sends"
            " this one)"
        )

    @property
    def address(self) -> str:
        """The server's address without user, password or query; a client's name where it tells
        none."""
        if self._settings.client is None:
            return self.base_url
        parts = urlsplit(str(getattr(self.user_client, "base_url", None) or "").rstrip("/"))
        if not parts.hostname:
            return f"client {self._client_name}"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @cached_property
    def cache_name(self) -> str:
        """The server as cache keys have it: its name, else its address; "" of one that runs here,
        whose weights they have. A client that a function makes is made, to know its address, unless
        the settings name the server."""
        if self._settings.server_name or self._settings.base_url == LOCAL_BASE_URL:
            return self._settings.server_name
        return self.address.rstrip("/").lower()

    def redact(self, text: str) -> str:
        """A text without the key, and without what looks like a key."""
        secrets = [os.environ.get(self._settings.api_key_env or _KEY_VARIABLE)]
        if "user_client" in vars(self):
            secrets.append(self.find_api_key())
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
        if isinstance(client, str):
            return client
        return getattr(client, "__qualname__", type(client).__qualname__)

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

    def _interpret_error(self, error: Exception) -> HTTPAnswer | ServerAttemptFailure:
        """What an error says of the attempt: was the server reached, was there an answer, may it
        have been paid?"""
        import openai

        if isinstance(error, openai.APIStatusError):
            answer = error.response
            return HTTPAnswer(answer.status_code, answer.headers, answer.text)
        # The SDK takes all that aiohttp says of connections for one kind.
        shown: BaseException = error
        if isinstance(error, openai.APIConnectionError) and error.__cause__ is not None:
            shown = error.__cause__
        reason = f"{type(shown).__name__}: {self.redact(format_error_first_line(shown))[:300]}"
        is_unusable = isinstance(error, _USELESS) or (
            isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIError)
        )
        if self._settings.client is not None and is_unusable:
            raise UsageError(f"client {self._client_name}: {reason}") from error
        if {type(shown).__name__, type(shown.__cause__).__name__} & _UNREACHED:
            return ServerAttemptFailure(f"connection: {reason}", unreached=True)
        if isinstance(error, TimeoutError | openai.APITimeoutError):
            reason = f"no answer within {self._settings.timeout:g} seconds"
            return ServerAttemptFailure(reason, DROPPED)
        return ServerAttemptFailure(f"connection: {reason}", DROPPED)


def make_user_client(value: Any) -> Any:
    """The client object that ``value`` is, makes or names. Raises `UsageError` where it is none, or
    a blocking one."""
    from openai import OpenAI

    client = value
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        client = import_object_of_spec_string("client", module, attribute)
    if not hasattr(client, "chat") or isinstance(client, type):
        try:
            client = client()
        except Exception as error:  # the user's code raises as it pleases
            said = mask_secrets_in_text(format_error_first_line(error))
            raise UsageError(
                f"client: expected an AsyncOpenAI, or a function that makes one:"
                f" {type(error).__name__}: {said}"
            ) from error
    create = getattr(getattr(getattr(client, "chat", None), "completions", None), "create", None)
    if isinstance(client, OpenAI) or not callable(create):
        raise UsageError(
            "client: expected an AsyncOpenAI, an AsyncAzureOpenAI or what has their"
            f" chat.completions.create, asynchronous, found one of class {type(client).__name__}"
        )
    return client
