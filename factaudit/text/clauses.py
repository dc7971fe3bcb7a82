"""Sentences into short statements by rules: in their own words, with their own subject, so that nothing is invented."""

from __future__ import annotations

import re

_VERB = (
    r"(?:is|was|are|were|be|been|has|have|had|did|does|can|could|may|might|will|would|became|becomes|began|begins|won|wins"
    r"|wrote|writes|led|leads|held|holds|taught|teaches|made|makes|met|left|built|sang|sold|bought|kept|ran|runs|took|takes"
    r"|gave|gives|went|goes|drew|fought|spent|grew|rose|(?!need|seed|speed|feed|deed|breed|hundred)[a-z]{2,}ed)"
)
#: Verbs that are nouns as well: only behind a subject.
_VERB_OR_NOUN = r"(?:lies|lives|works|serves|plays|includes?|features?|follows?|resides?|remains?)"
_ADVERBS = r"(?:(?:also|later|then|currently|now|still|once|first|soon|subsequently|often)\s)*"
_FIRST_VERB = re.compile(rf"\s{_ADVERBS}(?:{_VERB}|{_VERB_OR_NOUN})\b")
_BEGINS_WITH_VERB = re.compile(rf"^{_ADVERBS}{_VERB}\b")
_BEGINS_WITH_SUBJECT = re.compile(
    rf"^(?:he|she|it|they|his|her|its|their|the|a|an|[A-Z])\b[^,]*?\s{_VERB}\b", re.IGNORECASE
)
_OPENING_WORD = re.compile(
    r"^(?:however|additionally|moreover|furthermore|today|later|overall|finally),\s+", re.IGNORECASE
)
_OPENING_PHRASE = re.compile(
    r"^(?:in|on|at|after|before|during|from|by|since|until|with|as|despite|throughout|over|under|for|among|along)"
    r"\b[^,]{1,80},\s+",
    re.IGNORECASE,
)
_PARENTHESIS = re.compile(r"\s*\(([^()]{2,80})\)")
_SEPARATOR = re.compile(
    rf"\s*;\s+(?:and\s+)?|,\s+(?:and|but|while|as\s+well\s+as)\s+|\s+(?:and|but)\s+(?={_ADVERBS}{_VERB}\s)"
    r"|,\s+(?=[a-z\ue000])|,\s+(?=[A-Z][^,]*,)|(?<=\ue000)\s+and\s+(?=\ue000)"
    r"|\s+(?:and|as\s+well\s+as)\s+(?=(?:the|a|an|his|her|their)\s)|\s+(?=who\s)"
)
_QUOTED = re.compile(r"[\"“][^\"”]{1,120}[\"”]")
_PREPOSITION = r"(?:in|on|at|as|for|with|by|to|from|throughout|into|over|through)"
_HEAD_END = re.compile(
    rf"\b(?:is|was|are|were|be|been|{_PREPOSITION}|of|including|include|includes|won|wrote|directed|produced|such\s+as"
    r"|received|played|released|made|led|held|began|has|have|had)\b"
)
_ENDS_WITH_PREPOSITION = re.compile(rf"\s+{_PREPOSITION}$")
_MARK = "\ue000"


def split_sentence_into_statements(sentence: str) -> list[str]:
    """The statements of a sentence, each in its own words, with the subject of the sentence where it has none.

    The rules see commas, conjunctions, relative clauses, brackets and lists, not grammar: what they cannot split stays
    together.

    >>> sentence = "Ada Fenn (born 1871) was a miller who sold her mill in 1911, and she moved to Ludlow."
    >>> split_sentence_into_statements(sentence)
    ['Ada Fenn born 1871.', 'Ada Fenn was a miller.', 'Ada Fenn sold her mill in 1911.', 'She moved to Ludlow.']
    >>> split_sentence_into_statements("He appeared in films, plays, and operas.")
    ['He appeared in films.', 'He appeared in plays.', 'He appeared in operas.']
    """
    quotes: list[str] = []

    def hide_quote(found: re.Match[str]) -> str:
        quotes.append(re.sub(r"[,.]([\"”])$", r"\1", found[0]))
        return f"{_MARK}{len(quotes) - 1}{_MARK}" + "," * (found[0][-2] == ",")

    plain = _OPENING_WORD.sub("", _QUOTED.sub(hide_quote, sentence.strip()).rstrip(".!?"))
    opening = _OPENING_PHRASE.match(plain)
    body = plain[opening.end() :] if opening else plain
    brackets = [found[1] for found in _PARENTHESIS.finditer(body)]
    body = _PARENTHESIS.sub("", body)
    verb = _FIRST_VERB.search(body)
    subject = body[: verb.start()].split(",")[0].strip() if verb else ""
    found = [f"{subject} {one}" for one in brackets if subject]
    if verb and "," in body[: verb.start()]:  # an insertion: "Ada, a miller, sold ..."
        inserted = body[: verb.start()].partition(",")[2].strip(" ,")
        found += [f"{subject}, {inserted}"] if inserted else []
        body = f"{subject}{body[verb.start() :]}"
    found += _split_sentence_clauses(body, subject)
    if opening and found:
        place = len(found) - len(_split_sentence_clauses(body, subject))
        found[place] = f"{plain[: opening.end()]}{found[place]}"
    shown = [re.sub(rf"{_MARK}(\d+){_MARK}", lambda mark: quotes[int(mark[1])], one) for one in found]
    kept = [one.strip(" ,") for one in shown if re.search(r"\w{2}", one)]
    return [f"{one[:1].upper()}{one[1:]}." for one in kept]


def _split_sentence_clauses(body: str, subject: str) -> list[str]:
    clauses: list[str] = []
    for part in (one.strip(" ,") for one in _SEPARATOR.split(body)):
        if not part:
            continue
        part = re.sub(r"^(?:and|but)\s+", "", part)
        told = re.sub(r"^(?:who|where|when)\s+", "", part)
        if not clauses or not subject:
            clauses.append(part)
        elif part.startswith("which "):
            clauses.append(f"{_get_last_item(clauses[-1])} {part.removeprefix('which ')}")
        elif told != part or _BEGINS_WITH_VERB.match(part):
            clauses.append(told if _BEGINS_WITH_SUBJECT.match(told) else f"{subject} {told}")
        elif part.startswith("including "):
            clauses.append(_complete_clause_list_item(clauses[-1], part.removeprefix("including ")))
        elif _BEGINS_WITH_SUBJECT.match(part):
            clauses.append(part)
        elif re.match(r"^(?:born|[a-z]+ing|known|whose)\b", part):
            clauses.append(f"{subject}, {part}")
        else:
            clauses.append(_complete_clause_list_item(clauses[-1], part))
    return clauses


def _complete_clause_list_item(clause: str, item: str) -> str:
    """The next item of a list behind the words that its first item stands behind."""
    ends = [found.end() for found in _HEAD_END.finditer(clause)]
    if not ends:
        return f"{clause}, {item}"
    head = clause[: ends[-1]]
    if re.match(rf"{_PREPOSITION}\s", item):
        head = _ENDS_WITH_PREPOSITION.sub("", head)
    return f"{head} {item}"


def _get_last_item(clause: str) -> str:
    """The words that end a clause, behind its last preposition or verb: what "which" is about."""
    return clause[max((found.end() for found in _HEAD_END.finditer(clause)), default=0) :].strip()
