"""From a topic to its page: the knowledge source, then what to do where it has none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from factaudit.errors import FactauditError, UsageError, suggest_known_name
from factaudit.knowledge.docdb import DocDB, KnowledgePage
from factaudit.knowledge.wikipedia_api import WikipediaPageCache

#: `skip`: the facts stay unscored; `wikipedia`: ask Wikipedia.
MISSING_TOPIC_POLICIES = ("skip", "wikipedia")


@dataclass(frozen=True)
class TopicLookup:
    """A knowledge source with a policy for the topics that it lacks."""

    db: DocDB
    missing: str = "skip"
    wikipedia: WikipediaPageCache | None = None

    def __post_init__(self) -> None:
        if self.missing not in MISSING_TOPIC_POLICIES:
            known = suggest_known_name(self.missing, MISSING_TOPIC_POLICIES)
            raise UsageError(f"unknown policy for missing topics {self.missing!r}{known}")
        if self.missing == "wikipedia" and self.wikipedia is None:
            raise UsageError("the policy 'wikipedia' needs a file to keep its pages in")

    def check_topics(self, topics: Iterable[str]) -> None:
        """Stop before anything is paid for: where all pages are to come from Wikipedia, raises a
        `FactauditError` if the first cannot be asked for."""
        if self.wikipedia is not None and self.db.is_empty:
            for topic in islice(topics, 1):
                self.wikipedia.find_page(topic)

    def _say_no_page(self, topic: str) -> str:
        near = self.db.suggest_titles(topic)
        told = f"; there is {', '.join(map(repr, near))}" if near else ""
        return f"no page for the topic {topic!r} in the knowledge source{told}"

    def find_page(self, topic: str) -> tuple[KnowledgePage | None, str, str | None]:
        """The page, or None with the status of its facts' verdicts and the reason. Never raises for
        one topic."""
        page = self.db.find(topic)
        if page is not None:
            return page, "ok", None
        if self.missing != "wikipedia" or self.wikipedia is None:
            return None, "skipped", self._say_no_page(topic)
        try:
            page = self.wikipedia.find_page(topic)
        except FactauditError as error:
            return None, "error", str(error)
        if page is None:
            return (
                None,
                "skipped",
                f"no page for the topic {topic!r} in the knowledge source or on Wikipedia",
            )
        return page, "ok", None
