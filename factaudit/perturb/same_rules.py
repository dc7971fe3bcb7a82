"""Which rules keep the meaning? Another spelling, capital letters, a sentence on something else in
the document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    PerturbationRule,
    find_pattern_outside_quotes,
    replace_claim_text_span,
)
from factaudit.text.content_words import WordVocabulary, list_content_words

# ---- how the claim is written

#: British and American spellings of single words; those that have many forms are put together
#: below.
_SPELLING_PAIRS = """
    fibre fiber, fibres fibers, traveller traveler, travellers travelers, analyse analyze,
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
    marvellous marvelous, woollen woolen, kerb curb
"""
_SPELLINGS: dict[str, str] = dict(pair.split() for pair in _SPELLING_PAIRS.split(","))
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


# ---- the document

#: True of nothing that a document is about, and each about something else.
_ASIDES = (
    "The municipal library on Orchard Lane lends umbrellas on rainy afternoons.",
    "Knitting patterns from the nineteen-thirties are collected in a drawer at the guesthouse.",
    "A baker in the old arcade sells rye loaves shaped like hedgehogs.",
    "The choir rehearses its autumn carols in the attic above the pharmacy.",
    "Lighthouse postcards can be ordered from a kiosk beside the tram stop.",
    "An amateur astronomer polishes telescope mirrors in his garden shed.",
    "The pottery class paints teapots with swallows and dandelions.",
    "A retired tailor mends parasols at the flea market.",
    "Marbles and spinning tops are displayed in the window of the toyshop.",
    "The beekeepers' newsletter prints a crossword on its last page.",
)
#: Claims that speak of all that their document says, or of its order: a document with more in it is
#: another one.
_ABOUT_THE_WHOLE = re.compile(
    r"\b(?:only|all|mention\w*|discuss\w*|list\w*|passages?|documents?|articles?|sources?|text"
    r"|context|first|last|second"
    r"|third|above|below|previous|following|according|provided|given|information|state[sd]?|unable"
    r"|paragraph|table)\b|^\W*\d+\W*$",
    re.I,
)


def _list_documents_with_unrelated_aside(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not doc.strip() or _ABOUT_THE_WHOLE.search(claim):
        return
    known = WordVocabulary([claim, doc[:20_000]])
    strange = [
        one
        for one in _ASIDES
        if len(known.list_missing_words(words := list_content_words(one))) >= len(words) - 2
    ]
    for aside in strange:
        yield f"{doc.rstrip()}\n\n{aside}"
        yield f"{aside}\n\n{doc.lstrip()}"


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
    PerturbationRule(
        "aside_added",
        "same",
        "The document begins or ends with a sentence on something else: claim and document have at"
        " most two of its content words.",
        ("The mill closed in 1911.", "The mill closed in 1911.\n\n" + _ASIDES[0]),
        _list_documents_with_unrelated_aside,
        changes="doc",
    ),
)
