"""How close is a predicted error rate to the labelled one? (VC §3.3, Tables 9-11, 13, 14, 16-21,
23, 24, 26, 27, 29)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from factaudit.arrays.figures import compute_error_rates, count_bias_clusters
from factaudit.arrays.judgements import (
    ALL_TOGETHER,
    LABEL,
    LEVELS,
    ClaimGroups,
    Judgements,
)
from factaudit.audit.core.audit_declaration import (
    DISCORDANT,
    Audit,
    Column,
    ScatterPlot,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import (
    Row,
    explain_missing_labels,
    tabulate,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def compute_quantification_bias(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Labelled and predicted error rates of each system, and the bias = predicted - labelled.

    There is a row per data set, level, evaluator and system, then one for the system ``__all__``
    (all claims of the data set, also those without a system). It has n (labelled and scored claims
    or responses; all scored ones if none is labelled), n_unscored, n_guessed, n_unlabelled,
    labelled_error_rate (over all labels, scored or not), predicted_error_rate (over n) and bias.
    Each figure has ``_min`` and ``_max``, the lowest and highest values that the missing
    predictions allow, and if intervals are wanted ``_low`` and ``_high``. Claims in no response
    (`find_claims_in_responses`) are named in the reason of the ``__all__`` row.
    """
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        groups = [judgements.make_groups(level, systems=systems) for systems in (True, False)]
        for place in range(len(judgements.evaluators)):
            for each in groups:
                rows += _tabulate_error_rates(judgements, place, each, intervals)
    return sorted(rows, key=lambda row: row["dataset"])


def _tabulate_error_rates(
    judgements: Judgements, place: int, groups: ClaimGroups, intervals: ClusterBootstrap | None
) -> list[Row]:
    tally, level = judgements.tally(groups, LABEL, place), groups.level
    figures = compute_error_rates(tally, None if intervals is None else intervals.confidence)
    labels, counts = tally.cells[:, :2].sum((1, 2)), tally.count_sizes()
    counts["n_labelled"] = labels
    if intervals is not None:
        counts["n_clusters"] = count_bias_clusters(tally)
    reasons = {}
    if groups.has_lone_claims is not None:
        reasons["claims in no response"] = groups.has_lone_claims
    reasons |= {
        f"no labelled {level} is scored": (labels > 0) & (counts["n"] == 0),
        f"no {level} is scored": (labels == 0) & (counts["n"] == 0),
        f"{explain_missing_labels(level)}: the rate is of all scored": (
            (labels == 0) & (counts["n"] > 0)
        ),
        "responses without labels for all claims left out": (
            (counts["n_unlabelled"] > 0) & (labels > 0) & (level == "response")
        ),
    }
    keys = [
        {
            "dataset": key["dataset"],
            "level": level,
            "system": key.get("system", ALL_TOGETHER),
            "evaluator": judgements.evaluators[place],
        }
        for key in groups.keys
    ]
    return tabulate(keys, counts, figures, reasons)


# ---- checks


def list_tested_biases(run: AuditedRun) -> list[Row]:
    """The rates of claims by system, and of all systems of a data set together (``is_total``),
    which reveal a bias first if many rates are each slightly off. If there is one system, its rate
    is the total."""
    rows = [row for row in run.per_dataset("quantification", "bias") if row["level"] == "claim"]
    n_systems = Counter(
        (row["dataset"], row["evaluator"]) for row in rows if row["system"] != ALL_TOGETHER
    )
    found = []
    for row in rows:
        n, is_whole = n_systems[row["dataset"], row["evaluator"]], row["system"] == ALL_TOGETHER
        if is_whole and n == 1:
            continue
        whose = "the error rate" if is_whole else f"{row['system']}'s error rate"
        if row.get("n_unlabelled"):  # then the rate is not what it says of the system
            whose += " among labelled claims"
        found.append(row | {"whose": whose, "is_total": is_whole and n > 0})
    return found


BIAS_CHECK = Check(
    id="bias",
    title="Predicted error rates that are wrong",
    rows=list_tested_biases,
    figure="bias",
    limit=lambda limits: limits.max_bias,
    side="off",
    says=(
        "{evaluator} puts {whose}{on} at {predicted_error_rate:percent} where the labels say "
        "{labelled_error_rate:percent}, {verdict}."
    ),
    beyond="more than {limit:limit} points off",
    slight="off",
    advice="Do not publish the rates that it predicts as they are.",
    within=(
        "Every error rate that {evaluator} predicts is significantly less than {limit:limit} points"
        " from the labelled rate."
    ),
    unit="error rate",
    null="every predicted error rate is, over many claims, the labelled one",
)


# ---- declaration

_ERROR_RATES_DESCRIPTION = "share of label 0, share of prediction 0"
QUANTIFICATION_COLUMNS: dict[str, Column] = {
    **pick_shared_columns("dataset", "level", "evaluator"),
    "system": Column(
        "system",
        "text",
        "a system, or `__all__`: all claims, including those without a system",
        key=True,
        values={ALL_TOGETHER: "all systems"},
    ),
    **pick_shared_columns("n", "n_unscored", "n_guessed", "n_unlabelled", "n_labelled", "reason"),
    "labelled_error_rate": share_column(
        "labelled error rate", _ERROR_RATES_DESCRIPTION, counted_in="n_labelled"
    ),
    "predicted_error_rate": share_column("predicted error rate", _ERROR_RATES_DESCRIPTION),
    "bias": share_column("bias", "predicted − labelled error rate", DISCORDANT, "points"),
    "p_bias": Column(
        "p of bias",
        "p",
        "two-sided p-value of zero bias for this rate alone: the test that the interval inverts or,"
        " if few clusters change the rate, the exact sign test of these clusters, whichever p-value"
        " is larger",
        shown=False,
    ),
    "n_clusters": Column(
        "clusters",
        "count",
        "clusters behind the bias: documents, or responses, or claims",
        shown=False,
    ),
}

AUDIT = Audit(
    name="quantification",
    title="Error rates of systems, predicted and labelled",
    question="How well does an evaluator estimate the error rate of each system?",
    source="VC §3.3, Fig. 4, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29",
    formula=(
        "Error rate = share of 0. Bias = predicted − labelled error rate: below zero, the evaluator"
        " sees too few errors. A response is supported if all its claims are, and labelled if all"
        " its claims are."
    ),
    text="Shows whether an evaluator can tell how many errors a system makes (VC Fig. 4).",
    remedy=(
        "Report rates from `factaudit estimate` (about 100 labels are enough to start) instead of"
        " the predicted ones, or report the bias beside them."
    ),
    columns=QUANTIFICATION_COLUMNS,
    options={"levels": "`claim`, `response`"},
    compute=compute_quantification_bias,
    counts="margins",
    without_labels=True,
    plot=ScatterPlot(
        what="Predicted against labelled error rate, a marker for each system",
        reading="On the diagonal both are equal; below it the evaluator sees too few errors.",
        x="labelled_error_rate",
        y="predicted_error_rate",
        lines="diagonal",
    ),
    checks=(BIAS_CHECK,),
)
