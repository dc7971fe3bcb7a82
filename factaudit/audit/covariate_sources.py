"""What is known about each claim that being right may depend on? Word overlap, lengths, place,
columns.

A covariate is a number or a category per claim. Texts give three (ROUGE-2 precision, the length of
the claim and of its document) and long documents a fourth (the third in which the evidence lies);
the claims' own columns give the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
PLACES = ("beginning", "middle", "end")
#: Words in the chunk that has the evidence; a document is long that has more than three times as
#: many.
EVIDENCE_WORDS = 100
FROM_LOW_TO_HIGH = "from its 10th to its 90th percentile"


@dataclass(frozen=True)
class Covariate:
    """Something known of each claim.

    codes: int64 (n,), the claim's place among ``names``, -1 for none. numbers: float64 (n,), NaN
    for none; None of a category.
    per: over which change of the number its slope is said.
    """

    name: str
    names: Sequence[str]
    codes: np.ndarray
    numbers: np.ndarray | None = None
    per: str = ""


def list_covariates(
    judgements: Judgements, columns: Sequence[str] | None, bins: int
) -> Iterator[Covariate]:
    """Those that some labelled claims differ in. columns: of the claims; by default all that sort
    claims."""
    labelled = judgements.label >= 0
    if columns is None:
        yield from _list_text_covariates(judgements, labelled, bins)
    for column in columns or ():
        if column not in judgements.claims:
            hint = suggest_known_name(column, [str(each) for each in judgements.claims])
            raise UsageError(f"covariates: the claims have no column {column!r}{hint}")
    for column in sorted(
        set(map(str, judgements.claims)) - NO_COVARIATES if columns is None else columns
    ):
        found = _read_column_covariate(judgements.claims[column], labelled, bins)
        if found is not None:
            yield found
        elif columns is not None:
            raise UsageError(
                f"covariates: column {column!r} sorts no labelled claims: expected numbers, or 2 to"
                f" {MOST_VALUES} different values"
            )


def has_covariates(judgements: Judgements) -> bool:
    """Whether labelled claims have texts, or columns that sort them; cheap to tell."""
    claims, labelled = judgements.claims, judgements.label >= 0
    if (labelled & claims["claim"].notna().to_numpy()).any():
        return True
    return any(
        _read_column_covariate(claims[column], labelled, 4)
        for column in set(claims) - NO_COVARIATES
    )


def _list_text_covariates(
    judgements: Judgements, labelled: np.ndarray, bins: int
) -> Iterator[Covariate]:
    rouge2 = measure_surface_overlap(judgements)
    lengths = [_count_characters(judgements.claims[column]) for column in ("claim", "doc")]
    for name, values, per in (
        ("ROUGE-2 precision", rouge2, "from no overlap to full overlap"),
        ("claim length", lengths[0], "each time it doubles"),
        ("document length", lengths[1], "each time it doubles"),
    ):
        values = np.where(labelled, values, np.nan)
        if len(np.unique(values[~np.isnan(values)])) > 1:
            codes, names = _cut_into_bins(values, bins)
            # Slopes are the same from any origin; near the data sums round off less.
            numbers = values if per.startswith("from") else np.log2(values / np.nanmedian(values))
            yield Covariate(name, names, codes, numbers, per)
    place = np.where(labelled, _locate_evidence(judgements, labelled), -1)
    if len(np.unique(place[place >= 0])) > 1:
        yield Covariate("place of the evidence", PLACES, place)


def _count_characters(texts: pd.Series) -> np.ndarray:
    """float64 (n,): NaN where the text is missing, empty or only stands for one."""
    found = np.full(len(texts), np.nan)
    for rows, block in iterate_document_blocks(texts):
        found[rows] = [
            (
                len(text)
                if isinstance(text, str) and text and not is_text_placeholder(text)
                else np.nan
            )
            for text in block
        ]
    return found


def _locate_evidence(judgements: Judgements, labelled: np.ndarray) -> np.ndarray:
    """int64 (n,): the third of a long document with the chunk that has the most of the claim's
    bigrams; -1 where the document is short, no chunk has one, or chunks of different thirds have as
    many."""
    place = np.full(len(labelled), -1)
    at = np.flatnonzero(labelled)
    some = judgements.claims.iloc[at]
    for rows, docs in iterate_document_blocks(some["doc"]):
        words = {doc: count_words(doc) for doc in set(docs)}
        is_long = np.array([words[doc] > len(PLACES) * EVIDENCE_WORDS for doc in docs])
        chosen = rows[is_long]
        if not len(chosen):
            continue
        claims = some["claim"].iloc[chosen].fillna("").tolist()
        long_docs = [doc for doc, long in zip(docs, is_long, strict=True) if long]
        shares = locate_best_rouge_chunks(claims, long_docs, EVIDENCE_WORDS)
        first, last = (np.floor(len(PLACES) * share) for share in shares)
        place[at[chosen]] = np.where(first == last, np.nan_to_num(first, nan=-1), -1).astype(
            np.int64
        )
    return place


def _read_column_covariate(values: pd.Series, labelled: np.ndarray, bins: int) -> Covariate | None:
    """A column as a covariate of the labelled claims; None where it sorts none, or names each."""
    known = labelled & values.notna().to_numpy()
    try:
        n_values = values[known].nunique()
    except TypeError:  # lists
        return None
    if n_values < 2:
        return None
    name = str(values.name)
    if (
        pd.api.types.is_numeric_dtype(values)
        and not pd.api.types.is_bool_dtype(values)
        and n_values > bins
    ):
        numbers = np.where(known, values.to_numpy(dtype=np.float64, na_value=np.nan), np.nan)
        codes, names = _cut_into_bins(numbers, bins)
        low, high = np.nanquantile(numbers, [0.1, 0.9], method="inverted_cdf")
        scaled = (numbers - low) / (high - low) if high > low else np.full(len(numbers), np.nan)
        return Covariate(name, names, codes, scaled, FROM_LOW_TO_HIGH)
    if n_values > MOST_VALUES:
        return None
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[known], found = encode_claim_group_column(values[known].to_frame(name), name)
    return Covariate(
        name, [f"{each:g}" if isinstance(each, float) else str(each) for each in found], codes
    )


def _cut_into_bins(values: np.ndarray, bins: int) -> tuple[np.ndarray, list[str]]:
    """The bin of each value (-1: none), and the bins' names; of equal numbers of claims as far as
    ties allow."""
    known = ~np.isnan(values)
    numbers = values[known]
    edges = np.unique(np.quantile(numbers, np.arange(1, bins) / bins, method="inverted_cdf"))
    used, places = np.unique(np.searchsorted(edges, numbers, side="left"), return_inverse=True)
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[known] = places
    return codes, [
        f"{numbers[places == at].min():.4g} to {numbers[places == at].max():.4g}"
        for at in range(len(used))
    ]
