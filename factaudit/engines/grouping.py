"""Which facts of a paragraph are about one person? (MF §5.1, App. C, Table 8)

A model is shown four paragraphs with their facts, then this paragraph with its facts. It repeats
the facts and writes a line of "=" between the facts of two people. Its lines are matched with the
facts, so that each fact is in exactly one group.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from factaudit.engines.responses import Response
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.progress_lines import progress_bar

#: The room for a reply, in tokens; a long list of facts gets more (`make_grouping_request`).
MIN_GROUPING_TOKENS = 512
#: A line of a reply that is no fact is taken for the fact that it resembles most, if their
#: similarity (the ratio of difflib) is at least this: models correct spelling and punctuation.
MIN_FACT_SIMILARITY = 0.75

#: MF's words, as Table 8 prints them.
_PARAGRAPH_TASK = "Please breakdown the following sentence into independent facts: "
_GROUPING_TASK = (
    "Next, refer to the paragraph again and see if it explicitly states that it contains the "
    "biographies of multiple individuals. If there are multiple biographies, split the independent "
    'facts from different biography using "====". If the paragraph does not contain multiple '
    "biographies from different individuals, repeat the independent facts.\n"
)
#: What stands between two people in the demonstrations that Table 8 prints.
_GROUP_SEPARATOR = "- =====\n"
_SEPARATOR_LINE = re.compile(r"(?:- ?)?={3,}")


def number_groups(marks: Sequence[Any]) -> tuple[int, ...]:
    """Any marks of groups as numbers from 0, by first appearance.

    >>> number_groups(["b", "a", "b"])
    (0, 1, 0)
    """
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(mark, len(numbers)) for mark in marks)


# --------------------------------------------------------------------------------- the prompt


#: Paragraphs with the groups of their facts, in the order of the facts.
_Examples = Mapping[str, Sequence[Sequence[str]]]


@cache
def load_grouping_examples() -> _Examples:
    """Two paragraphs about one person, as Table 8 prints them, and two about several people."""
    text = (files("factaudit.engines") / "group_demos.json").read_text("utf-8")
    examples: _Examples = json.loads(text)
    return examples


def sign_grouping_prompt() -> str:
    """A hash of the demonstrations, in order."""
    return hash_texts(json.dumps(load_grouping_examples(), ensure_ascii=False))


def make_grouping_text(
    paragraph: str, facts: Sequence[str], examples: _Examples | None = None
) -> str:
    """MF's prompt (Table 8): the demonstrations, then the paragraph with its facts."""
    text = ""
    for shown, groups in (examples or load_grouping_examples()).items():
        listed = [_format_facts(group) for group in groups]
        text += _format_task(shown, "".join(listed)) + _GROUP_SEPARATOR.join(listed) + "\n"
    return text + _format_task(paragraph, _format_facts(facts))


def make_grouping_request(paragraph: str, facts: Sequence[str]) -> ChatRequest:
    """The prompt as one user message, with room for all facts in the reply."""
    # A token is at least two characters of an English text, nearly always more.
    room = max(MIN_GROUPING_TOKENS, sum(map(len, facts)) // 2 + 8 * len(facts))
    message = {"role": "user", "content": make_grouping_text(paragraph, facts)}
    return ChatRequest((message,), {"temperature": 0.0, "max_tokens": room})


def _format_facts(facts: Sequence[str]) -> str:
    return "".join(f"- {fact}\n" for fact in facts)


def _format_task(paragraph: str, facts: str) -> str:
    return f"{_PARAGRAPH_TASK}{paragraph.strip()}\n{facts}{_GROUPING_TASK}"


# ------------------------------------------------------------------------- asking, and replies


def ask_for_groups(
    llm: LLMClient, responses: Sequence[Response], progress: bool = False
) -> list[tuple[int, ...] | None]:
    """The group of each fact of each response, with one call for each response that has facts.

    If the call fails, or its reply cannot be read, the facts have no groups (None). To put them
    into one group would be a claim about the text that nobody made.
    """
    facts = [[fact.text for fact in one.facts or ()] for one in responses]
    found: list[tuple[int, ...] | None] = [() for _ in responses]
    requests = [
        (at, make_grouping_request(responses[at].output, own))
        for at, own in enumerate(facts)
        if own
    ]
    replies = ask_all(llm, requests)
    for at, reply in progress_bar(
        "facts grouped", "call", len(requests), of=replies, shown=progress
    ):
        found[at] = read_groups(reply, facts[at])
    return found


def read_groups(reply: ChatReply, facts: Sequence[str]) -> tuple[int, ...] | None:
    """The group of each fact by a reply, numbered by first appearance; None if it cannot be read.

    A reply cannot be read if it has another layout, broke off, lacks more than half of the facts,
    or has other lines besides the facts and no separator: these may be headings that tell people
    apart. A fact that the reply lacks goes into the group of the fact before it.
    """
    answer = extract_llm_answer(reply)
    groups = split_groups(answer.text) if answer.status == "ok" else None
    if groups is None:
        return None
    found, n_invented = match_facts(facts, groups)
    n_lacking = found.count(None)
    if 2 * n_lacking > len(facts) or (len(groups) == 1 and n_invented > n_lacking):
        return None
    last = next(group for group in found if group is not None)
    return number_groups([last := last if group is None else group for group in found])


def split_groups(reply: str) -> list[list[str]] | None:
    """The lines of each group of a reply in the layout of MF's prompt: "- " before each fact, and a
    line of "=" between two people. None if the reply has any other line.

    >>> split_groups("- He sang.\\n- =====\\n- He swam.")
    [['He sang.'], ['He swam.']]
    >>> split_groups("Person 1:\\n- He sang.") is None
    True
    """
    groups: list[list[str]] = [[]]
    for line in filter(None, map(str.strip, reply.splitlines())):
        if _SEPARATOR_LINE.fullmatch(line):
            groups.append([])
        elif line.startswith("- "):
            groups[-1].append(line.removeprefix("- ").strip())
        else:
            return None
    return [group for group in groups if group] or None


def match_facts(
    facts: Sequence[str], groups: Sequence[Sequence[str]]
) -> tuple[list[int | None], int]:
    """The group in which a reply has each fact (None if it lacks the fact), and how many lines of
    the reply are no fact.

    Each line takes one fact. First the lines that equal a fact take theirs, in order (white space,
    case and closing punctuation do not count). Then each other line takes the fact that is left
    and resembles it most, if their similarity is at least `MIN_FACT_SIMILARITY`. A line that
    repeats a fact is not counted.
    """
    found: list[int | None] = [None] * len(facts)
    left = dict(enumerate(map(_normalise, facts)))
    texts = set(left.values())
    lines = [(number, _normalise(line)) for number, group in enumerate(groups) for line in group]
    for similarity in (1.0, MIN_FACT_SIMILARITY):
        others = []
        for number, line in lines:
            if near := get_close_matches(line, left.values(), n=1, cutoff=similarity):
                at = next(at for at, text in left.items() if text == near[0])
                found[at] = number
                del left[at]
            elif line not in texts:
                others.append((number, line))
        lines = others
    return found, len(lines)


def _normalise(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;,")
