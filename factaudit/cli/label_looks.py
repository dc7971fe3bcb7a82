"""Looks at growing labels, as people read them on a terminal: what holds at every look, and what one look is worth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.cli.terminal import print_line
from factaudit.text.display_text import format_count

#: In so many per cent of runs an interval is wrong at one of eight looks: rates, differences
#: (`tests/validity/looks.py`).
MISLED_RUNS = {"a rate": 23, "a difference": 15}


def display_label_looks(audit_rows: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """The last look at each data set: rates, by intervals that hold at every look, their price, whether to stop."""
    from factaudit.audit.core.figure_formatting import PERCENT_COLUMN, format_figure_range, format_percent

    summary = {(row["dataset"], row["level"]): row for row in audit_rows.get("estimate_look_summary", [])}
    for place, about in summary.items():
        rows = [row for row in audit_rows["estimate_looks"] if (row["dataset"], row["level"]) == place]
        looks = format_count(about["look"], "look")
        others = "; those above hold at one look only" * (about["look"] > 1)
        print_line(f"\n{place[0]}, {place[1]}s, {looks}: intervals that hold at every look{others}")
        for row in rows:
            if row["look"] == about["look"]:
                ends = format_figure_range(PERCENT_COLUMN, row["rate_low"], row["rate_high"])
                rate = "" if row["rate"] is None else f"{format_percent(row['rate'])} "
                print_line(f"{row['system']}  {rate}({ends}), {format_count(row['n_labels'], 'label')}")
        if about["width_one_look"] is not None:
            print_line(
                f"price: {100 * about['width']:.1f} points wide on average; the labels alone, for one look, "
                f"{100 * about['width_one_look']:.1f}"
            )
        print_line(_format_label_stop_rule(about))
        if about["reason"]:
            print_line(f"note: {about['reason']}")


def _format_label_stop_rule(about: Mapping[str, Any]) -> str:
    if about["best"] is not None:
        return f"stop: {about['best']} is known to have the lowest rate"
    if about["stop"] == "yes":
        return f"stop: no interval is wider than {100 * about['stop_width']:g} points"
    text = f"go on: the widest interval is {100 * about['widest']:.1f} points, more than {100 * about['stop_width']:g}"
    return text + (", and no system is known to be best" if about["n_pairs"] else "")


def read_former_label_counts(out: Path) -> dict[tuple[str, str], int]:
    """How many labels the estimates had that a run folder holds, by data set and level; nothing where it has none."""
    try:
        rows = json.loads((out / "results.json").read_text(encoding="utf-8"))["audits"]["estimate_summary"]
        return {(row["dataset"], row["level"]): row["n_labels"] for row in rows}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def count_drawn_sample_phases(sample: Path) -> int:
    """How many phases of a sample are drawn."""
    from factaudit.estimate.label_sample import read_sample

    return len(read_sample(sample).plan.drawn)


def display_repeated_look_warning(
    summary_rows: Sequence[Mapping[str, Any]], former_counts: Mapping[tuple[str, str], int], n_phases: int
) -> None:
    """Say how often looks at growing labels mislead: where the folder held an estimate from fewer labels, or where the
    sample grew beyond the two phases of its plan."""
    grown = [
        (former_counts[place], row["n_labels"])
        for row in summary_rows
        if (place := (row["dataset"], row["level"])) in former_counts and former_counts[place] < row["n_labels"]
    ]
    if not grown and n_phases <= 2:
        return
    seen = f"from {grown[0][0]:,} to {grown[0][1]:,} labels" if grown else f"to {n_phases} phases"
    rate, difference = MISLED_RUNS.values()
    print_line(
        f"note: the sample grew {seen}. These intervals hold at one look: of simulated runs with eight looks, "
        f"{rate} % had a wrong interval of a rate and {difference} % of a difference at some look. --sequential gives "
        "intervals that hold at every look."
    )
