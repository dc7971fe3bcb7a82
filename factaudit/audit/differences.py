"""Is one evaluator better than another on the same claims? Differences in BAcc and bias, with a paired test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factaudit.audit.core.checks import names
from factaudit.audit.core.compared import apart, overall
from factaudit.audit.core.contrast import Contrast
from factaudit.audit.core.declare import Answer, Audit, Audited, Column, Decision, shared
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.mover import combine
from factaudit.audit.core.permutation import studentised_p
from factaudit.audit.core.rows import MACRO, Row, reasons
from factaudit.audit.core.shares import Clusters
from factaudit.audit.core.tallies import Tallies
from factaudit.audit.core.tallies import pairs as pairs_of
from factaudit.signature import digest
from factaudit.text.printable import count

KEYS = ("bacc", "bias")


def differences(
    judged: Tallies, *, pairs: Mapping[str, str] | None = None, intervals: Intervals | None = None
) -> list[Row]:
    """Per dataset and pair of evaluators, ``difference`` = figure of a - figure of b, for BAcc and for bias.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Each figure is over what its evaluator scored, as in `rates` and `quantification`, so that the difference is that of
    the two printed figures; n labelled claims were scored by both (n_unscored: labelled, not scored by both). ``_min``
    and ``_max`` say what the difference could be, whatever the missing predictions. With intervals: ``_low`` and
    ``_high`` are paired, from the claims that only one of the two judges rightly, and p_permutation is the two-sided
    p-value of a studentised permutation test (`factaudit.audit.core.permutation`). Dataset ``__macro__`` is the mean
    over the datasets where the difference is defined; it has no p-value.
    """
    datasets = judged.group("claim")
    names = judged.dataset_names
    rows: list[Row] = []
    means: list[Row] = []
    for a, b in pairs_of(judged.evaluators, pairs):
        contrast = Contrast.of(judged, datasets, a, b, None if intervals is None else intervals.confidence)
        pair: Row = {"evaluator_a": judged.evaluators[a], "evaluator_b": judged.evaluators[b]}
        for key in KEYS:
            for at, name in enumerate(names):
                n = int(contrast.counts[at].sum())
                row: Row = {"dataset": name, **pair, "key": key, "n": n, "n_unscored": int(contrast.labelled[at]) - n}
                row |= {"n_datasets": 1, **contrast.row(at, key)}
                if intervals is not None and contrast.clusters is not None:
                    row["p_permutation"] = _permutation(contrast.clusters, at, key, name, intervals)
                rows.append(row | {"reason": _reason(contrast.counts[at], row)})
            means.append(_macro(pair, key, rows[-len(names) :]))
    rows.sort(key=lambda row: row["dataset"])
    return rows + means


def _permutation(clusters: Clusters, at: int, key: str, dataset: str, intervals: Intervals) -> float | None:
    """Two-sided p-value of equal BAcc, or equal bias, on the claims that both scored; None where it is undefined."""
    inside = clusters.group == at
    counts, times = clusters.counts[inside].reshape(-1, 2, 2, 2), clusters.times[inside]
    gains = counts[:, :, 1, 0] - counts[:, :, 0, 1]  # by label: a says 1 and b says 0, less the reverse
    sizes = counts.sum((2, 3))
    weights = np.array([-0.5, 0.5])
    if key == "bias":
        gains, sizes, weights = gains.sum(1, keepdims=True), sizes.sum(1, keepdims=True), np.array([-1.0])
    seed = (intervals.seed, int(digest(dataset, key, "permutation"), 16))
    return studentised_p(gains, sizes, weights, seed, intervals.replicates, times)


def _macro(pair: Row, key: str, rows: list[Row]) -> Row:
    defined = [row for row in rows if row["difference"] is not None]
    row: Row = {"dataset": MACRO, **pair, "key": key}
    row |= {name: sum(r[name] for r in rows) for name in ("n", "n_unscored", "n_datasets")}
    for name in ("difference", "difference_min", "difference_max"):
        values = [r[name] for r in rows if r[name] is not None]
        row[name] = float(np.mean(values)) if values else None
    if defined:  # a data set that is not scored by both has bounds and no difference
        row["difference_min"] = min(row["difference_min"], row["difference"])
        row["difference_max"] = max(row["difference_max"], row["difference"])
    tested = bool(rows) and "p_permutation" in rows[0]
    if tested:
        row |= {"difference_low": None, "difference_high": None, "p_permutation": None}
        if defined and all(each["difference_low"] is not None for each in defined):
            point, low, high = (np.array([r[f"difference{end}"] for r in defined]) for end in ("", "_low", "_high"))
            # The data sets are independent.
            _, ends = combine(point, (low, high), np.full(len(defined), 1 / len(defined)))
            row |= {"difference_low": float(ends[0]), "difference_high": float(ends[1])}
    missing = len(rows) - len(defined)
    return row | {
        "reason": reasons(
            [
                f"undefined in {missing} of {len(rows)} datasets" if missing else "",
                "the permutation test is for one dataset" if tested else "",
            ]
        )
    }


def _reason(counts: np.ndarray, row: Row) -> str | None:
    if not counts.sum():
        return "no labelled claim is scored by both"
    if row["key"] == "bacc" and not counts.sum((1, 2)).all():
        return "only one class among the labelled claims that both scored"
    return "no interval: too few clusters to resample" if row.get("difference_low", 0) is None else None


def _told_apart(audited: Audited, evaluator: str) -> Answer | None:
    """May it be compared with another evaluator by these labels?"""
    rows = overall(audited.rows("rates"))
    mine = rows.get(evaluator)
    others = [name for name in rows if name != evaluator and name not in audited.floors]
    others = [name for name in others if rows[name].get("bacc") is not None]
    if mine is None or mine.get("bacc") is None or not others or not audited.rows("differences"):
        return None
    told = [name for name in others if apart(audited, mine, name) or apart(audited, rows[name], evaluator)]
    alike = [name for name in others if name not in told]
    figure = f"told from {len(told)} of {count(len(others), 'other')}"
    if not alike:
        return Answer("yes", figure, "Its BAcc is surely above or below that of every other one on the same claims.")
    if not told:
        return Answer("cannot tell", figure, f"On the same claims its BAcc is not told from that of {names(alike)}.")
    return Answer("yes", figure, f"But not with {names(alike)}: these labels do not tell the BAccs apart.")


# --------------------------------------------------------------------------------------------------------- declaration

_DIFFERENCE = "figure of a − figure of b, each over what it scored"

AUDIT = Audit(
    name="differences",
    place=20,
    title="Differences between evaluators on the same claims",
    question="Is one evaluator better than another on the same claims?",
    formula="Difference = the first evaluator's figure − the second's, with a paired interval and, for one dataset, a "
    "studentised permutation test over clusters.",
    text="Paired: both evaluators judge the same claims, so that a difference can be clear where intervals overlap.",
    columns={
        **shared("dataset"),
        "key": Column(
            "figure",
            "text",
            "the figure that is compared: `bacc`, or `bias` (predicted − labelled error rate)",
            key=True,
            values={"bacc": "BAcc", "bias": "bias"},
        ),
        **shared("evaluator_a", "evaluator_b", "n", "n_unscored", "reason"),
        "n_datasets": Column("datasets", "count", "how many data sets a mean is over; 1 elsewhere", shown=False),
        "difference": Column(
            "difference", "points", _DIFFERENCE + " (the interval is paired)", bounds=True, interval=True
        ),
        "p_permutation": Column(
            "p permutation",
            "p",
            "two-sided p-value of a permutation test that swaps the two evaluators' predictions cluster by cluster, "
            "studentised (so that it tests equal figures, not equal predictions); null for `__macro__`",
        ),
    },
    options={"pairs": "from each evaluator_a to its evaluator_b; by default every two evaluators"},
    compute=differences,
    tallies=True,
    decides=(Decision("compare with another evaluator", _told_apart, place=1),),
)
