"""How does cutting documents into chunks change an evaluator's verdicts? (VC §4.2, Figure 6, Table
30)

An evaluator and its chunked counterpart (``chunked-X`` for X, unless the option ``pairs`` says
otherwise) are compared on the claims whose documents are longer than a chunk, because no other
document is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from factaudit.arrays.figures import Figure, Tally, estimate_share
from factaudit.arrays.judgements import ClaimGroups, Judgements, check_evaluators
from factaudit.audit.core.audit_declaration import (
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, combine_figures
from factaudit.audit.core.result_rows import Row, group_rows, tabulate
from factaudit.audit.covariates import count_document_words
from factaudit.audit.rates import RATES_COLUMNS, compute_evaluator_rates
from factaudit.stats import divide_or_undefined
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables.documents import iterate_document_blocks
from factaudit.text.display_text import join_reasons
from factaudit.text.rouge_overlap import rouge2_chunk_differences

#: The kinds of claims: whether one chunk has all of the claim's bigrams that the document has.
_R2_DIFF_KINDS = ("zero", "positive")
#: The predictions of the evaluator and its chunked counterpart for a claim that flips.
_FLIPS = {"flip_1_to_0": (1, 0), "flip_0_to_1": (0, 1)}
#: If the size of chunks is unknown, documents with more words than this count as longer than a
#: chunk.
ASSUMED_CHUNK_WORDS = 500
_UNKNOWN_SIZE = f"chunk size unknown: {ASSUMED_CHUNK_WORDS} words assumed (option `size`)"

Size = int | Literal["unknown"]


def compute_chunking_flips(
    judgements: Judgements,
    *,
    pairs: Mapping[str, str] | None = None,
    size: Size = "unknown",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How many predictions chunking flips, separately for claims with all overlapping bigrams in
    one chunk (R2-diff 0) and for other claims.

    pairs: from an evaluator to its chunked counterpart. size: words in a chunk (a run knows it from
    signatures).

    Labels are not read. A row per data set, pair and kind of claim has dataset, evaluator,
    chunked_evaluator, r2_diff (``zero`` or ``positive``), chunk_size (null if unknown), n (claims
    scored by both), n_unscored (by one or both), n_one_chunk (claims that are left out because
    their document is a single chunk), n_no_r2 (other claims without R2-diff: they have no document,
    fewer than two tokens, or another script than the document), and flip_1_to_0 and flip_0_to_1,
    the shares of n that only the evaluator, and only its chunked counterpart, finds attributable.
    The shares have ``_min`` and ``_max`` and, if intervals are wanted, ``_low`` and ``_high``.
    """
    chosen = _pair_evaluators(judgements, pairs)
    words = ASSUMED_CHUNK_WORDS if size == "unknown" else size
    if not chosen:
        return []
    lengths, difference = count_document_words(judgements), np.full(len(judgements.claims), np.nan)
    for within, docs in iterate_document_blocks(judgements.claims["doc"]):
        claims = judgements.claims["claim"].iloc[within].tolist()
        difference[within] = rouge2_chunk_differences(claims, docs, [words])[0]
    groups = judgements.make_groups("claim")
    is_short = (lengths <= words) & (lengths > 0)
    is_lost = np.isnan(difference) & ~is_short
    codes = np.where(is_lost | is_short, -1, groups.codes * len(_R2_DIFF_KINDS) + (difference > 0))
    left_out = {}
    for name, mask in (("n_one_chunk", is_short), ("n_no_r2", is_lost)):
        n_of_dataset = np.bincount(groups.codes[mask], minlength=len(groups.keys))
        left_out[name] = np.repeat(n_of_dataset, len(_R2_DIFF_KINDS))
    chunk_size = None if size == "unknown" else size
    rows = []
    for plain, chunked in chosen:
        about = {"evaluator": plain, "chunked_evaluator": chunked, "chunk_size": chunk_size}
        keys = [key | about | {"r2_diff": kind} for key in groups.keys for kind in _R2_DIFF_KINDS]
        # The cells are laid out as for a label and a prediction; the evaluator takes the place of
        # the label.
        tally = judgements.tally(
            ClaimGroups(codes, keys), *map(judgements.evaluators.index, (plain, chunked))
        )
        n, total = tally.cells[:, :2, :2].sum((1, 2)), tally.cells.sum((1, 2))
        reasons = {
            _UNKNOWN_SIZE: np.full(len(keys), size == "unknown"),
            "no claim is scored by both": (n == 0) & (total > 0),
            "no such claim about a document longer than a chunk": total == 0,
        }
        figures = {name: _measure_flips(tally, *flip, intervals) for name, flip in _FLIPS.items()}
        rows += tabulate(keys, {"n": n, "n_unscored": total - n} | left_out, figures, reasons)
    return sorted(rows, key=lambda row: row["dataset"])


def _measure_flips(
    tally: Tally, before: int, after: int, intervals: ClusterBootstrap | None
) -> Figure:
    """The share of claims that flip, among those that both scored. The cells are [evaluator,
    chunked counterpart]."""
    table, stated = tally.clusters.counts.reshape(-1, 3, 3), tally.stated
    flips, both = table[:, before, after], table[:, :2, :2].sum((1, 2))
    confidence = None if intervals is None else intervals.confidence
    share = estimate_share(tally.clusters, flips, both, confidence)
    possible = stated[:, before, 2] + stated[:, 2, after] + stated[:, 2, 2]
    least, most = (
        divide_or_undefined(stated[:, before, after] + more, stated.sum((1, 2)))
        for more in (0, possible)
    )
    # If one of the two found a claim attributable and the other did not score it, one kind of flip
    # is impossible for this claim. So the bound over all completions can be lower than the share
    # among the claims that both scored.
    return replace(share, bounds=(np.fmin(least, share.point), np.fmax(most, share.point)))


def compute_chunking_rates(
    judgements: Judgements,
    *,
    pairs: Mapping[str, str] | None = None,
    size: Size | None = "unknown",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Rates of evaluators with and without chunks, over claims whose documents are longer than a
    chunk.

    pairs, size: as in `compute_chunking_flips`. size None takes all claims, for documents that are
    long but not available. The rows are those of `compute_evaluator_rates`, with chunk_size.
    """
    chosen, part = _pair_evaluators(judgements, pairs), judgements
    names = {name for pair in chosen for name in pair}
    if chosen and size is not None:
        words = ASSUMED_CHUNK_WORDS if size == "unknown" else size
        part = judgements.select(np.flatnonzero(count_document_words(judgements) > words))
    if not chosen or not len(part.claims):
        return []
    chunk_size, why = (None, _UNKNOWN_SIZE) if size == "unknown" else (size, "")
    return [
        row | {"chunk_size": chunk_size, "reason": join_reasons([why, row["reason"] or ""])}
        for row in compute_evaluator_rates(part, intervals=intervals)
        if row["evaluator"] in names
    ]


def _pair_evaluators(
    judgements: Judgements, pairs: Mapping[str, str] | None
) -> list[tuple[str, str]]:
    """The requested pairs, or every evaluator whose chunked counterpart is there."""
    names = judgements.evaluators
    if pairs is None:
        return [(name, f"chunked-{name}") for name in names if f"chunked-{name}" in names]
    check_evaluators((name for pair in pairs.items() for name in pair), names)
    return list(pairs.items())


def _add_chunk_size_of_evaluators(
    options: dict[str, Any], signatures: Mapping[str, str]
) -> dict[str, Any]:
    """Add the number of words in the chunks of
    `factaudit.evaluators.chunked_evaluator.ChunkedEvaluator`, if all agree."""
    made = [
        re.fullmatch(r"chunked\|.*\|size:(\d+)\|unit:words", text) for text in signatures.values()
    ]
    sizes = {int(found[1]) for found in made if found}
    return {"size": sizes.pop(), **options} if len(sizes) == 1 else options


# ---- checks

#: Chunking may turn this many more of the claims from 1 to 0 if no single chunk has all their
#: bigrams.
MAX_EXTRA_FLIPS = 0.05


def _list_extra_flips(run: AuditedRun) -> Iterator[Row]:
    """How many more verdicts chunks turn to 0 if no single chunk supports the claim than if one
    does."""
    rows = run.per_dataset("chunking", "flip_1_to_0")
    for group in group_rows(rows, "dataset", "evaluator", "chunked_evaluator").values():
        kinds = {row["r2_diff"]: row for row in group}
        if len(kinds) < len(_R2_DIFF_KINDS):
            continue
        split, whole = kinds["positive"], kinds["zero"]
        size = split.get("chunk_size")
        row = split | combine_figures(
            "extra", (split, "flip_1_to_0", 1), (whole, "flip_1_to_0", -1)
        )
        row |= {"size": "unknown size" if size is None else f"{size:,} words"}
        row["of_others"] = whole["flip_1_to_0"]
        if row["extra"] <= MAX_EXTRA_FLIPS or split["flip_1_to_0"] <= split["flip_0_to_1"]:
            row["p_extra"] = 1.0  # too few to matter, or as many turn the other way
        yield row


CHECK = Check(
    id="chunking",
    title="Claims that chunks cannot support",
    rows=_list_extra_flips,
    figure="extra",
    says=(
        "Chunks of {size} turn {flip_1_to_0:percent} of {evaluator}'s verdicts on {n:number claim}"
        " whose words are spread over several chunks{on} from attributable to unattributable,"
        " {verdict}."
    ),
    beyond="more than of the other claims ({of_others:percent})",
    advice="If it is less accurate with chunks, use whole documents or larger chunks.",
    severity="warn",
    null=(
        "chunks make an evaluator flag no more of the claims whose words are spread over several"
        " chunks than of the others"
    ),
)


# ---- declaration

_FLIPS_DESCRIPTION = (
    "shares of `n` that only the evaluator accepts, and that only its chunked counterpart accepts"
)
_CHUNKING_OPTIONS = {
    "pairs": "each evaluator with its chunked counterpart; by default every X with `chunked-X`",
    "size": "words in a chunk; by default the size that the evaluators were run with",
}

AUDITS = (
    Audit(
        name="chunking",
        title="What cutting documents into chunks changes",
        question="Which verdicts change if an evaluator reads the document in chunks?",
        source="VC §4.2, Fig. 6",
        formula=(
            "R2-diff = ROUGE-2 precision against the whole document − the maximum over its chunks."
            " Flips = share of the predictions that change from 1 to 0, or from 0 to 1, if the"
            " evaluator reads chunks."
        ),
        text=(
            "A claim that combines distant parts of a document cannot be verified from a single"
            " chunk (VC §4.2)."
        ),
        remedy=(
            "If there are many flips where R2-diff is positive, use longer chunks or an evaluator"
            " that reads the whole document."
        ),
        columns={
            **pick_shared_columns("dataset", "evaluator", "chunked_evaluator"),
            "r2_diff": Column(
                "R2-diff",
                "text",
                "`zero`: one chunk contains all bigrams that the claim shares with its document;"
                " `positive`: no chunk does",
                key=True,
                values={"zero": "R2-diff = 0", "positive": "R2-diff > 0"},
            ),
            **pick_shared_columns("n", "n_unscored", "reason"),
            "chunk_size": Column(
                "words in a chunk",
                "count",
                "words in a chunk; null if unknown (500 are assumed)",
                shown="any",
            ),
            "n_one_chunk": Column(
                "one chunk", "count", "claims left out because their document fits in one chunk"
            ),
            "n_no_r2": Column("no R2", "count", "other claims of the group that have no R2-diff"),
            "flip_1_to_0": share_column("flips 1 → 0", _FLIPS_DESCRIPTION),
            "flip_0_to_1": share_column("flips 0 → 1", _FLIPS_DESCRIPTION),
        },
        options=_CHUNKING_OPTIONS,
        compute=compute_chunking_flips,
        complete=_add_chunk_size_of_evaluators,
        plot=PlotSpec(
            what=(
                "Predictions that chunking flips, where one chunk holds all shared bigrams (R2-diff"
                " = 0) and where none does"
            ),
            keys=("flip_1_to_0", "flip_0_to_1"),
            series="chunked_evaluator",
            groups=("dataset", "r2_diff"),
        ),
        checks=(CHECK,),
    ),
    Audit(
        name="chunking_rates",
        title="Rates with and without chunks",
        question="How often is an evaluator right on long documents, with and without chunks?",
        source="VC §4.2, Table 30",
        formula=(
            "TPR, TNR, BAcc and PPR as in `rates`. The score of a chunked evaluator is the maximum"
            " over the chunks."
        ),
        text="Only claims whose document is longer than one chunk count.",
        remedy=(
            "If the chunked evaluator has a lower TNR, its maximum over chunks lets errors pass:"
            " use longer chunks, or tune its threshold."
        ),
        columns=RATES_COLUMNS
        | {
            "chunk_size": Column(
                "words in a chunk",
                "count",
                "words in a chunk; null with `size: null` and if unknown (500 are assumed)",
                shown="any",
            ),
        },
        options=_CHUNKING_OPTIONS
        | {
            "size": (
                _CHUNKING_OPTIONS["size"]
                + "; null takes all claims, for documents that are long but not at hand"
            )
        },
        compute=compute_chunking_rates,
        complete=_add_chunk_size_of_evaluators,
        plot=PlotSpec(
            what="TPR, TNR and BAcc on long documents, with and without chunks",
            keys=("tpr", "tnr", "bacc"),
            guides={"bacc": 0.5},
        ),
    ),
)
