"""Who could be meant? The pages with a name like the one asked for, and those that a biography's own facts find."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from factaudit.engines.records import Candidate, Found, Record
from factaudit.engines.responses import Fact, Response
from factaudit.errors import UsageError
from factaudit.files import Journal
from factaudit.knowledge.bm25 import Bm25
from factaudit.knowledge.docdb import DocDB, Page
from factaudit.knowledge.names import likest, read_name, words_of
from factaudit.knowledge.search import MAX_PAGES, Passages
from factaudit.knowledge.topics import Knowledge
from factaudit.signature import digest
from factaudit.text.printable import count
from factaudit.version import __version__

#: How candidates may be looked for, where it is to be one way only.
WAYS = ("titles", "passages")
#: At most so many are put to the verifier, as many calls a fact; where titles would fill all of them, so many places
#: are for pages that the facts find.
CAP, FOR_FACTS = 10, 3
NOBODY = "no candidate entity"


@dataclass
class Finder:
    """Finds the pages that biographies may be about. Safe to use from several threads once it is prepared.

    Args:
        knowledge: where the pages are; None where every biography brings its documents.
        way: by ``titles`` and redirects that are like the name (`factaudit.knowledge.names.likest`); by ``passages``:
            the pages that hold one of the `FOR_FACTS` best passages for some fact (`factaudit.knowledge.search`) and
            the name's last word, those that most facts find first; None: by both.
        cap: how many candidates a biography has at most, but for those that it brings itself.

    A knowledge source of more than `MAX_PAGES` pages is not searched for facts.
    """

    knowledge: Knowledge | None
    way: str | None = None
    cap: int = CAP

    def __post_init__(self) -> None:
        if self.cap < 1:
            raise UsageError(f"a biography has at least 1 candidate, found max_candidates {self.cap}")
        self._titles: dict[str, list[tuple[float, str]]] = {}
        self._passages: Passages | None = None
        self._nobody = NOBODY

    def prepare(self, responses: Sequence[Response], journal: str | Path | None = None) -> None:
        """Look for the names of all responses that bring no candidates.

        journal: a folder where what was found in a large knowledge source is written down: it is read through for it.
        Raises `UsageError` without a knowledge source to look in, and, under the policy ``error``, `InputError` for
        names that nobody has and candidates without a page.
        """
        unknown = [one for one in responses if one.candidates is None]
        if unknown:
            if self.knowledge is None:
                raise UsageError("candidates are to be found: that needs a knowledge source (or give them, or docs)")
            self._look_for(unknown, self.knowledge.db, journal)
        if self.knowledge is not None:
            # Under the policy `error`, a name that no page has is as bad as a candidate without a page.
            lost = [one.topic for one in unknown if self.way != "passages" and not self._titles[one.topic]]
            named = [set(one.candidates or ()) - {title for title, _ in one.docs} for one in responses]
            self.knowledge.check([*lost, *sorted(set().union(*named))])

    def find(self, response: Response, facts: Sequence[Fact]) -> Found:
        """The candidates of a response, each page once: as it names them, or ranked; then what else it brings."""
        brought: dict[str, list[str]] = {}
        for title, text in response.docs:
            if text not in brought.setdefault(title, []):
                brought[title].append(text)
        n_left_out = 0
        if response.candidates is None:
            ways, n_left_out = self._ranked(response.topic, facts)
        else:
            ways = dict.fromkeys(response.candidates, "given")
        ways |= {title: "given" for title in brought if title not in ways}
        found: dict[str, tuple[Candidate, Page | None]] = {}
        for title, way in ways.items():
            one, page = self._page(title, brought.get(title), way)
            # Two titles may lead to one page, by a redirect: it is one entity.
            if one.title in found:
                one = replace(
                    one, named=(*found[one.title][0].named, *one.named), found_by=found[one.title][0].found_by
                )
            found[str(one.title)] = one, page
        if not found:
            given = response.candidates is not None
            reason = NOBODY if given else self._nobody
            return Found((Candidate(None, "skipped", reason),), (None,), "given" if given else "none")
        candidates, pages = zip(*found.values(), strict=True)
        return Found(candidates, pages, _source({one.found_by for one in candidates}), n_left_out)

    def _page(self, title: str, brought: Sequence[str] | None, way: str) -> tuple[Candidate, Page | None]:
        """A candidate with its page: the knowledge source's, else what came with the response."""
        page: Page | None = None
        status, reason = "skipped", None if brought else f"no document {title!r} came with the biography"
        if self.knowledge is not None:
            page, status, reason = self.knowledge.find(title)
        if page is None and brought:
            page = Page(title, tuple(brought))
        if page is None:
            return Candidate(title, status, reason, named=(title,), found_by=way), None
        return Candidate(page.title, matched=page.matched, named=(title,), found_by=way), page

    def _look_for(self, unknown: Sequence[Response], source: DocDB, journal: str | Path | None) -> None:
        reasons = []
        if self.way != "passages":
            self._titles = _likest(list(dict.fromkeys(one.topic for one in unknown)), source, journal)
            reasons.append("no title is like the name")
        if self.way != "titles":
            if source.is_larger(MAX_PAGES):
                reasons.append(
                    f"passages are searched in knowledge sources of at most {count(MAX_PAGES, 'page')} only: "
                    "give candidates"
                )
            else:
                self._passages = Passages(source.pages())
                reasons.append("no fact finds a page that holds it")
        self._nobody = f"{NOBODY}: {'; '.join(reasons)}"

    def _ranked(self, name: str, facts: Sequence[Fact]) -> tuple[dict[str, str], int]:
        """title -> how it was found, the likeliest first; and how many the cap leaves out."""
        likes = {title: fit for fit, title in self._titles.get(name, ())}
        finds = self._found_by_facts(name, facts)
        order = sorted(likes.keys() | finds.keys(), key=lambda one: (-likes.get(one, 0), -finds[one], one))
        other = sorted(finds.keys() - likes.keys(), key=lambda one: (-finds[one], one))
        places = max(self.cap - len(likes), min(FOR_FACTS, self.cap // 2))
        of_facts = set(other[:places])
        by_title = set([one for one in order if one in likes][: self.cap - len(of_facts)])
        kept = {one: _way(one in likes, one in finds) for one in order if one in of_facts | by_title}
        return kept, len(order) - len(kept)

    def _found_by_facts(self, name: str, facts: Sequence[Fact]) -> Counter[str]:
        """Of each page that holds the name's last word, how many of the facts it has one of the best passages for."""
        found: Counter[str] = Counter()
        words = read_name(name).words
        if self._passages is not None and words:
            for fact in facts:
                if fact.failed is None:
                    found.update(self._passages.pages_of_best(f"{name} {fact.text}", FOR_FACTS))
        return Counter({title: n for title, n in found.items() if words[-1] in self._words(title)})

    def _words(self, title: str) -> frozenset[str]:
        assert self.knowledge is not None
        return _words_of(title, self.knowledge.db.passages(title) or ())


def _likest(names: Sequence[str], source: DocDB, journal: str | Path | None) -> dict[str, list[tuple[float, str]]]:
    """`likest`, of what the journal does not have."""
    if journal is None or not source.is_larger(MAX_PAGES):
        return likest(names, source.names())
    known: dict[str, list[tuple[float, str]]] = {}

    def take(row: Any) -> None:
        known[row["name"]] = [(float(fit), str(title)) for fit, title in row["titles"]]

    identity = digest(source.signature, str(source.path.stat().st_mtime_ns), __version__)
    log = Journal(Path(journal) / f"titles-{identity}.jsonl", take)
    if new := [name for name in names if name not in known]:
        for name, titles in likest(new, source.names()).items():
            known[name] = titles
            log.write({"name": name, "titles": titles})
    log.close()
    return {name: known[name] for name in names}


def keep_nearest(record: Record, topic: str, most: int) -> Record:
    """The record with each fact put to ``most`` candidates only: those with the passages that BM25 ranks best for it.

    Candidates that are as good as the last of them stay, too. The others' cells are unscored, so that the bounds of
    each figure hold whatever they would have been.
    """
    if len(record.candidates) <= most:
        return record
    index = Bm25(passage.lower().split() for passage in record.passages)
    docs = []
    for fact, row in zip(record.decomposed.facts, record.docs, strict=True):
        scores = index.get_scores(f"{topic} {fact.text}".lower().split())
        best = [max((float(scores[one]) for one in numbers or ()), default=-math.inf) for numbers in row]
        least = sorted(best, reverse=True)[most - 1]
        docs.append(tuple(one if score >= least else None for one, score in zip(row, best, strict=True)))
    return replace(record, docs=tuple(docs))


def _way(by_title: bool, by_facts: bool) -> str:
    return "both" if by_title and by_facts else "titles" if by_title else "passages"


def _source(ways: set[str | None]) -> str:
    found = sorted(str(one) for one in ways if one != "given")
    return found[0] if len(found) == 1 else "both" if found else "given"


@lru_cache(maxsize=4096)
def _words_of(title: str, passages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(words_of(" ".join([title, *passages])))
