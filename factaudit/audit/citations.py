"""Do the cited documents support what is said? Citation recall and precision (MF App. D; Gao et al.
2023, §3)

A sentence is recalled where the documents that it cites together support it. A citation is precise
where its sentence is recalled and the citation is needed or sufficient: its document alone supports
the sentence, or the others without it don't.

Claims have a row per sentence (``fact_id``) and set of documents: ``cited`` names the documents by
number ("1,3"; null: the sentence cites nothing that can be judged), ``malformed`` (optional) what
in it was meant as a citation and names no document. The row with most documents is the sentence's
own; the others are what precision asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_means import average_bounds, average_responses
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns, share_column
from factaudit.audit.core.interval_methods import RESPONSE_MEAN
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import explain_row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

CitedDocuments = tuple[int, ...]


def compute_citation_audit(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """Citation recall and precision of each system: means over responses, a row per dataset,
    evaluator and system.

    ``recall`` of a response = recalled sentences / sentences; ``precision`` = precise citations /
    citations (0 where there are none, as ALCE has it). A judgement without a verdict counts as not
    supported, so that no failure raises recall; ``_min`` and ``_max`` let it be either. Precision
    is null where single documents were not asked about (as in published judgements). A response
    without a sentence (n_empty) is left out, as in ALCE; ``recall_all`` counts it as 0.
    """
    rows: list[Row] = []
    if "cited" not in judgements.claims:
        return rows
    silent = judgements.empty_responses
    for at, evaluator in enumerate(judgements.evaluators):
        systems: dict[tuple[Any, Any], list[Row]] = {}
        for dataset, system, sentences in _collect_sentences(judgements, at):
            systems.setdefault((dataset, system), []).append(score_citations(sentences))
        for (dataset, system), own in systems.items():
            same = silent["system"].isna() if system is None else silent["system"] == system
            n_empty = int(((silent["dataset"] == dataset) & same).sum())
            row: Row = {
                "dataset": dataset,
                "evaluator": evaluator,
                "system": system,
                "n_responses": len(own),
            }
            row["n_empty"] = n_empty
            row |= {name: sum(one[name] for one in own) for name in own[0] if name.startswith("n_")}
            for name in ("recall", "precision"):
                row |= average_responses(
                    name, [one[name] for one in own], intervals
                ) | average_bounds(name, own)
            n_lacking = sum(one["precision"] is None for one in own)
            if n_lacking:  # a mean of the others would be of those that cite little
                row |= dict.fromkeys(("precision", "precision_low", "precision_high"))
            row["recall_all"] = row["recall"] * len(own) / (len(own) + n_empty)
            why = (
                "single documents were not judged in some responses: no precision"
                if n_lacking
                else ""
            )
            rows.append(
                explain_row(
                    row, ("recall", "precision"), [why], "too few responses, or all have one value"
                )
            )
    return rows


def score_citations(sentences: Sequence[tuple[Mapping[CitedDocuments, int | None], int]]) -> Row:
    """The figures of one response: of each sentence its verdicts by cited documents, and its
    malformed citations.

    A verdict is 1, 0, or None where the judgement failed; what is not among them was not asked for.
    A sentence, or a citation, is recalled or precise (1), or not (0), or open (None), where that
    depends on verdicts that are missing.
    """
    recalled: list[int | None] = []
    precise: list[int | None] = []
    n_unscored, was_asked = 0, True
    for verdicts, _ in sentences:
        whole = max(verdicts, key=len, default=())
        found = verdicts.get(whole, 0)
        recalled.append(found)
        n_unscored += found is None
        if not found or len(whole) == 1:
            precise += [found] * len(whole)
            continue
        for document in whole:
            alone, rest = (document,), tuple(other for other in whole if other != document)
            sufficient, others = verdicts.get(alone), verdicts.get(rest)
            n_unscored += (sufficient is None) + (sufficient != 1 and others is None)
            if sufficient == 1 or others == 0:
                precise.append(1)
            elif sufficient is None or others is None:
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


def _collect_sentences(
    judgements: Judgements, evaluator: int
) -> Iterator[tuple[Any, Any, list[tuple[dict[CitedDocuments, int | None], int]]]]:
    """The dataset and the system of each response, and its sentences, as `score_citations` takes
    them."""
    columns = ["dataset", "system", "response_id", "fact_id", "cited", "malformed"]
    table = judgements.claims.reindex(columns=columns).astype(object)
    table = table.where(table.notna(), None).assign(prediction=judgements.prediction[evaluator])
    # Other data sets in the table hold no sentences with citations.
    cites = set(table["dataset"][table["cited"].notna()]) or set(table["dataset"])
    cites &= set(table["dataset"][judgements.status[evaluator] >= 0])
    table = table[
        table["response_id"].notna() & table["fact_id"].notna() & table["dataset"].isin(cites)
    ]
    for _, response in table.groupby(columns[:3], dropna=False):
        sentences: dict[str, tuple[dict[CitedDocuments, int | None], int]] = {}
        for fact, cited, malformed, prediction in response[[*columns[3:], "prediction"]].itertuples(
            index=False
        ):
            n_malformed = len(malformed.split("; ")) if malformed else 0
            verdicts, _ = sentences.setdefault(fact, ({}, n_malformed))
            if cited is not None:
                documents = tuple(map(int, str(cited).split(",")))
                verdicts[documents] = None if prediction == MISSING else int(prediction)
        yield *response[["dataset", "system"]].iloc[0], list(sentences.values())


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
        "recall_all": Column(
            "recall, empty as 0", "percent", "recall if empty responses count as 0", shown=False
        ),
        **pick_shared_columns("reason"),
    },
    compute=compute_citation_audit,
    applies=_has_cited_sentences,
)
