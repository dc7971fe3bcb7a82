"""A language model by script: it answers from a function, records what it was asked, and counts what is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from factaudit.llm.types import Reply, Request


class ScriptedLLM:
    """``answer`` gets the last message's text and returns a reply, or the text of one."""

    model = "scripted"
    signature = "llm|model:scripted"

    def __init__(self, answer: Callable[[str], str | Reply], latency: float = 0.0) -> None:
        self.answer = answer
        self.latency = latency
        self.requests: list[Request] = []
        self.under_way = self.most_under_way = 0

    @property
    def prompts(self) -> list[str]:
        """What was asked, in order."""
        return [request.messages[-1]["content"] for request in self.requests]

    async def ask(self, request: Request) -> Reply:
        """Record and answer one request."""
        self.requests.append(request)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.latency)
            answer = self.answer(request.messages[-1]["content"])
        finally:
            self.under_way -= 1
        return answer if isinstance(answer, Reply) else Reply("ok", answer, "stop")
