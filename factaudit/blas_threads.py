"""Threads of linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Let numpy's and scipy's linear algebra use one thread, also as a decorator.

    Products of draws and counts are too small for more: a second thread mostly waits, busily, which takes as much CPU
    again; where another program has its core, all wait for it. Figures are the same.
    """
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
