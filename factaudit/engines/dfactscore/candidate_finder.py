"""Who could be meant? The pages whose title, or a redirect to them, is the name that was asked for (MF §4.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from factaudit.engines.records import CandidatePageRecord, CandidatePageSearchRecord, ResponseRecord
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.knowledge.bm25 import Bm25Index
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.person_names import find_titles_of_same_name
from factaudit.knowledge.topic_lookup import TopicLookup

#: At most so many candidates are put to the verifier, as many calls a fact.
MAX_CANDIDATES = 10
NO_CANDIDATE_REASON = "no candidate entity"


@dataclass
class CandidateFinder:
    """Finds the pages that biographies may be about. Safe to use from several threads once it is prepared.

    Args:
        knowledge: where the pages are; None where every biography brings its documents.
        max_candidates: how many a biography has at most, besides those that it brings itself.
    """

    knowledge: TopicLookup | None
    max_candidates: int = MAX_CANDIDATES

    def __post_init__(self) -> None:
        if self.max_candidates < 1:
            raise UsageError(f"a biography has at least 1 candidate, found max_candidates {self.max_candidates}")
        self._titles: dict[str, list[str]] = {}

    def prepare_responses(self, responses: Sequence[Response]) -> None:
        """Look for the names of all responses that bring no candidates.

        Raises `UsageError` without a knowledge source to look in, and, under the policy ``error``, `InputError` for
        names that nobody has and candidates without a page.
        """
        unknown = [one.topic for one in responses if one.candidates is None]
        if unknown:
            if self.knowledge is None:
                raise UsageError("candidates are to be found: that needs a knowledge source (or give them, or docs)")
            self._titles = find_titles_of_same_name(unknown, self.knowledge.db.titles_and_redirects())
        if self.knowledge is not None:
            # Under the policy `error`, a name that no page has is as bad as a candidate without a page.
            lost = [name for name in unknown if not self._titles[name]]
            named = [set(one.candidates or ()) - {title for title, _ in one.docs} for one in responses]
            self.knowledge.check_topics([*lost, *sorted(set().union(*named))])

    def find_candidates(self, response: Response) -> CandidatePageSearchRecord:
        """The candidates of a response, each page once: those that it names, or that were found; then what else it
        brings."""
        brought: dict[str, list[str]] = {}
        for title, text in response.docs:
            if text not in brought.setdefault(title, []):
                brought[title].append(text)
        is_given = response.candidates is not None
        titles = response.candidates if response.candidates is not None else self._titles.get(response.topic, [])
        kept = titles if is_given else titles[: self.max_candidates]
        found: dict[str, tuple[CandidatePageRecord, KnowledgePage | None]] = {}
        for title in dict.fromkeys((*kept, *brought)):
            one, page = self._make_candidate(title, brought.get(title))
            # Two titles may lead to one page, by a redirect: it is one entity.
            if one.title in found:
                one = replace(one, other_titles=(*found[one.title][0].other_titles, *one.other_titles))
            found[str(one.title)] = one, page
        if not found:
            reason = NO_CANDIDATE_REASON if is_given else f"{NO_CANDIDATE_REASON}: no page has this name"
            nobody = CandidatePageRecord(None, "skipped", reason)
            return CandidatePageSearchRecord((nobody,), (None,), "given" if is_given else "none")
        candidates, pages = zip(*found.values(), strict=True)
        source = "given" if is_given or not kept else "titles"
        return CandidatePageSearchRecord(candidates, pages, source, len(titles) - len(kept))

    def _make_candidate(
        self, title: str, brought: Sequence[str] | None
    ) -> tuple[CandidatePageRecord, KnowledgePage | None]:
        """A candidate with its page: the knowledge source's, else what came with the response."""
        page: KnowledgePage | None = None
        status, reason = "skipped", None if brought else f"no document {title!r} came with the biography"
        if self.knowledge is not None:
            page, status, reason = self.knowledge.find_page(title)
        if page is None and brought:
            page = KnowledgePage(title, tuple(brought))
        if page is None:
            return CandidatePageRecord(title, status, reason, other_titles=(title,)), None
        return CandidatePageRecord(page.title, title_match=page.title_match, other_titles=(title,)), page


def keep_candidate_pages_nearest_facts(record: ResponseRecord, topic: str, max_candidates: int) -> ResponseRecord:
    """The record with each fact put to so many candidates only: those with the passages that BM25 ranks best for it.

    Candidates as good as the last of them stay, too. A fact has no verdict on the others, so that the bounds of each
    figure hold whatever these verdicts would have been.
    """
    if len(record.candidates) <= max_candidates:
        return record
    index = Bm25Index(passage.lower().split() for passage in record.passages)
    docs = []
    for fact, row in zip(record.decomposed.facts, record.passage_numbers, strict=True):
        scores = index.get_scores(f"{topic} {fact.text}".lower().split())
        best = [max((float(scores[one]) for one in numbers or ()), default=-math.inf) for numbers in row]
        least = sorted(best, reverse=True)[max_candidates - 1]
        docs.append(tuple(one if score >= least else None for one, score in zip(row, best, strict=True)))
    return replace(record, passage_numbers=tuple(docs))
