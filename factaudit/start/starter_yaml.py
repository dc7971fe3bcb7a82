"""A commented experiment YAML for the user's own files: read as `factaudit inspect` reads them, ready to run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from os.path import relpath
from pathlib import Path

import pandas as pd
import yaml

from factaudit.datasets.format_detection import detect_dataset_format
from factaudit.files import resolve_path
from factaudit.input_tables import is_input_counts_file, load_input_tables
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.foreign_files import read_foreign_file
from factaudit.tables.table_loading import LoadedTables

EDITOR_SCHEMA_NAME = "experiment.schema.json"
_EVALUATORS_COMMENT = "# What judges the claims (`factaudit list evaluators`).\n"
_EXAMPLE_EVALUATORS = """\
evaluators:
  - rouge2                          # word overlap: a floor that every evaluator has to beat
  - always-yes
  # - minicheck: {model: flan-t5-large}             # pip install 'factaudit[hf]'
  # - llm: {model: gpt-4o-mini, concurrency: 32}    # OPENAI_API_KEY, or base_url: http://localhost:11434/v1
  # - my_metric:Numbers                             # a class or a function of yours, beside this file
"""
_BLANK_INPUTS = """\
title: Evaluators compared

# The claims: tables of any shape (CSV, TSV, JSON, JSONL, Parquet, Excel), relative to this file. `factaudit inspect`
# says how each would be read; `factaudit init FILE...` writes this file for them.
claims: claims.jsonl

# In place of such tables: a published format (`factaudit list formats`),
# claims: {format: tofueval, source: [mediasum_factual_eval_dev.csv]}

# or, where only error rates are published: dataset, system, evaluator, n, labelled_error_rate, predicted_error_rate.
# counts: leaderboard.csv

# What evaluators said already.
# verdicts: [judges.csv]

# How columns are read whose names are not ours: auto (what was taken for what is said), or as you say, ours: yours.
mapping: auto
# mapping:
#   columns: {claim: sentence, doc: context, label: human, system: model}
#   labels: {supported: 1, refuted: 0}
#   wide: ["judge_*"]
#   scale: [1, 5]
#   threshold: 3

"""
_COMMENTED_EVALUATORS = textwrap.indent(_EXAMPLE_EVALUATORS, "# ")
_COMMON_SETTINGS = """\
# What the calls to language models may cost in all, in US dollars. `factaudit run YAML --dry-run` says what they will.
# max_cost: 5

# Only some audits (`factaudit list audits`); by default all that apply.
# audits: [rates, differences, quantification]

# Every random step starts from it.
seed: 0
"""
_ESTIMATE_COMMENT = """\
# Few labels: `factaudit sample` draws which claims to label; then this gives each system's error rate.
# estimate:
#   labels: [labels.jsonl]
#   sample: sample.parquet

"""


def make_starter_yaml(
    input_paths: Sequence[Path], yaml_path: Path, mapping: ColumnMapping, say: Callable[[str], None] = lambda line: None
) -> str:
    """The text of an experiment YAML at ``yaml_path`` for files of claims, verdicts or counts, of any shape.

    ``say`` gets what was taken for what. Raises `InputError` where the files cannot be read as claims.
    """
    head = _make_starter_yaml_header(yaml_path)
    of = " and ".join(path.name.split(".")[0] for path in input_paths[:2])
    title = f"title: {_format_yaml_scalar(f'Evaluators compared on {of}')}\n\n"
    named = [Path(relpath(resolve_path(path), resolve_path(yaml_path).parent)).as_posix() for path in input_paths]
    if len(input_paths) == 1 and is_input_counts_file(input_paths[0], mapping):
        counts = f"# Published error rates: no claims to judge.\ncounts: {_format_yaml_scalar(named[0])}\n\n"
        return head + title + counts + _COMMON_SETTINGS
    loaded = load_input_tables(input_paths, mapping, say)
    claims, verdicts, own_mapping = named[:1], named[1:], loaded.mapping
    if any(detect_dataset_format(path) for path in input_paths):
        own_mapping = own_mapping or ColumnMapping(auto=True)
    elif own_mapping is None:  # all is ours: a table of verdicts says whose
        claims = [
            name for name, path in zip(named, input_paths, strict=True) if "evaluator" not in read_foreign_file(path)
        ]
        verdicts = [name for name in named if name not in claims]
    text = head + title + _make_starter_yaml_inputs(claims, verdicts, loaded, own_mapping)
    if loaded.verdicts is None:
        text += _EVALUATORS_COMMENT + _EXAMPLE_EVALUATORS + "\n"
    else:
        text += "# Evaluators to run besides.\n" + _COMMENTED_EVALUATORS + "\n"
    if loaded.claims is None or loaded.claims["label"].isna().any():
        text += _ESTIMATE_COMMENT
    return text + _COMMON_SETTINGS


def make_blank_starter_yaml(yaml_path: Path) -> str:
    """The text of an experiment YAML at ``yaml_path`` for no files in particular: each kind of input, most as a
    comment.
    """
    return (
        _make_starter_yaml_header(yaml_path)
        + _BLANK_INPUTS
        + _EVALUATORS_COMMENT
        + _EXAMPLE_EVALUATORS
        + "\n"
        + _ESTIMATE_COMMENT
        + _COMMON_SETTINGS
    )


def _make_starter_yaml_header(yaml_path: Path) -> str:
    return (
        f"# yaml-language-server: $schema={EDITOR_SCHEMA_NAME}\n"
        f"# Check it: factaudit inspect --strict {yaml_path.name}    Run it: factaudit run {yaml_path.name}\n\n"
    )


def _make_starter_yaml_inputs(
    claims_names: Sequence[str],
    verdicts_names: Sequence[str],
    loaded_tables: LoadedTables,
    own_mapping: ColumnMapping | None,
) -> str:
    text = f"# {_describe_starter_claims(loaded_tables.claims)}.\nclaims: {_format_yaml_list(claims_names)}\n\n"
    if verdicts_names:
        text += f"# What evaluators said already.\nverdicts: {_format_yaml_list(verdicts_names)}\n\n"
    if own_mapping == ColumnMapping(auto=True):
        text += "# The files are of a known format, which is recognised by its keys.\nmapping: auto\n"
    elif own_mapping is not None:
        own = yaml.safe_dump(
            own_mapping.model_dump(exclude_defaults=True, mode="json"), sort_keys=False, allow_unicode=True
        )
        text += "# How the columns are read, ours: yours. `factaudit inspect` shows what each column holds.\n"
        text += "mapping:\n" + textwrap.indent(own, "  ") + "\n"
    return text


def _describe_starter_claims(claims: pd.DataFrame | None) -> str:
    if claims is None:
        return "Claims"
    labelled = int(claims["label"].notna().sum())
    without = int(claims["doc"].isna().sum())
    text = f"{len(claims):,} claims, {labelled:,} labelled"
    return text + (f", {without:,} without a document's text: what reads text is left out" if without else "")


def _format_yaml_scalar(text: str) -> str:
    return yaml.safe_dump(text, allow_unicode=True, width=1000).removesuffix("\n").removesuffix("\n...")


def _format_yaml_list(names: Sequence[str]) -> str:
    return _format_yaml_scalar(names[0]) if len(names) == 1 else "[" + ", ".join(map(_format_yaml_scalar, names)) + "]"
