"""How is ``results.json`` written, and how is it read and checked?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factaudit.errors import InputError, Problem
from factaudit.files import write_json

RESULTS_SCHEMA = "factaudit.results/2"
#: The keys of ``results.json`` and their types.
_RESULT_KEYS: dict[str, Any] = {
    "signature": "",
    "about": {},
    "audits": {},
    "findings": [],
    "calls": [],
    "sections": [],
}
_REQUIRED_KEYS = ("signature", "audits")


def write_results_json(run_dir: Path, content: Mapping[str, Any]) -> None:
    """Write the content of `Results.to_dict` into a run folder. ``tables`` names the CSV file of
    each audit."""
    tables = {name: f"tables/{name}.csv" for name, rows in content["audits"].items() if rows}
    write_json(run_dir / "results.json", {**content, "tables": tables}, is_compact=True)


def read_results_json(run_dir: Path) -> Mapping[str, Any]:
    """The content of a run folder's ``results.json``, with every key. Raises `InputError` if the
    file is not one of ours."""
    path = run_dir / "results.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_nan_constant)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            str(run_dir),
            [
                Problem(
                    "this is not a run folder: it has no results.json; expected a folder that"
                    " `factaudit audit` or `factaudit run` wrote"
                )
            ],
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), [Problem(f"not JSON: {error}")]) from None
    schema = results.get("schema") if isinstance(results, dict) else None
    if schema != RESULTS_SCHEMA:
        raise InputError(
            str(path), [Problem(f"expected the schema {RESULTS_SCHEMA!r}, found {schema!r}")]
        )
    whole = {key: results.get(key, type(empty)()) for key, empty in _RESULT_KEYS.items()}
    wrong = [key for key, empty in _RESULT_KEYS.items() if type(whole[key]) is not type(empty)]
    if wrong or not {*_REQUIRED_KEYS} <= {*results}:
        raise InputError(
            str(path), [Problem(f"expected the keys that a run writes: {', '.join(_RESULT_KEYS)}")]
        )
    for name in whole["audits"]:
        # The name becomes part of a file name.
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise InputError(
                str(path),
                [Problem(f"expected audit names of letters, digits and _, found {name!r}")],
            )
    return results | whole


def _refuse_nan_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no figure: an undefined one is null")
