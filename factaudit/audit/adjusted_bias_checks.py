"""Does a correction with one system's labels help the other systems' error rates? The check of `adjusted_bias`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from factaudit.audit.adjustment import MEAN_OVER_CALIBRATIONS
from factaudit.audit.core.audit_declaration import AuditedRun, Check, Column, Finding, Severity
from factaudit.audit.core.decision_limits import has_interval, is_significantly_within, read_decision_limits
from factaudit.audit.core.finding_parts import group_finding_rows_by_keys
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import select_rows_beyond_limit, select_significant_rows
from factaudit.audit.core.statements import make_statement
from factaudit.audit.quantification_checks import (
    explain_too_few_documents_for_bias_test,
    least_bias_p_value,
    list_quantification_bias_rows,
    select_rejectable_bias_rows,
    select_significant_biases,
)
from factaudit.stats.calibration import CORRECTION_METHODS
from factaudit.stats.hypothesis_tests import pair_mean_p

#: The methods in words.
_METHOD_PHRASES = {
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "a threshold without bias",
    "bacc_threshold": "the threshold with the best BAcc",
}


def _find_bias_left_after_calibration(audited_run: AuditedRun) -> Iterator[Finding]:
    """What a calibration on one system leaves of the other systems' bias, over all systems that can calibrate.

    Averages are of |bias| after one calibration: biases by several calibrations would cancel in their mean. That a
    method helps is said where its lower mean is significant.
    """
    rows, to_test = _select_adjusted_biases_to_test(audited_run)
    tested = {_get_tested_rate_key(row) for row in to_test}
    biased = {_get_tested_rate_key(row) for row in select_rows_beyond_limit(audited_run, to_test, "bias", 0)}
    # Whether there is anything to help is tested once, where error rates are audited.
    biases = select_significant_biases(replace(audited_run, test_counts=[]))
    off_before, most = {row["evaluator"] for of in biases for row in of}, read_decision_limits(audited_run).max_bias
    compared = _compare_adjusted_biases_with_uncorrected(rows, tested, biased)
    gains = [one for one in compared if one.evaluator in off_before]  # of others there is nothing to help
    shown = select_significant_rows(audited_run, [one.keys for one in gains], [one.p_gain for one in gains])
    for evaluator in dict.fromkeys(one.evaluator for one in gains):
        mine = [one for one in gains if one.evaluator == evaluator]
        helping = [one for one in mine if one.gain > 0 and len(one.off_after) <= one.n_off_before]
        # Gains are of the rates that a method corrects: of two it may be greater where less was corrected.
        best = max(helping or mine, key=lambda one: (-len(one.lacking), one.gain))
        rivals = [one for one in mine if len(one.lacking) == len(best.lacking)]
        is_best = len(rivals) > 1 and best.gain == max(one.gain for one in rivals)
        which = " (the best of {methods:count method}" + " that correct as many rates" * (len(rivals) < len(mine)) + ")"
        is_shown = best in helping and best.keys in shown
        severity: Severity = "ok" if helping and not best.off_after else "warn"
        if severity == "ok" and not (is_shown and not best.untested_after and _is_each_bias_less_than_before(best)):
            continue  # labels that cannot tell a corrected rate from one that is not show nothing
        # A method that corrects fewer rates, and so leaves fewer to find off, makes no better case.
        if not helping and all(one.off_after for one in rivals):
            severity = "fail"
        text = "Correcting {evaluator}'s error rates with the labels of one system, by " + _METHOD_PHRASES[best.method]
        text += which * is_best
        text += (
            ", changes the mean |bias| of the other systems from {before.bias:points} to {after.bias:points} points "
        )
        text += "(at worst {worst.bias:points}). "
        if best.tested_after:
            text += ("{off:count}" if best.off_after else "None") + " of {tested:count corrected rate} {are}"
            text += " still significantly wrong"
            text += "; {untested:count} more have too few documents for a test" * bool(best.untested_after)
        else:
            text += "The {after:count corrected rate} have too few documents for a test"
        text += "; {lacking:count} more cannot be corrected." if best.lacking else "."
        if is_shown:
            text += " The improvement is significant."
        else:
            text += " It is not shown to help, so do" if severity == "warn" else " Do"
            text += " not rely on a correction with one system's labels."
        if severity == "ok" and not all(is_significantly_within(row, "bias", most) for row in best.after):
            text += " It is not known whether every corrected rate is within {most:limit} points."
        said = make_statement(
            text,
            evaluator=evaluator,
            methods=[one.method for one in rivals],
            before=best.before,
            after=best.after,
            tested=best.tested_after,
            untested=best.untested_after,
            worst=max(best.after, key=lambda row: abs(row["bias"])),
            off=best.off_after,
            are="are" if len(best.off_after) > 1 else "is",
            lacking=best.lacking,
            most=most,
        )
        counts = {f"{one.method}_off": len(one.off_after) for one in mine}
        yield Finding(
            severity, evaluator, None, said, counts | {f"{one.method}_systems": len(one.after) for one in mine}
        )


def _select_adjusted_biases_to_test(audited_run: AuditedRun) -> tuple[list[Row], list[Row]]:
    """The biases that are left of claims' rates, by calibration; and those that could be significant, each once.

    A rate that is not corrected is the same beside each calibration. A corrected one rests on its system's documents as
    the predicted one does: of few, its test is no finer.
    """
    rows = [
        row
        for row in audited_run.rows("adjusted_bias")
        if row["calibration_system"] != MEAN_OVER_CALIBRATIONS and row["level"] == "claim" and has_interval(row, "bias")
    ]
    n_clusters = {
        (row["dataset"], row["evaluator"], row["system"]): row.get("n_clusters")
        for row in audited_run.rows("quantification")
        if row["level"] == "claim"
    }
    once = {}
    for row in rows:
        of_system = row | {"n_clusters": n_clusters.get((row["dataset"], row["evaluator"], row["system"]))}
        once[_get_tested_rate_key(row)] = of_system | {"p_bias": least_bias_p_value(of_system)}
    return rows, select_rejectable_bias_rows(audited_run, list(once.values()))


def _explain_untested_adjusted_biases(audited_run: AuditedRun) -> str:
    if explain_too_few_documents_for_bias_test(audited_run):
        return "no evaluator's error rates could be tested"
    biases = list_quantification_bias_rows(audited_run)
    if not biases or any(least_bias_p_value(row) == 0 for row in biases):
        return ""
    rows, to_test = _select_adjusted_biases_to_test(audited_run)
    return "the systems have too few documents to test corrected rates" if rows and not to_test else ""


def _is_each_bias_less_than_before(comparison: AdjustedBiasComparison) -> bool:
    """Whether each corrected rate is significantly nearer to the labelled one than the others were on average."""
    before = float(np.mean([abs(row["bias"]) for row in comparison.before]))
    return all(is_significantly_within(row, "bias", before) for row in comparison.after)


@dataclass(frozen=True)
class AdjustedBiasComparison:
    """What a method leaves of an evaluator's biases, beside the same biases uncorrected; lacking: it made none of them.

    A row is of a system's rate by the calibration on another one. untested_after: those of too few documents.
    p_gain: of no lower mean |bias|, one-sided; NaN where there are too few systems.
    """

    evaluator: str
    method: str
    before: list[Row]
    after: list[Row]
    lacking: list[Row]
    tested_after: list[Row]
    untested_after: list[Row]
    n_off_before: int
    off_after: list[Row]
    gain: float
    p_gain: float

    @property
    def keys(self) -> Row:
        return {"evaluator": self.evaluator, "method": self.method}


def _compare_adjusted_biases_with_uncorrected(
    rows: Sequence[Row], tested: Set[tuple[str, ...]], biased: Set[tuple[str, ...]]
) -> list[AdjustedBiasComparison]:
    """Each evaluator and method, on the systems that it could correct, by the calibrations that could be made."""
    found = []
    for (evaluator,), mine in group_finding_rows_by_keys(rows, "evaluator"):
        by_method: dict[str, dict[tuple[str, str, str], Row]] = {}
        for row in mine:
            by_method.setdefault(row["method"], {})[row["dataset"], row["calibration_system"], row["system"]] = row
        uncorrected = by_method.get("none", {})
        for method in _METHOD_PHRASES:
            corrected = by_method.get(method, {})
            keys = [key for key in corrected if key in uncorrected]
            if not keys:
                continue
            before, after = ([side[key] for key in keys] for side in (uncorrected, corrected))
            gains = np.array([abs(one["bias"]) - abs(row["bias"]) for one, row in zip(before, after, strict=True)])
            datasets, calibration_systems, systems = np.array(keys, dtype=object).T
            off = [[row for row in side if _get_tested_rate_key(row) in biased] for side in (before, after)]
            lacking = [row for key, row in uncorrected.items() if key not in corrected]
            p_gain = pair_mean_p(gains, calibration_systems, systems, datasets)
            found.append(
                AdjustedBiasComparison(
                    evaluator,
                    method,
                    before,
                    after,
                    lacking,
                    [row for row in after if _get_tested_rate_key(row) in tested],
                    [row for row in after if _get_tested_rate_key(row) not in tested],
                    len(off[0]),
                    off[1],
                    float(gains.mean()),
                    p_gain,
                )
            )
    return found


def _get_tested_rate_key(row: Row) -> tuple[str, ...]:
    by = "" if row["method"] == "none" else row["calibration_system"]
    return row["dataset"], row["evaluator"], row["system"], row["method"], by


ADJUSTED_BIAS_CHECK = Check(
    "adjustment",
    "What a correction with one system does to the others",
    "error rates are still significantly wrong after a correction with the labels of another system",
    _find_bias_left_after_calibration,
    {
        f"{method}_{what}": Column(f"{method.replace('_', ' ')}: {'rates' if what == 'systems' else what}", "count")
        for method in CORRECTION_METHODS
        for what in ("off", "systems")
    },
    null="no error rate of a system is off, or all are off alike, so that a calibration on one corrects the others",
    controls="Holm over all evaluators' rates of systems: each uncorrected once, and each corrected one, of few "
    "clusters those that could be significant (Tarone 1990); of a lower mean |bias|, over all evaluators and methods "
    "(a jackknife over systems[, within data sets])",
    figure="bias",
    gravity=lambda evidence: sum(n for key, n in evidence.items() if key.endswith("_off")),
    lacks=_explain_untested_adjusted_biases,
)
