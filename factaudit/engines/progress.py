"""What does a scoring run show while it works, and which calls are behind each response?"""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

from factaudit.evaluators.judging import RETRIED_STATUSES
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatRequest
from factaudit.text.progress_lines import ProgressLines


class FactProgressBar:
    """One progress bar: facts verified of those decomposed so far, and beside it cached calls and the cost so far.

    Where there is no terminal, a line a minute.
    """

    def __init__(self, shown: bool, llm: ChatModelProtocol | None) -> None:
        self._bar = tqdm(desc="facts verified", total=0, unit="fact", disable=None if shown else True)
        self._lines = ProgressLines("facts verified", "facts decomposed so far", shown=shown)
        self._usage = getattr(llm, "usage", None)
        self._decomposed = self._verified = self._cached = 0

    def add_decomposed_facts(self, n: int) -> None:
        """So many more facts are to be verified."""
        self._decomposed += n
        self._bar.total = self._decomposed

    def count_reply(self, reply: ChatReply) -> None:
        """A reply has come."""
        self._cached += reply.cached

    def add_verified_facts(self, n: int = 1) -> None:
        """So many more facts are verified."""
        self._verified += n
        self._lines.show(self._verified, self._decomposed)
        if self._bar.disable:
            return
        cost = getattr(self._usage, "cost", None)
        told: dict[str, Any] = {"decomposed": self._bar.total, "cached": self._cached}
        self._bar.set_postfix(told | ({"cost": f"${cost:.2f}"} if cost is not None else {}), refresh=False)
        self._bar.update(n)

    def close(self) -> None:
        """Leave the bar as it is."""
        self._bar.close()


class ResponseCallCounter:
    """The calls behind one response. has_failed_calls: some should be made again when a run is resumed."""

    def __init__(self, bar: FactProgressBar) -> None:
        self.n_calls = 0
        self.has_failed_calls = False
        self._bar = bar

    async def ask(self, llm: ChatModelProtocol, request: ChatRequest) -> ChatReply:
        """Ask, and count."""
        reply = await llm.ask(request)
        self.n_calls += 1
        self.has_failed_calls |= reply.status in RETRIED_STATUSES
        self._bar.count_reply(reply)
        return reply
