"""Rules on the order of a sentence: clauses that may change places, and roles that may not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    has_phrase_in_document,
    is_plain_assertion,
    is_single_sentence_claim,
    join_alternatives,
    read_words,
)
from factaudit.perturb.rule_declaration import PerturbationRule

#: What a clause must not hold that is moved as a whole: it might end before its last word, or reach over others.
_JOINED = re.compile(
    r"[,;:()–—]|\b(?:and|or|but|that|which|who|whose|where|so|because|when|while|although|if|as|than|before|after|once|until|how|depending|not|no|never|none"
    r"|cannot|only|even|just|partly|mainly|simply|merely|probably|perhaps|also)\b|n['’]t\b",
    re.I,
)
#: Of "he said that it closed because ..." nobody knows what the cause is of.
_REPORTING = re.compile(
    r"\b(?:said|says?|told|thinks?|thought|believ\w+|claim\w*|argu\w+|report\w*|suggest\w*|stat(?:e|ed|es)|explain\w*"
    r"|not(?:ed|es)|found|finds|show\w*|ask\w*|hop\w+|want\w*|decid\w+|deem\w*|described|known|called|considered)\b",
    re.I,
)
_FRONTED_CLAUSE = re.compile(
    r"^(?P<word>Because|When|While|Although|Before|After|Since|Once|If|Until) (?P<clause>[^,]{8,90}), "
    r"(?P<main>[^,]{8,120})\.$"
)
_FRONTED_DATE = re.compile(
    r"^(?P<clause>(?:In|On) (?:[A-Z][a-z]+ )?(?:\d{1,2} )?(?:[A-Z][a-z]+ )?\d{4}), (?P<main>[^,]{8,120})\.$"
)
#: What the date would become a part of at the end of the sentence.
_DATE_TAKER = re.compile(r"\d{4}|\b(?:to|for|until|from|since|by|before|after)\b|\w+ing\b")
_CLAUSE_BEHIND = re.compile(
    r"^(?P<main>[^,]{8,120}) (?P<word>because|although|once|before|after) (?P<clause>(?!of )[^,]{8,90})\.$"
)
_PRONOUN = re.compile(r"^(?:he|she|it|they|this|these|that|those|there|his|her|its|their)\b", re.I)
_REFERENCE = re.compile(r"\b(?:he|she|it|they|him|her|them|his|its|their|this|these|that|those|then)\b", re.I)
#: Words that begin a sentence, and lose their capital letter behind another clause.
_OPENING_WORD = re.compile(
    r"^(?:The|A|An|This|These|Those|There|It|He|She|They|We|You|His|Her|Its|Their|Our|Your|Some|Many|Most|All|Each|Every"
    r"|People|Two|Three|Four|Several|Both|One)\b"
)
#: A clause of its own has a verb that shows it.
_FINITE_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|do|does|did|can|could|will|would|may|might|must|should|\w{3,}ed|\w{2,}s|became"
    r"|began|won|wrote|led|held|left|made|took|gave|went|came|lost|sold|fell|rose|ran|grew|got|kept|met|built|bought"
    r"|broke|died|put|set|let|cut|saw|knew|felt)\b"
)
#: Behind these "before" and "after" belong to a span of time: "ten years before".
_SPAN_OF_TIME = re.compile(
    r"\b(?:years?|days?|weeks?|months?|hours?|minutes?|long|shortly|soon|right|even|ever|again|immediately|to \w+)$"
)


def _is_movable(clause: str) -> bool:
    return not _JOINED.search(clause) and not _REPORTING.search(clause)


def _capitalise_first_letter(text: str) -> str:
    return text[0].upper() + text[1:]


def _lowercase_sentence_start(text: str, doc: str) -> str | None:
    """A sentence's beginning as it stands within a sentence; None where nobody knows whether it is a name."""
    first = text.split()[0]
    lower = text[0].lower() + text[1:]
    if _OPENING_WORD.match(text) or re.search(rf"[a-z,] {re.escape(first.lower())}\b", doc):
        return lower
    return text if re.search(rf"[a-z,] {re.escape(first)}\b", doc) else None


def _list_claims_with_reordered_clauses(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not is_single_sentence_claim(claim):
        return
    if (found := _FRONTED_CLAUSE.match(claim)) and _is_movable(found["clause"]) and _is_movable(found["main"]):
        main, clause = found["main"], found["clause"]
        # What a pronoun stands for must be named before it.
        named = not _PRONOUN.match(clause) and not _REFERENCE.search(main) and not clause.split()[0].endswith("ing")
        if named and _FINITE_VERB.search(clause):
            yield f"{_capitalise_first_letter(main)} {found['word'].lower()} {clause}."
    found = _FRONTED_DATE.match(claim)
    if found and _is_movable(found["main"]) and not _DATE_TAKER.search(found["main"]):
        yield f"{_capitalise_first_letter(found['main'])} {found['clause'][0].lower()}{found['clause'][1:]}."
    if (found := _CLAUSE_BEHIND.match(claim)) and _is_movable(found["main"]) and _is_movable(found["clause"]):
        main_text = _lowercase_sentence_start(found["main"], doc)
        if main_text is None or _PRONOUN.match(found["clause"]) or _SPAN_OF_TIME.search(found["main"]):
            return
        # "before computers in many ways": a plural is no verb.
        if _FINITE_VERB.search(re.sub(r"\w+s\b(?<!\bis)(?<!\bwas)(?<!\bhas)", "", found["clause"])):
            yield f"{_capitalise_first_letter(found['word'])} {found['clause']}, {main_text}."


# ------------------------------------------------------------------------------------------------- cause and effect

_PHRASE = (
    r"(?:(?:[Tt]he|[Aa]n?|[Tt]his|[Hh]is|[Hh]er|[Ii]ts|[Tt]heir)\s)?(?:[\w'’-]+\s){0,3}[\w'’-]+"
    r"(?: (?:of|in) (?:the |a )?[\w'’-]+){0,2}"
)
_CAUSE = re.compile(
    rf"^(?P<left>{_PHRASE}) (?P<link>(?:can |could |may |might |will |often |usually )?(?:causes?|caused|leads? to"
    r"|led to|results? in|resulted in|triggers?|triggered)|(?:is|are|was|were) (?:often |usually |mainly )?(?:caused by"
    rf"|due to|the (?:result|cause) of)) (?P<right>{_PHRASE})(?P<rest>\.|, .*\.)$"
)
_BECAUSE = re.compile(
    r"^(?P<effect>[^;:]{8,160}) because (?P<cause>(?!of\b|it\b|they\b|he\b|she\b|this\b)[^;:]{8,160})\.$"
)
#: What stands before "because" where the sentence cannot be turned round: "this is usually because".
_NO_EFFECT = re.compile(
    r"^(?:this|that|these|those|it)\b|\b(?:because|just|only|reason|did so"
    r"|believe\w*|sa(?:id|ys?)|think\w*|thought|suggest\w*|claim\w*|argue\w*)\b"
    r"|(?:\b(?:is|are|was|were|also|\w+ly|often|so|part|to \w+)|,)$",
    re.I,
)
_NO_PHRASE = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|may|might|will|would|to|that|which|who|and|or|but"
    r"|it|he|she|they|this|these|those|there|when|if|as|not|more|less|also|often|by|from|than|you|we|i|him|them|us|me)\b",
    re.I,
)


def _list_claims_with_reversed_cause(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not is_plain_assertion(claim):
        return
    found = _CAUSE.match(claim)
    if found and not _NO_PHRASE.search(found["left"]) and not _NO_PHRASE.search(found["right"]):
        left, right = _lowercase_sentence_start(found["left"], doc), found["right"]
        alike = found["left"].split()[-1].endswith("s") == right.split()[-1].endswith("s")
        agrees = alike or re.match(r"(?:can|could|may|might|will|caused|led|resulted|triggered)\b", found["link"])
        if left is not None and agrees and left.lower() != right.lower():
            yield f"{_capitalise_first_letter(right)} {found['link']} {left}{found['rest']}"
    found = _BECAUSE.match(claim)
    if found and not _NO_EFFECT.search(found["effect"]):
        effect = _lowercase_sentence_start(found["effect"], doc)
        # What stands behind a comma goes on with the whole sentence.
        if effect is not None and "," not in found["cause"] and _FINITE_VERB.search(found["cause"]):
            yield f"{_capitalise_first_letter(found['cause'])} because {effect}."


# --------------------------------------------------------------------------------------------- subject and object

#: What one does to another, and the other does not do by that.
_DEEDS = join_alternatives(
    read_words(
        """beat beats defeated bought acquired succeeded replaced replaces founded hired killed kills sued invaded
    taught hosted followed led appointed arrested attacked attacks attack criticised criticized praised accused
    dismissed elected fired rescued shot wrote designed built owns owned managed manages employs employed
    trained coached outscored overtook struck conquered ruled governs governed sponsored funded supplied
    supplies discovered invented produced produces produce directed painted composed signed sentenced credits
    credited helped helps help protects protected protect eats eat ate feeds fed chased carried carries carry
    absorbs absorbed absorb warned visited asked told thanked blamed banned sold made created causes uses use
    used cools heats breaks melts releases released release block blocks stimulates stimulate regulates contain
    contains"""
    )
)
_NAMED = r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+){0,3}"
_THING = r"(?:(?:[Tt]he|[Aa]n?) (?:[a-z-]+ )?[a-z-]+|[A-Za-z][a-z]+s)"
_DEED = rf"(?P<deed>(?:{_DEEDS})|(?:was|were|is|are) (?:{_DEEDS}) by)"
_ROLES = (
    re.compile(rf"(?:^|(?<=, )|(?<=that )|(?<=when ))(?P<doer>{_NAMED}) {_DEED} (?P<other>{_NAMED})\b(?!['’-]\w)"),
    re.compile(
        rf"^(?P<doer>{_THING}) {_DEED} (?P<other>{_THING})"
        r"(?=\.| (?:in|on|at|by|with|for|to|after|when|as|from|under|through|during)\b)"
    ),
)
_NO_DOER = re.compile(
    r"(?:This|These|It|He|She|They|We|You|I|His|Her|In|On|After|When|As|Its|Their|There|Its|That|What|Who)\b"
    r"|(?:the|an?) (?:other|same|first)\b",
    re.I,
)


def _list_claims_with_swapped_roles(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not is_plain_assertion(claim):
        return
    for found in filter(None, (pattern.search(claim) for pattern in _ROLES)):
        doer, other = found["doer"], found["other"]
        known = all(has_phrase_in_document(doc, one.split()[-1]) for one in (doer, other))
        if known and not _NO_DOER.match(doer) and not _NO_DOER.match(other):
            doer = doer[0].lower() + doer[1:] if found.re is _ROLES[1] else doer
            other = _capitalise_first_letter(other)
            yield f"{claim[: found.start()]}{other} {found['deed']} {doer}{claim[found.end() :]}"


RULES = (
    PerturbationRule(
        "clause_order",
        "same",
        "A clause of time, cause or condition, or a date, moves from the front of a sentence to its end, or the other "
        "way round.",
        ("The mill closed because the river fell.", "Because the river fell, the mill closed."),
        _list_claims_with_reordered_clauses,
    ),
    PerturbationRule(
        "cause_turned",
        "changed",
        "Cause and effect change places.",
        ("The flood caused a fire.", "A fire caused the flood."),
        _list_claims_with_reversed_cause,
    ),
    PerturbationRule(
        "roles_swapped",
        "changed",
        "Who did something and to whom it was done change places.",
        ("Port Aske beat Vardmill.", "Vardmill beat Port Aske."),
        _list_claims_with_swapped_roles,
        document="Port Aske beat Vardmill.",
    ),
)
