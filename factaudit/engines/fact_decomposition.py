"""How does a text become atomic facts? Into sentences, then into facts (Min et al. 2023, §3.1 and A.2)."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from factaudit.engines.records import DecompositionRecord, FactGroupingRecord, SentenceDecomposition
from factaudit.engines.reply_facts import MIN_FACT_CHARACTERS, is_boilerplate_reply_sentence, parse_reply_facts
from factaudit.engines.reply_formats import JSON_PROMPTS, ORIGINAL_PROMPTS, make_json_reply_params
from factaudit.engines.responses import AtomicFact
from factaudit.knowledge.bm25 import Bm25Index
from factaudit.llm.answer_extraction import CUT_OFF_FINISH_REASONS, extract_llm_answer
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.coroutine_runner import run_coroutines_concurrently
from factaudit.signature import hash_texts
from factaudit.text.demonstrations import read_fact_demonstrations
from factaudit.text.markdown import split_markdown_lines
from factaudit.text.sentences import split_sentences
from factaudit.text.stated_verdicts import strip_thoughts

#: Demonstrations in each prompt: the first ones of the file, then the nearest of all (the original, for biographies).
N_FIXED_DEMONSTRATIONS, N_NEAREST_DEMONSTRATIONS = 7, 1
#: Facts of a response beyond this are cut.
MAX_FACTS = 50
SAMPLING_PARAMETERS: dict[str, Any] = {"temperature": 0.0, "max_tokens": 800}

_DECOMPOSITION_TASK = "Please breakdown the following sentence into independent facts"
#: What MF's code adds to the task, so that a fact can be read, and grouped, without its sentence.
_DECONTEXTUALIZATION_TASK = (
    ". When possible, decontextualize the fact such that the subject in the fact is a proper noun or noun instead of a "
    "pronoun"
)
_SHORT_TASK = (
    "List the facts that the sentence states, each as a short sentence of its own. Use the words of the sentence, and "
    "add nothing"
)
_LINES_TASK = ' Write one fact a line, after "- ".'
_JSON_TASK = ' Reply in JSON, with the key "facts".'
#: A small model does not stop by itself; no sentence has so many facts.
_FACTS_SCHEMA = {"type": "array", "items": {"type": "string"}, "maxItems": 24}
_ENDS_WITH_INITIAL = re.compile(r"(?:^|[\s.(])[A-Z]\.$")
_STARTS_WITH_INITIAL = re.compile(r"^[A-Z]\.")


def split_sentences_for_decomposition(text: str) -> list[str]:
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


def split_response_sentences(text: str) -> list[SentenceDecomposition]:
    """The sentences of a response, and the lines that nobody is asked about (`LEFT_OUT_SENTENCES`), in order.

    What a model only thought is no part of the text; a list item or a row of a table begins a sentence of its own.
    """
    found: list[SentenceDecomposition] = []
    n_sentences = 0
    for line in split_markdown_lines(strip_thoughts(text)):
        if not line.is_text:
            found.append(SentenceDecomposition(line.text, "markup"))
            continue
        for sentence in split_sentences_for_decomposition(line.text):
            is_talk = is_boilerplate_reply_sentence(sentence, is_first_sentence=not n_sentences)
            found.append(SentenceDecomposition(sentence, "boilerplate" if is_talk else "given"))
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


@dataclass(frozen=True)
class DecompositionDemonstrations:
    """Sentences with their facts, in order, as a prompt shows them.

    decontextualize: ask for facts whose subjects are nouns, not pronouns, in the words of MF's code. It shows a model
    one sentence at a time, as the original does, so that a "he" whose name is in another sentence may stay. style: of
    the prompt (`factaudit.engines.reply_formats.PROMPT_STYLES`).
    """

    facts: Mapping[str, Sequence[str]]
    decontextualize: bool = False
    style: str = ORIGINAL_PROMPTS

    @classmethod
    def load(
        cls, path: str | Path | None = None, decontextualize: bool = False, style: str = ORIGINAL_PROMPTS
    ) -> DecompositionDemonstrations:
        """Read a file as `read_fact_demonstrations` does; raises `InputError`."""
        return cls(read_fact_demonstrations(path), decontextualize, style)

    @property
    def signature(self) -> str:
        """A hash of the demonstrations, in order, and of what the task says besides."""
        if self.style != ORIGINAL_PROMPTS:  # which have none
            return hash_texts(self._make_short_prompt(""), json.dumps(_FACTS_SCHEMA))
        told = json.dumps(self.facts, ensure_ascii=False)
        return hash_texts(told, _DECONTEXTUALIZATION_TASK) if self.decontextualize else hash_texts(told)

    def find_nearest(self, sentence: str, k: int = N_NEAREST_DEMONSTRATIONS) -> list[str]:
        """The ``k`` demonstrations nearest to a sentence: BM25Okapi over words between white space.

        Of equals the later comes first, as rank_bm25's own ``get_top_n`` has it; so a sentence that shares no word
        with any gets the last one, which is not among the fixed ones.
        """
        scores = self._index.get_scores(sentence.split())
        return [self._sentences[i] for i in np.argsort(scores, kind="stable")[::-1][:k]]

    def make_prompt(self, sentence: str) -> str:
        """The original's prompt: the fixed demonstrations, then the nearest (it may be among them).

        It ends in a new line, which the original strips before it asks; otherwise it is the same byte for byte. The
        short ones have no demonstration: small models take over what they are shown.
        """
        if self.style != ORIGINAL_PROMPTS:
            return self._make_short_prompt(sentence)
        task = f"{_DECOMPOSITION_TASK}{_DECONTEXTUALIZATION_TASK if self.decontextualize else ''}: "
        shown = [*self._sentences[:N_FIXED_DEMONSTRATIONS], *self.find_nearest(sentence)]
        blocks = [f"{task}{one}\n" + "".join(f"- {fact}\n" for fact in self.facts[one]) + "\n" for one in shown]
        return "".join(blocks) + f"{task}{sentence}\n"

    def make_request(self, sentence: str) -> ChatRequest:
        """The prompt as one user message, with the sampling parameters."""
        in_json = make_json_reply_params("facts", _FACTS_SCHEMA) if self.style == JSON_PROMPTS else {}
        return ChatRequest(({"role": "user", "content": self.make_prompt(sentence)},), SAMPLING_PARAMETERS | in_json)

    def _make_short_prompt(self, sentence: str) -> str:
        task = f"{_SHORT_TASK}{_DECONTEXTUALIZATION_TASK if self.decontextualize else ''}."
        return f"{task}{_JSON_TASK if self.style == JSON_PROMPTS else _LINES_TASK}\n\nSentence: {sentence}\n"

    @cached_property
    def _sentences(self) -> list[str]:
        return list(self.facts)

    @cached_property
    def _index(self) -> Bm25Index:
        return Bm25Index(one.split() for one in self._sentences)


def remove_repeated_decomposed_facts(
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


def remove_facts_repeated_in_groups(
    record: DecompositionRecord, groupings: dict[str, FactGroupingRecord]
) -> tuple[DecompositionRecord, dict[str, FactGroupingRecord]]:
    """Without the facts that their group has already, by the first grouper; of no groups all stay.

    A fact that stands for a sentence which was not decomposed stays.
    """
    groups = next((one.groups for one in groupings.values()), None)
    if groups is None:
        return record, groupings
    seen: set[tuple[int, str]] = set()
    kept = []
    for number, fact in enumerate(record.facts):
        key = (groups[number], fact.text)
        if fact.failure_status is not None or key not in seen:
            seen.add(key)
            kept.append(number)
    n_removed = len(record.facts) - len(kept)
    if not n_removed:
        return record, groupings
    left = {
        name: one if one.groups is None else replace(one, groups=tuple(one.groups[number] for number in kept))
        for name, one in groupings.items()
    }
    facts = tuple(record.facts[number] for number in kept)
    return replace(record, facts=facts, n_duplicates=record.n_duplicates + n_removed), left


def make_undecomposed_record(text: str, status: str, reason: str | None) -> DecompositionRecord:
    """A text that nobody is asked to decompose: each sentence that is not left out stands for its facts, unscored."""
    told = tuple(
        one if one.is_left_out else replace(one, status=status, error=reason) for one in split_response_sentences(text)
    )
    facts = (
        AtomicFact(one.text, sentence=number, failure_status=status) for number, one in enumerate(told) if one.is_failed
    )
    return DecompositionRecord(False, told, tuple(facts))


async def decompose_into_facts(
    text: str,
    ask: Callable[[ChatRequest], Awaitable[ChatReply]],
    demonstrations: DecompositionDemonstrations,
    *,
    max_facts: int = MAX_FACTS,
    min_characters: int = MIN_FACT_CHARACTERS,
    unique_by_sentence: bool = False,
) -> DecompositionRecord:
    """A text's sentences with their facts, one call a sentence, all at once; for what `split_response_sentences`
    leaves out nothing is asked.

    Of a reply that broke off at its limit, the last line is no fact;
    one that neither has facts nor says that there are none is ``unparsed``. A sentence whose call failed, or whose
    reply could not be read, stands for its facts itself (`AtomicFact.failure_status`).

    unique_by_sentence: as of `remove_repeated_decomposed_facts`.
    """

    async def one(found: SentenceDecomposition) -> tuple[SentenceDecomposition, list[str]]:
        if found.is_left_out:
            return found, []
        sentence = found.text
        reply = await ask(demonstrations.make_request(sentence))
        answer = extract_llm_answer(reply, is_whole=lambda text: "\n" in text.strip())
        cut = reply.finish_reason in CUT_OFF_FINISH_REASONS
        if answer.status != "ok":
            return SentenceDecomposition(sentence, answer.status, reply.text, answer.error or None, cut), []
        told = parse_reply_facts(answer.text.rpartition("\n")[0] if cut else answer.text, min_characters)
        if not told.facts and not told.says_no_facts:
            error = "no facts, and no word that there are none"
            return SentenceDecomposition(sentence, "unparsed", reply.text, error, cut), []
        return SentenceDecomposition(sentence, "ok", reply.text, None, cut), told.facts

    made = await run_coroutines_concurrently(map(one, split_response_sentences(text)))
    kept, n_duplicates, n_cut = remove_repeated_decomposed_facts(
        [own for _, own in made], max_facts, unique_by_sentence
    )
    told = tuple(sentence for sentence, _ in made)
    facts: list[AtomicFact] = []
    for number, (sentence, own) in enumerate(zip(told, kept, strict=True)):
        facts += [AtomicFact(fact, sentence=number) for fact in own]
        if sentence.is_failed:
            facts.append(AtomicFact(sentence.text, sentence=number, failure_status=sentence.status))
    return DecompositionRecord(False, told, tuple(facts), n_duplicates, n_cut)
