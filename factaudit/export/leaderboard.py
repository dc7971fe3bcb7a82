"""A static page of evaluators by data sets, from one run folder or several: figures with intervals, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factaudit.audit import declaration
from factaudit.audit.core.declare import Audited
from factaudit.audit.core.rows import MACRO
from factaudit.export.rates import read_rates
from factaudit.files import write_json, write_text
from factaudit.report.html import environment, style_of
from factaudit.results import Row


@dataclass
class Line:
    """An evaluator of a run; ``by`` data set its row of the audit `rates`; ``decisions`` by task {may, figure, why}."""

    evaluator: str
    run: str
    floor: bool
    signature: str
    by: dict[str, Row] = field(default_factory=dict)
    decisions: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def mean(self) -> Row | None:
        """Over the run's data sets; of a run on one data set, that."""
        return self.by.get(MACRO) or (next(iter(self.by.values())) if len(self.by) == 1 else None)


def write_leaderboard(run_dirs: Sequence[Path], out: Path, title: str) -> list[Path]:
    """Write ``index.html`` and ``leaderboard.json``; returns both.

    An evaluator has a line for each run that it is in. Lines are in the order of BAcc, floors last; two that overlap
    are not ranked by it: the decisions say what each may be used for. Raises `InputError` for a folder without rates.
    """
    lines = [line for run_dir in run_dirs for line in lines_of(run_dir)]
    lines.sort(key=lambda line: (line.floor, -((line.mean or {}).get("bacc") or -1.0), line.evaluator, line.run))
    datasets = sorted({name for line in lines for name in line.by if name != MACRO})
    tasks = list(dict.fromkeys(task for line in lines for task in line.decisions))
    several = len({line.run for line in lines}) > 1
    page = (
        environment()
        .get_template("leaderboard.html.j2")
        .render(
            title=title, lines=lines, datasets=datasets, tasks=tasks, several=several, macro=MACRO, style=style_of()
        )
    )
    write_text(out / "index.html", page)
    write_json(out / "leaderboard.json", {"title": title, "lines": [_plain(line) for line in lines]})
    return [out / "index.html", out / "leaderboard.json"]


def lines_of(run_dir: Path) -> list[Line]:
    """The evaluators of a run folder."""
    results = read_rates(run_dir)
    audited = Audited(results.audits, results.about)
    lines = []
    for about in results.about["evaluators"]:
        line = Line(about["name"], run_dir.resolve().name, bool(about.get("floor")), results.signature)
        line.by = {row["dataset"]: row for row in results.rows("rates", evaluator=about["name"])}
        for name in results.audits:
            for decision in () if line.floor else declaration(name).decides:
                if (answer := decision.answer(audited, line.evaluator)) is not None:
                    told = {"may": answer.may, "figure": answer.figure, "why": answer.sentence}
                    line.decisions.setdefault(decision.task, told)
        lines.append(line)
    return lines


def _plain(line: Line) -> dict[str, Any]:
    keys = ("n", "n_unscored", *(f"{key}{end}" for key in ("bacc", "tpr", "tnr") for end in ("", "_low", "_high")))
    rates = {dataset: {key: row.get(key) for key in keys} for dataset, row in line.by.items()}
    about = {"evaluator": line.evaluator, "run": line.run, "floor": line.floor, "signature": line.signature}
    return about | {"rates": rates, "decisions": line.decisions}
