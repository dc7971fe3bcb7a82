"""Which responses decline to answer? They count in the respond ratio only (Min et al. 2023, §4.3).

Of FActScore's 366 labelled responses of ChatGPT and InstructGPT 27 abstain. ``declines`` finds all
of them and no other; the original's rule finds 26 (not the empty one) and no other.
"""

from __future__ import annotations

import re

from factaudit.text.sentences import split_sentences
from factaudit.text.stated_verdicts import strip_thoughts

_MODEST = r"(?:\w+\s+){0,2}?"
_NOT_A_WORD_OF_THE_MODEL = re.compile(
    r"[\"“”«:]|\b(?:he|she|they|who|said|told|wrote|says|asked)\b", re.IGNORECASE
)
#: "I don't have", "I was unable to find", "I'm not aware of", "I have no information", "Could you
#: tell me more?"
_MODEL_DECLINES = re.compile(
    rf"""\b(?:
      (?:i|we)\s+{_MODEST}(?:(?:do|did|can|could|have|was|were|am|are|would|will)(?:\s+not|n't)
        |cannot|can't|won't)\b
      |(?:i|we)(?:'m|'re|'ve|\s+(?:am|was|were|are|have\s+been))\s+{_MODEST}
        (?:not|unable|unaware|unfamiliar|uncertain|unsure)\b
      |(?:i|we)(?:'ve|\s+(?:have|had|found|find|know|see|hold|possess))\s+{_MODEST}
        (?:no|nothing|not|insufficient|limited|little|never)\b
      |(?:i|we)\s+(?:lack|decline|refuse|must\s+decline|apologi[sz]e|would\s+need|need)\b
      |(?:i'd|we'd)\s+need\b
      |(?:could|can|would)\s+you\s+(?:please\s+)?(?:\w+\s+)?(?:provide|give|clarify|share|tell
        |specify|check|confirm|offer)\b
      |there(?:'s|\s+(?:is|are|was|were|seems?\s+to\s+be|appears?\s+to\s+be))\s+{_MODEST}
        (?:no|not|insufficient|little|limited|nothing)\s+(?:\w+\s+){{0,4}}?{{KNOWN}}
      |nothing\s+(?:is|was|has\s+been)\s+known\b
      |no\s+(?:\w+\s+){{0,3}}?(?:information|records?|data|details|results?|sources?|matches)\b
      |(?:search\s+results|sources|documents|context|passages|records|database|dataset
        |training\s+data)\s+{_MODEST}
        (?:do|does|did|is|are)(?:\s+not|n't)\b
      |(?:information|details|data)\b.{{0,60}}\b(?:not\s+(?:\w+\s+)?(?:available|known|provided
        |found)|unavailable)\b
      |(?:does|is|do|are)(?:\s+not|n't)\s+(?:\w+\s+){{0,3}}?(?:in\s+my|known\s+to\s+me
        |familiar\s+to\s+me|ring\s+a\s+bell)\b
    )""".replace(
        "{KNOWN}",
        r"(?:information|records?|data|details|results?|sources?|mention|evidence|biograph\w+"
        r"|person|people|individual|figure"
        r"|page|article|one|anyone|known)\b",
    ),
    re.IGNORECASE | re.VERBOSE,
)
#: What is said of the question, not of anybody.
_ABOUT_THE_QUESTION = re.compile(
    r"""\b(?:i|i'm|i'd|i've|i'll|me|my|we|our|you|your|ai|language\s+model|possible|likely|perhaps|maybe|may\s+be|might\s+be
      |information|context|details|spelling|misspelled|spelled|private|privacy|public\s+figure
      |with\s+(?:that|this|the)(?:\s+\w+)?\s+name
      |(?:people|individuals|persons)\s+(?:named|called|with)|please|sorry|unfortunately)\b
      |\?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_SAYS_SOMETHING = re.compile(
    r"\d|(?<=\s)[A-ZÀ-ÖØ-Þ]\w|^\W*(?:[Hh]owever\W+)?(?:[Hh]e|[Ss]he|[Tt]hey|[Hh]is|[Hh]er)\b"
)
_BARE_APOLOGY = re.compile(r"^(?:(?:i'm|i\s+am)\s+(?:\w+\s+)?)?sorry\W*$", re.IGNORECASE)
_CLAUSE_END = re.compile(
    r"[,;—–]\s*(?:but|however|although|though|except\s+that|yet|and\s+yet)\b,?\s*", re.IGNORECASE
)


def is_abstaining_response(output: str, detector: str = "declines") -> bool:
    """Whether a response abstains.

    ``declines``: it says that it cannot answer, or asks back, and then tells nothing; so does an
    empty one.
    ``original``: it begins with "I'm sorry" or asks to "provide more". ``none``: never.
    """
    if detector == "original":
        return output.startswith("I'm sorry") or "provide more" in output
    return detector == "declines" and _is_declining_response(output)


def _is_declining_response(output: str) -> bool:
    text = strip_thoughts(output).replace("’", "'").replace("´", "'").replace("*", "").strip()
    if not text or _BARE_APOLOGY.match(text):
        return True
    declines = False
    for sentence in split_sentences(text):
        for clause in _CLAUSE_END.split(sentence):
            found = _MODEL_DECLINES.search(clause)
            if found is not None and not _NOT_A_WORD_OF_THE_MODEL.search(clause[: found.start()]):
                declines = True
            elif _tells_something(clause):
                return False
    return declines


def _tells_something(clause: str) -> bool:
    """Whether a clause says something of anybody, and not of the question or of who answers it."""
    return _SAYS_SOMETHING.search(clause) is not None and not _ABOUT_THE_QUESTION.search(clause)
