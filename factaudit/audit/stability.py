"""Does an evaluator say the same when it is asked again?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.checks import beyond, by_evaluator, evidence_of
from factaudit.audit.core.declare import Answer, Audit, Audited, Check, Column, Decision, Finding, shared
from factaudit.audit.core.groups import Groups, group_by
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.plot import DotPlot
from factaudit.audit.core.rows import Row, number, ratio, reasons, without_interval
from factaudit.audit.core.shares import by_cluster, shares
from factaudit.audit.core.words import percent

MAX_FLIPS = 0.05  # an evaluator is unstable where more than this share of its verdicts changes
RATES = {"tpr": "TPR", "tnr": "TNR", "bacc": "BAcc", "ppr": "PPR"}


def stability(judged: Judged, *, by: Sequence[str] = ("dataset",), intervals: Intervals | None = None) -> list[Row]:
    """How often two verdicts of one evaluator on one claim differ, and how far its rates lie apart over its repeats.

    A row per group of ``by`` and evaluator that was asked more than once. flip_rate is over the pairs of verdicts on a
    claim; its bounds let the pairs that lack one agree, or differ. Spreads are over few repeats: without interval.
    """
    groups = group_by(judged.claims, by)
    asked = judged.prediction[None] if judged.repeats is None else judged.repeats
    rows: list[tuple[int, Row]] = []
    for at, evaluator in enumerate(judged.evaluators):
        said = asked[(asked[:, at] >= 0).any(1), at]
        if len(said) > 1:
            rows += enumerate(_rows(judged, groups, evaluator, said, intervals))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _rows(judged: Judged, groups: Groups, name: str, said: np.ndarray, intervals: Intervals | None) -> Iterator[Row]:
    """A row per group; ``said``: int8 (R, n), the predictions of the repeats of the evaluator ``name``."""
    size, n_kinds = len(groups.keys), (len(said) + 1) ** 2
    # A claim's kind: how many of its verdicts are 1, of how many.
    kinds = (said >= 0).sum(0) * (len(said) + 1) + (said == 1).sum(0)
    verdicts, ones = np.divmod(np.arange(n_kinds), len(said) + 1)
    pairs, flips, twice = verdicts * (verdicts - 1) // 2, ones * (verdicts - ones), verdicts > 1
    terms = np.stack([pairs, flips, ones * twice, verdicts * twice, twice], axis=1)
    clusters = by_cluster(judged.clusters, groups.codes, size, kinds, n_kinds)
    sums = clusters.counts @ terms
    total, share = clusters.total(sums), shares(clusters, sums[:, [1]], sums[:, [0]])
    every = np.bincount(groups.codes, minlength=size) * pairs.max()
    figures = {"flip_rate": share.point[:, 0], "flip_rate_min": ratio(total[:, 1], every)}
    figures |= {
        "flip_rate_max": ratio(total[:, 1] + every - total[:, 0], every),
        "kappa": _kappa(total, share.point[:, 0]),
    }
    if intervals is not None:
        low, high = (ends[:, 0] for ends in share.limits(intervals.confidence))
        kappa = {"kappa_low": _kappa(total, high), "kappa_high": _kappa(total, low)}
        figures |= kappa | {"flip_rate_low": low, "flip_rate_high": high}
    rates = [nine.rates(c, nine.unlabelled(c)) for c in (nine.count(groups.codes, size, judged.label, r) for r in said)]
    figures |= {f"{rate}_spread": np.ptp([one[rate] for one in rates], axis=0) for rate in RATES}
    for place, group in enumerate(groups.keys):
        n, claims = int(total[place, 4]), int((groups.codes == place).sum())
        row: Row = {**group, "evaluator": name, "n": n, "n_unscored": claims - n, "n_repeats": len(said)}
        row |= {key: number(values[place]) for key, values in figures.items()}
        same = "all verdicts are the same" if n else "no claim has two verdicts"
        lacking = ", ".join(rate for rate in RATES if row[f"{rate}_spread"] is None)
        why = [same if row["kappa"] is None else "", lacking and f"not defined in every repeat: {lacking}"]
        yield row | {"reason": reasons([*why, without_interval(row)])}


def _kappa(total: np.ndarray, flips: np.ndarray) -> np.ndarray:
    """What flips leave of the agreement beyond chance; its interval is that of the flips, p as it is."""
    return 1 - ratio(flips, 2 * (p := ratio(total[:, 2], total[:, 3])) * (1 - p))


def _unstable(audited: Audited) -> Iterator[Finding]:
    for evaluator, rows in by_evaluator(audited.per_dataset("stability", "flip_rate")):
        worst = max(rows, key=lambda row: row["flip_rate"])
        said = f"Asked again, {evaluator} changes {percent(worst['flip_rate'])} of its verdicts on {worst['dataset']}"
        most = max(worst["flip_rate_max"], worst.get("flip_rate_high") or 1)
        advice, severity = ", and no more elsewhere", beyond(worst, "flip_rate", MAX_FLIPS)
        if worst["flip_rate"] > MAX_FLIPS:
            advice = ": no figure of it is surer than that; ask several times and take the majority"
        elif most > MAX_FLIPS:
            advice = (
                f"; more than {percent(MAX_FLIPS)} is not ruled out, so repeat more claims before you call it stable"
            )
        else:
            severity = "ok"
        keys = ("flip_rate", "flip_rate_low", "flip_rate_high", "kappa", "bacc_spread", "n", "n_repeats")
        yield Finding(severity, evaluator, worst["dataset"], f"{said}{advice}.", evidence_of(worst, *keys))


def _steady(audited: Audited, evaluator: str) -> Answer | None:
    """May what was measured once be read as what the evaluator says?"""
    rows = [row for row in audited.per_dataset("stability", "flip_rate") if row["evaluator"] == evaluator]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["flip_rate"])
    low, most = worst.get("flip_rate_low"), max(worst["flip_rate_max"], worst.get("flip_rate_high") or 1)
    figure = f"{percent(worst['flip_rate'])} change"
    place = f"on {worst['dataset']}, {percent(worst['flip_rate'])} of its verdicts change when it is asked again"
    if low is not None and low > MAX_FLIPS:
        return Answer("no", figure, f"{place}: everything measured with it has that much chance in it.")
    if most <= MAX_FLIPS:
        return Answer("yes", figure, f"{place}, and no more elsewhere.")
    return Answer("cannot tell", figure, f"{place}; more than {percent(MAX_FLIPS)} is not ruled out.")


_SPREAD = "highest − lowest over the repeats; it grows with their number"
AUDIT = Audit(
    name="stability",
    place=130,
    title="Whether an evaluator agrees with itself",
    question="Does an evaluator say the same when it is asked again?",
    formula="Flip rate = pairs of verdicts on one claim that differ / all such pairs; κ = 1 − flip rate / (2p(1 − p)), "
    "p being the share of verdicts that are 1 (Fleiss); spread = highest − lowest value over the repeats.",
    text="What changes from one repeat to the next is chance, and no interval over claims has it.",
    columns={
        **shared("dataset", "evaluator"),
        "n": Column("n", "count", "claims with two verdicts or more"),
        "n_unscored": Column("unscored", "count", "claims with fewer"),
        "n_repeats": Column("repeats", "count", "how often the evaluator was asked"),
        "flip_rate": Column("flip rate", "percent", "share of pairs that differ", bounds=True, interval=True),
        "kappa": Column("κ with itself", "number", "agreement of the repeats beyond chance", digits=2, interval=True),
        **{f"{r}_spread": Column(f"{name} spread", "points", _SPREAD, signed=False) for r, name in RATES.items()},
        **shared("reason"),
    },
    options={"by": "columns of the claims"},
    compute=stability,
    applies=lambda judged: judged.repeats is not None,
    decides=(Decision("answer the same again", _steady),),
    plots=(DotPlot(what="Verdicts that change, and rates over repeats", keys=("flip_rate", "bacc_spread")),),
    checks=(Check("stability", "Verdicts that change when asked again", "over 5 % of verdicts change", _unstable),),
)
