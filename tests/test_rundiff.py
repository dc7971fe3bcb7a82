"""Two runs beside each other: what changed on the claims that both have, and the gate for CI."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import factaudit
from factaudit import UsageError
from factaudit.diff import RunDiff, diff_runs

N = 120
CLAIMS = factaudit.validate_claims(
    pd.DataFrame(
        {
            "claim_id": [f"c{i}" for i in range(N)],
            "dataset": np.where(np.arange(N) % 2 == 0, "d", "e"),
            "claim": [f"claim {i}" for i in range(N)],
            "label": (np.arange(N) % 3 > 0).astype(int),
            "system": np.where(np.arange(N) < N // 2, "a", "b"),
        }
    )
)
ONE_DATASET = CLAIMS.assign(dataset="d")
RIGHT = CLAIMS["label"].astype(float).to_numpy()
GOOD, ERRORS = np.flatnonzero(RIGHT == 1), np.flatnonzero(RIGHT == 0)


def be_wrong(*places: int) -> np.ndarray:
    """Predictions that are right but at these places."""
    said = RIGHT.copy()
    said[list(places)] = 1 - said[list(places)]
    return said


def make_run(folder: Path, claims: pd.DataFrame = CLAIMS, **predictions: np.ndarray) -> Path:
    """A run folder with what evaluators predict (NaN: nothing; a row for each repeat) of the
    claims."""
    tables = []
    for name, said in predictions.items():
        for repeat, one in enumerate(np.atleast_2d(said)):
            table = pd.DataFrame(
                {
                    "claim_id": claims["claim_id"],
                    "evaluator": name.replace("_", "-"),
                    "repeat": repeat,
                }
            )
            status = np.where(np.isnan(one[: len(claims)]), "error", "ok")
            tables.append(table.assign(prediction=one[: len(claims)], status=status))
    verdicts = factaudit.validate_verdicts(
        pd.concat(tables, ignore_index=True).astype({"prediction": "Int8"})
    )
    folder.mkdir(parents=True)
    factaudit.compare(claims, verdicts, audits=["rates", "quantification"], replicates=0).save(
        folder
    )
    factaudit.write_table(claims, folder / "claims.parquet")
    factaudit.write_table(verdicts, folder / "verdicts.parquet")
    return folder


@pytest.fixture(scope="module")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge that was right on all, and an update that is wrong on the first ten attributable
    claims."""
    made = tmp_path_factory.mktemp("runs")
    make_run(made / "one", ONE_DATASET, judge=RIGHT)
    make_run(made / "two", ONE_DATASET.iloc[: N - 6], judge=be_wrong(*GOOD[:10]))
    return made


@pytest.fixture
def runs(made_runs: Path) -> tuple[Path, Path]:
    return made_runs / "one", made_runs / "two"


def find_mean(found: RunDiff, evaluator: str = "judge") -> dict:
    return next(
        row
        for row in found.changes
        if (row["dataset"], row["evaluator"]) == ("__macro__", evaluator)
    )


def test_changes_are_counted_on_the_shared_claims_and_paired(runs):
    found = diff_runs(*runs)
    assert (found.n_claims, found.only_before, found.only_after) == (N - 6, 6, 0)
    row = find_mean(found)
    assert (row["n"], row["n_flips"], row["to_right"], row["to_wrong"]) == (N - 6, 10, 0, 10)
    # Ten of 76 attributable claims.
    assert row["tpr"] == pytest.approx(-10 / 76)
    assert row["bacc"] == pytest.approx(-5 / 76)
    assert row["bacc_low"] < row["bacc"] < row["bacc_high"] < 0
    assert row["bias"] == pytest.approx(10 / (N - 6))


def test_a_condition_fails_only_where_it_holds_for_sure(runs, call):
    """BAcc fell by 6.6 points, the interval ends at 1.3: a fall of more than 3 is likely, not
    sure."""
    found = diff_runs(*runs)
    verdict = found.judge(["bacc<-0.01", "flips>0.04"])
    assert verdict.word == "fail"
    assert [re.sub(r" \(.*\)", "", one) for one in verdict.failing] == [
        "judge: BAcc changed by −6.6 points: bacc<-0.01 holds",
        "judge: 8.8 % of predictions changed: flips>0.04 holds",
    ]
    assert found.judge(["bacc<-0.1", "tnr<0", "unscored>0"]).word == "pass"
    same = diff_runs(runs[0], runs[0])
    assert same.judge(["flips>0", "bacc<0"]).word == "pass"
    assert (found.judge().word, same.judge().word) == ("worse", "no significant change")
    for fail_on, warn_on in ((["bacc<-0.03"], []), ([], ["bacc<-0.03"])):
        verdict = found.judge(fail_on, warn_on)
        assert (verdict.word, verdict.failing) == ("warn", [])
        assert "bacc<-0.03 holds" in verdict.warnings[0]
    with pytest.raises(UsageError, match=r"--fail-on.*did you mean 'bacc'"):
        found.judge(["bac<0"])
    code, out, _ = call("diff", *runs, "--warn-on", "bacc<-0.03")
    assert code == 0
    assert out.startswith("WARN: judge: BAcc changed by −6.6 points")


def test_rates_are_means_over_repeats(tmp_path):
    draw = np.random.default_rng(0)
    asked = [np.abs(RIGHT - (draw.random((9, N)) < 0.2)) for _ in range(2)]
    found = diff_runs(
        *(make_run(tmp_path / name, judge=said) for name, said in zip("ab", asked, strict=True))
    )
    row = next(row for row in found.changes if row["dataset"] == "d")
    assert row["tpr_after"] == pytest.approx(
        asked[1].mean(0)[(CLAIMS["dataset"] == "d") & (RIGHT == 1)].mean()
    )


def test_a_page_for_a_pull_request_has_the_verdict_and_no_text_acts(runs, tmp_path, call):
    evil = "<img src=x> | `a` @team #1 [b](http://c) ```"
    for folder in runs:
        shutil.copytree(folder, tmp_path / folder.name)
        claims = factaudit.read_claims(folder / "claims.parquet").assign(claim=evil)
        factaudit.write_table(claims, tmp_path / folder.name / "claims.parquet")
    page = tmp_path / "summary.md"
    folders = [tmp_path / folder.name for folder in runs]
    code, out, _ = call("diff", *folders, "--fail-on", "bacc<-0.01", "--out", page)
    assert code == 1
    assert out.startswith("FAIL: judge: BAcc changed by")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("### ❌ factaudit: fail\n")
    assert "judge: BAcc changed by −6.6 points" in text
    outside = re.sub(r"^```text\n.*?\n```$", "", text, flags=re.M | re.S)
    assert not re.search(r"<img|@team|(?<!&)#\d|\]\(http://c", outside)


@pytest.mark.parametrize("wrong", ["folder", "condition", "claims", "option"])
def test_what_is_wrong_is_no_failed_gate(runs, tmp_path, wrong, call):
    before, after = runs
    if wrong == "claims":
        after = make_run(
            tmp_path / "other", CLAIMS.assign(claim_id=CLAIMS["claim_id"] + "x"), judge=RIGHT
        )
    given = {"folder": [before, tmp_path], "condition": [before, after, "--fail-on", "bac<0"]}
    given |= {"claims": [before, after], "option": [before, after, "--fial-on", "bacc<0"]}
    code, _, err = call("diff", *given[wrong])
    assert code == 2
    assert err


def test_files_are_named_and_no_report_is_that_is_gone(tmp_path, call):
    """ "report    /tmp/tmpl3753xqt/before/report.html": a folder that is deleted when the command
    ends.

    The files have no claim_id, and differ in their names alone: their claims are the same ones.
    """
    claims = CLAIMS.drop(columns=["claim_id", "dataset"]).assign(
        evaluator="judge", prediction=CLAIMS["label"]
    )
    files = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for file in files:
        claims.to_csv(file, index=False)
    code, out, err = call("diff", *files)
    assert code == 0
    assert re.findall(r"(?m)^file +(.*)$", err) == list(map(str, files))
    assert "report.html" not in out + err
    assert f"claims    {N} in both; 0 only before, 0 only after" in out
    assert not re.findall(r"(?m)^(?:new|gone|changed) ", out)


def test_a_lost_verdict_is_no_wrong_one_and_moves_no_figure(tmp_path):
    """A judge that no longer answers where it was wrong has not become better; what it lost has its
    own figure."""
    before, after = be_wrong(*GOOD[:12]), be_wrong()
    after[GOOD[:12]] = np.nan
    found = diff_runs(
        make_run(tmp_path / "one", judge=before), make_run(tmp_path / "two", judge=after)
    )
    row = find_mean(found)
    assert (row["n"], row["n_both"], row["n_flips"], row["lost"], row["gained"]) == (
        N,
        N - 12,
        0,
        12,
        0,
    )
    assert [row[key] for key in ("bacc", "tpr", "tnr", "ppr", "bias")] == [0.0] * 5
    assert found.judge(["flips>0", "bacc<0", "tpr>0"]).word == "pass"
    assert found.judge(["unscored>0.02"]).word == "fail"
    told = "judge: 12 of 120 verdicts (10 %) are missing after; the figures leave these claims out"
    assert found.judge().lines()[0] == f"CANNOT TELL: {told}", "nobody knows what they would be"
    assert told in found.judge(["bacc<0"]).lines()[-1]


def test_a_bias_that_shrinks_fails_no_condition_on_bias(tmp_path):
    errors = [int(at) for at in ERRORS]
    runs = (make_run(tmp_path / str(n), judge=be_wrong(*errors[:n])) for n in (8, 4))
    found = diff_runs(*runs)
    row = find_mean(found)
    assert row["bias_before"] < row["bias_after"] < 0 < row["bias"]
    assert found.judge([], ["bias>0.01"]).word == "pass"
    assert found.judge([], ["bias<-0.01"]).word == "warn"


def test_several_evaluators_are_corrected_for_each_other(tmp_path):
    """A change with p = 0.03 counts alone, and not beside another of the kind."""
    worse = be_wrong(*GOOD[:8])
    before, after = {"judge": RIGHT, "other": RIGHT}, {"judge": worse, "other": worse}
    both = diff_runs(
        make_run(tmp_path / "a", ONE_DATASET, **before),
        make_run(tmp_path / "b", ONE_DATASET, **after),
    )
    alone = diff_runs(
        make_run(tmp_path / "c", ONE_DATASET, judge=RIGHT),
        make_run(tmp_path / "d", ONE_DATASET, judge=worse),
    )
    assert find_mean(alone)["bacc_high"] < 0
    assert (alone.judge().word, both.judge().word) == ("worse", "no significant change")


def test_evaluators_are_paired_by_name_then_by_option_then_those_left(tmp_path, call):
    one = make_run(tmp_path / "one", old_judge=RIGHT, rouge=RIGHT)
    two = make_run(tmp_path / "two", new_judge=1 - RIGHT, rouge=RIGHT)
    found = diff_runs(one, two)
    assert found.pairs == [
        {"before": "old-judge", "after": "new-judge"},
        {"before": "rouge", "after": "rouge"},
    ]
    assert found.judge(["bacc<-0.5"]).failing
    assert "pair      old-judge → new-judge, compared as one evaluator" in call("diff", one, two)[1]
    named = diff_runs(one, two, pairs=["rouge=new-judge"])
    assert [(pair["before"], pair["after"]) for pair in named.pairs] == [
        ("old-judge", "rouge"),
        ("rouge", "new-judge"),
    ]
    settings = [
        make_run(tmp_path / "k", **{"k": RIGHT, "k=1": RIGHT}),
        make_run(tmp_path / "k2", **{"k=2": RIGHT}),
    ]
    assert diff_runs(*settings, pairs=["k=1=k=2"]).pairs == [{"before": "k=1", "after": "k=2"}]
    with pytest.raises(UsageError, match="no evaluator 'gpt-5' before"):
        diff_runs(one, two, pairs={"gpt-5": "rouge"})


def test_where_nothing_can_be_compared_the_gate_does_not_pass(tmp_path, call):
    one = make_run(tmp_path / "one", a=RIGHT, b=RIGHT)
    two = make_run(tmp_path / "two", c=RIGHT, d=RIGHT)
    with pytest.raises(
        UsageError, match=r"nothing to compare: the evaluators are a, b before and c, d after"
    ):
        diff_runs(one, two)
    empty, alone = (
        make_run(tmp_path / "empty", a=np.full(N, np.nan)),
        make_run(tmp_path / "alone", a=RIGHT),
    )
    with pytest.raises(UsageError, match="no claim is judged in both runs"):
        diff_runs(alone, empty)
    some, other = (
        make_run(tmp_path / "some", a=RIGHT, c=RIGHT, d=RIGHT),
        make_run(tmp_path / "o", a=RIGHT, b=RIGHT, e=RIGHT),
    )
    assert call("diff", one, two, "--pair", "a=c", "--fail-on", "bacc<-0.02")[0] == 0, (
        "b and d are the only ones left"
    )
    code, _, err = call("diff", other, some, "--fail-on", "bacc<-0.02")
    assert (code, "not compared: b, e before, c, d after" in err) == (2, True)
    unlabelled = CLAIMS.assign(label=pd.array([pd.NA] * N, dtype="Int8"))
    pair = [make_run(tmp_path / name, unlabelled, judge=RIGHT) for name in ("u1", "u2")]
    code, _, err = call("diff", *pair, "--fail-on", "bacc<-0.02")
    assert (code, "BAcc is undefined, so that bacc<-0.02 cannot be checked" in err) == (2, True)
    verdict = diff_runs(*pair).judge([], ["tpr<0"])
    assert verdict.word == "warn", "a warning that cannot be checked has not passed"


def test_findings_are_new_gone_or_changed(tmp_path, call):
    runs = [make_run(tmp_path / name, judge=RIGHT) for name in ("one", "two")]
    before = [("fail", "gap", "d"), ("warn", "unscored", "d")]
    after = [("warn", "gap", "d"), ("warn", "headroom", "d")]
    for folder, mine in zip(runs, (before, after), strict=True):
        stored = json.loads((folder / "results.json").read_text())
        stored["findings"] = [
            {
                "id": check,
                "severity": severity,
                "evaluator": "judge",
                "dataset": dataset,
                "evidence": {},
            }
            | {"statement": f"{check} {severity}"}
            for severity, check, dataset in mine
        ]
        (folder / "results.json").write_text(json.dumps(stored))
    told = [(row["change"], row["id"], row["dataset"]) for row in diff_runs(*runs).findings]
    assert told[0] == ("changed", "gap", "d")
    assert ("gone", "unscored", "d") in told
    assert "changed   [fail → warn] gap warn" in call("diff", *runs)[1], "from found to in doubt"
