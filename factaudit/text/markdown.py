"""Which lines of a response are text, and which only lay it out?

A list item, a quotation and a row of a table are text, without their marks. A heading, a rule, a table's head, a fenced
block and a bare link state nothing. Plain text is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([\w+#.-]*)\s*.*$")
#: A fence around prose, not around code.
_PROSE_FENCES = frozenset({"markdown", "md", "text", "txt", "plaintext", "plain"})
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
    n_numbered = sum(_NUMBER.match(line) is not None for line in lines)
    found = list(_read_lines(lines, n_numbered > 1))
    if lines and not any(line.is_text for line in found) and _FENCE.match(lines[0]):
        # All of the response stands in a fence.
        inner = [line for line in lines if not _FENCE.match(line)]
        return [ResponseLine(line.strip(), not _says_nothing(line)) for line in inner]
    return found


def _read_lines(lines: list[str], has_numbered_list: bool) -> Iterator[ResponseLine]:
    fence: str | None = None
    heads: list[str] | None = None
    for number, line in enumerate(lines):
        after = lines[number + 1] if number + 1 < len(lines) else ""
        mark = _FENCE.match(line)
        if fence is not None:
            if mark and mark[1].startswith(fence) and not mark[2]:
                fence = None
            yield ResponseLine(line, False)
        elif mark:
            closes = any(line.strip().startswith(mark[1]) for line in lines[number + 1 :])
            if mark[2].lower() not in _PROSE_FENCES and (closes or mark[2]):
                fence = mark[1]
            yield ResponseLine(line, False)
        elif "|" in line and "|" in after and _TABLE_RULE.match(after):
            heads = _split_cells(line)
            yield ResponseLine(line, False)
        elif _TABLE_RULE.match(line) and "|" in line:
            yield ResponseLine(line, False)
        elif "|" in line and (heads is not None or line.strip().startswith("|")):
            row = _make_row_text(_split_cells(line), heads)
            yield ResponseLine(row or line, bool(row))
        else:
            heads = None
            yield _read_line(line, after, has_numbered_list)


def _read_line(line: str, after: str, has_numbered_list: bool) -> ResponseLine:
    bare = _QUOTE.sub("", line)
    is_underlined = _UNDERLINE.match(after) and not bare.strip().endswith(_SENTENCE_END) and not _BULLET.match(bare)
    bold = _BOLD_LINE.match(bare.strip()) and not bare.strip().strip("*_:").endswith(_SENTENCE_END)
    if _HEADING.match(bare) or is_underlined or bold or _says_nothing(bare):
        return ResponseLine(line, False)
    item = _BULLET.sub("", bare, count=1)
    if has_numbered_list or item != bare:
        item = _NUMBER.sub("", item, count=1) if has_numbered_list else item
    text = remove_inline_marks(item)
    return ResponseLine(text, bool(text))


def _says_nothing(line: str) -> bool:
    return not re.search(r"[^\W_]", line) or _BARE_LINK.match(line) is not None


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


def _make_row_text(cells: list[str], heads: list[str] | None) -> str:
    """A row as a line of text: "Born: 1981." of two columns, else each cell after its column's name."""
    heads = heads or []
    if len(cells) == 2 and (not any(heads) or {head.lower() for head in heads} & _GENERAL_HEADS):
        told = ": ".join(cell for cell in cells if cell)
    else:
        names = [*heads, *[""] * len(cells)]
        told = "; ".join(f"{name}: {cell}" if name else cell for name, cell in zip(names, cells, strict=False) if cell)
    return told if not told or told.endswith(_SENTENCE_END) else f"{told}."
