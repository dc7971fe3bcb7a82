"""Does an evaluator tell a claim from its minimally changed twin? (BUMP, Ma et al. 2023, §4)"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from factaudit.audit.core.checks import beyond, by_evaluator, evidence_of
from factaudit.audit.core.declare import Audit, Audited, Check, Column, Finding, shared
from factaudit.audit.core.groups import group_by
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import ALL, Row, number, ratio, reasons, without_interval
from factaudit.audit.core.shares import by_cluster, shares
from factaudit.audit.core.words import percent
from factaudit.errors import UsageError

#: Column of a claims table: on an unattributable claim the claim_id of the attributable one that it was made of.
PAIR_OF = "pair_of"
#: An evaluator should tell more than this share of twins apart; a coin does a quarter, always-yes none.
MIN_TOLD_APART = 0.5
_FIGURES = ("told_apart", "same", "ranked")


def pairs(judged: Judged, *, kinds: str = "error_type", intervals: Intervals | None = None) -> list[Row]:
    """Shares of pairs (an attributable claim and its unattributable twin): a row per dataset, kind of error, evaluator.

    told_apart: the one predicted 1 and the other 0 (bounds let what is unscored be right, or wrong). same: both
    predicted alike. ranked: the attributable one scored strictly higher, of pairs with two scores. ``kinds``: a column
    of the twin; `ALL` is all kinds together. A pair is of the twin's dataset; clusters are documents.
    """
    twins, originals = _pairs(judged.claims)
    groups = group_by(judged.claims, ("dataset",))
    named = judged.claims[kinds].to_numpy(dtype=object)[twins] if kinds in judged.claims else np.full(len(twins), None)
    known = sorted({str(kind) for kind in named if not pd.isna(kind)})
    rows: list[Row] = []
    for at, group in enumerate(groups.keys):
        mine = groups.codes[twins] == at
        for kind in [ALL, *known] if len(known) > 1 else [ALL]:
            chosen = mine if kind == ALL else mine & np.array([str(one) == kind for one in named], dtype=bool)
            if chosen.any():
                rows += [
                    _row({**group, "error_type": kind}, judged, place, twins[chosen], originals[chosen], intervals)
                    for place in range(len(judged.evaluators))
                ]
    return rows


def _pairs(claims: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the twins, and those of the claims that they were made of; twins of unknown claims are left out."""
    if PAIR_OF not in claims:
        raise UsageError(f"audit 'pairs': the claims have no column {PAIR_OF!r}, the claim_id that a claim was made of")
    place = {claim_id: row for row, claim_id in enumerate(claims["claim_id"])}
    found = [
        (row, place[original])
        for row, original in enumerate(claims[PAIR_OF])
        if not pd.isna(original) and original in place
    ]
    rows = np.array(found, dtype=np.int64).reshape(-1, 2)
    labels = claims["label"].fillna(-1).to_numpy(dtype=np.int64)
    rows = rows[(labels[rows[:, 0]] == 0) & (labels[rows[:, 1]] == 1)]
    return rows[:, 0], rows[:, 1]


def _row(
    keys: Row, judged: Judged, at: int, twins: np.ndarray, originals: np.ndarray, intervals: Intervals | None
) -> Row:
    changed, kept = judged.prediction[at, twins], judged.prediction[at, originals]
    scores = judged.score[at, twins], judged.score[at, originals]
    scored = (changed >= 0) & (kept >= 0)
    right = (changed == 0) & (kept == 1)
    possible = (changed != 1) & (kept != 0)
    both = ~np.isnan(scores[0]) & ~np.isnan(scores[1])
    hits = {"told_apart": (right, scored), "same": (changed == kept, scored), "ranked": (scores[1] > scores[0], both)}
    n = int(scored.sum())
    row: Row = {**keys, "evaluator": judged.evaluators[at], "n": n, "n_unscored": len(twins) - n}
    for key, (hit, of) in hits.items():
        row |= _share(key, judged, twins, hit, of, intervals)
    row["told_apart_min"] = number(ratio(right.sum(), len(twins)))
    row["told_apart_max"] = number(ratio((right | (possible & ~scored)).sum(), len(twins)))
    why = ["" if n else "no pair has two predictions", "" if both.any() else "no scores: pairs cannot be ranked"]
    return row | {"reason": reasons([*why, without_interval(row)])}


def _share(
    key: str, judged: Judged, twins: np.ndarray, hit: np.ndarray, of: np.ndarray, intervals: Intervals | None
) -> Row:
    """A share of pairs with its interval: a pair stands at its twin's row."""
    ends = (f"{key}_low", f"{key}_high") if intervals is not None else ()
    if not of.any():
        return dict.fromkeys((key, *ends))
    codes = np.full(len(judged.claims), -1, dtype=np.int64)
    codes[twins[of]] = hit[of]
    clusters = by_cluster(judged.clusters, np.zeros(len(codes), dtype=np.int64), 1, codes, 2)
    found = shares(clusters, clusters.counts[:, [1]], clusters.counts.sum(1, keepdims=True))
    row: Row = {key: number(found.point[0, 0])}
    if intervals is not None:
        row |= {end: number(limit[0, 0]) for end, limit in zip(ends, found.limits(intervals.confidence), strict=True)}
    return row


def _alike(audited: Audited) -> Iterator[Finding]:
    """Evaluators that give a claim and its changed twin the same verdict."""
    rows = [row for row in audited.rows("pairs") if row["told_apart"] is not None]
    for evaluator, mine in by_evaluator(row for row in rows if row["error_type"] == ALL):
        worst = min(mine, key=lambda row: row["told_apart"])
        if worst["told_apart"] > MIN_TOLD_APART:
            continue
        kinds = [
            (row["told_apart"], row["error_type"])
            for row in rows
            if (row["evaluator"], row["dataset"]) == (evaluator, worst["dataset"]) and row["error_type"] != ALL
        ]
        hardest = min(kinds, default=None)
        least = f", least where the change is a {hardest[1]} ({percent(hardest[0])})" if hardest else ""
        yield Finding(
            beyond(worst, "told_apart", MIN_TOLD_APART, below=True),
            evaluator,
            worst["dataset"],
            f"On {worst['dataset']}, {evaluator} tells {percent(worst['told_apart'])} of the claims from their changed "
            f"twins{least}: what it passes need not be what the document says.",
            evidence_of(worst, "told_apart", "told_apart_low", "told_apart_high", "same", "ranked", "n"),
        )


AUDIT = Audit(
    name="pairs",
    place=125,
    title="Whether a claim is told from its changed twin",
    question="Does an evaluator tell a claim from a twin in which one thing was changed?",
    source="Ma et al. 2023, BUMP, §4",
    formula="Told apart = pairs with prediction 1 for the attributable claim and 0 for its twin / pairs with two "
    "predictions; ranked = pairs where the attributable claim has the higher score / pairs with two scores.",
    text="All else in a pair is the same, so that neither topic nor length nor style can help.",
    columns={
        **shared("dataset"),
        "error_type": Column(
            "kind of error", "text", "what was changed (`error_type` of the claims)", key=True, values={ALL: "all"}
        ),
        **shared("evaluator"),
        "n": Column("n", "count", "pairs with two predictions"),
        "n_unscored": Column("unscored", "count", "pairs with fewer"),
        "told_apart": Column(
            "told apart", "percent", "share of pairs judged rightly, both", bounds=True, interval=True
        ),
        "same": Column("same verdict", "percent", "share of pairs with the same verdict", interval=True),
        "ranked": Column("ranked", "percent", "share of pairs with the right one higher", interval=True),
        **shared("reason"),
    },
    options={"kinds": "the column of the claims that has the kinds of error"},
    compute=pairs,
    applies=lambda judged: PAIR_OF in judged.claims and bool(judged.claims[PAIR_OF].notna().any()),
    plots=(DotPlot(what="Pairs of a claim and its changed twin that are told apart", keys=_FIGURES),),
    checks=(Check("pairs", "Claims not told from their changed twins", "at most half of the pairs", _alike),),
)
