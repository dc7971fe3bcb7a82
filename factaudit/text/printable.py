"""Text of files, models and servers shown on a terminal as text, never as orders to it."""

from __future__ import annotations

import re

#: Control characters but tab and line feed, and the marks that turn the direction of what follows.
_ORDERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with the characters that a terminal obeys, or that reorder a line, as their escapes (``\\x1b``)."""
    return _ORDERS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
