"""Citation recall and precision (MF App. D, after ALCE: Gao et al. 2023, §3).

A sentence is recalled where the documents that it cites together support it. A citation is precise where its sentence
is recalled and the citation is needed or sufficient: its document alone supports the sentence, or the others without it
don't.

Claims have a row per sentence (``fact_id``) and set of documents: ``cited`` names the documents by number ("1,3"; null:
the sentence cites nothing that can be judged), ``malformed`` (optional) what in it was meant as a citation and names no
document. The row with most documents is the sentence's own; the others are what precision asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import MISSING, Judged
from factaudit.audit.core.means import averaged, mean
from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import percent

Cited = tuple[int, ...]
#: From this share of empty outputs on, recall without them says too little of a system.
MANY_EMPTY = 0.01


def citations(judged: Judged, *, intervals: Intervals | None = None) -> list[Row]:
    """Citation recall and precision of each system: means over responses, a row per dataset, evaluator and system.

    ``recall`` of a response = recalled sentences / sentences; ``precision`` = precise citations / citations (0 where
    there are none, as ALCE has it). A judgement without a verdict counts as not supported, so that no failure raises
    recall; ``_min`` and ``_max`` let it be either. Precision is null where single documents were not asked about (as in
    published judgements). A response without a sentence (n_empty) is left out, as in ALCE; ``recall_all`` counts it as
    0.
    """
    rows: list[Row] = []
    if "cited" not in judged.claims:
        return rows
    silent = judged.silent
    for at, evaluator in enumerate(judged.evaluators):
        systems: dict[tuple[Any, Any], list[Row]] = {}
        for key, sentences in _responses(judged, at):
            systems.setdefault(key[:2], []).append(response_row(sentences))
        for (dataset, system), own in sorted(systems.items(), key=lambda item: [str(part) for part in item[0]]):
            empty = 0
            if len(silent):
                same = silent["system"].isna() if system is None else silent["system"] == system
                empty = int(((silent["dataset"] == dataset) & same).sum())
            rows.append(
                {"dataset": dataset, "evaluator": evaluator, "system": system} | _summary(own, empty, intervals)
            )
    return rows


def response_row(sentences: Sequence[tuple[Mapping[Cited, int | None], int]]) -> Row:
    """The figures of one response: of each sentence its verdicts by cited documents, and its malformed citations.

    A verdict is 1, 0, or None where the judgement failed; what is not among them was not asked for.
    """
    recalled = precise = n_citations = unscored = 0
    # Sentences and citations whose judgements are missing, so that they may count or not.
    open_sentences = open_citations = not_asked = 0
    for verdicts, _ in sentences:
        whole = max(verdicts, key=len, default=())
        n_citations += len(whole)
        found = verdicts.get(whole, 0)
        if found is None:
            unscored += 1
            open_sentences += 1
            open_citations += len(whole)
            continue
        recalled += found
        if found and len(whole) == 1:
            precise += 1
            continue
        for doc in whole if found else ():
            rest = tuple(other for other in whole if other != doc)
            alone, others = verdicts.get((doc,)), verdicts.get(rest)
            if alone == 1 or others == 0:
                precise += 1
            elif alone is None or others is None:
                open_citations += 1
                not_asked += (doc,) not in verdicts or rest not in verdicts
            unscored += alone is None
            unscored += alone != 1 and others is None
    n = len(sentences)
    row: Row = {
        "n_sentences": n,
        "n_uncited": sum(not verdicts and not malformed for verdicts, malformed in sentences),
        "n_citations": n_citations,
        "n_malformed": sum(malformed for _, malformed in sentences),
        "n_unscored": unscored,
    }
    for key, sure, maybe, of in (
        ("recall", recalled, open_sentences, n),
        ("precision", precise, open_citations, n_citations),
    ):
        row[key] = row[f"{key}_min"] = sure / of if of else 0.0
        row[f"{key}_max"] = (sure + maybe) / of if of else 0.0
    if not_asked:
        row["precision"] = None
    return row


def _responses(
    judged: Judged, evaluator: int
) -> Iterator[tuple[tuple[Any, Any, Any], list[tuple[dict[Cited, int | None], int]]]]:
    """(dataset, system, response_id) and its sentences, as `response_row` takes them."""
    claims = judged.claims
    cites = claims["cited"].notna().to_numpy()
    # Other data sets in the table hold no sentences with citations.
    about = set(claims["dataset"][cites] if cites.any() else claims["dataset"])
    about &= set(claims["dataset"][judged.status[evaluator] >= 0])
    own = claims["response_id"].notna() & claims["fact_id"].notna() & claims["dataset"].isin(about)
    inside = np.flatnonzero(own.to_numpy())
    names = ["dataset", "system", "response_id", "fact_id", "cited"]
    malformed = claims["malformed"].to_numpy(dtype=object) if "malformed" in claims else np.full(len(claims), None)
    table = [claims[name].astype(object).where(claims[name].notna(), None).to_numpy()[inside] for name in names]
    found: dict[tuple[Any, Any, Any], dict[str, tuple[dict[Cited, int | None], int]]] = {}
    for row, dataset, system, response, fact, cited in zip(inside.tolist(), *table, strict=True):
        marks = malformed[row]
        lost = len(marks.split("; ")) if isinstance(marks, str) and marks else 0
        sentence = found.setdefault((dataset, system, response), {}).setdefault(fact, ({}, lost))
        if cited is not None:
            prediction = int(judged.prediction[evaluator, row])
            documents = tuple(int(number) for number in str(cited).split(","))
            sentence[0][documents] = None if prediction == MISSING else prediction
    for key in sorted(found, key=lambda one: [str(part) for part in one]):
        yield key, list(found[key].values())


def _summary(rows: Sequence[Row], n_empty: int, intervals: Intervals | None) -> Row:
    told: Row = {"n_responses": len(rows), "n_empty": n_empty}
    for key in ("n_sentences", "n_uncited", "n_citations", "n_malformed", "n_unscored"):
        told[key] = sum(row[key] for row in rows)
    for key in ("recall", "precision"):
        told |= averaged(key, [row[key] for row in rows], intervals)
        for end in ("min", "max"):
            told[f"{key}_{end}"] = mean(row[f"{key}_{end}"] for row in rows)
    lacking = sum(row["precision"] is None for row in rows)
    if lacking:  # a mean of the others would be of those that cite little
        told |= dict.fromkeys(("precision", "precision_low", "precision_high"))
    told["recall_all"] = None if told["recall"] is None else told["recall"] * len(rows) / (len(rows) + n_empty)
    reason = f"single documents were not judged in {lacking} responses: no precision" if lacking else None
    told["reason"] = reason
    return told


def _empty(audited: Audited) -> Iterator[Finding]:
    """Recall that leaves out empty outputs."""
    for row in audited.rows("citations"):
        total = row["n_responses"] + row.get("n_empty", 0)
        if row["recall"] is None or row.get("n_empty", 0) < max(1, MANY_EMPTY * total):
            continue
        said = (
            f"The citation recall of {row['system'] or 'the system'} ({percent(row['recall'])}) leaves out "
            f"{row['n_empty']:,} of {total:,} responses that are empty, as ALCE does: with them it is "
            f"{percent(row['recall_all'])}."
        )
        evidence = {key: row[key] for key in ("system", "recall", "recall_all", "n_responses", "n_empty")}
        yield Finding("warn", row["evaluator"], row["dataset"], said, evidence)


def _applies(judged: Judged) -> bool:
    return "cited" in judged.claims and bool(judged.claims["fact_id"].notna().any())


_N = "sentences, those that cite nothing, and citations"
_RECALL = "means over responses"
AUDIT = Audit(
    name="citations",
    place=8,
    title="Citation recall and precision",
    question="Do the cited documents support the sentences that cite them?",
    source="MF App. D; ALCE: Gao et al. 2023, §3",
    text="After ALCE. What names no document (`[7]` of five, `[0]`, `[Document 1]`) is counted as malformed.",
    formula="Recall = sentences that their cited documents together support / sentences; precision = citations that "
    "are needed or sufficient / citations; means over responses.",
    columns={
        **shared("dataset", "evaluator"),
        "system": Column("system", "text", "the system that wrote the responses", key=True),
        "n_responses": Column("responses", "count", "responses with a sentence, and those without, which are left out"),
        "n_empty": Column(
            "empty", "count", "responses with a sentence, and those without, which are left out", shown="any"
        ),
        "n_sentences": Column("sentences", "count", _N),
        "n_uncited": Column("uncited", "count", _N),
        "n_citations": Column("citations", "count", _N),
        "n_malformed": Column("malformed", "count", "citations that name no document", shown="any"),
        "n_unscored": Column("unscored", "count", "judgements without a verdict", shown="any"),
        "recall": Column("recall", "percent", _RECALL, bounds=True, interval=True),
        "precision": Column("precision", "percent", _RECALL, bounds=True, interval=True),
        "recall_all": Column("recall, empty as 0", "percent", "recall where empty responses count as 0", shown=False),
        **shared("reason"),
    },
    compute=citations,
    applies=_applies,
    checks=(
        Check(
            "empty_outputs",
            "Recall without empty outputs",
            f"at least {100 * MANY_EMPTY:.0f} % of the responses are empty, and left out of citation recall",
            _empty,
        ),
    ),
)
