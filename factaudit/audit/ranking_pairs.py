"""Which of two systems is better, by the labels and by an evaluator? (VC §3.5)"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import get_args

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.judgements import LABEL_FIELD, LEVELS, Judgements, prediction_field, stated_prediction_field
from factaudit.arrays.resampled_counts import resample_counts
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
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import MOST_PRODUCT_ROWS, Row
from factaudit.audit.quantification import QUANTIFICATION_COLUMNS as QUANTIFICATION_COLUMNS
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.multiplicity import MultiplicityCorrection
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.text.display_text import join_reasons

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
    "alpha": "significance level of the tests",
    "test": (
        "`clustered` (Student's t with the effective sample size of the clusters, Fisher's exact test if it is "
        "small) or `z` (VC's test, which treats claims as independent)"
    ),
    "correction": (
        "`holm` over the pairs of a data set, level and evaluator, or `none`; `test: z` with `correction:"
        " none` gives VC's ordering error"
    ),
}


def compute_ranking_pairs(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    test: SystemPairTest = "clustered",
    correction: MultiplicityCorrection = "holm",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The order of each pair of systems by a test of two proportions, by the labels and by the predictions.

    A row per dataset, level, pair and evaluator: labelled_order and predicted_order (``<``: system_a has the lower
    error rate; ``=``: no difference at ``alpha``), p_labelled and p_predicted (Holm: adjusted for the pairs of the
    dataset, level and evaluator), error (the orders differ), major_error (both significant, and opposite), n_a, n_b
    (labels), the four error rates, power_5 and power_10 (see `power`). system_a is the one with the lower labelled
    rate. What the labels say is over all of them, scored or not. Nothing to put an interval on.

    There are none where they would be more than `MOST_PRODUCT_ROWS`: ask for one data set, or fewer evaluators.
    """
    check_system_pair_test(test)
    cases = list(iterate_ranking_cases(judgements, levels, 0, None))
    n_rows = sum(len(case.systems) * (len(case.systems) - 1) // 2 for case in cases)
    if n_rows > MOST_PRODUCT_ROWS:
        return []
    cases.sort(key=lambda case: case.dataset)
    return [
        row for case in cases if len(case.systems) > 1 for row in _build_system_pair_rows(case, alpha, test, correction)
    ]


def _build_system_pair_rows(
    case: SystemRankingCase, alpha: float, test: SystemPairTest, correction: MultiplicityCorrection
) -> list[Row]:
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
    powers = {
        f"power_{points}": system_ranking_power(case.counts, points / 100, alpha, *how) for points in DETECTABLE_POINTS
    }
    rows = []
    for pair, (first, second) in enumerate(combinations(range(len(case.systems)), 2)):
        is_turned = bool(rates["labelled_error_rate"][first] > rates["labelled_error_rate"][second])
        sides = {"a": second, "b": first} if is_turned else {"a": first, "b": second}
        row: Row = {"dataset": case.dataset, "level": case.level}
        row |= {f"system_{side}": case.systems[of] for side, of in sides.items()}
        row["evaluator"] = case.evaluator
        row |= {f"n_{side}": int(labelled[1][of]) for side, of in sides.items()}
        row["n_unscored"] = int(unscored[first] + unscored[second])
        row |= {f"{key}_{side}": none_if_undefined(of[at]) for key, of in rates.items() for side, at in sides.items()}
        row |= {f"p_{kind}": none_if_undefined(orders[f"p_{kind}"][pair]) for kind in ("labelled", "predicted")}
        found = [none_if_undefined(orders[f"{kind}_order"][pair]) for kind in ("labelled", "predicted")]
        true, said = (None if order is None else int(order) * (-1 if is_turned else 1) for order in found)
        row["labelled_order"] = None if true is None else ORDER_SYMBOLS[true]
        row["predicted_order"] = None if said is None else ORDER_SYMBOLS[said]
        row |= dict.fromkeys(("error", "major_error"))
        if true is not None and said is not None:
            row |= {"error": true != said, "major_error": true * said == -1}
        row |= {key: none_if_undefined(power[pair]) for key, power in powers.items()}
        reasons = []
        for scored, n in (("", labelled[1]), (" is scored", predicted[1])):
            without = [case.systems[of] for of in sides.values() if n[of] == 0]
            reasons.append(f"no labelled {case.level}{scored}: {', '.join(without)}" if without else "")
        rows.append(row | {"reason": join_reasons(reasons)})
    return rows


_PAIR_DESCRIPTION = "the two systems; the one with the lower labelled error rate comes first"


def _build_ranking_pair_columns() -> Mapping[str, Column]:
    rates = {
        f"{rate}_{side}": Column(
            f"{QUANTIFICATION_COLUMNS[rate].heading} {side}", "percent", "the four error rates", shown=True
        )
        for rate in ("labelled_error_rate", "predicted_error_rate")
        for side in "ab"
    }
    order = "`<`: a has significantly fewer errors; `=`: no significant difference; `>`"
    wrong = "whether the two orders differ; whether both are significant and opposite"
    tests = "two-sided p-values of the tests of two proportions, corrected for the number of pairs as `correction` says"
    return {
        **pick_shared_columns("dataset", "level", "evaluator"),
        **{f"system_{side}": Column(f"system {side}", "text", _PAIR_DESCRIPTION, key=True) for side in "ab"},
        **pick_shared_columns("n_unscored", "reason"),
        **{f"n_{side}": Column(f"n {side}", "count", "labelled claims of each") for side in "ab"},
        **rates,
        **{f"{kind}_order": Column(f"{kind} order", "text", order) for kind in ("labelled", "predicted")},
        **{f"p_{kind}": Column(f"p {kind}", "p", tests) for kind in ("labelled", "predicted")},
        "error": Column("error", "text", wrong),
        "major_error": Column("major error", "text", wrong),
        **{
            f"power_{points}": Column(
                f"power for {points} points",
                "percent",
                "probability that these labels would detect a true difference of 5 (or 10) points",
            )
            for points in DETECTABLE_POINTS
        },
    }


AUDIT = Audit(
    name="ranking_pairs",
    after="ranking",
    title="The pairs of systems one by one",
    question="In which order does an evaluator put each two systems, and how sure is it?",
    source="VC §3.5",
    formula=(
        "< means that the first system has significantly fewer errors than the second; = means that the test "
        "cannot tell. p is corrected (Holm) for the pairs of a data set, level and evaluator, unless "
        "`correction: none` is set."
    ),
    text="The pairs behind the section above, one by one.",
    remedy=(
        "If the labels do not order a pair, no order is known to be right: say so, or label more claims of the "
        "two systems."
    ),
    columns=_build_ranking_pair_columns(),
    options=RANKING_PAIR_OPTIONS,
    compute=compute_ranking_pairs,
    counts="margins",
)
