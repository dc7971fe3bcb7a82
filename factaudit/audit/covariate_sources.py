"""What may being right depend on? Properties that are known of each claim: word overlap, lengths,
place of the evidence, columns.

A covariate is a number or a category for each claim. Texts give three (ROUGE-2 precision, the
length of the claim and of its document). Long documents give a fourth: the third of the document in
which the evidence lies. The claims' own columns give the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import encode_claim_group_column
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.audit.surface_bias import measure_surface_overlap
from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.documents import iterate_document_blocks
from factaudit.tables.schema import is_text_placeholder
from factaudit.text.chunks import count_words
from factaudit.text.rouge_overlap import locate_best_rouge_chunks

#: Columns that are no covariates: texts, ids, and what was computed from labels or verdicts; also
#: systems, which other audits compare.
NO_COVARIATES = {
    *("claim_id", "dataset", "task", "claim", "doc", "label", "grade", "abstained"),
    *("system", "response_id", "doc_id", "fact_id", *HUMAN_FACT_COUNTS),
}
#: A column with more values than this names single things and does not group them.
MOST_VALUES = 50
#: A column of numbers with at most so many values is a category.
MOST_CATEGORY_NUMBERS = 4
PLACES = ("beginning", "middle", "end")
#: The number of words in the chunk that has the evidence. A document is long if it has more than
#: three times as many.
EVIDENCE_WORDS = 100


@dataclass(frozen=True)
class Covariate:
    """A property of each claim: a category or a number.

    names: the values of a category; codes: int64 (n,), the position of each claim's value among
    them, -1 for none. numbers: float64 (n,), NaN for none; per: the change of the number for which
    its slope is given.
    """

    name: str
    names: Sequence[str] = ()
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    numbers: np.ndarray | None = None
    per: str = ""


def list_covariates(judgements: Judgements, columns: Sequence[str] | None) -> Iterator[Covariate]:
    """The covariates in which some labelled claims differ. columns: of the claims; by default the
    properties of the texts, and all columns that group claims."""
    claims, labelled = judgements.claims, judgements.label >= 0
    chosen = columns
    if columns is None:
        yield from _list_text_covariates(judgements, labelled)
        chosen = sorted(set(map(str, claims)) - NO_COVARIATES)
    for column in chosen or ():
        if column not in claims:
            hint = suggest_known_name(column, [str(each) for each in claims])
            raise UsageError(f"covariates: the claims have no column {column!r}{hint}")
        found = _read_column_covariate(claims[column], labelled)
        if found is not None:
            yield found
        elif columns is not None:
            raise UsageError(
                f"covariates: column {column!r} sorts no labelled claims: expected numbers, or 2 "
                f"to {MOST_VALUES} different values"
            )


def _list_text_covariates(judgements: Judgements, labelled: np.ndarray) -> Iterator[Covariate]:
    claims = judgements.claims
    for name, values, per in (
        (
            "ROUGE-2 precision",
            measure_surface_overlap(judgements),
            "from no overlap to full overlap",
        ),
        ("claim length", _count_characters(claims["claim"]), _DOUBLING),
        ("document length", _count_characters(claims["doc"]), _DOUBLING),
    ):
        known = labelled & ~np.isnan(values)
        if len(np.unique(values[known])) > 1:
            if per is _DOUBLING:
                # A slope does not depend on the origin; close to the data, sums lose fewer digits.
                values = np.log2(values / np.median(values[known]))
            yield Covariate(name, numbers=np.where(known, values, np.nan), per=per)
    yield Covariate("place of the evidence", PLACES, _locate_evidence(judgements, labelled))


_DOUBLING = "each time it doubles"


def _count_characters(texts: pd.Series) -> np.ndarray:
    """float64 (n,): the number of characters; NaN if the text is missing, empty or only a
    placeholder."""
    found = np.full(len(texts), np.nan)
    for rows, block in iterate_document_blocks(texts):
        lengths = [0 if is_text_placeholder(text) else len(text) for text in block]
        found[rows] = np.where(lengths, lengths, np.nan)
    return found


def count_document_words(judgements: Judgements) -> np.ndarray:
    """int64 (n,): the number of words in each claim's document, 0 without a document. A document
    that many claims share is counted once."""
    lengths = np.zeros(len(judgements.claims), dtype=np.int64)
    for within, docs in iterate_document_blocks(judgements.claims["doc"]):
        known = {doc: count_words(doc) for doc in set(docs)}
        lengths[within] = [known[doc] for doc in docs]
    return lengths


def _locate_evidence(judgements: Judgements, labelled: np.ndarray) -> np.ndarray:
    """int64 (n,): the third of a long document that has the chunk with most of the claim's bigrams.
    -1 if the document is short, if no chunk has a bigram, or if chunks in different thirds have
    equally many."""
    place = np.full(len(labelled), -1)
    is_long = count_document_words(judgements) > len(PLACES) * EVIDENCE_WORDS
    chosen = np.flatnonzero(labelled & is_long)
    some = judgements.claims[["claim", "doc"]].iloc[chosen]
    for rows, docs in iterate_document_blocks(some["doc"]):
        claims = some["claim"].iloc[rows].fillna("").tolist()
        shares = locate_best_rouge_chunks(claims, docs, EVIDENCE_WORDS)
        first, last = (np.nan_to_num(np.floor(len(PLACES) * share), nan=-1) for share in shares)
        place[chosen[rows]] = np.where(first == last, first, -1)
    return place


def _read_column_covariate(values: pd.Series, labelled: np.ndarray) -> Covariate | None:
    """A column as a covariate of the labelled claims; None if it has one value, or a different one
    for each claim."""
    known = labelled & values.notna().to_numpy()
    if pd.api.types.infer_dtype(values[known]) == "mixed":  # lists
        return None
    name, n_values = str(values.name), values[known].nunique()
    is_numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if is_numeric and n_values > MOST_CATEGORY_NUMBERS:
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        low, high = np.quantile(numbers[known], [0.1, 0.9], method="inverted_cdf")
        if high > low:
            scaled = np.where(known, numbers - low, np.nan) / (high - low)
            return Covariate(name, numbers=scaled, per="from its 10th to its 90th percentile")
    if not 2 <= n_values <= MOST_VALUES:
        return None
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[known], found = encode_claim_group_column(values[known].to_frame(name), name)
    names = [f"{each:g}" if isinstance(each, float) else str(each) for each in found]
    return Covariate(name, names, codes)
