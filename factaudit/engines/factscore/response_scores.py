"""What is the FActScore of each response and over all? As in the audit `factscore`, with what only an engine knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import collect_response_facts, score_response_facts
from factaudit.audit.core.result_rows import Row
from factaudit.audit.factscore import compute_factscore_audit
from factaudit.engines.records import ResponseRecord, SentenceDecomposition, VerifiedResponseRecords
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

#: What is added up over responses.
SUMMED_COUNTS = ("n_left_out_sentences", "n_truncated_sentences", "n_duplicates", "n_cut", "calls")


def build_factscore_response_rows(
    verified: VerifiedResponseRecords, verifier_names: Sequence[str], gamma: float
) -> list[Row]:
    """A row per response, in order; its own figures are those of the first verifier."""
    judged = Judgements.join(verified.claims, verified.verdicts)
    figures = {
        name: dict(_compute_factscore_response_figures(judged, name, gamma))
        for name in verifier_names
        if name in judged.evaluators
    }
    verdicts = {name: _index_factscore_verdicts(verified.verdicts, name) for name in verifier_names}
    rows = []
    for response, record in zip(verified.responses, verified.records, strict=True):
        ids = [f"{response.response_id}.{number}" for number in range(len(record.decomposed.facts))]
        own = {
            name: _make_factscore_figures_row(figures.get(name, {}).get(response.response_id, {}), record)
            for name in verifier_names
        }
        page = record.candidates[0]
        row: Row = {
            "response_id": response.response_id,
            "system": response.system,
            "topic": response.topic,
            "output": response.output,
            "abstained": record.decomposed.abstained,
            "page": page.title,
            "matched": page.title_match,
            **own[verifier_names[0]],
            "n_failed_sentences": sum(one.is_failed for one in record.decomposed.sentences),
            "n_left_out_sentences": sum(one.is_left_out for one in record.decomposed.sentences),
            "n_truncated_sentences": sum(one.truncated for one in record.decomposed.sentences),
            "n_duplicates": record.decomposed.n_duplicates,
            "n_cut": record.decomposed.n_cut,
            "calls": record.calls,
        }
        if response.human is not None:
            row["human"] = dict(zip(("n_supported", "n_not_supported", "n_irrelevant"), response.human, strict=True))
        row["evaluators"] = own
        row["sentences"] = _make_factscore_sentence_rows(record, ids, verdicts)
        rows.append(row)
    return rows


def summarise_factscore(
    verified: VerifiedResponseRecords,
    response_rows: Sequence[Row],
    verifier_names: Sequence[str],
    gamma: float,
    intervals: ClusterBootstrap | None,
) -> Row:
    """The audit's row of the first verifier, with ``systems``; of each verifier in ``evaluators`` if several."""
    audited = compute_factscore_audit(
        Judgements.join(verified.claims, verified.verdicts), gamma=gamma, intervals=intervals
    )
    every = []
    for name in verifier_names:
        mine = [_add_summed_counts(row, response_rows) for row in audited if row["evaluator"] == name]
        if not mine:  # without any claim there is no verdict, and no evaluator
            mine = [_add_summed_counts(_make_unscored_factscore_row(response_rows), response_rows)]
        systems = [row for row in mine if row["system"] != ALL_TOGETHER]
        every.append({**mine[0], "evaluator": name, "systems": systems})
    return every[0] | ({"evaluators": every} if len(every) > 1 else {})


def _compute_factscore_response_figures(
    judged: Judgements, verifier_name: str, gamma: float
) -> Iterator[tuple[str, Row]]:
    facts = collect_response_facts(judged)
    scores = score_response_facts(facts, judged, judged.evaluators.index(verifier_name), gamma)
    counts = {key: getattr(scores, key) for key in ("n_facts", "n_supported", "n_unscored", "n_unparsed")}
    for place, response_id in enumerate(facts.responses["response_id"]):
        shares = {key: float(values[place]) for key, values in scores.figures.items()}
        yield (
            response_id,
            {
                **{key: None if np.isnan(value) else value for key, value in shares.items()},
                **{key: int(values[place]) for key, values in counts.items()},
            },
        )


def _make_factscore_figures_row(figures: Row, record: ResponseRecord) -> Row:
    """A response's figures with the reason where one is missing; the score of a response without facts is none."""
    keys = ("score", "score_min", "score_max", "init_score", "init_score_min", "init_score_max")
    counts = ("n_facts", "n_supported", "n_unscored", "n_unparsed")
    row = {key: figures.get(key) for key in keys} | {key: figures.get(key, 0) for key in counts}
    if not row["n_facts"]:
        return row | {"reason": "abstained" if record.decomposed.abstained else "no fact"} | dict.fromkeys(keys)
    missing = next((one.reason for one in record.candidates if one.reason), None)
    return row | {"reason": missing or "facts have no verdict" if row["n_unscored"] else None}


def _index_factscore_verdicts(verdicts: pd.DataFrame, verifier_name: str) -> dict[str, Row]:
    own = verdicts[verdicts["evaluator"] == verifier_name]
    columns = (own["claim_id"], own["prediction"].astype(object), own["score"], own["status"])
    return {
        claim_id: {
            "prediction": None if pd.isna(prediction) else int(prediction),
            "score": None if pd.isna(score) else float(score),
            "status": status,
        }
        for claim_id, prediction, score, status in zip(*columns, strict=True)
    }


def _make_factscore_sentence_rows(
    record: ResponseRecord, claim_ids: Sequence[str], verdicts: dict[str, dict[str, Row]]
) -> list[Row]:
    facts: list[list[Row]] = [[] for _ in record.decomposed.sentences]
    for fact, claim_id in zip(record.decomposed.facts, claim_ids, strict=True):
        told = {name: given[claim_id] for name, given in verdicts.items()}
        row = {"text": fact.text, "label": fact.label, "claim_id": claim_id, "verdicts": told}
        facts[fact.sentence or 0].append(row)
    return [
        _make_factscore_sentence_row(one) | {"facts": own}
        for one, own in zip(record.decomposed.sentences, facts, strict=True)
    ]


def _make_factscore_sentence_row(sentence: SentenceDecomposition) -> Row:
    row: Row = {"text": sentence.text, "status": sentence.status}
    if sentence.reply is not None:
        row["reply"] = sentence.reply
    row |= {"truncated": True} if sentence.truncated else {}
    return row | ({"error": sentence.error} if sentence.error else {})


def _add_summed_counts(row: Row, response_rows: Sequence[Row]) -> Row:
    members = [one for one in response_rows if row["system"] in (ALL_TOGETHER, one["system"])]
    return row | {key: sum(one[key] for one in members) for key in SUMMED_COUNTS}


def _make_unscored_factscore_row(response_rows: Sequence[Row]) -> Row:
    """The audit's row where nothing was said: it has no evaluator to compute it for."""
    figures = dict.fromkeys(f"{key}{end}" for key in ("score", "init_score", "f1") for end in ("", "_min", "_max"))
    figures["k"] = None
    counts = dict.fromkeys(
        (
            "n_scored",
            "n_unscored_responses",
            "n_facts",
            "n_supported",
            "n_unscored",
            "n_unparsed",
            "n_failed_sentences",
        ),
        0,
    )
    abstained = sum(row["abstained"] for row in response_rows)
    return {
        "system": ALL_TOGETHER,
        "n_responses": len(response_rows),
        "n_abstained": abstained,
        "n_without_facts": len(response_rows) - abstained,
        **counts,
        "respond_ratio": 0.0,
        **figures,
        "num_facts_per_response": None,
        "reason": "no response has a scored fact",
    }
