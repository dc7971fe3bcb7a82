"""How many words an evaluator's chunks had, from the numbers of chunks that its verdicts have scores of."""

from __future__ import annotations

from collections.abc import Mapping

from factaudit.text.chunks import count_words, find_document_chunk_spans

#: The documents that are read: of more the size is known no better.
_MOST_DOCUMENTS = 30
#: A size in whole tens is likelier than one beside it, with which as many chunks come out.
_ROUND_STEPS = (500, 100, 50, 10, 5)


def infer_words_per_chunk(n_chunks: Mapping[str, int]) -> int | None:
    """The words in a chunk with which the documents have as many chunks, all together; None where none has two.

    n_chunks: documents, and how many chunks of each were scored. Chunks counted in tokens have a size in words that
    comes near.

    >>> infer_words_per_chunk({"The cat sat. A dog ran. It is late.": 3})
    5
    """
    cut = {doc: n for doc, n in n_chunks.items() if n > 1}
    cut = {doc: cut[doc] for doc in sorted(cut)[:_MOST_DOCUMENTS]}
    if not cut:
        return None
    words = {doc: count_words(doc) for doc in cut}
    # No chunk has more words than the size, so that they are at least so long.
    ends = max(-(-words[doc] // n) for doc, n in cut.items()), max(words.values())
    total = sum(cut.values())
    least = _find_least_size(cut, total, *ends)
    greatest = max(least, _find_least_size(cut, total - 1, least, ends[1]) - 1)
    return next((size for step in _ROUND_STEPS if (size := -(-least // step) * step) <= greatest), least)


def _find_least_size(documents: Mapping[str, int], n_chunks: int, low: int, high: int) -> int:
    """The least size, of ``low`` to ``high``, with which the documents have no more chunks than that."""
    while low < high:
        middle = (low + high) // 2
        if sum(len(find_document_chunk_spans(doc, middle)) for doc in documents) > n_chunks:
            low = middle + 1
        else:
            high = middle
    return low
