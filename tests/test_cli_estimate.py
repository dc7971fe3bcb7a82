"""The verbs ``sample`` (and ``--plan``), ``labels`` and ``estimate``: their whole way, and what
they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from conftest import Call
from estimate_data import ESTIMATE_COLUMNS, World, annotated, tables, without_labels

from factaudit import read_sample, write_table

Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Claims without labels, verdicts, and what people would say of every claim."""
    claims, verdicts = tables(World())
    write_table(without_labels(claims), tmp_path / "claims.parquet")
    write_table(verdicts, tmp_path / "verdicts.parquet")
    write_table(claims, tmp_path / "truth.parquet")
    return tmp_path


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, call: Call) -> Run:
    """Runs a command in the folder; returns what it printed, after checking its exit code."""
    monkeypatch.chdir(folder)

    def run(*arguments: str, code: int = 0) -> str:
        found, out, err = call(*arguments)
        assert found == code, err
        return out + err

    return run


def label(
    folder: Path, name: str, annotator: str = "ann", wrong: int = 0, sample: str = "sample.parquet"
) -> str:
    """A file with the labels of all that a sample has drawn so far; the first ``wrong`` of them are
    wrong."""
    truth = pd.read_parquet(folder / "truth.parquet")
    rows = annotated(truth, read_sample(folder / sample).rows["claim_id"], annotator)
    rows.loc[: wrong - 1, "label"] = 1 - rows.loc[: wrong - 1, "label"]
    write_table(rows, folder / name)
    return name


TABLES = ("claims.parquet", "verdicts.parquet")


@pytest.mark.slow
def test_the_whole_way(folder, run):
    said = run(
        "sample", *TABLES, "--budget", "120", "--out", "sample.parquet", "--page", "label.html"
    )
    assert "draw the remaining 60 of 120" in said
    assert (folder / "label.html").is_file()
    pilot = label(folder, "pilot.csv")
    then = ("sample", *TABLES, "--then", "sample.parquet", "--label-file", pilot)
    said = run(*then, "--out", "sample.parquet", code=2)
    assert "would be written over what the command reads" in said
    said = run(*then, "--out", "two.parquet", "--page", "more.html")
    assert "60 claims of 4 systems" in said
    second = label(folder, "second.csv", sample="two.parquet")
    run(
        "sample",
        *TABLES,
        "--then",
        "two.parquet",
        "--label-file",
        second,
        "--more",
        "30",
        "--out",
        "three.parquet",
    )
    assert len(read_sample(folder / "three.parquet").rows) == 150
    done = label(folder, "labels.csv", sample="three.parquet")
    said = run(
        "estimate",
        *TABLES,
        "--label-file",
        done,
        "--sample",
        "three.parquet",
        "--out",
        "runs/rates",
    )
    assert "estimated error" in said
    rates = pd.read_csv(folder / "runs/rates/tables/estimates.csv")
    assert rates.columns.tolist() == ESTIMATE_COLUMNS
    truth = pd.read_parquet(folder / "truth.parquet").groupby("system")["label"].mean()
    quoted = rates[rates["method"] == "hierarchical"].set_index("system")
    assert ((quoted["rate_low"] <= 1 - truth) & (1 - truth <= quoted["rate_high"])).sum() >= 3
    audits = json.loads((folder / "runs/rates/results.json").read_text())["audits"]
    assert list(audits) == [
        "estimates",
        "estimate_summary",
        "estimate_ranks",
        "estimate_differences",
    ]
    report = (folder / "runs/rates/report.html").read_text()
    assert "Error rates from few labels" in report
    assert (folder / "runs/rates/figures/estimates_claim.svg").is_file()


def test_several_annotators(folder, run):
    said = run(
        *("sample", *TABLES, "--budget", "40", "--annotators", "2", "--overlap", "1"),
        *("--out", "sample.parquet", "--page", "label.html"),
    )
    assert "label-1.html" in said
    assert "label-2.html" in said
    files = [label(folder, "a.csv", "ann"), label(folder, "b.csv", "ben", wrong=4)]
    said = run(
        *("audit", "claims.parquet", *files, "--out", "runs/people"),
    )
    assert "1,000 claims in 1 data set with 4 systems, 36 labelled" in said
    assert ["ann", "and", "ben", "40", "4"] in [line.split()[:5] for line in said.splitlines()]
    assert (folder / "runs/people/disputed.html").read_text().count("Label 4 claims") == 1
    together = ("--label-file", files[0], "--label-file", files[1])
    rule = ("--label-rule", "any_unattributable")
    run(
        "estimate",
        *TABLES,
        *together,
        "--sample",
        "sample.parquet",
        *rule,
        "--out",
        "runs/any",
    )
    run(
        "estimate",
        *TABLES,
        *together,
        "--sample",
        "sample.parquet",
        "--label-rule",
        "ann",
        "--out",
        "runs/one",
    )
    n_labels = pd.read_csv(folder / "runs/one/tables/estimate_summary.csv")["n_labels"]
    assert n_labels.tolist() == [40]


def test_labels_of_the_claims_table(folder, run):
    truth = pd.read_parquet(folder / "truth.parquet")
    truth.loc[100:, "label"] = pd.NA
    write_table(truth, folder / "some.parquet")
    said = run(
        "estimate", "some.parquet", "verdicts.parquet", "--level", "claim", "--out", "runs/some"
    )
    assert "no sample file: the labels are taken as drawn at random" in said
    assert "no label of its own" in (folder / "runs/some/tables/estimates.csv").read_text()
    said = run("estimate", *TABLES, "--out", "runs/none")
    assert "no rate can be quoted" in said


def test_the_same_by_yaml(folder, run):
    run("sample", *TABLES, "--budget", "60", "--out", "sample.parquet")
    label(folder, "labels.csv")
    (folder / "rates.yaml").write_text(
        "claims: claims.parquet\nverdicts: verdicts.parquet\naudits: [quantification]\nestimate:"
        " {labels: [labels.csv], sample: sample.parquet, levels: [claim], methods: [hierarchical,"
        " labels]}\n"
    )
    run("run", "rates.yaml", "--out", "runs/yaml")
    run(
        "estimate",
        *TABLES,
        "--label-file",
        "labels.csv",
        "--sample",
        "sample.parquet",
        "--level",
        "claim",
        "--out",
        "runs/cli",
    )
    by_yaml, by_cli = (
        pd.read_csv(folder / f"runs/{name}/tables/estimates.csv") for name in ("yaml", "cli")
    )
    both = by_cli[by_cli["method"].isin(["hierarchical", "labels"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(by_yaml.drop(columns="reason"), both.drop(columns="reason"))
    results = json.loads((folder / "runs/yaml/results.json").read_text())
    assert {Path(one["path"]).name for one in results["about"]["inputs"]} >= {
        "labels.csv",
        "sample.parquet",
    }
    for key, message in (
        ("labels: [nowhere.csv]", "nowhere.csv"),
        ("methods: [labls]", "'labels' or 'raw', found 'labls'"),
    ):
        (folder / "rates.yaml").write_text(
            f"claims: claims.parquet\nverdicts: verdicts.parquet\nestimate:\n  {key}\n"
        )
        assert message in run("run", "rates.yaml", "--out", "runs/bad", code=1)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["estimate", "exp.yaml", "v.csv", "--out", "r"],
            2,
            "`factaudit run exp.yaml --dry-run` says what it will cost",
        ),
        (
            ["sample", *TABLES, "--out", "s.parquet"],
            2,
            "expected --budget for a new sample, or --then",
        ),
        (
            ["sample", *TABLES, "--budget", "3", "--out", "s.parquet"],
            2,
            "3 labels are too few for 4 systems",
        ),
        (["sample", *TABLES, "--budget", "40", "--out", "s.csv"], 1, "ends in .parquet"),
        (
            ["sample", *TABLES, "--budget", "40", "--overlap", "lots", "--out", "s.parquet"],
            2,
            "is not a valid float",
        ),
        (
            ["sample", *TABLES, "--budget", "40", "--more", "4", "--out", "s.parquet"],
            2,
            "name the sample with --then",
        ),
        (
            ["sample", *TABLES, "--budget", "40", "--main", "e9", "--out", "s.parquet"],
            2,
            "no verdicts of 'e9'",
        ),
        (
            ["estimate", *TABLES, "--method", "magic", "--out", "r"],
            2,
            "'magic' is not one of 'hierarchical'",
        ),
        (["estimate", *TABLES, "--label-file", "nowhere.csv", "--out", "r"], 1, "no such file"),
        (
            ["estimate", *TABLES, "--sample", "claims.parquet", "--out", "r"],
            1,
            "this is not a sample: expected a file that `factaudit sample` wrote",
        ),
    ],
)
def test_what_is_refused(run, arguments, code, message):
    assert message in run(*arguments, code=code)
