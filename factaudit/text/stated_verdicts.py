"""Which verdict does a model's reply state? One strict reading for judges, verifiers and replies that a file holds.

The verdict is the answer in its stated place: the first word, the word after "Answer:", or the field of a JSON object
that the prompt asked for. Where none of these says it, a sentence may ("The statement is false."). Anything in the
reply that contradicts the verdict takes it away: another answer ("Yes. ... Answer: No"), a sentence that says the
opposite ("True. The claim is not supported."), a hedge ("Yes, partially."). What cannot be read so is not guessed at:
the claim is unscored.

Words are looked for as answers, never as letters: "No contradiction was found" does not answer no, "There is nothing
false here" does not say false, "Yes or No?" is the question, and "Not true" is not true.
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
_THOUGHT_PATTERN = re.compile(rf"(?:{_THOUGHT_START_TAGS}).*?(?:{_THOUGHT_END_TAGS}|\Z)", re.IGNORECASE | re.DOTALL)
_THOUGHT_END_PATTERN = re.compile(_THOUGHT_END_TAGS, re.IGNORECASE)
_UNOPENED_THOUGHT_PATTERN = re.compile(rf"\A.*(?:{_THOUGHT_END_TAGS})", re.IGNORECASE | re.DOTALL)
#: gpt-oss ("harmony"): channels of thoughts and calls, then the one that is meant for the user.
_HARMONY_CHANNEL_PATTERN = re.compile(
    r"<\|channel\|>\s*(\w+)[^<]*<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)", re.S
)

#: What an answer is called where it is marked: "Answer: Yes", "the verdict is no", "Réponse : non".
_ANSWER_NAMES = (
    r"answer|verdict|label|judge?ment|conclusion|decision|result|output|rating|final|r[ée]ponse|veredicto|verdetto"
    r"|respuesta|risposta|resposta|antwort|urteil|fazit|antwoord|oordeel|ответ|вердикт"
)
_CJK_ANSWER_NAMES = r"(?:答案|回答|判定|判断|结论|結論|답변|판정|결론|답)[是はは为]?"
#: A word; in "_Yes_" the underscores are markup, in "not_supported" and "non-factual" the joints belong to the word.
_WORD = r"[^\W_](?:[\w'’-]*[^\W_])?"
_MAX_WORDS = 6
#: A longer reply states no verdict that anybody asked for.
_MAX_CHARACTERS = 100_000
#: What may follow an answer: its end, a punctuation mark, or the reason. Not a noun: "No part of the claim ...".
_END = (
    r"(?![.,:/]\d)(?=\s*\Z|\s*\n|[_*]|['’](?!\w)|\s*[–—]|\s+-|-\s|\s*[^\w\s?？'’\-]"
    r"|\s+(?:because|since|as|according|based|given|by|the|it|this)\b)"
)
_ANSWER_WORDS = re.compile(rf"{_WORD}(?: +{_WORD}){{0,{_MAX_WORDS - 1}}}")
_WORD_END = re.compile(_END, re.IGNORECASE)
_LEAD = re.compile(r"[\W_]*")
_LIST_NUMBER = re.compile(r"[\W_]*\d{1,2}[.):]\s+[\W_]*")
#: A number that begins a line of a list and answers nothing.
_LIST_ITEM = re.compile(r"[.)]\s*[^\s*_]")
#: "No. 5 in the charts" is a number, not an answer.
_NUMBER_SIGN = re.compile(r"no\.\s*\d", re.IGNORECASE)
_SYMBOL = re.compile(r"\s*([^\w\s]+)")
_MARK = re.compile(
    rf"(?:(?<!\w)(?:{_ANSWER_NAMES})(?!\w)(?:\s*\([^()\n]{{0,40}}\))?"
    r"(?:\s+(?:is|est|es|ist|è)\b[\W_]*|[ \t]*(?:[:=：>|*_\"'`\])]|[-–—](?=\s)|\n)[\W_]*)"
    rf"|{_CJK_ANSWER_NAMES}[\W_]*)",
    re.IGNORECASE,
)
_LINE_MARK = re.compile(rf"(?:\A|\n)[\W_]*(?:final\s+)?(?:{_ANSWER_NAMES})[ \t]+", re.IGNORECASE)
#: Both answers side by side are the question.
_ALTERNATIVE = re.compile(r"[\s\"'”’*_`,)]*(?:/|\||\\|\bor\b|\band\b|\band/or\b)[\W_]*", re.IGNORECASE)
#: Where an answer may stand alone: at the beginning of a line, a sentence or a clause.
_CLAUSE_START = re.compile(r"(?:\A|\n|[.!?;,。！？；，、])[\W_]*(?:\d{1,2}[.):]\s+[\W_]*)?")
_SENTENCE_END = re.compile(r"[.!?;\n。！？；]")

_ADVERBS = r"(?:(?:also|fully|clearly|directly|entirely|completely|wholly|explicitly|therefore|thus|indeed|simply)\s+)*"
_DOCUMENT_NAMES = r"(?:document|source|context|passage|evidence|text|article)s?"

#: What follows a yes that is none: "Yes, partially", "Yes, but ...", "Yes, if ...".
_DOUBT = (
    r"probabl[ey]|possibl[ey]|perhaps|maybe|likely|presumably|i\s+(?:think|guess|believe|suppose)|not\s+(?:sure|certain)"
    r"|if|unless|provided"
)
_PARTLY = (
    r"partial(?:ly)?|partly|in\s+part|mostly|largely|mainly|somewhat|(?:only\s+)?to\s+(?:some|a|an?\s+\w+)\s+(?:extent|degree)"
    r"|with\s+(?:\w+\s+)?(?:caveats?|reservations?|exceptions?|qualifications?)|kind\s+of|sort\s+of|more\s+or\s+less|almost"
    r"|not\s+(?:entirely|fully|completely|wholly|exactly|quite|really|all)|for\s+the\s+most\s+part|at\s+least"
    r"|generally|essentially|basically|roughly|approximately|only|half"
)
_FOREIGN_BUT = (
    r"aber|teilweise|zum\s+teil|nur|pero|parcialmente|en\s+parte|solo|mais|partiellement|en\s+partie|ma|parzialmente|mas"
    r"|но|частично|maar|gedeeltelijk"
)
_HEDGE_OF_YES = re.compile(
    rf"[\W_]*(?:(?:(?:and|but)\s+)?(?:{_DOUBT}|{_PARTLY}|but|though|although|however|except|yet|{_FOREIGN_BUT})\b"
    r"|但|不过|部分|ただし|一部|하지만|부분)",
    re.IGNORECASE,
)
_HEDGE_OF_NO = re.compile(rf"[\W_]*(?:{_DOUBT})\b", re.IGNORECASE)
_RESERVATION = re.compile(
    r"(?:[.!;,]\s+|\n[\W_]*)(?:however|nevertheless|nonetheless|that said|but|except that)\b", re.IGNORECASE
)
#: The document lacks a part of what was said to be supported: "Yes. The document does not mention Monday."
_LACKING_EVIDENCE = re.compile(
    rf"(?:\b{_DOCUMENT_NAMES}\s+(?:(?:do(?:es)?|did)\s+not|(?:do(?:es)?|did)n['’]t|never|fails?\s+to)\s+{_ADVERBS}"
    r"(?:mention|state|say|specify|provide|contain|include|give|discuss|address|indicate)s?"
    r"|\b(?:is|are|was|were)\s+(?:not|never|nowhere)\s+(?:mentioned|stated|specified|found|given|provided|supported)"
    r"|\bno\s+(?:mention|evidence|information)\s+(?:of|that|about|on|for))\b"
    r"(?!\s+(?:otherwise|anything|any|(?:that\s+)?(?:the|a)\s+(?:opposite|contrary|contradict\w*)))",
    re.IGNORECASE,
)
#: The model takes back what it said: "True. Wait, no: ...".
_SECOND_THOUGHT = re.compile(r"\b(?:wait|actually|correction|on second thoughts?|let me correct)\b", re.IGNORECASE)

#: Words that say the same of a claim whatever was asked.
_PLAIN_MEANINGS = {
    **dict.fromkeys(
        ("true", "supported", "correct", "accurate", "entailed", "attributable", "factual", "confirmed"), 1
    ),
    **dict.fromkeys(
        ("false", "untrue", "unsupported", "incorrect", "inaccurate", "wrong", "contradicted", "refuted"), 0
    ),
}
_CLAIM_NAMES = r"(?:claim|statement|sentence|input|fact|assertion|hypothesis|summary|answer|response)"
_CLAIM_STATEMENT = re.compile(
    rf"(?:\b(?P<article>the|this|that)\s+(?:given\s+|above\s+|whole\s+|entire\s+|atomic\s+|input\s+)?)?"
    rf"\b(?P<subject>{_CLAIM_NAMES}|it|this|that)(?:\s+itself)?\s+(?:is|was|seems)\s+{_ADVERBS}"
    rf"(?P<partly>(?:only\s+)?(?:{_PARTLY})\s+)?(?P<denied>not\s+)?{_ADVERBS}"
    rf"(?P<also_partly>(?:only\s+)?(?:{_PARTLY})\s+)?(?P<word>[^\W_]+)",
    re.IGNORECASE,
)
_DOCUMENT_STATEMENT = re.compile(
    rf"\b{_DOCUMENT_NAMES}\s+{_ADVERBS}(?P<denied>(?:do(?:es)?\s+not|do(?:es)?n['’]t|cannot)\s+)?{_ADVERBS}"
    rf"(?P<verb>support|contradict|refute|entail|confirm)s?\s+(?:the|this)\s+(?:given\s+)?{_CLAIM_NAMES}\b",
    re.IGNORECASE,
)
_BY_THE_DOCUMENT = re.compile(
    rf"\s+(?:in|on|from)\s+(?:the|this)\s+(?:given\s+|provided\s+)?{_DOCUMENT_NAMES}\b", re.IGNORECASE
)
_THAT = re.compile(r"\s+that\b", re.IGNORECASE)
_VERB_MEANINGS = {"support": 1, "entail": 1, "confirm": 1, "contradict": 0, "refute": 0}
_PARTICIPLES = {
    "support": "supported",
    "entail": "entailed",
    "confirm": "confirmed",
    "contradict": "contradicted",
    "refute": "refuted",
}
#: What takes a statement back that follows in the same clause: "It is unclear whether the statement is true".
_NOT_SAID = re.compile(
    r"\b(?:no|not|nothing|none|neither|nor|never|nowhere|cannot|without|if|whether|unless|would|could|might|may|unclear"
    r"|unknown|doubt\w*)\b|n['’]t\b|(?:\A|[,:])\s*(?:had|were|should)\b",
    re.IGNORECASE,
)
_IS_CONDITION = re.compile(
    r"(?:\A|[,:]|[–—])\W*(?:if|unless|suppose|assuming|had|were|should)\b|\b(?:if|whether)\s+\w*\W*\Z", re.I
)
_CLAUSE_LINK = re.compile(r"\b(?:so|therefore|thus|hence|and|but)\b|\bmeans that\b", re.IGNORECASE)
_OF_A_PART = re.compile(r"\b(?:parts?|half|portion|some|most|aspects?|first|second)\b", re.IGNORECASE)


_JSON_START = re.compile(r"[{\[]")


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
    text: str,
    parse_words: WordParser,
    *,
    last: bool = False,
    json_field: str | None = None,
    marks: Sequence[re.Pattern[str]] = (),
    weak_marks: Sequence[re.Pattern[str]] = (),
) -> StatedVerdict | None:
    """The verdict that a reply states, None where it states none or contradicts itself.

    ``last``: the prompt asked for reasons and then the answer, so that a first word is none. ``json_field``: the prompt
    asked for JSON, and the verdict is this field's value, nothing else. ``marks``: further patterns of places, each
    with the answer as its group; ``weak_marks``: patterns that count where nothing else says a verdict.

    >>> parse = make_answer_parser(["yes"], ["no"])
    >>> read_stated_verdict("No contradiction was found. Answer: Yes", parse)
    StatedVerdict(value=1, words='Yes', start=36)
    >>> read_stated_verdict("Yes, partially.", parse) is None
    True
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    if json_field is not None:
        return _read_json_verdict(text, json_field, parse_words)
    marked = [*_list_marked_answers(text, parse_words), *_list_pattern_answers(text, marks, parse_words)]
    first = None if last else _read_first_answer(text, parse_words)
    found = ([first] if first is not None else []) + marked
    if not found:
        found = [] if last else _list_pattern_answers(text, weak_marks, parse_words)
    if not found:
        found = [] if last else _list_statement_answers(text, parse_words)
    if not found or len({one.value for one in found}) > 1:
        return None
    verdict = found[0] if first is not None else found[-1]
    return None if any(_is_contradicted(text, one, parse_words, last) for one in found) else verdict


def _read_answer_at(text: str, start: int, parse_words: WordParser) -> StatedVerdict | None:
    """The answer whose words begin at ``start``: the longest that is one, if what follows lets it stand alone."""
    if (symbol := _SYMBOL.match(text, start)) is not None and (value := parse_words(symbol[1])) is not None:
        return StatedVerdict(value, symbol[1], symbol.start(1))
    words = _ANSWER_WORDS.match(text, start)
    if words is None:
        return None
    ends = [start + one.end() for one in re.finditer(_WORD, words[0])]
    for end in reversed(ends):
        said = text[start:end]
        value = parse_words(said) if _WORD_END.match(text, end) else None
        if value is None or _NUMBER_SIGN.match(text, start):
            continue
        if said.isdecimal() and _LIST_ITEM.match(text, end):
            continue
        other = _ALTERNATIVE.match(text, end)
        if other is not None and _begins_with_answer(text, other.end(), parse_words):
            return None
        return StatedVerdict(value, said, start)
    return None


def _begins_with_answer(text: str, start: int, parse_words: WordParser) -> bool:
    words = _ANSWER_WORDS.match(text, start)
    if words is None:
        return False
    ends = [start + one.end() for one in re.finditer(_WORD, words[0])]
    return any(parse_words(text[start:end]) is not None for end in ends if end == ends[0] or _WORD_END.match(text, end))


def _read_first_answer(text: str, parse_words: WordParser) -> StatedVerdict | None:
    if (symbol := _read_answer_at(text, 0, parse_words)) is not None:
        return symbol
    for pattern in (_LEAD, _LIST_NUMBER):
        if (lead := pattern.match(text)) is not None:
            found = _read_answer_at(text, lead.end(), parse_words)
            if found is not None:
                return found
    return None


def _list_marked_answers(text: str, parse_words: WordParser) -> list[StatedVerdict]:
    answers = []
    for mark in (*_MARK.finditer(text), *_LINE_MARK.finditer(text)):
        found = _read_answer_at(text, mark.end(), parse_words)
        if found is not None and not _IS_CONDITION.search(_find_clause_before(text, mark.start())):
            answers.append(found)
    return answers


def _list_pattern_answers(
    text: str, patterns: Iterable[re.Pattern[str]], parse_words: WordParser
) -> list[StatedVerdict]:
    answers = []
    for pattern in patterns:
        for match in pattern.finditer(text):
            group = match.lastindex or 0
            if (value := parse_words(match[group])) is not None:
                answers.append(StatedVerdict(value, match[group], match.start(group)))
    return answers


def _find_clause_before(text: str, end: int) -> str:
    """What stands before a place in its sentence."""
    return _SENTENCE_END.split(text[max(0, end - 300) : end])[-1]


@dataclass(frozen=True)
class _ClaimStatement:
    """A sentence about the claim. is_whole: nothing follows that would narrow it, and nothing before takes it back."""

    value: int
    words: str
    start: int
    end: int
    is_whole: bool


def _list_statements(text: str, parse_words: WordParser) -> Iterator[_ClaimStatement]:
    """The sentences that say of the claim that it is true, or is not; those that ask or suppose so are left out."""
    for match in _CLAIM_STATEMENT.finditer(text):
        clause = _CLAUSE_LINK.split(_find_clause_before(text, match.start()))[-1]
        is_pronoun = match["article"] is None and match["subject"].lower() in ("it", "this", "that")
        if _NOT_SAID.search(clause) or (match["article"] is None and clause.strip(" \t,\"'*_-#>")):
            continue
        words = f"{'not ' if match['denied'] else ''}{match['word']}"
        value = _find_plain_meaning(words, parse_words)
        is_partly = bool(match["partly"] or match["also_partly"])
        if value is None and not (is_partly and match["word"].lower() in _PLAIN_MEANINGS):
            continue
        after = match.end()
        ends = bool(_WORD_END.match(text, after) or _BY_THE_DOCUMENT.match(text, after))
        if is_pronoun and (not ends or _THAT.match(text, after)):
            continue
        other = _ALTERNATIVE.match(text, match.end())
        if other is not None and _begins_with_answer(
            text, other.end(), lambda word: _find_plain_meaning(word, parse_words)
        ):
            continue
        whole = ends and not is_partly and not _OF_A_PART.search(clause)
        yield _ClaimStatement(0 if value is None or is_partly else value, words, match.start(), match.end(), whole)
    for match in _DOCUMENT_STATEMENT.finditer(text):
        clause = _CLAUSE_LINK.split(_find_clause_before(text, match.start()))[-1]
        meaning = _VERB_MEANINGS[match["verb"].lower()]
        if _NOT_SAID.search(clause) or (match["denied"] and meaning == 0):
            continue
        words = f"{'not ' if match['denied'] else ''}{_PARTICIPLES[match['verb'].lower()]}"
        whole = bool(_WORD_END.match(text, match.end()))
        yield _ClaimStatement(0 if match["denied"] else meaning, words, match.start(), match.end(), whole)


def _find_plain_meaning(words: str, parse_words: WordParser) -> int | None:
    known = normalise_answer_word(words)
    denied = known.startswith("not ")
    meaning = _PLAIN_MEANINGS.get(known.removeprefix("not "))
    if meaning is None:
        return parse_words(words) if known not in ("yes", "no", "not yes") else None
    return (0 if meaning else None) if denied else meaning


def _list_statement_answers(text: str, parse_words: WordParser) -> list[StatedVerdict]:
    """The verdict as a whole sentence in the prompt's own words; all that are said must be the same."""
    statements = list(_list_statements(text, parse_words))
    answers = [
        StatedVerdict(value, one.words, text.find(one.words.split()[-1], one.start))
        for one in statements
        if one.is_whole and (value := parse_words(one.words)) is not None
    ]
    return answers if len({one.value for one in statements}) == 1 else []


def _is_contradicted(text: str, verdict: StatedVerdict, parse_words: WordParser, last: bool) -> bool:
    """Whether a hedge, another answer or a sentence about the claim speaks against a verdict."""
    end = verdict.start + len(verdict.words)
    hedge = _HEDGE_OF_YES if verdict.value else _HEDGE_OF_NO
    sentence = _SENTENCE_END.split(text[end : end + 200].lstrip("\"'”’*_`)]} "))[0]
    if hedge.match(sentence) or (verdict.value and _RESERVATION.search(text, end)):
        return True
    if _SECOND_THOUGHT.search(text, end) or (verdict.value and _LACKING_EVIDENCE.search(text, end)):
        return True
    for clause in _CLAUSE_START.finditer(text):
        if last and clause.end() < verdict.start:
            continue  # the reasons go part by part
        said = _read_answer_at(text, clause.end(), lambda words: _parse_bare_answer(words, parse_words))
        if said is not None and said.value != verdict.value:
            return True
    for one in _list_statements(text, parse_words):
        if one.value == verdict.value or one.start <= verdict.start < one.end:
            continue
        # Before an answer reasons are weighed, and behind a no the parts are named that hold.
        if one.is_whole or (verdict.value == 1 and one.start > verdict.start):
            return True
    return False


def _parse_bare_answer(words: str, parse_words: WordParser) -> int | None:
    value = parse_words(words)
    return _find_plain_meaning(words, parse_words) if value is None else value


def list_json_fields(text: str) -> list[str]:
    """The fields of the JSON objects in a reply, each once.

    >>> list_json_fields('So: {"reason": "x", "SCORE": "True"}')
    ['reason', 'SCORE']
    """
    found = (key for value, _ in _list_json_objects(text) for key, _ in _iterate_leaves(value) if key)
    return list(dict.fromkeys(found))


def _read_json_verdict(text: str, name: str, parse_words: WordParser) -> StatedVerdict | None:
    """The verdict in the field ``name`` of the JSON objects in a reply, if nothing else in it contradicts."""
    values: list[Any] = []
    others: list[Any] = []
    rest = text
    for found, source in _list_json_objects(text):
        rest = rest.replace(source, "\n", 1)
        for key, value in _iterate_leaves(found):
            (values if key.casefold() == name.casefold() else others).append(value)
    verdicts = [_parse_json_value(value, parse_words) for value in values]
    if not verdicts or None in verdicts or len({one.value for one in verdicts if one}) > 1:
        return None
    verdict = verdicts[0]
    assert verdict is not None
    for other in (rest, *(value for value in others if isinstance(value, str))):
        said: list[StatedVerdict] = [*_list_marked_answers(other, parse_words)]
        if (first := _read_first_answer(other, parse_words)) is not None:
            said.append(first)
        statements = [one for one in _list_statements(other, parse_words) if one.is_whole or one.value == 0]
        if ({one.value for one in said} | {one.value for one in statements}) - {verdict.value}:
            return None
    place = re.search(rf"\"{re.escape(name)}\"\s*:\s*\"?[\W_]*(?={re.escape(verdict.words)})", text, re.IGNORECASE)
    return StatedVerdict(verdict.value, verdict.words, place.end() if place else len(text))


def _parse_json_value(value: Any, parse_words: WordParser) -> StatedVerdict | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = value if isinstance(value, str) else json.dumps(value)
    if (meaning := parse_words(text)) is not None:
        return StatedVerdict(meaning, text, 0)
    return read_stated_verdict(text, parse_words) if isinstance(value, str) else None


def _list_json_objects(text: str) -> Iterator[tuple[Any, str]]:
    """The JSON objects and lists in a text, each with its source; a key that stands twice is there twice."""
    decoder = json.JSONDecoder(object_pairs_hook=_JSONPairs)
    start = 0
    while (begin := _JSON_START.search(text, start)) is not None:
        try:
            found, end = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            start = begin.end()
        else:
            yield found, text[begin.start() : end]
            start = end


class _JSONPairs(list[tuple[str, Any]]):
    """The pairs of a JSON object."""


def _iterate_leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, _JSONPairs):
        for name, inner in value:
            yield from _iterate_leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_leaves(inner, key)
    else:
        yield key, value
