"""Which tables does an experiment read? Claims, verdicts and annotations from all its sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.audit import read_audit_names_and_options
from factaudit.datasets import FORMATS, Conversion, check_conversion_options, convert
from factaudit.datasets.input_tables import load_input_tables
from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.evaluators.judging import make_named_evaluator
from factaudit.evaluators.registry import find_evaluator_path_options
from factaudit.experiment.folder import RunSettings, list_file_checksums
from factaudit.files import list_folder_files
from factaudit.perturb.variants import ClaimVariantSettings, add_claim_variants
from factaudit.publications.register import list_format_references
from factaudit.results import Row
from factaudit.settings.spec_string import parse_spec_string
from factaudit.settings.yaml_file import YamlPlace
from factaudit.settings.yaml_paths import YamlPathKind, YamlPaths, find_yaml_path_options
from factaudit.tables import merge_claim_tables, merge_verdict_tables, read_claims, read_verdicts
from factaudit.tables.annotations import (
    list_annotator_judgements,
    read_annotations,
    relabel_claims_by_annotations,
)
from factaudit.tables.table_loading import LoadedTables
from factaudit.text.display_text import format_count

#: The one data set that is named instead of read from files.
HUB_DATASET = "lytang/LLM-AggreFact"


class ForeignFormatSource(BaseModel):
    """Claims (and verdicts) in a published format: ``{format: tofueval, source: [paths], options:
    {...}}``."""

    model_config = ConfigDict(extra="forbid")

    format: str
    #: If there are none, the published files of the format are used.
    source: list[str] = Field(default_factory=list)
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def paths(self) -> list[str]:
        """The files that it reads: its sources, and the files that its options name."""
        values = [
            one
            for value in self.options.values()
            for one in (value if isinstance(value, list) else [value])
        ]
        texts = [re.sub(r"^[\w-]+:(?=/)", "", value) for value in values if isinstance(value, str)]
        return [*self.source, *(text for text in texts if Path(text).is_absolute())]


class ExperimentTablePaths(RunSettings):
    """Where the tables of an experiment come from."""

    claims: list[str | ForeignFormatSource] = Field(default_factory=list)
    verdicts: list[str] = Field(default_factory=list)
    #: Files of annotations. Published formats bring their own.
    annotations: list[str] = Field(default_factory=list)
    #: How the labels of several annotators become one label (`factaudit.tables.annotations`). None
    #: keeps the labels of the claims.
    label_rule: str | None = None
    #: How the files of claims and verdicts are read (`factaudit.tables.column_mapping`), or
    #: ``auto``.
    mapping: Literal["auto"] | dict[str, Any] | None = None
    #: Use only the claims about the first documents of each data set, up to this number: a trial
    #: before a costly run.
    limit_documents: int | None = Field(default=None, ge=1)
    #: Only the claims of this split (train, dev, test).
    split: str | None = None
    #: Variants of the claims in which a rule changed one thing, to be judged together with them.
    perturb: ClaimVariantSettings | None = None

    @property
    def table_paths(self) -> list[str]:
        """The files and folders that the tables are read from, as the YAML names them."""
        claims = [
            path for one in self.claims for path in ([one] if isinstance(one, str) else one.paths)
        ]
        return [*claims, *self.verdicts, *self.annotations]


@dataclass
class ExperimentInputs:
    """The tables of all sources, their files with checksums (``input_files``), their provenance,
    and notes to show."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame | None
    annotations: pd.DataFrame | None
    input_files: list[Row]
    provenance: list[Row]
    notes: list[str]

    def keep(self, claims: pd.DataFrame) -> None:
        """Keep these claims, with their verdicts and annotations."""
        self.claims = claims
        self.verdicts = _select_rows_of_claims(self.verdicts, claims)
        self.annotations = _select_rows_of_claims(self.annotations, claims)


@dataclass
class _Sources:
    """What has been read so far. Tables are kept by the names of their files, for messages."""

    claims: dict[str, pd.DataFrame] = field(default_factory=dict)
    verdicts: dict[str, pd.DataFrame] = field(default_factory=dict)
    annotations: list[pd.DataFrame] = field(default_factory=list)
    provenance: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, read: LoadedTables | Conversion, name: str, name_of_verdicts: str) -> None:
        """Add tables that were read together."""
        if read.claims is not None:
            self.claims[name] = read.claims
        if read.verdicts is not None:
            self.verdicts[name_of_verdicts] = read.verdicts
        if read.annotations is not None:
            self.annotations.append(read.annotations)


def read_experiment_inputs(
    experiment: ExperimentTablePaths, needs_verdicts: bool = True
) -> ExperimentInputs:
    """Read all sources, which must exist; keep the claims that the experiment is about; make their
    labels and variants. Raises `InputError` and `UsageError`."""
    inputs = _read_sources(experiment, needs_verdicts)
    if experiment.limit_documents is not None:
        n_claims = len(inputs.claims)
        inputs.keep(_select_first_documents(inputs.claims, experiment.limit_documents))
        inputs.notes.append(
            f"limit     {len(inputs.claims):,} of {n_claims:,} claims: limit_documents is"
            f" {experiment.limit_documents}"
        )
    if experiment.split is not None:
        inputs.keep(select_claims_of_split(inputs.claims, experiment.split))
        inputs.notes.append(
            f"split     {len(inputs.claims):,} claims of the split {experiment.split}"
        )
    if experiment.label_rule is not None:
        _make_labels(inputs, experiment.label_rule)
    if experiment.perturb is not None:
        n_claims = len(inputs.claims)
        rules = experiment.perturb.model_dump()
        inputs.claims = add_claim_variants(inputs.claims, **rules, seed=experiment.seed)
        n_variants = format_count(len(inputs.claims) - n_claims, "variant")
        inputs.notes.append(f"perturb   {n_variants} of {n_claims:,} claims")
    return inputs


def _read_sources(experiment: ExperimentTablePaths, needs_verdicts: bool) -> ExperimentInputs:
    """The tables of files (read by the names of their columns where there is a mapping, else by our
    schema) and of published formats."""
    found = _Sources()
    files = [one for one in experiment.claims if isinstance(one, str)]
    by_names = bool(files) and experiment.mapping is not None
    if by_names:
        own = [*files, *experiment.verdicts, *experiment.annotations]
        loaded = load_input_tables(own, experiment.mapping, found.notes.append, needs_verdicts)
        if loaded.claims is None:
            problem = Problem("these files have no claims; expected a table with one row per claim")
            raise InputError(", ".join(files), [problem])
        found.add(loaded, ", ".join(files), ", ".join(experiment.verdicts) or files[0])
    elif files:
        found.claims[", ".join(files)] = read_claims(*files)
    for one in experiment.claims:
        if isinstance(one, str):
            continue
        converted = convert(one.format, one.source, **one.options)
        name = f"{one.format} {', '.join(one.source)}"
        found.add(converted, name, name)
        found.notes += converted.notes
        if converted.provenance:
            found.provenance.append({"format": one.format, **converted.provenance})
    claims = merge_claim_tables([*found.claims.values()], [*found.claims])
    if not by_names:
        for path in experiment.verdicts:
            found.verdicts[path] = read_verdicts(path, claims=claims)
        if experiment.annotations:
            found.annotations.append(read_annotations(*experiment.annotations, claims=claims))
    verdicts = annotations = None
    if found.verdicts:
        verdicts = merge_verdict_tables([*found.verdicts.values()], [*found.verdicts])
    if found.annotations:
        annotations = pd.concat(found.annotations, ignore_index=True)
    read = list_file_checksums(find_input_files(experiment.table_paths))
    return ExperimentInputs(claims, verdicts, annotations, read, found.provenance, found.notes)


def _make_labels(inputs: ExperimentInputs, rule: str) -> None:
    """Make the labels of the claims by a rule from those of the annotators. Raises `UsageError`
    where there are none."""
    if inputs.annotations is None:
        raise UsageError(
            "label_rule: no file has annotations to make labels from; name a file of"
            " annotations or leave out label_rule"
        )
    said = list_annotator_judgements(inputs.annotations)
    inputs.claims = relabel_claims_by_annotations(inputs.claims, said, rule)
    n_annotators = inputs.annotations["annotator"].nunique()
    inputs.notes.append(f"labels    by {rule} of {n_annotators} annotators")


def _select_first_documents(claims: pd.DataFrame, n_documents: int) -> pd.DataFrame:
    """The claims about the first ``n_documents`` documents of each data set. A claim without a
    document counts as a document of its own."""
    documents = claims["doc_id"].astype(object).fillna(claims["doc"]).fillna(claims["claim_id"])
    first = pd.DataFrame({"dataset": claims["dataset"], "doc": documents}).drop_duplicates()
    kept = first[first.groupby("dataset", observed=True).cumcount() < n_documents]
    pairs = pd.MultiIndex.from_arrays([claims["dataset"], documents])
    return claims[pairs.isin(pd.MultiIndex.from_frame(kept))].reset_index(drop=True)


def select_claims_of_split(claims: pd.DataFrame, split: str) -> pd.DataFrame:
    """The claims of one split. Raises `UsageError` if there are none."""
    found = claims[(claims["split"] == split).fillna(False)].reset_index(drop=True)
    if found.empty:
        known = claims["split"].dropna().unique().tolist()
        hint = (
            suggest_known_name(split, known)
            if known
            else ": no claim has a split; name its column with --columns split=COLUMN"
        )
        raise UsageError(f"no claim is of the split {split!r}{hint}")
    return found


def _select_rows_of_claims(table: pd.DataFrame | None, claims: pd.DataFrame) -> pd.DataFrame | None:
    return (
        None
        if table is None
        else table[table["claim_id"].isin(claims["claim_id"])].reset_index(drop=True)
    )


def resolve_experiment_source(
    item: ForeignFormatSource, paths: YamlPaths, place: YamlPlace
) -> ForeignFormatSource:
    """A source with absolute paths; without paths, all published files of its format. Problems are
    added to ``paths``."""
    paths.collect_problem(
        lambda one: check_conversion_options(one.format, one.options), item, *place
    )
    sources = [
        text if text == HUB_DATASET else paths.resolve_path(text, (*place, "source", number))
        for number, text in enumerate(item.source or list_format_references(item.format))
    ]
    if not sources:
        problem = (
            "source: expected a file or folder: nothing published is registered for"
            f" {item.format!r}"
        )
        paths.problems.append(paths.file.problem(problem, place))
    kinds = find_yaml_path_options(FORMATS[item.format].converter) if item.format in FORMATS else {}
    options = {
        key: paths.resolve_option(kinds.get(key), value, (*place, "options", key))
        for key, value in item.options.items()
    }
    return item.model_copy(update={"source": sources, "options": options})


def find_input_files(paths: Sequence[str]) -> Iterator[Path]:
    """All files in the given files and folders. The name of a data set on the hub is not a file."""
    for path in map(Path, paths):
        yield from (
            file
            for file in (list_folder_files(path) if path.is_dir() else [path])
            if file.is_file()
        )


def check_audit_specs(paths: YamlPaths, audits: Sequence[str | Mapping[str, Any]] | None) -> None:
    """Find misspelt audits before an hour of judging, not after it."""
    named: list[str | Mapping[str, Any]] = []
    for number, audit in enumerate(audits or ()):
        if paths.collect_problem(read_audit_names_and_options, [*named, audit], "audits", number):
            named.append(audit)


def resolve_evaluator_paths(
    paths: YamlPaths, spec: str | dict[str, dict[str, Any] | None], *place: str | int
) -> str | dict[str, dict[str, Any] | None]:
    """An evaluator from a YAML, with the paths in its options made absolute. Errors in it become
    problems."""
    try:
        spec = _resolve_spec_paths(paths, spec, place)
    except UsageError as error:
        paths.problems.append(paths.file.problem(str(error), place))
    else:
        paths.collect_problem(make_named_evaluator, spec, *place)
    return spec


def _resolve_spec_paths(paths: YamlPaths, spec: Any, place: YamlPlace) -> Any:
    if isinstance(spec, list):
        return [_resolve_spec_paths(paths, one, (*place, at)) for at, one in enumerate(spec)]
    if isinstance(spec, str):
        name, given = parse_spec_string(spec)
    elif isinstance(spec, dict) and len(spec) == 1 and isinstance(next(iter(spec.values())), dict):
        name, given = next(iter(spec.items()))
    else:
        return spec
    kinds = find_evaluator_path_options(name)
    changed = {}
    for key, value in given.items():
        if kinds.get(key) is YamlPathKind.EVALUATORS:
            inner = value.split("+") if isinstance(value, str) and name == "ensemble" else value
            resolved = _resolve_spec_paths(paths, inner, (*place, name, key))
            changed[key] = value if resolved == inner else resolved
        else:
            changed[key] = paths.resolve_option(kinds.get(key), value, (*place, name, key))
    return spec if changed == given else {name: changed}
