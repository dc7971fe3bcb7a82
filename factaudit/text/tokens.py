"""Tokens as the ``rouge-score`` package counts them."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"[a-z0-9]+")


def rouge_tokens(text: str) -> list[str]:
    """Lower-cased runs of ASCII letters and digits: rouge-score's default tokenizer without stemming.

    >>> rouge_tokens("Zoë's 3.5-inch disk")
    ['zo', 's', '3', '5', 'inch', 'disk']
    """
    return _TOKEN.findall(text.lower())
