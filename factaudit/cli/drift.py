"""What moved over dates: ``diff --drift``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import PATH_TYPE, SEED_OPTION, add_mapping_options, format_help_example
from factaudit.cli.terminal import exit_command_with_two_on_errors, print_line

if TYPE_CHECKING:
    from factaudit.run_drift import RunDrift
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "diff --drift",
    cls=JsonOutputCommand,
    json_keys={
        "judge": "array: per evaluator and date: n, n_unscored, n_flips, tpr, tnr, bacc, ppr; change of bacc (ppr"
        " without labels) since the first date, with _low and _high; evidence, moved, since (null where nothing did)",
        "system": "array: per system and date: n_labels, error_rate with _low and _high; evidence, moved and since",
        "left_out": "array: evaluators that did not judge at every date",
        "moved": "array: what moved, as sentences",
        "failing": "array: those of them that --fail-on names; the exit code is 1 where there is one",
        "out": "string or null: the file of the rows",
        "figure": "string or null: the file of the figure",
    },
    short_help="Say whether the judge or the system moved over dates.",
    epilog=format_help_example(
        "factaudit diff --drift anchors.csv 2026-05-01.parquet 2026-05-08.parquet --fail-on judge --out drift.csv"
    ),
)
@click.argument("anchors", type=PATH_TYPE)
@click.argument("dates", type=PATH_TYPE, nargs=-1, required=True)
@click.option(
    "--fail-on", "fail_on", multiple=True, type=click.Choice(["judge", "system"]), help="Exit 1 where it moved."
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="How many of those that never move are never called moved.",
)
@click.option("--out", type=PATH_TYPE, help="Write the rows there: .csv, .jsonl or .parquet; a figure beside it.")
@add_mapping_options
@SEED_OPTION
def diff_drift_command(
    anchors: Path,
    dates: tuple[Path, ...],
    fail_on: Sequence[str],
    confidence: float,
    out: Path | None,
    seed: int,
    mapping: ColumnMapping,
) -> None:
    """Say whether the judge moved (the same ANCHORS judged again), or the system (its own labelled claims).

    ANCHORS are claims, best with labels; each of DATES, in their order, is a file of verdicts on them or a run folder
    (or one file with repeats). Labelled claims of a date that are no anchors tell of the systems that wrote them: draw
    them by `sample --at-random`. The test holds after every date, however many will follow: of the judges
    that never move at most 5 % are ever called moved. Once something moved, begin again with the date since which it
    did.
    """
    from dataclasses import asdict

    from factaudit.errors import FactauditError, UsageError
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.input_tables import load_input_tables
    from factaudit.run_drift import detect_drift, read_drift_dates

    with exit_command_with_two_on_errors():
        figure = None if out is None else out.with_suffix(".svg")
        check_outputs_do_not_replace_inputs([anchors, *dates], out, figure)
        loaded = load_input_tables([anchors], mapping, print_line)
        if loaded.claims is None:
            raise UsageError(
                f"{anchors}: no claims in it: expected the anchors, the claims that are judged at each date"
            )
        found = detect_drift(
            loaded.claims, read_drift_dates(loaded.claims, dates, mapping, print_line), confidence=confidence, seed=seed
        )
        moves = {what: _list_move_sentences(found, what) for what in ("judge", "system")}
        failing = [sentence for what in fail_on for sentence in moves[what]]
        _display_drift(found, moves)
        if out is not None and figure is not None:
            _write_drift_files(found, out, figure)
        told = {"moved": [*moves["judge"], *moves["system"]], "failing": failing, "out": out, "figure": figure}
        print_json_output({**asdict(found), **told})
    if failing:
        raise FactauditError("; ".join(failing))


def _write_drift_files(run_drift: RunDrift, out: Path, figure: Path) -> None:
    import pandas as pd

    from factaudit.report.plots.command_plots import draw_run_drift_plot, write_command_figure
    from factaudit.tables import write_table

    write_table(pd.DataFrame([*run_drift.judge, *run_drift.system]), out)
    drawn = draw_run_drift_plot(run_drift.judge, run_drift.system)
    write_command_figure(drawn, figure, "Judges and systems over dates")
    print_line(f"{out}, {figure}")


def _list_move_sentences(run_drift: RunDrift, what: str) -> list[str]:
    name = {"judge": "evaluator", "system": "system"}[what]
    return [
        f"{what} {row[name] or ''}: moved since {row['since']} ({row['moved']})".replace(" :", ":")
        for row in run_drift.list_moves(what)
    ]


def _display_drift(run_drift: RunDrift, moves: dict[str, list[str]]) -> None:
    """The verdict, then a line per date of each judge and system."""
    sentences = [*moves["judge"], *moves["system"]]
    print_line(f"MOVED: {'; '.join(sentences)}" if sentences else "PASS: nothing moved, as far as these dates can tell")
    for name in dict.fromkeys(row["evaluator"] for row in run_drift.judge):
        _display_drift_rows(
            [row for row in run_drift.judge if row["evaluator"] == name], f"judge {name}", _format_judge_drift_cells
        )
    for name in dict.fromkeys(row["system"] for row in run_drift.system):
        rows = [row for row in run_drift.system if row["system"] == name]
        _display_drift_rows(rows, "system" if name is None else f"system {name}", _format_system_drift_cells)
    if run_drift.left_out:
        print_line(f"left out: {', '.join(run_drift.left_out)}, which did not judge at every date")


def _display_drift_rows(rows: Sequence[dict[str, Any]], title: str, cells: Any) -> None:
    lines = [list(cells(row)) for row in rows]
    lines.insert(0, list(cells(None)))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    print_line(f"\n{title}")
    for line in lines:
        print_line("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _format_judge_drift_cells(row: dict[str, Any] | None) -> list[str]:
    if row is None:
        return ["date", "anchors", "unscored", "flips", "TPR", "TNR", "BAcc", "PPR", "change", "evidence", ""]
    rates = [_format_share(row[key]) for key in ("tpr", "tnr", "bacc", "ppr")]
    counts = [f"{row[key]:,}" for key in ("n", "n_unscored", "n_flips")]
    return [row["date"], *counts, *rates, _format_drift_change(row), f"{row['evidence']:.3g}", row["moved"] or ""]


def _format_system_drift_cells(row: dict[str, Any] | None) -> list[str]:
    from factaudit.audit.core.figure_formatting import PERCENT_COLUMN, format_figure_range

    if row is None:
        return ["date", "labels", "errors", "interval", "evidence", ""]
    low, high = row["error_rate_low"], row["error_rate_high"]
    interval = "" if low is None or high is None else format_figure_range(PERCENT_COLUMN, low, high)
    rate = _format_share(row["error_rate"])
    return [row["date"], f"{row['n_labels']:,}", rate, interval, f"{row['evidence']:.3g}", row["moved"] or ""]


def _format_share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f} %"


def _format_drift_change(row: dict[str, Any]) -> str:
    from factaudit.run_gate import format_points

    if row["change"] is None:
        return ""
    low, high = row["change_low"], row["change_high"]
    ends = "" if low is None or high is None else f" ({format_points(low)} to {format_points(high)})"
    return f"{format_points(row['change'])}{ends}"
