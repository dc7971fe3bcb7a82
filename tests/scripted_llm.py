"""A language model by script: it answers from a function, records what it was asked, and counts
what is under way. The only place of the tests that says where the parts of the client are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from factaudit.engines.responses import AtomicFact, Response, make_response_id
from factaudit.evaluators.llm_judges import LLMJudge
from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import LLMCostBudget
from factaudit.llm.store import ReplyStore, Send

#: For other files: names that several of them need.
__all__ = [
    "AtomicFact",
    "ChatReply",
    "ChatReplyToken",
    "ChatRequest",
    "LLMClient",
    "LLMCostBudget",
    "LLMJudge",
    "ReplyStore",
    "Response",
    "Send",
    "ask_all",
]


class Killed(BaseException):
    """As SIGKILL: no except clause of the program may catch it, and nothing after it is done."""


class ScriptedLLM(LLMClient):
    """``answer`` gets the last message's text and returns a reply, or the text of one.

    together: it answers nothing before so many requests are under way, and fails where they are not
    in half a minute.
    """

    def __init__(self, answer: Callable[[str], str | ChatReply], together: int = 1) -> None:
        super().__init__("scripted", concurrency=1000)
        self.answer = answer
        self.together = together
        self._reached = asyncio.Event()
        self.requests: list[ChatRequest] = []
        self.under_way = self.most_under_way = 0

    @property
    def prompts(self) -> list[str]:
        """What was asked, in order."""
        return [request.messages[-1]["content"] for request in self.requests]

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Record and answer one request."""
        self.requests.append(request)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if self.under_way >= self.together:
                self._reached.set()
            await asyncio.wait_for(self._reached.wait(), 30)
            await asyncio.sleep(0)
            answer = self.answer(request.messages[-1]["content"])
        finally:
            self.under_way -= 1
        return answer if isinstance(answer, ChatReply) else ChatReply("ok", answer, "stop")


def make_models(settings: type[Any], knowledge: Any, llm: ScriptedLLM | None, **given: Any) -> Any:
    """The pipeline of an engine with a model by script; ``given`` are settings."""
    from factaudit.engines.pipeline import Pipeline
    from factaudit.settings.yaml_file import check_yaml_settings

    return Pipeline(check_yaml_settings(settings, {"responses": ["-"], **given}), knowledge, llm)


def make_response(
    topic: str, output: str, system: str | None = None, position: int = 0
) -> Response:
    """A response as a file without ids gives it."""
    return Response(make_response_id(system, topic, output, position), topic, output, system)


def find_facts_to_group(prompt: str) -> str | None:
    """The lines of facts that a prompt wants grouped; None where it asks for something else."""
    asked, _, rest = prompt.rpartition("\nNext, refer to the paragraph again")
    return (
        asked.rsplit("independent facts: ", 1)[1].partition("\n")[2]
        if rest.endswith("repeat the independent facts.\n")
        else None
    )


def answer_two_facts(prompt: str) -> str:
    """Two facts a sentence; a fact is true unless it says so."""
    if prompt.startswith("Please breakdown"):
        sentence = prompt.rstrip("\n").rpartition("\n")[2].rpartition(": ")[2]
        return f"- {sentence}\n- {sentence[:-1]} indeed."
    return "False" if "wrong" in prompt.rsplit("Input:", 1)[-1] else "True"
