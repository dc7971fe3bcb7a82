"""Texts into sentences, sentences into atomic facts (Min et al. 2023, §3.1 and A.2)."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import numpy as np

from factaudit.engines.facts import MIN_CHARACTERS, is_boilerplate, read_facts
from factaudit.engines.records import Decomposed, Sentence
from factaudit.engines.responses import Fact
from factaudit.errors import InputError, Problem
from factaudit.files import from_json
from factaudit.knowledge.bm25 import Bm25
from factaudit.llm.replies import CUT_REASONS, understood, without_thoughts
from factaudit.llm.together import gather
from factaudit.llm.types import Reply, Request
from factaudit.signature import digest
from factaudit.text.sentences import split_sentences

#: A file of demonstrations in the original's format, for those who have it.
ENVIRONMENT = "FACTSCORE_DEMONS_PATH"
#: Demonstrations in each prompt: the first ones of the file, then the nearest of all (the original, for biographies).
FIXED, CHOSEN = 7, 1
#: Facts of a response beyond this are cut.
MAX_FACTS = 50
PARAMS: Mapping[str, float | int] = {"temperature": 0.0, "max_tokens": 800}

_TASK = "Please breakdown the following sentence into independent facts"
#: What MF's code adds to the task, so that a fact can be read, and grouped, without its sentence.
_DECONTEXTUALIZE = (
    ". When possible, decontextualize the fact such that the subject in the fact is a proper noun or noun instead of a "
    "pronoun"
)
_ENDS_WITH_INITIAL = re.compile(r"(?:^|[\s.(])[A-Z]\.$")
_STARTS_WITH_INITIAL = re.compile(r"^[A-Z]\.")


def sentences(text: str) -> list[str]:
    """The sentences of a text, paragraph by paragraph (a paragraph is a line that isn't blank).

    Punkt's splits are mended as in the original: "J." and "R. Tolkien" stay together, a single word belongs to the
    sentence before it (the first one of a paragraph to the next), and so does what begins with a small letter.
    """
    return [
        sentence
        for paragraph in text.split("\n")
        if paragraph.strip()
        for sentence in _mend(split_sentences(paragraph.strip()))
    ]


def _mend(split: Sequence[str]) -> list[str]:
    joined: list[str] = []
    for sentence in split:
        if joined and _ENDS_WITH_INITIAL.search(joined[-1]) and _STARTS_WITH_INITIAL.match(sentence):
            joined[-1] += f" {sentence}"
        else:
            joined.append(sentence)
    mended: list[str] = []
    for number, sentence in enumerate(joined):
        alone = number == 1 and len(joined[0].split()) == 1
        if mended and (alone or len(sentence.split()) == 1 or (sentence[0].isalpha() and not sentence[0].isupper())):
            mended[-1] += f" {sentence}"
        else:
            mended.append(sentence)
    return mended


@dataclass(frozen=True)
class Demonstrations:
    """Sentences with their facts, in order, as a prompt shows them.

    decontextualize: ask for facts whose subjects are nouns, not pronouns, in the words of MF's code. It shows a model
    one sentence at a time, as the original does, so that a "he" whose name is in another sentence may stay.
    """

    facts: Mapping[str, Sequence[str]]
    decontextualize: bool = False

    @classmethod
    def load(cls, path: str | Path | None = None, decontextualize: bool = False) -> Demonstrations:
        """Read a JSON object {sentence: [fact, ...]}: ``path``, else ``FACTSCORE_DEMONS_PATH``, else our own.

        Raises `InputError` where the file is missing or of another form.
        """
        named = path or os.environ.get(ENVIRONMENT)
        source = Path(named) if named else files("factaudit.engines") / "demons.json"
        try:
            found = from_json(source.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(str(source), [Problem(f"not a readable file of demonstrations ({error})")]) from None
        if (
            not isinstance(found, dict)
            or not found
            or not all(
                key.strip() and isinstance(facts, list) and facts and all(isinstance(fact, str) for fact in facts)
                for key, facts in found.items()
            )
        ):
            raise InputError(str(source), [Problem("expected an object of sentences, each with a list of facts")])
        return cls(found, decontextualize)

    @property
    def signature(self) -> str:
        """A hash of the demonstrations, in order, and of what the task says besides."""
        told = json.dumps(self.facts, ensure_ascii=False)
        return digest(told, _DECONTEXTUALIZE) if self.decontextualize else digest(told)

    def nearest(self, sentence: str, k: int = CHOSEN) -> list[str]:
        """The ``k`` demonstrations nearest to a sentence: BM25Okapi over words between white space.

        Of equals the later comes first, as rank_bm25's own ``get_top_n`` has it; so a sentence that shares no word
        with any gets the last one, which is not among the fixed ones.
        """
        scores = self._index.get_scores(sentence.split())
        return [self._sentences[i] for i in np.argsort(scores, kind="stable")[::-1][:k]]

    def prompt(self, sentence: str) -> str:
        """The original's prompt: the fixed demonstrations, then the nearest (it may be among them).

        It ends in a new line, which the original strips before it asks; otherwise it is the same byte for byte.
        """
        task = f"{_TASK}{_DECONTEXTUALIZE if self.decontextualize else ''}: "
        shown = [*self._sentences[:FIXED], *self.nearest(sentence)]
        blocks = [f"{task}{one}\n" + "".join(f"- {fact}\n" for fact in self.facts[one]) + "\n" for one in shown]
        return "".join(blocks) + f"{task}{sentence}\n"

    def request(self, sentence: str) -> Request:
        """The prompt as one user message, with the sampling parameters."""
        return Request(({"role": "user", "content": self.prompt(sentence)},), dict(PARAMS))

    @cached_property
    def _sentences(self) -> list[str]:
        return list(self.facts)

    @cached_property
    def _index(self) -> Bm25:
        return Bm25(one.split() for one in self._sentences)


def distinct(facts: Sequence[Sequence[str]], max_facts: int = MAX_FACTS) -> tuple[list[list[str]], int, int]:
    """Remove a response's repeated facts (the first stays) and those beyond ``max_facts``, sentence by sentence.

    Returns (the facts left per sentence, the number of duplicates removed, the number cut).
    """
    seen: set[str] = set()
    left: list[list[str]] = []
    n_duplicates = n_cut = 0
    for group in facts:
        left.append([])
        for fact in group:
            if fact in seen:
                n_duplicates += 1
            elif len(seen) >= max_facts:
                # It is not put among the seen, so that a second one beyond the cap counts as cut too.
                n_cut += 1
            else:
                seen.add(fact)
                left[-1].append(fact)
    return left, n_duplicates, n_cut


def undecomposed(text: str, status: str, reason: str | None) -> Decomposed:
    """A text that nobody is asked to decompose: each sentence but boilerplate stands for its facts, unscored."""
    told = tuple(
        Sentence(one, "boilerplate") if is_boilerplate(one, first=not number) else Sentence(one, status, error=reason)
        for number, one in enumerate(sentences(without_thoughts(text)))
    )
    facts = (Fact(one.text, sentence=number, failed=status) for number, one in enumerate(told) if one.failed)
    return Decomposed(False, told, tuple(facts))


async def decompose(
    text: str,
    ask: Callable[[Request], Awaitable[Reply]],
    demonstrations: Demonstrations,
    *,
    max_facts: int = MAX_FACTS,
    min_characters: int = MIN_CHARACTERS,
    passing: Callable[[str, Sequence[str]], list[str]] | None = None,
) -> Decomposed:
    """A text's sentences with their facts, one call a sentence, all at once; for boilerplate nothing is asked.

    What a model only thought is no part of the text. Of a reply that broke off at its limit, the last line is no fact;
    one that neither has facts nor says that there are none is ``unparsed``. A sentence whose call failed, or whose
    reply could not be read, stands for its facts itself (`Fact.failed`).

    passing: of a sentence and its facts those that stay (`factaudit.engines.entities`), called in a thread; None: all.
    """

    async def one(numbered: tuple[int, str]) -> tuple[Sentence, list[str], int]:
        number, sentence = numbered
        if is_boilerplate(sentence, first=number == 0):
            return Sentence(sentence, "boilerplate"), [], 0
        reply = await ask(demonstrations.request(sentence))
        answer = understood(reply, whole=lambda text: "\n" in text.strip())
        cut = reply.finish_reason in CUT_REASONS
        if answer.status != "ok":
            return Sentence(sentence, answer.status, reply.text, answer.error or None, cut), [], 0
        found = read_facts(answer.text.rpartition("\n")[0] if cut else answer.text, min_characters)
        if not found.facts and not found.none:
            error = "no facts, and no word that there are none"
            return Sentence(sentence, "unparsed", reply.text, error, cut), [], 0
        left = found.facts if passing is None else await asyncio.to_thread(passing, sentence, found.facts)
        return Sentence(sentence, "ok", reply.text, None, cut), left, len(found.facts) - len(left)

    made = await gather(map(one, enumerate(sentences(without_thoughts(text)))))
    kept, n_duplicates, n_cut = distinct([own for _, own, _ in made], max_facts)
    told = tuple(sentence for sentence, *_ in made)
    facts: list[Fact] = []
    for number, (sentence, own) in enumerate(zip(told, kept, strict=True)):
        facts += [Fact(fact, sentence=number) for fact in own]
        if sentence.failed:
            facts.append(Fact(sentence.text, sentence=number, failed=sentence.status))
    return Decomposed(False, told, tuple(facts), n_duplicates, n_cut, sum(n for *_, n in made))
