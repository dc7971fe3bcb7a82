"""Every format on small files of its form: the tables that they become, what notes say, and how bad
files are refused.

A case of `golden/conversions.yaml` has files (or those of `logs/`), a format with its options, and
what comes of it.
``detected``: the format that the first source is known as. After a change that is meant, write what
comes of them now: ``python tests/test_conversions.py``, and read the difference.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from audit_tables import load_input_tables

from factaudit import FactauditError, convert
from factaudit.datasets import FORMATS
from factaudit.datasets.format_detection import detect_dataset_format
from factaudit.datasets.logs import LOG_RECIPES
from factaudit.tables import list_plain_rows
from factaudit.tables.questions import AmbiguousReadingError

GOLDEN = Path(__file__).parent / "golden" / "conversions.yaml"
LOGS = Path(__file__).parent / "logs"
CASES = yaml.load(GOLDEN.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def place(value: Any, folder: Path) -> Any:
    """A source or an option with the folders that it stands for."""
    if isinstance(value, list):
        return [place(one, folder) for one in value]
    return (
        value.replace("FOLDER", str(folder)).replace("LOGS", str(LOGS))
        if isinstance(value, str)
        else value
    )


def list_rows(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    rows = [] if table is None else list_plain_rows(table)
    return [{name: cell for name, cell in row.items() if cell is not None} for row in rows]


def run_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What comes of a case, in the terms of the golden file."""
    for name, content in case.get("files", {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(
            content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
        )
    sources = place(case["sources"], folder)
    options = {key: place(value, folder) for key, value in case.get("options", {}).items()}
    try:
        if case["format"] in LOG_RECIPES:
            found = load_input_tables(sources, options.get("mapping"))
        else:
            found = convert(case["format"], sources, **options)
    except AmbiguousReadingError:
        return {"asks": True}
    except FactauditError as error:
        return {"error": str(error).replace(str(folder), "FOLDER").replace(str(LOGS), "LOGS")}
    tables = {"claims": found.claims, "verdicts": found.verdicts, "annotations": found.annotations}
    said = {name: rows for name, table in tables.items() if (rows := list_rows(table))}
    if case["format"] in FORMATS and found.notes:
        said["notes"] = [note.replace(str(folder), "FOLDER") for note in found.notes]
    if "detected" in case:
        said["detected"] = detect_dataset_format(sources[0])
    return said


@pytest.mark.parametrize("name", CASES)
def test_a_conversion_is_as_it_was(name, tmp_path):
    case = CASES[name]
    found = run_case(case, tmp_path)
    expected = {
        key: case[key] for key in case if key not in ("files", "format", "sources", "options")
    }
    if "claims" in found:
        for key in ("claims", "verdicts", "annotations"):
            assert found.pop(key, []) == [pytest.approx(row) for row in expected.pop(key, [])]
    assert found == expected


def represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    """Texts of several lines as they are."""
    style = (
        "|" if "\n" in text and not any(line.endswith(" ") for line in text.split("\n")) else None
    )
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def write_golden() -> None:
    yaml.SafeDumper.add_representer(str, represent_text)
    for case in CASES.values():
        with tempfile.TemporaryDirectory() as folder:
            found = run_case(case, Path(folder))
        inputs = {
            key: case[key] for key in ("files", "format", "sources", "options") if key in case
        }
        case.clear()
        case.update(inputs | found)
    GOLDEN.write_text(
        yaml.safe_dump(CASES, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8"
    )


if __name__ == "__main__":
    write_golden()
