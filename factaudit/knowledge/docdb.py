"""FActScore's own knowledge source: one SQLite file of pages, each a title and its passages (Min et al. 2023, §4.1).

The file has a table ``documents(title, text)``; a text is the page's passages joined by `PASSAGE_SEPARATOR`. It is
opened read-only and read by index, so that a file of 20 GB costs no more memory than a small one. Two optional tables
are understood: ``redirects(title, target)`` and ``factaudit_knowledge(key, value)``, which says how the file was made.
"""

from __future__ import annotations

import difflib
import hashlib
import html
import json
import os
import re
import sqlite3
import struct
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from factaudit.errors import FactauditError, InputError, Problem
from factaudit.files import replace_file_atomically

#: What stands between two passages of a page in the original's file.
PASSAGE_SEPARATOR = "####SPECIAL####SEPARATOR####"
#: Where the original keeps its Wikipedia of 1 April 2023: this file in this folder, or in the folder of this variable.
DATABASE_NAME, DEFAULT_FOLDER, FOLDER_VARIABLE = "enwiki-20230401.db", ".cache/factscore", "FACTSCORE_CACHE_DIR"
DATABASE_PATH_VARIABLE = "FACTSCORE_DB_PATH"
#: Up to this size a knowledge source is told from others by its content; a larger one by its size.
MAX_HASHED_BYTES = 100 << 20
#: A file without an index on the title is read whole at each look-up: bearable up to this size.
MAX_UNINDEXED_BYTES = 64 << 20

#: Titles that a topic without a page is compared with.
MAX_COMPARED_TITLES = 5_000
_APOSTROPHES, _DASHES = "['’‘´`ʼ]", "[-‐‑–—−]"
#: Letters that Unicode doesn't take apart.
_LETTERS_WITHOUT_ACCENTS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)

_SQLITE_HEADER = b"SQLite format 3\x00"


@dataclass(frozen=True)
class KnowledgePage:
    """One page: its title as the knowledge source has it, its passages in order, and how the title was found.

    ``title_match`` is ``exact``, ``normalised``, ``redirect`` or ``wikipedia``.
    """

    title: str
    passages: tuple[str, ...]
    title_match: str = "exact"


def find_knowledge_database(path: str | Path | None = None) -> Path:
    """The knowledge source to use: the argument, else ``FACTSCORE_DB_PATH``, else the original's file.

    The original's file lies in the folder ``FACTSCORE_CACHE_DIR``, by default ``.cache/factscore``. Raises
    `FactauditError` that names the places looked at.
    """
    named = path or os.environ.get(DATABASE_PATH_VARIABLE)
    if named:
        return Path(named)
    original = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER) / DATABASE_NAME
    if original.is_file():
        return original
    raise FactauditError(
        f"no knowledge source: none was given, {DATABASE_PATH_VARIABLE} is not set, and there is no "
        f"{original}. Make one with `factaudit knowledge PAGES.jsonl --out FILE`, or get the "
        f"original's {DATABASE_NAME}"
    )


def create_empty_knowledge_database(path: Path) -> Path:
    """A knowledge source without a page, where all pages are to come from elsewhere; kept where there is one."""
    if not path.is_file():
        with replace_file_atomically(path) as temporary, closing(sqlite3.connect(temporary)) as connection:
            connection.execute("CREATE TABLE documents (title PRIMARY KEY, text)")
            connection.commit()
    return path


class DocDB:
    """A knowledge source on disk, read-only; several processes may open it.

    can_be_empty: take one without a page, too (`create_empty_knowledge_database`).
    Raises `InputError` where the file is missing, empty, cut off, not SQLite (an HTML page, say) or of another schema.
    """

    def __init__(self, path: str | Path, *, can_be_empty: bool = False) -> None:
        self.path = Path(path)
        self._can_be_empty = can_be_empty
        _check_docdb_file(self.path)
        self._connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            self._check_schema()
        except sqlite3.DatabaseError as error:
            self.close()
            raise _make_database_error(self.path, f"a damaged SQLite file ({error})") from None
        except BaseException:
            self.close()
            raise

    def passages(self, title: str) -> tuple[str, ...] | None:
        """The passages of the page with exactly this title, in order; None where there is no such page."""
        rows = self._query_rows("SELECT text FROM documents WHERE title = ?", title)
        return None if not rows else tuple(str(rows[0][0] or "").split(PASSAGE_SEPARATOR))

    def find(self, topic: str) -> KnowledgePage | None:
        """The page of a topic: by its exact title or a redirect, then so by the title normalised; else None.

        Normalised: underscores are spaces, runs of white space one space, case is ignored. Where several titles
        differ only in case, the first in the alphabet is taken.
        """
        normal = normalise_page_title(topic)
        for title in dict.fromkeys([topic, *self._list_spelling_variants(_list_docdb_title_variants(normal))]):
            if (passages := self.passages(title)) is not None:
                return KnowledgePage(title, passages, "exact" if title == topic else "normalised")
            if (redirected := self._find_redirected_page(title)) is not None:
                return redirected
        in_any_case = map(self._find_title_in_any_case, self._list_spelling_variants([normal]))
        found = next(filter(None, in_any_case), None)
        return None if found is None else KnowledgePage(found, self.passages(found) or (), "normalised")

    def suggest_titles(self, topic: str, n: int = 3) -> list[str]:
        """Titles that a topic without a page may mean: equal but for accents and punctuation, else similar ones.

        Of a large source only the titles that begin with the same letters are looked at.
        """
        normal = normalise_page_title(topic)
        start = normal[:3] if self._query_rows(f"SELECT 1 FROM documents LIMIT 1 OFFSET {MAX_COMPARED_TITLES}") else ""
        query = "SELECT title FROM documents WHERE title >= ? AND title < ? ORDER BY title LIMIT ?"
        rows = self._query_rows(query, start, f"{start}\U0010ffff", str(MAX_COMPARED_TITLES))
        plain = {str(row[0]): _fold_title(str(row[0])) for row in rows}
        wanted = _fold_title(normal)
        same = [title for title, folded in plain.items() if folded == wanted]
        if not same:
            words = set(wanted.split())
            same = [title for title, folded in plain.items() if words and words <= set(folded.split())]
        near = difflib.get_close_matches(wanted, sorted(set(plain.values())), n, cutoff=0.85)
        return (same or [title for one in near for title, folded in plain.items() if folded == one])[:n]

    def _list_spelling_variants(self, titles: list[str]) -> list[str]:
        """The titles as a source may write them: with each kind of apostrophe and dash, decomposed accents, "_"."""
        marked = [
            re.sub(_APOSTROPHES, apostrophe, re.sub(_DASHES, dash, title))
            for title in titles
            for apostrophe in ("'", "’")
            for dash in ("-", "–")
        ]
        forms = [*titles, *marked]
        forms += [unicodedata.normalize("NFD", form) for form in forms]
        return list(dict.fromkeys([*forms, *(form.replace(" ", "_") for form in forms)]))

    def titles_and_redirects(self) -> Iterator[tuple[str, str]]:
        """(name, title of its page): all titles in order, then all redirects to a page, in order."""
        last = ""
        # A block at a time: other look-ups take their turns in between.
        while rows := self._query_rows("SELECT title FROM documents WHERE title > ? ORDER BY title LIMIT 10000", last):
            yield from ((str(row[0]), str(row[0])) for row in rows)
            last = str(rows[-1][0])
        if self._redirects:
            query = "SELECT r.title, r.target FROM redirects r JOIN documents d ON d.title = r.target ORDER BY r.title"
            yield from ((str(name), str(target)) for name, target in self._query_rows(query))

    @cached_property
    def signature(self) -> str:
        """What tells this knowledge source from others, wherever it lies.

        A hash of its pages and redirects; of a file larger than `MAX_HASHED_BYTES`, whose reading costs minutes, its
        number of bytes.
        """
        size = self.path.stat().st_size
        if size > MAX_HASHED_BYTES:
            return f"bytes:{size}"
        hashed = hashlib.sha256()
        # Not of the file's bytes: those differ between versions of SQLite.
        for table in ("documents", *(["redirects"] if self._redirects else [])):
            columns = "title, text" if table == "documents" else "title, target"
            for row in self._query_rows(f"SELECT {columns} FROM {table} ORDER BY title"):
                hashed.update(json.dumps([str(value or "") for value in row]).encode())
            hashed.update(table.encode())
        return f"sha256:{hashed.hexdigest()}"

    def info(self) -> dict[str, Any]:
        """What the file is: path, bytes, n_pages, n_redirects and, where it was made here, how (flat, for printing)."""
        told: dict[str, Any] = {
            "path": str(self.path),
            "bytes": self.path.stat().st_size,
            "n_pages": self._query_rows("SELECT COUNT(*) FROM documents")[0][0],
            "n_redirects": self._query_rows("SELECT COUNT(*) FROM redirects")[0][0] if self._redirects else 0,
            "indexed": self.has_title_index,
            "signature": self.signature,
        }
        if self._list_table_columns("factaudit_knowledge"):
            told |= dict(self._query_rows("SELECT key, value FROM factaudit_knowledge ORDER BY rowid"))
        else:
            told["made_by"] = "another tool (tokenizer unknown)"
        return told

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> DocDB:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _find_redirected_page(self, title: str) -> KnowledgePage | None:
        rows = self._query_rows("SELECT target FROM redirects WHERE title = ?", title) if self._redirects else []
        passages = self.passages(str(rows[0][0])) if rows else None
        return None if passages is None else KnowledgePage(str(rows[0][0]), passages, "redirect")

    def _find_title_in_any_case(self, title: str) -> str | None:
        """The first title in the alphabet that differs from this one by the case of its letters from a to z.

        By the index that every file has, which knows case: letter by letter, only where a title begins so. A title that
        is not there costs a few look-ups however many there are; comparing without case would read them all.
        """
        if not self.has_title_index:  # it is small, and read whole in any case
            query = "SELECT title FROM documents WHERE title = ? COLLATE NOCASE ORDER BY title LIMIT 1"
            return next((str(row[0]) for row in self._query_rows(query, title)), None)
        starts = [""]
        for letter in title:
            forms = sorted({letter.upper(), letter.lower()}) if letter.isascii() else [letter]
            starts = [start + form for start in starts for form in forms if self._has_title_beginning(start + form)]
        return next((one for one in starts if self._query_rows("SELECT 1 FROM documents WHERE title = ?", one)), None)

    def _has_title_beginning(self, start: str) -> bool:
        rows = self._query_rows("SELECT title FROM documents WHERE title >= ? ORDER BY title LIMIT 1", start)
        return bool(rows) and str(rows[0][0]).startswith(start)

    def _query_rows(self, query: str, *values: str) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise _make_database_error(self.path, f"a damaged SQLite file ({error})") from None

    def _list_table_columns(self, name: str) -> list[str]:
        """The columns of a table, [] where there is none."""
        return [str(row[1]).lower() for row in self._query_rows(f"PRAGMA table_info({name})")]

    def _check_schema(self) -> None:
        columns = self._list_table_columns("documents")
        if not {"title", "text"} <= set(columns):
            rows = self._query_rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            found = f"documents({', '.join(columns)})" if columns else ", ".join(str(row[0]) for row in rows) or "none"
            raise _make_database_error(
                self.path, f"of another schema: expected a table documents(title, text), found {found}"
            )
        self.is_empty = not self._query_rows("SELECT 1 FROM documents LIMIT 1")
        if self.is_empty and not self._can_be_empty:
            raise _make_database_error(self.path, "a knowledge source without a page")
        self._redirects = {"title", "target"} <= set(self._list_table_columns("redirects"))
        plan = self._query_rows("EXPLAIN QUERY PLAN SELECT text FROM documents WHERE title = ?", "")
        self.has_title_index = "SEARCH" in str(plan[0][-1])
        if not self.has_title_index and self.path.stat().st_size > MAX_UNINDEXED_BYTES:
            raise _make_database_error(
                self.path,
                "without an index on the title, so that each look-up would read the whole file; mend it with "
                "`CREATE UNIQUE INDEX documents_title ON documents(title)`",
            )


def normalise_page_title(title: str) -> str:
    """A title with spaces for underscores, single spaces for runs of white space, and accents as Wikipedia has them."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", title).replace("_", " ")).strip()


def _fold_title(title: str) -> str:
    """A title's letters and digits without case and accents."""
    letters = unicodedata.normalize("NFKD", html.unescape(normalise_page_title(title))).casefold()
    letters = letters.translate(_LETTERS_WITHOUT_ACCENTS)
    return " ".join(
        re.findall(r"\w+", "".join(one for one in letters if not unicodedata.combining(one) and one not in "'’´`"))
    )


def _list_docdb_title_variants(title: str) -> list[str]:
    # Wikipedia's titles begin with a capital; names have each word so. The index finds these without a scan.
    words = title.split(" ")
    capital = [word[:1].upper() + word[1:] for word in words]
    alone = [word.capitalize() for word in words]
    forms = [title, title[:1].upper() + title[1:], title.capitalize(), " ".join(capital), " ".join(alone)]
    return list(dict.fromkeys(filter(None, forms)))


def is_docdb_sqlite_file(path: Path) -> bool:
    """Whether a file begins as SQLite's do, as every knowledge source does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER


def _check_docdb_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(str(path), [Problem("no such knowledge source")])
    if not is_docdb_sqlite_file(path):
        raise _make_database_error(path, "not an SQLite file; make one of pages with `factaudit knowledge`")
    with path.open("rb") as file:
        head = file.read(100).ljust(100, b"\x00")
    size = path.stat().st_size
    page_size, changes, pages, valid_for = struct.unpack(">H", head[16:18]) + struct.unpack(">II60xI", head[24:96])
    # The page count holds only where it was written together with the change counter (SQLite's file format, 1.3.7).
    expected = (65536 if page_size == 1 else page_size) * pages
    if changes == valid_for and size < expected:
        raise _make_database_error(path, f"cut off: {size:,} of {expected:,} bytes (an unfinished download?)")


def _make_database_error(path: Path, reason: str) -> InputError:
    return InputError(str(path), [Problem(f"not usable as a knowledge source: {reason}")])
