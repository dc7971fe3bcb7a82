"""Who could be meant? The pages with a name like the one asked for, and those that a biography's own facts find."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from factaudit.engines.records import CandidatePageRecord, CandidatePageSearchRecord, ResponseRecord
from factaudit.engines.responses import AtomicFact, Response
from factaudit.errors import UsageError
from factaudit.files import JsonLinesJournal
from factaudit.knowledge.bm25 import Bm25Index
from factaudit.knowledge.docdb import DocDB, KnowledgePage
from factaudit.knowledge.passage_index import MAX_INDEXED_PAGES, PassageIndex
from factaudit.knowledge.person_names import parse_person_name, rank_person_titles_by_likeness, split_name_words
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count
from factaudit.version import __version__

#: How candidates may be looked for, where it is to be one way only.
FINDING_METHODS = ("titles", "passages")
#: At most so many are put to the verifier, as many calls a fact; where titles would fill all of them, so many places
#: are for pages that the facts find.
MAX_CANDIDATES, MIN_PLACES_FOR_FACTS = 10, 3
NO_CANDIDATE_REASON = "no candidate entity"


@dataclass
class CandidateFinder:
    """Finds the pages that biographies may be about. Safe to use from several threads once it is prepared.

    Args:
        knowledge: where the pages are; None where every biography brings its documents.
        method: by ``titles`` and redirects that are like the name (`rank_person_titles_by_likeness`); by ``passages``:
        the
            pages that hold one of the `MIN_PLACES_FOR_FACTS` best passages for some fact
            (`factaudit.knowledge.passage_index`) and the name's last word, those that most facts find first; None: by
            both.
        max_candidates: how many a biography has at most, besides those that it brings itself.

    A knowledge source of more than `MAX_INDEXED_PAGES` pages is not searched for facts.
    """

    knowledge: TopicLookup | None
    method: str | None = None
    max_candidates: int = MAX_CANDIDATES

    def __post_init__(self) -> None:
        if self.max_candidates < 1:
            raise UsageError(f"a biography has at least 1 candidate, found max_candidates {self.max_candidates}")
        self._titles: dict[str, list[tuple[float, str]]] = {}
        self._passages: PassageIndex | None = None
        self._nobody = NO_CANDIDATE_REASON

    def prepare_responses(self, responses: Sequence[Response], journal: str | Path | None = None) -> None:
        """Look for the names of all responses that bring no candidates.

        journal: a folder where what was found in a large knowledge source is written down: it is read through for it.
        Raises `UsageError` without a knowledge source to look in, and, under the policy ``error``, `InputError` for
        names that nobody has and candidates without a page.
        """
        unknown = [one for one in responses if one.candidates is None]
        if unknown:
            if self.knowledge is None:
                raise UsageError("candidates are to be found: that needs a knowledge source (or give them, or docs)")
            self._search_titles(unknown, self.knowledge.db, journal)
        if self.knowledge is not None:
            # Under the policy `error`, a name that no page has is as bad as a candidate without a page.
            lost = [one.topic for one in unknown if self.method != "passages" and not self._titles[one.topic]]
            named = [set(one.candidates or ()) - {title for title, _ in one.docs} for one in responses]
            self.knowledge.check_topics([*lost, *sorted(set().union(*named))])

    def find_candidates(self, response: Response, facts: Sequence[AtomicFact]) -> CandidatePageSearchRecord:
        """The candidates of a response, each page once: as it names them, or ranked; then what else it brings."""
        brought: dict[str, list[str]] = {}
        for title, text in response.docs:
            if text not in brought.setdefault(title, []):
                brought[title].append(text)
        n_left_out = 0
        if response.candidates is None:
            ways, n_left_out = self._rank_candidates(response.topic, facts)
        else:
            ways = dict.fromkeys(response.candidates, "given")
        ways |= {title: "given" for title in brought if title not in ways}
        found: dict[str, tuple[CandidatePageRecord, KnowledgePage | None]] = {}
        for title, way in ways.items():
            one, page = self._make_candidate(title, brought.get(title), way)
            # Two titles may lead to one page, by a redirect: it is one entity.
            if one.title in found:
                before = found[one.title][0]
                titles = (*before.other_titles, *one.other_titles)
                one = replace(one, other_titles=titles, found_by=before.found_by)
            found[str(one.title)] = one, page
        if not found:
            reason, source = (self._nobody, "none") if response.candidates is None else (NO_CANDIDATE_REASON, "given")
            return CandidatePageSearchRecord((CandidatePageRecord(None, "skipped", reason),), (None,), source)
        candidates, pages = zip(*found.values(), strict=True)
        methods = {str(one.found_by) for one in candidates} - {"given"}
        source = "given" if not methods else methods.pop() if len(methods) == 1 else "both"
        return CandidatePageSearchRecord(candidates, pages, source, n_left_out)

    def _make_candidate(
        self, title: str, brought: Sequence[str] | None, way: str
    ) -> tuple[CandidatePageRecord, KnowledgePage | None]:
        """A candidate with its page: the knowledge source's, else what came with the response."""
        page: KnowledgePage | None = None
        status, reason = "skipped", None if brought else f"no document {title!r} came with the biography"
        if self.knowledge is not None:
            page, status, reason = self.knowledge.find_page(title)
        if page is None and brought:
            page = KnowledgePage(title, tuple(brought))
        if page is None:
            return CandidatePageRecord(title, status, reason, other_titles=(title,), found_by=way), None
        return CandidatePageRecord(page.title, title_match=page.title_match, other_titles=(title,), found_by=way), page

    def _search_titles(self, unknown: Sequence[Response], source: DocDB, journal: str | Path | None) -> None:
        reasons = []
        if self.method != "passages":
            self._titles = _rank_candidate_titles(list(dict.fromkeys(one.topic for one in unknown)), source, journal)
            reasons.append("no title is like the name")
        if self.method != "titles":
            if source.has_more_pages_than(MAX_INDEXED_PAGES):
                most = format_count(MAX_INDEXED_PAGES, "page")
                reasons.append(f"passages are searched in knowledge sources of at most {most} only: give candidates")
            else:
                self._passages = PassageIndex(source.pages())
                reasons.append("no fact finds a page that holds it")
        self._nobody = f"{NO_CANDIDATE_REASON}: {'; '.join(reasons)}"

    def _rank_candidates(self, name: str, facts: Sequence[AtomicFact]) -> tuple[dict[str, str], int]:
        """title -> how it was found, the likeliest first; and how many the cap leaves out."""
        likes = {title: fit for fit, title in self._titles.get(name, ())}
        finds = self._count_facts_by_page(name, facts)
        order = sorted(likes.keys() | finds.keys(), key=lambda one: (-likes.get(one, 0), -finds[one], one))
        other = sorted(finds.keys() - likes.keys(), key=lambda one: (-finds[one], one))
        places = max(self.max_candidates - len(likes), min(MIN_PLACES_FOR_FACTS, self.max_candidates // 2))
        of_facts = set(other[:places])
        by_title = set([one for one in order if one in likes][: self.max_candidates - len(of_facts)])
        methods = {(True, True): "both", (True, False): "titles", (False, True): "passages"}
        kept = {one: methods[one in likes, one in finds] for one in order if one in of_facts | by_title}
        return kept, len(order) - len(kept)

    def _count_facts_by_page(self, name: str, facts: Sequence[AtomicFact]) -> Counter[str]:
        """Of each page that holds the name's last word, how many of the facts it has one of the best passages for."""
        found: Counter[str] = Counter()
        words = parse_person_name(name).words
        if self._passages is not None and words:
            for fact in facts:
                if fact.failure_status is None:
                    found.update(self._passages.find_best_pages(f"{name} {fact.text}", MIN_PLACES_FOR_FACTS))
        return Counter({title: n for title, n in found.items() if words[-1] in self._list_page_words(title)})

    def _list_page_words(self, title: str) -> frozenset[str]:
        assert self.knowledge is not None
        return _split_page_words(title, self.knowledge.db.passages(title) or ())


def _rank_candidate_titles(
    names: Sequence[str], source: DocDB, journal: str | Path | None
) -> dict[str, list[tuple[float, str]]]:
    """`rank_person_titles_by_likeness` of the names that the journal does not have, added to those that it has."""
    if journal is None or not source.has_more_pages_than(MAX_INDEXED_PAGES):
        return rank_person_titles_by_likeness(names, source.titles_and_redirects())
    known: dict[str, list[tuple[float, str]]] = {}

    def take(row: Any) -> None:
        known[row["name"]] = [(float(fit), str(title)) for fit, title in row["titles"]]

    identity = hash_texts(source.signature, str(source.path.stat().st_mtime_ns), __version__)
    log = JsonLinesJournal(Path(journal) / f"titles-{identity}.jsonl", take)
    if new := [name for name in names if name not in known]:
        for name, titles in rank_person_titles_by_likeness(new, source.titles_and_redirects()).items():
            known[name] = titles
            log.write_row({"name": name, "titles": titles})
    log.close()
    return {name: known[name] for name in names}


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


@lru_cache(maxsize=4096)
def _split_page_words(title: str, passages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(split_name_words(" ".join([title, *passages])))
