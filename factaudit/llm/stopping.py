"""SIGINT and SIGTERM while calls are under way: no new one, and those that were sent are awaited for a while.

They have been paid for, or will be: their replies are worth ten seconds. A second signal ends the wait at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds that calls under way are awaited.
GRACE = 10.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = logging.getLogger("factaudit.stopping")


class Interrupted(KeyboardInterrupt):
    """A signal has ended the work; ``number`` is the signal's. What was done until then is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _State:
    number: int | None = None
    until: float = 0.0
    installed = False
    heard: list[Callable[[], object]]


_state = _State()
_state.heard = []


def stopping() -> bool:
    """Whether a signal has come: nothing more is to be sent."""
    return _state.number is not None


def seconds_left() -> float:
    """How long calls under way may still be awaited; 0 where no signal has come."""
    return max(0.0, _state.until - time.monotonic()) if stopping() else 0.0


async def pause(seconds: float) -> None:
    """Sleep, but not on when a signal comes."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while (left := until - clock()) > 0 and not stopping():
        await asyncio.sleep(min(left, 0.25))


@contextmanager
def drained(on_signal: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Inside the block a first signal only sets `stopping` and calls ``on_signal``; `Interrupted` comes at its end.

    A second signal raises at once. Signals are the main thread's: in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outermost = not _state.installed
    before = {number: signal.getsignal(number) for number in _SIGNALS} if outermost else {}
    if outermost:
        _state.installed, _state.number = True, None
        for number in _SIGNALS:
            signal.signal(number, _hear)
    _state.heard.append(on_signal)
    try:
        yield
    finally:
        _state.heard.remove(on_signal)
        if outermost:
            for number, handler in before.items():
                signal.signal(number, handler)
            heard, _state.number, _state.installed = _state.number, None, False
    if outermost and heard is not None:
        raise Interrupted(heard)


def _hear(number: int, frame: FrameType | None) -> None:
    if stopping():
        raise Interrupted(number)
    _state.number, _state.until = number, time.monotonic() + GRACE
    _log.warning("stopping: calls under way are awaited for up to %.0f seconds (again: at once)", GRACE)
    for call in list(_state.heard):
        call()
