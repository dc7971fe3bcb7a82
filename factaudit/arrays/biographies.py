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
  about. Such rows are no candidates: they measure how often the verifier errs, as labels of false
  facts do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.support_matrix import SupportMatrix
from factaudit.errors import UsageError, suggest_known_name
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


def collect_biographies(
    judgements: Judgements, evaluator: int, group_column: str = "group"
) -> list[SupportMatrix]:
    """The responses as one evaluator judged them. Responses without any fact
    (`Judgements.empty_responses`) have no matrix.

    Responses are sorted by dataset, system and response_id, and facts by their ids, so that no
    figure depends on the order of the input's rows. Raises `UsageError` if a fact is put to the
    same person twice, or has two groups.
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
    told = {
        name: getattr(judgements, name)[evaluator] for name in ("prediction", "score", "status")
    }
    facts = claims.assign(group=claims[group_column])
    # A response without a claim has no fact, whatever else its row says.
    table = pd.concat([facts, judgements.empty_responses.assign(fact_id=None)], ignore_index=True)
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
