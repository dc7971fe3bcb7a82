"""A diff as a summary on a pull request: the verdict, a table, a few claims that changed."""

from __future__ import annotations

import re

from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.run_claims import describe_label_changes_of_runs
from factaudit.run_diff import RunDiff
from factaudit.run_gate import RunGateVerdict, format_points
from factaudit.tables.schema import is_text_placeholder

_SIGNS = {"fail": "❌", "worse": "❌", "cannot tell": "❓", "warn": "⚠️", "changed": "⚠️"}
_FIGURES = {"bacc": "BAcc", "tpr": "TPR", "tnr": "TNR", "abs_bias": "size of bias", "unscored": "unscored"}
_LONGEST_CLAIM = 160
_N_CLAIMS = 3
_MAX_EVALUATORS = 20


def render_run_diff_markdown(run_diff: RunDiff, verdict: RunGateVerdict, link: str | None = None) -> str:
    """GitHub's Markdown, all text escaped. link: where the report is."""
    parts = [f"### {_SIGNS.get(verdict.word, '✅')} factaudit: {verdict.word}"]
    parts.append("\n".join(f"- {_escape_mentions(sentence)}" for sentence in verdict.sentences[:_MAX_EVALUATORS]))
    heads = ["evaluator", "claims", "changed", *_FIGURES.values()]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    rows = [row for row in run_diff.changes if row["dataset"] == MACRO_MEAN]
    renamed = [pair for pair in run_diff.pairs if pair["before"] != pair["after"]]
    lines += [_render_changes_row(row) for row in rows[:_MAX_EVALUATORS]]
    labelled = "labelled " * bool(run_diff.n_labelled)
    note = f"Changes are after − before, in points, of the {labelled}claims judged in both runs"
    note += f" ({run_diff.n_labelled:,}; “changed” is of all)" * (0 < run_diff.n_labelled < run_diff.n_claims)
    note += "; of several data sets, their mean" * (len({row["dataset"] for row in run_diff.changes}) > 2)
    note += " (unscored: of all claims in both runs). In brackets: 95 % CI of the paired difference, "
    note += "each of one change alone."
    if run_diff.n_labels_changed:
        labels = run_diff.n_labels_changed, run_diff.n_labels_added, run_diff.n_labels_removed
        note += f" Labels: {describe_label_changes_of_runs(*labels)}; these figures use those before."
    if run_diff.n_texts_changed:
        note += f" Claims with another text or document: {run_diff.n_texts_changed:,}."
    for names, side in ((run_diff.only_datasets_before, "before"), (run_diff.only_datasets_after, "after")):
        note += f" Data sets only {side}: {_escape_mentions(', '.join(names))}." if names else ""
    parts += ["\n".join(lines), note]
    parts += [
        f"{_escape_mentions(pair['after'])} is compared with {_escape_mentions(pair['before'])}"
        + (": the only ones left." if pair["by"] == "left over" else ".")
        for pair in renamed[:_MAX_EVALUATORS]
    ]
    for names, side in ((run_diff.only_evaluators_before, "before"), (run_diff.only_evaluators_after, "after")):
        if names:
            parts.append(f"Not compared: {_escape_mentions(', '.join(names[:_MAX_EVALUATORS]))} ({side}).")
    if len(rows) > _MAX_EVALUATORS:
        parts.append(f"{len(rows) - _MAX_EVALUATORS} more evaluators are not shown.")
    if claims := _pick_claims_of_verdict(run_diff.examples, verdict):
        lines = ["| evaluator | claim | label | before | after |", "|---|---|---:|---:|---:|"]
        lines += [_render_run_diff_claim_row(row) for row in claims]
        parts += [
            "Some claims that changed, those that became wrong first (label 1: attributable, 0: an error):",
            "\n".join(lines),
        ]
    if link:
        parts.append(f"[The whole report](<{link}>)")
    return "\n\n".join(parts) + "\n"


def _pick_claims_of_verdict(examples: list[Row], verdict: RunGateVerdict) -> list[Row]:
    """Claims of the evaluators that the verdict names, else of any."""
    named = [row for row in examples if any(one.startswith(f"{row['evaluator']}: ") for one in verdict.failing)]
    return (named or examples)[:_N_CLAIMS]


def _render_changes_row(row: Row) -> str:
    flips = "–" if row["flips"] is None else f"{100 * row['flips']:.1f} %"
    cells = [_escape_mentions(row["evaluator"]), f"{row['n_both']:,}", flips]
    return f"| {' | '.join([*cells, *(_format_run_diff_change_cell(row, key) for key in _FIGURES)])} |"


def _format_run_diff_change_cell(row: Row, key: str) -> str:
    if row[key] is None:
        return "–"
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    interval = "" if low is None or high is None else f" ({format_points(low)} to {format_points(high)})"
    return format_points(row[key]) + interval


def _render_run_diff_claim_row(row: Row) -> str:
    has_text = row["claim"] and not is_text_placeholder(row["claim"])
    text = row["claim"] if has_text else row["claim_id"]
    short = text if len(text) <= _LONGEST_CLAIM else f"{text[:_LONGEST_CLAIM].rstrip()} …"
    values = ["–" if row[key] is None else str(row[key]) for key in ("label", "before", "after")]
    return f"| {' | '.join([_escape_mentions(row['evaluator']), _escape_mentions(short), *values])} |"


def _escape_mentions(text: str) -> str:
    """Escaped text that notifies nobody and closes no issue: ``@name`` and ``#12`` are no links."""
    return escape_markdown(text).replace("#", "&#35;").replace("@", "&#64;").replace("://", "&#58;//")


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no table cell ends, one line."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", text)
    # At the start of a line these would be a heading, a list or a rule.
    text = re.sub(r"^([#+=-])", r"\\\1", text)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)
