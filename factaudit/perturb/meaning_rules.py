"""The rule that turns what a claim says: a negation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from factaudit.perturb.claim_text import (
    find_pattern_outside_quotes,
    is_plain_assertion,
    read_words,
)
from factaudit.perturb.rule_declaration import PerturbationRule

_AUXILIARY = re.compile(
    r"(?<![-'’\w])(?P<verb>is|are|was|were|can|will|must|should"
    r"|(?:has|have|had)(?= (?:been|become|won|made|\w{3,}ed)\b))"
    r"\s(?P<next>[\w$€£\"“-]+)"
)
#: Behind "is not" these leave a statement that the old one does not exclude, or no English.
_NEVER_NEGATED = read_words(
    """only just merely simply also always often usually generally typically commonly sometimes
    necessarily probably possibly perhaps likely mainly mostly primarily largely partly
    especially particularly some any several few little no not never yet still already even too
    very quite rather both either about around approximately nearly almost roughly said reported
    known believed thought considered called named referred due because where when what why how
    that which who there then now thus therefore however so more most less least up over one
    currently essentially supposed meant"""
)
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
        found["next"].lower().strip('"“') in _NEVER_NEGATED
        or _SUBORDINATE.search(before)
        or len(before.split()) > 12
    ):
        return
    end = found.end("verb")
    yield f"{claim[:end]}{'not' if found['verb'] == 'can' else ' not'}{claim[end:]}"


RULES = (
    PerturbationRule(
        "negation_added",
        "changed",
        '"not" stands behind the first auxiliary verb of a plain statement.',
        ("The bridge is open.", "The bridge is not open."),
        _list_negated_claims,
    ),
)
