"""Who could be meant? The pages of a knowledge source that share a name, or that a search for the name finds."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from rank_bm25 import BM25Okapi

from factaudit.datasets.sources import count
from factaudit.knowledge.docdb import DocDB, Page, normalise
from factaudit.knowledge.retrieval import K, clean

_SUFFIX = re.compile(r"\s*\(([^()]*)\)\s*$")
#: How candidates may be looked for, where it is to be one way only.
WAYS = ("titles", "passages")
#: A knowledge source with more pages is not searched for a name: every word of it would have to be read.
MAX_PAGES = 50_000
NOBODY = "no candidate entity"

_GENERATION = frozenset(("jr", "sr", "ii", "iii", "iv", "junior", "senior"))


@dataclass(frozen=True)
class Candidates:
    """Titles of pages, and where they are from: ``given``, ``titles``, ``passages``, or ``none`` with the reason."""

    titles: tuple[str, ...]
    source: str
    reason: str | None = None


def base_name(title: str) -> str:
    """A title without what Wikipedia puts behind it to tell people apart.

    >>> base_name("Bruce Johnstone (musician)")
    'Bruce Johnstone'
    """
    return _SUFFIX.sub("", title).strip()


def is_disambiguation(title: str) -> bool:
    """Whether the title says that the page is a list of people, not a person."""
    suffix = _SUFFIX.search(title)
    return suffix is not None and suffix[1].strip().casefold() == "disambiguation"


def shares_name(title: str, name: str) -> bool:
    """Whether a page of this title may be about somebody of this name.

    First and last name are the same, an initial standing for a name ("W." for "William"); middle names and initials
    may be missing from either, not differ. Case, accents, disambiguation suffixes and Jr. or Sr. don't count.

    >>> shares_name("William J. Sharkey (murderer)", "William Sharkey")
    True
    >>> shares_name("William J. Sharkey", "William K. Sharkey")
    False
    """
    if is_disambiguation(title):
        return False
    one, other = sorted((_words(title), _words(name)), key=len)
    if not one:
        return False
    if len(one) == 1:
        return one == other
    if not (_same(one[0], other[0]) and one[-1] == other[-1]):
        return False
    between = iter(other[1:-1])
    return all(any(_same(word, seen) for seen in between) for word in one[1:-1])


def find_candidates(names: Sequence[str], titles: Iterable[str]) -> dict[str, list[str]]:
    """For each name the titles that share it, in the alphabet's order; ``titles`` are read once."""
    by_last: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if words := _words(name):
            by_last.setdefault(words[-1], []).append(name)
    found: dict[str, list[str]] = {name: [] for name in names}
    for title in titles:
        words = _words(title)
        for name in by_last.get(words[-1], ()) if words else ():
            if shares_name(title, name):
                found[name].append(title)
    return {name: sorted(set(found[name])) for name in found}


def look_for(names: Sequence[str], knowledge: DocDB, way: str | None = None, k: int = K) -> dict[str, Candidates]:
    """The candidates of each name.

    Args:
        way: ``titles`` that share the name (`find_candidates`), the pages of the best ``passages`` (`search`), or, by
            default, the second only for names for which the first finds nobody.
        k: how many passages.

    A knowledge source of more than `MAX_PAGES` pages is not searched; that is then the reason for having none.
    """
    found: dict[str, Candidates] = {}
    reasons = []
    if way != "passages":
        shared = find_candidates(names, knowledge.titles())
        found = {name: Candidates(tuple(titles), "titles") for name, titles in shared.items() if titles}
        reasons.append("no title shares the name")
    rest = [name for name in dict.fromkeys(names) if name not in found]
    if rest and way != "titles":
        if sum(1 for _ in islice(knowledge.titles(), MAX_PAGES + 1)) > MAX_PAGES:
            reasons.append(
                f"passages are searched for it in knowledge sources of at most {count(MAX_PAGES, 'page')} only: "
                "give candidates"
            )
        else:
            best = search(rest, knowledge.pages(), k)
            found |= {name: Candidates(tuple(titles), "passages") for name, titles in best.items() if titles}
            reasons.append("no passage has a word of it")
    nobody = Candidates((), "none", f"{NOBODY}: {'; '.join(reasons)}")
    return {name: found.get(name, nobody) for name in names}


def search(names: Sequence[str], pages: Iterable[Page], k: int = K) -> dict[str, list[str]]:
    """For each name the titles of the pages that its ``k`` best passages are from, the best first.

    Passages are ranked as by `factaudit.engines.dfactscore.ambigbio.top_passages`, over all pages but disambiguation
    pages; one
    that has no word of the name is no find. ``pages`` are read once and not kept.
    """
    queries = {name: normalise(name).lower().split() for name in names}
    owners: list[str] = []

    def corpus() -> Iterable[list[str]]:
        for page in pages:
            if not is_disambiguation(page.title):
                for passage in page.passages:
                    owners.append(page.title)
                    yield f"{page.title} {clean(passage)}".lower().split()

    index = _Index(corpus(), {word for query in queries.values() for word in query})
    found = {}
    for name, query in queries.items():
        best = np.argsort(-index.get_scores(query), kind="stable")
        hits = (i for i in best if not index.doc_freqs[i].keys().isdisjoint(query))
        found[name] = list(dict.fromkeys(owners[i] for i in islice(hits, k)))
    return found


class _Index(BM25Okapi):
    """BM25Okapi that keeps the counts of some words only: of a large source, all would not fit in memory."""

    def __init__(self, corpus: Iterable[list[str]], words: set[str]) -> None:
        self._kept = words
        super().__init__(corpus)

    def _initialize(self, corpus: Iterable[list[str]]) -> dict[str, int]:
        containing: Counter[str] = Counter()
        for passage in corpus:
            counts = Counter(passage)
            containing.update(counts.keys())
            self.doc_len.append(len(passage))
            self.doc_freqs.append({word: counts[word] for word in self._kept & counts.keys()})
        self.corpus_size = len(self.doc_len)
        self.avgdl = sum(self.doc_len) / max(self.corpus_size, 1)
        return containing

    def _calc_idf(self, nd: dict[str, int]) -> None:
        if nd:
            super()._calc_idf(nd)


def _words(title: str) -> list[str]:
    text = unicodedata.normalize("NFKD", base_name(title).replace("_", " ")).casefold()
    plain = "".join(char for char in text if not unicodedata.combining(char))
    words = re.findall(r"[^\s.,]+", plain)
    return [word for word in words if word not in _GENERATION] or words


def _same(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])
