"""Which page does Wikipedia have for a topic that the knowledge source lacks? Pages are kept in a
side file, which is a knowledge source itself."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError
from factaudit.knowledge.docdb import PASSAGE_SEPARATOR, KnowledgePage
from factaudit.knowledge.knowledge_builder import cut_word_passages
from factaudit.publications.fetching import is_offline
from factaudit.version import __version__

WIKIPEDIA_API = "https://en.wikipedia.org/w/api.php"
#: Another MediaWiki's API to ask in place of `WIKIPEDIA_API`, a mirror's say.
API_VARIABLE = "FACTAUDIT_WIKIPEDIA_API"
#: Seconds between two requests (Wikipedia's etiquette); after a failure twice as long each time, or
#: what the server says, but no longer than `_MAX_WAIT_SECONDS`.
PAUSE_SECONDS = 0.1
_MAX_WAIT_SECONDS = 30
_TIMEOUT_SECONDS = 20.0
_MAX_RETRIES = 3
_STATUSES_THAT_PASS = (429, *range(500, 600))
#: ``topics``: the title of the page that a topic led to; null: none.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (title PRIMARY KEY, text);
CREATE TABLE IF NOT EXISTS topics (topic PRIMARY KEY, title);
"""


@dataclass
class WikipediaPageCache:
    """Finds a page by Wikipedia's search, cuts its text into passages of 256 words, and remembers
    it in ``path``.

    A topic without a page is remembered too, so that a resumed run asks nothing twice; a failed
    request is not.
    """

    path: Path
    #: The address that is asked.
    api: str = field(default_factory=lambda: os.environ.get(API_VARIABLE) or WIKIPEDIA_API)

    def find_page(self, topic: str) -> KnowledgePage | None:
        """The page that Wikipedia's search finds first for the topic; None where it finds none.

        Raises `FactauditError` where Wikipedia cannot be asked.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executescript(_SCHEMA)
            sql = "SELECT t.title, d.text FROM topics t LEFT JOIN documents d USING (title)"
            row = connection.execute(f"{sql} WHERE topic = ?", (topic,)).fetchone()
            if row is None:
                row = _fetch_page(self.api, topic)
                connection.execute("INSERT OR REPLACE INTO topics VALUES (?, ?)", (topic, row[0]))
                if row[0] is not None:
                    connection.execute("INSERT OR REPLACE INTO documents VALUES (?, ?)", row)
        title, text = row
        return None if title is None else KnowledgePage(title, tuple(text.split(PASSAGE_SEPARATOR)))


def _fetch_page(api: str, topic: str) -> tuple[str | None, str | None]:
    """The title and text of the page that a search finds first, as a knowledge source has them."""
    for found in _query_api(api, list="search", srsearch=topic, srlimit="1").get("search", []):
        asked = {"prop": "extracts", "explaintext": "1", "redirects": "1"}
        for page in _query_api(api, **asked, titles=found["title"]).get("pages", []):
            if passages := cut_word_passages([page.get("extract") or ""]):
                return found["title"], PASSAGE_SEPARATOR.join(passages)
    return None, None


def _query_api(api: str, **query: str) -> dict[str, Any]:
    """What ``action=query`` answers to these parameters; raises `FactauditError` where there is no
    answer."""
    import requests  # slow to import, and most runs ask nothing
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    if is_offline():
        raise FactauditError(
            f"Wikipedia's API at {api} was not asked, because of --offline; leave it out to fetch"
            " pages"
        )
    query = {"action": "query", "format": "json", "formatversion": "2", **query}
    agent = f"factaudit/{__version__} (research; factuality evaluation)"
    retries = Retry(
        _MAX_RETRIES,
        backoff_factor=PAUSE_SECONDS,
        status_forcelist=_STATUSES_THAT_PASS,
        raise_on_status=False,
        retry_after_max=_MAX_WAIT_SECONDS,
    )
    time.sleep(PAUSE_SECONDS)
    try:
        with requests.Session() as session:
            session.mount(api, HTTPAdapter(max_retries=retries))
            headers = {"User-Agent": agent}
            reply = session.get(api, params=query, headers=headers, timeout=_TIMEOUT_SECONDS)
        if reply.ok:
            return dict(reply.json().get("query", {}))
        problem = f"HTTP {reply.status_code}"
    except (OSError, ValueError, AttributeError) as error:  # the last: JSON, but no object
        # Of a request that was repeated in vain, why the last attempt failed.
        cause = getattr(error.args[0], "reason", None) if error.args else None
        problem = str(cause or error) or type(error).__name__
    raise FactauditError(f"Wikipedia's API at {api} could not be asked: {problem}")
