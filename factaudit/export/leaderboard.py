"""A static page of evaluators by data sets, from one run folder or several: figures with intervals, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factaudit.audit import find_audit_declaration, make_audited_run
from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.errors import InputError, Problem
from factaudit.files import resolve_path, write_json, write_text
from factaudit.report.html import hash_page_script, make_html_template_environment, read_page_script, read_style_sheet
from factaudit.results import Results, Row
from factaudit.text.display_text import format_count

#: So many data sets are named in a heading.
_MAX_NAMED_DATASETS = 4


@dataclass
class LeaderboardLine:
    """An evaluator of a run; ``rates_by_dataset`` data set its row of the audit `rates`; ``decisions`` by task {may,
    figure, why}.
    """

    evaluator: str
    run: str
    floor: bool
    signature: str
    rates_by_dataset: dict[str, Row] = field(default_factory=dict)
    decisions: dict[str, dict[str, str]] = field(default_factory=dict)
    #: Of each data set how many claims are labelled; None where it is not known.
    n_labelled: dict[str, int | None] = field(default_factory=dict)

    @property
    def mean_rates(self) -> Row | None:
        """Over the run's data sets; of a run on one data set, that."""
        return self.rates_by_dataset.get(MACRO_MEAN) or (
            next(iter(self.rates_by_dataset.values())) if len(self.rates_by_dataset) == 1 else None
        )


@dataclass(frozen=True)
class LeaderboardGroup:
    """Lines that can be compared: of the same data sets with as many labelled claims; the highest BAcc first."""

    lines: list[LeaderboardLine]

    @property
    def datasets(self) -> list[str]:
        return list(self.lines[0].n_labelled)

    @property
    def heading(self) -> str:
        """``QA (900 labelled claims), Summary (900)``; of many data sets their number."""
        counts = self.lines[0].n_labelled
        if len(counts) > _MAX_NAMED_DATASETS:
            known = [count for count in counts.values() if count is not None]
            return f"{len(counts)} data sets" + (f" ({sum(known):,} labelled claims)" if known else "")
        return ", ".join(
            name + ("" if count is None else f" ({format_count(count, 'labelled claim')})")
            for name, count in counts.items()
        )


def write_leaderboard(run_dirs: Sequence[Path], out: Path, title: str) -> list[Path]:
    """Write ``index.html`` and ``leaderboard.json``; returns both.

    An evaluator has a line for each run that it is in. Lines of the same data sets have a table together, in the order
    of BAcc, floors last: figures of other data sets are not comparable. Raises `InputError` for a folder without rates.
    """
    by_datasets: dict[tuple[tuple[str, int | None], ...], list[LeaderboardLine]] = {}
    for line in (line for run_dir in run_dirs for line in read_leaderboard_lines(run_dir)):
        by_datasets.setdefault(tuple(line.n_labelled.items()), []).append(line)
    groups = [LeaderboardGroup(sorted(mine, key=_rank_leaderboard_line)) for mine in by_datasets.values()]
    lines = [line for group in groups for line in group.lines]
    script = read_page_script()
    page = (
        make_html_template_environment()
        .get_template("leaderboard.html.j2")
        .render(
            title=title,
            groups=groups,
            tasks=list(dict.fromkeys(task for line in lines for task in line.decisions)),
            several=len({line.run for line in lines}) > 1,
            signatures=list(dict.fromkeys(line.signature for line in lines)),
            style=read_style_sheet(),
            script=script,
            script_hash=hash_page_script(script),
        )
    )
    write_text(out / "index.html", page)
    write_json(
        out / "leaderboard.json", {"title": title, "lines": [_make_leaderboard_json_line(line) for line in lines]}
    )
    return [out / "index.html", out / "leaderboard.json"]


def _rank_leaderboard_line(line: LeaderboardLine) -> tuple[bool, float, str, str]:
    return line.floor, -((line.mean_rates or {}).get("bacc") or -1.0), line.evaluator, line.run


def read_leaderboard_lines(run_dir: Path) -> list[LeaderboardLine]:
    """The evaluators of a run folder."""
    results = Results.load(run_dir)
    if not results.audits.get("rates"):
        raise InputError(
            str(run_dir),
            [Problem("the run has no audit 'rates', which a leaderboard shows; run it again with this audit")],
        )
    audited = make_audited_run(results.audits, results.about)
    labelled: dict[str, int] = {}
    for row in results.about.get("claims") or []:  # a row for each task of a data set
        labelled[row["dataset"]] = labelled.get(row["dataset"], 0) + (row.get("n_labelled") or 0)
    lines = []
    for about in results.about["evaluators"]:
        line = LeaderboardLine(about["name"], resolve_path(run_dir).name, bool(about.get("floor")), results.signature)
        line.rates_by_dataset = {row["dataset"]: row for row in results.rows("rates", evaluator=about["name"])}
        datasets = sorted(name for name in line.rates_by_dataset if name != MACRO_MEAN)
        line.n_labelled = {name: labelled.get(name) for name in datasets}
        for name in results.audits:
            for decision in () if line.floor else find_audit_declaration(name).decides:
                if (answer := decision.answer(audited, line.evaluator)) is not None:
                    told = {"may": answer.may, "figure": answer.figure, "why": answer.sentence}
                    line.decisions.setdefault(decision.task, told)
        lines.append(line)
    return lines


def _make_leaderboard_json_line(line: LeaderboardLine) -> dict[str, Any]:
    keys = ("n", "n_unscored", *(f"{key}{end}" for key in ("bacc", "tpr", "tnr") for end in ("", "_low", "_high")))
    rates = {dataset: {key: row.get(key) for key in keys} for dataset, row in line.rates_by_dataset.items()}
    about = {"evaluator": line.evaluator, "run": line.run, "floor": line.floor, "signature": line.signature}
    return about | {"rates": rates, "decisions": line.decisions}
