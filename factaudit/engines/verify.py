"""Is a fact true, given passages? The prompts, their readings, and who verifies (Min et al. 2023, §4.1)."""

from __future__ import annotations

import asyncio
import math
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factaudit.engines.npm import Npm
from factaudit.engines.records import Support
from factaudit.errors import UsageError, hint
from factaudit.evaluators.judging import NamedEvaluator, check_names, name_evaluator, parts
from factaudit.knowledge.docdb import Page
from factaudit.llm.replies import understood
from factaudit.llm.types import LLM, Reply, Request, Token
from factaudit.signature import signature

#: The verifiers that put FActScore's own prompts to the LLM, and their other names; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT, NP = "retrieval", "no-context", "npm"
_OWN = {RETRIEVAL: RETRIEVAL, "llm": RETRIEVAL, NO_CONTEXT: NO_CONTEXT, NP: NP}

#: What a reply that holds neither "true" nor "false" means: `original` guesses, `strict` leaves the fact unscored.
PARSERS = ("original", "strict")
PARAMS: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 50}
#: Asked for besides, where the server can give them.
LOGPROBS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 5}

_NEGATIVE = ("not", "cannot", "unknown", "information")


def prompt(topic: str, title: str, passages: Sequence[str], fact: str) -> str:
    """The prompt with retrieved passages, best first in ``passages``, last in the prompt: byte for byte the original's.

    ``passages`` come without ``<s>`` and ``</s>`` (`factaudit.knowledge.retrieval.clean`).
    """
    context = "".join(f"Title: {title}\nText: {passage}\n\n" for passage in reversed(passages)).strip()
    definition = f"Answer the question about {topic} based on the given context.\n\n{context}"
    if definition[-1] not in string.punctuation:
        definition += "."
    return f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"


def no_context_prompt(fact: str) -> str:
    """The prompt without passages ("No-context LM", §4.1)."""
    return f"{fact.strip()} True or False?"


def request(text: str, logprobs: bool = True) -> Request:
    """A verification prompt as one user message, with the sampling parameters."""
    return Request(({"role": "user", "content": text},), {**PARAMS, **(LOGPROBS if logprobs else {})})


def is_supported(reply: str) -> tuple[int, bool]:
    """The original's reading of a reply: (1 or 0, whether it holds "true" or "false" at all).

    One of the words: that one. Both: the one whose *first* occurrence is later. Neither: 0 if not, cannot, unknown or
    information is among the words, else 1.
    """
    answer = reply.lower()
    true, false = answer.find("true"), answer.find("false")
    if true >= 0 or false >= 0:
        return int(true > false), True
    words = answer.translate(str.maketrans("", "", string.punctuation)).split()
    return int(not any(word in words for word in _NEGATIVE)), False


def read(reply: Reply, parser: str = "original") -> Support:
    """Read a reply. One that has no answer (refused, error, skipped, empty, cut off) leaves the fact unscored under its
    own status, whatever the parser."""
    if parser not in PARSERS:
        raise UsageError(f"unknown parser {parser!r}{hint(parser, PARSERS)}")
    answer = understood(reply)
    if answer.status != "ok":
        return Support(None, None, answer.status, answer.error or answer.text or None)
    prediction, parsed = is_supported(answer.text)
    if parsed:
        return Support(prediction, p_true(answer.tokens, prediction), "ok", reply.text)
    return Support(prediction if parser == "original" else None, None, "unparsed", reply.text)


def p_true(tokens: Sequence[Token] | None, prediction: int) -> float | None:
    """P(True) / (P(True) + P(False)) at the first token that says what was predicted.

    None where the server gave none, and where it would say the opposite of the prediction (a token that was drawn
    though it was the less likely): a score never contradicts the prediction that stands beside it.
    """
    word = "true" if prediction else "false"
    for token in tokens or ():
        if _word(token.text) != word:
            continue
        mass = {"true": 0.0, "false": 0.0}
        for text, logprob in ({token.text: token.logprob} | dict(token.top)).items():
            if (said := _word(text)) is not None:
                mass[said] += math.exp(logprob)
        total = mass["true"] + mass["false"]
        score = min(1.0, mass["true"] / total) if total > 0 else None
        return score if score is None or (score > 0.5) == bool(prediction) else None
    return None


def _word(token: str) -> str | None:
    text = token.strip(string.punctuation + string.whitespace).lower()
    return text if text in {"true", "false"} else None


Ask = Callable[[Request], Awaitable[Reply]]


def is_own(verifier: Any) -> bool:
    """Whether a verifier is FActScore's own: one that puts its prompts to the LLM, or its nonparametric probability."""
    return isinstance(verifier, str) and verifier in _OWN


@dataclass
class Verifiers:
    """Who verifies, in order: the LLM with passages (``retrieval``, also ``llm``), alone (``no-context``), the
    nonparametric probability alone (``npm``), evaluators.

    names: theirs in the verdicts table; the LLM's as the original's ("retrieval+ChatGPT", with "+npm" where ``npm`` is
    given, to be combined with it). asked: those that are FActScore's own. Raises `UsageError` for what cannot work.
    """

    specs: Sequence[Any]
    llm: LLM | None = None
    parser: str = "original"
    logprobs: bool = True
    npm: Npm | None = None

    def __post_init__(self) -> None:
        if self.parser not in PARSERS:
            raise UsageError(f"unknown parser {self.parser!r}{hint(self.parser, PARSERS)}")
        if not self.specs:
            raise UsageError("an engine needs a verifier")
        own = [str(one) for one in self.specs if is_own(one)]
        asking = [one for one in own if one != NP]
        if asking and self.llm is None:
            raise UsageError(f"the verifier {asking[0]!r} needs an LLM; without one take, say, unigram")
        self.names: list[str] = []
        self.asked: dict[str, str] = {}
        evaluators: list[NamedEvaluator] = []
        for spec in self.specs:
            if is_own(spec):
                self.asked[self._name(str(spec))] = _OWN[str(spec)]
                self.names.append(self._name(str(spec)))
            else:
                evaluators.append(name_evaluator(spec))
                self.names.append(evaluators[-1].name)
        self.evaluators = {one.name: one for one in evaluators}
        if len(set(map(str, self.specs))) < len(self.specs) or len(self.asked) < len(own):
            raise UsageError(f"a verifier is named twice ({', '.join(self.names)})")
        check_names(evaluators, taken=self.asked)
        if self.npm is not None and not {RETRIEVAL, NP} & set(self.asked.values()):
            raise UsageError(f"the nonparametric probability is combined with the verifier {RETRIEVAL!r}; add it")
        self._np = self.npm or Npm()

    @property
    def all_need_passages(self) -> bool:
        """Whether every verifier reads a knowledge source: an evaluator is given passages, too."""
        return NO_CONTEXT not in self.asked.values()

    @property
    def need_passages(self) -> bool:
        """Whether any verifier reads a knowledge source."""
        return bool(self.evaluators) or bool({RETRIEVAL, NP} & set(self.asked.values()))

    def reads(self, name: str) -> bool:
        """Whether one of ``asked`` reads a page, so that each candidate is a question of its own."""
        return self.asked[name] != NO_CONTEXT

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """What evaluators there are, with their parts, each with the name under which its calls are told."""
        return [(name, part) for name, one in self.evaluators.items() for part, _ in parts(one.evaluator)]

    @property
    def signatures(self) -> dict[str, str]:
        """For each name, every setting of the verifier that can change a verdict, on one line."""
        return {name: self._signature(name) for name in self.names}

    async def verify(
        self, name: str, topic: str, page: Page | None, passages: Sequence[str], fact: str, ask: Ask
    ) -> Support:
        """Put one fact to one of ``asked``; ``page`` may be None for the verifier without context alone."""
        if self.asked[name] == NO_CONTEXT:
            return read(await ask(request(no_context_prompt(fact), self.logprobs)), self.parser)
        assert page is not None
        if self.asked[name] == NP:
            return await self._by_probability(page, topic, fact)
        text = prompt(topic, page.title, passages, fact)
        support = read(await ask(request(text, self.logprobs)), self.parser)
        if self.npm is None or support.prediction != 1:
            return support
        # As in the original, the probability is looked at only where the LLM says True.
        probability = await asyncio.to_thread(self.npm.probability, page, topic, fact)
        if probability is None:  # no word to ask for: the LLM's verdict stands
            return replace(support, raw=f"{support.raw}\n[npm undefined]")
        supported = probability > self.npm.threshold
        # P(True) is no score for a fact that was found unsupported in spite of it.
        score = support.score if supported else None
        return replace(support, prediction=int(supported), score=score, raw=f"{support.raw}\n[npm {probability:.4f}]")

    async def _by_probability(self, page: Page, topic: str, fact: str) -> Support:
        found = await asyncio.to_thread(self._np.probability, page, topic, fact)
        if found is None:
            return Support(None, None, "skipped", "the fact has no word to ask for, or the page none to ask")
        return Support(int(found > self._np.threshold), found, "ok", None)

    def _name(self, spec: str) -> str:
        verifier = _OWN[spec]
        if verifier == NP:
            return NP
        model = str(getattr(self.llm, "model", None) or "llm")
        return f"{verifier}+{model}" + ("+npm" if self.npm is not None and verifier == RETRIEVAL else "")

    def _signature(self, name: str) -> str:
        if name in self.evaluators:
            return self.evaluators[name].signature
        if self.asked[name] == NP:
            return self._np.signature
        settings: dict[str, Any] = {"llm": self.llm.signature if self.llm else None}
        settings |= {"parser": self.parser, "logprobs": self.logprobs}
        if self.npm is not None and self.asked[name] == RETRIEVAL:
            settings["npm"] = self.npm.signature
        return signature(self.asked[name], settings)
