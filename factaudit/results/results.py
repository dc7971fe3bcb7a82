"""Results: the rows of every audit as tables, findings, decisions, the first screen and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from factaudit.audit import load_all_audits
from factaudit.audit.core.audit_declaration import (
    ScatterPlot,
    list_declared_columns,
    sort_declared_rows,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.result_rows import Row
from factaudit.audit.decisions import list_decisions
from factaudit.errors import UsageError, suggest_known_name
from factaudit.report.results_json import RESULTS_SCHEMA, read_results_json, write_results_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The columns of findings where there is none.
_FINDING_COLUMNS = ["id", "severity", "evaluator", "dataset", "statement", "evidence"]


@dataclass(frozen=True)
class Results:
    """What audits found. ``audits``: by name their rows (flat, rates in [0, 1], undefined is None).

    ``results.rates``, or ``results["rates"]``, is the table of an audit: a row for each evaluator
    and data set (or what else its rows are about) and a column for each figure.
    ``results.findings`` is what is said of them.
    """

    signature: str
    about: dict[str, Any]
    audits: dict[str, Sequence[Row]]
    finding_rows: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    sections: list[dict[str, Any]] = field(default_factory=list)

    @property
    def evaluators(self) -> list[str]:
        """The evaluators' names, in the order in which they were given."""
        return [row["name"] for row in self.about.get("evaluators", [])]

    @property
    def findings(self) -> pd.DataFrame:
        """The findings, a row each: severity (fail, warn, ok), statement, and what it is about."""
        return pd.DataFrame(
            self.finding_rows, columns=None if self.finding_rows else _FINDING_COLUMNS
        )

    @property
    def decisions(self) -> list[Row]:
        """What each evaluator can be used for: ``evaluator``, ``task``, ``may`` (yes, no, cannot
        tell, ...), the ``figure`` that it rests on, and what is ``required``. Evaluators
        that read nothing are no candidates."""
        run = AuditedRun(self.audits, self.about)
        candidates = [name for name in self.evaluators if name not in run.floors]
        return [
            {"evaluator": name, **vars(answer)}
            for name in candidates
            for answer in list_decisions(run, name)
        ]

    def __getitem__(self, audit: str) -> pd.DataFrame:
        """`table` of an audit; raises a `KeyError` where there is none of this name."""
        if audit not in self.audits:
            raise KeyError(
                f"no audit {audit!r} in these results{suggest_known_name(audit, list(self.audits))}"
            )
        return self.table(audit)

    def __getattr__(self, name: str) -> pd.DataFrame:
        """`table` of an audit; raises an `AttributeError` where there is none of this name."""
        audits = self.__dict__.get("audits", {})
        if name.startswith("_") or name not in audits:
            raise AttributeError(
                f"no audit {name!r} in these results{suggest_known_name(name, list(audits))}"
            )
        return self.table(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.audits})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.audits)

    def __repr__(self) -> str:
        n_claims = sum(row.get("n_claims") or 0 for row in self.about.get("claims") or [])
        evaluators = ", ".join(self.evaluators[:4]) + ", ..." * (len(self.evaluators) > 4)
        return (
            f"<Results of {n_claims:,} claims, evaluators {evaluators}; audits"
            f" {', '.join(self.audits)}>"
        )

    def __str__(self) -> str:
        """What `print` shows: the first screen."""
        from factaudit.report.screen_text import format_terminal_screen

        return "\n".join(format_terminal_screen(self.to_dict()))

    def _repr_html_(self) -> str:
        """What a notebook shows: the first screen."""
        from factaudit.audit.screen import compose_screen
        from factaudit.report.html import render_html_screen

        return render_html_screen(compose_screen(self.to_dict()))

    def table(self, audit: str, **where: object) -> pd.DataFrame:
        """The rows of one audit that have these values, as a DataFrame; undefined figures are
        missing values.

        Examples:
            >>> both = ["tfidf", "rouge2"]
            >>> results.table("rates", dataset="__macro__", evaluator=both)  # doctest: +SKIP
        """
        return pd.DataFrame(self.rows(audit, **where))

    def rows(self, audit: str, **where: object) -> list[Row]:
        """The rows of one audit that have these values (of a list: one of them), evaluators in the
        order of the report.

        Raises `UsageError` for an audit, or a key, that is not there.
        """
        if audit not in self.audits:
            raise UsageError(
                f"no audit {audit!r} in these results{suggest_known_name(audit, list(self.audits))}"
            )
        found = list(self.audits[audit])
        keys = list(found[0]) if found else []  # which are the same in all rows
        for key, value in where.items():
            if found and key not in keys:
                raise UsageError(f"rows of {audit} have no {key!r}{suggest_known_name(key, keys)}")
            wanted = value if isinstance(value, list | tuple) else [value]
            found = [row for row in found if row[key] in wanted]
        if audit not in load_all_audits():  # of a package that is not installed
            return found
        columns = list_declared_columns(load_all_audits()[audit].columns, found)
        return sort_declared_rows(found, columns, self.evaluators)

    def figure(
        self,
        audit: str,
        *,
        ax: Axes | None = None,
        panel: str | None = None,
        **where: object,
    ) -> Figure:
        """The report's figure of one audit, of the rows that have these values; an evaluator looks
        the same in each.

        Where rows are of claims or of responses, ``level`` is ``claim`` unless it is given.

        Args:
            audit: its name.
            ax: axes of yours to draw into, in your own style, where the figure has one panel.
            panel: of a figure with several panels the one that you want, by its column.

        Examples:
            >>> figure, ax = plt.subplots()  # doctest: +SKIP
            >>> results.figure("rates", evaluator=["tfidf", "rouge2"], ax=ax)  # doctest: +SKIP
        """
        rows = self.rows(audit, **where)
        declared = load_all_audits().get(audit)
        plot = declared.plot if declared is not None else None
        if declared is None or plot is None:
            known = load_all_audits().items()
            drawn = [name for name, one in known if name in self.audits and one.plot is not None]
            raise UsageError(f"no figure of audit {audit!r}{suggest_known_name(audit, drawn)}")
        if panel is not None:
            if isinstance(plot, ScatterPlot) or panel not in plot.keys:
                panels = [] if isinstance(plot, ScatterPlot) else list(plot.keys)
                raise UsageError(
                    f"panel: the figure of {audit} has no"
                    f" {panel!r}{suggest_known_name(panel, panels)}"
                )
            plot = replace(plot, keys=(panel,))
        if "level" not in where and any(row.get("level") == "claim" for row in rows):
            rows = [row for row in rows if row["level"] == "claim"]
        if not rows:
            raise UsageError(
                f"there is nothing to draw: the audit {audit!r} has no rows with these values"
            )
        run = AuditedRun(self.audits, self.about)
        if declared.readable is not None:
            rows = declared.readable(rows)[0]
        from factaudit.report.plots.drawing import draw_audit_plot
        from factaudit.report.plots.style import use_report_style

        with use_report_style(in_own_axes=ax is not None):
            return draw_audit_plot(
                plot, rows, declared.columns, self.evaluators, run.floors, ax
            ).figure

    def to_dict(self) -> dict[str, Any]:
        """The content of ``results.json``, with all rows of every audit."""
        return {
            "schema": RESULTS_SCHEMA,
            **{_get_json_key(each.name): getattr(self, each.name) for each in fields(self)},
        }

    def save(self, folder: str | Path) -> Path:
        """Write ``results.json``, its tables and the report into a folder; returns the path of
        ``report.html``."""
        from factaudit.report.rendering import render_report

        write_results_json(Path(folder), self.to_dict())
        render_report(Path(folder))
        return Path(folder) / "report.html"

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read the ``results.json`` of a run folder. Raises `InputError`."""
        found = read_results_json(Path(folder))
        return cls(**{each.name: found[_get_json_key(each.name)] for each in fields(cls)})


def _get_json_key(field_name: str) -> str:
    return {"finding_rows": "findings"}.get(field_name, field_name)
