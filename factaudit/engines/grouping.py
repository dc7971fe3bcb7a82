"""Which facts of a paragraph are about one person? (MF §5.1, App. C, Table 8)

A model is shown four paragraphs with their facts and repeats the facts of this one, with a line of "=" between the
facts of two people. Its reply is reconciled with the facts, so that each fact is in exactly one group.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from factaudit.errors import InputError, Problem
from factaudit.files import check_no_pipe, parse_json_file_text
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatRequest
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.progress_lines import progress_bar

#: What a reply may do to facts.
GROUPING_COUNTS = ("n_changed", "n_dropped", "n_invented", "n_repeated")
#: Who may group the facts, and what to know of each.
GROUPERS: Mapping[str, str] = {
    "llm": "The LLM is asked, as in the paper; what it replies is reconciled with the facts.",
    "given": "The groups that come with the biographies' facts.",
    "one-group": "All facts are about one person: what FActScore supposes.",
}
#: No fact list is repeated in fewer tokens than this; a long one needs more
#: (`GroupingPrompt.make_request`).
MIN_GROUPING_TOKENS = 512
#: A line of a reply is a fact that the model changed where their similarity (difflib's ratio) is at least this.
MIN_FACT_SIMILARITY = 0.75


@dataclass(frozen=True)
class FactGrouping:
    """The group of each fact, numbered 0..g-1 by first appearance, and what a reply did to the facts.

    groups: None where there is no usable reply; ``status`` (as in the verdicts table) and ``raw`` then say why.
    n_changed: facts that the reply has in other words. n_dropped: facts that it lacks. n_invented: lines that are no
    fact. n_repeated: facts that it has more than once.
    """

    groups: tuple[int, ...] | None
    n_changed: int = 0
    n_dropped: int = 0
    n_invented: int = 0
    n_repeated: int = 0
    status: str = "ok"
    raw: str | None = None


def number_fact_groups(groups: Sequence[Any]) -> tuple[int, ...]:
    """Any marks of groups as 0..g-1, by first appearance.

    >>> number_fact_groups(["b", "a", "b"])
    (0, 1, 0)
    """
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(group, len(numbers)) for group in groups)


def assign_facts_to_reply_groups(facts: Sequence[str], reply_groups: Sequence[Sequence[str]]) -> FactGrouping:
    """Put each fact into exactly one group, whatever a model replied.

    Lines are matched with facts one to one: first where the texts are equal (white space, case and closing punctuation
    apart), in order; then the most similar pairs, down to `MIN_FACT_SIMILARITY`. A fact that is left (dropped) goes
    where the fact before it went; where none before it has a group, where the first one after it went. Lines that are
    left are repetitions of a fact or inventions, and counted.
    """
    found: list[int | None] = [None] * len(facts)
    texts = list(map(normalise_fact, facts))
    waiting: dict[str, list[int]] = {}
    for position, text in enumerate(texts):
        waiting.setdefault(text, []).append(position)
    n_repeated = 0
    rest: list[tuple[str, int]] = []
    for number, group in enumerate(reply_groups):
        for line in map(normalise_fact, group):
            if waiting.get(line):
                found[waiting[line].pop(0)] = number
            elif line in waiting:
                n_repeated += 1
            else:
                rest.append((line, number))
    left = [(position, texts[position]) for position, group in enumerate(found) if group is None]
    changed = _match_similar(left, [line for line, _ in rest])
    for position, at in changed.items():
        found[position] = rest[at][1]
    last = next((group for group in found if group is not None), 0)
    placed = [last := last if group is None else group for group in found]
    return FactGrouping(
        number_fact_groups(placed), len(changed), found.count(None), len(rest) - len(changed), n_repeated
    )


def normalise_fact(text: str) -> str:
    """What equal facts have in common: white space, case and closing punctuation apart."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(" .!;,")


def compare_fact_groupings(true_groups: Sequence[int], found_groups: Sequence[int]) -> tuple[bool, float]:
    """(whether two groupings of the same facts are the same, the share of facts on which they agree).

    Groups are put into the one-to-one correspondence under which most facts agree. Without facts: (True, 1.0).
    """
    if len(true_groups) != len(found_groups):
        raise ValueError("expected two groupings of the same facts")
    if not true_groups:
        return True, 1.0
    table = np.zeros((max(true_groups) + 1, max(found_groups) + 1))
    np.add.at(table, (np.asarray(true_groups), np.asarray(found_groups)), 1)
    agreed = int(table[linear_sum_assignment(table, maximize=True)].sum())
    return agreed == len(true_groups) and max(true_groups) == max(found_groups), agreed / len(true_groups)


# ------------------------------------------------------------------------------------------------- by a model


@dataclass(frozen=True)
class GroupingPrompt:
    """Paragraphs with their facts, in order, and the same facts in groups."""

    examples: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]

    @classmethod
    def load(cls, path: str | Path | None = None) -> GroupingPrompt:
        """Read a JSON object {paragraph: [[fact, ...], [fact, ..., "===", fact, ...]]}, MF's form; by default our own.

        Raises `InputError` where the file is missing or of another form.
        """
        source = Path(path) if path else files("factaudit.engines") / "group_demos.json"
        check_no_pipe(str(source))
        examples = []
        try:
            for text, (facts, lines) in parse_json_file_text(source.read_text(encoding="utf-8")).items():
                groups = [list(group) for is_group, group in groupby(lines, lambda line: "===" not in line) if is_group]
                if not facts or Counter(facts) != Counter(fact for group in groups for fact in group):
                    raise ValueError("the grouped facts are not the facts")
                examples.append((text, tuple(facts), tuple(map(tuple, groups))))
            if not examples:
                raise ValueError("there is no demonstration")
        except OSError as error:
            raise InputError(str(source), [Problem(f"not readable ({error.strerror})")]) from None
        except (ValueError, TypeError, AttributeError) as error:
            message = f'expected an object {{paragraph: [[fact, ...], [fact, ..., "===", ...]]}} ({error})'
            raise InputError(str(source), [Problem(message)]) from None
        return cls(tuple(examples))

    @property
    def signature(self) -> str:
        """A hash of the demonstrations, in order."""
        return hash_texts(json.dumps(self.examples, ensure_ascii=False))

    def make_text(self, paragraph: str, facts: Sequence[str]) -> str:
        """MF's prompt (Table 8): the demonstrations, then the paragraph with its facts."""
        blocks = [
            _format_ungrouped_facts(text, given)
            + f"- {_GROUP_SEPARATOR}\n".join("".join(f"- {fact}\n" for fact in group) for group in groups)
            for text, given, groups in self.examples
        ]
        return "\n".join([*blocks, _format_ungrouped_facts(paragraph, facts)])

    def make_request(self, paragraph: str, facts: Sequence[str]) -> ChatRequest:
        """The prompt as one user message, with room for all facts in the reply."""
        # A token is at least two characters of an English text, nearly always more.
        room = max(MIN_GROUPING_TOKENS, sum(map(len, facts)) // 2 + 8 * len(facts))
        content = self.make_text(paragraph, facts)
        return ChatRequest(({"role": "user", "content": content},), {"temperature": 0.0, "max_tokens": room})


#: MF's words, as Table 8 prints them.
_PARAGRAPH_TASK = "Please breakdown the following sentence into independent facts: "
_GROUPING_TASK = (
    "Next, refer to the paragraph again and see if it explicitly states that it contains the biographies of multiple "
    "individuals. If there are multiple biographies, split the independent facts from different biography using "
    '"====". If the paragraph does not contain multiple biographies from different individuals, repeat the independent '
    "facts.\n"
)
#: What stands between two people in the demonstrations that Table 8 prints.
_GROUP_SEPARATOR = "====="


def _format_ungrouped_facts(paragraph: str, facts: Sequence[str]) -> str:
    told = "".join(f"- {fact}\n" for fact in facts)
    return f"{_PARAGRAPH_TASK}{paragraph.strip()}\n{told}{_GROUPING_TASK}"


#: Said to a model whose reply could not be read, once.
_RETRY_MESSAGE = (
    "Your reply could not be read. Write the same facts again, unchanged, each on a line of its own that begins with "
    '"- ", and between the facts of one person and those of the next a line "- ===" and nothing else: no headings, no '
    "numbers, no comments. If the paragraph does not say that it tells of several people, write no such line."
)
_SEPARATOR_LINE = re.compile(r"(?:- ?)?={3,}")


def read_fact_group_reply(reply: str) -> list[list[str]] | None:
    """The lines of each group of a reply in the layout of MF's prompt: "- " before each fact, and a line of "=" between
    two people. A reply with any other line is in another layout, and not read: None.

    >>> read_fact_group_reply("- He sang.\\n- =====\\n- He swam.")
    [['He sang.'], ['He swam.']]
    >>> read_fact_group_reply("Person 1:\\n- He sang.") is None
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


def ask_for_fact_groups(
    llm: ChatModelProtocol,
    prompt: GroupingPrompt,
    paragraphs: Sequence[tuple[str, Sequence[str]]],
    progress: bool = False,
) -> list[FactGrouping]:
    """Group the facts of each paragraph with one call, or a second one where the reply to the first cannot be read.

    A reply is ``unparsed`` where it is in another layout, lacks more than half of the facts, broke off before some of
    them, or has lines besides the facts and no separator: these may be headings that tell people apart. What cannot be
    read twice, or whose call fails, leaves the facts without groups, with the reason: one group would be a claim about
    the text that nobody made. Where there is no fact, the model is not asked.
    """
    found = [FactGrouping(()) for _ in paragraphs]
    requests = {at: prompt.make_request(text, facts) for at, (text, facts) in enumerate(paragraphs) if facts}
    for _ in range(2):
        again = {}
        replies = ask_all(llm, requests.items())
        for at, reply in progress_bar("facts grouped", "call", len(requests), of=replies, shown=progress):
            found[at] = _reconcile_group_reply(reply, paragraphs[at][1])
            if found[at].groups is None and reply.status == "ok":
                said = ({"role": "assistant", "content": reply.text}, {"role": "user", "content": _RETRY_MESSAGE})
                again[at] = ChatRequest((*requests[at].messages, *said), requests[at].params)
        if not again:
            break
        requests = again
    return found


def _reconcile_group_reply(reply: ChatReply, facts: Sequence[str]) -> FactGrouping:
    def has_all_facts(text: str) -> bool:
        groups = read_fact_group_reply(text)
        return groups is not None and not assign_facts_to_reply_groups(facts, groups).n_dropped

    # A reply that was cut off after the last of the facts is whole.
    reply = extract_llm_answer(reply, is_whole=has_all_facts)
    if reply.status != "ok":
        return FactGrouping(None, status=reply.status, raw=reply.error or reply.text or None)
    groups = read_fact_group_reply(reply.text)
    if groups is None:
        return FactGrouping(None, status="unparsed", raw=reply.text)
    found = replace(assign_facts_to_reply_groups(facts, groups), raw=reply.text)
    may_have_headings = len(groups) == 1 and found.n_invented > found.n_dropped
    if may_have_headings or 2 * found.n_dropped > len(facts):
        return replace(found, groups=None, status="unparsed")
    return found


def _match_similar(facts: Sequence[tuple[int, str]], lines: Sequence[str]) -> dict[int, int]:
    """Of facts (position, text) the line that each is in other words: the most similar pairs, one to one."""
    pairs = []
    matcher = SequenceMatcher(autojunk=False)
    for number, line in enumerate(lines):
        matcher.set_seq2(line)
        for position, text in facts:
            matcher.set_seq1(text)
            # The bound is quicker by far, and never less than the ratio.
            if matcher.quick_ratio() >= MIN_FACT_SIMILARITY and (similarity := matcher.ratio()) >= MIN_FACT_SIMILARITY:
                pairs.append((-similarity, position, number))
    matched: dict[int, int] = {}
    for _, position, number in sorted(pairs):
        if position not in matched and number not in matched.values():
            matched[position] = number
    return matched
