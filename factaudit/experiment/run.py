"""How does an experiment run? A YAML goes in, a run folder comes out.

`run` reads the claims, gathers the verdicts (from files, or by judging, with a journal), audits
them and renders the report. Every file in the run folder is replaced in one step. A run that is
killed keeps what it had and continues from there.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field, model_validator

from factaudit.arrays.duckdb_tables import (
    MANY_VERDICTS,
    count_parquet_rows,
    load_duckdb_judgements,
)
from factaudit.audit import read_audit_names_and_options
from factaudit.errors import UsageError
from factaudit.estimate.page import has_texts, write_labelling_page
from factaudit.estimate.rates import EstimationResults
from factaudit.estimate.settings import EstimateSettings
from factaudit.evaluators.judging import (
    RETRIED_STATUSES,
    NamedEvaluator,
    check_unique_evaluator_names,
    estimate_evaluator_costs,
    judge,
    make_named_evaluator,
    walk_evaluator_members,
)
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.experiment.folder import (
    DISPUTED_PAGE,
    RunFolder,
    RunSettings,
    check_run_spares_inputs,
    count_run_llm_calls,
    list_file_checksums,
)
from factaudit.experiment.inputs import (
    HUB_DATASET,
    ExperimentInputs,
    ExperimentTablePaths,
    ForeignFormatSource,
    check_audit_specs,
    read_experiment_inputs,
    resolve_evaluator_paths,
    resolve_experiment_source,
)
from factaudit.experiment.unchanged import (
    find_unchanged_run,
    make_run_key,
    make_yaml_run_key,
    remember_run,
)
from factaudit.publications.fetching import fetch_missing_published_files
from factaudit.report.claim_browser import ClaimBrowser, select_detailed_verdicts
from factaudit.report.screen_text import describe_run
from factaudit.results import Results, Row, compare, compare_counts
from factaudit.results.comparison_tables import ComparisonTables
from factaudit.settings.yaml_file import YamlFile, YamlPlace, check_yaml_settings
from factaudit.settings.yaml_paths import YamlPaths
from factaudit.signature import hash_texts
from factaudit.tables import merge_verdict_tables, write_table
from factaudit.tables.annotations import (
    find_disputed_claims,
    has_double_labels,
    list_annotator_judgements,
    read_annotations,
)
from factaudit.tables.counts_table import read_counts
from factaudit.tables.validation import find_claim_variants, make_empty_verdicts
from factaudit.text.display_text import format_count

_ANNOTATIONS = "annotations.parquet"
#: Audits that read nothing but the texts of claims and documents, which DuckDB does not load.
_AUDITS_OF_TEXTS = {"surface_bias", "chunking", "chunking_rates"}
#: What only tables in memory allow.
_STEPS_IN_MEMORY = (
    "mapping",
    "evaluators",
    "perturb",
    "estimate",
    "annotations",
    "label_rule",
    "limit_documents",
    "split",
)
#: The YAML blocks that belong to an engine, and the module of the engines, which has
#: ``load_experiment``.
_ENGINES = dict.fromkeys(("factscore", "dfactscore"), "factaudit.engines.runs")


class Experiment(ExperimentTablePaths):
    """An experiment YAML that compares evaluators, on claims or on a counts table
    (`factaudit.tables.counts_table`).

    An option's value is a path if its declared type says so (`factaudit.settings.yaml_paths`).
    """

    counts: str | None = None
    #: Whether claims and verdicts are read as tables, or loaded by DuckDB without their texts.
    where: Literal["memory", "duckdb"] = "memory"
    evaluators: list[str | dict[str, dict[str, Any] | None]] = Field(default_factory=list)
    #: Error rates estimated from a few labels, in addition to the audits.
    estimate: EstimateSettings | None = None

    @model_validator(mode="after")
    def _check_one_input(self) -> Experiment:
        if self.counts is None and not self.claims:
            raise ValueError("expected claims (or counts), found none")
        if self.counts is not None and (self.claims or self.verdicts or self.evaluators):
            raise ValueError(
                "expected counts alone: there are no claims to judge, nor verdicts of them"
            )
        if self.perturb is not None and (self.verdicts or not self.evaluators):
            raise ValueError(
                "perturb: expected evaluators, which judge the variants, and no files of verdicts"
            )
        if self.limit_documents is not None and not self.claims:
            raise ValueError("limit_documents: expected claims, found a table of counts")
        if self.where == "duckdb":
            for name in _STEPS_IN_MEMORY:
                if getattr(self, name):
                    raise ValueError(
                        f"where: duckdb audits claims and verdicts as they are, found {name}"
                    )
        return self

    def run_into(
        self, out: Path, *, progress: bool, overwrite: bool, say: Callable[[str], None]
    ) -> Results:
        """See `RunSettings.run_into`."""
        fetch_missing_published_files(self.table_paths, say)
        # Find a misspelt audit before an hour of judging, not after it.
        read_audit_names_and_options(self.audits)
        evaluators = [make_named_evaluator(spec) for spec in self.evaluators]
        check_unique_evaluator_names(evaluators)
        with RunFolder.open(out, self.sources, overwrite=overwrite, say=say) as folder:
            if self.counts is not None:
                return folder.finish(self, _audit_counts(self, self.counts, folder))
            if self.where == "duckdb":
                return folder.finish(self, _audit_duckdb_tables(self, folder))
            _note_many_verdicts(self, folder)
            return _judge_and_audit_tables(self, evaluators, folder, progress)

    def estimate_cost(self) -> list[Row]:
        """See `RunSettings.estimate_cost`."""
        if not self.evaluators:
            return []
        fetch_missing_published_files(self.table_paths)
        return estimate_evaluator_costs(
            map(make_named_evaluator, self.evaluators), read_experiment_inputs(self).claims
        )

    @property
    def sources(self) -> list[str]:
        """Everything that the experiment reads, as the YAML names it."""
        counts = [] if self.counts is None else [self.counts]
        return [*counts, *self.table_paths, *(self.estimate.files() if self.estimate else ())]


def read_experiment(path: str | Path, settings: Mapping[str, Any] | None = None) -> RunSettings:
    """Read and check an experiment YAML. ``settings`` (``{"seed": 1, "audits": [...]}``) override
    its keys.

    Returns an `Experiment`, or the experiment of an engine if the YAML has a block ``factscore:``
    or ``dfactscore:``. All its paths are absolute. Raises `InputError` that names the line of each
    mistake.
    """
    file = YamlFile(path)
    file.override(settings or {})
    keys = file.data if isinstance(file.data, dict) else {}
    for name, module in _ENGINES.items():
        if name in keys:
            engine_experiment: RunSettings = import_module(module).load_experiment(file)
            return engine_experiment
    file.wrap_in_lists(keys, "claims", "verdicts", "evaluators", "audits", "annotations")
    claims = keys.get("claims")
    for item in claims if isinstance(claims, list) else ():
        file.wrap_in_lists(item, "source")
    return _resolve_experiment_paths(check_yaml_settings(Experiment, file.data, file), file)


def run(
    experiment: str | Path | RunSettings,
    out: str | Path,
    *,
    settings: Mapping[str, object] | None = None,
    progress: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Run an experiment (the path of a YAML, or the result of `read_experiment`) and write its run
    folder.

    A run is not repeated if nothing has changed since the one in the folder. The results of another
    experiment in the folder are replaced only with ``overwrite``. ``say`` receives one line per
    stage.
    """
    folder = Path(out)
    if isinstance(experiment, RunSettings):
        key = make_run_key(experiment.model_dump_json())
    else:
        check_run_spares_inputs(folder, [experiment])
        key = make_yaml_run_key(experiment, settings)
    if (before := find_unchanged_run(folder, key)) is not None:
        for line in before["lines"]:
            say(line)
        return Results.load(folder)
    asked = (
        experiment if isinstance(experiment, RunSettings) else read_experiment(experiment, settings)
    )
    said: list[str] = []

    def keep_and_say(line: str) -> None:
        said.append(line)
        say(line)

    results = asked.run_into(folder, progress=progress, overwrite=overwrite, say=keep_and_say)
    if _has_failures(results) or HUB_DATASET in str(asked):
        return results
    read = {str(row["path"]) for row in results.about["inputs"]}
    if asked is not experiment and "*" in Path(str(experiment)).read_text(encoding="utf-8"):
        # A pattern could also match a new file in that folder.
        read |= {str(Path(path).parent) for path in read}
    told = [*said[:-1], f"{said[-1]} (unchanged, as inputs and settings are the same)"]
    # From the data folder, only the files that are named.
    named = asked.model_dump(mode="json", exclude={"data"})
    remember_run(folder, key, named, read, told, describe_run(results.to_dict(), folder))
    return results


def _has_failures(results: Results) -> bool:
    """Whether a step failed that the next run will ask for again."""
    callers = results.about["evaluators"]
    steps = [row for rows in results.audits.values() for row in rows if "n_failed_sentences" in row]
    return any(row.get(f"n_{status}") for row in callers for status in RETRIED_STATUSES) or any(
        row["n_failed_sentences"] for row in steps
    )


def _judge_and_audit_tables(
    experiment: Experiment, evaluators: Sequence[NamedEvaluator], folder: RunFolder, progress: bool
) -> Results:
    """Read the tables, judge the claims if needed, audit them in memory, and end the run."""
    read = read_experiment_inputs(experiment, needs_verdicts=not evaluators)
    _say_what_was_read(read, folder)
    calls: list[Row] = []
    if evaluators:
        calls = _judge_claims(experiment, evaluators, read, folder, progress)
    (folder.path / DISPUTED_PAGE).unlink(missing_ok=True)
    if read.verdicts is None:
        read.verdicts = _go_on_without_verdicts(experiment, read, folder)
    for line in format_unscored_verdicts(read.verdicts, [one.name for one in evaluators]):
        folder.say(line)
    _write_tables(read, read.verdicts, folder)
    estimates = None
    if experiment.estimate is not None:
        estimates = experiment.estimate.estimate(
            read.claims, read.verdicts, experiment.seed, experiment.confidence
        )
    details = select_detailed_verdicts(read.verdicts)
    joined = ComparisonTables.join(
        read.claims, read.verdicts, read.annotations, experiment.label_rule
    )
    inputs, notes, provenance = read.input_files, read.notes, read.provenance
    del read  # its tables take most of the memory, and nothing below reads them
    results = compare(
        joined,
        **experiment.compare_arguments,
        signatures={one.name: one.signature for one in evaluators},
        inputs=inputs,
    )
    judged = replace(joined.judged)  # without what the audits cached, which nothing below reads
    del joined
    if notes:
        results.about["reading"] = notes
    if experiment.estimate is not None and estimates is not None:
        results = _add_estimates(results, experiment.estimate, estimates)
    results.calls.extend(calls)
    people = folder.path / _ANNOTATIONS
    browser = ClaimBrowser(judged, details, read_annotations(people) if people.is_file() else None)
    return folder.finish(experiment, results, claim_browser=browser, provenance=provenance)


def _say_what_was_read(read: ExperimentInputs, folder: RunFolder) -> None:
    for note in read.notes:
        folder.say(note)
    n_variants = int(find_claim_variants(read.claims).sum())
    datasets = format_count(read.claims["dataset"].nunique(), "data set")
    line = f"claims    {len(read.claims) - n_variants:>9,} in {datasets}"
    if n_variants:
        line += f", and {format_count(n_variants, 'variant')}"
    folder.say(line)


def _judge_claims(
    experiment: Experiment,
    evaluators: Sequence[NamedEvaluator],
    read: ExperimentInputs,
    folder: RunFolder,
    progress: bool,
) -> list[Row]:
    """Add the evaluators' verdicts and their provenance to what was read. Returns the calls of
    language models with their costs."""
    known = () if read.verdicts is None else read.verdicts["evaluator"].unique()
    check_unique_evaluator_names(evaluators, known)
    callers = [
        (one.name, part)
        for one in evaluators
        for asked in one.evaluator_and_repeats
        for part, _ in walk_evaluator_members(asked)
    ]
    with count_run_llm_calls(callers, folder.work / "calls.json", experiment.max_cost) as calls:
        judged = judge(read.claims, evaluators, journal=folder.work / "journal", progress=progress)
    read.verdicts = (
        judged if read.verdicts is None else merge_verdict_tables((read.verdicts, judged))
    )
    for one in evaluators:
        for part, _ in walk_evaluator_members(one.evaluator):
            # Only after judging does a model know which commit of the hub it was loaded from.
            if found := getattr(part, "provenance", None):
                read.provenance.append({"evaluator": one.name, **found})
    return calls


def _go_on_without_verdicts(
    experiment: Experiment, read: ExperimentInputs, folder: RunFolder
) -> pd.DataFrame:
    """An empty table of verdicts if two people labelled the same claims: then people are audited.

    Raises `UsageError` if there is nothing to audit.
    """
    if experiment.estimate is None and read.annotations is not None:
        judgements = list_annotator_judgements(read.annotations)
        if has_double_labels(judgements):
            _write_page_of_disputes(read.claims, judgements, folder, experiment.seed)
            return make_empty_verdicts()
    only_estimates = experiment.estimate is not None and not experiment.audits
    raise UsageError(
        f"nothing to {'estimate from' if only_estimates else 'audit'}: expected verdicts,"
        " evaluators, or a claims format that brings verdicts (`factaudit judge CLAIMS --evaluator"
        " NAME --out VERDICTS` makes verdicts), or files in which two annotators labelled the same"
        " claims"
    )


def _write_tables(read: ExperimentInputs, verdicts: pd.DataFrame, folder: RunFolder) -> None:
    """Write the run folder's tables. Those that this run does not have are removed: an earlier
    run may have left them."""
    write_table(read.claims, folder.path / "claims.parquet")
    if len(verdicts):
        evaluators = format_count(verdicts["evaluator"].nunique(), "evaluator")
        folder.say(f"verdicts  {len(verdicts):>9,} by {evaluators}")
        write_table(verdicts, folder.path / "verdicts.parquet")
    else:
        (folder.path / "verdicts.parquet").unlink(missing_ok=True)
    if read.annotations is not None:
        write_table(read.annotations, folder.path / _ANNOTATIONS)
    else:
        (folder.path / _ANNOTATIONS).unlink(missing_ok=True)


def _write_page_of_disputes(
    claims: pd.DataFrame, said: pd.DataFrame, folder: RunFolder, seed: int
) -> None:
    """Write the page on which one more person labels the claims that have both labels."""
    disputed = claims[claims["claim_id"].isin(find_disputed_claims(said))]
    if len(disputed) and has_texts(disputed):
        page = write_labelling_page(disputed, folder.path / DISPUTED_PAGE, "adjudicator", seed)
        folder.say(
            f"disputed  {len(disputed):>9,} claims with both labels; one more person can label"
            f" them on {page}"
        )


def _note_many_verdicts(experiment: Experiment, folder: RunFolder) -> None:
    """Say, before they are read into memory, that DuckDB could read so many verdicts."""
    n = count_parquet_rows(experiment.verdicts)
    if n > MANY_VERDICTS:
        folder.say(
            f"{n:,} verdicts are read into memory. If they do not fit, use --where duckdb"
            " (in a YAML file: `where: duckdb`)."
        )


def _audit_duckdb_tables(experiment: Experiment, folder: RunFolder) -> Results:
    """The results for Parquet files that DuckDB loads: their texts are not read, and they are not
    copied."""
    chosen = read_audit_names_and_options(experiment.audits)
    if experiment.audits is not None and (named := sorted(_AUDITS_OF_TEXTS & set(chosen))):
        raise UsageError(
            f"audit {named[0]!r} reads texts, which DuckDB does not load: run it with --where"
            " memory"
        )
    claims = [path for path in experiment.claims if isinstance(path, str)]
    if len(claims) < len(experiment.claims) or not experiment.verdicts:
        raise UsageError(
            "where: duckdb reads Parquet files of claims and of verdicts, no other format"
        )
    judged = load_duckdb_judgements(claims, experiment.verdicts, folder.work / "spill")
    shutil.rmtree(folder.work / "spill", ignore_errors=True)
    folder.say(
        f"claims    {len(judged.claims):>9,} in"
        f" {format_count(len(judged.dataset_names), 'data set')}"
    )
    n_verdicts = int((judged.status >= 0).sum())
    folder.say(f"verdicts  {n_verdicts:>9,} by {format_count(len(judged.evaluators), 'evaluator')}")
    inputs = list_file_checksums(map(Path, [*claims, *experiment.verdicts]))
    digest = hash_texts(*(row["checksum"] for row in inputs))
    joined = ComparisonTables(judged, digest, judged.evaluators)
    results = compare(joined, **experiment.compare_arguments, inputs=inputs)
    text = (
        "DuckDB loaded these tables without the texts of claims and documents. Audits that read"
        " them were left out."
    )
    results.sections.append({"title": "What was left out", "text": text})
    return results


def _audit_counts(experiment: Experiment, counts_path: str, folder: RunFolder) -> Results:
    """The results for a counts table, for which nothing has to be judged."""
    counts = read_counts(counts_path)
    folder.say(
        f"counts    {len(counts):>9,} rows in"
        f" {format_count(counts['dataset'].nunique(), 'data set')}"
    )
    inputs = list_file_checksums([Path(counts_path)])
    results = compare_counts(counts, **experiment.compare_arguments, inputs=inputs)
    write_table(counts, folder.path / "counts.parquet")
    return results


def _add_estimates(
    results: Results, estimator: EstimateSettings, estimates: EstimationResults
) -> Results:
    results.audits.update(estimates.audits())
    files = list_file_checksums(map(Path, estimator.files()))
    results.about["inputs"] += files
    # Which annotators the labels come from; the report shows this beside the labels of the claims.
    sample = None if estimator.sample is None else Path(estimator.sample).name
    results.about["estimate"] = {
        "labels": [Path(path).name for path in estimator.labels],
        "sample": sample,
    }
    return replace(results, signature=f"{results.signature}|estimate:{estimator.signature(files)}")


def _resolve_experiment_paths(experiment: Experiment, file: YamlFile) -> Experiment:
    """Make paths absolute and check everything that can be checked without running: files, formats,
    evaluators, audits."""
    paths = YamlPaths(file, experiment.data)

    claims: list[str | ForeignFormatSource] = []
    for number, item in enumerate(experiment.claims):
        place: YamlPlace = ("claims", number)
        if isinstance(item, str):
            claims += paths.resolve_files([item], "claims", number)
        else:
            claims.append(resolve_experiment_source(item, paths, place))
    counts = (
        None if experiment.counts is None else paths.resolve_file(experiment.counts, ("counts",))
    )
    verdicts = paths.resolve_files(experiment.verdicts, "verdicts")
    annotations = paths.resolve_files(experiment.annotations, "annotations")
    evaluators = [
        resolve_evaluator_paths(paths, spec, "evaluators", number)
        for number, spec in enumerate(experiment.evaluators)
    ]
    check_audit_specs(paths, experiment.audits)
    estimate = experiment.estimate
    if estimate is not None:
        labels = paths.resolve_files(estimate.labels, "estimate", "labels")
        sample = (
            None
            if estimate.sample is None
            else paths.resolve_file(estimate.sample, ("estimate", "sample"))
        )
        estimate = estimate.model_copy(update={"labels": labels, "sample": sample})
    paths.check_problems()
    return experiment.model_copy(
        update={
            "data": paths.data,
            "claims": claims,
            "counts": counts,
            "verdicts": verdicts,
            "annotations": annotations,
            "evaluators": evaluators,
            "estimate": estimate,
        }
    )
