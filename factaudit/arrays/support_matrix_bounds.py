"""Bounds of D-FActScore's figures: what they can be at least and at most, however missing verdicts are filled in.

A cell is open where its verdict is missing or guessed. Links follow verdicts, so a filling changes who is linked, too.
What any entity and what the linked entity supports has bounds that some filling reaches. The bounds of facts that only
another entity supports, and of the number of entities, rest on counts: no filling leaves them, some are wider than need
be, and without open cells they are the figure itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from factaudit.arrays.entity_linking import EntityLink, link_groups_to_entities, linked_entity_columns
from factaudit.arrays.fact_entity_matrix import FactEntityMatrix

#: Open cells of which all fillings are tried, where links depend on more than each group alone.
MOST_ENUMERATED_CELLS = 10

CountRange = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SupportMatrixBounds:
    """The least and the greatest number of facts of one response that are supported.

    by_any_entity: by some entity. by_linked_entity: by the entity of their group. by_other_entity_only: by another
    entity, and not by that of their group.
    """

    by_any_entity: CountRange
    by_linked_entity: CountRange
    by_other_entity_only: CountRange


def bound_supported_facts(
    matrix: FactEntityMatrix, groups: np.ndarray, rule: str, given_entities: Mapping[int, str], is_own_fact: np.ndarray
) -> SupportMatrixBounds:
    """Bound the supported facts of one response.

    groups: int (n,), of each fact its group, -1 for none; where no fact has one, all groupings are possible.
    is_own_fact: bool (n,), the facts that FActScore is of; ``by_any_entity`` and ``by_other_entity_only`` are of these.
    """
    sure = (matrix.prediction == 1) & ~matrix.unsure
    maybe = sure | matrix.unsure
    by_any = int(sure[is_own_fact].any(axis=1).sum()), int(maybe[is_own_fact].any(axis=1).sum())
    grouped = groups >= 0
    if not grouped.any():
        if rule != "argmax":
            return SupportMatrixBounds(by_any, (0, by_any[1]), (0, by_any[1]))
        # One group for all supports least and hides most; a group for each fact is FActScore.
        whole = np.zeros(int(is_own_fact.sum()), dtype=np.int64)
        most_hidden = _bound_facts_supported_by_other_entities(sure[is_own_fact], maybe[is_own_fact], whole)[1]
        fewest = int(sure[is_own_fact].sum(axis=0).max(initial=0))
        return SupportMatrixBounds(by_any, (fewest, by_any[1]), (0, most_hidden))
    linked, elsewhere = _bound_support_by_linked_entity(
        matrix.select_facts(grouped), groups[grouped], rule, given_entities, is_own_fact[grouped]
    )
    return SupportMatrixBounds(by_any, linked, elsewhere)


def _bound_support_by_linked_entity(
    matrix: FactEntityMatrix, groups: np.ndarray, rule: str, given_entities: Mapping[int, str], is_own_fact: np.ndarray
) -> tuple[CountRange, CountRange]:
    """Facts supported by their group's entity, and facts of ``is_own_fact`` supported by another one only."""
    sure = (matrix.prediction == 1) & ~matrix.unsure
    maybe = sure | matrix.unsure
    if rule == "given":
        columns = linked_entity_columns(link_groups_to_entities(matrix, groups, rule, given_entities), groups)
        at = np.arange(len(groups))
        has = columns >= 0
        mine, perhaps = has & sure[at, columns], has & maybe[at, columns]
        others, either = sure.copy(), maybe.copy()
        others[at[has], columns[has]] = either[at[has], columns[has]] = False
        hidden = (
            int((others.any(axis=1) & ~perhaps & is_own_fact).sum()),
            int((either.any(axis=1) & ~mine & is_own_fact).sum()),
        )
        return (int(mine.sum()), int(perhaps.sum())), hidden
    least, most = (
        _count_linked_support(link_groups_to_entities(filling, groups, rule), groups)
        for filling in (matrix.fill_unsure(0), matrix.fill_unsure(1))
    )
    if rule == "argmax" and is_own_fact.all():
        return (least, most), _bound_facts_supported_by_other_entities(sure, maybe, groups)
    if matrix.unsure.sum() <= MOST_ENUMERATED_CELLS:
        return (least, most), _try_all_fillings(matrix, groups, rule, is_own_fact)
    n_sure, n_possible = (int(part[is_own_fact].any(axis=1).sum()) for part in (sure, maybe))
    return (least, most), (max(0, n_sure - most) if is_own_fact.all() else 0, n_possible)


def _try_all_fillings(matrix: FactEntityMatrix, groups: np.ndarray, rule: str, is_own_fact: np.ndarray) -> CountRange:
    """Facts of ``is_own_fact`` that only another entity supports: the fewest and the most over all fillings."""
    places = tuple(np.argwhere(matrix.unsure).T)
    counts = []
    for values in product((0, 1), repeat=len(places[0])):
        filling = matrix.fill_unsure(0)
        filling.prediction[places] = values
        columns = linked_entity_columns(link_groups_to_entities(filling, groups, rule), groups)
        supported = (filling.prediction == 1).any(axis=1) & (filling.verdict_of_linked_entity(columns) != 1)
        counts.append(int((supported & is_own_fact).sum()))
    return min(counts), max(counts)


def _count_linked_support(links: Sequence[EntityLink], groups: np.ndarray) -> int:
    return round(sum((one.share or 0.0) * size for one, size in zip(links, np.bincount(groups), strict=True)))


def _bound_facts_supported_by_other_entities(
    least_supported: np.ndarray, most_supported: np.ndarray, groups: np.ndarray
) -> CountRange:
    """Facts that somebody supports and the linked entity does not, by argmax: groups are free of each other."""
    low = high = 0
    for group in range(int(groups.max(initial=-1)) + 1):
        inside = groups == group
        fewest, most = _bound_facts_missed_by_best_entity(least_supported[inside], most_supported[inside])
        low, high = low + fewest, high + most
    return low, high


def _bound_facts_missed_by_best_entity(least_supported: np.ndarray, most_supported: np.ndarray) -> CountRange:
    """Of one group: |supported by any| - |supported by the entity that supports most|."""
    if not least_supported.shape[1]:
        return 0, 0
    # Least: an entity is filled up as far as it goes, the others not at all.
    is_supported = least_supported.any(axis=1, keepdims=True)
    fewest = int((is_supported & ~most_supported).sum(axis=0).min())
    # Most: the best entity misses no more than any one does, of what others can support.
    by_others = most_supported.sum(axis=1, keepdims=True) > most_supported
    return fewest, int((by_others & ~least_supported).sum(axis=0).min())


def bound_entity_count(matrix: FactEntityMatrix) -> CountRange:
    """The least and the greatest number of entities that supported facts are about (`attribute_facts`)."""
    sure = (matrix.prediction == 1) & ~matrix.unsure
    maybe = sure | matrix.unsure
    if not matrix.unsure.any():
        now = len(set(matrix.attribute_facts().tolist()) - {-1})
        return now, now
    # Least: take the entities with the most possible support until the supported facts can be divided among them.
    is_supported = sure.any(axis=1)
    covered = np.cumsum(np.sort(maybe[is_supported].sum(axis=0))[::-1])
    least = int(np.searchsorted(covered, is_supported.sum())) + 1 if is_supported.any() else 0
    return least, _count_most_entities(sure, maybe, matrix.entities)


def _count_most_entities(least_supported: np.ndarray, most_supported: np.ndarray, entities: tuple[str, ...]) -> int:
    """The most entities that can own a fact each, as a matching of entities and facts.

    An entity can own a fact if it may support it, and may rank before each entity that is known to support it.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching  # slow to import

    counts, limits = least_supported.sum(axis=0), most_supported.sum(axis=0)
    place = np.argsort(np.argsort(np.array(entities)))
    # before[a, b]: some filling may put a before b; ties go to the first in the alphabet.
    before = (limits[:, None] > counts) | ((limits[:, None] == counts) & (place[:, None] < place))
    np.fill_diagonal(before, True)
    own = most_supported & ~((least_supported[:, None, :] & ~before[None]).any(axis=2))
    return int((maximum_bipartite_matching(csr_array(own), perm_type="column") >= 0).sum())
