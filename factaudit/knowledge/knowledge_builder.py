"""How does a file of pages become a knowledge source? A line at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from factaudit.errors import FactauditError, InputError, Problem, format_error_first_line
from factaudit.files import open_input_file, replace_file_atomically
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR
from factaudit.knowledge.json_lines import read_json_lines
from factaudit.text.progress_lines import progress_bar
from factaudit.version import __version__

#: Tokens of a passage (Min et al. 2023, §4.1).
PASSAGE_TOKENS = 256
#: Nobody reads the file before it is whole; titles arrive in any order, so the cache is large.
_EMPTY_DATABASE = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -65536;
CREATE TABLE documents (title PRIMARY KEY, text);
CREATE TABLE redirects (title TEXT PRIMARY KEY, target TEXT NOT NULL);
CREATE TABLE factaudit_knowledge (key TEXT PRIMARY KEY, value);
"""


def build_knowledge_source(
    source: str | Path,
    out: str | Path,
    *,
    passage_tokens: int = PASSAGE_TOKENS,
    tokenizer: str | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Make an SQLite knowledge source (`factaudit.knowledge.docdb`) from JSONL (also ``.gz``),
    streaming.

    A line is ``{"title", "text"}`` (a text, or a list of paragraphs), ``{"title", "passages"}``
    (kept as they are) or ``{"title", "redirect"}`` (another title for a page). The first page of a
    title is kept; the others are counted. The file is there when it is whole.

    Args:
        passage_tokens: tokens per passage of a text.
        tokenizer: a RoBERTa tokenizer (a local folder, or a name on the hub; extra ``[hf]``), whose
            special tokens are kept as ``<s>`` and ``</s>`` as in the original's file; None counts
            words between white space.
        progress: show how many lines are read (on a terminal only).

    Returns what was recorded in the file: tokenizer, passage_tokens, n_pages, n_passages,
    n_duplicates, n_redirects ... Raises `InputError` naming the line of a bad one.
    """
    path = Path(source)
    open_input_file(path).close()
    cut = choose_knowledge_passage_cutter(tokenizer, passage_tokens)
    counts = dict.fromkeys(("n_pages", "n_passages", "n_duplicates"), 0)
    has_texts = False
    lines = progress_bar("pages", "line", of=read_json_lines(path), shown=progress)
    try:
        with (
            replace_file_atomically(out) as temporary,
            closing(sqlite3.connect(temporary)) as connection,
        ):
            connection.executescript(_EMPTY_DATABASE)
            for number, line in lines:
                page = _parse_page(line, str(path), number)
                if page.redirect is not None:
                    row = (page.title, page.redirect)
                    connection.execute("INSERT OR IGNORE INTO redirects VALUES (?, ?)", row)
                    continue
                passages = [part for part in page.passages or () if part.strip()]
                if page.text is not None:
                    has_texts = True
                    passages = cut([page.text] if isinstance(page.text, str) else page.text)
                row = (page.title, PASSAGE_SEPARATOR.join(passages))
                sql = "INSERT OR IGNORE INTO documents VALUES (?, ?)"
                is_new = connection.execute(sql, row).rowcount
                counts["n_pages" if is_new else "n_duplicates"] += 1
                counts["n_passages"] += len(passages) if is_new else 0
            if not counts["n_pages"]:
                message = (
                    "the file has no page; expected one JSON object per line, with title and text"
                )
                raise InputError(str(path), [Problem(message)])
            (n_redirects,) = connection.execute("SELECT COUNT(*) FROM redirects").fetchone()
            used = tokenizer or "white space"
            told: dict[str, Any] = {
                "made_by": f"factaudit {__version__}",
                "tokenizer": used if has_texts else "unknown: the source had passages",
                "passage_tokens": passage_tokens if has_texts else None,
                "source": path.name,
                "source_bytes": path.stat().st_size,
                **counts,
                "n_redirects": n_redirects,
            }
            sql = "INSERT INTO factaudit_knowledge VALUES (?, ?)"
            connection.executemany(sql, told.items())
            connection.commit()
    except sqlite3.OperationalError as error:  # a full disk, no permission
        raise FactauditError(f"{out}: cannot be written ({error})") from error
    return told


class _Page(BaseModel):
    """A line of the file: a text, passages, or another title's page."""

    model_config = ConfigDict(strict=True)

    title: Annotated[str, Field(pattern=r"\S")]
    text: str | list[str] | None = None
    passages: list[str] | None = None
    redirect: str | None = None

    @model_validator(mode="after")
    def _check(self) -> _Page:
        given = self.model_dump(exclude={"title"}, exclude_none=True)
        content = "".join("".join(value) for value in given.values())
        if len(given) != 1:
            named = ", ".join(given) or "none"
            raise ValueError(f"expected one of text, passages and redirect, found {named}")
        if not content.strip():
            raise ValueError("expected text, found none")
        if PASSAGE_SEPARATOR in content:
            raise ValueError(f"holds the separator of passages, {PASSAGE_SEPARATOR!r}")
        return self


def _parse_page(line: dict[str, Any], source: str, number: int) -> _Page:
    """The page of a line. Raises `InputError` that says what is wrong with it."""
    try:
        return _Page.model_validate(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        column = str(first["loc"][0]) if first["loc"] else None
        message = first["msg"].removeprefix("Value error, ").replace("Input should be", "expected")
        raise InputError(source, [Problem(message, number, column, "line")]) from None


def cut_word_passages(texts: Sequence[str], size: int = PASSAGE_TOKENS) -> list[str]:
    """Cut texts, strung together, into passages of ``size`` words between white space."""
    words = [word for part in texts for word in part.split()]
    return [" ".join(words[start : start + size]) for start in range(0, len(words), size)]


def choose_knowledge_passage_cutter(
    name: str | None, size: int
) -> Callable[[Sequence[str]], list[str]]:
    """What cuts texts into passages of ``size`` tokens: of a RoBERTa tokenizer's, else words
    between white space.

    As the original cuts: each part is encoded with its special tokens, and the tokens are strung.
    """
    if name is None:
        return partial(cut_word_passages, size=size)
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise FactauditError(
            f"the tokenizer {name!r} needs transformers: pip install 'factaudit[hf]'"
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise FactauditError(
            f"no tokenizer at {name!r}: {format_error_first_line(error)}"
        ) from None
    ids = "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"
    special = {getattr(tokenizer, name) for name in ids}

    def cut(parts: Sequence[str]) -> list[str]:
        tokens = [
            token
            for part in parts
            if part.strip()
            for token in tokenizer(part, truncation=False)["input_ids"]
        ]
        pieces = [tokens[start : start + size] for start in range(0, len(tokens), size)]
        return [str(tokenizer.decode(piece)) for piece in pieces if set(piece) - special]

    return cut
