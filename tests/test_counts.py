"""Counts tables: what is read, what is refused, and that audits compute on them as on the claims
that they count."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from audit_worlds import make_world

import factaudit
from factaudit import InputError, UsageError, compare, compare_counts, run
from factaudit.audit import list_computable_audits
from factaudit.experiment.run import read_experiment
from factaudit.tables.counts_table import (
    COUNT_COLUMNS,
    is_counts_table,
    read_counts,
    validate_counts,
)

ROW = {
    "dataset": "d",
    "system": "a",
    "evaluator": "e",
    "n": 40,
    "labelled_errors": 10,
    "predicted_errors": 12,
}


def rows(*changes: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame([ROW | change for change in changes])


def fails(*changes: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        validate_counts(rows(*changes))
    return str(caught.value)


def test_defaults_and_standard_form():
    found = validate_counts(rows({}, {"evaluator": "f", "errors_found": 7, "note": "ignored"}))
    assert tuple(found.columns) == COUNT_COLUMNS
    assert found["level"].tolist() == ["claim", "claim"]
    assert found["errors_found"].isna().tolist() == [True, False]
    assert found["n"].dtype == "int64"
    alone = validate_counts(
        pd.DataFrame([{key: value for key, value in ROW.items() if key != "system"}])
    )
    assert alone["system"].isna().all()


def test_rates_become_the_nearest_numbers_of_claims(tmp_path):
    path = tmp_path / "leaderboard.csv"
    path.write_text(
        "dataset,system,evaluator,n,labelled_error_rate,predicted_error_rate\nd,a,e,395,0.192,0.063\nd,a,f,395,0.192,0.137\n"
    )
    found = read_counts(path)
    assert found["labelled_errors"].tolist() == [76, 76]  # 76 / 395 = 19.24 %
    assert found["predicted_errors"].tolist() == [25, 54]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n": 0}, "row 1, column 'n': expected a whole number from 1 on, found 0"),
        ({"n": 2.5}, "row 1, column 'n': expected a whole number from 1 on, found 2.5"),
        ({"n_known": 2}, "row 1, column 'n_known': expected 1 or 0, found 2"),
        (
            {"level": "sentence"},
            "row 1, column 'level': expected claim or response, found 'sentence'",
        ),
        ({"dataset": None}, "row 1, column 'dataset': expected text, found none"),
        (
            {"labelled_errors": 41},
            "row 1, column 'labelled_errors': expected a whole number from 0 to n, found 41",
        ),
        (
            {"predicted_errors": -1},
            "row 1, column 'predicted_errors': expected a whole number from 0 to n, found -1",
        ),
        (
            {"predicted_errors": None},
            "row 1, column 'predicted_errors': expected a whole number from 0 to n, found none",
        ),
        (
            {"errors_found": 11},
            (
                "row 1, column 'errors_found': expected a whole number from 0 to 10 (10 labelled"
                " errors, 12 predicted errors, n 40), found 11"
            ),
        ),
        (
            {"predicted_errors": 35, "errors_found": 4},
            (
                "expected a whole number from 5 to 10 (10 labelled errors, 35 predicted errors, n"
                " 40), found 4"
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_cell_is_said(change, said):
    assert said in fails(change)


def test_rates_are_shares():
    table = pd.DataFrame([{**ROW, "labelled_errors": None, "labelled_error_rate": 19.2}])
    with pytest.raises(
        InputError, match=r"expected a share from 0 to 1 \(12.5 % is 0.125\), found 19.2"
    ):
        validate_counts(table)
    with pytest.raises(
        InputError, match="expected a column 'predicted_errors' or a column 'predicted_error_rate'"
    ):
        validate_counts(pd.DataFrame([{**ROW}]).drop(columns="predicted_errors"))


def test_rows_of_the_same_claims_must_agree():
    assert "row 2, column 'evaluator': expected one row for each" in fails({}, {})
    assert "row 2, column 'labelled_errors': expected the labelled_errors of this" in fails(
        {}, {"evaluator": "f", "labelled_errors": 9}
    )
    assert "row 2, column 'n': expected the n of this" in fails({}, {"evaluator": "f", "n": 50})
    assert "row 2, column 'system': expected a system" in fails({}, {"system": None})
    # Another level, and another dataset, are other claims.
    validate_counts(
        rows(
            {},
            {
                "level": "response",
                "system": None,
                "n": 9,
                "labelled_errors": 1,
                "predicted_errors": 2,
            },
        )
    )


def test_a_counts_table_is_told_by_its_columns():
    assert is_counts_table(rows({}))
    assert not is_counts_table(pd.DataFrame([{"claim_id": "1", "evaluator": "e", "prediction": 1}]))
    assert not is_counts_table(
        pd.DataFrame([{"dataset": "d", "claim": "c", "evaluator": "e", "n": 1}])
    )


@pytest.fixture
def claims() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two data sets of three systems with one claim a response, and three evaluators of them."""
    claims, verdicts = make_world("whole")
    table = factaudit.validate_claims(claims.assign(response_id=claims["claim_id"], doc_id=None))
    return table, factaudit.validate_verdicts(verdicts.drop(columns="score"), claims=table)


def counts_of(claims: pd.DataFrame, verdicts: pd.DataFrame, joint: bool) -> pd.DataFrame:
    """The counts of claims and verdicts, by pandas alone, at both levels (a response has one
    claim)."""
    table = verdicts.merge(claims, on="claim_id")
    table["found"] = (table["label"] == 0) & (table["prediction"] == 0)
    grouped = table.groupby(["dataset", "system", "evaluator"])
    counted = grouped.agg(
        n=("label", "size"),
        labelled_errors=("label", lambda values: int((values == 0).sum())),
        predicted_errors=("prediction", lambda values: int((values == 0).sum())),
        errors_found=("found", "sum"),
    ).reset_index()
    both = pd.concat([counted.assign(level="claim"), counted.assign(level="response")])
    return validate_counts(both if joint else both.drop(columns="errors_found"))


@pytest.mark.parametrize("joint", [True, False])
def test_audits_give_the_same_on_counts_as_on_claims(claims, joint):
    counts = counts_of(*claims, joint=joint)
    names = [
        "quantification",
        "headroom",
        "ranking",
        "ranking_pairs",
        *(["rates", "adjustment"] if joint else []),
    ]
    plain, counted = (
        compare(*claims, audits=names, replicates=50),
        compare_counts(counts, replicates=50),
    )
    assert set(names) <= set(counted.audits)
    for name in names:
        left, right = plain.audits[name], counted.audits[name]
        assert len(left) == len(right) > 0
        keys = [key for key, column in list_computable_audits()[name].columns.items() if column.key]
        intervals = ("_low", "_high")
        by_key = {tuple(row.get(key) for key in keys): row for row in right}
        for row in left:
            other = by_key[tuple(row.get(key) for key in keys)]
            assert set(row) == set(other)
            for key, value in row.items():
                if not key.endswith(intervals) and key not in ("reason", "p_bias"):
                    assert other[key] == pytest.approx(value), (name, key)
    if not joint:
        assert counted.audits["rates"] == counted.audits["adjustment"] == []


def test_the_interval_of_the_bias_is_the_widest_where_the_joint_count_is_not_known(
    claims,
):
    widths = {}
    for joint in (True, False):
        rows = compare_counts(counts_of(*claims, joint=joint), audits=["quantification"]).audits[
            "quantification"
        ]
        widths[joint] = [row["bias_high"] - row["bias_low"] for row in rows]
    assert all(loose > tight for loose, tight in zip(widths[False], widths[True], strict=True))


def test_nothing_is_concluded_from_numbers_of_claims_that_are_not_published():
    """Their rates, orders and corrections are shown; numbers of claims, tests, intervals and
    findings are not."""
    systems = [("a", 10, 34), ("b", 12, 15), ("c", 20, 14), ("d", 25, 24)]
    table = rows(
        *(
            {"system": s, "labelled_errors": x, "predicted_errors": y, "errors_found": x // 2}
            for s, x, y in systems
        )
    )
    known, unknown = (
        compare_counts(validate_counts(table.assign(n_known=k)), replicates=50) for k in (1, 0)
    )
    assert known.finding_rows
    assert not unknown.finding_rows
    assert known.rows("quantification")[0]["n"] == 40
    shown = {"bias", "error_rate", "kendall_tau", "mean_abs_bias", "bacc", "n_systems", "n_pairs"}
    for name in known.audits:
        for row, other in zip(known.rows(name), unknown.rows(name), strict=True):
            assert {key: row[key] for key in shown & row.keys()} == {
                key: other[key] for key in shown & row.keys()
            }
            hidden = [
                key
                for key in other
                if key == "n" or key.startswith("p_") or key.endswith(("_low", "_max"))
            ]
            assert {other[key] for key in hidden} <= {None}, name
            assert "numbers of claims are not published" in other["reason"]


def test_an_audit_that_needs_claims_is_refused():
    with pytest.raises(
        UsageError,
        match="audit 'consistency' needs claims: of a counts table can be computed rates, ",
    ):
        compare_counts(validate_counts(rows({})), audits=["consistency"])


def test_an_experiment_takes_claims_or_counts(tmp_path):
    rows({}).to_csv(tmp_path / "counts.csv", index=False)
    path = tmp_path / "experiment.yaml"
    path.write_text("title: t\ncounts: counts.csv\naudits: [quantification]\n")
    assert read_experiment(path).counts == str(tmp_path / "counts.csv")
    (row,) = run(path, tmp_path / "run").rows("quantification", system="a")
    assert row["bias"] == pytest.approx(0.05)
    path.write_text("title: t\naudits: [quantification]\n")
    with pytest.raises(InputError, match=r"expected claims \(or counts\), found none"):
        read_experiment(path)
    path.write_text("title: t\ncounts: counts.csv\nclaims: [claims.csv]\n")
    with pytest.raises(InputError, match="expected counts alone"):
        read_experiment(path)
