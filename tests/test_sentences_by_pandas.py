"""Sentences on grades, on changes between runs and on unsupported facts: their numbers and conditions by plain pandas.

Nothing of the package computes what is expected here.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from test_audit_grades import draw_graded, say

from factaudit.experiment import Experiment, run
from factaudit.run_diff import diff_runs
from factaudit.tables import validate_claims, validate_verdicts, write_table

# ------------------------------------------------------------------------------------------------------------- grades


def draw_graded_datasets(**judge: float) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """On ``odd`` a judge as `draw_graded` has it with these options, on ``even`` one that follows people."""
    parts = [draw_graded(8, **judge), draw_graded(9)]  # type: ignore[arg-type]
    for name, tables in zip(("odd", "even"), parts, strict=True):
        for table in tables:
            table["claim_id"] = name + table["claim_id"]
        tables[0]["dataset"], tables[0]["doc_id"] = name, name + tables[0]["doc_id"]
    return tuple(pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True))  # type: ignore[return-value]


def compare_with_people(tables: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """By dataset: people's grade (the lower median) and the judge's, of each claim."""
    claims, verdicts, people = tables
    grades = people.assign(grade=people["grade"].astype(float)).groupby("claim_id")["grade"]
    both = claims.assign(people=claims["claim_id"].map(grades.quantile(0.5, interpolation="lower")))
    both = both.merge(verdicts.query("evaluator == 'judge'")[["claim_id", "grade"]], on="claim_id")
    return {str(name): part for name, part in both.groupby("dataset")}


@pytest.mark.parametrize(
    "judge", [{"noise": 0.7}, {"noise": 50.0}, {"shift": -0.8}, {"shift": 0.8}, {"noise": 50.0, "shift": 1.0}]
)
def test_sentences_on_grades(judge: dict[str, float]) -> None:
    tables = draw_graded_datasets(**judge)
    told = {name: one["statement"] for name, one in say(*tables).items()}
    parts = compare_with_people(tables)
    rho = {name: float(spearmanr(part["people"], part["grade"]).statistic) for name, part in parts.items()}
    moved = {name: float((part["grade"] - part["people"]).mean()) for name, part in parts.items()}
    # Claims come in fives: an error as if each five were one is at least the true one.
    loose = {name: 1.96 / (len(part) / 5 - 3) ** 0.5 for name, part in parts.items()}
    surely = [name for name in rho if np.arctanh(rho[name]) + loose[name] < np.arctanh(0.2)]
    possibly = [name for name in rho if rho[name] < 0.2]
    assert set(surely) <= set(re.findall(r"On (odd|even), Spearman", told.get("grade_order", ""))) <= set(possibly)
    if "grade_order" in told:
        pattern = r"on 1 of 2 data sets\. On (\w+), Spearman's ρ is (−?[\d.]+), significantly lower than 0.20"
        (found,) = re.findall(pattern, told["grade_order"])
        assert found[0] == min(rho, key=lambda name: rho[name])
        assert float(found[1].replace("−", "-")) == pytest.approx(rho[found[0]], abs=0.0051)
    assert ("grade_shift" in told) == (max(map(abs, moved.values())) > 0.4), (moved, told)  # of 4 steps 5 % is 0.2
    if "grade_shift" in told:
        pattern = (
            r"significantly (\w+) grades than people on 1 of 2 data sets\. On (\w+), the mean difference is (\S+) "
        )
        way, name, size = re.findall(pattern, told["grade_shift"])[0]
        assert (way, name) == ("higher" if moved["odd"] > 0 else "lower", "odd")
        assert float(size.replace("−", "-")) == pytest.approx(moved["odd"], abs=0.0051)
        ends = [parts["odd"][["people", "grade"]].to_numpy().min(), parts["odd"][["people", "grade"]].to_numpy().max()]
        assert f"on a scale from {ends[0]:g} to {ends[1]:g}." in told["grade_shift"]


# --------------------------------------------------------------------------------------------------------------- diff


def make_judged_claims(n: int = 1200) -> pd.DataFrame:
    at = np.arange(n)
    table = pd.DataFrame({"claim_id": [f"c{one}" for one in at], "claim": "a claim", "label": (at % 5 > 0).astype(int)})
    table["dataset"], table["system"] = np.where(at % 2, "d", "e"), [f"s{one // 2 % 3}" for one in at]
    return validate_claims(table)


def turn(claims: pd.DataFrame, label: int, share: float, where: str) -> np.ndarray:
    """Predictions that are the labels, but for a share of the claims with this label in one dataset."""
    said = claims["label"].to_numpy(dtype=int).copy()
    inside = np.flatnonzero((said == label) & (claims["dataset"] == where).to_numpy())
    said[inside[: int(share * len(inside))]] = 1 - label
    return said


def make_run(folder: Path, claims: pd.DataFrame, **predictions: np.ndarray) -> Path:
    """A run folder with intervals."""
    folder.mkdir()
    verdicts = [claims[["claim_id"]].assign(evaluator=name, prediction=said) for name, said in predictions.items()]
    write_table(claims, folder / "claims.jsonl")
    write_table(validate_verdicts(pd.concat(verdicts, ignore_index=True)), folder / "verdicts.jsonl")
    files = {name: [str(folder / f"{name}.jsonl")] for name in ("claims", "verdicts")}
    run(Experiment(**files, audits=["rates", "quantification"], replicates=20), folder / "run")
    return folder / "run"


def read_judged(folder: Path, evaluator: str) -> pd.DataFrame:
    verdicts = pd.read_parquet(folder / "verdicts.parquet").query("evaluator == @evaluator")
    both = pd.read_parquet(folder / "claims.parquet").merge(verdicts[["claim_id", "prediction"]], on="claim_id")
    return both.astype({"label": float, "prediction": float})


def check_figures_of_statement(statement: str, both: pd.DataFrame) -> int:
    """How many percentages of a finding on error rates, or on TPR and TNR, are those of these verdicts."""
    of_all = r"On (\w+) it puts the (rate) at ([\d.]+) %; by the labels it is ([\d.]+) %"
    of_one = r"puts (\w+)'s error rate on (\w+) at ([\d.]+) %; by the labels it is ([\d.]+) %"
    for system, dataset, said, labelled in [
        *re.findall(of_one, statement),
        *((None, name, *rates) for name, _, *rates in re.findall(of_all, statement)),
    ]:
        mine = both[(both["dataset"] == dataset) & ((both["system"] == system) | (system is None))]
        assert f"{100 * (1 - mine['prediction'].mean()):.1f}" == said
        assert f"{100 * (1 - mine['label'].mean()):.1f}" == labelled
        return 2
    for high, kind, low, dataset in re.findall(
        r"(?:passes|finds) ([\d.]+) % of the ([\w ]+) but \w+ only ([\d.]+) % of the [\w ]+ on (\w+)\.", statement
    ):
        mine = both[both["dataset"] == dataset]
        better = float(kind == "correct claims")
        rates = [float((mine[mine["label"] == one]["prediction"] == one).mean()) for one in (better, 1 - better)]
        assert [f"{100 * one:.1f}" for one in rates] == [high, low]
        return 2
    return 0


def test_findings_of_two_runs_are_those_of_their_verdicts(tmp_path: Path) -> None:
    claims = make_judged_claims()
    variants = {
        "one": turn(claims, 0, 0.6, "d"),
        "more": turn(claims, 0, 0.8, "d"),
        "moved": turn(claims, 0, 0.7, "e"),
        "near": turn(claims, 0, 0.2, "d"),
    }
    runs = {name: make_run(tmp_path / name, claims, judge=said) for name, said in variants.items()}
    seen: dict[str, int] = {}
    for before, after in (("one", "more"), ("one", "moved"), ("one", "near"), ("near", "one"), ("one", "one")):
        judged_before, judged_after = (read_judged(runs[name], "judge") for name in (before, after))
        is_same = judged_before["prediction"].equals(judged_after["prediction"])
        found = diff_runs(runs[before], runs[after]).findings
        assert bool(found) != is_same
        for row in found:
            seen[row["change"]] = seen.get(row["change"], 0) + 1
            own = judged_before if row["change"] == "gone" else judged_after
            is_figured = check_figures_of_statement(row["statement"], own) > 0
            assert is_figured == (row["id"] in ("gap", "bias") and row["severity"] != "ok"), row
            if row["change"] in ("restated", "changed", "moved"):
                check_figures_of_statement(row["statement_before"], judged_before)
                assert row["statement"] != row["statement_before"]
            if row["change"] == "gone" and row["id"] == "gap" and row["severity"] != "ok":
                rates = judged_after.groupby(["dataset", "label"])["prediction"].mean().unstack()
                assert ((rates[1.0] - (1 - rates[0.0])).abs() <= 0.2 + 1e-9).all()
    assert {"restated", "moved", "gone", "new"} <= seen.keys(), seen
