"""Rules that turn what a claim says: negations, comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    CONDITION,
    NEGATION,
    find_pattern_outside_quotes,
    is_plain_assertion,
    is_plural_noun,
    is_single_sentence_claim,
    join_alternatives,
    parse_word_replacement_pairs,
    read_words,
    replace_claim_text_span,
)
from factaudit.perturb.rule_declaration import PerturbationRule

# -------------------------------------------------------------------------------------------------------- negations

_AUXILIARY = re.compile(
    r"(?<![-'’\w])(?P<verb>is|are|was|were|can|will|must|should"
    r"|(?:has|have|had)(?= (?:been|become|won|made|\w{3,}ed)\b))"
    r"\s(?P<next>[\w$€£\"“-]+)"
)
#: Behind "is not" these leave a statement that the old one does not exclude, or no English.
_NEVER_NEGATED = read_words(
    """only just merely simply also always often usually generally typically commonly sometimes necessarily probably
    possibly perhaps likely mainly mostly primarily largely partly especially particularly some any several few
    little no not never yet still already even too very quite rather both either about around approximately nearly
    almost roughly said reported known believed thought considered called named referred due because where when what
    why how that which who there then now thus therefore however so more most less least up over one currently
    essentially supposed meant"""
)
#: A negation of a part of what holds leaves open whether the rest does.
_PARTIAL = re.compile(
    r"\b(?:some|any|several|certain|both|may|might|could|would|often|usually|sometimes|generally|typically|only|all|every|each"
    r"|most|many)\b",
    re.I,
)
_SUBORDINATE = re.compile(
    r"\b(?:that|which|who|whom|whose|when|while|where|because|although|though|as|after|before|once|since|what|how|why)\b",
    re.I,
)


def _list_negated_claims(claim: str, doc: str, random: Random) -> Iterator[str]:
    """With "not" behind the first auxiliary verb of the sentence, which must be that of its main clause."""
    found = next(find_pattern_outside_quotes(_AUXILIARY, claim), None)
    if found is None or not is_plain_assertion(claim) or _PARTIAL.search(claim):
        return
    before = claim[: found.start()]
    if found["next"].lower().strip('"“') in _NEVER_NEGATED or _SUBORDINATE.search(before) or len(before.split()) > 12:
        return
    end = found.end("verb")
    yield f"{claim[:end]}{'not' if found['verb'] == 'can' else ' not'}{claim[end:]}"


_NEGATED_VERB = re.compile(
    r"(?<![-'’\w])(?P<verb>is|are|was|were|does|do|did|has|have|had|will|should|must|can|could|would)"
    r"(?P<negation> not|n['’]t|not)\b\s(?P<next>[\w-]+)"
)
#: What "not" leaves open when it stands before these: "not only", "not always".
_WEAKLY_NEGATED = read_words(
    """only just merely simply all every always necessarily yet until to as both any either entirely fully completely
    quite very too enough sure clear many much more exactly usually often typically generally so that because even
    directly ever really solely limited currently longer the a an"""
)
#: Words that go with a negation only.
_NEGATIVE_COMPANY = re.compile(
    r"\b(?:any|anymore|anyone|anything|either|yet|at all|until|but|unless|ever|much|many|enough|alone|too|instead"
    r"|rather|nor|without|whatever)\b",
    re.I,
)


def _list_claims_without_negation(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not is_single_sentence_claim(claim) or len(NEGATION.findall(claim)) != 1:
        return
    if _NEGATIVE_COMPANY.search(claim) or CONDITION.search(claim):
        return
    for found in find_pattern_outside_quotes(_NEGATED_VERB, claim):
        if found["next"].lower() not in _WEAKLY_NEGATED:
            yield replace_claim_text_span(claim, found.span("negation"), "")


# ------------------------------------------------------------------------------------------------------- comparisons

_COMPARATIVES = parse_word_replacement_pairs(
    """more less, less more, fewer more, higher lower, lower higher, larger smaller, smaller larger, bigger smaller,
    older younger, younger older, longer shorter, shorter longer, faster slower, slower faster, heavier lighter,
    stronger weaker, weaker stronger, warmer colder, colder warmer, taller shorter, deeper shallower,
    cheaper more_expensive, earlier later, later earlier, greater smaller, better worse, worse better, hotter cooler,
    wider narrower, narrower wider, thicker thinner, thinner thicker, brighter darker, darker lighter, harder easier,
    easier harder, safer riskier, closer farther, richer poorer, poorer richer"""
)
_SUPERLATIVES = parse_word_replacement_pairs(
    """highest lowest, lowest highest, largest smallest, smallest largest, biggest smallest, oldest youngest,
    youngest oldest, longest shortest, shortest longest, fastest slowest, slowest fastest,
    strongest weakest, tallest shortest, heaviest lightest, earliest latest, latest earliest, cheapest dearest"""
)
_COMPARISONS = (
    (re.compile(rf"(?<![-\w])(?:{join_alternatives(_COMPARATIVES)})(?= (?:[\w-]+ ){{0,4}}than\b)"), _COMPARATIVES),
    (
        re.compile(
            rf"(?<=\bthe )(?:{join_alternatives(_SUPERLATIVES)})(?![-\w])"
            r"(?! (?:known|part|estimate|example|possible|and|or)\b)"
        ),
        _SUPERLATIVES,
    ),
)
#: Before a comparison these leave it open whether the opposite holds as well.
_OPEN_COMPARISON = re.compile(
    r"\b(?:no|not|any|once|much|rather|other|nothing|none|never|less or|more or|one of|some of|among|often|usually|can"
    r"|could|may|might|both)(?: the)?\s*$",
    re.I,
)


def _list_claims_with_reversed_comparison(claim: str, doc: str, random: Random) -> Iterator[str]:
    if (
        not is_single_sentence_claim(claim)
        or NEGATION.search(claim.replace("fewer", ""))
        or re.search(r"\b(?:if|or)\b", claim, re.I)
    ):
        return
    for pattern, opposites in _COMPARISONS:
        for found in find_pattern_outside_quotes(pattern, claim):
            new, right = opposites[found[0]], claim[found.end() :]
            if _OPEN_COMPARISON.search(claim[: found.start()]) or re.search(rf"\b{new}\b|\bthe more\b", claim, re.I):
                continue
            if re.search(r"\bthan (?:others?|another|some)\b|\bsome\b", claim, re.I):  # "more so than others"
                continue
            # "more than just", and "more people than", whose opposite is "fewer people than"
            if found[0] == "more" and re.match(r" than (?:just|one|a|an|enough|half|likely)\b", right):
                continue
            if found[0] in ("more", "less") and is_plural_noun(right.split()[0]):
                continue
            yield replace_claim_text_span(claim, found.span(), new)


RULES = (
    PerturbationRule(
        "negation_added",
        "changed",
        '"not" stands behind the first auxiliary verb of a plain statement.',
        ("The bridge is open.", "The bridge is not open."),
        _list_negated_claims,
    ),
    PerturbationRule(
        "negation_removed",
        "changed",
        "The only negation of a sentence is left out.",
        ("The bridge is not open to cars.", "The bridge is open to cars."),
        _list_claims_without_negation,
    ),
    PerturbationRule(
        "comparison_turned",
        "changed",
        "A comparison says the opposite: higher lower, the largest the smallest.",
        ("It is older than the church.", "It is younger than the church."),
        _list_claims_with_reversed_comparison,
    ),
)
