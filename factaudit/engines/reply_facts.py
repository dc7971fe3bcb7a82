"""Which lines of a reply are facts, and which sentences of a response only talk to the user."""

from __future__ import annotations

import re

#: Lines of a reply up to this many characters are no facts.
MIN_FACT_CHARACTERS = 3

_BULLET = re.compile(r"^(?:\(?\d{1,3}[.):]\s+)?(?:[-*•‣▪–—](?:\s+|(?=[^\W\d_])))?")
_LABEL = re.compile(
    r"^\**(?:(?:independent|atomic)\s+)?(?:fact|statement|claim)(?:\s*#?\d+)?\**\s*[:.)–—-]+\**\s+",
    re.IGNORECASE,
)
_FACT_ADJECTIVES = (
    r"(?:(?:independent|atomic|verifiable|factual|checkable|objective|specific|additional|other"
    r"|separate)\s+)*"
)
_IN_THIS_SENTENCE = (
    r"(?:(?:in|from|within|about|of)\s+)?(?:the|this|that|your)\s+(?:\w+\s+){0,2}"
    r"(?:sentence|statement|text|input|passage)"
)
#: "There are no independent facts in this sentence.", "No facts.", "N/A", "The sentence does not
#: contain any facts."
_NO_FACTS_STATEMENT = re.compile(
    rf"""^\W*(?:
      (?:(?:there\s+(?:are|is|were)|i\s+(?:see|find|found)|it\s+(?:contains|has)
        |{_IN_THIS_SENTENCE}\s+(?:contains|has|holds|presents))\s+)?
        no\s+{_FACT_ADJECTIVES}(?:facts?|claims?|statements?|information|content)
        (?:\s+(?:(?:that\s+)?can\s+be\s+\w+|to\s+(?:be\s+)?\w+(?:\s+down)?|found|present|stated
          |available|contained|given
          |provided|here|identified|extracted|mentioned|{_IN_THIS_SENTENCE}|into\s+which\b.*
          |beyond\b.*|as\s+it\b.*))*
      |none(?:\s+(?:found|available|present|\w+\s+{_IN_THIS_SENTENCE}))?|nothing|n/?a
      |not\s+applicable|null|empty
      |{_IN_THIS_SENTENCE}\s+(?:does\s+not|doesn['’]t|do\s+not|cannot|can['’]t|can\s+not
        |is\s+(?:not|a\s+question|incomplete|a\s+fragment
        |too\s+\w+|an?\s+(?:incomplete|heading|title|greeting|opinion|instruction)))\b.*
      |this\s+sentence\s+does\s+not\s+contain\s+any\s+facts.*
      |it\s+(?:does\s+not|doesn['’]t)\s+contain\s+(?:any\s+)?{_FACT_ADJECTIVES}(?:facts?|information
        |claims?)\b.*
    )\W*$""",
    re.IGNORECASE | re.VERBOSE,
)
#: An item that is no fact.
_NEVER_A_FACT = re.compile(
    r"""^[\W_]*(?:
      (?:sure|certainly|of\s+course|absolutely|okay|ok|alright|great)(?:\s+thing)?[\s\W]*$|
      note(?:\s+that\b|\s*:)|n\.\s?b\.|disclaimer\s*:|explanation\s*:|reasoning\s*:
      |clarification\s*:
      |(?:i['’]?m|i\s+am|we['’]re)\s+(?:\w+\s+)?(?:sorry|afraid)\b|sorry,|(?:i|my)\s+apolog
      |as\s+an\s+ai\b
      |i\s+(?:cannot|can['’]?t|could\s+not|couldn['’]t)\s+(?:\w+\s+){0,2}(?:break|find|identify
        |extract|assist|help|provide)
      |i(?:\s+am|['’]m)\s+(?:unable|not\s+able)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
#: A base model goes on with another sentence of its own.
_NEXT_TASK = re.compile(r"^\W*please\s+break\s?down\s+the\s+following\b", re.IGNORECASE)

#: What follows a title that begins like talk: "Let me know is a song", "I'm Sorry" was a hit.
_NAMES_A_WORK = (
    r"[^\w.!?]*\s(?:is|was|are|were|became|has|had|reached|appears|appeared|won|sold|peaked|stars"
    r"|features)\b"
)
_GREETING = r"(?:Sure|Certainly|Of course|Absolutely|Okay|OK|Alright|Great)(?: thing)?"
_OPENING_CHATTER = re.compile(
    rf"^(?:{_GREETING}\W*$|{_GREETING}\s*[!.,:–—-]+\s*"
    r"(?:[Hh]ere\b|I\b|[Ll]et\b|[Bb]elow\b|[Tt]he following\b)"
    r"|Here(?:['’]s| is| are)\b"
    r"(?!.*\b(?:is|was|are|were) (?:a|an|the|one)\b)"
    r".*\b(?:biograph\w*|overview|summary|facts?|information|details|profile|introduction"
    r"|description|answer|response|list|breakdown|(?:what|everything) I)\b)",
    re.DOTALL,
)
_CHATTER_ANYWHERE = re.compile(
    r"^(?:This sentence does not contain any facts|(?:"
    r"Please"
    r" (?:note|let|tell|provide|give|share|specify|clarify|feel|confirm|check|consult|verify|ask"
    r"|see|refer|remember|be aware|keep|do not hesitate|don['’]t hesitate|visit|contact|try)\b"
    r"|Let me know|Feel free|Is there anything else)\b"
    rf"(?!{_NAMES_A_WORK})"
    r"|I hope (?:this|that|these)\b"
    r"|(?:Sure, |Certainly[,!] )?Here(?:['’]s| is| are)\b.*:\s*$)",
    re.DOTALL,
)


def is_boilerplate_reply_sentence(sentence: str, is_first_sentence: bool = True) -> bool:
    """Whether a sentence of a response is talk to the user and so holds no facts.

    is_first_sentence: it is the response's first. Only there is "Sure, here is a biography." an
    opening; further down, and where more is said ("Certainly one of the best-known physicists,
    ..."), it is a sentence like any other.
    """
    return _CHATTER_ANYWHERE.match(sentence) is not None or (
        is_first_sentence and _OPENING_CHATTER.match(sentence) is not None
    )


def parse_reply_facts(reply: str) -> tuple[list[str], bool]:
    """The facts of a reply, and whether it says that there are none; a reply that does neither
    could not be read.

    Facts are the items of its list, each on a line that begins with a dash (as in the prompt), with
    another bullet, with a number or with a label ("Fact 1:"), if they are longer than
    `MIN_FACT_CHARACTERS` and not talk ("Note: ..."). Duplicates are kept: they are removed over the
    whole response.
    """
    facts: list[str] = []
    says_none = False
    for line in map(str.strip, reply.split("\n")):
        if _NEXT_TASK.match(line):
            if facts or says_none:
                break
            continue
        item = _BULLET.sub("", line, count=1)
        if _NO_FACTS_STATEMENT.match(item):
            says_none = True
            continue
        item = _LABEL.sub("", item)
        fact = item.replace("**", "").strip()
        if item == line or _is_talk(fact) or fact.endswith(":"):
            continue
        if len(fact) > MIN_FACT_CHARACTERS:
            facts.append(fact)
    return facts, says_none and not facts


def _is_talk(fact: str) -> bool:
    """Whether a line begins as talk, and not as the name of a work ("I'm Sorry" was a hit)."""
    found = _NEVER_A_FACT.match(fact)
    return found is not None and re.match(_NAMES_A_WORK, fact[found.end() :]) is None
