"""Which verdict does a model's reply state? One strict reading for judges, verifiers and replies
that a file holds.

The verdict is the answer in its stated place: the first word, the word after "Answer:", or the
field of a JSON object that the prompt asked for. Where none of these says it, a sentence may ("The
statement is false."). Anything in the reply that contradicts the verdict takes it away: another
answer ("Yes. ... Answer: No"), a sentence that says the opposite ("True. The claim is not
supported."), a hedge ("Yes, partially."). What cannot be read so is not guessed at: the claim is
unscored.

Words are looked for as answers, never as letters: "No contradiction was found" does not answer no,
"There is nothing false here" does not say false, "Yes or No?" is the question, and "Not true" is
not true.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
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
_LEADS = (re.compile(r""), re.compile(r"[\W_]*"), re.compile(r"[\W_]*\d{1,2}[.):]\s+[\W_]*"))
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
_HEDGE_OF_YES = re.compile(
    rf"[\W_]*(?:(?:(?:and|but)\s+)?(?:{_DOUBT}|{_PARTLY}|but|though|although|however|except|yet"
    rf"|{_FOREIGN_BUT})\b"
    r"|但|不过|部分|ただし|一部|하지만|부분)",
    re.IGNORECASE,
)
_HEDGE_OF_NO = re.compile(rf"[\W_]*(?:{_DOUBT})\b", re.IGNORECASE)
_RESERVATION = re.compile(
    r"(?:[.!;,]\s+|\n[\W_]*)(?:however|nevertheless|nonetheless|that said|but|except that)\b",
    re.IGNORECASE,
)
#: The document lacks a part of what was said to be supported: "Yes. The document does not mention
#: Monday."
_LACKING_EVIDENCE = re.compile(
    rf"(?:\b{_DOCUMENT_NAMES}\s+(?:(?:do(?:es)?|did)\s+not|(?:do(?:es)?|did)n['’]t|never"
    rf"|fails?\s+to)\s+{_ADVERBS}"
    r"(?:mention|state|say|specify|provide|contain|include|give|discuss|address|indicate)s?"
    r"|\b(?:is|are|was|were)\s+(?:not|never|nowhere)\s+(?:mentioned|stated|specified|found|given"
    r"|provided|supported)"
    r"|\bno\s+(?:mention|evidence|information)\s+(?:of|that|about|on|for))\b"
    r"(?!\s+(?:otherwise|anything|any|(?:that\s+)?(?:the|a)\s+(?:opposite|contrary"
    r"|contradict\w*)))",
    re.IGNORECASE,
)
#: The model takes back what it said: "True. Wait, no: ...".
_SECOND_THOUGHT = re.compile(
    r"\b(?:wait|actually|correction|on second thoughts?|let me correct)\b", re.IGNORECASE
)

#: Words that say the same of a claim whatever was asked.
_PLAIN_MEANINGS = {
    **dict.fromkeys(
        (
            "true",
            "supported",
            "correct",
            "accurate",
            "entailed",
            "attributable",
            "factual",
            "confirmed",
            "support",
            "entail",
            "confirm",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "false",
            "untrue",
            "unsupported",
            "incorrect",
            "inaccurate",
            "wrong",
            "contradicted",
            "refuted",
            "contradict",
            "refute",
        ),
        0,
    ),
}
_CLAIM_NAMES = (
    r"(?:claim|statement|sentence|input|fact|assertion|hypothesis|summary|answer|response)"
)
_CLAIM_STATEMENT = re.compile(
    r"(?:\b(?P<article>the|this|that)\s+(?:given\s+|above\s+|whole\s+|entire\s+|atomic\s+"
    r"|input\s+)?)?"
    rf"\b(?P<subject>{_CLAIM_NAMES}|it|this|that)(?:\s+itself)?\s+(?:is|was|seems)\s+{_ADVERBS}"
    rf"(?P<partly>(?:only\s+)?(?:{_PARTLY})\s+)?(?P<denied>not\s+)?{_ADVERBS}"
    rf"(?P<also_partly>(?:only\s+)?(?:{_PARTLY})\s+)?(?P<word>[^\W_]+)",
    re.IGNORECASE,
)
_DOCUMENT_STATEMENT = re.compile(
    rf"\b{_DOCUMENT_NAMES}\s+{_ADVERBS}(?P<denied>(?:do(?:es)?\s+not|do(?:es)?n['’]t"
    rf"|cannot)\s+)?{_ADVERBS}"
    r"(?P<verb>support|contradict|refute|entail|confirm)s?\s+(?:the"
    rf"|this)\s+(?:given\s+)?{_CLAIM_NAMES}\b",
    re.IGNORECASE,
)
_BY_THE_DOCUMENT = re.compile(
    rf"\s+(?:in|on|from)\s+(?:the|this)\s+(?:given\s+|provided\s+)?{_DOCUMENT_NAMES}\b",
    re.IGNORECASE,
)
_THAT = re.compile(r"\s+that\b", re.IGNORECASE)
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
    first, found = None, _list_marked_answers(text, parse_words)
    if not last:
        places = (lead.match(text) for lead in _LEADS)
        answers = (_read_answer_at(text, place.end(), parse_words) for place in places if place)
        first = next(filter(None, answers), None)
        found = found if first is None else [first, *found]
    statements = list(_list_statements(text, parse_words))
    if not found and not last and len({one.value for one in statements}) == 1:
        found = [
            StatedVerdict(value, one.words, text.find(one.words.split()[-1], one.start))
            for one in statements
            if one.is_whole and (value := parse_words(one.words)) is not None
        ]
    if len({one.value for one in found}) != 1:
        return None
    verdict = found[-1] if first is None else first
    is_contradicted = any(
        _is_contradicted(text, one, statements, parse_words, last) for one in found
    )
    return None if is_contradicted else verdict


def _read_answer_at(
    text: str, start: int, parse_words: WordParser, must_end: bool = True
) -> StatedVerdict | None:
    """The answer whose words begin at ``start``: the longest that is one, if what follows lets it
    stand alone."""
    if (symbol := _SYMBOL.match(text, start)) is not None and (
        value := parse_words(symbol[1])
    ) is not None:
        return StatedVerdict(value, symbol[1], symbol.start(1))
    words = _ANSWER_WORDS.match(text, start)
    ends = [] if words is None else [start + one.end() for one in re.finditer(_WORD, words[0])]
    for end in reversed(ends):
        said = text[start:end]
        value = parse_words(said)
        if (
            value is None
            or (must_end and not _WORD_END.match(text, end))
            or _NUMBER_SIGN.match(text, start)
        ):
            continue
        if said.isdecimal() and _LIST_ITEM.match(text, end):
            continue
        return (
            None
            if must_end and _is_question(text, end, parse_words)
            else StatedVerdict(value, said, start)
        )
    return None


def _is_question(text: str, end: int, parse_words: WordParser) -> bool:
    """Whether the other answer stands beside one that ends here: "True or False?"."""
    other = _ALTERNATIVE.match(text, end)
    return (
        other is not None
        and _read_answer_at(text, other.end(), parse_words, must_end=False) is not None
    )


def _list_marked_answers(text: str, parse_words: WordParser) -> list[StatedVerdict]:
    marks = [*_MARK.finditer(text), *_LINE_MARK.finditer(text)]
    said = [
        one for one in marks if not _IS_CONDITION.search(_find_clause_before(text, one.start()))
    ]
    return list(filter(None, (_read_answer_at(text, mark.end(), parse_words) for mark in said)))


def _find_clause_before(text: str, end: int) -> str:
    """What stands before a place in its sentence."""
    return _SENTENCE_END.split(text[max(0, end - 300) : end])[-1]


@dataclass(frozen=True)
class _Statement:
    """A sentence about the claim. is_whole: nothing follows that would narrow it, and nothing
    before takes it back."""

    value: int
    words: str
    start: int
    end: int
    is_whole: bool


def _list_statements(text: str, parse_words: WordParser) -> Iterator[_Statement]:
    """The sentences that say of the claim that it is true, or is not; those that ask or suppose so
    are left out."""
    for match in (*_CLAIM_STATEMENT.finditer(text), *_DOCUMENT_STATEMENT.finditer(text)):
        found = match.groupdict()
        clause = _CLAUSE_LINK.split(_find_clause_before(text, match.start()))[-1]
        if _NOT_SAID.search(clause):
            continue
        words = ("not " if found["denied"] else "") + (found.get("word") or found["verb"])
        value, end = _find_plain_meaning(words, parse_words), match.end()
        ends, is_partly = _WORD_END.match(text, end) is not None, False
        if "word" in found:
            is_partly = bool(found["partly"] or found["also_partly"])
            if is_partly and found["word"].lower() in _PLAIN_MEANINGS:
                value = 0
            if not found["article"] and clause.strip(" \t,\"'*_-#>"):
                continue
            ends = ends or _BY_THE_DOCUMENT.match(text, end) is not None
            is_pronoun = not found["article"] and found["subject"].lower() in ("it", "this", "that")
            if is_pronoun and (not ends or _THAT.match(text, end)):
                continue
            if _is_question(text, end, lambda word: _find_plain_meaning(word, parse_words)):
                continue
            ends = ends and not is_partly and not _OF_A_PART.search(clause)
        if value is not None:
            yield _Statement(value, words, match.start(), end, ends)


def _find_plain_meaning(words: str, parse_words: WordParser) -> int | None:
    known = normalise_answer_word(words)
    denied = known.startswith("not ")
    meaning = _PLAIN_MEANINGS.get(known.removeprefix("not "))
    if meaning is None:
        return None if known in ("yes", "no", "not yes") else parse_words(words)
    if denied:
        return 0 if meaning else None
    return meaning


def _is_contradicted(
    text: str,
    verdict: StatedVerdict,
    statements: Iterable[_Statement],
    parse_words: WordParser,
    last: bool,
) -> bool:
    """Whether a hedge, another answer or a sentence about the claim speaks against a verdict."""
    end = verdict.start + len(verdict.words)
    sentence = _SENTENCE_END.split(text[end : end + 200].lstrip("\"'”’*_`)]} "))[0]
    hedge = _HEDGE_OF_YES if verdict.value else _HEDGE_OF_NO
    takes_back = (_SECOND_THOUGHT, _RESERVATION, _LACKING_EVIDENCE)[: 3 if verdict.value else 1]
    if hedge.match(sentence) or any(pattern.search(text, end) for pattern in takes_back):
        return True
    for clause in _CLAUSE_START.finditer(text):
        if last and clause.end() < verdict.start:
            continue  # the reasons go part by part
        said = _read_answer_at(
            text, clause.end(), lambda words: _parse_bare_answer(words, parse_words)
        )
        if said is not None and said.value != verdict.value:
            return True
    for one in statements:
        if one.value == verdict.value or one.start <= verdict.start < one.end:
            continue
        # Before an answer reasons are weighed, and behind a no the parts are named that hold.
        if one.is_whole or (verdict.value == 1 and one.start > verdict.start):
            return True
    return False


def _parse_bare_answer(words: str, parse_words: WordParser) -> int | None:
    value = parse_words(words)
    return _find_plain_meaning(words, parse_words) if value is None else value


# A reply in JSON
# ------------------------------------------------------------


def list_json_fields(text: str) -> list[str]:
    """The fields of the JSON objects in a reply, each once.

    >>> list_json_fields('So: {"reason": "x", "SCORE": "True"}')
    ['reason', 'SCORE']
    """
    return list(dict.fromkeys(key for key, _ in _iterate_leaves(_split_json(text)) if key))


def read_json_verdict(text: str, name: str, parse_words: WordParser) -> StatedVerdict | None:
    """The verdict in the field ``name`` of the JSON objects in a reply, if nothing else in it
    contradicts."""
    lines = []
    for key, value in _iterate_leaves(_split_json(text)):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        said = value if isinstance(value, str) else json.dumps(value)
        lines.append(f"Answer: {said}" if key.casefold() == name.casefold() else said)
    verdict = read_stated_verdict("\n".join(lines), parse_words, last=True)
    if verdict is None:
        return None
    place = re.search(
        rf"\"{re.escape(name)}\"\s*:\s*\"?[\W_]*(?={re.escape(verdict.words)})", text, re.IGNORECASE
    )
    return StatedVerdict(verdict.value, verdict.words, place.end() if place else len(text))


class _JSONPairs(list[tuple[str, Any]]):
    """The pairs of a JSON object: a key that stands twice is there twice."""


def _split_json(text: str) -> list[Any]:
    """The JSON objects and lists in a text, and what stands between them."""
    decoder = json.JSONDecoder(object_pairs_hook=_JSONPairs)
    parts: list[Any] = []
    start = 0
    for begin in _JSON_START.finditer(text):
        if begin.start() < start:
            continue
        try:
            found, end = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            continue
        parts += [text[start : begin.start()], found]
        start = end
    return [*parts, text[start:]]


def _iterate_leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, _JSONPairs):
        for name, inner in value:
            yield from _iterate_leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_leaves(inner, key)
    else:
        yield key, value
