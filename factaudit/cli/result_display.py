"""How do results look on a terminal? Tables and lines that several commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.cli.json_output import print_json_output
from factaudit.cli.terminal import print_line
from factaudit.errors import FactauditError
from factaudit.text.display_text import format_cached_reply_dates, format_count

if TYPE_CHECKING:
    from factaudit.results import Results


def display_run_results(results: Results, out: Path) -> None:
    """The first screen; a `FactauditError` where every verdict failed."""
    from factaudit.report.screen_text import describe_run

    for line in describe_run(results.to_dict(), out):
        print_line(line)
    finish_displayed_run(results, out)


def finish_displayed_run(results: Results, out: Path) -> None:
    """What every run ends with: replies from the cache, the outcome as JSON, and whether all verdicts failed."""
    display_cached_calls(results.calls)
    costs = [row.get("cost") for row in results.calls]
    print_json_output(
        {
            "run": out,
            "report": out / "report.html",
            "results": out / "results.json",
            "signature": results.signature,
            "about": results.about,
            "audits": {name: len(rows) for name, rows in results.audits.items()},
            "decisions": results.decisions,
            "findings": results.finding_rows,
            "cost": None if None in costs else sum(costs),
        }
    )
    check_displayed_run_has_predictions(results)


def display_score_warnings(results: Results) -> None:
    """What keeps from using the scores of an engine's run, as its first screen says it."""
    from factaudit.audit import make_audited_run
    from factaudit.audit.screen import list_warnings
    from factaudit.report.screen_text import wrap_terminal_paragraph

    for advice in list_warnings(make_audited_run(results.audits, results.about)):
        for line in wrap_terminal_paragraph(advice.sentence, f"{advice.word:<12}"):
            print_line(line)


def display_cached_calls(call_rows: Sequence[Mapping[str, Any]]) -> None:
    """How many replies came from the cache and from when; nothing where none did."""
    if count := sum(row.get("cached_calls") or 0 for row in call_rows):
        calls = sum(row.get("calls") or 0 for row in call_rows)
        dated = format_cached_reply_dates(call_rows)
        of = f" ({dated})" if dated else ""
        of += " or of an equal call" if calls else ""
        print_line(f"replies   {count:,} from the cache{of}, {format_count(calls, 'call')} sent")


def check_displayed_run_has_predictions(results: Results) -> None:
    """Raise `FactauditError` where every verdict failed: the report says so too, but a script asks the exit code."""
    rows = [row for row in results.about.get("evaluators", []) if row.get("n_verdicts")]
    if rows and not any(row["n_ok"] or row["n_guessed"] for row in rows):
        names = ("error", "refused", "unparsed", "skipped")
        found = ", ".join(f"{n:,} {name}" for name in names if (n := sum(row[f"n_{name}"] for row in rows)))
        raise FactauditError(f"no verdict has a prediction ({found})")


def display_expected_costs(cost_rows: Sequence[dict[str, Any]]) -> None:
    """The rows of `RunSettings.estimate_cost`, and their total; also as JSON."""
    costs = [row["cost"] for row in cost_rows]
    total = None if None in costs else sum(costs)
    print_json_output({"rows": cost_rows, "cost": total})
    if not cost_rows:
        print_line("no evaluator of this experiment asks a language model, so it costs nothing")
        return
    for row in cost_rows:
        if row["prompt_tokens"] is None:
            told = "" if row["calls"] is None else f" at most {format_count(row['calls'], 'call')};"
            print_line(f"{row['evaluator']}:{told} {row['reason']}")
            continue
        print_line(f"{row['evaluator']}: {format_count(row['calls'], 'call')}{_format_spared_calls(row)}")
        most = row["max_completion_tokens"]
        replies = "replies of any length" if most is None else f"at most {most:,} completion tokens"
        print_line(f"    about {row['prompt_tokens']:,} prompt tokens (1 per 4 bytes of UTF-8), {replies}")
        reason = f"; {row['reason']}" if row["reason"] else ""
        print_line(f"    cost: {_format_dollars(row['cost'])}{reason}")
    print_line(f"total: {_format_dollars(total)}")


def _format_spared_calls(cost_row: Mapping[str, Any]) -> str:
    """Calls that the cache answers, and such as are the same as others of the run: asked once."""
    same = cost_row.get("repeated_calls")
    if same is None:  # a rehearsal does not part the two
        return f" ({cost_row['cached_calls']:,} more are cached or the same as others)"
    repeated = f", {same:,} are the same as others and asked only once" if same else ""
    return f" ({cost_row['cached_calls'] - same:,} more are cached{repeated})"


def _format_dollars(dollars: float | None) -> str:
    return "unknown" if dollars is None else f"about ${dollars:,.2f}"
