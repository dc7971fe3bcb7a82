"""How does a text become atomic facts? Into sentences, then each into facts by a model (Min et al.
2023, §3.1 and A.2).

The prompt shows a model seven fixed demonstrations, the one that BM25 finds nearest to the
sentence, and the sentence. Repeated facts of a response are removed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from factaudit.engines.reply_facts import is_boilerplate_reply_sentence, parse_reply_facts
from factaudit.engines.responses import AtomicFact, Response
from factaudit.knowledge.retrieval import make_bm25_index
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.demonstrations import read_fact_demonstrations
from factaudit.text.markdown import split_markdown_lines
from factaudit.text.progress_lines import progress_bar
from factaudit.text.sentences import split_sentences
from factaudit.text.stated_verdicts import strip_thoughts

#: Demonstrations in each prompt: the first ones of the file, then the nearest of all (the original,
#: for biographies).
N_FIXED_DEMONSTRATIONS = 7
SAMPLING_PARAMETERS: dict[str, Any] = {"temperature": 0.0, "max_tokens": 800}

_DECOMPOSITION_TASK = "Please breakdown the following sentence into independent facts"
#: What MF's code adds to the task, so that a fact can be read, and grouped, without its sentence.
_DECONTEXTUALIZATION_TASK = (
    ". When possible, decontextualize the fact such that the subject in the fact is a proper noun"
    " or noun instead of a pronoun"
)
#: What is left out of a response's sentences and facts, in the words of the run's notes: of one,
#: and of several.
LAYOUT = ("line of layout or talk", "lines of layout or talk")
REPEATED = ("repeated fact", "repeated facts")


# ---- sentences

_ENDS_WITH_INITIAL = re.compile(r"(?:^|[\s.(])[A-Z]\.$")
_STARTS_WITH_INITIAL = re.compile(r"^[A-Z]\.")


def split_for_decomposition(text: str) -> list[str]:
    """The sentences of a text, paragraph by paragraph (a paragraph is a line that isn't blank).

    Punkt's splits are mended as in the original: "J." and "R. Tolkien" stay together, a single word
    belongs to the sentence before it (the first one of a paragraph to the next), and so does what
    begins with a small letter.
    """
    found: list[str] = []
    for paragraph in text.split("\n"):
        joined: list[str] = []
        for sentence in split_sentences(paragraph.strip()):
            if (
                joined
                and _ENDS_WITH_INITIAL.search(joined[-1])
                and _STARTS_WITH_INITIAL.match(sentence)
            ):
                joined[-1] += f" {sentence}"
            else:
                joined.append(sentence)
        mended: list[str] = []
        for number, sentence in enumerate(joined):
            follows_a_word = number == 1 and _is_single_word(joined[0])
            if mended and (follows_a_word or _is_single_word(sentence) or sentence[0].islower()):
                mended[-1] += f" {sentence}"
            else:
                mended.append(sentence)
        found += mended
    return found


def _is_single_word(sentence: str) -> bool:
    # Chinese and Japanese have no spaces: a sentence of theirs is told by its full stop.
    return len(sentence.split()) == 1 and not sentence.endswith(("。", "！", "？"))


def split_response(text: str) -> tuple[list[str], int]:
    """The sentences of a response that may state something, and the number of lines and sentences
    that are left out.

    Left out is what only lays the text out, or talks to the user; what a model only thought is no
    part of the text. A list item or a row of a table begins a sentence of its own.
    """
    answer = strip_thoughts(text)
    if not answer.strip():
        return [], 0
    lines = split_markdown_lines(answer)
    n_left_out = lines.count(None)
    every = [one for line in lines if line for one in split_for_decomposition(line)]
    # An opening ("Sure, here is ...") is one only at the very beginning.
    kept = [
        one
        for at, one in enumerate(every)
        if not is_boilerplate_reply_sentence(one, is_first_sentence=at == 0)
    ]
    return kept, n_left_out + len(every) - len(kept)


# ---- the prompt


@dataclass(frozen=True)
class DecompositionPrompt:
    """The prompt that decomposes a sentence.

    facts: demonstrations, sentences with their facts, in order. decontextualize: ask for facts
    whose subjects are nouns, not pronouns, in the words of MF's code; the model sees one sentence
    at a time, as in the original, so that a "he" whose name is in another sentence may stay.
    """

    facts: Mapping[str, Sequence[str]]
    decontextualize: bool = False

    @classmethod
    def load(
        cls, path: str | Path | None = None, decontextualize: bool = False
    ) -> DecompositionPrompt:
        """With the demonstrations of a file (`read_fact_demonstrations`), by default our own;
        raises `InputError`."""
        return cls(read_fact_demonstrations(path), decontextualize)

    @property
    def signature(self) -> str:
        """A hash of all that the prompt says."""
        return hash_texts(json.dumps(self.facts, ensure_ascii=False), self._task)

    @property
    def _task(self) -> str:
        return f"{_DECOMPOSITION_TASK}{_DECONTEXTUALIZATION_TASK if self.decontextualize else ''}: "

    def find_nearest(self, sentence: str) -> str:
        """The demonstration nearest to a sentence: BM25Okapi over words between white space.

        Of equals the last one, as rank_bm25's own ``get_top_n`` has it: a sentence that shares no
        word with any gets the last demonstration, which is not among the fixed ones.
        """
        scores = self._index.get_scores(sentence.split())
        return list(self.facts)[int(np.argsort(scores, kind="stable")[-1])]

    def make_text(self, sentence: str) -> str:
        """The original's prompt: the fixed demonstrations, then the nearest (it may be among them),
        then the sentence.

        It ends in a new line, which the original strips before it asks; otherwise it is the same
        byte for byte.
        """
        blocks = []
        for shown in [*list(self.facts)[:N_FIXED_DEMONSTRATIONS], self.find_nearest(sentence)]:
            facts = "".join(f"- {fact}\n" for fact in self.facts[shown])
            blocks.append(f"{self._task}{shown}\n{facts}\n")
        return "".join(blocks) + f"{self._task}{sentence}\n"

    def make_request(self, sentence: str) -> ChatRequest:
        """The prompt as one user message, with the sampling parameters."""
        return ChatRequest(
            ({"role": "user", "content": self.make_text(sentence)},), SAMPLING_PARAMETERS
        )

    @cached_property
    def _index(self) -> BM25Okapi:
        return make_bm25_index([one.split() for one in self.facts])


# ---- asking, and facts


def decompose(
    responses: Sequence[Response],
    llm: LLMClient,
    prompt: DecompositionPrompt,
    *,
    progress: bool = False,
) -> list[Response]:
    """The responses with their sentences and facts, one call for each sentence.

    A sentence whose call failed, or whose reply could not be read, stands for its facts itself
    (`AtomicFact.failure`).
    """
    split = [split_response(one.output) for one in responses]
    sentences = {
        (at, n): text for at, (texts, _) in enumerate(split) for n, text in enumerate(texts)
    }
    replies = ask_all(
        llm, ((place, prompt.make_request(text)) for place, text in sentences.items())
    )
    found: dict[tuple[int, int], list[AtomicFact]] = {}
    for place, reply in progress_bar(
        "sentences decomposed", "call", len(sentences), of=replies, shown=progress
    ):
        found[place] = read_decomposition(sentences[place], place[1], reply)
    made = []
    for at, (response, (texts, n_left_out)) in enumerate(zip(responses, split, strict=True)):
        facts = tuple(fact for n in range(len(texts)) for fact in found[at, n])
        left_out = response.left_out + Counter({LAYOUT: n_left_out})
        made.append(replace(response, sentences=tuple(texts), facts=facts, left_out=left_out))
    return made


def remove_repeated_facts(response: Response) -> Response:
    """Of equal facts of a response (where it has groups, of a group) the first stays, and so does
    each sentence that was not decomposed."""
    facts = response.facts or ()
    groups = response.groups or (0,) * len(facts)
    first: dict[object, int] = {}
    for at, (fact, group) in enumerate(zip(facts, groups, strict=True)):
        first.setdefault((group, fact.text) if fact.failure is None else at, at)
    kept = list(first.values())
    return replace(
        response,
        facts=tuple(facts[at] for at in kept),
        groups=response.groups and tuple(groups[at] for at in kept),
        left_out=response.left_out + Counter({REPEATED: len(facts) - len(kept)}),
    )


def read_decomposition(sentence: str, number: int, reply: ChatReply) -> list[AtomicFact]:
    """The facts of a reply; one that neither has facts nor says that there are none is
    ``unparsed``."""
    answer = extract_llm_answer(reply)
    status, reason = answer.status, answer.error or reply.text
    if status == "ok":
        facts, says_none = parse_reply_facts(answer.text)
        if facts or says_none:
            return [AtomicFact(fact, sentence=number) for fact in facts]
        status, reason = "unparsed", "no facts, and no word that there are none"
    return [_leave_sentence(sentence, number, status, reason)]


def leave_undecomposed(response: Response, status: str, reason: str | None) -> Response:
    """A response whose sentences stand for their facts."""
    sentences = split_response(response.output)[0]
    facts = [_leave_sentence(text, n, status, reason) for n, text in enumerate(sentences)]
    return replace(response, sentences=tuple(sentences), facts=tuple(facts))


def _leave_sentence(sentence: str, number: int, status: str, reason: str | None) -> AtomicFact:
    why = f"the sentence was not decomposed: {reason or status}"
    return AtomicFact(sentence, sentence=number, failure=status, reason=why)
