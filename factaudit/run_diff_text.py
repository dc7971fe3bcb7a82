"""A diff in words: the same lines for the terminal and, with a few claims that changed, for a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.run_claims import describe_label_changes_of_runs
from factaudit.run_diff import RunDiff
from factaudit.run_gate import RunGateVerdict, format_points
from factaudit.tables.schema import is_text_placeholder
from factaudit.text.display_text import format_count

_SIGNS = {"fail": "❌", "worse": "❌", "cannot tell": "❓", "warn": "⚠️", "changed": "⚠️"}
#: The rates of a line of changes, whose last figure is the bias.
_RATES = {"bacc": "BAcc", "tpr": "TPR", "tnr": "TNR"}
#: The kinds of change of single verdicts, in words.
_CHANGE_KINDS = {
    "to_right": "became right",
    "to_wrong": "became wrong",
    "unlabelled_flips": "have no label",
    "lost": "lost their verdict",
    "gained": "were not judged before",
}
_LONGEST_CLAIM = 160
_N_CLAIMS = 3
#: A summary on a pull request has at most so many lines of each kind.
_MAX_LINES = 40


def describe_run_diff(run_diff: RunDiff) -> Iterator[tuple[str, str]]:
    """What changed, line by line: a word (of up to nine letters) and what is said of it. Evaluators have no word."""
    yield from _describe_compared_claims(run_diff)
    for pair in run_diff.pairs:
        both = f"{pair['before']} → {pair['after']}"
        if pair["by"] == "left over":
            yield "pair", f"{both}: the only ones left, compared as one evaluator"
        elif pair["before"] != pair["after"]:
            yield "pair", both
    for names, side in ((run_diff.only_evaluators_before, "before"), (run_diff.only_evaluators_after, "after")):
        if names:
            yield "alone", f"{', '.join(names)} ({side}): not compared (--pair OLD=NEW names a pair)"
    datasets = {row["dataset"] for row in run_diff.changes} - {MACRO_MEAN}
    is_single = len(datasets) == 1
    for row in run_diff.changes:
        is_mean = row["dataset"] == MACRO_MEAN
        whole = next(iter(datasets)) if is_single else "all data sets (rates: means over them)"
        if is_mean or (not is_single and (row["n_flips"] or row["lost"] or row["gained"])):
            place = whole if is_mean else row["dataset"]
            yield "", f"{row['evaluator']}, {place}: {'; '.join(_list_change_phrases(row))}"
    if any(row[key] and row[f"{key}_low"] is not None for row in run_diff.changes for key in (*_RATES, "bias")):
        yield "brackets", "95 % CIs of the paired difference, each of one change alone"
    yield from _describe_changed_findings(run_diff)
    if None not in run_diff.costs.values():
        yield "cost", f"${run_diff.costs['before']:,.2f} → ${run_diff.costs['after']:,.2f}"


def _describe_compared_claims(run_diff: RunDiff) -> Iterator[tuple[str, str]]:
    text = f"{run_diff.n_claims:,} in both; {run_diff.only_before:,} only before, {run_diff.only_after:,} only after"
    yield "claims", text
    for names, side in ((run_diff.only_datasets_before, "before"), (run_diff.only_datasets_after, "after")):
        if names:
            yield "data sets", f"{', '.join(names)}: only {side}"
    if run_diff.n_texts_changed:
        yield "texts", f"{format_count(run_diff.n_texts_changed, 'claim')} in both with another text or document"
    if 0 < run_diff.n_labelled < run_diff.n_claims:
        yield "labelled", f"{run_diff.n_labelled:,} of {run_diff.n_claims:,} before: rates are of these"
    if run_diff.n_labels_changed:
        counts = run_diff.n_labels_changed, run_diff.n_labels_added, run_diff.n_labels_removed
        text = describe_label_changes_of_runs(*counts)
        yield "labels", f"{text}; rates use those before, findings those of each run"
    if max(run_diff.n_repeats.values(), default=1) > 1:
        told = "{before} before, {after} after".format(**run_diff.n_repeats)
        yield "repeats", f"{told}; rates are means over them, counts are of the first"


def _list_change_phrases(row: Row) -> list[str]:
    if row["n_both"]:
        told = [f"{row['n_flips']:,} of {row['n_both']:,} predictions changed"]
        told[0] += f" ({100 * row['flips']:.1f} %)" if row["n_flips"] else ""
    else:
        told = ["no claim is judged in both runs"]
    told += [f"{row[key]:,} {words}" for key, words in _CHANGE_KINDS.items() if row[key]]
    n_counts = len(told)
    told += [f"{word} {_format_change(row, key)}" for key, word in _RATES.items() if row.get(key)]
    if row.get("bias") and row["bias_before"] is not None:
        ends = f"{format_points(row['bias_before'])} → {format_points(row['bias_after'])}"
        told.append(f"bias {ends}: {_format_change(row, 'bias')}")
        moved = abs(row["bias_after"]) - abs(row["bias_before"])
        if row["abs_bias"] is not None and abs(row["abs_bias"] - moved) >= 0.0005:  # biases of unlike signs cancel
            told.append(f"size of bias by data set {format_points(row['abs_bias'])} points on average")
    if (row["lost"] or row["gained"]) and told[n_counts:]:
        told[n_counts] = f"of those judged in both: {told[n_counts]}"
    return told


def _format_change(row: Row, key: str) -> str:
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    interval = "" if low is None or high is None else f" ({format_points(low)} to {format_points(high)})"
    return f"{format_points(row[key])} points{interval}"


def _describe_changed_findings(run_diff: RunDiff) -> Iterator[tuple[str, str]]:
    for row in run_diff.findings:
        if row["change"] == "restated":
            continue
        severities = dict.fromkeys([row.get("severity_before", row["severity"]), row["severity"]])
        before = "before: " * (row["change"] == "gone")
        yield row["change"], f"[{' → '.join(severities)}] {before}{row['statement']}"
        if "statement_before" in row:
            yield "", f"before: {row['statement_before']}"
    if any(row["change"] == "gone" for row in run_diff.findings):
        yield "findings", "one that is gone is not reported now, which does not show that it was mended"
    if n_restated := sum(row["change"] == "restated" for row in run_diff.findings):
        text = f"{n_restated} of the same check and severity, with another statement or other figures"
        yield "findings", f"{text} (--format json lists them)"
    if run_diff.findings_not_compared:
        n_before = run_diff.findings_not_compared_before
        sides = ((n_before, "before"), (run_diff.findings_not_compared - n_before, "after"))
        told = " and ".join(f"{n} {side}" for n, side in sides if n)
        yield "findings", f"{told}: of an audit or evaluator without a partner in the other run"


def render_run_diff_markdown(run_diff: RunDiff, verdict: RunGateVerdict, link: str | None = None) -> str:
    """GitHub's Markdown, all text escaped. link: where the report is."""
    told = [f"{word}: {text}" if word else text for word, text in describe_run_diff(run_diff)]
    parts = [f"### {_SIGNS.get(verdict.word, '✅')} factaudit: {verdict.word}"]
    for lines in (verdict.sentences, told):
        shown = [f"- {_escape_mentions(line)}" for line in lines[:_MAX_LINES]]
        more = len(lines) - _MAX_LINES
        parts.append("\n".join([*shown, *([f"- and {more} more"] if more > 0 else [])]))
    if claims := _pick_claims_of_verdict(run_diff.examples, verdict):
        lines = ["| evaluator | claim | label | before | after |", "|---|---|---:|---:|---:|"]
        lines += [_render_run_diff_claim_row(row) for row in claims]
        parts += [
            "Some claims that changed, those that became wrong first (label 1: attributable, 0: an error):",
            "\n".join(lines),
        ]
    if link:
        parts.append(f"[The whole report](<{link}>)")
    return "\n\n".join(filter(None, parts)) + "\n"


def _pick_claims_of_verdict(examples: list[Row], verdict: RunGateVerdict) -> list[Row]:
    """Claims of the evaluators that the verdict names, else of any."""
    named = [row for row in examples if any(one.startswith(f"{row['evaluator']}: ") for one in verdict.failing)]
    return (named or examples)[:_N_CLAIMS]


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
