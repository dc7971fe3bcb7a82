"""How likely a page's title is the name of somebody: honorifics, numerals, nicknames, initials, spellings, word order.

A name is asked for as people write it ("Bill Sharkey", "Aleksandr Tkachyov"), a title is as an encyclopedia has it
("William J. Sharkey (murderer)", "Alexander Tkachov (politician)", "Thomas Seymour, 1st Baron Seymour of Sudeley").
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from rapidfuzz.distance import DamerauLevenshtein

#: A title less like a name than this is not taken for it.
MIN_NAME_LIKENESS = 0.45

_DISAMBIGUATION_SUFFIX = re.compile(r"\s*\(([^()]*)\)\s*$")
_GENERATION_WORDS = frozenset(("jr", "sr", "junior", "senior"))
_NUMERAL = re.compile(r"(?:i{1,3}|iv|vi{0,3}|ix|xi{0,3}|xiv|xvi{0,3}|xix|xx)")
_GENERATION_NUMERAL = re.compile(r"i{2,3}|iv")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
#: Honorifics; words that join others; letters as transliterations differ in them, applied in order; given names, each
#: with what it is in other languages and its nicknames.
_NAME_WORDS: dict[str, list[Any]] = json.loads(
    (files("factaudit.knowledge") / "names.json").read_text(encoding="utf-8")
)
_HONORIFIC_WORDS, _JOINING_WORDS = frozenset(_NAME_WORDS["honorifics"]), frozenset(_NAME_WORDS["joining"])
_NICKNAMES: dict[str, tuple[str, ...]] = {}
for _given in _NAME_WORDS["nicknames"]:
    for _one in _given.split():
        _NICKNAMES[_one] = (*_NICKNAMES.get(_one, ()), _given.split()[0])


@dataclass(frozen=True, slots=True)
class PersonName:
    """A name in words: ``words`` in order without honorifics, numerals and what joins them; ``numerals`` apart.

    nobility_words: the words of the parts that say of what somebody was the lord ("1st Baron Seymour of Sudeley").
    """

    words: tuple[str, ...]
    numerals: frozenset[str] = frozenset()
    nobility_words: frozenset[str] = frozenset()


def remove_person_title_suffix(title: str) -> str:
    """A title without what Wikipedia puts behind it to tell people apart.

    >>> remove_person_title_suffix("Bruce Johnstone (musician)")
    'Bruce Johnstone'
    """
    return _DISAMBIGUATION_SUFFIX.sub("", title).strip()


def is_disambiguation_title(title: str) -> bool:
    """Whether the title says that the page is a list of people, not a person."""
    suffix = _DISAMBIGUATION_SUFFIX.search(title)
    return suffix is not None and suffix[1].strip().casefold() == "disambiguation"


@lru_cache(maxsize=1 << 16)
def parse_person_name(text: str) -> PersonName:
    """A name, or a title, in words.

    >>> name = parse_person_name("Thomas Seymour, 1st Baron Seymour of Sudeley")
    >>> name.words, sorted(name.nobility_words)
    (('thomas', 'seymour'), ['seymour', 'sudeley'])
    """
    main, _, rest = remove_person_title_suffix(text.replace("_", " ")).partition(",")
    said = [word for word in split_name_words(main) if word not in _GENERATION_WORDS]
    numerals = frozenset(word for word in said[1:] if _NUMERAL.fullmatch(word))
    words = [word for word in said if word not in numerals and word not in _JOINING_WORDS]
    bare = [word for word in words if word not in _HONORIFIC_WORDS]
    # "Guru" and "Count Basie" are names too: what is an honorific only matters where a name is left without it.
    kept = bare if bare and (len(bare) > 1 or numerals or len(words) == 2) else words
    titled = (word for word in split_name_words(rest) if not _ORDINAL.fullmatch(word))
    return PersonName(
        tuple(kept or said),
        numerals,
        frozenset(w for w in titled if w not in _HONORIFIC_WORDS | _JOINING_WORDS | _GENERATION_WORDS),
    )


def find_titles_of_same_name(names: Sequence[str], titles: Iterable[str]) -> dict[str, list[str]]:
    """For each name the titles that have this very name (`is_title_of_name`), in the alphabet's order."""
    by_last: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if words := _split_person_title_words(name):
            by_last.setdefault(words[-1], []).append(name)
    found: dict[str, list[str]] = {name: [] for name in names}
    for title in titles:
        words = _split_person_title_words(title)
        for name in by_last.get(words[-1], ()) if words else ():
            if is_title_of_name(title, name):
                found[name].append(title)
    return {name: sorted(set(found[name])) for name in found}


def is_title_of_name(title: str, name: str) -> bool:
    """Whether a page of this title has this very name.

    First and last name are the same, an initial standing for a name ("W." for "William"); middle names and initials
    may be missing from either, not differ. Case, accents, disambiguation suffixes and Jr. or Sr. don't count.

    >>> is_title_of_name("William J. Sharkey (murderer)", "William Sharkey")
    True
    >>> is_title_of_name("William J. Sharkey", "William K. Sharkey")
    False
    """
    if is_disambiguation_title(title):
        return False
    one, other = sorted((_split_person_title_words(title), _split_person_title_words(name)), key=len)
    if not one:
        return False
    if len(one) == 1:
        return one == other
    if not (_is_same_word_or_initial(one[0], other[0]) and one[-1] == other[-1]):
        return False
    between = iter(other[1:-1])
    return all(any(_is_same_word_or_initial(word, seen) for seen in between) for word in one[1:-1])


def name_likeness(name: str, title: str) -> float:
    """How well a title fits a name, from 0 to 1; 1: the same words in the same order.

    The last word of a name counts most. A word fits as a whole, as an initial, as a nickname, by another spelling or
    transliteration, or but for a small difference; words that only the title has, another order and other numerals
    cost a little.

    >>> [round(name_likeness("William Sharkey", title), 2) for title in ("Bill Sharkey (boxer)", "Brian Sharkey")]
    [0.96, 0.52]
    """
    one, other = parse_person_name(name), parse_person_name(title)
    if is_disambiguation_title(title) or not one.words or not other.words:
        return 0.0
    n = len(one.words)
    weights = [0.55 if place == n - 1 else 0.45 / (n - 1) for place in range(n)] if n > 1 else [1.0]
    free = dict(enumerate(other.words))
    total, places = 0.0, []
    for place in [n - 1, *range(n - 1)]:
        word = one.words[place]
        # The last word of a title is a surname, its first a given name, more often than another.
        fits = {
            at: _name_word_likeness(word, there) - _name_order_penalty(place, n, at, len(other.words))
            for at, there in free.items()
        }
        best = max(fits, key=lambda at: (fits[at], -at), default=None)
        fit = 0.0
        if best is not None and _name_word_likeness(word, free[best]) > 0:
            fit = fits[best]
            places.append((place, best))
            del free[best]
        elif word in other.nobility_words:
            fit = 0.7
        elif 0 < place < n - 1:
            fit = 0.4  # a middle name that the title lacks says little
        total += weights[place] * max(0.0, fit)
    ordered = [at for _, at in sorted(places)]
    if ordered != sorted(ordered):
        total -= 0.03
    total -= min(0.12, 0.03 * len(free))
    if one.numerals != other.numerals:
        total -= 0.25 if one.numerals and other.numerals else 0.1
    return max(0.0, total)


def rank_person_titles_by_likeness(
    names: Iterable[str], titles_and_redirects: Iterable[tuple[str, str]]
) -> dict[str, list[tuple[float, str]]]:
    """For each wanted name (likeness, title) of the pages that a title or redirect leads to, the likest first.

    titles_and_redirects: (name, title of its page), read once. A page less like a name than `MIN_NAME_LIKENESS` is left
    out. Equals are in the alphabet's order.
    """
    asking: dict[str, set[str]] = {}
    for name in names:
        for key in list_person_name_keys(name, is_query=True):
            asking.setdefault(key, set()).add(name)
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    sieve = _PersonTitlePrefilter(asking)
    for name, title in titles_and_redirects:
        if not sieve.may_have_key(name):
            continue
        for one in set().union(*(asking.get(key, ()) for key in list_person_name_keys(name))):
            fit = round(name_likeness(one, name), 9)
            if fit >= MIN_NAME_LIKENESS and fit > found[one].get(title, 0.0):
                found[one][title] = fit
    return {
        name: sorted(((fit, title) for title, fit in pages.items()), key=lambda each: (-each[0], each[1]))
        for name, pages in found.items()
    }


class _PersonTitlePrefilter:
    """Tells of most of millions of titles at a glance that they have none of the keys asked for
    (`list_person_name_keys`).

    Word by word, as they stand in the title, each looked at once: what it lets pass may have a key, the rest has none.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._sounds: set[str] = set()
        self._initials: dict[str, set[str]] = {}
        for key in keys:
            group, pair, initial = key.partition(":")
            if pair:
                self._initials.setdefault(group, set()).add(initial)
            else:
                self._sounds.add(key.removeprefix("first "))
        self._known: dict[str, bool | frozenset[str]] = {}

    def may_have_key(self, title: str) -> bool:
        """Whether the title may have a key."""
        wanted: frozenset[str] = frozenset()
        for word in title.split():
            found = self._known.get(word)
            if found is None:
                found = self._look_up_word(word)
            if found is True:
                return True
            if found:
                wanted |= found
        return bool(wanted) and any(phonetic_name_key(word)[:1] in wanted for word in split_name_words(title))

    def _look_up_word(self, text: str) -> bool | frozenset[str]:
        """True: the word sounds like one asked for. Else how another word would have to begin, for a pair."""
        if len(self._known) >= 1 << 18:
            self._known.clear()
        words = split_name_words(text)
        if any(phonetic_name_key(word) in self._sounds for word in words):
            self._known[text] = True
        else:
            groups = (group for word in words for group in _find_nickname_groups(word) or (phonetic_name_key(word),))
            initials = frozenset(initial for group in groups for initial in self._initials.get(group, ()))
            self._known[text] = initials or False
        return self._known[text]


def list_person_name_keys(text: str, is_query: bool = False) -> set[str]:
    """What two names must share to be compared at all.

    The sound of a surname (any word, and any title of nobility, but the first of several), a given name together with
    how another word begins to sound, or the first of all words where a name has no other.

    is_query: of a name that is looked for, which needs fewer keys than a title that may be found.
    """
    name = parse_person_name(text)
    words = [word for word in name.words if len(word) > 1] or list(name.words)
    if not words:
        return set()
    found = {phonetic_name_key(word) for word in (*(words[1:] or words), *name.nobility_words)}
    if not is_query or len(words) == 1:
        found.add(f"first {phonetic_name_key(words[0])}")
    for given in words:
        for group in _find_nickname_groups(given) or (phonetic_name_key(given),):
            found |= {f"{group}:{phonetic_name_key(word)[:1]}" for word in words if word != given}
    return found


@lru_cache(maxsize=1 << 17)
def phonetic_name_key(word: str) -> str:
    """A word as it is spelt in any transliteration, its vowels but the first left out.

    >>> [phonetic_name_key(a) == phonetic_name_key(b) for a, b in (("tkachyov", "tkachov"), ("smith", "jones"))]
    [True, False]
    """
    text = _unify_name_transliteration(word)
    return text[:1] + re.sub(r"[aeiouh]", "", text[1:])


@lru_cache(maxsize=1 << 18)
def _name_word_likeness(one: str, other: str) -> float:
    if one == other:
        return 1.0
    if len(one) == 1 or len(other) == 1:
        return 0.75 if one[0] == other[0] else 0.0
    if set(_find_nickname_groups(one)) & set(_find_nickname_groups(other)):
        return 0.92
    spelt = _unify_name_transliteration(one), _unify_name_transliteration(other)
    if spelt[0] == spelt[1]:
        return 0.95
    short, long = sorted((one, other), key=len)
    distance = DamerauLevenshtein.distance(*spelt)
    near = 1 - distance / max(map(len, spelt))
    if near >= 0.65 and (distance == 1 or near >= 0.75):
        return 0.9 * near + 0.02
    if len(short) >= 3 and long.startswith(short):
        return 0.8
    if phonetic_name_key(one) == phonetic_name_key(other):
        return 0.7
    return 0.6 * near if near >= 0.5 else 0.0


def _name_order_penalty(name_position: int, n_name_words: int, title_position: int, n_title_words: int) -> float:
    """What it costs that a word stands elsewhere: a surname that is not last, a given name that is not first."""
    if n_name_words == 1:
        return 0.0 if title_position in (0, n_title_words - 1) else 0.05
    if name_position == n_name_words - 1:
        return 0.0 if title_position == n_title_words - 1 else 0.06
    return 0.0 if name_position or title_position == 0 else 0.06


@lru_cache(maxsize=1 << 17)
def _unify_name_transliteration(word: str) -> str:
    text = word
    for one, other in _NAME_WORDS["spellings"]:
        text = text.replace(one, other)
    text = re.sub(r"(.)\1+", r"\1", text)
    return re.sub(r"(?:ov|of|off|ev|ef)$", "v", re.sub(r"(?<=..)e$", "", text))


def _find_nickname_groups(word: str) -> tuple[str, ...]:
    """The given names that a word stands for: "bill" for "william"."""
    return _NICKNAMES.get(word, ())


def split_name_words(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", text.replace("ø", "o").replace("ł", "l").replace("đ", "d")).casefold()
    plain = "".join(char for char in folded if not unicodedata.combining(char))
    return re.findall(r"[^\W_]+", re.sub(r"['’`ʻʿ]", "", plain))


def _split_person_title_words(title: str) -> list[str]:
    text = unicodedata.normalize("NFKD", remove_person_title_suffix(title).replace("_", " ")).casefold()
    plain = "".join(char for char in text if not unicodedata.combining(char))
    words = re.findall(r"[^\s.,]+", plain)
    return [
        word for word in words if word not in _GENERATION_WORDS and not _GENERATION_NUMERAL.fullmatch(word)
    ] or words


def _is_same_word_or_initial(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])
