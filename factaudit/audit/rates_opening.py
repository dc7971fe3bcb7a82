"""What the report's opening says of the best evaluator: how good it is, from which ones it can be told, its habits."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.audit.core.audit_declaration import AuditedRun, Column
from factaudit.audit.core.decision_limits import (
    count_unscored_or_guessed,
    has_interval,
    is_significantly_above,
    is_significantly_below,
    read_decision_limits,
    unscored_share_for_decision,
)
from factaudit.audit.core.evaluator_comparison import (
    find_datasets_of_lowest_and_highest_bacc,
    find_overall_evaluator_rows,
    is_difference_open_by_unscored_claims,
    is_significantly_better_evaluator,
)
from factaudit.audit.core.finding_parts import MAX_TPR_TNR_GAP, format_first_finding_names
from factaudit.audit.core.interval_methods import MOVER
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_constant_evaluator_row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

N_DATASETS_COLUMN = Column(
    "datasets",
    "count",
    "how many data sets a mean is over, with those that it leaves out as the figure is undefined there (see `reason`); "
    "1 elsewhere",
    shown=False,
)
BACC_COLUMN = Column("BAcc", "percent", "(TPR + TNR) / 2", bounds=True, interval=MOVER)


def rank_evaluators_by_bacc(rows: Sequence[Row]) -> list[str]:
    scored = [row for row in find_overall_evaluator_rows(rows).values() if row.get("bacc") is not None]
    return [row["evaluator"] for row in sorted(scored, key=lambda row: -row["bacc"])]


def format_rates_opening(audited_run: AuditedRun, evaluator: str | None) -> Statement:
    """How good the best evaluator is, from which ones it can be told, and on what it does best and worst."""
    rows, floors = audited_run.rows("rates"), audited_run.floors
    if evaluator is None:
        return make_statement(
            "No evaluator has one balanced accuracy for all claims here (scored claims with labels of both classes are "
            "needed); the tables below say what can be said of each part."
        )
    of = find_overall_evaluator_rows(rows)
    ranked = [of[name] for name in rank_evaluators_by_bacc(rows)]
    best = of[evaluator]
    others = [row for row in ranked if row is not best and row["evaluator"] not in floors]
    over = " as the mean over datasets" if best.get("dataset") == MACRO_MEAN else ""
    figure = _state_opening_bacc(audited_run, best)
    below = [
        row["evaluator"] for row in others if is_significantly_better_evaluator(audited_run, best, row["evaluator"])
    ]
    alike = [row for row in others if row["evaluator"] not in below]
    if alike and not has_interval(best, "bacc") and not is_constant_evaluator_row(best):
        told = [
            make_statement(
                "{best.evaluator} has the highest balanced accuracy of these evaluators: {figure}{over}, before "
                "{second.evaluator} ({second.bacc:percent}). No interval was computed, and no difference was tested.",
                best=best,
                figure=figure,
                over=over,
                second=alike[0],
            )
        ]
    else:
        head = "{best.evaluator} has " + ("the highest" if others and not alike else "a") + " balanced accuracy"
        of_these = " of these evaluators: {figure}{over}." if others and not alike else " of {figure}{over}."
        told = [make_statement(head + of_these, best=best, figure=figure, over=over)]
        if alike:
            listed = [
                make_statement(
                    "{other.evaluator} ({figure})", other=row, figure=_state_bacc_or_bounds(audited_run, row)
                )
                for row in alike
            ]
            text = f"The difference{'s' * (len(alike) > 1)} from {{names}} {'are' if len(alike) > 1 else 'is'} "
            is_open = any(is_difference_open_by_unscored_claims(audited_run, best, row["evaluator"]) for row in alike)
            ends = ["not significant"] * (len(alike) > 1 or not is_open) + ["open by the unscored claims"] * is_open
            told.append(make_statement(text + ", or ".join(ends) + ".", names=format_first_finding_names(listed)))
        if below:
            told.append(make_statement("It is significantly above {names}.", names=format_first_finding_names(below)))
    told += _state_leaning_of_best_evaluator(audited_run, best)
    beaten = next((row for row in ranked if row["evaluator"] in floors), None)
    if (
        beaten is not None
        and evaluator not in floors
        and (has_interval(best, "bacc") or best["bacc"] <= beaten["bacc"])
        and not is_significantly_better_evaluator(audited_run, best, beaten["evaluator"])
    ):
        told.append(
            make_statement(
                "It is not shown to do better than {floor.evaluator}, which reads nothing ({floor.bacc:percent}).",
                floor=beaten,
            )
        )
    if (apart := find_datasets_of_lowest_and_highest_bacc(rows, evaluator)) is not None:
        worst, top = apart
        told.append(
            make_statement(
                "It is significantly better on {top.dataset} ({high}) than on {worst.dataset} ({low}).",
                top=top,
                high=_state_bacc_or_bounds(audited_run, top),
                worst=worst,
                low=_state_bacc_or_bounds(audited_run, worst),
            )
        )
    return join_statements(told)


def _lacks_too_many_predictions_for_rates_opening(audited_run: AuditedRun, row: Row) -> bool:
    """Whether so much is unscored or guessed that bounds are said instead of figures."""
    return (
        unscored_share_for_decision(row) > read_decision_limits(audited_run).max_unscored
        and row.get("bacc_min") is not None
    )


def _state_bacc_or_bounds(audited_run: AuditedRun, row: Row) -> Statement:
    is_bounded = _lacks_too_many_predictions_for_rates_opening(audited_run, row)
    return make_statement(
        "{row.bacc_min:percent} to {row.bacc_max:percent}" if is_bounded else "{row.bacc:percent}", row=row
    )


def _state_opening_bacc(audited_run: AuditedRun, row: Row) -> Statement:
    """BAcc with its interval; its bounds instead, where much is unscored or guessed."""
    if _lacks_too_many_predictions_for_rates_opening(audited_run, row):
        lacking = row | {"n_lacking": count_unscored_or_guessed(row)}
        return make_statement(
            "{row.bacc_min:percent} to {row.bacc_max:percent} ({row.n_lacking:number} claims are unscored or guessed)",
            row=lacking,
        )
    return make_statement("{row.bacc:interval}", row=row)


def _state_leaning_of_best_evaluator(audited_run: AuditedRun, best_row: Row) -> list[Statement]:
    if is_constant_evaluator_row(best_row) and not has_interval(best_row, "bacc"):
        return [make_statement("It says the same of every claim: it tells no error from another claim.")]
    if has_interval(best_row, "bacc") and not is_significantly_above(best_row, "bacc", 0.5):
        return [
            make_statement(
                "It is not shown to be better than guessing ({chance:limit} %): do not rely on it to tell attributable "
                "claims from others.",
                chance=0.5,
            )
        ]
    if best_row.get("tpr") is None or best_row.get("tnr") is None:
        return []
    if _lacks_too_many_predictions_for_rates_opening(audited_run, best_row):
        return []
    direction = "attributable" if is_significantly_above(best_row, "gap", MAX_TPR_TNR_GAP) else "unattributable"
    if direction == "unattributable" and not is_significantly_below(best_row, "gap", -MAX_TPR_TNR_GAP):
        return []
    slip = "errors slip through" if direction == "attributable" else "good claims are rejected"
    rates = _list_error_rates_behind_mean(audited_run, best_row)
    farthest = max(rates, key=lambda row: row["gap"] if direction == "attributable" else -row["gap"], default={})
    most = ", most on {farthest.dataset} (gap {farthest.gap:signed} points)," if len(rates) > 1 else ","
    text = f"It leans towards “{direction}”{most} so that {slip}."
    predicted, labelled = (sum(row[key] for row in rates) / max(len(rates), 1) for key in ("predicted", "labelled"))
    if rates and (predicted < labelled) == (direction == "attributable"):  # else what it calls errors says no lean
        claims = "labelled" if any(row.get("n_unlabelled") for row in rates) else "scored"
        text += " As the mean over datasets it" if len(rates) > 1 else " It"
        text += (
            f" calls {{mean.predicted:percent}} of the {claims} claims errors, the labels {{mean.labelled:percent}}."
        )
    return [make_statement(text, farthest=farthest, mean=best_row | {"predicted": predicted, "labelled": labelled})]


def _list_error_rates_behind_mean(audited_run: AuditedRun, best_row: Row) -> list[Row]:
    """Predicted and labelled error rates of the data sets whose TPR and TNR a row is the mean of; none where a rate is
    not of the same claims as the other.
    """
    found = []
    for row in audited_run.per_dataset("rates", "ppr"):
        if row["evaluator"] != best_row["evaluator"] or row.get("gap") is None:
            continue
        errors, others = (row.get(key) or 0 for key in ("n_unattributable", "n_attributable"))
        if not row["n"] or errors + others != row["n"]:
            return []
        found.append(row | {"predicted": 1 - row["ppr"], "labelled": errors / row["n"]})
    return found
