"""How do run folders become a leaderboard? A static page of evaluators by data sets, with intervals
and decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.errors import InputError, Problem
from factaudit.files import resolve_path, write_json, write_text
from factaudit.report.html import (
    hash_page_script,
    make_html_template_environment,
    read_page_script,
    read_style_sheet,
)
from factaudit.results import Results, Row
from factaudit.text.display_text import format_count

#: The largest number of data sets that a heading names.
_MAX_NAMED_DATASETS = 4
#: One evaluator of one run: evaluator, run, floor, signature, n_labelled (how many claims of each
#: data set are labelled), rates (the row of the audit `rates` for each data set), mean_rates (their
#: mean) and decisions (by task: may, figure, required).
LeaderboardLine = dict[str, Any]


def write_leaderboard(run_dirs: Sequence[Path], out: Path, title: str) -> list[Path]:
    """Write ``index.html`` and ``leaderboard.json`` and return both paths.

    An evaluator has a line for each run that it is in. Lines about the same data sets share a
    table, ordered by BAcc with baselines last, because figures of different data sets are not
    comparable. Raises `InputError` for a folder without rates.
    """
    by_datasets: dict[tuple[tuple[str, int | None], ...], list[LeaderboardLine]] = {}
    for line in (line for run_dir in run_dirs for line in read_leaderboard_lines(run_dir)):
        by_datasets.setdefault(tuple(line["n_labelled"].items()), []).append(line)
    groups: list[dict[str, Any]] = [
        {
            "heading": _format_heading(dict(counts)),
            "datasets": [name for name, _ in counts],
            "lines": mine,
        }
        for counts, mine in by_datasets.items()
    ]
    for group in groups:
        group["lines"].sort(key=_rank_line)
    lines = [line for group in groups for line in group["lines"]]
    several = len({line["run"] for line in lines}) > 1
    script = read_page_script()
    template = make_html_template_environment().get_template("leaderboard.html.j2")
    page = template.render(
        title=title,
        groups=groups,
        tasks=list(dict.fromkeys(task for line in lines for task in line["decisions"])),
        several=several,
        required=_group_requirements(lines, several),
        signatures=list(dict.fromkeys(line["signature"] for line in lines)),
        style=read_style_sheet(),
        script=script,
        script_hash=hash_page_script(script),
    )
    write_text(out / "index.html", page)
    write_json(out / "leaderboard.json", {"title": title, "lines": lines})
    return [out / "index.html", out / "leaderboard.json"]


def _group_requirements(
    lines: Sequence[LeaderboardLine], several_runs: bool
) -> dict[str, dict[str, list[str]]]:
    """By task, what is required, and of which evaluators: the same is mostly required of all."""
    by_task: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        name = f"{line['evaluator']} of {line['run']}" if several_runs else line["evaluator"]
        for task, decision in line["decisions"].items():
            if decision.get("required"):
                requirements = by_task.setdefault(task, {})
                requirements.setdefault(decision["required"], []).append(name)
    return by_task


def _format_heading(counts: Mapping[str, int | None]) -> str:
    """``QA (900 labelled claims), Summary (900)``; for many data sets only their number."""
    if len(counts) > _MAX_NAMED_DATASETS:
        known = [count for count in counts.values() if count is not None]
        return f"{len(counts)} data sets" + (f" ({sum(known):,} labelled claims)" if known else "")
    told = {
        name: "" if n is None else f" ({format_count(n, 'labelled claim')})"
        for name, n in counts.items()
    }
    return ", ".join(f"{name}{count}" for name, count in told.items())


def _rank_line(line: LeaderboardLine) -> tuple[bool, float, str, str]:
    return (
        line["floor"],
        -((line["mean_rates"] or {}).get("bacc") or -1.0),
        line["evaluator"],
        line["run"],
    )


def read_leaderboard_lines(run_dir: Path) -> list[LeaderboardLine]:
    """The evaluators of a run folder."""
    results = Results.load(run_dir)
    if not results.audits.get("rates"):
        raise InputError(
            str(run_dir),
            [
                Problem(
                    "the run has no audit 'rates', which a leaderboard shows; run it again with"
                    " this audit"
                )
            ],
        )
    labelled: dict[str, int] = {}
    for row in results.about.get("claims") or []:  # one row for each task of a data set
        labelled[row["dataset"]] = labelled.get(row["dataset"], 0) + (row.get("n_labelled") or 0)
    keys = (
        "n",
        "n_unscored",
        *(f"{key}{end}" for key in ("bacc", "tpr", "tnr") for end in ("", "_low", "_high")),
    )
    lines = []
    for about in results.about["evaluators"]:
        rows: dict[str, Row] = {
            row["dataset"]: {key: row.get(key) for key in keys}
            for row in results.rows("rates", evaluator=about["name"])
        }
        datasets = sorted(name for name in rows if name != MACRO_MEAN)
        lines.append(
            {
                "evaluator": about["name"],
                "run": resolve_path(run_dir).name,
                "floor": bool(about.get("floor")),
                "signature": results.signature,
                "n_labelled": {name: labelled.get(name) for name in datasets},
                "rates": rows,
                # If the run has one data set, its own row.
                "mean_rates": (
                    rows.get(MACRO_MEAN) or (next(iter(rows.values())) if len(rows) == 1 else None)
                ),
                "decisions": {
                    row["task"]: row
                    for row in results.decisions
                    if row["evaluator"] == about["name"]
                },
            }
        )
    return lines
