"""Samples of Inspect's logs (UKGovernmentBEIS/inspect_ai) in JSON. Its archives (``.eval``) are
refused with the command of Inspect that makes JSON of them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factaudit.datasets.source_files import read_json
from factaudit.errors import InputError, Problem


def read_inspect_log(path: Path) -> tuple[str | None, list[Any]]:
    """The name of a log's task, and its samples.

    Where a scorer gives several values, each is a score of its own: ``judge.faithful``.
    """
    if path.suffix.lower() == ".eval":
        command = f"inspect log dump {shlex.quote(str(path))} > {shlex.quote(path.stem)}.json"
        message = f"an archive of Inspect, which is read as JSON: run `{command}`"
        raise InputError(str(path), [Problem(message)])
    document: dict[str, Any] = read_json(path, dict[str, Any])
    samples = [one for one in document.get("samples") or [] if isinstance(one, dict)]
    named = [one | {"scores": _name_scores(one)} for one in samples]
    return (document.get("eval") or {}).get("task"), named


def _name_scores(sample: Mapping[str, Any]) -> dict[str, Any]:
    """The scores of a sample by name, without a value where the sample failed."""
    found: dict[str, Any] = {}
    for name, one in (sample.get("scores") or {}).items():
        value = one.get("value")
        parts = {name: value}
        if isinstance(value, Mapping):
            parts = {f"{name}.{part}": said for part, said in value.items()}
        for part, said in parts.items():
            found[part] = {"value": None if sample.get("error") else said}
    return found
