"""Which rules change the meaning? Another number, another year, a negation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    PerturbationRule,
    find_pattern_outside_quotes,
    has_phrase_in_document,
    is_plain_assertion,
    replace_claim_text_span,
)
from factaudit.text.content_words import STOP_WORDS

# ---- numbers

_NUMBER_WORDS = """
one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty
seventy eighty ninety hundred thousand dozen half
"""
_WORDS = _NUMBER_WORDS.split()
_ANY_NUMBER = rf"(?:\d|(?:{'|'.join(_WORDS)})s?\b)"
#: A whole number in digits that stands alone: no part of a range, date, ratio, name or decimal, and
#: no ordinal.
_NUMBER = re.compile(
    r"(?<![\w.,:/#°–—-])(?P<currency>[$€£]?)(?P<number>\d{1,3}(?:,\d{3})+|\d+)\b"
    r"(?![:/–—-]|[.,]\d)"
)
_LEFT_OF_RANGE = re.compile(
    rf"(?:\d|\b(?:{'|'.join(_WORDS)}))[%\w]*\s*(?:to|or|and|of|by|in|through|x|×|,|\s)\s*[$€£]?$",
    re.I,
)
_RIGHT_OF_RANGE = re.compile(
    rf"\s*%?\s*(?:to|or|and|by|of|out|in|x|×|,|-|–|—)?\s*(?:\w+\s)?[$€£]?{_ANY_NUMBER}", re.I
)
_BOUND_WORDS = """
about above in after almost approximately around as at average averages averaged averaging
before below beyond between by circa close exceed exceeds exceeded exceeding fewer from just
least less like limit limited limits max maximum min minimum more most nearly only or over
roughly since some than to top under until up upward upwards within every each additional
another other extra first last next past type types step steps stage phase chapter passage
number no grade level class version vitamin route figure table page section part season episode
volume act category group round game age aged
"""
#: Words before a number that make of it a bound, a guess or a name: another number might then be
#: true as well.
_BOUNDS = re.compile(
    rf"\b(?:{'|'.join(_BOUND_WORDS.split())})(?:\s+(?:the|a|an|of|its|his|her"
    r"|their))?\s*[$€£]?$",
    re.I,
)
#: Words behind a number that do the same: "five years or more", "24 hours after".
_OPEN_END = re.compile(
    r"[\w%]*\s*(?:\w+\s+){0,2}?(?:or (?:more|less|so|fewer|older|younger)|at (?:most|least)|plus"
    r"|and (?:over|up|older|above)|after|before|from)\b|\+",
    re.I,
)
#: Words that a number counts, besides plurals with an s.
_COUNTED_WORDS = """
percent per million billion thousand hundred people men women children feet teeth mice
"""


def _find_counting_numbers(claim: str) -> Iterator[re.Match[str]]:
    """Numbers that count something or measure it, are no bound, and no part of a range."""
    for found in find_pattern_outside_quotes(_NUMBER, claim):
        left, right = claim[: found.start()], claim[found.end() :]
        is_year = re.fullmatch(r"1\d{3}|20\d{2}", found["number"]) and not found["currency"]
        if is_year or re.search(r"\s[A-Z]\S*\s$", left):  # "Boeing 747"
            continue
        if _LEFT_OF_RANGE.search(left) or _RIGHT_OF_RANGE.match(right):
            continue
        if _BOUNDS.search(left) or _OPEN_END.match(right):
            continue
        following = re.match(r"\s?%|\s(?P<word>[a-z]+)\b(?!-)", right)
        if found["currency"] or (
            following and (following["word"] is None or _is_counted(following["word"]))
        ):
            yield found


def _is_counted(word: str) -> bool:
    """Whether a lower-case word may be what a number counts: a scale, or a plural."""
    if word in _COUNTED_WORDS.split():
        return True
    return len(word) > 3 and re.search(r"[^sui]s$", word) is not None and word not in STOP_WORDS


def read_number(text: str) -> int:
    """The value of digits."""
    return int(text.replace(",", ""))


def is_number_in(document: str, value: int) -> bool:
    """Whether a document has a number, in digits or as a word."""
    forms = [str(value), f"{value:,}", *(_WORDS[value - 1 : value] if value <= 12 else ())]
    return any(has_phrase_in_document(document, form) for form in forms)


def _list_claims_with_other_number(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in _find_counting_numbers(claim) if is_plain_assertion(claim) else ():
        value = read_number(found["number"])
        is_share = claim[found.end() :].lstrip().startswith(("%", "percent", "per cent"))
        if value < 2 or not is_number_in(doc, value):
            continue
        for _ in range(20):
            new = _draw_greater_number(value, random)
            if not is_number_in(f"{doc} {claim}", new) and not (is_share and new > 99):
                shown = f"{new:,}" if "," in found["number"] else str(new)
                yield replace_claim_text_span(claim, found.span("number"), shown)
                break


def _draw_greater_number(value: int, random: Random) -> int:
    """A number as round as the old one, a fifth above it to twice as great."""
    step = 10 ** (len(str(value)) - len(str(value).rstrip("0")))
    low = max(round(value * 1.2 / step), value // step + 1)
    return random.randint(low, 2 * value // step) * step


# ---- dates

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
#: Behind these a later or earlier date may hold as well.
_OPEN_DATE = re.compile(
    r"\b(?:after|around|before|between|by|circa|early|from|late|later|mid|on or"
    r" about|since|through|till|to|until|and"
    r"|or|about|as of|following|prior"
    r" to|during|throughout|over|past|than|starting|beginning|onwards?)"
    r"(?:\s+(?:the|a))?(?:\s+(?:spring|summer|autumn|fall|winter|end of|beginning of|start"
    r" of))?[\s-]*$",
    re.I,
)
_YEAR = re.compile(
    r"\b(?P<before>in|of|In|On [A-Z]\w+ \d+,|on [A-Z]\w+ \d+,|(?:in|In|on|On|of)(?: \d+)? (?:"
    + _MONTH
    + r"))(?: late| early)? (?P<year>1[5-9]\d\d|20\d\d)\b(?![\w–/-]|['’]s| (?:and|or|to)\b)"
)


def _list_claims_with_other_date(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not is_plain_assertion(claim):
        return
    for found in find_pattern_outside_quotes(_YEAR, claim):
        year, left = found["year"], claim[: found.start("year")]
        if (
            _OPEN_DATE.search(claim[: found.start()])
            or re.search(r"\b(?:early|late|mid)[\s-]$", left)
            or not has_phrase_in_document(doc, year)
        ):
            continue
        others = [
            str(int(year) + step)
            for step in (-9, -7, -6, -4, 4, 6, 7, 9)
            if int(year) + step < 2040
        ]
        others = [other for other in others if other not in doc and other not in claim]
        if others:
            yield replace_claim_text_span(claim, found.span("year"), random.choice(others))


# ---- negation

_AUXILIARY = re.compile(
    r"(?<![-'’\w])(?P<verb>is|are|was|were|can|will|must|should"
    r"|(?:has|have|had)(?= (?:been|become|won|made|\w{3,}ed)\b))"
    r"\s(?P<next>[\w$€£\"“-]+)"
)
#: Behind "is not" these leave a statement that the old one does not exclude, or no English.
_NEVER_NEGATED = """
    only just merely simply also always often usually generally typically commonly sometimes
    necessarily probably possibly perhaps likely mainly mostly primarily largely partly
    especially particularly some any several few little no not never yet still already even too
    very quite rather both either about around approximately nearly almost roughly said reported
    known believed thought considered called named referred due because where when what why how
    that which who there then now thus therefore however so more most less least up over one
    currently essentially supposed meant
"""
#: A negation of a part of what holds leaves open whether the rest does.
_PARTIAL = re.compile(
    r"\b(?:some|any|several|certain|both|may|might|could|would|often|usually|sometimes|generally"
    r"|typically|only|all|every|each"
    r"|most|many)\b",
    re.I,
)
_SUBORDINATE = re.compile(
    r"\b(?:that|which|who|whom|whose|when|while|where|because|although|though|as|after|before|once"
    r"|since|what|how|why)\b",
    re.I,
)


def _list_negated_claims(claim: str, doc: str, random: Random) -> Iterator[str]:
    """With "not" behind the first auxiliary verb of the sentence, which must be that of its main
    clause."""
    found = next(find_pattern_outside_quotes(_AUXILIARY, claim), None)
    if found is None or not is_plain_assertion(claim) or _PARTIAL.search(claim):
        return
    before = claim[: found.start()]
    if (
        found["next"].lower().strip('"“') in _NEVER_NEGATED.split()
        or _SUBORDINATE.search(before)
        or len(before.split()) > 12
    ):
        return
    end = found.end("verb")
    yield f"{claim[:end]}{'not' if found['verb'] == 'can' else ' not'}{claim[end:]}"


RULES = (
    PerturbationRule(
        "number_changed",
        "changed",
        "A whole number in digits that counts or measures becomes a greater one that the document"
        " does not have. Bounds, guesses, ranges and numbers in names are left alone.",
        ("The trial lasted 9 weeks.", "The trial lasted 12 weeks."),
        _list_claims_with_other_number,
        document="The trial lasted nine weeks.",
    ),
    PerturbationRule(
        "date_changed",
        "changed",
        "A year becomes another one that the document does not have. Open dates (before, since, by)"
        " are left alone.",
        ("The mill closed in 1911.", "The mill closed in 1918."),
        _list_claims_with_other_date,
        document="The mill closed in 1911.",
    ),
    PerturbationRule(
        "negation_added",
        "changed",
        '"not" stands behind the first auxiliary verb of a plain statement.',
        ("The bridge is open.", "The bridge is not open."),
        _list_negated_claims,
    ),
)
