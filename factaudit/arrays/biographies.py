"""Which facts of a response does the page of which person support? A matrix of n facts and m people
(MF §4.1), from a claims table with a row per fact and person.

FActScore lets any person support a fact. D-FActScore lets only the person to whom the fact's group
is linked: e* = argmax over the people of the share of the group's facts that the person's page
supports (MF Eq. 1). This file holds the matrix, the links, and the bounds on what is supported,
given the missing verdicts.

Columns: ``fact_id`` (the same for all people of a fact), ``entity`` (null: the fact has no
candidate) and ``group`` (the facts of one biography; null: in none). A row that is missing is a
page that was not asked. Optional, of each fact the same in all its rows:

* ``given_entity``: the title that its group is linked to, as somebody said (rule `given`);
* ``about``: the title that the fact is true of, where the source says so: # ent. is then counted by
  it;
* ``invented``: 1 where the fact is none of the response's own (a grouping's reply made it):
  FActScore leaves it out;
* ``mean_biographies``: the mean number of biographies of the source's responses, where it tells no
  more: groups are then the fewest that there can be;
* ``decoy`` (of a row, not a fact): 1 where the entity is somebody whom the response cannot be
  about. Such rows are no candidates: they measure how often the verifier errs, as labels of false
  facts do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.errors import FactauditError, UsageError, suggest_known_name
from factaudit.tables.schema import STATUSES

_OK, _SKIPPED = STATUSES.index("ok"), STATUSES.index("skipped")
_RESPONSE = ["dataset", "system", "response_id"]
_COLUMNS = [
    *(*_RESPONSE, "topic", "fact_id", "entity", "claim", "group"),
    *("given_entity", "about", "invented", "mean_biographies", "decoy"),
]


def has_fact_entities(judgements: Judgements) -> bool:
    """Whether the claims have a row for each fact and person."""
    needed = judgements.claims[["fact_id", "entity", "response_id"]]
    return bool(needed.notna().all(axis=1).any())


def collect_biographies(judgements: Judgements, evaluator: int) -> list[SupportMatrix]:
    """The responses as one evaluator judged them. Responses without any fact
    (`Judgements.empty_responses`) have no matrix.

    Responses are sorted by dataset, system and response_id, and facts by their ids, so that no
    figure depends on the order of the input's rows. Raises `UsageError` if a fact is put to the
    same person twice, or has two groups.
    """
    return judgements.compute_once(
        ("biographies", evaluator), lambda: _read_biographies(judgements, evaluator)
    )


def _read_biographies(judgements: Judgements, evaluator: int) -> list[SupportMatrix]:
    claims = judgements.claims
    told = {
        name: getattr(judgements, name)[evaluator] for name in ("prediction", "score", "status")
    }
    # A response without a claim has no fact, whatever else its row says.
    table = pd.concat([claims, judgements.empty_responses.assign(fact_id=None)], ignore_index=True)
    table = table.reindex(columns=_COLUMNS).astype(object)
    table = table.where(table.notna(), None)
    for name, values in (told | {"label": judgements.label}).items():
        table[name] = pd.Series(values).reindex(table.index, fill_value=MISSING)
    is_empty = table.index >= len(claims)
    table = table[table["response_id"].notna() & (table["fact_id"].notna() | is_empty)]
    # A longer id comes later: "r.10" after "r.9".
    table = table.assign(length=table["fact_id"].str.len()).sort_values(
        [*_RESPONSE, "length", "fact_id"]
    )
    return [_read_biography(rows) for _, rows in table.groupby(_RESPONSE, dropna=False)]


def _read_biography(rows: pd.DataFrame) -> SupportMatrix:
    """The matrix of one response."""
    key = {name: rows[name].iloc[0] for name in (*_RESPONSE, "topic")}
    is_decoy = rows["decoy"] == 1
    decoys, rows = rows[is_decoy], rows[rows["fact_id"].notna() & ~is_decoy]
    facts = rows[~rows["fact_id"].duplicated()]
    asked = rows[rows["entity"].notna()]
    if asked.duplicated(["fact_id", "entity"]).any():
        raise UsageError(
            f"response {key['response_id']!r}: a fact is put to the same entity twice"
            " (fact_id, entity)"
        )
    if len(rows.drop_duplicates(["fact_id", "group"])) > len(facts):
        raise UsageError(
            f"response {key['response_id']!r}: the rows of one fact are in different groups"
        )
    group = pd.factorize(facts["group"])[0]  # -1: no group
    people = pd.Index(sorted(asked["entity"].unique()), dtype=object)
    at = (
        pd.Index(facts["fact_id"]).get_indexer(asked["fact_id"]),
        people.get_indexer(asked["entity"]),
    )
    shape = len(facts), len(people)
    prediction, status = np.full((2, *shape), MISSING, dtype=np.int8)
    score = np.full(shape, np.nan)
    prediction[at], status[at], score[at] = asked["prediction"], asked["status"], asked["score"]
    # A label is about one person, even if a grouping model puts the fact into another group. It is
    # the person of the fact's only labelled row; if several rows of the fact have the label, it is
    # ``given_entity``.
    labelled = asked[asked["label"] != MISSING]
    is_of_person = ~labelled["fact_id"].duplicated(keep=False) | (
        labelled["given_entity"] == labelled["entity"]
    )
    false_cells = pd.concat([decoys, labelled[is_of_person & (labelled["label"] == 0)]])[
        "prediction"
    ]
    given = pd.DataFrame({"group": group, "title": facts["given_entity"]})[group >= 0].dropna()
    numbers = facts["mean_biographies"].dropna()
    return SupportMatrix(
        people=tuple(people),
        prediction=prediction,
        score=score,
        unsure=(prediction == MISSING) | ((status != _OK) & (status >= 0)),
        group=group,
        own=(facts["invented"] != 1).to_numpy(dtype=bool),
        # The title that most facts of the group name; in a tie the first in alphabetical order.
        given=dict(given.groupby("group")["title"].agg(lambda titles: titles.mode()[0])),
        about=people.get_indexer(facts["about"]) if facts["about"].notna().any() else None,
        was_asked=bool(((prediction != MISSING) | ((status >= 0) & (status != _SKIPPED))).any()),
        mean_biographies=float(numbers.iloc[0]) if len(numbers) else None,
        false_cells=(int((false_cells != MISSING).sum()), int((false_cells == 1).sum())),
        key=key,
        texts=tuple(facts["claim"]),
    )


# ---- the matrix

#: How a group is linked to a person. `argmax`: to the person who supports most of its facts; in a
#: tie to the one with the greater total score, then to the first in alphabetical order.
#: `hungarian`: so that most facts are supported and no person has two groups; if there are more
#: groups than people, some are linked to nobody. `given`: to the person whom the data name.
LINKING_RULES = ("argmax", "hungarian", "given")

CountRange = tuple[int, int]


@dataclass(frozen=True)
class SupportMatrix:
    """One response as one verifier sees it: n facts in groups, and m people whom it may be about.

    people: m titles in alphabetical order. prediction: int8 (n, m), 1 if the person's page supports
    the fact, 0 if not, -1 if unscored. score: float (n, m), support in [0, 1], NaN if the verifier
    gave none. unsure: bool (n, m), the cells that bounds leave open, because they are unscored or
    were guessed from a reply without a verdict. group: int (n,), 0..g-1 by first appearance, -1 for
    a fact in no group. own: bool (n,), whether the fact is the response's own; the reply of a
    grouping model may have invented others, which FActScore leaves out. given: for each group the
    title that the data name. about: int (n,), the column of the person whom the data say the fact
    is true of, -1 for nobody; None if the data do not say it. was_asked: whether a verifier was
    asked at all; a failed call counts, a skipped one does not. mean_biographies: set if the data
    give only the mean number of groups over responses; ``group`` is then the fewest groups that are
    possible. false_cells: how many cells are known to be false, and how many of these the verifier
    supports. key: dataset, system, response_id, topic. texts: the texts of the n facts.
    """

    people: tuple[str, ...]
    prediction: np.ndarray
    score: np.ndarray
    unsure: np.ndarray
    group: np.ndarray
    own: np.ndarray
    given: Mapping[int, str] = field(default_factory=dict)
    about: np.ndarray | None = None
    was_asked: bool = True
    mean_biographies: float | None = None
    false_cells: tuple[int, int] = (0, 0)
    key: Mapping[str, Any] = field(default_factory=dict)
    texts: Sequence[str] = ()

    @property
    def n_groups(self) -> int:
        return int(self.group.max(initial=-1)) + 1

    def supported_by_any(self) -> np.ndarray:
        """FActScore's verdict of each fact: int8 (n,), 1, 0 or -1.

        A fact that nobody supports is unscored if a verdict is missing, or if there are no people.
        """
        known = (self.prediction != MISSING).all(axis=1) & bool(self.people)
        return np.where((self.prediction == 1).any(axis=1), 1, np.where(known, 0, MISSING))

    def supported_by(self, person: np.ndarray) -> np.ndarray:
        """D-FActScore's verdict of each fact, which is the verdict for one person (int (n,)): int8
        (n,), 1, 0 or -1.

        A fact that is linked to nobody is not supported. If there are no people at all, every fact
        is unscored.
        """
        if not self.people:
            return np.full(len(self.prediction), MISSING)
        return np.where(person >= 0, self.prediction[np.arange(len(person)), person], 0)

    def attribute_facts(self) -> np.ndarray:
        """The person of whom each fact is true: int (n,), -1 if nobody supports it. It is the
        person whom the data name. Otherwise the rule of MF's code applies: of several people, the
        one who supports most of the response's own facts, then the first in alphabetical order."""
        if self.about is not None:
            return self.about
        if not self.people:
            return np.full(len(self.prediction), -1)
        supported = self.prediction == 1
        order = np.argsort(-supported[self.own].sum(axis=0), kind="stable")
        return np.where(supported.any(axis=1), order[supported[:, order].argmax(axis=1)], -1)

    def link(self, rule: str = "argmax") -> np.ndarray:
        """The person of each group (see `LINKING_RULES`): int (g,), -1 for nobody. An unscored fact
        counts as not supported.

        Raises `UsageError` for an unknown rule, and `FactauditError` if a given person is none of
        the people.
        """
        if rule not in LINKING_RULES:
            raise UsageError(
                f"unknown linking rule {rule!r}{suggest_known_name(rule, LINKING_RULES)}"
            )
        if not self.people:
            return np.full(self.n_groups, -1)
        n_supported = self._count_by_group(self.prediction == 1)
        # In a tie the greater score decides: all scores together weigh less than one supported
        # fact. The sum is rounded, because its last bit may depend on the order of the facts.
        score = self._count_by_group(np.nan_to_num(self.score)).round(9)
        return self._choose(rule, n_supported + score / (len(self.prediction) + 1))

    def person_of_facts(self, rule: str) -> np.ndarray:
        """The column of the person to whom each fact's group is linked: int (n,), -1 for nobody."""
        return np.append(self.link(rule), -1)[self.group]

    def _count_by_group(self, cells: np.ndarray) -> np.ndarray:
        """The sums of cells (n, k) over the facts of each group: float (g, k)."""
        return (self.group == np.arange(self.n_groups)[:, None]).astype(float) @ cells

    def _choose(self, rule: str, weight: np.ndarray) -> np.ndarray:
        """The column for each group by a rule, from weights of which the greatest wins (float (g,
        k)): int (g,), -1 for nobody."""
        if rule == "given":
            return np.array(
                [self._find_given_person(group) for group in range(len(weight))], dtype=np.int64
            )
        if rule == "argmax":
            return weight.argmax(axis=1)
        from scipy.optimize import linear_sum_assignment  # slow to import

        chosen = np.full(len(weight), -1)
        groups, columns = linear_sum_assignment(weight, maximize=True)
        chosen[groups] = columns
        return chosen

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
        """The fewest and the most facts that are supported by anybody, by the person of their
        group, and only by somebody else, over all values of the unsure cells. The links depend on
        the verdicts, so they can change as well.

        The first and the last count the response's own facts. The bounds of the first two are
        reached by some values of the cells. The bounds of the last one contain all possible values;
        without unsure cells they are the figure itself. If no fact is in a group, everything that
        anybody supports may be supported by the right person, or only by somebody else.
        """
        sure, maybe = self._fill(False), self._fill(True)
        fewest, most = (int((one.supported_by_any() == 1)[self.own].sum()) for one in (sure, maybe))
        if not self.n_groups:
            return (fewest, most), (0, most), (0, most)
        # No rule supports fewer facts when one more cell is supported.
        linked = [
            int((one.supported_by(one.person_of_facts(rule)) == 1).sum()) for one in (sure, maybe)
        ]
        return (fewest, most), (linked[0], linked[1]), self._bound_elsewhere(rule, sure, maybe)

    def _fill(self, is_supported: bool) -> SupportMatrix:
        """The matrix with all unsure cells supported, or with none of them supported."""
        cells = np.where(self.unsure, is_supported, self.prediction == 1)
        return replace(self, prediction=cells.astype(np.int8), unsure=np.zeros_like(self.unsure))

    def _bound_elsewhere(self, rule: str, sure: SupportMatrix, maybe: SupportMatrix) -> CountRange:
        """The fewest and the most facts that somebody supports but the person of their group does
        not.

        Fewest: each group has the person for whom there are the fewest facts that others surely
        support and this person cannot support. Most: the best links leave no more such facts than
        any other links, so no more than the links that can leave the fewest. Facts that are not the
        response's own count in this comparison, because they count when the best links are chosen.
        """
        grouped, sure_cells, maybe_cells = (
            self.group >= 0,
            sure.prediction == 1,
            maybe.prediction == 1,
        )
        own = self.own & grouped
        if not self.unsure.any():
            linked = self.supported_by(self.person_of_facts(rule)) == 1
            n = int((own & sure_cells.any(axis=1) & ~linked).sum())
            return n, n
        # The last columns stand for nobody, to whom any number of groups may be linked.
        nobody = np.zeros((len(own), self.n_groups), dtype=bool)
        sure_cells, maybe_cells = np.hstack([sure_cells, nobody]), np.hstack([maybe_cells, nobody])
        surely_hidden = sure_cells.any(axis=1, keepdims=True) & ~maybe_cells
        may_be_hidden = (maybe_cells.sum(axis=1, keepdims=True) > maybe_cells) & ~sure_cells
        ends = []
        for hidden, counted in (
            (surely_hidden, own),
            (may_be_hidden, own if rule == "given" else grouped),
        ):
            n_hidden = self._count_by_group(hidden & counted[:, None])
            chosen = self._choose(rule, -n_hidden)
            ends.append(int(n_hidden[np.arange(self.n_groups), chosen].sum()))
        return ends[0], min(ends[1], int((own & maybe_cells.any(axis=1)).sum()))

    def bound_people(self) -> CountRange:
        """The fewest and the most people whom the supported facts of the response may be about
        (`attribute_facts`): any of those who may support one, unless the data say whom each fact is
        about."""
        sure, maybe = self._fill(False), self._fill(True)
        if self.about is not None or not self.unsure.any():
            return len(sure.list_owners()), len(maybe.list_owners())
        may_be = (maybe.prediction == 1)[self.own]
        most = min(may_be.any(axis=0).sum(), may_be.any(axis=1).sum())
        return min(1, len(sure.list_owners())), int(most)

    def list_owners(self) -> set[int]:
        """The people whom the supported facts of the response are about."""
        return set(self.attribute_facts()[self.own & (self.supported_by_any() == 1)].tolist()) - {
            -1
        }
