"""Tokens as the ``rouge-score`` package counts them, of many texts at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from factaudit.text.scripts import find_script_word_starts, split_words_of_any_script

# What each byte of an ASCII text becomes: letters and digits their lower case, anything else a space.
_BYTE_TABLE = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256))
# The two characters outside ASCII whose lower case holds an ASCII letter: I with a dot, and the kelvin sign.
_DOTTED_I, _KELVIN_SIGN = "\u0130", "\u212a"
# The eight bytes of a word that a token of so many has.
_BYTE_MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)
# Marks the numbers of tokens that sixteen bytes do not hold. Bytes of ASCII leave this bit free; those of other letters
# do not, but no byte of a token is 0, as some of a number are.
_LONG_TOKEN_FLAG = np.uint64(1 << 63)


def normalise_rouge_text(text: str) -> bytes:
    """The text with a space for all but ROUGE's tokens, which are lower-cased runs of ASCII letters and digits.

    Split, it gives the tokens of rouge-score's default tokenizer without stemming.

    >>> normalise_rouge_text("Zoë's 3.5-inch disk").split()
    [b'zo', b's', b'3', b'5', b'inch', b'disk']
    """
    if _DOTTED_I in text or _KELVIN_SIGN in text:
        text = text.replace(_DOTTED_I, "i\u0307").replace(_KELVIN_SIGN, "k")
    # "replace" makes each other character a question mark, which separates tokens as it does itself. This is several
    # times as fast as a regular expression over the text in lower case.
    return text.encode("ascii", "replace").translate(_BYTE_TABLE)


def find_rouge_text_positions(text: str, starts: Sequence[int]) -> np.ndarray:
    """int64 (n,): where characters of a text, given in rising order, are in its `normalise_rouge_text`."""
    longer = accumulate(text.count(_DOTTED_I, start, end) for start, end in pairwise([0, *starts]))
    return np.array(starts, dtype=np.int64) + np.fromiter(longer, np.int64)


def encode_script_words(text: str) -> bytes:
    """A text in any script as `normalise_rouge_text` gives an English one: its words between spaces."""
    return " ".join(split_words_of_any_script(text)).encode()


def find_script_word_positions(text: str, starts: Sequence[int]) -> np.ndarray:
    """int64 (n,): where the first words at or after characters of a text are in its `encode_script_words`."""
    lengths = (len(word.encode()) + 1 for word in split_words_of_any_script(text))
    positions = np.array([*accumulate(lengths, initial=0)])
    return positions[np.searchsorted(find_script_word_starts(text), starts)]


class RougeTokens:
    """The tokens of some texts, text after text, told apart by integers.

    Attributes:
        words: uint64 (2, tokens): the same two numbers for the same token, and others for another.
        texts: int64 (texts + 1,): the number of each text's first token, and of all tokens.
    """

    def __init__(self, texts: Sequence[bytes]) -> None:
        """texts: as `normalise_rouge_text` or `encode_script_words` makes them."""
        # Spaces before and after each text are the edges of its tokens; behind the last are a token's sixteen bytes.
        joined = b" ".join((b"", *texts, b" " * 16))
        edges = np.flatnonzero(np.diff(np.frombuffer(joined, np.uint8) != 32)) + 1
        self._starts, stops = edges[::2], edges[1::2]
        self._offsets = np.array([*accumulate((len(text) + 1 for text in texts), initial=1)])
        self.texts = self._starts.searchsorted(self._offsets)
        lengths = stops - self._starts
        eight = np.ndarray((len(joined) - 7,), np.dtype("<u8"), joined, strides=(1,))
        self.words = np.zeros((2, len(lengths)), dtype=np.uint64)
        self.words[0] = eight[self._starts] & _BYTE_MASKS[np.minimum(lengths, 8)]
        rest = np.flatnonzero(lengths > 8)
        self.words[1, rest] = eight[self._starts[rest] + 8] & _BYTE_MASKS[np.minimum(lengths[rest] - 8, 8)]
        rest = np.flatnonzero(lengths > 16)
        long = [joined[start:stop] for start, stop in zip(self._starts[rest], stops[rest], strict=True)]
        numbers = {token: number for number, token in enumerate(dict.fromkeys(long))}
        self.words[1, rest] = np.array([numbers[token] for token in long], np.uint64) | _LONG_TOKEN_FLAG

    def find_first_tokens(self, text: int, positions: np.ndarray) -> np.ndarray:
        """The numbers of the tokens that start at some places of a text or are the first to do so after them."""
        return self._starts.searchsorted(self._offsets[text] + positions)

    def is_same_token(self, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """bool (n,): whether tokens, by number, are the same."""
        first, second = self.words
        return (first[some] == first[others]) & (second[some] == second[others])
