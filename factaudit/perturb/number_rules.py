"""Rules on numbers: the same number in another form; another number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    find_pattern_outside_quotes,
    has_phrase_in_document,
    is_plain_assertion,
    is_plural_noun,
    join_alternatives,
    read_words,
    replace_claim_text_span,
)
from factaudit.perturb.rule_declaration import PerturbationRule

NUMBER_WORDS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_WORD_VALUES = {word: value for value, word in enumerate(NUMBER_WORDS, start=2)}
_ANY_WORD = (
    "one|" + "|".join(NUMBER_WORDS) + "|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|dozens?"
)
#: A number that stands alone: no part of a range, date, ratio, name or decimal, and no ordinal.
_NUMBER = re.compile(
    rf"(?<![\w.,:/#°–—-])(?P<currency>[$€£]?)(?P<number>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?|"
    rf"{'|'.join(f'[{word[0].upper()}{word[0]}]{word[1:]}' for word in NUMBER_WORDS)})\b(?![:/–—-]|[.,]\d)"
)
_LEFT_OF_RANGE = re.compile(
    rf"(?:\d|\b(?:{_ANY_WORD}|half|quarter))[%\w]*\s*(?:to|or|and|of|by|in|through|x|×|,|\s)\s*[$€£]?$", re.I
)
_RIGHT_OF_RANGE = re.compile(
    rf"\s*%?\s*(?:to|or|and|by|of|out|in|x|×|,|-|–|—)?\s*(?:\w+\s)?[$€£]?(?:\d|(?:{_ANY_WORD}|half|quarter)\b)", re.I
)
_BOUND_WORDS = """
about above in after almost approximately around as at average averages averaged averaging before below
beyond between by circa close exceed exceeds exceeded exceeding fewer from just least less like limit
limited limits max maximum min minimum more most nearly only or over roughly since some than to top under
until up upward upwards within every each additional another other extra first last next past type types
step steps stage phase chapter passage number no grade level class version vitamin route figure table page
section part season episode volume act category group round game age aged
"""
#: Words before a number that make of it a bound, a guess or a name: another number might then be true as well.
_BOUNDS = re.compile(
    rf"\b(?:{join_alternatives(read_words(_BOUND_WORDS))})(?:\s+(?:the|a|an|of|its|his|her|their))?\s*[$€£]?$", re.I
)
#: Words behind a number that do the same: "five years or more", "24 hours after".
_OPEN_END = re.compile(
    r"[\w%]*\s*(?:\w+\s+){0,2}?(?:or (?:more|less|so|fewer|older|younger)|at (?:most|least)|plus"
    r"|and (?:over|up|older|above)|after|before|from)\b|\+",
    re.I,
)
_SCALES = ("percent", "per", "million", "billion", "thousand", "hundred")


def _find_counting_numbers(claim: str) -> Iterator[re.Match[str]]:
    """Numbers that count something or measure it, are no bound, and no part of a range."""
    for found in find_pattern_outside_quotes(_NUMBER, claim):
        left, right = claim[: found.start()], claim[found.end() :]
        before = left.split()[-1:] or [""]
        is_year = re.fullmatch(r"1\d{3}|20\d{2}", found["number"]) and not found["currency"]
        if is_year or (before[0][:1].isupper() and len(left.split()) > 1):  # "Boeing 747"
            continue
        if (
            _LEFT_OF_RANGE.search(left)
            or _RIGHT_OF_RANGE.match(right)
            or _BOUNDS.search(left)
            or _OPEN_END.match(right)
        ):
            continue
        following = re.match(r"\s?%|\s(?P<word>[a-z]+)\b(?!-)", right)
        if found["currency"] or (
            following and (following["word"] is None or _is_noun_after_number(following["word"], right))
        ):
            yield found


def _is_noun_after_number(word: str, right: str) -> bool:
    if word in _SCALES or is_plural_noun(word):
        return True
    second = re.match(r"\s[a-z]+\s(?P<word>[a-z]+)\b(?!-)", right)
    return (
        word.isalpha()
        and len(word) > 3
        and second is not None
        and is_plural_noun(second["word"])
        and (
            not word.endswith(("ing", "ed", "ly"))
            and word not in _WORD_VALUES
            and word not in ("people", "with", "from", "that", "when", "were", "have")
        )
    )


def read_number(text: str) -> float:
    """The value of digits or of a number word."""
    return float(_WORD_VALUES.get(text.lower()) or text.replace(",", ""))


def _list_number_spellings(value: float) -> list[str]:
    """The ways in which a document may write a number."""
    if value != int(value):
        return [f"{value:g}"]
    plain = str(int(value))
    word = [NUMBER_WORDS[int(value) - 2]] if 2 <= value <= 20 else []
    return list(dict.fromkeys([plain, f"{int(value):,}", *word]))


def is_number_in(document: str, value: float) -> bool:
    """Whether a document has a number, in digits or as a word."""
    return any(has_phrase_in_document(document, form) for form in _list_number_spellings(value))


def _list_respelt_number_claims(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in find_pattern_outside_quotes(re.compile(r"(?<![\w.,:/#-])\d{1,3}(?:,\d{3})+(?![\w,]|\.\d)"), claim):
        yield replace_claim_text_span(claim, found.span(), found[0].replace(",", ""))
    for found in find_pattern_outside_quotes(re.compile(r"(?<=\d)(?: percent| per cent)\b"), claim):
        yield replace_claim_text_span(claim, found.span(), "%")
    for found in find_pattern_outside_quotes(re.compile(r"(?<=\d)\s?%(?![\w-])"), claim):
        yield replace_claim_text_span(claim, found.span(), " percent")
    for found in find_pattern_outside_quotes(_NUMBER, claim):
        left, right = claim[: found.start()], claim[found.end() :]
        following = re.match(r"\s([a-z]+)\b(?!-)", right)
        if found["currency"] or following is None or not is_plural_noun(following[1]):
            continue
        if _LEFT_OF_RANGE.search(left) or _RIGHT_OF_RANGE.match(right) or re.search(r"[A-Z]\w*\s$", left):
            continue
        number = found["number"]
        if number.lower() in _WORD_VALUES and _WORD_VALUES[number.lower()] <= 12:
            yield replace_claim_text_span(claim, found.span(), str(_WORD_VALUES[number.lower()]))
        elif re.fullmatch(r"[2-9]|1[0-2]", number) and left.strip():
            yield replace_claim_text_span(claim, found.span(), NUMBER_WORDS[int(number) - 2])


def _list_claims_with_other_number(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in _find_counting_numbers(claim) if is_plain_assertion(claim) else ():
        value = read_number(found["number"])
        share = claim[found.end() :].lstrip().startswith(("%", "percent", "per cent"))
        if value < 2 or not is_number_in(doc, value) or (share and value >= 95):
            continue
        drawn = (_draw_greater_number(found["number"], value, 99 if share else 1e15, random) for _ in range(20))
        new = next((one for one in drawn if one and not is_number_in(f"{doc} {claim}", read_number(one))), None)
        if new is not None:
            yield replace_claim_text_span(claim, found.span("number"), new)


def _draw_greater_number(text: str, value: float, most: float, random: Random) -> str | None:
    """A number as round as the old one, a fifth above it to twice as great, in the same form."""
    if text.lower() in _WORD_VALUES:
        words = NUMBER_WORDS[int(value) - 1 :][: max(2, int(value))]
        return random.choice(words) if words else None
    decimals = len(text.partition(".")[2])
    zeros = 0 if decimals else len(text.replace(",", "")) - len(text.replace(",", "").rstrip("0"))
    step = 10.0 ** (zeros - decimals)
    low, high = max(round(value * 1.2 / step), round(value / step) + 1), round(min(2 * value, most) / step)
    if low > high:
        return None
    new = random.randint(low, high) * step
    return f"{new:,.{decimals}f}" if "," in text else f"{new:.{decimals}f}"


RULES = (
    PerturbationRule(
        "number_format",
        "same",
        "A number is written in another form: 1,000 as 1000, three as 3, % as percent, or the other way round.",
        ("It sold 1,000 cars.", "It sold 1000 cars."),
        _list_respelt_number_claims,
    ),
    PerturbationRule(
        "number_changed",
        "changed",
        "A number that counts or measures becomes a greater one that the document does not have. Bounds, guesses, "
        "ranges and numbers in names are left alone.",
        ("The trial lasted nine weeks.", "The trial lasted twelve weeks."),
        _list_claims_with_other_number,
        document="The trial lasted nine weeks.",
    ),
)
