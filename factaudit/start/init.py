"""A commented experiment YAML for the user's own files: read as `factaudit inspect` reads them, ready to run."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from os.path import relpath
from pathlib import Path

import pandas as pd
import yaml

from factaudit.intake.anyfile import read_any
from factaudit.intake.load import Loaded, load
from factaudit.intake.mapping import Mapping
from factaudit.tables.counts import is_counts

SCHEMA_NAME = "experiment.schema.json"
_JUDGES = "# What judges the claims (`factaudit list evaluators`).\n"
_EVALUATORS = """\
evaluators:
  - rouge2                          # word overlap: a floor that every evaluator has to beat
  - always-yes
  # - minicheck: {model: flan-t5-large}             # pip install 'factaudit[hf]'
  # - llm: {model: gpt-4o-mini, concurrency: 32}    # OPENAI_API_KEY, or base_url: http://localhost:11434/v1
  # - my_metric:Numbers                             # a class or a function of yours, beside this file
"""
_BLANK = """\
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
_COMMENTED = textwrap.indent(_EVALUATORS, "# ")
_REST = """\
# What the calls to language models may cost in all, in US dollars. `factaudit cost` says what they will.
# max_cost: 5

# Only some audits (`factaudit list audits`); by default all that apply.
# audits: [rates, differences, quantification]

# Every random step starts from it.
seed: 0
"""
_ESTIMATE = """\
# Few labels: `factaudit sample` draws which claims to label; then this gives each system's error rate.
# estimate:
#   labels: [labels.jsonl]
#   sample: sample.parquet

"""


def experiment_yaml(
    files: Sequence[Path], out: Path, mapping: Mapping, say: Callable[[str], None] = lambda line: None
) -> str:
    """The text of an experiment YAML at ``out`` for files of claims, verdicts or counts, of any shape.

    ``say`` gets what was taken for what. Raises `InputError` where the files cannot be read as claims.
    """
    head = _head(out)
    title = f"title: {_plain(_titled(files))}\n\n"
    tables = [read_any(path) for path in files]
    named = [_from(out, path) for path in files]
    if len(files) == 1 and is_counts(tables[0]):
        return f"{head}{title}# Published error rates: no claims to judge.\ncounts: {_plain(named[0])}\n\n{_REST}"
    loaded = load(files, mapping, say)
    claims, verdicts = named[:1], named[1:]
    if loaded.mapping is None:  # all is ours: a table of verdicts says whose
        claims = [name for name, table in zip(named, tables, strict=True) if "evaluator" not in table]
        verdicts = [name for name in named if name not in claims]
    text = head + title + _inputs(claims, verdicts, loaded)
    if loaded.verdicts is None:
        text += _JUDGES + _EVALUATORS + "\n"
    else:
        text += "# Evaluators to run besides.\n" + _COMMENTED + "\n"
    if loaded.claims is None or loaded.claims["label"].isna().any():
        text += _ESTIMATE
    return text + _REST


def blank_yaml(out: Path) -> str:
    """The text of an experiment YAML at ``out`` for no files in particular: each kind of input, most as a comment."""
    return _head(out) + _BLANK + _JUDGES + _EVALUATORS + "\n" + _ESTIMATE + _REST


def _head(out: Path) -> str:
    return (
        f"# yaml-language-server: $schema={SCHEMA_NAME}\n"
        f"# Check it: factaudit validate {out.name}    Run it: factaudit run {out.name}\n\n"
    )


def _inputs(claims: Sequence[str], verdicts: Sequence[str], loaded: Loaded) -> str:
    text = f"# {_held(loaded.claims)}.\nclaims: {_flow(claims)}\n\n"
    if verdicts:
        text += f"# What evaluators said already.\nverdicts: {_flow(verdicts)}\n\n"
    if loaded.mapping is not None:
        own = yaml.safe_dump(
            loaded.mapping.model_dump(exclude_defaults=True, exclude={"auto"}, mode="json"),
            sort_keys=False,
            allow_unicode=True,
        )
        text += "# How the columns are read, ours: yours. `factaudit inspect` shows what each column holds.\n"
        text += "mapping:\n" + textwrap.indent(own, "  ") + "\n"
    return text


def _held(claims: pd.DataFrame | None) -> str:
    if claims is None:
        return "Claims"
    labelled = int(claims["label"].notna().sum())
    without = int(claims["doc"].isna().sum())
    text = f"{len(claims):,} claims, {labelled:,} labelled"
    return text + (f", {without:,} without a document: what reads text is left out" if without else "")


def _from(out: Path, path: Path) -> str:
    """The path as the YAML names it: relative to the YAML's folder."""
    return Path(relpath(path.resolve(), out.resolve().parent)).as_posix()


def _titled(files: Sequence[Path]) -> str:
    return "Evaluators compared on " + " and ".join(path.name.split(".")[0] for path in files[:2])


def _plain(text: str) -> str:
    return yaml.safe_dump(text, allow_unicode=True, width=1000).removesuffix("\n").removesuffix("\n...")


def _flow(names: Sequence[str]) -> str:
    return _plain(names[0]) if len(names) == 1 else "[" + ", ".join(map(_plain, names)) + "]"
