"""Files of the checkout that pages link to outside of docs/ are put into the site."""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

_LINK = re.compile(r"\]\(((?:\.\./)+[\w./-]+)\)")


def _outside(page, link):
    """The file of the checkout that a page's link names, or None where it is a page or a
    picture."""
    target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if target.startswith("docs/") else target


def _place(name):
    # As text: a browser shows it, and mkdocs makes no page of it.
    return f"files/{name.replace('/', '-')}.txt"


def on_files(files, config):
    """Add them."""
    docs = Path(config["docs_dir"])
    pages = {
        page.relative_to(docs).as_posix(): page.read_text("utf-8") for page in docs.rglob("*.md")
    }
    found = {_outside(page, link) for page, text in pages.items() for link in _LINK.findall(text)}
    for name in sorted(found - {None}):
        files.append(File.generated(config, _place(name), abs_src_path=str(docs.parent / name)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead the links there."""
    source = page.file.src_uri

    def lead(link):
        name = _outside(source, link[1])
        return (
            link[0]
            if name is None
            else f"]({posixpath.relpath(_place(name), posixpath.dirname(source) or '.')})"
        )

    return _LINK.sub(lead, markdown)
