"""The worlds of ``worlds.yaml`` as objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

WORLDS = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))


def make_worlds(kind: type[Any], fields_by_name: dict[str, dict[str, Any]]) -> tuple[Any, ...]:
    """An object of each name; lists become tuples, so that worlds can be keys."""
    worlds = []
    for name, given in fields_by_name.items():
        fields = {
            key: tuple(value) if isinstance(value, list) else value for key, value in given.items()
        }
        worlds.append(kind(name=name, **fields))
    return tuple(worlds)
