"""The order of each two systems, by the labels and by an evaluator (VC §3.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.judgements import LABEL_FIELD, LEVELS, Judgements, prediction_field, stated_prediction_field
from factaudit.arrays.resampled_counts import resample_counts
from factaudit.arrays.row_table import RowTable, join_row_table_reasons
from factaudit.arrays.system_rankings import (
    ERROR_NUMBERS_BY_CELL,
    SystemErrorRates,
    SystemPairTest,
    compute_system_rankings,
    count_labelled_errors,
    count_predicted_errors,
    labelled_and_predicted_system_rates,
    system_ranking_power,
)
from factaudit.audit.core.audit_declaration import Audit, AuditProductTableSummary, Column, pick_shared_columns
from factaudit.audit.core.plot_specs import CrossTablePlotSpec
from factaudit.audit.core.result_rows import DETAIL_OPTION, Row, is_detail_wanted
from factaudit.audit.quantification import QUANTIFICATION_COLUMNS as QUANTIFICATION_COLUMNS
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.multiplicity import MultiplicityCorrection
from factaudit.stats.undefined_values import divide_or_undefined

#: An order as its symbol: system_a's error rate is significantly lower than system_b's, neither, higher.
ORDER_SYMBOLS = {-1: "<", 0: "=", 1: ">"}


#: The true differences between two error rates that `compute_ranking_agreement` asks the data to show, in points.
DETECTABLE_POINTS = (5, 10)


@dataclass(frozen=True)
class SystemRankingCase:
    """The systems of one dataset at one level, as one evaluator sees them.

    counts, certain (without guesses): (S, 3, 3); drawn: (B, of these the used, 4), the numbers of
    `ERROR_NUMBERS_BY_CELL`; used: bool (S,), those with labels, enough of them errors, and with scored claims among the
    labelled.
    """

    dataset: str
    level: str
    evaluator: str
    systems: list[str]
    counts: np.ndarray
    certain_counts: np.ndarray
    resampled_counts: np.ndarray | None
    is_used: np.ndarray
    #: Make the systems' counts cluster by cluster (`Judgements.count_clusters_jointly`); without guesses.
    count_joint_clusters: Callable[[], ClusterCounts]
    count_certain_clusters: Callable[[], ClusterCounts]

    def estimate_error_rates(self, is_used: np.ndarray) -> SystemErrorRates:
        """The error rates of the systems that are used, for a test that knows clusters."""
        return labelled_and_predicted_system_rates(self.count_joint_clusters(), len(self.systems), is_used)

    def count_used_certain_clusters(self) -> ClusterCounts:
        """The counts of the systems that are used, cluster by cluster, without guesses."""
        clusters = self.count_certain_clusters()
        counts = clusters.counts.reshape(len(clusters.group), len(self.systems), 9)[:, self.is_used]
        return replace(clusters, counts=counts.reshape(len(counts), -1))


def check_system_pair_test(test: str) -> None:
    """Raise `UsageError` for an unknown test."""
    if test not in get_args(SystemPairTest):
        raise UsageError(f"ranking: expected test {' or '.join(get_args(SystemPairTest))}, found {test!r}")


def iterate_ranking_cases(
    judgements: Judgements, levels: Sequence[str], min_errors: int, intervals: ClusterBootstrap | None
) -> Iterator[SystemRankingCase]:
    for level in dict.fromkeys(levels):
        systems = judgements.make_groups(level, systems=True)
        places: dict[str, list[int]] = {dataset: [] for dataset in judgements.dataset_names}
        for place, key in enumerate(systems.keys):
            places[key["dataset"]].append(place)
        asked = [(LABEL_FIELD, prediction_field(at)) for at in range(len(judgements.evaluators))]
        counted = [
            [
                judgements.count_cells(systems, LABEL_FIELD, field(at))
                for field in (prediction_field, stated_prediction_field)
            ]
            for at in range(len(asked))
        ]
        resampled = (
            iter(())
            if intervals is None
            else resample_counts(intervals, judgements, systems, *asked, cell_values=ERROR_NUMBERS_BY_CELL)
        )
        for dataset, inside in places.items():
            names = [systems.keys[place]["system"] for place in inside]
            _, drawn = next(resampled, (dataset, None)) if inside else (dataset, None)
            for at, evaluator in enumerate(judgements.evaluators):
                of, sure = (each[inside] for each in counted[at])
                used = (of[:, :2, :2].sum((1, 2)) > 0) & (of[:, 0].sum(1) >= min_errors)
                some = None if drawn is None else drawn[at][:, used]
                jointly = partial(judgements.count_clusters_jointly, systems, inside, LABEL_FIELD)
                both = partial(jointly, prediction_field(at)), partial(jointly, stated_prediction_field(at))
                yield SystemRankingCase(dataset, level, evaluator, names, of, sure, some, used, *both)


RANKING_PAIR_OPTIONS = {
    "levels": "`claim`, `response`",
    "alpha": "of the tests",
    "test": "of two systems: `clustered` (Student's t on the numbers of claims that clusters leave, Fisher's exact "
    "test where few), or `z`, VC's, which takes claims for independent",
    "correction": "`holm` for the pairs of a dataset, level and evaluator, or `none`; `test: z` and `correction: none` "
    "give VC's ordering error",
}


def compute_ranking_pairs(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    test: SystemPairTest = "clustered",
    correction: MultiplicityCorrection = "holm",
    detail: bool | None = None,
    intervals: ClusterBootstrap | None = None,
) -> RowTable:
    """The order of each pair of systems by a test of two proportions, by the labels and by the predictions.

    A row per dataset, level, pair and evaluator: labelled_order and predicted_order (``<``: system_a has the lower
    error rate; ``=``: no difference at ``alpha``), p_labelled and p_predicted (Holm: adjusted for the pairs of the
    dataset, level and evaluator), error (the orders differ), major_error (both significant, and opposite), n_a, n_b
    (labels), the four error rates, power_5 and power_10 (see `power`). system_a is the one with the lower labelled
    rate. What the labels say is over all of them, scored or not. Nothing to put an interval on.

    detail: by default there are no rows where they would be more than `MOST_DETAIL_ROWS`.
    """
    check_system_pair_test(test)
    cases = list(iterate_ranking_cases(judgements, levels, 0, None))
    n_rows = sum(len(case.systems) * (len(case.systems) - 1) // 2 for case in cases)
    if not is_detail_wanted(detail, n_rows):
        return RowTable.concatenate([]).leave_out(n_rows)
    cases.sort(key=lambda case: case.dataset)
    tables = [_build_system_pair_table(case, alpha, test, correction) for case in cases if len(case.systems) > 1]
    return RowTable.concatenate(tables)


def _build_system_pair_table(
    case: SystemRankingCase, alpha: float, test: SystemPairTest, correction: MultiplicityCorrection
) -> RowTable:
    """The pairs of systems of one dataset at one level, as one evaluator sees them."""
    labelled, predicted = count_labelled_errors(case.counts), count_predicted_errors(case.counts)
    every = np.ones(len(case.systems), dtype=bool)
    how = correction, case.estimate_error_rates(every) if test == "clustered" else None
    orders = compute_system_rankings(case.counts, alpha, *how)
    rates = {
        "labelled_error_rate": divide_or_undefined(*labelled),
        "predicted_error_rate": divide_or_undefined(*predicted),
    }
    unscored = confusion_counts.count_scored_confusion_cells(case.counts, case.certain_counts)["n_unscored"]
    first, second = np.triu_indices(len(case.systems), 1)
    turned = rates["labelled_error_rate"][first] > rates["labelled_error_rate"][second]
    sides = {"a": np.where(turned, second, first), "b": np.where(turned, first, second)}
    same = np.zeros(len(first), dtype=np.int64)
    found: dict[str, Any] = {"dataset": ([case.dataset], same), "level": ([case.level], same)}
    found |= {f"system_{side}": (case.systems, of) for side, of in sides.items()}
    found["evaluator"] = ([case.evaluator], same)
    found |= {f"n_{side}": labelled[1][of].astype(np.int64) for side, of in sides.items()}
    found["n_unscored"] = (unscored[first] + unscored[second]).astype(np.int64)
    found |= {f"{key}_{side}": values[of] for key, values in rates.items() for side, of in sides.items()}
    true, said = (orders[f"{kind}_order"] * np.where(turned, -1, 1) for kind in ("labelled", "predicted"))
    known = ~np.isnan(true * said)
    found |= {f"p_{kind}": orders[f"p_{kind}"] for kind in ("labelled", "predicted")}
    for kind, order in (("labelled", true), ("predicted", said)):
        places = np.where(np.isnan(order), 3, np.nan_to_num(order) + 1).astype(np.int64)
        found[f"{kind}_order"] = ([*ORDER_SYMBOLS.values(), None], places)
    found["error"] = np.where(known, true != said, None)
    found["major_error"] = np.where(known, true * said == -1, None)
    for points in DETECTABLE_POINTS:
        found[f"power_{points}"] = system_ranking_power(case.counts, points / 100, alpha, *how)
    reasons = []
    for scored, n in (("", labelled[1]), (" is scored", predicted[1])):
        lacking = {side: n[of] == 0 for side, of in sides.items()}
        for_pair = np.zeros(len(first), dtype=np.int64)
        texts = [""]
        for at in np.flatnonzero(lacking["a"] | lacking["b"]):
            without = [case.systems[of[at]] for side, of in sides.items() if lacking[side][at]]
            for_pair[at] = len(texts)
            texts.append(f"no labelled {case.level}{scored}: {', '.join(without)}")
        reasons.append((texts, for_pair))
    return RowTable.from_columns(found | {"reason": join_row_table_reasons(reasons)})


_PAIR_DESCRIPTION = "the pair, the one with the lower labelled error rate first"


def _build_ranking_pair_columns() -> Mapping[str, Column]:
    rates = {
        f"{rate}_{side}": Column(
            f"{QUANTIFICATION_COLUMNS[rate].heading} {side}", "percent", "the four error rates", shown=True
        )
        for rate in ("labelled_error_rate", "predicted_error_rate")
        for side in "ab"
    }
    order = "`<`: a has significantly fewer errors; `=`: no significant difference; `>`"
    wrong = "whether the orders differ; whether both are significant and opposite"
    tests = "p-values of the tests of two proportions (two-sided; corrected for pairs where `correction` says so)"
    return {
        **pick_shared_columns("dataset", "level", "evaluator"),
        **{f"system_{side}": Column(f"system {side}", "text", _PAIR_DESCRIPTION, key=True) for side in "ab"},
        **pick_shared_columns("n_unscored", "reason"),
        **{f"n_{side}": Column(f"n {side}", "count", "the labelled claims of each") for side in "ab"},
        **rates,
        **{f"{kind}_order": Column(f"{kind} order", "text", order) for kind in ("labelled", "predicted")},
        **{f"p_{kind}": Column(f"p {kind}", "p", tests) for kind in ("labelled", "predicted")},
        "error": Column("error", "text", wrong),
        "major_error": Column("major error", "text", wrong),
        **{
            f"power_{points}": Column(
                f"power for {points} points",
                "percent",
                "how probably the labels would show a true difference of 5, of 10 points",
            )
            for points in DETECTABLE_POINTS
        },
    }


def _count_system_pairs_by_evaluator(rows: RowTable) -> list[Row]:
    """How many pairs there are by dataset, level and evaluator, and of how many the orders differ."""
    wrong = {f"n_{key}": rows.column(key) for key in ("error", "major_error")}
    return [
        about
        | {"n_pairs": len(places), "n_undefined": sum(value is None for value in wrong["n_error"][places])}
        | {key: sum(value is True for value in values[places]) for key, values in wrong.items()}
        for about, places in rows.group_places("dataset", "level", "evaluator")
    ]


_SUMMARY_COLUMNS = {
    **pick_shared_columns("dataset", "level", "evaluator"),
    "n_pairs": Column("pairs", "count", "pairs of systems"),
    "n_undefined": Column("undefined", "count", "those of which an order is undefined"),
    "n_error": Column("errors", "count", "those whose orders differ"),
    "n_major_error": Column("major errors", "count", "those of which both orders are significant, and opposite"),
}

AUDIT = Audit(
    name="ranking_pairs",
    after="ranking",
    title="The pairs of systems one by one",
    question="In what order does an evaluator put two systems, and how sure is it?",
    source="VC §3.5",
    formula="< means that the first system has significantly fewer errors than the second, = that the test cannot "
    "tell. p is corrected (Holm) for the pairs of a data set, level and evaluator, unless `correction: none` is set.",
    text="Where the orders of the section above come from.",
    remedy="A pair that the labels do not order has no right order here: say so, or label more claims of the two "
    "systems.",
    columns=_build_ranking_pair_columns(),
    options=RANKING_PAIR_OPTIONS | DETAIL_OPTION,
    compute=compute_ranking_pairs,
    summary=AuditProductTableSummary(_SUMMARY_COLUMNS, _count_system_pairs_by_evaluator),
    counts="margins",
    plots=(
        CrossTablePlotSpec(
            what="Labelled against predicted order of system pairs",
            reading="The first system has the lower labelled rate: the labels put no pair in the line >. Off the "
            "diagonal the two orders differ. A pair is reversed only where both are significant and opposite: in the "
            "far corner of the line <.",
            rows="labelled_order",
            columns="predicted_order",
            values=("<", "=", ">"),
            noun="pair",
        ),
    ),
)
