"""Slices of the claims: by hand, which columns make some, what is left out and said, false discoveries, words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from audit_tables import Row, find, judged, tables

from factaudit.audit import load_all_audits
from factaudit.audit.core.statements import Statement
from factaudit.audit.findings import collect_findings
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.slices import MOST_VALUES, compute_slice_differences
from factaudit.errors import UsageError
from factaudit.results import compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

INTERVALS = ClusterBootstrap(replicates=20)


def draw_rows(seed: int, worse: float, n: int = 800) -> list[Row]:
    """An evaluator that is right on 80 %, on claims about law on ``worse`` less."""
    random = np.random.default_rng(seed)
    rows = []
    for at in range(n):
        field, label = str(random.choice(["law", "sport", "news", "art"])), int(random.random() < 0.6)
        is_right = random.random() < 0.8 - worse * (field == "law")
        row: Row = {"field": field, "label": label, "e": label if is_right else 1 - label, "doc_id": str(at // 4)}
        row |= {"error_type": None if label else str(random.choice(["number", "name"])), "year": int(at % 97)}
        rows.append(row | {"note": f"note {at}", "constant": "x", "raw_label": "right" if label else "wrong"})
    return rows


def test_figures_by_hand():
    rows = draw_rows(1, 0.3)
    found = compute_slice_differences(judged(rows, "e"), intervals=INTERVALS)
    for row in found:
        if row["difference"] is None:
            continue
        if row["column"] == "year":
            low, high = map(int, row["value"].split(" to "))
            is_in = [low <= each["year"] <= high for each in rows]
        else:
            is_in = [each[row["column"]] == row["value"] for each in rows]
        rates = {}
        for label, side in product((0, 1), (True, False)):
            mine = [
                each["e"] == label
                for each, one in zip(rows, is_in, strict=True)
                if one == side and each["label"] == label
            ]
            rates[label, side] = np.mean(mine) if mine else np.nan
        if row["figure"] == "bacc":
            expected = [(rates[0, side] + rates[1, side]) / 2 for side in (True, False)]
        else:
            expected = [rates[int(row["figure"] == "tpr"), side] for side in (True, False)]
        assert (row["rate"], row["rest"]) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
        assert row["difference"] == pytest.approx(expected[0] - expected[1])
        assert row["difference_low"] < row["difference"] < row["difference_high"]
        assert (row["n"], row["n_unscored"]) == (sum(is_in), 0)
    assert {row["figure"] for row in found if row["column"] == "error_type"} == {"tnr"}  # only errors have a type
    assert {row["figure"] for row in found if row["column"] == "field"} == {"bacc"}
    years = [row for row in found if row["column"] == "year"]
    assert len(years) == 4
    assert max(row["n"] for row in years) < 1.1 * min(row["n"] for row in years)


def test_counts_of_labels_are_no_property_of_claims():
    rows = [
        row | {"human_not_supported": 9 * (1 - row["label"]), "pages": row["year"]} for row in draw_rows(0, 0.0, 80)
    ]
    columns = {row["column"] for row in compute_slice_differences(judged(rows, "e"))}
    assert "human_not_supported" not in columns
    assert "pages" in columns


def test_columns_that_name_things_and_values_with_few_labels_are_said():
    rows = draw_rows(2, 0.0, 200)
    rows[0]["field"] = "chess"
    found = compute_slice_differences(judged(rows, "e"), intervals=INTERVALS)
    assert {row["column"] for row in found} == {"field", "error_type", "year", "note", "raw_label"}
    note = find(found, column="note")
    assert (note["value"], note["n"], note["reason"]) == (None, 200, "note has 200 different values")
    assert find(found, column="field", value="chess")["reason"] == "too few labels: under 10 of either class in it"
    # A column that has the label in other words leaves no label of the class outside.
    assert "outside of it" in find(found, column="raw_label", value="wrong")["reason"]
    (said,) = load_all_audits()["slices"].remarks(found, [])
    assert said == (
        "10 of 13 slices of 4 columns could be tested. Not compared: note has 200 different values. "
        "Too few labels for 3: field “chess”, raw_label “right”, raw_label “wrong”."
    )
    # How many facts of its response people found supported is made of the labels, and known of no new claim.
    counted = [row | {"human_supported": at % 3, "human_not_supported": at % 2} for at, row in enumerate(rows)]
    assert compute_slice_differences(judged(counted, "e")) == compute_slice_differences(judged(rows, "e"))
    lists = [row | {"tags": ["a", "b"]} for row in rows]
    assert find(compute_slice_differences(judged(lists, "e")), column="tags")["reason"] == "tags holds lists or objects"
    assert {row["column"] for row in compute_slice_differences(judged(rows, "e"), columns=["field"])} == {"field"}
    with pytest.raises(UsageError, match="did you mean 'field'"):
        compute_slice_differences(judged(rows, "e"), columns=["feild"])


def test_a_column_with_too_many_values_is_named_for_each_dataset():
    """ "topic has 308 different values", which was so on the last of three datasets: the others had 105."""
    many = [row | {"dataset": "m"} for row in draw_rows(2, 0.0, 120)]
    more = [row | {"dataset": "n", "claim_id": f"n{at}"} for at, row in enumerate(draw_rows(3, 0.0, 200))]
    found = compute_slice_differences(judged([*many, *more], "e"), intervals=INTERVALS, columns=["note", "field"])
    (said,) = load_all_audits()["slices"].remarks(found, [])
    assert "Not compared: note has 120 different values on m; note has 200 different values on n." in said


def test_rows_have_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("factaudit.audit.slices.MOST_ROWS", 7)
    rows = [
        row | {"kind": at % MOST_VALUES} | {"kind": f"k{at % MOST_VALUES}"} for at, row in enumerate(draw_rows(3, 0))
    ]
    found = compute_slice_differences(judged(rows, "e"))
    assert len([row for row in found if row["value"] is not None]) <= 7
    assert find(found, column="kind")["reason"] == "kind has too many values (50) for 1 evaluators"


def say(rows: list[Row]) -> list[Row]:
    return [each for each in collect_findings({"slices": rows}) if each["id"] == "slice"]


def test_a_slice_that_is_worse_is_named_with_how_many_were_looked_at():
    rows = compute_slice_differences(judged(draw_rows(4, 0.3), "e"), intervals=INTERVALS)
    (finding,) = say(rows)
    assert (finding["severity"], finding["evaluator"], finding["evidence"]["value"]) == ("warn", "e", "law")
    assert isinstance(finding["statement"], Statement)
    assert (
        "e is significantly worse on 1 of 10 slices of the claims. At worst, where field is “law” on d, its BAcc is"
        in (finding["statement"])
    )
    assert say(compute_slice_differences(judged(draw_rows(5, 0.0), "e"), intervals=INTERVALS)) == []
    assert (
        say(compute_slice_differences(judged(draw_rows(4, 0.3), "e"))) == []
    )  # without intervals nothing is significant


def test_the_first_screen_says_it_of_the_best_evaluator_alone():
    audits = ["rates", "differences", "slices"]
    worse, fair = (
        compare(*tables(draw_rows(seed, size), ["e"]), audits=audits, replicates=50)
        for seed, size in ((4, 0.3), (5, 0.0))
    )
    lines = [each.sentence for each in compose_first_screen(worse.to_dict()).advice if each.word == "Beware"]
    assert any(
        "e is significantly worse on some claims: where field is “law” on d, its BAcc is" in line for line in lines
    )
    assert not any("some claims" in each.sentence for each in compose_first_screen(fair.to_dict()).advice)


def test_bounds_hold_whatever_the_missing_verdicts_are():
    rows = draw_rows(6, 0.2, 40)
    rows[0]["e"] = rows[5]["e"] = rows[9]["e"] = None
    found = compute_slice_differences(judged(rows, "e"), columns=["field"], min_labels=1)
    for values in product((0, 1), repeat=3):
        full = [dict(each) for each in rows]
        for at, value in zip((0, 5, 9), values, strict=True):
            full[at]["e"] = value
        for one in compute_slice_differences(judged(full, "e"), columns=["field"], min_labels=1):
            row = find(found, value=one["value"])
            if row["difference"] is not None:
                assert row["difference_min"] - 1e-12 <= one["difference"] <= row["difference_max"] + 1e-12


def test_the_order_of_rows_changes_nothing():
    rows = [row | {"claim_id": f"c{at}"} for at, row in enumerate(draw_rows(7, 0.2, 200))]
    expected = compute_slice_differences(judged(rows, "e"), intervals=INTERVALS)
    assert compute_slice_differences(judged(rows[::-1], "e"), intervals=INTERVALS) == expected


def test_it_is_computed_where_some_column_sorts_the_claims():
    rows = draw_rows(8, 0.0, 60)
    assert "slices" in compare(*tables(rows, ["e"]), replicates=20).audits
    bare = [{key: row[key] for key in ("label", "e", "doc_id", "note")} for row in rows]
    assert "slices" not in compare(*tables(bare, ["e"]), replicates=20).audits
