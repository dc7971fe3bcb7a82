"""What does a language model say of a claim? A template holds the prompt and the words of the
answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from factaudit.evaluators.base import Claim, Verdict, evaluator
from factaudit.evaluators.judge_prompt import JudgePromptTemplate
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import find_reply_token_limit
from factaudit.llm.reply import extract_llm_answer
from factaudit.llm.settings import LLMSettings
from factaudit.settings.yaml_paths import NameOrPath

#: The most that OpenAI's API gives; for a server that gives fewer there is ``params.top_logprobs``.
_TOP_LOGPROBS = 20


@evaluator(
    "llm",
    needs="an OpenAI-compatible server, or the extra [local]",
    checked=(
        "a scripted server that fails in every way, llama.cpp with SmolLM2-135M. No hosted one was"
        " asked"
    ),
    example="llm:model=gpt-4o-mini",
)
@dataclass(kw_only=True)
class LLMJudge(LLMSettings):
    """Asks a language model whether the document supports the claim.

    ``template`` is the name of one of ours or the path of a YAML file with the keys user, system,
    positive, negative, max_tokens, last, json and of_all (`JudgePromptTemplate`; ``json: FIELD``
    reads the answer from a field of a JSON reply). Ours are default, short, reason, aggrefact
    (LLM-AggreFact's leaderboard), no-context (the claim alone: FActScore's "No-context LM"),
    bespoke-minicheck (for that model on Ollama, which brings the instructions itself) and
    bespoke-minicheck-system (for its plain weights on any other server:
    bespokelabs/Bespoke-MiniCheck-7B).

    A reply that states no answer, or contradicts it, is unparsed. The score is P(yes) / (P(yes) +
    P(no)) at the answer's token where the server gives log-probabilities, else 1 or 0. ``params``
    are further parameters of the API; ``max_completion_tokens`` among them takes the place of
    ``max_tokens``.
    """

    template: NameOrPath = "default"
    temperature: float | None = 0.0
    max_tokens: int | None = None
    logprobs: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._prompt = JudgePromptTemplate.load(self.template)
        self.llm = LLMClient(self)

    @property
    def signature(self) -> str:
        """As that of the settings, with the template."""
        return self.sign({"template": self._prompt.digest, **self._make_request_params()})

    @property
    def verdict_name(self) -> str:
        """``llm:MODEL``, with the template where it is not the usual one; never an address, which
        may hold a key."""
        name = f"llm:{self.client_key()[0]}"
        # Of a template's file the name, not the folder: that is another on every machine.
        return name if self.template == "default" else f"{name}:{Path(self.template).stem}"

    @property
    def members(self) -> list[LLMClient]:
        """Who is asked."""
        return [self.llm]

    def again(self, repeat: int) -> LLMJudge:
        """The same judge asked once more, past the cache."""
        return replace(self, revision=f"{self.revision}~{repeat}")

    def requests(self, claims: Iterable[Claim]) -> Iterator[ChatRequest]:
        """All requests that judging ``claims`` takes, in order."""
        return (request for _, request in self._make_jobs(claims, []))

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """Yield verdicts as the replies come. Raises `FactauditError` where no claim can be
        judged."""
        without_document: list[str] = []
        for claim_id, reply in ask_all(self.llm, self._make_jobs(claims, without_document)):
            yield self._make_verdict(claim_id, reply)
        for claim_id in without_document:
            yield Verdict(claim_id, status="skipped", raw="no document")

    def _make_jobs(
        self, claims: Iterable[Claim], without_document: list[str]
    ) -> Iterator[tuple[str, ChatRequest]]:
        """The claim's id, with its request. ``without_document`` gets the ids of those that cannot
        be asked about."""
        params = self._make_request_params()
        for claim in claims:
            if claim.doc is None and self._prompt.needs_doc:
                without_document.append(claim.claim_id)
            else:
                messages = self._prompt.messages(claim.claim, claim.doc)
                yield claim.claim_id, ChatRequest(messages, params)

    def _make_request_params(self) -> dict[str, Any]:
        wanted: dict[str, Any] = (
            {} if self.temperature is None else {"temperature": self.temperature}
        )
        wanted["max_tokens"] = (
            self._prompt.max_tokens if self.max_tokens is None else self.max_tokens
        )
        if self.logprobs:
            wanted |= {"logprobs": True, "top_logprobs": _TOP_LOGPROBS}
        return self.request_params(wanted)

    def _make_verdict(self, claim_id: str, reply: ChatReply) -> Verdict:
        is_one_token = find_reply_token_limit(self._make_request_params()) == 1
        if is_one_token and self._prompt.parse_score(reply.text) is not None:
            # The only token that was asked for is the answer, though the server calls it cut off.
            reply = replace(reply, finish_reason="stop")
        answer = extract_llm_answer(reply)
        if answer.status != "ok":
            return Verdict(claim_id, status=answer.status, raw=answer.error or answer.text)
        score = self._prompt.parse_score(answer.text, answer.tokens)
        return Verdict(claim_id, score, None, "unparsed" if score is None else "ok", reply.text)
