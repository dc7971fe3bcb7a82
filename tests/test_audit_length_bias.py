"""Rates over the length of claims and documents: against statsmodels, where there is nothing to say, in words."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from audit_tables import Row, as_declared, find, judged, tables

from factaudit.audit.core.statements import Statement
from factaudit.audit.findings import collect_findings
from factaudit.audit.length_bias import compute_length_bias
from factaudit.results import compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables.schema import make_text_placeholder

INTERVALS = ClusterBootstrap(replicates=20)


def draw_rows(seed: int, slope: float, n: int = 400) -> list[Row]:
    """An evaluator ``e`` that accepts claims by their length: by ``slope`` more for each doubling, right or wrong."""
    random = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        doublings, label = random.uniform(0, 4), int(random.random() < 0.6)
        passes = random.random() < (0.75 if label else 0.25) + slope * (doublings - 2)
        claim = "x" * round(16 * 2**doublings)
        rows.append({"claim": claim, "doc": "y" * int(random.integers(200, 2000)), "label": label, "e": int(passes)})
        rows[-1] |= {"doc_id": str(at // 4), "task": "t"}
    return rows


def test_slopes_are_those_of_least_squares_on_the_logarithm():
    rows = draw_rows(1, 0.05)
    found = compute_length_bias(judged(rows, "e"), intervals=INTERVALS)
    for length, column in (("claim", "claim"), ("document", "doc")):
        for rate, label in (("tpr", 1), ("tnr", 0)):
            mine = [row for row in rows if row["label"] == label]
            x = sm.add_constant(np.log2([len(row[column]) for row in mine]))
            fit = sm.OLS([float(row["e"] == label) for row in mine], x).fit()
            row = find(found, length=length, rate=rate)
            assert row["slope"] == pytest.approx(fit.params[1])
            assert row["slope_low"] < row["slope"] < row["slope_high"]
            assert (row["n"], row["n_unscored"], row["n_no_text"]) == (len(mine), 0, 0)
            characters = sorted(len(each[column]) for each in mine)
            assert row["short"] in characters
            assert np.mean([each <= row["short"] for each in characters]) >= 0.1
            assert np.mean([each > row["long"] for each in characters]) <= 0.1


def test_units_do_not_matter_and_texts_without_spaces_have_a_length():
    rows = draw_rows(2, 0.05, 200)
    chinese = [row | {"claim": "天" * len(row["claim"]) * 3} for row in rows]
    one, other = (find(compute_length_bias(judged(each, "e")), length="claim", rate="tnr") for each in (rows, chinese))
    assert one["slope"] == pytest.approx(other["slope"])
    assert other["short"] == 3 * one["short"]


def test_texts_that_are_missing_or_stand_for_one_are_counted_not_measured():
    rows = draw_rows(3, 0.05, 80)
    for at, row in enumerate(rows[:10]):
        row |= {"claim": make_text_placeholder("d", at + 1), "doc": None}
    n = sum(row["label"] for row in rows[:10])
    for row in compute_length_bias(judged(rows, "e")):
        assert row["n_no_text"] == (n if row["rate"] == "tpr" else 10 - n)
    bare = [row | {"doc": None} for row in rows]
    row = find(compute_length_bias(judged(bare, "e")), length="document", rate="tpr")
    assert (row["slope"], row["short"], row["n"]) == (None, None, 0)
    assert row["reason"] == "no attributable claim has the text of its document"
    same = [row | {"claim": "alike"} for row in rows]
    row = find(compute_length_bias(judged(same, "e")), length="claim", rate="tpr")
    assert row["reason"] == "all texts are of the same length"


def test_what_is_unscored_bounds_the_slope():
    rows = draw_rows(4, 0.05, 60)
    rows[7]["e"] = rows[11]["e"] = None
    found = compute_length_bias(judged(rows, "e"))
    for guess in (0, 1):
        full = [row | {"e": guess if row["e"] is None else row["e"]} for row in rows]
        for row in compute_length_bias(judged(full, "e")):
            mine = find(found, length=row["length"], rate=row["rate"])
            assert mine["slope_min"] - 1e-12 <= row["slope"] <= mine["slope_max"] + 1e-12
            assert mine["n"] + mine["n_unscored"] == row["n"]


def say(rows: list[Row]) -> list[Row]:
    return [each for each in collect_findings({"length_bias": rows}) if each["id"] == "length"]


def test_an_evaluator_that_leans_on_length_fails_and_one_that_does_not_is_not_named():
    leaning = compute_length_bias(judged(draw_rows(5, 0.1, 800), "e"), intervals=INTERVALS)
    (finding,) = say(leaning)
    assert (finding["severity"], finding["dataset"], finding["evidence"]["length"]) == ("fail", "t", "claim")
    statement = finding["statement"]
    assert "rejects more correct claims where claims are short (TPR +" in statement
    assert "misses more errors where claims are long (TNR −" in statement
    assert "per doubling" in statement
    assert isinstance(statement, Statement)
    fair = compute_length_bias(judged(draw_rows(6, 0.0), "e"), intervals=INTERVALS)
    assert say(fair) == []
    assert say(compute_length_bias(judged(draw_rows(5, 0.1, 800), "e"))) == []  # no interval, so nothing is significant


def test_one_rate_alone_warns():
    row = {"task": "t", "evaluator": "e", "length": "document", "rate": "tnr", "n": 500, "n_unscored": 0}
    row |= {"n_no_text": 0, "short": 100, "long": 1600, "n_clusters": 100, "slope": -0.06, "reason": None}
    row |= {"slope_min": -0.06, "slope_max": -0.06, "slope_low": -0.09, "slope_high": -0.03}
    (finding,) = say([as_declared("length_bias", row)])
    assert finding["severity"] == "warn"
    assert "misses more errors where documents are long (TNR −6.0 points per doubling)" in (finding["statement"])
    # What is unscored could have made it flat.
    assert say([row | {"slope_max": 0.01}]) == []


def test_it_is_computed_where_some_text_is_there():
    rows = draw_rows(7, 0.0, 40)

    assert "length_bias" in compare(*tables(rows, ["e"]), replicates=20).audits
    bare = [row | {"doc": None, "claim": make_text_placeholder("d", at + 1)} for at, row in enumerate(rows)]
    assert "length_bias" not in compare(*tables(bare, ["e"]), replicates=20).audits
