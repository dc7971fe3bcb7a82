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

    Keys: run, evaluator, bacc with bacc_low and bacc_high over all data sets, and change with change_low and
    change_high: the paired difference from the run before, on the claims of both (null of the first). pairs, errors: as
    in `diff_runs`.
    """
    changes: dict[tuple[str, str], Row] = {}
    compared: dict[str, list[str]] = {str(run): [] for run in runs}
    for before, after in pairwise(runs):
        for row in diff_runs(before, after, pairs=pairs).changes:
            if row["dataset"] == MACRO_MEAN:
                changes[str(after), row["evaluator"]] = row
                compared[str(after)].append(row["evaluator"])
                if before == runs[0]:
                    compared[str(before)].append(row["evaluator_before"])
    rows = []
    for run in map(str, runs):
        overall = find_overall_evaluator_rows(Results.load(run).rows("rates"))
        for evaluator in compared[run]:
            row = {"run": run, "evaluator": evaluator}
            row |= {key: overall.get(evaluator, {}).get(key) for key in ("bacc", "bacc_low", "bacc_high")}
            found = changes.get((run, evaluator), {})
            row |= {f"change{end}": found.get(f"bacc{end}") for end in ("", "_low", "_high")}
            rows.append(row)
    return rows


def write_run_versions_figure(versions: Sequence[Row], path: Path) -> None:
    """Draw the rows of `compare_run_versions` into an SVG file."""
    write_command_figure(draw_version_curve(versions), path, "Balanced accuracy by version")
