"""Every verb, and Python, reads the same files with the same options to the same tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from audit_tables import load_input_tables
from table_readings import describe_tables

import factaudit as fa
import factaudit.datasets.input_tables
from factaudit import UsageError
from factaudit.cli import cli
from factaudit.tables.mapping_options import parse_column_mapping_options
from factaudit.tables.table_loading import LoadedTables

N = 12
LABELS = [int(i % 3 > 0) for i in range(N)]
SCORES = [1 + (i * 5) % 8 / 2 for i in range(N)]
PLAIN = {
    "case_id": [f"q{i}" for i in range(N)],
    "model": [["m1", "m2"][i % 2] for i in range(N)],
    "answer": [f"The bridge {i} was built in {1900 + i}." for i in range(N)],
    "context": [
        f"Bridge {i}, of iron, was built in {1900 + i} and painted later." for i in range(N)
    ],
    "human_label": ["good" if x else "bad" for x in LABELS],
    "gpt": SCORES,
}
WORDS = [
    "--labels",
    "good=1,bad=0",
    "--scale",
    "gpt=1:5",
    "--threshold",
    "gpt=3",
    "--evaluator",
    "gpt",
]
OPTIONS = {
    "labels": ["good=1,bad=0"],
    "scale": ["gpt=1:5"],
    "threshold": ["gpt=3"],
    "evaluator": ["gpt"],
}


@dataclass(frozen=True)
class Case:
    """A way to write the table: ``write`` makes the file; options as arguments, and as
    `parse_column_mapping_options` takes them."""

    suffix: str
    write: Callable[[pd.DataFrame, Path], object]
    arguments: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    leaves: tuple[str, ...] = ()


def write_log(table: pd.DataFrame, path: Path) -> None:
    rows = [{"run": {"id": 7}, **row} for row in json.loads(table.to_json(orient="records"))]
    path.write_text(
        json.dumps({"results": [{"input": row, "ok": None} for row in rows]}), encoding="utf-8"
    )


def write_sheets(table: pd.DataFrame, path: Path) -> None:
    pytest.importorskip("openpyxl", reason="needs the [excel] extra")
    with pd.ExcelWriter(path) as book:
        table.iloc[:3].to_excel(book, sheet_name="trial", index=False)
        table.to_excel(book, sheet_name="all", index=False)


CASES = {
    "wide": Case(".csv", lambda table, path: table.to_csv(path, index=False)),
    "no text": Case(
        ".csv", lambda table, path: table.to_csv(path, index=False), leaves=("answer", "context")
    ),
    "semicolons": Case(
        ".csv", lambda table, path: table.to_csv(path, index=False, sep=";", decimal=",")
    ),
    "lines": Case(".jsonl", lambda table, path: table.to_json(path, orient="records", lines=True)),
    "parquet": Case(".parquet", lambda table, path: table.to_parquet(path)),
    "sheet": Case(".xlsx", write_sheets, ("--sheet", "all"), (("sheet", "all"),)),
    "log": Case(".json", write_log, ("--evaluator", "input.gpt"), (("evaluator", ["input.gpt"]),)),
    "renamed": Case(
        ".csv",
        lambda table, path: table.rename(columns={"answer": "x1"}).to_csv(path, index=False),
        ("--claim", "x1"),
        (("claim", "x1"),),
    ),
}
#: Of each verb that reads tables the command for a file; further verbs with ``--label`` belong
#: here, too.
VERBS = {
    "inspect": ["inspect", "FILE"],
    "judge": ["judge", "FILE", "--evaluator", "random:seed=1", "--out", "judged.parquet"],
    "audit": ["audit", "FILE", "--out", "run", "--replicates", "0"],
    "diff": ["diff", "FILE", "FILE"],
    "sample": ["sample", "FILE", "--budget", "6", "--out", "sample.parquet"],
    "estimate": ["estimate", "FILE", "--method", "raw", "--out", "rates"],
    "triage": ["triage", "FILE", "--target", "population", "--out", "triage"],
    "perturb": ["perturb", "FILE", "--out", "variants.parquet"],
}


def write_case(name: str, folder: Path) -> tuple[Path, list[str], Any]:
    """The file, its options as arguments, and the mapping that they are."""
    case = CASES[name]
    path = folder / f"table{case.suffix}"
    case.write(pd.DataFrame(PLAIN).drop(columns=[*case.leaves]), path)
    arguments = [*WORDS, *case.arguments]
    options = {**OPTIONS, **dict(case.options)}
    if name == "log":
        arguments = [text.replace("gpt=", "input.gpt=") for text in WORDS[:-2]] + [*case.arguments]
        options |= {"scale": ["input.gpt=1:5"], "threshold": ["input.gpt=3"]}
    return path, arguments, parse_column_mapping_options(**options)


def drop_evaluators(arguments: list[str]) -> list[str]:
    """The arguments for a verb whose ``--evaluator`` says who is to judge."""
    places = [at for at, one in enumerate(arguments) if one == "--evaluator"]
    return [one for at, one in enumerate(arguments) if at not in places and at - 1 not in places]


class Readings(list[dict[str, Any]]):
    """What is read, each time that tables are; ``ends``: then the work ends."""

    ends = False


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Readings:
    found = Readings()
    load = factaudit.datasets.input_tables._load_known_formats

    def remember(*arguments: Any) -> LoadedTables:
        tables = load(*arguments)
        found.append(describe_tables(tables))
        if found.ends:
            raise UsageError("read")
        return tables

    monkeypatch.setattr(factaudit.datasets.input_tables, "_load_known_formats", remember)
    return found


def test_every_verb_that_maps_columns_is_tried():
    mapping_verbs = {
        name
        for name, verb in cli.commands.items()
        if any("--label" in one.opts for one in verb.params)
    }
    assert mapping_verbs == {*VERBS}


@pytest.mark.parametrize("name", CASES)
def test_all_verbs_read_the_same(name, tmp_path, monkeypatch, loaded, call):
    monkeypatch.chdir(tmp_path)
    path, arguments, mapping = write_case(name, tmp_path)
    right = describe_tables(load_input_tables([path], mapping))
    assert right["labels"] == "".join(map(str, LABELS))
    assert [*right["evaluators"].values()] == ["".join(str(int(x > 3)) for x in SCORES)]
    loaded.ends = True
    for verb, command in VERBS.items():
        loaded.clear()
        own = arguments if verb != "judge" else drop_evaluators(arguments)
        _, _, err = call(*[path if one == "FILE" else one for one in command], *own)
        assert loaded == [right], (verb, err)


@pytest.mark.slow
def test_all_verbs_work_on_a_table_of_others(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    path, arguments, _ = write_case("semicolons", tmp_path)
    for verb, command in VERBS.items():
        own = arguments if verb != "judge" else drop_evaluators(arguments)
        code, _, err = call(*[path if one == "FILE" else one for one in command], *own)
        assert code == 0, (verb, err)


@pytest.mark.parametrize("name", CASES)
def test_python_reads_the_same(name, tmp_path, loaded):
    path, _, mapping = write_case(name, tmp_path)
    right = describe_tables(load_input_tables([path], mapping))
    loaded.clear()
    claims = fa.read_claims(path, mapping=mapping)
    verdicts = fa.read_verdicts(path, mapping=mapping)
    assert describe_tables(LoadedTables(claims, verdicts)) == right
    loaded.ends = True
    for verb, *more in (
        (fa.compare, None),
        (fa.judge, ["random:seed=1"]),
        (fa.estimate_rates, None),
    ):
        with pytest.raises(UsageError, match="read"):
            verb(path, *more, mapping=mapping)
    assert len(loaded) == 5
    assert all(one == right for one in loaded)


class ArrowStream:
    """What polars, DuckDB and others give: a stream of Arrow."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = pa.Table.from_pandas(table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class HubDataset:
    """What a `datasets.Dataset` gives."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table

    def to_pandas(self) -> pd.DataFrame:
        return self._table


def make_levels(table: pd.DataFrame) -> pd.DataFrame:
    return table.set_axis(pd.MultiIndex.from_tuples([(name, "") for name in table.columns]), axis=1)


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pa.Table.from_pandas,
        ArrowStream,
        HubDataset,
        make_levels,
        lambda table: table.set_index("case_id"),
    ],
    ids=["pandas", "arrow", "stream", "dataset", "levels", "index"],
)
def test_frames_are_read_as_their_files(make, tmp_path, loaded):
    path, _, mapping = write_case("parquet", tmp_path)
    right = describe_tables(load_input_tables([path], mapping))
    loaded.clear()
    frame = make(pd.DataFrame(PLAIN))
    fa.read_claims(frame, mapping=mapping)
    fa.read_verdicts(frame, mapping=mapping)
    fa.compare(frame, None, mapping=mapping, replicates=0, audits=["rates"])
    assert len(loaded) == 3
    assert all(one == right for one in loaded)


def test_python_says_what_is_missing(tmp_path):
    path = tmp_path / "labels.csv"
    pd.DataFrame({"claim": PLAIN["answer"], "label": LABELS}).to_csv(path, index=False)
    with pytest.raises(UsageError, match=r"labels\.csv: no verdicts in it"):
        fa.read_verdicts(path)
