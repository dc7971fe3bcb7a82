"""Rows that are a product: pairs of systems, and calibrations × systems."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from audit_worlds import make_world

from factaudit import Results, compare, write_table
from factaudit.audit.calibration import MEAN_OVER_CALIBRATIONS
from factaudit.errors import UsageError

PRODUCTS = ("adjusted_bias", "adjustment", "ranking_pairs")


@pytest.fixture(scope="module")
def audited() -> Results:
    return compare(*make_world("whole"), replicates=50)


@pytest.fixture
def run_dir(audited: Results, tmp_path: Path) -> Path:
    claims, verdicts = make_world("whole")
    write_table(claims, tmp_path / "claims.parquet")
    write_table(verdicts, tmp_path / "verdicts.parquet")
    audited.save(tmp_path)
    return tmp_path


def test_results_json_has_all_rows(audited: Results, run_dir: Path):
    written = json.loads((run_dir / "results.json").read_text(encoding="utf-8"))
    loaded = Results.load(run_dir)
    for name in PRODUCTS:
        assert written["audits"][name] == audited.rows(name) == loaded.rows(name)
        assert len(pd.read_csv(run_dir / written["tables"][name])) == len(audited.rows(name))
    where = {
        "evaluator": "robin",
        "level": "claim",
        "system": ["ant", "bee"],
        "calibration_system": MEAN_OVER_CALIBRATIONS,
    }
    assert len(loaded.rows("adjusted_bias", **where)) == 2 * 2 * 4
    with pytest.raises(UsageError, match=r"have no 'sistem'.*system"):
        loaded.rows("adjusted_bias", sistem="ant")


def test_there_are_none_where_they_would_be_more_than_the_limit(monkeypatch: pytest.MonkeyPatch):
    for module in ("calibration", "ranking"):
        monkeypatch.setattr(f"factaudit.audit.{module}.MOST_PRODUCT_ROWS", 10)
    short = compare(*make_world("whole"), replicates=50)
    assert not short.rows("adjusted_bias")
    assert not short.rows("ranking_pairs")
    assert short.rows("adjustment")
    assert short.rows("ranking")
    assert not [each for each in short.finding_rows if each["id"] == "adjustment"], (
        "nothing was tested"
    )


def test_products_are_the_same_whoever_stands_beside_an_evaluator():
    claims, verdicts = make_world("whole")
    both = compare(claims, verdicts, replicates=20)
    alone = compare(
        claims, verdicts[verdicts["evaluator"] == "robin"].reset_index(drop=True), replicates=20
    )
    for name in PRODUCTS:
        assert alone.rows(name) == both.rows(name, evaluator="robin")
