"""Two runs beside each other: what changed on the claims that both have."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from factaudit.cli import cli
from factaudit.errors import FactauditError, InputError, UsageError
from factaudit.experiment import Experiment, run
from factaudit.rundiff import compare_runs
from factaudit.tables import validate_claims, validate_verdicts, write_table

N = 120


def make_run(folder: Path, predictions: np.ndarray, claims: pd.DataFrame) -> Path:
    folder.mkdir()
    write_table(claims, folder / "claims.jsonl")
    verdicts = pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": "judge", "prediction": predictions})
    write_table(validate_verdicts(verdicts), folder / "verdicts.jsonl")
    experiment = Experiment(
        claims=[str(folder / "claims.jsonl")],
        verdicts=[str(folder / "verdicts.jsonl")],
        audits=["rates", "quantification"],
        replicates=0,
    )
    run(experiment, folder / "run")
    return folder / "run"


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A judge that was right on all, and an update that is wrong on the first ten attributable claims."""
    label = np.arange(N) % 3 > 0
    claims = validate_claims(
        pd.DataFrame(
            {
                "claim_id": [f"c{i}" for i in range(N)],
                "dataset": "d",
                "claim": [f"claim {i}" for i in range(N)],
                "label": label.astype(int),
                "system": np.where(np.arange(N) < N // 2, "a", "b"),
            }
        )
    )
    before = label.astype(int)
    after = before.copy()
    after[np.flatnonzero(label)[:10]] = 0
    return make_run(tmp_path / "one", before, claims), make_run(tmp_path / "two", after[: N - 6], claims.iloc[: N - 6])


def test_changes_are_counted_on_the_shared_claims_and_paired(runs: tuple[Path, Path]) -> None:
    found = compare_runs(*runs, replicates=500)
    assert (found.n_claims, found.only_before, found.only_after) == (N - 6, 6, 0)
    row = next(row for row in found.changes if row["dataset"] == "__macro__")
    attributable = 76  # of the 114 claims in both
    assert row["n"] == N - 6
    assert row["flips"] == pytest.approx(10 / (N - 6))
    assert (row["to_right"], row["to_wrong"]) == (0, 10)
    assert row["tpr"] == pytest.approx(-10 / attributable)
    assert row["bacc"] == pytest.approx(-5 / attributable)
    assert row["bacc_low"] < row["bacc"] < row["bacc_high"] < 0
    assert row["bias"] == pytest.approx(10 / (N - 6))
    # The ten are system a's, which had the fewer errors or as many.
    assert [(one["before"], one["after"]) for one in found.systems] in ([], [(["a", "b"], ["b", "a"])])


def test_a_condition_fails_only_where_it_holds(runs: tuple[Path, Path]) -> None:
    found = compare_runs(*runs, replicates=0)
    assert found.failing(["bacc<-0.02", "flips>0.05"]) == [
        "judge: bacc changed by -0.0658 (bacc<-0.02)",
        "judge: flips changed by +0.0877 (flips>0.05)",
    ]
    assert found.failing(["bacc<-0.1", "tnr<0", "unscored>0"]) == []
    assert compare_runs(runs[0], runs[0], replicates=0).failing(["flips>0", "bacc<0"]) == []
    with pytest.raises(UsageError, match="did you mean 'bacc'"):
        found.failing(["bac<0"])


def test_the_command_fails_for_ci_and_writes_its_rows(runs: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = map(str, runs)
    arguments = ["diff", before, after, "--replicates", "0", "--out", str(tmp_path / "diff.json")]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "10 to wrong" in done.output
    assert json.loads((tmp_path / "diff.json").read_text())["n_claims"] == N - 6
    arguments[-1] = str(tmp_path / "diff.html")
    with pytest.raises(FactauditError, match=r"bacc<-0\.02"):
        CliRunner().invoke(cli, [*arguments, "--fail-on", "bacc<-0.02"], catch_exceptions=False)
    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "judge: bacc changed by -0.0658 (bacc&lt;-0.02)" in page
    assert "−6.6" in page, "a change of BAcc in points"
    assert "<script" not in page


def test_runs_of_other_claims_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    claims = validate_claims(pd.DataFrame({"dataset": "d", "claim": ["x", "y"], "label": [0, 1]}))
    other = make_run(tmp_path / "other", np.array([0, 1]), claims)
    with pytest.raises(InputError, match="no claim in common"):
        compare_runs(runs[0], other)
