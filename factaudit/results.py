"""Results: the rows of every audit with what it takes to question them. One JSON file, `factaudit.results/1`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

from factaudit.audit import computable, declaration
from factaudit.audit.core.about import about as about_of
from factaudit.audit.core.about import is_floor
from factaudit.audit.core.counted import judged as counted
from factaudit.audit.core.decisions import Limits
from factaudit.audit.core.declare import columns_of, in_order
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.tallies import Tallies
from factaudit.audit.findings import findings
from factaudit.errors import UsageError, hint
from factaudit.files import write_json
from factaudit.joined import Joined
from factaudit.signature import digest, signature
from factaudit.tables.digest import table_digest
from factaudit.threads import one_thread
from factaudit.version import __version__

if TYPE_CHECKING:
    from factaudit.report.plots.canvas import Canvas

SCHEMA = "factaudit.results/1"
Row = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """What audits found. ``audits`` maps a name to its rows (DESIGN: flat, rates in [0, 1], undefined is None)."""

    signature: str
    about: dict[str, Any]
    audits: dict[str, list[Row]]
    findings: list[Row] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    sections: list[dict[str, Any]] = field(default_factory=list)

    @property
    def evaluators(self) -> list[str]:
        """The evaluators' names, in the order in which they were given."""
        return [row["name"] for row in self.about.get("evaluators", [])]

    def rows(self, audit: str, **where: Any) -> list[Row]:
        """The rows of one audit that have these values (of a list: one of them), evaluators in the order of the report.

        Examples:
            >>> results.rows("rates", dataset="__macro__", evaluator="tfidf")  # doctest: +SKIP
        """
        if audit not in self.audits:
            raise UsageError(f"no audit {audit!r} in these results{hint(audit, list(self.audits))}")
        found = self.audits[audit]
        for key in where:
            if found and key not in found[0]:
                raise UsageError(f"rows of {audit} have no {key!r}{hint(key, list(found[0]))}")
        wanted = {key: value if isinstance(value, list | tuple) else [value] for key, value in where.items()}
        found = [row for row in found if all(row[key] in values for key, values in wanted.items())]
        return in_order(found, columns_of(declaration(audit, found).columns, found), self.evaluators)

    def table(self, audit: str, **where: Any) -> pd.DataFrame:
        """`rows` as a DataFrame; undefined figures are missing values."""
        return pd.DataFrame(self.rows(audit, **where))

    def figure(self, audit: str, *, plot: str = "", panels: str | None = None, **where: Any) -> Canvas:
        """The report's figure of one audit, of the rows that have these values; an evaluator looks the same in each.

        Where rows are of claims or of responses, ``level`` is ``claim`` unless it is given. ``plot``: the name of a
        further figure, where the audit declares one. ``panels``: a column of which each value has a panel, in place of
        the declared ones, where the kind of plot has panels of a column.
        """
        rows = self.rows(audit, **where)
        declared = declaration(audit, rows)
        if not declared.plots:
            drawn = [name for name in self.audits if declaration(name).plots]
            raise UsageError(f"no figure of audit {audit!r}{hint(audit, drawn)}")
        if "level" not in where and any(row.get("level") == "claim" for row in rows):
            rows = [row for row in rows if row["level"] == "claim"]
        if not rows:
            raise UsageError(f"nothing to draw: {audit} has no such rows")
        if declared.readable is not None:
            rows = declared.readable(rows)[0]
        from factaudit.report.plots import draw

        named = {one.name: one for one in declared.plots}
        if plot and plot not in named:
            raise UsageError(f"audit {audit!r} has no figure {plot!r}{hint(plot, list(named))}")
        chosen = named[plot] if plot else declared.plots[0]
        if panels is not None:
            chosen = replace(chosen, panels=panels)  # type: ignore[call-arg]
        floors = {row["name"] for row in self.about.get("evaluators", []) if row.get("floor")}
        figure = draw(chosen, rows, declared.columns, self.evaluators, floors)
        figure.add_axes((0, 0, 1, 1)).set_axis_off()  # IPython takes a figure without axes for empty
        return figure

    def to_dict(self) -> dict[str, Any]:
        """The content of ``results.json``."""
        return {
            "schema": SCHEMA,
            "signature": self.signature,
            "about": self.about,
            "audits": self.audits,
            "findings": self.findings,
            "calls": self.calls,
            "sections": self.sections,
        }

    def save(self, folder: str | Path) -> Path:
        """Write ``results.json`` and the report into a folder; returns the path of ``report.html``."""
        from factaudit.report import render

        write_json(Path(folder) / "results.json", self.to_dict())
        render(Path(folder))
        return Path(folder) / "report.html"

    @classmethod
    def load(cls, folder: str | Path) -> Results:
        """Read the ``results.json`` of a run folder. Raises `InputError`."""
        from factaudit.report import read_results

        found = read_results(Path(folder))
        return cls(**{each.name: found[each.name] for each in fields(cls)})


def compare(
    claims: Any,
    verdicts: Any = None,
    *,
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    title: str = "Evaluators compared",
    seed: int = 0,
    replicates: int = 2000,
    confidence: float = 0.95,
    decisions: Mapping[str, float] | None = None,
    signatures: Mapping[str, str] | None = None,
    inputs: Sequence[Row] = (),
    reuse: Callable[[str, Callable[[], list[Row]]], list[Row]] | None = None,
    annotations: pd.DataFrame | None = None,
    label_rules: Sequence[str] = (),
    mapping: Any = None,
) -> Results:
    """Audit evaluators on claims: every audit by default, else those named (``"rates"`` or ``{"rates": {options}}``).

    Args:
        claims: a validated table (`factaudit.tables`); or `Joined`, which has the verdicts and annotations too.
        verdicts: a validated table, of these claims.
        seed: of the bootstrap, where one is needed.
        replicates: of the bootstrap; 0 gives no intervals at all.
        confidence: of all intervals.
        decisions: what is asked of an evaluator (`factaudit.audit.core.decisions.Limits`), where not the defaults.
        signatures: evaluator name to the signature that its verdicts were made with, where known.
        inputs: ``{"path", "checksum"}`` of the files behind the tables.
        reuse: called with a key (what the rows depend on) and a function that makes the rows; may return stored ones.
        annotations: what people said of the claims (`factaudit.tables.annotations`), with labels.
        label_rules: the first makes the claims' labels of the annotations; figures under all of them stand beside each
            other in the audit of that name. By default the labels are the claims' own.
    """
    known = computable()
    chosen = audit_options(audits)
    ready = claims if isinstance(claims, Joined) else Joined.of(claims, verdicts, annotations, label_rules, mapping)
    judged = ready.judged
    if audits is None:
        applies = {name: known[name].applies for name in chosen}
        chosen = {n: options for n, options in chosen.items() if (asked := applies[n]) is None or asked(judged)}
    for name, options in chosen.items():
        if (complete := known[name].complete) is not None:
            chosen[name] = complete(options, signatures or {})
    settings = _Settings(title, seed, replicates, confidence, ready.tables, Limits.of(decisions))
    found = settings.rows(judged, chosen, reuse)
    results = settings.results(about_of(judged, ready.order, signatures or {}), inputs, chosen, found)
    return results if not judged.label_rules else _with_rules(results, judged.label_rules)


def _with_rules(results: Results, rules: Sequence[str]) -> Results:
    """Say by which rule the labels are: in the signature, and in what the results are about."""
    line = f"{results.signature}|label_rule:{rules[0]}"
    return replace(results, signature=line, about=results.about | {"labels_by": list(rules)})


def compare_stored(
    stored: Tallies,
    about: tuple[list[Row], list[Row]],
    tables: str,
    *,
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    title: str = "Evaluators compared",
    seed: int = 0,
    replicates: int = 2000,
    confidence: float = 0.95,
    decisions: Mapping[str, float] | None = None,
    inputs: Sequence[Row] = (),
    reuse: Callable[[str, Callable[[], list[Row]]], list[Row]] | None = None,
) -> Results:
    """Audit evaluators whose verdicts are held elsewhere (`factaudit.sql`), by the code that audits arrays.

    about: what there is of claims, per dataset, and of verdicts, per evaluator, as `compare` says it; tables: a digest
    of what is held; the rest as in `compare`. By default all audits that ask for numbers alone; a section names those
    that read claims one by one. Raises `UsageError` where one of these is asked for by name.
    """
    known = computable()
    chosen = stored_options(audits)
    settings = _Settings(title, seed, replicates, confidence, tables, Limits.of(decisions))
    found = settings.rows(stored, chosen, reuse)
    evaluators = [{**row, "signature": None, "floor": is_floor(row["name"])} for row in about[1]]
    results = settings.results((about[0], evaluators), inputs, chosen, found)
    left = [f"{audit.title} ({name})" for name, audit in known.items() if not audit.tallies] if audits is None else []
    text = "These tables were read by queries, past memory. What reads claims one by one was not computed: "
    sections = [{"title": "What was left out", "text": f"{text}{'; '.join(left)}."}] if left else []
    return replace(results, sections=sections)


def stored_options(audits: Sequence[str | Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """`audit_options` of audits that ask for numbers alone. Raises `UsageError` for one that reads claims."""
    able = [name for name, audit in computable().items() if audit.tallies]
    chosen = audit_options(able if audits is None else audits)
    for name in chosen:
        if name not in able:
            told = ", ".join(able)
            raise UsageError(f"audit {name!r} reads claims one by one: of tables past memory can be computed {told}")
    return chosen


@one_thread()
def compare_counts(
    counts: pd.DataFrame,
    *,
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    title: str = "Evaluators compared",
    seed: int = 0,
    replicates: int = 2000,
    confidence: float = 0.95,
    decisions: Mapping[str, float] | None = None,
    inputs: Sequence[Row] = (),
) -> Results:
    """Audit evaluators of which only numbers of claims are known, by the code that audits claims.

    counts: a validated counts table (`factaudit.tables.counts`); the rest as in `compare`. By default all audits that
    can do with it; those that need to know how many labelled errors were found read the rows that say so. Raises
    `UsageError` for an audit that needs claims.
    """
    known = computable()
    able = {name: audit for name, audit in known.items() if audit.counts is not None}
    chosen = audit_options(list(able) if audits is None else audits)
    for name in chosen:
        if name not in able:
            raise UsageError(f"audit {name!r} needs claims: of a counts table can be computed {', '.join(able)}")
    joint = counts[counts["errors_found"].notna()]
    settings = _Settings(title, seed, replicates, confidence, table_digest(counts), Limits.of(decisions))
    levels = [level for level in LEVELS if (counts["level"] == level).any()]
    units = {
        (level, kind): counted(t, level) for level in levels for kind, t in (("margins", counts), ("joint", joint))
    }
    found: dict[str, list[Row]] = {}
    for name, options in chosen.items():
        audit, rows = known[name], list[Row]()
        by_level = "levels" in audit.options_model().model_fields
        for level in [one for one in levels if one in options.get("levels", LEVELS)] if by_level else levels[:1]:
            judged = units[level, str(audit.counts)]
            if audit.compute is not None and len(judged.claims):
                given = options | ({"levels": [level]} if by_level else {})
                rows += audit.compute(judged, **given, intervals=settings.intervals)
        found[name] = sorted(rows, key=lambda row: str(row["dataset"])) if by_level else rows
    order = counts["evaluator"].unique()
    return settings.results(about_of(units[levels[0], "margins"], order, {}), inputs, chosen, found)


@dataclass(frozen=True)
class _Settings:
    """What rows depend on beside the audits' options; ``tables``: a digest of what they are computed on."""

    title: str
    seed: int
    replicates: int
    confidence: float
    tables: str
    limits: Limits

    @property
    def intervals(self) -> Intervals | None:
        return Intervals(self.replicates, self.seed, self.confidence) if self.replicates else None

    @property
    def _signed(self) -> dict[str, Any]:
        names = ("seed", "replicates", "confidence", "tables")
        return {name: getattr(self, name) for name in names} | {"version": __version__}

    def key(self, audit: str, options: Mapping[str, Any]) -> str:
        """Everything that an audit's rows depend on."""
        return signature(audit, {**options, **self._signed})

    def rows(
        self,
        judged: Judged | Tallies,
        chosen: Mapping[str, dict[str, Any]],
        reuse: Callable[[str, Callable[[], list[Row]]], list[Row]] | None,
    ) -> dict[str, list[Row]]:
        """The rows of the audits with their options; ``reuse`` as in `compare`."""
        found: dict[str, list[Row]] = {}
        for name, options in chosen.items():

            @one_thread()
            def make(name: str = name, options: dict[str, Any] = options) -> list[Row]:
                compute = computable()[name].compute
                return compute(judged, **options, intervals=self.intervals) if compute else []

            found[name] = make() if reuse is None else reuse(self.key(name, options), make)
        return found

    def results(
        self,
        of: tuple[list[Row], list[Row]],
        inputs: Sequence[Row],
        chosen: Mapping[str, Mapping[str, Any]],
        found: dict[str, list[Row]],
    ) -> Results:
        """The rows that were ``found``, with what they are about; ``of``: the claims by dataset, the evaluators."""
        about = {
            "title": self.title,
            "factaudit": __version__,
            "seed": self.seed,
            "replicates": self.replicates,
            "confidence": self.confidence,
            "limits": self.limits.given(),
            "claims": of[0],
            "evaluators": of[1],
            "inputs": list(inputs),
        }
        own = {
            "evaluators": digest(*(f"{row['name']}={row['signature'] or ''}" for row in sorted(of[1], key=_name))),
            "audits": digest(*(signature(name, options) for name, options in chosen.items())),
        }
        return Results(signature("factaudit", {**self._signed, **own}), about, found, findings(found, about))


def audit_options(audits: Sequence[str | Mapping[str, Any]] | None) -> dict[str, dict[str, Any]]:
    """Names and options of audits, checked against the audits' own keyword arguments; None means all, by default.

    Raises `UsageError` naming the audit, the option and what was expected.
    """
    known = computable()
    if audits is None:
        return {name: {} for name in known}
    chosen: dict[str, dict[str, Any]] = {}
    for item in audits:
        if not isinstance(item, str) and len(item) != 1:
            raise UsageError(f"audit: expected one NAME: {{options}}, found {dict(item)!r}")
        name, given = (item, {}) if isinstance(item, str) else next(iter(item.items()))
        if name not in known:
            raise UsageError(f"unknown audit {name!r}{hint(name, list(known))}")
        if name in chosen:
            raise UsageError(f"audit {name!r} is named twice")
        model = known[name].options_model()
        for key in given or {}:
            if key not in model.model_fields:
                raise UsageError(f"audit {name!r} has no option {key!r}{hint(key, list(model.model_fields))}")
        try:
            chosen[name] = model(**(given or {})).model_dump(exclude_unset=True)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(f"audit {name!r}, option {where}: {first['msg']}, found {first.get('input')!r}") from None
    return chosen


def _name(row: Row) -> str:
    return str(row["name"])
