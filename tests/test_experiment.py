"""The runner: a run folder that meets its contract, reuse of what is unchanged, and recovery from a
real SIGKILL."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import run_command

import factaudit
from factaudit import InputError, Results, UsageError, Verdict, judge, read_claims, run, write_table
from factaudit.experiment import run as experiment_module
from factaudit.experiment import unchanged
from factaudit.experiment.run import Experiment


@pytest.fixture(scope="module")
def yaml_file(tmp_path_factory) -> Path:
    """A small experiment: 60 claims of 3 systems in 2 datasets, two evaluators."""
    folder = tmp_path_factory.mktemp("experiment")
    rows = []
    for number in range(60):
        doc = (
            f"The town of Brill has {number} mills. Its mayor is Ada Finch, who grew up by the"
            " river."
        )
        good = number % 3 != 0
        claim = (
            f"Brill has {number} mills."
            if good
            else f"Brill has {number + 1} old windmills and a castle."
        )
        rows.append(
            {
                "claim_id": f"c{number}",
                "dataset": "D1" if number < 30 else "D2",
                "system": "abc"[number % 5 % 3],
                "response_id": f"r{number // 2}",
                "claim": claim,
                "doc": doc,
                "label": int(good),
            }
        )
    write_table(pd.DataFrame(rows), folder / "claims.jsonl")
    path = folder / "small.yaml"
    path.write_text(
        "claims: claims.jsonl\nevaluators: [unigram, 'random:seed=3']\nreplicates: 50\n",
        encoding="utf-8",
    )
    return path


@pytest.fixture(scope="module")
def run_dir(yaml_file, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("run") / "out"
    run(yaml_file, out)
    return out


def test_the_run_folder_meets_its_contract(run_dir):
    for name in ("claims.parquet", "verdicts.parquet", "results.json", "report.html"):
        assert (run_dir / name).stat().st_size > 0
    results = json.loads((run_dir / "results.json").read_text(encoding="utf-8"))
    assert results["schema"] == "factaudit.results/2"
    assert results["signature"].startswith("factaudit|")
    loaded = Results.load(run_dir)
    assert set(results["tables"]) == {name for name, rows in results["audits"].items() if rows}
    assert all((run_dir / file).is_file() for file in results["tables"].values())
    for name in results["audits"]:
        for row in loaded.rows(name):
            assert all(
                value is None or isinstance(value, str | int | float) for value in row.values()
            ), "rows are flat"
    assert list((run_dir / "tables").glob("*.csv"))
    figures = list((run_dir / "figures").iterdir())
    assert figures
    assert {path.suffix for path in figures} == {".svg"}


def test_a_limit_of_documents_keeps_whole_documents_with_their_verdicts(root, tmp_path):
    claims = read_claims(root / "data/minibench/claims.jsonl.gz")
    verdicts = claims[["claim_id"]].assign(evaluator="e", prediction=1, status="ok")
    verdicts.to_parquet(tmp_path / "verdicts.parquet")
    path = tmp_path / "experiment.yaml"
    path.write_text(
        f"claims: {root / 'data/minibench/claims.jsonl.gz'}\n"
        "verdicts: verdicts.parquet\naudits: [rates]\nlimit_documents: 3\nreplicates: 0\n"
    )
    said = []
    factaudit.run(path, out=tmp_path / "run", say=said.append)
    kept = read_claims(tmp_path / "run/claims.parquet")
    assert set(kept.groupby("dataset", observed=True)["doc"].nunique()) == {3}
    whole = claims[claims["doc"].isin(kept["doc"])]
    assert list(kept["claim_id"]) == list(whole["claim_id"])
    assert set(pd.read_parquet(tmp_path / "run/verdicts.parquet")["claim_id"]) == set(
        kept["claim_id"]
    )
    assert any(f"{len(kept)} of 507 claims" in line for line in said)
    with pytest.raises(
        InputError, match="audits claims and verdicts as they are, found limit_documents"
    ):
        factaudit.run(path, out=tmp_path / "other", settings={"where": "duckdb"})


def test_the_experiment_of_a_run_folder_says_what_was_run_and_runs_again(
    run_dir, yaml_file, tmp_path
):
    made_with = yaml.safe_load((run_dir / "experiment.yaml").read_text(encoding="utf-8"))[
        "made_with"
    ]
    assert made_with["inputs"][0]["path"] == str(yaml_file.parent / "claims.jsonl")
    assert made_with["inputs"][0]["checksum"].startswith("sha256:")
    assert made_with["versions"]["factaudit"] == factaudit.__version__
    assert set(made_with["evaluators"]) == {"unigram", "random:seed=3"}
    again = run(run_dir / "experiment.yaml", tmp_path / "again")
    assert again.signature == made_with["signature"]
    assert again.audits == Results.load(run_dir).audits
    with pytest.raises(UsageError, match="write over what it reads"):
        run(run_dir / "experiment.yaml", run_dir)


def test_an_experiment_of_the_users_is_not_written_over(yaml_file, tmp_path):
    mine = tmp_path / "experiment.yaml"
    mine.write_text("claims: mine.csv\n")
    with pytest.raises(UsageError, match="that no run wrote"):
        run(yaml_file, tmp_path)
    assert mine.read_text() == "claims: mine.csv\n"


def test_a_changed_claim_is_judged_again_and_nothing_else(yaml_file, tmp_path, monkeypatch):
    claims = read_claims(yaml_file.parent / "claims.jsonl")
    judge(claims, ["unigram"], journal=tmp_path)
    changed = claims.copy()
    changed.loc[7, "claim"] = "Brill has no mills at all."
    seen = []
    from factaudit.evaluators.lexical_baselines import UnigramEvaluator

    original = UnigramEvaluator.judge

    def watched(self, items):
        return original(self, (seen.append(item.claim_id) or item for item in items))

    monkeypatch.setattr(UnigramEvaluator, "judge", watched)
    again = judge(changed, ["unigram"], journal=tmp_path)
    assert seen == ["c7"]
    pd.testing.assert_frame_equal(again, judge(changed, ["unigram"]))


def test_another_experiments_results_are_replaced_only_where_that_is_said(tmp_path, capsys):
    """`audit b.csv --out DIR` replaced the run of a.csv there without a word."""
    for name, said_of in (("a", "0,1,1,0"), ("b", "1,1,0,0")):
        rows = zip("1010", said_of.split(","), strict=True)
        lines = [f"text,claim {at},{label},{said}" for at, (label, said) in enumerate(rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["doc,claim,human,judge_score", *lines]))

    def audit(name, *more):
        path = tmp_path / f"{name}.csv"
        return run_command("audit", path, "--out", tmp_path / "run", *more), capsys.readouterr().err

    assert audit("a")[0] == 0
    before = (tmp_path / "run" / "results.json").read_bytes()
    assert audit("a")[0] == 0  # the same experiment again
    code, error = audit("b")
    assert code == 2
    assert f"holds the results of another experiment (of {os.path.join('..', 'a.csv')})" in error
    assert "--overwrite" in error
    assert (tmp_path / "run" / "results.json").read_bytes() == before
    assert audit("b", "--overwrite")[0] == 0
    assert audit("b")[0] == 0


# Nothing has changed
# ------------------------------------------------------------


@pytest.fixture
def asked(tmp_path: Path) -> Experiment:
    claims = [
        {"claim_id": str(n), "dataset": "d", "claim": f"a {n}", "doc": "a", "label": n % 2}
        for n in range(20)
    ]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in claims))
    return Experiment(
        claims=[str(tmp_path / "claims.jsonl")],
        evaluators=["unigram"],
        audits=["rates"],
        replicates=0,
    )


def test_a_run_with_nothing_changed_only_checks(tmp_path, asked, monkeypatch):
    out = tmp_path / "run"
    said = []
    first = experiment_module.run(asked, out, say=said.append)
    read = []
    inputs = experiment_module.read_experiment_inputs

    def reading(one, needs_verdicts):
        read.append(one)
        return inputs(one, needs_verdicts)

    monkeypatch.setattr(experiment_module, "read_experiment_inputs", reading)
    again = []
    assert experiment_module.run(asked, out, say=again.append) == first
    assert not read
    assert again == [
        *said[:-1],
        f"report    {out / 'report.html'} (unchanged, as inputs and settings are the same)",
    ]
    # Whatever changes, it is a run again: a setting, an input, a file of the run folder, the code.
    experiment_module.run(asked.model_copy(update={"seed": 1}), out)
    experiment_module.run(asked, out)
    assert len(read) == 2
    (out / "verdicts.parquet").unlink()
    experiment_module.run(asked, out)
    assert len(read) == 3
    claims = tmp_path / "claims.jsonl"
    claims.write_text(claims.read_text().replace("a 3", "b 3"))
    assert experiment_module.run(asked, out).signature != first.signature
    (out / ".work" / "run.json").write_text("[damaged")
    experiment_module.run(asked, out)
    monkeypatch.setattr(unchanged, "digest_package_code", lambda: "another version")
    experiment_module.run(asked, out)
    assert len(read) == 6


def test_what_failed_is_asked_for_again(tmp_path, asked):
    calls = []

    class Failing:
        signature = "failing"
        verdict_name = "failing"

        def judge(self, claims):
            for claim in claims:
                calls.append(claim.claim_id)
                yield Verdict(claim.claim_id, status="error", raw="no line")

    original = experiment_module.make_named_evaluator
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment_module, "make_named_evaluator", lambda spec: original(Failing()))
        experiment_module.run(asked, tmp_path / "run")
        experiment_module.run(asked, tmp_path / "run")
    assert len(calls) == 40
