"""How a model laid its groups out: whatever stands between the facts of one person and the next.

We ask for a line "- ===" between people, and models write ``2. ===``, ``**===**``, ``=== Person 2 ===``, ``---``,
``Person 2:``, headings, tables, JSON, or the person before each fact. The facts are known, so that a line which is one
is never taken for anything else; what is left is a rule, a heading of a person, a heading of a theme ("Career"), or
talk. A heading that is neither a person's nor a theme's leaves it open how many people there are: the layout is then
*doubtful*, and no grouping is read from it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

#: A line of a reply is a fact that the model changed where their similarity (difflib's ratio) is at least this.
SIMILAR = 0.75
#: Headings are short.
_MAX_WORDS = 14

_BULLET = re.compile(
    r"^(?:>\s*)*(?:[-*•‣▪–—·+]+\s+|[-•‣▪–—·]+(?=[^\W\d_]))?(?:\(?\d{1,3}[.):]\s+)?(?:[-*•‣▪–—·+]+\s+)?"
)
_RULE = re.compile(r"[=\-–—―⸻─━═_*~#+•·.\s]*")
_SAME = re.compile(r"([=\-–—―─━═_*~#+])(?:\s*\1){2,}|⸻|==")
_TITLED = re.compile(r"^={2,}\s*(?P<title>[^=]+?)\s*=*$|^[-–—─━═*~#_]{3,}\s*(?P<other>\w[^=]*?)\s*[-–—─━═*~#_]{2,}$")
_INLINE = re.compile(r"(?<=[^\s=])\s*(?:[-*]\s+)?={3,}\s*(?:[-*]\s+)?(?=[^\s=])")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*\s*/?>")
_FENCE = re.compile(r"^\s*(?:```|~~~)\w*\s*$", re.MULTILINE)
_ECHO = re.compile(r"(?:facts|facts by person|grouped facts|output|answer|reply|result)", re.IGNORECASE)
_NEXT_TASK = re.compile(r"^paragraph\s*:", re.IGNORECASE)

_WHO = (
    r"(?:persons?|people|individuals?|biograph(?:y|ies)|bios?|groups?|entit(?:y|ies)|subjects?|figures?|namesakes?|"
    r"(?:wo)?m[ae]n|profiles?|identit(?:y|ies)|persona|someone)"
)
_NUMBER = r"(?:\d{1,2}|[a-h]|[ivx]{1,4}|one|two|three|four|five|six|seven|eight)"
_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|last|next|other|another|different|new|separate|same[- ]named|"
    r"\d{1,2}(?:st|nd|rd|th))"
)
_NUMBERED = re.compile(
    rf"^(?:facts (?:about|of|for) )?{_WHO}\s*(?:no\.?|number|n°)?\s*[#:(\[-]?\s*{_NUMBER}\b", re.IGNORECASE
)
_ONE_OF = re.compile(rf"\b{_ORDINAL}\b.{{0,60}}\b{_WHO}\b", re.IGNORECASE)
_LABEL = rf"(?:{_WHO}\s*#?\s*{_NUMBER}|p{_NUMBER}|{_ORDINAL} {_WHO})"
_LABELLED = re.compile(
    rf"^[\[(*_]*(?P<label>{_LABEL})(?:\s*\([^)]*\))?[\])*_]*\s*[:|,\-–—\])]+[*_]*\s*(?P<fact>\S.*)$"
    rf"|^[\[(]+(?P<label2>{_LABEL})[\])]+\s*(?P<fact2>\S.*)$"
    rf"|^(?P<fact3>.*\S)\s*[\[(→|]+\s*(?P<label3>{_LABEL})\s*[\])|]*$",
    re.IGNORECASE,
)
_THEME = re.compile(
    r"\b(?:life|career|education|birth|death|family|background|legacy|works?|awards?|honou?rs?|achievements?|personal|"
    r"professional|early|later|years|childhood|marriage|publications?|recognition|overview|summary|introduction|notes?|"
    r"other|additional|facts|information|details|politics|military|service|contributions?|occupation|nationality|"
    r"notable|discography|filmography|philanthropy|retirement|basic|general|continued)\b",
    re.IGNORECASE,
)
_IS_A = re.compile(r"\b(?:is|was|as) (?:an?|the) ([^.,;()]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Layout:
    """The lines of each group that has any; ``doubtful``: headings seem to be there that part nothing."""

    groups: tuple[tuple[str, ...], ...]
    doubtful: bool = False


def read_layout(reply: str, facts: Sequence[str], name: str = "") -> Layout:
    """The groups of a reply, whatever its layout.

    facts: those that were to be grouped. name: of the people whom the paragraph may tell of.

    >>> read_layout("1. He sang.\\n2. ===\\n3. He swam.", ["He sang.", "He swam."]).groups
    (('He sang.',), ('He swam.',))
    """
    known = _Known(facts, name)
    text = unicodedata.normalize("NFKC", reply).replace("\\=", "=").replace("\\-", "-").replace("\\*", "*")
    found = _from_json(text, known)
    return found if found is not None else _from_lines(text, known)


def normal(text: str) -> str:
    """What equal facts have in common: white space, case and closing punctuation apart."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;,")


def bare(line: str) -> str:
    """A line without bullets, numbers, quotes, emphasis and tags.

    >>> bare('- 2) **"He sang."**')
    'He sang.'
    """
    text = _TAG.sub("", line).strip()
    text = _BULLET.sub("", re.sub(r"^#{1,6}\s*", "", text), count=1).strip()
    while len(text) > 1 and (pair := _PAIRS.get(text[0])) and text.endswith(pair) and text[1:-1].strip():
        text = text[1:-1].strip()
    return re.sub(r"^(\*\*|__)(.+?)\1", r"\2", text).strip("*_` ")


_PAIRS = {"*": "*", "_": "_", "`": "`", '"': '"', "'": "'", "“": "”", "«": "»", "~": "~"}


class _Known:
    """The facts and the name: what a line may be."""

    def __init__(self, facts: Sequence[str], name: str) -> None:
        self._normal = {normal(fact) for fact in facts}
        words = re.findall(r"\w+", re.sub(r"\([^)]*\)", " ", name).casefold())
        self._name = {words[0], words[-1]} if words else set()
        self._occupations = {
            word
            for fact in facts
            for described in _IS_A.findall(fact)
            for word in re.findall(r"\w+", described.casefold())
        }

    def exactly(self, line: str) -> str | None:
        """The fact that a line is, with or without what decorates it."""
        forms = (line.strip(), re.sub(r"^[-*•]\s+", "", line.strip()), bare(line))
        return next((form for form in forms if normal(form) in self._normal), None)

    def is_fact(self, text: str) -> bool:
        """Whether a line is one of the facts, or one that the model changed."""
        key = normal(text)
        if key in self._normal:
            return True
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(key)
        for fact in self._normal:
            matcher.set_seq1(fact)
            if (
                matcher.real_quick_ratio() >= SIMILAR
                and matcher.quick_ratio() >= SIMILAR
                and matcher.ratio() >= SIMILAR
            ):
                return True
        return False

    def is_person(self, heading: str) -> bool:
        """Whether a heading is one of a person."""
        text = heading.casefold()
        words = set(re.findall(r"\w+", text))
        if _NUMBERED.search(heading) or _ONE_OF.search(heading) or (self._name and self._name <= words):
            return True
        if self._name & words and re.search(rf"\b{_ORDINAL}\b|[#(]", text):
            return True
        rest = words - {"the", "a", "an", "and", "facts", "about", "of"}
        return bool(rest) and rest <= self._occupations and not _THEME.search(heading)


# -------------------------------------------------------------------------------------------------- line by line


@dataclass
class _Segments:
    """Groups as they come: a rule begins a new one, a label that tells people apart goes back to its own."""

    def __post_init__(self) -> None:
        self._all: list[list[str]] = [[]]
        self._labelled: dict[str, list[str]] = {}
        self._open = self._all[0]

    def part(self) -> None:
        self._open = []
        self._all.append(self._open)

    def go_to(self, label: str) -> None:
        if label not in self._labelled:
            self.part()
            self._labelled[label] = self._open
        self._open = self._labelled[label]

    def add(self, text: str) -> None:
        self._open.append(text)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(group) for group in self._all if group)


def _from_lines(reply: str, known: _Known) -> Layout:
    segments = _Segments()
    lines = list(_lines(reply))
    # Where a reply is laid out by themes, dashes part these: only "===" is then known to part people.
    themed = any(_is_theme(line, known) for line in lines)
    unclear = pending = False  # a heading of unknown kind, with facts before it; and after it
    for line in lines:
        text = bare(line)
        if exact := known.exactly(line):
            unclear |= pending
            segments.add(exact)
        elif cells := _cells(line):
            _add_row(cells, segments, known)
        elif _is_rule(line):
            if not themed or "==" in line:
                segments.part()
        elif told := _labelled(text, known):
            segments.go_to(told[0])
            segments.add(told[1])
        elif known.is_fact(text):
            unclear |= pending
            segments.add(text)
        elif titled := _TITLED.match(text):
            _enter(titled["title"] or titled["other"], segments)
        elif _NEXT_TASK.match(text) and segments.groups:
            break  # the model goes on with a task of its own
        elif _ECHO.fullmatch(text.strip(" :*")):
            continue
        elif _seems_heading(line, text):
            if known.is_person(text):
                _enter(text, segments)
            elif not _is_theme(line, known):
                pending = bool(segments.groups)
        elif text:
            segments.add(text)
    return Layout(segments.groups, unclear and len(segments.groups) == 1)


def _lines(reply: str) -> Iterator[str]:
    for line in _FENCE.sub("", reply).replace("<hr>", "\n===\n").replace("<br>", "\n").splitlines():
        stripped = line.strip()
        if not stripped or re.fullmatch(r"\|?[\s:|-]*\|[\s:|-]*", stripped):
            continue
        if _TITLED.match(bare(stripped)) or _is_rule(stripped):
            yield stripped
            continue
        for number, part in enumerate(_INLINE.split(stripped)):
            if number:
                yield "==="
            yield part


def _is_rule(line: str) -> bool:
    """Whether a line is nothing but a rule, however it is decorated: ``2. ===``, ``"==="``, ``**---**``, ``* * *``."""
    text = re.sub(r"^\(?\d{1,3}[.):]\s+", "", _TAG.sub("", line).strip().lstrip(">").strip())
    text = re.sub(r"^[-*•]\s+(?=\S)", "", text) if not re.fullmatch(r"(?:[-*_]\s*){3,}", text) else text
    text = text.strip("\"'`“”«»()[]<>:,. ")
    text = re.sub(r"^\*\*(.*)\*\*$", r"\1", text).strip("\"'`“”«»()[]<>:,. ")
    return bool(_RULE.fullmatch(text) and _SAME.search(text))


def _labelled(text: str, known: _Known) -> tuple[str, str] | None:
    """(the person, the fact) of a line that has both."""
    found = _LABELLED.match(text)
    if found is None:
        return None
    label = found["label"] or found["label2"] or found["label3"]
    fact = bare(found["fact"] or found["fact2"] or found["fact3"])
    return (_key(label), fact) if known.is_fact(fact) else None


def _enter(heading: str, segments: _Segments) -> None:
    """Begin a person's group; a heading with a number or something in parentheses can come again, a bare name not."""
    told = _NUMBERED.match(heading)
    if told is not None:
        segments.go_to(_key(told.group()))
    elif re.search(r"\([^)]+\)|#\s*\d", heading):
        segments.go_to(_key(heading))
    else:
        segments.part()


def _is_theme(line: str, known: _Known) -> bool:
    """Whether a line is a heading of what is told, not of whom: "Early life:"."""
    text = bare(line)
    if not _seems_heading(line, text) or _ECHO.fullmatch(text.strip(" :*")):
        return False
    return _THEME.search(text) is not None and not known.is_fact(text) and not known.is_person(text)


def _key(label: str) -> str:
    return " ".join(re.findall(r"\w+", label.casefold()))


def _seems_heading(line: str, text: str) -> bool:
    words = text.split()
    if not words or len(words) > _MAX_WORDS:
        return False
    decorated = re.match(r"^(?:[-•\s\d.)>]*)(?:#{1,6}\s|\*\*|__|<[bh])", line) is not None
    ended = re.search(r"[.!?]$", text) and not _NUMBERED.fullmatch(text.rstrip("."))
    return text.endswith(":") or decorated or text.startswith("(") or not ended


# ------------------------------------------------------------------------------------------------ tables and JSON


def _cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table; none of any other line."""
    if line.count("|") < 2 or not line.startswith("|"):
        return []
    return [bare(cell) for cell in line.strip("|").split("|")]


def _add_row(cells: Sequence[str], segments: _Segments, known: _Known) -> None:
    facts = [(number, cell) for number, cell in enumerate(cells) if known.is_fact(cell)]
    labels = [cell for cell in cells if cell and not known.is_fact(cell) and not cell.isdecimal()]
    # One fact a row has its person beside it; several have theirs at the head of the column.
    for number, fact in facts:
        segments.go_to(_key(labels[0]) if labels and len(facts) == 1 else f"column {number}")
        segments.add(fact)


def _from_json(reply: str, known: _Known) -> Layout | None:
    """The groups of a reply that is JSON, or holds it between fences: lists, or facts with their person."""
    start = min((reply.find(one) for one in "[{" if one in reply), default=-1)
    end = max(reply.rfind("]"), reply.rfind("}"))
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(reply[start : end + 1])
    except ValueError:
        return None
    segments = _Segments()
    _walk(value, segments, known.is_fact)
    return Layout(segments.groups) if segments.groups else None


def _walk(value: Any, segments: _Segments, is_fact: Callable[[str], bool]) -> None:
    if isinstance(value, dict):
        texts = [one for one in value.values() if isinstance(one, str) and is_fact(one)]
        others = [one for one in value.values() if isinstance(one, str | int) and one not in texts]
        if len(texts) == 1 and others:  # {"fact": "He sang.", "person": 1}
            segments.go_to(f"value {others[0]}")
            segments.add(texts[0])
            return
        for key, inner in value.items():
            if is_fact(key) and isinstance(inner, str | int):  # {"He sang.": "Person 1"}
                segments.go_to(f"value {inner}")
                segments.add(key)
            else:
                _walk(inner, segments, is_fact)
    elif isinstance(value, list) and any(isinstance(one, str) for one in value):
        segments.part()
        for one in value:
            if isinstance(one, str) and _is_rule(one):
                segments.part()
            elif isinstance(one, str):
                segments.add(one)
    elif isinstance(value, list):
        for one in value:
            _walk(one, segments, is_fact)
