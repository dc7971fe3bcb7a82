"""What is read is never written over, and what is written stays where the user said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from conftest import run_command
from scripted_llm import ReplyStore

from factaudit import FactauditError, UsageError, validate_claims, validate_verdicts, write_table
from factaudit.files import (
    TEMPORARY_PREFIX,
    JsonLinesJournal,
    check_outputs,
    delete_abandoned_temporaries,
    delete_unheld_folder,
    hold_folder_lock,
    replace_file_atomically,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an input of every kind, the names of a run folder's own files among them."""
    rows = {
        "claim_id": ["a", "b"],
        "dataset": "D",
        "system": ["x", "y"],
        "claim": "It rains.",
        "doc": "Rain.",
    }
    claims = validate_claims(pd.DataFrame({**rows, "label": [1, 0]}))
    verdicts = validate_verdicts(
        pd.DataFrame({"claim_id": ["a", "b"], "evaluator": "e", "score": [0.9, 0.1]})
    )
    for suffix in (".parquet", ".jsonl"):
        write_table(claims, tmp_path / f"claims{suffix}")
        write_table(verdicts, tmp_path / f"verdicts{suffix}")
    (tmp_path / "pages.jsonl").write_text('{"title": "Rain", "text": "It rains."}\n')
    (tmp_path / "responses.jsonl").write_text('{"topic": "Rain", "output": "It rains."}\n')
    (tmp_path / "experiment.yaml").write_text(
        "claims: claims.parquet\nverdicts: verdicts.parquet\n"
    )
    (tmp_path / "hard.jsonl").hardlink_to(tmp_path / "claims.jsonl")
    (tmp_path / "soft.jsonl").symlink_to(tmp_path / "claims.jsonl")
    (tmp_path / "sub").mkdir()
    ReplyStore(tmp_path / "cache.sqlite").close()
    return tmp_path


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    "command",
    [
        "judge claims.jsonl --evaluator rouge2 --out claims.jsonl",
        "judge claims.jsonl --evaluator rouge2 --out sub/../claims.jsonl",
        "judge claims.jsonl --evaluator rouge2 --out hard.jsonl",
        "judge claims.jsonl --evaluator rouge2 --out soft.jsonl",
        "judge soft.jsonl --evaluator rouge2 --out claims.jsonl",
        "convert llm-aggrefact claims.jsonl --out claims.jsonl",
        "convert llm-aggrefact claims.jsonl --out new.csv --verdicts claims.jsonl",
        "convert llm-aggrefact claims.jsonl --out new.csv --verdicts new.csv",
        "convert aggrefact . --out claims.jsonl",
        (
            "convert aggrefact claims.parquet --option join=tofueval:verdicts.jsonl --out"
            " verdicts.jsonl"
        ),
        "audit claims.parquet verdicts.jsonl --out .",
        "audit claims.jsonl verdicts.parquet --out sub/..",
        "run experiment.yaml --out .",
        "factscore responses.jsonl --knowledge pages.jsonl --verifier rouge2 --out .",
        "dfactscore responses.jsonl --knowledge pages.jsonl --verifier rouge2 --out .",
        "knowledge pages.jsonl --out pages.jsonl",
        "inspect claims.jsonl --write claims.jsonl",
        "diff . sub --out claims.jsonl",
        "sample claims.parquet verdicts.parquet --budget 1 --out verdicts.parquet",
        "triage queue.csv verdicts.parquet --out .",
    ],
)
def test_no_command_writes_over_what_it_reads(folder, monkeypatch, capsys, command):
    monkeypatch.chdir(folder)
    before = contents(folder)
    code = run_command(*command.split())
    said = capsys.readouterr().err
    assert code == 2, said
    assert "over what" in said or "would be written twice" in said or "same file" in said
    assert contents(folder) == before


def test_names_that_only_look_alike_are_others(folder, monkeypatch):
    monkeypatch.chdir(folder)
    check_outputs(["claims.jsonl"], "sub/claims.jsonl", "claims.jsonl.gz", None)
    with pytest.raises(UsageError, match="written twice"):
        check_outputs([], "a.csv", "./a.csv")


# ---- the run folder


def outside(tmp_path: Path) -> Path:
    """A folder of the user's beside the run folder, with files that look like ours."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in (
        "lock",
        "calls.json",
        "notes.txt",
        "a.json",
        f"{TEMPORARY_PREFIX}0-1.csv",
        "rates.csv",
    ):
        (elsewhere / name).write_text("{}")
    return elsewhere


def test_a_run_deletes_nothing_but_its_own(folder, monkeypatch):
    """Names that a changed manifest holds, and what other programs are writing, stay."""
    elsewhere, run = outside(folder), folder / "runs" / "one"
    arguments = ["audit", folder / "claims.jsonl", folder / "verdicts.jsonl", "--out", run]
    arguments += ["--replicates", "0"]
    assert run_command(*arguments) == 0
    names = [
        "../../elsewhere/notes.txt",
        "/etc/hostname",
        str(elsewhere / "a.json"),
        "tables/../../../notes.txt",
    ]
    names += ["claims.parquet", "tables/gone.csv", ".work/lock"]
    (run / ".work" / "run.json").write_text(json.dumps({"files": dict.fromkeys(names, "")}))
    (run / "tables" / "gone.csv").write_text("of an earlier run")
    other = run / "inside" / f"{TEMPORARY_PREFIX}1-2.csv"
    other.parent.mkdir()
    other.write_text("another program's")
    before = contents(elsewhere)
    assert run_command(*arguments) == 0
    assert contents(elsewhere) == before
    assert other.exists()
    assert not (run / "tables" / "gone.csv").exists()


def test_locks_and_journals_are_not_written_through_links(tmp_path):
    elsewhere = outside(tmp_path)
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "lock").symlink_to(elsewhere / "notes.txt")
    (tmp_path / "journal.jsonl").symlink_to(elsewhere / "notes.txt")
    with (
        pytest.raises(FactauditError, match="is a link"),
        hold_folder_lock(tmp_path / "held", "it"),
    ):
        pass
    with pytest.raises(FactauditError, match="is a link"):
        JsonLinesJournal(tmp_path / "journal.jsonl", print)
    assert (elsewhere / "notes.txt").read_text() == "{}"


def test_a_lock_that_is_deleted_while_another_waits_for_it_holds_nobody_up(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    journal, lock_file = tmp_path / "journal", fcntl.flock

    def delete_at_first(*arguments):
        monkeypatch.setattr(fcntl, "flock", lock_file)
        shutil.rmtree(journal)  # as a process does that ends just now
        lock_file(*arguments)

    monkeypatch.setattr(fcntl, "flock", delete_at_first)
    with hold_folder_lock(journal, "it"):
        assert (journal / "lock").exists()
        delete_unheld_folder(journal)
        assert (journal / "lock").exists(), "another process holds it"
    delete_unheld_folder(journal)
    assert not journal.exists()


def test_what_a_living_process_writes_is_left(tmp_path):
    with replace_file_atomically(tmp_path / "mine.csv") as mine:
        mine.write_text("begun")
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        left = [
            tmp_path / f"{TEMPORARY_PREFIX}{ended.pid}-a.csv",
            tmp_path / f"{TEMPORARY_PREFIX}abc.csv",
        ]
        for path in left:
            path.write_text("half")
        delete_abandoned_temporaries(tmp_path.iterdir())
        assert [path for path in left if path.exists()] == []
        assert mine.exists()
    assert os.listdir(tmp_path) == ["mine.csv"]
