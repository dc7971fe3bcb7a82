"""The claims or responses of one dataset, whole: what error rates are estimated of, whoever holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class EstimationUnits:
    """N claims sorted by claim_id, or N responses sorted by system and response_id: what error rates are estimated of.

    systems: S sorted names, (None,) where no claim has one; system: int (N,). score: (E, N), NaN where missing;
    prediction: (E, N) and label: (N,), -1 where missing. cluster and response: int (N,), equal where they are the same
    (response -1: none). stratum: int (N,), codes that rise with the values of some columns, -1 where a response's
    claims differ; None without columns. n_left_out: claims without a system, or (of responses) without a response_id.
    n_partial: responses with labels for only some of their claims, which count as not labelled. undecided: bool (N,),
    which of those without a label people looked at and could not decide; None: none.
    """

    systems: tuple[str | None, ...]
    system: np.ndarray
    score: np.ndarray
    prediction: np.ndarray
    label: np.ndarray
    cluster: np.ndarray
    response: np.ndarray
    stratum: np.ndarray | None
    n_left_out: int
    n_partial: int
    undecided: np.ndarray | None = None


class EstimationUnitsInDatabase(Protocol):
    """Claims and verdicts that are not in memory (`factaudit.sql`)."""

    @property
    def evaluators(self) -> tuple[str, ...]:
        """Names, sorted."""

    @property
    def dataset_names(self) -> list[str]:
        """Sorted."""

    def relabel(self, labels: Mapping[str, int | None]) -> None:
        """Take these labels, by claim_id, for those of the claims. Raises `UsageError` for an unknown claim."""

    def units(self, dataset: str, level: str, evaluators: Sequence[int], strata: Sequence[str]) -> EstimationUnits:
        """One dataset; ``strata``: columns (those that the claims lack are left out).

        Raises `FactauditError` where it is too large to be held.
        """
