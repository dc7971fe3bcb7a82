"""The rule on numbers: another number."""

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

_WORDS = (
    *(
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "twenty",
    ),
    *(
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
        "hundred",
        "thousand",
        "dozen",
        "half",
    ),
)
_ANY_NUMBER = rf"(?:\d|(?:{'|'.join(_WORDS)})s?\b)"
#: A number in digits that stands alone: no part of a range, date, ratio, name or decimal, and no
#: ordinal.
_NUMBER = re.compile(
    r"(?<![\w.,:/#°–—-])(?P<currency>[$€£]?)(?P<number>\d{1,3}(?:,\d{3})+(?:\.\d+)?"
    r"|\d+(?:\.\d+)?)\b(?![:/–—-]|[.,]\d)"
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
    rf"\b(?:{join_alternatives(read_words(_BOUND_WORDS))})(?:\s+(?:the|a|an|of|its|his|her"
    r"|their))?\s*[$€£]?$",
    re.I,
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
    return word in _SCALES or is_plural_noun(word)


def read_number(text: str) -> float:
    """The value of digits."""
    return float(text.replace(",", ""))


def is_number_in(document: str, value: float) -> bool:
    """Whether a document has a number, in digits or as a word."""
    forms = (
        [f"{value:g}", f"{value:.0f}", f"{value:,.0f}"] if value == int(value) else [f"{value:g}"]
    )
    forms += [_WORDS[int(value) - 1]] if value in range(1, 13) else []
    return any(has_phrase_in_document(document, form) for form in forms)


def _list_claims_with_other_number(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in _find_counting_numbers(claim) if is_plain_assertion(claim) else ():
        value = read_number(found["number"])
        is_share = claim[found.end() :].lstrip().startswith(("%", "percent", "per cent"))
        if value < 2 or not is_number_in(doc, value) or (is_share and value >= 95):
            continue
        drawn = (
            _draw_greater_number(found["number"], value, 99 if is_share else 1e15, random)
            for _ in range(20)
        )
        new = next(
            (one for one in drawn if one and not is_number_in(f"{doc} {claim}", read_number(one))),
            None,
        )
        if new is not None:
            yield replace_claim_text_span(claim, found.span("number"), new)


def _draw_greater_number(text: str, value: float, most: float, random: Random) -> str | None:
    """A number as round as the old one, a fifth above it to twice as great, in the same form."""
    decimals = len(text.partition(".")[2])
    digits = text.replace(",", "")
    zeros = 0 if decimals else len(digits) - len(digits.rstrip("0"))
    step = 10.0 ** (zeros - decimals)
    low, high = (
        max(round(value * 1.2 / step), round(value / step) + 1),
        round(min(2 * value, most) / step),
    )
    if low > high:
        return None
    new = random.randint(low, high) * step
    return f"{new:,.{decimals}f}" if "," in text else f"{new:.{decimals}f}"


RULES = (
    PerturbationRule(
        "number_changed",
        "changed",
        "A number in digits that counts or measures becomes a greater one that the document does"
        " not have. Bounds, guesses, ranges and numbers in names are left alone.",
        ("The trial lasted 9 weeks.", "The trial lasted 12 weeks."),
        _list_claims_with_other_number,
        document="The trial lasted nine weeks.",
    ),
)
