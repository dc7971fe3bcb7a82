"""What audits of rates and orders ask of claims and verdicts: numbers of claims, and of clusters of claims.

Two answer: arrays (`factaudit.arrays.judgements.Judgements`), and queries of an engine that holds tables of any size
(`factaudit.sql`). An audit that asks nothing else (`Audit.tallies`) cannot tell them apart, and both give it the same
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.errors import UsageError, suggest_known_name

if TYPE_CHECKING:
    from factaudit.arrays.calibration_claims import CalibrationClaims
    from factaudit.stats.clustered_proportions import ClusterCounts

#: Groups as whoever answers has them: nobody else reads more of them than `ClaimGroups` has.
GroupsType = TypeVar("GroupsType", bound=ClaimGroups)


@dataclass(frozen=True)
class LabelOrPrediction:
    """What is known of a claim (or response), 0, 1 or -1: its label, or what an evaluator said of it.

    ``stated_prediction``: a prediction without what was guessed. evaluator: its place among the names, -1 for the
    label.
    """

    kind: Literal["label", "prediction", "stated_prediction"]
    evaluator: int = -1


LABEL_FIELD = LabelOrPrediction("label")

#: What is resampled of one dataset (`CountSource.bootstrap_strata`): its name, codes, kinds of clusters, times of each.
BootstrapStratum = tuple[str, np.ndarray, np.ndarray, np.ndarray]


def prediction_field(evaluator: int) -> LabelOrPrediction:
    """An evaluator's predictions."""
    return LabelOrPrediction("prediction", evaluator)


def stated_prediction_field(evaluator: int) -> LabelOrPrediction:
    """An evaluator's predictions without those that were read into a reply which states none."""
    return LabelOrPrediction("stated_prediction", evaluator)


class CountSource(Protocol[GroupsType]):
    """Claims and verdicts as numbers. Cells of k fields have k axes of 3: 0, 1 and (last) missing."""

    @property
    def cache(self) -> dict[Any, Any]:
        """What several audits make of these numbers, by what it is."""

    @property
    def evaluators(self) -> tuple[str, ...]:
        """Names, sorted."""

    @property
    def dataset_names(self) -> list[str]:
        """Sorted."""

    @property
    def system_names(self) -> list[str]:
        """Sorted."""

    def make_groups(self, level: str, by: Sequence[str] = ("dataset",), *, systems: bool = False) -> GroupsType:
        """The claims or responses in the groups that the *claims* have (so that a group without a response is seen).

        ``systems``: each group split by system; what has none is in no group then. Raises `UsageError` for an unknown
        level or column, and where the claims of a response are in several groups.
        """

    def count_cells(self, groups: GroupsType, *fields: LabelOrPrediction) -> np.ndarray:
        """int64 (G, 3, ..., 3): how many fall in each cell."""

    def count_clusters(
        self, groups: GroupsType, *fields: LabelOrPrediction, complete_only: bool = False
    ) -> ClusterCounts:
        """Kinds of clusters by the numbers of their claims in each cell: counts (k, 3 ** fields).

        ``complete_only``: only of claims none of whose fields is missing: counts (k, 2 ** fields).
        """

    def count_clusters_jointly(
        self, groups: GroupsType, group_indices: Sequence[int], *fields: LabelOrPrediction
    ) -> ClusterCounts:
        """Kinds of clusters by their claims in several groups at once: one group, counts (k, places * 3 ** fields)."""

    def bootstrap_strata(self, groups: GroupsType, *fields: LabelOrPrediction) -> Iterator[BootstrapStratum]:
        """Per dataset, what is resampled there: kinds of clusters by their claims in each cell of each group.

        Gives the name, codes int (K,), each a group's place times the number of cells, plus the cell (-1: in no group),
        counts (U, K) and times (U,).
        """

    def scored_claims(self, groups: GroupsType, group_indices: Sequence[int], evaluator: int) -> CalibrationClaims:
        """The labelled claims of some groups, which are systems of one dataset, by what an evaluator scored them."""

    def n_clusters(self, groups: GroupsType) -> np.ndarray:
        """int (G,): in how many clusters each group has a claim."""


def check_count_source_evaluators(wanted_names: Iterable[str], evaluators: Sequence[str]) -> None:
    """Raise `UsageError` for a name that no verdict has."""
    for name in wanted_names:
        if name not in evaluators:
            raise UsageError(f"no verdicts of {name!r}{suggest_known_name(name, evaluators)}")


def pair_count_source_evaluators(
    evaluators: Sequence[str], partner_by_evaluator: Mapping[str, str] | None
) -> list[tuple[int, int]]:
    """Places of the pairs of evaluators that are wanted, each to its other one; None: every two."""
    if partner_by_evaluator is None:
        return list(combinations(range(len(evaluators)), 2))
    check_count_source_evaluators((name for pair in partner_by_evaluator.items() for name in pair), evaluators)
    return [(evaluators.index(a), evaluators.index(b)) for a, b in partner_by_evaluator.items()]
