"""How is the server reached that the settings name, and how does the cache know it?"""

from __future__ import annotations

from urllib.parse import urlsplit

from factaudit.llm.http_transport import HTTPTransport
from factaudit.llm.local_server import LOCAL_BASE_URL
from factaudit.llm.settings import LLMSettings
from factaudit.llm.user_client import UserClientTransport


def find_server_of_cached_llm_replies(
    settings: LLMSettings, transport: HTTPTransport | UserClientTransport | None = None
) -> str:
    """The server as cache keys have it: its name, else its address; "" of one that runs here, whose weights they have.

    A client that a function makes is made, to know its address, unless the settings give the server a name.
    """
    if settings.server_name or settings.base_url == LOCAL_BASE_URL:
        return settings.server_name
    return _normalise_llm_server_address((transport or make_transport(settings)).server_address())


def make_transport(settings: LLMSettings, api_key: str | None = None) -> HTTPTransport | UserClientTransport:
    """The way to the server that settings name. Nothing is looked up, connected or started yet."""
    return HTTPTransport(settings, api_key) if settings.client is None else UserClientTransport(settings)


def _normalise_llm_server_address(address: str) -> str:
    """A server's address in one form, however it was written.

    >>> _normalise_llm_server_address("HTTP://Localhost:80/v1/"), _normalise_llm_server_address("client mine:make")
    ('http://localhost/v1', 'client mine:make')
    """
    parts = urlsplit(address)
    if not parts.hostname:
        return address
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port in (None, {"http": 80, "https": 443}.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
