"""Do the cited documents support what is said? Citation recall and precision (MF App. D; Gao et al.
2023, §3).

A sentence is recalled if the documents that it cites support it together. A citation is precise if
its sentence is recalled and the citation is sufficient or needed: its document alone supports the
sentence, or the other documents without it do not.

Claims have a row for each sentence (``fact_id``) and set of documents. ``cited`` names the
documents by number ("1,3"; null if the sentence cites nothing that can be judged). ``malformed``
(optional) holds what was meant as a citation and names no document. The row with the most documents
is the sentence's own; precision needs the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import ALL_TOGETHER, MISSING, Judgements
from factaudit.arrays.response_means import (
    TOO_FEW_RESPONSES,
    average_with_bounds,
    split_by_system,
)
from factaudit.audit.core.audit_declaration import (
    RESPONSE_MEAN,
    Audit,
    Column,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.result_rows import Row, explain_row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

#: The verdicts on a sentence for sets of the documents that it cites (by number), and its malformed
#: citations. A verdict is 1, 0, or None if the judgement failed; a set that is missing was not
#: judged.
Sentence = tuple[dict[tuple[int, ...], int | None], int]


def compute_citation_audit(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """Citation recall and precision of each system: means over responses, in a row per dataset,
    evaluator and system.

    ``recall`` of a response = recalled sentences / sentences; ``precision`` = precise citations /
    citations (0 if there are none, as in ALCE). A judgement without a verdict counts as not
    supported, so that no failure raises recall; ``_min`` and ``_max`` allow either. Precision is
    null if single documents were not judged (as in published judgements). A response without a
    sentence (n_empty) is left out, as in ALCE.
    """
    rows: list[Row] = []
    if "cited" not in judgements.claims:
        return rows
    silent = judgements.empty_responses
    for at, evaluator in enumerate(judgements.evaluators):
        scored = _score_responses(judgements, at)
        for key, inside in split_by_system(pd.DataFrame(scored, columns=["dataset", "system"])):
            if key["system"] == ALL_TOGETHER:
                continue
            own = [scored[place] for place in np.flatnonzero(inside)]
            is_same = silent["system"].fillna("") == (key["system"] or "")
            row: Row = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            row["n_responses"] = len(own)
            row["n_empty"] = int(((silent["dataset"] == key["dataset"]) & is_same).sum())
            row |= {name: sum(one[name] for one in own) for name in own[0] if name.startswith("n_")}
            for name in ("recall", "precision"):
                row |= average_with_bounds(name, own, intervals)
            why = ""
            if any(one["precision"] is None for one in own):
                # A mean of the other responses would be about those that cite little.
                row |= dict.fromkeys(("precision", "precision_low", "precision_high"))
                why = "single documents were not judged in some responses: no precision"
            rows.append(explain_row(row, ("recall", "precision"), [why], TOO_FEW_RESPONSES))
    return rows


def _score_responses(judgements: Judgements, evaluator: int) -> list[Row]:
    """The figures of each response, in the order of their names."""
    columns = ["dataset", "system", "response_id", "fact_id", "cited", "malformed"]
    table = judgements.claims.reindex(columns=columns).astype(object)
    # Other data sets in the table have no sentences with citations.
    cites = set(table["dataset"][table["cited"].notna()]) or set(table["dataset"])
    cites &= set(table["dataset"][judgements.status[evaluator] >= 0])
    is_sentence = table["response_id"].notna() & table["fact_id"].notna()
    table = table.where(table.notna(), None).assign(prediction=judgements.prediction[evaluator])
    table = table[is_sentence & table["dataset"].isin(cites)]
    responses: dict[Any, dict[str, Sentence]] = {}
    for *response, fact, cited, malformed, prediction in table.sort_values(columns[:3]).itertuples(
        index=False
    ):
        n_malformed = len(malformed.split("; ")) if malformed else 0
        sentences = responses.setdefault(tuple(response), {})
        verdicts, _ = sentences.setdefault(fact, ({}, n_malformed))
        if cited is not None:
            documents = tuple(map(int, str(cited).split(",")))
            verdicts[documents] = None if prediction == MISSING else int(prediction)
    return [
        {"dataset": dataset, "system": system} | score_citations(list(sentences.values()))
        for (dataset, system, _), sentences in responses.items()
    ]


def score_citations(sentences: Sequence[Sentence]) -> Row:
    """The figures of one response.

    A sentence or a citation is recalled or precise (1), is not (0), or is open (None) if this
    depends on missing verdicts.
    """
    recalled: list[int | None] = []
    precise: list[int | None] = []
    n_unscored, was_asked = 0, True
    for verdicts, _ in sentences:
        whole = max(verdicts, key=len, default=())
        found = verdicts.get(whole, 0)
        recalled.append(found)
        n_unscored += found is None
        for document in whole:
            alone, rest = (document,), tuple(other for other in whole if other != document)
            if not found or not rest:
                precise.append(found)
                continue
            sufficient, others = verdicts.get(alone), verdicts.get(rest)
            n_unscored += (sufficient is None) + (sufficient != 1 and others is None)
            if sufficient == 1 or others == 0:
                precise.append(1)
            elif None in (sufficient, others):
                precise.append(None)
                was_asked &= alone in verdicts and rest in verdicts
            else:
                precise.append(0)
    row: Row = {
        "n_sentences": len(sentences),
        "n_uncited": sum(not verdicts and not malformed for verdicts, malformed in sentences),
        "n_citations": len(precise),
        "n_malformed": sum(malformed for _, malformed in sentences),
        "n_unscored": n_unscored,
    }
    for key, of in (("recall", recalled), ("precision", precise)):
        n = max(len(of), 1)
        row[key] = row[f"{key}_min"] = of.count(1) / n
        row[f"{key}_max"] = (of.count(1) + of.count(None)) / n
    return row if was_asked else row | {"precision": None}


def _has_cited_sentences(judgements: Judgements) -> bool:
    return "cited" in judgements.claims and bool(judgements.claims["fact_id"].notna().any())


_SENTENCES_DESCRIPTION = "sentences, sentences without a citation, and citations"
_MEANS_DESCRIPTION = "means over responses"
AUDIT = Audit(
    name="citations",
    title="Citation recall and precision",
    question="Do the cited documents support the sentences that cite them?",
    source="MF App. D; ALCE: Gao et al. 2023, §3",
    text=(
        "As in ALCE. A citation that names no document (`[7]` of five, `[0]`, `[Document 1]`)"
        " counts as malformed."
    ),
    formula=(
        "Recall = sentences that their cited documents support together / sentences. Precision ="
        " citations that are necessary or sufficient / citations. Both are averaged over responses."
    ),
    remedy=(
        "If many citations are malformed, first correct the form of the output, since they count as"
        " missing. Then read the sentences without support."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator", "system"),
        "n_responses": Column(
            "responses",
            "count",
            "responses with at least one sentence, and empty ones, which are left out",
        ),
        "n_empty": Column(
            "empty",
            "count",
            "responses with at least one sentence, and empty ones, which are left out",
            shown="any",
        ),
        "n_sentences": Column("sentences", "count", _SENTENCES_DESCRIPTION),
        "n_uncited": Column("uncited", "count", _SENTENCES_DESCRIPTION),
        "n_citations": Column("citations", "count", _SENTENCES_DESCRIPTION),
        "n_malformed": Column("malformed", "count", "citations that name no document", shown="any"),
        "n_unscored": Column("unscored", "count", "judgements without a verdict", shown="any"),
        "recall": share_column("recall", _MEANS_DESCRIPTION, RESPONSE_MEAN),
        "precision": share_column("precision", _MEANS_DESCRIPTION, RESPONSE_MEAN),
        **pick_shared_columns("reason"),
    },
    compute=compute_citation_audit,
    applies=_has_cited_sentences,
)
