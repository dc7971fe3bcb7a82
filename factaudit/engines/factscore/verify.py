"""Is a fact true, given passages? The prompt and the parsers (Min et al. 2023, §4.1)."""

from __future__ import annotations

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import UsageError, hint
from factaudit.llm.types import Reply, Request, Token

#: What a reply that holds neither "true" nor "false" means: `original` guesses, `strict` leaves the fact unscored.
PARSERS = ("original", "strict")
PARAMS: Mapping[str, Any] = {"temperature": 0.0, "max_tokens": 50}
#: Asked for besides, where the server can give them.
LOGPROBS: Mapping[str, Any] = {"logprobs": True, "top_logprobs": 5}

_NEGATIVE = ("not", "cannot", "unknown", "information")


@dataclass(frozen=True, slots=True)
class Support:
    """What was made of one reply; ``status`` as in the verdicts table.

    Under `original` a reply of neither word has a prediction *and* the status ``unparsed``: it is scored as published,
    and it is counted.
    """

    prediction: int | None
    score: float | None
    status: str
    raw: str | None = None


def prompt(topic: str, title: str, passages: Sequence[str], fact: str) -> str:
    """The prompt with retrieved passages, best first in ``passages``, last in the prompt: byte for byte the original's.

    ``passages`` come without ``<s>`` and ``</s>`` (`factaudit.knowledge.retrieval.clean`).
    """
    context = "".join(f"Title: {title}\nText: {passage}\n\n" for passage in reversed(passages)).strip()
    definition = f"Answer the question about {topic} based on the given context.\n\n{context}"
    if definition[-1] not in string.punctuation:
        definition += "."
    return f"{definition.strip()}\n\nInput: {fact.strip()} True or False?\nOutput:"


def no_context_prompt(fact: str) -> str:
    """The prompt without passages ("No-context LM", §4.1)."""
    return f"{fact.strip()} True or False?"


def request(text: str, logprobs: bool = True) -> Request:
    """A verification prompt as one user message, with the sampling parameters."""
    return Request(({"role": "user", "content": text},), {**PARAMS, **(LOGPROBS if logprobs else {})})


def is_supported(reply: str) -> tuple[int, bool]:
    """The original's reading of a reply: (1 or 0, whether it holds "true" or "false" at all).

    One of the words: that one. Both: the one whose *first* occurrence is later. Neither: 0 if not, cannot, unknown or
    information is among the words, else 1.
    """
    answer = reply.lower()
    true, false = answer.find("true"), answer.find("false")
    if true >= 0 or false >= 0:
        return int(true > false), True
    words = answer.translate(str.maketrans("", "", string.punctuation)).split()
    return int(not any(word in words for word in _NEGATIVE)), False


def read(reply: Reply, parser: str = "original") -> Support:
    """Read a reply; one that isn't ``ok`` (refused, error, skipped) leaves the fact unscored under its own status."""
    if parser not in PARSERS:
        raise UsageError(f"unknown parser {parser!r}{hint(parser, PARSERS)}")
    if reply.status != "ok":
        return Support(None, None, reply.status, reply.error or reply.text or None)
    prediction, parsed = is_supported(reply.text)
    if parsed:
        return Support(prediction, p_true(reply.tokens), "ok", reply.text)
    return Support(prediction if parser == "original" else None, None, "unparsed", reply.text)


def p_true(tokens: Sequence[Token] | None) -> float | None:
    """P(True) / (P(True) + P(False)) at the first token that says either; None where the server gave none."""
    for token in tokens or ():
        if _word(token.text) is None:
            continue
        mass = {"true": 0.0, "false": 0.0}
        for text, logprob in ({token.text: token.logprob} | dict(token.top)).items():
            word = _word(text)
            if word is not None:
                mass[word] += math.exp(logprob)
        total = mass["true"] + mass["false"]
        return min(1.0, mass["true"] / total) if total > 0 else None
    return None


def _word(token: str) -> str | None:
    text = token.strip(string.punctuation + string.whitespace).lower()
    return text if text in {"true", "false"} else None
