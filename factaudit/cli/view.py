"""``view``: which claims does a run have, in the browser?"""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import PATH_TYPE
from factaudit.cli.terminal import print_line


@click.command(
    "view",
    cls=JsonOutputCommand,
    short_help="Look at the claims of a run in your browser.",
    example="factaudit view runs/quickstart",
)
@click.argument("run_dir", type=PATH_TYPE)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port to serve on; 0 takes a free one.",
    show_default=True,
)
@click.option("--open/--no-open", "open_it", default=True, help="Open the page in your browser.")
def view_command(run_dir: Path, port: int, open_it: bool) -> None:
    """Look at the claims of a run in your browser.

    Filter them, and read their documents, their scores and what judges replied.

    Only this machine can open the page.
    """
    import webbrowser

    from factaudit.report.claim_server import make_claim_server

    server = make_claim_server(run_dir, port)
    address = f"http://127.0.0.1:{server.server_port}/"
    print_line(f"{address}   (Ctrl-C ends it)")
    print_json_output({"address": address})
    if open_it:
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print_line("")
    finally:
        server.server_close()


COMMANDS = (view_command,)
