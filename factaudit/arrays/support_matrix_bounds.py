"""Bounds of D-FActScore's figures: the least and the greatest over all ways to fill in the missing verdicts of a
matrix.

A cell is open where its verdict is missing or guessed. Links follow verdicts, so a filling changes who is linked, too.
For the rules `argmax` and `given` every bound is reached by some filling; for `hungarian` where at most
`MOST_ENUMERATED_CELLS` cells are open (with more, the bounds of what is supported by somebody else may be wider than
need be).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from factaudit.arrays.entity_linking import assign_one_entity_per_group, link_groups_to_entities, linked_entity_columns
from factaudit.arrays.fact_entity_matrix import FactEntityMatrix

#: Open cells of which all fillings are tried, where no formula is at hand.
MOST_ENUMERATED_CELLS = 10
#: Nodes that the search for the greatest number of entities may look at for a response; its own bound is used then.
_MOST_SEARCH_NODES = 300

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
    least = link_groups_to_entities(matrix.fill_unsure(0), groups, rule)
    most = link_groups_to_entities(matrix.fill_unsure(1), groups, rule) if matrix.unsure.any() else least
    sizes = np.bincount(groups)
    linked = tuple(
        round(sum((one.share or 0.0) * size for one, size in zip(links, sizes, strict=True))) for links in (least, most)
    )
    if rule == "argmax" and is_own_fact.all():
        return (linked[0], linked[1]), _bound_facts_supported_by_other_entities(sure, maybe, groups)
    if matrix.unsure.sum() <= MOST_ENUMERATED_CELLS:
        return (linked[0], linked[1]), _enumerate_support_matrix_fillings(matrix, groups, rule, is_own_fact)
    n_least, n_most = int(sure[is_own_fact].any(axis=1).sum()), int(maybe[is_own_fact].any(axis=1).sum())
    return (linked[0], linked[1]), (max(0, n_least - linked[1]) if is_own_fact.all() else 0, n_most)


def _bound_facts_supported_by_other_entities(
    surely_supported: np.ndarray, possibly_supported: np.ndarray, groups: np.ndarray
) -> CountRange:
    """Facts that somebody supports and the linked entity does not, by argmax: groups are free of each other."""
    low = high = 0
    for group in range(int(groups.max(initial=-1)) + 1):
        inside = groups == group
        fewest, most = _bound_facts_missed_by_best_entity(surely_supported[inside], possibly_supported[inside])
        low, high = low + fewest, high + most
    return low, high


def _bound_facts_missed_by_best_entity(surely_supported: np.ndarray, possibly_supported: np.ndarray) -> CountRange:
    """Of one group: |supported by any| - |supported by the entity that supports most|."""
    if not surely_supported.shape[1]:
        return 0, 0
    told = surely_supported.any(axis=1)
    # Least: an entity is filled up as far as it goes, the others not at all.
    fewest = int((told.reshape(-1, 1) & ~possibly_supported).sum(axis=0).min())
    # Most: facts that nobody supports yet are dealt out so that no entity gets more than ``limit``.
    free = possibly_supported[~told]
    free = free[free.any(axis=1)]
    counts = surely_supported.sum(axis=0)
    most = limit = int(counts.max())
    most = int(told.sum()) - limit
    while len(free):
        dealt = _match_matrix_rows_to_columns(free, limit - counts)
        most = max(most, int(told.sum()) + dealt - limit)
        if dealt == len(free):
            break
        limit += 1
    return fewest, most


def _match_matrix_rows_to_columns(allowed: np.ndarray, capacity: np.ndarray) -> int:
    """How many rows can be given a column that they allow, where column c takes at most capacity[c]: a matching."""
    holds: list[list[int]] = [[] for _ in capacity]
    choices = [np.flatnonzero(row).tolist() for row in allowed]

    def place(row: int, seen: set[int]) -> bool:
        for column in choices[row]:
            if column in seen or capacity[column] <= 0:
                continue
            seen.add(column)
            if len(holds[column]) < capacity[column]:
                holds[column].append(row)
                return True
            for position, other in enumerate(holds[column]):
                if place(other, seen):
                    holds[column][position] = row
                    return True
        return False

    return sum(place(row, set()) for row in range(len(choices)))


def _enumerate_support_matrix_fillings(
    matrix: FactEntityMatrix, groups: np.ndarray, rule: str, is_own_fact: np.ndarray
) -> CountRange:
    """Of ``elsewhere``, over all the fillings."""
    places = tuple(np.argwhere(matrix.unsure).T)
    counts = []
    for values in product((0, 1), repeat=len(places[0])):
        prediction = matrix.prediction.copy()
        prediction[places] = values
        whole = replace(matrix, prediction=prediction, unsure=np.zeros_like(matrix.unsure))
        if rule == "hungarian" and whole.entities:
            columns = assign_one_entity_per_group(whole, groups)[groups]
        else:
            columns = linked_entity_columns(link_groups_to_entities(whole, groups, rule), groups)
        supported = (prediction == 1).any(axis=1) & (whole.verdict_of_linked_entity(columns) != 1) & is_own_fact
        counts.append(int(supported.sum()))
    return min(counts), max(counts)


# -------------------------------------------------------------------------------------------------------- entities


def bound_entity_count(matrix: FactEntityMatrix) -> CountRange:
    """The least and the greatest number of entities that supported facts are about (`attribute_facts`)."""
    entities = matrix.entities
    sure = (matrix.prediction == 1) & ~matrix.unsure
    maybe = sure | matrix.unsure
    possible = maybe.any(axis=0)
    # Ties go to the first in the alphabet: columns in this order.
    order = [at for at in sorted(range(len(entities)), key=entities.__getitem__) if possible[at]]
    sure, maybe = sure[:, order], maybe[:, order]
    now = len(_find_entity_of_each_fact_group(sure))
    if np.array_equal(sure, maybe):
        return now, now
    return _bound_least_entity_count(sure, maybe, now), _bound_greatest_entity_count(sure, maybe, now)


def _find_entity_of_each_fact_group(supported: np.ndarray) -> set[int]:
    """The columns that some row is attributed to, where the columns are in the alphabet's order."""
    if not supported.any():
        return set()
    order = np.argsort(-supported.sum(axis=0), kind="stable")
    first = supported[:, order].argmax(axis=1)
    return set(order[first[supported.any(axis=1)]].tolist())


def _bound_least_entity_count(surely_supported: np.ndarray, possibly_supported: np.ndarray, known_count: int) -> int:
    """The smallest set of entities that can own all that is supported.

    Enough to look at: the entities of a set filled up, all others left empty. In any filling whose owners are the set,
    the others support no less and these no more, so that they still come first.
    """
    told = surely_supported.any(axis=1)
    if not told.any():
        return 0
    for size in range(1, known_count):
        for chosen in map(list, combinations(range(surely_supported.shape[1]), size)):
            if possibly_supported[told][:, chosen].any(axis=1).all():
                filled = surely_supported.copy()
                filled[:, chosen] = possibly_supported[:, chosen]
                if _find_entity_of_each_fact_group(filled) <= set(chosen):
                    return size
    return known_count


def _bound_greatest_entity_count(surely_supported: np.ndarray, possibly_supported: np.ndarray, known_count: int) -> int:
    """The greatest number of owners: each needs a fact of its own for which it comes before all that support it."""
    from scipy.optimize import linear_sum_assignment  # slow to import, here and below

    counts, limits = surely_supported.sum(axis=0), possibly_supported.sum(axis=0)
    places = np.arange(len(counts))
    # before[a, b]: some filling may put a before b.
    before = (limits[:, None] > counts) | ((limits[:, None] == counts) & (places[:, None] < places))
    np.fill_diagonal(before, True)
    witness = possibly_supported & ~((surely_supported[:, None, :] & ~before[None]).any(axis=2))
    gain = np.where(witness, np.where(surely_supported.any(axis=1).reshape(-1, 1), 1.0, 1.5), 0.0)
    rows, columns = linear_sum_assignment(gain, maximize=True)
    kept = witness[rows, columns]
    every = np.ones(len(witness), dtype=np.int64)
    ceiling = _match_matrix_rows_to_columns(witness.T, every) if witness.any() else 0
    alone = surely_supported.copy()
    alone[rows[kept], columns[kept]] = True
    # Where others support a witness too, its entity needs more facts than they: those that are nobody's witness.
    more = alone.copy()
    spare = np.setdiff1d(np.arange(len(surely_supported)), rows[kept])
    for row, column in zip(rows[kept], columns[kept], strict=True):
        if surely_supported[row].any():
            more[spare, column] = possibly_supported[spare, column]
    reached = max(
        known_count, *(len(_find_entity_of_each_fact_group(filled)) for filled in (alone, more, possibly_supported))
    )
    return (
        reached
        if reached == ceiling
        else _bound_entity_count_by_milp(surely_supported, possibly_supported, reached, ceiling)
    )


def _bound_entity_count_by_milp(
    surely_supported: np.ndarray, possibly_supported: np.ndarray, reached: int, ceiling: int
) -> int:
    """The greatest number of owners by integer programming; the solver's own bound where it takes too long.

    Variables: x, the open cells; o, for each two entities whether the first comes before; a, for each fact and entity
    whether the fact is the entity's witness.
    """
    n, m = surely_supported.shape
    open_cells = np.argwhere(possibly_supported & ~surely_supported).tolist()
    pairs = list(combinations(range(m), 2))
    witnesses = np.argwhere(possibly_supported).tolist()
    x = {(f, e): number for number, (f, e) in enumerate(open_cells)}
    o = {pair: len(x) + number for number, pair in enumerate(pairs)}
    a = {(f, e): len(x) + len(o) + number for number, (f, e) in enumerate(witnesses)}
    entries: list[tuple[int, int, float]] = []
    highest: list[float] = []

    def at_most(terms: list[tuple[int, float]], limit: float) -> None:
        entries.extend((len(highest), variable, weight) for variable, weight in terms)
        highest.append(limit)

    counts = surely_supported.sum(axis=0)
    for (first, second), variable in o.items():
        difference = [(x[f, first], 1.0) for f in range(n) if (f, first) in x]
        difference += [(x[f, second], -1.0) for f in range(n) if (f, second) in x]
        known = float(counts[first] - counts[second])
        # Before: at least as many; not before: fewer.
        at_most([(v, -w) for v, w in difference] + [(variable, n + 1.0)], n + 1.0 + known)
        at_most([*difference, (variable, -(n + 1.0))], -1.0 - known)
    for entity in range(m):
        at_most([(a[f, entity], 1.0) for f in range(n) if (f, entity) in a], 1.0)
    for (f, entity), variable in a.items():
        if (f, entity) in x:
            at_most([(variable, 1.0), (x[f, entity], -1.0)], 0.0)
        for other in range(m):
            if other == entity or not possibly_supported[f, other]:
                continue
            # a + (other supports f) <= 1 + (entity before other)
            terms, limit = [(variable, 1.0)], 1.0
            if (f, other) in x:
                terms.append((x[f, other], 1.0))
            else:
                limit -= 1.0
            if entity < other:
                terms.append((o[entity, other], -1.0))
            else:
                terms.append((o[other, entity], 1.0))
                limit += 1.0
            at_most(terms, limit)
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    size = len(x) + len(o) + len(a)
    goal = np.zeros(size)
    goal[len(x) + len(o) :] = -1.0
    rows, columns, weights = zip(*entries, strict=True)
    matrix = coo_array((weights, (rows, columns)), shape=(len(highest), size))
    found = milp(
        goal,
        constraints=LinearConstraint(matrix.tocsr(), ub=np.array(highest)),
        integrality=np.ones(size, dtype=np.int64),
        bounds=Bounds(0, 1),
        options={"node_limit": _MOST_SEARCH_NODES},
    )
    bound = found.mip_dual_bound if found.mip_dual_bound is not None else -ceiling
    return int(np.clip(np.floor(-bound + 1e-6), reached, ceiling))
