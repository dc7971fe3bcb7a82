"""How are many requests put to a language model? All at once, within its limits; replies come as they are there.

This is how judges and engines ask. With the Batch API (``llm.batch``) what is asked together becomes one batch, so who
asks in stages asks all of a stage together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TypeVar

from factaudit.llm.batch_api import ask_through_batch_api
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.event_loop_thread import stream_from_event_loop

#: Requests under way to a model that names no limit of its own.
_IN_FLIGHT = 1000

Item = TypeVar("Item")


def ask_all(
    llm: ChatModelProtocol,
    item_requests: Iterable[tuple[Item, ChatRequest | None]],
    *,
    reply_without_request: ChatReply | None = None,
) -> Iterator[tuple[Item, ChatReply]]:
    """Yield ``(item, reply)`` in the order of completion; ``item_requests`` is read lazily.

    What the cache has is answered at once and costs nothing. An item whose request is None gets
    ``reply_without_request``. What goes wrong with one request is its reply's status; raises `FactauditError` only for
    what would befall all of them.
    """
    client = llm if isinstance(llm, LLMClient) else None

    async def ask(pair: tuple[Item, ChatRequest | None]) -> ChatReply:
        assert pair[1] is not None
        return await llm.ask(pair[1])

    def answer_at_once(pairs: Sequence[tuple[Item, ChatRequest | None]]) -> list[ChatReply | None]:
        asked = [request for _, request in pairs if request is not None]
        cached = iter(client.find_cached_replies(asked) if client else [None] * len(asked))
        return [reply_without_request if request is None else next(cached) for _, request in pairs]

    with (client.cache if client else None) or nullcontext():
        if client and client.settings.batch:
            yield from ask_through_batch_api(client, item_requests, reply_without_request=reply_without_request)
            return
        # Twice as many as may be sent at a time: those that wait to be retried hold no place.
        for (item, _), reply in stream_from_event_loop(
            ask,
            item_requests,
            in_flight=2 * client.concurrency if client else _IN_FLIGHT,
            answer_at_once=answer_at_once,
            session=llm if isinstance(llm, AbstractAsyncContextManager) else None,
        ):
            yield item, reply
