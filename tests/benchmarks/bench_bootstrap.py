"""Cluster bootstrap from sufficient statistics against re-indexing a DataFrame, side by side, on the same draws.

All rates of 5 evaluators over 29,320 claims in 11 datasets (the sizes of LLM-AggreFact's test set), 2,000 replicates.
The slow way takes the drawn rows out of a DataFrame and counts them again in each replicate; it is timed on some of the
replicates. Both get the same draws, and their figures are compared.

    python tests/benchmarks/bench_bootstrap.py [--replicates 2000] [--slow-replicates 40]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd

from factaudit.audit.core import counts as nine
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.kinds import tally
from factaudit.audit.core.tallies import LABEL, says
from factaudit.audit.rates import rates
from factaudit.tables import validate_claims, validate_verdicts

#: Claims per dataset of LLM-AggreFact's test set, as in its published scores.
SIZES = (558, 558, 726, 772, 358, 1710, 1088, 1566, 3702, 1911, 16371)
EVALUATORS = 5
CELLS = nine.CELLS


def make(cluster_size: int, seed: int = 0) -> Judged:
    """Claims in clusters of one (no document is named, as in the published scores) or of several claims."""
    random = np.random.default_rng(seed)
    n = sum(SIZES)
    label = (random.random(n) < 0.75).astype(int)
    dataset = np.repeat([f"dataset-{at:02}" for at in range(len(SIZES))], SIZES)
    ids = np.array([f"c{at}" for at in range(n)])
    claims = pd.DataFrame({"claim_id": ids, "dataset": dataset, "claim": "x", "label": label})
    if cluster_size > 1:
        claims["doc_id"] = [f"{at // cluster_size}" for at in range(n)]
    verdicts = [
        pd.DataFrame(
            {
                "claim_id": ids,
                "evaluator": f"evaluator-{e}",
                "score": np.clip(random.normal(0.3 + 0.4 * label, 0.3), 0, 1),
            }
        )
        for e in range(EVALUATORS)
    ]
    return Judged.join(validate_claims(claims), validate_verdicts(pd.concat(verdicts, ignore_index=True)))


def draws(judged: Judged, evaluator: int, intervals: Intervals) -> tuple[np.ndarray, list[np.ndarray]]:
    """The counts (replicates, datasets, 9) as `rates` has them, and how often each takes each row (replicates, n).

    Statistics say how often each *kind* of cluster was drawn; any cluster of the kind gives the same figures, so the
    rows to take are those of the kind's first cluster, that many times.
    """
    stratum, names = judged.datasets
    cells = nine.cells(judged.label, judged.prediction[evaluator])
    counts = intervals.counts(judged, judged.group("claim"), LABEL, says(evaluator))
    taken = [[] for _ in range(intervals.replicates)]
    for at, name in enumerate(names):
        rows = np.flatnonzero(stratum == at)
        used, local = np.unique(cells[rows], return_inverse=True)
        clusters = np.unique(judged.clusters[rows], return_inverse=True)[1]
        kinds, times = tally(clusters, local, len(used))
        full = np.zeros((clusters.max() + 1, len(used)), dtype=int)
        np.add.at(full, (clusters, local), 1)
        first: dict[tuple[int, ...], int] = {}
        for cluster, row in enumerate(map(tuple, full)):
            first.setdefault(row, cluster)
        members = [rows[clusters == first[tuple(kind)]] for kind in kinds]
        drawn = np.concatenate(list(intervals.weights(times, name))).astype(int)
        for replicate in range(intervals.replicates):
            taken[replicate] += [np.repeat(m, w) for m, w in zip(members, drawn[replicate], strict=True) if w]
    return counts, [np.concatenate(parts) for parts in taken]


def reindexed(frame: pd.DataFrame, taken: np.ndarray) -> pd.DataFrame:
    """One replicate the plain way: take the rows, count by dataset and evaluator, divide."""
    sample = frame.iloc[taken]
    figures = {}
    for evaluator in [column for column in frame.columns if column.startswith("evaluator-")]:
        tables = sample.groupby(["dataset", "label", evaluator], observed=False).size().unstack([1, 2], fill_value=0)
        tp, fn, tn, fp = tables[(1, 1)], tables[(1, 0)], tables[(0, 0)], tables[(0, 1)]
        tpr, tnr = tp / (tp + fn), tn / (tn + fp)
        rates = {"tpr": tpr, "tnr": tnr, "fpr": 1 - tnr, "fnr": 1 - tpr, "bacc": (tpr + tnr) / 2, "gap": tpr - tnr}
        figures[evaluator] = pd.DataFrame(rates | {"ppr": (tp + fp) / (tp + fn + tn + fp)})
    return pd.concat(figures, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--slow-replicates", type=int, default=40)
    args = parser.parse_args()
    print(f"{args.replicates:,} replicates of all rates, {EVALUATORS} evaluators, {sum(SIZES):,} claims, 11 datasets:")
    print(f"seconds; re-indexing is timed on {args.slow_replicates} replicates and scaled.")
    print()
    print("| claims in a cluster | re-indexing a DataFrame | sufficient statistics | ratio | greatest difference |")
    print("|---:|---:|---:|---:|---:|")
    for cluster_size in (1, 5):
        judged = make(cluster_size)
        fast, slow, worst = measure(judged, args.replicates, args.slow_replicates)
        print(f"| {cluster_size} | {slow:.1f} | {fast:.3f} | {slow / fast:,.0f} | {worst:.0e} |")


def measure(judged: Judged, replicates: int, timed: int) -> tuple[float, float, float]:
    """Seconds of the audit, seconds of the plain way, and the greatest difference of a figure on the same draws."""
    intervals = Intervals(replicates=replicates, seed=1)
    start = time.perf_counter()
    rates(judged, intervals=intervals)
    fast = time.perf_counter() - start
    frame = pd.DataFrame({"dataset": judged.claims["dataset"].astype("category"), "label": judged.label})
    for at, name in enumerate(judged.evaluators):
        frame[name] = judged.prediction[at]
    slow = worst = 0.0
    # The first replicates of many are the replicates of few: blocks don't change the draws.
    few = Intervals(replicates=timed, seed=1)
    for at, name in enumerate(judged.evaluators):
        counts, taken = draws(judged, at, few)
        for replicate in range(timed):
            start = time.perf_counter()
            figures = reindexed(frame[["dataset", "label", name]], taken[replicate])[name]
            slow += time.perf_counter() - start
            table = counts[replicate].reshape(-1, 3, 3)
            for key, values in nine.rates(table, np.zeros(len(table), dtype=bool)).items():
                worst = max(worst, float(np.abs(values - figures[key].to_numpy()).max()))
    return fast, slow * replicates / timed, worst


if __name__ == "__main__":
    main()
