"""What the first screen says of systems: whether evaluators of use may report their error rates, and rank them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import scipy

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import read_decision_limits
from factaudit.audit.core.finding_parts import format_first_finding_names
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE, read_confidence
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.audit.estimates import DISTANCE_PER_WIDTH
from factaudit.audit.first_screen_estimates import (
    add_widths_to_first_screen_estimates,
    list_first_screen_estimates,
    select_level_of_estimates,
)
from factaudit.audit.quantification import decide_on_quantification, state_mean_absolute_bias
from factaudit.audit.quantification_checks import list_quantification_bias_rows, select_significant_biases
from factaudit.audit.ranking_checks import (
    decide_on_ranking_systems,
    list_ranking_order_rows,
    list_ranking_reversal_rows,
    sum_ordered_pairs,
)


def list_first_screen_system_advice(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    """Lines on error rates and on the order of systems. evaluators: those that the screen recommends, the best first.

    The reader may take any of them: a line names the first that has a fault, and the others that have it.
    """
    yield from _list_system_error_rate_advice(run, evaluators)
    yield from _list_system_ranking_advice(run, evaluators)


def _list_system_error_rate_advice(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    """By the decision on error rates: “no”, with all that are “cannot tell”; these alone where some rate is
    significantly off at all.
    """
    tested = _group_rows_of_evaluators(list_quantification_bias_rows(run), evaluators)
    answers = {name: answer.may for name in tested if (answer := decide_on_quantification(run, name)) is not None}
    most = read_decision_limits(run).max_bias
    unfit = [name for name, may in answers.items() if may in ("no", "with a correction")]
    far, far_datasets = (_group_rows_of_evaluators(rows, unfit) for rows in select_significant_biases(run, most))
    doubtful = [name for name in answers if answers[name] != "yes" and name not in {*far, *far_datasets}]
    some, some_datasets = (_group_rows_of_evaluators(rows, doubtful) for rows in select_significant_biases(run))
    beyond = make_statement(" by over {most:limit} points", most=most)
    if far or far_datasets:
        told = _state_biased_system_error_rates(run, far, far_datasets, tested, beyond)
        names = [name for name in doubtful if answers[name] == "cannot tell"]
        is_correctable = any(answers[name] == "with a correction" for name in {*far, *far_datasets})
        text = f"reporting error rates{' uncorrected' * is_correctable}: {{told}}"
        text += "; {names}: cannot tell." if names else "."
        yield "Not for", make_statement(text, told=told, names=format_first_finding_names(names))
    elif some or some_datasets:
        told = _state_biased_system_error_rates(run, some, some_datasets, tested)
        is_open = any(row["bias_min"] != row["bias_max"] for rows in some.values() for row in rows)
        text = "error rates: {told}, none significantly by over {most:limit}"
        text += " whatever the unscored claims are." if is_open else "."
        yield "Beware", make_statement(text, told=told, most=most)
    is_off = bool(far or far_datasets or some or some_datasets)
    quoted = [row for row in run.rows("estimate_summary") if row.get("quote") and row.get("width") is not None]
    quoted = [row for row in quoted if row["level"] == select_level_of_estimates(quoted)]
    if quoted:
        if len({row["n_labels"] for row in quoted}) == 1 and read_confidence(run) == DEFAULT_CONFIDENCE:
            yield _state_estimate_widths_and_distances(run, quoted, tested.get(evaluators[0], []) if is_off else [])
    elif is_off:
        has_unlabelled = any(row["n_labelled"] < row["n_claims"] for row in run.about.get("claims") or [])
        text = f"label a sample of {'the unlabelled' if has_unlabelled else 'new'} claims, and estimate error rates "
        yield "Instead", make_statement(text + "from it (factaudit sample).")


def _group_rows_of_evaluators(rows: Sequence[Row], evaluators: Sequence[str]) -> dict[str, list[Row]]:
    """Their rows by evaluator, in this order; none of an evaluator that has no row."""
    found = {name: [row for row in rows if row["evaluator"] == name] for name in evaluators}
    return {name: mine for name, mine in found.items() if mine}


def _state_biased_system_error_rates(
    run: AuditedRun,
    off: Mapping[str, list[Row]],
    off_datasets: Mapping[str, list[Row]],
    tested: Mapping[str, list[Row]],
    beyond: Statement | str = "",
) -> Statement:
    """How many of each evaluator's rates, else that of its whole data set; ``beyond``: by how much they are off."""
    every = {name: off.get(name) or off_datasets[name] for name in tested if name in off or name in off_datasets}
    worst = max((row for rows in every.values() for row in rows), key=lambda row: abs(row["bias"]))
    is_one = sum(map(len, every.values())) == 1
    listed = []
    for name, rows in every.items():
        text = "that of {name}" if len(tested[name]) == 1 else "{rows:count} of {tested:count} by {name}"
        if name not in off:
            text = f"{'that' if len(rows) == 1 else 'those'} of all systems together by {{name}}"
        listed.append(make_statement(text, rows=rows, tested=tested[name], name=name))
    text = f"{{shares}} {'is' if is_one else 'are'} significantly off{{beyond}} "
    text += "(" + "worst: " * (not is_one) + "{size}" + " points" * (not beyond)
    is_whole = worst["system"] == ALL_TOGETHER and any(
        row["system"] != ALL_TOGETHER for name in every for row in tested[name]
    )
    text += " on {worst.dataset}" * (not off) + ", all of {worst.dataset}" * bool(off and is_whole) + ")"
    return make_statement(
        text,
        shares=format_first_finding_names(listed),
        beyond=beyond,
        worst=worst,
        size=state_mean_absolute_bias(run, [worst]),
    )


def _state_estimate_widths_and_distances(
    run: AuditedRun, quoted: Sequence[Row], biased: Sequence[Row]
) -> tuple[str, Statement]:
    """How far off their intervals say that estimates are; where all is labelled, what this one draw of labels gave.

    By luck a draw comes nearer than rates as predicted, or not: so what intervals say of all draws stands first, unless
    too few of them hold the truth. ``biased``: rates as predicted; where they are farther off, estimates are advised.
    """
    estimated = [
        row | {"expected": DISTANCE_PER_WIDTH * row["width"]}
        for row in add_widths_to_first_screen_estimates(list_first_screen_estimates(run))
        if row["level"] == quoted[0]["level"]
    ]
    known = [
        row | {"distance": row["rate"] - row["labelled_error_rate"]}
        for row in estimated
        if row.get("labelled_error_rate") is not None
    ]
    held = [row for row in known if row["rate_low"] <= row["labelled_error_rate"] <= row["rate_high"]]
    mean_bias = sum(abs(row["bias"]) for row in biased) / max(len(biased), 1)
    mean_expected = sum(row["expected"] for row in estimated) / len(estimated)
    word, width, n_held = "Labels", "{estimated.width:points} wide", "{held:count}" if held else "none"
    text = f"estimates ({{first.n_labels:number label}}{' a data set' * (len(quoted) > 1)}): on average "
    if scipy.special.bdtr(len(held), len(known), DEFAULT_CONFIDENCE) < 1 - DEFAULT_CONFIDENCE:
        text += f"{{known.distance:points}} points off; of {{known:count}} intervals ({width}) {n_held} hold the truth."
    else:
        word = "Instead" if mean_expected < mean_bias else word
        text += f"about {{estimated.expected:points}} points off by their intervals ({width})"
        told = f", {{known.distance:points}} in this draw; {n_held} of {{known:count}} hold the truth."
        text += told if known else "."
    return word, make_statement(text, first=quoted[0], estimated=estimated, held=held, known=known)


def _list_system_ranking_advice(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    """By the criterion of the decision and of the finding."""
    reversing = _group_rows_of_evaluators(list_ranking_reversal_rows(run), evaluators)
    counts = sum_ordered_pairs(run.rows("ranking"), evaluators[0])
    if reversing:
        (name, rows), *others = reversing.items()
        text = "ranking systems: {name} significantly reverses {rows.n_reversed:number pair} of them"
        also = [make_statement("{other} ({rows.n_reversed:number})", other=other, rows=mine) for other, mine in others]
        text += "; also {also}." if also else "."
        yield "Not for", make_statement(text, name=name, rows=rows, also=format_first_finding_names(also))
    elif counts is not None and counts["n_ordered"] < read_decision_limits(run).min_orderable * counts["n_pairs"]:
        text = "these labels order only {rows.n_ordered:number} of {rows.n_pairs:number pair} of systems."
        if counts["n_pairs"] == 1:
            text = "these labels do not order the two systems."
        elif not counts["n_ordered"]:
            text = "these labels order none of {rows.n_pairs:number pair} of systems."
        rows = list_ranking_order_rows(run.rows("ranking"), evaluators[0])
        yield "Beware", make_statement(text, rows=rows)
    answers = {name: decide_on_ranking_systems(run, name) for name in evaluators}
    fit = [name for name, answer in answers.items() if answer is not None and answer.may == "yes"]
    if 0 < len(fit) < len(evaluators):  # of several to take, a reader sees otherwise none that ranks systems
        yield "Good for", make_statement("ranking systems: {names}.", names=format_first_finding_names(fit))
