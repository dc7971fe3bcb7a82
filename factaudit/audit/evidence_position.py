"""Whether an evaluator is right less often where a long document has the evidence in its middle, or at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from factaudit.arrays.confusion_counts import N_CONFUSION_CELLS, encode_label_prediction_cells
from factaudit.arrays.covariate_rates import (
    RATE_CLASS_NAMES,
    RATE_LABELS,
    compute_covariate_rates_by_group,
    encode_task_groups,
)
from factaudit.arrays.judgements import Judgements
from factaudit.audit.chunking import CHUNKED_PREFIX
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.evaluator_comparison import drop_constant_evaluator_intervals
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    group_finding_rows_by_keys,
)
from factaudit.audit.core.interval_methods import WILSON
from factaudit.audit.core.plot_specs import DotPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import count_codes_by_cluster, estimate_clustered_proportions
from factaudit.stats.homogeneity_test import rao_scott_homogeneity_test
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.documents import iterate_document_blocks
from factaudit.text.chunks import count_words
from factaudit.text.display_text import join_reasons
from factaudit.text.rouge_overlap import locate_best_rouge_chunks

#: Thirds of a document, by where the middle of a chunk lies.
_PLACES = ("beginning", "middle", "end")
#: Words in a chunk; a document is long that has more than three times as many.
_CHUNK_WORDS = 100


@dataclass(frozen=True)
class _ClaimEvidencePositions:
    """place: int64 (n,), where the evidence of a labelled claim lies (of `_PLACES`), -1 where that is open; is_short:
    bool (n,), whether the claim's document is not long; both of labelled claims alone."""

    place: np.ndarray
    is_short: np.ndarray


def compute_evidence_position(
    judgements: Judgements, *, size: int = _CHUNK_WORDS, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """TPR and TNR by the third of a long document in which the evidence lies, within each task group.

    The evidence is where the chunk (of complete sentences, at most ``size`` words) lies that has the most of the
    claim's bigrams. Claims are left out whose documents have no more than three times ``size`` words, and those of
    which no chunk has a bigram, or chunks of different thirds have as many.

    A row per task group, evaluator and place (``beginning``, ``middle``, ``end``): task (the dataset's name where the
    claims have no task), n (scored labelled claims), n_unscored, n_short (labelled claims of the task group whose
    documents are not long), n_no_place (its other ones without a place), n_pos, n_neg, tpr, tnr, each rate with
    ``_min`` and ``_max`` and, with intervals, ``_low`` and ``_high``, and p_tpr, p_tnr: of the test that the rate is
    the same in all places (`factaudit.stats.homogeneity_test`). A task group without a long document has no rows.
    """
    if size < 1:
        raise UsageError(f"evidence_position: expected a size of at least 1 word, found {size}")
    task_codes, tasks = encode_task_groups(judgements)
    found, labelled = _locate_evidence(judgements, size), judgements.label >= 0
    short = np.bincount(task_codes[labelled & found.is_short], minlength=len(tasks))
    placeless = np.bincount(task_codes[labelled & ~found.is_short & (found.place < 0)], minlength=len(tasks))
    inside = labelled & (found.place >= 0)
    codes = np.where(inside, task_codes * len(_PLACES) + found.place, -1)
    rows: list[tuple[int, int, Row]] = []
    each = enumerate(compute_covariate_rates_by_group(judgements, codes, len(tasks) * len(_PLACES), intervals))
    for at, (evaluator, counts, figures) in each:
        tests = (
            {}
            if intervals is None
            else _test_rate_by_evidence_position(judgements, at, np.where(inside, task_codes, -1), found)
        )
        for code in range(len(tasks) * len(_PLACES)):
            task, place = divmod(code, len(_PLACES))
            if not counts[task * len(_PLACES) : (task + 1) * len(_PLACES), :2].any():
                continue
            scored_of = counts[code, :2, :2].sum(-1)
            row: Row = {
                "task": tasks[task],
                "place": _PLACES[place],
                "evaluator": evaluator,
                "n": int(scored_of.sum()),
                "n_unscored": int(counts[code, :2, -1].sum()),
                "n_short": int(short[task]),
                "n_no_place": int(placeless[task]),
                "n_pos": int(scored_of[1]),
                "n_neg": int(scored_of[0]),
            }
            row |= {name: none_if_undefined(values[code]) for name, values in figures.items()}
            row |= {name: values[task] for name, values in tests.items()}
            rows.append((code, at, row | {"reason": _explain_evidence_position_row(row, counts[code])}))
    found_rows = [row for *_, row in sorted(rows, key=lambda each: each[:2])]
    drop_constant_evaluator_intervals(found_rows, *RATE_LABELS)
    return found_rows


def _locate_evidence(judgements: Judgements, size: int) -> _ClaimEvidencePositions:
    n = len(judgements.claims)
    place, is_short = np.full(n, -1), np.zeros(n, dtype=bool)
    labelled = np.flatnonzero(judgements.label >= 0)
    some = judgements.claims.iloc[labelled]
    for rows, docs in iterate_document_blocks(some["doc"]):
        words = {doc: count_words(doc) for doc in set(docs)}
        is_long = np.array([words[doc] > len(_PLACES) * size for doc in docs])
        is_short[labelled[rows[~is_long]]] = True
        chosen = rows[is_long]
        if len(chosen):
            claims = some["claim"].iloc[chosen].fillna("").tolist()
            long_docs = [doc for doc, long in zip(docs, is_long, strict=True) if long]
            first, last = (
                np.floor(len(_PLACES) * share) for share in locate_best_rouge_chunks(claims, long_docs, size)
            )
            place[labelled[chosen]] = np.where(first == last, np.nan_to_num(first, nan=-1), -1).astype(np.int64)
    return _ClaimEvidencePositions(place, is_short)


def _test_rate_by_evidence_position(
    judgements: Judgements, evaluator: int, task_codes: np.ndarray, found: _ClaimEvidencePositions
) -> dict[str, list[float | None]]:
    """Of each task the p-values of equal TPR and of equal TNR in all places; None where there is nothing to compare."""
    cells = encode_label_prediction_cells(judgements.label, judgements.prediction[evaluator])
    n_tasks = int(task_codes.max(initial=-1)) + 1
    clusters = count_codes_by_cluster(
        judgements.cluster_codes,
        task_codes,
        n_tasks,
        np.where(task_codes < 0, -1, found.place * N_CONFUSION_CELLS + cells),
        len(_PLACES) * N_CONFUSION_CELLS,
    )
    counts = clusters.counts.reshape(-1, len(_PLACES), 3, 3)
    p_values: dict[str, list[float | None]] = {}
    for rate, label in RATE_LABELS.items():
        hits, of = counts[:, :, label, label], counts[:, :, label, :2].sum(-1)
        rates = estimate_clustered_proportions(clusters, hits, of)
        tests = [rao_scott_homogeneity_test(rates, task) for task in range(n_tasks)]
        p_values[f"p_{rate}"] = [None if test is None else test.p for test in tests]
    return p_values


def _explain_evidence_position_row(row: Row, counts: np.ndarray) -> str | None:
    reasons = [
        f"{rate} needs {RATE_CLASS_NAMES[rate]} claims: "
        + ("none of this place's is scored" if counts[label].sum() else "this place has none")
        for rate, label in RATE_LABELS.items()
        if row[rate] is None
    ]
    lacking = [rate for rate in RATE_LABELS if row.get(f"p_{rate}", 0) is None]
    if lacking:
        reasons.append(f"no test of {', '.join(lacking)}: too few claims, or the evaluator errs alike in all places")
    return join_reasons(reasons)


def _has_documents_of_several_chunks(judgements: Judgements) -> bool:
    docs = judgements.claims["doc"].iloc[np.flatnonzero(judgements.label >= 0)]
    return any(
        count_words(doc) > len(_PLACES) * _CHUNK_WORDS for _, some in iterate_document_blocks(docs) for doc in set(some)
    )


# ----------------------------------------------------------------------------------------------------------- findings

_EVIDENCE_FAULTS = {"tpr": "accepts fewer of the correct claims", "tnr": "finds fewer of the errors"}


def _find_evidence_position_effect(audited_run: AuditedRun) -> Iterator[Finding]:
    """TPR or TNR that is not the same wherever the evidence lies; an evaluator of chunks has passages already."""
    tested = [
        {"task": task, "evaluator": evaluator, "rate": rate, "p": group[0][f"p_{rate}"], "places": group}
        for (task, evaluator), group in group_finding_rows_by_keys(
            audited_run.rows("evidence_position"), "task", "evaluator"
        )
        for rate in RATE_LABELS
        if group[0].get(f"p_{rate}") is not None and not evaluator.startswith(CHUNKED_PREFIX)
    ]
    unequal = select_significant_rows(audited_run, tested, [each["p"] for each in tested])
    for evaluator, mine in group_finding_rows_by_evaluator(unequal):
        apart = []
        for each in mine:
            rate = each["rate"]
            places = [row for row in each["places"] if row[f"{rate}_low"] is not None]
            worst = min(places, key=lambda row: row[f"{rate}_high"])
            best = max(places, key=lambda row: row[f"{rate}_low"])
            # What is unscored could not turn the two around.
            if worst[f"{rate}_max"] < best[f"{rate}_min"]:
                apart.append((best[rate] - worst[rate], rate, worst, best))
        if not apart:
            continue
        _, rate, worst, best = max(apart, key=lambda one: one[0])
        concerned, all_tests = [one[2] for one in apart], [each for each in tested if each["evaluator"] == evaluator]
        where = {"beginning": "at the beginning", "middle": "in the middle", "end": "at the end"}
        yield Finding(
            "warn",
            evaluator,
            worst["task"],
            make_statement(
                "How often {evaluator} is right goes with the place of the evidence{where}. On {worst.task} it {fault} "
                f"where the evidence is {where[worst['place']]} of a long document ({{worst.{rate}:percent}}) than "
                f"{where[best['place']]} ({{best.{rate}:percent}}). Give it shorter texts to read.",
                evaluator=evaluator,
                where=format_how_many_datasets(concerned, all_tests, "task"),
                worst=worst,
                best=best,
                fault=_EVIDENCE_FAULTS[rate],
            ),
            {"rate": rate, "worst_place": worst["place"], "best_place": best["place"]}
            | {"worst_rate": worst[rate], "best_rate": best[rate], "p": worst[f"p_{rate}"]},
        )


# --------------------------------------------------------------------------------------------------------- declaration

_CLASS_SIZES_DESCRIPTION = "scored claims with label 1, with label 0"
_TEST_DESCRIPTION = "of the test that TPR, that TNR is the same in all places; the same in the rows of all places"

AUDIT = Audit(
    name="evidence_position",
    after="length_bias",
    title="Where in a long document the evidence lies",
    question="Is an evaluator right as often where the evidence is in the middle, or at the end, of a long document?",
    source="Liu et al. 2024 (Lost in the Middle); Rao & Scott 1984",
    formula="A document is cut into chunks of complete sentences; the evidence lies in the third (by characters) in "
    "which the middle of the chunk is that has the most of the claim's bigrams. TPR and TNR within a third; Pearson's "
    "X² of equal rates, corrected for clusters.",
    text="Models that read long texts may miss what stands in the middle. The evidence is found by shared words: of an "
    "error it is the passage that comes nearest to the claim. Where a document is passages that a search put best "
    "first, the place is their rank.",
    remedy="Give the evaluator fewer passages, or passages in place of documents: retrieve them, or judge chunks "
    "(`--evaluator chunked:INNER`) and see `chunking` for what that costs.",
    columns={
        "task": Column("task", "text", "the task group; the data set where claims have none", key=True),
        "place": Column("evidence", "text", "the third of the document: `beginning`, `middle` or `end`", key=True),
        **pick_shared_columns("evaluator", "n", "n_unscored", "reason"),
        "n_short": Column(
            "short", "count", "labelled claims of the task group whose documents are not long", shown="any"
        ),
        "n_no_place": Column(
            "no place",
            "count",
            "its other labelled claims without a place: no document, no bigram of it, or as many in chunks of two "
            "thirds",
            shown="any",
        ),
        "n_pos": Column("label 1", "count", _CLASS_SIZES_DESCRIPTION),
        "n_neg": Column("label 0", "count", _CLASS_SIZES_DESCRIPTION),
        "tpr": Column("TPR", "percent", "within the place", bounds=True, interval=WILSON, counted_in="n_pos"),
        "tnr": Column("TNR", "percent", "within the place", bounds=True, interval=WILSON, counted_in="n_neg"),
        "p_tpr": Column("p of equal TPR", "p", _TEST_DESCRIPTION),
        "p_tnr": Column("p of equal TNR", "p", _TEST_DESCRIPTION),
    },
    options={"size": "words in a chunk; documents of up to three times as many are left out"},
    compute=compute_evidence_position,
    applies=_has_documents_of_several_chunks,
    plots=(
        DotPlotSpec(
            what="TPR and TNR by the third of a long document that has the evidence, by task group",
            reading="Rates that fall from the beginning to the middle or the end, by more than chance: the evaluator "
            "loses what is there.",
            keys=("tpr", "tnr"),
            groups=("task", "place"),
        ),
    ),
    checks=(
        Check(
            "evidence_position",
            "Where the evidence lies",
            "TPR or TNR differs with the place of the evidence in long documents",
            _find_evidence_position_effect,
            {
                "rate": Column("rate", "text", values={"tpr": "TPR", "tnr": "TNR"}),
                "worst_place": Column("worst place", "text"),
                "best_place": Column("best place", "text"),
                "worst_rate": Column("there", "percent"),
                "best_rate": Column("at the best place", "percent"),
                "p": Column("p", "p"),
            },
            null="TPR and TNR are the same wherever in a long document the evidence lies, for evaluators of whole ones",
            controls="Holm over both rates in all tasks of all evaluators",
            figure="tpr",
            gravity=lambda evidence: evidence["best_rate"] - evidence["worst_rate"],
        ),
    ),
)
