"""Who could be meant? The pages whose title, or a redirect to them, is the name that was asked for (MF §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from factaudit.engines.passages import Candidate
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.person_names import find_titles_of_same_name
from factaudit.knowledge.topic_lookup import TopicLookup

#: At most so many candidates are put to the verifier, as many calls a fact.
MAX_CANDIDATES = 10


@dataclass
class CandidateSearch:
    """The candidates of a response. names: the title of the page that each name leads to: two may lead to one, by a
    redirect. n_left_out: how many there were beyond the limit."""

    candidates: list[Candidate] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    n_left_out: int = 0


def find_candidates(
    responses: Sequence[Response], knowledge: TopicLookup | None, max_candidates: int = MAX_CANDIDATES
) -> list[CandidateSearch]:
    """The candidates of each response: those that it names, else the pages of its name; then its other documents.

    Raises `UsageError` where names are to be looked for and there is no knowledge source, and, under the policy
    ``error``, `InputError` for names that nobody has and candidates without a page.
    """
    unknown = [one.topic for one in responses if one.candidates is None]
    titles: dict[str, list[str]] = {}
    if unknown and knowledge is None:
        raise UsageError("candidates are to be found: that needs a knowledge source (or give them, or docs)")
    if knowledge is not None:
        titles = find_titles_of_same_name(unknown, knowledge.db.titles_and_redirects()) if unknown else {}
        # Under the policy `error`, a name that no page has is as bad as a candidate without a page.
        lost = {name for name in unknown if not titles[name]}
        for one in responses:
            lost |= set(one.candidates or ()) - {title for title, _ in one.docs}
        knowledge.check_topics(sorted(lost))
    found = []
    for one in responses:
        asked = titles[one.topic] if one.candidates is None else list(one.candidates)
        limit = max_candidates if one.candidates is None else len(asked)
        search = CandidateSearch(n_left_out=max(0, len(asked) - limit))
        brought: dict[str, list[str]] = {}
        for title, text in one.docs:
            brought.setdefault(title, []).append(text)
        for title in dict.fromkeys((*asked[:limit], *brought)):
            candidate = _find_page(title, brought.get(title, []), knowledge)
            search.names[title] = candidate.title or title
            if candidate.title not in {known.title for known in search.candidates}:
                search.candidates.append(candidate)
        if not search.candidates:
            search.candidates.append(Candidate(None, reason=f"no candidate entity: no page has the name {one.topic!r}"))
        found.append(search)
    return found


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
