"""What do runs, and forecasts of their costs, answer? The outcomes that several verbs share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.cli.output import Outcome
from factaudit.errors import FactauditError
from factaudit.text.display_text import format_cached_reply_dates, format_count

if TYPE_CHECKING:
    from factaudit.results import Results


def make_run_outcome(results: Results, out: Path, lines: Sequence[str] | None = None) -> Outcome:
    """The outcome of a finished run: its first screen (or ``lines``), how many calls the cache
    saved, and where the files are.

    It is a failure if every verdict failed. The report says so too, but a script looks at the exit
    code.
    """
    from factaudit.experiment.folder import sum_run_call_costs
    from factaudit.report.screen_text import describe_run

    document = {
        "run": out,
        "report": out / "report.html",
        "results": out / "results.json",
        "signature": results.signature,
        "about": results.about,
        "audits": {name: len(rows) for name, rows in results.audits.items()},
        "decisions": results.decisions,
        "findings": results.finding_rows,
        "cost": sum_run_call_costs(results.calls),
    }
    screen = describe_run(results.to_dict(), out) if lines is None else lines
    return Outcome(
        [*screen, *describe_cached_replies(results.calls)], document, _find_failure(results)
    )


def _find_failure(results: Results) -> FactauditError | None:
    rows = [row for row in results.about.get("evaluators", []) if row.get("n_verdicts")]
    if not rows or any(row["n_ok"] or row["n_guessed"] for row in rows):
        return None
    names = ("error", "refused", "unparsed", "skipped")
    found = ", ".join(
        f"{n:,} {name}" for name in names if (n := sum(row[f"n_{name}"] for row in rows))
    )
    return FactauditError(f"no verdict has a prediction ({found})")


def describe_cached_replies(call_rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many replies came from the cache and how old they are; empty if none did."""
    count = sum(row.get("cached_calls") or 0 for row in call_rows)
    if not count:
        return []
    calls = sum(row.get("calls") or 0 for row in call_rows)
    dated = format_cached_reply_dates(call_rows)
    of = (f" ({dated})" if dated else "") + " or of an equal call" * bool(calls)
    return [f"replies   {count:,} from the cache{of}, {format_count(calls, 'call')} sent"]


def make_cost_outcome(cost_rows: Sequence[dict[str, Any]]) -> Outcome:
    """The outcome of a cost forecast: the rows of `RunSettings.estimate_cost` and their total."""
    costs = [row["cost"] for row in cost_rows]
    total = None if None in costs else sum(costs)
    return Outcome(_describe_costs(cost_rows, total), {"rows": cost_rows, "cost": total})


def _describe_costs(cost_rows: Sequence[dict[str, Any]], total: float | None) -> Iterator[str]:
    if not cost_rows:
        yield "no evaluator of this experiment asks a language model, so it costs nothing"
        return
    for row in cost_rows:
        if row["prompt_tokens"] is None:
            told = "" if row["calls"] is None else f" at most {format_count(row['calls'], 'call')};"
            yield f"{row['evaluator']}:{told} {row['reason']}"
            continue
        yield (
            f"{row['evaluator']}: {format_count(row['calls'], 'call')}"
            f" ({row['cached_calls']:,} more are cached, or the same as others)"
        )
        most = row["max_completion_tokens"]
        replies = "replies of any length" if most is None else f"at most {most:,} completion tokens"
        yield (
            f"    about {row['prompt_tokens']:,} prompt tokens (1 per 4 bytes of UTF-8), {replies}"
        )
        reason = f"; {row['reason']}" if row["reason"] else ""
        yield f"    cost: {_format_dollars(row['cost'])}{reason}"
    yield f"total: {_format_dollars(total)}"


def _format_dollars(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"about ${dollars:,.2f}"
