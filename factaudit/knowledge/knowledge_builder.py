"""Make a knowledge source from a file of pages, a line at a time."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, InputError, Problem, format_error_first_line
from factaudit.files import delete_unheld_folder, hold_folder_lock, open_input_file
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR
from factaudit.knowledge.json_lines import parse_knowledge_json_line
from factaudit.signature import hash_texts
from factaudit.version import __version__

#: Tokens of a passage (Min et al. 2023, §4.1).
PASSAGE_TOKENS = 256
_PAGES_PER_TRANSACTION = 2000  # pages per transaction: what a killed build has to read again


def build_knowledge_source(
    source: str | Path,
    out: str | Path,
    *,
    passage_tokens: int = PASSAGE_TOKENS,
    tokenizer: str | None = None,
    show_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Make an SQLite knowledge source (`factaudit.knowledge.docdb`) from JSONL (also ``.gz``), streaming.

    A line is ``{"title", "text"}`` (a text, or a list of paragraphs), ``{"title", "passages"}`` (kept as they are) or
    ``{"title", "redirect"}`` (another title for a page). The first page of a title is kept; the others are counted. The
    work goes to ``OUT.partial``, which takes its name when it is whole; a build that was killed goes on where it was,
    if the source and the settings are the same.

    Args:
        passage_tokens: tokens per passage of a text.
        tokenizer: a RoBERTa tokenizer (a local folder, or a name on the hub; extra ``[hf]``), whose special tokens are
            kept as ``<s>`` and ``</s>`` as in the original's file; None counts words between white space.
        show_progress: called with (bytes read, pages written) after each batch.

    Returns what was recorded in the file: tokenizer, passage_tokens, n_pages, n_passages, n_duplicates, n_redirects ...
    Raises `InputError` naming the line of a bad one.
    """
    target = Path(out)
    path = Path(source)
    open_input_file(path).close()
    if passage_tokens < 1:
        raise FactauditError(f"a passage holds at least 1 token, found passage_tokens {passage_tokens}")
    cut = choose_knowledge_passage_cutter(tokenizer, passage_tokens)
    told: dict[str, Any] = {
        "made_by": f"factaudit {__version__}",
        "tokenizer": tokenizer or "white space",
        "passage_tokens": passage_tokens,
        "source": path.name,
        "source_bytes": path.stat().st_size,
    }
    # A whole checksum would read a dump twice: the size and both ends tell one file from another.
    fingerprint = _hash_first_and_last_bytes_of_knowledge_file(path)
    task = hash_texts(json.dumps(told, sort_keys=True), fingerprint)
    with _hold_unfinished_knowledge_database(target, task) as (connection, state):

        def counted(parts: list[str]) -> list[str]:
            state["n_texts"] += 1
            return cut(parts)

        for offset, line_number, batch in _read_knowledge_line_batches(path, state):
            pages: list[tuple[str, str]] = []
            redirects: list[tuple[str, str]] = []
            for number, line in batch:
                title, passages, redirect = _parse_knowledge_page_line(path, number, line, counted)
                if redirect is not None:
                    redirects.append((title, redirect))
                    continue
                state["n_passages"] += len(passages)
                pages.append((title, PASSAGE_SEPARATOR.join(passages)))
            kept = _insert_knowledge_pages(connection, pages, state)
            state["n_pages"] += kept
            state["n_duplicates"] += len(pages) - kept
            connection.executemany("INSERT OR IGNORE INTO redirects VALUES (?, ?)", redirects)
            state["offset"], state["line"] = offset, line_number
            connection.executemany("INSERT OR REPLACE INTO build VALUES (?, ?)", state.items())
            connection.commit()
            if show_progress is not None:
                show_progress(offset, state["n_pages"])
        if not state["n_pages"]:
            raise InputError(
                str(path), [Problem("the file has no page; expected one JSON object per line, with title and text")]
            )
        told |= {key: state[key] for key in ("n_pages", "n_passages", "n_duplicates")}
        if not state["n_texts"]:
            told |= {"tokenizer": "unknown: the source had passages", "passage_tokens": None}
        told["n_redirects"] = connection.execute("SELECT COUNT(*) FROM redirects").fetchone()[0]
        connection.execute("CREATE INDEX documents_nocase ON documents(title COLLATE NOCASE)")
        connection.execute("CREATE TABLE factaudit_knowledge (key TEXT PRIMARY KEY, value)")
        connection.executemany("INSERT INTO factaudit_knowledge VALUES (?, ?)", told.items())
        connection.execute("DROP TABLE build")
        connection.commit()
    return told


@contextmanager
def _hold_unfinished_knowledge_database(
    target: Path, build_id: str
) -> Iterator[tuple[sqlite3.Connection, dict[str, int]]]:
    """The file that takes the name of ``target`` at the end of the block, for this process alone, and its state."""
    unfinished = target.with_name(target.name + ".partial")
    lock_folder = target.with_name(f".{target.name}.lock")
    try:
        with hold_folder_lock(lock_folder, str(target)):
            try:
                connection, state = _open_partial_knowledge_database(unfinished, build_id)
                with closing(connection):
                    yield connection, state
            except sqlite3.OperationalError as error:  # a full disk, no permission
                raise FactauditError(f"{unfinished}: cannot be written ({error})") from error
            os.replace(unfinished, target)
    finally:
        delete_unheld_folder(lock_folder)


def _open_partial_knowledge_database(path: Path, build_id: str) -> tuple[sqlite3.Connection, dict[str, int]]:
    state = {"offset": 0, "line": 0, "n_pages": 0, "n_passages": 0, "n_duplicates": 0, "n_texts": 0}
    if path.exists():
        connection = sqlite3.connect(path)
        try:
            found = dict(connection.execute("SELECT key, value FROM build"))
            # The source differs, or the settings do, or the last step was under way: begin again.
            if found.pop("task", None) == build_id and set(found) <= set(state):
                connection.execute("DROP INDEX IF EXISTS documents_nocase")
                connection.execute("DROP TABLE IF EXISTS factaudit_knowledge")
                return connection, state | found
        except sqlite3.DatabaseError:
            pass
        connection.close()
        for suffix in ("", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA cache_size = -65536")  # 64 MB: titles arrive in any order
    connection.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
    connection.execute("CREATE TABLE redirects (title TEXT PRIMARY KEY, target TEXT NOT NULL)")
    connection.execute("CREATE TABLE build (key TEXT PRIMARY KEY, value)")
    connection.execute("INSERT INTO build VALUES ('task', ?)", (build_id,))
    connection.commit()
    return connection, state


def _insert_knowledge_pages(connection: sqlite3.Connection, pages: list[tuple[str, str]], state: dict[str, int]) -> int:
    """Insert the pages whose title is new; returns how many. Their passages alone stay counted."""
    kept = 0
    for title, text in pages:
        if connection.execute("INSERT OR IGNORE INTO documents VALUES (?, ?)", (title, text)).rowcount:
            kept += 1
        else:
            state["n_passages"] -= text.count(PASSAGE_SEPARATOR) + 1
    return kept


def _read_knowledge_line_batches(
    path: Path, state: dict[str, int]
) -> Iterator[tuple[int, int, list[tuple[int, bytes]]]]:
    """(offset after it, last line number, [(line number, line)]) from where the state stands."""
    with open_input_file(path) as file:
        file.seek(state["offset"])
        batch: list[tuple[int, bytes]] = []
        number = state["line"]
        try:
            for line in iter(file.readline, b""):
                number += 1
                if line.strip():
                    batch.append((number, line))
                if len(batch) == _PAGES_PER_TRANSACTION:
                    yield file.tell(), number, batch
                    batch = []
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(str(path), [Problem(f"not a whole gzip file ({error})")]) from None
        if batch:
            yield file.tell(), number, batch


def _parse_knowledge_page_line(
    path: Path, number: int, line: bytes, cut_passages: Callable[[list[str]], list[str]]
) -> tuple[str, list[str], str | None]:
    def bad(message: str, column: str | None = None) -> InputError:
        return InputError(str(path), [Problem(message, number, column, "line")])

    try:
        row = parse_knowledge_json_line(line, number)
    except ValueError as error:
        raise bad(str(error)) from None
    title = row.get("title")
    if not isinstance(title, str) or not title.strip():
        raise bad(f"expected a title, found {title!r}", "title")
    given = [name for name in ("text", "passages", "redirect") if row.get(name) is not None]
    if len(given) != 1:
        raise bad(f"expected one of text, passages and redirect, found {', '.join(given) or 'none'}")
    name, value = given[0], row[given[0]]
    if name == "redirect":
        if not isinstance(value, str) or not value.strip():
            raise bad(f"expected a title, found {value!r}", name)
        return title, [], value
    parts = [value] if isinstance(value, str) and name == "text" else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise bad(f"expected {'text, or ' if name == 'text' else ''}a list of texts", name)
    if any(PASSAGE_SEPARATOR in part for part in parts):
        raise bad(f"holds the separator of passages, {PASSAGE_SEPARATOR!r}", name)
    passages = [part for part in parts if part.strip()] if name == "passages" else cut_passages(parts)
    if not passages:
        raise bad("expected text, found none", name)
    return title, passages, None


def cut_word_passages(texts: list[str], size: int = PASSAGE_TOKENS) -> list[str]:
    """Cut texts, strung together, into passages of ``size`` words between white space."""
    words = [word for part in texts for word in part.split()]
    return [" ".join(words[start : start + size]) for start in range(0, len(words), size)]


def choose_knowledge_passage_cutter(name: str | None, size: int) -> Callable[[list[str]], list[str]]:
    """What cuts texts into passages of ``size`` tokens: of a RoBERTa tokenizer's, else words between white space.

    As the original cuts: each part is encoded with its special tokens, and the tokens are strung.
    """
    if name is None:
        return partial(cut_word_passages, size=size)
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise FactauditError(f"the tokenizer {name!r} needs transformers: pip install 'factaudit[hf]'") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise FactauditError(f"no tokenizer at {name!r}: {format_error_first_line(error)}") from None
    special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id}

    def cut(parts: list[str]) -> list[str]:
        tokens = [token for part in parts if part.strip() for token in tokenizer(part, truncation=False)["input_ids"]]
        pieces = [tokens[start : start + size] for start in range(0, len(tokens), size)]
        return [str(tokenizer.decode(piece)) for piece in pieces if set(piece) - special]

    return cut


def _hash_first_and_last_bytes_of_knowledge_file(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(1 << 20)
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        return head + file.read()
