"""From a topic to its page: in the knowledge source, and on Wikipedia where it is to be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from factaudit.errors import FactauditError
from factaudit.knowledge.docdb import DocDB, KnowledgePage
from factaudit.knowledge.wikipedia_api import WikipediaPageCache


@dataclass(frozen=True)
class TopicLookup:
    """A knowledge source. wikipedia: asked for the topics that it lacks (for all, where there is no
    source); without it their facts stay unscored."""

    db: DocDB | None
    wikipedia: WikipediaPageCache | None = None

    def check_topics(self, topics: Iterable[str]) -> None:
        """Stop before anything is paid for: where all pages are to come from Wikipedia, raises a
        `FactauditError` if the first cannot be asked for."""
        if self.wikipedia is not None and self.db is None:
            for topic in islice(topics, 1):
                self.wikipedia.find_page(topic)

    def find_page(self, topic: str) -> tuple[KnowledgePage | None, str, str | None]:
        """The page with "ok", or None with the status of its facts' verdicts and the reason. Never
        raises for one topic."""
        reason = f"no page for the topic {topic!r} in the knowledge source"
        page = None if self.db is None else self.db.find(topic)
        if page is None and self.wikipedia is not None:
            reason += " or on Wikipedia"
            try:
                page = self.wikipedia.find_page(topic)
            except FactauditError as error:
                return None, "error", str(error)
        if page is not None:
            return page, "ok", None
        near = [] if self.db is None else self.db.suggest_titles(topic)
        told = f"; there is {', '.join(map(repr, near))}" if near else ""
        return None, "skipped", reason + told
