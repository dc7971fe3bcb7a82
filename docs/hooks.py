"""What the site does besides: files of the checkout that pages link to are put into it."""

import re
from pathlib import Path

from mkdocs.structure.files import File

_LINK = re.compile(r"\]\(\.\./([\w./-]+)\)")


def on_files(files, config):
    """Add what the pages link to outside of docs/."""
    docs = Path(config["docs_dir"])
    for name in sorted({name for page in docs.glob("*.md") for name in _LINK.findall(page.read_text("utf-8"))}):
        files.append(File.generated(config, _place(name), abs_src_path=str(docs.parent / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead the links there."""
    return _LINK.sub(lambda link: f"]({_place(link[1])})", markdown)


def _place(name):
    # As text: a browser shows it, and mkdocs makes no page of it.
    return f"files/{name.replace('/', '-')}.txt"
