"""Who could be meant? The pages of a knowledge source that share a name, or that a search for the name finds."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from factaudit.datasets.sources import count
from factaudit.engines.records import Candidate, Found
from factaudit.engines.responses import Fact, Response
from factaudit.errors import UsageError
from factaudit.knowledge.bm25 import Bm25
from factaudit.knowledge.docdb import DocDB, Page, normalise
from factaudit.knowledge.retrieval import K, clean
from factaudit.knowledge.topics import Knowledge

_SUFFIX = re.compile(r"\s*\(([^()]*)\)\s*$")
#: How candidates may be looked for, where it is to be one way only.
WAYS = ("titles", "passages")
#: A knowledge source with more pages is not searched for a name: every word of it would have to be read.
MAX_PAGES = 50_000
NOBODY = "no candidate entity"

_GENERATION = frozenset(("jr", "sr", "ii", "iii", "iv", "junior", "senior"))


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


@dataclass
class Finder:
    """Finds the pages that biographies may be about. Safe to use from several threads once it is prepared.

    Args:
        knowledge: where the pages are; None where every biography brings its documents.
        way: ``titles`` that share the name (`find_candidates`), the pages of the best ``passages`` (`search`), or, by
            default, the second only for names for which the first finds nobody.
        k: how many passages.

    A knowledge source of more than `MAX_PAGES` pages is not searched; that is then the reason for having none.
    """

    knowledge: Knowledge | None
    way: str | None = None
    k: int = K

    def __post_init__(self) -> None:
        self._titles: dict[str, tuple[str, Sequence[str]]] = {}
        self._nobody = NOBODY

    def prepare(self, responses: Sequence[Response]) -> None:
        """Look for the names of all responses that bring no candidates.

        Raises `UsageError` without a knowledge source to look in, and, under the policy ``error``, `InputError` for
        names without candidates and candidates without a page.
        """
        names = [one.topic for one in responses if one.candidates is None]
        if names:
            if self.knowledge is None:
                raise UsageError("candidates are to be found: that needs a knowledge source (or give them, or docs)")
            self._look_for(names, self.knowledge.db)
        if self.knowledge is not None:
            # Under the policy `error`, a name without candidates is as bad as a candidate without a page.
            lost = [name for name in names if name not in self._titles]
            named = [set(one.candidates or ()) - {title for title, _ in one.docs} for one in responses]
            self.knowledge.check([*lost, *sorted(set().union(*named))])

    def find(self, response: Response, facts: Sequence[Fact]) -> Found:
        """The candidates of a response, each page once, in the order in which they were named or found."""
        titles: Sequence[str]
        if response.candidates is None:
            source, titles = self._titles.get(response.topic, ("none", ()))
        else:
            source, titles = "given", response.candidates
        brought: dict[str, list[str]] = {}
        for title, text in response.docs:
            if text not in brought.setdefault(title, []):
                brought[title].append(text)
        found: dict[str, tuple[Candidate, Page | None]] = {}
        for title in titles:
            one, page = self._page(title, brought.get(title))
            # Two titles may lead to one page, by a redirect: it is one entity.
            if one.title in found:
                one = replace(one, named=(*found[one.title][0].named, *one.named))
            found[str(one.title)] = one, page
        if not found:
            reason = NOBODY if response.candidates is not None else self._nobody
            return Found((Candidate(None, "skipped", reason),), (None,), source)
        candidates, pages = zip(*found.values(), strict=True)
        return Found(candidates, pages, source)

    def _page(self, title: str, brought: Sequence[str] | None) -> tuple[Candidate, Page | None]:
        """A candidate with its page: the knowledge source's, else what came with the response."""
        page: Page | None = None
        status, reason = "skipped", None if brought else f"no document {title!r} came with the biography"
        if self.knowledge is not None:
            page, status, reason = self.knowledge.find(title)
        if page is None and brought:
            page = Page(title, tuple(brought))
        if page is None:
            return Candidate(title, status, reason, named=(title,)), None
        return Candidate(page.title, matched=page.matched, named=(title,)), page

    def _look_for(self, names: Sequence[str], source: DocDB) -> None:
        reasons = []
        if self.way != "passages":
            shared = find_candidates(names, source.titles())
            self._titles = {name: ("titles", titles) for name, titles in shared.items() if titles}
            reasons.append("no title shares the name")
        rest = [name for name in dict.fromkeys(names) if name not in self._titles]
        if rest and self.way != "titles":
            if sum(1 for _ in islice(source.titles(), MAX_PAGES + 1)) > MAX_PAGES:
                reasons.append(
                    f"passages are searched for it in knowledge sources of at most {count(MAX_PAGES, 'page')} only: "
                    "give candidates"
                )
            else:
                best = search(rest, source.pages(), self.k)
                self._titles |= {name: ("passages", titles) for name, titles in best.items() if titles}
                reasons.append("no passage has a word of it")
        self._nobody = f"{NOBODY}: {'; '.join(reasons)}"


def search(names: Sequence[str], pages: Iterable[Page], k: int = K) -> dict[str, list[str]]:
    """For each name the titles of the pages that its ``k`` best passages are from, the best first.

    Passages are ranked as by `factaudit.engines.dfactscore.ambigbio.top_passages`, over all pages but disambiguation
    pages; one that has no word of the name is no find. ``pages`` are read once and not kept.
    """
    queries = {name: normalise(name).lower().split() for name in names}
    owners: list[str] = []

    def corpus() -> Iterable[list[str]]:
        for page in pages:
            if not is_disambiguation(page.title):
                for passage in page.passages:
                    owners.append(page.title)
                    yield f"{page.title} {clean(passage)}".lower().split()

    index = Bm25(corpus(), {word for query in queries.values() for word in query})
    found = {}
    for name, query in queries.items():
        holding = index.holding(query)
        hits = (i for i in index.best(query) if i in holding)
        found[name] = list(dict.fromkeys(owners[i] for i in islice(hits, k)))
    return found


def _words(title: str) -> list[str]:
    text = unicodedata.normalize("NFKD", base_name(title).replace("_", " ")).casefold()
    plain = "".join(char for char in text if not unicodedata.combining(char))
    words = re.findall(r"[^\s.,]+", plain)
    return [word for word in words if word not in _GENERATION] or words


def _same(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])
