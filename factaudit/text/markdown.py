"""Which lines of a response are text, and which only lay it out?

A list item, a quotation and a row of a table are text, without their marks. A heading, a rule, a
table's head, a fenced block and a bare link state nothing. Plain text is left as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*[\w+#.-]*\s*$")
_HEADING = re.compile(r"^\s{0,3}#{1,6}(?:\s|$)")
_BOLD_LINE = re.compile(r"^(?:\*\*|__)(?!\s)(?:(?!\*\*|__).)+(?:\*\*|__):?$")
_UNDERLINE = re.compile(r"^\s{0,3}(?:=+|-{2,})\s*$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$")
_BULLET = re.compile(r"^\s*[-*+•‣▪◦●–—]\s+(?:\[[ xX]\]\s+)?")
_NUMBER = re.compile(r"^\s*\(?(\d{1,3})[.)]\s+")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
_NOTHING = re.compile(
    r"^[\W_]*$|^\W*(?:\[\^?\w+\]:?\s*)?<?https?://\S+$|^\s*!\[[^\]]*\]\([^)]*\)\s*$"
)
_TAG = re.compile(r"</?(?:br|p|ul|ol|li|div|b|i|em|strong|span|sup|sub)\b[^<>]*>", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
_EMPHASES = tuple(
    re.compile(
        rf"(?<![\w{mark[-1]}]){mark}(?=[^\s{mark[-1]}])(.+?)(?<=[^\s{mark[-1]}]){mark}(?![\w{mark[-1]}])"
    )
    for mark in (r"\*\*\*", r"\*\*", "__", r"\*", "_", "`")
)
_SENTENCE_END = (".", "!", "?", "。", "！", "？", '."', ".”", ".)")


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
    has_table = any(_TABLE_RULE.match(line) for line in lines)
    found = []
    for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        cells = [
            remove_inline_marks(cell) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))
        ]
        is_row = has_table and len(cells) > 1
        is_head = is_row and (_TABLE_RULE.match(after) or _TABLE_RULE.match(line))
        if number in is_layout or is_head or _is_layout(line, after):
            found.append(ResponseLine(line, False))
        elif is_row:
            text = (": " if len(cells) == 2 else "; ").join(filter(None, cells))
            found.append(ResponseLine(text if text.endswith(_SENTENCE_END) else f"{text}."))
        else:
            item = _BULLET.sub("", _QUOTE.sub("", line).strip(), count=1)
            item = _NUMBER.sub("", item, count=1) if has_numbered_list else item
            found.append(ResponseLine(remove_inline_marks(item)))
    return found


def _is_layout(line: str, after: str) -> bool:
    """Whether a line is a heading, a rule or a link alone."""
    bare = _QUOTE.sub("", line).strip()
    is_sentence = bare.strip("*_: ").endswith(_SENTENCE_END) or _BULLET.match(bare)
    is_title = not is_sentence and (_UNDERLINE.match(after) or _BOLD_LINE.match(bare))
    return bool(is_title or _HEADING.match(bare) or _NOTHING.match(bare))


def remove_inline_marks(text: str) -> str:
    """A line without emphasis, links' addresses and tags.

    >>> remove_inline_marks("**Ada** wrote [a _book_](https://example.org).")
    'Ada wrote a book.'
    """
    text = _LINK.sub(r"\1", _TAG.sub("", text))
    for pattern in _EMPHASES:
        text = pattern.sub(r"\1", text)
    return text.strip()
