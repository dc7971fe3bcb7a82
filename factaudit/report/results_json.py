"""``results.json`` as the report reads it: checked, with every key; and as a run writes it, with its tables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factaudit.arrays.row_table import RowTable
from factaudit.audit import find_audit_declaration
from factaudit.errors import InputError, Problem
from factaudit.files import replace_file_atomically, write_json

RESULTS_SCHEMA = "factaudit.results/2"
#: What is in ``results.json``, and of what type.
_RESULT_KEYS: dict[str, Any] = {"signature": "", "about": {}, "audits": {}, "findings": [], "calls": [], "sections": []}
_REQUIRED_KEYS = ("signature", "audits")


def write_results_json(run_dir: Path, content: Mapping[str, Any]) -> None:
    """Write the content of `Results.to_dict` into a run folder.

    Rows that are a product go to ``tables/NAME.parquet``; ``results.json`` has their summary under ``audits``, and
    under ``tables`` where they lie and how many they are (``n_left_out``: how many were not computed).
    """
    audits, tables = dict(content["audits"]), {}
    for name, rows in content["audits"].items():
        if (summary := find_audit_declaration(name).summary) is None:
            continue
        product = RowTable.from_rows(rows)
        path = _locate_row_table(run_dir, name)
        with replace_file_atomically(path) as temporary:
            product.write(temporary, content["signature"])
        audits[name] = summary.compute(product) if product else []
        tables[name] = {
            "file": path.relative_to(run_dir).as_posix(),
            "n_rows": len(product),
            "n_left_out": product.n_left_out,
        }
    for path in (run_dir / "tables").glob("*.parquet"):  # of an earlier run
        if path.stem not in tables:
            path.unlink()
    write_json(run_dir / "results.json", {**content, "audits": audits, "tables": tables})


def list_product_table_files_of_results_json(run_dir: Path) -> list[str]:
    """The tables of a run folder that its ``results.json`` names, relative to it."""
    found = read_results_json(run_dir)["audits"]
    paths = (_locate_row_table(run_dir, name) for name, rows in found.items() if isinstance(rows, RowTable))
    return [path.relative_to(run_dir).as_posix() for path in paths if path.is_file()]


def _locate_row_table(run_dir: Path, audit: str) -> Path:
    return run_dir / "tables" / f"{audit}.parquet"


def read_results_json(run_dir: Path) -> Mapping[str, Any]:
    """The ``results.json`` of a run folder, with every key; raises `InputError` where it is none of ours.

    Rows in a table of their own are a `RowTable`, read when they are asked for.
    """
    path = run_dir / "results.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_nan_constant)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(str(run_dir), [Problem("not a run folder: it has no results.json")]) from None
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), [Problem(f"not JSON: {error}")]) from None
    schema = results.get("schema") if isinstance(results, dict) else None
    if schema != RESULTS_SCHEMA:
        raise InputError(str(path), [Problem(f"expected the schema {RESULTS_SCHEMA!r}, found {schema!r}")])
    whole = {key: results.get(key, type(empty)()) for key, empty in _RESULT_KEYS.items()}
    wrong = [key for key, empty in _RESULT_KEYS.items() if type(whole[key]) is not type(empty)]
    if wrong or not {*_REQUIRED_KEYS} <= {*results}:
        raise InputError(str(path), [Problem(f"expected the keys that a run writes: {', '.join(_RESULT_KEYS)}")])
    for name in whole["audits"]:
        # The name becomes a file's.
        if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise InputError(str(path), [Problem(f"expected audit names of letters, digits and _, found {name!r}")])
    for name, told in results.get("tables", {}).items():
        whole["audits"][name] = RowTable(_locate_row_table(run_dir, name), told["n_rows"], whole["signature"])
    return results | whole


def _refuse_nan_constant(constant: str) -> None:
    raise ValueError(f"{constant} is no figure: an undefined one is null")
