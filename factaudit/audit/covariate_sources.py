"""What is known about each claim that being right may depend on? Word overlap, lengths, place,
columns.

A covariate is a number or a category per claim. Texts give three (ROUGE-2 precision, the length of
the claim and of its document) and long documents a fourth (the third in which the evidence lies);
the claims' own columns give the others.
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

#: Columns that are no covariates: texts, ids, what was made of labels or verdicts; and systems,
#: which other audits compare.
NO_COVARIATES = {
    *("claim_id", "dataset", "task", "claim", "doc", "label", "grade", "abstained"),
    *("system", "response_id", "doc_id", "fact_id", *HUMAN_FACT_COUNTS),
}
#: A column with more values names things, and does not sort them.
MOST_VALUES = 50
#: A column of numbers with no more values than this is a category.
MOST_CATEGORY_NUMBERS = 4
PLACES = ("beginning", "middle", "end")
#: Words in the chunk that has the evidence; a document is long that has more than three times as
#: many.
EVIDENCE_WORDS = 100


@dataclass(frozen=True)
class Covariate:
    """Something known of each claim: a category, or a number.

    names: the values of a category; codes: int64 (n,), each claim's place among them, -1 for none.
    numbers: float64 (n,), NaN for none; per: over which change of the number its slope is said.
    """

    name: str
    names: Sequence[str] = ()
    codes: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    numbers: np.ndarray | None = None
    per: str = ""


def list_covariates(judgements: Judgements, columns: Sequence[str] | None) -> Iterator[Covariate]:
    """Those in which some labelled claims differ. columns: of the claims; by default the properties
    of the texts, and all columns that sort claims."""
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
                # Slopes are the same from any origin; near the data sums round off less.
                values = np.log2(values / np.median(values[known]))
            yield Covariate(name, numbers=np.where(known, values, np.nan), per=per)
    yield Covariate("place of the evidence", PLACES, _locate_evidence(judgements, labelled))


_DOUBLING = "each time it doubles"


def _count_characters(texts: pd.Series) -> np.ndarray:
    """float64 (n,): NaN where the text is missing, empty or only stands for one."""
    found = np.full(len(texts), np.nan)
    for rows, block in iterate_document_blocks(texts):
        lengths = [0 if is_text_placeholder(text) else len(text) for text in block]
        found[rows] = np.where(lengths, lengths, np.nan)
    return found


def count_document_words(judgements: Judgements) -> np.ndarray:
    """int64 (n,): words in each claim's document, 0 without one; a document that many claims share
    is counted once."""
    lengths = np.zeros(len(judgements.claims), dtype=np.int64)
    for within, docs in iterate_document_blocks(judgements.claims["doc"]):
        known = {doc: count_words(doc) for doc in set(docs)}
        lengths[within] = [known[doc] for doc in docs]
    return lengths


def _locate_evidence(judgements: Judgements, labelled: np.ndarray) -> np.ndarray:
    """int64 (n,): the third of a long document with the chunk that has the most of the claim's
    bigrams; -1 where the document is short, no chunk has one, or chunks of different thirds have as
    many."""
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
    """A column as a covariate of the labelled claims; None where it sorts none, or names each."""
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
