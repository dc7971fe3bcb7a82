"""From a topic to its page: in the knowledge source, and on Wikipedia where it is to be asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from factaudit.errors import FactauditError
from factaudit.knowledge.docdb import DocDB, KnowledgePage
from factaudit.knowledge.wikipedia_api import WikipediaPageCache


class Candidate(NamedTuple):
    """Whom, or what, a text may be about. status, reason: of the verdicts of its facts where there
    is no page."""

    title: str | None
    page: KnowledgePage | None = None
    status: str = "skipped"
    reason: str | None = None


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

    def find_page(self, topic: str) -> Candidate:
        """The page of a topic. Never raises for one topic."""
        reason = f"no page for the topic {topic!r} in the knowledge source"
        page = None if self.db is None else self.db.find(topic)
        if page is None and self.wikipedia is not None:
            reason += " or on Wikipedia"
            try:
                page = self.wikipedia.find_page(topic)
            except FactauditError as error:
                return Candidate(None, status="error", reason=str(error))
        if page is not None:
            return Candidate(page.title, page, "ok")
        near = [] if self.db is None else self.db.suggest_titles(topic)
        told = f"; there is {', '.join(map(repr, near))}" if near else ""
        return Candidate(None, reason=reason + told)
