"""Tokens as the ``rouge-score`` package counts them."""

from __future__ import annotations

# What each byte of an ASCII text becomes: letters and digits their lower case, anything else a space.
_TABLE = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))


def rouge_tokens(text: str) -> list[bytes]:
    """Lower-cased runs of ASCII letters and digits: rouge-score's default tokenizer without stemming.

    As bytes, which are made, hashed and compared in two thirds of the time of text.

    >>> rouge_tokens("Zoë's 3.5-inch disk")
    [b'zo', b's', b'3', b'5', b'inch', b'disk']
    """
    # The two characters outside ASCII whose lower case holds an ASCII letter: I with a dot, and the kelvin sign.
    if "\u0130" in text or "\u212a" in text:
        text = text.lower()
    # "replace" makes each other character a question mark, which separates tokens as it does itself. This is several
    # times as fast as a regular expression over the text in lower case.
    return text.encode("ascii", "replace").translate(_TABLE).split()
