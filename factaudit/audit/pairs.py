"""Does an evaluator tell a claim from its minimally changed twin? (BUMP, Ma et al. 2023, §4)"""

from __future__ import annotations

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER, group_claims_by_columns
from factaudit.arrays.figures import share_units
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.checks import Check
from factaudit.audit.core.interval_methods import WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

#: Column of a claims table: on an unattributable claim the claim_id of the attributable one that it was made of.
PAIR_COLUMN = "pair_of"
#: An evaluator should tell more than this share of twins apart; a coin does a quarter, always-yes none.
MIN_TOLD_APART = 0.5
_PAIR_FIGURES = ("told_apart", "same", "ranked")


def compute_minimal_pair_shares(
    judgements: Judgements, *, kinds: str = "error_type", intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """Shares of pairs (an attributable claim and its unattributable twin): a row per dataset, kind of error, evaluator.

    told_apart: the one predicted 1 and the other 0 (bounds let what is unscored be right, or wrong). same: both
    predicted alike. ranked: the attributable one scored strictly higher, of pairs with two scores. ``kinds``: a column
    of the twin; `ALL_TOGETHER` is all kinds together. A pair is of the twin's dataset; clusters are documents.
    """
    twins, originals = _find_minimal_pair_twins(judgements.claims)
    groups = group_claims_by_columns(judgements.claims, ("dataset",))
    named = (
        judgements.claims[kinds].to_numpy(dtype=object)[twins]
        if kinds in judgements.claims
        else np.full(len(twins), None)
    )
    known = sorted({str(kind) for kind in named if not pd.isna(kind)})
    rows: list[Row] = []
    for at, group in enumerate(groups.keys):
        mine = groups.codes[twins] == at
        for kind in [ALL_TOGETHER, *known] if len(known) > 1 else [ALL_TOGETHER]:
            chosen = mine if kind == ALL_TOGETHER else mine & np.array([str(one) == kind for one in named], dtype=bool)
            if chosen.any():
                rows += [
                    _build_minimal_pair_row(
                        {**group, "error_type": kind}, judgements, place, twins[chosen], originals[chosen], intervals
                    )
                    for place in range(len(judgements.evaluators))
                ]
    return rows


def _find_minimal_pair_twins(claims: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the twins, and those of the claims that they were made of; twins of unknown claims are left out."""
    if PAIR_COLUMN not in claims:
        raise UsageError(
            f"audit 'pairs': the claims have no column {PAIR_COLUMN!r}, the claim_id that a claim was made of"
        )
    place = {claim_id: row for row, claim_id in enumerate(claims["claim_id"])}
    found = [
        (row, place[original])
        for row, original in enumerate(claims[PAIR_COLUMN])
        if not pd.isna(original) and original in place
    ]
    rows = np.array(found, dtype=np.int64).reshape(-1, 2)
    labels = claims["label"].fillna(-1).to_numpy(dtype=np.int64)
    rows = rows[(labels[rows[:, 0]] == 0) & (labels[rows[:, 1]] == 1)]
    return rows[:, 0], rows[:, 1]


def _build_minimal_pair_row(
    keys: Row,
    judgements: Judgements,
    place: int,
    twins: np.ndarray,
    originals: np.ndarray,
    intervals: ClusterBootstrap | None,
) -> Row:
    changed, kept = judgements.prediction[place, twins], judgements.prediction[place, originals]
    low, high = judgements.score[place, twins], judgements.score[place, originals]
    is_scored, has_scores = (changed >= 0) & (kept >= 0), ~np.isnan(low) & ~np.isnan(high)
    right = (changed == 0) & (kept == 1)
    possible = right | ((changed != 1) & (kept != 0) & ~is_scored)
    clusters, confidence = judgements.cluster_codes[twins], None if intervals is None else intervals.confidence
    bounds = right.mean(keepdims=True), possible.mean(keepdims=True)
    figures = {
        "told_apart": share_units(right, is_scored, clusters, confidence, bounds),
        "same": share_units(changed == kept, is_scored, clusters, confidence),
        "ranked": share_units(high > low, has_scores, clusters, confidence),
    }
    n = int(is_scored.sum())
    reasons = [
        ["" if n else "no pair has two predictions"],
        ["" if has_scores.any() else "no scores: pairs cannot be ranked"],
    ]
    row = keys | {"evaluator": judgements.evaluators[place], "n": n, "n_unscored": len(twins) - n}
    return tabulate([row], {}, figures, reasons)[0]


CHECK = Check(
    id="pairs",
    title="Changed claims that the evaluator does not notice",
    rows=lambda run: [row for row in run.rows("pairs") if row["error_type"] == ALL_TOGETHER],
    figure="told_apart",
    limit=MIN_TOLD_APART,
    side="under",
    says="{evaluator} passes a claim and flags its changed twin in {told_apart:percent} of the pairs{on}, {verdict}.",
    beyond="less than half of them",
    advice="See which kinds of change it misses, and do not use it to find errors of these kinds.",
    null="at least half of the pairs are judged rightly on every data set",
    is_share=True,
    by_figure=True,
)

AUDIT = Audit(
    name="pairs",
    after="adjusted_bias",
    title="Whether a claim and its changed twin are judged rightly",
    question="Does an evaluator tell a claim from a copy in which one thing was changed?",
    source="Ma et al. 2023, BUMP, §4",
    formula=(
        "Both right = pairs with prediction 1 for the supported claim and 0 for the changed one / pairs with "
        "two predictions. Ranked = pairs in which the supported claim has the higher score / pairs with two "
        "scores."
    ),
    text="The two claims of a pair differ in one thing only, so topic, length and style cannot help.",
    remedy="See which kinds of change it misses, and do not use it to find errors of these kinds.",
    columns={
        **pick_shared_columns("dataset"),
        "error_type": Column(
            "kind of error",
            "text",
            "what was changed (column `error_type` of the claims)",
            key=True,
            values={ALL_TOGETHER: "all"},
        ),
        **pick_shared_columns("evaluator"),
        "n": Column("n", "count", "pairs with two predictions"),
        "n_unscored": Column("unscored", "count", "pairs with fewer predictions"),
        "told_apart": Column(
            "both right",
            "percent",
            "share of pairs in which both claims are judged correctly",
            bounds=True,
            interval=WILSON,
        ),
        "same": Column("same verdict", "percent", "share of pairs with the same verdict", interval=WILSON),
        "ranked": Column(
            "ranked", "percent", "share of pairs in which the supported claim has the higher score", interval=WILSON
        ),
        **pick_shared_columns("reason"),
    },
    options={"kinds": "the column with the kind of error"},
    compute=compute_minimal_pair_shares,
    applies=lambda judged: PAIR_COLUMN in judged.claims and bool(judged.claims[PAIR_COLUMN].notna().any()),
    plot=PlotSpec(
        what="Pairs of a claim and its changed twin that are judged rightly",
        keys=_PAIR_FIGURES,
        groups=("dataset", "error_type"),
    ),
    checks=(CHECK,),
)
