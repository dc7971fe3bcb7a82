"""Recovering what LLM-AggreFact left out (system, response) from the data sets that it was made of, by claim text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from factaudit.datasets import convert, registry
from factaudit.errors import UsageError, hint
from factaudit.text.printable import count

#: What a match fills in.
FIELDS = ("system", "response_id", "doc_id", "topic", "task")
#: The formats that can be joined, with the options that give LLM-AggreFact's unit: the sentence.
JOINABLE: dict[str, dict[str, str]] = {"tofueval": {}, "lfqa": {}, "ragtruth": {"level": "sentence"}}


def join(claims: pd.DataFrame, specs: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Fill `FIELDS` of claims whose text is found in an original data set; ``specs`` are ``FORMAT:PATH``.

    Texts match within a dataset when they are equal up to white space (and an end-of-text mark). A claim that sentences
    of different systems match is ambiguous and left as it is. Where one system wrote the sentence more than once, a
    field is filled only if all its matches agree on it. ``claim_id`` stays. Returns the claims and, per format, a note
    of how many matched, were ambiguous, or did not match.
    """
    paths: dict[str, list[Path]] = {}
    for spec in specs:
        name, colon, path = spec.partition(":")
        if not colon or not path:
            raise UsageError(f"join {spec!r}: expected FORMAT:PATH, such as tofueval:factual_consistency/")
        if name not in JOINABLE:
            raise UsageError(f"join {spec!r}: unknown format {name!r}{hint(name, list(JOINABLE))}")
        paths.setdefault(name, []).append(Path(path))
    claims = claims.copy()
    notes = []
    for name, sources in paths.items():
        reference = convert(name, sources, **JOINABLE[name]).claims
        notes.append(_fill(claims, reference, name))
    return claims, notes


def _fill(claims: pd.DataFrame, reference: pd.DataFrame, name: str) -> str:
    keys = _keys(reference)
    groups = reference[[*FIELDS, "label"]].groupby(keys, sort=False)
    agreed, first = groups.nunique(dropna=True), groups.first()
    within = claims["dataset"].map(registry.whole).isin(set(reference["dataset"].map(registry.whole)))
    mine = _keys(claims[within])
    found = mine.isin(first.index)
    systems = mine.map(agreed["system"])
    matched = mine[found & (systems == 1)]
    for column in FIELDS:
        unique = matched[matched.map(agreed[column]) == 1]
        claims.loc[unique.index, column] = unique.map(first[column])
    ambiguous = int((found & (systems > 1)).sum())
    unmatched = len(mine) - len(matched) - ambiguous
    sure = matched[matched.map(agreed["label"]) == 1]
    differ = int((claims.loc[sure.index, "label"] != sure.map(first["label"])).sum())
    again = int((matched.map(agreed["response_id"]) > 1).sum())
    text = (
        f"join {name}: of {count(len(mine), 'claim')}, {len(matched):,} matched, {ambiguous:,} ambiguous, "
        f"{unmatched:,} not matched"
    )
    if again:
        text += f"; {again:,} matched several responses of one system (response_id left empty)"
    if differ:
        text += f"; {differ:,} of the matched have another label there"
    return text


def _keys(claims: pd.DataFrame) -> pd.Series:
    text = claims["claim"].str.replace("</s>", " ", regex=False).str.split().str.join(" ")
    text = text.astype(claims["claim"].dtype)  # without rows pandas 2 loses it
    return claims["dataset"].map(registry.whole) + "\0" + text
