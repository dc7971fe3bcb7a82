"""What limits every figure of a run? Checks of unscored claims and of too few documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import AuditedRun, Check, Column, Finding
from factaudit.audit.core.finding_parts import (
    MAX_TPR_TNR_GAP,
    format_first_finding_names,
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    pick_finding_evidence,
)
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

#: A bootstrap of fewer clusters gives intervals that are too narrow (Cameron, Gelbach & Miller 2008).
FEWEST_CLUSTERS = 10


def _find_unscored_claims_caveat(audited_run: AuditedRun) -> Iterator[Finding]:
    """Unscored claims, and guesses, that could change what is said of an evaluator."""
    every = list(audited_run.per_dataset("rates"))
    biases = {
        (row["dataset"], row["evaluator"]): row
        for row in audited_run.per_dataset("quantification", "bias")
        if row["system"] == ALL_TOGETHER and row["level"] == "claim"
    }
    orders = {
        (row["dataset"], row["evaluator"]): row
        for row in audited_run.per_dataset("ranking", "error_rate_min")
        if row["level"] == "claim"
    }
    for evaluator, mine in group_finding_rows_by_evaluator(every):
        mine = [row for row in mine if row["n_unscored"] is not None]
        if not mine:  # of printed rates nobody knows how many claims are unscored
            continue
        lacking = [row for row in mine if row["n_unscored"] or row.get("n_guessed")]
        none = [row for row in lacking if not row["n"]]
        open_questions = {
            row["dataset"]: _list_unscored_claims_caveats(row, every, biases, orders) for row in lacking if row["n"]
        }
        matter = [dataset for dataset, questions in open_questions.items() if questions]
        total = sum(row["n_unscored"] + (row.get("n_guessed") or 0) for row in lacking)
        if none:
            where = format_how_many_datasets(none, mine) or make_statement(" on {row.dataset}", row=none[0])
            text = make_statement(
                "{evaluator} has scored no claim{where}. Judge the claims first.", evaluator=evaluator, where=where
            )
            yield Finding("fail", evaluator, none[0]["dataset"], text, {"n_unscored": total})
        if matter:
            worst = max((row for row in lacking if row["dataset"] in matter), key=lambda row: row["n_unscored"])
            lost = worst | {"n_lost": worst["n_unscored"] + (worst.get("n_guessed") or 0)}
            yield Finding(
                "warn",
                evaluator,
                worst["dataset"],
                make_statement(
                    "{worst.evaluator} did not score, or only guessed, {worst.n_lost:number claim} on {worst.dataset}. "
                    "They could change {questions}. Judge them again before you conclude."
                    + " The same is true{where}."
                    * (len(mine) > 1),
                    worst=lost,
                    questions=join_statements(open_questions[worst["dataset"]], "; or "),
                    where=format_how_many_datasets(matter, mine),
                ),
                pick_finding_evidence(
                    worst, "n", "n_unscored", "gap", "gap_min", "gap_max", "bacc", "bacc_min", "bacc_max"
                ),
            )
        elif not none and any(row["n"] != row.get("n_unlabelled") for row in mine):
            said = make_statement(
                "{row.evaluator} has {row.n_lacking:number unscored claim}. "
                # Means over data sets are not tested.
                + ("On no data set can this change " if len(mine) > 1 else "This cannot change ")
                + "its rank by BAcc, "
                + "whether its error rate is too high or too low, "
                * any((row["dataset"], evaluator) in biases for row in lacking)
                + "or whether TPR and TNR are more than {limit:limit} points apart."
                if total
                else "{row.evaluator} has scored every labelled claim.",
                row=mine[0] | {"n_lacking": total},
                limit=MAX_TPR_TNR_GAP,
            )
            yield Finding("ok", evaluator, None, said, {"n_unscored": total})
    named = [
        each["name"] for each in audited_run.about.get("evaluators") or [] if each["name"] not in audited_run.floors
    ]
    scored = {row["evaluator"] for row in every}
    for name in named if scored else ():
        if name not in scored:
            yield Finding("fail", name, None, make_statement("{name} has no verdict on any claim.", name=name))


_RowByDatasetAndEvaluator = Mapping[tuple[str, str], Row]


def _list_unscored_claims_caveats(
    row: Row, rate_rows: Sequence[Row], bias_rows: _RowByDatasetAndEvaluator, ranking_rows: _RowByDatasetAndEvaluator
) -> list[Statement]:
    """What the bounds of an evaluator's rates on one dataset leave open."""
    dataset, evaluator = row["dataset"], row["evaluator"]
    found = []
    if row["gap"] is not None and not _is_settled_by_bounds(row, "gap", -MAX_TPR_TNR_GAP, MAX_TPR_TNR_GAP):
        text = "whether its TPR and TNR are more than {limit:limit} points apart"
        found.append(make_statement(text, limit=MAX_TPR_TNR_GAP))
    bias = bias_rows.get((dataset, evaluator))
    if bias is not None and not _is_settled_by_bounds(bias, "bias", 0):
        found.append(make_statement("whether its error rate is too low or too high"))
    order = ranking_rows.get((dataset, evaluator))
    if order is not None and order["error_rate_min"] < order["error_rate_max"]:
        found.append(make_statement("how many pairs of systems it orders like the labels"))
    elif order is not None and order["major_error_rate_min"] < order["major_error_rate_max"]:
        found.append(make_statement("how many pairs of systems it puts in the wrong order"))
    rivals = [
        other["evaluator"]
        for other in rate_rows
        if other["dataset"] == dataset
        and other["evaluator"] != evaluator
        and _can_unscored_claims_reverse_bacc_order(row, other)
    ]
    if rivals:
        text = "whether its BAcc is higher than that of {names}"
        found.append(make_statement(text, names=format_first_finding_names(rivals)))
    return found


def _is_settled_by_bounds(row: Row, key: str, *limits: float) -> bool:
    """Whether the bounds of a figure are on the same side of every limit."""
    low, high = row[f"{key}_min"], row[f"{key}_max"]
    return all(not low < limit < high for limit in limits)


def _can_unscored_claims_reverse_bacc_order(row: Row, other: Row) -> bool:
    """Whether two evaluators could change places by BAcc if all claims were scored."""
    if row["bacc"] is None or other["bacc"] is None or row["bacc"] == other["bacc"]:
        return False
    lower, upper = sorted((row, other), key=lambda each: each["bacc"])
    return lower["bacc_max"] >= upper["bacc_min"]


def _find_few_clusters_caveat(audited_run: AuditedRun) -> Iterator[Finding]:
    """Too few documents or responses for intervals that hold."""
    if not any("tpr_low" in row for row in audited_run.rows("rates")):
        return
    claims = [each for each in audited_run.about.get("claims") or [] if each.get("n_clusters") is not None]
    few = [each for each in claims if each["n_clusters"] < FEWEST_CLUSTERS]
    if few:
        worst = min(few, key=lambda each: each["n_clusters"])
        yield Finding(
            "warn",
            None,
            worst["dataset"],
            make_statement(
                "All claims of {worst.dataset} come from {worst.n_clusters:number document or response|documents or "
                "responses}. Intervals from so few are unreliable: judge claims about more documents."
                + " There are too few documents{where}."
                * (len(claims) > 1),
                worst=worst,
                where=format_how_many_datasets(few, claims),
            ),
            {"n_clusters": worst["n_clusters"], "n": worst["n_claims"]},
        )


CAVEAT_CHECKS = (
    Check(
        "unscored",
        "Unscored claims that matter",
        "unscored claims could change a conclusion",
        _find_unscored_claims_caveat,
        claims="unscored",
        gravity=lambda evidence: evidence.get("n_unscored", float("inf")),
    ),
    Check(
        "clusters",
        "Too few documents for intervals",
        f"a data set has fewer than {FEWEST_CLUSTERS} documents or responses, so intervals are too narrow",
        _find_few_clusters_caveat,
        {"n_clusters": Column("clusters", "count")},
    ),
)
