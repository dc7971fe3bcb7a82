"""Recovering what LLM-AggreFact left out (system, response) from the data sets that it was made of, by claim text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.aggrefact_subsets import find_whole_aggrefact_dataset
from factaudit.datasets.conversion import convert
from factaudit.errors import UsageError, suggest_known_name
from factaudit.text.display_text import format_count

#: What a match fills in.
RECOVERED_COLUMNS = ("system", "response_id", "doc_id", "topic", "task")
#: The formats that can be joined, with the options that give LLM-AggreFact's unit: the sentence, or the summary.
JOINABLE: dict[str, dict[str, Any]] = {
    "tofueval": {},
    "lfqa": {},
    "ragtruth": {"level": "sentence"},
    "predicted": {"datasets": "origin"},
    "reveal": {},
    "claimverify": {},
    "expertqa": {},
}
#: A claim's other text, by which it is found as well (a step within its chain of thought).
_OTHER_TEXT = "claim_as_written"
#: Marks of citations, which releases have and the benchmark may not: ``[1]``, ``[^2^]``.
_CITATION = re.compile(r"\[\^?\d+\^?\]")


def join_original_datasets(claims: pd.DataFrame, join_specs: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Fill `RECOVERED_COLUMNS` of claims whose text is found in an original data set; ``join_specs`` are
    ``FORMAT:PATH``.

    Texts match within a dataset when they are equal up to white space and marks of citations and of the text's end. A
    claim that sentences of different systems match is ambiguous and left as it is. Where one system wrote the sentence
    more than once, a field is filled only if all its matches agree on it. ``claim_id`` stays. Returns the claims and,
    per format, a note of how many matched, were ambiguous, or did not match, and why.
    """
    paths: dict[str, list[Path]] = {}
    for spec in join_specs:
        name, colon, path = spec.partition(":")
        if not colon or not path:
            raise UsageError(f"join {spec!r}: expected FORMAT:PATH, such as tofueval:factual_consistency/")
        if name not in JOINABLE:
            raise UsageError(f"join {spec!r}: unknown format {name!r}{suggest_known_name(name, list(JOINABLE))}")
        paths.setdefault(name, []).append(Path(path))
    claims = claims.copy()
    notes = []
    for name, sources in paths.items():
        reference = convert(name, sources, **JOINABLE[name]).claims
        notes.append(_fill_from_original_dataset(claims, reference, name))
    return claims, notes


def _fill_from_original_dataset(claims: pd.DataFrame, original_claims: pd.DataFrame, format_name: str) -> str:
    if _OTHER_TEXT in original_claims:
        as_written = original_claims.assign(claim=original_claims[_OTHER_TEXT])
        original_claims = pd.concat([original_claims, as_written], ignore_index=True)
    keys = _make_original_dataset_text_keys(original_claims)
    groups = original_claims[[*RECOVERED_COLUMNS, "label"]].groupby(keys, sort=False)
    agreed, first = groups.nunique(dropna=True), groups.first()
    within = (
        claims["dataset"]
        .map(find_whole_aggrefact_dataset)
        .isin(set(original_claims["dataset"].map(find_whole_aggrefact_dataset)))
    )
    mine = _make_original_dataset_text_keys(claims[within])
    found = mine.isin(first.index)
    systems = mine.map(agreed["system"])
    matched = mine[found & (systems == 1)]
    for column in RECOVERED_COLUMNS:
        unique = matched[matched.map(agreed[column]) == 1]
        claims.loc[unique.index, column] = unique.map(first[column])
    ambiguous = int((found & (systems > 1)).sum())
    unnamed = int((found & (systems == 0)).sum())
    sure = matched[matched.map(agreed["label"]) == 1]
    differ = int((claims.loc[sure.index, "label"] != sure.map(first["label"])).sum())
    again = int((matched.map(agreed["response_id"]) > 1).sum())
    share = f" ({len(matched) / len(mine):.1%})" if len(mine) else ""
    text = (
        f"join {format_name}: of {format_count(len(mine), 'claim')}, {len(matched):,} matched{share}, "
        f"{ambiguous:,} ambiguous{' (several systems wrote the text)' if ambiguous else ''}, "
        f"{len(mine) - len(matched) - ambiguous:,} not matched"
    )
    if unnamed:
        text += f"; {unnamed:,} in the release without a system"
    for number, reason in _explain_texts_missing_from_original_dataset(mine[~found], keys):
        text += f"; {number:,} {reason}"
    if again:
        text += f"; {again:,} matched several responses of one system (response_id left empty)"
    if differ:
        text += f"; {differ:,} of the matched have another label there"
    return text


def _explain_texts_missing_from_original_dataset(
    missing_keys: pd.Series, release_keys: pd.Series
) -> Iterator[tuple[int, str]]:
    """Why texts of the benchmark were not found in a release: how many for each reason."""
    if missing_keys.empty:
        return
    known, texts = set(release_keys.map(_keep_words)), set(release_keys.map(_keep_text_words))
    whole = "\n".join(texts)
    reasons = Counter(
        "with another case or punctuation there"
        if _keep_words(key) in known
        else "there under another data set"
        if (text := _keep_text_words(key)) in texts
        else "within a longer text there"
        if text and text in whole
        else "not in the files of the release that were given"
        for key in missing_keys
    )
    yield from ((number, reason) for reason, number in sorted(reasons.items()))


def _keep_words(text: str) -> str:
    return " ".join(re.findall(r"\w+|\0", text.lower()))


def _keep_text_words(key: str) -> str:
    """The words of a key's text, without its data set."""
    return _keep_words(key.partition("\0")[2])


def _make_original_dataset_text_keys(claims: pd.DataFrame) -> pd.Series:
    text = claims["claim"].str.replace("</s>", " ", regex=False).str.replace(_CITATION, " ", regex=True)
    text = text.str.split().str.join(" ").str.replace(r" (?=[.,;:!?])", "", regex=True)
    text = text.astype(claims["claim"].dtype)  # without rows pandas 2 loses it
    return claims["dataset"].map(find_whole_aggrefact_dataset) + "\0" + text
