"""All claims of a run folder in the browser: a small server on loopback that reads the Parquet. Nothing is uploaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from factaudit.report.claims import KINDS, Asked, Claims
from factaudit.report.html import environment, hash_of, script_of, style_of

#: Claims that one question may ask for.
MAX_SIZE = 200


def serve(run_dir: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the claims of a run folder on 127.0.0.1, not yet running; ``port`` 0 takes a free one.

    ``/`` is the page, ``/api/about`` what its filters offer, ``/api/claims?dataset=&system=&evaluator=&kind=&text=
    &first=&size=`` an answer of {total, rows}. Raises `InputError` for a folder without claims.
    """
    claims = Claims.of(run_dir)
    page, policy = _page(claims, run_dir.resolve().name)
    server = ThreadingHTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    own = {f"{host}:{server.server_port}" for host in ("127.0.0.1", "localhost")}
    answers: dict[str, Callable[[dict[str, str]], Any]] = {
        "/api/about": lambda query: claims.about(),
        "/api/claims": lambda query: _found(claims, query),
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page of elsewhere whose name was pointed at this machine asks under its own name.
            if self.headers.get("Host") not in own:
                return self._send(HTTPStatus.FORBIDDEN, b"not here", "text/plain")
            url = urlsplit(self.path)
            if url.path == "/":
                return self._send(HTTPStatus.OK, page, "text/html; charset=utf-8")
            if url.path not in answers:
                return self._send(HTTPStatus.NOT_FOUND, b"nothing here", "text/plain")
            try:
                answer = answers[url.path]({key: values[0] for key, values in parse_qs(url.query).items()})
            except ValueError as error:
                return self._send(HTTPStatus.BAD_REQUEST, str(error).encode(), "text/plain; charset=utf-8")
            data = json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
            return self._send(HTTPStatus.OK, data, "application/json")

        def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
            self.send_response(status)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Length", str(len(body))),
                ("Content-Security-Policy", policy),
                ("X-Content-Type-Options", "nosniff"),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the terminal is the user's."""

    server.RequestHandlerClass = Handler
    return server


def _found(claims: Claims, query: dict[str, str]) -> dict[str, Any]:
    asked = Asked(**{key: query.get(key, "") for key in ("dataset", "system", "evaluator", "kind", "text")})
    if asked.kind and asked.kind not in KINDS:
        raise ValueError(f"kind: expected one of {', '.join(KINDS)}, found {asked.kind!r}")
    first, size = max(0, int(query.get("first", 0))), min(MAX_SIZE, max(1, int(query.get("size", 20))))
    total, rows = claims.find(asked, first, size)
    return {"total": total, "rows": [claims.row(at) for at in rows]}


def _page(claims: Claims, name: str) -> tuple[bytes, str]:
    script = script_of()
    text = (
        environment()
        .get_template("view.html.j2")
        .render(
            claims={"served": True, "packed": None, "kinds": KINDS, "most": 0},
            name=name,
            total=len(claims.table),
            script=script,
            style=style_of(),
        )
    )
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{hash_of(script)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode("utf-8"), policy
