"""The claims of a run in the browser: ``view``."""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import PATH, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer


@click.command(
    cls=Verb,
    gives={"address": "string: where the page is served, until the command is ended"},
    short_help="Look at all claims of a run.",
    epilog=example("factaudit view runs/quickstart"),
)
@click.argument("run_dir", type=PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0 takes a free one.", show_default=True)
@click.option("--open/--no-open", "open_it", default=True, help="Open it in the browser.")
def view(run_dir: Path, port: int, open_it: bool) -> None:
    """Look at all claims of a run: filter, read documents, scores and replies. Only this machine is served."""
    import webbrowser

    from factaudit.report.view import serve

    server = serve(run_dir, port)
    address = f"http://127.0.0.1:{server.server_port}/"
    say(f"{address}   (Ctrl-C ends it)")
    answer({"address": address})
    if open_it:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("")
    finally:
        server.server_close()


COMMANDS = (view,)
