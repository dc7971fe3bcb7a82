"""How is a diff worded? As one list of lines, which the terminal prints and a pull request shows as
Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.diff.compare import RunDiff
from factaudit.diff.gate import GateVerdict, format_points
from factaudit.text.display_text import format_count

_SIGNS = {"fail": "❌", "worse": "❌", "cannot tell": "❓", "warn": "⚠️", "changed": "⚠️"}
#: How single verdicts can change, in words.
_CHANGE_KINDS = {
    "to_right": "became right",
    "to_wrong": "became wrong",
    "lost": "lost their verdict",
    "gained": "were not judged before",
}
#: The largest number of lines in a comment on a pull request.
_MAX_LINES = 60


def describe_run_diff(diff: RunDiff) -> Iterator[str]:
    """The changes as lines: a heading of up to nine letters and a sentence."""
    claims = (
        f"{diff.n_claims:,} in both; {diff.only_before:,} only before, {diff.only_after:,} only"
        " after"
    )
    yield f"claims    {claims}"
    for names, side in ((diff.only_datasets_before, "before"), (diff.only_datasets_after, "after")):
        if names:
            yield f"data sets {', '.join(names)}: only {side}"
    if diff.n_texts_changed:
        yield (
            f"texts     {format_count(diff.n_texts_changed, 'claim')} in both with another text or"
            " document"
        )
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
            yield (
                f"alone     {', '.join(names)} ({side}): not compared (--pair OLD=NEW names a pair)"
            )
    datasets = {row["dataset"] for row in diff.changes} - {MACRO_MEAN}
    for row in diff.changes:
        if row["dataset"] == MACRO_MEAN or len(datasets) > 1:
            place = "all claims" if row["dataset"] == MACRO_MEAN else row["dataset"]
            yield f"{row['evaluator']}, {place}: {'; '.join(_list_change_phrases(row))}"
    for row in diff.findings:
        before = (
            f"{row['severity_before']} → "
            if row.get("severity_before", row["severity"]) != row["severity"]
            else ""
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


def render_run_diff_markdown(diff: RunDiff, verdict: GateVerdict) -> str:
    """A comment for a pull request. Quoted text stands in a code block, where nothing becomes a
    link or a mention."""
    lines = [" ".join(line.split()) for line in (*verdict.lines(), *describe_run_diff(diff))]
    more = [f"and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
    quoted = "\n".join([*lines[:_MAX_LINES], *more]).replace("`", "'")
    return (
        f"### {_SIGNS.get(verdict.word, '✅')} factaudit:"
        f" {verdict.word}\n\n```text\n{quoted}\n```\n"
    )
