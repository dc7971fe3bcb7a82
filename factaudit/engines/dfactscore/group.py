"""Which facts does a paragraph tell of one person? (MF §5.1, App. C, Table 8)"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from factaudit.engines.dfactscore.layout import SIMILAR, normal, read_layout
from factaudit.engines.records import Grouping
from factaudit.errors import InputError, Problem
from factaudit.files import from_json
from factaudit.llm.replies import understood
from factaudit.llm.types import Reply, Request
from factaudit.signature import digest

#: Who may group the facts, and what to know of each.
GROUPERS: Mapping[str, str] = {
    "llm": "The LLM is asked, as in the paper; what it replies is reconciled with the facts.",
    "heuristic": "By what the paragraph itself says, without a model. D-FActScore by it is a floor: it misses 23 % of "
    "the published paragraphs that tell of two people. Of 81 about one person it parts four, which name others.",
    "one-group": "All facts are of one person: what FActScore supposes.",
    "given": "As the biographies' own groups say.",
}
#: No fact list is repeated in fewer tokens than this; a long one needs more (`Demonstrations.request`).
MIN_TOKENS = 512


def one_group(n_facts: int) -> Grouping:
    """All facts in one group: the paragraph is read as one biography."""
    return Grouping((0,) * n_facts)


def number_groups(groups: Sequence[Any]) -> tuple[int, ...]:
    """Any marks of groups as 0..g-1, by first appearance.

    >>> number_groups(["b", "a", "b"])
    (0, 1, 0)
    """
    numbers: dict[Any, int] = {}
    return tuple(numbers.setdefault(group, len(numbers)) for group in groups)


def reconcile(facts: Sequence[str], reply: Sequence[Sequence[str]]) -> Grouping:
    """Put each fact into exactly one group, whatever a model replied.

    Lines are matched with facts one to one: first where the texts are equal (white space, case and closing punctuation
    apart), in order; then the most similar pairs, down to `SIMILAR`. A fact that is left (dropped) goes where the fact
    before it went; where none before it has a group, where the first one after it went. Lines that are left are
    repetitions of a fact or inventions, and counted.
    """
    lines = [(text, number) for number, group in enumerate(reply) for text in group]
    found: list[int | None] = [None] * len(facts)
    waiting: dict[str, list[int]] = {}
    for position, fact in enumerate(facts):
        waiting.setdefault(normal(fact), []).append(position)
    known = {text: list(positions) for text, positions in waiting.items()}
    rest = []
    n_repeated = 0
    for text, group in lines:
        key = normal(text)
        if waiting.get(key):
            found[waiting[key].pop(0)] = group
        elif key in known:
            n_repeated += 1
        else:
            rest.append((key, group))
    left = [(normal(facts[position]), position) for position, group in enumerate(found) if group is None]
    matched = _similar(left, rest)
    for position, line in matched:
        found[position] = rest[line][1]
    dropped = [position for position, group in enumerate(found) if group is None]
    last = next((group for group in found if group is not None), 0)
    placed: list[int] = []
    for group_or_none in found:
        last = last if group_or_none is None else group_or_none
        placed.append(last)
    return Grouping(
        number_groups(placed),
        n_changed=len(matched),
        n_dropped=len(dropped),
        n_invented=len(rest) - len(matched),
        n_repeated=n_repeated,
    )


def compare(true: Sequence[int], found: Sequence[int]) -> tuple[bool, float]:
    """(whether two groupings of the same facts are the same, the share of facts on which they agree).

    Groups are put into the one-to-one correspondence under which most facts agree. Without facts: (True, 1.0).
    """
    if len(true) != len(found):
        raise ValueError("expected two groupings of the same facts")
    if not true:
        return True, 1.0
    table = np.zeros((max(true) + 1, max(found) + 1))
    np.add.at(table, (np.asarray(true), np.asarray(found)), 1)
    agreed = int(table[linear_sum_assignment(table, maximize=True)].sum())
    return agreed == len(true) and max(true) == max(found), agreed / len(true)


# ------------------------------------------------------------------------------------------------- by a model


@dataclass(frozen=True)
class Demonstrations:
    """Paragraphs with their facts, in order, and the same facts in groups."""

    examples: tuple[tuple[str, tuple[str, ...], tuple[tuple[str, ...], ...]], ...]

    @classmethod
    def load(cls, path: str | Path | None = None) -> Demonstrations:
        """Read a JSON object {paragraph: [[fact, ...], [fact, ..., "===", fact, ...]]}, MF's form; by default our own.

        Raises `InputError` where the file is missing or of another form.
        """
        source = Path(path) if path else files("factaudit.engines.dfactscore") / "group_demos.json"
        try:
            found = from_json(source.read_text(encoding="utf-8"))
            examples = tuple((text, *_demonstration(*value)) for text, value in found.items())
        except OSError as error:
            raise InputError(str(source), [Problem(f"not readable ({error.strerror})")]) from None
        except (ValueError, TypeError, AttributeError) as error:
            message = f'expected an object {{paragraph: [[fact, ...], [fact, ..., "===", ...]]}} ({error})'
            raise InputError(str(source), [Problem(message)]) from None
        if not examples:
            raise InputError(str(source), [Problem("expected at least one demonstration")])
        return cls(examples)

    @property
    def signature(self) -> str:
        """A hash of the demonstrations, in order."""
        return digest(json.dumps(self.examples, ensure_ascii=False))

    def prompt(self, paragraph: str, facts: Sequence[str]) -> str:
        """The demonstrations, then the paragraph with its facts."""
        blocks = [_block(text, given) + _listed(groups) for text, given, groups in self.examples]
        return f"{_TASK}\n\n" + "\n\n".join([*blocks, _block(paragraph, facts).rstrip("\n")]) + "\n"

    def request(self, paragraph: str, facts: Sequence[str]) -> Request:
        """The prompt as one user message, with room for all facts in the reply."""
        # A token is at least two characters of an English text, nearly always more.
        room = max(MIN_TOKENS, sum(map(len, facts)) // 2 + 8 * len(facts))
        content = self.prompt(paragraph, facts)
        return Request(({"role": "user", "content": content},), {"temperature": 0.0, "max_tokens": room})


_TASK = (
    "Each paragraph below is followed by the facts that were taken from it, in order. A paragraph may be the biography "
    "of one person, or say openly that it tells of several people. Write the facts again, unchanged and each exactly "
    "once. If the paragraph says that it tells of several people, put the facts of each person together and a line "
    '"- ===" between one person and the next. If it does not say so, write no such line, even where facts seem to '
    "contradict each other."
)


def _block(paragraph: str, facts: Sequence[str]) -> str:
    return f"Paragraph: {paragraph.strip()}\nFacts:\n" + "".join(f"- {fact}\n" for fact in facts) + "Facts by person:\n"


def _listed(groups: Sequence[Sequence[str]]) -> str:
    return "\n- ===\n".join("\n".join(f"- {fact}" for fact in group) for group in groups)


def _demonstration(facts: list[str], grouped: list[str]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    groups: list[list[str]] = [[]]
    for one in grouped:
        if "===" in one:
            groups.append([])
        else:
            groups[-1].append(one)
    if not facts or Counter(facts) != Counter(fact for group in groups for fact in group):
        raise ValueError("the grouped facts are not the facts")
    return tuple(facts), tuple(tuple(group) for group in groups if group)


#: Said to a model whose reply could not be read, once.
_AGAIN = (
    "Your reply could not be read. Write the same facts again, unchanged, each on a line of its own that begins with "
    '"- ", and between the facts of one person and those of the next a line "- ===" and nothing else: no headings, no '
    "numbers, no comments. If the paragraph does not say that it tells of several people, write no such line."
)


async def ask_for_groups(
    ask: Callable[[Request], Awaitable[Reply]],
    demonstrations: Demonstrations,
    paragraph: str,
    facts: Sequence[str],
    name: str = "",
) -> Grouping:
    """Group facts with one call: ask, read the layout, reconcile; where that fails, with one more.

    A grouping *fails* where the reply lacks more than half of the facts, broke off before some, or seems to have
    headings and yet gives one group (`factaudit.engines.dfactscore.layout`). What fails twice, or whose call fails,
    leaves the facts without groups, with the reason: one group would be a claim about the text that nobody made.
    """
    request = demonstrations.request(paragraph, facts)
    found = _read(reply := await ask(request), facts, name)
    if found.groups is None and reply.status == "ok":
        said = ({"role": "assistant", "content": reply.text}, {"role": "user", "content": _AGAIN})
        found = _read(await ask(Request((*request.messages, *said), request.params)), facts, name)
    return found


def _read(reply: Reply, facts: Sequence[str], name: str) -> Grouping:
    # A reply that was cut off after the last of the facts is whole.
    reply = understood(reply, lambda text: not reconcile(facts, read_layout(text, facts, name).groups).n_dropped)
    if reply.status != "ok":
        return Grouping(None, status=reply.status, raw=reply.error or reply.text or None)
    layout = read_layout(reply.text, facts, name)
    found = replace(reconcile(facts, layout.groups), raw=reply.text)
    if layout.doubtful or 2 * found.n_dropped > len(facts):
        return replace(found, groups=None, status="unparsed")
    return found


def _similar(facts: Sequence[tuple[str, int]], lines: Sequence[tuple[str, int]]) -> list[tuple[int, int]]:
    """(position of a fact, index of a line) of the most similar pairs, one to one, the best first."""
    pairs = []
    matcher = SequenceMatcher(autojunk=False)
    for number, (line, _) in enumerate(lines):
        matcher.set_seq2(line)
        for text, position in facts:
            matcher.set_seq1(text)
            if matcher.real_quick_ratio() >= SIMILAR and matcher.quick_ratio() >= SIMILAR:
                ratio = matcher.ratio()
                if ratio >= SIMILAR:
                    pairs.append((-ratio, position, number))
    taken_facts: set[int] = set()
    taken_lines: set[int] = set()
    matched = []
    for _, position, number in sorted(pairs):
        if position not in taken_facts and number not in taken_lines:
            taken_facts.add(position)
            taken_lines.add(number)
            matched.append((position, number))
    return matched
