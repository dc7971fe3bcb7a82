"""Does an evaluator lean to one answer? Checks of TPR and TNR that are far apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from factaudit.audit.core.audit_declaration import AuditedRun, Check, Finding
from factaudit.audit.core.decision_limits import (
    can_warn_without_intervals,
    explain_undecided_decision_limit,
    is_significantly_within,
)
from factaudit.audit.core.evaluator_comparison import (
    ALIKE_BACC_DIFFERENCE,
    explain_absence_of_evaluators_of_like_accuracy,
    find_overall_evaluator_rows,
    list_evaluators_alike_by_bacc,
)
from factaudit.audit.core.figure_formatting import format_limit_in_points
from factaudit.audit.core.finding_parts import (
    MAX_TPR_TNR_GAP,
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    make_row_finding,
    name_evaluator_pair,
    pick_finding_evidence,
)
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.audit.core.significance import select_rows_beyond_limit
from factaudit.audit.core.statements import make_statement


def _find_gap_between_tpr_and_tnr(audited_run: AuditedRun) -> Iterator[Finding]:
    """TPR and TNR more than 20 points apart, on a data set or on average: the evaluator leans to one answer."""
    every = list(audited_run.per_dataset("rates", "gap"))
    means = _list_mean_gaps_of_tpr_and_tnr(audited_run, every)
    significant = select_rows_beyond_limit(audited_run, [*every, *means], "gap", MAX_TPR_TNR_GAP)
    is_untested = can_warn_without_intervals(every, "gap")
    for evaluator, rows in group_finding_rows_by_evaluator(every):
        mine = [row for row in significant if row["evaluator"] == evaluator]
        sure = [row for row in mine if row["dataset"] != MACRO_MEAN]
        far = [row for row in rows if abs(row["gap"]) > MAX_TPR_TNR_GAP and (row in sure or is_untested)]
        if mine or far:
            worst = max(sure or mine or far, key=lambda row: abs(row["gap"]))
            passes = worst["gap"] > 0
            worse, better = ("errors", "correct claims") if passes else ("correct claims", "errors")
            verbs = ("passes", "finds") if passes else ("finds", "passes")
            place, total = "on {worst.dataset}", ""
            cells = sure or [row for row in far if not mine]
            over, under = ([row for row in cells if row["gap"] * side > 0] for side in (1, -1))
            leaning = sum(row["gap"] for row in rows) * (1 if passes else -1)
            how = " significantly" * bool(sure)
            where = format_how_many_datasets(cells, rows)
            if over and under:
                total = f" Its TPR is{how} more than {{limit:limit}} points above its TNR on {{over:count}} of "
                total += "{rows:count data set} and below it on {under:count}."
            elif cells and where:
                total = f" Its TPR and TNR are{how} more than {{limit:limit}} points apart{{where}}."
            elif mine and not sure:
                place = "on average over {rows:count data set}"
                total = " On average, but on no single data set, they are significantly more than {limit:limit} points "
                total += "apart."
            unsure = "" if mine else f" ({explain_undecided_decision_limit(worst, 'gap')})"
            high, low = ("tpr", "tnr") if passes else ("tnr", "tpr")
            few = f"only {{worst.{low}:percent}}" if worst[low] else "none"
            advice = f" Check a sample of the claims that it {'passes' if passes else 'flags'} before you rely on it."
            # The worst data set says what to check only where the others do not say the opposite.
            advice *= leaning > 0 and not (over and under)
            said = make_statement(
                f"{{worst.evaluator}} {verbs[0]} {{worst.{high}:percent}} of the {better} but {verbs[1]} {few} of the "
                f"{worse} {place}{{unsure}}.{advice}{total}",
                worst=worst,
                rows=rows,
                unsure=unsure,
                limit=MAX_TPR_TNR_GAP,
                where=where,
                over=over,
                under=under,
            )
            keys = ("tpr", "tnr", "gap", "gap_low", "gap_high", *["n"] * (worst.get("n") is not None))
            yield make_row_finding("fail" if mine else "warn", worst, said, *keys)
        elif rows and all(is_significantly_within(row, "gap", MAX_TPR_TNR_GAP) for row in rows):
            widest = max(rows, key=lambda row: abs(row["gap"]))
            text = "{widest.evaluator}'s TPR and TNR are significantly less than {limit:limit} points apart on every "
            text += "data set (at most {widest.gap:points} points, on {widest.dataset})."
            said = make_statement(text, widest=widest, limit=MAX_TPR_TNR_GAP)
            yield Finding("ok", evaluator, None, said, pick_finding_evidence(widest, "tpr", "tnr", "gap"))


def _list_mean_gaps_of_tpr_and_tnr(audited_run: AuditedRun, dataset_rows: Sequence[Row]) -> list[Row]:
    """Each evaluator's mean over data sets, where there are several and each has the gap.

    Few claims a data set may show nothing on any, and the same gap on all of them.
    """
    counts = Counter(row["evaluator"] for row in dataset_rows)
    overall = find_overall_evaluator_rows(audited_run.rows("rates"))
    return [
        row
        for name, row in overall.items()
        if row["dataset"] == MACRO_MEAN and row.get("n_datasets") == counts[name] > 1
    ]


def _find_like_bacc_with_opposite_tpr_tnr_gaps(audited_run: AuditedRun) -> Iterator[Finding]:
    """Two evaluators of like BAcc, one of which passes and one of which rejects too much."""
    rows = {(row["dataset"], row["evaluator"]): row for row in audited_run.per_dataset("rates", "gap")}
    found = []
    pairs, is_untested = list_evaluators_alike_by_bacc(audited_run), can_warn_without_intervals(rows.values(), "gap")
    lopsided = select_rows_beyond_limit(audited_run, list(rows.values()), "gap", 0)
    for first, second in pairs:
        for dataset in dict.fromkeys(dataset for dataset, _ in rows):
            a, b = rows.get((dataset, first)), rows.get((dataset, second))
            if a and b and a["gap"] * b["gap"] < 0 and abs(a["gap"] - b["gap"]) > MAX_TPR_TNR_GAP:
                sure = a in lopsided and b in lopsided
                if not sure and not is_untested:
                    continue
                found.append((sure, abs(a["gap"] - b["gap"]), a, b))
    if not found:
        return
    sure, _, a, b = max(found, key=lambda each: each[:2])
    passes, rejects = (a, b) if a["gap"] > 0 else (b, a)
    told = {name_evaluator_pair(each[2], each[3]) for each in found}
    has_several_datasets = len({dataset for dataset, _ in rows}) > 1
    alike = "about the same mean BAcc" if has_several_datasets else "about the same BAcc"
    yield Finding(
        "warn",
        name_evaluator_pair(a, b),
        a["dataset"],
        make_statement(
            f"{{a.evaluator}} and {{b.evaluator}} have {alike} but lean to opposite answers on "
            f"{{a.dataset}}{{unsure}}. "
            "To find errors, choose {rejects.evaluator} (TNR {rejects.tnr:percent} against {passes.tnr:percent}). To "
            "keep correct claims, choose {passes.evaluator} (TPR {passes.tpr:percent} against {rejects.tpr:percent})."
            + f" This is true of {{told:count}} of {{pairs:count}} pairs with {alike}"
            f"{', each on at least one data set' * has_several_datasets}." * (len(pairs) > 1),
            a=a,
            b=b,
            unsure="" if sure else f" ({explain_undecided_decision_limit(a, 'gap')})",
            passes=passes,
            rejects=rejects,
            told=sorted(told),
            pairs=pairs,
        ),
        {f"{key}_{side}": row[key] for side, row in (("a", a), ("b", b)) for key in ("bacc", "tpr", "tnr")},
    )


RATES_CHECKS = (
    Check(
        "gap",
        "TPR and TNR far apart",
        f"TPR and TNR are more than {format_limit_in_points(MAX_TPR_TNR_GAP)} points apart, on a data set or "
        "as the mean over data sets",
        _find_gap_between_tpr_and_tnr,
        null=f"TPR and TNR are at most {format_limit_in_points(MAX_TPR_TNR_GAP)} points apart everywhere",
        controls="Holm over all evaluators[, data sets and their means]",
        figure="gap",
    ),
    Check(
        "bacc_tie",
        "Same BAcc, opposite mistakes",
        f"of two evaluators of about the same BAcc (within {format_limit_in_points(ALIKE_BACC_DIFFERENCE)} "
        f"points), one "
        "leans to passing claims and the other to flagging them",
        _find_like_bacc_with_opposite_tpr_tnr_gaps,
        null="of no two evaluators of about the same BAcc has one a TPR above its TNR and the other a TPR below "
        "its TNR",
        controls="Holm over the gaps of all evaluators[ on all data sets]",
        figure="gap",
        lacks=explain_absence_of_evaluators_of_like_accuracy,
    ),
)
