"""A user's own table on the command line: inspect, audit, judge and validate, with and without a
mapping."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from factaudit.cli import cli

HEADER = "question_id\tcontext\tanswer\tmodel\thuman\tjudge_a\tjudge_b\tminutes"
ROWS = [
    f"q{i // 3}\tText {i // 3}: the mill by the river burnt down in 18{10 + i // 3}.\t"
    f"The mill burnt down in {'18' if i % 4 else '19'}{10 + i // 3}.\t"
    f"{('gpt', 'claude', 'llama')[i % 3]}\t{'supported' if i % 4 else 'not supported'}\t"
    f"{5 if i % 5 else 1}\t{0.9 if i % 3 else 0.2}\t{i}"
    for i in range(60)
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "answers.tsv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n", encoding="utf-8")
    return path


def test_audit_takes_one_wide_table_and_its_mapping(table, tmp_path):
    mapping = tmp_path / "mapping.yaml"
    run("inspect", str(table), "--write", str(mapping))
    done = run(
        "audit",
        str(table),
        "--columns",
        str(mapping),
        "--out",
        str(tmp_path / "run"),
        "--replicates",
        "0",
    )
    assert done.exit_code == 0
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    rows = {
        row["evaluator"]: row for row in results["audits"]["rates"] if row["dataset"] == "answers"
    }
    # Of 60 claims those with i % 4 are attributable, and judge_a accepts those with i % 5.
    assert rows["judge_a"]["n"] == 60
    assert rows["judge_a"]["tpr"] == pytest.approx(36 / 45)
    assert rows["judge_b"]["tnr"] == pytest.approx(5 / 15)
    systems = {row["system"] for row in results["audits"]["quantification"]}
    assert {"gpt", "claude", "llama"} <= systems
    assert "mapping:" in (tmp_path / "run" / "experiment.yaml").read_text()


def test_options_are_added_to_a_mapping_that_is_kept(table, tmp_path):
    (tmp_path / "m.yaml").write_text("claim: answer\nignore: judge_a\n")
    done = run("inspect", str(table), "--columns", str(tmp_path / "m.yaml"), "--ignore", "judge_b")
    assert "evaluator judge" not in done.output
    assert "ignored   judge_a (as you said), judge_b (as you said)" in " ".join(
        done.output.split("\n")
    )


def test_inspect_says_what_it_has_not_seen_and_what_a_lone_file_lacks(tmp_path):
    names = [*"abcdefgh", "late"]
    rows = [
        f"c{at},{names[-1] if at > 20_005 else names[at % 8]},{at % 2},ok\n" for at in range(20_100)
    ]
    (tmp_path / "v.csv").write_text("claim_id,evaluator,prediction,status\n" + "".join(rows))
    shown = run("inspect", str(tmp_path / "v.csv")).output
    assert "v.csv: 20,100 rows, 4 columns; of the first 20,000 rows:" in shown
    assert "a, b, c, d, e, f and 2 more" in shown
    assert f"next      factaudit audit CLAIMS {tmp_path / 'v.csv'} --out runs/mine" in shown
    grades = ("supported", "partially", "not_supported")
    rows = [f"c{at // 4},p{at % 4},{grades[at % 3]}\n" for at in range(60)]
    (tmp_path / "said.csv").write_text("claim_id,annotator,grade\n" + "".join(rows))
    shown = run("inspect", str(tmp_path / "said.csv")).output
    assert "supported, partially, not_supported" in shown
    assert "15 texts of about 2 characters" in shown
    assert "people    60 annotations of 4 people on 15 claims" in shown
    assert f"next      factaudit audit CLAIMS {tmp_path / 'said.csv'} --out runs/labels" in shown
