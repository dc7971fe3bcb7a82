"""Which verdict does a model's reply state? One strict reading for judges, verifiers and replies
that a file holds.

The verdict is the answer in its stated place: the first word, the word after "Answer:", or the
field of a JSON object that the prompt asked for. A reply may begin "The statement is". Anything in
the reply that contradicts the verdict takes it away: another answer ("Yes. ... Answer: No"), a
sentence that says the opposite ("True. The claim is not supported."), a hedge ("Yes, partially.").
What cannot be read so is not guessed at: the claim is unscored.

Words are looked for as answers, never as letters: "No contradiction was found" does not answer no,
"There is nothing false here" does not say false, "Yes or No?" is the question, and "Not true" is
not true.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: Says of a few words whether they are an answer: 1 (supported), 0 (not supported), or None.
WordParser = Callable[[str], int | None]


@dataclass(frozen=True)
class StatedVerdict:
    """1 or 0, the words that say it, and where in the reply these begin."""

    value: int
    words: str
    start: int


_THOUGHT_START_TAGS = (
    r"<(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>"
    r"|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
)
_THOUGHT_END_TAGS = (
    r"</(?:seed:)?(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)>"
    r"|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
)
# The opening tag may stand in the server's template, and so not in the reply.
_THOUGHT_PATTERN = re.compile(
    rf"(?:{_THOUGHT_START_TAGS}).*?(?:{_THOUGHT_END_TAGS}|\Z)", re.IGNORECASE | re.DOTALL
)
_THOUGHT_END_PATTERN = re.compile(_THOUGHT_END_TAGS, re.IGNORECASE)
_UNOPENED_THOUGHT_PATTERN = re.compile(rf"\A.*(?:{_THOUGHT_END_TAGS})", re.IGNORECASE | re.DOTALL)
#: gpt-oss ("harmony"): channels of thoughts and calls, then the one that is meant for the user.
_HARMONY_CHANNEL_PATTERN = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.S,
)

#: What an answer is called where it is marked: "Answer: Yes", "the verdict is no", "Réponse : non".
_ANSWER_NAMES = (
    r"answer|verdict|label|judge?ment|conclusion|decision|result|output|rating|final|r[ée]ponse"
    r"|veredicto|verdetto"
    r"|respuesta|risposta|resposta|antwort|urteil|fazit|antwoord|oordeel|ответ|вердикт"
)
_CJK_ANSWER_NAMES = r"(?:答案|回答|判定|判断|结论|結論|답변|판정|결론|답)[是はは为]?"
#: A word; in "_Yes_" the underscores are markup, in "not_supported" and "non-factual" the joints
#: belong to the word.
_WORD = r"[^\W_](?:[\w'’-]*[^\W_])?"
_MAX_WORDS = 6
#: A longer reply states no verdict that anybody asked for.
_MAX_CHARACTERS = 100_000
#: What may follow an answer: its end, a punctuation mark, or the reason. Not a noun: "No part of
#: the claim ...".
_END = (
    r"(?![.,:/]\d)(?=\s*\Z|\s*\n|[_*]|['’](?!\w)|\s*[–—]|\s+-|-\s|\s*[^\w\s?？'’\-]"
    r"|\s+(?:because|since|as|according|based|given|by|the|it|this)\b)"
)
_ANSWER_WORDS = re.compile(rf"{_WORD}(?: +{_WORD}){{0,{_MAX_WORDS - 1}}}")
_WORD_END = re.compile(_END, re.IGNORECASE)
#: What may stand before the first word: markup, a number, "The statement is".
_LEADS = (
    re.compile(r""),
    re.compile(r"[\W_]*"),
    re.compile(r"[\W_]*\d{1,2}[.):]\s+[\W_]*"),
    re.compile(
        r"[\s,\"'*_#>-]*(?:(?:i['’]m\s+sorry|i\s+apologi[sz]e)\W+but\s+)?(?:(?:the|this)\s+(?:given\s+)?"
        r"(?:claim|statement|sentence|input|fact|summary)|it|this)\s+is[ \t]+(?!(?:yes|no)\b)",
        re.IGNORECASE,
    ),
)
#: A number that begins a line of a list and answers nothing.
_LIST_ITEM = re.compile(r"[.)]\s*[^\s*_]")
#: "No. 5 in the charts" is a number, not an answer.
_NUMBER_SIGN = re.compile(r"no\.\s*\d", re.IGNORECASE)
_MARK = re.compile(
    rf"(?:(?<!\w)(?:{_ANSWER_NAMES})(?!\w)(?:\s*\([^()\n]{{0,40}}\))?"
    r"(?:\s+(?:is|est|es|ist|è)\b[\W_]*|[ \t]*(?:[:=：>|*_\"'`\])]|[-–—](?=\s)|\n)[\W_]*)"
    rf"|{_CJK_ANSWER_NAMES}[\W_]*)",
    re.IGNORECASE,
)
_LINE_MARK = re.compile(rf"(?:\A|\n)[\W_]*(?:final\s+)?(?:{_ANSWER_NAMES})[ \t]+", re.IGNORECASE)
#: Both answers side by side are the question.
_ALTERNATIVE = re.compile(
    r"[\s\"'”’*_`,)]*(?:/|\||\\|\bor\b|\band\b|\band/or\b)[\W_]*", re.IGNORECASE
)
#: Where an answer may stand alone: at the beginning of a line, a sentence or a clause.
_CLAUSE_START = re.compile(r"(?:\A|\n|[.!?;,。！？；，、])[\W_]*(?:\d{1,2}[.):]\s+[\W_]*)?")
_SENTENCE_END = re.compile(r"[.!?;\n。！？；]")

_ADVERBS = (
    r"(?:(?:also|fully|clearly|directly|entirely|completely|wholly|explicitly|therefore|thus|indeed"
    r"|simply)\s+)*"
)
_DOCUMENT_NAMES = r"(?:document|source|context|passage|evidence|text|article)s?"

#: What follows a yes that is none: "Yes, partially", "Yes, but ...", "Yes, if ...".
_DOUBT = (
    r"probabl[ey]|possibl[ey]|perhaps|maybe|likely|presumably|i\s+(?:think|guess|believe|suppose)"
    r"|not\s+(?:sure|certain)"
    r"|if|unless|provided"
)
_PARTLY = (
    r"partial(?:ly)?|partly|in\s+part|mostly|largely|mainly|somewhat"
    r"|(?:only\s+)?to\s+(?:some|a|an?\s+\w+)\s+(?:extent|degree)"
    r"|with\s+(?:\w+\s+)?(?:caveats?|reservations?|exceptions?|qualifications?)|kind\s+of|sort\s+of"
    r"|more\s+or\s+less|almost"
    r"|not\s+(?:entirely|fully|completely|wholly|exactly|quite|really|all)|for\s+the\s+most\s+part"
    r"|at\s+least"
    r"|generally|essentially|basically|roughly|approximately|only|half"
)
_FOREIGN_BUT = (
    r"aber|teilweise|zum\s+teil|nur|pero|parcialmente|en\s+parte|solo|mais|partiellement"
    r"|en\s+partie|ma|parzialmente|mas"
    r"|но|частично|maar|gedeeltelijk"
)
_WITHIN_SENTENCE = r"(?:[^\w.!?;\n。！？；]|_)*"
#: By verdict what may not follow it at once.
_HEDGES = (
    re.compile(rf"{_WITHIN_SENTENCE}(?:{_DOUBT})\b", re.IGNORECASE),
    re.compile(
        rf"{_WITHIN_SENTENCE}(?:(?:(?:and|but)\s+)?(?:{_DOUBT}|{_PARTLY}|but|though|although|however"
        rf"|except|yet|{_FOREIGN_BUT})\b|但|不过|部分|ただし|一部|하지만|부분)",
        re.IGNORECASE,
    ),
)
#: The model takes back what it said: "True. Wait, no: ...".
_SECOND_THOUGHT = r"\b(?:wait|actually|correction|on second thoughts?|let me correct)\b"
#: A sentence of nothing but doubt: "The claim is not supported. Perhaps."
_BARE_DOUBT = (
    r"[.!?;\n][\W_]*(?:probabl[ey]|possibl[ey]|perhaps|maybe|not\s+(?:sure|certain))"
    r"\W*?(?:[.!?;\n]|\Z)"
)
_RESERVATION = (
    r"(?:[.!;,]\s+|\n[\W_]*)(?:however|nevertheless|nonetheless|that said|but|except that)\b"
)
#: The document lacks a part of what was said to be supported: "Yes. The document does not mention
#: Monday."
_LACKING_EVIDENCE = (
    rf"(?:\b{_DOCUMENT_NAMES}\s+(?:(?:do(?:es)?|did)\s+not|(?:do(?:es)?|did)n['’]t|never"
    rf"|fails?\s+to)\s+{_ADVERBS}"
    r"(?:mention|state|say|specify|provide|contain|include|give|discuss|address|indicate)s?"
    r"|\b(?:is|are|was|were)\s+(?:not|never|nowhere)\s+(?:mentioned|stated|specified|found|given"
    r"|provided|supported)"
    r"|\bno\s+(?:mention|evidence|information)\s+(?:of|that|about|on|for))\b"
    r"(?!\s+(?:otherwise|anything|any|(?:that\s+)?(?:the|a)\s+(?:opposite|contrary"
    r"|contradict\w*)))"
)
#: By verdict what may not follow it anywhere.
_TAKES_BACK = (
    re.compile(f"{_SECOND_THOUGHT}|{_BARE_DOUBT}", re.IGNORECASE),
    re.compile(
        f"{_SECOND_THOUGHT}|{_BARE_DOUBT}|{_RESERVATION}|{_LACKING_EVIDENCE}", re.IGNORECASE
    ),
)

#: Words that say the same of a claim whatever was asked.
_TRUE_WORDS = re.compile(
    r"true|supported|correct|accurate|entailed|attributable|factual|confirmed|support|entail|confirm"
)
_FALSE_WORDS = re.compile(
    r"false|untrue|unsupported|incorrect|inaccurate|wrong|contradicted|refuted|contradict|refute"
)
_CLAIM_NAMES = (
    r"(?:claim|statement|sentence|input|fact|assertion|hypothesis|summary|answer|response)"
)
#: A sentence about the claim: "the claim is not fully supported", "the document contradicts it".
_STATEMENT = re.compile(
    r"\b(?P<subject>(?:the|this|that)\s+(?:ADJECTIVE\s+)?CLAIM|CLAIM|it|this|that)(?:\s+itself)?"
    r"\s+(?:is|was|seems)\s+ADVERBS(?P<partly>(?:only\s+)?(?:PARTLY)\s+)?(?P<denied>not\s+)?ADVERBS"
    r"(?P<also_partly>(?:only\s+)?(?:PARTLY)\s+)?(?P<word>[^\W_]+)"
    r"|\bDOCUMENT\s+ADVERBS(?P<denies>(?:do(?:es)?\s+not|do(?:es)?n['’]t|cannot)\s+)?ADVERBS"
    r"(?P<verb>support|contradict|refute|entail|confirm)s?\s+(?:the|this)\s+(?:given\s+)?CLAIM\b".replace(
        "CLAIM", _CLAIM_NAMES
    )
    .replace("ADJECTIVE", "(?:given|above|whole|entire|atomic|input)")
    .replace("DOCUMENT", _DOCUMENT_NAMES)
    .replace("ADVERBS", _ADVERBS)
    .replace("PARTLY", _PARTLY),
    re.IGNORECASE,
)
#: What takes a statement back that follows in the same clause: "It is unclear whether the statement
#: is true".
_NOT_SAID = re.compile(
    r"\b(?:no|not|nothing|none|neither|nor|never|nowhere|cannot|without|if|whether|unless|would"
    r"|could|might|may|unclear"
    r"|unknown|doubt\w*)\b|n['’]t\b|(?:\A|[,:])\s*(?:had|were|should)\b",
    re.IGNORECASE,
)
_IS_CONDITION = re.compile(
    r"(?:\A|[,:]|[–—])\W*(?:if|unless|suppose|assuming|had|were|should)\b"
    r"|\b(?:if|whether)\s+\w*\W*\Z",
    re.I,
)
_CLAUSE_LINK = re.compile(r"\b(?:so|therefore|thus|hence|and|but)\b|\bmeans that\b", re.IGNORECASE)
_OF_A_PART = re.compile(
    r"\b(?:parts?|half|portion|some|most|aspects?|first|second)\b", re.IGNORECASE
)


def strip_thoughts(text: str) -> str:
    """A text without a reasoning model's thoughts."""
    return split_answer_from_thoughts(text)[0]


def split_answer_from_thoughts(text: str) -> tuple[str, int]:
    """The text without thoughts, and where in the original what comes after the thoughts begins."""
    if channels := list(_HARMONY_CHANNEL_PATTERN.finditer(text)):
        final = [found for found in channels if found[1].lower() == "final"]
        return (final[-1][2].strip(), final[-1].start(2)) if final else ("", len(text))
    without = _UNOPENED_THOUGHT_PATTERN.sub("", _THOUGHT_PATTERN.sub("", text))
    if without == text:
        return text, 0
    closed = list(_THOUGHT_END_PATTERN.finditer(text))
    return without.strip(), closed[-1].end() if closed else len(text)


def normalise_answer_word(text: str) -> str:
    """An answer in one form: capitals, markup, quotes and full-width letters aside.

    >>> normalise_answer_word(" **Yes**. "), normalise_answer_word("ＴＲＵＥ")
    ('yes', 'true')
    """
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    return " ".join(plain.strip(" \t\r\n\"'`*_.,:;!()[]{}▁Ġ“”‘«»").split()).casefold()


def make_answer_parser(positive: Iterable[str], negative: Iterable[str]) -> WordParser:
    """A parser of a prompt's two answers; to deny the positive one is to give the negative one.

    >>> parse = make_answer_parser(["true"], ["false"])
    >>> parse("TRUE"), parse("not true"), parse("not false"), parse("yes")
    (1, 0, None, None)
    """
    meanings = {normalise_answer_word(word): 1 for word in positive}
    meanings |= {normalise_answer_word(word): 0 for word in negative}

    def parse(words: str) -> int | None:
        known = normalise_answer_word(words)
        if known in meanings:
            return meanings[known]
        # "Not supported", but not "not yes".
        is_denial = known.startswith("not ") and known != "not yes"
        return 0 if is_denial and meanings.get(known.removeprefix("not ")) == 1 else None

    return parse


def read_stated_verdict(
    text: str, parse_words: WordParser, *, last: bool = False
) -> StatedVerdict | None:
    """The verdict that a reply states, None where it states none or contradicts itself.

    ``last``: the prompt asked for reasons and then the answer, so that a first word is none.

    >>> parse = make_answer_parser(["yes"], ["no"])
    >>> read_stated_verdict("No contradiction was found. Answer: Yes", parse)
    StatedVerdict(value=1, words='Yes', start=36)
    >>> read_stated_verdict("Yes, partially.", parse) is None
    True
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    starts = [] if last else [lead.end() for one in _LEADS if (lead := one.match(text))]
    leading = (_read_answer_at(text, start, parse_words) for start in starts)
    first = next(filter(None, leading), None)
    marked = [
        _read_answer_at(text, mark.end(), parse_words)
        for mark in (*_MARK.finditer(text), *_LINE_MARK.finditer(text))
        if not _IS_CONDITION.search(_find_clause_before(text, mark.start()))
    ]
    found = [one for one in (first, *marked) if one is not None]
    if len({one.value for one in found}) != 1:
        return None
    hedge = _HEDGES[found[0].value]
    if any(hedge.match(text, one.start + len(one.words)) for one in found):
        return None
    if _is_contradicted(text, found, parse_words, last):
        return None
    return found[-1] if first is None else first


def _read_answer_at(
    text: str, start: int, parse_words: WordParser, must_end: bool = True
) -> StatedVerdict | None:
    """The answer whose words begin at ``start``: the longest that is one, if what follows lets it
    stand alone."""
    words = _ANSWER_WORDS.match(text, start)
    if words is None or _NUMBER_SIGN.match(text, start):
        return None
    for one in reversed(list(re.finditer(_WORD, words[0]))):
        end = start + one.end()
        said = text[start:end]
        value = parse_words(said)
        if value is None or (must_end and not _WORD_END.match(text, end)):
            continue
        if said.isdecimal() and _LIST_ITEM.match(text, end):
            continue
        # The other answer stands beside it: "True or False?" is the question.
        other = _ALTERNATIVE.match(text, end) if must_end else None
        if other and _read_answer_at(text, other.end(), parse_words, must_end=False):
            return None
        return StatedVerdict(value, said, start)
    return None


def _find_clause_before(text: str, end: int) -> str:
    """What stands before a place in its sentence."""
    return _SENTENCE_END.split(text[max(0, end - 300) : end])[-1]


def _is_contradicted(
    text: str, found: Sequence[StatedVerdict], parse_words: WordParser, last: bool
) -> bool:
    """Whether another answer, a second thought or a sentence about the claim speaks against the
    verdict that a reply states once or several times."""
    verdict = min(found, key=lambda one: one.start)
    if _TAKES_BACK[verdict.value].search(text, verdict.start + len(verdict.words)):
        return True

    def find_meaning(words: str) -> int | None:
        """Of words that say the same whatever was asked, else of the answers."""
        known = normalise_answer_word(words)
        word = known.removeprefix("not ")
        if _TRUE_WORDS.fullmatch(word):
            return int(word == known)
        if _FALSE_WORDS.fullmatch(word):
            return 0 if word == known else None
        return None if known in ("yes", "no", "not yes") else parse_words(words)

    def parse_answer(words: str) -> int | None:
        value = parse_words(words)
        return find_meaning(words) if value is None else value

    for clause in _CLAUSE_START.finditer(text):
        if last and clause.end() < verdict.start:
            continue  # the reasons go part by part
        said = _read_answer_at(text, clause.end(), parse_answer)
        if said is not None and said.value != verdict.value:
            return True
    statements = list(_STATEMENT.finditer(text))
    others = [one for one in statements if not one.start() <= verdict.start < one.end()]
    is_answered = len(found) > 1 or len(others) == len(statements)
    for match in others:
        told = match.groupdict()
        before = _CLAUSE_LINK.split(_find_clause_before(text, match.start()))[-1]
        is_denied = told["denied"] or told["denies"]
        value = find_meaning(("not " if is_denied else "") + (told["word"] or told["verb"]))
        if told["partly"] or told["also_partly"]:
            value = value and 0
        is_pronoun = (told["subject"] or "").lower() in ("it", "this", "that")
        if is_pronoun and not _WORD_END.match(text, match.end()):
            continue  # "it is true that she won"
        # Behind a no the parts are named that hold; two sentences ("It is false", "The first part
        # of the claim is true") are no answer.
        may_be_part = is_answered and verdict.value == 0 and told["word"]
        is_of_a_part = may_be_part and _OF_A_PART.search(before)
        if value == 1 - verdict.value and not (is_of_a_part or _NOT_SAID.search(before)):
            return True
    return False


# ---- A reply in JSON


def list_json_fields(text: str) -> list[str]:
    """The fields of the JSON object in a reply, each once.

    >>> list_json_fields('So: {"reason": "x", "SCORE": "True"}')
    ['reason', 'SCORE']
    """
    _, leaves, _ = _split_json(text)
    return list(dict.fromkeys(key for key, _ in leaves if key))


def read_json_verdict(text: str, name: str, parse_words: WordParser) -> StatedVerdict | None:
    """The verdict in the field ``name`` of the JSON object in a reply, if nothing else in it
    contradicts."""
    before, leaves, after = _split_json(text)
    if not leaves or "{" in after:  # which of several objects is meant, nobody can tell
        return None
    lines = []
    for key, value in leaves:
        said = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"Answer: {said}" if key.casefold() == name.casefold() else said)
    told = "\n".join([before, *lines, after])
    verdict = read_stated_verdict(told, parse_words, last=True)
    if verdict is None:
        return None
    place = re.search(rf"\"{re.escape(name)}\"\s*:", text, re.IGNORECASE)
    start = text.find(verdict.words, place.end() if place else 0)
    return StatedVerdict(verdict.value, verdict.words, start)


def _split_json(text: str) -> tuple[str, list[tuple[str, Any]], str]:
    """What stands before the JSON in a reply, its values with their fields, and what stands
    after it."""
    bracket = re.search(r"[{\[]", text)
    start = bracket.start() if bracket else len(text)
    try:
        # A field that stands twice is there twice.
        data, end = json.JSONDecoder(object_pairs_hook=tuple).raw_decode(text, start)
    except (ValueError, RecursionError):
        return text, [], ""
    return text[:start], list(_iterate_leaves(data, "")), text[end:]


def _iterate_leaves(value: Any, field: str) -> Iterator[tuple[str, Any]]:
    """An object is a tuple of its fields with their values."""
    if isinstance(value, tuple):
        for key, inner in value:
            yield from _iterate_leaves(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_leaves(inner, field)
    else:
        yield field, value
