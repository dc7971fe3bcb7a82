"""What does the first screen say of estimates? The rates to report, how sure they are, and how far they bring one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import mean

import numpy as np
import scipy

from factaudit.audit.core.audit_declaration import DEFAULT_CONFIDENCE, AuditedRun
from factaudit.audit.core.decision_limits import has_interval
from factaudit.audit.core.figure_formatting import UNDEFINED_MARK
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.significance import compute_p_values
from factaudit.audit.core.wording import fill, join_names
from factaudit.audit.estimates import DISTANCE_PER_WIDTH, add_labelled_rates_to_audit_estimates
from factaudit.stats.multiplicity import holm_adjusted_p
from factaudit.text.display_text import format_count


def _place(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["level"], row["system"]


def _list_quoted(run: AuditedRun) -> list[Row]:
    """The estimates to report, a row for each system in the order of the summary, the least rate first; with the rate
    by all labels where it is known."""
    methods = {(row["dataset"], row["level"]): row["quote"] for row in run.rows("estimate_summary") if row.get("quote")}
    order = {place: at for at, place in enumerate(methods)}
    rows = [row for row in run.rows("estimates") if row.get("rate") is not None]
    quoted = [row for row in rows if methods.get((row["dataset"], row["level"])) == row["method"]]
    quoted.sort(key=lambda row: (order[row["dataset"], row["level"]], row["rate"]))
    return add_labelled_rates_to_audit_estimates(run, quoted)


def _select_level(rows: Sequence[Row]) -> str:
    """Claims where there are any: labels of responses are the same labels again."""
    return "claim" if any(row["level"] == "claim" for row in rows) else "response"


def tabulate_estimates(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row for each system with the rate to report."""
    quoted = _list_quoted(run)
    predicted = {_place(row): row for row in run.rows("estimates") if row["method"] == "raw"}
    mains = " and ".join(dict.fromkeys(str(row["main"]) for row in run.rows("estimate_summary") if row.get("quote")))
    heads = [
        ("", "system"),
        ("estimated error", f"rate, % ({100 * run.confidence:.3g} % CI)"),
        ("predicted", f"by {mains}"),
        ("by all", "labels"),
    ]
    several = [key for key in ("dataset", "level") if len({row[key] for row in quoted}) > 1]
    table = []
    for row in quoted:
        names = [f"all {row['level']}s" if is_total_key(row[key]) else str(row[key]) for key in (*several, "system")]
        raw = predicted.get(_place(row), {})
        rates = [_format_rate(row, "rate"), _format_rate(raw, "rate"), _format_rate(row, "labelled_error_rate")]
        table.append([", ".join(names), *rates])
    return heads, table


def _format_rate(row: Row, key: str) -> str:
    """In percent, with a decimal where the interval is no wider than 10 points."""
    if row.get(key) is None:
        return UNDEFINED_MARK
    if not has_interval(row, key):
        return fill(f"{{{key}:percent}}", row).removesuffix(" %")
    kind = "percent" if row[f"{key}_high"] - row[f"{key}_low"] <= 0.1 else "whole"
    text = f"{{{key}:{kind}}} ({{{key}_low:{kind}}}–{{{key}_high:{kind}}})"
    return fill(text, row).replace(" %", "")


def word_estimates(run: AuditedRun) -> Iterator[tuple[str, str]]:
    """Of a run that only estimates, in words and sentences: which rates to report, and if the predicted ones do."""
    summary = run.rows("estimate_summary")
    quotable = [row for row in summary if row.get("quote")]
    level = _select_level(quotable)
    quoted = [row for row in _list_quoted(run) if has_interval(row, "rate")]
    mine = [row for row in quoted if row["level"] == level]
    if mine:
        n_labels = sum(row["n_labels"] or 0 for row in quotable if row["level"] == level)
        width = fill("{width:rough}", {"width": mean(row["rate_high"] - row["rate_low"] for row in mine)})
        text = (
            f"the estimated rates: {format_count(n_labels, 'label')} give {100 * run.confidence:.3g} % CIs of {width}"
        )
        yield "Use", text + f"{' on average' * (len(mine) > 1)}."
    raw = {_place(row): row["rate"] for row in run.rows("estimates") if row["method"] == "raw"}
    beside = []
    for row in quoted:
        if (predicted := raw.get(_place(row))) is not None:
            ends = {"off_low": predicted - row["rate_high"], "off_high": predicted - row["rate_low"]}
            beside.append(row | {"off": predicted - row["rate"]} | ends)
    p = holm_adjusted_p(np.array(compute_p_values(run, beside, "off", 0.0, "off")))
    if n_off := int((p < 1 - run.confidence).sum()):
        mains = list(dict.fromkeys(str(row["main"]) for row in quotable))
        text = f"the rates that {join_names(mains)} {'predicts' if len(mains) == 1 else 'predict'}: {n_off} of "
        yield "Avoid", text + f"{len(beside)} {'differs' if n_off == 1 else 'differ'} significantly from the estimates."
    undecided = sum(row.get("n_undecided") or 0 for row in quotable if row["level"] == level)
    if undecided:
        text = f"People could not decide {format_count(undecided, level)}; the bounds count them as right and as wrong."
        yield "Beware", text
    estimated = {(row["dataset"], row["level"], row["method"]) for row in run.rows("estimates")}
    for row in summary:
        if (row["dataset"], row["level"], row.get("quote")) not in estimated:
            yield "Beware", f"On {row['dataset']} no rate can be reported: {row['why']}."
    lone = [row["system"] for row in mine if not row["n_labels"] and not is_total_key(row["system"])]
    if lone:
        text = f"No claim of {join_names(lone)} was labelled; the rate rests on the other systems' labels."
        yield "Beware", text


def expect_corrected_rates(run: AuditedRun, biases: Sequence[Row]) -> Iterator[str]:
    """How far corrected rates are expected to be off, where that is nearer than the predicted ones are.

    biases: the predicted rates of systems, with how far they are off. Nothing is said where the truth is known and too
    few intervals contain it: then their widths promise too much.
    """
    summary = [row for row in run.rows("estimate_summary") if row.get("quote") and row.get("width") is not None]
    level = _select_level(summary)
    summary = [row for row in summary if row["level"] == level]
    estimated = [row for row in _list_quoted(run) if row["level"] == level and has_interval(row, "rate")]
    known = [row for row in estimated if row.get("labelled_error_rate") is not None]
    held = sum(row["rate_low"] <= row["labelled_error_rate"] <= row["rate_high"] for row in known)
    if not summary or scipy.special.bdtr(held, len(known), DEFAULT_CONFIDENCE) < 1 - DEFAULT_CONFIDENCE:
        return
    widths = {_place(row): row["rate_high"] - row["rate_low"] for row in estimated}
    raw = [abs(row["bias"]) for row in biases if (row["dataset"], "claim", row["system"]) in widths]
    expected = DISTANCE_PER_WIDTH * mean(widths.values()) if widths else 1.0
    if not raw or expected >= mean(raw):
        return
    n_labels = {row["n_labels"] for row in summary}
    labels = " to ".join(f"{n:,}" for n in sorted({min(n_labels), max(n_labels)}))
    text = f"correct them with human labels (factaudit sample, then factaudit estimate): with {labels} labels"
    text += f"{' per data set' * (len(summary) > 1)}, they are expected to be off by {{expected:rough}} on average "
    yield fill(text + "instead of {raw:rough}.", {"expected": expected, "raw": mean(raw)})
