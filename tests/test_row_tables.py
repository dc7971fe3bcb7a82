"""Rows that are a product: held as columns, written beside results.json, which has their summary."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_tables import judged
from report_results import read_report_text

from factaudit.arrays.row_table import RowTable
from factaudit.audit import list_computable_audits
from factaudit.audit.adjusted_bias import compute_adjusted_bias
from factaudit.audit.adjustment import MEAN_OVER_CALIBRATIONS
from factaudit.audit.ranking_pairs import compute_ranking_pairs
from factaudit.errors import InputError, UsageError
from factaudit.results import Results, compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import validate_claims, validate_verdicts, write_table

PRODUCTS = ("adjusted_bias", "adjustment", "ranking_pairs")


def make_tables(n_systems: int = 4, n_claims: int = 30, evaluators: str = "ef") -> tuple[pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(5)
    rows = [
        {"claim_id": f"{dataset}{system}{at}", "dataset": dataset, "system": f"m{system}", "claim": "x", "doc": "y"}
        | {"doc_id": f"{dataset}{at}", "label": int(random.random() < 0.75)}
        for dataset in ("one", "two")
        for system in range(n_systems)
        for at in range(n_claims)
    ]
    claims = validate_claims(pd.DataFrame(rows))
    scores = [np.clip(0.3 + 0.3 * claims["label"] + random.normal(0, 0.2, len(claims)), 0, 1) for _ in evaluators]
    verdicts = pd.concat(
        pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": name, "score": score, "status": "ok"})
        for name, score in zip(evaluators, scores, strict=True)
    )
    return claims, validate_verdicts(verdicts.reset_index(drop=True), claims=claims)


@pytest.fixture(scope="module")
def audited() -> Results:
    return compare(*make_tables(), replicates=50)


@pytest.fixture
def run_dir(audited: Results, tmp_path: Path) -> Path:
    claims, verdicts = make_tables()
    write_table(claims, tmp_path / "claims.parquet")
    write_table(verdicts, tmp_path / "verdicts.parquet")
    audited.save(tmp_path)
    return tmp_path


def test_a_table_of_rows_is_a_sequence_of_them():
    rows = [
        {"system": "b", "n": 3, "bias": 0.5, "error": True},
        {"system": "a", "n": 2, "bias": None, "error": None},
        {"system": None, "n": 1, "bias": -0.5, "error": False},
    ]
    table = RowTable.from_rows(rows)
    assert (list(table), len(table), table[-1], list(table[1:])) == (rows, 3, rows[-1], rows[1:])
    assert table == rows
    assert RowTable.from_rows(table) is table
    np.testing.assert_array_equal(table.column("bias"), [0.5, np.nan, -0.5])
    assert table.column("system").tolist() == ["b", "a", None]
    assert table.column("error").tolist() == [True, None, False]
    assert list(table.select({"system": ["a", None]})) == rows[1:]
    assert list(table.drop({"system": ["a"], "nothing": ["b"]})) == [rows[0], rows[2]]
    assert [row["system"] for row in table.sort_by_names([], ["system"], ["a", "b"])] == ["a", "b", None]
    assert table.example_row == rows[0]
    assert table.to_frame().equals(pd.DataFrame(rows).astype({"error": object}))
    assert RowTable.concatenate([table, table.take(np.array([0]))]) == [*rows, rows[0]]
    assert len(RowTable.concatenate([])) == 0
    assert RowTable.from_rows(rows * 2).count_distinct_rows("error") == [
        {"error": True, "n_rows": 2},
        {"error": None, "n_rows": 2},
        {"error": False, "n_rows": 2},
    ]


def test_results_json_has_the_summary_and_says_where_the_rows_lie(audited: Results, run_dir: Path):
    written = json.loads((run_dir / "results.json").read_text(encoding="utf-8"))
    assert set(written["tables"]) == set(PRODUCTS)
    for name, told in written["tables"].items():
        declared = list_computable_audits()[name].summary
        assert declared is not None
        assert told == {"file": f"tables/{name}.parquet", "n_rows": len(audited.audits[name]), "n_left_out": 0}
        assert 0 < len(written["audits"][name]) < told["n_rows"]
        assert all(set(row) == set(declared.columns) for row in written["audits"][name])
        assert len(pd.read_csv(run_dir / "tables" / f"{name}.csv")) == told["n_rows"]
    loaded = Results.load(run_dir)
    for name in audited.audits:
        assert loaded.rows(name) == audited.rows(name), name
    where = {"evaluator": "f", "system": ["m1", "m2"], "calibration_system": MEAN_OVER_CALIBRATIONS}
    rows = loaded.rows("adjusted_bias", **where)
    assert len(rows) == 2 * 2 * 4
    assert loaded.table("adjusted_bias", **where)["bias"].tolist() == [row["bias"] for row in rows]
    with pytest.raises(UsageError, match=r"have no 'sistem'.*system"):
        loaded.rows("adjusted_bias", sistem="m1")


def test_the_summaries_are_sums_of_their_rows(audited: Results, run_dir: Path):
    written = json.loads((run_dir / "results.json").read_text(encoding="utf-8"))["audits"]
    table = audited.table("adjusted_bias", calibration_system=MEAN_OVER_CALIBRATIONS)
    for row in written["adjusted_bias"]:
        mine = table[(table[list(row)[:4]] == pd.Series({key: row[key] for key in list(row)[:4]})).all(axis=1)]
        off = ((mine["bias_low"] > 0) | (mine["bias_high"] < 0)).sum() if mine["bias_low"].notna().any() else None
        assert (row["n_systems"], row["n_off"]) == (mine["bias"].count(), off)
        if not row["n_systems"]:
            assert row["mean_bias"] is row["lowest_bias"] is row["highest_bias"] is None
            continue
        assert row["mean_bias"] == pytest.approx(mine["bias"].mean())
        assert (row["lowest_bias"], row["highest_bias"]) == (mine["bias"].min(), mine["bias"].max())
    pairs = audited.table("ranking_pairs")
    for row in written["ranking_pairs"]:
        mine = pairs[(pairs["dataset"] == row["dataset"]) & (pairs["evaluator"] == row["evaluator"])]
        assert (row["n_pairs"], row["n_undefined"]) == (len(mine), 0)
        assert (row["n_error"], row["n_major_error"]) == (mine["error"].sum(), mine["major_error"].sum())


def test_more_rows_than_the_limit_are_computed_where_they_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    claims, verdicts = make_tables()
    whole = compare(claims, verdicts, replicates=50)
    monkeypatch.setattr("factaudit.audit.core.result_rows.MOST_DETAIL_ROWS", 10)
    short = compare(claims, verdicts, replicates=50)
    means = whole.rows("adjusted_bias", calibration_system=MEAN_OVER_CALIBRATIONS)
    found = short.rows("adjusted_bias")
    assert len(found) == len(means)
    for row, mean in zip(found, means, strict=True):
        assert {key: row[key] for key in row if not key.endswith(("_low", "_high", "reason"))} == {
            key: mean[key] for key in mean if not key.endswith(("_low", "_high", "reason"))
        }
        assert row["bias_low"] is row["adjusted_error_rate_high"] is None
        assert row["bias"] is None or "the calibrations one by one were not computed (detail)" in row["reason"]
    assert not short.rows("ranking_pairs")
    for name in ("adjusted_bias", "ranking_pairs"):
        assert short.audits[name].n_left_out == len(whole.audits[name]) - len(short.audits[name])
    assert not [each for each in short.finding_rows if each["id"] == "adjustment"], "nothing was tested"
    asked = compare(
        claims,
        verdicts,
        audits=[{"adjusted_bias": {"detail": True}}, {"ranking_pairs": {"detail": True}}],
        replicates=50,
    )
    for name in asked.audits:
        assert asked.rows(name) == whole.rows(name)


def test_pairs_of_many_systems_are_not_resampled_unless_asked_for(monkeypatch: pytest.MonkeyPatch):
    audits = ["adjusted_bias"]
    whole = compare(*make_tables(), audits=audits, replicates=50).rows("adjusted_bias")
    monkeypatch.setattr("factaudit.arrays.resampled_calibration._INTERVAL_BYTES", 16 * 50)  # one interval at a time
    assert compare(*make_tables(), audits=audits, replicates=50).rows("adjusted_bias") == whole
    monkeypatch.setattr("factaudit.audit.adjusted_bias.MOST_DETAIL_SYSTEMS", 2)
    short = compare(*make_tables(), audits=audits, replicates=50).rows("adjusted_bias")
    assert {row["calibration_system"] for row in short} == {MEAN_OVER_CALIBRATIONS}
    asked = compare(*make_tables(), audits=[{"adjusted_bias": {"detail": True}}], replicates=50)
    assert asked.rows("adjusted_bias") == whole


def test_a_report_says_what_was_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("factaudit.audit.core.result_rows.MOST_DETAIL_ROWS", 10)
    compare(*make_tables(), replicates=50).save(tmp_path)
    text = read_report_text(tmp_path)
    assert "Not computed: 192 rows. `adjusted_bias: {detail: true}` computes them." in text
    assert "Not computed: 24 rows. `ranking_pairs: {detail: true}` computes them." in text
    assert json.loads((tmp_path / "results.json").read_text())["audits"]["ranking_pairs"] == []
    assert Results.load(tmp_path).audits["adjusted_bias"].n_left_out == 192


def test_a_large_table_has_no_csv_and_counts_are_drawn_of_all_its_rows(
    audited: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("factaudit.report.report_tables.MAX_CSV_ROWS", 20)
    audited.save(tmp_path)
    assert not (tmp_path / "tables" / "ranking_pairs.csv").exists()
    assert "tables/ranking_pairs.parquet" in read_report_text(tmp_path)
    figure = audited.figure("ranking_pairs")
    told = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert told.count("12 pairs") == 2


@pytest.mark.parametrize("what", ["missing", "broken", "of another run"])
def test_a_table_that_is_not_that_of_the_results_is_said_to_be_none(audited: Results, run_dir: Path, what: str):
    table = run_dir / "tables" / "adjusted_bias.parquet"
    expected = {
        "missing": "adjusted_bias.parquet: missing: results.json says that rows are there",
        "broken": "adjusted_bias.parquet: not Parquet",
        "of another run": "adjusted_bias.parquet: its rows are of another run than results.json",
    }[what]
    if what == "missing":
        table.unlink()
    elif what == "broken":
        table.write_bytes(b"PAR1 and no more")
    else:
        RowTable.from_rows(list(audited.audits["adjusted_bias"])).write(table, "another")
    with pytest.raises(InputError, match=expected):
        Results.load(run_dir).rows("adjusted_bias")


def test_tables_of_an_earlier_run_are_removed(audited: Results, run_dir: Path):
    compare(*make_tables(), audits=["rates"], replicates=0).save(run_dir)
    assert not list((run_dir / "tables").glob("*.parquet"))


def test_products_are_the_same_whoever_stands_beside_an_evaluator():
    claims, verdicts = make_tables()
    both = compare(claims, verdicts, replicates=20)
    alone = compare(claims, verdicts[verdicts["evaluator"] == "f"].reset_index(drop=True), replicates=20)
    for name in PRODUCTS:
        assert alone.rows(name) == both.rows(name, evaluator="f")


def test_no_system_and_one_system_have_no_pairs():
    table = judged([{"dataset": "d", "system": "a", "label": label, "e": 0} for label in (1, 0)], "e")
    assert len(compute_ranking_pairs(table)) == 0
    found = compute_adjusted_bias(table, intervals=ClusterBootstrap(20))
    assert {row["calibration_system"] for row in found} <= {MEAN_OVER_CALIBRATIONS}
