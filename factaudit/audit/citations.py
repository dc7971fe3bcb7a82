"""Do the cited documents support what is said? Citation recall and precision (MF App. D; Gao et al. 2023, §3)

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

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_means import explain_missing_mean_intervals, mean_of_defined, response_mean_with_interval
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.finding_parts import make_row_finding
from factaudit.audit.core.interval_methods import RESPONSE_MEAN
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.text.display_text import join_reasons

CitedDocuments = tuple[int, ...]
#: From this share of empty outputs on, recall without them says too little of a system.
MANY_EMPTY_SHARE = 0.01


def compute_citation_audit(judgements: Judgements, *, intervals: ClusterBootstrap | None = None) -> list[Row]:
    """Citation recall and precision of each system: means over responses, a row per dataset, evaluator and system.

    ``recall`` of a response = recalled sentences / sentences; ``precision`` = precise citations / citations (0 where
    there are none, as ALCE has it). A judgement without a verdict counts as not supported, so that no failure raises
    recall; ``_min`` and ``_max`` let it be either. Precision is null where single documents were not asked about (as in
    published judgements). A response without a sentence (n_empty) is left out, as in ALCE; ``recall_all`` counts it as
    0.
    """
    rows: list[Row] = []
    if "cited" not in judgements.claims:
        return rows
    silent = judgements.empty_responses
    for at, evaluator in enumerate(judgements.evaluators):
        systems: dict[tuple[Any, Any], list[Row]] = {}
        for key, sentences in _collect_judged_citations(judgements, at):
            systems.setdefault(key[:2], []).append(compute_response_citation_scores(sentences))
        for (dataset, system), own in sorted(systems.items(), key=lambda item: [str(part) for part in item[0]]):
            empty = 0
            if len(silent):
                same = silent["system"].isna() if system is None else silent["system"] == system
                empty = int(((silent["dataset"] == dataset) & same).sum())
            rows.append(
                {"dataset": dataset, "evaluator": evaluator, "system": system}
                | _summarise_citation_scores(own, empty, intervals)
            )
    return rows


def compute_response_citation_scores(sentences: Sequence[tuple[Mapping[CitedDocuments, int | None], int]]) -> Row:
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


def _collect_judged_citations(
    judgements: Judgements, evaluator_position: int
) -> Iterator[tuple[tuple[Any, Any, Any], list[tuple[dict[CitedDocuments, int | None], int]]]]:
    """(dataset, system, response_id) and its sentences, as `compute_response_citation_scores` takes them."""
    claims = judgements.claims
    cites = claims["cited"].notna().to_numpy()
    # Other data sets in the table hold no sentences with citations.
    about = set(claims["dataset"][cites] if cites.any() else claims["dataset"])
    about &= set(claims["dataset"][judgements.status[evaluator_position] >= 0])
    own = claims["response_id"].notna() & claims["fact_id"].notna() & claims["dataset"].isin(about)
    inside = np.flatnonzero(own.to_numpy())
    names = ["dataset", "system", "response_id", "fact_id", "cited"]
    malformed = claims["malformed"].to_numpy(dtype=object) if "malformed" in claims else np.full(len(claims), None)
    table = [claims[name].astype(object).where(claims[name].notna(), None).to_numpy()[inside] for name in names]
    found: dict[tuple[Any, Any, Any], dict[str, tuple[dict[CitedDocuments, int | None], int]]] = {}
    for row, dataset, system, response, fact, cited in zip(inside.tolist(), *table, strict=True):
        marks = malformed[row]
        lost = len(marks.split("; ")) if isinstance(marks, str) and marks else 0
        sentence = found.setdefault((dataset, system, response), {}).setdefault(fact, ({}, lost))
        if cited is not None:
            prediction = int(judgements.prediction[evaluator_position, row])
            documents = tuple(int(number) for number in str(cited).split(","))
            sentence[0][documents] = None if prediction == MISSING else prediction
    for key in sorted(found, key=lambda one: [str(part) for part in one]):
        yield key, list(found[key].values())


def _summarise_citation_scores(response_rows: Sequence[Row], n_empty: int, intervals: ClusterBootstrap | None) -> Row:
    told: Row = {"n_responses": len(response_rows), "n_empty": n_empty}
    for key in ("n_sentences", "n_uncited", "n_citations", "n_malformed", "n_unscored"):
        told[key] = sum(row[key] for row in response_rows)
    for key in ("recall", "precision"):
        told |= response_mean_with_interval(key, [row[key] for row in response_rows], intervals)
        for end in ("min", "max"):
            told[f"{key}_{end}"] = mean_of_defined(row[f"{key}_{end}"] for row in response_rows)
    lacking = sum(row["precision"] is None for row in response_rows)
    if lacking:  # a mean of the others would be of those that cite little
        told |= dict.fromkeys(("precision", "precision_low", "precision_high"))
    told["recall_all"] = (
        None if told["recall"] is None else told["recall"] * len(response_rows) / (len(response_rows) + n_empty)
    )
    why = [f"single documents were not judged in {lacking} responses: no precision" if lacking else ""]
    told["reason"] = join_reasons([*why, explain_missing_mean_intervals(told, ("recall", "precision"), intervals)])
    return told


def _find_citation_recall_without_empty_responses(audited_run: AuditedRun) -> Iterator[Finding]:
    """Recall that leaves out empty outputs."""
    for row in audited_run.rows("citations"):
        total = row["n_responses"] + row.get("n_empty", 0)
        if row["recall"] is None or row.get("n_empty", 0) < max(1, MANY_EMPTY_SHARE * total):
            continue
        said = make_statement(
            "The citation recall of {name} is {row.recall:percent} without {row.n_empty:number} of {row.n_all:number} "
            "responses that are empty, as ALCE computes it. With them it is {row.recall_all:percent}.",
            name=row["system"] or "the system",
            row=row | {"n_all": total},
        )
        keys = ("system", "recall", "recall_all", "n_responses", "n_empty")
        yield make_row_finding("warn", row, said, *keys)


def _has_cited_sentences(judgements: Judgements) -> bool:
    return "cited" in judgements.claims and bool(judgements.claims["fact_id"].notna().any())


_SENTENCES_DESCRIPTION = "sentences, sentences without a citation, and citations"
_MEANS_DESCRIPTION = "means over responses"
AUDIT = Audit(
    name="citations",
    after="annotator_agreement",
    title="Citation recall and precision",
    question="Do the cited documents support the sentences that cite them?",
    source="MF App. D; ALCE: Gao et al. 2023, §3",
    text="As in ALCE. A citation that names no document (`[7]` of five, `[0]`, `[Document 1]`) counts as malformed.",
    formula=(
        "Recall = sentences that their cited documents support together / sentences. Precision = citations that"
        " are necessary or sufficient / citations. Both are averaged over responses."
    ),
    remedy=(
        "If many citations are malformed, first correct the form of the output, since they count as missing. "
        "Then read the sentences without support."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator", "system"),
        "n_responses": Column(
            "responses", "count", ("responses with at least one sentence, and empty ones, which are left out")
        ),
        "n_empty": Column(
            "empty", "count", "responses with at least one sentence, and empty ones, which are left out", shown="any"
        ),
        "n_sentences": Column("sentences", "count", _SENTENCES_DESCRIPTION),
        "n_uncited": Column("uncited", "count", _SENTENCES_DESCRIPTION),
        "n_citations": Column("citations", "count", _SENTENCES_DESCRIPTION),
        "n_malformed": Column("malformed", "count", "citations that name no document", shown="any"),
        "n_unscored": Column("unscored", "count", "judgements without a verdict", shown="any"),
        "recall": Column("recall", "percent", _MEANS_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN),
        "precision": Column("precision", "percent", _MEANS_DESCRIPTION, bounds=True, interval=RESPONSE_MEAN),
        "recall_all": Column("recall, empty as 0", "percent", "recall if empty responses count as 0", shown=False),
        **pick_shared_columns("reason"),
    },
    compute=compute_citation_audit,
    applies=_has_cited_sentences,
    checks=(
        Check(
            "empty_outputs",
            "Citation recall without empty responses",
            f"at least {100 * MANY_EMPTY_SHARE:.0f} % of the responses are empty, and left out of citation recall",
            _find_citation_recall_without_empty_responses,
        ),
    ),
)
