"""What holds of every audit on any tables: order, bounds, nulls, degenerate cases."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from audit_tables import judged, tables
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from factaudit.audit import computable
from factaudit.audit.consistency import consistency
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.differences import differences
from factaudit.audit.findings import findings
from factaudit.audit.headroom import headroom
from factaudit.audit.quantification import quantification
from factaudit.audit.rates import rates

Row = dict[str, Any]
SMALL = Intervals(replicates=20, seed=1)
#: Without shrinking: an example of these tables is small, and shrinking runs every audit for minutes.
QUICK = settings(deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
ROW = st.fixed_dictionaries(
    {
        "dataset": st.sampled_from("xy"),
        "task": st.sampled_from(["t", None]),
        "system": st.sampled_from(["a", "b", "c", None]),
        "response_id": st.sampled_from(["1", "2", None]),
        "doc_id": st.sampled_from(["p", "q", None]),
        "claim": st.sampled_from(["the cat sat on the mat", "a dog ran", "word"]),
        "doc": st.sampled_from(["the cat sat on the mat . a dog barked .", "a dog ran away", None]),
        "label": st.sampled_from([0, 1, None]),
        "e": st.sampled_from([0, 1, None]),
        "f": st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0, None]),
        "chunked-f": st.sampled_from([0.1, 0.9, None]),
    }
)
EVALUATORS = ("e", "f", "chunked-f")
ROWS = st.lists(ROW, min_size=1, max_size=14)


def run(table: Judged, intervals: Intervals | None = SMALL) -> dict[str, list[Row]]:
    return {name: audit.compute(table, intervals=intervals) for name, audit in computable().items()}


def figures(row: Row) -> Iterable[str]:
    """The keys of a row's numbers that aren't counts, bounds or ends."""
    for key, value in row.items():
        if isinstance(value, float) and not key.endswith(("_min", "_max", "_low", "_high")):
            yield key


def check_rows(audits: dict[str, list[Row]]) -> None:
    for name, rows in audits.items():
        for row in rows:
            assert all(type(value) in (int, float, str, bool, type(None)) for value in row.values()), (name, row)
            for key, value in row.items():
                assert not isinstance(value, float) or math.isfinite(value), (name, key, row)
                ends = key.endswith(("_min", "_max", "_low", "_high"))
                if value is None and not ends and key not in ("reason", "system", "task", "response_id"):
                    assert row["reason"], (name, key, row)
            for key in figures(row):
                if f"{key}_min" in row and row["n_unscored"] == 0 and row[f"{key}_min"] is not None:
                    assert row[f"{key}_min"] == pytest.approx(row[key], abs=1e-12), (name, key, row)
                    assert row[f"{key}_max"] == pytest.approx(row[key], abs=1e-12), (name, key, row)
                if row.get(f"{key}_low") is not None:
                    assert row[f"{key}_low"] <= row[f"{key}_high"], (name, key, row)
    json.dumps(audits, allow_nan=False)
    for finding in findings(audits):
        assert list(finding) == ["id", "severity", "evaluator", "dataset", "statement", "evidence"]
        assert finding["severity"] in ("fail", "warn", "ok")
        assert "None" not in finding["statement"]
        assert "nan" not in finding["statement"].split()
    json.dumps(findings(audits), allow_nan=False)


@settings(QUICK, max_examples=25)
@given(ROWS)
def test_every_row_of_every_audit_is_flat_finite_and_says_why_it_lacks_a_figure(rows):
    check_rows(run(judged(rows, *EVALUATORS)))


@settings(QUICK, max_examples=15)
@given(ROWS, st.randoms(use_true_random=False))
def test_any_permutation_of_rows_gives_the_same_results(rows, random):
    rows = [{"claim_id": f"c{number}"} | row for number, row in enumerate(rows)]
    claims, verdicts = tables(rows, EVALUATORS)
    expected = run(Judged.join(claims, verdicts))
    order, other = list(range(len(claims))), list(range(len(verdicts)))
    random.shuffle(order)
    random.shuffle(other)
    shuffled = Judged.join(claims.iloc[order].reset_index(drop=True), verdicts.iloc[other].reset_index(drop=True))
    found = run(shuffled)
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name
    assert findings(found) == findings(expected)


@settings(QUICK, max_examples=50)
@given(ROWS)
def test_bacc_is_the_mean_of_tpr_and_tnr(rows):
    for row in rates(judged(rows, *EVALUATORS)):
        if row["dataset"] == "__macro__":
            continue
        if row["tpr"] is None or row["tnr"] is None:
            assert row["bacc"] is row["gap"] is None
            continue
        assert row["bacc"] == (row["tpr"] + row["tnr"]) / 2
        assert row["gap"] == row["tpr"] - row["tnr"]
        assert row["tpr"] + row["fnr"] == pytest.approx(1)
        assert row["tnr"] + row["fpr"] == pytest.approx(1)


@settings(QUICK, max_examples=50)
@given(ROWS)
def test_iou_and_kappa_are_symmetric(rows):
    turned = [row | {"e": row["f"], "f": row["e"]} for row in rows]
    keys = ("iou", "iou_min", "iou_max", "kappa", "n", "n_unscored")
    rows_of = [consistency(judged(each, "e", "f"), by=["dataset"]) for each in (rows, turned)]
    assert [[row[k] for k in keys] for row in rows_of[0]] == [[row[k] for k in keys] for row in rows_of[1]]
    for row in rows_of[0]:
        assert row["iou"] is None or 0 <= row["iou"] <= 1


@settings(QUICK, max_examples=30)
@given(ROWS, ROW)
def test_an_unscored_claim_changes_only_n_unscored_and_bounds(rows, extra):
    """Of a dataset that is there, and in no response: a response is unscored where none of its claims is 0."""
    extra |= {"dataset": rows[0]["dataset"], "e": None, "f": None, "chunked-f": None, "response_id": None}
    extra |= {"system": rows[0]["system"], "task": rows[0]["task"]}
    for audit in (rates, consistency, differences, headroom):
        before, after = audit(judged(rows, *EVALUATORS)), audit(judged([*rows, extra], *EVALUATORS))
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            changed = {key for key in new if old[key] != new[key]}
            allowed = {"n_unscored", "n_unlabelled", "reason"}
            assert all(key in allowed or key.endswith(("_min", "_max")) for key in changed), (audit, old, new)
    before, after = (quantification(judged(each, *EVALUATORS), levels=["claim"]) for each in (rows, [*rows, extra]))
    for old, new in zip(before, after, strict=True):
        for key in ("n", "labelled_error_rate", "predicted_error_rate", "bias"):
            assert old[key] == new[key]


def completions(table: Judged) -> Iterable[Judged]:
    gaps = table.prediction < 0
    for guess in itertools.product((0, 1), repeat=int(gaps.sum())):
        complete = table.prediction.copy()
        complete[gaps] = guess
        yield replace(table, prediction=complete)


FEW = st.lists(
    st.fixed_dictionaries(
        {
            "system": st.sampled_from(["a", "b"]),
            "label": st.sampled_from([0, 1, 1, None]),
            "e": st.sampled_from([0, 1, None]),
            "f": st.sampled_from([0, 1, None]),
        }
    ),
    min_size=1,
    max_size=7,
).filter(lambda rows: sum(row[name] is None for row in rows for name in ("e", "f")) <= 6)

_BOUNDED = (rates, consistency, differences, quantification, headroom)


@settings(QUICK, max_examples=25)
@given(FEW)
def test_bounds_hold_every_completion_and_are_reached(rows):
    table = judged(rows, "e", "f")
    complete = list(completions(table))
    for audit in _BOUNDED:
        options = {"levels": ["claim"]} if audit in (quantification, headroom) else {}
        found = audit(table, **options)
        finished = [audit(each, **options) for each in complete]
        for at, row in enumerate(found):
            for key in [key[:-4] for key in row if key.endswith("_min")]:
                values = [others[at][key] for others in finished if others[at][key] is not None]
                if not values:
                    assert row[f"{key}_min"] is row[f"{key}_max"] is None, (audit, key, row)
                    continue
                assert row[f"{key}_min"] == pytest.approx(min(values), abs=1e-12), (audit.__name__, key, row)
                assert row[f"{key}_max"] == pytest.approx(max(values), abs=1e-12), (audit.__name__, key, row)


def of(n: int = 12, **columns: Any) -> list[Row]:
    """n rows: 2 systems, 3 responses each, both classes, scores that differ; columns override, maybe by functions."""
    rows = []
    for i in range(n):
        row: Row = {"system": "ab"[i % 2], "response_id": str(i // 4), "doc_id": str(i // 2), "label": i % 3 % 2}
        row |= {"claim": f"the cat number {i} sat here", "doc": "the cat number 3 sat here . dogs sat here ."}
        row |= {"e": i % 2, "f": (i + 0.5) / n, "chunked-f": i / n}
        rows.append(row | {key: value(i) if callable(value) else value for key, value in columns.items()})
    return rows


DEGENERATE = {
    "one class only": of(label=1),
    "the other class only": of(label=0),
    "one system": of(system="a"),
    "no system": of(system=None),
    "all scores equal": of(f=0.5, e=1, **{"chunked-f": 0.5}),
    "all claims unscored": of(e=None, f=None, **{"chunked-f": None}),
    "one evaluator unscored": of(e=None),
    "TNR = FNR": [
        {"system": s, "label": label, "e": e, "f": float(e), "chunked-f": float(e)}
        for s in "ab"
        for label in (0, 1)
        for e in (0, 1)
    ],
    "a system with one claim": of(system=lambda i: "a" if i else "lone"),
    "no labels": of(label=None),
    "no responses": of(response_id=None),
    "no bigram": of(claim="word"),
    "no document": of(doc=None),
    "one cluster": of(doc_id="1"),
    "one claim": of(1),
    "both rates 0": of(label=1, e=1, f=1.0),
    "both rates 1": of(label=0, e=0, f=0.0),
}


@pytest.mark.parametrize("case", DEGENERATE)
@pytest.mark.parametrize("intervals", [None, SMALL])
def test_degenerate_cases_give_nulls_with_reasons(case, intervals):
    table = judged(DEGENERATE[case], *EVALUATORS)
    audits = run(table, intervals)
    assert all(audits[name] for name in ("rates", "consistency", "quantification", "headroom", "ranking", "adjustment"))
    check_rows(audits)


def test_all_unscored_is_undefined_and_never_0():
    audits = run(judged(DEGENERATE["all claims unscored"], *EVALUATORS))
    for name in ("rates", "consistency", "differences", "quantification", "headroom", "ranking"):
        for row in audits[name]:
            # shares of orders that no data can show don't depend on predictions
            assert not [key for key in figures(row) if not key.startswith("detectable")], (name, row)
    found = findings(audits)
    assert {f["evaluator"] for f in found if f["id"] == "unscored" and f["severity"] == "fail"} == set(EVALUATORS)


def test_one_class_only_leaves_the_other_rate_undefined():
    for label, defined, undefined in ((1, "tpr", "tnr"), (0, "tnr", "tpr")):
        for row in rates(judged(of(label=label), *EVALUATORS)):
            assert row[defined] is not None
            assert row[undefined] is row["bacc"] is row["gap"] is None


def test_tnr_equal_to_fnr_is_unidentifiable():
    rows = run(judged(DEGENERATE["TNR = FNR"], *EVALUATORS))["adjustment"]
    adjusted = [row for row in rows if row["method"] == "adjusted_counts" and row["level"] == "claim"]
    assert adjusted
    for row in adjusted:
        assert row["mean_abs_bias"] is None
        assert row["unidentifiable"] == (2 if row["calibration_system"] == "__cv__" else 1)
        assert "TNR = FNR" in row["reason"]


def test_equal_scores_leave_both_ends_as_thresholds():
    rows = run(judged(of(f=0.5), *EVALUATORS))["adjustment"]
    tuned = [row for row in rows if row["evaluator"] == "f" and row["threshold"] is not None]
    assert tuned
    assert {row["threshold"] for row in tuned} <= {0.0, 1.0}


def test_kleene_responses_by_brute_force():
    cases = list(itertools.product(itertools.product((0, 1, None), repeat=3), repeat=2))
    rows = [
        {"response_id": f"{number:03}", "label": label, "e": said}
        for number, case in enumerate(cases)
        for label, said in zip(*case, strict=True)
    ]
    responses = judged(rows, "e").responses
    assert responses.claims["response_id"].tolist() == [f"{number:03}" for number in range(len(cases))]
    for number, case in enumerate(cases):
        for found, values in zip((responses.label[number], responses.prediction[0, number]), case, strict=True):
            guesses = itertools.product(*[(0, 1) if value is None else (value,) for value in values])
            outcomes = {int(all(guess)) for guess in guesses}
            assert found == (outcomes.pop() if len(outcomes) == 1 else -1)
