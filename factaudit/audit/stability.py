"""Does an evaluator say the same when it is asked again?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.claim_groups import ClaimGroups, group_claims_by_columns
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditDecision,
    AuditDecisionColumn,
    AuditedRun,
    Check,
    Column,
    Finding,
    Permission,
    Severity,
    pick_shared_columns,
)
from factaudit.audit.core.decision_limits import MAX_FLIP_RATE, can_warn_without_intervals
from factaudit.audit.core.finding_parts import group_finding_rows_by_evaluator, make_row_finding
from factaudit.audit.core.interval_methods import KAPPA, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_row_intervals
from factaudit.audit.core.significance import p_above_limit, select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import count_codes_by_cluster, estimate_clustered_proportions
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.text.display_text import join_reasons

SPREAD_RATES = {"tpr": "TPR", "tnr": "TNR", "bacc": "BAcc", "ppr": "PPR"}


def compute_verdict_stability(
    judgements: Judgements, *, by: Sequence[str] = ("dataset",), intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """How often two verdicts of one evaluator on one claim differ, and how far its rates lie apart over its repeats.

    A row per group of ``by`` and evaluator that was asked more than once. flip_rate is over the pairs of verdicts on a
    claim; its bounds let the pairs that lack one agree, or differ. Spreads are over few repeats: without interval.
    """
    groups = group_claims_by_columns(judgements.claims, by)
    asked = judgements.prediction[None] if judgements.repeat_predictions is None else judgements.repeat_predictions
    rows: list[tuple[int, Row]] = []
    for at, evaluator in enumerate(judgements.evaluators):
        said = asked[(asked[:, at] >= 0).any(1), at]
        if len(said) > 1:
            rows += enumerate(_build_stability_rows(judgements, groups, evaluator, said, intervals))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _build_stability_rows(
    judgements: Judgements,
    groups: ClaimGroups,
    evaluator: str,
    repeated_predictions: np.ndarray,
    intervals: ClusterBootstrap | None,
) -> Iterator[Row]:
    """A row per group; ``repeated_predictions``: int8 (R, n), the predictions of the repeats of the evaluator
    ``evaluator``.
    """
    size, n_kinds = len(groups.keys), (len(repeated_predictions) + 1) ** 2
    # A claim's kind: how many of its verdicts are 1, of how many.
    kinds = (repeated_predictions >= 0).sum(0) * (len(repeated_predictions) + 1) + (repeated_predictions == 1).sum(0)
    verdicts, ones = np.divmod(np.arange(n_kinds), len(repeated_predictions) + 1)
    pairs, flips, twice = verdicts * (verdicts - 1) // 2, ones * (verdicts - ones), verdicts > 1
    terms = np.stack([pairs, flips, ones * twice, verdicts * twice, twice], axis=1)
    clusters = count_codes_by_cluster(judgements.cluster_codes, groups.codes, size, kinds, n_kinds)
    sums = clusters.counts @ terms
    total, share = clusters.sum_by_group(sums), estimate_clustered_proportions(clusters, sums[:, [1]], sums[:, [0]])
    every = np.bincount(groups.codes, minlength=size) * pairs.max()
    figures = {"flip_rate": share.point[:, 0], "flip_rate_min": divide_or_undefined(total[:, 1], every)}
    figures |= {
        "flip_rate_max": divide_or_undefined(total[:, 1] + every - total[:, 0], every),
        "kappa": _kappa_between_repeats(total, share.point[:, 0]),
    }
    if intervals is not None:
        low, high = (ends[:, 0] for ends in share.wilson_intervals(intervals.confidence))
        kappa = {"kappa_low": _kappa_between_repeats(total, high), "kappa_high": _kappa_between_repeats(total, low)}
        figures |= kappa | {"flip_rate_low": low, "flip_rate_high": high}
    rates = [
        confusion_counts.confusion_rates(c, confusion_counts.is_group_unlabelled(c))
        for c in (
            confusion_counts.count_confusion_cells(groups.codes, size, judgements.label, r)
            for r in repeated_predictions
        )
    ]
    figures |= {f"{rate}_spread": np.ptp([one[rate] for one in rates], axis=0) for rate in SPREAD_RATES}
    for place, group in enumerate(groups.keys):
        n, claims = int(total[place, 4]), int((groups.codes == place).sum())
        row: Row = {
            **group,
            "evaluator": evaluator,
            "n": n,
            "n_unscored": claims - n,
            "n_repeats": len(repeated_predictions),
        }
        row |= {key: none_if_undefined(values[place]) for key, values in figures.items()}
        same = "all verdicts are the same" if n else "no claim has two verdicts"
        lacking = ", ".join(rate for rate in SPREAD_RATES if row[f"{rate}_spread"] is None)
        why = [same if row["kappa"] is None else "", lacking and f"not defined in every repeat: {lacking}"]
        yield row | {"reason": join_reasons([*why, explain_missing_row_intervals(row, FEW_CLUSTERS)])}


def _kappa_between_repeats(totals: np.ndarray, flip_rates: np.ndarray) -> np.ndarray:
    """Agreement beyond chance, 1 - flip rate / (2 p (1 - p)). Its interval is the flip rate's, p held fixed."""
    return 1 - divide_or_undefined(flip_rates, 2 * (p := divide_or_undefined(totals[:, 2], totals[:, 3])) * (1 - p))


def _find_unstable_verdicts(audited_run: AuditedRun) -> Iterator[Finding]:
    every = list(audited_run.per_dataset("stability", "flip_rate"))
    p_values = [p_above_limit(audited_run, row, "flip_rate", MAX_FLIP_RATE, is_share=True) for row in every]
    unstable = select_significant_rows(audited_run, every, p_values)
    for evaluator, rows in group_finding_rows_by_evaluator(every):
        sure = [row for row in unstable if row["evaluator"] == evaluator]
        worst = max(sure or rows, key=lambda row: row["flip_rate"])
        said = "Asked again, {worst.evaluator} changes {worst.flip_rate:percent} of its verdicts on {worst.dataset}"
        most = max(worst["flip_rate_max"], worst.get("flip_rate_high") or 1)
        most = max([most, *(max(row["flip_rate_max"], row.get("flip_rate_high") or 1) for row in rows)])
        severity: Severity
        advice, severity = " and no more on any other data set", "fail" if sure else "warn"
        if sure or (worst["flip_rate"] > MAX_FLIP_RATE and can_warn_without_intervals(every, "flip_rate")):
            advice = ". All its figures vary by chance; ask several times and take the majority"
        elif most > MAX_FLIP_RATE:  # these repeats cannot tell
            continue
        else:
            severity = "ok"
        keys = ("flip_rate", "flip_rate_low", "flip_rate_high", "kappa", "bacc_spread", "n", "n_repeats")
        statement = make_statement(f"{said}{advice}.", worst=worst)
        yield make_row_finding(severity, worst, statement, *keys)


def _decide_on_verdict_stability(audited_run: AuditedRun, evaluator: str) -> AuditDecision | None:
    """May what was measured once be read as what the evaluator says?"""
    rows = [row for row in audited_run.per_dataset("stability", "flip_rate") if row["evaluator"] == evaluator]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row["flip_rate"])
    low, most = worst.get("flip_rate_low"), max(worst["flip_rate_max"], worst.get("flip_rate_high") or 1)
    figure = make_statement("{worst.flip_rate:percent} of its verdicts change", worst=worst)
    place = "On {worst.dataset}, {worst.flip_rate:percent} of its verdicts change when it is asked again"
    may: Permission = "cannot tell"
    why = "; there are too few repeats to rule out more than {limit:limit} %."
    if low is not None and low > MAX_FLIP_RATE:
        may, why = "no", ". So much of every figure is due to chance."
    elif most <= MAX_FLIP_RATE:
        may, why = "yes", ", and on other data sets no more."
    return AuditDecision(may, figure, make_statement(place + why, worst=worst, limit=MAX_FLIP_RATE))


_SPREAD_DESCRIPTION = "highest − lowest value over the repetitions; it grows with their number"
AUDIT = Audit(
    name="stability",
    after="invariance",
    title="Whether an evaluator agrees with itself",
    question="Does an evaluator give the same verdict if it is asked again?",
    formula=(
        "Flip rate = pairs of verdicts on one claim that differ / all such pairs. κ = 1 − flip rate / (2p(1 − "
        "p)), where p is the share of verdicts that are 1 (Fleiss). Spread = highest − lowest value over the "
        "repetitions."
    ),
    text="What changes from one repetition to the next is chance, and no interval over claims includes it.",
    remedy=(
        "Treat differences smaller than the spread as chance. Ask at temperature 0, or several times and take "
        "the majority."
    ),
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "n": Column("n", "count", "claims with at least two verdicts"),
        "n_unscored": Column("unscored", "count", "claims with fewer verdicts"),
        "n_repeats": Column("repeats", "count", "how often the evaluator was asked"),
        "flip_rate": Column(
            "flip rate", "percent", "share of pairs of verdicts that differ", bounds=True, interval=WILSON
        ),
        "kappa": Column(
            "κ with itself", "number", "agreement of the repetitions beyond chance", digits=2, interval=KAPPA
        ),
        **{
            f"{r}_spread": Column(f"{name} spread", "points", _SPREAD_DESCRIPTION, signed=False)
            for r, name in SPREAD_RATES.items()
        },
        **pick_shared_columns("reason"),
    },
    options={"by": "columns of the claims table that form the groups"},
    compute=compute_verdict_stability,
    applies=lambda judged: judged.repeat_predictions is not None,
    decides=(AuditDecisionColumn("answer the same again", _decide_on_verdict_stability),),
    plot=PlotSpec(what="Verdicts that change, and rates over repeats", keys=("flip_rate", "bacc_spread")),
    checks=(
        Check(
            "stability",
            "Verdicts that change when asked again",
            "significantly more than 5 % of the verdicts change",
            _find_unstable_verdicts,
            null="at most 5 % of the verdicts change, on every data set",
            controls="Holm over all evaluators[ on all data sets]",
            figure="flip_rate",
        ),
    ),
)
