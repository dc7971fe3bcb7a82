"""Reads the cells of judgements as people and judges write them: numbers with a decimal comma,
percentages, fractions, replies, and blanks."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pandas as pd

from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.unreadable_rows import MAX_UNREADABLE_SHARE
from factaudit.tables.vocabulary import is_blank_cell, parse_label_word
from factaudit.text.stated_verdicts import read_stated_verdict, strip_thoughts

_FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+)")
#: The error of a mean behind it: ``0.62 ± 0.05``, ``0.62 (0.05)``.
_SPREAD = re.compile(r"\s*(±|\+/?-)\s*[\d.,]+%?$|\s*\([\d.,]+\)$")
#: A verdict in a tag, in a box of LaTeX, in double brackets.
_MARKED_WORDS = re.compile(
    r"<(?:answer|verdict|label|judge?ment|conclusion|decision|result|rating|final|output)>\s*([^<>]{1,60}?)\s*</"
    r"|\\boxed\{(?:\\text\{)?\s*([^{}]{1,60}?)\s*\}|\[\[\s*([^\[\]]{1,60}?)\s*\]\]",
    re.IGNORECASE,
)
#: Words in bold of Markdown.
_BOLD_WORDS = re.compile(r"\*\*\s*([^*\n]{1,40}?)[\s.:]*\*\*")
#: Of a longer reply, only so many characters at its beginning and end are read.
_MAX_REPLY_PART = 400
#: At least three words, or two in a script without blanks. A shorter text is a word of its own.
_SEVERAL_WORDS = re.compile(r"\w\W+\w+\W+\w|[。，、！：；]\s*\w|[<{\[*]\W*\w")
_FAILED_CALL = re.compile(r"\W*error\b", re.IGNORECASE)
#: A judge's reply that is a number after its name or in brackets: ``Rating: [[8]]``.
_NAMED_NUMBER = re.compile(
    r"(?:[^\W\d]+(?: [^\W\d]+){0,2}\s*[:=]\s*)?\[{0,2}([^\[\]\w]*\d[^\[\]]{0,40}?)\]{0,2}\.?"
)
#: A number out of another in a reply: ``Score: 4/5 – mostly right``, ``I would give 2/10``.
_SCORE_OUT_OF = re.compile(
    r"(?:\W*(?:final |overall )?(?:score|rating|grade|note|bewertung|puntuación|评分|得分)\W{1,4}"
    r"(\d+(?:\.\d+)?\s*/\s*\d+)\b.*"
    r"|[^\d/]{0,60}?(\d+(?:\.\d+)?\s*/\s*\d+)\W*)",
    re.IGNORECASE | re.DOTALL,
)
#: A text as Python prints it, and a list of such texts as NumPy prints it, without commas between
#: them.
_PYTHON_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_NUMPY_TEXTS = re.compile(
    rf"\[\s*(?:{_PYTHON_TEXT.pattern})(?:\s*(?:{_PYTHON_TEXT.pattern}))+\s*\]", re.DOTALL
)
_PRINTED_ARRAY = re.compile(
    r"(?:np\.|numpy\.)?(?:array|list)\((\[.*\])(?:,\s*dtype=[^)\]]*)?\)", re.DOTALL
)
_INNER_ARRAY = re.compile(r"\b(?:np\.|numpy\.)?array\((\[[^\[\]]*\])(?:,\s*dtype=[^)\]]*)?\)")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")


def has_no_value(cell: Any) -> bool:
    """Whether a cell says nothing: it is missing, white space, or ``n/a``."""
    return is_missing_value(cell) or is_blank_cell(cell)


def parse_printed_value(text: str) -> Any:
    r"""The value of a cell that holds JSON, Python's print of a value, or NumPy's print of a list
    of texts; None for any other text.

    >>> tuple(map(parse_printed_value, ('["a", 1]', "{'a': None}", "['a'\n 'b c']")))
    (['a', 1], {'a': None}, ['a', 'b c'])
    >>> parse_printed_value("array(['a', 'b'], dtype=object)"), parse_printed_value("['a' ... 'b']")
    (['a', 'b'], None)
    """
    text = text.strip()
    if wrapped := _PRINTED_ARRAY.fullmatch(text):
        text = wrapped[1]
    if _NUMPY_TEXTS.fullmatch(text):  # Python would join texts without a comma between them to one
        return [ast.literal_eval(one) for one in _PYTHON_TEXT.findall(text)]
    text = _INNER_ARRAY.sub(r"\1", text)
    for parse in (json.loads, ast.literal_eval):
        try:
            return parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


def find_verdict_in_reply(text: Any) -> str | None:
    """The verdict in a judge's reply, in its own words (`factaudit.text.stated_verdicts`). None if
    the reply states none or contradicts itself, if the text is a single word, or if a call failed.

    >>> find_verdict_in_reply("No, the year differs.")
    'No'
    >>> find_verdict_in_reply("I think so. Verdict: NOT SUPPORTED")
    'NOT SUPPORTED'
    """
    text = strip_thoughts(str(text))
    if len(text) > 2 * _MAX_REPLY_PART:
        text = f"{text[:_MAX_REPLY_PART]}\n{text[-_MAX_REPLY_PART:]}"
    if not _SEVERAL_WORDS.search(text) or _FAILED_CALL.match(text):
        return None
    text = _MARKED_WORDS.sub(_name_answer, text)
    verdict = read_stated_verdict(text, parse_label_word) or read_stated_verdict(
        _BOLD_WORDS.sub(_name_answer, text), parse_label_word
    )
    return None if verdict is None else verdict.words


def _name_answer(marked: re.Match[str]) -> str:
    return f"\n(Answer: {next(filter(None, marked.groups()))}) "


def is_number_text(text: Any) -> bool:
    """Whether a cell is a plain number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


def parse_judgement_numbers(values: pd.Series) -> pd.Series:
    """The cells of a column as numbers (float64), NaN for cells without one: ``95%`` is 0.95,
    ``4/5`` is 0.8, ``<0.01`` is 0.01.

    A comma is a decimal comma unless all commas may separate thousands (``1,234``); such a cell is
    no number. A few -1 beside scores from 0 to 1 come from failed calls and are NaN.

    >>> parse_judgement_numbers(pd.Series(["3,5", "4"])).tolist()
    [3.5, 4.0]
    >>> parse_judgement_numbers(pd.Series(["0,125", "0,250"])).tolist()
    [0.125, 0.25]
    >>> parse_judgement_numbers(pd.Series(["1,250", "4"])).tolist()
    [nan, 4.0]
    """
    numbers = _parse_all_numbers(values)
    failed = numbers == -1
    if 0 < failed.sum() <= MAX_UNREADABLE_SHARE * len(numbers):
        scores = numbers[~failed].dropna()
        if scores.between(0, 1).all() and ((scores > 0) & (scores < 1)).any():
            return numbers.mask(failed)
    return numbers


def _parse_all_numbers(values: pd.Series) -> pd.Series:
    if values.dtype != object and not isinstance(
        values.dtype, pd.StringDtype | pd.CategoricalDtype
    ):
        return pd.to_numeric(values, errors="coerce").astype("float64")
    try:
        found = pd.to_numeric(values, errors="coerce").astype("float64")
    except OverflowError:  # an integer beyond the range of floats
        found = pd.to_numeric(values.astype("str"), errors="coerce").astype("float64")
    texts = {at: text.strip() for at, text in enumerate(values.tolist()) if isinstance(text, str)}
    is_open = found.isna().to_numpy()
    texts = {at: text for at, text in texts.items() if text and is_open[at]}
    if not texts:
        return found
    commas = [text for text in texts.values() if _DECIMAL_COMMA.fullmatch(text.rstrip("% "))]
    is_decimal = any(
        len(text.rstrip("% ").split(",")[1]) != 3 or text.lstrip("+-").startswith(("0,", ","))
        for text in commas
    )
    numbers = found.to_numpy().copy()
    for at, text in texts.items():
        numbers[at] = _parse_number_text(text, is_decimal)
    return pd.Series(numbers, index=values.index)


def _parse_number_text(text: str, has_decimal_comma: bool) -> float:
    if len(text) <= _MAX_REPLY_PART and (said := _SCORE_OUT_OF.fullmatch(text)):
        text = said[1] or said[2]
    elif not _FAILED_CALL.match(text) and (named := _NAMED_NUMBER.fullmatch(text)):
        text = named[1].strip()
    fraction = _FRACTION.fullmatch(text)
    if fraction and float(fraction[2]):
        return float(fraction[1]) / float(fraction[2])
    number = _SPREAD.sub("", text).rstrip("% ").lstrip("<>≤≥~≈ ")
    if _DECIMAL_COMMA.fullmatch(number) and has_decimal_comma:
        number = number.replace(",", ".")
    try:
        return float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        return float("nan")


def has_only_words(values: pd.Series) -> bool:
    """Whether a column has values and none of them is a number."""
    present = values[~values.map(has_no_value)]
    return bool(len(present)) and bool(parse_judgement_numbers(present).isna().all())
