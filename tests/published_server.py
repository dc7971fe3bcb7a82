"""A server on loopback in the place of those where data are published, and a MediaWiki's API beside
it: fixtures."""

from __future__ import annotations

import csv
import http.server
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest


class PublishedFilesServer:
    """An HTTP server on loopback: ``answer(path, request)`` says what it does; ``asked`` counts the
    requests."""

    def __init__(self, answer: Callable[[str, http.server.BaseHTTPRequestHandler], None]) -> None:
        self.asked: Counter[str] = Counter()
        served = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                served.asked[path] += 1
                answer(path, self)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def send_bytes(
    request: http.server.BaseHTTPRequestHandler, body: bytes, length: int | None = None
) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(body) if length is None else length))
    request.end_headers()
    request.wfile.write(body)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of published data: the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FACTAUDIT_DATA", raising=False)
    monkeypatch.delenv("FACTAUDIT_OFFLINE", raising=False)
    return tmp_path / "cache" / "factaudit" / "published"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., PublishedFilesServer]]:
    """Start a server that published files are fetched from."""
    servers = []

    def start(
        answer: Callable[[str, http.server.BaseHTTPRequestHandler], None],
    ) -> PublishedFilesServer:
        servers.append(PublishedFilesServer(answer))
        monkeypatch.setenv("FACTAUDIT_DATA_URL", servers[-1].address)
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def published(
    shared: Path, serve: Callable[..., PublishedFilesServer], monkeypatch: pytest.MonkeyPatch
) -> PublishedFilesServer:
    """The reference data under the addresses where they were published, and people's pages of
    Wikipedia."""
    with (shared / "SOURCES.csv").open(encoding="utf-8") as stream:
        rows = [row for row in csv.DictReader(stream) if row["here"]]
    places = {
        f"/{row['repository']}/{row['commit']}/{row['path']}": shared / row["here"] for row in rows
    }

    def answer(path: str, request: http.server.BaseHTTPRequestHandler) -> None:
        if path in places:
            send_bytes(request, places[path].read_bytes())
        elif path == "/w/api.php":
            send_bytes(
                request, answer_wiki_query(shared, dict(parse_qsl(urlsplit(request.path).query)))
            )
        else:
            request.send_error(404)

    server = serve(answer)
    monkeypatch.setenv("FACTAUDIT_WIKIPEDIA_API", f"{server.address}/w/api.php")
    return server


def answer_wiki_query(shared: Path, query: dict[str, str]) -> bytes:
    """What a MediaWiki says to the two queries that are asked: a search, and a page's text."""
    pages = read_wiki_pages(shared)
    if query.get("list") == "search":
        found = [{"title": query["srsearch"]}] if query["srsearch"] in pages else []
        return json.dumps({"query": {"search": found}}).encode()
    return json.dumps({"query": {"pages": [{"extract": pages[query["titles"]]}]}}).encode()


@cache
def read_wiki_pages(shared: Path) -> dict[str, str]:
    """The text of the pages of 157 people, by title."""
    with (shared / "factscore/knowledge/passages_157_entities.jsonl").open(
        encoding="utf-8"
    ) as lines:
        rows = [json.loads(line) for line in lines]
    return {row["title"]: re.sub("</?s>", " ", " ".join(row["passages"])) for row in rows}
