"""What the first screen says of systems: whether evaluators of use may report their error rates, and rank them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import read_decision_limits
from factaudit.audit.core.finding_parts import format_first_finding_names
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE, read_confidence
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.audit.first_screen_estimates import (
    add_widths_to_first_screen_estimates,
    list_first_screen_estimates,
)
from factaudit.audit.quantification_checks import list_quantification_bias_rows, select_significant_biases
from factaudit.audit.ranking_checks import list_ranking_order_rows, list_ranking_reversal_rows, sum_ordered_pairs


def list_first_screen_system_advice(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    """Lines on error rates and on the order of systems. evaluators: those that the screen recommends, the best first.

    The reader may take any of them: a line names the first that has a fault, and the others that have it.
    """
    yield from _list_error_rate_advice(run, evaluators)
    yield from _list_ranking_advice(run, evaluators)


def _list_error_rate_advice(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    tested = _group_rows_of_evaluators(list_quantification_bias_rows(run), evaluators)
    biased, biased_datasets = (_group_rows_of_evaluators(rows, evaluators) for rows in select_significant_biases(run))
    if biased:
        yield "Not for", _state_rates_that_differ(biased, tested)
    elif biased_datasets:
        worst_row = max(next(iter(biased_datasets.values())), key=lambda row: abs(row["bias"]))
        text = "reporting error rates: by {row.evaluator} that of all systems together is significantly off, by "
        yield "Not for", make_statement(text + "{row.bias:points} points on {row.dataset}.", row=worst_row)
    quoted = [row for row in run.rows("estimate_summary") if row.get("quote") and row.get("width") is not None]
    if quoted:
        if len({row["n_labels"] for row in quoted}) == 1 and read_confidence(run) == DEFAULT_CONFIDENCE:
            yield "Instead", _state_what_estimates_add(run, quoted, tested.get(evaluators[0], []))
    elif biased or biased_datasets:
        text = "label a sample of new claims, and estimate error rates from it (factaudit sample)."
        yield "Instead", make_statement(text)


def _group_rows_of_evaluators(rows: Sequence[Row], evaluators: Sequence[str]) -> dict[str, list[Row]]:
    """Their rows by evaluator, in this order; none of an evaluator that has no row."""
    found = {name: [row for row in rows if row["evaluator"] == name] for name in evaluators}
    return {name: mine for name, mine in found.items() if mine}


def _state_rates_that_differ(biased: Mapping[str, list[Row]], tested: Mapping[str, list[Row]]) -> Statement:
    worst = max((row for off in biased.values() for row in off), key=lambda row: abs(row["bias"]))
    if len(biased) > 1:
        shares = [
            make_statement("{off:count} of {rows:count} by {name}", off=off, rows=tested[name], name=name)
            for name, off in biased.items()
        ]
        text = "reporting error rates: {shares} are significantly off (worst: {worst.bias:points} points)."
        return make_statement(text, shares=format_first_finding_names(shares), worst=worst)
    ((name, off),) = biased.items()
    text = "reporting error rates: {off:count} of {rows:count rate} that {name} predicts "
    text += "differs" if len(off) == 1 else "differ"
    if len(tested[name]) == 1:
        text = "reporting error rates: the one that {name} predicts differs"
    text += f" significantly from the labelled one{'s' * (len(tested[name]) > 1)}, {'the worst ' * (len(off) > 1)}by "
    return make_statement(text + "{worst.bias:points} points.", off=off, rows=tested[name], name=name, worst=worst)


def _state_what_estimates_add(run: AuditedRun, quoted: Sequence[Row], predicted_rows: Sequence[Row]) -> Statement:
    """How wide their intervals are; where all is labelled, how near they come beside the rates as predicted."""
    estimated = add_widths_to_first_screen_estimates(list_first_screen_estimates(run))
    known = [
        row | {"distance": row["rate"] - row["labelled_error_rate"]}
        for row in estimated
        if row.get("labelled_error_rate") is not None
    ]
    held = [row for row in known if row["rate_low"] <= row["labelled_error_rate"] <= row["rate_high"]]
    place = ("dataset", "level", "system")
    predicted = {tuple(row[key] for key in place): row for row in predicted_rows}
    beside = [predicted[one] for row in known if (one := tuple(row[key] for key in place)) in predicted]
    labels = "{first.n_labels:number label}" + " a data set" * (len(quoted) > 1)
    text = f"estimates: {labels} give intervals {{estimated.width:points}} points wide on average"
    text += "; {held:count} of {known:count} hold the true rate." if held else "."
    if held and len(beside) == len(known) == len(estimated) == len(predicted):
        text = f"estimates from {labels}: off by {{known.distance:points}} points on average (predicted: "
        text += (
            "{beside.bias:points}); {held:count} of {known:count} intervals ({estimated.width:points} wide) hold the "
        )
        text += "truth."
    return make_statement(text, first=quoted[0], estimated=estimated, held=held, known=known, beside=beside)


def _list_ranking_advice(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    """By the criterion of the decision and of the finding."""
    reversing = _group_rows_of_evaluators(list_ranking_reversal_rows(run), evaluators)
    counts = sum_ordered_pairs(run.rows("ranking"), evaluators[0])
    if reversing:
        (name, rows), *others = reversing.items()
        text = "ranking systems: {name} reverses {rows.n_reversed:number} of {rows.n_pairs:number pair}"
        also = [
            make_statement("{other} ({rows.n_reversed:number} of {rows.n_pairs:number})", other=other, rows=mine)
            for other, mine in others
        ]
        text += "; also {also}." if also else "."
        yield "Not for", make_statement(text, name=name, rows=rows, also=format_first_finding_names(also))
    elif counts is not None and counts["n_ordered"] < read_decision_limits(run).min_orderable * counts["n_pairs"]:
        text = "these labels order only {rows.n_ordered:number} of {rows.n_pairs:number pair} of systems."
        if not counts["n_ordered"]:
            text = "these labels order none of {rows.n_pairs:number pair} of systems."
        rows = list_ranking_order_rows(run.rows("ranking"), evaluators[0])
        yield "Beware", make_statement(text, rows=rows)
