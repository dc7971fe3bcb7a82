"""Is a fact true, given passages? The prompts, their readings, and who verifies (Min et al. 2023, §4.1)."""

from __future__ import annotations

import asyncio
import math
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from factaudit.engines.nonparametric_probability import NonparametricModel
from factaudit.engines.progress import FactProgressBar, ResponseCallCounter
from factaudit.engines.records import FactVerificationRecord, ResponseRecord
from factaudit.engines.reply_formats import make_json_answer_params
from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.judging import (
    NamedEvaluator,
    check_unique_evaluator_names,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.llm.answer_extraction import extract_llm_answer
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.coroutine_runner import run_coroutines_concurrently
from factaudit.signature import make_signature
from factaudit.text.stated_verdicts import make_answer_parser, read_stated_verdict

#: The verifiers that put FActScore's own prompts to the LLM, and their other names; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT, NONPARAMETRIC = "retrieval", "no-context", "npm"
_BUILTIN_VERIFIERS = {RETRIEVAL: RETRIEVAL, "llm": RETRIEVAL, NO_CONTEXT: NO_CONTEXT, NONPARAMETRIC: NONPARAMETRIC}

#: How a reply is read: `strict` takes the answer that it states and leaves the fact unscored where it states none or
#: contradicts itself; `original` is the published heuristic, which finds a verdict in every reply. What the two read
#: differently is a guess, and within the bounds.
REPLY_PARSERS = ("strict", "original")
SAMPLING_PARAMETERS: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 50}
#: Asked for besides, where the server can give them.
LOGPROB_PARAMETERS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 5}

_NEGATIVE_WORDS = ("not", "cannot", "unknown", "information")


def make_fact_verification_prompt(topic: str, title: str, passages: Sequence[str], fact: str) -> str:
    """The prompt with retrieved passages, best first in ``passages``, last in the prompt: byte for byte the original's.

    ``passages`` come without ``<s>`` and ``</s>``
    (`factaudit.knowledge.retrieval.remove_special_tokens`).
    """
    context = "".join(f"Title: {title}\nText: {passage}\n\n" for passage in reversed(passages)).strip()
    definition = f"Answer the question about {topic} based on the given context.\n\n{context}"
    if definition[-1] not in string.punctuation:
        definition += "."
    return f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"


def make_no_context_prompt(fact: str) -> str:
    """The prompt without passages ("No-context LM", §4.1)."""
    return f"{fact.strip()} True or False?"


def make_verification_request(prompt: str, logprobs: bool = True, in_json: bool = False) -> ChatRequest:
    """A verification prompt as one user message, with the sampling parameters; in_json: the reply is in JSON."""
    told = {
        **(LOGPROB_PARAMETERS if logprobs else {}),
        **(make_json_answer_params(["True", "False"]) if in_json else {}),
    }
    return ChatRequest(({"role": "user", "content": prompt},), {**SAMPLING_PARAMETERS, **told})


def parse_true_or_false_verification(reply: str) -> tuple[int, bool]:
    """The original's reading of a reply: (1 or 0, whether it holds "true" or "false" at all).

    One of the words: that one. Both: the one whose *first* occurrence is later. Neither: 0 if not, cannot, unknown or
    information is among the words, else 1.
    """
    answer = reply.lower()
    true, false = answer.find("true"), answer.find("false")
    if true >= 0 or false >= 0:
        return int(true > false), True
    words = answer.translate(str.maketrans("", "", string.punctuation)).split()
    return int(not any(word in words for word in _NEGATIVE_WORDS)), False


_parse_true_or_false = make_answer_parser(["true"], ["false"])


def parse_verification_reply(reply: ChatReply, parser: str = "strict") -> FactVerificationRecord:
    """Read a reply. One that has no answer (refused, error, skipped, empty, cut off) leaves the fact unscored under its
    own status, whatever the parser. A guess of the original's has a prediction and the status "unparsed"."""
    if parser not in REPLY_PARSERS:
        raise UsageError(f"unknown parser {parser!r}{suggest_known_name(parser, REPLY_PARSERS)}")
    answer = extract_llm_answer(reply)
    if answer.status != "ok":
        return FactVerificationRecord(None, None, answer.status, answer.error or answer.text or None)
    verdict = read_stated_verdict(answer.text, _parse_true_or_false)
    stated = None if verdict is None else verdict.value
    prediction = parse_true_or_false_verification(answer.text)[0] if parser == "original" else stated
    if prediction is None or prediction != stated:
        return FactVerificationRecord(prediction, None, "unparsed", reply.text)
    score = compute_true_token_probability(answer.tokens, prediction)
    return FactVerificationRecord(prediction, score, "ok", reply.text)


def compute_true_token_probability(tokens: Sequence[ChatReplyToken] | None, prediction: int) -> float | None:
    """P(True) / (P(True) + P(False)) at the first token that says what was predicted.

    None where the server gave none, and where it would say the opposite of the prediction (a token that was drawn
    though it was the less likely): a score never contradicts the prediction that stands beside it.
    """
    word = "true" if prediction else "false"
    for token in tokens or ():
        if _parse_true_false_token(token.text) != word:
            continue
        mass = {"true": 0.0, "false": 0.0}
        for text, logprob in ({token.text: token.logprob} | dict(token.alternatives)).items():
            if (said := _parse_true_false_token(text)) is not None:
                mass[said] += math.exp(logprob)
        total = mass["true"] + mass["false"]
        score = min(1.0, mass["true"] / total) if total > 0 else None
        return score if score is None or (score > 0.5) == bool(prediction) else None
    return None


def _parse_true_false_token(token: str) -> str | None:
    text = token.strip(string.punctuation + string.whitespace).lower()
    return text if text in {"true", "false"} else None


AskFunction = Callable[[ChatRequest], Awaitable[ChatReply]]


def is_builtin_verifier(verifier: Any) -> bool:
    """Whether a verifier is FActScore's own: one that puts its prompts to the LLM, or its nonparametric probability."""
    return isinstance(verifier, str) and verifier in _BUILTIN_VERIFIERS


@dataclass
class FactVerifierSet:
    """Who verifies, in order: the LLM with passages (``retrieval``, also ``llm``), alone (``no-context``), the
    nonparametric probability alone (``npm``), evaluators.

    names: theirs in the verdicts table; the LLM's as the original's ("retrieval+ChatGPT", with "+npm" where ``npm`` is
    given, to be combined with it). builtin_verifiers: those that are FActScore's own, by name. in_json: ask for
    replies in JSON. Raises `UsageError` for what cannot work.
    """

    specs: Sequence[Any]
    llm: ChatModelProtocol | None = None
    parser: str = "strict"
    logprobs: bool = True
    npm: NonparametricModel | None = None
    in_json: bool = False

    def __post_init__(self) -> None:
        if self.parser not in REPLY_PARSERS:
            raise UsageError(f"unknown parser {self.parser!r}{suggest_known_name(self.parser, REPLY_PARSERS)}")
        if not self.specs:
            raise UsageError("an engine needs a verifier")
        own = [str(one) for one in self.specs if is_builtin_verifier(one)]
        asking = [one for one in own if one != NONPARAMETRIC]
        if asking and self.llm is None:
            raise UsageError(f"the verifier {asking[0]!r} needs an LLM; without one take, say, unigram")
        self.names: list[str] = []
        self.builtin_verifiers: dict[str, str] = {}
        evaluators: list[NamedEvaluator] = []
        for spec in self.specs:
            if is_builtin_verifier(spec):
                self.builtin_verifiers[self._make_verifier_name(str(spec))] = _BUILTIN_VERIFIERS[str(spec)]
                self.names.append(self._make_verifier_name(str(spec)))
            else:
                evaluators.append(make_named_evaluator(spec))
                self.names.append(evaluators[-1].name)
        self.evaluators = {one.name: one for one in evaluators}
        if len(set(map(str, self.specs))) < len(self.specs) or len(self.builtin_verifiers) < len(own):
            raise UsageError(f"a verifier is named twice ({', '.join(self.names)})")
        check_unique_evaluator_names(evaluators, taken_names=self.builtin_verifiers)
        if self.npm is not None and not {RETRIEVAL, NONPARAMETRIC} & set(self.builtin_verifiers.values()):
            raise UsageError(f"the nonparametric probability is combined with the verifier {RETRIEVAL!r}; add it")
        self._np = self.npm or NonparametricModel()

    @property
    def all_need_passages(self) -> bool:
        """Whether every verifier reads a knowledge source: an evaluator is given passages, too."""
        return NO_CONTEXT not in self.builtin_verifiers.values()

    @property
    def need_passages(self) -> bool:
        """Whether any verifier reads a knowledge source."""
        return bool(self.evaluators) or bool({RETRIEVAL, NONPARAMETRIC} & set(self.builtin_verifiers.values()))

    def reads_pages(self, name: str) -> bool:
        """Whether a built-in verifier reads a page, so that each candidate is a question of its own."""
        return self.builtin_verifiers[name] != NO_CONTEXT

    @property
    def counted_clients(self) -> list[tuple[str, Any]]:
        """The evaluators with their parts, each with the name under which the run lists its calls."""
        return [
            (name, part) for name, one in self.evaluators.items() for part, _ in walk_evaluator_members(one.evaluator)
        ]

    @property
    def signatures(self) -> dict[str, str]:
        """For each name, every setting of the verifier that can change a verdict, on one line."""
        return {name: self._make_verifier_signature(name) for name in self.names}

    async def verify_record(
        self,
        topic: str,
        record: ResponseRecord,
        pages: Sequence[KnowledgePage | None],
        calls: ResponseCallCounter,
        bar: FactProgressBar,
    ) -> dict[str, tuple[FactVerificationRecord, ...]]:
        """The verdicts of the built-in verifiers on a response; evaluators come after, with their own progress bar.

        pages: of each candidate. Returns for each verifier a verdict per fact and candidate, as in `ResponseRecord`.
        """
        facts = record.decomposed.facts

        async def verify_pair(name: str, fact: int, candidate: int) -> FactVerificationRecord:
            passages = record.list_passages(fact, candidate)
            if facts[fact].failure_status or (passages is None and self.reads_pages(name)):
                return record.make_missing_support(fact, candidate)
            assert self.llm is not None
            ask = partial(calls.ask, self.llm)
            return await self.verify_fact(name, topic, pages[candidate], passages or (), facts[fact].text, ask)

        async def verify_pairs(name: str, fact: int) -> list[FactVerificationRecord]:
            # Without context, all candidates are one question.
            n_asked = len(pages) if self.reads_pages(name) else 1
            if n_asked == 1:  # a task of its own costs more than it gains
                supports = [await verify_pair(name, fact, 0)]
            else:
                supports = await run_coroutines_concurrently(
                    verify_pair(name, fact, candidate) for candidate in range(n_asked)
                )
            if name == self.names[0]:
                bar.add_verified_facts()
            return supports if n_asked == len(pages) else supports * len(pages)

        names = list(self.builtin_verifiers)
        found = iter(
            await run_coroutines_concurrently(verify_pairs(name, fact) for name in names for fact in range(len(facts)))
        )
        if self.names[0] not in names:
            bar.add_verified_facts(len(facts))
        return {name: tuple(support for _ in facts for support in next(found)) for name in names}

    async def verify_fact(
        self,
        name: str,
        topic: str,
        page: KnowledgePage | None,
        passages: Sequence[str],
        fact: str,
        ask: AskFunction,
    ) -> FactVerificationRecord:
        """Put one fact to a built-in verifier; ``page`` may be None for the one without context alone."""
        if self.builtin_verifiers[name] == NO_CONTEXT:
            return await self._verify_by_prompt(make_no_context_prompt(fact), ask)
        assert page is not None
        if self.builtin_verifiers[name] == NONPARAMETRIC:
            return await self._verify_by_probability(page, topic, fact)
        text = make_fact_verification_prompt(topic, page.title, passages, fact)
        support = await self._verify_by_prompt(text, ask)
        if self.npm is None or support.prediction != 1:
            return support
        # As in the original, the probability is looked at only where the LLM says True.
        probability = await asyncio.to_thread(self.npm.compute_fact_probability, page, topic, fact)
        if probability is None:  # no word to ask for: the LLM's verdict stands
            return replace(support, raw=f"{support.raw}\n[npm undefined]")
        supported = probability > self.npm.threshold
        # P(True) is no score for a fact that was found unsupported in spite of it.
        score = support.score if supported else None
        return replace(support, prediction=int(supported), score=score, raw=f"{support.raw}\n[npm {probability:.4f}]")

    async def _verify_by_prompt(self, prompt: str, ask: AskFunction) -> FactVerificationRecord:
        request = make_verification_request(prompt, self.logprobs, self.in_json)
        reply = await ask(request)
        if self.in_json and "".join(token.text for token in reply.tokens or ()) != reply.text:
            reply = replace(reply, tokens=None)  # llama.cpp gives those that its grammar did not let pass
        return parse_verification_reply(reply, self.parser)

    async def _verify_by_probability(self, page: KnowledgePage, topic: str, fact: str) -> FactVerificationRecord:
        found = await asyncio.to_thread(self._np.compute_fact_probability, page, topic, fact)
        if found is None:
            return FactVerificationRecord(
                None, None, "skipped", "the fact has no word to ask for, or the page none to ask"
            )
        return FactVerificationRecord(int(found > self._np.threshold), found, "ok", None)

    def _make_verifier_name(self, spec: str) -> str:
        verifier = _BUILTIN_VERIFIERS[spec]
        if verifier == NONPARAMETRIC:
            return NONPARAMETRIC
        model = str(getattr(self.llm, "model", None) or "llm")
        return f"{verifier}+{model}" + ("+npm" if self.npm is not None and verifier == RETRIEVAL else "")

    def _make_verifier_signature(self, name: str) -> str:
        if name in self.evaluators:
            return self.evaluators[name].signature
        if self.builtin_verifiers[name] == NONPARAMETRIC:
            return self._np.signature
        settings: dict[str, Any] = {"llm": self.llm.signature if self.llm else None}
        settings |= {"parser": self.parser, "logprobs": self.logprobs} | ({"json": True} if self.in_json else {})
        if self.npm is not None and self.builtin_verifiers[name] == RETRIEVAL:
            settings["npm"] = self.npm.signature
        return make_signature(self.builtin_verifiers[name], settings)
