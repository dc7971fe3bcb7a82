"""A run in other forms: what they say is what the run says, and other tools can read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factaudit import Results, compare, validate_claims, validate_verdicts, write_table
from factaudit.export.jsonl import export_jsonl
from factaudit.export.latex import escape_latex, export_latex
from factaudit.export.leaderboard import write_leaderboard


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run_1")
    random = np.random.default_rng(1)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{at}" for at in range(240)],
            "dataset": ["a_1" if at % 2 else "b & c" for at in range(240)],
            "system": [f"s{at % 3}" for at in range(240)],
            "claim": [f"Claim {at}" for at in range(240)],
            "doc": [f"Document {at}." for at in range(240)],
            "label": random.integers(0, 2, 240),
        }
    )
    said = {"good%": np.where(random.random(240) < 0.95, claims["label"], 1 - claims["label"])}
    said |= {name: random.integers(0, 2, 240) for name in ("coin", "coin2")}
    rows = (
        pd.DataFrame(said)
        .assign(claim_id=claims["claim_id"])
        .melt("claim_id", None, "evaluator", "prediction")
    )
    rows = rows.astype({"prediction": "Int8"}).assign(status="ok", repeat=0)
    again = rows.iloc[[1]].assign(repeat=1, prediction=0)
    rows.loc[0, ["prediction", "status"]] = [pd.NA, "refused"]
    rows = pd.concat([rows, again], ignore_index=True)
    claims, verdicts = validate_claims(claims), validate_verdicts(rows)
    write_table(claims, folder / "claims.parquet")
    write_table(verdicts, folder / "verdicts.parquet")
    compare(
        claims, verdicts, audits=["rates", "differences", "quantification"], replicates=200
    ).save(folder)
    return folder


def test_latex_has_every_figure(run_dir):
    paths = export_latex(run_dir, run_dir / "export")
    assert [path.name for path in paths] == ["rates.tex", "error_rates.tex", "methods.tex"]
    rates, errors, methods = (path.read_text(encoding="utf-8") for path in paths)
    results = Results.load(run_dir)
    for row in results.audits["rates"]:
        assert f"{100 * row['bacc']:.1f}" in rates
    assert r"\emph{b \& c}" in rates
    assert r"\emph{a\_1}" in rates
    for table in (rates, errors):
        columns = re.search(r"begin\{tabular\}\{(l?r*)\}", table)
        assert columns is not None
        body = [
            line
            for line in table.splitlines()
            if line.endswith(r"\\") and "multicolumn" not in line
        ]
        assert {line.count(" & ") + 1 for line in body} == {len(columns[1])}
    assert "240 claims of 2 data sets" in methods
    assert escape_latex(results.signature.split("|")[0]) in methods
    assert results.signature in methods.splitlines()[0]
    assert (
        "Verdicts without a prediction (1 refused) count neither as right nor as wrong." in methods
    )


def test_lines_have_all_that_was_said(run_dir, tmp_path):
    (path,) = export_jsonl(run_dir, tmp_path)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 240
    assert sum(len(row["verdicts"]) for row in rows) == 721
    assert rows[0]["verdicts"][0]["status"] == "refused"
    assert "prediction" not in rows[0]["verdicts"][0]


def test_a_leaderboard_of_two_runs(run_dir, tmp_path):
    other = tmp_path / "run<2>"
    claims = validate_claims(
        pd.DataFrame(
            {"dataset": "a_1", "claim": [str(at) for at in range(40)], "label": [0, 1] * 20}
        )
    )
    verdicts = pd.DataFrame(
        {"claim_id": claims["claim_id"], "evaluator": "<b>x</b>", "score": [0.1, 0.9] * 20}
    )
    compare(claims, validate_verdicts(verdicts), audits=["rates"], replicates=0).save(other)
    html, data = write_leaderboard([run_dir, other], tmp_path / "board", "A board")
    lines = json.loads(data.read_text(encoding="utf-8"))["lines"]
    told = [(line["evaluator"], row) for line in lines for row in line["decisions"].values()]
    assert told
    assert all(row["evaluator"] == evaluator for evaluator, row in told)
    # Another data set's figures are not comparable: they stand by themselves, however high.
    assert [line["evaluator"] for line in (lines[0], lines[-1])] == ["good%", "<b>x</b>"]
    assert "figures of other data sets are not comparable" in html.read_text(encoding="utf-8")
    text = html.read_text(encoding="utf-8")
    assert "<b>x</b>" not in text
    assert "&lt;b&gt;x&lt;/b&gt;" in text
    assert text.count("<script") == 1
    assert text.count('<th scope="row">') == 4
    # What is required of all evaluators stands there once for each task.
    required = text.split("<h2>What is required</h2>")[1].split("</ul>")[0]
    tasks = {task for line in lines for task, row in line["decisions"].items() if row["required"]}
    assert required.count("<li>") == len(tasks)


def test_a_leaderboard_sorts_within_the_same_claims_only(tmp_path):
    for name, n in (("few", 40), ("more", 60)):
        labels = [0, 1] * (n // 2)
        claims = validate_claims(
            pd.DataFrame(
                {"dataset": "a", "claim": [f"{name} {at}" for at in range(n)], "label": labels}
            )
        )
        verdicts = pd.DataFrame(
            {"claim_id": claims["claim_id"], "evaluator": "x", "prediction": labels}
        )
        compare(claims, validate_verdicts(verdicts), audits=["rates"], replicates=0).save(
            tmp_path / name
        )
    text = write_leaderboard([tmp_path / "few", tmp_path / "more"], tmp_path / "board", "A board")[
        0
    ].read_text()
    assert text.count("<table") == 2, "the same name, but other claims"
    assert "a (40 labelled claims)" in text
    assert "a (60 labelled claims)" in text
