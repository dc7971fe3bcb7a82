"""Group facts without a model: what a paragraph itself says of how many people it tells of.

A heuristic, of which nothing is published: compare it before you trust it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from factaudit.engines.dfactscore.group import number_groups
from factaudit.engines.records import Grouping

_YEAR = re.compile(r"\b(1\d{3}|20\d{2})\b")
_LIFE = re.compile(
    r"\(\s*(?:born\b|b\.)?[^()]*?\b(1\d{3}|20\d{2})\b(?:\s*[–—-]\s*[^()]*?\b(1\d{3}|20\d{2})\b)?[^()]*\)"
)
_BORN = re.compile(r"\bborn\b[^.;()]*?\b(1\d{3}|20\d{2})\b")
_DIED = re.compile(r"\b(?:died|death|passed away|killed)\b[^.;()]*?\b(1\d{3}|20\d{2})\b")
_IS_A = re.compile(r"\b(?:is|was) (?:an?|the) ([^.,;()]+)")
# "a painter who lived in Ghent": what comes after these words is no longer the occupation.
_OCCUPATION_ENDS = re.compile(r"\b(?:who|whose|which|that|known|born|from|best|active|remembered|noted|of|in|at|for)\b")
_NO_OCCUPATION = {
    *("member", "part", "native", "founder", "resident", "citizen", "graduate", "student", "recipient", "winner"),
    *("son", "daughter", "child", "brother", "sister", "cousin", "friend", "supporter", "first", "only"),
}
_OTHER = re.compile(
    r"\b(?:another|other|second|third|different|namesakes?|unrelated|not to be confused|same name|also (?:an?|the)\b)",
    re.IGNORECASE,
)


def heuristic_groups(
    name: str, sentences: Sequence[str], facts: Sequence[str], sentence_of: Sequence[int | None] | None = None
) -> Grouping:
    """The groups of facts, by the sentences that they are of.

    A sentence that names the person in full opens a new group where it says that this is another one ("another",
    "a second", "a different", ...), or where a key fact in it contradicts the group that is open: the year of birth
    or of death, or the occupation after "is a", "was a". It goes back to an earlier group whose key facts agree with
    it. All other sentences, and so what "he" and "she" did, belong to the group that is open. A fact belongs where
    its sentence does.

    name: as asked for; what stands in parentheses is not part of it.
    sentences: of the paragraph, in order. sentence_of: of each fact the number of its sentence; where it is not given,
    or is None, the sentence that has most of the fact's words, of equals the nearest after the fact before it.
    """
    if not facts:
        return Grouping(())
    sentences = list(sentences) or [" ".join(facts)]
    mention = _mention(name)
    people: list[dict[str, Any]] = []
    current = -1
    where = []
    for sentence in sentences:
        named = mention.search(sentence)
        keys = _keys(sentence, named is not None)
        if current < 0:
            people.append(keys)
            current = 0
        elif named is None or named.start() > len(sentence) // 2:
            # A name late in the sentence is seldom its subject.
            _learn(people[current], keys)
        else:
            other = _OTHER.search(sentence[: named.end() + 40]) is not None
            if _contradicts(people[current], keys) or (other and people[current]):
                agreeing = [n for n, known in enumerate(people) if n != current and not other and _agrees(known, keys)]
                if agreeing:
                    current = agreeing[0]
                else:
                    people.append({})
                    current = len(people) - 1
            _learn(people[current], keys)
        where.append(current)
    owners = _sentences_of(facts, sentences, sentence_of)
    return Grouping(number_groups([where[owner] for owner in owners]))


def _mention(name: str) -> re.Pattern[str]:
    words = re.sub(r"\([^)]*\)", " ", name).split()
    if len(words) < 2:
        return re.compile(rf"\b{re.escape(name.strip())}\b")
    # Middle names may come between: "Miguel A. Suárez", "Miguel Ángel Suárez".
    return re.compile(rf"\b{re.escape(words[0])}\s+(?:[^\s.,;()]+\.?\s+){{0,3}}?{re.escape(words[-1])}\b")


def _keys(sentence: str, named: bool) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    life = _LIFE.search(sentence) if named else None
    for key, pattern, year in (("born", _BORN, life and life[1]), ("died", _DIED, life and life[2])):
        found = pattern.search(sentence)
        if year or found:
            keys[key] = year or (found and found[1])
    occupation = _IS_A.search(sentence) if named else None
    if occupation:
        words = set(re.findall(r"[^\W\d_]+", _OCCUPATION_ENDS.split(occupation[1])[0].casefold())) - {
            "and",
            "or",
            "a",
            "an",
        }
        if words and not words & _NO_OCCUPATION:
            keys["occupation"] = words
    return keys


def _contradicts(known: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    if any(key in known and key in keys and known[key] != keys[key] for key in ("born", "died")):
        return True
    if any(key in known and known.get(key) == keys.get(key) for key in ("born", "died")):
        return False
    both = "occupation" in known and "occupation" in keys
    return both and not known["occupation"] & keys["occupation"]


def _agrees(known: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    same = any(key in known and known.get(key) == keys.get(key) for key in ("born", "died"))
    shared = bool(known.get("occupation", set()) & keys.get("occupation", set()))
    return (same or shared) and not _contradicts(known, keys)


def _learn(known: dict[str, Any], keys: Mapping[str, Any]) -> None:
    for key, value in keys.items():
        if key == "occupation":
            known[key] = known.get(key, set()) | value
        else:
            known.setdefault(key, value)


def _sentences_of(facts: Sequence[str], sentences: Sequence[str], given: Sequence[int | None] | None) -> list[int]:
    words = [set(re.findall(r"\w+", sentence.casefold())) for sentence in sentences]
    owners: list[int] = []
    for position, fact in enumerate(facts):
        number = given[position] if given is not None else None
        if number is None or not 0 <= number < len(sentences):
            own = set(re.findall(r"\w+", fact.casefold()))
            last = owners[-1] if owners else 0
            # Facts come in the order of their sentences, nearly always.
            number = max(range(len(sentences)), key=lambda n: (len(own & words[n]), n >= last, -abs(n - last)))
        owners.append(number)
    return owners
