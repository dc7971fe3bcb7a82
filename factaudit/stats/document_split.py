"""Whole documents dealt to parts of given shares, so that each part has its share of every kind of claim.

Documents come in turn, the largest first, those of one size in random order. Each goes to the part that lacks most of
what it holds (iterative stratification; Sechidis, Tsoumakas and Vlahavas 2011, of groups in place of single rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy


def split_documents(
    document: np.ndarray, stratum: np.ndarray, shares: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    """The part of each claim, the same for all claims of a document: int64 (n,), 0 .. len(shares) − 1.

    document, stratum: int (n,), codes from 0; shares: above 0, with sum 1.

    >>> document, stratum = np.repeat(np.arange(20), 3), np.tile([0, 0, 1], 20)
    >>> part = split_documents(document, stratum, [0.5, 0.5], np.random.default_rng(0))
    >>> np.bincount(part).tolist(), np.bincount(part, stratum == 1).tolist()
    ([30, 30], [10.0, 10.0])
    """
    n_documents, n_strata = int(document.max(initial=-1)) + 1, int(stratum.max(initial=-1)) + 1
    held = scipy.sparse.coo_array((np.ones(len(document)), (document, stratum)), (n_documents, n_strata)).tocsr()
    total = np.bincount(stratum, minlength=n_strata)
    lacking = np.array(shares)[:, None] * total
    wanted = lacking.copy()
    shuffled = random.permutation(n_documents)
    part_of_document = np.zeros(n_documents, dtype=np.int64)
    for at in shuffled[np.argsort(-held.sum(axis=1)[shuffled], kind="stable")]:
        some = slice(held.indptr[at], held.indptr[at + 1])
        cells, counts = held.indices[some], held.data[some]
        part = int(np.argmax((lacking[:, cells] / wanted[:, cells]) @ (counts / total[cells])))
        part_of_document[at] = part
        lacking[part, cells] -= counts
    return part_of_document[document]


def link_claims_of_document_or_response(document: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Codes of what must stay together: claims of one document, and those of one response: int (n,).

    document, response: int (n,), codes from 0.

    >>> link_claims_of_document_or_response(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2])).tolist()
    [0, 0, 0, 1]
    """
    n_documents, n_responses = int(document.max(initial=-1)) + 1, int(response.max(initial=-1)) + 1
    size = n_documents + n_responses
    edges = scipy.sparse.coo_array((np.ones(len(document)), (document, n_documents + response)), (size, size))
    linked: np.ndarray = scipy.sparse.csgraph.connected_components(edges, directed=False)[1][document]
    return np.unique(linked, return_inverse=True)[1]
