"""Responses whose facts are in groups and put to several people, from a claims table with a row per
fact and person.

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
  about. Such rows are no
  candidates: they measure how often the verifier errs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.support_matrix import SupportMatrix
from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.schema import STATUSES

#: Where cells that are known to be false come from, the better source first. ``labels``: people
#: found that the fact is not true of the person.
FALSE_CELL_SOURCES = ("decoys", "labels")
_OK, _SKIPPED = STATUSES.index("ok"), STATUSES.index("skipped")
_RESPONSE = ["dataset", "system", "response_id"]
_COLUMNS = (
    *(*_RESPONSE, "topic", "fact_id", "entity", "claim"),
    *("given_entity", "about", "invented", "mean_biographies", "decoy"),
)


def has_fact_entities(judgements: Judgements) -> bool:
    """Whether the claims have a row per fact and person."""
    claims = judgements.claims
    return bool(
        (claims["fact_id"].notna() & claims["entity"].notna() & claims["response_id"].notna()).any()
    )


def collect_biographies(
    judgements: Judgements, evaluator: int, group_column: str = "group"
) -> list[SupportMatrix]:
    """The responses as one evaluator judged them; those without any fact
    (`Judgements.empty_responses`) have none.

    Responses are sorted by dataset, system and response_id, facts by their ids, so that no figure
    depends on the order of the input's rows. Raises `UsageError` where a fact is put to the same
    person twice, or has two groups.
    """
    return judgements.compute_once(
        ("biographies", evaluator, group_column),
        lambda: _read_biographies(judgements, evaluator, group_column),
    )


def _read_biographies(
    judgements: Judgements, evaluator: int, group_column: str
) -> list[SupportMatrix]:
    claims = judgements.claims
    if group_column not in claims:
        known = suggest_known_name(group_column, [str(column) for column in claims.columns])
        raise UsageError(f"the claims have no column {group_column!r}{known}")
    table = pd.concat([claims, judgements.empty_responses], ignore_index=True)
    table = table.reindex(columns=_COLUMNS).astype(object)
    table = table.where(table.notna(), None)
    group = claims[group_column].astype(object)
    table["group"] = group.where(group.notna(), None).reindex(table.index)
    for name in ("prediction", "score", "status"):
        table[name] = pd.Series(getattr(judgements, name)[evaluator]).reindex(table.index)
    table["label"] = pd.Series(judgements.label).reindex(table.index, fill_value=MISSING)
    is_empty = table.index >= len(claims)
    table.loc[is_empty, "fact_id"] = (
        None  # whatever stands there: a response without a claim has no fact
    )
    table = table[table["response_id"].notna() & (table["fact_id"].notna() | is_empty)]
    # The longer id comes later: "r.10" after "r.9".
    order = pd.DataFrame(
        {"length": table["fact_id"].map(len, na_action="ignore"), "id": table["fact_id"]}
    )
    table = table.loc[order.sort_values(["length", "id"]).index]
    owner = table.groupby(_RESPONSE, sort=True, dropna=False).ngroup().to_numpy()
    rank = np.argsort(owner, kind="stable")
    columns = {str(name): table[name].to_numpy()[rank] for name in table}
    ends = np.flatnonzero(np.diff(owner[rank], prepend=-1, append=-1)).tolist()
    return [
        _read_biography({name: each[start:end] for name, each in columns.items()})
        for start, end in pairwise(ends)
    ]


def _read_biography(rows: Mapping[str, np.ndarray]) -> SupportMatrix:
    """The matrix of one response, from its columns."""
    key = {name: rows[name][0] for name in (*_RESPONSE, "topic")}
    is_fact, is_decoy = pd.notna(rows["fact_id"]), (rows["decoy"] == 1).astype(bool)
    decoys, rows = _select(rows, is_fact & is_decoy), _select(rows, is_fact & ~is_decoy)
    fact = pd.factorize(rows["fact_id"])[0]
    first = np.unique(fact, return_index=True)[1]
    facts = _select(rows, first)
    n_facts = len(facts["fact_id"])
    person, people = pd.factorize(rows["entity"], sort=True)  # -1: no candidate
    asked = person >= 0
    at = fact[asked], person[asked]
    if len(set(zip(*at, strict=True))) < asked.sum():
        raise UsageError(
            f"response {key['response_id']!r}: a fact is put to the same entity twice (fact_id,"
            " entity)"
        )
    group_of_row = pd.factorize(rows["group"])[0]  # -1: no group
    group = group_of_row[first]
    if (group[fact] != group_of_row).any():
        raise UsageError(
            f"response {key['response_id']!r}: the rows of one fact are in different groups"
        )
    shape = (n_facts, len(people))
    prediction, status = (
        np.full(shape, MISSING, dtype=np.int8),
        np.full(shape, MISSING, dtype=np.int8),
    )
    score = np.full(shape, np.nan)
    prediction[at], status[at], score[at] = (
        rows[name][asked] for name in ("prediction", "status", "score")
    )
    # A label is about one person, whatever other groups a grouping makes of the facts: that of the
    # fact's only labelled row; where several rows of the fact have the label, that of
    # ``given_entity``.
    labelled = rows["label"] != MISSING
    alone = np.bincount(fact[labelled], minlength=n_facts)[fact] == 1
    is_false = (
        (rows["label"] == 0)
        & asked
        & (alone | (rows["given_entity"] == rows["entity"]).astype(bool))
    )
    false_predictions = (decoys["prediction"], rows["prediction"][is_false])
    numbers = [number for number in facts["mean_biographies"] if number is not None]
    return SupportMatrix(
        people=tuple(people),
        prediction=prediction,
        score=score,
        unsure=(prediction == MISSING) | ((status != _OK) & (status >= 0)),
        group=group,
        own=(facts["invented"] != 1).astype(bool),
        given=_find_given_people(group, facts["given_entity"]),
        about=tuple(facts["about"]) if pd.notna(facts["about"]).any() else None,
        was_asked=bool(((prediction != MISSING) | ((status >= 0) & (status != _SKIPPED))).any()),
        mean_biographies=float(numbers[0]) if numbers else None,
        false_cells={
            source: (int((cells != MISSING).sum()), int((cells == 1).sum()))
            for source, cells in zip(FALSE_CELL_SOURCES, false_predictions, strict=True)
        },
        key=key,
        texts=tuple(facts["claim"]),
    )


def _select(rows: Mapping[str, np.ndarray], which: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values[which] for name, values in rows.items()}


def _find_given_people(group: np.ndarray, titles: np.ndarray) -> dict[int, str]:
    """Of each group the title that most of its facts name, of several the first in the alphabet."""
    named: dict[int, Counter[str]] = {}
    for number, title in zip(group.tolist(), titles, strict=True):
        if number >= 0 and title is not None:
            named.setdefault(number, Counter())[title] += 1
    return {
        number: min(counts, key=lambda one: (-counts[one], one)) for number, counts in named.items()
    }
