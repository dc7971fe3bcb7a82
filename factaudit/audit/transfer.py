"""Does what one system's labels say of an evaluator hold for the others? What every correction supposes (VC §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.arrays.judgements import LABEL_FIELD, LEVELS, Judgements, prediction_field
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    make_row_finding,
)
from factaudit.audit.core.result_rows import CONSTANT_EVALUATOR, Row
from factaudit.audit.core.significance import select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.homogeneity_test import rao_scott_homogeneity_test
from factaudit.stats.multiplicity import cauchy_combined_p
from factaudit.text.display_text import format_count

#: Each rate with the label of its class.
_RATE_LABELS = {"tpr": 1, "tnr": 0}
#: The difference between systems that the power is told for, in points.
POWER_POINTS = 10


def compute_rate_transfer(
    judgements: Judgements,
    *,
    levels: Sequence[str] = LEVELS,
    alpha: float = 0.05,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Are an evaluator's TPR and TNR the same on all systems of a dataset?

    A row per dataset, level, evaluator and rate (``tpr``, ``tnr``): n_systems (with scored claims of the class), n,
    n_unscored, lowest and highest (of the systems' rates), n_lowest and n_highest (claims of the system with that rate;
    of equals, of that with most), p (of the test that all are equal, over clusters:
    `factaudit.stats.homogeneity_test`), power_10 (how probably it finds that one system is 10 points off the others),
    missable (the largest such difference that it would have missed more than once in five times), and transfers:
    ``no`` where the test rejects, ``yes`` where it does not and would have found 10 points with a power of 80 %, and of
    an evaluator that says the same of any claim, else ``cannot tell``: a test without power licenses nothing.
    """
    del intervals  # a test has none
    rows: list[Row] = []
    for level in dict.fromkeys(levels):
        systems = judgements.make_groups(level, systems=True)
        for dataset in judgements.dataset_names:
            places = [place for place, key in enumerate(systems.keys) if key["dataset"] == dataset]
            for at, evaluator in enumerate(judgements.evaluators):
                clusters = judgements.count_clusters_jointly(systems, places, LABEL_FIELD, prediction_field(at))
                for rate, label in _RATE_LABELS.items():
                    row: Row = {"dataset": dataset, "level": level, "evaluator": evaluator, "rate": rate}
                    row |= _build_transfer_row(clusters, label, len(places), alpha)
                    if is_constant_evaluator(evaluator) and row["n"]:  # of other claims it would say the same
                        row |= dict.fromkeys(("p", f"power_{POWER_POINTS}", "missable"))
                        row |= {"transfers": "yes", "reason": f"no test: {CONSTANT_EVALUATOR}"}
                    rows.append(row)
    rows.sort(key=lambda row: row["dataset"])
    return rows


def _build_transfer_row(clusters: ClusterCounts, label: int, n_systems: int, alpha: float) -> Row:
    counts = clusters.counts.reshape(len(clusters.group), n_systems, 3, 3)[:, :, label]
    found = estimate_clustered_proportions(clusters, counts[..., label], counts[..., :2].sum(-1))
    total = clusters.sum_by_group(counts)[0]
    scored = total[:, :2].sum(-1)
    row: Row = dict.fromkeys(("lowest", "highest", "n_lowest", "n_highest"))
    row |= {"n_systems": int((scored > 0).sum()), "n": int(scored.sum()), "n_unscored": int(total[:, 2].sum())}
    defined = sorted(zip(found.point[0][scored > 0].tolist(), scored[scored > 0].tolist(), strict=True))
    for key, rate in (("lowest", defined[0][0]), ("highest", defined[-1][0])) if defined else ():
        row |= {key: rate, f"n_{key}": int(max(n for point, n in defined if point == rate))}
    test = rao_scott_homogeneity_test(found, 0, alpha)
    if test is None:
        systems = format_count(row["n_systems"], "system")
        why = f"{systems} with claims of this class in several clusters: nothing to compare"
        if row["n_systems"] > 1 and np.all(found.n_clusters[0][scored > 0] > 1):
            why = "the evaluator errs alike on all systems in every cluster: nothing says how a difference varies"
        row |= dict.fromkeys(("p", f"power_{POWER_POINTS}", "missable"))
        return row | {"transfers": "cannot tell", "reason": why}
    powerful = test.missable_difference <= POWER_POINTS / 100
    verdict = "no" if test.p < alpha else "yes" if powerful else "cannot tell"
    row |= {"p": test.p, f"power_{POWER_POINTS}": test.power(POWER_POINTS / 100), "missable": test.missable_difference}
    return row | {"transfers": verdict, "reason": None}


# ----------------------------------------------------------------------------------------------------------- findings


def _find_untransferable_rates(audited_run: AuditedRun) -> Iterator[Finding]:
    """What one system's labels say that does not hold for the others, or is not known to."""
    rows = [row for row in audited_run.rows("transfer") if row["level"] == "claim" and row["p"] is not None]
    by_evaluator = list(group_finding_rows_by_evaluator(rows))
    combined = [
        min(mine, key=_read_p) | {"p_together": cauchy_combined_p(np.array([row["p"] for row in mine]))}
        for _, mine in by_evaluator
    ]
    unlike = select_significant_rows(audited_run, combined, [row["p_together"] for row in combined])
    unlike_rates = select_significant_rows(audited_run, rows, [row["p"] for row in rows])
    for evaluator, mine in by_evaluator:
        rejected = [row for row in unlike_rates if row["evaluator"] == evaluator]
        alone = [row for row in mine if row["transfers"] == "no"]  # by the row's own test
        blind = [row for row in mine if row["transfers"] == "cannot tell"]
        together = next((row for row in unlike if row["evaluator"] == evaluator), None)
        if together is not None:
            worst = min(mine, key=_read_p)
            if rejected:
                worst = max(rejected, key=lambda row: row["highest"] - row["lowest"])
                text = (
                    f"{{worst.evaluator}} does not judge all systems alike{{where}}: its {worst['rate'].upper()} on "
                    "{worst.dataset} goes from {worst.lowest:percent} ({worst.n_lowest:number claim}) to "
                    "{worst.highest:percent} ({worst.n_highest:number}) over systems. "
                )
            else:
                text = (
                    "{worst.evaluator} does not judge all systems alike, by {mine:count test} of its rates together. "
                    "Which rates differ is not shown: {alone:count} of {mine:count} "
                    f"{'rejects' if len(alone) == 1 else 'reject'} alone, none after the correction for "
                    "{rows:count test}. "
                )
            said = make_statement(
                text + "Adjusted counts by one system's labels need not correct the others.",
                worst=worst,
                where=format_how_many_datasets(rejected, mine),
                alone=alone,
                mine=mine,
                rows=rows,
            )
            keys = ("dataset", "rate", "lowest", "highest", "p", "n_systems")
            yield make_row_finding("fail", worst, said, *keys, p_together=together["p_together"])
        elif alone:
            worst = min(alone, key=_read_p)
            text = (
                "Whether {worst.evaluator} judges all systems alike is not known: {alone:count} of {mine:count test} "
                f"of its rates {'rejects' if len(alone) == 1 else 'reject'} alone, but not all together"
                f"{' after the correction for {combined:count evaluator}' * (len(combined) > 1)}. "
            )
            said = make_statement(
                text + "Adjusted counts by one system rest on it.",
                worst=worst,
                alone=alone,
                mine=mine,
                combined=combined,
            )
            yield make_row_finding("warn", worst, said, "rate", "p", f"power_{POWER_POINTS}", "missable", "n")
        elif blind:
            worst = max(blind, key=lambda row: row["missable"])
            said = make_statement(
                "Whether {worst.evaluator} judges all systems alike is not known: on {worst.dataset} the "
                f"test would miss {_state_undetectable_rate_difference(worst)}. "
                "Adjusted counts by one system rest on it.",
                worst=worst,
            )
            yield make_row_finding("warn", worst, said, "rate", "p", f"power_{POWER_POINTS}", "missable", "n")


def _read_p(row: Row) -> float:
    return float(row["p"])


def _state_undetectable_rate_difference(row: Row) -> str:
    """No rate can be farther from the others than the nearer end of [0, 1] lets it."""
    possible, rate = max(row["highest"], 1 - row["lowest"]), row["rate"].upper()
    if row["missable"] >= possible:
        return f"any difference of one system's {rate} more than once in five times"
    return f"a {rate} of one system that is {{worst.missable:points}} points off"


# --------------------------------------------------------------------------------------------------------- declaration

_RANGE_DESCRIPTION = "the systems' lowest and highest rate"
_RANGE_SIZE_DESCRIPTION = "scored claims of the class of the system with this rate; of equals, of that with most"

AUDIT = Audit(
    name="transfer",
    after="chunking_rates",
    title="Whether an evaluator judges all systems alike",
    question="Are TPR and TNR the same on all systems, as a correction by one system's labels supposes?",
    source="VC §5; Rao & Scott 1984; Liu & Xie 2020",
    formula="Pearson's X² of equal rates over systems, corrected for clusters; where a system has few of either "
    "outcome, p is at least that of random permutations. Missable: the largest difference of one system from the "
    "others that the test would have missed more than once in five times. Transfers: “no” where p is under 0.05, by "
    "this row's test alone. Findings combine an evaluator's tests (Cauchy) and correct for their number.",
    text="A correction by one system's labels holds for the others as far as the evaluator judges them alike. Not to "
    "reject that says nothing where the test had no power.",
    remedy="Systems differ: label some claims of each (`factaudit sample`) in place of a correction by one system's "
    "labels.",
    columns={
        **pick_shared_columns("dataset", "level", "evaluator"),
        "rate": Column("rate", "text", "`tpr` or `tnr`", key=True, values={"tpr": "TPR", "tnr": "TNR"}),
        **pick_shared_columns("n", "n_unscored", "reason"),
        "n_systems": Column("systems", "count", "systems with scored claims of the class"),
        "lowest": Column("lowest", "percent", _RANGE_DESCRIPTION),
        "highest": Column("highest", "percent", _RANGE_DESCRIPTION),
        "n_lowest": Column("claims of the lowest", "count", _RANGE_SIZE_DESCRIPTION, shown=False),
        "n_highest": Column("claims of the highest", "count", _RANGE_SIZE_DESCRIPTION, shown=False),
        "p": Column("p", "p", "of the test that all systems share one rate"),
        f"power_{POWER_POINTS}": Column(
            f"power for {POWER_POINTS} points",
            "percent",
            f"how probably it finds one system {POWER_POINTS} points off the others",
        ),
        "missable": Column(
            "missable",
            "points",
            "the largest difference of one system that it would have missed more than once in five times",
            signed=False,
        ),
        "transfers": Column(
            "transfers",
            "text",
            f"`yes` (not rejected, and {POWER_POINTS} points would have shown), `no`, or `cannot tell`",
        ),
    },
    options={"levels": "`claim`, `response`", "alpha": "of the test (0.05)"},
    compute=compute_rate_transfer,
    checks=(
        Check(
            "transfer",
            "Rates that differ between systems",
            "TPR or TNR differs between systems, or the test could not have told",
            _find_untransferable_rates,
            {"p_together": Column("p of all together", "p")},
            null="TPR and TNR are the same on all systems (that the test has no power is a caveat, and no alarm)",
            controls="the Cauchy combination of an evaluator's tests of both rates[ on all datasets], Holm over "
            "evaluators; for a single rate Holm over both rates of all evaluators[ on all datasets]",
            figure="p",
            gravity=lambda evidence: -evidence.get("p_together", 1.0),
            warns_if_unknown=True,
        ),
    ),
)
