"""From what was asked about each response to the claims table, the verdicts table and a row per response.

An *entry* is all about one response that cost anything, as plain data (`factaudit.engines.factscore.engine`):
``abstained``,
``sentences`` (each a text, a status and its facts), ``page``, ``passages`` and per fact the numbers of its passages
(``docs``), ``page_status`` and ``reason`` where there is no page, ``verdicts`` per verifier, ``calls``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.engines.factscore.responses import LABELS, Response
from factaudit.engines.factscore.score import response_score
from factaudit.evaluators.judging import NamedEvaluator, judge
from factaudit.tables import merge_verdicts, validate_claims, validate_verdicts

Row = dict[str, Any]


def facts_of(entry: Row) -> list[Row]:
    """The facts of all sentences, in order."""
    return [fact for sentence in entry["sentences"] for fact in sentence["facts"]]


def claims_table(responses: Sequence[Response], entries: Sequence[Row], dataset: str, irrelevant: str) -> pd.DataFrame:
    """A row per fact, with its passages as the document and its sentence; each fact is given its ``claim_id``."""
    rows = []
    for response, entry in zip(responses, entries, strict=True):
        position = 0
        docs = entry.get("docs")
        for sentence in entry["sentences"]:
            for fact in sentence["facts"]:
                fact["claim_id"] = f"{response.response_id}.{position}"
                rows.append(
                    {
                        "claim_id": fact["claim_id"],
                        "dataset": dataset,
                        "system": response.system,
                        "response_id": response.response_id,
                        "doc_id": entry.get("page"),
                        "topic": response.topic,
                        "claim": fact["text"],
                        "doc": None if docs is None else "\n\n".join(entry["passages"][i] for i in docs[position]),
                        "label": _label(fact["label"], irrelevant),
                        "sentence": sentence["text"],
                    }
                )
                position += 1
    return validate_claims(pd.DataFrame(rows)) if rows else no_claims()


def own_verdicts(claims: pd.DataFrame, entries: Sequence[Row], verifier: str, name: str) -> pd.DataFrame:
    """The verdicts that the entries hold of one verifier, under the name that the table calls it."""
    given = [one for entry in entries for one in entry["verdicts"].get(verifier, [])]
    return validate_verdicts(
        pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": name, **_columns(given)}), source=name
    )


def evaluator_verdicts(
    claims: pd.DataFrame,
    entries: Sequence[Row],
    named: NamedEvaluator,
    journal: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """An evaluator's verdicts on the claims. A fact without a page is unscored, for the reason that it has none."""
    ids = claims["claim_id"]
    readable = claims["doc"].notna()
    reasons = [(entry.get("page_status"), entry.get("reason")) for entry in entries for _ in facts_of(entry)]
    missing = [
        {"prediction": None, "score": None, "status": status, "raw": reason}
        for (status, reason), has_doc in zip(reasons, readable, strict=True)
        if not has_doc
    ]
    parts = []
    if readable.any():
        parts.append(judge(claims[readable], [named], journal=journal, progress=progress))
    if missing:
        table = pd.DataFrame({"claim_id": ids[~readable], "evaluator": named.name, **_columns(missing)})
        parts.append(validate_verdicts(table, source=named.name))
    both = merge_verdicts(parts) if len(parts) > 1 else parts[0]
    return both.set_index("claim_id").loc[ids].reset_index()


def response_rows(
    responses: Sequence[Response], entries: Sequence[Row], verdicts: pd.DataFrame, names: Sequence[str], gamma: float
) -> list[Row]:
    """A row per response: its figures by the first evaluator, those of all, its sentences with facts and verdicts."""
    told: dict[str, dict[str, Row]] = {name: {} for name in names}
    for name, claim_id, prediction, score, status in zip(
        verdicts["evaluator"],
        verdicts["claim_id"],
        verdicts["prediction"].astype(object),
        verdicts["score"],
        verdicts["status"],
        strict=True,
    ):
        told[name][claim_id] = {
            "prediction": None if pd.isna(prediction) else int(prediction),
            "score": None if pd.isna(score) else float(score),
            "status": status,
        }
    rows = []
    for response, entry in zip(responses, entries, strict=True):
        figures = {}
        for name in names:
            given = [told[name][fact["claim_id"]] for fact in facts_of(entry)]
            figures[name] = response_score([one["prediction"] for one in given], gamma)
            figures[name]["n_unparsed"] = sum(one["status"] == "unparsed" for one in given)
            if entry["abstained"]:
                figures[name]["reason"] = "abstained"
            elif figures[name]["n_unscored"] and entry.get("reason"):
                figures[name]["reason"] = entry["reason"]
        statuses = [one["status"] for one in entry["sentences"]]
        row: Row = {
            "response_id": response.response_id,
            "system": response.system,
            "topic": response.topic,
            "output": response.output,
            "abstained": entry["abstained"],
            "page": entry.get("page"),
            "matched": entry.get("matched"),
            **figures[names[0]],
            "n_failed_sentences": sum(status not in ("ok", "given", "boilerplate") for status in statuses),
            "n_truncated_sentences": sum(one.get("truncated", False) for one in entry["sentences"]),
            "n_duplicates": entry["n_duplicates"],
            "n_cut": entry["n_cut"],
            "calls": entry["calls"],
        }
        if response.human is not None:
            row["human"] = dict(zip(("n_supported", "n_not_supported", "n_irrelevant"), response.human, strict=True))
        row["evaluators"] = figures
        row["sentences"] = [
            one
            | {
                "facts": [
                    fact | {"verdicts": {name: told[name][fact["claim_id"]] for name in names}} for fact in one["facts"]
                ]
            }
            for one in entry["sentences"]
        ]
        rows.append(row)
    return rows


def no_claims() -> pd.DataFrame:
    """A claims table of no rows, for responses that all abstained."""
    row = {"claim_id": "-", "dataset": "-", "claim": "-", "sentence": "-"}
    return validate_claims(pd.DataFrame([row])).iloc[:0]


def no_verdicts() -> pd.DataFrame:
    """A verdicts table of no rows."""
    return validate_verdicts(pd.DataFrame([{"claim_id": "-", "evaluator": "-", "prediction": 1}])).iloc[:0]


def _label(label: str | None, irrelevant: str) -> int | None:
    if label is None:
        return None
    return 0 if label == "IR" and irrelevant == "unsupported" else LABELS[label]


def _columns(given: Sequence[Mapping[str, Any]]) -> Row:
    return {
        "prediction": pd.array([one["prediction"] for one in given], dtype="Int8"),
        "score": [one["score"] for one in given],
        "status": [one["status"] for one in given],
        "raw": [one["raw"] for one in given],
    }
