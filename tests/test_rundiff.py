"""Two runs beside each other: what changed on the claims that both have."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from conftest import Call, run_command

from factaudit.arrays.judgements import Judgements
from factaudit.audit.differences import compute_evaluator_differences
from factaudit.cli import cli
from factaudit.cli.diff import _display_run_versions
from factaudit.errors import FactauditError, InputError, UsageError
from factaudit.experiment import Experiment, run
from factaudit.report.plots.command_plots import draw_version_curve
from factaudit.results import Results
from factaudit.run_diff import diff_runs, write_run_diff
from factaudit.run_diff_markdown import render_run_diff_markdown
from factaudit.run_finding_changes import _tell_figure_of_both_runs
from factaudit.run_system_orders import list_system_order_sentences
from factaudit.run_versions import compare_run_versions
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
    # The ten are system a's, which had the fewer errors or as many.
    assert [(one["before"], one["after"]) for one in found.systems] in ([], [(["a", "b"], ["b", "a"])])


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
    """Asked three times, a judge that errs by chance on some claims has a narrower interval than asked once."""
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
    assert found.n_repeats == {"before": 9, "after": 9}
    row = next(row for row in found.changes if row["dataset"] == "d")
    inside = (claims["dataset"] == "d").to_numpy() & (right == 1)
    assert row["tpr_after"] == pytest.approx(folders[1][1][inside].mean())
    once = [read_verdicts(folder / "verdicts.parquet") for folder, _ in folders]
    for (folder, _), verdicts in zip(folders, once, strict=True):
        write_table(verdicts[verdicts["repeat"] == 0], folder / "verdicts.parquet")
    single = next(row for row in diff_runs(*(folder for folder, _ in folders)).changes if row["dataset"] == "d")
    assert row["bacc_high"] - row["bacc_low"] < 0.6 * (single["bacc_high"] - single["bacc_low"])


def test_a_summary_for_a_pull_request_has_the_verdict_and_shows_text_as_it_is(
    runs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in runs:
        claims = read_claims(folder / "claims.parquet")
        claims["claim"] = "<img src=x> | `a` @team #1 [b](http://c) " + "long " * 90
        write_table(claims, folder / "claims.parquet")
    for name, value in (("SERVER_URL", "https://github.com"), ("REPOSITORY", "o/r"), ("RUN_ID", "7")):
        monkeypatch.setenv(f"GITHUB_{name}", value)
    assert run_command("diff", *map(str, runs), "--fail-on", "bacc<-0.01", "--format", "github") == 1
    told = capsys.readouterr()
    assert told.out.startswith("### ❌ factaudit: fail\n\n- judge: BAcc changed by −6.6 points")
    assert told.out.count("| judge |") == 4, "the table's row, and three claims"
    assert not re.search(r"<img|@team|(?<!&)#\d|http://", told.out)
    assert "[The whole report](<https://github.com/o/r/actions/runs/7>)" in told.out
    assert max(map(len, told.out.splitlines())) < 400
    assert told.err.startswith("FAIL: judge: BAcc changed by")


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
    arguments = ["diff", before, after, "--replicates", "0", "--out", str(tmp_path / "diff.json")]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "10 became wrong" in done.output
    stored = json.loads((tmp_path / "diff.json").read_text())
    assert (stored["n_claims"], stored["warnings"], stored["undecided"]) == (N - 6, [], [])
    assert "brackets  95 % CIs of the paired difference, each of one change alone\n" in done.output
    arguments[-1] = str(tmp_path / "diff.html")
    with pytest.raises(FactauditError, match=r"bacc<-0\.01"):
        CliRunner().invoke(cli, [*arguments, "--fail-on", "bacc<-0.01"], catch_exceptions=False)
    page = (tmp_path / "diff.html").read_text(encoding="utf-8")
    assert "judge: BAcc changed by −6.6 points (95 % CI −11.9 to −1.3): bacc&lt;-0.01 holds" in page
    assert "−6.6" in page, "a change of BAcc in points"
    assert "<script" not in page


def test_files_are_named_and_no_report_is_that_is_gone(tmp_path: Path) -> None:
    """ "report    /tmp/tmpl3753xqt/before/report.html": a folder that is deleted when the command ends."""
    claims = make_claims().assign(evaluator="judge", prediction=lambda table: table["label"])
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for file in files:
        claims.to_csv(file, index=False)
    done = CliRunner().invoke(cli, ["diff", *map(str, files)], catch_exceptions=False)
    assert done.exit_code == 0
    assert re.findall(r"(?m)^file +(.*)$", done.stderr) == list(map(str, files))
    assert "report.html" not in done.output
    assert "brackets" not in done.output, "nothing changed"


def test_a_page_marks_a_change_of_another_figure_as_the_summary_does(tmp_path: Path) -> None:
    """ "Changed" stood in the green of a pass."""
    found = diff_runs(*make_runs_of_changed_tpr(tmp_path))
    assert found.judge().word == "changed"
    write_run_diff(found, tmp_path / "diff.html", found.judge())
    assert '<b class="badge warn">changed</b>' in (tmp_path / "diff.html").read_text()
    assert render_run_diff_markdown(found, found.judge()).startswith("### ⚠️ factaudit: changed")


def make_runs_of_changed_tpr(tmp_path: Path) -> list[Path]:
    """A judge that passed everything, and an update that rejects a fifth of either class."""
    claims = make_claims(600)
    after = np.where(np.arange(600) // 3 % 5 == 0, 0, 1)
    return [make_run(tmp_path / name, said, claims) for name, said in (("one", np.ones_like(after)), ("two", after))]


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
    done = CliRunner().invoke(
        cli, ["diff", str(tmp_path / "one/run"), str(tmp_path / "two/run"), "--replicates", "0"], catch_exceptions=False
    )
    assert "6 of 106 predictions changed (5.7 %); 6 became wrong; 10 lost their verdict; 4 were not judged before" in (
        done.output
    )


def test_a_bias_that_shrinks_fails_no_condition_on_bias(tmp_path: Path) -> None:
    claims = make_claims()
    label = claims["label"].to_numpy(dtype=int)
    before, after = label.copy(), label.copy()
    wrong = np.flatnonzero(label == 0)
    before[wrong[:8]] = 1  # 8 errors passed, then 4: the bias goes from -6.7 to -3.3 points
    after[wrong[:4]] = 1
    found = diff_runs(make_run(tmp_path / "one", before, claims), make_run(tmp_path / "two", after, claims))
    row = next(row for row in found.changes if row["dataset"] == "__macro__")
    assert row["bias_before"] < row["bias_after"] < 0 < row["bias"]
    assert found.judge([], ["bias>0.01"]).word == "pass"
    (met,) = found.judge([], ["bias<-0.01"]).warnings
    assert met.startswith("judge: size of bias changed by −3.3 points")
    assert "; smaller is better)" in met


def test_evaluators_are_paired_by_name_then_by_option_then_those_left(tmp_path: Path) -> None:
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    wrong = 1 - right
    one = make_run(tmp_path / "one", right, claims, "gpt-4o", more=("rouge",))
    two = make_run(tmp_path / "two", wrong, claims, "unigram:threshold=0.9", more=("rouge",))
    found = diff_runs(one, two)
    assert [(pair["before"], pair["after"], pair["by"]) for pair in found.pairs] == [
        ("gpt-4o", "unigram:threshold=0.9", "left over"),
        ("rouge", "rouge", "name"),
    ]
    assert found.judge(["bacc<-0.5"]).failing
    arguments = ["diff", str(one), str(two), "--replicates", "0"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert "gpt-4o → unigram:threshold=0.9: the only ones left, compared as one evaluator" in done.output
    shown = CliRunner().invoke(cli, [*arguments, "--format", "github"], catch_exceptions=False).output
    assert "unigram:threshold=0.9 is compared with gpt-4o: the only ones left." in shown
    named = diff_runs(one, two, pairs=["rouge=unigram:threshold=0.9"])
    assert [(pair["before"], pair["after"]) for pair in named.pairs] == [
        ("gpt-4o", "rouge"),
        ("rouge", "unigram:threshold=0.9"),
    ]
    with pytest.raises(UsageError, match="no evaluator 'gpt-5' before"):
        diff_runs(one, two, pairs={"gpt-5": "rouge"})


def test_an_evaluator_whose_name_is_taken_is_in_both_runs_and_not_compared(tmp_path: Path) -> None:
    """ "rouge: only before" of an evaluator that the run after has, too, as the partner of another."""
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    runs = [make_run(tmp_path / name, right, claims, "judge", more=("rouge",)) for name in ("one", "two")]
    page = tmp_path / "diff.html"
    arguments = ["diff", *map(str, runs), "--pair", "judge=rouge", "--pair", "rouge=judge"]
    assert "alone" not in CliRunner().invoke(cli, arguments, catch_exceptions=False).output
    three = make_run(tmp_path / "three", right, claims, "judge", more=("rouge", "third"))
    arguments = ["diff", str(three), str(runs[1]), "--pair", "judge=rouge", "--out", str(page), "--format", "github"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    found = diff_runs(three, runs[1], pairs={"judge": "rouge"})
    assert found.only_evaluators_before == ["rouge", "third"]
    assert "alone     rouge, third (before): not compared" in done.output
    assert "Not compared: rouge, third (before)." in done.output
    assert "Not compared: rouge, third (before)." in html.unescape(page.read_text(encoding="utf-8"))


def test_rates_of_what_both_runs_judged_are_told_as_such(tmp_path: Path) -> None:
    """ "4 were not judged before; of those judged in both; BAcc −6.6": a phrase of its own that is of nothing."""
    claims = make_claims()
    right = claims["label"].astype(float).to_numpy()
    before, after = right.copy(), right.copy()
    before[:4], after[30:36] = np.nan, 1 - after[30:36]
    runs = [make_run(tmp_path / name, one, claims) for name, one in (("one", before), ("two", after))]
    output = CliRunner().invoke(cli, ["diff", *map(str, runs)], catch_exceptions=False).output
    assert "; 4 were not judged before; of those judged in both: BAcc " in output


@pytest.mark.parametrize("has_systems", [True, False])
def test_an_order_is_told_unchanged_and_a_bias_by_system_where_there_are_systems(
    tmp_path: Path, has_systems: bool
) -> None:
    """ "No evaluator changed its order of the systems", and "1 of 1 changes of bias by data set and system (corrected
    for 1)", of claims of no system.
    """
    claims = make_claims(400).assign(dataset="d", system=None)
    if has_systems:
        claims["system"] = np.where(np.arange(400) % 2, "a", "b")
    claims = validate_claims(claims)
    label = claims["label"].to_numpy(dtype=int)
    before = label.copy()
    before[np.flatnonzero(label == 1)[:100]] = 0
    runs = [make_judgements(tmp_path / name, {"judge": one}, claims) for name, one in (("1", before), ("2", label))]
    page = tmp_path / "diff.html"
    found = diff_runs(*runs)
    assert found.n_systems == (2 if has_systems else 0)
    CliRunner().invoke(cli, ["diff", *map(str, runs), "--out", str(page)], catch_exceptions=False)
    assert ("Order of systems" in page.read_text(encoding="utf-8")) == has_systems
    (why,) = (row["why"] for row in found.findings if row["id"] == "bias" and row["change"] != "restated")
    by = "3 of 3 changes of bias by data set and system are" if has_systems else "1 of 1 changes of bias by data set is"
    assert f"{by} significant (95 % CI{'s corrected for 3' if has_systems else ''}): " in why


def test_a_finding_of_a_gain_is_not_told_with_what_is_gained() -> None:
    """ "BAcc tuned 82.2 → 82.2" of a threshold that was tuned: the gain went, the tuned BAcc stayed."""
    results = [
        Results(
            signature="",
            about={"evaluators": [{"name": "e"}]},
            audits={"discrimination": [{"dataset": "d", "evaluator": "e", "bacc": bacc, "tuned_bacc": 0.82}]},
        )
        for bacc in (0.77, 0.82)
    ]
    finding = {"id": "threshold", "severity": "warn", "evaluator": "e", "dataset": "d"}
    finding["evidence"] = {"bacc": 0.77, "tuned_bacc": 0.82}
    told = (("e",), ("e",))
    assert not _tell_figure_of_both_runs(finding, (results[0], results[1]), told)
    bare = finding | {"evidence": {}}
    assert _tell_figure_of_both_runs(bare, (results[0], results[1]), told) == "BAcc tuned 82.0 → 82.0."


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
    arguments = ["diff", str(one), str(two), "--pair", "a=c", "--replicates", "0", "--fail-on", "bacc<-0.02"]
    assert CliRunner().invoke(cli, arguments, catch_exceptions=False).exit_code == 0, "b and d are the only ones left"
    other = make_run(tmp_path / "other", right, claims, "a", more=("b", "e"))
    with pytest.raises(UsageError, match="not compared: b, e before, c, d after"):
        CliRunner().invoke(cli, ["diff", str(other), str(some), "--fail-on", "bacc<-0.02"], catch_exceptions=False)
    unlabelled = claims.assign(label=pd.array([pd.NA] * N, dtype="Int8"))
    pair = [make_run(tmp_path / name, right, unlabelled) for name in ("u1", "u2")]
    with pytest.raises(UsageError, match=r"BAcc is undefined, so that bacc<-0\.02 cannot be checked"):
        CliRunner().invoke(cli, ["diff", *map(str, pair), "--fail-on", "bacc<-0.02"], catch_exceptions=False)


def test_a_finding_that_changed_is_one_and_other_audits_make_none(tmp_path: Path) -> None:
    def finding(severity: str, dataset: str | None = "d", id: str = "gap") -> dict[str, object]:
        return {"id": id, "severity": severity, "evaluator": "judge", "dataset": dataset, "statement": severity}

    claims = make_claims()
    stable = ("unscored", "bias")
    right = claims["label"].to_numpy(dtype=int)
    runs = [
        make_run(tmp_path / "one", right, claims),
        make_run(tmp_path / "two", right, claims, "new", audits=("rates", "quantification", "headroom")),
    ]
    for folder, mine in zip(
        runs,
        (
            [finding("fail", "d"), finding("warn", "d", "bacc_tie"), *(finding("warn", "d", id_) for id_ in stable)],
            [
                finding("warn", "e"),
                finding("warn", "e", "bacc_tie"),
                finding("warn", "d", "headroom"),
                finding("warn", "d", stable[0]),
                finding("warn", "d", stable[1]) | {"statement": "Three of 12 are off."},
            ],
        ),
        strict=True,
    ):
        stored = json.loads((folder / "results.json").read_text())
        name = stored["about"]["evaluators"][0]["name"]
        stored["findings"] = [each | {"evaluator": name, "evidence": {}} for each in mine]
        (folder / "results.json").write_text(json.dumps(stored))
    found = diff_runs(*runs)
    assert [(row["change"], row["id"]) for row in found.findings] == [
        ("changed", "gap"),
        ("moved", "bacc_tie"),
        ("restated", "bias"),
    ]
    assert (found.findings[0]["severity_before"], found.findings[0]["statement_before"]) == ("fail", "fail")
    assert (found.findings_not_compared, found.findings_not_compared_before) == (1, 0)
    output = CliRunner().invoke(cli, ["diff", *map(str, runs), "--replicates", "0"], catch_exceptions=False).output
    assert "changed   [fail → warn] warn" in output, "from found to in doubt, or to not known: no milder fault"
    assert "\n  before: fail" in output, "what a changed finding was"
    assert "findings  1 of the same check and severity, with another statement or other figures (--format" in output
    assert "findings  1 after: of an audit or evaluator without a partner in the other run" in output
    # No verdict changed: why findings did, is said. A label that changed may be the reason, too.
    assert [bool(row.get("why")) for row in found.findings] == [True, True, False]
    labels = claims["label"].where(claims.index > 0, 1 - claims["label"])
    write_table(claims.assign(label=labels), runs[1] / "claims.parquet")
    assert not any("are the same" in row.get("why", "") for row in diff_runs(*runs).findings)


def test_an_order_of_systems_that_chance_makes_is_not_said_with_a_sign(runs: tuple[Path, Path]) -> None:
    found = diff_runs(*runs)
    assert all(not row["pairs"] for row in found.systems)
    output = CliRunner().invoke(cli, ["diff", *map(str, runs), "--replicates", "0"], catch_exceptions=False).output
    assert " < " not in output


@pytest.mark.parametrize(("clustered", "signs"), [(True, []), (False, ["="])])
def test_orders_of_systems_are_tested_by_documents(tmp_path: Path, clustered: bool, signs: list[str]) -> None:
    """System a has 20 of 60 errors, b 5 of 60, which a z-test calls different; a's lie in one document of three."""
    place = np.arange(120)
    document = place % 60 // 20 if clustered else place
    is_wrong = np.where(place < 60, place < 20, place % 12 == 0)
    label = (~is_wrong).astype(int)
    table = pd.DataFrame({"claim_id": place.astype(str), "dataset": "d", "claim": "a claim", "label": label})
    claims = validate_claims(table.assign(system=np.where(place < 60, "a", "b"), doc_id=document.astype(str)))
    two = make_run(tmp_path / "one", label, claims), make_run(tmp_path / "two", np.ones(120, dtype=int), claims)
    found = diff_runs(*two).systems
    assert [pair["after"] for row in found for pair in row["pairs"]] == signs
    assert all(pair["before"] == ">" for row in found for pair in row["pairs"])
    for row in found:
        assert list_system_order_sentences(row)[-1].startswith(
            "judge, d: systems by predicted error rate b, a → a = b"
        ), "said beside a sentence on pairs, too"
    for pair in (pair for row in found for pair in row["pairs"]):
        assert (pair["difference_before"], pair["change"], pair["n_pairs"]) == pytest.approx((0.25, -0.25, 1))
        assert pair["change_high"] < 0
        sentence = list_system_order_sentences(found[0])[0]
        assert sentence.startswith(
            "judge, d: predicted error rate of a minus that of b +25.0 → 0.0: −25.0 points (95 %"
        )


def test_significant_in_one_run_alone_is_no_significant_change(tmp_path: Path) -> None:
    """18 and 8 predicted errors of 60 differ (p = 0.03), 16 and 9 do not (p = 0.11): three predictions changed."""
    claims = make_claims().assign(dataset="d")
    place = np.arange(N) % 60
    is_b = np.arange(N) >= 60
    folders = [
        make_run(tmp_path / name, np.where(place < np.where(is_b, n_b, n_a), 0, 1), claims)
        for name, n_a, n_b in (("one", 18, 8), ("two", 16, 9))
    ]
    (row,) = diff_runs(*folders).systems
    (pair,) = row["pairs"]
    assert (pair["before"], pair["after"]) == (">", "=")
    assert pair["change"] == pytest.approx(-3 / 60)
    assert pair["change_low"] < 0 < pair["change_high"]
    said = "judge, d: 1 pair of systems differs significantly in one run alone, but no significant change of its "
    said += "difference is shown"
    assert list_system_order_sentences(row) == [said]
    page = tmp_path / "diff.html"
    output = CliRunner().invoke(cli, ["diff", *map(str, folders), "--out", str(page)], catch_exceptions=False).output
    assert said in output
    assert f"<p>{said}.</p>" in page.read_text()
    assert "significantly fewer" not in output + page.read_text()
    surely = pair | {"change_low": 0.1, "change_high": 0.3}
    turned = pair | {"before": "<", "after": ">"}
    assert list_system_order_sentences(row | {"pairs": [surely, pair, pair, turned]})[1:] == [
        "judge, d: 2 more pairs of systems differ significantly in one run alone, but no significant change of their "
        "differences is shown",
        said.replace("1 pair", "1 more pair").replace("in one run alone", "the other way round"),
    ]


def test_what_has_no_interval_is_none_of_the_tests_that_a_correction_is_for(tmp_path: Path) -> None:
    """A third system, and a third of the figures, have one document: no interval, no test, and it is said."""
    claims = make_claims(180).assign(dataset="d", system=np.repeat(["a", "b", "c"], 60), label=1)
    claims["doc_id"] = np.where(claims["system"] == "c", "one", claims["claim_id"])
    place = np.arange(180) % 60
    folders = [
        make_judgements(tmp_path / name, {"judge": np.where(place < np.repeat(n_wrong, 60), 0, 1)}, claims)
        for name, n_wrong in (("one", (40, 2, 30)), ("two", (2, 2, 30)))
    ]
    found = diff_runs(*folders)
    (row,) = found.systems
    (pair,) = (pair for pair in row["pairs"] if (pair["system_a"], pair["system_b"]) == ("a", "b"))
    assert (pair["n_pairs"], pair["n_untested_pairs"]) == (1, 2)
    assert "; 2 more could not be tested (a system has one document)" in list_system_order_sentences(row)[0]
    (bias,) = (one for one in found.findings if one["id"] == "bias")
    assert bias["n_significant"] == 1
    assert (
        "1 of 3 changes of bias by data set and system is significant (95 % CIs corrected for 3; 1 more" in bias["why"]
    )


def test_a_severity_that_fell_beside_figures_that_got_worse_is_no_improvement(tmp_path: Path) -> None:
    claims = make_claims().assign(dataset="d")
    right = claims["label"].to_numpy(dtype=int)
    before = make_run(tmp_path / "one", right, claims)
    for name, gap, is_warned in (("two", 0.3, True), ("three", 0.1, False)):
        after = make_run(tmp_path / name, right, claims)
        for folder, severity, size in ((before, "fail", 0.2), (after, "warn", gap)):
            stored = json.loads((folder / "results.json").read_text())
            finding = {"id": "gap", "severity": severity, "evaluator": "judge", "dataset": "d", "statement": severity}
            stored["findings"] = [finding | {"evidence": {"gap": size}}]
            (folder / "results.json").write_text(json.dumps(stored))
        (row,) = diff_runs(before, after).findings
        assert row["change"] == "changed"
        assert row["why"].endswith("this is no improvement.") == is_warned
    assert "the figures got worse" in diff_runs(before, tmp_path / "two" / "run").findings[0]["why"]


def test_systems_of_one_rate_are_in_no_order(tmp_path: Path) -> None:
    """Two tied systems stood in the order of their names, and were said to have changed places."""
    claims, place, is_b = make_claims().assign(dataset="d"), np.arange(N) % 60, np.arange(N) >= 60
    folders = [
        make_run(tmp_path / name, np.where(place < np.where(is_b, n_b, n_a), 0, 1), claims)
        for name, n_a, n_b in (("tied", 10, 10), ("apart", 12, 9), ("other", 9, 12))
    ]
    said = "judge, d: systems by predicted error rate a = b → {}; no pair's significant order changed"
    for after, order in ((folders[1], "b, a"), (folders[2], "a, b")):
        (row,) = diff_runs(folders[0], after).systems
        assert row["rates_before"] == pytest.approx([10 / 60] * 2)
        assert row["rates_after"] == pytest.approx([9 / 60, 12 / 60])
        assert list_system_order_sentences(row) == [said.format(order)]
    assert not diff_runs(folders[0], folders[0]).systems


def test_an_order_that_the_first_of_several_repeats_changed_did_not_change_by_their_mean(tmp_path: Path) -> None:
    claims, place, is_b = make_claims().assign(dataset="d"), np.arange(N) % 60, np.arange(N) >= 60
    apart, alike = (np.where(place < np.where(is_b, n_b, n_a), 0, 1) for n_a, n_b in ((30, 2), (22, 20)))
    folders = []
    for name, first, again in (("one", apart, alike), ("two", alike, apart)):
        folders.append(make_run(tmp_path / name, first, claims))
        verdicts = read_verdicts(folders[-1] / "verdicts.parquet")
        more = verdicts.assign(repeat=1, prediction=pd.array(again, dtype="Int8"))
        write_table(pd.concat([verdicts, more], ignore_index=True), folders[-1] / "verdicts.parquet")
    (row,) = diff_runs(*folders).systems
    assert [(pair["before"], pair["after"], pair["change"]) for pair in row["pairs"]] == [(">", "=", 0.0)]
    assert list_system_order_sentences(row)[0].endswith("no significant change of its difference is shown")


def test_what_is_unscored_in_both_runs_is_no_change_to_correct_for(tmp_path: Path) -> None:
    """An evaluator whose verdicts are the same, one of them lacking, was counted among the changed: NaN is not NaN."""
    claims, place, is_b = make_claims().assign(dataset="d"), np.arange(N) % 60, np.arange(N) >= 60
    folders = []
    for name, n_a, n_b in (("one", 30, 2), ("two", 22, 20)):
        said = np.where(place < np.where(is_b, n_b, n_a), 0, 1)
        folders.append(make_run(tmp_path / name, said, claims, more=("other",)))
        verdicts = read_verdicts(folders[-1] / "verdicts.parquet")
        is_other = verdicts["evaluator"] == "other"
        verdicts.loc[is_other, "prediction"] = pd.array([None, *np.arange(N - 1) % 2], dtype="Int8")
        verdicts.loc[is_other, "status"] = ["error", *["ok"] * (N - 1)]
        write_table(verdicts, folders[-1] / "verdicts.parquet")
    (row,) = diff_runs(*folders).systems
    assert (row["evaluator"], [pair["n_pairs"] for pair in row["pairs"]]) == ("judge", [1])


def make_judgements(folder: Path, predictions: dict[str, np.ndarray], claims: pd.DataFrame) -> Path:
    folder.mkdir()
    write_table(claims, folder / "claims.jsonl")
    parts = [
        pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": n, "prediction": p}) for n, p in predictions.items()
    ]
    write_table(validate_verdicts(pd.concat(parts, ignore_index=True)), folder / "verdicts.jsonl")
    inputs = {"claims": [str(folder / "claims.jsonl")], "verdicts": [str(folder / "verdicts.jsonl")]}
    run(Experiment(**inputs, audits=["rates", "quantification", "consistency", "differences"]), folder / "run")
    return folder / "run"


def test_a_finding_that_noise_took_away_is_not_told_as_mended(tmp_path: Path) -> None:
    """Bias of +6 points on d and −6 on e; on d it goes to +1.5 by other errors, or to 0 by none."""
    claims = make_claims(400)
    label = claims["label"].to_numpy(dtype=int)
    right, wrong, on_d = label == 1, label == 0, (claims["dataset"] == "d").to_numpy()
    before = label.copy()
    before[np.flatnonzero(right & on_d)[:12]] = 0
    before[np.flatnonzero(wrong & ~on_d)[:12]] = 1
    noisy, mended = before.copy(), before.copy()
    noisy[on_d], mended[on_d] = label[on_d], label[on_d]
    noisy[np.flatnonzero(right & on_d)[12:18]] = 0
    noisy[np.flatnonzero(wrong & on_d)[:3]] = 1
    folders = [
        make_judgements(tmp_path / name, {"judge": one}, claims)
        for name, one in (("one", before), ("two", noisy), ("three", mended))
    ]
    for after, n, said in (
        (folders[1], 0, "None of 2 changes of bias by data set is significant (corrected for 2)."),
        (folders[2], 1, "1 of 2 changes of bias by data set is significant (95 % CIs corrected for 2): "),
    ):
        (row,) = (row for row in diff_runs(folders[0], after).findings if row["id"] == "direction")
        assert (row["change"], row["n_significant"]) == ("gone", n)
        assert said in row["why"]
    assert "; not significant: e (" in row["why"]
    low, high = map(float, re.findall(r"d \(\+6\.0 → 0\.0, change (\S+) to (\S+)\)", row["why"].replace("−", "-"))[0])
    assert low < -6 < high < 0


def test_of_many_significant_changes_the_one_that_a_finding_states_is_named_first(tmp_path: Path) -> None:
    """Three changes that shrank were named beside a finding of a fourth, which grew and was one of "3 more"."""
    claims = make_claims(1200)
    claims["system"] = np.array(list("abcz"))[np.arange(1200) % 4]
    claims["dataset"] = np.where(claims["system"] == "z", "e", "d")
    claims = validate_claims(claims)
    label, system = claims["label"].to_numpy(dtype=int), claims["system"].to_numpy()
    before, after = label.copy(), label.copy()
    for name in "abc":
        before[np.flatnonzero((label == 1) & (system == name))[:60]] = 0
    after[np.flatnonzero((label == 1) & (system == "z"))[:75]] = 0
    runs = [make_judgements(tmp_path / name, {"judge": one}, claims) for name, one in (("1", before), ("2", after))]
    (row,) = (row for row in diff_runs(*runs).findings if row["id"] == "bias" and row["change"] != "restated")
    assert row["evidence"]["system"] == "z"
    told = row["why"]
    assert re.search(r"^6 of 6 changes .* are significant \(95 % CIs corrected for 6\): z, e \(0\.0 → \+25\.0, ", told)
    assert "; d (+20.0 → 0.0, " in told, "the others in their order"
    assert told.endswith(" and 3 more.")


def test_a_finding_that_other_labels_made_is_not_laid_to_figures_that_cannot_have_changed(tmp_path: Path) -> None:
    """ "None of 2 changes of bias is significant" of a judge that said the same of every claim."""
    claims = make_claims(400)
    label = claims["label"].to_numpy(dtype=int)
    on_d = (claims["dataset"] == "d").to_numpy()
    said = label.copy()
    said[np.flatnonzero((label == 1) & on_d)[:40]] = 0
    runs = [
        make_judgements(tmp_path / name, {"judge": said}, claims.assign(label=labels))
        for name, labels in (("one", label), ("two", said))
    ]
    rows = [row for row in diff_runs(*runs).findings if row["id"] in ("bias", "direction", "gap")]
    assert "changed" in {row["change"] for row in rows}
    for row in rows:
        assert row["n_significant"] == 0
        assert row["why"].endswith("lost verdicts, other evaluators or settings).")


def test_a_finding_that_only_came_to_be_checked_says_what_was_before(tmp_path: Path) -> None:
    """Two judges agree more than before; that they share too little is new, as they are now equally good."""
    claims = make_claims(600).assign(dataset="d")
    label = claims["label"].to_numpy(dtype=int)
    place = np.arange(600) // 3
    other, worse, better = (
        np.where(is_wrong, 1 - label, label) for is_wrong in (place < 70, place % 2 == 0, place >= 130)
    )
    runs = [
        make_judgements(tmp_path / name, {"judge": judge, "other": other}, claims)
        for name, judge in (("one", worse), ("two", better))
    ]
    found = diff_runs(*runs)
    (row,) = (row for row in found.findings if row["id"] == "iou")
    assert (row["change"], row["n_significant"]) == ("new", None)
    cls = {"attributable": 1, "unattributable": 0}[row["evidence"]["class"]]
    shares = [
        ((judge == cls) & (other == cls)).sum() / ((judge == cls) | (other == cls)).sum() for judge in (worse, better)
    ]
    assert row["why"].startswith("Not checked before: ")
    assert row["why"].endswith(f"IoU {shares[0]:.2f} → {shares[1]:.2f}. (no change tested)")
    for one in (one for one in found.findings if one["change"] != "restated"):
        assert (one["n_significant"] is None) == one["why"].endswith("(no change tested)")
    page, shown = tmp_path / "diff.html", ["diff", *map(str, runs)]
    output = CliRunner().invoke(cli, [*shown, "--out", str(page)], catch_exceptions=False).output
    markdown = CliRunner().invoke(cli, [*shown, "--format", "github"], catch_exceptions=False).output
    html_text = html.unescape(page.read_text(encoding="utf-8"))
    told = [one["why"] for one in found.findings if one["change"] != "restated"]
    assert all(why in text for why in told for text in (output, html_text))
    assert html_text.count("(no change tested)") == sum(why.endswith("(no change tested)") for why in told) > 0
    for text in (html_text, markdown):
        assert "each of one change alone." in text
    # One dataset, the same labels: neither is noted.
    assert "of several datasets" not in markdown
    assert "Labels: " not in markdown
    write_table(claims.assign(label=1 - label), runs[1] / "claims.parquet")
    markdown = CliRunner().invoke(cli, [*shown, "--format", "github"], catch_exceptions=False).output
    assert "Labels: 600 differ; these figures use those before." in markdown


def test_labels_that_were_added_contradict_none_and_rates_are_called_those_of_labelled_claims(tmp_path: Path) -> None:
    """ "1,068 labels differ" of labels that are new; "rates of the claims judged in both" of a third of them."""
    claims = make_claims()
    label = claims["label"].to_numpy(dtype=int)
    changed = label.copy()
    changed[::5] = 1 - changed[::5]
    part = claims.assign(label=claims["label"].where(claims.index % 3 == 0))
    whole = claims.assign(label=claims["label"].where(claims.index > 0, 1 - claims["label"]))
    runs = [make_run(tmp_path / "one", label, part), make_run(tmp_path / "two", changed, whole)]
    found = diff_runs(*runs)
    counts = (found.n_labelled, found.n_labels_changed, found.n_labels_added, found.n_labels_removed)
    assert counts == (40, 81, 80, 0)
    row = found.changes[-1]
    assert row["n_flips"] == row["to_right"] + row["to_wrong"] + row["unlabelled_flips"] == 24
    page = tmp_path / "diff.html"
    output = CliRunner().invoke(cli, ["diff", *map(str, runs), "--out", str(page)], catch_exceptions=False).output
    assert "labels    1 differ, 80 only after; rates use those before" in output
    assert "labelled  40 of 120 before: rates and orders of systems are of these" in output
    assert "16 have no label" in output
    html_text = html.unescape(page.read_text(encoding="utf-8"))
    assert "rates are of the labelled claims judged in both runs (40 are labelled)" in html_text
    assert "changed without a label" in html_text
    assert "of the labelled claims judged in both runs (40;" in render_run_diff_markdown(found, found.judge())


def test_claims_of_other_texts_are_counted_and_responses_without_any_are_none(tmp_path: Path) -> None:
    """A fact's place names it: of a response that was written anew the claims are other ones."""
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    silent = pd.DataFrame({"claim_id": ["none"], "dataset": "d", "response_id": "r", "abstained": 1})
    claims = validate_claims(pd.concat([claims, silent], ignore_index=True))
    other = claims.assign(claim=claims["claim"].where(claims.index >= 7, claims["claim"] + " of Zanzibar"))
    runs = []
    for name, table in (("one", claims), ("two", other)):
        runs.append(make_run(tmp_path / name, right, claims.iloc[:N]))
        write_table(table, runs[-1] / "claims.parquet")
    found = diff_runs(*runs)
    assert (found.n_claims, found.n_texts_changed, found.only_before) == (N, 7, 0)
    output = CliRunner().invoke(cli, ["diff", *map(str, runs)], catch_exceptions=False).output
    assert "texts     7 claims in both with another text or document" in output
    assert "texts " not in CliRunner().invoke(cli, ["diff", *map(str, runs[:1] * 2)], catch_exceptions=False).output


def test_a_finding_on_a_data_set_that_a_run_lacks_is_not_told_as_mended(tmp_path: Path) -> None:
    claims = make_claims(400)
    label = claims["label"].to_numpy(dtype=int)
    on_d = (claims["dataset"] == "d").to_numpy()
    said = np.where(on_d, 1, label)  # finds no error of d, and all of e
    runs = [
        make_judgements(tmp_path / name, {"judge": said[rows]}, claims[rows].reset_index(drop=True))
        for name, rows in (("both", on_d | True), ("e", ~on_d))
    ]
    found = diff_runs(*runs)
    assert (found.only_datasets_before, found.only_datasets_after) == (["d"], [])
    left = [row for row in found.findings if "d" in (row["dataset"], row.get("dataset_before"))]
    assert left
    assert all(row["why"].startswith("The run after has no claims of d. ") for row in left)
    new = [row for row in diff_runs(*runs[::-1]).findings if row["dataset"] == "d"]
    assert new
    assert all(row["why"].startswith("The run before has no claims of d.") for row in new)
    assert not any("no claims of" in row.get("why", "") for row in diff_runs(runs[0], runs[0]).findings)
    output = CliRunner().invoke(cli, ["diff", *map(str, runs)], catch_exceptions=False).output
    assert "datasets  d: only before" in output


def test_a_finding_on_chunks_rests_on_the_verdicts_of_the_chunked_evaluator(tmp_path: Path) -> None:
    """ "The verdicts are the same" of a finding on chunks, whose size had changed a tenth of them."""
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    chunked = np.where(np.arange(N) % 10 == 0, 0, right)
    runs = [
        make_judgements(tmp_path / name, {"plain": right, "chunked": each}, claims)
        for name, each in (("one", right), ("two", chunked), ("three", right))
    ]
    for at, folder in enumerate(runs):
        stored = json.loads((folder / "results.json").read_text())
        finding = {"id": "chunking", "severity": "warn", "evaluator": "plain", "statement": "s"}
        finding |= {"dataset": "d" if at == 0 else "e", "evidence": {"chunked_evaluator": "chunked"}}
        stored["findings"], stored["audits"]["chunking"] = [finding], []
        (folder / "results.json").write_text(json.dumps(stored))
    (moved,), (same,) = (diff_runs(runs[0], other).findings for other in runs[1:])
    assert moved["change"] == same["change"] == "moved"
    assert "are the same" not in moved["why"]
    assert "are the same" in same["why"]


def test_the_figure_of_versions_joins_levels_of_the_same_claims_alone(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Levels on other claims rose by 6 points of a judge that had changed nothing."""
    claims = make_claims()
    right = claims["label"].to_numpy(dtype=int)
    said = np.where(np.arange(N) % 6 == 0, 1 - right, right)
    folders = [tmp_path / name / "run" for name in ("one_v", "two_v")]
    for folder, name in zip(folders, ("judge", "judge-2"), strict=True):
        folder.parent.mkdir()
        make_run(folder, said, claims, name)
    same = draw_version_curve(compare_run_versions([folder / "run" for folder in folders])).axes[0]
    assert [text.get_text() for text in same.get_xticklabels()] == ["one_v/run/run", "two_v/run/run"]
    assert [line.get_label() for line in same.lines if not line.get_label().startswith("_")] == ["judge → judge-2"]
    assert same.get_xlabel() == ""

    def count_joins(axes: object) -> int:
        return sum(list(line.get_xdata()) == [0, 1] and line.get_linestyle() == "-" for line in axes.lines)

    assert count_joins(same) == 1
    some = claims[claims["dataset"] == "d"].reset_index(drop=True)
    other = make_run(tmp_path / "less", said[(claims["dataset"] == "d").to_numpy()], some)
    cut = draw_version_curve(compare_run_versions([folders[0] / "run", other])).axes[0]
    assert count_joins(cut) == 0
    assert "other claims" in cut.get_xlabel()


def test_runs_of_other_claims_are_refused(runs: tuple[Path, Path], tmp_path: Path) -> None:
    claims = validate_claims(pd.DataFrame({"dataset": "d", "claim": ["x", "y"], "label": [0, 1]}))
    other = make_run(tmp_path / "other", np.array([0, 1]), claims)
    with pytest.raises(InputError, match="no claim in common"):
        diff_runs(runs[0], other)


def name_best_run(runs: list[Path]) -> str | None:
    """The run with the highest balanced accuracy, by plain pandas; None of equals."""
    found = {}
    for at, folder in enumerate(runs):
        both = pd.read_parquet(folder / "claims.parquet").merge(
            pd.read_parquet(folder / "verdicts.parquet"), on="claim_id"
        )
        both = both.astype({"label": float, "prediction": float})
        right = (both["label"] == both["prediction"]).groupby(both["label"]).mean()
        found[at] = round(right.mean(), 12)
    best = [at for at, bacc in found.items() if bacc == max(found.values())]
    return str(runs[best[0]]) if len(best) == 1 else None


def test_versions_of_a_judge_are_listed_in_their_order_and_the_last_two_compared(
    runs: tuple[Path, Path], tmp_path: Path, call: Call
) -> None:
    claims = read_claims(runs[0] / "claims.parquet")
    label = claims["label"].to_numpy(dtype=int)
    third = make_run(tmp_path / "three", np.where(np.arange(N) % 10 == 0, 1 - label, label), claims)
    versions = compare_run_versions([*runs, third])
    assert [row["run"] for row in versions] == [str(runs[0]), str(runs[1]), str(third)]
    assert [row["bacc"] for row in versions] == pytest.approx([1.0, 0.9342, 0.9], abs=0.001)
    assert versions[0]["change"] is None
    assert versions[1]["change_low"] < versions[1]["change"] < 0
    last = diff_runs(runs[1], third).changes[-1]
    assert (versions[2]["change"], versions[2]["change_low"]) == (last["bacc"], last["bacc_low"])
    figure = tmp_path / "dev.svg"
    code, out, err = call("diff", *runs, third, "--out", figure)
    assert code == 0, err
    assert out.startswith(f"compares  {runs[1]} → {third}, the last two of 3 runs\n")
    assert "compares  " not in call("diff", runs[1], third)[1], "of two runs there is nothing to choose"
    assert out.index("claims    114 in both") < out.index("version   ")
    assert (
        f"best      {name_best_run([*runs, third])}, judge: chosen by these figures, it likely looks better than it is"
        in out
    )
    assert name_best_run([*runs, third]) == str(runs[0])
    assert "<svg" in figure.read_text()
    out = call("diff", third, runs[1], runs[0], runs[1])[1]
    assert f"best      {name_best_run([third, *runs])}, judge: " in out, "in any order"
    # A run that stands first and last has no run before it the first time.
    again = compare_run_versions([runs[0], runs[1], runs[0]])
    assert [(row["place"], row["run"]) for row in again] == [(at, str(runs[at % 2])) for at in range(3)]
    assert again[0]["change"] is None
    assert again[2]["change"] == pytest.approx(-again[1]["change"])
    assert again[2]["change"] > 0
    assert list(draw_version_curve(again).axes[0].get_xticks()) == [0, 1, 2]
    for equal in ([runs[1], runs[1], runs[1]], [runs[0], runs[0], third]):
        assert name_best_run(equal) is None
        assert "best " not in call("diff", *equal)[1], "of equals none is chosen"


@pytest.mark.parametrize(("bacc", "is_best"), [(0.7299, False), (0.725, True)])
def test_of_versions_that_are_shown_alike_none_is_best(
    bacc: float, is_best: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """ "judge: 73.0 %" twice, and the second was "best"."""
    versions = [
        {"run": name, "evaluator": "judge", "bacc": value, "change": change, "change_low": -0.02, "change_high": 0.02}
        for name, value, change in (("a", bacc, None), ("b", 0.7303, 0.7303 - bacc))
    ]
    _display_run_versions(versions)
    assert ("best      b, judge" in capsys.readouterr().out) == is_best
