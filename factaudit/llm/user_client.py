"""How are requests sent through a user's own client? `AsyncOpenAI`, `AsyncAzureOpenAI` or what wraps one.

Whatever instruments the SDK (tracing, gateways, authentication) then sees every call. Only the way to the server
differs from `factaudit.llm.http_transport`; cache, ledger, limits and retries are those of `factaudit.llm.client`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.llm.http_transport import HTTPAnswer
from factaudit.llm.server_errors import ServerAttemptFailure, redact_keys_in_server_error
from factaudit.llm.settings import SECRET_NAME_PATTERN, LLMSettings
from factaudit.spec_string import import_object_of_spec_string

_Result = TypeVar("_Result")
#: Errors that no request gets past: the object is not what it should be.
_USELESS = (TypeError, AttributeError, NotImplementedError, ImportError)
#: By id of a client object: how many transports use it now, and its ``max_retries`` before.
_retries_before: dict[int, tuple[int, int]] = {}
_lock = threading.Lock()


class BlockingClientError(UsageError):
    """A client object has answered without being awaited. The call was made, and may have been billed."""


class UserClientTransport:
    """The way to a server through ``settings.client``: an object, or a function, or a function's name, that makes one.

    All calls of a process run in one event loop, in a thread of its own: a client's connections belong to the loop that
    they were opened in. While a transport is in use its client's ``max_retries`` is 0, because the ledger would not
    know of calls that the client repeats by itself.
    """

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._client: Any = None
        self._has_posted = False

    def _find_client(self) -> Any:
        if self._client is None:
            self._client = make_user_client(self._settings.client)
        return self._client

    def bind_event_loop(self) -> None:
        """Do nothing: nothing here belongs to the caller's event loop."""

    async def post(self, body: dict[str, Any]) -> HTTPAnswer | ServerAttemptFailure:
        """Send one chat request. Raises `FactauditError` where no request can be sent."""
        client, timeout = self._find_client(), self._settings.timeout
        if not self._has_posted:
            _suspend_user_client_retries(client)
            self._has_posted = True
        try:
            async with asyncio.timeout(timeout):
                return _encode_user_client_completion(
                    await _run_in_client_loop(_create_user_client_completion(client, body))
                )
        except FactauditError:
            raise
        except TimeoutError:
            return ServerAttemptFailure(f"no answer within {timeout:g} seconds", timed_out=True)
        except Exception as error:  # the SDK's, its HTTP client's, or those of what wraps them
            if isinstance(error, _USELESS):
                raise UsageError(f"client {self._name}: {self.redact_keys(format_error_first_line(error))}") from error
            return _convert_user_client_error(error, self.redact_keys(format_error_first_line(error)))

    async def close(self) -> None:
        """Close a client that was made here; give the user's own object its retries back."""
        client, self._client = self._client, None
        if not self._has_posted:
            return
        self._has_posted = False
        _restore_user_client_retries(client)
        if client is not self._settings.client and (close := getattr(client, "close", None)) is not None:
            with suppress(Exception):
                await _run_in_client_loop(_await_user_client(close()))

    @property
    def _name(self) -> str:
        client = self._settings.client
        return client if isinstance(client, str) else getattr(client, "__qualname__", type(client).__qualname__)

    @cached_property
    def _address(self) -> str:
        address = urlsplit(str(getattr(self._find_client(), "base_url", None) or ""))
        if not address.hostname:
            return f"client {self._name}"
        return urlunsplit((address.scheme, address.netloc.rpartition("@")[2], address.path.rstrip("/"), "", ""))

    def find_account_key(self) -> str:
        """What tells this account from others at the same server."""
        key = getattr(self._find_client(), "api_key", "")
        return key if isinstance(key, str) else ""

    def server_address(self) -> str:
        """The client's address without user, password or query; the client's name where it tells none."""
        return self._address

    def redact_keys(self, text: str) -> str:
        """A text without the client's key and secret headers, and without what looks like a key."""
        headers = getattr(self._client, "default_headers", None)
        pairs = headers.items() if isinstance(headers, Mapping) else ()
        secrets = [value for name, value in pairs if isinstance(value, str) and SECRET_NAME_PATTERN.search(name)]
        secrets += [word for value in secrets for word in value.split()[1:]]
        key = getattr(self._client, "api_key", None)
        return redact_keys_in_server_error(text, *secrets, key if isinstance(key, str) else None)


def make_user_client(value: Any) -> Any:
    """The client object that ``value`` is, makes or names. Raises `UsageError` where it is none, or a blocking one."""
    client = value
    if isinstance(value, str):
        module, _, attribute = value.partition(":")
        client = import_object_of_spec_string("client", module, attribute)
    if not _is_chat_client(client) and callable(client):
        try:
            client = client()
        except Exception as error:  # the user's code raises as it pleases
            name = value if isinstance(value, str) else getattr(value, "__qualname__", "")
            raise UsageError(
                f"client {name}: {type(error).__name__}: {redact_keys_in_server_error(format_error_first_line(error))}"
            ) from error
    if inspect.iscoroutine(client):
        client.close()
        raise UsageError("client: expected a function that returns a client, found an asynchronous one")
    kind = f"the class {client.__name__}" if isinstance(client, type) else f"one of class {type(client).__name__}"
    if not _is_chat_client(client):
        raise UsageError(
            "client: expected an AsyncOpenAI, an AsyncAzureOpenAI or what has their chat.completions.create,"
            f" found {kind}"
        )
    from openai import OpenAI

    if isinstance(client, OpenAI):
        raise UsageError(f"client: expected an asynchronous client, found {kind}: use Async{type(client).__name__}")
    return client


def _is_chat_client(client: Any) -> bool:
    completions = getattr(getattr(client, "chat", None), "completions", None)
    return not isinstance(client, type) and callable(getattr(completions, "create", None))


async def _create_user_client_completion(client: Any, body: Mapping[str, Any]) -> Any:
    known = _list_sdk_params()
    params = {name: value for name, value in body.items() if name in known}
    # What the SDK does not know (top_k, say) goes into the same body.
    if others := {name: value for name, value in body.items() if name not in known}:
        params["extra_body"] = others
    return await _await_user_client(client.chat.completions.create(**params), must_wait=True)


async def _await_user_client(value: Any, must_wait: bool = False) -> Any:
    if inspect.isawaitable(value):
        return await value
    if must_wait:
        raise BlockingClientError("client: its chat.completions.create is not asynchronous")
    return value


@cache
def _list_sdk_params() -> frozenset[str]:
    from openai.resources.chat.completions import AsyncCompletions

    return frozenset(inspect.signature(AsyncCompletions.create).parameters)


def _encode_user_client_completion(completion: Any) -> HTTPAnswer:
    """The completion as the JSON text of an HTTP answer, which is then read and checked as any other."""
    if hasattr(completion, "model_dump"):
        completion = completion.model_dump(warnings=False)
    # A text is what the SDK gives for an answer that is not JSON.
    return HTTPAnswer(200, {}, completion if isinstance(completion, str) else json.dumps(completion, default=str))


def _convert_user_client_error(error: Exception, reason: str) -> HTTPAnswer | ServerAttemptFailure:
    """An error of the SDK, or of another client, as an HTTP answer or a failure that may pass."""
    import openai

    reason = f"{type(error).__name__}: {reason[:300]}"
    if isinstance(error, openai.APIStatusError):
        return HTTPAnswer(error.status_code, error.response.headers, error.response.text)
    # Of the SDK's connection errors the cause tells whether a server was reached.
    if type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ProxyError"):
        return ServerAttemptFailure(f"connection: {reason}", unreached=True)
    if isinstance(error, openai.APITimeoutError):
        return ServerAttemptFailure(reason, timed_out=True)
    if isinstance(error, openai.APIResponseValidationError | ValueError):
        return ServerAttemptFailure(f"unreadable answer: {reason}", malformed=True)
    if isinstance(error, openai.OpenAIError) and not isinstance(error, openai.APIError):
        raise FactauditError(f"client: {reason}") from error  # no key, say
    return ServerAttemptFailure(reason, dropped=True)


def _suspend_user_client_retries(client: Any) -> None:
    with _lock:
        n_users, before = _retries_before.get(id(client), (0, getattr(client, "max_retries", None)))
        if isinstance(before, int):
            client.max_retries = 0
            _retries_before[id(client)] = n_users + 1, before


def _restore_user_client_retries(client: Any) -> None:
    with _lock:
        n_users, before = _retries_before.pop(id(client), (0, 0))
        if n_users > 1:
            _retries_before[id(client)] = n_users - 1, before
        elif n_users:
            client.max_retries = before


async def _run_in_client_loop(work: Coroutine[Any, Any, _Result]) -> _Result:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _start_client_loop()))


@cache
def _start_client_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="factaudit-client", daemon=True).start()
    return loop
