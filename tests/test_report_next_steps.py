"""What to do next, at the end of a report: each command that stands there is run on the run itself."""

from __future__ import annotations

import html
import re
import shlex
import shutil
import threading
from pathlib import Path
from urllib.request import urlopen

import pandas as pd
import pytest
from click.testing import CliRunner
from test_screen import make_tables

from factaudit.cli import cli
from factaudit.report.claim_server import make_claim_server
from factaudit.results import compare


def run_command(*arguments: object) -> None:
    result = CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0, (arguments, result.output)


def list_next_commands(run: Path) -> list[str]:
    page = (run / "report.html").read_text(encoding="utf-8")
    section = re.search(r'<section id="next">(.*?)</section>', page, re.DOTALL)
    return [html.unescape(text) for text in re.findall("<code>(.*?)</code>", section[1])] if section else []


def try_next_command(command: str, run: Path, other: Path, work: Path) -> str:
    name, *arguments = shlex.split(command.replace("runs/after", str(other)))[1:]
    if name == "view":
        server = make_claim_server(Path(arguments[0]), 0)
        threading.Thread(target=server.handle_request).start()
        with urlopen(f"http://127.0.0.1:{server.server_port}/") as answer:
            assert answer.status == 200
        server.server_close()
    else:
        written = ("sample.parquet", "labels.html")
        run_command(name, *(work / one if one in written else one for one in arguments))
    return name


def audit_variant(variant: str, folder: Path) -> Path:
    claims, verdicts = make_tables({"a": (0.9, 0.8), "b": (0.8, 0.7)}, n=60 if variant == "few claims" else 300)
    if variant in ("partly labelled", "few claims"):
        claims["label"] = claims["label"].astype("Int64").where(claims.index % 3 == 0)
    if variant == "no labels":
        claims["label"] = pd.NA
    if variant == "no texts":
        claims = claims.drop(columns=["claim", "doc"])
    folder.mkdir()
    claims.to_csv(folder / "claims.csv", index=False)
    verdicts.to_csv(folder / "verdicts.csv", index=False)
    run_command("audit", folder / "claims.csv", folder / "verdicts.csv", "--out", folder / "run", "--replicates", 20)
    return folder / "run"


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("whole", ["view", "diff"]),
        ("partly labelled", ["view", "sample", "diff"]),
        ("few claims", ["view", "sample", "diff"]),
        ("no labels", ["view", "sample", "diff"]),
        ("no texts", ["diff"]),
    ],
)
def test_each_step_that_is_advised_can_be_taken(variant: str, expected: list[str], tmp_path: Path) -> None:
    run, other = audit_variant(variant, tmp_path / "before"), tmp_path / "after"
    shutil.copytree(run, other)
    assert [try_next_command(one, run, other, tmp_path) for one in list_next_commands(run)] == expected


def test_figures_without_claims_can_be_neither_looked_at_nor_compared(tmp_path: Path) -> None:
    """`factaudit diff` was advised of a run on a table of counts: “claims.parquet: no such file”."""
    results = compare(*make_tables({"a": (0.9, 0.8), "b": (0.8, 0.7)}), audits=["rates"], replicates=20)
    results.save(tmp_path)
    assert list_next_commands(tmp_path) == []
    assert "What to do next" not in (tmp_path / "report.html").read_text(encoding="utf-8")
