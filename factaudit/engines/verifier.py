"""Who verifies a fact? The evaluator LM of FActScore, asked and read as its authors do; or any
other evaluator."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factaudit.engines.passages import PASSAGE_BREAK
from factaudit.evaluators.base import Claim, Evaluator, Verdict
from factaudit.evaluators.judge_prompt import JudgePromptTemplate
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.reply import extract_llm_answer
from factaudit.signature import make_signature

#: FActScore's own verifiers; every other one is an evaluator.
RETRIEVAL, NO_CONTEXT, RETRIEVAL_AND_NPM = "retrieval", "no-context", "retrieval+npm"
OWN_VERIFIERS = (RETRIEVAL, NO_CONTEXT, RETRIEVAL_AND_NPM)
#: The original's; the log-probabilities become scores.
SAMPLING_PARAMETERS: dict[str, Any] = {
    "temperature": 0.0,
    "max_tokens": 50,
    "logprobs": True,
    "top_logprobs": 5,
}


# --------------------------------------------------------------------------------- the prompt


def make_retrieval_prompt(topic: str, title: str, passages: Sequence[str], fact: str) -> str:
    """The prompt with retrieved passages, best first in ``passages``, last in the prompt: byte for
    byte the original's.

    ``passages`` come without ``<s>`` and ``</s>``
    (`factaudit.knowledge.retrieval.remove_special_tokens`).
    """
    context = ""
    for passage in reversed(passages):
        context += f"Title: {title}\nText: {passage}\n\n"
    definition = f"Answer the question about {topic} based on the given context.\n\n"
    definition += context.strip()
    if definition[-1] not in string.punctuation:
        definition += "."
    return f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"


def make_no_context_prompt(fact: str) -> str:
    """The prompt without passages."""
    return f"{fact.strip()} True or False?"


# ------------------------------------------------------------------------- reading its replies

_TRUE_OR_FALSE = JudgePromptTemplate.model_validate(
    {"user": "{claim}", "positive": ["true"], "negative": ["false"]}
)


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
    return int(not {"not", "cannot", "unknown", "information"} & set(words))


def read_verification(reply: ChatReply, parser: str = "strict", claim_id: str = "") -> Verdict:
    """The verdict that a reply states.

    ``strict`` takes the answer that it states; where it states none, or contradicts itself, the
    fact is unscored. Where ``original`` reads a reply otherwise it is a guess: its verdict has a
    prediction *and* the status ``unparsed``, is scored as published, and is within the bounds. A
    reply that has no answer (refused, error, skipped, empty, cut off) leaves the fact unscored
    under its own status, whatever the parser. Where the server gives log-probabilities, the score
    is P(True) / (P(True) + P(False)) at the answer's token; it never contradicts the prediction.
    """
    answer = extract_llm_answer(reply)
    if answer.status != "ok":
        return Verdict(claim_id, status=answer.status, raw=answer.error or answer.text or None)
    score = _TRUE_OR_FALSE.parse_score(answer.text, answer.tokens)
    stated = None if score is None else int(score > 0.5)
    prediction = parse_as_original(answer.text) if parser == "original" else stated
    if prediction is None or prediction != stated:
        return Verdict(claim_id, None, prediction, "unparsed", reply.text)
    return Verdict(claim_id, score if answer.tokens else None, prediction, "ok", reply.text)


# -------------------------------------------------------------------------------- the evaluator


@dataclass(frozen=True)
class FactVerifier:
    """The evaluator LM, with passages ("Retrieve→LM") or alone; it judges facts as any evaluator
    judges claims.

    npm: the evaluator `npm`, which judges the facts that the LM finds true; one that it finds false
    is then not supported ("Retrieve→LM+NP").
    """

    llm: LLMClient
    with_passages: bool = True
    parser: str = "strict"
    npm: Evaluator | None = None

    @property
    def verdict_name(self) -> str:
        """As the original's names: "retrieval+ChatGPT"."""
        return f"{self._kind}+{self.llm.model}" + ("+npm" if self.npm else "")

    @property
    def signature(self) -> str:
        settings: dict[str, Any] = {"llm": self.llm.signature, "parser": self.parser}
        if self.npm:
            settings["npm"] = self.npm.signature
        return make_signature(self._kind, settings)

    @property
    def members(self) -> list[Any]:
        """Who is asked: the language model, and `npm` where it has a say."""
        return [self.llm, *filter(None, [self.npm])]

    @property
    def _kind(self) -> str:
        return RETRIEVAL if self.with_passages else NO_CONTEXT

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        requests = ((claim, self.make_request(claim)) for claim in claims)
        for claim, reply in ask_all(self.llm, requests):
            verdict = read_verification(reply, self.parser, claim.claim_id)
            if self.npm is not None and verdict.prediction == 1:
                (said,) = self.npm.judge([claim])
                raw = f"{verdict.raw}\n[npm {said.raw if said.score is None else said.score}]"
                verdict = replace(verdict, raw=raw)
                if said.prediction is None:
                    # Both must agree, so without the second there is no verdict.
                    verdict = Verdict(claim.claim_id, status="unparsed", raw=raw)
                elif said.prediction == 0:
                    # P(True) is no score for a fact that is not supported.
                    verdict = replace(verdict, prediction=0, score=None)
            yield verdict

    def make_request(self, claim: Claim) -> ChatRequest:
        """The prompt as one user message, with the original's sampling parameters."""
        prompt = make_no_context_prompt(claim.claim)
        if self.with_passages:
            passages = (claim.doc or "").split(PASSAGE_BREAK)
            prompt = make_retrieval_prompt(
                claim.topic or "", claim.doc_id or "", passages, claim.claim
            )
        return ChatRequest(({"role": "user", "content": prompt},), SAMPLING_PARAMETERS)


def reads_pages(verifier: Evaluator) -> bool:
    """Whether a verifier reads a knowledge source: all do, but the LM alone."""
    return not isinstance(verifier, FactVerifier) or verifier.with_passages
