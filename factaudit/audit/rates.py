"""How often is an evaluator right on correct claims (TPR) and on errors (TNR)? (VC §3.2, Figure
3)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations, product
from operator import itemgetter, methodcaller

import numpy as np

from factaudit.arrays.figures import compute_rates
from factaudit.arrays.judgements import LABEL, Judgements
from factaudit.audit.core.audit_declaration import (
    MOVER,
    Audit,
    Column,
    ScatterPlot,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun, open_share, widen_interval
from factaudit.audit.core.checks import Check, Count
from factaudit.audit.core.result_rows import (
    MACRO_MEAN,
    Row,
    average_datasets,
    group_rows,
    interleave,
    tabulate,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

RATE_NAMES = ("tpr", "tnr", "fpr", "fnr", "bacc", "ppr", "gap")


def compute_evaluator_rates(
    judgements: Judgements,
    *,
    by: Sequence[str] = ("dataset",),
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """TPR, TNR, BAcc, PPR and the gap TPR - TNR of each evaluator, grouped by any columns of the
    claims table.

    A row per group of ``by`` and evaluator has the keys of ``by``, evaluator, n (labelled and
    scored claims; all scored ones if none is labelled), n_unscored, n_guessed, n_unlabelled,
    n_attributable, n_unattributable, then tpr, tnr, fpr, fnr, bacc, ppr and gap. Each figure has
    ``_min`` and ``_max``, the lowest and highest values that the missing predictions allow, and if
    intervals are wanted ``_low`` and ``_high``. If ``by`` has dataset, a row of the dataset
    ``__macro__`` has the unweighted mean of each figure over the datasets on which it is defined.
    """
    groups = judgements.make_groups("claim", by)
    confidence = None if intervals is None else intervals.confidence
    tables = []
    for place, evaluator in enumerate(judgements.evaluators):
        tally = judgements.tally(groups, LABEL, place)
        figures = compute_rates(tally, confidence)
        n_errors, n_correct = tally.cells[:, :2, :2].sum(2).T
        counts = tally.count_sizes() | {"n_attributable": n_correct, "n_unattributable": n_errors}
        counts["n_datasets"] = np.ones(len(n_errors), dtype=int)
        keys = [{**key, "evaluator": evaluator} for key in groups.keys]
        reasons = {
            "no attributable claim is labelled and scored": n_correct == 0,
            "no unattributable claim is labelled and scored": n_errors == 0,
            "no claim is labelled: ppr is over all scored claims": tally.is_unlabelled,
        }
        tables.append(tabulate(keys, counts, figures, reasons))
    rows = interleave(tables)
    if "dataset" not in by or not rows:
        return rows
    others = ["evaluator", *(column for column in by if column != "dataset")]
    return rows + average_datasets(rows, others, RATE_NAMES, list(counts))


# ---- checks

#: An evaluator with a larger |TPR - TNR| is lopsided (VC §3.2: 20 points).
MAX_TPR_TNR_GAP = 0.20
#: Evaluators whose BAccs differ by at most this are alike by BAcc.
ALIKE_BACC_DIFFERENCE = 0.02


def _list_gaps(run: AuditedRun) -> Iterator[Row]:
    """The gap on each data set, and the mean gap if all data sets have one: the same gap on several
    data sets may be significant only together."""
    every = list(run.per_dataset("rates", "gap"))
    counts = Counter(row["evaluator"] for row in every)
    means = [row for row in run.rows("rates") if row["dataset"] == MACRO_MEAN]
    every += [row for row in means if row["n_datasets"] == counts[row["evaluator"]] > 1]
    for row in every:
        yield row | {"leans": "passes" if row["gap"] > 0 else "flags"}


def list_evaluators_alike_by_bacc(run: AuditedRun) -> list[tuple[str, str]]:
    """Pairs of evaluators whose balanced accuracies are alike *on average* (as VC pairs them),
    neither of them at chance."""
    able = {}
    for name, row in run.overall("rates").items():
        if name not in run.floors and row.get("bacc") is not None:
            low = widen_interval(row, "bacc")[0] if "bacc_low" in row else row["bacc"]
            if low > 0.5:
                able[name] = row["bacc"]
    pairs = combinations(able, 2)
    return [(a, b) for a, b in pairs if abs(able[a] - able[b]) <= ALIKE_BACC_DIFFERENCE]


def _find_opposite_habits(run: AuditedRun) -> list[Row]:
    """Two evaluators of similar balanced accuracy, of which one significantly tends to pass claims
    and the other to flag them on one data set. The pair that is farthest apart is taken;
    evaluator_a passes claims, and figures of evaluator_b, which flags them, are ``other_...``."""
    every_gap = replace(GAP_CHECK, rows=methodcaller("per_dataset", "rates"), limit=0.0)
    lopsided = [row for row in every_gap.judge_rows(run) if row["verdict"] == "beyond"]
    pairs, found = list_evaluators_alike_by_bacc(run), []
    for pair, rows in product(pairs, group_rows(lopsided, "dataset").values()):
        mine = [row for row in rows if row["evaluator"] in pair]
        mine.sort(key=itemgetter("gap"))
        if len(mine) == 2 and mine[0]["gap"] < 0 < mine[1]["gap"]:
            flags, passes = mine
            names = {"evaluator_a": passes["evaluator"], "evaluator_b": flags["evaluator"]}
            others = {f"other_{rate}": flags[rate] for rate in ("tpr", "tnr")}
            apart = {"evaluator": None, "apart": passes["gap"] - flags["gap"]}
            found.append(passes | names | others | apart)
    return sorted(found, key=itemgetter("apart"))[-1:]


def _list_unscored_shares(run: AuditedRun) -> Iterator[Row]:
    """What each evaluator left unscored, or what was guessed, on each data set."""
    for row in run.per_dataset("rates"):
        if row["n_unscored"] is not None:
            severity = "warn" if row["n"] else "fail"
            n = row["n"] + row["n_unscored"]
            yield row | {"share": open_share(row), "n_claims": n, "severity": severity}


GAP_CHECK = Check(
    id="gap",
    title="TPR and TNR far apart",
    rows=_list_gaps,
    figure="gap",
    limit=MAX_TPR_TNR_GAP,
    side="off",
    says=(
        "{evaluator} passes {tpr:percent} of the correct claims and finds {tnr:percent} of the"
        " errors{on}, {verdict}."
    ),
    beyond="more than {limit:limit} points apart",
    advice="Check a sample of the claims that it {leans} before you rely on it.",
    within=(
        "{evaluator}'s TPR and TNR are significantly less than {limit:limit} points apart on"
        " every data set (at most {gap:points} points{on})."
    ),
    null="TPR and TNR are at most 20 points apart, on every data set and on average",
)
CHECKS = (
    GAP_CHECK,
    Count(
        id="bacc_tie",
        title="Same BAcc, opposite mistakes",
        rows=_find_opposite_habits,
        figure="apart",
        limit=MAX_TPR_TNR_GAP,
        by=(),
        says=(
            "{evaluator_a} and {evaluator_b} have about the same BAcc, but lean to opposite"
            " answers{on}."
        ),
        advice=(
            "To find errors, choose {evaluator_b} (TNR {other_tnr:percent} against"
            " {tnr:percent}). To keep correct claims, choose {evaluator_a} (TPR {tpr:percent}"
            " against {other_tpr:percent})."
        ),
        null=(
            "of no two evaluators of about the same BAcc (within 2 points) leans one to passing"
            " claims and the other to flagging them"
        ),
    ),
    Count(
        id="unscored",
        title="Claims without a verdict",
        rows=_list_unscored_shares,
        figure="share",
        limit=lambda limits: limits.max_unscored,
        says=(
            "{evaluator} did not score, or only guessed, {share:percent} of {n_claims:number"
            " claim}{on}, {verdict}."
        ),
        beyond="more than {limit:limit} %",
        advice="Until these claims have verdicts, its figures are ranges.",
        claims="unscored",
        on_screen=True,
    ),
)


# ---- declaration


#: Also of the audits that compute rates of a part of the claims.
RATES_COLUMNS: dict[str, Column] = {
    **pick_shared_columns(
        "dataset",
        "evaluator",
        "n",
        "n_unscored",
        "n_guessed",
        "n_unlabelled",
        "reason",
        "n_datasets",
    ),
    "n_attributable": Column("label 1", "count", "scored claims with this label"),
    "n_unattributable": Column("label 0", "count", "scored claims with this label"),
    "tpr": share_column(
        "TPR", "P(prediction 1 given label 1)", claims="rejected", counted_in="n_attributable"
    ),
    "tnr": share_column(
        "TNR", "P(prediction 0 given label 0)", claims="passed", counted_in="n_unattributable"
    ),
    "fpr": share_column(
        "FPR", "1 − TNR", shown=False, claims="passed", counted_in="n_unattributable"
    ),
    "fnr": share_column(
        "FNR", "1 − TPR", shown=False, claims="rejected", counted_in="n_attributable"
    ),
    "bacc": share_column("BAcc", "(TPR + TNR) / 2", MOVER),
    "ppr": share_column("PPR", "share of claims with prediction 1"),
    "gap": share_column("gap", "TPR − TNR", MOVER, "points"),
}

AUDIT = Audit(
    name="rates",
    title="How often each evaluator is right",
    question=(
        "How often is each evaluator right on supported claims (label 1) and on errors (label 0)?"
    ),
    source="VC §3.2, Fig. 3",
    formula=(
        "TPR = P(prediction 1 | label 1); TNR = P(prediction 0 | label 0); BAcc = (TPR + TNR) / 2;"
        " PPR = share of claims with prediction 1; gap = TPR − TNR."
    ),
    text=(
        "Predictions are compared with labels. An evaluator with a high TPR and a low TNR accepts"
        " claims too readily. Two evaluators of equal balanced accuracy can err in opposite ways"
        " (VC Fig. 3)."
    ),
    remedy=(
        "If TPR and TNR are far apart, tune the threshold on your own labels (`discrimination`) or"
        " correct the error rates (`factaudit estimate`). If the interval of BAcc contains 50 %, do"
        " not use the evaluator on such data."
    ),
    columns=RATES_COLUMNS,
    options={"by": "columns of the claims table that form the groups"},
    compute=compute_evaluator_rates,
    counts="joint",
    plot=ScatterPlot(
        what="TPR against TNR, with lines of equal balanced accuracy",
        reading=(
            "Large markers are means over data sets. Far to the left: misses errors. Low: flags"
            " correct claims."
        ),
        x="tnr",
        y="tpr",
        lines="equal_bacc",
    ),
    checks=CHECKS,
)
