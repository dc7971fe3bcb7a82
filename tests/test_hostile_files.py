"""Files that are no files (links to themselves, pipes), and files that unpack to gigabytes: a
message, soon, in little memory. `test_bad_input.py` has files that are merely wrong,
`test_hostility.py` those nobody thought of.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import run_command

from factaudit import InputError
from factaudit.files import UNPACK_LIMIT_VARIABLE
from factaudit.tables import read_table

CLAIM = {"claim_id": "a", "dataset": "D", "claim": "It rains.", "doc": "Rain.", "label": 1}
#: Verbs that read files; FILE is the hostile one.
READERS = (
    "inspect FILE",
    "audit FILE --out run",
    "judge FILE --evaluator rouge2 --out v.jsonl",
    "convert ragtruth FILE --out claims.parquet",
    "convert wice FILE --out claims.parquet",
    "knowledge FILE --out pages.db",
    "factscore FILE --knowledge pages.jsonl --verifier rouge2 --facts model --out run",
    "sample FILE FILE --budget 5 --out sample.parquet",
    "estimate FILE FILE --label-file FILE --sample FILE --out run",
    "triage FILE FILE --label-file FILE --sample FILE --out triage",
    "run FILE --out run",
    "run FILE --dry-run",
    "diff FILE FILE",
    "export jsonl FILE --out out.jsonl",
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pages.jsonl").write_text('{"title": "Rain", "text": "It rains."}\n')


@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_to_itself_and_a_pipe_are_refused(kind, command, capsys, recwarn):
    name = "hostile.yaml" if command.split()[0] == "run" else "hostile.jsonl"
    Path(name).symlink_to(name) if kind == "link" else os.mkfifo(name)
    assert run_command(*command.replace("FILE", name).split()) in (1, 2)
    said = capsys.readouterr().err
    assert name in said
    assert "is a bug" not in said
    assert kind == "link" or "this is a pipe or a device, expected a file" in said
    assert not Path("run/results.json").exists()


def test_an_output_that_is_a_pipe_is_refused(capsys):
    Path("claims.jsonl").write_text(json.dumps(CLAIM) + "\n")
    os.mkfifo("v.jsonl")
    assert run_command("judge", "claims.jsonl", "--evaluator", "rouge2", "--out", "v.jsonl") in (
        1,
        2,
    )
    assert "this is a pipe" in capsys.readouterr().err


# What unpacks to more than the limit
# ------------------------------------------------------------

#: Runs a command in a process of its own and says how much memory it took at the most (KB), and
#: after which message. A child's ru_maxrss begins at its parent's on Linux, and a process of the
#: tests may be large by now.
MEASURED = """
import pathlib, re, resource, sys
from factaudit.cli import main
try:
    main(sys.argv[1:])
finally:
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        peak = re.search(r"VmHWM:\\s+([0-9]+)", status.read_text())[1]
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print("PEAK", peak, file=sys.stderr)
"""


def write_gzip_bomb(path: Path, head: bytes, body: bytes, n_bodies: int, tail: bytes = b"") -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(head)
        for _ in range(n_bodies):
            file.write(body)
        file.write(tail)


#: In place of 500 MB, so that what unpacks to more is soon made.
LIMIT_MEGABYTES = 10


def measure_command(*arguments: str) -> tuple[int, str, int]:
    environment = {**os.environ, UNPACK_LIMIT_VARIABLE: str(LIMIT_MEGABYTES)}
    script = [sys.executable, "-c", MEASURED, *arguments]
    done = subprocess.run(script, capture_output=True, text=True, timeout=900, env=environment)
    *said, peak = done.stderr.strip().splitlines()
    return done.returncode, "\n".join(said), int(peak.split()[1])


MEGABYTE = b"x" * 1_000_000
ROW = (json.dumps(CLAIM | {"doc": "x" * 5000}) + "\n").encode()
BOMBS = {
    "line.jsonl.gz": (b'{"dataset": "', MEGABYTE, 70, b'"}\n'),
    "cell.csv.gz": (b"dataset,claim\nD,", MEGABYTE, 70, b"\n"),
    "rows.csv.gz": (b"dataset,claim\n", b"D,xxxxxxxxxx\n" * 80_000, 70, b""),
    "document.json.gz": (b'["', MEGABYTE, 70, b'"]'),
    "pages.jsonl.gz": (b'{"title": "', MEGABYTE, 70, b'"}\n'),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_more_than_the_limit_is_refused_in_little_memory(name):
    write_gzip_bomb(Path(name), *BOMBS[name])
    for command in (
        ["inspect", name],
        ["knowledge", name, "--out", "pages.db"] if name.startswith("pages") else ["inspect", name],
    ):
        code, said, peak = measure_command(*command)
        assert code == 1, said
        assert name in said
        assert UNPACK_LIMIT_VARIABLE in said or "field larger than field limit" in said
        assert peak < 600_000, f"{peak:,} KB"


@pytest.mark.slow
def test_an_archive_that_unpacks_to_more_than_the_limit_is_refused_before_it_is_read():
    with (
        zipfile.ZipFile("bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as member,
    ):
        for _ in range(70):
            member.write(MEGABYTE)
    code, said, peak = measure_command("inspect", "bomb.xlsx")
    assert code == 1, said
    assert UNPACK_LIMIT_VARIABLE in said
    assert peak < 600_000, f"{peak:,} KB"


def test_a_parquet_file_that_unpacks_to_more_than_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv(UNPACK_LIMIT_VARIABLE, "4")
    rows = pa.table({"dataset": ["D"] * 60, "claim": [f"{n} " + "x" * 100_000 for n in range(60)]})
    pq.write_table(rows, tmp_path / "t.parquet", compression="zstd", use_dictionary=False)
    with pytest.raises(
        InputError, match=r"t\.parquet: unpacks to more than 4 MB; FACTAUDIT_MAX_UNPACKED_MB allows"
    ):
        read_table(tmp_path / "t.parquet")
    pq.write_table(rows, tmp_path / "t.parquet", compression="none", use_dictionary=False)
    assert len(read_table(tmp_path / "t.parquet")) == 60, "a plain file may be large"


def test_the_limit_is_told_and_can_be_set(tmp_path, monkeypatch):
    write_gzip_bomb(tmp_path / "t.jsonl.gz", b"", ROW, 1000)  # 5 MB
    monkeypatch.setenv(UNPACK_LIMIT_VARIABLE, "4")
    with pytest.raises(
        InputError,
        match=r"t\.jsonl\.gz: unpacks to more than 4 MB; FACTAUDIT_MAX_UNPACKED_MB allows more$",
    ):
        read_table(tmp_path / "t.jsonl.gz")
    monkeypatch.setenv(UNPACK_LIMIT_VARIABLE, "6")
    assert len(read_table(tmp_path / "t.jsonl.gz")) == 1000
    monkeypatch.setenv(UNPACK_LIMIT_VARIABLE, "many")
    with pytest.raises(Exception, match="expected a whole number of megabytes, found 'many'"):
        read_table(tmp_path / "t.jsonl.gz")
