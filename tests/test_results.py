"""Results: what is told of the evaluators, and rows and figures by name."""

from __future__ import annotations

import os
from typing import Any

import pytest
from audit_tables import tables
from IPython.core.pylabtools import print_figure
from threadpoolctl import threadpool_info, threadpool_limits

from factaudit.arrays.judgements import Judgements
from factaudit.errors import UsageError
from factaudit.results import Results, compare


@pytest.fixture(scope="module")
def results() -> Results:
    rows = [
        {
            "label": int(i % 3 > 0),
            "system": "xy"[i % 2],
            "response_id": str(i // 4),
            "z": i / 40,
            "a": (i * 7 % 40) / 40,
        }
        for i in range(40)
    ]
    claims, verdicts = tables(
        [row | {"random:seed=1": i % 2} for i, row in enumerate(rows)], ["z", "random:seed=1", "a"]
    )
    return compare(claims, verdicts, replicates=20, signatures={"a": "always-yes|version:1", "z": "mine|seed:0"})


def test_evaluators_are_told_of_in_the_order_of_their_verdicts_with_floors_marked(results):
    assert results.evaluators == ["z", "random:seed=1", "a"]
    assert [row["floor"] for row in results.about["evaluators"]] == [False, True, True]
    assert results.about["confidence"] == 0.95
    assert [(row["n_clusters"], row["n_responses"]) for row in results.about["claims"]] == [(20, 20)]
    told = {row["evaluator"] for row in results.finding_rows if row["evaluator"]}
    assert told <= {"z"}, "floors are no candidates"
    assert any(row["evaluator"] is None for row in results.finding_rows), "what is said of the claims stays"


def test_rows_by_their_values_in_the_order_of_the_evaluators(results):
    rows = results.rows("rates", dataset="d")
    assert [row["evaluator"] for row in rows] == ["z", "random:seed=1", "a"]
    assert [row["evaluator"] for row in results.audits["rates"]][:3] == ["a", "random:seed=1", "z"], "sorted by name"
    assert results.table("rates", dataset="d")["evaluator"].tolist() == results.evaluators
    assert results.rows("rates", dataset="elsewhere") == []
    with pytest.raises(UsageError, match=r"rows of rates have no 'evaluater' \(did you mean 'evaluator'"):
        results.rows("rates", evaluater="a")
    with pytest.raises(UsageError, match="no audit 'rate' in these results"):
        results.rows("rate")
    with pytest.raises(AttributeError, match=r"no audit 'rate' in these results \(did you mean 'rates'"):
        _ = results.rate


def test_what_results_are_is_shown(results):
    assert repr(results).startswith("<Results of 40 claims, evaluators z, random:seed=1, a; audits rates, ")
    assert repr(Results("", {}, {})) == "<Results of 0 claims, evaluators ; audits >"


def test_audits_take_one_core(monkeypatch):
    def threads() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    def counted(*arguments: Any) -> Any:
        used.append(threads())
        return tally(*arguments)

    tally, used = Judgements.tally, list[set[int]]()
    monkeypatch.setattr(Judgements, "tally", counted)
    claims, verdicts = tables([{"label": i % 2, "e": i / 10} for i in range(10)], ["e"])
    with threadpool_limits(2, "blas"):
        compare(claims, verdicts, audits=["rates"], replicates=20)
        assert used == [{1}] * len(used) != []
        assert threads() == {min(2, os.cpu_count() or 1)}, "others have theirs again"


def test_figures_by_audit(results):
    figure = results.figure("quantification")
    assert [ax.get_title() for ax in figure.axes] == ["predicted error rate (%)", "bias (points)"]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()][:2] == ["x", "y"]
    assert results.figure("rates", dataset="__macro__").axes
    assert print_figure(figure, "png"), "a notebook shows it"
    with pytest.raises(UsageError, match="no figure of audit 'differences'"):
        results.figure("differences")
    with pytest.raises(UsageError, match="there is nothing to draw: the audit 'rates' has no rows with these values"):
        results.figure("rates", evaluator="nobody")


def test_chunks_are_those_that_the_signature_tells_of():
    claims, verdicts = tables(
        [{"label": 1, "doc": "One two. Three four.", "e": 1, "chunked-e": 0}] * 2, ["e", "chunked-e"]
    )
    for signature, options, size in (
        ('chunked|evaluator:"e|size:9|unit:words"|size:2|unit:words', {}, 2),
        ('chunked|evaluator:"e|size:9|unit:words"|size:2|unit:words', {"size": 3}, 3),
        ("chunked|evaluator:e|size:512|tokenizer:t|unit:tokens", {}, None),
        ("other|size:2|unit:words", {}, None),
    ):
        found = compare(claims, verdicts, audits=[{"chunking": options}], signatures={"chunked-e": signature})
        assert [row["chunk_size"] for row in found.audits["chunking"]] == [size, size]
