"""What audits of rates and orders ask of claims and verdicts: numbers of claims, and of clusters of claims.

Two answer: arrays (`factaudit.audit.core.judged.Judged`), and queries of an engine that holds tables of any size
(`factaudit.sql`). An audit that asks nothing else (`Audit.tallies`) cannot tell them apart, and both give it the same
numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np

from factaudit.audit.core.groups import Groups
from factaudit.errors import UsageError, hint

if TYPE_CHECKING:
    from factaudit.audit.core.scores import Case
    from factaudit.audit.core.shares import Clusters

#: Groups as whoever answers has them: nobody else reads more of them than `Groups` has.
G = TypeVar("G", bound=Groups)


@dataclass(frozen=True)
class Field:
    """What is known of a claim (or response), 0, 1 or -1: its label, or what an evaluator said of it.

    ``certain``: a prediction without what was guessed. evaluator: its place among the names; -1 for the label.
    """

    kind: Literal["label", "prediction", "certain"]
    evaluator: int = -1


LABEL = Field("label")

#: What is resampled of one dataset: its name, codes, kinds of clusters and how often each occurs (`Tallies.strata`).
Stratum = tuple[str, np.ndarray, np.ndarray, np.ndarray]


def says(evaluator: int) -> Field:
    """An evaluator's predictions."""
    return Field("prediction", evaluator)


def states(evaluator: int) -> Field:
    """An evaluator's predictions without those that were read into a reply which states none."""
    return Field("certain", evaluator)


class Tallies(Protocol[G]):
    """Claims and verdicts as numbers. Cells of k fields have k axes of 3: 0, 1 and (last) missing."""

    @property
    def kept(self) -> dict[Any, Any]:
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

    def group(self, level: str, by: Sequence[str] = ("dataset",), *, systems: bool = False) -> G:
        """The claims or responses in the groups that the *claims* have (so that a group without a response is seen).

        ``systems``: each group split by system; what has none is in no group then. Raises `UsageError` for an unknown
        level or column, and where the claims of a response are in several groups.
        """

    def count(self, groups: G, *fields: Field) -> np.ndarray:
        """int64 (G, 3, ..., 3): how many fall in each cell."""

    def clusters_of(self, groups: G, *fields: Field, known: bool = False) -> Clusters:
        """Kinds of clusters by the numbers of their claims in each cell: counts (k, 3 ** fields).

        ``known``: only of claims none of whose fields is missing: counts (k, 2 ** fields).
        """

    def together(self, groups: G, places: Sequence[int], *fields: Field) -> Clusters:
        """Kinds of clusters by their claims in several groups at once: one group, counts (k, places * 3 ** fields)."""

    def strata(self, groups: G, *fields: Field) -> Iterator[Stratum]:
        """Per dataset, what is resampled there: kinds of clusters by their claims in each cell of each group.

        Gives the name, codes int (K,), each a group's place times the number of cells, plus the cell (-1: in no group),
        counts (U, K) and times (U,).
        """

    def scored(self, groups: G, places: Sequence[int], evaluator: int) -> Case:
        """The labelled claims of some groups, which are systems of one dataset, by what an evaluator scored them."""

    def n_clusters(self, groups: G) -> np.ndarray:
        """int (G,): in how many clusters each group has a claim."""


def check_evaluators(names: Iterable[str], known: Sequence[str]) -> None:
    """Raise `UsageError` for a name that no verdict has."""
    for name in names:
        if name not in known:
            raise UsageError(f"no verdicts of {name!r}{hint(name, known)}")


def pairs(evaluators: Sequence[str], wanted: Mapping[str, str] | None) -> list[tuple[int, int]]:
    """Places of the pairs of evaluators that are wanted, each to its other one; None: every two."""
    if wanted is None:
        return list(combinations(range(len(evaluators)), 2))
    check_evaluators((name for pair in wanted.items() for name in pair), evaluators)
    return [(evaluators.index(a), evaluators.index(b)) for a, b in wanted.items()]
