"""What does the first screen say of estimates? The rates to report, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from statistics import mean

from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.figure_formatting import (
    PERCENT_COLUMN,
    format_audit_figure,
    format_figure_range,
)
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.wording import fill, join_names
from factaudit.audit.estimates import DISTANCE_PER_WIDTH


def _list_quotable(run: AuditedRun) -> list[Row]:
    """The summaries with an estimate to report: of claims where there are any, for labels of
    responses are the same labels again."""
    rows = [row for row in run.rows("estimate_summary") if row.get("quote")]
    return [row for row in rows if row["level"] == "claim"] or rows


def _list_quoted(run: AuditedRun) -> list[Row]:
    """The estimates to report, a row for each system, the least rate first, with the rate that the
    main evaluator predicts (``raw``)."""
    quoted = []
    for summary in _list_quotable(run):
        here = [
            row
            for row in run.rows("estimates")
            if all(row[key] == summary[key] for key in ("dataset", "level"))
            and row.get("rate") is not None
        ]
        raw = {row["system"]: row["rate"] for row in here if row["method"] == "raw"}
        mine = [row for row in here if row["method"] == summary["quote"]]
        mine.sort(key=itemgetter("rate"))
        quoted += [row | {"raw": raw.get(row["system"])} for row in mine]
    return quoted


def tabulate_estimates(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row for each system with the rate to report; cells are "" where nothing is
    known."""
    quoted, quotable = _list_quoted(run), _list_quotable(run)
    mains = ", ".join(dict.fromkeys(str(row["main"]) for row in quotable))
    heads = [
        ("", "system"),
        ("estimated error", f"rate, % ({100 * run.confidence:.3g} % CI)"),
        ("predicted", f"by {mains}"),
    ]
    has_datasets = len({row["dataset"] for row in quoted}) > 1
    table = []
    for row in quoted:
        system = f"all {row['level']}s" if is_total_key(row["system"]) else row["system"]
        name = f"{row['dataset']}, {system}" if has_datasets else system
        table.append([name, *(format_cell(PERCENT_COLUMN, row, key) for key in ("rate", "raw"))])
    return heads, table


def format_cell(column: Column, row: Row, key: str) -> str:
    """A figure as a cell of a column with its unit: ``86.7 (74.3–93.6)``, without an interval
    ``86.7``, and "" if it is undefined."""
    if row[key] is None:
        return ""
    text = format_audit_figure(column, row[key])
    if has_interval(row, key):
        text += f" ({format_figure_range(column, row[f'{key}_low'], row[f'{key}_high'])})"
    return text


def advise_on_estimates(run: AuditedRun) -> Iterator[tuple[str, str]]:
    """Of a run that only estimates, in words and sentences: which rates to report."""
    rows = _list_quoted(run)
    quoted = [row for row in rows if has_interval(row, "rate")]
    if quoted:
        n_labels = sum(row["n_labels"] or 0 for row in _list_quotable(run))
        told = {"n": n_labels, "width": mean(row["rate_high"] - row["rate_low"] for row in quoted)}
        average = " on average" if len(quoted) > 1 else ""
        text = f"the estimated rates: {{n:number label}} give {100 * run.confidence:.3g} % CIs of"
        yield "Use", fill(f"{text} {{width:rough}}{average}.", told)
    lone = [row["system"] for row in rows if not row["n_labels"]]
    if lone:
        text = f"No claim of {join_names(lone)} was labelled; the rate rests on the labels of the"
        yield "Beware", f"{text} other systems."
    places = {(row["dataset"], row["level"], row["method"]) for row in run.rows("estimates")}
    for row in run.rows("estimate_summary"):
        if (row["dataset"], row["level"], row.get("quote")) not in places:
            yield "Beware", f"On {row['dataset']} ({row['level']} level), {row['why']}."


def expect_corrected_rates(run: AuditedRun, biases: Sequence[Row]) -> str:
    """How far corrected rates are expected to be off, where that is nearer than the predicted ones
    are; else "".

    biases: the predicted rates of systems, with how far they are off.
    """
    estimated = [row for row in _list_quoted(run) if has_interval(row, "rate")]
    places = {(row["dataset"], row["system"]) for row in estimated}
    raw = [abs(row["bias"]) for row in biases if (row["dataset"], row["system"]) in places]
    n_labels = {row["n_labels"] for row in _list_quotable(run)}
    if not raw:
        return ""
    width = mean(row["rate_high"] - row["rate_low"] for row in estimated)
    told = {
        "expected": DISTANCE_PER_WIDTH * width,
        "raw": mean(raw),
        "n": max(n_labels),
        "evaluator": biases[0]["evaluator"],
    }
    if told["expected"] >= told["raw"]:
        return ""
    text = "correct the rates with human labels (factaudit sample, then factaudit estimate): with"
    text += " at most {n} labels" if len(n_labels) > 1 else " {n} labels"
    text += " per data set" if len(_list_quotable(run)) > 1 else ""
    has_systems = len(places) > len({dataset for dataset, _ in places})
    text += ", shared by all systems" if has_systems else ""
    text += ", they are expected to be off by {expected:rough} on average, where {evaluator}'s are"
    text += " off by {raw:rough}."
    return fill(text, told)
