"""Rules on how a claim is written: contractions, quotation marks, spelling, capital letters, white space."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    find_pattern_outside_quotes,
    join_alternatives,
    parse_word_replacement_pairs,
    replace_claim_text_span,
)
from factaudit.perturb.rule_declaration import PerturbationRule

_CONTRACTED = parse_word_replacement_pairs(
    """is_not isn't, are_not aren't, was_not wasn't, were_not weren't, do_not don't, does_not doesn't, did_not didn't,
    has_not hasn't, have_not haven't, had_not hadn't, could_not couldn't, would_not wouldn't, should_not shouldn't,
    will_not won't, cannot can't, they_are they're, we_are we're, you_are you're, they_will they'll, we_will we'll,
    you_will you'll, he_will he'll, she_will she'll, it_will it'll"""
)
_EXPANDED = {short: long for long, short in _CONTRACTED.items()}
_LONG_FORM = re.compile(rf"\b(?:{join_alternatives(_CONTRACTED)})\b", re.I)
_SHORT_FORM = re.compile(rf"\b(?:{join_alternatives(_EXPANDED)})\b".replace("'", "['’]"), re.I)
#: Behind these a question or an inversion may stand, whose words come in another order when written out.
_INVERTING = re.compile(r"(?:^|[?:;]|\b(?:why|when|how|what|where|who|so|nor|and|but|or|if|than|as)\b)\W*$", re.I)


def _list_claims_with_other_contraction(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in find_pattern_outside_quotes(_LONG_FORM, claim):
        # "They are." cannot be shortened; "is not only" can.
        if re.match(r"\s+\w", claim[found.end() :]):
            yield replace_claim_text_span(claim, found.span(), _CONTRACTED[found[0].lower()])
    for found in find_pattern_outside_quotes(_SHORT_FORM, claim):
        if "?" not in claim and not (found[0].lower().endswith("t") and _INVERTING.search(claim[: found.start()])):
            yield replace_claim_text_span(claim, found.span(), _EXPANDED[found[0].lower().replace("’", "'")])


def _list_claims_with_other_quotation_marks(claim: str, doc: str, random: Random) -> Iterator[str]:
    straight = re.compile(r'(?<![\w"])"(?=[^\s"])([^"\n]*[^\s"\d])"(?!\w)')
    if claim.count('"') == 2 * len(straight.findall(claim)) > 0:
        yield straight.sub(r"“\1”", claim)
    if "“" in claim and claim.count("“") == claim.count("”") and '"' not in claim:
        yield claim.replace("“", '"').replace("”", '"')
    apostrophe = re.compile(r"(?<=[A-Za-z])(['’])(?=[a-z])")
    marks = {found[1] for found in apostrophe.finditer(claim)}
    if len(marks) == 1:
        yield apostrophe.sub("’" if marks == {"'"} else "'", claim)


#: British and American spellings of single words; those that have many forms are put together below.
_SPELLINGS = parse_word_replacement_pairs(
    """fibre fiber, fibres fibers, traveller traveler, travellers travelers, analyse analyze, analysed analyzed,
    analysing analyzing, paralysed paralyzed, defence defense, offence offense, grey gray, greyish grayish,
    aluminium aluminum, sulphur sulfur, mould mold, moulds molds, moulded molded, moustache mustache,
    jewellery jewelry, plough plow, ploughed plowed, tyre tire, tyres tires, sceptical skeptical, ageing aging,
    haemoglobin hemoglobin, anaemia anemia, oestrogen estrogen, foetus fetus, paediatric pediatric,
    leukaemia leukemia, diarrhoea diarrhea, oesophagus esophagus, manoeuvre maneuver, manoeuvres maneuvers,
    skilful skillful, fulfil fulfill, fulfils fulfills, enrol enroll, enrolment enrollment, instalment installment,
    judgement judgment, judgements judgments, artefact artifact, artefacts artifacts, cosy cozy, pyjamas pajamas,
    yoghurt yogurt, counsellor counselor, counsellors counselors, marvellous marvelous, woollen woolen, kerb curb"""
)
_STEMS = {
    ("our", "or"): "col fav flav hon lab neighb rum behavi harb hum vap tum arm endeav sav vig",
    ("is", "iz"): "organ recogn real emphas minim maxim special util stabil summar general categor character critic "
    "apolog author central civil colon crystall digit final harmon hospital immun initial local memor modern neutral "
    "normal optim oxid priorit standard steril symbol sympath vapor visual familiar",
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
_OTHER_SPELLINGS = _SPELLINGS | {there: here for here, there in _SPELLINGS.items() if there not in _OTHER_WORDS}
_LOWER_CASE_WORD = re.compile(r"(?<![\w'’.@/-])[a-z]{4,}(?![\w@/-]|['’]\w|\.\w)")


def _list_other_spellings(claim: str, doc: str, random: Random) -> Iterator[str]:
    for found in find_pattern_outside_quotes(_LOWER_CASE_WORD, claim):
        if found[0] in _OTHER_SPELLINGS:
            yield replace_claim_text_span(claim, found.span(), _OTHER_SPELLINGS[found[0]])


#: Words that are others when their letters are capitals, and units: mW and MW.
_CASE_MATTERS = re.compile(
    r"\d\s?[a-zµ]{1,3}\b|\b[a-z]+[A-Z]|\b(?:us|aids|may|march|polish|turkey|china|who|ram|pin|lit|mass|sat|act|rip|cat)\b"
    r"|https?:|www\.|@|[ßıµ²°]|\bpH\b"
)


def _list_upper_case(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not _CASE_MATTERS.search(claim) and claim.upper() != claim and len(claim.split()) >= 4:
        yield claim.upper()


def _list_claims_with_other_white_space(claim: str, doc: str, random: Random) -> Iterator[str]:
    gaps = [found.span() for found in re.finditer(r"(?<=\w) (?=\w)", claim)]
    if len(gaps) >= 3 and "\n" not in claim and "|" not in claim:
        start, end = random.choice(gaps)
        yield f"{claim[:start]}{random.choice(('  ', chr(10)))}{claim[end:]}"


RULES = (
    PerturbationRule(
        "contraction",
        "same",
        "Words are drawn together, or written out: is not, isn't.",
        ("The bridge is not open.", "The bridge isn't open."),
        _list_claims_with_other_contraction,
    ),
    PerturbationRule(
        "quotation_marks",
        "same",
        "Straight quotation marks and apostrophes become curly, or the other way round.",
        ('He called it "a relic".', "He called it “a relic”."),
        _list_claims_with_other_quotation_marks,
    ),
    PerturbationRule(
        "spelling",
        "same",
        "A word has its British spelling for the American one, or the other way round; not in names and quotations.",
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
        "white_space",
        "same",
        "A space becomes two, or a line break.",
        ("The mill closed in 1911.", "The mill  closed in 1911."),
        _list_claims_with_other_white_space,
    ),
)
