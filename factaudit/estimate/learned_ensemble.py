"""An ensemble of evaluators learned from labels, and whether it is better than its best member.

Nested cross-validation: outer folds leave whole documents out. On the others the ensemble is fitted, the threshold of
each is chosen, and so is the best member; the claims left out are then predicted by all of them. So nothing is chosen
by the labels it is measured on, and the difference from the best member is that of two procedures, each with its own
luck in choosing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.count_source import check_count_source_evaluators
from factaudit.arrays.paired_changes import compute_paired_changes
from factaudit.audit.core.result_rows import Row
from factaudit.blas_threads import use_one_blas_thread
from factaudit.errors import UsageError
from factaudit.estimate.triage import read_labelled_judgements
from factaudit.evaluators.error_odds import ErrorOdds
from factaudit.evaluators.learned_ensemble import LearnedEnsembleRule
from factaudit.stats.bacc_threshold import find_best_bacc_threshold
from factaudit.stats.score_combination import split_cluster_folds
from factaudit.stats.undefined_values import none_if_undefined

#: Fewer labelled claims of a kind would leave folds without one.
_MIN_LABELS_OF_A_KIND = 10


@dataclass(frozen=True)
class EnsembleEvaluation:
    """What `learn_ensemble` found.

    rule: fitted to all labels; rows: of the ensemble (``ensemble``), the best member as chosen inside the folds (``best
    member``) and each member: bacc, tpr, tnr of claims that were left out, threshold from all labels, and of the first
    ``gain`` over the best member with gain_low, gain_high; statement: whether to use it.
    """

    rule: LearnedEnsembleRule
    rows: list[Row]
    statement: str


@use_one_blas_thread()
def learn_ensemble(
    claims: Any,
    verdicts: Any,
    *,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
    evaluators: Sequence[str] = (),
    confidence: float = 0.95,
    seed: int = 0,
) -> EnsembleEvaluation:
    """Learn weights of evaluators' scores from labels, none below 0, and say whether the ensemble is worth it.

    It is recommended only where the interval of its gain over the best member, in balanced accuracy on claims of other
    documents, is above 0. Raises `UsageError` where there are too few labels or evaluators.
    """
    judgements, rows = read_labelled_judgements(claims, verdicts, annotations, None, rule)
    names = list(evaluators or judgements.evaluators)
    check_count_source_evaluators(names, judgements.evaluators)
    if len(names) < 2:
        raise UsageError("an ensemble needs two evaluators or more")
    score = judgements.compute_support(names)[:, rows]
    is_scored = ~np.isnan(score).any(axis=0)
    score, rows = score[:, is_scored], rows[is_scored]
    label, cluster = judgements.label[rows].astype(np.int64), judgements.cluster_codes[rows]
    n_least = min(int((label == value).sum()) for value in (0, 1))
    if n_least < _MIN_LABELS_OF_A_KIND:
        raise UsageError(
            f"expected {_MIN_LABELS_OF_A_KIND} labelled errors and as many correct claims, found {n_least}"
        )
    if cluster.min() == cluster.max():
        raise UsageError("expected claims on two documents or more: it is tried on those that it has not learned from")
    predicted = _cross_validate_ensemble_predictions(score, label, cluster, np.random.default_rng(seed))
    ensemble = LearnedEnsembleRule.fit(names, score, label)
    own = [ensemble.threshold, None, *(find_best_bacc_threshold(label, one) for one in score)]
    labels = ["ensemble", "best member", *names]
    found = [
        _describe_predictions(name, label, one, threshold)
        for name, one, threshold in zip(labels, predicted, own, strict=True)
    ]
    gain = compute_paired_changes(
        label, predicted[1], predicted[0], np.zeros(len(label), dtype=np.int64), 1, cluster, confidence
    )["bacc"]
    for key, value in zip(("gain", "gain_low", "gain_high"), gain[2:], strict=True):
        found[0][key] = none_if_undefined(float(value[0]))
    best = max(found[2:], key=lambda row: row["bacc"])["evaluator"]
    is_better = (found[0]["gain_low"] or 0) > 0
    told = _describe_ensemble_gain(found[0], best, is_better, confidence, int((~is_scored).sum()))
    about = {key: found[0][key] for key in ("bacc", "gain", "gain_low", "gain_high")}
    return EnsembleEvaluation(ensemble.with_measured_figures({**about, "is_recommended": is_better}), found, told)


def _cross_validate_ensemble_predictions(
    score: np.ndarray, label: np.ndarray, cluster: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Predictions of claims whose documents were left out: float64 (E + 2, n), ensemble, best member, each member."""
    predicted = np.full((len(score) + 2, len(label)), np.nan)
    for inside in split_cluster_folds(cluster, random):
        train = ~inside
        odds = ErrorOdds.fit([str(at) for at in range(len(score))], score[:, train], 1.0 - label[train])
        support = [1 - odds.compute_error_probabilities(score), *score]
        baccs = []
        for at, one in enumerate(support):
            threshold = find_best_bacc_threshold(label[train], one[train])
            if threshold is None:
                continue
            said = one > threshold
            predicted[at + (at > 0), inside] = said[inside]
            baccs.append(np.mean([(said == label)[train & (label == value)].mean() for value in (0, 1)]))
        if len(baccs) == len(support):
            predicted[1, inside] = predicted[2 + int(np.argmax(baccs[1:])), inside]
    return predicted


def _describe_predictions(name: str, label: np.ndarray, predicted: np.ndarray, threshold: float | None) -> Row:
    rates = {key: float(np.nanmean(predicted[label == value] == value)) for key, value in (("tpr", 1), ("tnr", 0))}
    row: Row = {"evaluator": name, "n": int((~np.isnan(predicted)).sum()), "bacc": sum(rates.values()) / 2}
    return row | rates | {"threshold": threshold}


def _describe_ensemble_gain(
    row: Mapping[str, Any], best: str, is_better: bool, confidence: float, n_unscored: int
) -> str:
    low, high = row["gain_low"], row["gain_high"]
    interval = "" if low is None else f", {100 * confidence:g} % CI {100 * low:+.1f} to {100 * high:+.1f}"
    gain = f"(balanced accuracy {100 * row['gain']:+.1f} points{interval})".replace("-", "−")
    if is_better:
        text = (
            f"Use the ensemble: on documents left out it is better than the member that is best on the others {gain}."
        )
    else:
        text = f"Keep {best}: on documents left out the ensemble is not significantly better than the member that is "
        text += f"best on the other documents {gain}."
    return text + (f" {n_unscored:,} labelled claims that an evaluator left unscored do not count." * (n_unscored > 0))
