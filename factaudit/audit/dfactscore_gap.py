"""How much higher is FActScore than D-FActScore, response by response? (MF §4.3)"""

from __future__ import annotations

import numpy as np

from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_means import response_share_with_interval
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import RESPONSE_WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore import (
    DFACTSCORE_KEY_COLUMNS,
    LinkRule,
    has_fact_entities,
    iterate_audited_dfactscore_systems,
    select_dfactscore_options,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

#: "FActScore − D-FActScore is at least": the steps of `compute_dfactscore_gaps`.
GAP_STEPS = tuple(step / 20 for step in range(1, 21))


def compute_dfactscore_gaps(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    group: str = "group",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How FActScore - D-FActScore (no penalty) is distributed over the responses of each system.

    Rows: at_least (0.05, 0.1, ... 1; every response has a gap of at least 0), n (responses that have both scores),
    share (of them, with a gap of at least so much) and its interval.
    """
    rows = []
    for key, members in iterate_audited_dfactscore_systems(judgements, group):
        values = [score_biography(one, link, gamma=0)[0]["gap"] for one in members]
        known = np.array([value for value in values if value is not None])
        for step in GAP_STEPS:
            share = response_share_with_interval("share", (known >= step - 1e-9).tolist(), intervals)
            rows.append(key | {"at_least": step, "n": len(known)} | share)
    return rows


AUDIT = Audit(
    name="dfactscore_gap",
    after="dfactscore",
    title="How much FActScore leaves unseen, response by response",
    question="In how many responses is FActScore higher than D-FActScore, and by how much?",
    source="MF §4.3",
    formula=(
        "Share of responses whose FActScore is at least so much higher than their D-FActScore (without length penalty)."
    ),
    remedy="Read the responses with the largest gap (`dfactscore_elsewhere`).",
    columns=DFACTSCORE_KEY_COLUMNS
    | {
        "at_least": Column("a gap of at least", "points", "the gap", key=True, signed=False),
        **pick_shared_columns("n"),
        "share": Column("share of responses", "percent", "responses with such a gap", interval=RESPONSE_WILSON),
    },
    options=select_dfactscore_options("link", "group"),
    compute=compute_dfactscore_gaps,
    applies=has_fact_entities,
    plot=PlotSpec(
        what="Responses by their gap, FActScore − D-FActScore",
        keys=("share",),
        groups=("system", "at_least"),
        per_page=28,
    ),
)
