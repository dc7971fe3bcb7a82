"""Which lines of a response are text, and which only lay it out?

A list item, a quotation and a row of a table are text, without their marks. A heading, a rule, a
table's head, a fenced block and a bare link state nothing. Plain text is left as it is.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})\s*[\w+#.-]*\s*$")
_BOLD_LINE = re.compile(r"^(?:\*\*|__)(?!\s)(?:(?!\*\*|__).)+(?:\*\*|__):?$")
_TABLE_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?\s*$")
_BULLET = re.compile(r"^\s*[-*+•‣▪◦●–—]\s+(?:\[[ xX]\]\s+)?")
_NUMBER = re.compile(r"^\s*\(?(\d{1,3})[.)]\s+")
_QUOTE = re.compile(r"^\s*(?:>\s?)+")
#: A heading, a rule, or a link alone.
_LAYOUT = re.compile(
    r"^#{1,6}(?:\s|$)|^[\W_]*$|^\W*(?:\[\^?\w+\]:?\s*)?<?https?://\S+$|^\s*!\[[^\]]*\]\([^)]*\)\s*$"
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


def split_markdown_lines(text: str) -> list[str | None]:
    """The lines of a text that are not blank, in order and without their marks; None for a line
    that only lays the text out.

    >>> split_markdown_lines("# Ada\\n- **Born:** 1902")
    [None, 'Born: 1902']
    """
    lines = [line for line in text.split("\n") if line.strip()]
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    fenced = set(fences)
    if fences != [0, len(lines) - 1]:  # else all of the response stands in a fence
        for start, end in zip(fences[::2], fences[1::2], strict=False):
            fenced.update(range(start, end))
    has_numbered_list = sum(_NUMBER.match(line) is not None for line in lines) > 1
    has_table = any(_TABLE_RULE.match(line) for line in lines)
    found: list[str | None] = []
    for number, line in enumerate(lines):
        bare = _QUOTE.sub("", line).strip()
        is_head = has_table and any(_TABLE_RULE.match(one) for one in lines[number : number + 2])
        is_title = _BOLD_LINE.match(bare) and not bare.strip("*_: ").endswith(_SENTENCE_END)
        if number in fenced or is_head or is_title or _LAYOUT.match(bare):
            found.append(None)
        elif has_table and "|" in bare.strip("|"):
            marked = re.split(r"(?<!\\)\|", bare.strip("|"))
            cells = [cell for cell in map(remove_inline_marks, marked) if cell]
            row = (": " if len(marked) == 2 else "; ").join(cells)
            found.append(row if row.endswith(_SENTENCE_END) else f"{row}.")
        else:
            item = _BULLET.sub("", bare, count=1)
            item = _NUMBER.sub("", item, count=1) if has_numbered_list else item
            found.append(remove_inline_marks(item))
    return found


def remove_inline_marks(text: str) -> str:
    """A line without emphasis, links' addresses and tags.

    >>> remove_inline_marks("**Ada** wrote [a _book_](https://example.org).")
    'Ada wrote a book.'
    """
    text = _LINK.sub(r"\1", _TAG.sub("", text))
    for pattern in _EMPHASES:
        text = pattern.sub(r"\1", text)
    return text.strip()
