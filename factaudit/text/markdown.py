"""Which lines of a response are text, and which only lay it out?

A list item, a quotation and a row of a table are text, without their marks. A heading, a rule, a table's head, a fenced
block and a bare link state nothing. Plain text is left as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*[\w+#.-]*\s*$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}(?:\s|$)|^\s*<h[1-6]\b", re.IGNORECASE)
_BOLD_LINE = re.compile(r"^(?:\*\*|__)(?!\s)(?:(?!\*\*|__).)+(?:\*\*|__):?$")
_UNDERLINE = re.compile(r"^\s{0,3}(?:=+|-{2,})\s*$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_BULLET = re.compile(r"^\s*[-*+•‣▪◦●–—]\s+(?:\[[ xX]\]\s+)?")
_NUMBER = re.compile(r"^\s*\(?(\d{1,3})[.)]\s+")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
_BARE_LINK = re.compile(r"^\W*(?:\[\^?\w+\]:?\s*)?<?https?://\S+$|^\s*!\[[^\]]*\]\([^)]*\)\s*$")
_INLINE_TAG = re.compile(r"</?(?:b|i|u|em|strong|span|sup|sub|code)\b[^<>]*>", re.IGNORECASE)
_BLOCK_TAG = re.compile(
    r"</?(?:br|p|ul|ol|li|div|h[1-6]|table|thead|tbody|tr|td|th|blockquote)\b[^<>]*>", re.IGNORECASE
)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_EMPHASES = tuple(
    re.compile(rf"(?<![\w{mark[-1]}]){mark}(?=[^\s{mark[-1]}])(.+?)(?<=[^\s{mark[-1]}]){mark}(?![\w{mark[-1]}])")
    for mark in (r"\*\*\*", r"\*\*", "__", r"\*", "_", "`")
)
_SENTENCE_END = (".", "!", "?", "。", "！", "？", '."', ".”", ".)")
#: Heads of two columns that say nothing of a row: "Born | 1981" is then "Born: 1981".
_GENERAL_HEADS = frozenset(
    {"", "attribute", "category", "detail", "details", "fact", "field", "information", "item", "property", "value"}
)


@dataclass(frozen=True, slots=True)
class ResponseLine:
    """A line of a response without its marks. is_text: it can state something."""

    text: str
    is_text: bool = True


def split_markdown_lines(text: str) -> list[ResponseLine]:
    """The lines of a text that aren't blank, in order.

    >>> [line.text for line in split_markdown_lines("# Ada\\n- **Born:** 1902") if line.is_text]
    ['Born: 1902']
    """
    lines = [line for line in text.split("\n") if line.strip()]
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    is_layout = set(fences)
    if fences != [0, len(lines) - 1]:  # else all of the response stands in a fence
        for start, end in zip(fences[::2], fences[1::2], strict=False):
            is_layout.update(range(start, end))
    has_numbered_list = sum(_NUMBER.match(line) is not None for line in lines) > 1
    found, heads = [], list[str]()
    for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        if "|" not in line:
            heads = []
        if number in is_layout or (_TABLE_RULE.match(line) and "|" in line):
            found.append(ResponseLine(line, False))
        elif "|" in line and "|" in after and _TABLE_RULE.match(after):
            heads = _split_cells(line)
            found.append(ResponseLine(line, False))
        elif heads or line.strip().startswith("|"):
            found.append(ResponseLine(_make_row_text(_split_cells(line), heads)))
        else:
            found.append(_read_line(line, after, has_numbered_list))
    return found


def _read_line(line: str, after: str, has_numbered_list: bool) -> ResponseLine:
    bare = _QUOTE.sub("", line).strip()
    is_sentence = bare.strip("*_: ").endswith(_SENTENCE_END) or _BULLET.match(bare)
    is_heading = _HEADING.match(bare) or (not is_sentence and (_UNDERLINE.match(after) or _BOLD_LINE.match(bare)))
    if is_heading or _BARE_LINK.match(bare) or not re.search(r"[^\W_]", bare):
        return ResponseLine(line, False)
    item = _BULLET.sub("", bare, count=1)
    if has_numbered_list:
        item = _NUMBER.sub("", item, count=1)
    return ResponseLine(remove_inline_marks(item))


def remove_inline_marks(text: str) -> str:
    """A line without emphasis, links' addresses and tags.

    >>> remove_inline_marks("**Ada** wrote [a _book_](https://example.org).")
    'Ada wrote a book.'
    """
    text = _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", text)) if "<" in text else text
    text = _LINK.sub(r"\1", text) if "](" in text else text
    for pattern in _EMPHASES:
        text = pattern.sub(r"\1", text)
    return text.strip()


def _split_cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|").removesuffix("|")
    return [remove_inline_marks(cell) for cell in re.split(r"(?<!\\)\|", bare)]


def _make_row_text(cells: list[str], heads: list[str]) -> str:
    """A row as a line of text: "Born: 1981." of two columns, else each cell after its column's name."""
    if len(cells) == 2 and (not any(heads) or {head.lower() for head in heads} & _GENERAL_HEADS):
        told = ": ".join(filter(None, cells))
    else:
        named = zip([*heads, *[""] * len(cells)], cells, strict=False)
        told = "; ".join(f"{name}: {cell}".removeprefix(": ") for name, cell in named if cell)
    return told if told.endswith(_SENTENCE_END) else f"{told}."
