"""What does the first screen say of estimates? The rates to report, how sure they are, and how far
they bring one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

import scipy

from factaudit.audit.core.audit_declaration import DEFAULT_CONFIDENCE
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.significance import Tests
from factaudit.audit.core.wording import fill, join_names
from factaudit.audit.estimates import DISTANCE_PER_WIDTH, add_labelled_rates_to_audit_estimates
from factaudit.text.display_text import format_count


def _place(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["level"], row["system"]


def _list_quotable(run: AuditedRun) -> list[Row]:
    """The summaries with an estimate to report: of claims where there are any, for labels of
    responses are the same labels again."""
    rows = [row for row in run.rows("estimate_summary") if row.get("quote")]
    return [row for row in rows if row["level"] == "claim"] or rows


def _list_quoted(run: AuditedRun) -> list[Row]:
    """The estimates to report, a row for each system, the least rate first; with the rate by all
    labels where it is known."""
    rows = [row for row in run.rows("estimates") if row.get("rate") is not None]
    quoted = []
    for summary in _list_quotable(run):
        wanted = summary["dataset"], summary["level"], summary["quote"]
        mine = [row for row in rows if (row["dataset"], row["level"], row["method"]) == wanted]
        quoted += sorted(mine, key=lambda row: row["rate"])
    return add_labelled_rates_to_audit_estimates(run, quoted)


def _list_predicted(run: AuditedRun) -> dict[tuple[str, str, str], Row]:
    return {
        _place(row): row
        for row in run.rows("estimates")
        if row["method"] == "raw" and row["rate"] is not None
    }


def _list_mains(run: AuditedRun) -> list[str]:
    return list(dict.fromkeys(str(row["main"]) for row in _list_quotable(run)))


def tabulate_estimates(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row for each system with the rate to report; cells are "" where nothing is
    known."""
    quoted, predicted = _list_quoted(run), _list_predicted(run)
    heads = [
        ("", "system"),
        ("estimated error", f"rate, % ({100 * run.confidence:.3g} % CI)"),
        ("predicted", f"by {' and '.join(_list_mains(run))}"),
        ("by all", "labels"),
    ]
    keys = ["dataset", "system"] if len({row["dataset"] for row in quoted}) > 1 else ["system"]
    table = []
    for row in quoted:
        names = [
            f"all {row['level']}s" if is_total_key(row[key]) else str(row[key]) for key in keys
        ]
        rates = [
            (row, "rate"),
            (predicted.get(_place(row), {}), "rate"),
            (row, "labelled_error_rate"),
        ]
        table.append([", ".join(names), *(_format_rate(*rate) for rate in rates)])
    return heads, table


def _format_rate(row: Row, key: str) -> str:
    """In percent, with a decimal where the interval is no wider than 10 points."""
    text = f"{{{key}:percent}}"
    if row.get(key) is None:
        return ""
    if has_interval(row, key):
        kind = "percent" if row[f"{key}_high"] - row[f"{key}_low"] <= 0.1 else "whole"
        text = f"{{{key}:{kind}}} ({{{key}_low:{kind}}}–{{{key}_high:{kind}}})"
    return fill(text, row).replace(" %", "")


def word_estimates(run: AuditedRun) -> Iterator[tuple[str, str]]:
    """Of a run that only estimates, in words and sentences: which rates to report, and if the
    predicted ones do."""
    predicted, quoted = (
        _list_predicted(run),
        [row for row in _list_quoted(run) if has_interval(row, "rate")],
    )
    if quoted:
        n_labels = format_count(sum(row["n_labels"] or 0 for row in _list_quotable(run)), "label")
        width = fill(
            "{width:rough}", {"width": mean(row["rate_high"] - row["rate_low"] for row in quoted)}
        )
        average = " on average" if len(quoted) > 1 else ""
        yield (
            "Use",
            (
                f"the estimated rates: {n_labels} give {100 * run.confidence:.3g} % CIs of"
                f" {width}{average}."
            ),
        )
    beside = []
    for row in quoted:
        if (raw := predicted.get(_place(row))) is not None:
            off, low, high = (raw["rate"] - row[key] for key in ("rate", "rate_high", "rate_low"))
            beside.append(row | {"off": off, "off_low": low, "off_high": high})
    n_off = int((Tests(run, beside, "off").adjust(0.0, "off") < 1 - run.confidence).sum())
    if n_off:
        mains = _list_mains(run)
        predict, differ = (
            "predicts" if len(mains) == 1 else "predict",
            "differs" if n_off == 1 else "differ",
        )
        text = (
            f"the rates that {join_names(mains)} {predict}: {n_off} of {len(beside)} {differ}"
            " significantly"
        )
        yield "Avoid", f"{text} from the estimates."
    lone = [
        row["system"] for row in quoted if not row["n_labels"] and not is_total_key(row["system"])
    ]
    if lone:
        text = (
            f"No claim of {join_names(lone)} was labelled; the rate rests on the labels of the"
            " other systems."
        )
        yield "Beware", text
    estimated = {(row["dataset"], row["level"], row["method"]) for row in run.rows("estimates")}
    for row in run.rows("estimate_summary"):
        if (row["dataset"], row["level"], row.get("quote")) not in estimated:
            yield "Beware", f"On {row['dataset']} no rate can be reported: {row['why']}."


def expect_corrected_rates(run: AuditedRun, biases: Sequence[Row]) -> Iterator[str]:
    """How far corrected rates are expected to be off, where that is nearer than the predicted ones
    are.

    biases: the predicted rates of systems, with how far they are off. Nothing is said where the
    truth is known and too
    few intervals contain it: then their widths promise too much.
    """
    summary = [row for row in _list_quotable(run) if row.get("width") is not None]
    estimated = [row for row in _list_quoted(run) if has_interval(row, "rate")]
    known = [row for row in estimated if row.get("labelled_error_rate") is not None]
    n_right = sum(
        row["rate_low"] <= row["labelled_error_rate"] <= row["rate_high"] for row in known
    )
    promises_too_much = (
        scipy.special.bdtr(n_right, len(known), DEFAULT_CONFIDENCE) < 1 - DEFAULT_CONFIDENCE
    )
    widths = {_place(row): row["rate_high"] - row["rate_low"] for row in estimated}
    raw = [abs(row["bias"]) for row in biases if (row["dataset"], "claim", row["system"]) in widths]
    if promises_too_much or not summary or not raw:
        return
    expected = DISTANCE_PER_WIDTH * mean(widths.values())
    if expected < mean(raw):
        n_labels = sorted({row["n_labels"] for row in summary})
        labels = " to ".join(f"{n:,}" for n in dict.fromkeys([n_labels[0], n_labels[-1]]))
        each = " per data set" if len(summary) > 1 else ""
        text = (
            "correct them with human labels (factaudit sample, then factaudit estimate): with"
            f" {labels} labels{each}"
        )
        text += (
            ", they are expected to be off by {expected:rough} on average instead of {raw:rough}."
        )
        yield fill(text, {"expected": expected, "raw": mean(raw)})
