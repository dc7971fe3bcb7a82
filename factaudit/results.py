"""Results: the rows of every audit with what it takes to question them. `results.json`, and tables beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import pandas as pd

from factaudit.arrays.judgements import LEVELS
from factaudit.arrays.published_counts import expand_published_counts as counted
from factaudit.audit import find_audit_declaration, list_computable_audits, load_all_audits, make_audited_run
from factaudit.audit.audit_options import (
    choose_supported_audits,
    read_audit_names_and_options,
)
from factaudit.audit.core.audit_declaration import list_declared_columns, sort_declared_rows
from factaudit.audit.core.decision_limits import DecisionLimits
from factaudit.audit.core.result_rows import Row, list_row_keys, select_rows_by_keys
from factaudit.audit.core.unknown_counts import UNKNOWN_COUNTS, blank_unknown_counts
from factaudit.audit.findings import run_audit_checks
from factaudit.audit.input_description import describe_audit_inputs as about_of
from factaudit.audit.screen import DEFAULT_TITLE
from factaudit.blas_threads import use_one_blas_thread
from factaudit.comparison_tables import ComparisonTables
from factaudit.errors import UsageError, suggest_known_name
from factaudit.python_errors import raise_python_errors
from factaudit.python_input import ClaimColumnNames, MappingSource, TableSource
from factaudit.report.results_json import RESULTS_SCHEMA, read_results_json, write_results_json
from factaudit.report.tidy_frames import FINDING_KEYS, make_tidy_report_frame
from factaudit.signature import hash_texts, make_signature
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables.digest import compute_table_digest
from factaudit.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Results:
    """What audits found. ``audits``: by name their rows (flat, rates in [0, 1], undefined is None).

    ``results["rates"]`` is an audit's rows as a frame, ``results.rates`` the same with a row per figure (``figure``,
    ``value``, ``low``, ``high``), ``results.findings`` what is said of them.
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
        return pd.DataFrame(self.finding_rows, columns=None if self.finding_rows else FINDING_KEYS)

    @property
    def decisions(self) -> list[Row]:
        """What each evaluator can be used for: ``evaluator``, ``task``, ``may`` (yes, no, cannot tell, ...), the
        ``figure`` that it rests on, and ``why``. Evaluators that read nothing are no candidates."""
        run = make_audited_run(self.audits, self.about)
        tasks = [one for name, audit in load_all_audits().items() if self.audits.get(name) for one in audit.decides]
        return [
            {"evaluator": name, "task": one.task, **vars(answer)}
            for name in self.evaluators
            for one in tasks
            if name not in run.floors and (answer := one.answer(run, name)) is not None
        ]

    def __getitem__(self, audit: str) -> pd.DataFrame:
        """`table` of an audit; raises a `KeyError` where there is none of this name."""
        if audit not in self.audits:
            raise KeyError(f"no audit {audit!r} in these results{suggest_known_name(audit, list(self.audits))}")
        return self.table(audit)

    def __getattr__(self, name: str) -> pd.DataFrame:
        """An audit's figures, a row each."""
        audits = self.__dict__.get("audits", {})
        if name.startswith("_") or name not in audits:
            raise AttributeError(f"no audit {name!r} in these results{suggest_known_name(name, list(audits))}")
        rows = self._select_rows(name, {})
        return make_tidy_report_frame(
            self.table(name), list_declared_columns(find_audit_declaration(name, rows).columns, rows)
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.audits})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.audits)

    def __repr__(self) -> str:
        n_claims = sum(row.get("n_claims") or 0 for row in self.about.get("claims") or [])
        evaluators = ", ".join(self.evaluators[:4]) + ", ..." * (len(self.evaluators) > 4)
        return f"<Results of {n_claims:,} claims, evaluators {evaluators}; audits {', '.join(self.audits)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the first screen."""
        from factaudit.audit.screen import compose_screen
        from factaudit.report.html import render_html_screen

        return render_html_screen(compose_screen(self.to_dict()))

    def rows(self, audit: str, **where: object) -> list[Row]:
        """The rows of one audit that have these values (of a list: one of them), evaluators in the order of the report.

        Examples:
            >>> results.rows("rates", dataset="__macro__", evaluator="tfidf")  # doctest: +SKIP
        """
        return self._select_rows(audit, where)

    def table(self, audit: str, **where: object) -> pd.DataFrame:
        """`rows` as a DataFrame; undefined figures are missing values."""
        return pd.DataFrame(self._select_rows(audit, where))

    def _select_rows(self, audit: str, where: Mapping[str, object]) -> list[Row]:
        if audit not in self.audits:
            raise UsageError(f"no audit {audit!r} in these results{suggest_known_name(audit, list(self.audits))}")
        keys = list_row_keys(self.audits[audit])
        for key in where:
            if keys and key not in keys:
                raise UsageError(f"rows of {audit} have no {key!r}{suggest_known_name(key, keys)}")
        wanted = {key: value if isinstance(value, list | tuple) else [value] for key, value in where.items()}
        found = select_rows_by_keys(self.audits[audit], wanted)
        columns = list_declared_columns(find_audit_declaration(audit, found).columns, found)
        return sort_declared_rows(found, columns, self.evaluators)

    def figure(
        self,
        audit: str,
        *,
        ax: Axes | None = None,
        axes: Mapping[str, Axes] | None = None,
        style: str | Path | Mapping[str, object] | Sequence[str | Path] | None = None,
        **where: object,
    ) -> Figure:
        """The report's figure of one audit, of the rows that have these values; an evaluator looks the same in each.

        Where rows are of claims or of responses, ``level`` is ``claim`` unless it is given.

        Args:
            audit: its name.
            ax: axes of yours to draw into, where the figure has one panel.
            axes: axes of yours by panel, of as many panels as you want: ``{"bacc": ax}``. A panel's name is its column,
                or the group that it shows.
            style: as `matplotlib.style.use` takes it, on top of the package's style sheet. What you have set yourself
                (``with plt.style.context(...)``) wins over the sheet, too.

        Examples:
            >>> figure = results.figure("rates", evaluator=["tfidf", "rouge2"])  # doctest: +SKIP
            >>> figure.axes[0].set_xlim(50, 100)  # doctest: +SKIP
        """
        rows = self.rows(audit, **where)
        declared = find_audit_declaration(audit, rows)
        if declared.plot is None:
            drawn = [name for name in self.audits if find_audit_declaration(name).plot is not None]
            raise UsageError(f"no figure of audit {audit!r}{suggest_known_name(audit, drawn)}")
        if "level" not in where and any(row.get("level") == "claim" for row in rows):
            rows = [row for row in rows if row["level"] == "claim"]
        if not rows:
            raise UsageError(f"there is nothing to draw: the audit {audit!r} has no rows with these values")
        if declared.readable is not None:
            rows = declared.readable(rows)[0]
        if declared.add_references is not None:
            rows = declared.add_references(make_audited_run(self.audits, self.about), rows)
        if ax is not None and axes is not None:
            raise UsageError("expected ax or axes, found both")
        from factaudit.report.plots.drawing import draw_audit_plot
        from factaudit.report.plots.figure_style import use_figure_style

        floors = {row["name"] for row in self.about.get("evaluators", []) if row.get("floor")}
        own_axes = ax if ax is not None else axes
        with use_figure_style(style, in_own_axes=own_axes is not None):
            return draw_audit_plot(declared.plot, rows, declared.columns, self.evaluators, floors, axes=own_axes).figure

    def to_dict(self) -> dict[str, Any]:
        """The content of ``results.json``, with all rows of every audit."""
        return {
            "schema": RESULTS_SCHEMA,
            **{_get_json_key(each.name): getattr(self, each.name) for each in fields(self)},
        }

    def save(self, folder: str | Path) -> Path:
        """Write ``results.json``, its tables and the report into a folder; returns the path of ``report.html``."""
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


class AuditRunOptions(TypedDict, total=False):
    """What `compare` and `compare_counts` have in common, explained at `compare`."""

    title: str
    seed: int
    replicates: int
    confidence: float
    decisions: Mapping[str, float] | None
    trained_on: Mapping[str, Sequence[str]] | None
    inputs: Sequence[Row]


def _make_intervals(options: AuditRunOptions) -> ClusterBootstrap | None:
    replicates = options.get("replicates", 2000)
    return ClusterBootstrap(replicates, options.get("seed", 0), options.get("confidence", 0.95)) if replicates else None


def _assemble_results(
    tables_digest: str,
    claim_and_evaluator_rows: tuple[list[Row], list[Row]],
    chosen: Mapping[str, Mapping[str, Any]],
    audit_rows: dict[str, Sequence[Row]],
    options: AuditRunOptions,
) -> Results:
    """The results of audits with their signature and findings.

    tables_digest: of what they are computed on. claim_and_evaluator_rows: rows of the claims by dataset, and of the
    evaluators. chosen: the audits with their options.
    """
    claims, evaluators = claim_and_evaluator_rows
    names, trained_on = [row["name"] for row in evaluators], options.get("trained_on") or {}
    for name in trained_on:
        if name not in names:
            raise UsageError(f"trained_on: no evaluator {name!r}{suggest_known_name(name, names)}")
    evaluators = [
        row | ({"trained_on": list(trained_on[row["name"]])} if row["name"] in trained_on else {}) for row in evaluators
    ]
    drawn: Row = {"seed": options.get("seed", 0), "replicates": options.get("replicates", 2000)}
    drawn["confidence"] = options.get("confidence", 0.95)
    about = {
        "title": options.get("title", DEFAULT_TITLE),
        "factaudit": __version__,
        **drawn,
        "limits": DecisionLimits.parse(options.get("decisions")).as_dict(),
        "options": {name: dict(given) for name, given in chosen.items() if given},
        "claims": claims,
        "evaluators": evaluators,
        "inputs": list(options.get("inputs", ())),
    }
    in_order = sorted(evaluators, key=itemgetter("name"))
    own = {
        "evaluators": hash_texts(*(f"{row['name']}={row['signature'] or ''}" for row in in_order)),
        "audits": hash_texts(*(make_signature(name, given) for name, given in chosen.items())),
    }
    signature = make_signature("factaudit", {**drawn, "tables": tables_digest, "version": __version__, **own})
    findings, about["n_tests"] = run_audit_checks(audit_rows, about)
    return Results(signature, about, audit_rows, findings)


@raise_python_errors
def compare(
    claims: TableSource | Sequence[TableSource] | ComparisonTables,
    verdicts: TableSource | Sequence[TableSource] | None = None,
    *,
    evaluators: Sequence[str] | None = None,
    audits: Sequence[str | Mapping[str, object]] | None = None,
    title: str = DEFAULT_TITLE,
    seed: int = 0,
    replicates: int = 2000,
    confidence: float = 0.95,
    decisions: Mapping[str, float] | None = None,
    trained_on: Mapping[str, Sequence[str]] | None = None,
    signatures: Mapping[str, str] | None = None,
    inputs: Sequence[Row] = (),
    annotations: pd.DataFrame | None = None,
    label_rules: Sequence[str] = (),
    mapping: MappingSource | None = None,
    **columns: Unpack[ClaimColumnNames],
) -> Results:
    """Audit evaluators on claims: every audit by default, else those named (``"rates"`` or ``{"rates": {options}}``).

    Args:
        claims: a frame or the path of a file, of any shape; a validated table (`factaudit.tables`) is taken as it is.
            Or `ComparisonTables`, which has the verdicts and annotations too.
        verdicts: likewise, of these claims; None where the claims' frame has them.
        evaluators: the columns that hold what one evaluator said each (of a table of verdicts: the evaluators to read).
        columns: which column of yours is which of claims: ``label="human", system="model"``. Others are found by their
            names and values.
        mapping: what else says how the frames are read, as a YAML of `factaudit inspect --write` does.
        seed: of the bootstrap, where one is needed.
        replicates: of the bootstrap; 0 gives no intervals at all.
        confidence: of all intervals.
        decisions: limits of an evaluator (`factaudit.audit.core.decision_limits.DecisionLimits`) in place of defaults.
        trained_on: evaluator name to the data sets (or the beginning of their names) that it was trained on: the first
            screen warns of them.
        signatures: evaluator name to the signature that its verdicts were made with, where known.
        inputs: ``{"path", "checksum"}`` of the files behind the tables.
        annotations: what people said of the claims (`factaudit.tables.annotations`), with labels.
        label_rules: the first makes the claims' labels of the annotations; figures under all of them stand beside each
            other in the audit of that name. By default the labels are the claims' own.
    """
    known = list_computable_audits()
    chosen = read_audit_names_and_options(audits)
    ready = (
        claims
        if isinstance(claims, ComparisonTables)
        else ComparisonTables.join(claims, verdicts, annotations, label_rules, mapping, columns, evaluators)
    )
    judged = ready.judged
    if audits is None:
        applies = {name: known[name].applies for name in chosen}
        chosen = {n: given for n, given in chosen.items() if (asked := applies[n]) is None or asked(judged)}
    for name, given in chosen.items():
        if (complete := known[name].complete) is not None:
            chosen[name] = complete(given, signatures or {})
    options: AuditRunOptions = {
        "title": title,
        "seed": seed,
        "replicates": replicates,
        "confidence": confidence,
        "decisions": decisions,
        "trained_on": trained_on,
        "inputs": inputs,
    }
    intervals, found = _make_intervals(options), dict[str, Sequence[Row]]()
    for name, given in chosen.items():
        compute = known[name].compute
        with use_one_blas_thread():
            found[name] = compute(judged, **given, intervals=intervals) if compute else []
    about = about_of(judged, ready.evaluator_order, signatures or {})
    results = _assemble_results(ready.tables_digest, about, chosen, found, options)
    if ready.graded_labels:
        results.about["graded_labels"] = list(ready.graded_labels)
    if not (rules := judged.label_rules):
        return results
    line = f"{results.signature}|label_rule:{rules[0]}"
    return replace(results, signature=line, about=results.about | {"labels_by": list(rules)})


@use_one_blas_thread()
def compare_counts(
    counts: pd.DataFrame, *, audits: Sequence[str | Mapping[str, Any]] | None = None, **options: Unpack[AuditRunOptions]
) -> Results:
    """Audit evaluators of which only numbers of claims are known, by the code that audits claims.

    counts: a validated counts table (`factaudit.tables.counts_table`); the rest as in `compare`. By default all audits
    that can do with it; those that need to know how many labelled errors were found read the rows that say so. Where
    ``n_known`` is 0, figures that follow from numbers of claims alone are null. Raises `UsageError` for an audit that
    needs claims.
    """
    known = list_computable_audits()
    able = [name for name, audit in known.items() if audit.counts is not None]
    chosen = choose_supported_audits(audits, able, "needs claims: of a counts table")
    joint = counts[counts["errors_found"].notna()]
    intervals = _make_intervals(options)
    levels = [level for level in LEVELS if (counts["level"] == level).any()]
    units = {
        (level, kind): counted(t, level) for level in levels for kind, t in (("margins", counts), ("joint", joint))
    }
    found: dict[str, Sequence[Row]] = {}
    for name, asked in chosen.items():
        audit, rows = known[name], list[Row]()
        by_level = "levels" in audit.options_model().model_fields
        for level in [one for one in levels if one in asked.get("levels", LEVELS)] if by_level else levels[:1]:
            judged = units[level, str(audit.counts)]
            if audit.compute is not None:
                given = asked | ({"levels": [level]} if by_level else {})
                rows += audit.compute(judged, **given, intervals=intervals)
        found[name] = sorted(rows, key=lambda row: str(row["dataset"])) if by_level else rows
    claim_rows, evaluator_rows = about_of(units[levels[0], "margins"], counts["evaluator"].unique(), {})
    is_unknown = not counts["n_known"].all()
    if is_unknown:
        found, claim_rows = {name: blank_unknown_counts(rows) for name, rows in found.items()}, []
    about = (claim_rows, evaluator_rows)
    results = _assemble_results(compute_table_digest(counts), about, chosen, found, options)
    if is_unknown:
        results.about["counts"] = UNKNOWN_COUNTS
    return results
