"""The order of each two systems, by the labels and by an evaluator (VC §3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.orders import Correction, compare, errors_of
from factaudit.audit.core.plot import CrossTable
from factaudit.audit.core.rows import Row, number, ratio
from factaudit.audit.quantification import COLUMNS as QUANTIFICATION_COLUMNS
from factaudit.audit.ranking import OPTIONS, POINTS, SYMBOLS, cases, power_of_pairs


def ranking_pairs(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    correction: Correction = "none",
    intervals: Intervals | None = None,
) -> list[Row]:
    """The order of each pair of systems by a two-proportion z-test, by the labels and by the predictions.

    A row per dataset, level, pair and evaluator: labelled_order and predicted_order (``<``: system_a has the lower
    error rate; ``=``: no difference at ``alpha``), p_labelled and p_predicted (Holm: adjusted for the pairs of the
    dataset, level and evaluator), error (the orders differ), major_error (both significant, and opposite), n_a, n_b,
    the four error rates, power_5 and power_10 (see `power`). Nothing to put an interval on.
    """
    rows: list[Row] = []
    for case in cases(judged, levels, None):
        n, labelled, predicted = errors_of(case.counts)
        orders = compare(case.counts, alpha, correction)
        powers = {points: power_of_pairs(case.counts, points / 100, alpha) for points in POINTS}
        rates = {"labelled_error_rate": ratio(labelled, n), "predicted_error_rate": ratio(predicted, n)}
        unscored = nine.sizes(case.counts)["n_unscored"]
        for at, (a, b) in enumerate(zip(*np.triu_indices(len(n), 1), strict=True)):
            row: Row = {"dataset": case.dataset, "level": case.level}
            row |= {"system_a": case.systems[a], "system_b": case.systems[b], "evaluator": case.evaluator}
            row |= {"n_a": int(n[a]), "n_b": int(n[b]), "n_unscored": int(unscored[a] + unscored[b])}
            for key, values in rates.items():
                row |= {f"{key}_a": number(values[a]), f"{key}_b": number(values[b])}
            row |= {f"p_{kind}": number(orders[f"p_{kind}"][at]) for kind in ("labelled", "predicted")}
            true, said = orders["labelled_order"][at], orders["predicted_order"][at]
            known = not np.isnan(true)
            row |= {
                "labelled_order": SYMBOLS[int(true)] if known else None,
                "predicted_order": SYMBOLS[int(said)] if known else None,
                "error": bool(true != said) if known else None,
                "major_error": bool(true * said == -1) if known else None,
            }
            row |= {f"power_{points}": number(values[at]) for points, values in powers.items()}
            without = [case.systems[s] for s in (a, b) if not n[s]]
            rows.append(
                row | {"reason": f"no labelled and scored {case.level}: {', '.join(without)}" if without else None}
            )
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _columns() -> Mapping[str, Column]:
    rates = {
        f"{rate}_{side}": Column(
            f"{QUANTIFICATION_COLUMNS[rate].heading} {side}", "percent", "the four error rates", shown=True
        )
        for rate in ("labelled_error_rate", "predicted_error_rate")
        for side in "ab"
    }
    order = "`<`: a has significantly fewer errors; `=`: no significant difference; `>`"
    wrong = "whether the orders differ; whether both are significant and opposite"
    tests = "p-values of the two-proportion z-tests (pooled, two-sided)"
    return {
        **shared("dataset", "level", "evaluator"),
        **{f"system_{side}": Column(f"system {side}", "text", "the pair", key=True) for side in "ab"},
        **shared("n_unscored", "reason"),
        **{f"n_{side}": Column(f"n {side}", "count", "the claims of each") for side in "ab"},
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
            for points in POINTS
        },
    }


AUDIT = Audit(
    name="ranking_pairs",
    place=70,
    title="The pairs of systems one by one",
    question="In what order does an evaluator put two systems, and how sure is it?",
    source="VC §3.5",
    formula="< means that the first system has significantly fewer errors than the second, = that the test cannot "
    "tell.",
    text="Where the orders of the section above come from.",
    columns=_columns(),
    options=OPTIONS,
    compute=ranking_pairs,
    counts="margins",
    plots=(
        CrossTable(
            what="Labelled against predicted order of system pairs, counted over datasets",
            reading="Off the diagonal the order is wrong; in the two far corners it is reversed.",
            rows="labelled_order",
            columns="predicted_order",
            values=("<", "=", ">"),
            noun="pairs",
        ),
    ),
)
