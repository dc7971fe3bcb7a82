"""How do the records of responses become the two tables that everything reads?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.audit.core.result_rows import Row
from factaudit.engines.fact_verification import FactVerifierSet
from factaudit.engines.records import FactVerificationRecord, ResponseRecord
from factaudit.engines.responses import FACT_LABELS, AtomicFact, Response, find_given_fact_groups
from factaudit.evaluators.judging import judge
from factaudit.signature import hash_texts
from factaudit.tables import merge_verdict_tables, validate_claims, validate_verdicts
from factaudit.tables.column_parsing import TEXT_DTYPE


def build_fact_claims_table(
    responses: Sequence[Response], records: Sequence[ResponseRecord], dataset: str, irrelevant: str = "exclude"
) -> pd.DataFrame:
    """A row per fact, or per fact and candidate where facts are grouped, with its passages as the document.

    A response that abstained, or in which no fact was found, is one row without a claim (``abstained``). Besides the
    standard's columns: ``sentence``, the fact's; ``response``, all sentences that facts are asked of;
    ``human_supported``, ``human_not_supported``, ``human_irrelevant``: how many facts of the response people
    labelled so, where they did; ``group_NAME``, the groups by each grouper but the first, whose are in ``group``;
    ``given_entity``, the title of whom the fact's group is about, where somebody has said; ``undecomposed``, 1 where it
    is a sentence that was not decomposed, and stands for its facts. Of a fact with several candidates, only the row of
    the one that its group is about has the label.
    """
    rows: list[Row] = []
    docs = _PassageTextColumn()
    for response, record in zip(responses, records, strict=True):
        made = record.decomposed
        shared: Row = {
            "dataset": dataset,
            "system": response.system,
            "response_id": response.response_id,
            "topic": response.topic,
            "response": " ".join(one.text for one in made.sentences if not one.is_left_out) or None,
            **dict(zip(HUMAN_FACT_COUNTS, response.human or (), strict=False)),
        }
        if not made.facts:
            # A claim's id ends in the number of its fact; this one is of none.
            rows.append({"claim_id": f"{response.response_id}.-", **shared, "abstained": int(made.abstained)})
            docs.append(None)
        sentences = dict(enumerate(made.sentences))
        first = next(iter(record.groupings), None)
        owners = find_given_fact_groups(made.facts)[1]
        for number, place in record.fact_candidate_pairs:
            fact, candidate = made.facts[number], record.candidates[place]
            fact_id = f"{response.response_id}.{number}"
            label = convert_human_fact_annotation(fact, irrelevant)
            row = {"claim_id": fact_id, **shared, "fact_id": fact_id, "doc_id": candidate.title, "claim": fact.text}
            if first is not None:
                entity = candidate.title
                row["claim_id"] += "" if entity is None else f".{hash_texts(entity, length=8)}"
                row |= {"entity": entity, "given_entity": _find_candidate_title(fact.entity, record)}
                for name, grouping in record.groupings.items():
                    column = "group" if name == first else f"group_{name}"
                    row[column] = None if grouping.groups is None else str(grouping.groups[number] + 1)
                if len(record.candidates) > 1 and entity != _find_candidate_title(owners[fact.group], record):
                    label = None
            row["label"] = label
            row |= {"undecomposed": 1} if fact.failure_status is not None else {}
            row["sentence"] = sentences[fact.sentence].text if fact.sentence in sentences else None
            rows.append(row)
            docs.append(record.list_passages(number, place))
    # A column that no row has is one of nulls all the same.
    columns = dict.fromkeys(["claim_id", "dataset", "claim", "sentence", *(key for row in rows for key in row)])
    return validate_claims(pd.DataFrame(rows, columns=list(columns)).assign(doc=docs.build_column()))


class _PassageTextColumn:
    """The documents of many rows, each the passages of one, strung together.

    They are nearly all that a table weighs: they are put into Arrow as they come, so that there is one copy of each.
    """

    def __init__(self) -> None:
        self._waiting: list[str | None] = []
        self._whole: list[pa.Array] = []

    def append(self, passages: Sequence[str] | None) -> None:
        self._waiting.append(None if passages is None else "\n\n".join(passages))
        if len(self._waiting) == 1000:
            self._pack_waiting()

    def build_column(self) -> Any:
        """All of them as a column of text."""
        self._pack_waiting()
        return pa.chunked_array(self._whole, type=pa.large_string()).to_pandas(types_mapper=lambda _: TEXT_DTYPE)

    def _pack_waiting(self) -> None:
        self._whole.append(pa.array(self._waiting, type=pa.large_string()))
        self._waiting = []


def convert_human_fact_annotation(fact: AtomicFact, irrelevant: str) -> int | None:
    """The label of a fact: S 1, NS 0; IR none, or 0 where irrelevant facts count as ``unsupported``."""
    if fact.label is None:
        return None
    return 0 if fact.label == "IR" and irrelevant == "unsupported" else FACT_LABELS[fact.label]


def build_fact_verdicts_table(
    claims: pd.DataFrame,
    records: Sequence[ResponseRecord],
    verifiers: FactVerifierSet,
    journal: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """A verdict per claim and verifier, the verifiers in their order; without any claim, a table of no rows.

    A fact without a page is unscored, with the reason.
    """
    asked = claims[claims["claim"].notna()]
    if asked.empty:
        return validate_verdicts(pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])).iloc[:0]
    missing = [record.make_missing_support(*cell) for record in records for cell in record.fact_candidate_pairs]
    parts = []
    for name in verifiers.names:
        if name in verifiers.builtin_verifiers:
            given = [support for record in records for support in record.supports.get(name, ())]
            parts.append(_make_fact_verdict_rows(asked["claim_id"], name, given))
            continue
        readable = asked["doc"].notna()
        of_name = []
        if readable.any():
            of_name.append(judge(asked[readable], [verifiers.evaluators[name]], journal=journal, progress=progress))
        if not readable.all():
            told = [one for one, has_doc in zip(missing, readable, strict=True) if not has_doc]
            of_name.append(_make_fact_verdict_rows(asked.loc[~readable, "claim_id"], name, told))
        both = merge_verdict_tables(of_name)
        parts.append(both.set_index("claim_id").loc[asked["claim_id"]].reset_index() if len(of_name) > 1 else both)
    return merge_verdict_tables(parts)


def _make_fact_verdict_rows(
    claim_ids: pd.Series, verifier_name: str, supports: Sequence[FactVerificationRecord]
) -> pd.DataFrame:
    return validate_verdicts(
        pd.DataFrame(
            {
                "claim_id": claim_ids.to_numpy(),
                "evaluator": verifier_name,
                "prediction": pd.array([one.prediction for one in supports], dtype="Int8"),
                "score": [one.score for one in supports],
                "status": [one.status for one in supports],
                "raw": [one.raw for one in supports],
            }
        ),
        source=verifier_name,
    )


def _find_candidate_title(entity: str | None, record: ResponseRecord) -> str | None:
    """The title of the candidate that a given entity names, by any of its names."""
    known = (one.title for one in record.candidates if entity == one.title or entity in one.other_titles)
    return next(known, entity) if entity is not None else None
