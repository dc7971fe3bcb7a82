"""Who could be meant? The pages whose title, or a redirect to them, is the name that was asked for (MF §4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from factaudit.engines.passages import Candidate
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.person_names import find_titles_of_same_name
from factaudit.knowledge.topic_lookup import TopicLookup

#: At most so many candidates are put to the verifier, as many calls a fact.
MAX_CANDIDATES = 10
_NO_CANDIDATE = "no candidate entity"


class CandidateSearch(NamedTuple):
    """Candidates, where they are from (``given``, ``titles``, ``none``), and how many there were beyond the limit."""

    candidates: tuple[Candidate, ...]
    source: str
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
        lost = [name for name in unknown if not titles[name]]
        named = [set(one.candidates or ()) - {title for title, _ in one.docs} for one in responses]
        knowledge.check_topics([*lost, *sorted(set().union(*named))])
    found = []
    for one in responses:
        if one.candidates is not None:
            found.append(_collect_candidates(one, one.candidates, 0, "given", knowledge))
        else:
            own = titles[one.topic]
            kept = own[:max_candidates]
            found.append(_collect_candidates(one, kept, len(own) - len(kept), "titles" if kept else "none", knowledge))
    return found


def _collect_candidates(
    response: Response, titles: Sequence[str], n_left_out: int, source: str, knowledge: TopicLookup | None
) -> CandidateSearch:
    """A candidate for each page that titles, or documents of the response, lead to."""
    brought: dict[str, list[str]] = {}
    for title, text in response.docs:
        if text not in brought.setdefault(title, []):
            brought[title].append(text)
    found: dict[str | None, Candidate] = {}
    for title in dict.fromkeys((*titles, *brought)):
        one = _find_page(title, brought.get(title), knowledge)
        # Two titles may lead to one page, by a redirect: it is one entity.
        others = found[one.title].other_titles if one.title in found else ()
        found[one.title] = replace(one, other_titles=(*others, title))
    if not found:
        reason = _NO_CANDIDATE if source == "given" else f"{_NO_CANDIDATE}: no page has this name"
        return CandidateSearch((Candidate(None, reason=reason),), source)
    return CandidateSearch(tuple(found.values()), "given" if source == "none" else source, n_left_out)


def _find_page(title: str, brought: Sequence[str] | None, knowledge: TopicLookup | None) -> Candidate:
    """A candidate with its page: the knowledge source's, else what came with the response."""
    page: KnowledgePage | None = None
    status, reason = "skipped", f"no document {title!r} came with the biography"
    if knowledge is not None:
        page, status, why = knowledge.find_page(title)
        reason = why or reason
    if page is None and brought:
        page = KnowledgePage(title, tuple(brought))
    return Candidate(title, None, status, reason) if page is None else Candidate(page.title, page)
