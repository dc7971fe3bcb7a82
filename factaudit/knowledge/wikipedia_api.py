"""Topics that a knowledge source lacks: asked of Wikipedia, kept in a side file (a knowledge source
itself)."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR, KnowledgePage
from factaudit.knowledge.knowledge_builder import PASSAGE_TOKENS, choose_knowledge_passage_cutter
from factaudit.publications.fetching import is_offline
from factaudit.version import __version__

WIKIPEDIA_API = "https://en.wikipedia.org/w/api.php"
#: Another MediaWiki's API to ask in place of `WIKIPEDIA_API`, a mirror's say.
API_VARIABLE = "FACTAUDIT_WIKIPEDIA_API"
_RETRIED_STATUSES = (429, 500, 502, 503, 504)
_MAX_ATTEMPTS = 4


@dataclass
class WikipediaPageCache:
    """Finds a page by Wikipedia's search, cuts its text into passages of 256 words, and remembers
    it in ``path``.

    tokenizer: a RoBERTa tokenizer, to cut passages of 256 of its tokens as the original does
    (`factaudit.knowledge.knowledge_builder.build_knowledge_source`). A side file holds passages of
    one kind.

    A topic without a page is remembered too, so that a resumed run asks nothing twice; a failed
    request is not. Requests are at least ``pause`` seconds apart (Wikipedia's etiquette).
    """

    path: Path
    api: str = WIKIPEDIA_API
    pause: float = 0.1
    timeout: float = 20.0
    tokenizer: str | None = None

    def __post_init__(self) -> None:
        self._next = 0.0
        if self.api == WIKIPEDIA_API:
            self.api = os.environ.get(API_VARIABLE) or WIKIPEDIA_API
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self.path)
        with self._connection:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS documents (title PRIMARY KEY, text)"
            )
            # Which page a topic led to; null: none.
            self._connection.execute("CREATE TABLE IF NOT EXISTS topics (topic PRIMARY KEY, title)")

    def find_page(self, topic: str) -> KnowledgePage | None:
        """The page that Wikipedia's search finds first for the topic; None where it finds none.

        Raises `FactauditError` where Wikipedia cannot be asked.
        """
        query = "SELECT title FROM topics WHERE topic = ?"
        known = self._connection.execute(query, (topic,)).fetchone() or (self._fetch_page(topic),)
        if known[0] is None:
            return None
        text = self._connection.execute(
            "SELECT text FROM documents WHERE title = ?", known
        ).fetchone()
        return KnowledgePage(known[0], tuple(text[0].split(PASSAGE_SEPARATOR)), "wikipedia")

    def close(self) -> None:
        """Close the side file."""
        self._connection.close()

    def _fetch_page(self, topic: str) -> str | None:
        found = self._query_api(list="search", srsearch=topic, srlimit="1").get("search", [])
        title, passages = None, []
        if found:
            title = found[0].get("title")
            pages = self._query_api(
                prop="extracts", explaintext="1", redirects="1", titles=title
            ).get("pages", [])
            cut = choose_knowledge_passage_cutter(self.tokenizer, PASSAGE_TOKENS)
            passages = cut([pages[0].get("extract") or ""]) if pages else []
        title = title if passages else None
        with self._connection:
            if title is not None:
                row = (title, PASSAGE_SEPARATOR.join(passages))
                self._connection.execute("INSERT OR REPLACE INTO documents VALUES (?, ?)", row)
            self._connection.execute("INSERT OR REPLACE INTO topics VALUES (?, ?)", (topic, title))
        return title

    def _query_api(self, **query: str) -> dict[str, Any]:
        """What ``action=query`` answers to these parameters; raises `FactauditError` where there is
        no answer."""
        if is_offline():
            raise FactauditError(
                f"Wikipedia's API at {self.api} was not asked, because of --offline; leave it out"
                " to fetch pages"
            )
        query = {"action": "query", "format": "json", "formatversion": "2", **query}
        agent = f"factaudit/{__version__} (research; factuality evaluation)"
        request = urllib.request.Request(
            f"{self.api}?{urllib.parse.urlencode(query)}", headers={"User-Agent": agent}
        )
        problem = ""
        for attempt in range(_MAX_ATTEMPTS):
            time.sleep(max(0.0, self._next - time.monotonic()))
            wait = self.pause * 2**attempt
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                    return dict(json.loads(reply.read()).get("query", {}))
            except urllib.error.HTTPError as error:
                problem = f"HTTP {error.code}"
                if error.code not in _RETRIED_STATUSES:
                    break
                after = error.headers.get("Retry-After", "")
                wait = min(float(after), 30.0) if after.isdigit() else wait
            except (OSError, ValueError, AttributeError) as error:  # the last: JSON, but no object
                problem = str(error) or type(error).__name__
            finally:
                self._next = time.monotonic() + wait
        raise FactauditError(f"Wikipedia's API at {self.api} could not be asked: {problem}")
