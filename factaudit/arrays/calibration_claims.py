"""One system's labelled claims as what a calibration reads, and what the calibrations of all systems give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.arrays.scored_claims import BinnedScoredClaims, DistinctScoredClaims, ScoredClaims
from factaudit.stats.clustered_proportions import ClusterCounts, GroupClusterPairs, estimate_clustered_proportions
from factaudit.stats.mover import mover_proportion_sum
from factaudit.stats.threshold_calibration import (
    CORRECTION_METHODS,
    CandidateThresholds,
    ThresholdCalibratedErrorRates,
    calibrate_error_rates_at_thresholds,
    narrowest_integer_type,
)


def calibrate_error_rates_without_resampling(
    calibration_claims: CalibrationClaims, methods: Sequence[str]
) -> ThresholdCalibratedErrorRates:
    """`calibrate_error_rates_at_thresholds` the claims as they are: b = 1."""
    histograms, largest = (
        calibration_claims.claim_kinds.score_histograms(),
        int(calibration_claims.claim_kinds.n_claims.sum()),
    )
    thresholds = CandidateThresholds([scores for scores, _ in histograms])
    below = np.zeros((3, len(thresholds.candidates), 1), dtype=narrowest_integer_type(largest))
    for start, (_, counts) in zip(thresholds.starts.tolist(), histograms, strict=False):
        np.cumsum(counts, axis=1, out=below[:, start + 1 : start + 1 + counts.shape[1], 0])
    return calibrate_error_rates_at_thresholds(
        calibration_claims.claim_kinds.confusions[..., None], thresholds, below, methods
    )


def explain_unidentifiable_calibration(calibration_claims: CalibrationClaims, method: str) -> list[str | None]:
    """Why each system cannot calibrate; None where it can."""
    errors, others = calibration_claims.count_usable_claims(method)[:, :2, 1].T
    why: list[str | None] = [None] * calibration_claims.n_systems
    if method == "none":
        return why
    apart, low = (
        _compute_tnr_minus_fnr_by_calibration_system(calibration_claims)
        if method == "adjusted_counts"
        else (np.full(len(why), np.nan),) * 2
    )
    for at in range(len(why)):
        if not errors[at] + others[at]:
            why[at] = "no labelled claim that the method can use"
        elif method != "zero_bias_threshold" and not (errors[at] and others[at]):
            why[at] = "no labelled error" if others[at] else "labelled errors only"
        elif method != "adjusted_counts":
            continue
        elif apart[at] == 0:
            why[at] = "TNR = FNR"
        elif apart[at] < 0:
            why[at] = "TNR < FNR: on its labels the evaluator is no better than chance"
        elif not low[at] > 0:
            why[at] = "TNR − FNR is not clear of 0: the evaluator may do no better than chance on it"
    return why


def _compute_tnr_minus_fnr_by_calibration_system(
    calibration_claims: CalibrationClaims,
) -> tuple[np.ndarray, np.ndarray]:
    """TNR - FNR of each system, and the low end of its interval: (S,) each."""
    clusters = calibration_claims.count_confusion_by_cluster()
    counts = clusters.counts
    hits = np.stack([counts[:, 0], counts[:, 2]], 1)  # of errors TNR, of others FNR
    rates = estimate_clustered_proportions(clusters, hits, np.stack([counts[:, :2].sum(1), counts[:, 2:].sum(1)], 1))
    # The test is that of a correction's denominator, at 95 % whatever the confidence of a run's intervals.
    apart, (low, _) = mover_proportion_sum(rates, np.array([1.0, -1.0]), 0.95)
    return apart, low


def explain_missing_threshold(method: str) -> str:
    return "" if method in CORRECTION_METHODS[2:] else "the method has no threshold"


@dataclass(frozen=True)
class CalibrationClaims:
    """Labelled claims (or responses) of S systems of one dataset under one evaluator, as numbers.

    count_confusion_by_cluster: of each system's claims with a label and a prediction, clusters by their numbers in the
    cells of label and prediction, (k, 4); claim_parts: the claims themselves, in parts: read where their clusters are
    resampled, only.
    """

    claim_kinds: DistinctScoredClaims
    count_confusion_by_cluster: Callable[[], ClusterCounts]
    claim_parts: Callable[[], Iterable[ScoredClaims]]

    @classmethod
    def of(
        cls,
        claims: ScoredClaims,
        n_systems: int,
        group_clusters: GroupClusterPairs | None = None,
        claim_parts: Callable[[], Iterable[ScoredClaims]] | None = None,
    ) -> CalibrationClaims:
        """group_clusters: the pairs of a system and a cluster, where they are known; claim_parts: makes the claims
        again, so that who
        keeps what is `binned` need not keep them."""
        kinds = DistinctScoredClaims.of(claims.system, claims.label, claims.prediction, claims.score, n_systems)

        def right() -> ClusterCounts:
            known = (claims.label >= 0) & (claims.prediction >= 0)
            cells = np.where(known, claims.label.astype(np.int64) * 2 + claims.prediction, -1)
            found = (
                GroupClusterPairs.of(claims.system.astype(np.int64), claims.cluster, n_systems)
                if group_clusters is None
                else group_clusters
            )
            return found.count_codes(cells, 4)

        return cls(kinds, right, claim_parts or (lambda: [claims]))

    def bin_scores(self) -> BinnedScoredClaims:
        """By at most `MOST_SCORE_BINS` bins of scores."""
        return BinnedScoredClaims(self.claim_kinds.bin_edges(MOST_SCORE_BINS), self.claim_parts, self.n_systems)

    @property
    def n_systems(self) -> int:
        return self.claim_kinds.n_systems

    @cached_property
    def has_scores(self) -> bool:
        return not np.isnan(self.claim_kinds.distinct_scores).all()

    def count_usable_claims(self, method: str) -> np.ndarray:
        """int (S, 3, 2): numbers of claims by label (0, 1, none), of which the method can not use, and can.

        A method can use the claims with a prediction, or those with a score.
        """
        return self._usable_claim_counts[method in CORRECTION_METHODS[2:]]

    @cached_property
    def _usable_claim_counts(self) -> tuple[np.ndarray, np.ndarray]:
        kinds = self.claim_kinds
        every, scored = kinds.confusions.sum(-1), ~np.isnan(kinds.score)
        cells = kinds.system[scored] * 3 + kinds.label[scored] % 3
        with_score = np.bincount(cells, kinds.n_claims[scored], self.n_systems * 3).astype(np.int64).reshape(-1, 3)
        usable = (kinds.confusions[..., :2].sum(-1), with_score)
        predicted, tuned = (np.stack([every - each, each], axis=-1) for each in usable)
        return predicted, tuned


#: A replicate tunes thresholds between so many bins of scores; distinct scores up to this number have a bin each.
MOST_SCORE_BINS = 256
