"""Which entity is a group of facts about? (MF §3.2, Eq. 1)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from factaudit.engines.dfactscore.matrix import Matrix
from factaudit.errors import FactauditError, UsageError, hint

RULES = ("argmax", "hungarian", "given")
#: A group's entity is doubtful where the second-best entity supports nearly as large a share of its facts.
NARROW = 0.1


@dataclass(frozen=True, slots=True)
class Link:
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

    def is_narrow(self, narrow: float = NARROW) -> bool:
        """Whether the margin is at most ``narrow``."""
        return self.margin is not None and self.margin <= narrow + 1e-12


def link(
    matrix: Matrix, groups: Sequence[int], rule: str = "argmax", given: Mapping[int, str] | None = None
) -> list[Link]:
    """Link each group of facts to one entity.

    Args:
        groups: of each of the n facts its group, 0..g-1.
        rule: `argmax`: the entity that supports the largest share of the group's facts (Eq. 1). Ties: the greater
            total score over the group's facts, then the title that comes first in the alphabet.
            `hungarian`: the assignment that maximises the number of supported facts where no two groups share an
            entity; ties by total score. Groups beyond the number of entities get none.
            `given`: the entities of ``given``.
        given: group -> title, for `given`; a group without a title has no entity.

    Returns g links. Raises `UsageError` for an unknown rule, `FactauditError` where a given entity is no candidate.
    """
    if rule not in RULES:
        raise UsageError(f"unknown linking rule {rule!r}{hint(rule, RULES)}")
    owner = np.asarray(groups, dtype=np.int64)
    n_groups = int(owner.max(initial=-1)) + 1
    n_entities = len(matrix.entities)
    if not n_entities:
        return [Link(None)] * n_groups
    supported = np.zeros((n_groups, n_entities))
    score = np.zeros((n_groups, n_entities))
    np.add.at(supported, owner, matrix.prediction == 1)
    np.add.at(score, owner, np.nan_to_num(matrix.score))
    sizes = np.bincount(owner, minlength=n_groups)
    # From the best to the worst entity of each group; the alphabet's order is the last key.
    alphabet = np.argsort(np.argsort(np.array(matrix.entities, dtype=object)))
    # Rounded: a sum of scores may differ in the last bit with the order of the facts.
    ranked = [np.lexsort((alphabet, -score[g].round(9), -supported[g])) for g in range(n_groups)]
    if rule == "argmax":
        chosen: list[int | None] = [int(order[0]) for order in ranked]
    elif rule == "hungarian":
        chosen = _hungarian(supported, score, alphabet, owner, matrix.facts)
    else:
        chosen = [_column(matrix, (given or {}).get(g)) for g in range(n_groups)]
    return [_link(chosen[g], ranked[g], supported[g] / sizes[g]) for g in range(n_groups)]


def entity_of_facts(links: Sequence[Link], groups: Sequence[int]) -> np.ndarray:
    """Of each fact the column of its group's entity, -1 for none: int (n,)."""
    columns = np.array([-1 if one.entity is None else one.entity for one in links], dtype=np.int64)
    return columns[np.asarray(groups, dtype=np.int64)]


def _hungarian(
    supported: np.ndarray, score: np.ndarray, alphabet: np.ndarray, groups: np.ndarray, facts: Sequence[str]
) -> list[int | None]:
    n_groups = len(supported)
    # The order of rows and columns must not matter, also where several assignments are best.
    texts = [
        tuple(sorted(fact for fact, group in zip(facts, groups, strict=True) if group == g)) for g in range(n_groups)
    ]
    rows = sorted(range(n_groups), key=texts.__getitem__)
    columns = np.argsort(alphabet)
    # All the scores together weigh less than one supported fact.
    weight = supported + score.round(9) / (len(facts) + 1)
    chosen: list[int | None] = [None] * n_groups
    for row, column in zip(*linear_sum_assignment(weight[rows][:, columns], maximize=True), strict=True):
        chosen[rows[row]] = int(columns[column])
    return chosen


def _column(matrix: Matrix, title: str | None) -> int | None:
    if title is None:
        return None
    if title not in matrix.entities:
        raise FactauditError(f"the given entity {title!r} is not a candidate ({', '.join(matrix.entities)})")
    return matrix.entities.index(title)


def _link(entity: int | None, ranked: np.ndarray, share: np.ndarray) -> Link:
    second = next((int(other) for other in ranked if other != entity), None)
    if entity is None:
        return Link(None, None, second)
    return Link(
        entity,
        float(share[entity]),
        second,
        None if second is None else float(share[entity] - share[second]),
    )
