"""The facts of a response against the people whom it may be about, and whom each group of facts is about (MF §4.1).

Built from claims with a row per fact and entity (`responses`). Pure arithmetic: the same for an engine's tables, for
published decisions and for what people annotated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from factaudit.audit.core.judged import MISSING, Judged
from factaudit.errors import FactauditError, UsageError, hint
from factaudit.tables import STATUSES

RULES = ("argmax", "hungarian", "given")
#: A group's entity is doubtful where the second-best entity supports nearly as large a share of its facts.
NARROW = 0.1

_OK, _SKIPPED = STATUSES.index("ok"), STATUSES.index("skipped")


@dataclass(frozen=True)
class Matrix:
    """n facts against m candidate entities.

    entities: m titles, all different.
    prediction: int8 (n, m), 1 the entity's page supports the fact, 0 it doesn't, -1 unscored.
    score: float64 (n, m), support in [0, 1], NaN where the verifier gave none.
    unsure: bool (n, m), the cells that bounds leave open: unscored, or guessed from a reply that states no verdict.
    asked: whether a verifier was asked at all, if in vain: a failed call counts, a skipped one doesn't.
    """

    entities: tuple[str, ...]
    prediction: np.ndarray
    score: np.ndarray
    unsure: np.ndarray
    asked: bool = True

    def __post_init__(self) -> None:
        shape = (len(self.prediction), len(self.entities))
        if not self.prediction.shape == self.score.shape == self.unsure.shape == shape:
            raise ValueError(f"expected arrays of shape {shape}")
        if len(set(self.entities)) != len(self.entities):
            raise ValueError("an entity is a candidate once")

    @classmethod
    def of(cls, entities: Sequence[str], prediction: np.ndarray, score: np.ndarray | None = None) -> Matrix:
        """From predictions alone: what is unscored is unsure, and was asked."""
        scores = np.full(prediction.shape, np.nan) if score is None else score
        return cls(tuple(entities), prediction, scores, prediction == MISSING)

    def filled(self, value: int) -> Matrix:
        """The matrix where all that is unsure is ``value``."""
        prediction = np.where(self.unsure, np.int8(value), self.prediction)
        return replace(self, prediction=prediction, unsure=np.zeros_like(self.unsure))

    def facts(self, chosen: np.ndarray) -> Matrix:
        """The matrix of some facts: bool (n,)."""
        return replace(self, prediction=self.prediction[chosen], score=self.score[chosen], unsure=self.unsure[chosen])

    def by_any(self) -> np.ndarray:
        """Per fact, whether any entity supports it (FActScore's verdict): int8 (n,), 1, 0 or -1.

        A fact that no entity supports is unscored where an entity's verdict is missing, or there is no entity.
        """
        known = (self.prediction != MISSING).all(axis=1) & bool(self.entities)
        return np.where((self.prediction == 1).any(axis=1), 1, np.where(known, 0, MISSING)).astype(np.int8)

    def by_entity(self, columns: np.ndarray) -> np.ndarray:
        """Per fact, the verdict of one entity (D-FActScore's): int8 (n,), 1, 0 or -1.

        columns: int (n,), a column per fact; -1 where the fact's group was left without an entity, so that nothing
        supports it. Where there is no candidate at all, every fact is unscored.
        """
        verdicts = np.full(len(self.prediction), 0 if self.entities else MISSING, dtype=np.int8)
        linked = columns >= 0
        verdicts[linked] = self.prediction[linked, columns[linked]]
        return verdicts

    def attributed(self) -> np.ndarray:
        """Per supported fact, the entity that it is about: int (n,), a column, -1 for a fact that none supports.

        Among the entities that support the fact it is the one that supports most facts of the response (of equals the
        first in the alphabet), as MF's code counts entities.
        """
        supported = self.prediction == 1
        order = sorted(range(len(self.entities)), key=lambda e: (-int(supported[:, e].sum()), self.entities[e]))
        found = np.full(len(supported), -1)
        for entity in reversed(order):
            found[supported[:, entity]] = entity
        return found


# ------------------------------------------------------------------------------------------------------- responses


@dataclass(frozen=True)
class Response:
    """One response as one verifier sees it.

    key: dataset, system, response_id, topic. rows: of each of its n facts the first row of the claims table.
    groups: int (n,), 0..g-1 by first appearance; -1 for a fact in no group. given: entities of groups, where told.
    about: whom each fact is true of, where the source says (None: it does not say of any). invented: bool (n,), facts
    that are none of the response's own (a grouping's reply made them). mean_biographies: where the source tells only
    their mean over its responses, and the groups are the fewest that there can be. false_cells: by source
    (`factaudit.audit.core.noise.SOURCES`), cells that are known to be false, and those of them found supported. kept:
    by linking rule what audits share (`factaudit.audit.core.biographies.score`).
    """

    key: dict[str, Any]
    rows: np.ndarray
    matrix: Matrix
    groups: np.ndarray
    given: Mapping[int, str] = field(default_factory=dict)
    about: tuple[str | None, ...] | None = None
    invented: np.ndarray | None = None
    mean_biographies: float | None = None
    false_cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    abstained: bool = False
    kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def own(self) -> np.ndarray:
        """bool (n,): the facts that FActScore is of."""
        n = len(self.rows)
        return np.ones(n, dtype=bool) if self.invented is None else ~self.invented

    @property
    def n_groups(self) -> int:
        return int(self.groups.max(initial=-1)) + 1


def responses(judged: Judged, evaluator: int, group: str = "group") -> list[Response]:
    """The responses of a table with a row per fact and entity, as one evaluator judged them.

    A fact is a (dataset, system, response_id, fact_id). Those that say nothing (`Judged.silent`) have no facts. A row
    without an entity says that its fact has no candidate. Responses are sorted by dataset, system and response_id,
    facts by their ids, so that no figure depends on the order of the input's rows.

    group: the column that has the groups.

    Raises `UsageError` where a fact is put to the same entity twice, or has two groups.
    """
    asked = ("responses", evaluator, group)
    if asked not in judged.kept:
        judged.kept[asked] = _responses(judged, evaluator, group)
    return judged.kept[asked]


def _responses(judged: Judged, evaluator: int, group: str) -> list[Response]:
    table = judged.claims
    if group not in table:
        raise UsageError(f"the claims have no column {group!r}{hint(group, [str(c) for c in table.columns])}")
    usable = np.flatnonzero(table["fact_id"].notna().to_numpy() & table["response_id"].notna().to_numpy())
    keys = ["dataset", "system", "response_id"]
    owner = table.iloc[usable].groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    ids = table["fact_id"].iloc[usable].to_numpy(dtype=object)
    # The longer id comes later: "r.10" after "r.9".
    order = np.lexsort((pd.factorize(ids, sort=True)[0], np.array([len(one) for one in ids], dtype=np.int64), owner))
    usable, owner = usable[order], owner[order]
    ends = [*np.flatnonzero(np.diff(owner, prepend=-1)).tolist(), len(usable)]
    columns = {name: table[name].astype(object).where(table[name].notna(), None).to_numpy() for name in _columns(table)}
    columns["group"] = table[group].astype(object).where(table[group].notna(), None).to_numpy()
    prediction, score = judged.prediction[evaluator], judged.score[evaluator]
    status, label = judged.status[evaluator], judged.label
    found = []
    for start, end in pairwise(ends):
        rows = usable[start:end]
        key = {name: columns[name][rows[0]] for name in (*keys, "topic")}
        false = np.zeros(len(rows), dtype=bool)
        if "decoy" in columns:
            false = columns["decoy"][rows] == 1
        decoys = _counted(prediction[rows[false]])
        rows = rows[~false]
        one = _response(key, rows, columns, prediction[rows], score[rows], status[rows])
        found.append(replace(one, false_cells={"decoys": decoys, "labels": _labelled(one, label)}))
    found += [_silent(row) for row in judged.silent.to_dict("records")]
    return sorted(found, key=lambda one: [(one.key[name] is None, one.key[name] or "") for name in keys])


def _counted(prediction: np.ndarray) -> tuple[int, int]:
    """Scored cells, and those found supported."""
    return int((prediction != MISSING).sum()), int((prediction == 1).sum())


def _labelled(one: Response, label: np.ndarray) -> tuple[int, int]:
    """The cells of facts that people found not true of the person whom their group is about."""
    columns = [
        one.matrix.entities.index(title) if (title := one.given.get(group)) in one.matrix.entities else -1
        for group in one.groups.tolist()
    ]
    wrong = np.flatnonzero((label[one.rows] == 0) & (np.array(columns, dtype=np.int64) >= 0))
    return _counted(one.matrix.prediction[wrong, np.array(columns, dtype=np.int64)[wrong]])


def _columns(table: pd.DataFrame) -> list[str]:
    optional = ("given_entity", "about", "invented", "mean_biographies", "decoy")
    named = ("dataset", "system", "response_id", "topic", "fact_id", "entity", "claim")
    return [*named, *(name for name in optional if name in table)]


def _response(
    key: dict[str, Any],
    rows: np.ndarray,
    columns: Mapping[str, np.ndarray],
    prediction: np.ndarray,
    score: np.ndarray,
    status: np.ndarray,
) -> Response:
    fact, ids = pd.factorize(columns["fact_id"][rows])
    titles = columns["entity"][rows]
    entity, entities = pd.factorize(titles, sort=True)  # -1: no candidate
    first = np.full(len(ids), len(rows))
    np.minimum.at(first, fact, np.arange(len(rows)))
    facts = rows[first]
    shape = (len(ids), len(entities))
    cells = {
        "prediction": np.full(shape, MISSING, dtype=np.int8),
        "score": np.full(shape, np.nan),
        "status": np.full(shape, MISSING, dtype=np.int8),
    }
    inside = entity >= 0
    at = (fact[inside], entity[inside])
    if len(np.unique(at[0] * max(1, len(entities)) + at[1])) < inside.sum():
        raise UsageError(f"response {key['response_id']!r}: a fact is put to the same entity twice (fact_id, entity)")
    for name, values in (("prediction", prediction), ("score", score), ("status", status)):
        cells[name][at] = values[inside]
    marks = columns["group"]
    if (marks[rows] != marks[facts][fact]).any():
        raise UsageError(f"response {key['response_id']!r}: the rows of one fact are in different groups")
    matrix = Matrix(
        tuple(entities),
        cells["prediction"],
        cells["score"],
        (cells["prediction"] == MISSING) | ((cells["status"] != _OK) & (cells["status"] >= 0)),
        bool((cells["prediction"] != MISSING).any() or ((cells["status"] >= 0) & (cells["status"] != _SKIPPED)).any()),
    )
    groups = pd.factorize(marks[facts])[0]
    given: dict[int, str] = {}
    if "given_entity" in columns:
        told: dict[int, Counter[str]] = {}
        for number, title in zip(groups.tolist(), columns["given_entity"][facts], strict=True):
            if number >= 0 and title is not None:
                told.setdefault(number, Counter())[title] += 1
        given = {number: min(counts, key=lambda one: (-counts[one], one)) for number, counts in told.items()}
    about = tuple(columns["about"][facts]) if "about" in columns else None
    invented = np.array([value == 1 for value in columns["invented"][facts]]) if "invented" in columns else None
    number = columns["mean_biographies"][facts[0]] if "mean_biographies" in columns else None
    return Response(key, facts, matrix, groups, given, about, invented, None if number is None else float(number))


def _silent(row: Mapping[Any, Any]) -> Response:
    key = {
        name: row[name] if isinstance(row[name], str) else None
        for name in ("dataset", "system", "response_id", "topic")
    }
    nothing = Matrix.of((), np.zeros((0, 0), dtype=np.int8))
    empty = np.zeros(0, dtype=np.int64)
    return Response(key, empty, nothing, empty, abstained=row["abstained"] == 1)


# ----------------------------------------------------------------------------------------------------------- links


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
    matrix: Matrix, groups: np.ndarray, rule: str = "argmax", given: Mapping[int, str] | None = None
) -> list[Link]:
    """Link each group of facts to one entity.

    Args:
        groups: int (n,), of each fact its group, 0..g-1; -1 for none.
        rule: `argmax`: the entity that supports the largest share of the group's facts (MF Eq. 1). Ties: the greater
            total score over the group's facts, then the title that comes first in the alphabet.
            `hungarian`: the assignment that maximises the number of supported facts where no two groups share an
            entity; ties by total score. Groups beyond the number of entities get none.
            `given`: the entities of ``given``.
        given: group -> title, for `given`; a group without a title has no entity.

    Returns g links. Raises `UsageError` for an unknown rule, `FactauditError` where a given entity is no candidate.
    """
    if rule not in RULES:
        raise UsageError(f"unknown linking rule {rule!r}{hint(rule, RULES)}")
    n_groups = int(groups.max(initial=-1)) + 1
    if not matrix.entities:
        return [Link(None)] * n_groups
    supported, score = per_group(matrix, groups)
    sizes = np.bincount(groups[groups >= 0], minlength=n_groups)
    alphabet = _alphabet(matrix)
    ranked = [np.lexsort((alphabet, -score[g], -supported[g])) for g in range(n_groups)]
    if rule == "argmax":
        chosen: list[int | None] = [int(order[0]) for order in ranked]
    elif rule == "hungarian":
        chosen = _hungarian(matrix, groups, supported, score)
    else:
        chosen = [_column(matrix, (given or {}).get(g)) for g in range(n_groups)]
    return [_link(chosen[g], ranked[g], supported[g] / sizes[g]) for g in range(n_groups)]


def one_to_one(matrix: Matrix, groups: np.ndarray) -> np.ndarray:
    """Of each group its column by the rule `hungarian`, as in `link`; -1 for none: int (g,)."""
    chosen = _hungarian(matrix, groups, *per_group(matrix, groups))
    return np.array([-1 if column is None else column for column in chosen], dtype=np.int64)


def columns_of(links: Sequence[Link], groups: np.ndarray) -> np.ndarray:
    """Of each fact the column of its group's entity, -1 for none: int (n,)."""
    columns = np.array([*(-1 if one.entity is None else one.entity for one in links), -1], dtype=np.int64)
    return columns[groups]


def per_group(matrix: Matrix, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Supported facts and total score of each group and entity: float64 (g, m) each.

    Scores are rounded: a sum may differ in the last bit with the order of the facts.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    member = (groups == np.arange(n_groups)[:, None]).astype(np.float64)
    return member @ (matrix.prediction == 1), (member @ np.nan_to_num(matrix.score)).round(9)


def ranks(matrix: Matrix, score: np.ndarray) -> np.ndarray:
    """int (g, m): the place of each entity where as many facts are supported by each; 0 wins the tie."""
    alphabet = _alphabet(matrix)
    found = np.empty(score.shape, dtype=np.int64)
    for at, own in enumerate(score):
        found[at, np.lexsort((alphabet, -own))] = np.arange(len(own))
    return found


def _alphabet(matrix: Matrix) -> np.ndarray:
    return np.argsort(np.argsort(np.array(matrix.entities, dtype=object)))


def _hungarian(matrix: Matrix, groups: np.ndarray, supported: np.ndarray, score: np.ndarray) -> list[int | None]:
    from scipy.optimize import linear_sum_assignment  # slow to import

    # The order of groups and entities must not matter, also where several assignments are best.
    columns = np.argsort(_alphabet(matrix))
    cells = np.hstack([matrix.prediction[:, columns], np.nan_to_num(matrix.score[:, columns], nan=-1.0)])
    # What tells a group from others, whatever the order of facts: its rows of the matrix.
    rows = sorted(range(len(supported)), key=lambda g: sorted(cells[groups == g].tolist()))
    # All the scores together weigh less than one supported fact.
    weight = supported + score / (len(matrix.prediction) + 1)
    chosen: list[int | None] = [None] * len(supported)
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
    margin = None if second is None else float(share[entity] - share[second])
    return Link(entity, float(share[entity]), second, margin)
