"""Which of a response's facts does the page of which person support? A matrix of n facts and m
people (MF §4.1)

FActScore lets any person support a fact. D-FActScore lets only the person to whom the fact's group
is linked: e* = argmax over the people of the share of the group's facts that the person's page
supports (MF Eq. 1). Here are the matrix, its links, and the bounds of what is supported, whatever
the missing verdicts had been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from factaudit.arrays.judgements import MISSING
from factaudit.errors import FactauditError, UsageError, suggest_known_name

#: How a group is linked to a person. `argmax`: to the one who supports most of its facts; of
#: several to the one with the greater total score, then to the first in the alphabet. `hungarian`:
#: so that most facts are supported where no person has two groups; groups beyond the number of
#: people have nobody. `given`: to the one whom the data name.
LINKING_RULES = ("argmax", "hungarian", "given")
#: A link is narrow where the second-best person supports nearly as large a share of the group's
#: facts.
NARROW_MARGIN = 0.1

CountRange = tuple[int, int]


@dataclass(frozen=True)
class GroupLinks:
    """The person of each of g groups.

    person: int (g,), a column of the matrix, -1 for nobody. second: int (g,), the best of the
    others, -1 where there
    is none. share: float (g,), the share of the group's facts that the person supports. margin:
    float (g,), the share less the second's, negative where the rule did not take the best; NaN
    where either is missing.
    """

    person: np.ndarray
    second: np.ndarray
    share: np.ndarray
    margin: np.ndarray

    def narrow(self, most: float = NARROW_MARGIN) -> np.ndarray:
        """Whether each margin is at most ``most``: bool (g,)."""
        return self.margin <= most + 1e-12


@dataclass(frozen=True)
class SupportMatrix:
    """One response as one verifier sees it: n facts, in groups, and m people whom it may be about.

    people: m titles in the order of the alphabet.
    prediction: int8 (n, m), 1 the person's page supports the fact, 0 it does not, -1 unscored.
    score: float (n, m), support in [0, 1], NaN where the verifier gave none.
    unsure: bool (n, m), the cells that bounds leave open: unscored, or guessed from a reply without
    a verdict.
    group: int (n,), 0..g-1 by first appearance, -1 for a fact in no group.
    own: bool (n,), whether the fact is the response's own: a grouping's reply may have invented
    others, which FActScore leaves out.
    given: by group the title that the data name. about: of each fact the title that the data name;
    None: of no fact.
    was_asked: whether a verifier was asked at all, if in vain: a failed call counts, a skipped one
    does not.
    mean_biographies: where the data tell only the mean number of groups over responses, and
    ``group`` is the fewest that there can be.
    false_cells: by source, cells that are known to be false, and those of them that the verifier
    supports.
    key: dataset, system, response_id, topic. texts: of the n facts.
    """

    people: tuple[str, ...]
    prediction: np.ndarray
    score: np.ndarray
    unsure: np.ndarray
    group: np.ndarray
    own: np.ndarray
    given: Mapping[int, str] = field(default_factory=dict)
    about: Sequence[str | None] | None = None
    was_asked: bool = True
    mean_biographies: float | None = None
    false_cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    key: Mapping[str, Any] = field(default_factory=dict)
    texts: Sequence[str] = ()

    @classmethod
    def of(
        cls, prediction: Any, group: Any, score: Any = None, people: str = "ABCDEFGH", **more: Any
    ) -> SupportMatrix:
        """From predictions and groups alone: what is unscored is unsure, and was asked.

        >>> SupportMatrix.of([[1, 0], [1, 0], [0, 1]], [0, 0, 0]).supported_by_any().tolist()
        [1, 1, 1]
        """
        cells = np.array(prediction, dtype=np.int8)
        scores = np.full(cells.shape, np.nan) if score is None else np.array(score, dtype=float)
        groups, own = np.array(group, dtype=np.int64), np.ones(len(cells), dtype=bool)
        return cls(
            tuple(people[: cells.shape[1]]), cells, scores, cells == MISSING, groups, own, **more
        )

    @property
    def n_groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    def supported_by_any(self) -> np.ndarray:
        """FActScore's verdict of each fact: int8 (n,), 1, 0 or -1.

        A fact that nobody supports is unscored where somebody's verdict is missing, or there is
        nobody.
        """
        known = (self.prediction != MISSING).all(axis=1) & bool(self.people)
        return np.where((self.prediction == 1).any(axis=1), 1, np.where(known, 0, MISSING)).astype(
            np.int8
        )

    def person_of_facts(self, links: GroupLinks) -> np.ndarray:
        """The column of the person to whom each fact's group is linked: int (n,), -1 for nobody."""
        return np.append(links.person, -1)[self.group]

    def supported_by(self, person: np.ndarray) -> np.ndarray:
        """D-FActScore's verdict of each fact, which is that of one person (int (n,)): int8 (n,), 1,
        0 or -1.

        Nobody supports nothing. Where there are no people at all, every fact is unscored.
        """
        verdicts = np.full(len(self.prediction), 0 if self.people else MISSING, dtype=np.int8)
        linked = person >= 0
        verdicts[linked] = self.prediction[linked, person[linked]]
        return verdicts

    def attribute_facts(self) -> np.ndarray:
        """Whom each fact is true of, as MF's code counts them: int (n,), -1 where nobody supports
        it.

        Of several people it is the one who supports most of the response's own facts, then the
        first in the alphabet.
        """
        if not self.people:
            return np.full(len(self.prediction), -1)
        supported = self.prediction == 1
        order = np.argsort(-supported[self.own].sum(axis=0), kind="stable")
        return np.where(supported.any(axis=1), order[supported[:, order].argmax(axis=1)], -1)

    def link(self, rule: str = "argmax") -> GroupLinks:
        """Link each group to a person (see `LINKING_RULES`); an unscored fact is not supported.

        Raises `UsageError` for an unknown rule, `FactauditError` where a given person is none of
        the people.
        """
        if rule not in LINKING_RULES:
            raise UsageError(
                f"unknown linking rule {rule!r}{suggest_known_name(rule, LINKING_RULES)}"
            )
        every = np.arange(self.n_groups)
        if not self.people:
            nobody, undefined = np.full(len(every), -1), np.full(len(every), np.nan)
            return GroupLinks(nobody, nobody, undefined, undefined)
        member = (self.group == every[:, None]).astype(float)
        supported = member @ (self.prediction == 1)
        # Rounded: a sum may differ in the last bit with the order of the facts.
        score = (member @ np.nan_to_num(self.score)).round(9)
        ranked = np.lexsort((-score, -supported), axis=-1)
        if rule == "argmax":
            person = ranked[:, 0]
        elif rule == "hungarian":
            # All the scores together weigh less than one supported fact.
            person = _assign_people(supported + score / (len(self.prediction) + 1))
        else:
            person = np.array(
                [self._find_given_person(group) for group in range(self.n_groups)], dtype=np.int64
            )
        share = np.column_stack(
            [supported / member.sum(axis=1)[:, None], np.full(len(every), np.nan)]
        )
        best, next_best = (
            ranked[:, 0],
            ranked[:, 1] if len(self.people) > 1 else np.full(len(every), -1),
        )
        second = np.where(best == person, next_best, best)
        return GroupLinks(
            person, second, share[every, person], share[every, person] - share[every, second]
        )

    def _find_given_person(self, group: int) -> int:
        title = self.given.get(group)
        if title is None:
            return -1
        if title not in self.people:
            raise FactauditError(
                f"the given entity {title!r} is not a candidate ({', '.join(self.people)})"
            )
        return self.people.index(title)

    # ---- bounds

    def bound_support(self, rule: str) -> tuple[CountRange, CountRange, CountRange]:
        """The fewest and the most facts that are supported: by anybody, by the person of their
        group, and by somebody else only; whatever the unsure cells are. Links follow the verdicts,
        so they change, too.

        The first and the last are of the response's own facts. The first two are reached by some
        filling. The last rest
        on counts: no filling leaves them, some are wider than need be, and without unsure cells
        they are the figure.
        """
        sure, maybe = (self.prediction == 1) & ~self.unsure, (self.prediction == 1) | self.unsure
        by_any = [int(cells[self.own].any(axis=1).sum()) for cells in (sure, maybe)]
        anybody = (by_any[0], by_any[1])
        if not (self.group >= 0).any():
            # By argmax one group for all facts supports least and hides most; a group for each fact
            # is FActScore.
            least, most_hidden = 0, anybody[1]
            if rule == "argmax":
                least = int(sure[self.own].sum(axis=0).max(initial=0))
                most_hidden = _bound_hidden_facts(
                    sure[self.own], maybe[self.own], self.own[self.own], None
                )[1]
            return anybody, (least, anybody[1]), (0, most_hidden)
        # No rule supports fewer facts where a cell more is supported.
        least, most = (
            replace(self, prediction=cells.astype(np.int8)).count_linked(rule)
            for cells in (sure, maybe)
        )
        own = self.own & (self.group >= 0)
        if not self.unsure.any():
            person = self.person_of_facts(self.link(rule))
            hidden = int((sure.any(axis=1) & (self.supported_by(person) != 1) & own).sum())
            return anybody, (least, most), (hidden, hidden)
        if rule == "hungarian":
            n_sure, n_maybe = (int(cells[own].any(axis=1).sum()) for cells in (sure, maybe))
            n_invented = int((~self.own & maybe.any(axis=1)).sum())
            return (
                anybody,
                (least, most),
                (max(0, n_sure - most), min(n_maybe, n_maybe - least + n_invented)),
            )
        given = self.link("given").person if rule == "given" else None
        fewest = most_hidden = 0
        for group in range(self.n_groups):
            inside, named = self.group == group, None if given is None else int(given[group])
            low, high = _bound_hidden_facts(sure[inside], maybe[inside], self.own[inside], named)
            fewest, most_hidden = fewest + low, most_hidden + high
        return anybody, (least, most), (fewest, most_hidden)

    def count_linked(self, rule: str) -> int:
        """How many facts the person of their group supports."""
        return int((self.supported_by(self.person_of_facts(self.link(rule))) == 1).sum())

    def bound_people(self) -> CountRange:
        """The fewest and the most people whom supported facts of the response are about
        (`attribute_facts`)."""
        if not self.unsure.any():
            n = len(set(self.attribute_facts()[self.own].tolist()) - {-1})
            return n, n
        sure, maybe = (self.prediction == 1) & ~self.unsure, (self.prediction == 1) | self.unsure
        # Least: the people with the most possible support, until the supported facts can be divided
        # among them.
        n_sure = sure[self.own].any(axis=1).sum()
        covered = np.cumsum(np.sort(maybe[self.own & sure.any(axis=1)].sum(axis=0))[::-1])
        least = int(np.searchsorted(covered, n_sure)) + 1 if n_sure else 0
        # Most: support takes facts from others, so that besides those who have a fact without the
        # unsure cells only the people of these cells can get one.
        without = replace(self, prediction=sure.astype(np.int8))
        owners = set(without.attribute_facts()[self.own].tolist()) - {-1} | set(
            np.flatnonzero(self.unsure.any(axis=0))
        )
        return least, min(len(owners), int(maybe[self.own].any(axis=1).sum()))


def _assign_people(weight: np.ndarray) -> np.ndarray:
    """The person of each group, no one twice, with the greatest total weight (float (g, m)): int
    (g,), -1: nobody."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    person = np.full(len(weight), -1)
    groups, people = linear_sum_assignment(weight, maximize=True)
    person[groups] = people
    return person


def _bound_hidden_facts(
    sure: np.ndarray, maybe: np.ndarray, own: np.ndarray, person: int | None
) -> CountRange:
    """Of one group: its own facts that only somebody else than its person supports, at least and at
    most.

    sure, maybe: bool (k, m), the cells that are surely supported, and those that may be. person:
    the column of the group's person, -1 for nobody; None: the person who supports most, whoever
    that turns out to be.
    """
    nobody = np.zeros((len(sure), 1), dtype=bool)
    by_sure, by_maybe = np.hstack([sure, nobody]), np.hstack([maybe, nobody])
    chosen = slice(0, max(1, sure.shape[1])) if person is None else [person]
    fewest = (by_sure.any(axis=1, keepdims=True) & ~by_maybe)[own].sum(axis=0)[chosen].min()
    others_maybe = by_maybe.sum(axis=1, keepdims=True) > by_maybe
    hidden = (others_maybe & ~by_sure)[own].sum(axis=0)[chosen]
    # Of its facts the best person misses no more than any one does; with facts left out of the
    # count, that need not be.
    return int(fewest), int(hidden.min() if own.all() else hidden.max())
