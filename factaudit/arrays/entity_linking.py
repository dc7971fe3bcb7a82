"""Whom each group of facts is about: the link of each group to one entity of the matrix (MF §4.1, App. C.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.arrays.fact_entity_matrix import FactEntityMatrix
from factaudit.errors import FactauditError, UsageError, suggest_known_name

LINKING_RULES = ("argmax", "hungarian", "given")


#: A group's entity is doubtful where the second-best entity supports nearly as large a share of its facts.
NARROW_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class EntityLink:
    """The entity that one group is linked to.

    entity: a column of the matrix; None where there is none left (`hungarian`) or none at all.
    share: the share of the group's facts that it supports; an unscored fact is not supported.
    second: the best of the other entities, None where there is no other.
    margin: the share minus the second's, negative where the rule did not take the best; None where either is missing.
    """

    entity: int | None
    share: float | None = None
    second: int | None = None
    margin: float | None = None

    def is_narrow(self, narrow_margin: float = NARROW_MARGIN) -> bool:
        """Whether the margin is at most ``narrow_margin``."""
        return self.margin is not None and self.margin <= narrow_margin + 1e-12


def link_groups_to_entities(
    matrix: FactEntityMatrix, groups: np.ndarray, rule: str = "argmax", given_entities: Mapping[int, str] | None = None
) -> list[EntityLink]:
    """Link each group of facts to one entity.

    Args:
        groups: int (n,), of each fact its group, 0..g-1; -1 for none.
        rule: `argmax`: the entity that supports the largest share of the group's facts (MF Eq. 1). Ties: the greater
            total score over the group's facts, then the title that comes first in the alphabet.
            `hungarian`: the assignment that maximises the number of supported facts where no two groups share an
            entity; ties by total score. Groups beyond the number of entities get none.
            `given`: the entities of ``given_entities``.
        given_entities: group -> title, for `given`; a group without a title has no entity.

    Returns g links. Raises `UsageError` for an unknown rule, `FactauditError` where a given entity is no candidate.
    """
    if rule not in LINKING_RULES:
        raise UsageError(f"unknown linking rule {rule!r}{suggest_known_name(rule, LINKING_RULES)}")
    n_groups = int(groups.max(initial=-1)) + 1
    if not matrix.entities:
        return [EntityLink(None)] * n_groups
    supported, score = sum_entity_support_by_group(matrix, groups)
    sizes = np.bincount(groups[groups >= 0], minlength=n_groups)
    alphabet = _alphabetical_ranks(matrix)
    ranked = [np.lexsort((alphabet, -score[g], -supported[g])) for g in range(n_groups)]
    if rule == "argmax":
        chosen: list[int | None] = [int(order[0]) for order in ranked]
    elif rule == "hungarian":
        chosen = _assign_entities_by_hungarian(matrix, groups, supported, score)
    else:
        chosen = [_find_matrix_column_of_entity(matrix, (given_entities or {}).get(g)) for g in range(n_groups)]
    return [_build_entity_link(chosen[g], ranked[g], supported[g] / sizes[g]) for g in range(n_groups)]


def linked_entity_columns(links: Sequence[EntityLink], groups: np.ndarray) -> np.ndarray:
    """Of each fact the column of its group's entity, -1 for none: int (n,)."""
    columns = np.array([*(-1 if one.entity is None else one.entity for one in links), -1], dtype=np.int64)
    return columns[groups]


def sum_entity_support_by_group(matrix: FactEntityMatrix, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Supported facts and total score of each group and entity: float64 (g, m) each.

    Scores are rounded: a sum may differ in the last bit with the order of the facts.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    member = (groups == np.arange(n_groups)[:, None]).astype(np.float64)
    return member @ (matrix.prediction == 1), (member @ np.nan_to_num(matrix.score)).round(9)


def _alphabetical_ranks(matrix: FactEntityMatrix) -> np.ndarray:
    return np.argsort(np.argsort(np.array(matrix.entities, dtype=object)))


def _assign_entities_by_hungarian(
    matrix: FactEntityMatrix, groups: np.ndarray, supported: np.ndarray, score: np.ndarray
) -> list[int | None]:
    from scipy.optimize import linear_sum_assignment  # slow to import

    # The order of groups and entities must not matter, also where several assignments are best.
    columns = np.argsort(_alphabetical_ranks(matrix))
    cells = np.hstack([matrix.prediction[:, columns], np.nan_to_num(matrix.score[:, columns], nan=-1.0)])
    # What tells a group from others, whatever the order of facts: its rows of the matrix.
    rows = sorted(range(len(supported)), key=lambda g: sorted(cells[groups == g].tolist()))
    # All the scores together weigh less than one supported fact.
    weight = supported + score / (len(matrix.prediction) + 1)
    chosen: list[int | None] = [None] * len(supported)
    for row, column in zip(*linear_sum_assignment(weight[rows][:, columns], maximize=True), strict=True):
        chosen[rows[row]] = int(columns[column])
    return chosen


def _find_matrix_column_of_entity(matrix: FactEntityMatrix, title: str | None) -> int | None:
    if title is None:
        return None
    if title not in matrix.entities:
        raise FactauditError(f"the given entity {title!r} is not a candidate ({', '.join(matrix.entities)})")
    return matrix.entities.index(title)


def _build_entity_link(entity: int | None, ranked_entities: np.ndarray, support_shares: np.ndarray) -> EntityLink:
    second = next((int(other) for other in ranked_entities if other != entity), None)
    if entity is None:
        return EntityLink(None, None, second)
    margin = None if second is None else float(support_shares[entity] - support_shares[second])
    return EntityLink(entity, float(support_shares[entity]), second, margin)
