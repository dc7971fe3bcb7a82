"""Whom could a text be about? In FActScore, of the page of its topic alone; in D-FActScore, of
everybody whose page has the name as its title, or as a redirect to it (MF §4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.person_names import find_titles_of_same_name
from factaudit.knowledge.topic_lookup import Candidate, TopicLookup

#: At most so many pages of a name are put to the verifier, as many calls a fact.
MAX_CANDIDATES = 10


def find_topic_pages(
    responses: Sequence[Response], knowledge: TopicLookup | None
) -> list[Candidate]:
    """The page of each response's topic; nothing is looked up for responses that abstain, or
    without a knowledge source.

    Raises `FactauditError` where all pages are to come from Wikipedia, and it cannot be asked.
    """
    pages: dict[str, Candidate] = {}
    if knowledge is not None:
        topics = dict.fromkeys(one.topic for one in responses if not one.abstained)
        knowledge.check_topics(topics)
        pages = {topic: knowledge.find_page(topic) for topic in topics}
    return [pages.get(one.topic, Candidate(None)) for one in responses]


def find_candidates(
    responses: Sequence[Response], knowledge: TopicLookup | None
) -> tuple[list[Response], list[list[Candidate]]]:
    """The candidates of each response: those that it names, else the pages of its name; then its
    other documents.

    Returns the responses, in which a fact's entity is the title of the page that its name leads to,
    and their candidates.

    Raises `UsageError` where names are to be looked for and there is no knowledge source.
    """
    unknown = [one.topic for one in responses if one.candidates is None]
    titles: dict[str, list[str]] = {}
    if knowledge is not None:
        knowledge.check_topics(title for one in responses for title in one.candidates or ())
    if unknown and knowledge is not None and knowledge.db is not None:
        titles = find_titles_of_same_name(unknown, knowledge.db.titles_and_redirects())
    elif unknown:
        raise UsageError(
            f"no candidates are given for {unknown[0]!r}: to find the people of this name, name a"
            " knowledge source with --knowledge; or give the text candidates or docs"
        )
    named, found = [], []
    for one in responses:
        brought: dict[str, list[str]] = {}
        for title, text in one.docs:
            brought.setdefault(title, []).append(text)
        asked = one.candidates
        if asked is None:
            its = titles[one.topic]
            asked = tuple(its[:MAX_CANDIDATES])
            beyond = f"of a name beyond {MAX_CANDIDATES}"
            left_out = Counter({(f"page {beyond}", f"pages {beyond}"): len(its[MAX_CANDIDATES:])})
            one = replace(one, left_out=one.left_out + left_out)
        pages = {
            title: _find_page(title, brought.get(title, ()), knowledge)
            for title in (*asked, *brought)
        }
        people: dict[str | None, Candidate] = {}
        for page in pages.values():  # two names may lead to one page, by a redirect
            people.setdefault(page.title, page)
        nobody = Candidate(None, reason=f"no candidate entity: no page has the name {one.topic!r}")
        found.append([*people.values()] or [nobody])
        if one.facts is not None:
            facts = [
                replace(fact, entity=pages[fact.entity].title) if fact.entity in pages else fact
                for fact in one.facts
            ]
            one = replace(one, facts=tuple(facts))
        named.append(one)
    return named, found


def _find_page(title: str, brought: Sequence[str], knowledge: TopicLookup | None) -> Candidate:
    """A candidate with its page: the knowledge source's, else what came with the response."""
    missing = Candidate(title, reason=f"no document {title!r} came with the biography")
    found = missing if knowledge is None else knowledge.find_page(title)
    if found.page is None and brought:
        return Candidate(title, KnowledgePage(title, tuple(dict.fromkeys(brought))))
    return found if found.page is not None else found._replace(title=title)
