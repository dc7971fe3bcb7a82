"""The recipes by which logs of evaluation tools are read: marks, paths of rows, and what each field is, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import yaml


@dataclass(frozen=True)
class LogRecipe:
    """How a tool's log is read; `logs.yaml` says what each key means."""

    summary: str
    example: str
    marks: Sequence[str]
    files: Sequence[str]
    rows: Sequence[str] = ()
    verdicts: Sequence[str] = ()
    name: Sequence[str] = ("name",)
    same: Sequence[str] = ()
    first: Sequence[str] = ()
    order: Sequence[str] = ()
    id: Sequence[str] = ()
    claim: Sequence[str] = ()
    doc: Sequence[str] = ()
    label: Sequence[str] = ()
    system: Sequence[str] = ()
    evaluators: Sequence[str] = ()
    score: Sequence[str] = ()
    prediction: Sequence[str] = ()
    raw: Sequence[str] = ()
    error: Sequence[str] = ()
    direction: Sequence[str] = ()
    labels: Mapping[str, int | None] | None = None
    fields: Sequence[str] = ("*",)
    ignore: Sequence[str] = ()


def _load_log_recipes() -> dict[str, LogRecipe]:
    text = files("factaudit.datasets").joinpath("logs.yaml").read_text(encoding="utf-8")
    return {name: LogRecipe(**keys) for name, keys in yaml.safe_load(text).items()}


LOG_RECIPES = _load_log_recipes()
#: Options of ``convert`` for logs, and the keys of a mapping that they stand for.
LOG_OPTION_KEYS = {"metrics": "evaluator", "scales": "scale", "labels": "labels"}
