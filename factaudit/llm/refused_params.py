"""Which parameters of a request does a model refuse? What its server has named once is not sent to it again.

Models differ: some take no ``temperature``, some no log-probabilities, some want ``max_completion_tokens`` in the place
of ``max_tokens``. Nothing is guessed from a model's name. The first refusal (HTTP 400 or 422) costs nothing; it is
remembered in the cache for the model and its server.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Any

from factaudit.llm.store import ReplyStore

#: What every request needs.
_NEEDED_PARAMS = ("model", "messages")
_LIMIT, _LIMIT_WITH_THOUGHTS = "max_tokens", "max_completion_tokens"
#: A model that wants the latter counts its thoughts in it: they come on top of the answer.
_THOUGHT_TOKENS = 4096
#: What is of no use without another parameter.
_DEPENDENT_PARAMS = {"logprobs": ("top_logprobs",), "stream": ("stream_options",)}
_TECHNICAL_WORDS = ("logprobs", "temperature", "seed")
_REFUSAL_WORDS = re.compile(
    r"unsupported|not\s+(?:\w+\s+)?support|n['’]t\s+support|unrecogni[sz]ed|unknown|not\s+(?:\w+\s+)?(?:permitted|allowed"
    r"|available|valid|accepted)|unexpected|invalid|deprecated|extra|must\b|should\s+be|only|too\s+large|cannot|can['’]t",
    re.IGNORECASE,
)

_log = logging.getLogger("factaudit.llm")


def find_refused_params(status: int, message: str, named_param: object, sent: Iterable[str]) -> tuple[str, ...]:
    """The parameters among those sent that an HTTP error refuses: the one that it names as such, else those in its
    message.

    >>> find_refused_params(400, "logprobs and top_logprobs are not supported", None, ["logprobs", "seed"])
    ('logprobs',)
    """
    if status not in (400, 422):
        return ()
    droppable = [name for name in sent if name not in _NEEDED_PARAMS]
    if isinstance(named_param, str) and (named := re.split(r"[.\[]", named_param)[0]) in droppable:
        return (named,)
    if not _REFUSAL_WORDS.search(message):
        return ()
    return tuple(name for name in droppable if _is_named(name, message))


def _is_named(name: str, message: str) -> bool:
    if "_" in name or name in _TECHNICAL_WORDS:
        pattern = rf"(?<![\w.-]){re.escape(name)}(?![\w-])"
    else:  # an ordinary word ("stop", "user") must stand in quotes, lead the message, or be called a parameter
        pattern = rf"(?:['\"`‘“]|\A\W*|(?:parameter|argument|field|property)s?\W+){re.escape(name)}\b"
    return re.search(pattern, message, re.IGNORECASE) is not None


class RefusedParams:
    """The parameters that one model of one server refuses."""

    def __init__(self, server: str, model: str, cache: ReplyStore | None) -> None:
        self._server, self._model, self._cache = server, model, cache
        self._names: set[str] | None = None

    @property
    def names(self) -> set[str]:
        if self._names is None:
            self._names = set(() if self._cache is None else self._cache.list_refused_params(self._server, self._model))
        return self._names

    def add(self, names: Iterable[str]) -> None:
        """Remember further ones, and say so once."""
        for name in names:
            if name in self.names:
                continue
            self.names.add(name)
            instead = ""
            if name == _LIMIT and _LIMIT_WITH_THOUGHTS not in self.names:
                instead = f"; {_LIMIT_WITH_THOUGHTS} is sent in its place, {_THOUGHT_TOKENS:,} higher for its thoughts"
            _log.warning("%s refuses the parameter %s, which is no longer sent%s", self._model, name, instead)
            if self._cache is not None:
                self._cache.add_refused_param(self._server, self._model, name)

    def adapt_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request without what is refused."""
        refused = self.names
        if not refused:
            return dict(body)
        adapted = dict(body)
        if _LIMIT in refused and _LIMIT in adapted and _LIMIT_WITH_THOUGHTS not in refused:
            adapted.setdefault(_LIMIT_WITH_THOUGHTS, adapted[_LIMIT] + _THOUGHT_TOKENS)
        elif _LIMIT_WITH_THOUGHTS in refused and _LIMIT_WITH_THOUGHTS in adapted and _LIMIT not in refused:
            adapted.setdefault(_LIMIT, adapted[_LIMIT_WITH_THOUGHTS])
        for name in refused:
            for each in (name, *_DEPENDENT_PARAMS.get(name, ())):
                adapted.pop(each, None)
        return adapted
