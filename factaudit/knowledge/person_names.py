"""Is a page's title the name of somebody? The same name, whatever stands behind it and however it
is written.

A title is as an encyclopedia has it: "William J. Sharkey (murderer)", "Thomas Seymour, 1st Baron
Seymour of Sudeley". Case, accents, quotes, what stands in parentheses or behind a comma, and Jr. or
Sr. do not count. Nicknames and other spellings do: where a knowledge source has them, they are
redirects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from factaudit.knowledge.docdb import fold_letters

#: What Wikipedia puts behind a title to tell people apart.
_SUFFIX = re.compile(r"\s*\([^()]*\)\s*$")
#: A list of people, not a person.
_DISAMBIGUATION = re.compile(r"\(\s*disambiguation\s*\)\s*$", re.IGNORECASE)
_GENERATION = re.compile(r"jr|sr|junior|senior|i{2,3}|iv")
_NOT_IN_WORDS = re.compile(r"['’`ʻʿ\"“”]")


def find_titles_of_same_name(
    names: Sequence[str], titles_and_redirects: Iterable[tuple[str, str]]
) -> dict[str, list[str]]:
    """For each name the pages of which a title or redirect has this name; those with the very words
    of the name come first, equals in the alphabet's order.

    First and last name are the same, an initial standing for a name ("W." for "William"); middle
    names and initials may be missing from either, not differ.

    titles_and_redirects: (title or redirect, title of its page), read once.
    """
    by_last_word: dict[str, list[tuple[str, list[str]]]] = {}
    for name in dict.fromkeys(names):
        if words := _split_name(name):
            by_last_word.setdefault(words[-1], []).append((name, words))
    found: dict[str, dict[str, bool]] = {name: {} for name in names}
    for title, page in titles_and_redirects:
        words = _split_name(title)
        for name, asked in by_last_word.get(words[-1], ()) if words else ():
            if _is_same_name(words, asked) and not _DISAMBIGUATION.search(title):
                found[name][page] = found[name].get(page, False) or words == asked
    return {
        name: sorted(pages, key=lambda page: (not pages[page], page))
        for name, pages in found.items()
    }


def _split_name(text: str) -> list[str]:
    """The words of a name or a title that count."""
    plain = fold_letters(_SUFFIX.sub("", text.replace("_", " ")).strip().partition(",")[0])
    words = re.findall(r"[^\s.]+", _NOT_IN_WORDS.sub("", plain))
    return [word for word in words if not _GENERATION.fullmatch(word)] or words


def _is_same_name(one: list[str], other: list[str]) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < 2:
        return bool(short) and short == long
    if not _is_same_word_or_initial(short[0], long[0]) or short[-1] != long[-1]:
        return False
    between = iter(long[1:-1])  # each is looked at once: middle names stand in the same order
    return all(
        any(_is_same_word_or_initial(word, seen) for seen in between) for word in short[1:-1]
    )


def _is_same_word_or_initial(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])
