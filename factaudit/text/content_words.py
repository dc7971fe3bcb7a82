"""Which words of an English text carry its content? Numbers, names and other words, compared by
their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_FUNCTION_WORDS = """
a about above after again against all also although am among an and any are aren as at be
because been before being below between both but by can cannot could couldn d did didn do does
doesn doing don down during each either else ever every few for from further had hadn has hasn
have haven having he her here hers herself him himself his how however i if in into is isn it
its itself just ll m may me might more most much must my myself neither no nor not now of off on
once one only onto or other others ought our ours ourselves out over own per quite rather re s
same shall shan she should shouldn since so some such t than that the their theirs them
themselves then there these they this those though through thus to too toward towards under
until up upon us ve very was wasn we weren were what when where whether which while who whom
whose why will with within without would wouldn yet you your yours yourself yourselves
"""
#: Function words of English, with what an apostrophe leaves of "isn't", "we'll" and the like.
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
#: Words that add nothing to a statement: "a *person named* Ada".
_LIGHT_WORDS = """
person people human individual man woman someone something thing name named called known exist
exists existed include includes included including become became year time way several various
certain many specific also another come comes came located situated
"""
#: A statement with no other words is true of nearly anybody: "Ada was born."
_TRIVIAL_WORDS = "born die life live alive being work make did notable"

_BRACKETS = re.compile(r"\([^)]*\)")
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*\w*|[^\W\d_]+(?:\.[^\W\d_]\b)*")
_NUMBER_WORDS = """
two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
seventeen eighteen nineteen twenty
"""
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split(), start=2)}
_NUMBERS |= {"1st": "first", "2nd": "second", "3rd": "third"}
#: Forms that no rule leads back, and their stems.
_IRREGULAR_FORMS = """
won:win wrote:write written:write birth:born died:die death:die sold:sell began:begin
begun:begin led:lead taught:teach grew:grow grown:grow held:hold left:leave sang:sing sung:sing
built:build fought:fight ran:run rose:rise spoke:speak took:take taken:take went:go gone:go
gave:give given:give drew:draw drawn:draw chose:choos chosen:choos bought:buy brought:bring
kept:keep lost:lose met:meet spent:spend children:child wives:wife
"""
_IRREGULAR_STEMS = dict(pair.split(":") for pair in _IRREGULAR_FORMS.split())


@dataclass(frozen=True, slots=True)
class ContentWord:
    """A word by its stem, in lower case. kind: ``number``, ``name`` (it has a capital letter) or
    ``word``."""

    stem: str
    kind: str


@lru_cache(maxsize=1)
def _load_stemmer() -> Any:
    from nltk.stem.snowball import SnowballStemmer

    return SnowballStemmer("english")


@lru_cache(maxsize=65536)
def _stem_word(word: str) -> str:
    return _IRREGULAR_STEMS.get(word) or str(_load_stemmer().stem(word))


@lru_cache(maxsize=8192)
def list_content_words(text: str) -> tuple[ContentWord, ...]:
    """The words of a text but `STOP_WORDS`, in order.

    Numbers are compared as digits ("four" is 4, "1,200" is 1200), letters without their accents. A
    capital letter at the start of a sentence makes a name, too: of a statement, the subject stands
    there.

    >>> words = list_content_words("Ada Fenn's four mills were sold in 1911.")
    >>> [f"{word.stem}:{word.kind}" for word in words]
    ['ada:name', 'fenn:name', '4:number', 'mill:word', 'sell:word', '1911:number']
    """
    found = []
    plain = "".join(
        one for one in unicodedata.normalize("NFKD", text) if not unicodedata.combining(one)
    )
    for match in _WORD.finditer(plain.replace("’", "'")):
        raw = match[0]
        word = raw.lower().replace(".", "") if raw[0].isalpha() else raw.lower()
        word = _NUMBERS.get(word, word)
        if word[0].isdigit():
            found.append(ContentWord(word.replace(",", ""), "number"))
        elif word not in STOP_WORDS:
            found.append(ContentWord(_stem_word(word), "name" if raw[0].isupper() else "word"))
    return tuple(found)


def list_informative_words(text: str, topic: str | None = None) -> list[ContentWord]:
    """The content words that say something of the topic: not its own name, nor words such as
    "person".

    What stands in brackets in the title of a page ("Ada Fenn (miller)") is no part of the name.
    """
    own = {word.stem for word in list_content_words(_BRACKETS.sub("", topic or ""))}
    light = _stem_words(_LIGHT_WORDS)
    return [
        word for word in list_content_words(text) if word.stem not in own and word.stem not in light
    ]


def is_trivial_statement(text: str, topic: str | None = None) -> bool:
    """Whether a statement holds of nearly anybody: nothing is left of it without its topic and
    words of no weight.

    >>> is_trivial_statement("Ada Fenn is a person.", "Ada Fenn")
    True
    >>> is_trivial_statement("Ada was born in 1911.", "Ada")
    False
    """
    return all(is_trivial_word(word) for word in list_informative_words(text, topic))


def is_trivial_word(word: ContentWord) -> bool:
    """Whether a word, without others, tells of nearly anybody: to be born, to live, to work."""
    return word.stem in _stem_words(_TRIVIAL_WORDS)


class WordVocabulary:
    """The content words of texts, to ask which words of others they have.

    >>> words = WordVocabulary(["Ada Fenn acted in four Hungarian films."])
    >>> others = list_content_words("Ada, an actor from Hungary, sang.")
    >>> [word.stem for word in words.list_missing_words(others)]
    ['sing']
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._stems = {word.stem for text in texts for word in list_content_words(text)}
        self._by_start: dict[str, list[str]] = {}
        for stem in self._stems:
            self._by_start.setdefault(stem[:3], []).append(stem)

    def list_missing_words(self, words: Iterable[ContentWord]) -> list[ContentWord]:
        """The words that the texts do not have, in no form."""
        return [word for word in words if not self._has_word(word)]

    def _has_word(self, word: ContentWord) -> bool:
        if word.stem in self._stems:
            return True
        if word.kind == "number" or len(word.stem) < 3:
            return False
        return any(
            _is_same_word_family(word.stem, other)
            for other in self._by_start.get(word.stem[:3], ())
        )


def _is_same_word_family(stem: str, other: str) -> bool:
    """Whether stems are of words such as "actor" and "act", "Hungary" and "Hungarian"."""
    short, long = sorted((stem, other), key=len)
    if long.startswith(short):
        return len(short) >= 0.55 * len(long)
    shared = next(
        (at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    return shared >= 0.7 * len(long)


@lru_cache(maxsize=2)
def _stem_words(words: str) -> frozenset[str]:
    return frozenset(map(_stem_word, words.split()))
