"""Responses whose facts are in groups and put to several people, from a claims table with a row per fact and person.

Columns: ``fact_id`` (the same for all people of a fact), ``entity`` (null: the fact has no candidate) and ``group``
(the facts of one biography; null: in none). A row that is missing is a page that was not asked. Optional, of each fact
the same in all its rows:

* ``given_entity``: the title that its group is linked to, as somebody said (rule `given`);
* ``about``: the title that the fact is true of, where the source says so: # ent. is then counted by it;
* ``invented``: 1 where the fact is none of the response's own (a grouping's reply made it): FActScore leaves it out;
* ``mean_biographies``: the mean number of biographies of the source's responses, where it tells no more: groups are
  then the fewest that there can be;
* ``decoy`` (of a row, not a fact): 1 where the entity is somebody whom the response cannot be about. Such rows are no
  candidates: they measure how often the verifier errs.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.support_matrix import SupportMatrix
from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.schema import STATUSES

#: Where cells that are known to be false come from, the better source first. ``labels``: people found that the fact is
#: not true of the person.
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
    return bool((claims["fact_id"].notna() & claims["entity"].notna() & claims["response_id"].notna()).any())


def collect_biographies(judgements: Judgements, evaluator: int, group_column: str = "group") -> list[SupportMatrix]:
    """The responses as one evaluator judged them; those without any fact (`Judgements.empty_responses`) have none.

    Responses are sorted by dataset, system and response_id, facts by their ids, so that no figure depends on the order
    of the input's rows. Raises `UsageError` where a fact is put to the same person twice, or has two groups.
    """
    return judgements.compute_once(
        ("biographies", evaluator, group_column), lambda: _read_biographies(judgements, evaluator, group_column)
    )


def _read_biographies(judgements: Judgements, evaluator: int, group_column: str) -> list[SupportMatrix]:
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
    is_fact = table["fact_id"].notna()
    table = table[table["response_id"].notna() & (is_fact | (table.index >= len(claims)))]
    # The longer id comes later: "r.10" after "r.9".
    order = pd.DataFrame({"length": table["fact_id"].map(len, na_action="ignore"), "id": table["fact_id"]}).sort_values(
        ["length", "id"]
    )
    responses = table.loc[order.index].groupby(_RESPONSE, sort=True, dropna=False)
    return [_read_biography(rows) for _, rows in responses]


def _read_biography(rows: pd.DataFrame) -> SupportMatrix:
    first_row = rows.iloc[0]
    key = {name: first_row[name] for name in (*_RESPONSE, "topic")}
    rows = rows[rows["fact_id"].notna()]
    is_decoy = (rows["decoy"] == 1).to_numpy(dtype=bool)
    decoys, rows = rows[is_decoy], rows[~is_decoy]
    facts = rows.drop_duplicates("fact_id")
    fact = pd.factorize(rows["fact_id"])[0]
    person, people = pd.factorize(rows["entity"], sort=True)  # -1: no candidate
    asked = rows[person >= 0]
    if asked.duplicated(["fact_id", "entity"]).any():
        raise UsageError(f"response {key['response_id']!r}: a fact is put to the same entity twice (fact_id, entity)")
    if (facts["group"].to_numpy()[fact] != rows["group"].to_numpy()).any():
        raise UsageError(f"response {key['response_id']!r}: the rows of one fact are in different groups")
    at = fact[person >= 0], person[person >= 0]
    shape = (len(facts), len(people))
    prediction, status = np.full(shape, MISSING, dtype=np.int8), np.full(shape, MISSING, dtype=np.int8)
    score = np.full(shape, np.nan)
    prediction[at], status[at], score[at] = asked["prediction"], asked["status"], asked["score"]
    group = pd.factorize(facts["group"])[0]
    named = facts.assign(number=group)[(group >= 0) & facts["given_entity"].notna().to_numpy()]
    # Of several titles the most frequent, and of these the first in the alphabet.
    titles = named.groupby("number")["given_entity"].agg(lambda own: own.mode().iloc[0])
    mean_biographies = facts["mean_biographies"].dropna()
    return SupportMatrix(
        people=tuple(people),
        prediction=prediction,
        score=score,
        unsure=(prediction == MISSING) | ((status != _OK) & (status >= 0)),
        group=group,
        own=(facts["invented"] != 1).to_numpy(dtype=bool),
        given=dict(zip(titles.index.tolist(), titles.tolist(), strict=True)),
        about=tuple(facts["about"]) if facts["about"].notna().any() else None,
        was_asked=bool(((prediction != MISSING) | ((status >= 0) & (status != _SKIPPED))).any()),
        mean_biographies=float(mean_biographies.iloc[0]) if len(mean_biographies) else None,
        false_cells={
            source: (int((cells["prediction"] != MISSING).sum()), int((cells["prediction"] == 1).sum()))
            for source, cells in zip(FALSE_CELL_SOURCES, (decoys, _select_false_cells(rows)), strict=True)
        },
        key=key,
        texts=tuple(facts["claim"]),
    )


def _select_false_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows whose label is 0: the fact is not true of the person of the row.

    A label is about one person, whatever other groups a grouping makes of the facts: that of the fact's only labelled
    row; where several rows of the fact have the label, that of ``given_entity``.
    """
    labelled = rows[rows["label"] != MISSING]
    alone = ~labelled.duplicated("fact_id", keep=False)
    its = alone | (labelled["given_entity"] == labelled["entity"])
    return labelled[(labelled["label"] == 0) & labelled["entity"].notna() & its]
