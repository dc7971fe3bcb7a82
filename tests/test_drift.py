"""What moved over dates: p-values by enumeration, the bets on them, and ``diff --drift`` as a user runs it."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
from conftest import Call

from factaudit.run_drift import DriftDate, detect_drift
from factaudit.stats.date_exchangeability import change_capital, fresh_units_p_value, repeated_units_p_value
from factaudit.tables import validate_claims, validate_verdicts, write_table


class FixedTies:
    """A random generator that breaks every tie alike."""

    def __init__(self, share: float) -> None:
        self.share = share

    def random(self) -> float:
        return self.share


@pytest.mark.parametrize("seed", range(5))
def test_p_values_of_repeated_units_are_those_of_all_orders(seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(0, 4, (4, 3))
    sums = np.array([sum(last) for last in product(*scores)])  # any of a unit's scores may have come last
    for share in (0.0, 0.4, 1.0):
        found = repeated_units_p_value(scores, FixedTies(share))
        observed = scores[:, -1].sum()
        assert found.lower == pytest.approx(np.mean(sums < observed) + share * np.mean(sums == observed))
        assert found.lower + found.higher == pytest.approx(1)


def test_two_dates_are_the_sign_test() -> None:
    """Of 12 claims that changed 10 fell: the binomial tail."""
    scores = np.array([[1, 0]] * 10 + [[0, 1]] * 2 + [[1, 1]] * 30)
    found = repeated_units_p_value(scores, FixedTies(1.0))
    assert found.lower == pytest.approx(scipy.stats.binom.cdf(2, 12, 0.5))
    nothing = repeated_units_p_value(np.ones((5, 2), dtype=int), FixedTies(0.3))
    assert (nothing.lower, nothing.higher) == (0.3, 0.7)


def test_p_values_of_fresh_units_are_hypergeometric() -> None:
    errors, is_last = np.repeat([1, 0, 1, 0], [6, 44, 9, 21]), np.repeat([False, True], [50, 30])
    found = fresh_units_p_value(errors, np.ones(80, dtype=int), is_last, np.random.default_rng(0))
    above, equal = scipy.stats.hypergeom.sf(9, 80, 15, 30), scipy.stats.hypergeom.pmf(9, 80, 15, 30)
    assert above - 0.01 < found.higher < above + equal + 0.01


def test_p_values_are_uniform_and_independent_and_capital_gains_nothing() -> None:
    """On average over exchangeable dates, with claims that are hard to judge: the capital stays 1, and any p is as
    likely as any other."""
    p_values, capital = [], []
    for seed in range(400):
        random = np.random.default_rng(seed)
        scores = (random.random((25, 6)) < random.random((25, 1))).astype(int)
        mine = [repeated_units_p_value(scores[:, : at + 1], random).lower for at in range(1, 6)]
        p_values.append(mine)
        # The mean of a capital that doubles rarely is known badly: a bounded bet on small p-values, too.
        capital.append(np.prod([1 + 0.5 * (1 - 2 * p) for p in mine]))
    assert scipy.stats.kstest(np.ravel(p_values), "uniform").pvalue > 0.001
    correlation = np.corrcoef(np.transpose(p_values))[np.triu_indices(5, 1)]
    assert abs(correlation).max() < 0.2
    assert np.mean(capital) == pytest.approx(1, abs=0.15)
    # Each bet has a mean of 1 over p = u¹⁰, a little less where p is cut off.
    u = (np.arange(2000) + 0.5) / 2000
    assert np.mean([change_capital([one**10])[0] * 10 * one**9 for one in u]) == pytest.approx(0.99, abs=0.01)


# ------------------------------------------------------------------------------------------------------- from tables


N_ANCHORS = 200


@pytest.fixture(scope="module")
def anchors() -> pd.DataFrame:
    return validate_claims(
        pd.DataFrame(
            {
                "claim_id": [f"a{at}" for at in range(N_ANCHORS)],
                "dataset": "d",
                "claim": [f"claim {at}" for at in range(N_ANCHORS)],
                "doc": "doc",
                "label": [int(at % 4 > 0) for at in range(N_ANCHORS)],
            }
        )
    )


def judge(anchors: pd.DataFrame, date: int, falls: bool = False, name: str = "j") -> pd.DataFrame:
    """Right on most; two askings differ on 4 %; from the fourth date on a fifth of the attributable is refused."""
    random = np.random.default_rng([5, date])
    said = anchors["label"].to_numpy(dtype=int) ^ (np.arange(N_ANCHORS) % 7 == 0) ^ (random.random(N_ANCHORS) < 0.02)
    if falls and date >= 3:
        said = np.where(np.arange(N_ANCHORS) % 5 == 1, 0, said)
    return pd.DataFrame({"claim_id": anchors["claim_id"], "evaluator": name, "prediction": said.astype(int)})


def own_claims(date: int, rate: float) -> pd.DataFrame:
    n = 80
    wrong = np.random.default_rng([6, date]).random(n) < rate
    ids = [f"d{date}_{at}" for at in range(n)]
    return validate_claims(
        pd.DataFrame({"claim_id": ids, "dataset": "d", "system": "bot", "claim": "c", "doc": "x", "label": 1 - wrong})
    )


def dates_of(anchors: pd.DataFrame, falls: bool, rises: bool) -> list[DriftDate]:
    return [
        DriftDate(
            f"week {date}",
            validate_verdicts(judge(anchors, date, falls)),
            own_claims(date, 0.4 if rises and date >= 3 else 0.1),
        )
        for date in range(6)
    ]


@pytest.mark.parametrize(("falls", "rises"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_judge_and_the_system_are_told_apart(anchors: pd.DataFrame, falls: bool, rises: bool) -> None:
    found = detect_drift(anchors, dates_of(anchors, falls, rises))
    moved = [(row["date"], row["since"], row["moved"]) for row in found.list_moves("judge")]
    assert moved == ([("week 5", "week 3", "TPR fell")] if falls else [])
    moved = [(row["date"], row["moved"]) for row in found.list_moves("system")]
    assert moved == ([("week 5", "error rate rose")] if rises else [])
    assert [row["moved"] for row in found.judge[:3]] == [None] * 3
    assert found.judge[0]["evidence"] == 1.0


def test_later_dates_change_nothing_that_was_said(anchors: pd.DataFrame) -> None:
    dates = dates_of(anchors, True, True)
    whole, part = detect_drift(anchors, dates), detect_drift(anchors, dates[:4])
    assert [row for row in whole.judge if row["date"] <= "week 3"] == part.judge
    assert [row for row in whole.system if row["date"] <= "week 3"] == part.system


def test_a_verdict_that_is_missing_is_not_right(anchors: pd.DataFrame) -> None:
    """A judge that stops answering has moved, though each answer that it gives is as before."""
    dates = []
    for date in range(5):
        table = judge(anchors, date)
        if date == 4:
            table["prediction"] = table["prediction"].astype("Int8").where(table.index % 4 > 0)
            table["status"] = np.where(table["prediction"].isna(), "error", "ok")
        dates.append(DriftDate(str(date), validate_verdicts(table)))
    (move,) = detect_drift(anchors, dates).list_moves("judge")
    assert move["moved"] == "TNR fell"
    assert move["n_unscored"] == 50
    (before, after) = [validate_verdicts(judge(anchors, date)).set_index("claim_id")["prediction"] for date in (0, 4)]
    kept = (np.arange(len(before)) % 4) > 0
    assert move["n_flips"] == int((before != after)[kept].sum()), "a lost verdict is no other verdict"


def test_anchors_without_labels_tell_of_a_judge_that_says_other_things(anchors: pd.DataFrame) -> None:
    bare = anchors.assign(label=pd.Series(pd.NA, index=anchors.index, dtype="Int8"))
    (move,) = detect_drift(bare, dates_of(anchors, True, False)).list_moves("judge")
    assert move["moved"] == "PPR fell"
    assert move["bacc"] is None


def test_the_command(anchors: pd.DataFrame, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(anchors, Path("anchors.parquet"))
    for date in range(6):
        write_table(judge(anchors, date, falls=True), Path(f"w{date}.csv"))
    weeks = [f"w{date}.csv" for date in range(6)]
    code, out, _ = call("diff", "--drift", "anchors.parquet", *weeks[:3], "--fail-on", "judge")
    assert (code, out.splitlines()[0]) == (0, "PASS: nothing moved, as far as these dates can tell")
    code, out, err = call("diff", "--drift", "anchors.parquet", *weeks, "--fail-on", "judge", "--out", "drift.csv")
    assert code == 1
    assert out.startswith("MOVED: judge j: moved since w3 (TPR fell)")
    assert "judge j: moved since w3 (TPR fell)" in err
    assert len(pd.read_csv("drift.csv")) == 6
    assert Path("drift.svg").read_text().count("w5") == 1
    # It moved, but nothing that the build is to fail on.
    assert call("diff", "--drift", "anchors.parquet", *weeks, "--fail-on", "system")[0] == 0
    code, out, _ = call("diff", "--drift", "anchors.parquet", *weeks, "--format", "json")
    assert json.loads(out)["moved"] == ["judge j: moved since w3 (TPR fell)"]
    assert call("diff", "--drift", "anchors.parquet", "w0.csv")[0] == 2


def test_repeats_of_one_file_are_dates(
    anchors: pd.DataFrame, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(anchors, Path("anchors.parquet"))
    tables = [judge(anchors, date, falls=True).assign(repeat=date) for date in range(5)]
    write_table(validate_verdicts(pd.concat(tables, ignore_index=True)), Path("all.parquet"))
    code, out, _ = call("diff", "--drift", "anchors.parquet", "all.parquet")
    assert code == 0
    assert out.startswith("MOVED: judge j: moved since repeat 3")
