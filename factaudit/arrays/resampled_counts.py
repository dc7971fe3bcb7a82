"""Bootstrap replicates of numbers of claims: each data set's clusters are drawn again, and its cells counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.judgements import BootstrapStratum, Judgements, LabelOrPrediction
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def resample_counts(
    bootstrap: ClusterBootstrap,
    judgements: Judgements,
    groups: ClaimGroups,
    *field_lists: Sequence[LabelOrPrediction],
    cell_values: np.ndarray | None = None,
) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Count the claims of each group in each cell, in each bootstrap replicate.

    Gives for each data set that has groups its name and, for each list of fields, float64 (replicates, groups,
    n_cells), the groups in their order. A figure that is a function of counts gets its bootstrap distribution by being
    computed on the result.

    cell_values: whole (n_cells, K), what a claim of each cell adds to K numbers; the result then holds these numbers
    in the place of the cells.

    A claim in no group counts nowhere, but its cluster is drawn all the same. A group that lies in a single cluster is
    NaN: there is nothing to resample.
    """
    n_clusters, dataset_of_group = judgements.n_clusters(groups), np.array([key["dataset"] for key in groups.keys])
    statistics = [
        # A data set's clusters are held no longer than until their sums are known.
        map(
            partial(
                _sum_cell_values_by_cluster_kind,
                dataset_of_group,
                np.eye(3 ** len(fields)) if cell_values is None else cell_values,
            ),
            judgements.bootstrap_strata(groups, *fields),
        )
        for fields in field_lists
    ]
    for by_field_list in zip(*statistics, strict=True):
        dataset = by_field_list[0][0]
        own = np.flatnonzero(dataset_of_group == dataset)
        if not len(own):
            continue
        sums = bootstrap.resample_sums([each for _, each in by_field_list], dataset)
        counts = [each.reshape(bootstrap.replicates, len(own), -1) for each in sums]
        for each in counts:
            each[:, n_clusters[own] < 2] = np.nan
        yield dataset, counts


def _sum_cell_values_by_cluster_kind(
    datasets: np.ndarray, cell_values: np.ndarray, stratum: BootstrapStratum
) -> tuple[str, tuple[np.ndarray, np.ndarray]]:
    """The data set of a stratum, and what each kind of cluster adds to the data set's groups.

    datasets: of all groups; cell_values: (n_cells, K). Gives int64 (U, groups of the data set * K), and how often each
    of the U kinds occurs.
    """
    dataset, codes, kinds, times = stratum
    own = np.flatnonzero(datasets == dataset)
    places, cells = np.divmod(codes[codes >= 0], len(cell_values))
    each = np.zeros((len(cells), len(own), cell_values.shape[1]))
    each[np.arange(len(cells)), np.searchsorted(own, places)] = cell_values[cells]
    rows = each.reshape(len(cells), len(own) * cell_values.shape[1])  # none where the dataset has no group
    return dataset, ((kinds[:, codes >= 0] @ rows).astype(np.int64), times)
