"""Experiments: a YAML in, a run folder out.

`run` goes through four stages, each of which is kept so that a second run repeats only what has changed: read the
claims, gather the verdicts (read, or judged and journalled), audit them, render the report. Every file of the run
folder is replaced in one step; a run that is killed leaves what it had, and goes on from there.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from factaudit.arrays.duckdb_tables import DuckDBTables, choose_duckdb_tables, load_duckdb_judgements
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.comparison_tables import ComparisonTables
from factaudit.errors import UsageError
from factaudit.estimate.estimate_settings import EstimateSettings
from factaudit.estimate.rate_estimation import EstimationResults
from factaudit.evaluators.judging import (
    RETRIED_STATUSES,
    NamedEvaluator,
    check_unique_evaluator_names,
    judge,
    list_files_named_by_evaluator_options,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.experiment_inputs import (
    ExperimentTablePaths,
    ForeignFormatSource,
    find_input_files,
    is_hub_dataset,
    list_experiment_tables,
    read_experiment_inputs,
    resolve_experiment_source,
)
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.report.claim_browser import ClaimBrowser, select_detailed_verdicts
from factaudit.results import Results, Row, compare, compare_counts
from factaudit.run_ending import describe_run_audit_rows, digest_run_inputs, find_identical_run, finish_run
from factaudit.run_folder import (
    check_run_audit_specs,
    check_run_spares_inputs,
    claim_run_folder,
    collect_run_spec_problem,
    count_run_llm_calls,
    list_file_checksums,
    lock_run_folder_for_writing,
    resolve_run_evaluator_paths,
    write_experiment_yaml,
)
from factaudit.signature import hash_texts
from factaudit.tables import merge_verdict_tables, write_table
from factaudit.tables.annotations import read_annotations
from factaudit.tables.counts_table import read_counts
from factaudit.tables.standard_columns import list_further_columns_of_scores
from factaudit.tables.validation import find_claim_variants
from factaudit.text.display_text import format_count
from factaudit.yaml_file import YamlFile, YamlPlace, check_yaml_settings
from factaudit.yaml_paths import YamlPaths

#: Whose versions `experiment.yaml` of the run folder records.
_RECORDED_PACKAGES = (
    *("numpy", "pandas", "pyarrow", "scipy", "scikit-learn"),
    *("statsmodels", "rouge-score", "nltk", "openai"),
)


#: Audits of nothing but the texts of claims and documents, which DuckDB does not load.
_AUDITS_OF_TEXTS = {"surface_bias", "chunking", "chunking_rates"}


class Experiment(ExperimentTablePaths):
    """An experiment YAML that compares evaluators, on claims or on a counts table (`factaudit.tables.counts_table`).

    An option's value is a path where its declared type says so (`factaudit.yaml_paths`).
    """

    counts: str | None = None
    #: Claims and verdicts of any size, in a database: ``duckdb:///path.db?claims=TABLE&verdicts=TABLE``.
    tables: str | None = None
    #: Whether claims and verdicts are read as tables, or loaded by DuckDB without texts; None: by DuckDB where there
    #: are many.
    where: Literal["memory", "duckdb"] | None = None
    evaluators: list[str | dict[str, dict[str, Any] | None]] = Field(default_factory=list)
    #: Error rates from few labels, beside the audits.
    estimate: EstimateSettings | None = None

    @model_validator(mode="after")
    def _check_one_input(self) -> Experiment:
        if self.counts is None and self.tables is None and not self.claims:
            raise ValueError("expected claims (or counts, or tables), found none")
        if self.counts is not None and (self.claims or self.verdicts or self.evaluators or self.tables):
            raise ValueError("expected counts alone: there are no claims to judge, nor verdicts of them")
        if self.tables is not None and (self.claims or self.verdicts or self.evaluators):
            raise ValueError("expected tables alone: they are claims and their verdicts")
        if self.perturb is not None and (self.verdicts or not self.evaluators):
            raise ValueError("perturb: expected evaluators, which judge the variants, and no files of verdicts")
        if self.limit_documents is not None and (self.where == "duckdb" or not self.claims):
            raise ValueError("limit_documents: expected claims that are read into memory")
        if (self.where == "duckdb" or self.tables is not None) and (self.annotations or self.label_rules):
            raise ValueError("expected labels in the claims: tables past memory are not labelled anew from annotations")
        if self.where == "duckdb" and self.evaluators:
            raise ValueError("where: duckdb judges nothing")
        return self


def read_experiment(path: str | Path, settings: Mapping[str, Any] | None = None) -> Experiment:
    """Read and check an experiment YAML; ``settings`` (``{"seed": 1, "audits": [...]}``) override its keys.

    In the result all paths are absolute. Raises `InputError` naming the line of everything that is wrong.
    """
    file = YamlFile(path)
    file.override(settings or {})
    file.wrap_in_lists(file.data, "claims", "verdicts", "evaluators", "audits", "annotations", "label_rules")
    claims = file.data.get("claims") if isinstance(file.data, dict) else None
    for item in claims if isinstance(claims, list) else ():
        file.wrap_in_lists(item, "source")
    experiment = check_yaml_settings(Experiment, file.data, file)
    return _resolve_experiment_paths(experiment, file)


def run(
    experiment: str | Path | Experiment,
    out: str | Path,
    *,
    settings: Mapping[str, object] | None = None,
    progress: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run an experiment (a YAML's path, or an `Experiment` with absolute paths) and write its run folder.

    A second run into the same folder reuses what is unchanged; the results of another experiment there are replaced
    only with ``overwrite``. ``say`` gets one line per stage. A YAML with a
    ``factscore:`` or ``dfactscore:`` block is that engine's to run.
    """
    folder = Path(out)
    if not isinstance(experiment, Experiment):
        check_run_spares_inputs(folder, [experiment])
        if (engine := find_experiment_engine(experiment)) is not None:
            claim_run_folder(folder, [experiment], overwrite=overwrite)
            return engine.run(experiment, out, settings=settings, progress=progress, say=say)
        experiment = read_experiment(experiment, settings)
    named_tables = [experiment.counts, experiment.tables, *list_experiment_tables(experiment)]
    claim_run_folder(folder, [one for one in named_tables if one is not None], overwrite=overwrite)
    if experiment.counts is not None:
        return _run_counts_experiment(experiment, experiment.counts, folder, say)
    fetch_missing_published_files(list_experiment_tables(experiment), say)
    also = bool(experiment.evaluators or experiment.estimate or experiment.audits or experiment.annotations)
    also = also or experiment.limit_documents is not None or experiment.split is not None
    tables = choose_duckdb_tables(
        experiment.tables, experiment.claims, experiment.verdicts, experiment.where, also, say
    )
    if tables is not None:
        return _run_duckdb_experiment(experiment, tables, folder, say)
    read_audit_names_and_options(experiment.audits)  # a misspelt audit is found before an hour of judging, not after
    evaluators = [make_named_evaluator(spec) for spec in experiment.evaluators]
    check_unique_evaluator_names(evaluators)
    named = list_files_named_by_evaluator_options(evaluators)
    with lock_run_folder_for_writing(folder, [*_list_experiment_sources(experiment), *named]) as work:
        key = _digest_experiment(experiment, evaluators)
        if key is not None and (before := find_identical_run(folder, key)) is not None:
            for line in (*before[1], f"unchanged {folder / 'report.html'}"):
                say(line)
            return before[0]
        said: list[str] = []

        def tell(line: str) -> None:
            said.append(line)
            say(line)

        callers = [
            (one.name, part)
            for one in evaluators
            for asked in one.evaluator_and_repeats
            for part, _ in walk_evaluator_members(asked)
        ]
        read = read_experiment_inputs(experiment, [part for _, part in callers])
        claims, verdicts, annotations, provenance = read.claims, read.verdicts, read.annotations, read.provenance
        for note in read.notes:
            tell(note)
        n_variants = int(find_claim_variants(claims).sum())
        more = f", and {format_count(n_variants, 'variant')}" * bool(n_variants)
        datasets = format_count(claims["dataset"].nunique(), "data set")
        tell(f"claims    {len(claims) - n_variants:>9,} in {datasets}{more}")
        calls: list[Row] = []
        if evaluators:
            check_unique_evaluator_names(evaluators, () if verdicts is None else verdicts["evaluator"].unique())
            with count_run_llm_calls(callers, work / "calls.json", experiment.max_cost) as calls:
                judged = judge(claims, evaluators, journal=work / "journal", progress=progress)
            verdicts = judged if verdicts is None else merge_verdict_tables((verdicts, judged))
        if verdicts is None:
            scores = list_further_columns_of_scores(claims)
            hint = (
                "; --evaluator NAME takes a column of scores for an evaluator: " + ", ".join(scores) if scores else ""
            )
            work_to_do = "estimate from" if experiment.estimate is not None and not experiment.audits else "audit"
            raise UsageError(
                f"nothing to {work_to_do}: expected verdicts, evaluators, or a claims format that brings verdicts"
                f" (`factaudit judge CLAIMS --evaluator NAME --out VERDICTS` makes verdicts){hint}"
            )
        for one in evaluators:
            for part, _ in walk_evaluator_members(one.evaluator):
                if found := getattr(part, "provenance", None):
                    provenance.append({"evaluator": one.name, **found})
        for line in format_unscored_verdicts(verdicts):
            tell(line)
        tell(f"verdicts  {len(verdicts):>9,} of {format_count(verdicts['evaluator'].nunique(), 'evaluator')}")
        write_table(claims, folder / "claims.parquet")
        write_table(verdicts, folder / "verdicts.parquet")
        if annotations is not None:
            write_table(annotations, folder / "annotations.parquet")
        estimator, estimates = experiment.estimate, None
        if estimator is not None:
            estimates = estimator.estimate(claims, verdicts, experiment.seed, experiment.confidence)
        is_ours = verdicts["evaluator"].isin([one.name for one in evaluators])
        failed = is_ours & verdicts["status"].isin(RETRIED_STATUSES)
        again, inputs, notes = bool(failed.any()), read.input_files, read.notes  # what failed is asked for again
        told = select_detailed_verdicts(verdicts)
        joined = ComparisonTables.join(claims, verdicts, annotations, experiment.label_rules)
        del read, claims, verdicts, annotations, failed, is_ours  # most of the memory: nothing below reads them
        signatures = {one.name: one.signature for one in evaluators}
        results = compare(joined, **experiment.compare_arguments, signatures=signatures, inputs=inputs)
        bare = replace(joined.judged)  # without what audits have made of it, which nothing below reads
        del joined
        if notes:
            results.about["reading"] = notes
        if estimator is not None and estimates is not None:
            results = _add_estimates(results, estimator, estimates)
        results.calls.extend(calls)
        tell(describe_run_audit_rows(results))
        write_experiment_yaml(folder, experiment, results, provenance=provenance, packages=_RECORDED_PACKAGES)
        people = folder / "annotations.parquet"
        shown = ClaimBrowser(bare, told, read_annotations(people) if people.is_file() else None)
        finish_run(folder, results, shown, run_key=None if again else key, said=said)
        say(f"report    {folder / 'report.html'}")
    return results


def _run_duckdb_experiment(
    experiment: Experiment, tables: DuckDBTables, folder: Path, say: Callable[[str], None]
) -> Results:
    """`run` for tables that DuckDB loads: their texts are not read, and the tables are not copied."""
    chosen = read_audit_names_and_options(experiment.audits)  # what is refused is refused before the tables are read
    if experiment.audits is not None and (named := sorted(_AUDITS_OF_TEXTS & set(chosen))):
        raise UsageError(f"audit {named[0]!r} reads texts, which DuckDB does not load: run it with --on memory")
    estimator = experiment.estimate
    more = [] if estimator is None else [Path(path) for path in estimator.files()]
    with lock_run_folder_for_writing(folder, [*tables.files, *more]) as work:
        judged = load_duckdb_judgements(tables, work / "spill")
        shutil.rmtree(work / "spill", ignore_errors=True)
        say(f"claims    {len(judged.claims):>9,} in {format_count(len(judged.dataset_names), 'data set')}")
        n_verdicts = int((judged.status >= 0).sum())
        say(f"verdicts  {n_verdicts:>9,} of {format_count(len(judged.evaluators), 'evaluator')}")
        inputs = list_file_checksums(tables.files)
        read = [sql for sql, _ in (*tables.claims, *tables.verdicts)]
        digest = hash_texts(*read, *(row["checksum"] for row in inputs))
        joined = ComparisonTables(judged, digest, judged.evaluators)
        results = compare(joined, **experiment.compare_arguments, inputs=inputs)
        if estimator is not None:
            results = _add_estimates(
                results, estimator, estimator.estimate(judged, None, experiment.seed, experiment.confidence)
            )
        text = (
            "DuckDB loaded these tables without the texts of claims and documents. Audits that read them were left out."
        )
        results = replace(results, sections=[*results.sections, {"title": "What was left out", "text": text}])
        say(describe_run_audit_rows(results))
        write_experiment_yaml(folder, experiment, results, packages=(*_RECORDED_PACKAGES, "duckdb"))
        finish_run(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results


def _add_estimates(results: Results, estimator: EstimateSettings, estimates: EstimationResults) -> Results:
    results.audits.update(estimates.audits())
    files = list_file_checksums(map(Path, estimator.files()))
    results.about["inputs"] += files
    # Whose labels they are, which the report tells beside those of the claims.
    sample = None if estimator.sample is None else Path(estimator.sample).name
    results.about["estimate"] = {"labels": [Path(path).name for path in estimator.labels], "sample": sample}
    return replace(results, signature=f"{results.signature}|estimate:{estimator.signature(files)}")


def _digest_experiment(experiment: Experiment, evaluators: Sequence[NamedEvaluator]) -> str | None:
    """Of all that the run depends on; None where a source is a name on the hub, where it may change."""
    sources = _list_experiment_sources(experiment)
    if any(map(is_hub_dataset, sources)):
        return None
    # An evaluator's files may be models of gigabytes: they are told by size and time.
    stats = [
        (path, path.stat())
        for path in find_input_files(list(map(str, list_files_named_by_evaluator_options(evaluators))))
    ]
    parts = [experiment.model_dump_json(), *(f"{one.name} {one.signature}" for one in evaluators)]
    parts += [f"{path} {found.st_size} {found.st_mtime_ns}" for path, found in stats]
    return digest_run_inputs(*parts, files=list(find_input_files(sources)))


def _list_experiment_sources(experiment: Experiment) -> list[str]:
    return [*list_experiment_tables(experiment), *(experiment.estimate.files() if experiment.estimate else ())]


def _run_counts_experiment(
    experiment: Experiment, counts_path: str, folder: Path, say: Callable[[str], None]
) -> Results:
    """`run` for a counts table: nothing to judge, and nothing that is worth keeping half done."""
    with lock_run_folder_for_writing(folder, [counts_path]):
        counts = read_counts(counts_path)
        say(f"counts    {len(counts):>9,} rows in {format_count(counts['dataset'].nunique(), 'data set')}")
        results = compare_counts(
            counts, **experiment.compare_arguments, inputs=list_file_checksums([Path(counts_path)])
        )
        write_table(counts, folder / "counts.parquet")
        say(describe_run_audit_rows(results))
        write_experiment_yaml(folder, experiment, results, packages=_RECORDED_PACKAGES)
        finish_run(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results


class ExperimentEngineDeclaration(NamedTuple):
    """How the experiments of an engine are read from a YAML, and run."""

    load: Callable[..., Any]
    run: Callable[..., Results]


def find_experiment_engine(yaml_path: str | Path) -> ExperimentEngineDeclaration | None:
    """The engine whose block a YAML has; None where it compares evaluators."""
    data = YamlFile(yaml_path).data
    for name in ("factscore", "dfactscore"):
        if isinstance(data, dict) and name in data:
            module = import_module(f"factaudit.engines.{name}.experiment")
            return ExperimentEngineDeclaration(
                getattr(module, f"load_{name}_experiment"), getattr(module, f"run_{name}_experiment")
            )
    return None


def estimate_experiment_cost(experiment: Experiment, price_table_path: str | Path | None = None) -> list[Row]:
    """What the calls of an experiment would cost at the most, a row per evaluator that asks a language model.

    Nothing is sent. ``price_table_path``: a price table of the user's. The rows are those of
    `factaudit.llm.cost.estimate_llm_judging_cost`.
    """
    from factaudit.evaluators.judging_cost import estimate_evaluator_costs

    if experiment.counts is not None:
        return []
    fetch_missing_published_files(list_experiment_tables(experiment))
    evaluators = [make_named_evaluator(one) for one in experiment.evaluators]
    return estimate_evaluator_costs(evaluators, read_experiment_inputs(experiment).claims, price_table_path)


def _resolve_experiment_paths(experiment: Experiment, file: YamlFile) -> Experiment:
    """Make paths absolute and check what can be checked without running: files, formats, evaluators, audits."""
    paths = YamlPaths(file, experiment.data)

    claims: list[str | ForeignFormatSource] = []
    for number, item in enumerate(experiment.claims):
        place: YamlPlace = ("claims", number)
        if isinstance(item, str):
            claims += paths.resolve_files([item], "claims", number)
        else:
            claims.append(resolve_experiment_source(item, paths, place))
    counts = None if experiment.counts is None else paths.resolve_file(experiment.counts, ("counts",))
    tables = experiment.tables and re.sub(
        r"(?<=:///)[^?]*", lambda m: paths.resolve_path(m[0], ("tables",)), experiment.tables
    )
    verdicts = paths.resolve_files(experiment.verdicts, "verdicts")
    annotations = paths.resolve_files(experiment.annotations, "annotations")
    evaluators = [
        resolve_run_evaluator_paths(paths, spec, "evaluators", number)
        for number, spec in enumerate(experiment.evaluators)
    ]
    check_run_audit_specs(file, paths.problems, experiment.audits)
    estimate = experiment.estimate
    if estimate is not None:
        collect_run_spec_problem(file, paths.problems, lambda settings: settings.check(), estimate, "estimate")
        labels = paths.resolve_files(estimate.labels, "estimate", "labels")
        sample = None if estimate.sample is None else paths.resolve_file(estimate.sample, ("estimate", "sample"))
        estimate = estimate.model_copy(update={"labels": labels, "sample": sample})
    paths.check_problems()
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
