"""Two runs beside each other: ``diff``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.options import PATH, REPLICATES, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer

if TYPE_CHECKING:
    from factaudit.rundiff import RunDiff


@click.command(
    cls=Verb,
    gives={
        "before": "string: a run folder",
        "after": "string: a run folder",
        "n_claims": "integer: in both",
        "only_before": "integer: claims",
        "only_after": "integer: claims",
        "changes": "array: per evaluator and dataset (__macro__: the mean): n, flips, to_right, to_wrong, and per"
        " figure its change, _before and _after; of bacc and bias also _low and _high",
        "systems": "array: where an evaluator's order of systems changed",
        "findings": "array: those that are new and those that are gone",
        "costs": "object: US dollars before and after, null where unknown",
        "failing": "array: the conditions of --fail-on that hold, as sentences; the exit code is 1 where there is one",
    },
    short_help="Say what changed between two runs.",
    epilog=example("factaudit diff runs/judge-v1 runs/judge-v2 --fail-on 'bacc<-0.02' --fail-on 'flips>0.1'"),
)
@click.argument("before", type=PATH)
@click.argument("after", type=PATH)
@click.option("--fail-on", "conditions", multiple=True, metavar="FIGURE<NUMBER", help="Exit 1 where a change is so.")
@click.option("--out", type=PATH, help="Also write it: a page (.html), or all rows as JSON.")
@click.option("--replicates", type=REPLICATES, default=2000, show_default=True, help="Of the bootstrap.")
def diff(before: Path, after: Path, conditions: Sequence[str], out: Path | None, replicates: int) -> None:
    """Compare two run folders on the claims that both have: verdicts, rates, order of systems, findings, costs.

    Changes are after − before; an interval is of the paired difference. With --fail-on (bacc, tpr, tnr, ppr, bias,
    unscored: their change; flips: the share of changed predictions) the exit code is 1 where an evaluator's figure over
    all datasets is so: a check for CI when a judge is updated.
    """
    from dataclasses import asdict

    from factaudit.errors import FactauditError
    from factaudit.files import spare
    from factaudit.rundiff import compare_runs, write_diff

    spare([before, after], out)
    found = compare_runs(before, after, replicates=replicates)
    failing = found.failing(conditions)  # a misspelt condition is said before anything is written
    if out is not None:
        write_diff(found, out, failing)
    _show(found)
    answer({**asdict(found), "failing": failing})
    if failing:
        raise FactauditError("; ".join(failing))


def _show(found: RunDiff) -> None:
    say(f"claims    {found.n_claims:,} in both; {found.only_before:,} only before, {found.only_after:,} only after")
    for row in found.changes:
        place = "all datasets" if row["dataset"] == "__macro__" else row["dataset"]
        if row["dataset"] == "__macro__" or row["flips"]:
            told = [f"{row['flips']:.1%} of {row['n']:,} predictions changed"]
            told += [f"{row['to_right']:,} to right, {row['to_wrong']:,} to wrong"] if row["flips"] else []
            told += [_points(row, key) for key in ("bacc", "tpr", "tnr", "bias") if row.get(key)]
            say(f"{row['evaluator']}, {place}: {'; '.join(told)}")
    for row in found.systems:
        say(f"{row['evaluator']}, {row['dataset']}: systems {' < '.join(row['before'])} → {' < '.join(row['after'])}")
    for row in found.findings:
        say(f"{'new' if row['change'] == 'new' else 'gone':<9} [{row['severity']}] {row['statement']}")
    if None not in found.costs.values():
        say(f"cost      ${found.costs['before']:,.2f} → ${found.costs['after']:,.2f}")


def _points(row: dict[str, Any], key: str) -> str:
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    interval = "" if low is None or high is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"
    return f"{key.upper() if key != 'bias' else 'bias'} {100 * row[key]:+.1f} points{interval}"


COMMANDS = (diff,)
