"""Who could be meant? The titles of a knowledge source that share a name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_SUFFIX = re.compile(r"\s*\(([^()]*)\)\s*$")
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


def _words(title: str) -> list[str]:
    text = unicodedata.normalize("NFKD", base_name(title).replace("_", " ")).casefold()
    plain = "".join(char for char in text if not unicodedata.combining(char))
    words = re.findall(r"[^\s.,]+", plain)
    return [word for word in words if word not in _GENERATION] or words


def _same(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])
