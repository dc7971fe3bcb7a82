"""Files as tools, spreadsheets and people write them: each is read rightly, asked about with a
command that reads it rightly, or refused with the reason; none is read wrongly.

A case is some files, what people and the judges say of its claims (a digit or ``-`` each), and how
it ends where it is
not read: ``asked``, or what the refusal says. Whatever is offered reads the files, or asks one
thing more; ``offered``: false where no offer alone is the right reading, which the user has to say.
``doc``, ``claim``, ``systems``: where they matter.

- everyday.jsonl: what most people have; nearly all of it is read without a question;
- several.jsonl: claims, labels and judgements in files of their own, which are joined;
- shapes.jsonl: hostile ones (in all three ``<claim 3>`` and ``<doc 3>`` stand for those of
  `town_tables`);
- gauntlet: real exports of tools, and what each says (readings.yaml), written down before any was
  read.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from table_readings import describe_tables
from town_tables import CLAIMS, DOCS

import factaudit.datasets.input_tables
from factaudit import FactauditError
from factaudit.cli import cli
from factaudit.datasets.input_tables import load_input_tables
from factaudit.tables.questions import AmbiguousReadingError, PossibleReading

FOLDER = Path(__file__).parent
TEXTS = {"claim": CLAIMS, "doc": DOCS}


@dataclass(frozen=True)
class Case:
    """Files by their names, what they say, and how their reading ends."""

    files: Mapping[str, bytes]
    expected: Mapping[str, Any]
    ends: str = "right"
    offered: bool = True

    def write(self, folder: Path) -> list[Path]:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return [folder / name for name in self.files]

    def is_right(self, paths: list[Path], mapping: Any = None) -> bool:
        loaded = load_input_tables(paths, mapping)
        found = {} if loaded.claims is None else describe_tables(loaded)
        return all(found.get(key) == value for key, value in self.expected.items())

    def is_right_or_asked(self, paths: list[Path], reading: PossibleReading) -> bool:
        try:
            return self.is_right(paths, reading.mapping)
        except AmbiguousReadingError:
            return False
        except FactauditError:
            if "sheet" not in reading.mapping:  # one sheet of a workbook may explain the others
                raise
            return False


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").strip().split("\n")]


def make_town_case(row: Mapping[str, Any]) -> Case:
    contents = (
        row["files"] if "files" in row else {row["file"]: row if "base64" in row else row["text"]}
    )
    files = {}
    for name, content in contents.items():
        if isinstance(content, str):
            text = re.sub(
                r"<(claim|doc) (\d)>", lambda found: TEXTS[found[1]][int(found[2])], content
            )
            files[name] = text.encode()
        else:
            files[name] = base64.b64decode(content["base64"])
    expected = {
        "claims": len(row["labels"]),
        "people": row.get("people", 0),
        "evaluators": row.get("judges", {}),
    }
    expected |= {key: row[key] for key in ("labels", "doc", "systems") if key in row}
    return Case(files, expected, row.get("ends", "right"), row.get("offered", True))


def make_gauntlet_case(name: str, row: Mapping[str, Any]) -> Case:
    files = {file: (FOLDER / "gauntlet" / file).read_bytes() for file in row.get("files", [name])}
    expected = {
        key: value for key, value in row.items() if key not in ("shape", "files", "asks", "refuses")
    }
    expected = {"labels": "-" * row["claims"], "people": 0, "evaluators": {}, **expected}
    return Case(files, expected, "asked" if row.get("asks") else row.get("refuses", "right"))


EVERYDAY = {row["name"]: make_town_case(row) for row in read_lines("everyday.jsonl")}
SEVERAL = {row["name"]: make_town_case(row) for row in read_lines("several.jsonl")}
HOSTILE = {
    f"{row['file']} {at}": make_town_case(row) for at, row in enumerate(read_lines("shapes.jsonl"))
}
READINGS = yaml.safe_load((FOLDER / "gauntlet/readings.yaml").read_text(encoding="utf-8"))
GAUNTLET = {name: make_gauntlet_case(name, row) for name, row in READINGS.items()}
ASKED_OF_TOOLS = [name for name, case in GAUNTLET.items() if case.ends == "asked"]
CASES = [
    pytest.param(case, marks=[pytest.mark.slow] if at < len(HOSTILE) and at % 8 else [], id=name)
    for at, (name, case) in enumerate(
        [*HOSTILE.items(), *EVERYDAY.items(), *SEVERAL.items(), *GAUNTLET.items()]
    )
    if name not in ASKED_OF_TOOLS  # their commands are run below
]


def skip_without_excel(case: Case) -> None:
    if any(name.endswith(".xlsx") for name in case.files):
        pytest.importorskip("openpyxl", reason="needs the [excel] extra")


@pytest.mark.parametrize("case", CASES)
def test_files_are_read_asked_about_or_refused(case, tmp_path):
    skip_without_excel(case)
    paths = case.write(tmp_path)
    if case.ends == "right":
        assert case.is_right(paths)
    elif case.ends == "asked":
        with pytest.raises(AmbiguousReadingError) as asked:
            load_input_tables(paths)
        offers = [case.is_right_or_asked(paths, reading) for reading in asked.value.readings]
        assert any(offers) == case.offered, asked.value
    else:
        with pytest.raises(FactauditError, match=case.ends):
            load_input_tables(paths)


def test_most_everyday_files_are_read_without_a_question():
    assert sum(case.ends == "right" for case in EVERYDAY.values()) >= 38
    assert len(EVERYDAY) == 43


@pytest.mark.parametrize("name", ASKED_OF_TOOLS)
def test_commands_that_are_offered_work_and_one_reads_rightly(name, tmp_path, monkeypatch):
    case = GAUNTLET[name]
    skip_without_excel(case)
    paths = case.write(tmp_path)
    loaded = []
    load = load_input_tables

    def remember(*arguments, **options):
        tables = load(*arguments, **options)
        loaded.append(describe_tables(tables))
        return tables

    monkeypatch.setattr(factaudit.datasets.input_tables, "load_input_tables", remember)
    asked = CliRunner().invoke(cli, ["inspect", *map(str, paths)], standalone_mode=False)
    assert isinstance(asked.exception, Exception)
    commands = [line for line in str(asked.exception).splitlines() if line[:4] in ("try ", "or  ")]
    commands = [line[10:] for line in commands]
    for command in commands:
        done = CliRunner().invoke(cli, shlex.split(command)[1:], standalone_mode=False)
        asks_more = command != commands[0] and "can be read in more than one way" in str(
            done.exception
        )
        assert done.exit_code == 0 or asks_more, command
    assert case.expected in [{key: one[key] for key in case.expected} for one in loaded]
    assert len({*commands}) == len(commands)


def test_every_verb_reads_the_sheet_that_is_named(tmp_path, call):
    """One that looked into the workbook again, without the sheet, asked the same question for
    ever."""
    pytest.importorskip("openpyxl", reason="needs the [excel] extra")
    path = FOLDER / "gauntlet/two_sheets.xlsx"
    for command in (
        ["audit", path, "--replicates", 0, "--out", tmp_path / "run"],
        ["inspect", path],
    ):
        code, _, err = call(*command, "--sheet", "Batch 1")
        assert code == 0, err
