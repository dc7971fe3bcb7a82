"""All claims of a run folder in the browser: a small server on loopback that reads the Parquet. Nothing is uploaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from factaudit.files import resolve_path
from factaudit.report.claim_browser import CLAIM_KINDS, CLAIM_ORDERS, ClaimBrowser, ClaimBrowserQuery
from factaudit.report.html import hash_page_script, make_html_template_environment, read_page_script, read_style_sheet

#: Claims that one question may ask for.
MAX_CLAIMS_PER_ANSWER = 200


def make_claim_server(run_dir: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the claims of a run folder on 127.0.0.1, not yet running; ``port`` 0 takes a free one.

    ``/`` is the page, ``/api/about`` what its filters offer, ``/api/claims?dataset=&system=&evaluator=&kind=&text=
    &order=&first=&size=`` an answer of {total, rows}. Raises `InputError` for a folder without claims.
    """
    claims = ClaimBrowser.read_run_folder(run_dir)
    page, policy = _render_claim_browser_page(claims, resolve_path(run_dir).name)
    server = ThreadingHTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    own = {f"{host}:{server.server_port}" for host in ("127.0.0.1", "localhost")}
    answers: dict[str, Callable[[dict[str, str]], Any]] = {
        "/api/about": lambda query: claims.list_filter_choices(),
        "/api/claims": lambda query: _answer_claim_query(claims, query),
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


def _answer_claim_query(claim_browser: ClaimBrowser, parameters: dict[str, str]) -> dict[str, Any]:
    asked = ClaimBrowserQuery(
        **{key: parameters.get(key, "") for key in ("dataset", "system", "evaluator", "kind", "text", "order")}
    )
    for name, value, known in (("kind", asked.kind, CLAIM_KINDS), ("order", asked.order, CLAIM_ORDERS)):
        if value and value not in known:
            raise ValueError(f"{name}: expected one of {', '.join(filter(None, known))}, found {value!r}")
    first, size = (
        max(0, int(parameters.get("first", 0))),
        min(MAX_CLAIMS_PER_ANSWER, max(1, int(parameters.get("size", 20)))),
    )
    total, rows = claim_browser.find_claims(asked, first, size)
    return {"total": total, "rows": [claim_browser.make_claim_row(at) for at in rows]}


def _render_claim_browser_page(claim_browser: ClaimBrowser, run_name: str) -> tuple[bytes, str]:
    script = read_page_script()
    choices, explanation = claim_browser.list_filter_choices(), claim_browser.row_explanation
    claims = {"served": True, "packed": None, "kinds": choices["kinds"], "orders": choices["orders"], "most": 0}
    text = (
        make_html_template_environment()
        .get_template("view.html.j2")
        .render(
            claims=claims | {"explanation": explanation},
            name=run_name,
            total=len(claim_browser.table),
            script=script,
            style=read_style_sheet(),
        )
    )
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{hash_page_script(script)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode("utf-8"), policy
