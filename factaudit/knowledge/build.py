"""Make a knowledge source from a file of pages, a line at a time."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from factaudit.errors import FactauditError, InputError, Problem
from factaudit.files import from_json
from factaudit.knowledge.docdb import SEPARATOR
from factaudit.signature import digest
from factaudit.version import __version__

#: Tokens of a passage (Min et al. 2023, §4.1).
PASSAGE_TOKENS = 256
_BATCH = 2000  # pages per transaction: what a killed build has to read again


def build(
    source: str | Path,
    out: str | Path,
    *,
    passage_tokens: int = PASSAGE_TOKENS,
    tokenizer: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Make an SQLite knowledge source (`factaudit.knowledge.docdb`) from JSONL (also ``.gz``), streaming.

    A line is ``{"title", "text"}`` (a text, or a list of paragraphs), ``{"title", "passages"}`` (kept as they are) or
    ``{"title", "redirect"}`` (another title for a page). The first page of a title is kept; the others are counted.
    The work goes to ``OUT.partial``, which takes its name when it is whole; a build that was killed goes on where it
    was, if the source and the settings are the same.

    Args:
        passage_tokens: tokens per passage of a text.
        tokenizer: a RoBERTa tokenizer (a local folder, or a name on the hub; extra ``[hf]``), whose special tokens are
            kept as ``<s>`` and ``</s>`` as in the original's file; None counts words between white space.
        progress: called with (bytes read, pages written) after each batch.

    Returns what was recorded in the file: tokenizer, passage_tokens, n_pages, n_passages, n_duplicates, n_redirects ...
    Raises `InputError` naming the line of a bad one.
    """
    path, target = Path(source), Path(out)
    if not path.is_file():
        raise InputError(str(path), [Problem("no such file" if not path.is_dir() else "this is a folder")])
    if passage_tokens < 1:
        raise FactauditError(f"a passage holds at least 1 token, found passage_tokens {passage_tokens}")
    cut = cutter(tokenizer, passage_tokens)
    told: dict[str, Any] = {
        "made_by": f"factaudit {__version__}",
        "tokenizer": tokenizer or "white space",
        "passage_tokens": passage_tokens,
        "source": path.name,
        "source_bytes": path.stat().st_size,
    }
    # A whole checksum would read a dump twice: the size and both ends tell one file from another.
    task = digest(json.dumps(told, sort_keys=True), _ends(path))
    unfinished = target.with_name(target.name + ".partial")
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    with _writable(unfinished):
        connection, state = _open(unfinished, task)

    def counted(parts: list[str]) -> list[str]:
        state["n_texts"] += 1
        return cut(parts)

    with closing(connection), _writable(unfinished):
        for offset, line_number, batch in _batches(path, state):
            pages: list[tuple[str, str]] = []
            redirects: list[tuple[str, str]] = []
            for number, line in batch:
                title, passages, redirect = _page(path, number, line, counted)
                if redirect is not None:
                    redirects.append((title, redirect))
                    continue
                state["n_passages"] += len(passages)
                pages.append((title, SEPARATOR.join(passages)))
            kept = _insert(connection, pages, state)
            state["n_pages"] += kept
            state["n_duplicates"] += len(pages) - kept
            connection.executemany("INSERT OR IGNORE INTO redirects VALUES (?, ?)", redirects)
            state["offset"], state["line"] = offset, line_number
            connection.executemany("INSERT OR REPLACE INTO build VALUES (?, ?)", state.items())
            connection.commit()
            if progress is not None:
                progress(offset, state["n_pages"])
        if not state["n_pages"]:
            raise InputError(str(path), [Problem("the file has no page")])
        told |= {key: state[key] for key in ("n_pages", "n_passages", "n_duplicates")}
        if not state["n_texts"]:
            told |= {"tokenizer": "unknown: the source had passages", "passage_tokens": None}
        told["n_redirects"] = connection.execute("SELECT COUNT(*) FROM redirects").fetchone()[0]
        connection.execute("CREATE INDEX documents_nocase ON documents(title COLLATE NOCASE)")
        connection.execute("CREATE TABLE factaudit_knowledge (key TEXT PRIMARY KEY, value)")
        connection.executemany("INSERT INTO factaudit_knowledge VALUES (?, ?)", told.items())
        connection.execute("DROP TABLE build")
        connection.commit()
    os.replace(unfinished, target)
    return told


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as error:  # a full disk, no permission
        raise FactauditError(f"{path}: cannot be written ({error})") from error


def _open(path: Path, task: str) -> tuple[sqlite3.Connection, dict[str, int]]:
    state = {"offset": 0, "line": 0, "n_pages": 0, "n_passages": 0, "n_duplicates": 0, "n_texts": 0}
    if path.exists():
        connection = sqlite3.connect(path)
        try:
            found = dict(connection.execute("SELECT key, value FROM build"))
            # The source differs, or the settings do, or the last step was under way: begin again.
            if found.pop("task", None) == task and set(found) <= set(state):
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
    connection.execute("INSERT INTO build VALUES ('task', ?)", (task,))
    connection.commit()
    return connection, state


def _insert(connection: sqlite3.Connection, pages: list[tuple[str, str]], state: dict[str, int]) -> int:
    """Insert the pages whose title is new; returns how many. Their passages alone stay counted."""
    kept = 0
    for title, text in pages:
        if connection.execute("INSERT OR IGNORE INTO documents VALUES (?, ?)", (title, text)).rowcount:
            kept += 1
        else:
            state["n_passages"] -= text.count(SEPARATOR) + 1
    return kept


def _batches(path: Path, state: dict[str, int]) -> Iterator[tuple[int, int, list[tuple[int, bytes]]]]:
    """(offset after it, last line number, [(line number, line)]) from where the state stands."""
    with _source(path) as file:
        file.seek(state["offset"])
        batch: list[tuple[int, bytes]] = []
        number = state["line"]
        try:
            for line in iter(file.readline, b""):
                number += 1
                if line.strip():
                    batch.append((number, line))
                if len(batch) == _BATCH:
                    yield file.tell(), number, batch
                    batch = []
        except (EOFError, gzip.BadGzipFile) as error:
            raise InputError(str(path), [Problem(f"not a whole gzip file ({error})")]) from None
        if batch:
            yield file.tell(), number, batch


def _source(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _page(
    path: Path, number: int, line: bytes, cut: Callable[[list[str]], list[str]]
) -> tuple[str, list[str], str | None]:
    def bad(message: str, column: str | None = None) -> InputError:
        return InputError(str(path), [Problem(message, number, column, "line")])

    try:
        row = from_json(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except UnicodeDecodeError:
        raise bad("not UTF-8 text") from None
    except json.JSONDecodeError as error:
        cut_off = "the line is cut off" if not line.endswith(b"\n") else "not JSON"
        raise bad(f"{cut_off}: {error.msg} at character {error.pos + 1}") from None
    if not isinstance(row, dict):
        raise bad(f"expected a JSON object, found {type(row).__name__}")
    row = storable(row)
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
    if any(SEPARATOR in part for part in parts):
        raise bad(f"holds the separator of passages, {SEPARATOR!r}", name)
    passages = [part for part in parts if part.strip()] if name == "passages" else cut(parts)
    if not passages:
        raise bad("expected text, found none", name)
    return title, passages, None


def storable(value: Any) -> Any:
    """A JSON value whose texts can be written: half of a surrogate pair, which JSON can escape, becomes "?"."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [storable(one) for one in value]
    return {key: storable(one) for key, one in value.items()} if isinstance(value, dict) else value


def word_passages(parts: list[str], size: int = PASSAGE_TOKENS) -> list[str]:
    """Cut texts, strung together, into passages of ``size`` words between white space."""
    words = [word for part in parts for word in part.split()]
    return [" ".join(words[start : start + size]) for start in range(0, len(words), size)]


def cutter(tokenizer: str | None, size: int) -> Callable[[list[str]], list[str]]:
    """What cuts texts into passages of ``size`` tokens: of a RoBERTa tokenizer's, else words between white space."""
    return partial(word_passages, size=size) if tokenizer is None else _roberta(tokenizer, size)


def _roberta(name: str, size: int) -> Callable[[list[str]], list[str]]:
    """Passages as the original cuts them: each part is encoded with its special tokens, and the tokens are strung."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise FactauditError(f"the tokenizer {name!r} needs transformers: pip install 'factaudit[hf]'") from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise FactauditError(f"no tokenizer at {name!r}: {str(error).splitlines()[0]}") from None
    special = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id}

    def cut(parts: list[str]) -> list[str]:
        tokens = [token for part in parts if part.strip() for token in tokenizer(part, truncation=False)["input_ids"]]
        pieces = [tokens[start : start + size] for start in range(0, len(tokens), size)]
        return [str(tokenizer.decode(piece)) for piece in pieces if set(piece) - special]

    return cut


def _ends(path: Path) -> bytes:
    with path.open("rb") as file:
        head = file.read(1 << 20)
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        return head + file.read()
