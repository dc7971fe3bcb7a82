"""Two runs beside each other: what changed on the claims that both have."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from conftest import run_command

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.paired_changes import compute_paired_changes
from factaudit.audit.differences import compute_evaluator_differences
from factaudit.cli import cli
from factaudit.diff import diff_runs
from factaudit.diff.gate import judge_changes
from factaudit.errors import FactauditError, UsageError
from factaudit.experiment.run import Experiment, run
from factaudit.results import Row
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import read_claims, read_verdicts, validate_claims, validate_verdicts, write_table

N = 120


def make_run(
    folder: Path,
    predictions: np.ndarray,
    claims: pd.DataFrame,
    name: str = "judge",
    audits: tuple[str, ...] = ("rates", "quantification"),
    more: tuple[str, ...] = (),
) -> Path:
    folder.mkdir()
    write_table(claims, folder / "claims.jsonl")
    verdicts = pd.concat(
        [
            pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": each, "prediction": predictions})
            for each in (name, *more)
        ]
    ).reset_index(drop=True)
    verdicts["status"] = np.where(verdicts["prediction"].isna(), "error", "ok")
    verdicts["prediction"] = verdicts["prediction"].astype("Int8")
    write_table(validate_verdicts(verdicts), folder / "verdicts.jsonl")
    experiment = Experiment(
        claims=[str(folder / "claims.jsonl")],
        verdicts=[str(folder / "verdicts.jsonl")],
        audits=list(audits),
        replicates=0,
    )
    run(experiment, folder / "run")
    return folder / "run"


@pytest.fixture
def runs(made_runs: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Copies of `made_runs` that a test may change."""
    for name in ("one", "two"):
        shutil.copytree(made_runs / name, tmp_path / name)
    return tmp_path / "one" / "run", tmp_path / "two" / "run"


@pytest.fixture(scope="module")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    made = tmp_path_factory.mktemp("runs")
    make_run(made / "one", before, claims)
    make_run(made / "two", after[: N - 6], claims.iloc[: N - 6])
    return made


def test_changes_are_counted_on_the_shared_claims_and_paired(runs: tuple[Path, Path]) -> None:
    found = diff_runs(*runs)
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


def test_a_condition_fails_only_where_it_holds(runs: tuple[Path, Path]) -> None:
    found = diff_runs(*runs)
    verdict = found.judge(["bacc<-0.01", "flips>0.04"])
    assert verdict.word == "fail"
    assert verdict.failing == [
        "judge: BAcc changed by −6.6 points (95 % CI −11.9 to −1.3): bacc<-0.01 holds",
        "judge: 8.8 % of predictions changed (95 % CI 4.8 to 15.5): flips>0.04 holds",
    ]
    assert found.judge(["bacc<-0.1", "tnr<0", "unscored>0"]).word == "pass"
    same = diff_runs(runs[0], runs[0])
    assert same.judge(["flips>0", "bacc<0"]).word == "pass"
    assert (found.judge().word, same.judge().word) == ("worse", "no significant change")
    with pytest.raises(UsageError, match=r"--fail-on.*did you mean 'bacc'"):
        found.judge(["bac<0"])
    with pytest.raises(UsageError, match="--warn-on"):
        found.judge([], ["bacc=0"])


def test_what_the_point_alone_says_warns(runs: tuple[Path, Path]) -> None:
    """BAcc fell by 6.6 points, the interval ends at 1.3: a fall of more than 3 is likely, not sure."""
    found = diff_runs(*runs)
    for fail_on, warn_on in ((["bacc<-0.03"], []), ([], ["bacc<-0.03"])):
        verdict = found.judge(fail_on, warn_on)
        assert (verdict.word, verdict.failing) == ("warn", [])
        assert "bacc<-0.03 holds" in verdict.warnings[0]
    done = CliRunner().invoke(cli, ["diff", *map(str, runs), "--warn-on", "bacc<-0.03"], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.output.startswith("WARN: judge: BAcc changed by −6.6 points")


def test_the_interval_is_that_of_the_audit_of_differences(tmp_path: Path) -> None:
    """On claims in clusters: `differences` has the same paired intervals of the claims that both runs have judged."""
    claims = make_claims().assign(doc_id=[str(i // 4) for i in range(N)])
    draw = np.random.default_rng(3)
    before, after = (np.where(draw.random(N) < 0.2, 1 - claims["label"], claims["label"]).astype(float) for _ in "ab")
    before[:3], after[50:55] = np.nan, np.nan
    runs = make_run(tmp_path / "one", before, claims), make_run(tmp_path / "two", after, claims)
    tables = [
        read_verdicts(one / "verdicts.parquet").assign(evaluator=name) for one, name in zip(runs, "ba", strict=True)
    ]
    scored = [table.loc[table["prediction"].notna(), "claim_id"] for table in tables]
    tables = [table[table["claim_id"].isin(scored[0]) & table["claim_id"].isin(scored[1])] for table in tables]
    both = Judgements.join(read_claims(runs[0] / "claims.parquet"), pd.concat(tables, ignore_index=True))
    expected = compute_evaluator_differences(both, pairs={"a": "b"}, intervals=ClusterBootstrap(replicates=20))
    found = {(row["dataset"], key): row for row in diff_runs(*runs).changes for key in ("bacc", "bias")}
    assert len(expected) == 6
    for row in expected:
        for end in ("", "_low", "_high"):
            assert found[row["dataset"], row["key"]][f"{row['key']}{end}"] == pytest.approx(row[f"difference{end}"])


def test_rates_are_means_over_repeats(tmp_path: Path) -> None:
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    folders = []
    for name, seed in (("one", 0), ("two", 1)):
        draw = np.random.default_rng(seed)
        asked = [np.where(draw.random(N) < 0.2, 1 - right, right) for _ in range(9)]
        folder = make_run(tmp_path / name, asked[0], claims)
        verdicts = read_verdicts(folder / "verdicts.parquet")
        more = [
            verdicts.assign(repeat=at, prediction=pd.array(one, dtype="Int8")) for at, one in enumerate(asked[1:], 1)
        ]
        write_table(pd.concat([verdicts, *more], ignore_index=True), folder / "verdicts.parquet")
        folders.append((folder, np.mean(asked, 0)))
    found = diff_runs(*(folder for folder, _ in folders))
    row = next(row for row in found.changes if row["dataset"] == "d")
    inside = (claims["dataset"] == "d").to_numpy() & (right == 1)
    assert row["tpr_after"] == pytest.approx(folders[1][1][inside].mean())


def test_a_summary_for_a_pull_request_has_the_verdict_in_a_block_of_code(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "summary.md"
    assert run_command("diff", *map(str, runs), "--fail-on", "bacc<-0.01", "--out", page) == 1
    assert capsys.readouterr().out.startswith("FAIL: judge: BAcc changed by")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("### ❌ factaudit: fail\n\n```text\njudge: BAcc changed by −6.6 points")
    assert text.endswith("\n```\n")
    assert text.count("```") == 2


@pytest.mark.parametrize("wrong", ["folder", "condition", "claims", "option"])
def test_what_is_wrong_is_no_failed_gate(
    runs: tuple[Path, Path], tmp_path: Path, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = map(str, runs)
    if wrong == "claims":
        claims = validate_claims(pd.DataFrame({"dataset": "d", "claim": ["x", "y"], "label": [0, 1]}))
        after = str(make_run(tmp_path / "other", np.array([0, 1]), claims))
    given = {"folder": [before, str(tmp_path)], "condition": [before, after, "--fail-on", "bac<0"]}
    given |= {"claims": [before, after], "option": [before, after, "--fial-on", "bacc<0"]}
    assert run_command("diff", *given[wrong]) == 2
    assert capsys.readouterr().err


def test_the_command_fails_for_ci_and_writes_its_rows(runs: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = map(str, runs)
    arguments = ["diff", before, after, "--out", str(tmp_path / "diff.json")]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "10 became wrong" in done.output
    stored = json.loads((tmp_path / "diff.json").read_text())
    assert (stored["n_claims"], stored["verdict"]["word"]) == (N - 6, "worse")
    arguments[-1] = str(tmp_path / "diff.md")
    with pytest.raises(FactauditError, match=r"bacc<-0\.01"):
        CliRunner().invoke(cli, [*arguments, "--fail-on", "bacc<-0.01"], catch_exceptions=False)
    page = (tmp_path / "diff.md").read_text(encoding="utf-8")
    assert "judge: BAcc changed by −6.6 points (95 % CI −11.9 to −1.3): bacc<-0.01 holds" in page


def test_files_are_named_and_no_report_is_that_is_gone(tmp_path: Path) -> None:
    """ "report    /tmp/tmpl3753xqt/before/report.html": a folder that is deleted when the command ends.

    The files have no claim_id, and differ in their names alone: their claims are the same ones.
    """
    claims = make_claims().assign(evaluator="judge", prediction=lambda table: table["label"])
    claims = claims.drop(columns=["claim_id", "dataset"])
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for file in files:
        claims.to_csv(file, index=False)
    done = CliRunner().invoke(cli, ["diff", *map(str, files)], catch_exceptions=False)
    assert done.exit_code == 0
    assert re.findall(r"(?m)^file +(.*)$", done.stderr) == list(map(str, files))
    assert "report.html" not in done.output
    assert f"claims    {N} in both; 0 only before, 0 only after" in done.output
    assert "data sets" not in done.output  # each is called by its file's name, and they are one
    assert not re.findall(r"(?m)^(?:new|gone|changed) ", done.output)


def make_claims(n: int = N) -> pd.DataFrame:
    return validate_claims(
        pd.DataFrame(
            {
                "claim_id": [f"c{i}" for i in range(n)],
                "dataset": np.where(np.arange(n) % 2 == 0, "d", "e"),
                "claim": [f"claim {i}" for i in range(n)],
                "label": (np.arange(n) % 3 > 0).astype(int),
                "system": np.where(np.arange(n) < n // 2, "a", "b"),
            }
        )
    )


def test_a_lost_verdict_is_no_wrong_one_and_leaves_the_denominator_of_flips(tmp_path: Path) -> None:
    claims = make_claims()
    right = claims["label"].astype(float).to_numpy()
    before, after = right.copy(), right.copy()
    before[:4] = np.nan  # not judged before
    after[10:20] = np.nan  # lost
    after[30:36] = 1 - after[30:36]  # became wrong
    found = diff_runs(make_run(tmp_path / "one", before, claims), make_run(tmp_path / "two", after, claims))
    row = next(row for row in found.changes if row["dataset"] == "__macro__")
    assert (row["n"], row["n_both"], row["n_flips"], row["to_right"], row["to_wrong"]) == (N, N - 14, 6, 0, 6)
    assert (row["lost"], row["gained"]) == (10, 4)
    assert row["flips"] == pytest.approx(6 / (N - 14))
    assert found.judge(["flips>0.06"]).failing == []


def test_evaluators_are_paired_by_name_then_by_option_then_those_left(tmp_path: Path) -> None:
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    wrong = 1 - right
    one = make_run(tmp_path / "one", right, claims, "gpt-4o", more=("rouge",))
    two = make_run(tmp_path / "two", wrong, claims, "unigram:threshold=0.9", more=("rouge",))
    found = diff_runs(one, two)
    assert found.pairs == [
        {"before": "gpt-4o", "after": "unigram:threshold=0.9"},
        {"before": "rouge", "after": "rouge"},
    ]
    assert found.judge(["bacc<-0.5"]).failing
    done = CliRunner().invoke(cli, ["diff", str(one), str(two)], catch_exceptions=False)
    assert "pair      gpt-4o → unigram:threshold=0.9, compared as one evaluator" in done.output
    named = diff_runs(one, two, pairs=["rouge=unigram:threshold=0.9"])
    assert [(pair["before"], pair["after"]) for pair in named.pairs] == [
        ("gpt-4o", "rouge"),
        ("rouge", "unigram:threshold=0.9"),
    ]
    with pytest.raises(UsageError, match="no evaluator 'gpt-5' before"):
        diff_runs(one, two, pairs={"gpt-5": "rouge"})


def test_where_nothing_can_be_compared_the_gate_does_not_pass(tmp_path: Path) -> None:
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    one = make_run(tmp_path / "one", right, claims, "a", more=("b",))
    two = make_run(tmp_path / "two", right, claims, "c", more=("d",))
    with pytest.raises(UsageError, match=r"nothing to compare: the evaluators are a, b before and c, d after"):
        diff_runs(one, two)
    empty = make_run(tmp_path / "empty", np.full(N, np.nan), claims, "a")
    alone = make_run(tmp_path / "alone", right, claims, "a")
    with pytest.raises(UsageError, match="no claim is judged in both runs"):
        diff_runs(alone, empty)
    some = make_run(tmp_path / "some", right, claims, "a", more=("c", "d"))
    arguments = ["diff", str(one), str(two), "--pair", "a=c", "--fail-on", "bacc<-0.02"]
    assert CliRunner().invoke(cli, arguments, catch_exceptions=False).exit_code == 0, "b and d are the only ones left"
    other = make_run(tmp_path / "other", right, claims, "a", more=("b", "e"))
    with pytest.raises(UsageError, match="not compared: b, e before, c, d after"):
        CliRunner().invoke(cli, ["diff", str(other), str(some), "--fail-on", "bacc<-0.02"], catch_exceptions=False)
    unlabelled = claims.assign(label=pd.array([pd.NA] * N, dtype="Int8"))
    pair = [make_run(tmp_path / name, right, unlabelled) for name in ("u1", "u2")]
    with pytest.raises(UsageError, match=r"BAcc is undefined, so that bacc<-0\.02 cannot be checked"):
        CliRunner().invoke(cli, ["diff", *map(str, pair), "--fail-on", "bacc<-0.02"], catch_exceptions=False)


def test_findings_are_new_gone_or_changed_and_those_of_other_audits_are_left_out(tmp_path: Path) -> None:
    def finding(severity: str, id: str, dataset: str | None = "d") -> dict[str, object]:
        statement = f"{id} {severity}"
        return {"id": id, "severity": severity, "evaluator": "judge", "dataset": dataset, "statement": statement}

    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    runs = [
        make_run(tmp_path / "one", right, claims),
        make_run(tmp_path / "two", right, claims, "new", audits=("rates", "quantification", "headroom")),
    ]
    before = [finding("fail", "gap"), finding("warn", "bacc_tie"), finding("warn", "unscored")]
    after = [finding("warn", "gap"), finding("warn", "bacc_tie", "e"), finding("warn", "headroom")]
    for folder, mine in zip(runs, (before, after), strict=True):
        stored = json.loads((folder / "results.json").read_text())
        name = stored["about"]["evaluators"][0]["name"]
        stored["findings"] = [each | {"evaluator": name, "evidence": {}} for each in mine]
        (folder / "results.json").write_text(json.dumps(stored))
    found = diff_runs(*runs)
    told = [(row["change"], row["id"], row["dataset"]) for row in found.findings]
    assert told == [
        ("changed", "gap", "d"),
        ("new", "bacc_tie", "e"),
        ("gone", "bacc_tie", "d"),
        ("gone", "unscored", "d"),
    ]
    output = CliRunner().invoke(cli, ["diff", *map(str, runs)], catch_exceptions=False).output
    assert "changed   [fail → warn] gap warn" in output, "from found to in doubt, or to not known: no milder fault"


# The gate -----------------------------------------------------------------------------------------------------------

LABEL = np.repeat([1, 0], [80, 40])
ENDS = ("_before", "_after", "", "_low", "_high")


def make_row(evaluator: str, before: np.ndarray, after: np.ndarray) -> Row:
    """A row of `factaudit.diff.RunDiff.changes`, over all claims."""
    n = len(LABEL)
    row: Row = {"evaluator": evaluator, "dataset": "__macro__"}
    for key, values in compute_paired_changes(LABEL, before, after, np.zeros(n, int), 1, np.arange(n)).items():
        row |= {f"{key}{end}": float(one[0]) for end, one in zip(ENDS, values, strict=True)}
    both = ~np.isnan(before) & ~np.isnan(after)
    row |= {"n_both": int(both.sum()), "n_flips": int((before != after)[both].sum())}
    return row | {"lost": int(np.isnan(after).sum()), "gained": int(np.isnan(before).sum())}


def make_wrong(*places: int) -> np.ndarray:
    """Predictions that are right but at these places."""
    said = LABEL.astype(float)
    said[list(places)] = 1 - said[list(places)]
    return said


def test_a_bias_that_shrinks_fails_no_condition_on_bias() -> None:
    # 8 errors passed, then 4: the bias goes from -6.7 to -3.3 points.
    row = make_row("judge", make_wrong(*range(80, 88)), make_wrong(*range(80, 84)))
    assert row["bias_before"] < row["bias_after"] < 0 < row["bias"]
    assert judge_changes([row], [], ["bias>0.01"]).word == "pass"
    (met,) = judge_changes([row], [], ["bias<-0.01"]).warnings
    assert met.startswith("judge: size of bias changed by −3.3 points")


def test_lost_verdicts_neither_raise_nor_lower_a_figure() -> None:
    """A judge that no longer answers where it was wrong has not become better; what it lost has its own figure."""
    before = make_wrong(*range(12))
    after = before.copy()
    after[:12] = np.nan
    row = make_row("judge", before, after)
    assert [row[key] for key in ("bacc", "tpr", "tnr", "ppr", "bias", "abs_bias")] == [0.0] * 6
    assert (row["tpr_before"], row["unscored"]) == (1.0, 0.1)
    assert judge_changes([row], [], []).sentences == ["judge: no prediction changed"]
    before[2:12], after[2:12] = 1 - before[2:12], 1 - before[2:12]
    assert judge_changes([make_row("judge", before, after)], [], []).word == "no significant change"
    assert judge_changes([row], ["unscored>0.02"], []).word == "fail"


def test_a_verdict_names_first_what_it_rests_on_and_says_of_the_others_that_they_did_not_change() -> None:
    right = make_wrong()
    rows = [
        make_row("same", right, right),
        make_row("noisy", right, make_wrong(0, 90)),
        make_row("judge", right, make_wrong(*range(20), *range(80, 95))),
    ]
    verdict = judge_changes(rows, [], [])
    assert verdict.word == "worse"
    assert verdict.sentences[0].startswith("judge: BAcc changed by −")
    assert verdict.sentences[-2] == "same: no prediction changed"
    assert verdict.sentences[-1].startswith("noisy: BAcc changed by −")
    assert verdict.sentences[-1].endswith("), not significant after the correction for all evaluators")


def test_several_evaluators_are_corrected_for_each_other() -> None:
    row = make_row("judge", make_wrong(), make_wrong(0, 90))
    likely = row | {"bacc": -0.03, "bacc_low": -0.0571, "bacc_high": -0.0029}  # p = 0.03
    assert judge_changes([likely], [], []).word == "worse"
    assert judge_changes([likely, likely | {"evaluator": "other"}], [], []).word == "no significant change"


def test_a_warning_that_cannot_be_checked_has_not_passed() -> None:
    """ "PASS: judge: the change of TPR is undefined" of claims without labels."""
    row = make_row("judge", make_wrong(), make_wrong(1)) | {"tpr": None, "tpr_low": None, "tpr_high": None}
    verdict = judge_changes([row], [], ["tpr<0"])
    assert verdict.word == "warn"
    assert verdict.sentences == [
        "judge: TPR is undefined, so that tpr<0 cannot be checked (are there labels?)",
    ]
    assert judge_changes([row], [], ["ppr>0.5"]).word == "pass"
