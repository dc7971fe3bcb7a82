"""Which predicted error rates are significantly wrong, and by how much? The checks of the audit `quantification`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.figures import FEWEST_CLUSTERS_FOR_T_TEST
from factaudit.audit.core.audit_declaration import AuditedRun, Check, Column, Finding
from factaudit.audit.core.decision_limits import (
    has_interval,
    is_significantly_within,
    read_decision_limits,
    unscored_share_for_decision,
    widen_interval_for_decision_limits,
)
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    group_significant_rows_by_evaluator,
    make_row_finding,
    pick_finding_evidence,
)
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import (
    read_confidence,
    select_rows_beyond_limit,
    select_significant_rows,
    significance_degrees_of_freedom,
)
from factaudit.audit.core.statements import make_statement
from factaudit.stats.multiplicity import p_value_of_interval, select_rejectable_tests, sign_test_p
from factaudit.text.display_text import format_count

_BIAS_EVIDENCE = ("bias", "bias_low", "bias_high", "bias_min", "bias_max")


def list_quantification_bias_rows(audited_run: AuditedRun) -> list[Row]:
    """Rows of single systems at claim level; of all claims, in a data set that names no system."""
    return select_single_system_bias_rows(list(audited_run.per_dataset("quantification", "bias")))


def select_single_system_bias_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows of single systems at claim level; of all claims, in a data set that names no system."""
    rows = [row for row in rows if row.get("level", "claim") == "claim"]
    named = {(row["dataset"], row["evaluator"]) for row in rows if row["system"] != ALL_TOGETHER}
    return [row for row in rows if (row["system"] != ALL_TOGETHER) == ((row["dataset"], row["evaluator"]) in named)]


def select_significant_biases(audited_run: AuditedRun, limit: float = 0.0) -> tuple[list[Row], list[Row]]:
    """Those of `list_quantification_bias_rows` that are off by more than a limit; and the rates of whole data sets.

    Holm over both (`list_testable_biases`): many rates that are each a little off show in the whole first.
    """
    biased = select_rows_beyond_limit(audited_run, list_testable_biases(audited_run), "bias", limit)
    single = {id(row) for row in list_quantification_bias_rows(audited_run)}
    return [row for row in biased if id(row) in single], [row for row in biased if row["system"] == ALL_TOGETHER]


def list_system_bias_rows_to_test(audited_run: AuditedRun) -> list[Row]:
    """The rates of systems and of whole data sets in all of the run but floors'. The whole of one system is that
    system.
    """
    rows = [row for row in audited_run.per_dataset("quantification", "bias") if row["level"] == "claim"]
    rows = [row for row in rows if row["evaluator"] not in audited_run.floors]
    systems = Counter((row["dataset"], row["evaluator"]) for row in rows if row["system"] != ALL_TOGETHER)
    return [row for row in rows if row["system"] != ALL_TOGETHER or systems[row["dataset"], row["evaluator"]] != 1]


def list_testable_biases(audited_run: AuditedRun) -> list[Row]:
    """Those of `list_system_bias_rows_to_test` that could be significant beside each other (`select_rejectable_tests`):
    systems of few documents leave the test of the whole data set its power.
    """
    return select_rejectable_bias_rows(audited_run, list_system_bias_rows_to_test(audited_run))


def select_rejectable_bias_rows(audited_run: AuditedRun, rows: Sequence[Row]) -> list[Row]:
    """Those whose bias could be significant beside that of the others, by the number of their clusters."""
    least = np.array([least_bias_p_value(row) for row in rows])
    can_reject = select_rejectable_tests(least, 1 - read_confidence(audited_run))
    return [row for row, is_tested in zip(rows, can_reject, strict=True) if is_tested]


def least_bias_p_value(row: Row) -> float:
    """Of few clusters a p-value is no less than the sign test's where all err alike (`confusion_error_bias_p_values`).

    A rate without an interval is not tested, and counts in the correction: whether it has one, its outcome may say.
    """
    if (
        not has_interval(row, "bias")
        or (row.get("n_clusters") or FEWEST_CLUSTERS_FOR_T_TEST) >= FEWEST_CLUSTERS_FOR_T_TEST
    ):
        return 0.0
    return float(sign_test_p(np.array(row["n_clusters"]), np.array(0)))


def explain_too_few_documents_for_bias_test(audited_run: AuditedRun) -> str:
    rows = [row for row in list_system_bias_rows_to_test(audited_run) if has_interval(row, "bias")]
    if not rows or any(has_interval(row, "bias") for row in list_testable_biases(audited_run)):
        return ""
    n_tests = format_count(len(rows), "test")
    return f"there are too few documents: after the correction for {n_tests}, none could be significant"


def _find_biased_error_rates(audited_run: AuditedRun) -> Iterator[Finding]:
    """Systems, or whole data sets, whose predicted error rate is significantly off; by over the limit, it fails."""
    max_bias, tested = read_decision_limits(audited_run).max_bias, list_testable_biases(audited_run)
    biased = select_significant_biases(audited_run)
    # The same tests at the limit: of what is off, some is significantly farther off.
    beyond = select_significant_biases(replace(audited_run, test_counts=[]), max_bias)
    for evaluator, mine in group_finding_rows_by_evaluator(list_quantification_bias_rows(audited_run)):
        usable = [row for row in mine if row.get("bias_low") is not None]
        off, whole = ([row for row in rows if row["evaluator"] == evaluator] for rows in biased)
        far, far_whole = ([row for row in rows if row["evaluator"] == evaluator] for rows in beyond)
        if len(usable) == len(mine) and all(is_significantly_within(row, "bias", max_bias) for row in usable):
            text = "Every error rate that {evaluator} predicts is significantly less than {most:limit} points from the "
            said = make_statement(text + "labelled rate.", evaluator=evaluator, most=max_bias)
            yield Finding("ok", evaluator, None, said, {"n_rates": len(usable)})
            continue
        if not off and not whole:
            continue
        worst = max(far or off or far_whole or whole, key=lambda row: abs(row["bias"]))
        how_far = "by significantly more than {most:limit} points"
        if off:
            where = format_how_many_datasets(off, mine)
            whose = "the" if worst["system"] == ALL_TOGETHER else "{worst.system}'s"
            verb = "is" if len(off) == 1 else "are"
            text = f"{{off:count}} of the {{usable:count error rate}} that {{worst.evaluator}} predicts {verb} "
            text += "significantly wrong{where}, "
            text += f"{'{far:count}' if far else 'none'} of them {how_far}. "
            if len(usable) == 1:
                text = "The error rate that {worst.evaluator} predicts is significantly wrong"
                text += f", {how_far}. " if far else f", but not {how_far}. "
            rate = "{worst.predicted_error_rate:percent}"
            if unscored_share_for_decision(worst) > read_decision_limits(audited_run).max_unscored:
                rate = "{worst.predicted_error_rate_min:percent} to {worst.predicted_error_rate_max:percent} ("
                rate += "this depends on the unscored claims)"
            if worst.get("n_unlabelled"):  # then the rate is not what it says of the system
                of = "" if worst["system"] == ALL_TOGETHER else "{worst.system}'s "
                text += f"{'At worst, of' if len(far or off) > 1 else 'Of'} {of}labelled claims on {{worst.dataset}} "
                text += f"it calls {rate} errors; by the labels it is {{worst.labelled_error_rate:percent}}."
            else:
                text += f"{'At worst, it' if len(far or off) > 1 else 'It'} puts {whose} error rate on "
                text += f"{{worst.dataset}} at {rate}; by the labels it is {{worst.labelled_error_rate:percent}}."
            if far_whole and not far:
                text += f" The rate of all systems together on {{far_whole.dataset}} is wrong {how_far}."
        else:
            where = format_how_many_datasets(whole, mine)
            text = (
                "The error rate that {worst.evaluator} predicts for all systems together is significantly wrong{where}"
            )
            on_some = ", on {far_whole_rows:count} of them" * (len(far_whole) < len(whole))
            text += f"{on_some} {how_far}" if far_whole else f", but not {how_far}"
            if worst.get("n_unlabelled"):
                text += ". Of the labelled claims on {worst.dataset} it calls {worst.predicted_error_rate:percent} "
                text += "errors; by the labels it is {worst.labelled_error_rate:percent}. "
            else:
                text += ". On {worst.dataset} it puts the rate at {worst.predicted_error_rate:percent}; by the labels "
                text += "it is {worst.labelled_error_rate:percent}. "
            if any(row in tested for row in usable):
                text += "After the correction for all tests, none of the {usable:count rate} of single systems is "
                text += "significantly wrong."
            else:
                text += "Single systems have too few documents to test their {usable:count rate}."
        is_far = bool(far or far_whole)
        text += " Do not publish the rates that it predicts as they are." * is_far
        said = make_statement(
            text,
            worst=worst,
            off=off,
            far=far,
            far_whole=max(far_whole, key=lambda row: abs(row["bias"]), default={}),
            far_whole_rows=far_whole,
            usable=usable,
            where=where,
            most=max_bias,
        )
        keys = ("labelled_error_rate", "predicted_error_rate", *_BIAS_EVIDENCE, "n", "n_unscored")
        evidence = {"n_off": len(off), "n_far": len(far), "n_rates": len(usable)} if off else {}
        evidence |= pick_finding_evidence(worst, *["system"] * (worst["system"] != ALL_TOGETHER), *keys)
        yield Finding("fail" if is_far else "warn", evaluator, worst["dataset"], said, evidence)


def _find_opposite_quantification_biases(audited_run: AuditedRun) -> Iterator[Finding]:
    """Error rates that are too high on some data sets and too low on others (VC §3.3)."""
    rows = [
        row
        for row in audited_run.per_dataset("quantification", "bias")
        if row["level"] == "claim" and row["system"] == ALL_TOGETHER
    ]
    biased = select_rows_beyond_limit(audited_run, rows, "bias", 0)
    for evaluator, mine in group_finding_rows_by_evaluator(rows):
        over = [row for row in biased if row["evaluator"] == evaluator and row["bias"] > 0]
        under = [row for row in biased if row["evaluator"] == evaluator and row["bias"] < 0]
        if over and under:
            most, least = max(over, key=lambda row: row["bias"]), min(under, key=lambda row: row["bias"])
            said = make_statement(
                "{most.evaluator}'s error rate is significantly too high on {over:count} of {mine:count} data sets (at "
                "most by {most.bias:points} points, on {most.dataset}) and significantly too low on {under:count} (at "
                "most by {least.bias:points} points, on {least.dataset}). No single correction fits all of them.",
                most=most,
                least=least,
                over=over,
                under=under,
                mine=mine,
            )
            counts = {"n_over": len(over), "n_under": len(under), "n_datasets": len(mine)}
            yield Finding("fail", evaluator, None, said, counts)


def _find_bias_magnified_at_response_level(audited_run: AuditedRun) -> Iterator[Finding]:
    """A response level that magnifies the bias of the claim level (VC §3.3)."""
    rows = [row for row in audited_run.per_dataset("quantification", "bias") if row["system"] == ALL_TOGETHER]
    claims = {(row["dataset"], row["evaluator"]): row for row in rows if row["level"] == "claim"}
    # Where responses are single claims, the two levels are one.
    pairs = [
        (row, claims[row["dataset"], row["evaluator"]])
        for row in rows
        if row["level"] == "response"
        and (row["dataset"], row["evaluator"]) in claims
        and row["n"] != claims[row["dataset"], row["evaluator"]]["n"]
    ]
    of_responses = [row for row, _ in pairs]
    larger_rows = select_significant_rows(
        audited_run, of_responses, [_test_larger_quantification_bias(audited_run, row, other) for row, other in pairs]
    )
    for evaluator, larger, mine in group_significant_rows_by_evaluator(of_responses, larger_rows):
        response = max(larger, key=lambda row: abs(row["bias"]))
        claim = claims[response["dataset"], evaluator]
        said = make_statement(
            "{response.evaluator}'s bias is significantly larger for responses than for claims{where}. On "
            "{response.dataset} it is {response.bias:signed} points for responses and {claim.bias:signed} for claims. "
            "One wrong claim makes a response wrong, so check the level that you report.",
            response=response,
            claim=claim,
            where=format_how_many_datasets(larger, mine),
        )
        biases = {"bias_of_claims": claim["bias"], "bias_of_responses": response["bias"]}
        yield make_row_finding("warn", response, said, **biases, n_larger=len(larger))


def _test_larger_quantification_bias(audited_run: AuditedRun, row: Row, other: Row) -> float:
    """The p-value of "a bias is no farther from 0 than another one"; 1 where one has no interval."""
    mine, its = widen_interval_for_decision_limits(row, "bias"), widen_interval_for_decision_limits(other, "bias")
    if mine is None or its is None:
        return 1.0
    half, other_half = (_shorter_half_width(each) for each in (row, other))
    nearest = max(mine[0] + half, -(mine[1] - half), 0)  # of the biases that the bounds leave
    distance = nearest - (max(abs(its[0]), abs(its[1])) - other_half)
    freedom = np.array(significance_degrees_of_freedom(audited_run, row))
    both = np.array((half**2 + other_half**2) ** 0.5)
    p = float(p_value_of_interval(np.array(distance), both, freedom, read_confidence(audited_run)))
    return max(p, row.get("p_bias") or 0.0) if np.isfinite(p) else 1.0


def _shorter_half_width(row: Row) -> float:
    """Of an interval whose other end may be cut at -1 or 1: the end that lies towards 0."""
    return float(row["bias"] - row["bias_low"] if row["bias"] > 0 else row["bias_high"] - row["bias"])


def _explain_no_other_dataset(audited_run: AuditedRun) -> str:
    with_bias, every = (
        {row["dataset"] for row in audited_run.per_dataset("quantification", key)} for key in ("bias", "n")
    )
    if len(every) == 1:
        return "there is one data set"
    # Where none has a bias, the rows say why.
    return "one data set alone has a labelled error rate" if len(with_bias) == 1 else ""


def _explain_quantification_without_responses(audited_run: AuditedRun) -> str:
    sizes: dict[str, dict[tuple[str, str, str], int]] = {"claim": {}, "response": {}}
    for row in audited_run.rows("quantification"):
        sizes.setdefault(row["level"], {})[row["dataset"], row["system"], row["evaluator"]] = row["n"]
    differ = any(n and n != sizes["claim"].get(key) for key, n in sizes["response"].items())
    return "" if differ else "no response has several claims"


_OVER_ALL_RATES = (
    "Holm over all evaluators' error rates of systems and of all claims together (claim level)[ on all data sets], of "
    "few clusters those that could be significant (Tarone 1990)"
)
_OVER_ALL_DATASETS = "Holm over all evaluators[ on all data sets]"
QUANTIFICATION_CHECKS = (
    Check(
        "bias",
        "Predicted error rates that are wrong",
        "the predicted error rate of a system, or of all systems together, is significantly wrong (`warn`), or "
        "significantly wrong by more than the limit `max_bias` (`fail`)",
        _find_biased_error_rates,
        {"n_off": Column("wrong rates", "count"), "n_far": Column("wrong by more than the limit", "count")}
        | {"n_rates": Column("rates", "count")},
        null="every predicted error rate is, over many claims, the labelled one",
        controls=_OVER_ALL_RATES,
        figure="bias",
        lacks=explain_too_few_documents_for_bias_test,
    ),
    Check(
        "direction",
        "Error rates too high on some data sets, too low on others",
        "the predicted error rate is significantly too high on one data set and significantly too low on another",
        _find_opposite_quantification_biases,
        {key: Column(key.removeprefix("n_"), "count") for key in ("n_over", "n_under")},
        null="no evaluator's error rate is too high on one data set and too low on another",
        controls=_OVER_ALL_DATASETS,
        figure="bias",
        gravity=lambda evidence: evidence["n_over"] + evidence["n_under"],
        lacks=_explain_no_other_dataset,
    ),
    Check(
        "level",
        "More bias for responses than for claims",
        "the bias of the error rate of responses is significantly farther from 0 than that of claims",
        _find_bias_magnified_at_response_level,
        {
            "bias_of_claims": Column("bias of claims", "points"),
            "bias_of_responses": Column("bias of responses", "points"),
            "n_larger": Column("larger", "count"),
        },
        null="on no data set is the bias of responses farther from 0 than that of claims",
        controls=_OVER_ALL_DATASETS,
        figure="bias",
        gravity=lambda evidence: abs(evidence["bias_of_responses"]),
        lacks=_explain_quantification_without_responses,
    ),
)
