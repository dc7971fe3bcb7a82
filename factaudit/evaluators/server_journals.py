"""Which file keeps the replies of language models during a run? One for each signature and the servers asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from factaudit.files import JsonLinesJournal
from factaudit.llm.settings import LLMSettings
from factaudit.llm.transport_choice import find_server_of_cached_llm_replies
from factaudit.signature import hash_texts


def _list_journal_servers_of_evaluators(askers: Iterable[Any]) -> list[str]:
    servers = {
        find_server_of_cached_llm_replies(one) if isinstance(one, LLMSettings) else getattr(one, "cache_server", "")
        for one in askers
    }
    return sorted(servers - {""})


def open_server_journal(
    folder: str | Path,
    signature: str,
    askers: Iterable[Any],
    accept_row: Callable[[Any], None],
    *,
    prefix: str = "",
    header: Mapping[str, Any] | None = None,
) -> JsonLinesJournal:
    """The journal of what a signature names, as the servers of ``askers`` (evaluators or clients) say it."""
    servers = _list_journal_servers_of_evaluators(askers)
    if header is not None and servers:
        header = {**header, "servers": servers}
    return JsonLinesJournal(Path(folder) / f"{prefix}{hash_texts(signature, *servers)}.jsonl", accept_row, header)
