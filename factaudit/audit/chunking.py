"""How does cutting documents into chunks change an evaluator's verdicts? (VC §4.2, Figure 6, Table 30)"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure, Figures, Tally
from factaudit.arrays.judgements import Judgements, check_evaluators
from factaudit.arrays.paired_changes import average_repeated_predictions, compute_paired_changes
from factaudit.audit.core.audit_declaration import SHARED_COLUMNS, Audit, AuditedRun, Column, pick_shared_columns
from factaudit.audit.core.checks import Check, group_rows, subtract_figures
from factaudit.audit.core.interval_methods import DISCORDANT, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.rates import RATES_COLUMNS as RATES_COLUMNS
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.audit.surface_bias import OTHER_SCRIPT
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import estimate_clustered_proportions
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.tables.documents import iterate_document_blocks
from factaudit.text.chunks import count_words
from factaudit.text.display_text import format_count, join_reasons
from factaudit.text.rouge_overlap import find_overlaps_lost_to_script, rouge2_chunk_differences

#: Whether one chunk has all of the claim's bigrams that the document has.
_R2_DIFF_KINDS = ("zero", "positive")
#: What the evaluator and its chunked counterpart say of a claim that flips.
_FLIPS = {"flip_1_to_0": (1, 0), "flip_0_to_1": (0, 1)}
#: What chunks change of the BAcc, in a row of a chunked evaluator.
_BACC_CHANGE_KEYS = ("bacc_change", "bacc_change_low", "bacc_change_high")
#: Where the size of chunks is unknown, documents of more words are taken for longer than a chunk.
ASSUMED_CHUNK_WORDS = 500
#: What the verdicts of a chunked evaluator are called: this and its inner evaluator's name.
CHUNKED_PREFIX = "chunked-"


def compute_chunking_flips(
    judgements: Judgements,
    *,
    by: Sequence[str] = ("dataset",),
    pairs: Mapping[str, str] | None = None,
    size: int | Literal["unknown"] = "unknown",
    sizes: Mapping[str, int] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How many predictions chunking flips, where one chunk has all overlapping bigrams (R2-diff 0) and where none has.

    pairs: from an evaluator to its chunked counterpart; by default every X with ``chunked-X``. size: words in a chunk;
    sizes: those of chunked evaluators that have another (a run knows them from signatures; chunks
    that were counted in tokens have to be given in words). Of one whose size is unknown chunk_size is null, and
    `ASSUMED_CHUNK_WORDS` are assumed.

    Documents that are no longer than a chunk are left out (VC §4.2): nothing is cut there, so nothing can flip for it.
    Labels aren't read. A row per group of ``by``, pair and kind of claim: the keys of ``by``, evaluator,
    chunked_evaluator, r2_diff (``zero`` or ``positive``), chunk_size, n (claims scored by both), n_unscored (by one or
    both), n_one_chunk (the group's claims whose documents are left out), n_no_r2 (its other claims without R2-diff: no
    document, fewer than two tokens, or, n_other_script, in another script than the document), flip_1_to_0 and
    flip_0_to_1, the shares of n that only the evaluator, and only its chunked counterpart, finds attributable; each
    with ``_min`` and ``_max`` and, with intervals, ``_low`` and ``_high``.
    """
    chosen = _pair_evaluators_for_chunking(judgements, pairs, size, sizes)
    if not chosen:
        return []
    groups = judgements.make_groups("claim", by)
    words_in_chunks = sorted({words for *_, words, _ in chosen})
    lengths, other_script = np.zeros((2, len(judgements.claims)), dtype=np.int64)
    found = np.full((len(words_in_chunks), len(judgements.claims)), np.nan)
    for within, docs in iterate_document_blocks(judgements.claims["doc"]):
        lengths[within] = _count_document_words(docs)
        claims = judgements.claims["claim"].iloc[within].tolist()
        found[:, within] = rouge2_chunk_differences(claims, docs, words_in_chunks)
        other_script[within] = find_overlaps_lost_to_script(claims, docs, found[0, within])
    rows: list[tuple[int, Row]] = []
    for plain, chunked, words, is_known in chosen:
        difference = found[words_in_chunks.index(words)]
        is_short, is_lost = (lengths <= words) & (lengths > 0), np.isnan(difference)
        n_one_chunk, n_lost, n_other, n_compared = (
            np.bincount(groups.codes[mask], minlength=len(groups.keys)).tolist()
            for mask in (
                is_short,
                is_lost & ~is_short,
                (other_script > 0) & ~is_short,
                ~is_lost & ~is_short,
            )
        )
        codes = np.where(is_lost | is_short, -1, groups.codes * len(_R2_DIFF_KINDS) + (difference > 0))
        keys, reasons = [], []
        for at, key in enumerate(groups.keys):
            about = key | {"evaluator": plain, "chunked_evaluator": chunked, "chunk_size": words if is_known else None}
            lost = {"n_one_chunk": n_one_chunk[at], "n_no_r2": n_lost[at], "n_other_script": n_other[at]}
            keys += [about | lost | {"r2_diff": kind} for kind in _R2_DIFF_KINDS]
            reasons += [_explain_no_claims(row, words, n_compared[at]) for row in keys[-len(_R2_DIFF_KINDS) :]]
        # The cells are as of a label and a prediction, with the evaluator in the label's place.
        places = [judgements.evaluators.index(name) for name in (plain, chunked)]
        tally = judgements.tally(ClaimGroups(codes, keys), *places)
        n = tally.cells[:, :2, :2].sum((1, 2))
        counts = {"n": n, "n_unscored": tally.cells.sum((1, 2)) - n}
        unscored = np.where(counts["n_unscored"] > 0, "no claim is scored by both", reasons)
        unknown = [_UNKNOWN_SIZE * (not is_known)] * len(keys)
        table = tabulate(keys, counts, _measure_flips(tally, intervals), [unknown, np.where(n > 0, "", unscored)])
        rows += [(at // len(_R2_DIFF_KINDS), row) for at, row in enumerate(table)]
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _measure_flips(tally: Tally, intervals: ClusterBootstrap | None) -> Figures:
    """The shares of claims that flip, of those that both scored; cells by [evaluator, chunked counterpart]."""
    table = tally.clusters.counts.reshape(-1, 3, 3)
    hits = np.stack([table[:, before, after] for before, after in _FLIPS.values()], 1)
    of = np.repeat(table[:, :2, :2].sum((1, 2))[:, None], len(_FLIPS), 1)
    shares = estimate_clustered_proportions(tally.clusters, hits, of)
    ends = None if intervals is None else shares.wilson_intervals(intervals.confidence)
    n, stated, figures = tally.stated.sum((1, 2)), tally.stated, {}
    for at, (name, (before, after)) in enumerate(_FLIPS.items()):
        certain = stated[:, before, after]
        possible = stated[:, before, 2] + stated[:, 2, after] + stated[:, 2, 2]
        low, high = divide_or_undefined(certain, n), divide_or_undefined(certain + possible, n)
        # Of a claim that one of the two found attributable and the other did not score, one flip is known not to be:
        # no completion may have as large a share as what both scored.
        point = shares.point[:, at]
        interval = None if ends is None else (ends[0][:, at], ends[1][:, at])
        figures[name] = Figure(point, (np.fmin(low, point), np.fmax(high, point)), interval)
    return figures


def compute_chunking_rates(
    judgements: Judgements,
    *,
    by: Sequence[str] = ("dataset",),
    pairs: Mapping[str, str] | None = None,
    size: int | Literal["unknown"] | None = "unknown",
    sizes: Mapping[str, int] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Rates of evaluators with and without chunks, over claims whose documents are longer than a chunk.

    pairs, size, sizes: as in `compute_chunking_flips`; size None takes all claims, for documents that are long but not
    at hand. The rows are those of `factaudit.audit.rates.compute_evaluator_rates` with chunk_size (null for None), for
    both evaluators of each pair; a dataset without a document that long has none.
    """
    asked = _pair_evaluators_for_chunking(judgements, pairs, size or 0, sizes)
    if not asked:
        return []
    lengths = np.zeros(len(judgements.claims), dtype=np.int64)
    for within, docs in iterate_document_blocks(judgements.claims["doc"]) if size is not None else ():
        lengths[within] = _count_document_words(docs)
    found: dict[tuple[int | None, bool], list[str]] = {}
    for plain, chunked, own, is_known in asked:
        found.setdefault((None if size is None else own, is_known), []).extend((plain, chunked))
    rows: list[Row] = []
    ends = _BACC_CHANGE_KEYS[: 1 if intervals is None else None]
    for (at, is_known), names in found.items():
        long = np.arange(len(judgements.claims)) if at is None else np.flatnonzero(lengths > at)
        if not len(long):
            continue
        chosen = list(dict.fromkeys(names))
        which_evaluators = np.array([judgements.evaluators.index(name) for name in chosen])
        place, repeats = np.ix_(which_evaluators, long), judgements.repeat_predictions
        part = Judgements(
            claims=judgements.claims.iloc[long].reset_index(drop=True),
            evaluators=tuple(chosen),
            label=judgements.label[long],
            prediction=judgements.prediction[place],
            score=judgements.score[place],
            status=judgements.status[place],
            repeat_predictions=None if repeats is None else repeats[:, which_evaluators][:, :, long],
        )
        of_all = "of all claims, whatever the length of their documents" if at is None else ""
        which = of_all if is_known else _UNKNOWN_SIZE
        changes = _compute_bacc_changes(part, asked, by, intervals)
        for row in compute_evaluator_rates(part, by=by, intervals=intervals):
            change = changes.get((row["evaluator"], *(row[key] for key in by)))
            lone = "" if change else "a change of BAcc is that of a chunked evaluator on one data set"
            reason = join_reasons([which, row["reason"] or "", lone])
            rows.append(
                row | (change or dict.fromkeys(ends)) | {"chunk_size": at if is_known else None, "reason": reason}
            )
    return rows


def _compute_bacc_changes(
    judgements: Judgements,
    pairs: Sequence[tuple[str, str, int, bool]],
    by: Sequence[str],
    intervals: ClusterBootstrap | None,
) -> dict[tuple[Any, ...], Row]:
    """By chunked evaluator and the values of ``by``: what chunks change of the BAcc, on the claims that both score."""
    groups = judgements.make_groups("claim", by)
    confidence = 0.95 if intervals is None else intervals.confidence
    keys = _BACC_CHANGE_KEYS[: 1 if intervals is None else None]
    found = {}
    for plain, chunked, *_ in pairs:
        if plain not in judgements.evaluators:
            continue
        before, after = (average_repeated_predictions(judgements, name) for name in (plain, chunked))
        changes = compute_paired_changes(
            judgements.label, before, after, groups.codes, len(groups.keys), judgements.cluster_codes, confidence
        )["bacc"][2:]
        for key, values in zip(groups.keys, np.transpose(changes), strict=True):
            row = dict(zip(keys, map(none_if_undefined, values), strict=False))
            found[chunked, *(key[name] for name in by)] = row
    return found


def _pair_evaluators_for_chunking(
    judgements: Judgements,
    evaluator_pairs: Mapping[str, str] | None,
    chunk_size: int | Literal["unknown"],
    chunk_sizes: Mapping[str, int] | None,
) -> list[tuple[str, str, int, bool]]:
    """The pairs asked for, or every evaluator whose chunked counterpart is there, with the words of its chunks, and
    whether these are known."""
    if evaluator_pairs is None:
        evaluator_pairs = {
            name: CHUNKED_PREFIX + name
            for name in judgements.evaluators
            if CHUNKED_PREFIX + name in judgements.evaluators
        }
    check_evaluators((name for pair in evaluator_pairs.items() for name in pair), judgements.evaluators)
    sizes = {chunked: (chunk_sizes or {}).get(chunked, chunk_size) for chunked in evaluator_pairs.values()}
    words = {chunked: ASSUMED_CHUNK_WORDS if size == "unknown" else size for chunked, size in sizes.items()}
    return [(plain, to, words[to], sizes[to] != "unknown") for plain, to in evaluator_pairs.items()]


def _count_document_words(documents: Sequence[str]) -> list[int]:
    """Words in each document; one shared by many claims is counted once."""
    known = {doc: count_words(doc) for doc in set(documents)}
    return [known[doc] for doc in documents]


_UNKNOWN_SIZE = f"chunk size unknown: {ASSUMED_CHUNK_WORDS} words assumed (option `size`)"


def _explain_no_claims(row: Row, words: int, n_compared: int) -> str:
    """Why a row has no claims; n_compared: those of its group, of either kind, that have an R2-diff."""
    if row["n_other_script"]:
        return OTHER_SCRIPT
    if row["n_one_chunk"]:
        left_out = f"{format_count(row['n_one_chunk'], 'claim')} about documents of at most {words} words left out"
        return f"no other claim with R2-diff {'over ' if row['r2_diff'] == 'positive' else ''}0; {left_out}"
    if not n_compared:
        return "no claim has an R2-diff: a document and at least two tokens are needed"
    if row["r2_diff"] == "positive":
        return f"one chunk of {words} words has all that a claim shares with its document, for all with an R2-diff"
    return "no claim has all that it shares with its document in one chunk"


def _add_chunk_sizes_of_evaluators(options: dict[str, Any], signatures: Mapping[str, str]) -> dict[str, Any]:
    """With the words in the chunks of evaluators that are `factaudit.evaluators.chunked_evaluator.ChunkedEvaluator` and
    count words."""
    made = {name: re.fullmatch(r"chunked\|.*\|size:(\d+)\|unit:words", text) for name, text in signatures.items()}
    sizes = {name: int(found[1]) for name, found in made.items() if found}
    return {**options, "sizes": sizes} if sizes and not {"size", "sizes"} & set(options) else options


# ----------------------------------------------------------------------------------------------------------- checks

#: Chunking may turn this much more of the claims from 1 to 0 where no one chunk has all their bigrams.
MAX_EXTRA_FLIPS = 0.05


def _list_extra_flips(run: AuditedRun) -> Iterator[Row]:
    """How many more verdicts chunks turn to 0 where no single chunk supports a claim than where one does.

    That is a fault unless the labels show no harm: then many of the claims that are now rejected are errors.
    """
    rates = {
        (row["dataset"], row.get("chunk_size"), row["evaluator"]): row
        for row in run.rows("chunking_rates")
        if row.get("bacc") is not None
    }
    rows = run.per_dataset("chunking", "flip_1_to_0")
    for group in group_rows(rows, "dataset", "evaluator", "chunked_evaluator").values():
        kinds = {row["r2_diff"]: row for row in group}
        if set(kinds) != {"zero", "positive"}:
            continue
        split, whole = kinds["positive"], kinds["zero"]
        row = split | subtract_figures("extra", split, "flip_1_to_0", whole, "flip_1_to_0")
        size = split.get("chunk_size")
        row["size"] = "unknown size" if size is None else f"{size:,} words"
        row["of_others"] = whole["flip_1_to_0"]
        if row["extra"] <= MAX_EXTRA_FLIPS or split["flip_1_to_0"] <= split["flip_0_to_1"]:
            row["p_extra"] = 1.0  # too few to matter, or as many turn the other way
        place = split["dataset"], size
        cut, uncut = (rates.get((*place, split[key])) for key in ("chunked_evaluator", "evaluator"))
        row["harm"] = ""
        if cut is not None and uncut is not None:
            high = cut.get("bacc_change_high")
            is_fault = high < 0 if high is not None else cut["bacc"] < uncut["bacc"]
            row["harm"] = "Its BAcc is lower with chunks." if is_fault else "The labels show no harm."
            row["severity"] = "fail" if is_fault else "warn"
        yield row


CHECK = Check(
    id="chunking",
    title="Claims that chunks cannot support",
    rows=_list_extra_flips,
    figure="extra",
    says="Chunks of {size} turn {flip_1_to_0:percent} of {evaluator}'s verdicts on {n:number claim} whose words are "
    "spread over several chunks{on} from attributable to unattributable, {verdict}. {harm}",
    beyond="more than of the other claims ({of_others:percent})",
    advice="Compare it with whole documents or larger chunks.",
    null="chunks make an evaluator flag no more of the claims whose words are spread over several chunks than of the "
    "others",
)


# --------------------------------------------------------------------------------------------------------- declaration

_FLIPS_DESCRIPTION = "shares of `n` that only the evaluator accepts, and that only its chunked counterpart accepts"
_CHUNKING_OPTIONS = {
    "by": "columns of the claims table that form the groups",
    "pairs": "each evaluator with its chunked counterpart; by default every X with `chunked-X`",
    "size": "words in a chunk; by default the size that the evaluator was run with",
    "sizes": "`{CHUNKED: words}`, for chunked evaluators with another size",
}

AUDITS = (
    Audit(
        name="chunking",
        after="covariates",
        title="What cutting documents into chunks changes",
        question="Which verdicts change if an evaluator reads the document in chunks?",
        source="VC §4.2, Fig. 6",
        formula=(
            "R2-diff = ROUGE-2 precision against the whole document − the maximum over its chunks. Flips = "
            "share of the predictions that change from 1 to 0, or from 0 to 1, if the evaluator reads chunks."
        ),
        text="A claim that combines distant parts of a document cannot be verified from a single chunk (VC §4.2).",
        remedy=(
            "If there are many flips where R2-diff is positive, use longer chunks or an evaluator that reads the"
            " whole document."
        ),
        columns={
            **pick_shared_columns("dataset", "evaluator", "chunked_evaluator"),
            "r2_diff": Column(
                "R2-diff",
                "text",
                (
                    "`zero`: one chunk contains all bigrams that the claim shares with its document; `positive`: no "
                    "chunk does"
                ),
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
            "n_one_chunk": Column("one chunk", "count", "claims left out because their document fits in one chunk"),
            "n_no_r2": Column("no R2", "count", "other claims of the group that have no R2-diff"),
            "n_other_script": SHARED_COLUMNS["n_other_script"],
            "flip_1_to_0": Column("flips 1 → 0", "percent", _FLIPS_DESCRIPTION, bounds=True, interval=WILSON),
            "flip_0_to_1": Column("flips 0 → 1", "percent", _FLIPS_DESCRIPTION, bounds=True, interval=WILSON),
        },
        options=_CHUNKING_OPTIONS,
        compute=compute_chunking_flips,
        complete=_add_chunk_sizes_of_evaluators,
        plot=PlotSpec(
            what="Predictions that chunking flips, where one chunk holds all shared bigrams (R2-diff = 0) and "
            "where none does",
            keys=("flip_1_to_0", "flip_0_to_1"),
            series="chunked_evaluator",
            groups=("dataset", "r2_diff"),
        ),
        checks=(CHECK,),
    ),
    Audit(
        name="chunking_rates",
        after="chunking",
        title="Rates with and without chunks",
        question="How often is an evaluator right on long documents, with and without chunks?",
        source="VC §4.2, Table 30",
        formula=(
            "TPR, TNR, BAcc and PPR as in `rates`. The score of a chunked evaluator is the maximum over the chunks."
        ),
        text="Only claims whose document is longer than one chunk count.",
        remedy=(
            "If the chunked evaluator has a lower TNR, its maximum over chunks lets errors pass: use longer "
            "chunks, or tune its threshold."
        ),
        columns=RATES_COLUMNS
        | {
            "bacc_change": Column(
                "BAcc's change",
                "points",
                "BAcc of the chunked evaluator − BAcc without chunks, on the claims that both scored",
                shown="any",
                interval=DISCORDANT,
            ),
            "chunk_size": Column(
                "words in a chunk",
                "count",
                "words in a chunk; null with `size: null` and if unknown (500 are assumed)",
                shown="any",
            ),
        },
        options=_CHUNKING_OPTIONS
        | {"size": _CHUNKING_OPTIONS["size"] + "; null takes all claims, for documents that are long but not at hand"},
        compute=compute_chunking_rates,
        complete=_add_chunk_sizes_of_evaluators,
        plot=PlotSpec(
            what="TPR, TNR and BAcc on long documents, with and without chunks",
            keys=("tpr", "tnr", "bacc"),
            guides={"bacc": 0.5},
        ),
    ),
)
