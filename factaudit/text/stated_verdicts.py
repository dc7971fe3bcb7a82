"""Which verdict does a model's reply state? Judges, verifiers and saved replies are read in this
one strict way.

The verdict is the answer in its stated place: the first word of the reply, the word after
"Answer:", or the field of a JSON object that the prompt asked for. A reply may also begin "The
statement is". The reply is unscored when anything in it contradicts that answer: another answer
("Yes. ... Answer: No"), a sentence about the claim that says the opposite ("True. The claim is not
supported."), a hedge ("Yes, partially."), or a second thought. What cannot be read in this way is
not guessed at.

Words are looked for as answers, never as letters: "No contradiction was found" does not answer no,
"Yes or No?" is the question, and "Not true" is not true.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass

#: Says of a few words whether they are an answer: 1 (supported), 0 (not supported), or None.
WordParser = Callable[[str], int | None]


@dataclass(frozen=True)
class StatedVerdict:
    """1 or 0, the words that say it, and where in the reply these words begin."""

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
#: What comes before the answer, in the order in which it is taken away.
_THOUGHT_PATTERNS = [
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        # gpt-oss ("harmony") has channels of thoughts and calls; the last "final" one is meant
        # for the user.
        r"\A.*<\|channel\|>\s*final[^<]*<\|message\|>|<\|channel\|>.*",
        rf"(?:{_THOUGHT_START_TAGS}).*?(?:{_THOUGHT_END_TAGS}|\Z)",
        # The opening tag may stand in the server's template, and so not in the reply.
        rf"\A.*(?:{_THOUGHT_END_TAGS})",
    )
]

#: What an answer is called where it is marked: "Answer: Yes", "the verdict is no", "Réponse : non".
_ANSWER_NAMES = (
    r"answer|verdict|label|judge?ment|conclusion|decision|result|output|rating|final|r[ée]ponse"
    r"|veredicto|verdetto"
    r"|respuesta|risposta|resposta|antwort|urteil|fazit|antwoord|oordeel|ответ|вердикт"
)
_CJK_ANSWER_NAMES = r"(?:答案|回答|判定|判断|结论|結論|답변|판정|결론|답)[是はは为]?"
#: A word; in "_Yes_" the underscores are markup, in "not_supported" and "non-factual" the joints
#: belong to the word.
_WORD = re.compile(r"[^\W_](?:[\w'’-]*[^\W_])?")
_WORDS = re.compile(rf"{_WORD.pattern}(?: +{_WORD.pattern}){{0,5}}")
#: A longer reply states no verdict that anybody asked for.
_MAX_CHARACTERS = 100_000
#: What may follow an answer: its end, a punctuation mark, or the reason. A noun may not ("No part
#: of the claim ..."), nor a number ("No. 5 in the charts"); and
#: the number of a list's item is no answer.
_END = re.compile(
    r"(?![.,:/]\d|(?<=\bno)\.\s*\d|(?<=\d)[.)]\s*[^\s*_])"
    r"(?=\s*\Z|\s*\n|[_*]|['’](?!\w)|\s*[–—]|\s+-|-\s|\s*[^\w\s?？'’\-]"
    r"|\s+(?:because|since|as|according|based|given|by|the|it|this)\b)",
    re.IGNORECASE,
)
#: What may stand before the first word: markup, a number, "The statement is".
_LEADS = [
    re.compile(rf"\A{lead}", re.IGNORECASE)
    for lead in (
        r"",
        r"[\W_]*",
        r"[\W_]*\d{1,2}[.):]\s+[\W_]*",
        r"[\s,\"'*_#>-]*(?:(?:i['’]m\s+sorry|i\s+apologi[sz]e)\W+but\s+)?(?:(?:the|this)\s+(?:given\s+)?"
        r"(?:claim|statement|sentence|input|fact|summary)|it|this)\s+is[ \t]+(?!(?:yes|no)\b)",
    )
]
_MARKS = [
    re.compile(
        rf"(?:(?<!\w)(?:{_ANSWER_NAMES})(?!\w)(?:\s*\([^()\n]{{0,40}}\))?"
        r"(?:\s+(?:is|est|es|ist|è)\b[\W_]*|[ \t]*(?:[:=：>|*_\"'`\])]|[-–—](?=\s)|\n)[\W_]*)"
        rf"|{_CJK_ANSWER_NAMES}[\W_]*)",
        re.IGNORECASE,
    ),
    re.compile(rf"(?:\A|\n)(?:[^\w\n]|_)*(?:final\s+)?(?:{_ANSWER_NAMES})[ \t]+", re.IGNORECASE),
]
#: Where an answer may stand alone: at the beginning of a line, a sentence or a clause.
_CLAUSE_START = re.compile(
    r"(?:\A|\n|[.!?;,。！？；，、])(?:[^\w\n]|_)*(?:\d{1,2}[.):]\s+[\W_]*)?(?:(?:and|or|but)\s+)?",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?;\n。！？；]")

_ADVERBS = (
    r"(?:(?:also|fully|clearly|directly|entirely|completely|wholly|explicitly|therefore|thus|indeed"
    r"|simply)\s+)*"
)
_DOCUMENT_NAMES = r"(?:document|source|context|passage|evidence|text|article)s?"
_CLAIM_NAMES = (
    r"(?:claim|statement|sentence|input|fact|assertion|hypothesis|summary|answer|response)"
)
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
#: What comes before the other answer: "Yes/No", "Yes, or no".
_OTHER_ANSWER = (
    r"[\s\"'”’*_`,)]*(?:[/|\\]|\b(?:or|and(?!\W+(?:the|it|this|that|there|an?|he|she|they)\b))\b)"
)
#: By verdict what may not follow it at once.
_HEDGES = [
    re.compile(rf"{_OTHER_ANSWER}|{_WITHIN_SENTENCE}(?:{_DOUBT})\b", re.IGNORECASE),
    re.compile(
        rf"{_OTHER_ANSWER}|{_WITHIN_SENTENCE}(?:(?:(?:and|but)\s+)?(?:{_DOUBT}|{_PARTLY}|but|though"
        rf"|although|however|except|yet|{_FOREIGN_BUT})\b|但|不过|部分|ただし|一部|하지만|부분)",
        re.IGNORECASE,
    ),
]
#: The model takes back what it said ("True. Wait, no: ..."), or a sentence is nothing but doubt:
#: "The claim is not supported. Perhaps."
_SECOND_THOUGHT = (
    r"\b(?:wait|actually|correction|on second thoughts?|let me correct)\b"
    r"|[.!?;\n](?:[^\w\n]|_)*(?:probabl[ey]|possibl[ey]|perhaps|maybe|not\s+(?:sure|certain))"
    r"\W*?(?:[.!?;\n]|\Z)"
)
#: A reservation, or a document that lacks a part of what was said to be supported: "Yes. The
#: document does not mention Monday."
_RESERVATION = (
    r"(?:[.!;,]\s+|\n(?:[^\w\n]|_)*)"
    r"(?:however|nevertheless|nonetheless|that said|but|except that)\b"
    rf"|(?:\b{_DOCUMENT_NAMES}\s+(?:(?:do(?:es)?|did)\s+not|(?:do(?:es)?|did)n['’]t|never"
    rf"|fails?\s+to)\s+{_ADVERBS}"
    r"(?:mention|state|say|specify|provide|contain|include|give|discuss|address|indicate)s?"
    r"|\b(?:is|are|was|were)\s+(?:not|never|nowhere)\s+(?:mentioned|stated|specified|found|given"
    r"|provided|supported)"
    r"|\bno\s+(?:mention|evidence|information)\s+(?:of|that|about|on|for))\b"
    r"(?!\s+(?:otherwise|anything|any|(?:that\s+)?(?:the|a)\s+(?:opposite|contrary"
    r"|contradict\w*)))"
)
#: By verdict what may not follow it anywhere.
_TAKES_BACK = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (_SECOND_THOUGHT, f"{_SECOND_THOUGHT}|{_RESERVATION}")
]

_TRUE_WORDS = r"(?:true|correct|accurate|attributable|factual|(?:support|entail|confirm)(?:s|ed)?)"
_FALSE_WORDS = (
    r"(?:false|untrue|unsupported|incorrect|inaccurate|wrong|(?:contradict|refute)(?:s|d|ed)?)"
)
#: By verdict the words that say it of a claim whatever was asked.
_SAYS = [
    re.compile(
        rf"(?:(?:only\s+)?(?:{_PARTLY})\s+{_ADVERBS}{_FALSE_WORDS}"
        rf"|{_FALSE_WORDS}"
        r"|(?:(?:do(?:es)?\s+not|do(?:es)?n['’]t|cannot|not|(?:only\s+)?(?:PARTLY))\s+)+"
        rf"{_ADVERBS}(?:(?:only\s+)?(?:{_PARTLY})\s+)?{_TRUE_WORDS})".replace("PARTLY", _PARTLY),
        re.IGNORECASE,
    ),
    re.compile(_TRUE_WORDS, re.IGNORECASE),
]
#: Where a sentence speaks of the claim: "the claim is not fully supported", "the document
#: contradicts the claim". "It is true that she won" does not.
_STATEMENT_START = re.compile(
    rf"\b(?:(?:(?:the|this|that)\s+(?:(?:given|above|whole|entire|atomic|input)\s+)?)?{_CLAIM_NAMES}"
    r"(?:\s+itself)?"
    rf"|(?:it|this|that)(?:\s+itself)?(?! +\w+ +(?:not +)?{_ADVERBS}\w+ +that\b))"
    rf"\s+(?:is|was|seems)\s+{_ADVERBS}"
    rf"|\b{_DOCUMENT_NAMES}\s+{_ADVERBS}(?=(?:\S+\s+){{1,6}}?(?:the|this)\s+(?:given\s+)?{_CLAIM_NAMES}\b)",
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


def strip_thoughts(text: str) -> str:
    """A text without a reasoning model's thoughts."""
    for pattern in _THOUGHT_PATTERNS:
        text = pattern.sub("", text)
    return text


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
    places = [lead.end() for one in _LEADS if not last and (lead := one.match(text))]
    places += [
        mark.end()
        for one in _MARKS
        for mark in one.finditer(text)
        if not _IS_CONDITION.search(_find_clause_before(text, mark.start()))
    ]
    stated = [one for place in places if (one := _read_answer_at(text, place, parse_words))]
    if len({one.value for one in stated}) != 1:
        return None
    value, start = stated[0].value, min(one.start for one in stated)
    ends = [one.start + len(one.words) for one in stated]
    is_doubted = any(_HEDGES[value].match(text, end) for end in ends)
    if is_doubted or _TAKES_BACK[value].search(text, min(ends)):
        return None

    def parse_statement(words: str) -> int | None:
        own = parse_words(words)
        says = [verdict for verdict in (0, 1) if _SAYS[verdict].fullmatch(words)]
        return next(iter(says), None) if own is None else own

    for clause in _CLAUSE_START.finditer(text):
        if last and clause.end() < start:
            continue  # the reasons go part by part
        said = _read_answer_at(text, clause.end(), parse_statement)
        if said is not None and said.value != value:
            return None
    for statement in _STATEMENT_START.finditer(text):
        said = _read_answer_at(text, statement.end(), parse_statement, must_end=False)
        if said is not None and said.value != value:
            before = _find_clause_before(text, statement.start())
            if not _NOT_SAID.search(_CLAUSE_LINK.split(before)[-1]):
                return None
    return stated[-1 if last else 0]


def _read_answer_at(
    text: str, start: int, parse_words: WordParser, must_end: bool = True
) -> StatedVerdict | None:
    """The longest answer whose words begin at ``start``; ``must_end``: it stands alone (`_END`)."""
    words = _WORDS.match(text, start)
    for one in reversed(list(_WORD.finditer(words[0])) if words else []):
        said = text[start : start + one.end()]
        if must_end and not _END.match(text, start + one.end()):
            continue
        if (value := parse_words(said)) is not None:
            return StatedVerdict(value, said, start)
    return None


def _find_clause_before(text: str, end: int) -> str:
    """What stands before a place in its sentence."""
    return _SENTENCE_END.split(text[max(0, end - 300) : end])[-1]


# ---- A reply in JSON


def list_json_fields(text: str) -> list[str]:
    """The fields of the JSON object in a reply, each once.

    >>> list_json_fields('So: {"reason": "x", "SCORE": "True"}')
    ['reason', 'SCORE']
    """
    return list(dict.fromkeys(name for name, _ in _split_json(text) if name))


def read_json_verdict(text: str, name: str, parse_words: WordParser) -> StatedVerdict | None:
    """The verdict in the field ``name`` of the JSON object in a reply, if nothing else in it
    contradicts."""
    told = "\n".join(
        f"Answer: {said}" if field.lower() == name.lower() else said
        for field, said in _split_json(text)
    )
    verdict = read_stated_verdict(told, parse_words, last=True)
    if verdict is None:
        return None
    place = text.find(verdict.words, text.lower().find(f'"{name.lower()}"'))
    return StatedVerdict(verdict.value, verdict.words, place)


def _split_json(text: str) -> list[tuple[str, str]]:
    """The fields of the one JSON object in a reply with their values as text, between what stands
    before and after it under the name ""; nothing where there is none, or where another object
    stands in it or behind it, so that nobody can tell which is meant."""
    before, brace, rest = text.partition("{")
    if "{" in rest:
        return []
    try:
        # A field that stands twice is there twice.
        decoder = json.JSONDecoder(object_pairs_hook=list)
        fields, end = decoder.raw_decode(brace + rest)
    except (ValueError, RecursionError):
        return []
    said = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in fields
    ]
    return [("", before), *said, ("", rest[end - 1 :])]
