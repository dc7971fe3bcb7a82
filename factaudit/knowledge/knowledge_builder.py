"""Make a knowledge source from a file of pages, a line at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, InputError, Problem, format_error_first_line
from factaudit.files import open_input_file, replace_file_atomically
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR
from factaudit.knowledge.json_lines import read_json_lines
from factaudit.version import __version__

#: Tokens of a passage (Min et al. 2023, §4.1).
PASSAGE_TOKENS = 256
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
    show_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Make an SQLite knowledge source (`factaudit.knowledge.docdb`) from JSONL (also ``.gz``),
    streaming.

    A line is ``{"title", "text"}`` (a text, or a list of paragraphs), ``{"title", "passages"}``
    (kept as they are) or ``{"title", "redirect"}`` (another title for a page). The first page of a
    title is kept; the others are counted. The file is there when it is whole.

    Args:
        passage_tokens: tokens per passage of a text.
        tokenizer: a RoBERTa tokenizer (a local folder, or a name on the hub; extra ``[hf]``), whose
        special tokens are
            kept as ``<s>`` and ``</s>`` as in the original's file; None counts words between white
            space.
        show_progress: called with (bytes read, pages written) now and then.

    Returns what was recorded in the file: tokenizer, passage_tokens, n_pages, n_passages,
    n_duplicates, n_redirects ... Raises `InputError` naming the line of a bad one.
    """
    path = Path(source)
    open_input_file(path).close()
    if passage_tokens < 1:
        raise FactauditError(
            f"a passage holds at least 1 token, found passage_tokens {passage_tokens}"
        )
    cut = choose_knowledge_passage_cutter(tokenizer, passage_tokens)
    counts = {"n_pages": 0, "n_passages": 0, "n_duplicates": 0}
    n_texts = 0

    def show_offset(offset: int) -> None:
        if show_progress is not None:
            show_progress(offset, counts["n_pages"])

    with replace_file_atomically(out) as temporary:
        try:
            with closing(sqlite3.connect(temporary)) as connection:
                # Nobody reads the file before it is whole; titles arrive in any order, so that the
                # cache is large.
                connection.executescript(_EMPTY_DATABASE)
                for number, line in read_json_lines(path, show_offset):
                    if (problem := _find_problem(line)) is not None:
                        raise InputError(
                            str(path), [Problem(problem[0], number, problem[1], "line")]
                        )
                    title = line["title"]
                    if line.get("redirect") is not None:
                        row = (title, line["redirect"])
                        connection.execute("INSERT OR IGNORE INTO redirects VALUES (?, ?)", row)
                        continue
                    passages = [part for part in line.get("passages") or () if part.strip()]
                    if line.get("text") is not None:
                        n_texts += 1
                        passages = cut(
                            [line["text"]] if isinstance(line["text"], str) else line["text"]
                        )
                    row = (title, PASSAGE_SEPARATOR.join(passages))
                    is_new = connection.execute(
                        "INSERT OR IGNORE INTO documents VALUES (?, ?)", row
                    ).rowcount
                    counts["n_pages" if is_new else "n_duplicates"] += 1
                    counts["n_passages"] += len(passages) if is_new else 0
                if not counts["n_pages"]:
                    message = (
                        "the file has no page; expected one JSON object per line, with title and"
                        " text"
                    )
                    raise InputError(str(path), [Problem(message)])
                told: dict[str, Any] = {
                    "made_by": f"factaudit {__version__}",
                    "tokenizer": (
                        tokenizer or "white space"
                        if n_texts
                        else "unknown: the source had passages"
                    ),
                    "passage_tokens": passage_tokens if n_texts else None,
                    "source": path.name,
                    "source_bytes": path.stat().st_size,
                    **counts,
                    "n_redirects": (
                        connection.execute("SELECT COUNT(*) FROM redirects").fetchone()[0]
                    ),
                }
                connection.executemany(
                    "INSERT INTO factaudit_knowledge VALUES (?, ?)", told.items()
                )
                connection.commit()
        except sqlite3.OperationalError as error:  # a full disk, no permission
            raise FactauditError(f"{out}: cannot be written ({error})") from error
    return told


def _find_problem(row: dict[str, Any]) -> tuple[str, str | None] | None:
    """What is wrong with a line, and in which column; None where nothing is."""
    title = row.get("title")
    if not isinstance(title, str) or not title.strip():
        return f"expected a title, found {title!r}", "title"
    given = {
        name: row[name] for name in ("text", "passages", "redirect") if row.get(name) is not None
    }
    if len(given) != 1:
        return (
            f"expected one of text, passages and redirect, found {', '.join(given) or 'none'}",
            None,
        )
    ((name, value),) = given.items()
    parts = [value] if isinstance(value, str) and name != "passages" else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        return "expected a list of texts" if name == "passages" else "expected text", name
    if not "".join(parts).strip():
        return "expected text, found none", name
    has_separator = any(PASSAGE_SEPARATOR in part for part in parts)
    return (
        (f"holds the separator of passages, {PASSAGE_SEPARATOR!r}", name) if has_separator else None
    )


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
    special = {
        tokenizer.bos_token_id,
        tokenizer.eos_token_id,
        tokenizer.cls_token_id,
        tokenizer.sep_token_id,
    }

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
