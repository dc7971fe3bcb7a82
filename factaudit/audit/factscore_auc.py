"""Whether scores tell supported from unsupported facts: the area under the ROC curve (Min et al. 2023, §4.2)."""

from __future__ import annotations

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import collect_response_facts, has_human_response_facts, score_response_facts
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import RESPONSE_BOOTSTRAP
from factaudit.audit.core.plot_specs import DotPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import none_if_undefined


def compute_factscore_auc(judgements: Judgements, *, intervals: ClusterBootstrap | None = None) -> list[Row]:
    """How well scores tell supported from unsupported facts: the area under the ROC curve, per evaluator and system.

    Rows: n (labelled facts with a score), n_unscored (labelled facts without), auc; its interval resamples responses.
    None with a reason where one class is missing. Ties count half.
    """
    facts = collect_response_facts(judgements)
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        scores = score_response_facts(facts, judgements, at, 0).fact_score
        for key, inside in facts.responses_by_system():
            labelled = (facts.label >= 0) & inside[facts.response]
            use = labelled & ~np.isnan(scores)
            row: Row = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            row |= {"n": int(use.sum()), "n_unscored": int((labelled & ~use).sum())}
            auc, low, high = _resample_factscore_auc(facts.label[use], scores[use], facts.response[use], intervals)
            why = None if auc is not None else "no score" if not use.any() else "labels of one class only"
            rows.append(row | {"auc": auc, "auc_low": low, "auc_high": high, "reason": why})
    return rows


def _resample_factscore_auc(
    labels: np.ndarray, scores: np.ndarray, responses: np.ndarray, intervals: ClusterBootstrap | None
) -> tuple[float | None, float | None, float | None]:
    if not (labels == 1).any() or not (labels == 0).any():
        return None, None, None
    # Facts in the order of their scores; a resampled response counts as often as it was drawn.
    order = np.argsort(scores, kind="stable")
    positive = labels[order] == 1
    steps = np.flatnonzero(np.r_[True, np.diff(scores[order]) > 0])
    _, which = np.unique(responses[order], return_inverse=True)
    n = int(which.max()) + 1

    def auc(weights: np.ndarray) -> np.ndarray:
        up = np.add.reduceat(np.where(positive, weights, 0.0), steps, axis=1)
        down = np.add.reduceat(np.where(positive, 0.0, weights), steps, axis=1)
        pairs = up.sum(axis=1) * down.sum(axis=1)
        wins = (up * (np.cumsum(down, axis=1) - down / 2)).sum(axis=1)
        return np.divide(wins, pairs, out=np.full(len(weights), np.nan), where=pairs > 0)

    value = float(auc(np.ones((1, len(order))))[0])
    if n < 2 or intervals is None:
        return value, None, None
    rng = np.random.default_rng(intervals.seed)
    drawn = []
    for start in range(0, intervals.replicates, 100):  # 100 at a time: the weights are as wide as there are facts
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(100, intervals.replicates - start))
        drawn.append(auc(counts[:, which].astype(np.float64)))
    low, high = map(none_if_undefined, intervals.percentile_ends(np.concatenate(drawn)))
    return value, low, high


AUDIT = Audit(
    name="factscore_auc",
    after="annotator_agreement",
    title="Whether scores tell supported from unsupported facts",
    question="Do scores tell supported from unsupported facts, whatever the threshold?",
    source="Min et al. 2023, §4.2",
    formula="Area under the ROC curve over labelled facts; ties count half; intervals resample responses.",
    remedy="Near 0.5: the scores do not order facts, and no threshold helps.",
    columns={
        **pick_shared_columns("dataset", "evaluator", "system"),
        **pick_shared_columns("n", "n_unscored"),
        "auc": Column("AUC", "number", "area under the ROC curve", interval=RESPONSE_BOOTSTRAP, digits=3),
        **pick_shared_columns("reason"),
    },
    compute=compute_factscore_auc,
    applies=has_human_response_facts,
    plots=(DotPlotSpec(what="AUC of fact scores", keys=("auc",), groups=("system",), guides={"auc": 0.5}),),
)
