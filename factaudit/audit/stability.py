"""Does an evaluator say the same when it is asked again?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure, Figures, compute_rates
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Column, pick_shared_columns
from factaudit.audit.core.checks import Check, is_within, per_dataset
from factaudit.audit.core.decision_limits import MAX_FLIP_RATE, has_interval, is_significantly_above
from factaudit.audit.core.decisions import Answer, Decision, decide
from factaudit.audit.core.figure_formatting import format_limit_in_points
from factaudit.audit.core.interval_methods import KAPPA, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.tabulate import interleave, tabulate
from factaudit.audit.core.wording import fill
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import count_codes_by_cluster, estimate_clustered_proportions
from factaudit.stats.undefined_values import divide_or_undefined

SPREAD_RATES = {"tpr": "TPR", "tnr": "TNR", "bacc": "BAcc", "ppr": "PPR"}


def compute_verdict_stability(
    judgements: Judgements, *, by: Sequence[str] = ("dataset",), intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """How often two verdicts of one evaluator on one claim differ, and how far its rates lie apart over its repeats.

    A row per group of ``by`` and evaluator that was asked more than once. flip_rate is over the pairs of verdicts on a
    claim; its bounds let the pairs that lack one agree, or differ. Spreads are over few repeats: without interval.
    """
    groups = judgements.make_groups("claim", by)
    asked = judgements.prediction[None] if judgements.repeat_predictions is None else judgements.repeat_predictions
    tables = []
    for place, evaluator in enumerate(judgements.evaluators):
        said = asked[(asked[:, place] >= 0).any(1), place]
        if len(said) < 2:
            continue
        rates = [compute_rates(judgements.tally_values(groups, (judgements.label, one)), None) for one in said]
        spreads = {rate: np.ptp([one[rate].point for one in rates], axis=0) for rate in SPREAD_RATES}
        figures, counts = _measure_flips(judgements, groups, said, intervals)
        figures |= {f"{rate}_spread": Figure(spread) for rate, spread in spreads.items()}
        is_alike = np.isnan(figures["kappa"].point)
        reasons = {
            "all verdicts are the same": is_alike & (counts["n"] > 0),
            "no claim has two verdicts": counts["n"] == 0,
            "a spread is of rates that every repeat has": np.isnan(list(spreads.values())).any(0),
        }
        tables.append(tabulate([{**key, "evaluator": evaluator} for key in groups.keys], counts, figures, reasons))
    return interleave(tables)


def _measure_flips(
    judgements: Judgements, groups: ClaimGroups, said: np.ndarray, intervals: ClusterBootstrap | None
) -> tuple[Figures, dict[str, np.ndarray]]:
    """The flip rate and κ of each group, and its numbers of claims; said: int8 (R, n), what each repeat predicts."""
    n_groups, n_kinds = len(groups.keys), (len(said) + 1) ** 2
    # A claim's kind: how many of its verdicts are 1, of how many.
    kinds = (said >= 0).sum(0) * (len(said) + 1) + (said == 1).sum(0)
    verdicts, ones = np.divmod(np.arange(n_kinds), len(said) + 1)
    pairs, flips, twice = verdicts * (verdicts - 1) // 2, ones * (verdicts - ones), verdicts > 1
    terms = np.stack([pairs, flips, ones * twice, verdicts * twice, twice], axis=1)
    clusters = count_codes_by_cluster(judgements.cluster_codes, groups.codes, n_groups, kinds, n_kinds)
    sums = clusters.counts @ terms
    total = clusters.sum_by_group(sums)
    share = estimate_clustered_proportions(clusters, sums[:, [1]], sums[:, [0]])
    claims = np.bincount(groups.codes, minlength=n_groups)
    every = claims * pairs.max()
    bounds = divide_or_undefined(total[:, 1], every), divide_or_undefined(total[:, 1] + every - total[:, 0], every)
    flip_rate = Figure(share.point[:, 0], bounds)
    p = divide_or_undefined(total[:, 2], total[:, 3])
    by_chance = 2 * p * (1 - p)
    # The agreement beyond chance; its interval is the flip rate's, p held fixed.
    kappa = Figure(1 - divide_or_undefined(flip_rate.point, by_chance))
    if intervals is not None:
        low, high = (ends[:, 0] for ends in share.wilson_intervals(intervals.confidence))
        flip_rate = replace(flip_rate, interval=(low, high))
        ends = 1 - divide_or_undefined(high, by_chance), 1 - divide_or_undefined(low, by_chance)
        kappa = replace(kappa, interval=ends)
    n = total[:, 4].astype(np.int64)
    counts = {"n": n, "n_unscored": claims - n, "n_repeats": np.full(n_groups, len(said))}
    return {"flip_rate": flip_rate, "kappa": kappa}, counts


CHECK = Check(
    id="stability",
    title="Verdicts that change when asked again",
    rows=per_dataset("stability"),
    figure="flip_rate",
    limit=MAX_FLIP_RATE,
    says="Asked again, {evaluator} changes {flip_rate:percent} of its verdicts{on}, {verdict}.",
    beyond="more than {limit:limit} %",
    advice="All its figures vary by chance; ask several times and take the majority.",
    within="Asked again, {evaluator} changes {flip_rate:percent} of its verdicts{on}, and no more on any data set.",
    null="at most 5 % of the verdicts change, on every data set",
    is_share=True,
    by_figure=True,
)


def _may_be_asked_once(run: AuditedRun, evaluator: str) -> Answer | None:
    """May what was measured once be read as what the evaluator says?"""
    rows = [row for row in run.per_dataset("stability", "flip_rate") if row["evaluator"] == evaluator]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["flip_rate"])
    figure = fill("{flip_rate:percent} of its verdicts change", worst)
    required = f"at most {format_limit_in_points(MAX_FLIP_RATE)} % of the verdicts change when asked again"
    return decide(
        figure,
        required,
        is_met=all(is_within(row, "flip_rate", MAX_FLIP_RATE, "off") for row in rows),
        is_missed=is_significantly_above(worst, "flip_rate", MAX_FLIP_RATE),
        has_intervals=has_interval(worst, "flip_rate"),
    )


_SPREAD_DESCRIPTION = "highest − lowest value over the repetitions; it grows with their number"
AUDIT = Audit(
    name="stability",
    title="Whether an evaluator agrees with itself",
    question="Does an evaluator give the same verdict if it is asked again?",
    formula=(
        "Flip rate = pairs of verdicts on one claim that differ / all such pairs. κ = 1 − flip rate / (2p(1 − "
        "p)), where p is the share of verdicts that are 1 (Fleiss). Spread = highest − lowest value over the "
        "repetitions."
    ),
    text="What changes from one repetition to the next is chance, and no interval over claims includes it.",
    remedy=(
        "Treat differences smaller than the spread as chance. Ask at temperature 0, or several times and take "
        "the majority."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "n": Column("n", "count", "claims with at least two verdicts"),
        "n_unscored": Column("unscored", "count", "claims with fewer verdicts"),
        "n_repeats": Column("repeats", "count", "how often the evaluator was asked"),
        "flip_rate": Column(
            "flip rate", "percent", "share of pairs of verdicts that differ", bounds=True, interval=WILSON
        ),
        "kappa": Column(
            "κ with itself", "number", "agreement of the repetitions beyond chance", digits=2, interval=KAPPA
        ),
        **{
            f"{r}_spread": Column(f"{name} spread", "points", _SPREAD_DESCRIPTION, signed=False)
            for r, name in SPREAD_RATES.items()
        },
        **pick_shared_columns("reason"),
    },
    options={"by": "columns of the claims table that form the groups"},
    compute=compute_verdict_stability,
    applies=lambda judged: judged.repeat_predictions is not None,
    decides=(Decision("answer the same again", _may_be_asked_once),),
    plot=PlotSpec(what="Verdicts that change, and rates over repeats", keys=("flip_rate", "bacc_spread")),
    checks=(CHECK,),
)
