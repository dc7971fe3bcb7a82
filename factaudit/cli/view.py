"""``view``: which claims does a run have, in the browser?"""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import PATH_TYPE
from factaudit.cli.output import Outcome, verb


@verb(
    "view",
    short_help="Look at the claims of a run in your browser.",
    example="factaudit view runs/quickstart",
)
@click.argument("run_dir", metavar="RUN", type=PATH_TYPE)
@click.option("--open/--no-open", "open_it", default=True, help="Open the page in your browser.")
def view_command(run_dir: Path, open_it: bool) -> Outcome:
    """Write a page with all claims of a run (claims.html in the run folder) and open it in your
    browser.

    Filter and search the claims, and read their documents, their scores and what judges replied.
    The page needs no network.
    """
    import webbrowser

    from factaudit.experiment.folder import CLAIM_PAGE
    from factaudit.files import resolve_path, write_text
    from factaudit.report.claim_browser import ClaimBrowser
    from factaudit.report.html import render_claim_page

    page = run_dir / CLAIM_PAGE
    write_text(
        page, render_claim_page(ClaimBrowser.read_run_folder(run_dir), resolve_path(run_dir).name)
    )
    if open_it:
        webbrowser.open(resolve_path(page).as_uri())
    return Outcome([str(page)], {"page": page})


COMMANDS = (view_command,)
