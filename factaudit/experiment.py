"""Experiments: a YAML in, a run folder out.

`run` goes through four stages, each of which is kept so that a second run repeats only what has changed: read the
claims, gather the verdicts (read, or judged and journalled), audit them, render the report. Every file of the run
folder is replaced in one step; a run that is killed leaves what it had, and goes on from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from pydantic import Field, model_validator

from factaudit.audit.core.units import Held
from factaudit.datasets import FORMATS, check_options
from factaudit.errors import UsageError
from factaudit.estimate.settings import EstimateSettings
from factaudit.evaluators.judging import (
    RETRIED,
    NamedEvaluator,
    as_claims,
    check_names,
    files_of,
    judge,
    name_evaluator,
    parts,
)
from factaudit.evaluators.unread import unread
from factaudit.inputs import Source, TableSettings, files_among, is_hub, read_inputs, sources_of
from factaudit.joined import Joined
from factaudit.paths import Paths, option_kinds
from factaudit.report.claims import Claims, telling_more
from factaudit.results import Results, Row, audit_options, compare, compare_counts
from factaudit.runfolder import (
    check_audits,
    check_spec,
    checksums,
    counted,
    opened,
    resolve_evaluator,
    spare_run,
    write_lock,
)
from factaudit.sql.run import Further
from factaudit.sql.run import run as run_held
from factaudit.sql.source import chosen
from factaudit.tables import merge_verdicts, write_table
from factaudit.tables.annotations import read_annotations
from factaudit.tables.counts import read_counts
from factaudit.text.printable import count
from factaudit.unchanged import depends_on, finish, kept_rows, remember_run, same_run
from factaudit.yamlfile import Place, YamlFile, check

#: What the lock file records of the environment.
_PACKAGES = ("numpy", "pandas", "pyarrow", "scipy", "scikit-learn", "statsmodels", "rouge-score", "nltk", "openai")


class Experiment(TableSettings):
    """An experiment YAML that compares evaluators, on claims or on a counts table (`factaudit.tables.counts`).

    An option's value is a path where its declared type says so (`factaudit.paths`).
    """

    counts: str | None = None
    #: Claims and verdicts of any size, in a database: ``duckdb:///path.db?claims=TABLE&verdicts=TABLE``.
    tables: str | None = None
    #: Whether claims and verdicts are read into memory, or by queries; None: by queries where there are many.
    where: Literal["memory", "duckdb"] | None = None
    evaluators: list[str | dict[str, dict[str, Any] | None]] = Field(default_factory=list)
    #: Error rates from few labels, beside the audits.
    estimate: EstimateSettings | None = None

    @model_validator(mode="after")
    def _one_input(self) -> Experiment:
        if self.counts is None and self.tables is None and not self.claims:
            raise ValueError("expected claims (or counts, or tables), found none")
        if self.counts is not None and (self.claims or self.verdicts or self.evaluators or self.tables):
            raise ValueError("expected counts alone: there are no claims to judge, nor verdicts of them")
        if self.tables is not None and (self.claims or self.verdicts or self.evaluators):
            raise ValueError("expected tables alone: they are claims and their verdicts")
        if (self.where == "duckdb" or self.tables is not None) and (self.annotations or self.label_rules):
            raise ValueError("expected labels in the claims: tables past memory are not labelled anew from annotations")
        if self.where == "duckdb" and self.evaluators:
            raise ValueError("where: duckdb judges nothing")
        held = self.where == "duckdb" or self.tables is not None
        if held and self.estimate is not None and (self.estimate.sample or self.estimate.budget):
            raise ValueError(
                "expected labels: of tables past memory a sample or a budget cannot be checked against all claims"
            )
        return self


def load(path: str | Path, settings: Mapping[str, Any] | None = None) -> Experiment:
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "audits": [...]}``) override its keys.

    In the result all paths are absolute. Raises `InputError` naming the line of everything that is wrong.
    """
    file = YamlFile(path)
    file.override(settings or {})
    file.listed(file.data, "claims", "verdicts", "evaluators", "audits", "annotations", "label_rules")
    claims = file.data.get("claims") if isinstance(file.data, dict) else None
    for item in claims if isinstance(claims, list) else ():
        file.listed(item, "source")
    experiment = check(Experiment, file.data, file)
    return _resolve(experiment, file)


def run(
    experiment: str | Path | Experiment,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run an experiment (a YAML's path, or an `Experiment` with absolute paths) and write its run folder.

    A second run into the same folder reuses what is unchanged. ``say`` gets one line per stage. A YAML with a
    ``factscore:``, ``dfactscore:`` or ``verify_with_caution:`` block is that engine's to run.
    """
    folder = Path(out)
    if not isinstance(experiment, Experiment):
        spare_run(folder, [experiment])
        if (engine := engine_of(experiment)) is not None:
            return engine.run(experiment, out, settings=settings, progress=progress, say=say)
        experiment = load(experiment, settings)
    if experiment.counts is not None:
        return _run_counts(experiment, experiment.counts, folder, say)
    also = experiment.evaluators or experiment.estimate or experiment.audits or experiment.annotations
    held = chosen(experiment.tables, experiment.claims, experiment.verdicts, experiment.where, bool(also), say)
    if held is not None:
        return run_held(experiment, held, folder, say, _further(experiment))
    audit_options(experiment.audits)  # a misspelt audit is found before an hour of judging, not after
    evaluators = [name_evaluator(spec) for spec in experiment.evaluators]
    check_names(evaluators)
    with opened(folder, [*_sources(experiment), *files_of(evaluators)]) as work:
        key = _key(experiment, evaluators)
        if key is not None and (before := same_run(folder, key)) is not None:
            for line in (*before[1], f"unchanged {folder / 'report.html'}"):
                say(line)
            return before[0]
        said: list[str] = []

        def tell(line: str) -> None:
            said.append(line)
            say(line)

        read = read_inputs(experiment)
        claims, verdicts, annotations, provenance = read.claims, read.verdicts, read.annotations, read.provenance
        for note in read.notes:
            tell(note)
        tell(f"claims    {len(claims):>9,} in {count(claims['dataset'].nunique(), 'dataset')}")
        calls: list[Row] = []
        if evaluators:
            check_names(evaluators, () if verdicts is None else verdicts["evaluator"].unique())
            callers = [(one.name, part) for one in evaluators for asked in one.asked for part, _ in parts(asked)]
            with counted(callers, work / "calls.json", experiment.max_cost) as calls:
                judged = judge(claims, evaluators, journal=work / "journal", progress=progress)
            verdicts = judged if verdicts is None else merge_verdicts((verdicts, judged))
        if verdicts is None:
            raise UsageError(
                "nothing to audit: expected verdicts, evaluators, or a claims format that brings verdicts"
                " (`factaudit judge CLAIMS --evaluator NAME --out VERDICTS` makes verdicts)"
            )
        for one in evaluators:
            for part, _ in parts(one.evaluator):
                if found := getattr(part, "provenance", None):
                    provenance.append({"evaluator": one.name, **found})
        for line in unread(verdicts):
            tell(line)
        tell(f"verdicts  {len(verdicts):>9,} of {count(verdicts['evaluator'].nunique(), 'evaluator')}")
        write_table(claims, folder / "claims.parquet")
        write_table(verdicts, folder / "verdicts.parquet")
        if annotations is not None:
            write_table(annotations, folder / "annotations.parquet")

        estimator, estimates = experiment.estimate, None
        if estimator is not None:
            estimates = estimator.estimate(claims, verdicts, experiment.seed, experiment.confidence)
        failed = verdicts["status"].isin(RETRIED) & verdicts["evaluator"].isin([one.name for one in evaluators])
        again, inputs = bool(failed.any()), read.inputs  # what failed is asked for again
        told = telling_more(verdicts)
        joined = Joined.of(claims, verdicts, annotations, experiment.label_rules)
        del read, claims, verdicts, annotations, failed  # most of the memory: nothing below reads them
        with kept_rows(work / "audits") as reuse:
            results = compare(
                joined,
                **experiment.asked,
                signatures={one.name: one.signature for one in evaluators},
                inputs=inputs,
                reuse=reuse,
            )
        if estimator is not None and estimates is not None:
            results.audits.update(estimates.audits())
            files = checksums(map(Path, estimator.files()))
            results.about["inputs"] += files
            results = replace(results, signature=f"{results.signature}|estimate:{estimator.signature(files)}")
        results.calls.extend(calls)
        tell(f"audits    {sum(map(len, results.audits.values())):>9,} rows in {count(len(results.audits), 'audit')}")
        write_lock(folder, experiment, results, provenance=provenance, packages=_PACKAGES)
        people = folder / "annotations.parquet"
        shown = Claims(joined.judged, told, read_annotations(people) if people.is_file() else None)
        finish(folder, results, shown)
        remember_run(folder, None if again else key, said)
        say(f"report    {folder / 'report.html'}")
    return results


def _further(experiment: Experiment) -> Further | None:
    """The estimates of a run on tables past memory."""
    estimate = experiment.estimate
    if estimate is None:
        return None

    def rows(held: Held) -> Mapping[str, list[Row]]:
        return estimate.estimate_held(held, experiment.seed, experiment.confidence).audits()

    files = [Path(path) for path in estimate.files()]
    return Further(rows, estimate.strata, files, lambda read: f"estimate:{estimate.signature(read)}")


def _key(experiment: Experiment, evaluators: Sequence[NamedEvaluator]) -> str | None:
    """Of all that the run depends on; None where a source is a name on the hub, where it may change."""
    sources = _sources(experiment)
    if any(map(is_hub, sources)):
        return None
    # An evaluator's files may be models of gigabytes: they are told by size and time.
    stats = [(path, path.stat()) for path in files_among(list(map(str, files_of(evaluators))))]
    parts = [experiment.model_dump_json(), *(f"{one.name} {one.signature}" for one in evaluators)]
    parts += [f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in stats]
    return depends_on(*parts, files=list(files_among(sources)))


def _sources(experiment: Experiment) -> list[str]:
    return [*sources_of(experiment), *(experiment.estimate.files() if experiment.estimate is not None else ())]


def _run_counts(experiment: Experiment, path: str, folder: Path, say: Callable[[str], None]) -> Results:
    """`run` for a counts table: nothing to judge, and nothing that is worth keeping half done."""
    with opened(folder, [path]):
        counts = read_counts(path)
        say(f"counts    {len(counts):>9,} rows in {count(counts['dataset'].nunique(), 'dataset')}")
        results = compare_counts(counts, **experiment.asked, inputs=checksums([Path(path)]))
        write_table(counts, folder / "counts.parquet")
        say(f"audits    {sum(map(len, results.audits.values())):>9,} rows in {count(len(results.audits), 'audit')}")
        write_lock(folder, experiment, results, packages=_PACKAGES)
        finish(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results


def engine_of(path: str | Path) -> ModuleType | None:
    """The module (``load``, ``run``) of the engine whose block a YAML has; None where it compares evaluators."""
    data = YamlFile(path).data
    for name in ("factscore", "dfactscore", "verify_with_caution"):
        if isinstance(data, dict) and name in data:
            return import_module(f"factaudit.engines.{name}.settings")
    return None


def expected_cost(experiment: Experiment, prices: str | Path | None = None) -> list[Row]:
    """What the calls of an experiment would cost at the most, a row per evaluator that asks a language model.

    Nothing is sent. ``prices`` is a price table of the user's; the rows are those of `factaudit.llm.cost.estimate`.
    """
    from factaudit.llm import cost

    if experiment.counts is not None:
        return []
    table = None if prices is None else cost.load_prices(prices)
    claims = list(as_claims(read_inputs(experiment).claims))
    rows = []
    for one in map(name_evaluator, experiment.evaluators):
        for evaluator in one.asked:
            for part, asked in parts(evaluator, claims):
                rows += cost.estimate({one.name: part}, list(asked), prices=table)
    return rows


# ---------------------------------------------------------------------------------------------------- the YAML


def _resolve(experiment: Experiment, file: YamlFile) -> Experiment:
    """Make paths absolute and check what can be checked without running: files, formats, evaluators, audits."""
    paths = Paths(file, experiment.data)

    def table(text: str, place: Place) -> str:
        full = paths.absolute(text, place)
        if Path(full).is_dir():
            paths.problems.append(file.problem(f"{full} is a folder, expected a file (or a format and source)", place))
        return full

    claims: list[str | Source] = []
    for number, item in enumerate(experiment.claims):
        place: Place = ("claims", number)
        if isinstance(item, str):
            claims.append(table(item, place))
        else:
            try:
                check_options(item.format, item.options)
            except UsageError as error:
                paths.problems.append(file.problem(str(error), place))
            sources = [
                text if is_hub(text) else paths.absolute(text, (*place, "source", n))
                for n, text in enumerate(item.source)
            ]
            kinds = option_kinds(FORMATS[item.format].function) if item.format in FORMATS else {}
            options = {
                key: paths.option(kinds.get(key), value, (*place, "options", key))
                for key, value in item.options.items()
            }
            claims.append(item.model_copy(update={"source": sources, "options": options}))
    counts = None if experiment.counts is None else table(experiment.counts, ("counts",))
    tables = experiment.tables and re.sub(
        r"(?<=:///)[^?]*", lambda m: paths.absolute(m[0], ("tables",)), experiment.tables
    )
    verdicts = [table(text, ("verdicts", number)) for number, text in enumerate(experiment.verdicts)]
    annotations = [table(text, ("annotations", number)) for number, text in enumerate(experiment.annotations)]
    evaluators = [
        resolve_evaluator(paths, spec, "evaluators", number) for number, spec in enumerate(experiment.evaluators)
    ]
    check_audits(file, paths.problems, experiment.audits)
    estimate = experiment.estimate
    if estimate is not None:
        check_spec(file, paths.problems, lambda settings: settings.check(), estimate, "estimate")
        labels = [table(text, ("estimate", "labels", number)) for number, text in enumerate(estimate.labels)]
        sample = None if estimate.sample is None else table(estimate.sample, ("estimate", "sample"))
        estimate = estimate.model_copy(update={"labels": labels, "sample": sample})
    paths.check()
    return experiment.model_copy(
        update={
            "data": paths.data,
            "claims": claims,
            "counts": counts,
            "tables": tables,
            "verdicts": verdicts,
            "annotations": annotations,
            "evaluators": evaluators,
            "estimate": estimate,
        }
    )
