"""What does a language model say of a claim? A template holds the prompt and the words of the
answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

from factaudit.errors import UsageError
from factaudit.evaluators.base import Claim, Verdict, evaluator
from factaudit.evaluators.judge_prompt import JudgePromptTemplate
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import LLMCallUsage, LLMCostBudget, find_reply_token_limit
from factaudit.llm.reply import extract_llm_answer
from factaudit.llm.server import Server
from factaudit.llm.settings import LLMSettings
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.signature import make_signature

_NO_DOCUMENT_REPLY = ChatReply("skipped", error="no document")


def _split_template_names(value: Any) -> Any:
    return value.split("+") if isinstance(value, str) else value


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
    positive, negative, max_tokens, last and json (`JudgePromptTemplate`; ``json: FIELD`` reads the
    answer from a field of a JSON reply). Ours are default, short, reason, aggrefact
    (LLM-AggreFact's leaderboard), no-context (the claim alone: FActScore's "No-context LM"),
    bespoke-minicheck (for that model on Ollama, which brings the instructions itself) and
    bespoke-minicheck-system (for its plain weights on any other server:
    bespokelabs/Bespoke-MiniCheck-7B).

    A reply that states no answer, or contradicts it, is unparsed. The score is P(yes) / (P(yes) +
    P(no)) at the answer's token where the server gives log-probabilities, else 1 or 0. ``n``
    samples are asked for one by one (with seeds 0 to n - 1) and averaged, those without a yes or no
    left out. ``params`` are further parameters of the API; ``max_completion_tokens`` among them
    takes the place of ``max_tokens``.
    """

    template: NameOrPath = "default"
    n: int = 1
    temperature: float | None = 0.0
    max_tokens: int | None = None
    logprobs: bool = True
    top_logprobs: int = 20
    #: The prompt in other words, as templates: each is a repeat of the evaluator
    #: (`factaudit judge --repeats`). On the command line joined by ``+``.
    prompts: Annotated[list[NameOrPath], BeforeValidator(_split_template_names)] = field(
        default_factory=list
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        #: Shared by the evaluators of a run; the runner sets it.
        self.budget: LLMCostBudget | None = None
        #: What this evaluator has used so far.
        self.usage = LLMCallUsage()
        if self.n < 1:
            raise UsageError(f"option n: expected 1 or more samples, found {self.n}")
        if self.n > 1 and not self.params.get("temperature", self.temperature):
            raise UsageError(
                "option n: samples at temperature 0 are all the same; set a temperature above 0"
            )
        if not 0 <= self.top_logprobs <= 20:
            raise UsageError(f"option top_logprobs: expected 0 to 20, found {self.top_logprobs}")
        self._prompt = JudgePromptTemplate.load(self.template)

    @property
    def signature(self) -> str:
        """Every setting that can change a verdict; not the server's address, nor how fast it is
        asked."""
        model, revision = self.client_key()
        settings = {
            "model": model,
            "revision": revision,
            "template": self._prompt.digest,
            "n": self.n,
        }
        settings |= {"server": self.server_name} if self.server_name else {}
        return make_signature("llm", {**settings, **self._make_request_params()})

    @property
    def verdict_name(self) -> str:
        """``llm:MODEL``, with the template where it is not the usual one; never an address, which
        may hold a key."""
        name = f"llm:{self.client_key()[0]}"
        # Of a template's file the name, not the folder: that is another on every machine.
        return name if self.template == "default" else f"{name}:{Path(self.template).stem}"

    @property
    def cache_server(self) -> str:
        """The server as the cache's keys have it."""
        return Server(self).cache_name

    def again(self, repeat: int) -> LLMJudge:
        """The same judge asked once more: by the next of ``prompts``, else in the same words past
        the cache."""
        if repeat <= len(self.prompts):
            return replace(self, template=self.prompts[repeat - 1], prompts=[])
        return replace(self, prompts=[], revision=f"{self.revision}~{repeat}")

    def requests(self, claims: Iterable[Claim]) -> Iterator[ChatRequest]:
        """All requests that judging ``claims`` takes, in order."""
        return (request for _, request in self._make_jobs(claims) if request is not None)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """Yield verdicts as the replies come. Raises `FactauditError` where no claim can be
        judged."""
        samples: dict[int, list[ChatReply]] = {}
        for (serial, claim_id), reply in ask_all(
            self._make_client(), self._make_jobs(claims), reply_without_request=_NO_DOCUMENT_REPLY
        ):
            so_far = samples.setdefault(serial, [])
            so_far.append(reply)
            if len(so_far) == self.n:
                yield self._make_verdict(claim_id, samples.pop(serial))

    def _make_client(self) -> LLMClient:
        own = {one.name: getattr(self, one.name) for one in fields(LLMSettings)}
        # Requests come with all parameters, the seeds of their samples among them.
        own["params"] = {key: value for key, value in self.params.items() if key != "seed"}
        return LLMClient(
            LLMSettings(**own), cache=self.cache_path(), budget=self.budget, usage=self.usage
        )

    def _make_jobs(
        self, claims: Iterable[Claim]
    ) -> Iterator[tuple[tuple[int, str], ChatRequest | None]]:
        """The claim's number and id, with its request; None for one that has no document to be
        judged by."""
        params = self._make_request_params()
        for serial, claim in enumerate(claims):
            if claim.doc is None and self._prompt.needs_doc:
                yield from [((serial, claim.claim_id), None)] * self.n
                continue
            messages = self._prompt.messages(claim.claim, claim.doc)
            for sample in range(self.n):
                own = params if self.n == 1 else {**params, "seed": params.get("seed", 0) + sample}
                yield (serial, claim.claim_id), ChatRequest(messages, own)

    def _make_request_params(self) -> dict[str, Any]:
        wanted: dict[str, Any] = (
            {} if self.temperature is None else {"temperature": self.temperature}
        )
        wanted["max_tokens"] = (
            self._prompt.max_tokens if self.max_tokens is None else self.max_tokens
        )
        if self.logprobs:
            wanted |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        return self.request_params(wanted)

    def _make_verdict(self, claim_id: str, replies: Sequence[ChatReply]) -> Verdict:
        answers = [extract_llm_answer(reply, self._has_whole_answer) for reply in replies]
        shown = [
            reply.text if answer.status == "ok" else answer.error or answer.text
            for reply, answer in zip(replies, answers, strict=True)
        ]
        raw = shown[0] if self.n == 1 else json.dumps(shown, ensure_ascii=False)
        for reply in replies:
            # A sample that never came makes the verdict one to ask for again; those that came are
            # in the cache.
            if reply.status in ("error", "skipped"):
                return Verdict(claim_id, status=reply.status, raw=raw)
        read = [
            self._prompt.parse_score(answer.text, answer.tokens)
            for answer in answers
            if answer.status == "ok"
        ]
        if known := [score for score in read if score is not None]:
            return Verdict(claim_id, score=sum(known) / len(known), raw=raw)
        refused = all(answer.status == "refused" for answer in answers)
        return Verdict(claim_id, status="refused" if refused else "unparsed", raw=raw)

    def _has_whole_answer(self, text: str) -> bool:
        return self._prompt.has_whole_answer(
            text, find_reply_token_limit(self._make_request_params())
        )
