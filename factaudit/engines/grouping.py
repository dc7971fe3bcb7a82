"""Which facts of a paragraph are about one person? (MF §5.1, App. C, Table 8)

A model is shown four paragraphs with their facts and repeats the facts of this one, with a line of
"=" between the facts of two people. Its reply is reconciled with the facts, so that each fact is in
exactly one group.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from factaudit.errors import InputError, Problem
from factaudit.files import check_no_pipe, parse_json_file_text
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.progress_lines import progress_bar

#: Who may group the facts, and what to know of each.
GROUPERS: Mapping[str, str] = {
    "llm": "The LLM is asked, as in the paper; what it replies is reconciled with the facts.",
    "given": "The groups that come with the biographies' facts.",
    "one-group": "All facts are about one person: what FActScore supposes.",
}
#: No fact list is repeated in fewer tokens than this; a long one needs more
#: (`GroupingPrompt.make_request`).
MIN_GROUPING_TOKENS = 512
#: A line of a reply is a fact that the model changed where their similarity (difflib's ratio) is at
#: least this.
MIN_FACT_SIMILARITY = 0.75

#: MF's words, as Table 8 prints them.
_PARAGRAPH_TASK = "Please breakdown the following sentence into independent facts: "
_GROUPING_TASK = (
    "Next, refer to the paragraph again and see if it explicitly states that it contains the"
    " biographies of multiple individuals. If there are multiple biographies, split the independent"
    ' facts from different biography using "====". If the paragraph does not contain multiple'
    " biographies from different individuals, repeat the independent facts.\n"
)
#: What stands between two people in the demonstrations that Table 8 prints.
_GROUP_SEPARATOR = "====="
#: Said to a model whose reply could not be read, once.
_RETRY_MESSAGE = (
    "Your reply could not be read. Write the same facts again, unchanged, each on a line of its own"
    ' that begins with "- ", and between the facts of one person and those of the next a line "-'
    ' ===" and nothing else: no headings, no numbers, no comments. If the paragraph does not say'
    " that it tells of several people, write no such line."
)
_SEPARATOR_LINE = re.compile(r"(?:- ?)?={3,}")


def number_groups(marks: Sequence[Any]) -> tuple[int, ...]:
    """Any marks of groups as 0..g-1, by first appearance.

    >>> number_groups(["b", "a", "b"])
    (0, 1, 0)
    """
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(mark, len(numbers)) for mark in marks)


# ---- the prompt


@dataclass(frozen=True)
class GroupingPrompt:
    """Paragraphs with their facts, in order, and the same facts in groups."""

    examples: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]

    @classmethod
    def load(cls, path: str | Path | None = None) -> GroupingPrompt:
        """Read a JSON object {paragraph: [[fact, ...], [fact, ..., "===", fact, ...]]}, MF's form;
        by default our own.

        Raises `InputError` where the file is missing or of another form.
        """
        source = Path(path) if path else files("factaudit.engines") / "group_demos.json"
        check_no_pipe(str(source))
        examples = []
        try:
            for text, (facts, lines) in parse_json_file_text(
                source.read_text(encoding="utf-8")
            ).items():
                groups = [
                    list(group)
                    for is_group, group in groupby(lines, lambda line: "===" not in line)
                    if is_group
                ]
                if not facts or Counter(facts) != Counter(
                    fact for group in groups for fact in group
                ):
                    raise ValueError("the grouped facts are not the facts")
                examples.append((text, tuple(facts), tuple(map(tuple, groups))))
            if not examples:
                raise ValueError("there is no demonstration")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            message = (
                'expected an object {paragraph: [[fact, ...], [fact, ..., "===", ...]]}'
                f" ({error})"
            )
            raise InputError(str(source), [Problem(message)]) from None
        return cls(tuple(examples))

    @property
    def signature(self) -> str:
        """A hash of the demonstrations, in order."""
        return hash_texts(json.dumps(self.examples, ensure_ascii=False))

    def make_text(self, paragraph: str, facts: Sequence[str]) -> str:
        """MF's prompt (Table 8): the demonstrations, then the paragraph with its facts."""
        blocks = []
        for text, given, groups in self.examples:
            grouped = f"- {_GROUP_SEPARATOR}\n".join(map(_format_facts, groups))
            blocks.append(_format_task(text, given) + grouped)
        return "\n".join([*blocks, _format_task(paragraph, facts)])

    def make_request(self, paragraph: str, facts: Sequence[str]) -> ChatRequest:
        """The prompt as one user message, with room for all facts in the reply."""
        # A token is at least two characters of an English text, nearly always more.
        room = max(MIN_GROUPING_TOKENS, sum(map(len, facts)) // 2 + 8 * len(facts))
        content = self.make_text(paragraph, facts)
        return ChatRequest(
            ({"role": "user", "content": content},), {"temperature": 0.0, "max_tokens": room}
        )


def _format_facts(facts: Sequence[str]) -> str:
    return "".join(f"- {fact}\n" for fact in facts)


def _format_task(paragraph: str, facts: Sequence[str]) -> str:
    return f"{_PARAGRAPH_TASK}{paragraph.strip()}\n{_format_facts(facts)}{_GROUPING_TASK}"


# ---- asking, and replies


def ask_for_groups(
    llm: LLMClient,
    prompt: GroupingPrompt,
    paragraphs: Sequence[tuple[str, Sequence[str]]],
    progress: bool = False,
) -> list[tuple[int, ...] | None]:
    """The group of each fact of each paragraph, with one call, or a second one where the first
    reply cannot be read.

    What cannot be read twice, or whose call fails, leaves the facts without groups (None): one
    group would be a claim about the text that nobody made. Where there is no fact, the model is not
    asked.
    """
    found: list[tuple[int, ...] | None] = [() for _ in paragraphs]
    requests = {
        at: prompt.make_request(text, facts) for at, (text, facts) in enumerate(paragraphs) if facts
    }
    for _ in range(2):
        again = {}
        replies = ask_all(llm, requests.items())
        for at, reply in progress_bar(
            "facts grouped", "call", len(requests), of=replies, shown=progress
        ):
            found[at] = read_groups(reply, paragraphs[at][1])
            if found[at] is None and reply.status == "ok":
                said = (
                    {"role": "assistant", "content": reply.text},
                    {"role": "user", "content": _RETRY_MESSAGE},
                )
                again[at] = ChatRequest((*requests[at].messages, *said), requests[at].params)
        requests = again
        if not again:
            break
    return found


def read_groups(reply: ChatReply, facts: Sequence[str]) -> tuple[int, ...] | None:
    """The group of each fact by a reply, numbered by first appearance; None where it cannot be
    read.

    It cannot where it is in another layout, lacks more than half of the facts, broke off before
    some of them, or has
    lines besides the facts and no separator: these may be headings that tell people apart. A fact
    that it lacks goes where the fact before it went.
    """

    def has_all_facts(text: str) -> bool:
        groups = split_groups(text)
        return groups is not None and None not in match_facts(facts, groups)[0]

    # A reply that was cut off after the last of the facts is whole.
    answer = extract_llm_answer(reply, is_whole=has_all_facts)
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
    line of "=" between two people. A reply with any other line is in another layout, and not read:
    None.

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
    """The group in which a reply has each fact, None where it lacks it; and how many of its lines
    are no fact.

    Lines are matched with facts one to one: first where the texts are equal (white space, case and
    closing punctuation apart), in order; then with the most similar fact that is left, down to
    `MIN_FACT_SIMILARITY`.
    """
    found: list[int | None] = [None] * len(facts)
    texts = list(map(_normalise, facts))
    waiting: dict[str, list[int]] = {}
    for at, text in enumerate(texts):
        waiting.setdefault(text, []).append(at)
    other_lines = []
    for number, group in enumerate(groups):
        for line in map(_normalise, group):
            if waiting.get(line):
                found[waiting[line].pop(0)] = number
            elif line not in waiting:  # else it is repeated
                other_lines.append((line, number))
    n_invented = 0
    for line, number in other_lines:
        left = [text for text, places in waiting.items() if places]
        near = get_close_matches(line, left, n=1, cutoff=MIN_FACT_SIMILARITY)
        if near:
            found[waiting[near[0]].pop(0)] = number
        n_invented += not near
    return found, n_invented


def _normalise(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;,")
