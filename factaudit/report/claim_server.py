"""How can all claims of a run be read in a browser? A page on loopback; nothing is uploaded."""

from __future__ import annotations

import gzip
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from factaudit.files import resolve_path
from factaudit.report.claim_browser import ClaimBrowser, encode_page_content
from factaudit.report.html import hash_page_script, make_html_template_environment, read_page_script, read_style_sheet

#: The page holds so many claims, the most telling ones: a browser takes some gigabytes for a million.
MAX_SERVED_CLAIMS = 200_000


def make_claim_server(run_dir: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of the claims of a run folder on 127.0.0.1, not yet running; ``port`` 0 takes a free one.

    ``/`` is the page, ``/claims.json`` what it holds (`ClaimBrowser.make_page_content`). Raises `InputError` for a
    folder without claims.
    """
    claims = ClaimBrowser.read_run_folder(run_dir)
    script = read_page_script()
    content = {
        "/": ("text/html; charset=utf-8", _render_claim_page(claims, resolve_path(run_dir).name, script)),
        "/claims.json": ("application/json", encode_page_content(claims.make_page_content(MAX_SERVED_CLAIMS))),
    }
    packed = {path: (kind, gzip.compress(body, 6, mtime=0)) for path, (kind, body) in content.items()}
    policy = (
        f"default-src 'none'; connect-src 'self'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{hash_page_script(script)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    server = ThreadingHTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    own = {f"{host}:{server.server_port}" for host in ("127.0.0.1", "localhost")}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page of elsewhere whose name was pointed at this machine asks under its own name.
            if self.headers.get("Host") not in own:
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            if self.path not in packed:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            kind, body = packed[self.path]
            self.send_response(HTTPStatus.OK)
            for name, value in (
                ("Content-Type", kind),
                ("Content-Encoding", "gzip"),
                ("Content-Length", str(len(body))),
                ("Content-Security-Policy", policy),
                ("X-Content-Type-Options", "nosniff"),
                ("Cache-Control", "no-store"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the terminal is the user's."""

    server.RequestHandlerClass = Handler
    return server


def _render_claim_page(claims: ClaimBrowser, run_name: str, script: str) -> bytes:
    template = make_html_template_environment().get_template("view.html.j2")
    page = template.render(
        claims={"packed": None, "command": None, "explanation": claims.row_explanation},
        name=run_name,
        total=len(claims.table),
        script=script,
        style=read_style_sheet(),
    )
    return page.encode("utf-8")
