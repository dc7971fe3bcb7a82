"""Responses whose facts are in groups and put to several entities.

Read from a claims table with a row per fact and entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.fact_entity_matrix import FactEntityMatrix
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.schema import STATUSES

#: Where cells that are known to be false come from, the better source first. ``decoys``: rows of people whom the
#: response cannot be about (claims column ``decoy`` is 1; they are no candidates). ``labels``: rows that people
#: labelled 0: the fact is not true of the person of that row (of several such rows of a fact, ``given_entity``).
FALSE_CELL_SOURCES = ("decoys", "labels")

_OK, _SKIPPED = STATUSES.index("ok"), STATUSES.index("skipped")


@dataclass(frozen=True)
class GroupedResponse:
    """One response as one verifier sees it.

    key: dataset, system, response_id, topic. first_rows: of each of its n facts the first row of the claims table.
    groups: int (n,), 0..g-1 by first appearance; -1 for a fact in no group. given_entities: of groups, where the source
    names them. true_entities: whom each fact is true of, where the source says (None: it does not say of any).
    invented: bool (n,), facts that are none of the response's own (a grouping's reply made them). mean_biographies:
    where the source says only their mean over its responses, and the groups are the fewest that there can be.
    false_cells: by source (`FALSE_CELL_SOURCES`), cells that are known to be false, and those of them found supported.
    cache: by linking rule what audits share.
    """

    key: dict[str, Any]
    first_rows: np.ndarray
    matrix: FactEntityMatrix
    groups: np.ndarray
    given_entities: Mapping[int, str] = field(default_factory=dict)
    true_entities: tuple[str | None, ...] | None = None
    invented: np.ndarray | None = None
    mean_biographies: float | None = None
    false_cells: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    abstained: bool = False
    cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_own_fact(self) -> np.ndarray:
        """bool (n,): the facts that FActScore is of."""
        n = len(self.first_rows)
        return np.ones(n, dtype=bool) if self.invented is None else ~self.invented

    @property
    def n_groups(self) -> int:
        return int(self.groups.max(initial=-1)) + 1


def collect_grouped_responses(
    judgements: Judgements, evaluator: int, group_column: str = "group"
) -> list[GroupedResponse]:
    """The responses of a table with a row per fact and entity, as one evaluator judged them.

    A fact is a (dataset, system, response_id, fact_id). Responses without any (`Judgements.empty_responses`) have no
    facts. A row without an entity says that its fact has no candidate. Responses are sorted by dataset, system and
    response_id, facts by their ids, so that no figure depends on the order of the input's rows.

    group_column: the column that has the groups.

    Raises `UsageError` where a fact is put to the same entity twice, or has two groups.
    """
    return judgements.compute_once(
        ("responses", evaluator, group_column), lambda: _build_grouped_responses(judgements, evaluator, group_column)
    )


def _build_grouped_responses(judgements: Judgements, evaluator: int, group_column: str) -> list[GroupedResponse]:
    table = judgements.claims
    if group_column not in table:
        raise UsageError(
            f"the claims have no column {group_column!r}"
            f"{suggest_known_name(group_column, [str(column) for column in table.columns])}"
        )
    usable = np.flatnonzero(table["fact_id"].notna().to_numpy() & table["response_id"].notna().to_numpy())
    keys = ["dataset", "system", "response_id"]
    owner = table.iloc[usable].groupby(keys, sort=False, dropna=False).ngroup().to_numpy()
    ids = table["fact_id"].iloc[usable].to_numpy(dtype=object)
    # The longer id comes later: "r.10" after "r.9".
    order = np.lexsort((pd.factorize(ids, sort=True)[0], np.array([len(one) for one in ids], dtype=np.int64), owner))
    usable, owner = usable[order], owner[order]
    ends = [*np.flatnonzero(np.diff(owner, prepend=-1)).tolist(), len(usable)]
    columns = {
        name: table[name].astype(object).where(table[name].notna(), None).to_numpy()
        for name in _list_response_columns(table)
    }
    columns["group"] = table[group_column].astype(object).where(table[group_column].notna(), None).to_numpy()
    prediction, score = judgements.prediction[evaluator], judgements.score[evaluator]
    status, label = judgements.status[evaluator], judgements.label
    found = []
    for start, end in pairwise(ends):
        rows = usable[start:end]
        key = {name: columns[name][rows[0]] for name in (*keys, "topic")}
        false = np.zeros(len(rows), dtype=bool)
        if "decoy" in columns:
            false = columns["decoy"][rows] == 1
        decoys = _count_supported_cells(prediction[rows[false]])
        rows = rows[~false]
        one = _build_grouped_response(key, rows, columns, prediction[rows], score[rows], status[rows])
        labelled = _count_false_cells_of_grouped_response(rows, columns, label, prediction)
        found.append(replace(one, false_cells={"decoys": decoys, "labels": labelled}))
    found += [_build_empty_grouped_response(row) for row in judgements.empty_responses.to_dict("records")]
    return sorted(found, key=lambda one: [(one.key[name] is None, one.key[name] or "") for name in keys])


def _count_supported_cells(prediction: np.ndarray) -> tuple[int, int]:
    """Scored cells, and those found supported."""
    return int((prediction != MISSING).sum()), int((prediction == 1).sum())


def _count_false_cells_of_grouped_response(
    rows: np.ndarray, columns: Mapping[str, np.ndarray], label: np.ndarray, prediction: np.ndarray
) -> tuple[int, int]:
    """The cells that people found false: rows whose label is 0.

    A label is about one person, whatever other groups a grouping makes of the facts: that of the fact's only labelled
    row; where several rows of the fact have the label, that of ``given_entity``.
    """
    labelled = rows[label[rows] >= 0]
    n_labelled = Counter(columns["fact_id"][labelled].tolist())
    titles = columns.get("given_entity")
    false = [
        row
        for row in labelled[label[labelled] == 0].tolist()
        if columns["entity"][row] is not None
        and (n_labelled[columns["fact_id"][row]] == 1 or (titles is not None and titles[row] == columns["entity"][row]))
    ]
    return _count_supported_cells(prediction[false])


def _list_response_columns(table: pd.DataFrame) -> list[str]:
    optional = ("given_entity", "about", "invented", "mean_biographies", "decoy")
    named = ("dataset", "system", "response_id", "topic", "fact_id", "entity", "claim")
    return [*named, *(name for name in optional if name in table)]


def _build_grouped_response(
    key: dict[str, Any],
    rows: np.ndarray,
    columns: Mapping[str, np.ndarray],
    prediction: np.ndarray,
    score: np.ndarray,
    status: np.ndarray,
) -> GroupedResponse:
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
    matrix = FactEntityMatrix(
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
    return GroupedResponse(
        key, facts, matrix, groups, given, about, invented, None if number is None else float(number)
    )


def _build_empty_grouped_response(row: Mapping[Any, Any]) -> GroupedResponse:
    key = {
        name: row[name] if isinstance(row[name], str) else None
        for name in ("dataset", "system", "response_id", "topic")
    }
    nothing = FactEntityMatrix.of((), np.zeros((0, 0), dtype=np.int8))
    empty = np.zeros(0, dtype=np.int64)
    return GroupedResponse(key, empty, nothing, empty, abstained=row["abstained"] == 1)
