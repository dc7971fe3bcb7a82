"""From the records of responses to the two tables that everything reads (DESIGN, "What the engines compute")."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from factaudit.audit.core.facts import HUMAN
from factaudit.engines.records import Record, Support
from factaudit.engines.responses import LABELS, Fact, Response, given_groups
from factaudit.engines.verify import Verifiers
from factaudit.evaluators.judging import judge
from factaudit.signature import digest
from factaudit.tables import merge_verdicts, validate_claims, validate_verdicts
from factaudit.tables.columns import TEXT

Row = dict[str, Any]


def claims_table(
    responses: Sequence[Response], records: Sequence[Record], dataset: str, irrelevant: str = "exclude"
) -> pd.DataFrame:
    """A row per fact, or per fact and candidate where facts are grouped, with its passages as the document.

    A response that abstained, or in which no fact was found, is one row without a claim (``abstained``). Besides the
    standard's columns: ``sentence``, the fact's; ``human_supported``, ``human_not_supported``, ``human_irrelevant``:
    how many facts of the response people labelled so, where they did; ``group_NAME``, the groups by each grouper but
    the first, whose are in ``group``; ``given_entity``, the title of whom the fact's group is about, where somebody
    has said; ``found_by`` and ``candidate_rank``, how and at which place candidates were found, where nobody gave them
    (`factaudit.engines.dfactscore.candidates`). A label of a fact with several candidates is of the row of that one: of
    the others it says nothing.
    """
    rows: list[Row] = []
    docs = _Documents()
    for response, record in zip(responses, records, strict=True):
        made = record.decomposed
        shared: Row = {
            "dataset": dataset,
            "system": response.system,
            "response_id": response.response_id,
            "topic": response.topic,
            **dict(zip(HUMAN, response.human or (), strict=False)),
        }
        if not made.facts:
            # A claim's id ends in the number of its fact; this one is of none.
            rows.append({"claim_id": f"{response.response_id}.-", **shared, "abstained": int(made.abstained)})
            docs.append(None)
        first = next(iter(record.groupings), None)
        owners = given_groups(made.facts)[1]
        for number, place in record.cells:
            fact, candidate = made.facts[number], record.candidates[place]
            fact_id = f"{response.response_id}.{number}"
            label = label_of(fact, irrelevant)
            row = {"claim_id": fact_id, **shared, "fact_id": fact_id, "doc_id": candidate.title, "claim": fact.text}
            if first is not None:
                entity = candidate.title
                row["claim_id"] += "" if entity is None else f".{digest(entity, length=8)}"
                row |= {"entity": entity, "given_entity": _page_of(fact.entity, record)}
                for name, grouping in record.groupings.items():
                    column = "group" if name == first else f"group_{name}"
                    row[column] = None if grouping.groups is None else str(grouping.groups[number] + 1)
                if record.source not in ("given", "none"):
                    row |= {"found_by": candidate.found_by, "candidate_rank": place + 1}
                if len(record.candidates) > 1 and entity != _page_of(owners[fact.group], record):
                    label = None
            row["label"] = label
            row["sentence"] = None if fact.sentence is None else _sentence(record, fact.sentence)
            rows.append(row)
            docs.append(record.doc(number, place))
    # A column that no row has is one of nulls all the same.
    return validate_claims(pd.DataFrame(rows, columns=_columns(rows)).assign(doc=docs.column()))


class _Documents:
    """The documents of many rows, each the passages of one, strung together.

    They are nearly all that a table weighs: they are put into Arrow as they come, so that there is one copy of each.
    """

    def __init__(self) -> None:
        self._waiting: list[str | None] = []
        self._whole: list[pa.Array] = []

    def append(self, passages: Sequence[str] | None) -> None:
        self._waiting.append(None if passages is None else "\n\n".join(passages))
        if len(self._waiting) == 1000:
            self._pack()

    def column(self) -> Any:
        """All of them as a column of text."""
        self._pack()
        return pa.chunked_array(self._whole, type=pa.large_string()).to_pandas(types_mapper=lambda _: TEXT)

    def _pack(self) -> None:
        self._whole.append(pa.array(self._waiting, type=pa.large_string()))
        self._waiting = []


def label_of(fact: Fact, irrelevant: str) -> int | None:
    """The label of a fact: S 1, NS 0; IR none, or 0 where irrelevant facts count as ``unsupported``."""
    if fact.label is None:
        return None
    return 0 if fact.label == "IR" and irrelevant == "unsupported" else LABELS[fact.label]


def verdicts_table(
    claims: pd.DataFrame,
    records: Sequence[Record],
    verifiers: Verifiers,
    journal: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """A verdict per claim and verifier, the verifiers in their order; without any claim, a table of no rows.

    A fact without a page is unscored, with the reason.
    """
    asked = claims[claims["claim"].notna()]
    if asked.empty:
        return validate_verdicts(pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])).iloc[:0]
    missing = [record.missing(*cell) for record in records for cell in record.cells]
    parts = []
    for name in verifiers.names:
        if name in verifiers.asked:
            given = [support for record in records for support in record.supports.get(name, ())]
            parts.append(_supported(asked["claim_id"], name, given))
            continue
        readable = asked["doc"].notna()
        of_name = []
        if readable.any():
            of_name.append(judge(asked[readable], [verifiers.evaluators[name]], journal=journal, progress=progress))
        if not readable.all():
            told = [one for one, has_doc in zip(missing, readable, strict=True) if not has_doc]
            of_name.append(_supported(asked.loc[~readable, "claim_id"], name, told))
        both = merge_verdicts(of_name)
        parts.append(both.set_index("claim_id").loc[asked["claim_id"]].reset_index() if len(of_name) > 1 else both)
    return merge_verdicts(parts)


def _supported(claim_ids: pd.Series, name: str, given: Sequence[Support]) -> pd.DataFrame:
    return validate_verdicts(
        pd.DataFrame(
            {
                "claim_id": claim_ids.to_numpy(),
                "evaluator": name,
                "prediction": pd.array([one.prediction for one in given], dtype="Int8"),
                "score": [one.score for one in given],
                "status": [one.status for one in given],
                "raw": [one.raw for one in given],
            }
        ),
        source=name,
    )


def _page_of(entity: str | None, record: Record) -> str | None:
    """The title of the candidate that a given entity names, by any of its names."""
    known = (one.title for one in record.candidates if entity == one.title or entity in one.named)
    return next(known, entity) if entity is not None else None


def _sentence(record: Record, number: int) -> str | None:
    texts = record.decomposed.sentences
    return texts[number].text if 0 <= number < len(texts) else None


def _columns(rows: Sequence[Row]) -> list[str]:
    always = ("claim_id", "dataset", "claim", "sentence")
    return list(dict.fromkeys([*always, *(key for row in rows for key in row)]))
