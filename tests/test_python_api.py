"""What Python users call: frames with columns of theirs, results as frames, errors that name
arguments."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from audit_tables import tables
from IPython.core.pylabtools import print_figure

import factaudit
from factaudit import FactauditError, Results, UsageError, compare

N = 60


@pytest.fixture
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    columns = {
        "human": draw.integers(0, 2, N),
        "gpt": draw.random(N),
        "claude": draw.integers(0, 2, N),
    }
    columns |= {"llama": draw.random(N), "model": np.where(np.arange(N) % 2, "a", "b")}
    return pd.DataFrame(columns | {"answer": [f"It rains {i} days." for i in range(N)]})


@pytest.fixture(scope="module")
def results() -> Results:
    draw = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "human": draw.integers(0, 2, N),
            "gpt": draw.random(N),
            "model": np.tile(["a", "b"], N // 2),
        }
    )
    audits = ["rates", "quantification", "differences"]
    return factaudit.compare(
        table, label="human", evaluators=["gpt"], system="model", audits=audits, replicates=20
    )


def test_columns_are_named_as_pandas_users_name_them(frame):
    """The evaluators are those that are named, though another column looks like one."""
    named = {
        "label": "human",
        "evaluators": ["gpt", "claude"],
        "system": "model",
        "claim": "answer",
    }
    found = factaudit.compare(frame, **named, audits=["rates", "quantification"], replicates=0)
    assert found.evaluators == ["gpt", "claude"]
    assert set(found["quantification"]["system"].dropna()) == {"a", "b", "__all__"}
    right = ((frame["gpt"] > 0.5) == frame["human"])[frame["human"] == 1].mean()
    assert found.rows("rates", evaluator="gpt")[0]["tpr"] == pytest.approx(right)


def test_evaluators_of_a_table_of_verdicts_are_chosen_by_name():
    claims = factaudit.read_claims("data/minibench/claims.jsonl.gz").head(40)
    verdicts = factaudit.judge(claims, ["rouge2", "unigram"])
    found = factaudit.compare(
        claims, verdicts, evaluators=["unigram"], audits=["rates"], replicates=0
    )
    assert found.evaluators == ["unigram"]
    with pytest.raises(
        UsageError, match=r"no evaluator or column 'unigrm' in it \(did you mean 'unigram'"
    ):
        factaudit.compare(claims, verdicts, evaluators=["unigrm"])


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ({"label": "humn"}, r"no column 'humn' to map to 'label' \(did you mean 'human'"),
        (
            {"label": "human", "evaluators": ["gtp"]},
            r"no evaluator or column 'gtp' in it \(did you mean 'gpt'",
        ),
        (
            {"label": pd.Series([1])},
            "label: expected the name of a column, found Series; labels in a table of their own",
        ),
    ],
)
def test_what_is_wrong_is_said_by_the_arguments(frame, named, told):
    with pytest.raises(FactauditError, match=told):
        factaudit.compare(frame, **named)


def test_an_audit_is_one_table_by_either_name(results):
    table = results["rates"]
    assert results.rates.equals(table)
    assert len(table) == len(results.audits["rates"])
    assert {"dataset", "evaluator", "n", "bacc", "bacc_low", "bacc_high"} <= {*table.columns}


def test_results_are_completed_copied_and_shown_in_a_line(results):
    assert {"rates", "quantification", "findings", "save"} <= set(dir(results))
    assert results._ipython_key_completions_() == ["rates", "quantification", "differences"]
    for again in (copy.copy(results), pickle.loads(pickle.dumps(results))):
        assert again == results
    assert len(repr(results).splitlines()) == 1
    for names, shown in (("abcd", "a, b, c, d;"), ("abcde", "a, b, c, d, ...;")):
        assert shown in repr(compare(*tables([{"label": 1} | dict.fromkeys(names, 1)], names)))
    assert len(results._repr_html_()) < 20_000


# Rows and figures by name
# ------------------------------------------------------------


@pytest.fixture(scope="module")
def ordered() -> Results:
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
    return compare(
        claims,
        verdicts,
        replicates=20,
        signatures={"a": "always-yes|version:1", "z": "mine|seed:0"},
    )


def test_rows_by_their_values_in_the_order_of_the_evaluators(ordered):
    rows = ordered.rows("rates", dataset="d")
    assert [row["evaluator"] for row in rows] == ["z", "random:seed=1", "a"]
    assert [row["evaluator"] for row in ordered.audits["rates"]][:3] == [
        "a",
        "random:seed=1",
        "z",
    ], "sorted by name"
    assert ordered.table("rates", dataset="d")["evaluator"].tolist() == ordered.evaluators
    assert ordered.rows("rates", dataset="elsewhere") == []
    with pytest.raises(
        UsageError, match=r"rows of rates have no 'evaluater' \(did you mean 'evaluator'"
    ):
        ordered.rows("rates", evaluater="a")
    with pytest.raises(UsageError, match="no audit 'rate' in these results"):
        ordered.rows("rate")
    with pytest.raises(
        AttributeError, match=r"no audit 'rate' in these results \(did you mean 'rates'"
    ):
        _ = ordered.rate


def test_figures_by_audit(ordered):
    figure = ordered.figure("quantification")
    about = [(ax.get_xlabel(), ax.get_ylabel()) for ax in figure.axes]
    assert about == [("labelled error rate (%)", "predicted error rate (%)")]
    assert ordered.figure("rates", dataset="__macro__").axes
    assert print_figure(figure, "png"), "a notebook shows it"
    with pytest.raises(UsageError, match="no figure of audit 'differences'"):
        ordered.figure("differences")
    with pytest.raises(
        UsageError,
        match="there is nothing to draw: the audit 'rates' has no rows with these values",
    ):
        ordered.figure("rates", evaluator="nobody")
