"""Which cut of an evaluator's grades agrees best with labels, whatever grade of people makes a claim attributable?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.arrays.confusion_counts import (
    N_CONFUSION_CELLS,
    add_confusion_bounds_and_intervals,
    confusion_rate_bounds,
    confusion_rate_intervals,
    confusion_rates,
)
from factaudit.arrays.graded_claims import (
    MOST_LEVELS,
    choose_evaluator_grade_fields,
    collect_graded_claims,
    cut_grades_into_levels,
    has_people_grades,
)
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.interval_methods import MOVER, WILSON
from factaudit.audit.core.plot_specs import ForestPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, GroupClusterPairs
from factaudit.stats.undefined_values import none_if_undefined


def compute_grade_cuts(
    judgements: Judgements, *, order: Sequence[str] | None = None, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """TPR, TNR and BAcc of each cut of an evaluator's grades against the labels that each cut of people's grades makes.

    order, measure: as in `compute_grade_agreement`. A row per dataset, evaluator, people_cut (claims with this grade of
    people or a higher one are attributable) and evaluator_cut (of the evaluator likewise); cuts are the different
    grades but the lowest, `MOST_LEVELS` - 1 at most. n_pos, n_neg: labels 1 and 0 that the cut makes; n: the claims
    that the evaluator graded as well, n_unscored: the others.
    """
    measures, rows, over_all = choose_evaluator_grade_fields(judgements), [], np.zeros(1, dtype=bool)
    for claims in collect_graded_claims(judgements, order):
        levels, people_cuts = cut_grades_into_levels(claims.people, MOST_LEVELS)
        pairs = GroupClusterPairs.of(np.zeros(len(levels), dtype=np.int64), claims.cluster, 1)
        for at, evaluator in enumerate(judgements.evaluators):
            its_levels, its_cuts = cut_grades_into_levels(claims.evaluators[at], MOST_LEVELS)
            width = len(its_cuts) + 1  # the last: not graded
            codes = levels * width + np.where(its_levels < 0, len(its_cuts), its_levels)
            clusters = pairs.count_codes(codes, len(people_cuts) * width)
            counts = clusters.counts.reshape(-1, len(people_cuts), width)
            for people_cut in range(1, len(people_cuts)):
                sides = np.stack([counts[:, :people_cut].sum(1), counts[:, people_cut:].sum(1)], 1)
                for cut in range(1, len(its_cuts)):
                    parts = (sides[..., :cut], sides[..., cut:-1], sides[..., -1:])
                    cells = np.zeros((len(sides), 3, 3), dtype=np.int64)
                    cells[:, :2] = np.stack([part.sum(-1) for part in parts], -1)
                    flat = cells.reshape(-1, N_CONFUSION_CELLS)
                    each = ClusterCounts.collapse_equal_clusters(clusters.group, flat, 1, clusters.times)
                    row: Row = {"dataset": claims.dataset, "evaluator": evaluator, "measure": measures[at]}
                    row |= {"people_cut": float(people_cuts[people_cut]), "evaluator_cut": float(its_cuts[cut])}
                    rows.append(row | _compute_grade_cut_rates(each, over_all, intervals))
    return rows


def _compute_grade_cut_rates(clusters: ClusterCounts, over_all: np.ndarray, intervals: ClusterBootstrap | None) -> Row:
    total = clusters.sum_by_group(clusters.counts).reshape(1, 3, 3)
    rates = confusion_rates(total, over_all)
    limits = None if intervals is None else confusion_rate_intervals(clusters, over_all, intervals.confidence)
    told = {name: rates[name] for name in ("bacc", "tpr", "tnr")}
    figures = add_confusion_bounds_and_intervals(told, confusion_rate_bounds(total), limits)
    row: Row = {"n": int(total[0, :2, :2].sum()), "n_unscored": int(total[0, :2, 2].sum())}
    row |= {"n_pos": int(total[0, 1].sum()), "n_neg": int(total[0, 0].sum())}
    row |= {key: none_if_undefined(values[0]) for key, values in figures.items()}
    why = "the evaluator graded no claim of a class" if row["bacc"] is None else None
    if why is None and row.get("bacc_low", 0) is None:
        why = "no interval for bacc: fewer than two clusters of a class"
    return row | {"reason": why}


def _select_best_cuts(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Of each cut of people's grades the cut of each evaluator's that has the best BAcc."""
    best: dict[tuple[str, str, float], Row] = {}
    for row in rows:
        key = (row["dataset"], row["evaluator"], row["people_cut"])
        if key not in best or (row["bacc"] or 0) > (best[key]["bacc"] or 0):
            best[key] = row
    return list(best.values()), "Of each evaluator the cut of best BAcc; all cuts are in the CSV."


_CUT_RATES_DESCRIPTION = "rates of the evaluator's cut against the labels that people's cut makes"
_CUT_SIZES_DESCRIPTION = "labels 1, labels 0 that people's cut makes, graded by the evaluator or not"

AUDIT = Audit(
    name="grade_cuts",
    after="grade_calibration",
    title="Cuts that make labels of grades",
    question="Which cut of an evaluator's grades agrees best with the labels that a cut of people's grades makes?",
    formula="A claim is attributable from people_cut on, and predicted so from evaluator_cut on; TPR, TNR and BAcc are "
    "those of the two.",
    text="Where people graded, a label is a choice of a cut. An evaluator that is good at one cut alone knows that "
    "cut, not the grades. The best of many cuts looks better than it is on other claims.",
    remedy="Say which grade of people is attributable, and why. Take the evaluator's cut from other claims than those "
    "on which you report its rates (`discrimination` does so).",
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "measure": Column("of its", "text", "what is cut: the evaluator's `grade`, or its `score`"),
        "people_cut": Column("people from", "number", "the lowest grade of people that is attributable", key=True),
        "evaluator_cut": Column("its cut", "number", "the lowest grade of the evaluator that is", key=True),
        **pick_shared_columns("n", "n_unscored", "reason"),
        "n_pos": Column("label 1", "count", _CUT_SIZES_DESCRIPTION),
        "n_neg": Column("label 0", "count", _CUT_SIZES_DESCRIPTION),
        "bacc": Column("BAcc", "percent", _CUT_RATES_DESCRIPTION, bounds=True, interval=MOVER),
        "tpr": Column("TPR", "percent", _CUT_RATES_DESCRIPTION, bounds=True, interval=WILSON),
        "tnr": Column("TNR", "percent", _CUT_RATES_DESCRIPTION, bounds=True, interval=WILSON),
    },
    options={"order": "people's grades from the lowest to the highest, where they are words"},
    compute=compute_grade_cuts,
    applies=has_people_grades,
    without_labels=True,
    readable=_select_best_cuts,
    plots=(
        ForestPlotSpec(
            what="BAcc of an evaluator's best cut, for each cut of people's grades that may make the labels",
            reading="A line is named by the lowest grade of people that is attributable, and the evaluator's best cut.",
            key="bacc",
            labels=("people_cut", "evaluator_cut"),
            groups=("dataset", "evaluator"),
            guide=0.5,
        ),
    ),
)
