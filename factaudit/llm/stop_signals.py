"""What happens on SIGINT and SIGTERM while calls are under way? No new call; those that were sent
are awaited a while.

They have been paid for, or will be: their replies are worth ten seconds. A second signal ends the
wait at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Seconds that calls under way are awaited.
GRACE_SECONDS = 10.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)

_log = logging.getLogger("factaudit.stopping")


class SignalInterrupt(KeyboardInterrupt):
    """A signal has ended the work; ``number`` is the signal's. What was done until then is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class _StopSignalState:
    signal_number: int | None = None
    grace_end: float = 0.0
    has_handlers = False


_signal_state = _StopSignalState()


def is_stopping() -> bool:
    """Whether a signal has come: nothing more is to be sent."""
    return _signal_state.signal_number is not None


def grace_seconds_left() -> float:
    """How long calls under way may still be awaited; 0 where no signal has come."""
    return max(0.0, _signal_state.grace_end - time.monotonic()) if is_stopping() else 0.0


async def sleep_until_signal(seconds: float) -> None:
    """Sleep, but not on when a signal comes."""
    clock = asyncio.get_running_loop().time
    until = clock() + seconds
    while (left := until - clock()) > 0 and not is_stopping():
        await asyncio.sleep(min(left, 0.25))


@contextmanager
def drain_calls_on_signal() -> Iterator[None]:
    """Let a first signal only set `is_stopping`; raise `SignalInterrupt` at the block's end.

    A second signal raises at once. Signals are the main thread's: in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    outermost = not _signal_state.has_handlers
    before = {number: signal.getsignal(number) for number in _STOP_SIGNALS} if outermost else {}
    if outermost:
        _signal_state.has_handlers, _signal_state.signal_number = True, None
        for number in _STOP_SIGNALS:
            signal.signal(number, _handle_stop_signal)
    try:
        yield
    finally:
        if outermost:
            for number, handler in before.items():
                signal.signal(number, handler)
            heard, _signal_state.signal_number, _signal_state.has_handlers = (
                _signal_state.signal_number,
                None,
                False,
            )
    if outermost and heard is not None:
        raise SignalInterrupt(heard)


def _handle_stop_signal(signal_number: int, frame: FrameType | None) -> None:
    if is_stopping():
        raise SignalInterrupt(signal_number)
    _signal_state.signal_number, _signal_state.grace_end = (
        signal_number,
        time.monotonic() + GRACE_SECONDS,
    )
    _log.warning(
        "stopping: calls under way are awaited for up to %.0f seconds (again: at once)",
        GRACE_SECONDS,
    )
