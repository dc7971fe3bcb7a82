"""Threads of linear algebra."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Let numpy's and scipy's linear algebra use one thread, also as a decorator.

    Products of draws and counts are too small for more: a second thread mostly waits, busily, which
    takes as much CPU again; where another program has its core, all wait for it. Figures are the
    same.
    """
    # A library comes with the first module that needs it: while none is new, those that were found
    # are all there are.
    with _find_thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _find_thread_pools(n_modules: int) -> ThreadpoolController:
    """The libraries that are loaded; to look them up takes longer than most audits of a small
    table."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
