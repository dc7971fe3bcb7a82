"""Who could be meant? The pages whose title, or a redirect to them, is the name that was asked for
(MF §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from factaudit.engines.passages import Candidate
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.person_names import find_titles_of_same_name
from factaudit.knowledge.topic_lookup import TopicLookup

#: At most so many candidates are put to the verifier, as many calls a fact.
MAX_CANDIDATES = 10


def find_candidates(
    responses: Sequence[Response],
    knowledge: TopicLookup | None,
    max_candidates: int = MAX_CANDIDATES,
) -> tuple[list[Response], list[list[Candidate]], int]:
    """The candidates of each response: those that it names, else the pages of its name; then its
    other documents.

    Returns the responses, in which a fact's entity is the title of the page that its name leads to;
    their candidates; and how many pages of a name there were beyond the limit.

    Raises `UsageError` where names are to be looked for and there is no knowledge source, and,
    under the policy ``error``, `InputError` for names that nobody has and candidates without a
    page.
    """
    unknown = [one.topic for one in responses if one.candidates is None]
    titles: dict[str, list[str]] = {}
    if unknown and knowledge is None:
        raise UsageError(
            "candidates are to be found: that needs a knowledge source (or give them, or docs)"
        )
    if knowledge is not None:
        titles = (
            find_titles_of_same_name(unknown, knowledge.db.titles_and_redirects())
            if unknown
            else {}
        )
        # Under the policy `error`, a name that no page has is as bad as a candidate without a page.
        lost = {name for name in unknown if not titles[name]}
        for one in responses:
            lost |= set(one.candidates or ()) - {title for title, _ in one.docs}
        knowledge.check_topics(sorted(lost))
    named, found, n_beyond = [], [], 0
    for one in responses:
        asked = list(one.candidates or ())
        if one.candidates is None:
            asked = titles[one.topic][:max_candidates]
            n_beyond += len(titles[one.topic]) - len(asked)
        brought: dict[str, list[str]] = {}
        for title, text in one.docs:
            brought.setdefault(title, []).append(text)
        # Two names may lead to one page, by a redirect.
        pages = {
            title: _find_page(title, brought.get(title, []), knowledge)
            for title in (*asked, *brought)
        }
        people: dict[str | None, Candidate] = {}
        for page in pages.values():
            people.setdefault(page.title, page)
        nobody = Candidate(None, reason=f"no candidate entity: no page has the name {one.topic!r}")
        found.append([*people.values()] or [nobody])
        facts = one.facts
        if facts is not None:
            entities = {title: page.title for title, page in pages.items()}
            facts = tuple(
                replace(fact, entity=entities.get(fact.entity or "", fact.entity)) for fact in facts
            )
        named.append(replace(one, facts=facts))
    return named, found, n_beyond


def _find_page(title: str, brought: Sequence[str], knowledge: TopicLookup | None) -> Candidate:
    """A candidate with its page: the knowledge source's, else what came with the response."""
    page: KnowledgePage | None = None
    status, reason = "skipped", f"no document {title!r} came with the biography"
    if knowledge is not None:
        page, status, why = knowledge.find_page(title)
        reason = why or reason
    if page is None and brought:
        page = KnowledgePage(title, tuple(dict.fromkeys(brought)))
    return Candidate(title, None, status, reason) if page is None else Candidate(page.title, page)
