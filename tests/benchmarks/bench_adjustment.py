"""Calibrating on each system and correcting the others in every bootstrap replicate: counts against claims, in one run.

Ours sums what each cluster has of each kind of claim (system, score, label, prediction). The peer is the plain way in
numpy: it takes the drawn claims, sorts nothing it need not, and tunes and corrects again; it is timed on some of the
replicates. Both get the same draws, and their figures are compared.

    python tests/benchmarks/bench_adjustment.py [--replicates 2000] [--slow-replicates 40]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from table import Cost, clocked, report

from factaudit.arrays.calibration_claims import CalibrationClaims
from factaudit.arrays.resampled_calibration import ResampledCalibration, resample_calibrations
from factaudit.arrays.scored_claims import ScoredClaims
from factaudit.stats.adjusted_counts import adjust_counts
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.threshold_calibration import CORRECTION_METHODS, list_candidate_thresholds

SYSTEMS, DATASET = 6, "bench"


def make(n: int, seed: int = 0) -> ScoredClaims:
    """n labelled claims of 6 systems, a document for every 30; scores of three digits at most."""
    random = np.random.default_rng(seed)
    label = (random.random(n) < 0.7).astype(np.int8)
    score = np.clip(random.normal(0.3 + 0.4 * label, 0.25), 0, 1).round(2)
    at = np.arange(n)
    return ScoredClaims(at // 5 % SYSTEMS, label, (score > 0.5).astype(np.int8), score, at // 30)


def replicate(case: ScoredClaims, times: np.ndarray, tried: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Per method the rates (calibration, system) of claims of which each is taken so often."""
    rows = np.repeat(np.arange(len(times)), times)
    system, label, said, score = case.system[rows], case.label[rows], case.prediction[rows], case.score[rows]
    parts = [system == at for at in range(SYSTEMS)]
    scores = [score[part] for part in parts]
    table = np.bincount(system * 4 + label * 2 + said, minlength=SYSTEMS * 4).reshape(SYSTEMS, 2, 2)
    plain = np.array([(said[part] == 0).mean() for part in parts])
    found = {"none": np.tile(plain, (SYSTEMS, 1)), "adjusted_counts": adjust_counts(plain[None], table[:, None])}
    found |= {method: np.empty((SYSTEMS, SYSTEMS)) for method in CORRECTION_METHODS[2:]}
    for at, (part, thresholds) in enumerate(zip(parts, tried, strict=True)):
        below = [np.searchsorted(np.sort(score[part & (label == which)]), thresholds, side="right") for which in (0, 1)]
        errors, others = (label[part] == 0).sum(), (label[part] == 1).sum()
        losses = (np.abs(below[0] + below[1] - errors), below[1] * errors - below[0] * others)
        for method, loss in zip(CORRECTION_METHODS[2:], losses, strict=True):
            distance = np.where(loss == loss.min(), np.abs(thresholds - 0.5), np.inf)
            found[method][at] = [(mine <= thresholds[distance.argmin()]).mean() for mine in scores]
    return found


def again(case: ScoredClaims, replicates: int) -> ResampledCalibration:
    """Ours."""
    (found,) = resample_calibrations(
        [CalibrationClaims.of(case, SYSTEMS).bin_scores()], CORRECTION_METHODS, DATASET, ClusterBootstrap(replicates)
    )
    assert found is not None
    return found


def measure(n: int, replicates: int, timed: int) -> tuple[Cost, Cost, float]:
    """What ours takes, what the plain way would take, and the greatest difference of a rate on the same draws."""
    case = make(n)
    ours = clocked(lambda: again(case, replicates))
    tried = [list_candidate_thresholds(np.unique(case.score[case.system == at])) for at in range(SYSTEMS)]
    (drawn,) = ClusterBootstrap(timed).draw_cluster_weights(int(case.cluster.max()) + 1, DATASET)
    slow = clocked(lambda: [replicate(case, times[case.cluster], tried) for times in drawn])
    some = again(case, timed)
    worst = max(
        float(np.nanmax(np.abs(some.corrected_rates[method][..., at] - figures[method])))
        for at, figures in enumerate(slow.result)
        for method in CORRECTION_METHODS
    )
    scale = replicates / timed
    return ours, Cost(slow.cpu * scale, slow.wall * scale), worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--slow-replicates", type=int, default=40)
    args = parser.parse_args()
    met, growth = True, {}
    for n in (1_000, 10_000, 100_000):
        ours, slow, worst = measure(n, args.replicates, args.slow_replicates)
        growth[n] = ours
        work = f"{args.replicates:,} replicates of all calibrations of {SYSTEMS} systems, {n:,} claims"
        met &= report(work, ours, peer=("taking the drawn claims in numpy", slow), ratio=8, growth=growth)
        if worst > 1e-12:
            sys.exit(f"the figures differ by {worst:.1e}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
