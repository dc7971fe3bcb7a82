"""Who verifies a fact? The evaluator LM of FActScore, asked and read as its authors do; or any
other evaluator."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factaudit.engines.passages import PASSAGE_BREAK
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import make_signature
from factaudit.text.stated_verdicts import make_answer_parser, read_stated_verdict

#: FActScore's own verifiers; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT = "retrieval", "no-context"
OWN_VERIFIERS = (RETRIEVAL, NO_CONTEXT)


# ---- the prompt


def make_retrieval_prompt(topic: str, title: str, passages: Sequence[str], fact: str) -> str:
    """The prompt with retrieved passages, best first in ``passages``, last in the prompt: byte for
    byte the original's.

    ``passages`` come without ``<s>`` and ``</s>``
    (`factaudit.knowledge.retrieval.remove_special_tokens`).
    """
    context = "".join(
        f"Title: {title}\nText: {passage}\n\n" for passage in reversed(passages)
    ).strip()
    definition = f"Answer the question about {topic} based on the given context.\n\n{context}"
    if definition[-1] not in string.punctuation:
        definition += "."
    return f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"


def make_no_context_prompt(fact: str) -> str:
    """The prompt without passages."""
    return f"{fact.strip()} True or False?"


# ---- reading its replies

_parse_true_or_false = make_answer_parser(["true"], ["false"])


def parse_as_original(reply: str) -> int:
    """The original's reading, which finds a verdict in every reply.

    One of the words "true" and "false": that one. Both: the one whose *first* occurrence is later.
    Neither: 0 if not, cannot, unknown or information is among the words, else 1.
    """
    answer = reply.lower()
    true, false = answer.find("true"), answer.find("false")
    if true >= 0 or false >= 0:
        return int(true > false)
    words = answer.translate(str.maketrans("", "", string.punctuation)).split()
    return int(not any(word in words for word in ("not", "cannot", "unknown", "information")))


def read_verification(reply: ChatReply, parser: str = "strict", claim_id: str = "") -> Verdict:
    """The verdict that a reply states.

    ``strict`` takes the answer that it states; where it states none, or contradicts itself, the
    fact is unscored. Where ``original`` reads a reply otherwise it is a guess: its verdict has a
    prediction *and* the status ``unparsed``, is scored as published, and is within the bounds. A
    reply that has no answer (refused, error, skipped, empty, cut off) leaves the fact unscored
    under its own status, whatever the parser.
    """
    answer = extract_llm_answer(reply)
    if answer.status != "ok":
        return Verdict(claim_id, status=answer.status, raw=answer.error or answer.text or None)
    found = read_stated_verdict(answer.text, _parse_true_or_false)
    stated = None if found is None else found.value
    prediction = parse_as_original(answer.text) if parser == "original" else stated
    if prediction is None or prediction != stated:
        return Verdict(claim_id, None, prediction, "unparsed", reply.text)
    return Verdict(
        claim_id, compute_true_probability(answer.tokens, prediction), prediction, "ok", reply.text
    )


def compute_true_probability(
    tokens: Sequence[ChatReplyToken] | None, prediction: int
) -> float | None:
    """P(True) / (P(True) + P(False)) at the first token that says what was predicted.

    None where the server gave none, and where it would say the opposite of the prediction (a token
    that was drawn though it was the less likely): a score never contradicts the prediction that
    stands beside it.
    """
    token = next((one for one in tokens or () if _parse_token(one.text) == prediction), None)
    if token is None:
        return None
    mass = [0.0, 0.0]
    for text, logprob in ({token.text: token.logprob} | dict(token.alternatives)).items():
        if (said := _parse_token(text)) is not None:
            mass[said] += math.exp(logprob)
    score = min(1.0, mass[1] / sum(mass)) if sum(mass) > 0 else None
    return score if score is not None and (score > 0.5) == bool(prediction) else None


def _parse_token(token: str) -> int | None:
    return {"true": 1, "false": 0}.get(token.strip(string.punctuation + string.whitespace).lower())


# ---- the evaluator


@dataclass(frozen=True)
class FactVerifier:
    """The evaluator LM, with passages ("Retrieve→LM") or alone; it judges facts as any evaluator
    judges claims.

    npm: an evaluator that judges the facts that the LM finds true; its verdict then replaces the
    LM's ("Retrieve→LM+NP").
    """

    llm: LLMClient
    with_passages: bool = True
    parser: str = "strict"
    logprobs: bool = True
    npm: Evaluator | None = None

    @property
    def verdict_name(self) -> str:
        """As the original's names: "retrieval+ChatGPT"."""
        return f"{self._kind}+{self.llm.model}" + ("+npm" if self.npm else "")

    @property
    def signature(self) -> str:
        settings: dict[str, Any] = {
            "llm": self.llm.signature,
            "parser": self.parser,
            "logprobs": self.logprobs,
        }
        settings |= {"npm": self.npm.signature} if self.npm else {}
        return make_signature(self._kind, settings)

    @property
    def cache_server(self) -> str:
        """The server as the cache's keys have it."""
        return self.llm.cache_server

    @property
    def _kind(self) -> str:
        return RETRIEVAL if self.with_passages else NO_CONTEXT

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        requests = ((claim, self.make_request(claim)) for claim in claims)
        for claim, reply in ask_all(self.llm, requests):
            verdict = read_verification(reply, self.parser, claim.claim_id)
            yield (
                verdict
                if self.npm is None or verdict.prediction != 1
                else self._ask_npm(claim, verdict)
            )

    def make_request(self, claim: Claim) -> ChatRequest:
        """The prompt as one user message, with the original's sampling parameters."""
        prompt = make_no_context_prompt(claim.claim)
        if self.with_passages:
            passages = (claim.doc or "").split(PASSAGE_BREAK)
            prompt = make_retrieval_prompt(
                claim.topic or "", claim.doc_id or "", passages, claim.claim
            )
        params: dict[str, Any] = {"temperature": 0.0, "max_tokens": 50}
        if self.logprobs:
            params |= {"logprobs": True, "top_logprobs": 5}
        return ChatRequest(({"role": "user", "content": prompt},), params)

    def _ask_npm(self, claim: Claim, verdict: Verdict) -> Verdict:
        """As in the original, the probability is looked at only where the LM says True."""
        assert self.npm is not None
        (said,) = self.npm.judge([claim])
        if said.prediction is None:  # no word to ask for: the LM's verdict stands
            return replace(verdict, raw=f"{verdict.raw}\n[npm undefined]")
        # P(True) is no score for a fact that was found unsupported in spite of it.
        score = verdict.score if said.prediction == 1 else None
        return replace(
            verdict,
            prediction=said.prediction,
            score=score,
            raw=f"{verdict.raw}\n[npm {said.score:.4f}]",
        )


def reads_pages(verifier: Evaluator) -> bool:
    """Whether a verifier reads a knowledge source: all do, but the LM alone."""
    return not isinstance(verifier, FactVerifier) or verifier.with_passages


@dataclass(frozen=True)
class AskedWherePossible:
    """A verifier that judges only some facts; ``unasked`` has the verdicts of the others."""

    evaluator: Evaluator
    unasked: Mapping[str, Verdict]

    @property
    def signature(self) -> str:
        return self.evaluator.signature

    @property
    def members(self) -> tuple[Evaluator, ...]:
        return (self.evaluator,)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        asked = []
        for claim in claims:
            if claim.claim_id in self.unasked:
                yield self.unasked[claim.claim_id]
            else:
                asked.append(claim)
        yield from self.evaluator.judge(asked)
