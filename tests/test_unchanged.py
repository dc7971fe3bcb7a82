"""A run of which nothing has changed is not repeated, and leaves nothing of an earlier one behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from factaudit import experiment, run_folder
from factaudit.evaluators.base import Verdict
from factaudit.experiment import Experiment


@pytest.fixture
def asked(tmp_path: Path) -> Experiment:
    claims = [{"claim_id": str(n), "dataset": "d", "claim": f"a {n}", "doc": "a", "label": n % 2} for n in range(20)]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in claims))
    return Experiment(claims=[str(tmp_path / "claims.jsonl")], evaluators=["unigram"], audits=["rates"], replicates=0)


def test_a_run_with_nothing_changed_only_checks(
    tmp_path: Path, asked: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    said: list[str] = []
    first = experiment.run(asked, out, say=said.append)
    read = []
    inputs = experiment.read_experiment_inputs

    def reading(one, evaluators):
        read.append(one)
        return inputs(one, evaluators)

    monkeypatch.setattr(experiment, "read_experiment_inputs", reading)
    again: list[str] = []
    assert experiment.run(asked, out, say=again.append) == first
    assert not read
    assert again == [*said[:-1], f"report    {out / 'report.html'} (unchanged, as inputs and settings are the same)"]
    # Whatever changes, it is a run again: a setting, an input, a file of the run folder, the code.
    experiment.run(asked.model_copy(update={"seed": 1}), out)
    experiment.run(asked, out)
    assert len(read) == 2
    (out / "verdicts.parquet").unlink()
    experiment.run(asked, out)
    assert len(read) == 3
    claims = tmp_path / "claims.jsonl"
    claims.write_text(claims.read_text().replace("a 3", "b 3"))
    assert experiment.run(asked, out).signature != first.signature
    (out / ".work" / "run.json").write_text("[damaged")
    experiment.run(asked, out)
    monkeypatch.setattr(run_folder, "digest_package_code", lambda: "another version")
    experiment.run(asked, out)
    assert len(read) == 6


def test_what_failed_is_asked_for_again(tmp_path: Path, asked: Experiment) -> None:
    calls = []

    class Failing:
        signature = "failing"
        verdict_name = "failing"

        def judge(self, claims):
            for claim in claims:
                calls.append(claim.claim_id)
                yield Verdict(claim.claim_id, status="error", raw="no line")

    original = experiment.make_named_evaluator
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "make_named_evaluator", lambda spec: original(Failing()))
        experiment.run(asked, tmp_path / "run")
        experiment.run(asked, tmp_path / "run")
    assert len(calls) == 40
