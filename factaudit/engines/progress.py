"""What a run shows while it works, and the calls behind each response."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

from factaudit.evaluators.judging import RETRIED
from factaudit.llm.types import LLM, Reply, Request


class Bar:
    """One progress bar: facts verified of those decomposed so far, and beside it cached calls and the cost so far."""

    def __init__(self, shown: bool, llm: LLM | None) -> None:
        self._bar = tqdm(desc="facts verified", total=0, unit="fact", disable=None if shown else True)
        self._usage = getattr(llm, "usage", None)
        self._cached = 0

    def decomposed(self, n: int) -> None:
        """So many more facts are to be verified."""
        self._bar.total = (self._bar.total or 0) + n

    def called(self, reply: Reply) -> None:
        """A reply has come."""
        self._cached += reply.cached

    def verified(self, n: int = 1) -> None:
        """So many more facts are verified."""
        if self._bar.disable:
            return
        cost = getattr(self._usage, "cost", None)
        told: dict[str, Any] = {"decomposed": self._bar.total, "cached": self._cached}
        self._bar.set_postfix(told | ({"cost": f"${cost:.2f}"} if cost is not None else {}), refresh=False)
        self._bar.update(n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


class Calls:
    """The calls behind one response; ``failed``: some should be made again when a run is resumed."""

    def __init__(self, bar: Bar) -> None:
        self.calls = 0
        self.failed = False
        self._bar = bar

    async def ask(self, llm: LLM, request: Request) -> Reply:
        """Ask, and count."""
        reply = await llm.ask(request)
        self.calls += 1
        self.failed |= reply.status in RETRIED
        self._bar.called(reply)
        return reply
