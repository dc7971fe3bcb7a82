"""The gauntlet: small files as tools, spreadsheets and people write them, and what each says (readings.yaml).

A file is read rightly, or its open question is asked with commands that work and of which one reads it rightly; none is
read wrongly.
"""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from table_readings import describe_tables

import factaudit.input_tables
from factaudit.cli import cli
from factaudit.errors import InputError
from factaudit.input_tables import load_input_tables
from factaudit.tables.questions import AmbiguousReadingError
from factaudit.tables.table_loading import LoadedTables

FOLDER = Path(__file__).parent / "gauntlet"
CASES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "readings.yaml").read_text(encoding="utf-8"))


def list_files(name: str) -> list[Path]:
    return [FOLDER / file for file in CASES[name].get("files", [name])]


def describe_case(name: str) -> dict[str, Any]:
    case = {key: value for key, value in CASES[name].items() if key not in ("shape", "files", "asks", "refuses")}
    return {"labels": "-" * case["claims"], "people": 0, "evaluators": {}, **case}


def judge_reading(name: str) -> str:
    """``right``, ``asked`` or ``misread``."""
    expected = describe_case(name)
    lines: list[str] = []
    try:
        found = describe_tables(load_input_tables(list_files(name), None, lines.append))
    except AmbiguousReadingError:
        return "asked"
    except InputError as error:
        return "refused" if "refuses" in CASES[name] and CASES[name]["refuses"] in str(error) else str(error)
    assert {key: found[key] for key in expected} == expected, f"{name}: {lines}"
    return "misread" if CASES[name].get("asks") else "right"


def skip_without_excel(name: str) -> None:
    if name.endswith(".xlsx") and find_spec("openpyxl") is None:
        pytest.skip("needs the [excel] extra (openpyxl)")


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_read_as_it_was_meant_or_asked_about(name: str) -> None:
    skip_without_excel(name)
    expected = "refused" if "refuses" in CASES[name] else "asked" if CASES[name].get("asks") else "right"
    assert judge_reading(name) == expected


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.get("asks")])
def test_a_question_has_commands_that_work_and_one_reads_it_rightly(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without_excel(name)
    loaded: list[LoadedTables] = []
    load = factaudit.input_tables.load_input_tables

    def remember(*arguments: Any, **options: Any) -> LoadedTables:
        loaded.append(load(*arguments, **options))
        return loaded[-1]

    monkeypatch.setattr(factaudit.input_tables, "load_input_tables", remember)
    files = list(map(str, list_files(name)))
    asked = CliRunner().invoke(cli, ["inspect", *files], standalone_mode=False)
    assert isinstance(asked.exception, Exception)
    commands = [line.strip() for line in str(asked.exception).splitlines() if line.startswith("  factaudit inspect")]
    assert commands
    found = []
    for command in commands:
        done = CliRunner().invoke(cli, shlex.split(command)[1:], catch_exceptions=False, standalone_mode=False)
        assert done.exit_code == 0, command
        found.append(describe_tables(loaded[-1]))
    expected = describe_case(name)
    assert expected in [{key: one[key] for key in expected} for one in found]
    assert len({*commands}) == len(commands)


def test_every_verb_reads_the_sheet_that_is_named(tmp_path, call):
    """One that looked into the workbook again, without the sheet, asked the same question for ever."""
    pytest.importorskip("openpyxl", reason="needs the [excel] extra")
    path = FOLDER / "two_sheets.xlsx"
    for command in (
        ["audit", path, "--sheet", "Batch 1", "--out", tmp_path / "run"],
        ["inspect", path, "--sheet", "Batch 1"],
    ):
        code, _, err = call(*command)
        assert code == 0, err
