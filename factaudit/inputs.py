"""The tables of an experiment: claims, verdicts and annotations of all its sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from factaudit.datasets import convert
from factaudit.datasets.sources import files_in
from factaudit.errors import InputError, Problem, UsageError
from factaudit.intake import load as intake
from factaudit.results import Row
from factaudit.runfolder import RunSettings, checksums
from factaudit.tables import merge_claims, merge_verdicts, read_claims, read_verdicts
from factaudit.tables.annotations import judgements, read_annotations, relabelled


class Source(BaseModel):
    """Claims (and verdicts) in somebody else's format: ``{format: tofueval, source: [paths], options: {...}}``."""

    model_config = ConfigDict(extra="forbid")

    format: str
    source: list[str]
    options: dict[str, Any] = Field(default_factory=dict)


class TableSettings(RunSettings):
    """Where the tables of an experiment come from."""

    claims: list[str | Source] = Field(default_factory=list)
    verdicts: list[str] = Field(default_factory=list)
    #: Files of what people said of the claims; formats bring their own.
    annotations: list[str] = Field(default_factory=list)
    #: How their labels become one: the first makes the claims' labels, all stand beside each other in the report.
    label_rules: list[str] = Field(default_factory=list)
    #: How the files of claims and verdicts are to be read (`factaudit.intake.mapping`), or ``auto``.
    mapping: Literal["auto"] | dict[str, Any] | None = None


@dataclass
class Inputs:
    """The tables of all sources, the files behind them with checksums (``inputs``), provenance, and notes to show."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame | None
    annotations: pd.DataFrame | None
    inputs: list[Row]
    provenance: list[Row]
    notes: list[str]


def read_inputs(experiment: TableSettings) -> Inputs:
    """Read all sources. Raises `InputError` and `UsageError`."""
    files = [item for item in experiment.claims if isinstance(item, str)]
    claim_tables: dict[str, pd.DataFrame] = {}
    verdict_tables: dict[str, pd.DataFrame] = {}
    said: list[pd.DataFrame] = []
    paths, provenance, notes = [*files], list[Row](), list[str]()
    mapped = bool(files) and experiment.mapping is not None
    if mapped:
        own = [*files, *experiment.verdicts, *experiment.annotations]
        loaded = intake.load(own, experiment.mapping, notes.append)
        if loaded.claims is None:
            raise InputError(", ".join(files), [Problem("these files hold no claims")])
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
        paths.extend([*item.source, *_paths_in(item.options)])
        notes.extend(converted.notes)
        if converted.provenance:
            provenance.append({"format": item.format, **converted.provenance})
    claims = merge_claims(list(claim_tables.values()), list(claim_tables))
    if not mapped:
        verdict_tables |= {path: read_verdicts(path, claims=claims) for path in experiment.verdicts}
        said += [read_annotations(*experiment.annotations, claims=claims)] if experiment.annotations else []
    paths.extend([*experiment.verdicts, *experiment.annotations])
    verdicts = merge_verdicts(list(verdict_tables.values()), list(verdict_tables)) if verdict_tables else None
    annotations = pd.concat(said, ignore_index=True) if said else None
    if experiment.label_rules:
        if annotations is None:
            raise UsageError("label_rules: no source has annotations that labels could be made of")
        claims = relabelled(claims, judgements(annotations), experiment.label_rules[0])
        notes.append(f"labels    by {experiment.label_rules[0]} of {annotations['annotator'].nunique()} annotators")
    return Inputs(claims, verdicts, annotations, checksums(files_among(paths)), provenance, notes)


def sources_of(experiment: TableSettings) -> list[str]:
    """The files and folders that the tables are read from, as they are named."""
    named = [item if isinstance(item, str) else [*item.source, *_paths_in(item.options)] for item in experiment.claims]
    claims = [path for one in named for path in ([one] if isinstance(one, str) else one)]
    return [*claims, *experiment.verdicts, *experiment.annotations]


def _paths_in(options: Mapping[str, Any]) -> Iterator[str]:
    """The files that a format's options name."""
    for value in options.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and Path(text := re.sub(r"^[\w-]+:(?=/)", "", text)).is_absolute():
                yield text


def files_among(paths: Sequence[str]) -> Iterator[Path]:
    """The files among and in the paths; a name on the hub is none."""
    for path in map(Path, paths):
        yield from (file for file in (files_in(path) if path.is_dir() else [path]) if file.is_file())


def is_hub(text: str) -> bool:
    return text == "lytang/LLM-AggreFact"
