"""What does the first screen say of estimates? The rates to report, how sure they are, and how far
they bring one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import mean

import scipy

from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.significance import Tests
from factaudit.audit.core.wording import fill, join_names
from factaudit.audit.estimates import DISTANCE_PER_WIDTH, add_labelled_rates
from factaudit.text.display_text import format_count


def _list_quotable(run: AuditedRun) -> list[Row]:
    """The summaries with an estimate to report: of claims where there are any, for labels of
    responses are the same labels again."""
    rows = [row for row in run.rows("estimate_summary") if row.get("quote")]
    return [row for row in rows if row["level"] == "claim"] or rows


def _list_quoted(run: AuditedRun) -> list[Row]:
    """The estimates to report, a row for each system, the least rate first: with the rate that the
    main evaluator predicts (``raw``), and that by all labels where it is known."""
    rows = [row for row in run.rows("estimates") if row.get("rate") is not None]
    quoted = []
    for summary in _list_quotable(run):
        place = summary["dataset"], summary["level"]
        here = [row for row in rows if (row["dataset"], row["level"]) == place]
        raw = {row["system"]: row["rate"] for row in here if row["method"] == "raw"}
        mine = [row for row in here if row["method"] == summary["quote"]]
        mine.sort(key=itemgetter("rate"))
        quoted += [row | {"raw": raw.get(row["system"])} for row in mine]
    return add_labelled_rates(run, quoted)


def _join_mains(run: AuditedRun) -> str:
    return join_names(dict.fromkeys(str(row["main"]) for row in _list_quotable(run)))


def tabulate_estimates(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row for each system with the rate to report; cells are "" where nothing is
    known."""
    quoted = _list_quoted(run)
    heads = [
        ("", "system"),
        ("estimated error", f"rate, % ({100 * run.confidence:.3g} % CI)"),
        ("predicted", f"by {_join_mains(run)}"),
        ("by all", "labels"),
    ]
    has_datasets = len({row["dataset"] for row in quoted}) > 1
    table = []
    for row in quoted:
        system = f"all {row['level']}s" if is_total_key(row["system"]) else row["system"]
        name = f"{row['dataset']}, {system}" if has_datasets else system
        rates = (_format_rate(row, key) for key in ("rate", "raw", "labelled_error_rate"))
        table.append([name, *rates])
    return heads, table


def _format_rate(row: Row, key: str) -> str:
    """In percent, with a decimal where the interval is no wider than 10 points."""
    text, kind = f"{{{key}:percent}}", "percent"
    if row.get(key) is None:
        return ""
    if has_interval(row, key):
        kind = "percent" if row[f"{key}_high"] - row[f"{key}_low"] <= 0.1 else "whole"
        text = f"{{{key}:{kind}}} ({{{key}_low:{kind}}}–{{{key}_high:{kind}}})"
    return fill(text, row).replace(" %", "")


def word_estimates(run: AuditedRun) -> Iterator[tuple[str, str]]:
    """Of a run that only estimates, in words and sentences: which rates to report, and if the
    predicted ones do."""
    quoted = [row for row in _list_quoted(run) if has_interval(row, "rate")]
    if quoted:
        n_labels = sum(row["n_labels"] or 0 for row in _list_quotable(run))
        told = {"n": n_labels, "width": mean(row["rate_high"] - row["rate_low"] for row in quoted)}
        average = " on average" if len(quoted) > 1 else ""
        text = f"the estimated rates: {{n:number label}} give {100 * run.confidence:.3g} % CIs of"
        yield "Use", fill(f"{text} {{width:rough}}{average}.", told)
    beside = [
        {"off": row["raw"] - row["rate"], "n_clusters": row.get("n_clusters")}
        | {"off_low": row["raw"] - row["rate_high"], "off_high": row["raw"] - row["rate_low"]}
        | {key: row[key] for key in ("dataset", "n")}
        for row in quoted
        if row["raw"] is not None
    ]
    n_off = int((Tests(run, beside, "off").adjust(0.0, "off") < 1 - run.confidence).sum())
    if n_off:
        text = f"the rates by {_join_mains(run)}: significantly different from the estimates in"
        yield "Avoid", f"{text} {n_off} of {format_count(len(beside), 'case')}."
    lone = [
        row["system"] for row in quoted if not row["n_labels"] and not is_total_key(row["system"])
    ]
    if lone:
        text = f"No claim of {join_names(lone)} was labelled; the rate rests on the labels of the"
        yield "Beware", f"{text} other systems."
    estimated = {(row["dataset"], row["level"], row["method"]) for row in run.rows("estimates")}
    for row in run.rows("estimate_summary"):
        if (row["dataset"], row["level"], row.get("quote")) not in estimated:
            yield "Beware", f"On {row['dataset']} no rate can be reported: {row['why']}."


def expect_corrected_rates(run: AuditedRun, biases: Sequence[Row]) -> Iterator[str]:
    """How far corrected rates are expected to be off, where that is nearer than the predicted ones
    are.

    biases: the predicted rates of systems, with how far they are off. Nothing is said where the
    truth is known and too few intervals contain it: then their widths promise too much.
    """
    estimated = [row for row in _list_quoted(run) if has_interval(row, "rate")]
    known = [row for row in estimated if row.get("labelled_error_rate") is not None]
    n_right = sum(
        row["rate_low"] <= row["labelled_error_rate"] <= row["rate_high"] for row in known
    )
    promises_too_much = scipy.special.bdtr(n_right, len(known), 0.95) < 0.05
    places = {(row["dataset"], row["system"]) for row in estimated}
    raw = [abs(row["bias"]) for row in biases if (row["dataset"], row["system"]) in places]
    n_labels = [row["n_labels"] for row in _list_quotable(run)]
    if promises_too_much or not n_labels or not raw:
        return
    width = mean(row["rate_high"] - row["rate_low"] for row in estimated)
    told = {"expected": DISTANCE_PER_WIDTH * width, "raw": mean(raw), "n": max(n_labels)}
    if told["expected"] < told["raw"]:
        each = " per data set" if len(n_labels) > 1 else ""
        text = (
            "correct them with human labels (factaudit sample, then factaudit estimate): with {n}"
        )
        text += f" labels{each}, they are expected to be off by {{expected:rough}} on average "
        yield fill(text + "instead of {raw:rough}.", told)
