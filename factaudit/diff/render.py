"""A diff in words: one list of lines, which the terminal prints and a pull request shows as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.diff.compare import RunDiff
from factaudit.diff.gate import GateVerdict, format_points
from factaudit.tables.schema import is_text_placeholder
from factaudit.text.display_text import format_count

_SIGNS = {"fail": "❌", "worse": "❌", "cannot tell": "❓", "warn": "⚠️", "changed": "⚠️"}
#: The kinds of change of single verdicts, in words.
_CHANGE_KINDS = {
    "to_right": "became right",
    "to_wrong": "became wrong",
    "lost": "lost their verdict",
    "gained": "were not judged before",
}
_LONGEST_CLAIM = 160
#: A summary on a pull request has at most so many lines of each kind, and so many claims.
_MAX_LINES, _MAX_CLAIMS = 40, 3


def describe_run_diff(diff: RunDiff) -> Iterator[str]:
    """What changed, in lines: a heading of up to nine letters and a sentence."""
    claims = f"{diff.n_claims:,} in both; {diff.only_before:,} only before, {diff.only_after:,} only after"
    yield f"claims    {claims}"
    for names, side in ((diff.only_datasets_before, "before"), (diff.only_datasets_after, "after")):
        if names:
            yield f"data sets {', '.join(names)}: only {side}"
    if diff.n_texts_changed:
        yield f"texts     {format_count(diff.n_texts_changed, 'claim')} in both with another text or document"
    if 0 < diff.n_labelled < diff.n_claims:
        yield f"labelled  {diff.n_labelled:,} of {diff.n_claims:,} before: rates are of these"
    if diff.n_labels_changed:
        changed = format_count(diff.n_labels_changed, "label")
        yield f"labels    {changed} changed; rates use those before, findings those of each run"
    for pair in diff.pairs:
        if pair["before"] != pair["after"]:
            yield f"pair      {pair['before']} → {pair['after']}, compared as one evaluator"
    for names, side in ((diff.alone_before, "before"), (diff.alone_after, "after")):
        if names:
            yield f"alone     {', '.join(names)} ({side}): not compared (--pair OLD=NEW names a pair)"
    datasets = {row["dataset"] for row in diff.changes} - {MACRO_MEAN}
    for row in diff.changes:
        if row["dataset"] == MACRO_MEAN or len(datasets) > 1:
            place = "all claims" if row["dataset"] == MACRO_MEAN else row["dataset"]
            yield f"{row['evaluator']}, {place}: {'; '.join(_list_change_phrases(row))}"
    for row in diff.findings:
        before = (
            f"{row['severity_before']} → " if row.get("severity_before", row["severity"]) != row["severity"] else ""
        )
        yield f"{row['change']:<9} [{before}{row['severity']}] {row['statement']}"
    if None not in diff.costs.values():
        yield f"cost      ${diff.costs['before']:,.2f} → ${diff.costs['after']:,.2f}"


def _list_change_phrases(row: Row) -> list[str]:
    told = [f"{row['n_flips']:,} of {row['n_both']:,} predictions changed"]
    told += [f"{row[key]:,} {words}" for key, words in _CHANGE_KINDS.items() if row[key]]
    for key, word in (("bacc", "BAcc"), ("tpr", "TPR"), ("tnr", "TNR"), ("bias", "bias")):
        low, high = row[f"{key}_low"], row[f"{key}_high"]
        if row[key]:
            interval = "" if low is None else f" ({format_points(low)} to {format_points(high)})"
            told.append(f"{word} {format_points(row[key])} points{interval}")
    return told


def render_run_diff_markdown(diff: RunDiff, verdict: GateVerdict, link: str | None = None) -> str:
    """GitHub's Markdown, all text escaped. link: where the report is."""
    parts = [f"### {_SIGNS.get(verdict.word, '✅')} factaudit: {verdict.word}"]
    for lines in (verdict.sentences, [" ".join(line.split()) for line in describe_run_diff(diff)]):
        shown = [f"- {_escape_mentions(line)}" for line in lines[:_MAX_LINES]]
        more = [f"- and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
        parts.append("\n".join([*shown, *more]))
    # Claims of the evaluators that the verdict names, else of any.
    named = [row for row in diff.examples if any(one.startswith(f"{row['evaluator']}: ") for one in verdict.failing)]
    if claims := (named or diff.examples)[:_MAX_CLAIMS]:
        lines = ["| evaluator | claim | label | before | after |", "|---|---|---:|---:|---:|"]
        lines += [_render_claim_row(row) for row in claims]
        parts += ["Some claims that changed (label 1: attributable, 0: an error):", "\n".join(lines)]
    if link:
        parts.append(f"[The whole report](<{link}>)")
    return "\n\n".join(filter(None, parts)) + "\n"


def _render_claim_row(row: Row) -> str:
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
