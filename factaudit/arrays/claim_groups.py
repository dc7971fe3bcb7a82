"""How are claims grouped by columns that the user names?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import UsageError, suggest_known_name
from factaudit.stats.clustered_proportions import encode_distinct_integer_pairs


def find_claims_in_responses(claims: pd.DataFrame, response_codes: np.ndarray) -> np.ndarray:
    """bool (n,): whether a claim has a response_id and is a part of that response.

    If one fact has several rows (one for each person whom it may be about, or for each document
    that it cites), the response is not wrong because one row is 0. The rows of such responses,
    which their codes name as a whole, count as no part of a response.
    """
    inside: np.ndarray = claims["response_id"].notna().to_numpy(dtype=bool, copy=True)
    if "fact_id" in claims:
        facts = pd.DataFrame({"response": response_codes, "fact": claims["fact_id"]})
        facts = facts[inside & facts["fact"].notna()]
        several = facts["response"][facts.duplicated()]
        inside &= ~np.isin(response_codes, several)
    return inside


@dataclass(frozen=True, eq=False)
class ClaimGroups:
    """Rows in groups. ``codes``: int64 (n,), the group of each row, -1 for none; ``keys``: for each
    group its value of each column, sorted.

    ``level`` says whether the rows are claims or responses. ``claims_without_response``: for each
    group, the number of its claims that are in no response. ``tallies``: the counts that
    `Judgements.tally` has made.
    """

    codes: np.ndarray
    keys: list[dict[str, Any]]
    level: str = "claim"
    claims_without_response: tuple[int, ...] = ()
    tallies: dict[tuple[Any, ...], Any] = field(default_factory=dict, init=False, repr=False)

    def rows(self, group_index: int) -> np.ndarray:
        """int64: the rows of one group in ascending order."""
        return np.flatnonzero(self.codes == group_index)


def group_claims_by_columns(claims: pd.DataFrame, column_names: Sequence[str]) -> ClaimGroups:
    """Groups with equal values of the columns ``column_names``. A missing value is a group of its
    own (key None), sorted last.

    Each key begins with ``dataset``, which is ``__all__`` if it is not among ``column_names``.
    Raises `UsageError` for an unknown column.
    """
    groups = ClaimGroups(
        np.zeros(len(claims), dtype=np.int64), [{"dataset": ALL_TOGETHER}] if len(claims) else []
    )
    for column in dict.fromkeys(column_names):
        groups = split_claim_groups_by_column(groups, claims, column, keep_missing=True)
    return groups


def split_claim_groups_by_column(
    groups: ClaimGroups, claims: pd.DataFrame, column: str, *, keep_missing: bool = False
) -> ClaimGroups:
    """Each group, split by one more column. Rows without a value get the code -1, or form a group
    that is sorted last."""
    values, names = encode_claim_group_column(claims, column)
    inside = claims[column].notna().to_numpy() | keep_missing
    pairs, codes = encode_distinct_integer_pairs(groups.codes[inside], values[inside], len(names))
    found = np.full(len(claims), -1, dtype=np.int64)
    found[inside] = codes
    keys = [
        {**groups.keys[pair // len(names)], column: names[pair % len(names)]}
        for pair in pairs.tolist()
    ]
    return replace(groups, codes=found, keys=keys, claims_without_response=())


def encode_claim_group_column(claims: pd.DataFrame, column: str) -> tuple[np.ndarray, list[Any]]:
    """A column as int64 codes (n,) into its distinct values, which are sorted; None comes last if a
    value is missing."""
    if column not in claims:
        raise UsageError(
            "the claims have no column"
            f" {column!r}{suggest_known_name(column, [str(c) for c in claims.columns])}"
        )
    try:
        codes, found = pd.factorize(claims[column], use_na_sentinel=True)
    except TypeError as error:
        raise UsageError(
            f"column {column!r} holds lists or objects: claims cannot be grouped by it"
        ) from error
    names = pd.Index(found).astype(object).tolist()
    order = sorted(range(len(names)), key=lambda i: (str(type(names[i])), names[i]))
    rank = np.empty(len(names) + 1, dtype=np.int64)
    rank[order] = np.arange(len(names))
    rank[-1] = len(names)  # where pandas' code is -1: missing
    missing = [None] if (codes == -1).any() else []
    return rank[codes], [names[i] for i in order] + missing


#: The value of a key that means "not split by this column": the row is about all datasets, or about
#: all systems.
ALL_TOGETHER = "__all__"
