"""Rules on how a claim is written: spelling, capital letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    find_pattern_outside_quotes,
    parse_word_replacement_pairs,
    replace_claim_text_span,
)
from factaudit.perturb.rule_declaration import PerturbationRule

#: British and American spellings of single words; those that have many forms are put together
#: below.
_SPELLINGS = parse_word_replacement_pairs(
    """fibre fiber, fibres fibers, traveller traveler, travellers travelers, analyse analyze,
    analysed analyzed, analysing analyzing, paralysed paralyzed, defence defense,
    offence offense, grey gray, greyish grayish, aluminium aluminum, sulphur sulfur, mould mold,
    moulds molds, moulded molded, moustache mustache, jewellery jewelry, plough plow,
    ploughed plowed, tyre tire, tyres tires, sceptical skeptical, ageing aging,
    haemoglobin hemoglobin, anaemia anemia, oestrogen estrogen, foetus fetus,
    paediatric pediatric, leukaemia leukemia, diarrhoea diarrhea, oesophagus esophagus,
    manoeuvre maneuver, manoeuvres maneuvers, skilful skillful, fulfil fulfill,
    fulfils fulfills, enrol enroll, enrolment enrollment, instalment installment,
    judgement judgment, judgements judgments, artefact artifact, artefacts artifacts, cosy cozy,
    pyjamas pajamas, yoghurt yogurt, counsellor counselor, counsellors counselors,
    marvellous marvelous, woollen woolen, kerb curb"""
)
_STEMS = {
    ("our", "or"): "col fav flav hon lab neighb rum behavi harb hum vap tum arm endeav sav vig",
    ("is", "iz"): (
        "organ recogn real emphas minim maxim special util stabil summar general categor character"
        " critic apolog author central civil colon crystall digit final harmon hospital immun"
        " initial local memor modern neutral normal optim oxid priorit standard steril symbol"
        " sympath vapor visual familiar"
    ),
    ("ll", "l"): "trave cance labe fue signa mode channe",
    ("re", "er"): "cent theat kilomet centimet millimet lit",
}
_ENDINGS = {
    "our": ("", "s", "ed", "ing", "able", "ite", "ites", "hood", "hoods", "al", "y", "ful"),
    "is": ("e", "es", "ed", "ing", "ation", "ations", "er", "ers"),
    "ll": ("ed", "ing"),
    "re": ("", "s"),
}
_SPELLINGS |= {
    f"{stem}{here}{end}": f"{stem}{there}{end}"
    for (here, there), stems in _STEMS.items()
    for stem in stems.split()
    for end in _ENDINGS[here]
}
#: American spellings that are other words as well.
_OTHER_WORDS = frozenset({"tire", "tires", "curb", "mold", "molds", "molded"})
_OTHER_SPELLINGS = _SPELLINGS | {
    there: here for here, there in _SPELLINGS.items() if there not in _OTHER_WORDS
}
_LOWER_CASE_WORD = re.compile(r"(?<![\w'’.@/-])[a-z]{4,}(?![\w@/-]|['’]\w|\.\w)")


def _list_other_spellings(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in find_pattern_outside_quotes(_LOWER_CASE_WORD, claim):
        if found[0] in _OTHER_SPELLINGS:
            yield replace_claim_text_span(claim, found.span(), _OTHER_SPELLINGS[found[0]])


#: Words that are others when their letters are capitals, and units: mW and MW.
_CASE_MATTERS = re.compile(
    r"\d\s?[a-zµ]{1,3}\b|\b[a-z]+[A-Z]|\b(?:us|aids|may|march|polish|turkey|china|who|ram|pin|lit"
    r"|mass|sat|act|rip|cat)\b"
    r"|https?:|www\.|@|[ßıµ²°]|\bpH\b"
)


def _list_upper_case(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not _CASE_MATTERS.search(claim) and claim.upper() != claim and len(claim.split()) >= 4:
        yield claim.upper()


RULES = (
    PerturbationRule(
        "spelling",
        "same",
        "A word has its British spelling for the American one, or the other way round; not in names"
        " and quotations.",
        ("The colour faded.", "The color faded."),
        _list_other_spellings,
    ),
    PerturbationRule(
        "letter_case",
        "same",
        "All letters are capitals, in claims without words that would be others then.",
        ("The mill closed in 1911.", "THE MILL CLOSED IN 1911."),
        _list_upper_case,
    ),
)
