"""The rule on dates: another year."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    find_pattern_outside_quotes,
    has_phrase_in_document,
    is_plain_assertion,
    replace_claim_text_span,
)
from factaudit.perturb.rule_declaration import PerturbationRule

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


RULES = (
    PerturbationRule(
        "date_changed",
        "changed",
        "A year becomes another one that the document does not have. Open dates (before, since, by)"
        " are left alone.",
        ("The mill closed in 1911.", "The mill closed in 1918."),
        _list_claims_with_other_date,
        document="The mill closed in 1911.",
    ),
)
