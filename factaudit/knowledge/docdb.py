"""FActScore's own knowledge source: one SQLite file of pages, each a title and its passages (Min et
al. 2023, §4.1).

The file has a table ``documents(title, text)``; a text is the page's passages joined by
`PASSAGE_SEPARATOR`. It is opened read-only and read by its index on the title, so a file of 20 GB
costs no more memory than a small one. Two further tables may be there: ``redirects(title, target)``
and ``factaudit_knowledge(key, value)``, which says how the file was made.
"""

from __future__ import annotations

import difflib
import os
import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, InputError, Problem
from factaudit.signature import compute_file_checksum

#: What stands between two passages of a page in the original's file.
PASSAGE_SEPARATOR = "####SPECIAL####SEPARATOR####"
#: Where the original keeps its Wikipedia of 1 April 2023: this file in this folder, or in the
#: folder of this variable.
DATABASE_NAME, DEFAULT_FOLDER, FOLDER_VARIABLE = (
    "enwiki-20230401.db",
    ".cache/factscore",
    "FACTSCORE_CACHE_DIR",
)
DATABASE_PATH_VARIABLE = "FACTSCORE_DB_PATH"
#: A larger knowledge source is told from others by its size, since reading it costs minutes.
MAX_HASHED_BYTES = 100 << 20
#: Titles that a topic without a page is compared with.
MAX_COMPARED_TITLES = 5_000
#: Letters that Unicode does not take apart.
_LETTERS_WITHOUT_ACCENTS = str.maketrans(
    {"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"}
)
_SQLITE_HEADER = b"SQLite format 3\x00"


@dataclass(frozen=True)
class KnowledgePage:
    """One page: its title as the knowledge source has it, and its passages in order."""

    title: str
    passages: tuple[str, ...]


def find_knowledge_database(path: str | Path | None = None) -> Path:
    """The knowledge source to use: the argument, else ``FACTSCORE_DB_PATH``, else the original's
    file.

    The original's file lies in the folder ``FACTSCORE_CACHE_DIR``, by default ``.cache/factscore``.
    Raises `FactauditError` that names the places looked at.
    """
    named = path or os.environ.get(DATABASE_PATH_VARIABLE)
    if named:
        return Path(named)
    original = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER) / DATABASE_NAME
    if original.is_file():
        return original
    raise FactauditError(
        f"no knowledge source: none was given, {DATABASE_PATH_VARIABLE} is not set, and there is no"
        f" {original}. Make one with `factaudit knowledge PAGES.jsonl --out FILE`, or get the"
        f" original's {DATABASE_NAME}"
    )


class DocDB:
    """A knowledge source on disk, read-only; several processes may open it.

    Raises `InputError` where the file is missing, empty, cut off, not SQLite (an HTML page, say) or
    of another schema.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError(str(path), [Problem("no such knowledge source")])
        if not is_docdb_sqlite_file(self.path):
            raise self._make_error(
                "not an SQLite file; make one of pages with `factaudit knowledge`"
            )
        self._connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            self._check_schema()
        except BaseException:
            self.close()
            raise

    def passages(self, title: str) -> tuple[str, ...] | None:
        """The passages of the page with exactly this title, in order; None where there is no such
        page."""
        rows = self._query_rows("SELECT text FROM documents WHERE title = ?", title)
        return None if not rows else tuple(str(rows[0][0] or "").split(PASSAGE_SEPARATOR))

    def find(self, topic: str) -> KnowledgePage | None:
        """The page of a topic: by its title or a redirect, as it is written or normalised
        (`normalise_page_title`); else None."""
        for name in dict.fromkeys((topic, normalise_page_title(topic))):
            if (passages := self.passages(name)) is not None:
                return KnowledgePage(name, passages)
            if self._redirects and (
                row := self._query_rows("SELECT target FROM redirects WHERE title = ?", name)
            ):
                target = str(row[0][0])
                if (passages := self.passages(target)) is not None:
                    return KnowledgePage(target, passages)
        return None

    def suggest_titles(self, topic: str) -> list[str]:
        """Titles that are written nearly like a topic without a page.

        Of a large source only the titles that begin with the same letters are looked at.
        """
        normal = normalise_page_title(topic)
        is_large = self._query_rows(f"SELECT 1 FROM documents LIMIT 1 OFFSET {MAX_COMPARED_TITLES}")
        start = normal[:3] if is_large else ""
        query = "SELECT title FROM documents WHERE title >= ? AND title < ? ORDER BY title LIMIT ?"
        rows = self._query_rows(query, start, f"{start}\U0010ffff", str(MAX_COMPARED_TITLES))
        titles = {_fold_title(str(row[0])): str(row[0]) for row in rows}
        near = difflib.get_close_matches(_fold_title(normal), titles, cutoff=0.85)
        return [titles[one] for one in near]

    def titles_and_redirects(self) -> Iterator[tuple[str, str]]:
        """(name, title of its page): all titles in order, then all redirects to a page, in
        order."""
        queries = ["SELECT title, title FROM documents ORDER BY title"]
        if self._redirects:
            to_pages = (
                "SELECT r.title, r.target FROM redirects r JOIN documents d ON d.title = r.target"
            )
            queries.append(f"{to_pages} ORDER BY r.title")
        for query in queries:
            yield from ((str(name), str(page)) for name, page in self._connection.execute(query))

    @cached_property
    def signature(self) -> str:
        """What tells this knowledge source from others, wherever it lies: its file's checksum, or
        its number of bytes where it is larger than `MAX_HASHED_BYTES`."""
        size = self.path.stat().st_size
        return f"bytes:{size}" if size > MAX_HASHED_BYTES else compute_file_checksum(self.path)

    def info(self) -> dict[str, Any]:
        """What the file is: path, bytes, n_pages, n_redirects and, where it was made here, how
        (flat, for printing)."""
        told: dict[str, Any] = {"path": str(self.path), "bytes": self.path.stat().st_size}
        told["n_pages"] = self._query_rows("SELECT COUNT(*) FROM documents")[0][0]
        if self._redirects:
            told["n_redirects"] = self._query_rows("SELECT COUNT(*) FROM redirects")[0][0]
        told["signature"] = self.signature
        if not self._list_table_columns("factaudit_knowledge"):
            return {**told, "made_by": "another tool (tokenizer unknown)"}
        made = self._query_rows("SELECT key, value FROM factaudit_knowledge ORDER BY rowid")
        return told | dict(made)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> DocDB:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _query_rows(self, query: str, *values: str) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._make_error(
                f"a damaged SQLite file, or an unfinished download ({error})"
            ) from None

    def _list_table_columns(self, name: str) -> set[str]:
        """The columns of a table; none where there is no such table."""
        return {str(row[1]).lower() for row in self._query_rows(f"PRAGMA table_info({name})")}

    def _check_schema(self) -> None:
        if not {"title", "text"} <= self._list_table_columns("documents"):
            made = self._query_rows("SELECT sql FROM sqlite_master WHERE type = 'table'")
            found = "; ".join(str(sql) for (sql,) in made) or "no table"
            raise self._make_error(
                f"of another schema: expected a table documents(title, text), found {found}"
            )
        if not self._query_rows("SELECT 1 FROM documents LIMIT 1"):
            raise self._make_error("a knowledge source without a page")
        self._redirects = {"title", "target"} <= self._list_table_columns("redirects")
        plan = self._query_rows("EXPLAIN QUERY PLAN SELECT text FROM documents WHERE title = ?", "")
        if "SEARCH" not in str(plan[0][-1]):
            raise self._make_error(
                "without an index on the title, so that each look-up would read the whole file;"
                " mend it with `CREATE UNIQUE INDEX documents_title ON documents(title)`"
            )

    def _make_error(self, reason: str) -> InputError:
        problem = Problem(f"not usable as a knowledge source: {reason}")
        return InputError(str(self.path), [problem])


def normalise_page_title(title: str) -> str:
    """A title with spaces for underscores, single spaces for runs of white space, and accents as
    Wikipedia has them."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", title).replace("_", " ")).strip()


def fold_letters(text: str) -> str:
    """A text in lower case without accents."""
    letters = unicodedata.normalize("NFKD", text).casefold().translate(_LETTERS_WITHOUT_ACCENTS)
    return "".join(one for one in letters if not unicodedata.combining(one))


def _fold_title(title: str) -> str:
    """A title's words without case, accents and punctuation, in the alphabet's order: "Müller,
    Thomas" is his name."""
    plain = re.sub("['’‘´`ʼ]", "", fold_letters(normalise_page_title(title)))
    return " ".join(sorted(re.findall(r"\w+", plain)))


def is_docdb_sqlite_file(path: Path) -> bool:
    """Whether a file begins as SQLite's do, as every knowledge source does."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER
