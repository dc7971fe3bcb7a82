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
MIN_FACT_SIMILARITY = 0.75
#: Headings are short.
_MAX_HEADING_WORDS = 14

_BULLET = re.compile(
    r"^(?:>\s*)*(?:[-*•‣▪–—·+]+\s+|[-•‣▪–—·]+(?=[^\W\d_]))?(?:\(?\d{1,3}[.):]\s+)?(?:[-*•‣▪–—·+]+\s+)?"
)
_RULE_CHARACTERS = re.compile(r"[=\-–—―⸻─━═_*~#+•·.\s]*")
_REPEATED_RULE_CHARACTER = re.compile(r"([=\-–—―─━═_*~#+])(?:\s*\1){2,}|⸻|==")
_TITLED_RULE = re.compile(
    r"^={2,}\s*(?P<title>[^=]+?)\s*=*$|^[-–—─━═*~#_]{3,}\s*(?P<other>\w[^=]*?)\s*[-–—─━═*~#_]{2,}$"
)
_INLINE_RULE = re.compile(r"(?<=[^\s=])\s*(?:[-*]\s+)?={3,}\s*(?:[-*]\s+)?(?=[^\s=])")
_TAG = re.compile(r"</?[A-Za-z][A-Za-z0-9]*\s*/?>")
_FENCE = re.compile(r"^\s*(?:```|~~~)\w*\s*$", re.MULTILINE)
_ECHOED_HEADING = re.compile(r"(?:facts|facts by person|grouped facts|output|answer|reply|result)", re.IGNORECASE)
_NEXT_TASK = re.compile(r"^paragraph\s*:", re.IGNORECASE)

_PERSON_WORDS = (
    r"(?:persons?|people|individuals?|biograph(?:y|ies)|bios?|groups?|entit(?:y|ies)|subjects?|figures?|namesakes?|"
    r"(?:wo)?m[ae]n|profiles?|identit(?:y|ies)|persona|someone)"
)
_NUMBER_WORDS = r"(?:\d{1,2}|[a-h]|[ivx]{1,4}|one|two|three|four|five|six|seven|eight)"
_ORDINAL_WORDS = (
    r"(?:first|second|third|fourth|fifth|sixth|last|next|other|another|different|new|separate|same[- ]named|"
    r"\d{1,2}(?:st|nd|rd|th))"
)
_NUMBERED_PERSON = re.compile(
    rf"^(?:facts (?:about|of|for) )?{_PERSON_WORDS}\s*(?:no\.?|number|n°)?\s*[#:(\[-]?\s*{_NUMBER_WORDS}\b",
    re.IGNORECASE,
)
_ORDINAL_PERSON = re.compile(rf"\b{_ORDINAL_WORDS}\b.{{0,60}}\b{_PERSON_WORDS}\b", re.IGNORECASE)
_PERSON_LABEL = rf"(?:{_PERSON_WORDS}\s*#?\s*{_NUMBER_WORDS}|p{_NUMBER_WORDS}|{_ORDINAL_WORDS} {_PERSON_WORDS})"
_LABELLED_FACT = re.compile(
    rf"^[\[(*_]*(?P<label>{_PERSON_LABEL})(?:\s*\([^)]*\))?[\])*_]*\s*[:|,\-–—\])]+[*_]*\s*(?P<fact>\S.*)$"
    rf"|^[\[(]+(?P<label2>{_PERSON_LABEL})[\])]+\s*(?P<fact2>\S.*)$"
    rf"|^(?P<fact3>.*\S)\s*[\[(→|]+\s*(?P<label3>{_PERSON_LABEL})\s*[\])|]*$",
    re.IGNORECASE,
)
_THEME_WORDS = re.compile(
    r"\b(?:life|career|education|birth|death|family|background|legacy|works?|awards?|honou?rs?|achievements?|personal|"
    r"professional|early|later|years|childhood|marriage|publications?|recognition|overview|summary|introduction|notes?|"
    r"other|additional|facts|information|details|politics|military|service|contributions?|occupation|nationality|"
    r"notable|discography|filmography|philanthropy|retirement|basic|general|continued)\b",
    re.IGNORECASE,
)
_OCCUPATION = re.compile(r"\b(?:is|was|as) (?:an?|the) ([^.,;()]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FactGroupReplyLayout:
    """The lines of each group that has any. is_doubtful: headings seem to be there that part nothing."""

    groups: tuple[tuple[str, ...], ...]
    is_doubtful: bool = False


def parse_fact_group_reply_layout(reply: str, facts: Sequence[str], name: str = "") -> FactGroupReplyLayout:
    """The groups of a reply, whatever its layout.

    facts: those that were to be grouped. name: of the people whom the paragraph may tell of.

    >>> parse_fact_group_reply_layout("1. He sang.\\n2. ===\\n3. He swam.", ["He sang.", "He swam."]).groups
    (('He sang.',), ('He swam.',))
    """
    known = _ReplyLayoutFactRecogniser(facts, name)
    text = unicodedata.normalize("NFKC", reply).replace("\\=", "=").replace("\\-", "-").replace("\\*", "*")
    found = _parse_json_reply_layout(text, known)
    return found if found is not None else _parse_reply_layout_lines(text, known)


def normalise_fact(text: str) -> str:
    """What equal facts have in common: white space, case and closing punctuation apart."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;,")


def compute_fact_to_line_similarity(matcher: SequenceMatcher[str]) -> float:
    """The similarity of a matcher's two texts, in [`MIN_FACT_SIMILARITY`, 1]; 0 below, where it is seldom computed."""
    for bound in (matcher.real_quick_ratio, matcher.quick_ratio):  # quicker by far, and never less than the ratio
        if bound() < MIN_FACT_SIMILARITY:
            return 0.0
    similarity = matcher.ratio()
    return similarity if similarity >= MIN_FACT_SIMILARITY else 0.0


def remove_reply_layout_markup(line: str) -> str:
    """A line without bullets, numbers, quotes, emphasis and tags.

    >>> remove_reply_layout_markup('- 2) **"He sang."**')
    'He sang.'
    """
    text = _TAG.sub("", line).strip()
    text = _BULLET.sub("", re.sub(r"^#{1,6}\s*", "", text), count=1).strip()
    while len(text) > 1 and (pair := _QUOTE_PAIRS.get(text[0])) and text.endswith(pair) and text[1:-1].strip():
        text = text[1:-1].strip()
    return re.sub(r"^(\*\*|__)(.+?)\1", r"\2", text).strip("*_` ")


_QUOTE_PAIRS = {"*": "*", "_": "_", "`": "`", '"': '"', "'": "'", "“": "”", "«": "»", "~": "~"}


class _ReplyLayoutFactRecogniser:
    """The facts and the name: what a line may be."""

    def __init__(self, facts: Sequence[str], name: str) -> None:
        self._normal = {normalise_fact(fact) for fact in facts}
        words = re.findall(r"\w+", re.sub(r"\([^)]*\)", " ", name).casefold())
        self._name = {words[0], words[-1]} if words else set()
        self._occupations = {
            word
            for fact in facts
            for described in _OCCUPATION.findall(fact)
            for word in re.findall(r"\w+", described.casefold())
        }

    def find_exact_fact(self, line: str) -> str | None:
        """The fact that a line is, with or without what decorates it."""
        forms = (line.strip(), re.sub(r"^[-*•]\s+", "", line.strip()), remove_reply_layout_markup(line))
        return next((form for form in forms if normalise_fact(form) in self._normal), None)

    def is_fact(self, text: str) -> bool:
        """Whether a line is one of the facts, or one that the model changed."""
        key = normalise_fact(text)
        if key in self._normal:
            return True
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(key)
        for fact in self._normal:
            matcher.set_seq1(fact)
            if compute_fact_to_line_similarity(matcher):
                return True
        return False

    def is_person(self, heading: str) -> bool:
        """Whether a heading is one of a person."""
        text = heading.casefold()
        words = set(re.findall(r"\w+", text))
        if _NUMBERED_PERSON.search(heading) or _ORDINAL_PERSON.search(heading) or (self._name and self._name <= words):
            return True
        if self._name & words and re.search(rf"\b{_ORDINAL_WORDS}\b|[#(]", text):
            return True
        rest = words - {"the", "a", "an", "and", "facts", "about", "of"}
        return bool(rest) and rest <= self._occupations and not _THEME_WORDS.search(heading)


# -------------------------------------------------------------------------------------------------- line by line


@dataclass
class _ReplyLayoutGroupBuilder:
    """Groups as they come: a rule begins a new one, a label that tells people apart goes back to its own."""

    def __post_init__(self) -> None:
        self._all: list[list[str]] = [[]]
        self._labelled: dict[str, list[str]] = {}
        self._open = self._all[0]

    def begin_group(self) -> None:
        self._open = []
        self._all.append(self._open)

    def open_labelled_group(self, label: str) -> None:
        if label not in self._labelled:
            self.begin_group()
            self._labelled[label] = self._open
        self._open = self._labelled[label]

    def add_fact(self, text: str) -> None:
        self._open.append(text)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(group) for group in self._all if group)


def _parse_reply_layout_lines(reply: str, recogniser: _ReplyLayoutFactRecogniser) -> FactGroupReplyLayout:
    segments = _ReplyLayoutGroupBuilder()
    lines = list(_split_reply_layout_lines(reply))
    # Where a reply is laid out by themes, dashes part these: only "===" is then known to part people.
    themed = any(_is_topic_heading_in_reply(line, recogniser) for line in lines)
    unclear = pending = False  # a heading of unknown kind, with facts before it; and after it
    for line in lines:
        text = remove_reply_layout_markup(line)
        if exact := recogniser.find_exact_fact(line):
            unclear |= pending
            segments.add_fact(exact)
        elif cells := _split_reply_layout_cells(line):
            _add_facts_of_reply_table_row(cells, segments, recogniser)
        elif _is_reply_layout_separator(line):
            if not themed or "==" in line:
                segments.begin_group()
        elif told := _parse_reply_layout_fact(text, recogniser):
            segments.open_labelled_group(told[0])
            segments.add_fact(told[1])
        elif recogniser.is_fact(text):
            unclear |= pending
            segments.add_fact(text)
        elif titled := _TITLED_RULE.match(text):
            _open_reply_layout_group(titled["title"] or titled["other"], segments)
        elif _NEXT_TASK.match(text) and segments.groups:
            break  # the model goes on with a task of its own
        elif _ECHOED_HEADING.fullmatch(text.strip(" :*")):
            continue
        elif _is_reply_layout_heading(line, text):
            if recogniser.is_person(text):
                _open_reply_layout_group(text, segments)
            elif not _is_topic_heading_in_reply(line, recogniser):
                pending = bool(segments.groups)
        elif text:
            segments.add_fact(text)
    return FactGroupReplyLayout(segments.groups, unclear and len(segments.groups) == 1)


def _split_reply_layout_lines(reply: str) -> Iterator[str]:
    for line in _FENCE.sub("", reply).replace("<hr>", "\n===\n").replace("<br>", "\n").splitlines():
        stripped = line.strip()
        if not stripped or re.fullmatch(r"\|?[\s:|-]*\|[\s:|-]*", stripped):
            continue
        if _TITLED_RULE.match(remove_reply_layout_markup(stripped)) or _is_reply_layout_separator(stripped):
            yield stripped
            continue
        for number, part in enumerate(_INLINE_RULE.split(stripped)):
            if number:
                yield "==="
            yield part


def _is_reply_layout_separator(line: str) -> bool:
    """Whether a line is nothing but a rule, however it is decorated: ``2. ===``, ``"==="``, ``**---**``, ``* * *``."""
    text = re.sub(r"^\(?\d{1,3}[.):]\s+", "", _TAG.sub("", line).strip().lstrip(">").strip())
    text = re.sub(r"^[-*•]\s+(?=\S)", "", text) if not re.fullmatch(r"(?:[-*_]\s*){3,}", text) else text
    text = text.strip("\"'`“”«»()[]<>:,. ")
    text = re.sub(r"^\*\*(.*)\*\*$", r"\1", text).strip("\"'`“”«»()[]<>:,. ")
    return bool(_RULE_CHARACTERS.fullmatch(text) and _REPEATED_RULE_CHARACTER.search(text))


def _parse_reply_layout_fact(text: str, recogniser: _ReplyLayoutFactRecogniser) -> tuple[str, str] | None:
    """(the person, the fact) of a line that has both."""
    found = _LABELLED_FACT.match(text)
    if found is None:
        return None
    label = found["label"] or found["label2"] or found["label3"]
    fact = remove_reply_layout_markup(found["fact"] or found["fact2"] or found["fact3"])
    return (_normalise_person_label(label), fact) if recogniser.is_fact(fact) else None


def _open_reply_layout_group(heading: str, group_builder: _ReplyLayoutGroupBuilder) -> None:
    """Begin a person's group; a heading with a number or something in parentheses can come again, a bare name not."""
    told = _NUMBERED_PERSON.match(heading)
    if told is not None:
        group_builder.open_labelled_group(_normalise_person_label(told.group()))
    elif re.search(r"\([^)]+\)|#\s*\d", heading):
        group_builder.open_labelled_group(_normalise_person_label(heading))
    else:
        group_builder.begin_group()


def _is_topic_heading_in_reply(line: str, recogniser: _ReplyLayoutFactRecogniser) -> bool:
    """Whether a line is a heading of what is told, not of whom: "Early life:"."""
    text = remove_reply_layout_markup(line)
    if not _is_reply_layout_heading(line, text) or _ECHOED_HEADING.fullmatch(text.strip(" :*")):
        return False
    return _THEME_WORDS.search(text) is not None and not recogniser.is_fact(text) and not recogniser.is_person(text)


def _normalise_person_label(label: str) -> str:
    return " ".join(re.findall(r"\w+", label.casefold()))


def _is_reply_layout_heading(line: str, text: str) -> bool:
    words = text.split()
    if not words or len(words) > _MAX_HEADING_WORDS:
        return False
    decorated = re.match(r"^(?:[-•\s\d.)>]*)(?:#{1,6}\s|\*\*|__|<[bh])", line) is not None
    ended = re.search(r"[.!?]$", text) and not _NUMBERED_PERSON.fullmatch(text.rstrip("."))
    return text.endswith(":") or decorated or text.startswith("(") or not ended


# ------------------------------------------------------------------------------------------------ tables and JSON


def _split_reply_layout_cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table; none of any other line."""
    if line.count("|") < 2 or not line.startswith("|"):
        return []
    return [remove_reply_layout_markup(cell) for cell in line.strip("|").split("|")]


def _add_facts_of_reply_table_row(
    cells: Sequence[str], group_builder: _ReplyLayoutGroupBuilder, recogniser: _ReplyLayoutFactRecogniser
) -> None:
    facts = [(number, cell) for number, cell in enumerate(cells) if recogniser.is_fact(cell)]
    labels = [cell for cell in cells if cell and not recogniser.is_fact(cell) and not cell.isdecimal()]
    # One fact a row has its person beside it; several have theirs at the head of the column.
    for number, fact in facts:
        group_builder.open_labelled_group(
            _normalise_person_label(labels[0]) if labels and len(facts) == 1 else f"column {number}"
        )
        group_builder.add_fact(fact)


def _parse_json_reply_layout(reply: str, recogniser: _ReplyLayoutFactRecogniser) -> FactGroupReplyLayout | None:
    """The groups of a reply that is JSON, or holds it between fences: lists, or facts with their person."""
    start = min((reply.find(one) for one in "[{" if one in reply), default=-1)
    end = max(reply.rfind("]"), reply.rfind("}"))
    if start < 0 or end < start:
        return None
    try:
        value = json.loads(reply[start : end + 1])
    except ValueError:
        return None
    segments = _ReplyLayoutGroupBuilder()
    _collect_reply_layout_json_groups(value, segments, recogniser.is_fact)
    return FactGroupReplyLayout(segments.groups) if segments.groups else None


def _collect_reply_layout_json_groups(
    value: Any, group_builder: _ReplyLayoutGroupBuilder, is_fact: Callable[[str], bool]
) -> None:
    if isinstance(value, dict):
        texts = [one for one in value.values() if isinstance(one, str) and is_fact(one)]
        others = [one for one in value.values() if isinstance(one, str | int) and one not in texts]
        if len(texts) == 1 and others:  # {"fact": "He sang.", "person": 1}
            group_builder.open_labelled_group(f"value {others[0]}")
            group_builder.add_fact(texts[0])
            return
        for key, inner in value.items():
            if is_fact(key) and isinstance(inner, str | int):  # {"He sang.": "Person 1"}
                group_builder.open_labelled_group(f"value {inner}")
                group_builder.add_fact(key)
            else:
                _collect_reply_layout_json_groups(inner, group_builder, is_fact)
    elif isinstance(value, list) and any(isinstance(one, str) for one in value):
        group_builder.begin_group()
        for one in value:
            if isinstance(one, str) and _is_reply_layout_separator(one):
                group_builder.begin_group()
            elif isinstance(one, str):
                group_builder.add_fact(one)
    elif isinstance(value, list):
        for one in value:
            _collect_reply_layout_json_groups(one, group_builder, is_fact)
