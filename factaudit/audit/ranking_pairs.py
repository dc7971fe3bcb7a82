"""The order of each two systems, by the labels and by an evaluator (VC §3.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.declare import Audit, Column, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS
from factaudit.audit.core.orders import Correction, compare, labelled_errors, power_of_pairs, predicted_errors
from factaudit.audit.core.plot import CrossTable
from factaudit.audit.core.rows import Row, number, ratio, reasons
from factaudit.audit.core.tallies import Tallies
from factaudit.audit.quantification import COLUMNS as QUANTIFICATION_COLUMNS
from factaudit.audit.ranking import PAIR_OPTIONS, POINTS, SYMBOLS, cases


def ranking_pairs(
    judged: Tallies,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    correction: Correction = "none",
    intervals: Intervals | None = None,
) -> list[Row]:
    """The order of each pair of systems by a two-proportion z-test, by the labels and by the predictions.

    A row per dataset, level, pair and evaluator: labelled_order and predicted_order (``<``: system_a has the lower
    error rate; ``=``: no difference at ``alpha``), p_labelled and p_predicted (Holm: adjusted for the pairs of the
    dataset, level and evaluator), error (the orders differ), major_error (both significant, and opposite), n_a, n_b
    (labels), the four error rates, power_5 and power_10 (see `power`). system_a is the one with the lower labelled
    rate. What the labels say is over all of them, scored or not. Nothing to put an interval on.
    """
    rows: list[Row] = []
    for case in cases(judged, levels, 0, None):
        labelled, predicted = labelled_errors(case.counts), predicted_errors(case.counts)
        orders = compare(case.counts, alpha, correction)
        powers = {points: power_of_pairs(case.counts, points / 100, alpha) for points in POINTS}
        rates = {"labelled_error_rate": ratio(*labelled), "predicted_error_rate": ratio(*predicted)}
        unscored = nine.sizes(case.counts, case.certain)["n_unscored"]
        for at, (first, second) in enumerate(zip(*np.triu_indices(len(case.systems), 1), strict=True)):
            turned = rates["labelled_error_rate"][first] > rates["labelled_error_rate"][second]
            a, b = (second, first) if turned else (first, second)
            row: Row = {"dataset": case.dataset, "level": case.level}
            row |= {"system_a": case.systems[a], "system_b": case.systems[b], "evaluator": case.evaluator}
            row |= {"n_a": int(labelled[1][a]), "n_b": int(labelled[1][b])}
            row |= {"n_unscored": int(unscored[a] + unscored[b])}
            for key, values in rates.items():
                row |= {f"{key}_a": number(values[a]), f"{key}_b": number(values[b])}
            row |= {f"p_{kind}": number(orders[f"p_{kind}"][at]) for kind in ("labelled", "predicted")}
            true, said = (orders[f"{kind}_order"][at] * (-1 if turned else 1) for kind in ("labelled", "predicted"))
            known = not np.isnan(true * said)
            row |= {
                "labelled_order": None if np.isnan(true) else SYMBOLS[int(true)],
                "predicted_order": None if np.isnan(said) else SYMBOLS[int(said)],
                "error": bool(true != said) if known else None,
                "major_error": bool(true * said == -1) if known else None,
            }
            row |= {f"power_{points}": number(values[at]) for points, values in powers.items()}
            why = [
                f"no labelled {case.level}{scored}: {', '.join(without)}"
                for scored, n in (("", labelled[1]), (" is scored", predicted[1]))
                if (without := [case.systems[s] for s in (a, b) if not n[s]])
            ]
            rows.append(row | {"reason": reasons(why)})
    rows.sort(key=lambda row: row["dataset"])
    return rows


_PAIR = "the pair, the one with the lower labelled error rate first"


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
        **{f"system_{side}": Column(f"system {side}", "text", _PAIR, key=True) for side in "ab"},
        **shared("n_unscored", "reason"),
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
    options=PAIR_OPTIONS,
    compute=ranking_pairs,
    tallies=True,
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
