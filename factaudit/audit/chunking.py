"""What chunking does to an evaluator's verdicts (VC §4.2, Figure 6, Table 30)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import by_evaluator, by_keys, of_datasets
from factaudit.audit.core.decisions import range_of
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.groups import group_by
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.plot import DotPlot, Flips
from factaudit.audit.core.rows import Row, number, ratio, reasons
from factaudit.audit.core.shares import by_cluster, shares
from factaudit.audit.core.tallies import check_evaluators
from factaudit.audit.core.words import percent
from factaudit.audit.rates import COLUMNS as RATES_COLUMNS
from factaudit.audit.rates import rates
from factaudit.tables.documents import in_blocks
from factaudit.text.chunks import words
from factaudit.text.overlap import r2_diffs
from factaudit.text.printable import count

#: Whether one chunk has all of the claim's bigrams that the document has.
_KINDS = ("zero", "positive")
#: What the verdicts of a chunked evaluator are called: this and its inner evaluator's name.
_PREFIX = "chunked-"


def chunking(
    judged: Judged,
    *,
    by: Sequence[str] = ("dataset",),
    pairs: Mapping[str, str] | None = None,
    size: int = 500,
    sizes: Mapping[str, int] | None = None,
    intervals: Intervals | None = None,
) -> list[Row]:
    """How many predictions chunking flips, where one chunk has all overlapping bigrams (R2-diff 0) and where none has.

    pairs: from an evaluator to its chunked counterpart; by default every X with ``chunked-X``. size: words in a chunk;
    sizes: those of chunked evaluators that have another (a run knows them from signatures; chunks
    that were counted in tokens have to be given in words).

    Documents that are no longer than a chunk are left out (VC §4.2): nothing is cut there, so nothing can flip for it.
    Labels aren't read. A row per group of ``by``, pair and kind of claim: the keys of ``by``, evaluator,
    chunked_evaluator, r2_diff (``zero`` or ``positive``), chunk_size, n (claims scored by both), n_unscored (by one or
    both), n_one_chunk (the group's claims whose documents are left out), n_no_r2 (its other claims without R2-diff: no
    document, or fewer than two tokens), flip_1_to_0 and flip_0_to_1, the shares of n that
    only the evaluator, and only its chunked counterpart, finds attributable; each with ``_min`` and ``_max`` and, with
    intervals, ``_low`` and ``_high``.
    """
    chosen = _pairs(judged, pairs, size, sizes)
    if not chosen:
        return []
    groups = group_by(judged.claims, by)
    every = sorted({at for *_, at in chosen})
    lengths = np.zeros(len(judged.claims), dtype=np.int64)
    found = np.full((len(every), len(judged.claims)), np.nan)
    for within, docs in in_blocks(judged.claims["doc"]):
        lengths[within] = _lengths(docs)
        found[:, within] = r2_diffs(judged.claims["claim"].iloc[within].tolist(), docs, every)
    differences = dict(zip(every, found, strict=True))
    n_codes = len(groups.keys) * len(_KINDS)
    rows: list[tuple[int, Row]] = []
    for plain, chunked, at in chosen:
        difference = differences[at]
        short = (lengths <= at) & (lengths > 0)
        undefined = np.isnan(difference)
        lost = np.bincount(groups.codes[undefined & ~short], minlength=len(groups.keys))
        one_chunk = np.bincount(groups.codes[short], minlength=len(groups.keys))
        codes = np.where(undefined | short, -1, groups.codes * len(_KINDS) + (difference > 0))
        # The same nine cells as for a label and a prediction, with the evaluator in the label's place.
        first, second = (judged.prediction[judged.evaluators.index(name)] for name in (plain, chunked))
        both = (first >= 0) & (second >= 0)
        counts = nine.count(codes, n_codes, first, second)
        figures = _flips(counts)
        certain = (judged.certain[judged.evaluators.index(name)] for name in (plain, chunked))
        for name, (low, high) in _flip_bounds(nine.count(codes, n_codes, *certain)).items():
            # Of a claim that one of the two found attributable and the other did not score, one flip is known not to
            # be: no completion may have as large a share as what both scored.
            figures |= {f"{name}_min": np.fmin(low, figures[name]), f"{name}_max": np.fmax(high, figures[name])}
        if intervals is not None:
            clusters = by_cluster(
                judged.clusters, np.where(both, codes, -1), n_codes, nine.cells(first, second), nine.CELLS
            )
            table = clusters.counts.reshape(-1, 3, 3)
            n = table[:, :2, :2].sum((1, 2))
            flipped = shares(clusters, np.stack([table[:, 1, 0], table[:, 0, 1]], 1), np.stack([n, n], 1))
            low, high = flipped.limits(intervals.confidence)
            for column, name in enumerate(("flip_1_to_0", "flip_0_to_1")):
                figures |= {f"{name}_low": low[:, column], f"{name}_high": high[:, column]}
        for place in range(n_codes):
            group, kind = divmod(place, len(_KINDS))
            n = int(counts[place, :2, :2].sum())
            row: Row = {
                **groups.keys[group],
                "evaluator": plain,
                "chunked_evaluator": chunked,
                "r2_diff": _KINDS[kind],
                "chunk_size": at,
                "n": n,
                "n_unscored": int(counts[place].sum()) - n,
                "n_one_chunk": int(one_chunk[group]),
                "n_no_r2": int(lost[group]),
            }
            row |= {name: number(values[place]) for name, values in figures.items()}
            rows.append((group, row | {"reason": _reason(row, at)}))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def chunking_rates(
    judged: Judged,
    *,
    by: Sequence[str] = ("dataset",),
    pairs: Mapping[str, str] | None = None,
    size: int | None = 500,
    sizes: Mapping[str, int] | None = None,
    intervals: Intervals | None = None,
) -> list[Row]:
    """Rates of evaluators with and without chunks, over claims whose documents are longer than a chunk.

    pairs, size, sizes: as in `chunking`; size None takes all claims, for documents that are long but not at hand. The
    rows are those of `factaudit.audit.rates.rates` with chunk_size (null for None), for both evaluators of each pair; a
    dataset without a document that long has none.
    """
    asked = _pairs(judged, pairs, size or 0, sizes)
    if not asked:
        return []
    lengths = np.zeros(len(judged.claims), dtype=np.int64)
    for within, docs in in_blocks(judged.claims["doc"]) if size is not None else ():
        lengths[within] = _lengths(docs)
    found: dict[int | None, list[str]] = {}
    for plain, chunked, own in asked:
        found.setdefault(None if size is None else own, []).extend((plain, chunked))
    rows: list[Row] = []
    for at, names in found.items():
        long = np.arange(len(judged.claims)) if at is None else np.flatnonzero(lengths > at)
        if not len(long):
            continue
        chosen = list(dict.fromkeys(names))
        place = np.ix_(np.array([judged.evaluators.index(name) for name in chosen]), long)
        part = Judged(
            claims=judged.claims.iloc[long].reset_index(drop=True),
            evaluators=tuple(chosen),
            label=judged.label[long],
            prediction=judged.prediction[place],
            score=judged.score[place],
            status=judged.status[place],
        )
        every = "" if at is not None else "of all claims, whatever the length of their documents"
        rows += [
            row | {"chunk_size": at, "reason": reasons([every, row["reason"] or ""])}
            for row in rates(part, by=by, intervals=intervals)
        ]
    return rows


def _pairs(
    judged: Judged, pairs: Mapping[str, str] | None, size: int, sizes: Mapping[str, int] | None
) -> list[tuple[str, str, int]]:
    """The pairs asked for, or every evaluator whose chunked counterpart is there, with the words of its chunks."""
    if pairs is None:
        pairs = {name: _PREFIX + name for name in judged.evaluators if _PREFIX + name in judged.evaluators}
    check_evaluators((name for pair in pairs.items() for name in pair), judged.evaluators)
    return [(plain, chunked, (sizes or {}).get(chunked, size)) for plain, chunked in pairs.items()]


def _lengths(docs: Sequence[str]) -> list[int]:
    """Words in each document; one shared by many claims is counted once."""
    known = {doc: words(doc) for doc in set(docs)}
    return [known[doc] for doc in docs]


def _flips(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Of (..., 3, 3) counts by [evaluator, chunked counterpart]; NaN where no claim is scored by both."""
    n = counts[..., :2, :2].sum((-1, -2))
    return {"flip_1_to_0": ratio(counts[..., 1, 0], n), "flip_0_to_1": ratio(counts[..., 0, 1], n)}


def _flip_bounds(counts: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The least and the greatest share, had every claim been scored by both."""
    n = counts.sum((-1, -2))
    bounds = {}
    for name, before, after in (("flip_1_to_0", 1, 0), ("flip_0_to_1", 0, 1)):
        certain = counts[..., before, after]
        possible = counts[..., before, -1] + counts[..., -1, after] + counts[..., -1, -1]
        bounds[name] = ratio(certain, n), ratio(certain + possible, n)
    return bounds


def _reason(row: Row, size: int) -> str | None:
    if row["n"]:
        return None
    if row["n_unscored"]:
        return "no claim is scored by both"
    if row["n_one_chunk"]:
        left_out = f"{count(row['n_one_chunk'], 'claim')} about documents of at most {size} words left out"
        return f"no other claim with R2-diff {'over ' if row['r2_diff'] == 'positive' else ''}0; {left_out}"
    if row["r2_diff"] == "positive":
        return f"one chunk of {size} words has all that the claim shares with its document, for every claim"
    return "no claim has all that it shares with its document in one chunk"


def _complete(options: dict[str, Any], signatures: Mapping[str, str]) -> dict[str, Any]:
    """With the words in the chunks of evaluators that are `factaudit.evaluators.chunked.Chunked` and count words."""
    made = {name: re.fullmatch(r"chunked\|.*\|size:(\d+)\|unit:words", text) for name, text in signatures.items()}
    sizes = {name: int(found[1]) for name, found in made.items() if found}
    return {**options, "sizes": sizes} if sizes and not {"size", "sizes"} & set(options) else options


# ----------------------------------------------------------------------------------------------------------- findings

#: Chunking may turn this much more of the claims from 1 to 0 where no one chunk has all their bigrams.
MAX_EXTRA_FLIPS = 0.05


def _chunks(audited: Audited) -> Iterator[Finding]:
    """Claims that are supported by no single chunk, and are rejected because of it."""
    for evaluator, mine in by_evaluator(audited.per_dataset("chunking", "flip_1_to_0")):
        compared, bad = [], []
        for (dataset, chunked), group in by_keys(mine, "dataset", "chunked_evaluator"):
            kinds = {row["r2_diff"]: row for row in group}
            if set(kinds) != {"zero", "positive"}:
                continue
            split, whole = kinds["positive"], kinds["zero"]
            compared.append(dataset)
            if split["flip_1_to_0"] > max(whole["flip_1_to_0"] + MAX_EXTRA_FLIPS, split["flip_0_to_1"]):
                ends = range_of(split, "flip_1_to_0"), range_of(whole, "flip_1_to_0")
                sure = ends[0] is not None and ends[1] is not None and ends[0][0] > ends[1][1]
                bad.append((sure, split["flip_1_to_0"] - whole["flip_1_to_0"], dataset, chunked, split, whole))
        if not bad:
            continue
        sure, _, dataset, chunked, split, whole = max(bad, key=lambda each: each[:2])
        where = of_datasets(bad, compared)
        yield Finding(
            "fail" if sure else "warn",
            evaluator,
            dataset,
            f"Chunks make {evaluator} reject more of the claims whose wording is spread over them{where}: "
            f"{percent(split['flip_1_to_0'])} of {split['n']:,} on {dataset}, against "
            f"{percent(whole['flip_1_to_0'])} of the "
            "others. Give it whole documents, or larger chunks.",
            {
                "chunked_evaluator": chunked,
                "flip_1_to_0": split["flip_1_to_0"],
                "flip_1_to_0_of_others": whole["flip_1_to_0"],
                "flip_0_to_1": split["flip_0_to_1"],
                "n": split["n"],
            },
        )


# --------------------------------------------------------------------------------------------------------- declaration

_FLIPS = "shares of `n` that only the evaluator, and only its chunked counterpart, finds attributable"
_OPTIONS = {
    "by": "columns of the claims",
    "pairs": "from an evaluator to its chunked counterpart; by default every X with `chunked-X`",
    "size": "words in a chunk; without it and `sizes`, an evaluator that was run here brings its own",
    "sizes": "`{CHUNKED: words}`, of chunked evaluators that have another",
}

AUDITS = (
    Audit(
        name="chunking",
        place=100,
        title="What cutting documents into chunks changes",
        question="Which verdicts change when an evaluator reads a document in chunks?",
        source="VC §4.2, Fig. 6",
        formula="R2-diff = ROUGE-2 precision against the whole document − the maximum over its chunks. Flips: share of "
        "the claims' predictions that change from 1 to 0, and from 0 to 1, when the evaluator reads chunks.",
        text="A claim that draws on distant parts of a document cannot be verified from one chunk (VC §4.2).",
        columns={
            **shared("dataset", "evaluator", "chunked_evaluator"),
            "r2_diff": Column(
                "R2-diff",
                "text",
                "`zero`: one chunk has all the bigrams that the claim shares with its document; `positive`: none has",
                key=True,
            ),
            **shared("n", "n_unscored", "reason"),
            "chunk_size": Column("words in a chunk", "count", "words in a chunk", shown="any"),
            "n_one_chunk": Column(
                "one chunk", "count", "claims that are left out: their document is no longer than a chunk"
            ),
            "n_no_r2": Column("no R2", "count", "other claims of the group without R2-diff"),
            "flip_1_to_0": Column("flips 1 → 0", "percent", _FLIPS, bounds=True, interval=True),
            "flip_0_to_1": Column("flips 0 → 1", "percent", _FLIPS, bounds=True, interval=True),
        },
        options=_OPTIONS,
        compute=chunking,
        complete=_complete,
        plots=(
            Flips(
                what="Predictions that chunking flips, where one chunk holds all shared bigrams (R2-diff = 0) and "
                "where none does",
                keys=("flip_1_to_0", "flip_0_to_1"),
                pair=("evaluator", "chunked_evaluator"),
                by="r2_diff",
                values={"zero": "R2-diff = 0", "positive": "R2-diff > 0"},
            ),
        ),
        checks=(
            Check(
                "chunking",
                "Claims that chunks cannot support",
                "chunks turn claims to 0 that no one chunk has the words of",
                _chunks,
                {"flip_1_to_0_of_others": Column("flips 1 → 0 of others", "percent")},
            ),
        ),
    ),
    Audit(
        name="chunking_rates",
        place=110,
        title="Rates with and without chunks",
        question="How often is an evaluator right on long documents, with and without chunks?",
        source="VC §4.2, Table 30",
        formula="TPR, TNR, BAcc and PPR as above; a chunked evaluator's score is the maximum over chunks.",
        text="On documents that are longer than a chunk.",
        columns=RATES_COLUMNS
        | {"chunk_size": Column("words in a chunk", "count", "words in a chunk; null with `size: null`", shown="any")},
        options=_OPTIONS
        | {"size": _OPTIONS["size"] + "; null takes all claims, for documents that are long but not at hand"},
        compute=chunking_rates,
        complete=_complete,
        plots=(
            DotPlot(
                what="TPR, TNR and BAcc on long documents, with and without chunks",
                keys=("tpr", "tnr", "bacc"),
                guides={"bacc": 0.5},
            ),
        ),
    ),
)
