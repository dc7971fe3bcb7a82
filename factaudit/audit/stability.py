"""Does an evaluator say the same when it is asked again?"""

from __future__ import annotations

from operator import methodcaller

import numpy as np

from factaudit.arrays.figures import Figure, estimate_share
from factaudit.arrays.judgements import ClaimGroups, Judgements
from factaudit.audit.core.audit_declaration import (
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import MAX_FLIP_RATE
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, interleave, tabulate
from factaudit.stats import divide_or_undefined
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import count_codes_by_cluster


def compute_verdict_stability(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """How often two verdicts of one evaluator on one claim differ: a row per data set and evaluator
    that was asked more than once.

    flip_rate is over the pairs of verdicts on a claim. For its bounds, pairs with a missing verdict
    agree or differ.
    """
    groups, asked = judgements.make_groups("claim"), judgements.repeat_predictions
    if asked is None:
        return []
    tables = []
    for place, evaluator in enumerate(judgements.evaluators):
        said = asked[(asked[:, place] >= 0).any(1), place]
        if len(said) > 1:
            flip_rate, counts = _measure_flips(judgements, groups, said, intervals)
            keys = [key | {"evaluator": evaluator} for key in groups.keys]
            reasons = {"no claim has two verdicts": counts["n"] == 0}
            tables.append(tabulate(keys, counts, {"flip_rate": flip_rate}, reasons))
    return interleave(tables)


def _measure_flips(
    judgements: Judgements,
    groups: ClaimGroups,
    said: np.ndarray,
    intervals: ClusterBootstrap | None,
) -> tuple[Figure, dict[str, np.ndarray]]:
    """The flip rate of each group, and its numbers of claims. said: int8 (R, n), the predictions of
    each repeat."""
    n_groups, n_kinds = len(groups.keys), (len(said) + 1) ** 2
    # The kind of a claim: its number of verdicts, and how many of them are 1.
    kinds = (said >= 0).sum(0) * (len(said) + 1) + (said == 1).sum(0)
    verdicts, ones = np.divmod(np.arange(n_kinds), len(said) + 1)
    pairs, flips = verdicts * (verdicts - 1) // 2, ones * (verdicts - ones)
    clusters = count_codes_by_cluster(
        judgements.cluster_codes, groups.codes, n_groups, kinds, n_kinds
    )
    sums = clusters.counts @ np.stack([pairs, flips, verdicts > 1], axis=1)
    n_pairs, n_flips, n = clusters.sum_by_group(sums).T
    claims = np.bincount(groups.codes, minlength=n_groups)
    every = claims * pairs.max()
    bounds = (
        divide_or_undefined(n_flips, every),
        divide_or_undefined(n_flips + every - n_pairs, every),
    )
    confidence = None if intervals is None else intervals.confidence
    flip_rate = estimate_share(clusters, sums[:, 1], sums[:, 0], confidence, bounds)
    n = n.astype(np.int64)
    return flip_rate, {"n": n, "n_unscored": claims - n, "n_repeats": np.full(n_groups, len(said))}


CHECK = Check(
    id="stability",
    title="Verdicts that change when asked again",
    rows=methodcaller("per_dataset", "stability"),
    figure="flip_rate",
    limit=MAX_FLIP_RATE,
    says="Asked again, {evaluator} changes {flip_rate:percent} of its verdicts{on}, {verdict}.",
    beyond="more than {limit:limit} %",
    advice="All its figures vary by chance; ask several times and take the majority.",
    within=(
        "Asked again, {evaluator} changes {flip_rate:percent} of its verdicts{on}, and no more on"
        " any data set."
    ),
    null="at most 5 % of the verdicts change, on every data set",
    is_share=True,
)


AUDIT = Audit(
    name="stability",
    title="Whether an evaluator agrees with itself",
    question="Does an evaluator give the same verdict if it is asked again?",
    formula="Flip rate = pairs of verdicts on one claim that differ / all such pairs.",
    text=(
        "What changes from one repetition to the next is chance, and no interval over claims"
        " includes it."
    ),
    remedy="Ask at temperature 0, or several times and take the majority.",
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "n": Column("n", "count", "claims with at least two verdicts"),
        "n_unscored": Column("unscored", "count", "claims with fewer verdicts"),
        "n_repeats": Column("repeats", "count", "how often the evaluator was asked"),
        "flip_rate": share_column("flip rate", "share of pairs of verdicts that differ"),
        **pick_shared_columns("reason"),
    },
    compute=compute_verdict_stability,
    applies=lambda judged: judged.repeat_predictions is not None,
    plot=PlotSpec(what="Verdicts that change when asked again", keys=("flip_rate",)),
    checks=(CHECK,),
)
