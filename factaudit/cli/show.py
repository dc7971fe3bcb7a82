"""Rows as people read them on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.terminal import say

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.results import Results


def show_results(results: Results) -> None:
    """The report's opening, and how many findings there are."""
    from factaudit.report.summary import lead

    for paragraph in lead(results.to_dict()):
        say()
        say(click.wrap_text(paragraph, width=100))
    counts = Counter(finding["severity"] for finding in results.findings)
    say(f"\nfindings  {counts['fail']} fail, {counts['warn']} warn, {counts['ok']} ok: see the report")


def show_adjusted(rows: pd.DataFrame) -> None:
    """The rows of `factaudit.audit.adjustment.adjust` as a table, and below it why some figures are missing."""
    columns = ["dataset", "evaluator", "method", "threshold", "system", "n"]
    rates = ["predicted_error_rate", "adjusted_error_rate", "labelled_error_rate"]
    shown = rows[columns + rates].copy()
    for column in rates:
        shown[column] = [_figure(100 * rate, "{:.1f} %") for rate in rows[column].astype("float64")]
    shown["threshold"] = [_figure(threshold, "{:.3g}") for threshold in rows["threshold"].astype("float64")]
    say(shown.to_string(index=False))
    for reason in rows["reason"].dropna().unique():
        say(f"–: {reason}")


def _figure(value: float, form: str) -> str:
    return "–" if isnan(value) else form.format(value)


def show_costs(rows: Sequence[dict[str, Any]]) -> None:
    """The rows of `factaudit.experiment.expected_cost`, three lines each, and their total."""
    if not rows:
        say("no evaluator of this experiment asks a language model: nothing to pay")
        return
    # Counted with the model's own tokenizer a figure is a bound; approximated, it is not.
    bounds = ["about" if row["counted"].startswith("approximately") else "at most" for row in rows]
    for row, bound in zip(rows, bounds, strict=True):
        say(f"{row['evaluator']}: {row['calls']:,} calls ({row['cached_calls']:,} more are cached)")
        most = row["max_completion_tokens"]
        replies = "replies of any length" if most is None else f"at most {most:,} completion tokens"
        say(f"    {row['prompt_tokens']:,} prompt tokens ({row['counted']}), {replies}")
        dated = f" (prices of {row['price_date']})" if row["price_date"] else ""
        say(f"    cost: {_money(row['cost'], bound)}{dated}{'; ' + row['reason'] if row['reason'] else ''}")
    costs = [row["cost"] for row in rows]
    total = None if None in costs else sum(costs)
    say(f"total: {_money(total, 'about' if 'about' in bounds else 'at most')}")


def _money(dollars: float | None, bound: str) -> str:
    return "unknown" if dollars is None else f"{bound} ${dollars:,.2f}"
