"""The versions of a judge in their order: the balanced accuracy of each run, and its change from the run before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from factaudit.audit.core.evaluator_comparison import find_overall_evaluator_rows
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.report.plots.command_plots import draw_version_curve, write_command_figure
from factaudit.results import Results
from factaudit.run_diff import diff_runs


def compare_run_versions(runs: Sequence[str | Path], pairs: Mapping[str, str] | Sequence[str] = ()) -> list[Row]:
    """A row per run and compared evaluator, runs in the order given.

    Keys: run, place (0 for the first run), evaluator, evaluator_before (its name in the run before), bacc with bacc_low
    and bacc_high over all data sets, and change with change_low and change_high: the paired difference from the run
    before, on the claims of both (null of the first). pairs, errors: as in `diff_runs`.
    """
    # By place, as a run may stand at several: of each evaluator the change from the run before.
    changes: list[dict[str, Row]] = [{} for _ in runs]
    for at, (before, after) in enumerate(pairwise(runs)):
        for row in diff_runs(before, after, pairs=pairs).changes:
            if row["dataset"] == MACRO_MEAN:
                changes[at + 1][row["evaluator"]] = row
                if at == 0:
                    changes[0][row["evaluator_before"]] = {}
    rows = []
    for place, run in enumerate(map(str, runs)):
        overall = find_overall_evaluator_rows(Results.load(run).rows("rates"))
        for evaluator, change in changes[place].items():
            row = {"run": run, "place": place, "evaluator": evaluator}
            row["evaluator_before"] = change.get("evaluator_before")
            row |= {key: overall.get(evaluator, {}).get(key) for key in ("bacc", "bacc_low", "bacc_high")}
            row |= {f"change{end}": change.get(f"bacc{end}") for end in ("", "_low", "_high")}
            rows.append(row)
    return rows


def write_run_versions_figure(versions: Sequence[Row], path: Path) -> None:
    """Draw the rows of `compare_run_versions` into an SVG file."""
    write_command_figure(draw_version_curve(versions), path, "Balanced accuracy by version")
