"""Which tables does an experiment read? Claims, verdicts and annotations from all its sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.audit import read_audit_names_and_options
from factaudit.datasets import FORMATS, check_conversion_options, convert
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


def read_experiment_inputs(
    experiment: ExperimentTablePaths, needs_verdicts: bool = True
) -> ExperimentInputs:
    """Read all sources, which must exist. Raises `InputError` and `UsageError`."""
    files = [item for item in experiment.claims if isinstance(item, str)]
    claim_tables: dict[str, pd.DataFrame] = {}
    verdict_tables: dict[str, pd.DataFrame] = {}
    said: list[pd.DataFrame] = []
    provenance, notes = list[Row](), list[str]()
    mapped = bool(files) and experiment.mapping is not None
    if mapped:
        own = [*files, *experiment.verdicts, *experiment.annotations]
        loaded = load_input_tables(
            own, experiment.mapping, notes.append, needs_verdicts=needs_verdicts
        )
        if loaded.claims is None:
            raise InputError(
                ", ".join(files),
                [Problem("these files have no claims; expected a table with one row per claim")],
            )
        claim_tables[", ".join(files)] = loaded.claims
        if loaded.verdicts is not None:
            verdict_tables[", ".join(experiment.verdicts) or files[0]] = loaded.verdicts
        said += [] if loaded.annotations is None else [loaded.annotations]
    elif files:
        claim_tables[", ".join(files)] = read_claims(*files)
    for item in experiment.claims:
        if isinstance(item, str):
            continue
        converted = convert(item.format, item.source, **item.options)
        name = f"{item.format} {', '.join(item.source)}"
        claim_tables[name] = converted.claims
        if converted.verdicts is not None:
            verdict_tables[name] = converted.verdicts
        said += [] if converted.annotations is None else [converted.annotations]
        notes.extend(converted.notes)
        if converted.provenance:
            provenance.append({"format": item.format, **converted.provenance})
    claims = merge_claim_tables(list(claim_tables.values()), list(claim_tables))
    if not mapped:
        verdict_tables |= {path: read_verdicts(path, claims=claims) for path in experiment.verdicts}
        said += (
            [read_annotations(*experiment.annotations, claims=claims)]
            if experiment.annotations
            else []
        )
    verdicts = (
        merge_verdict_tables(list(verdict_tables.values()), list(verdict_tables))
        if verdict_tables
        else None
    )
    annotations = pd.concat(said, ignore_index=True) if said else None
    if experiment.limit_documents is not None:
        n_claims = len(claims)
        claims = _select_first_documents(claims, experiment.limit_documents)
        verdicts, annotations = (
            _select_rows_of_claims(table, claims) for table in (verdicts, annotations)
        )
        notes.append(
            f"limit     {len(claims):,} of {n_claims:,} claims: limit_documents is"
            f" {experiment.limit_documents}"
        )
    if experiment.split is not None:
        claims = select_claims_of_split(claims, experiment.split)
        verdicts, annotations = (
            _select_rows_of_claims(table, claims) for table in (verdicts, annotations)
        )
        notes.append(f"split     {len(claims):,} claims of the split {experiment.split}")
    if experiment.label_rule is not None:
        if annotations is None:
            raise UsageError(
                "label_rule: no file has annotations to make labels from; name a file of"
                " annotations or leave out label_rule"
            )
        claims = relabel_claims_by_annotations(
            claims, list_annotator_judgements(annotations), experiment.label_rule
        )
        notes.append(
            f"labels    by {experiment.label_rule} of {annotations['annotator'].nunique()}"
            " annotators"
        )
    if experiment.perturb is not None:
        n_claims = len(claims)
        claims = add_claim_variants(claims, **experiment.perturb.model_dump(), seed=experiment.seed)
        notes.append(
            f"perturb   {format_count(len(claims) - n_claims, 'variant')} of {n_claims:,} claims"
        )
    read = list_file_checksums(find_input_files(experiment.table_paths))
    return ExperimentInputs(claims, verdicts, annotations, read, provenance, notes)


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
