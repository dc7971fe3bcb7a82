"""Cluster bootstrap from sufficient statistics against re-indexing arrays and a DataFrame, on the same draws.

All rates of 5 evaluators over 29,320 claims in 11 datasets (the sizes of LLM-AggreFact's test set), 2,000 replicates.
The slow ways take the drawn rows out of arrays, or of a DataFrame, and count them again in each replicate; they are
timed on some of the replicates and scaled. All get the same draws (drawing is part of our time alone), and their
figures are compared.

    python tests/benchmarks/bench_bootstrap.py [--replicates 2000] [--slow-replicates 40]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import pandas as pd
from table import Cost, clocked, report

from factaudit.arrays import confusion_counts
from factaudit.arrays.count_source import LABEL_FIELD, prediction_field
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.resampled_counts import resample_counts
from factaudit.audit.rates import compute_evaluator_rates
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.distinct_rows import count_distinct_clusters
from factaudit.tables import validate_claims, validate_verdicts

#: Claims per dataset of LLM-AggreFact's test set, as in its published scores.
SIZES = (558, 558, 726, 772, 358, 1710, 1088, 1566, 3702, 1911, 16371)
EVALUATORS = 5
CELLS = confusion_counts.N_CONFUSION_CELLS


def make(cluster_size: int, seed: int = 0) -> Judgements:
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
    return Judgements.join(validate_claims(claims), validate_verdicts(pd.concat(verdicts, ignore_index=True)))


def draws(judged: Judgements, evaluator: int, intervals: ClusterBootstrap) -> tuple[np.ndarray, list[np.ndarray]]:
    """Counts (replicates, datasets, 9) as `compute_evaluator_rates` has them, and how often each row is drawn.

    Statistics say how often each *kind* of cluster was drawn; any cluster of the kind gives the same figures, so the
    rows to take are those of the kind's first cluster, that many times.
    """
    stratum, names = judged.dataset_codes, judged.dataset_names
    cells = confusion_counts.encode_label_prediction_cells(judged.label, judged.prediction[evaluator])
    asked = resample_counts(intervals, judged, judged.make_groups("claim"), (LABEL_FIELD, prediction_field(evaluator)))
    counts = np.concatenate([found for _, (found,) in asked], axis=1)
    taken = [[] for _ in range(intervals.replicates)]
    for at, name in enumerate(names):
        rows = np.flatnonzero(stratum == at)
        used, local = np.unique(cells[rows], return_inverse=True)
        clusters = np.unique(judged.cluster_codes[rows], return_inverse=True)[1]
        kinds, times = count_distinct_clusters(clusters, local, len(used))
        full = np.zeros((clusters.max() + 1, len(used)), dtype=int)
        np.add.at(full, (clusters, local), 1)
        first: dict[tuple[int, ...], int] = {}
        for cluster, row in enumerate(map(tuple, full)):
            first.setdefault(row, cluster)
        members = [rows[clusters == first[tuple(kind)]] for kind in kinds]
        drawn = np.concatenate(list(intervals.draw_kind_weights(times, name))).astype(int)
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


def counted(codes: np.ndarray, taken: np.ndarray, datasets: int) -> dict[str, np.ndarray]:
    """The same by arrays: take the rows' cells (dataset, label and prediction as one number), count, divide."""
    table = np.bincount(codes[taken], minlength=datasets * CELLS).reshape(datasets, 3, 3)
    return confusion_counts.confusion_rates(table, np.zeros(datasets, dtype=bool))


def measure(judged: Judgements, replicates: int, timed: int) -> tuple[Cost, Cost, Cost]:
    """What the audit takes, and re-indexing arrays and a DataFrame would; exits where a figure differs."""
    ours = clocked(lambda: compute_evaluator_rates(judged, intervals=ClusterBootstrap(replicates=replicates, seed=1)))
    frame = pd.DataFrame({"dataset": judged.claims["dataset"].astype("category"), "label": judged.label})
    stratum, names = judged.dataset_codes, judged.dataset_names
    slow = {"arrays": [0.0, 0.0], "frames": [0.0, 0.0]}
    # The first replicates of many are the replicates of few: blocks don't change the draws.
    few = ClusterBootstrap(replicates=timed, seed=1)
    for at, name in enumerate(judged.evaluators):
        counts, taken = draws(judged, at, few)
        codes = stratum * CELLS + confusion_counts.encode_label_prediction_cells(judged.label, judged.prediction[at])
        columns = frame.assign(**{name: judged.prediction[at]})
        arrays = clocked(lambda: [counted(codes, rows, len(names)) for rows in taken])  # noqa: B023
        frames = clocked(lambda: [reindexed(columns, rows)[name] for rows in taken])  # noqa: B023
        for key, cost in (("arrays", arrays), ("frames", frames)):
            slow[key][0] += cost.cpu * replicates / timed
            slow[key][1] += cost.wall * replicates / timed
        for replicate, table in enumerate(counts.reshape(timed, -1, 3, 3)):
            for key, values in confusion_counts.confusion_rates(table, np.zeros(len(table), dtype=bool)).items():
                for found in (arrays.result[replicate][key], frames.result[replicate][key].to_numpy()):
                    if np.abs(values - found).max() > 1e-12:
                        sys.exit(f"{key} of replicate {replicate} differs")
    return ours, Cost(*slow["arrays"]), Cost(*slow["frames"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--slow-replicates", type=int, default=40)
    args = parser.parse_args()
    for cluster_size in (1, 5):
        ours, arrays, frames = measure(make(cluster_size), args.replicates, args.slow_replicates)
        work = f"{args.replicates:,} replicates of all rates, {sum(SIZES):,} claims × {EVALUATORS} evaluators"
        work += f", clusters of {cluster_size}"
        report(work, ours, peer=("re-indexing arrays in numpy", arrays))
        report(work, ours, peer=("re-indexing a DataFrame", frames))


if __name__ == "__main__":
    main()
