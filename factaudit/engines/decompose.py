"""How does a text become atomic facts? Into sentences, then each into facts by a model (Min et al. 2023, §3.1 and A.2).

The prompt shows a model seven fixed demonstrations, the one that BM25 finds nearest to the sentence, and the sentence.
Repeated facts of a response are removed, and facts beyond `MAX_FACTS` cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from factaudit.engines.reply_facts import MIN_FACT_CHARACTERS, is_boilerplate_reply_sentence, parse_reply_facts
from factaudit.engines.responses import AtomicFact
from factaudit.knowledge.retrieval import Bm25Index
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatRequest
from factaudit.llm.reply import CUT_OFF_FINISH_REASONS, extract_llm_answer
from factaudit.signature import hash_texts
from factaudit.text.demonstrations import read_fact_demonstrations
from factaudit.text.markdown import split_markdown_lines
from factaudit.text.progress_lines import progress_bar
from factaudit.text.sentences import split_sentences
from factaudit.text.stated_verdicts import strip_thoughts

#: Demonstrations in each prompt: the first ones of the file, then the nearest of all (the original, for biographies).
N_FIXED_DEMONSTRATIONS = 7
#: Facts of a response beyond this are cut.
MAX_FACTS = 50
SAMPLING_PARAMETERS: dict[str, Any] = {"temperature": 0.0, "max_tokens": 800}

_DECOMPOSITION_TASK = "Please breakdown the following sentence into independent facts"
#: What MF's code adds to the task, so that a fact can be read, and grouped, without its sentence.
_DECONTEXTUALIZATION_TASK = (
    ". When possible, decontextualize the fact such that the subject in the fact is a proper noun or noun instead of a "
    "pronoun"
)
#: For small models, which take over what demonstrations say.
_SHORT_TASK = (
    "List the facts that the sentence states, each as a short sentence of its own. Use the words of the sentence, and "
    "add nothing"
)
_LINES_TASK = ' Write one fact a line, after "- ".'
_JSON_TASK = ' Reply in JSON, with the key "facts".'
#: A small model does not stop by itself; no sentence has so many facts.
_FACTS_SCHEMA = {"type": "array", "items": {"type": "string"}, "maxItems": 24}

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and what became of it.

    status: ``given`` (nobody was asked), ``boilerplate`` or ``markup`` (it only talks to the user, or lays the text
    out), else the reply's. truncated: the reply broke off at the limit of tokens.
    """

    text: str
    status: str = "given"
    reply: str | None = None
    error: str | None = None
    truncated: bool = False

    @property
    def is_failed(self) -> bool:
        """Whether its facts could not be had."""
        return self.status not in ("ok", "given") and not self.is_left_out

    @property
    def is_left_out(self) -> bool:
        """Whether it states nothing, so that the model is not asked about it."""
        return self.status in ("boilerplate", "markup")


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A response's sentences and facts in order.

    n_duplicates: repeated facts that were removed. n_cut: facts beyond the limit.
    """

    abstained: bool = False
    sentences: tuple[Sentence, ...] = ()
    facts: tuple[AtomicFact, ...] = ()
    n_duplicates: int = 0
    n_cut: int = 0


def make_json_reply_params(key: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The parameter of a request whose reply is a JSON object with one key (OpenAI, vLLM, llama.cpp, Ollama).

    >>> make_json_reply_params("facts", {"type": "array"})["response_format"]["json_schema"]["schema"]["required"]
    ['facts']
    """
    whole = {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": key, "strict": True, "schema": whole}}}


# ------------------------------------------------------------------------------------------------------- sentences

_ENDS_WITH_INITIAL = re.compile(r"(?:^|[\s.(])[A-Z]\.$")
_STARTS_WITH_INITIAL = re.compile(r"^[A-Z]\.")


def split_for_decomposition(text: str) -> list[str]:
    """The sentences of a text, paragraph by paragraph (a paragraph is a line that isn't blank).

    Punkt's splits are mended as in the original: "J." and "R. Tolkien" stay together, a single word belongs to the
    sentence before it (the first one of a paragraph to the next), and so does what begins with a small letter.
    """
    return [
        sentence
        for paragraph in text.split("\n")
        if paragraph.strip()
        for sentence in _merge_wrongly_split_sentences(split_sentences(paragraph.strip()))
    ]


def _is_single_word(sentence: str) -> bool:
    # Chinese and Japanese have no spaces: a sentence of theirs is told by its full stop.
    return len(sentence.split()) == 1 and not sentence.endswith(("。", "！", "？"))


def split_response_sentences(text: str) -> list[Sentence]:
    """The sentences of a response and the lines that are left out (`Sentence.is_left_out`), in order.

    What a model only thought is no part of the text; a list item or a row of a table begins a sentence of its own.
    """
    found: list[Sentence] = []
    n_sentences = 0
    for line in split_markdown_lines(strip_thoughts(text)):
        if not line.is_text:
            found.append(Sentence(line.text, "markup"))
            continue
        for sentence in split_for_decomposition(line.text):
            is_talk = is_boilerplate_reply_sentence(sentence, is_first_sentence=not n_sentences)
            found.append(Sentence(sentence, "boilerplate" if is_talk else "given"))
            n_sentences += 1
    return found


def _merge_wrongly_split_sentences(punkt_sentences: Sequence[str]) -> list[str]:
    joined: list[str] = []
    for sentence in punkt_sentences:
        if joined and _ENDS_WITH_INITIAL.search(joined[-1]) and _STARTS_WITH_INITIAL.match(sentence):
            joined[-1] += f" {sentence}"
        else:
            joined.append(sentence)
    mended: list[str] = []
    for number, sentence in enumerate(joined):
        alone = number == 1 and _is_single_word(joined[0])
        if mended and (alone or _is_single_word(sentence) or sentence[0].islower()):
            mended[-1] += f" {sentence}"
        else:
            mended.append(sentence)
    return mended


# -------------------------------------------------------------------------------------------------- the prompt


@dataclass(frozen=True)
class DecompositionPrompt:
    """The prompt that decomposes a sentence.

    facts: demonstrations, sentences with their facts, in order. decontextualize: ask for facts whose subjects are
    nouns, not pronouns, in the words of MF's code; the model sees one sentence at a time, as in the original, so that a
    "he" whose name is in another sentence may stay. style: ``original``; ``short``, without demonstrations, for small
    models; ``json``, short with a schema by which the server keeps the reply in its form.
    """

    facts: Mapping[str, Sequence[str]]
    decontextualize: bool = False
    style: str = "original"

    @classmethod
    def load(
        cls, path: str | Path | None = None, decontextualize: bool = False, style: str = "original"
    ) -> DecompositionPrompt:
        """With the demonstrations of a file (`read_fact_demonstrations`), by default our own; raises `InputError`."""
        return cls(read_fact_demonstrations(path), decontextualize, style)

    @property
    def signature(self) -> str:
        """A hash of all that the prompt says."""
        if self.style != "original":
            return hash_texts(self.make_text(""), json.dumps(_FACTS_SCHEMA))
        told = json.dumps(self.facts, ensure_ascii=False)
        return hash_texts(told, _DECONTEXTUALIZATION_TASK) if self.decontextualize else hash_texts(told)

    def find_nearest(self, sentence: str) -> str:
        """The demonstration nearest to a sentence: BM25Okapi over words between white space.

        Of equals the last one, as rank_bm25's own ``get_top_n`` has it: a sentence that shares no word with any gets
        the last demonstration, which is not among the fixed ones.
        """
        scores = self._index.get_scores(sentence.split())
        return list(self.facts)[int(np.argsort(scores, kind="stable")[-1])]

    def make_text(self, sentence: str) -> str:
        """The original's prompt: the fixed demonstrations, then the nearest (it may be among them), then the sentence.

        It ends in a new line, which the original strips before it asks; otherwise it is the same byte for byte.
        """
        more = _DECONTEXTUALIZATION_TASK if self.decontextualize else ""
        if self.style != "original":
            form = _JSON_TASK if self.style == "json" else _LINES_TASK
            return f"{_SHORT_TASK}{more}.{form}\n\nSentence: {sentence}\n"
        task = f"{_DECOMPOSITION_TASK}{more}: "
        shown = [*list(self.facts)[:N_FIXED_DEMONSTRATIONS], self.find_nearest(sentence)]
        blocks = [f"{task}{one}\n" + "".join(f"- {fact}\n" for fact in self.facts[one]) + "\n" for one in shown]
        return "".join(blocks) + f"{task}{sentence}\n"

    def make_request(self, sentence: str) -> ChatRequest:
        """The prompt as one user message, with the sampling parameters."""
        in_json = make_json_reply_params("facts", _FACTS_SCHEMA) if self.style == "json" else {}
        return ChatRequest(({"role": "user", "content": self.make_text(sentence)},), SAMPLING_PARAMETERS | in_json)

    @cached_property
    def _index(self) -> Bm25Index:
        return Bm25Index([one.split() for one in self.facts])


# ------------------------------------------------------------------------------------------------ asking, and facts


def decompose_texts(
    texts: Sequence[str],
    llm: ChatModelProtocol,
    prompt: DecompositionPrompt,
    *,
    max_facts: int = MAX_FACTS,
    min_characters: int = MIN_FACT_CHARACTERS,
    unique_by_sentence: bool = False,
    progress: bool = False,
) -> list[Decomposition]:
    """The sentences of texts with their facts, one call for each sentence; none for a line that states nothing.

    A sentence whose call failed, or whose reply could not be read, stands for its facts itself
    (`AtomicFact.failure_status`).

    unique_by_sentence: as of `remove_repeated_facts`.
    """
    sentences = [split_response_sentences(text) for text in texts]
    asked = [(t, s) for t, own in enumerate(sentences) for s, one in enumerate(own) if not one.is_left_out]
    requests = ((at, prompt.make_request(sentences[at[0]][at[1]].text)) for at in asked)
    facts: dict[tuple[int, int], list[str]] = {}
    replies = progress_bar("sentences decomposed", "call", len(asked), of=ask_all(llm, requests), shown=progress)
    for (t, s), reply in replies:
        sentences[t][s], facts[t, s] = read_decomposition(sentences[t][s].text, reply, min_characters)
    found = []
    for t, own in enumerate(sentences):
        by_sentence = [facts.get((t, s), []) for s in range(len(own))]
        kept, n_duplicates, n_cut = remove_repeated_facts(by_sentence, max_facts, unique_by_sentence)
        found.append(Decomposition(False, tuple(own), tuple(_list_facts(own, kept)), n_duplicates, n_cut))
    return found


def read_decomposition(
    sentence: str, reply: ChatReply, min_characters: int = MIN_FACT_CHARACTERS
) -> tuple[Sentence, list[str]]:
    """The facts of a reply. Where it broke off at its limit, the last line is none.

    A reply that neither has facts nor says that there are none is ``unparsed``.
    """
    answer = extract_llm_answer(reply, is_whole=lambda text: "\n" in text.strip())
    cut = reply.finish_reason in CUT_OFF_FINISH_REASONS
    if answer.status != "ok":
        return Sentence(sentence, answer.status, reply.text, answer.error or None, cut), []
    told = parse_reply_facts(answer.text.rpartition("\n")[0] if cut else answer.text, min_characters)
    if not told.facts and not told.says_no_facts:
        return Sentence(sentence, "unparsed", reply.text, "no facts, and no word that there are none", cut), []
    return Sentence(sentence, "ok", reply.text, None, cut), told.facts


def leave_undecomposed(text: str, status: str, reason: str | None) -> Decomposition:
    """A text that is not decomposed: each sentence that states something stands for its facts, unscored."""
    told = [
        one if one.is_left_out else replace(one, status=status, error=reason) for one in split_response_sentences(text)
    ]
    return Decomposition(False, tuple(told), tuple(_list_facts(told, [[]] * len(told))))


def _list_facts(sentences: Sequence[Sentence], facts: Sequence[Sequence[str]]) -> Iterator[AtomicFact]:
    for number, (sentence, own) in enumerate(zip(sentences, facts, strict=True)):
        for fact in own:
            yield AtomicFact(fact, sentence=number)
        if sentence.is_failed:
            yield AtomicFact(sentence.text, sentence=number, failure_status=sentence.status)


def remove_repeated_facts(
    facts_by_sentence: Sequence[Sequence[str]], max_facts: int = MAX_FACTS, by_sentence: bool = False
) -> tuple[list[list[str]], int, int]:
    """Remove a response's repeated facts (the first stays) and those beyond ``max_facts``, sentence by sentence.

    by_sentence: only a sentence's own repetitions are removed; equal facts of two sentences may be of two people.
    Returns (the facts left per sentence, the number of duplicates removed, the number cut).
    """
    seen: set[str] = set()
    left: list[list[str]] = []
    n_left = n_duplicates = n_cut = 0
    for group in facts_by_sentence:
        left.append([])
        seen = set() if by_sentence else seen
        for fact in group:
            if fact in seen:
                n_duplicates += 1
            elif n_left >= max_facts:
                # It is not put among the seen, so that a second one beyond the cap counts as cut too.
                n_cut += 1
            else:
                seen.add(fact)
                left[-1].append(fact)
                n_left += 1
    return left, n_duplicates, n_cut
