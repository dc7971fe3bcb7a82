"""Which of two systems is better, by the labels and by an evaluator? (VC §3.5)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.arrays.figures import Figure, count_predictions
from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.arrays.system_rankings import PairTest, RankingCase, SystemPairTest, iterate_ranking_cases
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import MOST_PRODUCT_ROWS, Row
from factaudit.audit.core.tabulate import tabulate
from factaudit.audit.quantification import QUANTIFICATION_COLUMNS as QUANTIFICATION_COLUMNS
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.multiplicity import MultiplicityCorrection

#: An order as its symbol: system_a's error rate is significantly lower than system_b's, neither, higher.
ORDER_SYMBOLS = {-1: "<", 0: "=", 1: ">"}


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
    (labels), the four error rates, power_10 (how probably the labels show a difference of 10 points). system_a is the
    one with the lower labelled rate. What the labels say is over all of them, scored or not. Nothing to put an interval
    on.

    There are none where they would be more than `MOST_PRODUCT_ROWS`: ask for one data set, or fewer evaluators.
    """
    how = PairTest(test, correction, alpha)
    groups = [judgements.make_groups(level, systems=True) for level in dict.fromkeys(levels)]
    cases = [case for each in groups for several in iterate_ranking_cases(judgements, each) for case in several]
    if sum(len(case.members) * (len(case.members) - 1) // 2 for case in cases) > MOST_PRODUCT_ROWS:
        return []
    cases.sort(key=lambda case: case.dataset)
    return [row for case in cases if len(case.members) > 1 for row in _tabulate_pairs(case, how)]


def _tabulate_pairs(case: RankingCase, how: PairTest) -> list[Row]:
    """The pairs of systems of one dataset at one level, as one evaluator sees them."""
    labelled, predicted = case.count_errors(by_cluster=how.test == "clustered")
    first, second = np.triu_indices(len(case.members), 1)
    is_turned = labelled.rates[first] > labelled.rates[second]
    a, b = np.where(is_turned, second, first), np.where(is_turned, first, second)
    level, names = case.groups.level, np.array(case.systems)
    unscored = count_predictions(case.cells, case.cells[:, :2].sum((1, 2)) == 0)[:, 2]
    (p_labelled, true), (p_predicted, said) = labelled.order_pairs(how), predicted.order_pairs(how)
    turn = np.where(is_turned, -1, 1)
    is_known = ~np.isnan(true) & ~np.isnan(said)
    counts: dict[str, Any] = {"n_a": labelled.n[a], "n_b": labelled.n[b], "n_unscored": unscored[a] + unscored[b]}
    for kind, order in (("labelled", true * turn), ("predicted", said * turn)):
        counts[f"{kind}_order"] = [None if np.isnan(one) else ORDER_SYMBOLS[int(one)] for one in order]
    for key, wrong in (("error", true != said), ("major_error", true * said == -1)):
        counts[key] = np.where(is_known, wrong, None)
    figures = {
        "labelled_error_rate_a": labelled.rates[a],
        "labelled_error_rate_b": labelled.rates[b],
        "predicted_error_rate_a": predicted.rates[a],
        "predicted_error_rate_b": predicted.rates[b],
        "p_labelled": p_labelled,
        "p_predicted": p_predicted,
        "power_10": labelled.compute_power(0.1, how),
    }
    reasons = {
        f"a system has no labelled {level}": (labelled.n[a] == 0) | (labelled.n[b] == 0),
        f"of a system no labelled {level} is scored": (predicted.n[a] == 0) | (predicted.n[b] == 0),
    }
    keys = [
        {"dataset": case.dataset, "level": level, "system_a": name_a, "system_b": name_b}
        | {"evaluator": case.judgements.evaluators[case.evaluator]}
        for name_a, name_b in zip(names[a].tolist(), names[b].tolist(), strict=True)
    ]
    return tabulate(keys, counts, {key: Figure(values) for key, values in figures.items()}, reasons)


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
        "power_10": Column(
            "power for 10 points",
            "percent",
            "probability that these labels would detect a true difference of 10 points",
        ),
    }


AUDIT = Audit(
    name="ranking_pairs",
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
